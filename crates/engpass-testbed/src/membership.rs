//! Receivers that join and leave a multicast group (docs/model.md, "Members that join and leave").

use engpass_model::event::EventChange;
use engpass_model::igmp::Igmp;
use engpass_model::random::{Label, Stream};
use engpass_model::source::{Multicast, Traffic};
use engpass_model::wire::igmp::Message;

use crate::testbed::Testbed;
use crate::topology::{Hop, NodeId};

/// A receiver of a multicast traffic that joins or leaves during the run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// The receiving host.
    pub host: NodeId,
    /// Indices of the receiver's events in the testbed.
    pub events: Vec<usize>,
    /// Links that IGMP messages of the receiver's host cross: up to the last router on the path from the sender, or to the last switch if there is no router.
    pub reports: Vec<Hop>,
}

/// Times at which a receiver is a member of its group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Membership {
    /// True if the receiver is a member from the beginning of the run.
    pub from_start: bool,
    /// Times, in picoseconds, at which the receiver joins (true) or leaves (false), alternately.
    pub changes: Vec<(u64, bool)>,
}

impl Membership {
    /// Returns the membership of a receiver up to and including `end`, in picoseconds.
    pub fn new(testbed: &Testbed, member: &Member, end: u64) -> Self {
        let mut all: Vec<(u64, usize, bool)> = Vec::new();
        let mut first: Option<(u64, usize, bool)> = None;
        for &event in &member.events {
            let (name, config) = testbed.events.get_index(event).expect("the testbed has the event");
            // Only links change at random times.
            let times = config.all_changes(Stream::new(0, Label::Event(name)));
            let changes = times.map(|(at, change)| (at, event, change == EventChange::Join));
            first = first.into_iter().chain(changes.clone().next()).min();
            all.extend(changes.take_while(|(at, ..)| *at <= end));
        }
        all.sort_unstable();
        let from_start = first.is_none_or(|(.., joins)| !joins);
        let mut is_member = from_start;
        let changes =
            all.into_iter().filter(|(.., joins)| std::mem::replace(&mut is_member, *joins) != *joins);
        Self { from_start, changes: changes.map(|(at, _, joins)| (at, joins)).collect() }
    }

    /// Returns true if the receiver is a member at the instant `at`; a change at that instant counts as done.
    pub fn holds(&self, at: u64) -> bool {
        let before = self.changes.partition_point(|(change, _)| *change <= at);
        before.checked_sub(1).map_or(self.from_start, |last| self.changes[last].1)
    }

    /// Returns the intervals of membership between two instants, in picoseconds.
    pub fn within(&self, from: u64, end: u64) -> Vec<(u64, u64)> {
        let mut intervals = Vec::new();
        let mut since = self.holds(from).then_some(from);
        for &(at, joins) in self.changes.iter().filter(|(at, _)| from < *at && *at < end) {
            match (since, joins) {
                (None, true) => since = Some(at),
                (Some(begin), false) => {
                    intervals.push((begin, at));
                    since = None;
                }
                _ => {}
            }
        }
        intervals.extend(since.filter(|begin| *begin < end).map(|begin| (begin, end)));
        intervals
    }

    /// Returns the IGMP messages of the receiver's host up to and including `end`, with their times in picoseconds: a report and its repetitions after each
    /// join, a leave message at each leave.
    pub fn messages(&self, igmp: &Igmp, end: u64) -> Vec<(u64, Message)> {
        let mut messages = Vec::new();
        for (place, &(at, joins)) in self.changes.iter().enumerate() {
            if !joins {
                messages.push((at, Message::Leave));
                continue;
            }
            let left = self.changes.get(place + 1).map_or(u64::MAX, |(at, _)| *at);
            let report = |number: u64| at.saturating_add(number * igmp.unsolicited_report_interval.0);
            let all = (0..igmp.robustness).map(report).take_while(|at| *at < left && *at <= end);
            messages.extend(all.map(|at| (at, Message::Report)));
        }
        messages
    }
}

