//! Resolves events: what they change, and when.

use engpass_model::event::{Changes, Event, EventChange};
use engpass_model::random::{Label, Stream};
use indexmap::IndexMap;

use crate::campaign::Point;
use crate::check::events::Target;
use crate::diagnostic::Diagnostic;
use crate::links::node_id;
use crate::resolve::Resolver;
use crate::testbed::Testbed;
use crate::topology::{EventPath, Topology};

/// A change of the state of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change {
    /// Time in picoseconds.
    pub at: u64,
    /// Index of the link. Both directions change.
    pub link: usize,
    /// True for each end of the link that sees it, in the order of the link's `ends`.
    pub seen_by: [bool; 2],
    /// True if the link goes down, false if it comes up.
    pub down: bool,
    /// Index of the event among those that change links.
    pub event: usize,
}

/// The changes that one event makes, in order of time; the sequence never ends.
#[derive(Clone, Debug)]
pub struct EventChanges {
    times: Changes,
    link: usize,
    seen_by: [bool; 2],
    event: usize,
}

impl Iterator for EventChanges {
    type Item = Change;

    fn next(&mut self) -> Option<Change> {
        let &mut Self { link, seen_by, event, .. } = self;
        let (at, state) = self.times.next()?;
        Some(Change { at, link, seen_by, down: state == EventChange::Down, event })
    }
}

/// Returns the changes of every event with this seed, in the order of the file.
pub fn changes_by_event(testbed: &Testbed, topology: &Topology, seed: u64) -> Vec<EventChanges> {
    let links = testbed.events.values().filter(|event| !event.is_of_member());
    let events = links.zip(&topology.events).enumerate();
    let of = |(event, (config, path)): (usize, (&Event, &EventPath))| {
        let times = config.all_changes(Stream::new(seed, Label::Event(&path.name)));
        EventChanges { times, link: path.link, seen_by: path.seen_by, event }
    };
    events.map(of).collect()
}

/// Returns all changes of a run with this seed up to and including the end of the run, in order of time. Changes at one instant are in the order of their
/// events in the file.
fn changes(testbed: &Testbed, topology: &Topology, seed: u64) -> Vec<Change> {
    let end = testbed.run.duration.0;
    let events = changes_by_event(testbed, topology, seed).into_iter();
    let mut changes: Vec<Change> =
        events.flat_map(|event| event.take_while(|change| change.at <= end)).collect();
    // The sort is stable: changes of one event keep their order.
    changes.sort_by_key(|change| (change.at, change.event));
    changes
}

/// Returns the share of the measurement window of a run with this seed in which each link is down, for the links that are down in it. A link that sends
/// into its outage is not idle, so its ledger does not show this share.
pub fn shares_down(point: &Point, seed: u64) -> IndexMap<String, f64> {
    let Point { testbed, topology } = point;
    let (begin, end) = (testbed.run.warmup.map_or(0, |warmup| warmup.0), testbed.run.duration.0);
    let mut down: IndexMap<usize, (u64, Option<u64>)> = IndexMap::new();
    for change in changes(testbed, topology, seed) {
        let (time, since) = down.entry(change.link).or_default();
        match (change.down, *since) {
            (true, None) => *since = Some(change.at.max(begin)),
            (false, Some(from)) => (*time, *since) = (*time + change.at.max(begin) - from, None),
            _ => {}
        }
    }
    let whole = |(time, since): (u64, Option<u64>)| time + since.map_or(0, |from| end.saturating_sub(from));
    let share = |times| whole(times) as f64 / (end - begin) as f64;
    let named = |(link, times): (usize, _)| (topology.links[link].name.clone(), share(times));
    down.into_iter().map(named).filter(|(_, share)| *share > 0.0).collect()
}

