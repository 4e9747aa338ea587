//! A testbed resolved: names are indices, circuits have routes, rates are paces.

use engpass_model::circuit::Category;
use engpass_model::time::{Pace, Time};
use engpass_model::wire::{Encapsulation, Framing, Medium};

/// Index of a node: hosts first, in the order of the file, then switches.
pub type NodeId = usize;

/// A testbed's graph.
#[derive(Clone, Debug, PartialEq)]
pub struct Topology {
    /// Number of hosts; nodes from here on are switches.
    pub hosts: usize,
    /// Names of all nodes.
    pub nodes: Vec<String>,
    /// Links in the order of the file.
    pub links: Vec<LinkEnds>,
    /// Circuits: those of the file in its order, then those that traffic sources without one bring, in the order of the
    /// traffic. The position breaks ties between cells of several circuits on one NIC.
    pub circuits: Vec<CircuitPath>,
    /// One path for each traffic table, in the order of the file.
    pub flows: Vec<FlowPath>,
}

/// A link between two nodes.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkEnds {
    /// Name in the file.
    pub name: String,
    /// The two nodes.
    pub ends: [NodeId; 2],
    /// Medium.
    pub medium: Medium,
    /// Line rate in bit/s.
    pub line_rate: u64,
    /// Framing at this rate; for ATM the slot of a cell.
    pub framing: Framing,
    /// Propagation delay, positive.
    pub delay: Time,
    /// Largest IP packet in bytes on Ethernet and point-to-point links.
    pub mtu: u64,
    /// Bytes around a packet on point-to-point links.
    pub overhead: u64,
}

/// One link of a route and the direction it is taken in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hop {
    /// Index of the link.
    pub link: usize,
    /// Node at which the hop begins: the transmitter is there.
    pub from: NodeId,
    /// Node at which it ends.
    pub to: NodeId,
}

/// A circuit resolved.
#[derive(Clone, Debug, PartialEq)]
pub struct CircuitPath {
    /// Name of the circuit, or of the traffic that brings it.
    pub name: String,
    /// Route from the circuit's `from` to its `to`; the shortest by number of links, ties by the order of the links in
    /// the file. At least one hop.
    pub route: Vec<Hop>,
    /// Service category.
    pub category: Category,
    /// Encapsulation of IP packets.
    pub encapsulation: Encapsulation,
    /// Largest IP packet in bytes.
    pub mtu: u64,
    /// Pace of the shaper at the sending NIC, never faster than its link; `None`: at the pace of the link.
    pub shaping: Option<Pace>,
    /// Increment and tolerance of the policer at the first switch.
    pub policing: Option<(Pace, Time)>,
}

/// Where a traffic table's packets go.
#[derive(Clone, Debug, PartialEq)]
pub struct FlowPath {
    /// Name of the traffic.
    pub name: String,
    /// Sending host.
    pub from: NodeId,
    /// Receiving host.
    pub to: NodeId,
    /// Circuit it takes, if it crosses an ATM network; it may use it against its direction.
    pub circuit: Option<usize>,
    /// Whether it goes from the circuit's `from` to its `to`.
    pub forward: bool,
    /// Links it crosses, in its own direction.
    pub route: Vec<Hop>,
    /// Pace of the cells of a `cbr` or `on-off` source; `None` for other kinds and for a rate of zero.
    pub cells: Option<Pace>,
}
