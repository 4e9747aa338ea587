//! Address resolution (docs/model.md): routers hold packets for a neighbour until they know its hardware address.
//!
//! The step table has a mark ([`Verdict::Hold`]) in front of each line on which a router resolves addresses. The mark does the work of the router, so that the step of
//! the line itself is like one of a host. Each line that may carry ARP packets has a route of one line and a flow direction. An ARP packet is a
//! datagram that ends at the end of its line; switches and stations create new ones.

use std::collections::BTreeMap;

use engpass_model::arp::{Arp, HoldResult, Neighbour, TimeoutAction};
use engpass_model::wire::arp::Operation;
use engpass_testbed::topology::{ArpInterface, Hop, NodeId, PathSegment};
use engpass_testbed::{Testbed, Topology};

use super::{Frames, NONE, Step, Verdict};

/// The router interfaces that resolve addresses, their neighbours, and the ARP packets in the network.
#[derive(Debug, Default)]
pub struct Resolution {
    interfaces: Vec<Interface>,
    /// Number of hosts, and of hosts and switches: nodes with numbers below these are hosts, or hosts and switches.
    kinds: [usize; 2],
    /// Neighbours, sorted by the port of the interface, then by station.
    neighbours: Vec<(Key, Neighbour<u32>)>,
    /// By transmitter, the step of ARP packets on its line.
    lines: BTreeMap<usize, u32>,
    /// Content of ARP packets in the network, by datagram. That of a lost packet stays until its datagram number is reused.
    packets: BTreeMap<u32, ArpMessage>,
}

/// Stands for a neighbour's number in an `ArpTimeout` event that makes all routers forget their addresses.
pub const ALL_NEIGHBOURS: u32 = u32::MAX >> 1;

/// Key of a neighbour: the index of the router's interface, and the station behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Key {
    interface: usize,
    station: NodeId,
}

/// A router interface that resolves addresses.
#[derive(Debug)]
struct Interface {
    config: Arp,
    router: NodeId,
    link: usize,
    /// Lines that carry a request, in the order in which it spreads. The first one is the router's.
    tree: Vec<TreeLine>,
    /// True if the router has noticed that the link is down.
    is_down: bool,
}

/// A line over which ARP packets of an interface go: transmitter, and the nodes at both ends.
#[derive(Clone, Copy, Debug)]
struct TreeLine {
    port: usize,
    from: NodeId,
    to: NodeId,
}

/// Content of an ARP packet, and the line that carries it.
#[derive(Clone, Copy, Debug)]
pub struct ArpMessage {
    /// Request or reply.
    pub operation: Operation,
    /// The interface, and the station whose address is requested or given.
    about: Key,
    line: TreeLine,
}

impl ArpMessage {
    /// Returns the transmitter of the line that carries the packet.
    pub fn port(&self) -> usize {
        self.line.port
    }
}

impl TreeLine {
    /// Returns the line in the opposite direction of the link.
    fn back(self) -> Self {
        Self { port: self.port ^ 1, from: self.to, to: self.from }
    }
}

impl Interface {
    fn new(testbed: &Testbed, topology: &Topology, path: &ArpInterface) -> Self {
        let router = path.router - topology.hosts - topology.switches;
        let line = |hop: &Hop| TreeLine { port: topology.port_of(hop), from: hop.from, to: hop.to };
        Self {
            config: testbed.routers[router].arp.clone().expect("the router resolves addresses"),
            router: path.router,
            link: path.link,
            tree: path.tree.iter().map(line).collect(),
            is_down: false,
        }
    }

    /// Returns the transmitter of the interface.
    fn port(&self) -> usize {
        self.tree[0].port
    }

    /// Returns the line of the tree that leads to a node.
    fn line_to(&self, node: NodeId) -> TreeLine {
        *self.tree.iter().find(|line| line.to == node).expect("the interface's tree reaches the node")
    }
}

impl Resolution {
    pub(crate) fn new(testbed: &Testbed, topology: &Topology) -> Self {
        Self {
            interfaces: topology.arp.iter().map(|path| Interface::new(testbed, topology, path)).collect(),
            kinds: [topology.hosts, topology.hosts + topology.switches],
            ..Self::default()
        }
    }

    /// Returns true if no router resolves addresses.
    pub fn is_idle(&self) -> bool {
        self.interfaces.is_empty()
    }

    /// Returns the hosts that requests reach.
    pub fn hosts(&self) -> impl Iterator<Item = NodeId> {
        let ends = self.interfaces.iter().flat_map(|interface| interface.tree.iter().map(|line| line.to));
        ends.filter(|node| *node < self.kinds[0])
    }

