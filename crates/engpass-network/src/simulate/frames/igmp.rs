//! IGMP messages of hosts that join and leave multicast groups (docs/model.md, "Members that join and leave").
//!
//! A message goes from the host to the last router on the path to it, or to the last switch. It has a route, and a flow direction in the ledger behind that of
//! ARP. Timers of hosts and routers share one kind of event.

use std::collections::{BTreeMap, VecDeque};

use engpass_ledger::{FlowDirection, FlowDirectionLine, HeldBack};
use engpass_model::wire::igmp::{Message, PACKET_BYTES, PRIORITY, TTL};
use engpass_testbed::topology::{Hop, NodeId, PathSegment};
use engpass_testbed::{Testbed, Topology};

use super::Frames;
use super::control::{ControlKind, ControlPacket};
use crate::simulate::Network;
use crate::simulate::event_queue::Event;
use crate::simulate::tap::Igmp as Seen;

/// Receivers that join or leave, and their IGMP messages in the network.
#[derive(Debug, Default)]
pub(in crate::simulate) struct Igmp {
    members: Vec<Reporter>,
    /// Messages in the network, by datagram: member and message. A lost message stays until its datagram number is reused.
    messages: BTreeMap<u32, (u32, Message)>,
}

/// A receiver that joins or leaves, as its host reports it.
#[derive(Debug)]
struct Reporter {
    /// Index of the traffic.
    flow: usize,
    host: NodeId,
    /// The transmitter of the host.
    port: usize,
    links: Vec<Hop>,
    /// First step of the route of the host's messages.
    first: u32,
    /// Messages still to be sent, with the instants at which they are due.
    due: VecDeque<(u64, Message)>,
}

/// Timers are numbered: `2 * member` sends the next message of the member's host, `2 * member + PRUNE` may prune its branches: at ties later.
const PRUNE: u32 = 1;
/// Position of the first member for ties. It is above all port numbers, which are the positions of ARP timers; therefore these come first.
const POSITION: usize = 1 << 27;

impl Igmp {
    /// Returns true if no receiver joins or leaves.
    pub(in crate::simulate) fn is_idle(&self) -> bool {
        self.members.is_empty()
    }

    /// Returns true if this host sends IGMP messages.
    pub(in crate::simulate) fn is_sender(&self, host: NodeId) -> bool {
        self.members.iter().any(|member| member.host == host)
    }

    /// Returns the number of flow directions for IGMP in the ledger: two for each receiver, of which the second is unused.
    pub(in crate::simulate) fn count_directions(&self) -> usize {
        2 * self.members.len()
    }
}

impl Frames {
    /// Returns the flow directions of IGMP messages for the ledger.
    pub(in crate::simulate) fn igmp_directions<'a>(
        &self,
        topology: &'a Topology,
    ) -> impl Iterator<Item = Option<FlowDirection<'a>>> {
        self.igmp.members.iter().flat_map(move |member| {
            let line = |hop: &Hop| {
                let number = topology.port_of(hop);
                let wire = topology.links[hop.link].wire(number % 2, Default::default());
                FlowDirectionLine { number, wire, changes: Vec::new(), held_back: HeldBack::Upstream }
            };
            let lines = member.links.iter().map(line).collect();
            self.ledger_directions(topology.links[member.links[0].link].mtu, lines)
        })
    }

    /// Adds the routes of the IGMP messages of all receivers that join or leave.
    pub(super) fn add_igmp_ways(&mut self, testbed: &Testbed, topology: &Topology) {
        let flows = topology.flows.iter().enumerate();
        for (flow, member) in
            flows.flat_map(|(flow, path)| path.members.iter().map(move |member| (flow, member)))
        {
            let first = self.steps.len() as u32;
            let legs: Vec<PathSegment> = member.reports.iter().map(|hop| PathSegment::Link(*hop)).collect();
            self.add_run(topology, &legs, &[], false);
            let last = member.reports.last().expect("a message crosses a line");
            self.work_at_ends(testbed, topology, last.to, first as usize);
            self.igmp.members.push(Reporter {
                flow,
                port: topology.port_of(&member.reports[0]),
                host: member.host,
                links: member.reports.clone(),
                first,
                due: VecDeque::new(),
            });
        }
    }
}

impl Network {
    /// Schedules the IGMP messages of all receivers that join or leave.
    pub(in crate::simulate) fn begin_memberships(&mut self) {
        let Some(trees) = &self.shared.trees else { return };
        let messages: Vec<_> = trees.members.all().iter().map(|member| member.messages(self.end)).collect();
        for (member, messages) in messages.into_iter().enumerate() {
            self.frames.igmp.members[member].due = messages.into();
            self.await_message(member as u32);
        }
    }

    fn await_message(&mut self, member: u32) {
        if let Some(&(at, _)) = self.frames.igmp.members[member as usize].due.front() {
            self.events.push(at, POSITION + member as usize, Event::IgmpTimer(2 * member));
        }
    }

    fn await_deadline(&mut self, member: u32, at: Option<u64>) {
        if let Some(at) = at.filter(|at| *at <= self.end) {
            self.events.push(at, POSITION + member as usize, Event::IgmpTimer(2 * member + PRUNE));
        }
    }

    /// Handles an IGMP timer: a host sends its next message, or routers may stop forwarding to branches.
    pub(in crate::simulate) fn on_igmp_timer(&mut self, timer: u32) {
        let (member, now) = (timer / 2, self.now);
        if timer % 2 == PRUNE {
            if self.shared.members_mut().on_deadline(member, now) {
                self.shared.forward_to(member, false);
            }
            return;
        }
        let message = self.frames.igmp.members[member as usize].due.pop_front();
        let (_, message) = message.expect("a due host has a message");
        self.await_message(member);
        if message == Message::Leave {
            let deadline = self.shared.members_mut().get_mut(member).on_left(now);
            self.await_deadline(member, deadline);
        }
        self.send_igmp(member, message);
    }

    /// Sends an IGMP message from the NIC of its host.
    fn send_igmp(&mut self, member: u32, message: Message) {
        let Reporter { flow, host, port, first, .. } = self.frames.igmp.members[member as usize];
        let (ttl, priority) = (TTL, PRIORITY);
        let packet =
            ControlPacket { sender: member as usize, place: first, bytes: PACKET_BYTES, ttl, priority };
        let (datagram, packet) = self.begin_control(ControlKind::Igmp, packet);
        self.frames.igmp.messages.insert(datagram, (member, message));
        if let Some(trace) = &mut self.shared.trace {
            trace.says(datagram, Seen { flow, message, host: (host, port) });
        }
        self.send_from_nic(packet, None);
    }

    /// Handles an IGMP message that has reached its router: branches begin to forward, or the last-member queries begin.
    pub(super) fn take_igmp(&mut self, datagram: u32) {
        let message = self.frames.igmp.messages.remove(&datagram);
        let (member, message) = message.expect("an arriving IGMP message is registered");
        let (change, deadline) = self.shared.members_mut().on_message(member, message, self.now);
        self.await_deadline(member, deadline);
        if change == Some(true) {
            self.shared.forward_to(member, true);
        }
    }
}