impl Resolver<'_> {
    /// Resolves an event; `None` if its target is invalid.
    pub(crate) fn event(&mut self, name: &str, event: &Event) -> Option<EventPath> {
        if self.draft.has_invalid_reference("event", name) || self.faulty.has(&["event", name, "target"]) {
            return None;
        }
        let is_node = |node: &str| node_id(self.draft, node).is_some();
        let target = Target::read(&event.target, |link| self.draft.links.contains_key(link), is_node);
        let index = self.links.iter().position(|link| link.name == target.link)?;
        let link = &self.links[index];
        if link.medium.is_atm() {
            let medium = self.checker.written(&["link", &link.name, "medium"]);
            let message =
                format!("event `{name}` is for link `{}`, which carries cells (`{medium}`)", link.name);
            let help =
                "name a link that carries frames, or give the link another medium, such as `ethernet-100`";
            let diagnostic = Diagnostic::error("not-allowed", message).help(help);
            self.checker.report(&["event", name, "target"], diagnostic);
            return None;
        }
        let seen_by = link.ends.map(|end| target.node.as_ref().is_none_or(|node| self.nodes[end] == *node));
        Some(EventPath { name: name.into(), link: index, seen_by })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Source, load};

    const ROW: &str = r#"
        [host.a]
        [host.b]
        [router.r1]
        [router.r2]
        [link.a]
        ends = ["a", "r1"]
        medium = "ethernet-100"
        [link.upper]
        ends = ["r2", "r1"]
        medium = "ethernet-100"
        [link."up/lower"]
        ends = ["r1", "r2"]
        medium = "ethernet-100"
        [link.b]
        ends = ["r2", "b"]
        medium = "ethernet-100"
        [traffic.t]
        kind = "udp-stream"
        from = "a"
        to = "b"
        message = "1 kB"
    "#;

    fn point_of(events: &str) -> Point {
        let source = Source { name: "x.toml".into(), text: format!("{ROW}{events}") };
        let campaign = load(&source, &[], None).unwrap_or_else(|found| panic!("{found}"));
        campaign.point("base", &[]).expect("a checked file has a base point")
    }

    fn changes_of(events: &str, seed: u64) -> Vec<Change> {
        let point = point_of(events);
        changes(&point.testbed, &point.topology, seed)
    }

    #[test]
    fn link_changes_are_sorted_by_time_then_event() {
        let found = changes_of(
            r#"
            [event.often]
            target = "upper"
            at = "1 s"
            change = "down"
            every = "4 s"
            [event.back]
            target = "upper"
            at = "2 s"
            change = "up"
            every = "4 s"
            [event.interface]
            target = "r1/upper"
            at = "5 s"
            change = "down"
            "#,
            1,
        );
        let told: Vec<_> =
            found.iter().map(|change| (change.at / 1_000_000_000_000, change.event, change.down)).collect();
        let expected = [
            (1, 0, true),
            (2, 1, false),
            (5, 0, true),
            (5, 2, true),
            (6, 1, false),
            (9, 0, true),
            (10, 1, false),
        ];
        assert_eq!(told, expected);
        assert!(found.iter().all(|change| change.link == 1));
        assert!(
            found
                .iter()
                .all(|change| change.seen_by == if change.event == 2 { [false, true] } else { [true; 2] })
        );
    }

    #[test]
    fn event_target_names_may_contain_slashes() {
        let event = |target| format!("[event.e]\ntarget = {target:?}\nat = \"1 s\"\nchange = \"down\"");
        for (target, seen_by) in [("up/lower", [true; 2]), ("r1/up/lower", [true, false])] {
            let found = changes_of(&event(target), 1);
            assert_eq!((found[0].link, found[0].seen_by), (2, seen_by), "{target}");
        }
    }

    #[test]
    fn share_down_is_that_of_the_link_in_the_measurement_window() {
        let event = |name, link, at, change| {
            format!("[event.{name}]\ntarget = \"{link}\"\nat = \"{at}\"\nchange = \"{change}\"\n")
        };
        let events = [
            // An interface that is down takes down its link.
            event("d", "r1/upper", "1 s", "down"),
            event("again", "upper", "3 s", "down"),
            event("u", "upper", "4 s", "up"),
            event("last", "b", "7 s", "down"),
            event("early", "a", "1 s", "down"),
            event("back", "a", "2 s", "up"),
        ];
        let run = "[run]\nduration = \"10 s\"\nwarmup = \"2 s\"\n";
        let point = point_of(&(events.concat() + run));
        let found: Vec<(String, f64)> = shares_down(&point, 1).into_iter().collect();
        assert_eq!(found, [("upper".to_owned(), 0.25), ("b".to_owned(), 0.375)]);
    }

    #[test]
    fn random_link_changes_depend_only_on_seed_and_name() {
        let event = |name| {
            let means = "mean_time_between_failures = \"1 s\"\nmean_time_to_repair = \"100 ms\"";
            format!("[event.{name}]\ntarget = \"b\"\n{means}\n")
        };
        let times = |changes: Vec<Change>, event| -> Vec<u64> {
            changes.into_iter().filter(|change| change.event == event).map(|change| change.at).collect()
        };
        let alone = times(changes_of(&event("e"), 7), 0);
        assert!(alone.len() > 4);
        assert_eq!(times(changes_of(&(event("f") + &event("e")), 7), 1), alone);
        assert_ne!(times(changes_of(&event("e"), 8), 0), alone);
        assert_ne!(times(changes_of(&event("f"), 7), 0), alone);
    }
}