    /// Returns the transmitters whose lines may carry ARP packets, in the order of their flow directions.
    pub fn ports(&self) -> impl Iterator<Item = usize> {
        self.lines.keys().copied()
    }

    /// Returns the number of flow directions for ARP: two for each line that may carry ARP packets, of which the second is unused.
    pub(crate) fn count_directions(&self) -> usize {
        2 * self.lines.len()
    }

    /// Returns the router that an ARP packet is about, and its transmitter; and the station whose address is requested or given, and its transmitter.
    pub fn parties(&self, said: &ArpMessage) -> [(NodeId, usize); 2] {
        let Key { interface, station } = said.about;
        let interface = &self.interfaces[interface];
        [(interface.router, interface.port()), (station, interface.line_to(station).back().port)]
    }

    /// Returns the router that holds packets for a neighbour.
    pub fn router_of(&self, neighbour: u32) -> NodeId {
        self.interfaces[self.neighbours[neighbour as usize].0.interface].router
    }

    /// Returns the request for the address of a neighbour, and the instant at which it is repeated.
    ///
    /// # Panics
    /// If the neighbour is not being resolved.
    pub fn request(&self, neighbour: u32) -> (ArpMessage, u64) {
        let (about, neighbour) = &self.neighbours[neighbour as usize];
        let line = self.interfaces[about.interface].tree[0];
        let due = neighbour.due().expect("the neighbour is being resolved");
        (ArpMessage { operation: Operation::Request, about: *about, line }, due)
    }

    /// Handles the timer of a request.
    pub fn on_timeout(&mut self, neighbour: u32, now: u64) -> TimeoutAction<u32> {
        let (key, neighbour) = &mut self.neighbours[neighbour as usize];
        neighbour.on_timeout(&self.interfaces[key.interface].config, now)
    }

    /// Makes all routers forget the addresses that they know at `now`.
    pub fn forget_known(&mut self, now: u64) {
        let known = self.neighbours.iter_mut().filter(|(_, neighbour)| neighbour.is_known(now));
        known.for_each(|(_, neighbour)| *neighbour = Neighbour::Unknown);
    }

    /// Makes a router that notices that a link is down forget the neighbours behind it. Returns the packets that wait for them.
    fn forget_behind(&mut self, router: NodeId, link: usize, down: bool) -> Vec<u32> {
        let Self { interfaces, neighbours, .. } = self;
        let own = |interface: &Interface| (interface.router, interface.link) == (router, link);
        let Some(number) = interfaces.iter().position(own) else { return Vec::new() };
        if std::mem::replace(&mut interfaces[number].is_down, down) || !down {
            return Vec::new();
        }
        let there = neighbours.iter_mut().filter(|(key, _)| key.interface == number);
        there.flat_map(|(_, neighbour)| neighbour.forget()).collect()
    }

    /// Returns the index of the line that carries an ARP packet among those that may carry ARP packets, and the step of the packet.
    pub fn place_on_line(&self, said: &ArpMessage) -> (usize, u32) {
        (self.lines.range(..said.line.port).count(), self.lines[&said.line.port])
    }

    /// Returns true if a host sends the ARP packet.
    pub fn is_from_host(&self, said: &ArpMessage) -> bool {
        said.line.from < self.kinds[0]
    }

    /// Records the content of an ARP packet, by its datagram.
    pub fn register(&mut self, datagram: u32, said: ArpMessage) {
        self.packets.insert(datagram, said);
    }

    /// Handles an ARP packet at the end of its line: a switch forwards it, a station learns from it and may reply. Returns the packets that wait no longer, and
    /// then the ARP packets that the node sends.
    pub fn receive(&mut self, datagram: u32, now: u64) -> (Vec<u32>, Vec<ArpMessage>) {
        let said = self.packets.remove(&datagram).expect("an arriving ARP packet is registered");
        let ArpMessage { operation, about, line } = said;
        let interface = &self.interfaces[about.interface];
        let is_reply = operation == Operation::Reply;
        if self.is_switch(line.to) {
            let onward = match is_reply {
                true => vec![interface.line_to(line.to).back()],
                false => interface.tree.iter().filter(|next| next.from == line.to).copied().collect(),
            };
            return (Vec::new(), onward.into_iter().map(|line| ArpMessage { line, ..said }).collect());
        }
        let sender = if is_reply { about.station } else { interface.router };
        let is_addressed = is_reply || line.to == about.station;
        let released = self.learn_sender(line, sender, is_addressed, now);
        let reply = ArpMessage { operation: Operation::Reply, about, line: line.back() };
        (released, if is_addressed && !is_reply { vec![reply] } else { Vec::new() })
    }

