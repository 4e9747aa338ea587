//! Receivers that join and leave a multicast group (docs/model.md, "Members that join and leave").

use engpass_model::event::EventChange;
use engpass_model::igmp::Igmp;
use engpass_model::random::{Label, Stream};
use engpass_model::source::{Multicast, Traffic};
use engpass_model::wire::igmp::Message;

use crate::diagnostic::Diagnostic;
use crate::resolve::Resolver;
use crate::testbed::Testbed;
use crate::topology::{Hop, NodeId, NodeKind, PathSegment, reversed};

/// A receiver of a multicast traffic that joins or leaves during the run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// The receiving host.
    pub host: NodeId,
    /// Indices of its events in the testbed.
    pub events: Vec<usize>,
    /// Links that its IGMP messages cross: from the host to the last router on the path to it, or to the last switch if there is no router.
    pub reports: Vec<Hop>,
}

/// When a receiver is a member of its group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Membership {
    /// It is a member from the beginning of the run.
    pub from_start: bool,
    /// Times, in picoseconds, at which it joins (true) or leaves (false), alternately.
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

    /// Returns true if the receiver is a member at an instant; a change at that instant has happened.
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

    /// Returns the IGMP messages of the host up to and including `end`, with their times in picoseconds: a report and its repetitions after each join, a leave
    /// message at each leave.
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

impl Resolver<'_> {
    /// Returns the receivers of a traffic that join or leave. `ways` are the paths to all receivers. Reports receivers that cannot.
    pub(crate) fn members(
        &mut self,
        name: &str,
        config: &Multicast,
        ways: &[(NodeId, Vec<PathSegment>)],
    ) -> Box<[Member]> {
        let mut members = Vec::new();
        for (host, legs) in ways {
            let events: Vec<usize> = (0..self.draft.events.len())
                .filter(|event| {
                    let (event, read) = self.draft.events.get_index(*event).expect("the draft has the event");
                    let is_own = |traffic: &str, target: &str| traffic == name && target == self.nodes[*host];
                    !self.draft.has_invalid_reference("event", event)
                        && !self.faulty.within(&["event", event])
                        && read.as_ref().is_some_and(|event| {
                            event.traffic.as_ref().is_some_and(|traffic| is_own(traffic, &event.target))
                        })
                })
                .collect();
            if events.is_empty() {
                continue;
            }
            self.check_order(&events, name);
            if let Some(reports) = self.reports(events[0], config, legs) {
                members.push(Member { host: *host, events, reports });
            }
        }
        members.into()
    }

    /// Reports a receiver that leaves before it joins.
    fn check_order(&mut self, events: &[usize], traffic: &str) {
        let of =
            |event: &usize| self.draft.events.get_index(*event).map(|(name, read)| (name, read.as_ref()));
        let known = events.iter().filter_map(of).filter_map(|(name, event)| Some((event?.at?, name, event?)));
        let known: Vec<_> = known.collect();
        let joins = known.iter().any(|(.., event)| event.change == Some(EventChange::Join));
        let Some((at, name, event)) = known.into_iter().min_by_key(|(at, ..)| *at) else { return };
        if !joins || event.change != Some(EventChange::Leave) {
            return;
        }
        let message = format!(
            "event `{name}`: `{}` leaves traffic `{traffic}` at {at}, before it has joined",
            event.target
        );
        let help = "add an event that joins at an earlier time (`at = \"0 s\"` for a member from the beginning), or remove its later joins";
        self.checker.report(&["event", name, "at"], Diagnostic::error("not-allowed", message).help(help));
    }

    /// Returns the links from a receiver to the node that its IGMP messages reach.
    fn reports(&mut self, event: usize, config: &Multicast, legs: &[PathSegment]) -> Option<Vec<Hop>> {
        let (name, _) = self.draft.events.get_index(event).expect("the draft has the event");
        let begins = |leg: &PathSegment| Some(self.route(&[*leg])?.first()?.from);
        let is_router = |leg: &&PathSegment| {
            begins(leg).is_some_and(|node| matches!(self.kind(node), NodeKind::Router(_)))
        };
        let behind = legs.iter().skip(1);
        let own = behind.clone().rposition(|leg| is_router(&leg)).or_else(|| behind.len().checked_sub(1));
        let found = match own {
            None => {
                let message = format!(
                    "event `{name}`: the receiver is next to the sender `{}`, and no switch or router between them learns that it joins or leaves",
                    config.from
                );
                Err((message, "put a switch or router between them, or remove the event"))
            }
            Some(own) => {
                let links = legs[own + 1..].iter().map(|leg| match leg {
                    PathSegment::Link(hop) => Some(*hop),
                    PathSegment::Circuit { .. } | PathSegment::Tunnel { .. } => None,
                });
                links.collect::<Option<Vec<Hop>>>().ok_or_else(|| {
                    let message =
                        format!("event `{name}`: the receiver's IGMP messages would cross a circuit, which the model does not support");
                    (message, "connect the receiver to its router by a link that carries frames, or remove the event")
                })
            }
        };
        match found {
            Ok(links) => Some(reversed(&links)),
            Err((message, help)) => {
                let diagnostic = Diagnostic::error("not-allowed", message).help(help);
                self.checker.report(&["event", name, "target"], diagnostic);
                None
            }
        }
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
