//! ICMP messages of routers: "fragmentation needed" to senders that discover the path MTU (RFC 792, RFC 1191 section 4). With injection also "time exceeded".
//!
//! A message enters the forwarding engine of its router like a packet that arrives, crosses lines like any other, and may be lost. It has a flow
//! direction, behind those of all endpoints; the destination of its datagram is the number of that flow direction.

use std::collections::BTreeMap;

use engpass_testbed::topology::NodeId;

/// ICMP messages of routers, and the routes that they take.
#[derive(Debug, Default)]
pub struct Icmp {
    /// By flow: true if its sender sets the DF bit, so that routers must not fragment its data.
    pub(crate) keeps_whole: Vec<bool>,
    /// Routes of messages, sorted by flow, then by router.
    pub ways: Vec<IcmpRoute>,
    /// Packets of messages that have not left their router, by message number.
    begun: BTreeMap<u32, u32>,
    /// Number of messages made so far.
    made: u32,
}

/// Route of the messages of one router about packets of one flow.
#[derive(Debug)]
pub struct IcmpRoute {
    /// Index of the flow.
    pub flow: u32,
    /// The router that makes the messages.
    pub router: NodeId,
    /// Index of the route.
    pub route: u32,
}

impl Icmp {
    /// Returns the route of a router's messages about a flow, and the index of that route.
    pub fn way(&self, flow: u32, router: NodeId) -> Option<(usize, &IcmpRoute)> {
        let place = self.ways.binary_search_by_key(&(flow, router), |way| (way.flow, way.router)).ok()?;
        Some((place, &self.ways[place]))
    }

    /// Returns true if the sender of a flow sets the DF bit, so that routers must not fragment its data.
    pub fn keeps_whole(&self, flow: u32) -> bool {
        self.keeps_whole.get(flow as usize) == Some(&true)
    }

    /// Returns the number of a new message.
    pub fn begin_message(&mut self) -> u32 {
        self.made += 1;
        self.made - 1
    }

    /// Records the packet of a message, which has not left its router.
    pub fn hold(&mut self, message: u32, packet: u32) {
        self.begun.insert(message, packet);
    }

    /// Removes and returns the packet of a message that leaves its router.
    ///
    /// # Panics
    /// If the message has left.
    pub fn release(&mut self, message: u32) -> u32 {
        self.begun.remove(&message).expect("the ICMP message has not left its router")
    }

    /// Returns the number of messages that routers have made so far.
    pub fn made(&self) -> u32 {
        self.made
    }
}