    /// Makes a node learn the address of a station behind a line. If the node is a router that resolves addresses, returns the packets that wait for it.
    fn learn_sender(&mut self, line: TreeLine, station: NodeId, is_addressed: bool, now: u64) -> Vec<u32> {
        let behind = |own: &Interface| own.tree[0].port == line.port ^ 1;
        let Some(interface) = self.interfaces.iter().position(behind) else { return Vec::new() };
        let Some(place) = self.place_of(Key { interface, station }) else { return Vec::new() };
        let config = &self.interfaces[interface].config;
        self.neighbours[place].1.on_arp(config, now, is_addressed)
    }

    fn is_switch(&self, node: NodeId) -> bool {
        (self.kinds[0]..self.kinds[1]).contains(&node)
    }

    /// Returns the index of a neighbour, if packets may be sent to it.
    fn place_of(&self, key: Key) -> Option<usize> {
        let order = |key: Key| (self.interfaces[key.interface].port(), key.station);
        self.neighbours.binary_search_by_key(&order(key), |(known, _)| order(*known)).ok()
    }
}

impl Frames {
    /// Returns the mark in front of the line of a path segment, if its router resolves addresses there. Then changes `line`, the step of the segment, so that
    /// it does no work of a router.
    pub(crate) fn hold_before(
        &mut self,
        topology: &Topology,
        leg: PathSegment,
        station: impl FnOnce() -> NodeId,
        line: &mut Step,
    ) -> Option<Step> {
        let key = Key { interface: topology.arp_interface(leg)?, station: station() };
        let neighbours = &mut self.arp.neighbours;
        let place = neighbours.iter().position(|(known, _)| *known == key).unwrap_or_else(|| {
            neighbours.push((key, Neighbour::default()));
            neighbours.len() - 1
        });
        // With a mark, packets never continue ahead of virtual time behind this router.
        self.engines[line.router as usize].never_ahead = true;
        let hold = Step { verdict: Verdict::Hold(place as u32), takes_time: true, ..*line };
        (line.router, line.takes_time) = (NONE, false);
        Some(hold)
    }

    /// Adds a route for each line that may carry ARP packets.
    pub(crate) fn add_arp_lines(&mut self, testbed: &Testbed, topology: &Topology) {
        for hop in
            topology.arp.iter().flat_map(|interface| &interface.tree).flat_map(|hop| [*hop, hop.back()])
        {
            let port = topology.port_of(&hop);
            if !self.arp.lines.contains_key(&port) {
                let first = self.steps.len();
                self.arp.lines.insert(port, first as u32);
                self.add_run(topology, &[PathSegment::Link(hop)], &[], false);
                self.work_at_ends(testbed, topology, hop.to, first);
            }
        }
    }

    /// Sorts the neighbours, after all routes are laid out, into the order in which requests are repeated at one instant.
    pub(crate) fn sort_neighbours(&mut self) {
        let Resolution { interfaces, neighbours, .. } = &mut self.arp;
        let before: Vec<Key> = neighbours.iter().map(|(key, _)| *key).collect();
        neighbours.sort_by_key(|(key, _)| (interfaces[key.interface].port(), key.station));
        for step in &mut self.steps {
            if let Verdict::Hold(neighbour) = &mut step.verdict {
                let key = before[*neighbour as usize];
                let place = neighbours.iter().position(|(known, _)| *known == key);
                *neighbour = place.expect("sorting keeps every neighbour") as u32;
            }
        }
    }

    /// Decides about a packet at the mark in front of a line: it continues, or waits until the router knows the neighbour's address.
    pub fn resolve(&mut self, neighbour: u32, packet: u32, now: u64) -> HoldResult<u32> {
        let Resolution { interfaces, neighbours, .. } = &mut self.arp;
        let (key, neighbour) = &mut neighbours[neighbour as usize];
        let interface = &interfaces[key.interface];
        let line = &self.ports[self.port_indices[interface.port()] as usize];
        if interface.is_down && line.is_down() && !neighbour.is_known(now) {
            // The line is down and drops the packet.
            return HoldResult::GoesOn;
        }
        neighbour.on_packet(&interface.config, now, packet)
    }

    /// Makes the node at an end of a link, if it is a router that notices that the link is down, forget the neighbours behind it. Returns the packets that
    /// wait for them, and are lost.
    pub fn forget_neighbours_behind(&mut self, (link, end): (usize, usize), down: bool) -> Vec<u32> {
        self.arp.forget_behind(self.link_ends[link][end], link, down)
    }
}
