//! IGMP messages of hosts that join and leave multicast groups (docs/model.md, "Members that join and leave").
//!
//! A message goes from the host to the last router on the path to it, or to the last switch. It has a route, and a flow direction behind that of ARP.

use std::collections::{BTreeMap, VecDeque};

use engpass_model::wire::igmp::Message;
use engpass_testbed::topology::{Hop, NodeId, PathSegment};
use engpass_testbed::{Testbed, Topology};

use super::Frames;

/// Receivers that join or leave, and their IGMP messages in the network.
#[derive(Debug, Default)]
pub struct Igmp {
    members: Vec<Reporter>,
    /// Messages in the network, by datagram: member and message. A lost message stays until its datagram number is reused.
    messages: BTreeMap<u32, (u32, Message)>,
}

/// A receiver that joins or leaves, as its host reports it.
#[derive(Debug)]
pub struct Reporter {
    /// Index of the traffic.
    pub flow: usize,
    /// The host of the receiver.
    pub host: NodeId,
    /// The transmitter of the host.
    pub port: usize,
    /// The links that the host's messages cross.
    pub links: Vec<Hop>,
    /// First step of the route of the host's messages.
    pub first: u32,
    /// Messages still to be sent, with the instants at which they are due.
    due: VecDeque<(u64, Message)>,
}

impl Igmp {
    /// Returns true if no receiver joins or leaves.
    pub fn is_idle(&self) -> bool {
        self.members.is_empty()
    }

    /// Returns true if this host sends IGMP messages.
    pub fn is_sender(&self, host: NodeId) -> bool {
        self.members.iter().any(|member| member.host == host)
    }

    /// Returns the receivers that join or leave.
    pub fn members(&self) -> &[Reporter] {
        &self.members
    }

    /// Sets the messages that the host of a member sends, with the instants at which they are due.
    pub fn plan(&mut self, member: u32, messages: Vec<(u64, Message)>) {
        self.members[member as usize].due = messages.into();
    }

    /// Returns the instant at which the host of a member sends its next message, if it sends one.
    pub fn next_due(&self, member: u32) -> Option<u64> {
        self.members[member as usize].due.front().map(|(at, _)| *at)
    }

    /// Removes and returns the message that the host of a member sends now.
    ///
    /// # Panics
    /// If it sends no more messages.
    pub fn pop_due(&mut self, member: u32) -> Message {
        let message = self.members[member as usize].due.pop_front();
        message.expect("a due host has a message").1
    }

    /// Records the member and the content of a message, by its datagram.
    pub fn register(&mut self, datagram: u32, member: u32, message: Message) {
        self.messages.insert(datagram, (member, message));
    }

    /// Removes and returns the member and the content of a message that has reached its router.
    ///
    /// # Panics
    /// If the message is not registered.
    pub fn receive(&mut self, datagram: u32) -> (u32, Message) {
        self.messages.remove(&datagram).expect("an arriving IGMP message is registered")
    }

    /// Returns the number of flow directions for IGMP: two for each receiver, of which the second is unused.
    pub(crate) fn count_directions(&self) -> usize {
        2 * self.members.len()
    }
}

impl Frames {
    /// Adds the routes of the IGMP messages of all receivers that join or leave.
    pub(crate) fn add_igmp_ways(&mut self, testbed: &Testbed, topology: &Topology) {
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