impl Testbed {
    /// Returns the multicast traffic with this index.
    ///
    /// # Panics
    /// If the traffic is of another kind.
    pub fn group(&self, flow: usize) -> &Multicast {
        let Traffic::Multicast(config) = &self.traffic[flow] else {
            panic!("the traffic is no multicast traffic")
        };
        config
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Source, load};

    const ROW: &str = r#"
        [host.a]
        [host.b]
        [host.c]
        [router.r]
        [link.a]
        ends = ["a", "r"]
        medium = "ethernet-100"
        [link.b]
        ends = ["r", "b"]
        medium = "ethernet-100"
        [link.c]
        ends = ["r", "c"]
        medium = "ethernet-100"
        [traffic.t]
        kind = "multicast"
        from = "a"
        to = ["b", "c"]
        message = "1 kB"
        rate = "1 Mbit/s"
        [run]
        duration = "60 s"
    "#;

    const SECOND: u64 = 1_000_000_000_000;

    fn membership(events: &str) -> (Membership, Igmp) {
        let source = Source { name: "x.toml".into(), text: format!("{ROW}{events}") };
        let campaign = load(&source, &[], None).unwrap_or_else(|found| panic!("{found}"));
        let point = campaign.point("base", &[]).expect("a checked file has a base point");
        let path = &point.topology.flows[0];
        assert_eq!(path.members.len(), 1);
        assert_eq!(path.members[0].reports.len(), 1);
        // The first line is a branch of its own, so that the router can stop all packets.
        assert_eq!(path.branches.len(), 3);
        (Membership::new(&point.testbed, &path.members[0], 60 * SECOND), point.testbed.group(0).igmp.clone())
    }

    fn event(name: &str, change: &str, at: u64, more: &str) -> String {
        format!(
            "\n[event.{name}]\ntarget = \"b\"\ntraffic = \"t\"\nchange = \"{change}\"\nat = \"{at} s\"\n{more}\n"
        )
    }

    #[test]
    fn receiver_with_a_join_first_is_no_member_before() {
        let (zap, _) = membership(
            &(event("on", "join", 2, "every = \"20 s\"") + &event("off", "leave", 7, "every = \"20 s\"")),
        );
        assert!(!zap.from_start);
        let at: Vec<(u64, bool)> = zap.changes.iter().map(|(at, joins)| (at / SECOND, *joins)).collect();
        assert_eq!(at, [(2, true), (7, false), (22, true), (27, false), (42, true), (47, false)]);
        assert!(!zap.holds(2 * SECOND - 1) && zap.holds(2 * SECOND) && !zap.holds(7 * SECOND));
        assert_eq!(
            zap.within(5 * SECOND, 25 * SECOND),
            [(5 * SECOND, 7 * SECOND), (22 * SECOND, 25 * SECOND)]
        );
        let (late, _) = membership(&event("on", "join", 61, ""));
        assert_eq!((late.from_start, &late.changes[..]), (false, &[][..]));
        let (early, _) = membership(&event("off", "leave", 5, ""));
        assert!(early.from_start && early.holds(0) && !early.holds(5 * SECOND));
    }

    #[test]
    fn second_join_changes_nothing() {
        let (twice, igmp) = membership(&(event("on", "join", 2, "") + &event("again", "join", 3, "")));
        assert_eq!(twice.changes, [(2 * SECOND, true)]);
        let messages = twice.messages(&igmp, 60 * SECOND);
        assert_eq!(messages, [(2 * SECOND, Message::Report), (12 * SECOND, Message::Report)]);
    }

    #[test]
    fn host_repeats_no_report_after_it_has_left() {
        let (short, igmp) = membership(&(event("on", "join", 2, "") + &event("off", "leave", 12, "")));
        let messages = short.messages(&igmp, 60 * SECOND);
        assert_eq!(messages, [(2 * SECOND, Message::Report), (12 * SECOND, Message::Leave)]);
    }
}
