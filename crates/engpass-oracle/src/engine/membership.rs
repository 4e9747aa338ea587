//! Receivers that join and leave: their IGMP messages, and the branches that nodes forward to (docs/model.md, "Members that join and leave").
//!
//! The state is in `../membership.rs`.

use engpass_model::source::Traffic;
use engpass_model::wire::igmp::{MESSAGE_BYTES, Message, PACKET_BYTES, PRIORITY, TTL};
use engpass_testbed::topology::{NodeId, NodeKind};

use super::Engine;
use crate::acted::Mechanism;
use crate::cell::LineId;
use crate::event_queue::{Event, Group};
use crate::ledger::Datagram;
use crate::membership::{IgmpPacket, MemberState, changes_of};
use crate::outcome::{MemberSeen, Place};
use crate::packet::{Out, Packet};
use crate::resolve::kind;

impl Engine<'_> {
    /// Sets up all receivers that join or leave, and schedules their messages.
    pub(crate) fn memberships_begin(&mut self) {
        for place in 0..self.receivers.len() {
            let (receiver, flow) = (self.receivers[place], self.receivers[place].flow);
            let path = &self.topology.flows[flow];
            let host = &self.topology.nodes[receiver.host];
            let Some((from_start, changes)) = changes_of(self.testbed, &path.name, host, self.end()) else {
                continue;
            };
            let member = path.members.iter().find(|member| member.host == receiver.host);
            let hops = &member.expect("a receiver with events is a member").reports;
            self.members.push(MemberState {
                receiver: self.topology.flows.len() + place,
                host: receiver.host,
                igmp: match &self.testbed.traffic[flow] {
                    Traffic::Multicast(config) => config.igmp.clone(),
                    _ => unreachable!("only multicast traffic has receivers"),
                },
                lines: hops.iter().map(|hop| LineId::of(&self.topology, *hop)).collect(),
                from_start,
                changes,
                forwards: from_start,
                deadline: None,
                came: Vec::new(),
            });
        }
        for (member, this) in self.members.iter().enumerate() {
            for (at, message) in this.messages(self.testbed.run.duration.0) {
                self.agenda.put(at, Group::Igmp, (member, 0), Event::IgmpIsDue { member, message });
            }
        }
    }

    fn member_of(&self, receiver: usize) -> Option<usize> {
        self.members.iter().position(|member| member.receiver == receiver)
    }

    /// Returns true if datagrams that a sender begins with now count for a receiver.
    pub(crate) fn counts_now(&self, receiver: usize, now: u64) -> bool {
        self.member_of(receiver).is_none_or(|member| self.members[member].is_member(now))
    }

    /// Returns true if nodes forward packets for a receiver.
    fn is_forwarded(&self, receiver: usize) -> bool {
        self.member_of(receiver).is_none_or(|member| self.members[member].forwards)
    }

    /// Sends a message of a host. A host that leaves makes the router forget it some time later, even if the message is lost.
    pub(crate) fn igmp_is_due(&mut self, now: u64, member: usize, message: Message) {
        if message == Message::Leave {
            let interval = self.members[member].igmp.group_membership_interval.0;
            self.stops_by(now + interval, member);
        }
        // Like ARP, IGMP is counted behind all flows and receivers.
        let flow = self.topology.flows.len() + self.receivers.len();
        let datagram = self.ledger.begin(now, Datagram::igmp(flow));
        let number = self.senders().len() + self.messages().len() + 1;
        self.packets.push(Packet {
            bytes: MESSAGE_BYTES,
            ttl: TTL,
            priority: PRIORITY,
            room: PACKET_BYTES,
            igmp: Some(IgmpPacket { member, message }),
            ..Packet::of_sender(flow, datagram, number)
        });
        let first = self.members[member].lines[0];
        self.nics[first.link][first.end].occupied += PACKET_BYTES;
        self.joins_queue(now, first, self.packets.len() - 1);
    }

    /// Handles an IGMP message at the far end of a line: at a switch on its way it goes on, at the end of its way it takes effect.
    pub(crate) fn igmp_arrives(&mut self, now: u64, line: LineId, packet: usize, of: IgmpPacket) {
        let lines = &self.members[of.member].lines;
        let place = lines.iter().position(|own| *own == line).expect("the message is on its way");
        if let Some(next) = lines.get(place + 1) {
            return self.joins_queue(now, *next, packet);
        }
        self.ledger.received(now, self.packets[packet].datagram, 0, None);
        match of.message {
            Message::Report => {
                let this = &mut self.members[of.member];
                this.deadline = None;
                if !this.forwards {
                    this.forwards = true;
                    self.acted.note(Mechanism::Grafted);
                }
            }
            Message::Leave => {
                let igmp = &self.members[of.member].igmp;
                let wait = igmp.last_member_query_count * igmp.last_member_query_interval.0;
                self.stops_by(now + wait, of.member);
            }
        }
    }

    /// Makes nodes stop forwarding for a member at `at`, unless they stop earlier.
    fn stops_by(&mut self, at: u64, member: usize) {
        let this = &mut self.members[member];
        if this.forwards && this.deadline.is_none_or(|earlier| at < earlier) {
            this.deadline = Some(at);
            self.agenda.put(at, Group::Igmp, (member, 1), Event::MembershipEnds { member });
        }
    }

    /// Handles a deadline of a member that has left.
    pub(crate) fn membership_ends(&mut self, now: u64, member: usize) {
        let this = &mut self.members[member];
        if this.deadline != Some(now) {
            return;
        }
        this.deadline = None;
        if this.is_member(now) {
            return self.acted.note(Mechanism::AnswersQuery);
        }
        this.forwards = false;
        self.acted.note(Mechanism::Pruned);
    }

    /// Returns the path segments on which a packet of a group leaves a node, each with the parts of its datagram behind it.
    pub(crate) fn legs_of_parts(&self, node: NodeId, parts: &[usize]) -> Vec<(Out, Vec<usize>)> {
        let mut legs: Vec<(Out, Vec<usize>)> = Vec::new();
        for &part in parts {
            let out = self.group_at(self.way_of_part(part), node)[0];
            match legs.iter_mut().find(|(known, _)| *known == out) {
                Some((_, parts)) => parts.push(part),
                None => legs.push((out, vec![part])),
            }
        }
        legs
    }

    /// Returns the parts of a datagram that do not go on from a node where its paths divide, or from the first node of a group whose receivers join and leave.
    /// The first packet of the datagram decides.
    pub(crate) fn pruned_at(&mut self, now: u64, node: NodeId, packet: usize) -> Vec<usize> {
        let Packet { datagram, flow, way, .. } = self.packets[packet];
        let parts = self.ledger.datagram(datagram).parts.clone();
        let legs = self.legs_of_parts(node, &parts);
        let is_first = self.end_of(self.ways[way].first) == node;
        let prunes = !self.topology.flows[flow].members.is_empty();
        if !prunes || legs.len() == 1 && !is_first {
            return Vec::new();
        }
        if let Some(known) = self.pruned.get(&(datagram, node)) {
            return known.clone();
        }
        let receiver = |part: &usize| self.ledger.datagram(*part).receiver.expect("a part has a receiver");
        let without =
            |(_, parts): &(Out, Vec<usize>)| !parts.iter().any(|part| self.is_forwarded(receiver(part)));
        let pruned: Vec<usize> = legs.into_iter().filter(without).flat_map(|(_, parts)| parts).collect();
        for part in &pruned {
            self.acted.note(Mechanism::NotCopied);
            self.ledger.lose(now, Place::NoMember { node }, *part);
        }
        self.pruned.insert((datagram, node), pruned.clone());
        pruned
    }

    /// Returns the number of copies of a packet that leave a router, if it is copied there as it comes.
    pub(crate) fn copies_at(&mut self, now: u64, node: NodeId, packet: usize) -> u64 {
        let this = &self.packets[packet];
        if this.carries.is_some() || this.arp.is_some() || this.igmp.is_some() || this.keepalive.is_some() {
            return 1;
        }
        let parts = self.ledger.datagram(this.datagram).parts.clone();
        if parts.is_empty() || !matches!(kind(&self.topology, node), NodeKind::Router(_)) {
            return 1;
        }
        let pruned = self.pruned_at(now, node, packet);
        let legs = self.legs_of_parts(node, &parts);
        legs.iter().filter(|(_, parts)| parts.iter().any(|part| !pruned.contains(part))).count() as u64
    }

    /// Handles a datagram that is complete at the host of a receiver. Returns false if it does not count there, and is discarded.
    pub(crate) fn reaches_member(&mut self, now: u64, datagram: usize) -> bool {
        let Some(receiver) = self.ledger.datagram(datagram).receiver else { return true };
        let Some(member) = self.member_of(receiver) else { return true };
        self.members[member].came.push(now);
        if self.ledger.datagram(datagram).is_counted {
            return true;
        }
        self.acted.note(Mechanism::Unwanted);
        self.ledger.lose(now, Place::NoMember { node: self.members[member].host }, datagram);
        false
    }

    /// Returns the membership of a receiver up to `at`; `None` if no event is about it.
    pub(crate) fn member_seen(&self, counted_at: usize, at: u64) -> Option<MemberSeen> {
        let member = &self.members[self.member_of(counted_at)?];
        let from = self.testbed.run.warmup.map_or(0, |warmup| warmup.0);
        let (join, leave) = member.delays();
        Some(MemberSeen { within: member.time_within(from, at), join, leave })
    }
}
