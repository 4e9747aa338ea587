//! Resolves receivers that join and leave a multicast group, and reports those that cannot.

use engpass_model::event::EventChange;
use engpass_model::source::Multicast;

use crate::diagnostic::Diagnostic;
use crate::resolve::Resolver;
use crate::topology::{Hop, Member, NodeId, NodeKind, PathSegment, reversed};

impl Resolver<'_> {
    /// Returns the receivers of a multicast traffic that join or leave. `ways` holds the paths to all receivers. Reports receivers that cannot join or leave.
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
