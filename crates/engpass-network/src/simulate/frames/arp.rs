//! Address resolution (docs/model.md): routers hold packets for a neighbour until they know its hardware address.
//!
//! The step table has a mark ([`HOLD`]) in front of each line on which a router resolves addresses. The mark does the work of the router, so that the step of
//! the line itself is like one of a host. Each line that may carry ARP packets has a route of one line and a flow direction in the ledger. An ARP packet is a
//! datagram that ends at the end of its line; switches and stations create new ones.

use std::collections::BTreeMap;

use engpass_ledger::{FlowDirection, FlowDirectionLine, HeldBack};
use engpass_model::arp::{Arp, HoldResult, Neighbour, TimeoutAction};
use engpass_model::wire::arp::{BYTES, Operation};
use engpass_testbed::topology::{ArpInterface, Hop, NodeId, PathSegment};
use engpass_testbed::{Testbed, Topology};

use super::control::{ControlKind, ControlPacket};
use super::{Frames, NONE, Step, Verdict};
use crate::simulate::Network;
use crate::simulate::event_queue::Event;
use crate::simulate::flow_counters::DropLocation;
use crate::simulate::tap::Arp as Seen;

/// The router interfaces that resolve addresses, their neighbours, and the ARP packets in the network.
#[derive(Debug, Default)]
pub(in crate::simulate) struct Resolution {
    interfaces: Vec<Interface>,
    /// Number of hosts, and of hosts and switches: nodes with numbers below these are hosts, or hosts and switches.
    kinds: [usize; 2],
    /// Neighbours, sorted by the port of the interface, then by station.
    neighbours: Vec<(Key, Neighbour<u32>)>,
    /// By transmitter, the step of ARP packets on its line.
    lines: BTreeMap<usize, u32>,
    /// Content of ARP packets in the network, by datagram. That of a lost packet stays until its datagram number is reused.
    packets: BTreeMap<u32, MessageContent>,
}

/// In place of a neighbour's number in an event: routers forget all addresses.
pub(super) const FORGET: u32 = u32::MAX >> 1;

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
struct MessageContent {
    operation: Operation,
    /// The interface, and the station whose address is requested or given.
    about: Key,
    line: TreeLine,
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
    pub(super) fn new(testbed: &Testbed, topology: &Topology) -> Self {
        Self {
            interfaces: topology.arp.iter().map(|path| Interface::new(testbed, topology, path)).collect(),
            kinds: [topology.hosts, topology.hosts + topology.switches],
            ..Self::default()
        }
    }

    /// Returns true if no router resolves addresses.
    pub(in crate::simulate) fn is_idle(&self) -> bool {
        self.interfaces.is_empty()
    }

    /// Returns the hosts that requests reach.
    pub(in crate::simulate) fn hosts(&self) -> impl Iterator<Item = NodeId> {
        let ends = self.interfaces.iter().flat_map(|interface| interface.tree.iter().map(|line| line.to));
        ends.filter(|node| *node < self.kinds[0])
    }

    /// Returns the transmitters whose lines may carry ARP packets, in the order of their flow directions.
    pub(super) fn ports(&self) -> impl Iterator<Item = usize> {
        self.lines.keys().copied()
    }

    /// Returns the number of flow directions for ARP in the ledger: two for each line that may carry ARP packets, of which the second is unused.
    pub(in crate::simulate) fn count_directions(&self) -> usize {
        2 * self.lines.len()
    }

    /// Returns the content of an ARP packet for a capture.
    fn seen(&self, said: &MessageContent) -> Seen {
        let Key { interface, station } = said.about;
        let interface = &self.interfaces[interface];
        Seen {
            operation: said.operation,
            router: (interface.router, interface.port()),
            station: (station, interface.line_to(station).back().port),
        }
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
    /// Returns the flow directions of ARP packets for the ledger.
    pub(in crate::simulate) fn arp_directions<'a>(
        &self,
        topology: &'a Topology,
    ) -> impl Iterator<Item = Option<FlowDirection<'a>>> {
        self.arp.lines.keys().flat_map(move |port| {
            let wire = topology.links[port / 2].wire(port % 2, Default::default());
            let line =
                FlowDirectionLine { number: *port, wire, changes: Vec::new(), held_back: HeldBack::Upstream };
            self.ledger_directions(topology.links[port / 2].mtu, vec![line])
        })
    }

    /// Returns the mark in front of the line of a path segment, if its router resolves addresses there. Then changes `line`, the step of the segment, so that
    /// it does no work of a router.
    pub(super) fn hold_before(
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
    pub(super) fn add_arp_lines(&mut self, testbed: &Testbed, topology: &Topology) {
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
    pub(super) fn sort_neighbours(&mut self) {
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
}

impl Network {
    /// Handles a packet at the mark in front of a line: the packet continues, or waits until the router knows the neighbour's address.
    #[cold]
    pub(super) fn resolve_or_hold(&mut self, id: u32, place: u32, number: u32) {
        let step = self.frames.steps[place as usize];
        self.shared.datagrams.packet_mut(id).place = place;
        if !self.passes_router(id, step, self.now) {
            return;
        }
        let Resolution { interfaces, neighbours, .. } = &mut self.frames.arp;
        let (key, neighbour) = &mut neighbours[number as usize];
        let interface = &interfaces[key.interface];
        let (config, router) = (&interface.config, interface.router);
        let line = &self.frames.ports[self.frames.port_indices[interface.port()] as usize];
        if interface.is_down && line.is_down() && !neighbour.is_known(self.now) {
            // The line is down and drops the packet.
            self.leave_hold(id);
            return;
        }
        match neighbour.on_packet(config, self.now, id) {
            HoldResult::GoesOn => self.leave_hold(id),
            HoldResult::Held { lost, asks } => {
                if asks {
                    self.ask_address(number as usize);
                }
                if let Some(lost) = lost {
                    self.drop_packet(lost, DropLocation::HoldFull(router), self.now);
                }
            }
        }
    }

    /// Moves a packet from the mark on to the line behind it.
    fn leave_hold(&mut self, id: u32) {
        let packet = self.shared.datagrams.packet_mut(id);
        packet.place += 1;
        let place = packet.place;
        self.forward(id, place, self.now, true);
    }

    /// Sends a request for the address of a neighbour.
    fn ask_address(&mut self, number: usize) {
        let Resolution { interfaces, neighbours, .. } = &self.frames.arp;
        let (about, neighbour) = &neighbours[number];
        let line = interfaces[about.interface].tree[0];
        let due = neighbour.due().expect("the neighbour is being resolved");
        let said = MessageContent { operation: Operation::Request, about: *about, line };
        self.events.push(due, line.port, Event::ArpTimeout(number as u32));
        self.begin_arp(said);
    }

    /// Handles the timer of a request: repeats the request, or after the last one drops the packets that wait.
    pub(in crate::simulate) fn on_arp_timeout(&mut self, number: u32) {
        let Resolution { interfaces, neighbours, .. } = &mut self.frames.arp;
        if number == FORGET {
            let known = neighbours.iter_mut().filter(|(_, neighbour)| neighbour.is_known(self.now));
            known.for_each(|(_, neighbour)| *neighbour = Neighbour::Unknown);
            return;
        }
        let (key, neighbour) = &mut neighbours[number as usize];
        let Interface { config, router, .. } = &interfaces[key.interface];
        let router = *router;
        match neighbour.on_timeout(config, self.now) {
            TimeoutAction::Nothing => {}
            TimeoutAction::Asks => self.ask_address(number as usize),
            TimeoutAction::GivesUp(packets) => {
                for packet in packets {
                    self.drop_packet(packet, DropLocation::NoReply(router), self.now);
                }
            }
        }
    }

    /// Makes a router that notices that a link is down forget the neighbours behind it; the packets that wait for them are lost.
    pub(super) fn forget_neighbours_behind(&mut self, router: NodeId, link: usize, down: bool) {
        let Resolution { interfaces, neighbours, .. } = &mut self.frames.arp;
        let own = |interface: &Interface| (interface.router, interface.link) == (router, link);
        let Some(number) = interfaces.iter().position(own) else { return };
        if std::mem::replace(&mut interfaces[number].is_down, down) || !down {
            return;
        }
        let port = self.frames.port_indices[interfaces[number].port()];
        let there = neighbours.iter_mut().filter(|(key, _)| key.interface == number);
        let held: Vec<u32> = there.flat_map(|(_, neighbour)| neighbour.forget()).collect();
        for packet in held {
            self.drop_by_outage(port, packet, self.now);
        }
    }

    /// Creates an ARP packet at the node where its line begins, and sends it.
    fn begin_arp(&mut self, said: MessageContent) {
        let Resolution { lines, kinds, .. } = &self.frames.arp;
        let (sender, place) = (lines.range(..said.line.port).count(), lines[&said.line.port]);
        let is_host = said.line.from < kinds[0];
        // The router decrements the TTL.
        let packet = ControlPacket { sender, place, bytes: BYTES, ttl: 2, priority: 0 };
        let (datagram, packet) = self.begin_control(ControlKind::Arp, packet);
        self.frames.arp.packets.insert(datagram, said);
        if let Some(trace) = &mut self.shared.trace {
            trace.asks(datagram, self.frames.arp.seen(&said));
        }
        if is_host {
            self.send_from_nic(packet, None);
        } else {
            self.receive_or_forward(packet);
        }
    }

    /// Handles an ARP packet at the end of its line: a switch forwards it, a station learns from it and may reply.
    pub(super) fn take_arp(&mut self, datagram: u32) {
        let said = self.frames.arp.packets.remove(&datagram).expect("an arriving ARP packet is registered");
        let MessageContent { operation, about, line } = said;
        let arp = &self.frames.arp;
        let interface = &arp.interfaces[about.interface];
        let is_reply = operation == Operation::Reply;
        if arp.is_switch(line.to) {
            let onward = match is_reply {
                true => vec![interface.line_to(line.to).back()],
                false => interface.tree.iter().filter(|next| next.from == line.to).copied().collect(),
            };
            for line in onward {
                self.begin_arp(MessageContent { line, ..said });
            }
            return;
        }
        let sender = if is_reply { about.station } else { interface.router };
        let is_addressed = is_reply || line.to == about.station;
        self.learn_sender(line, sender, is_addressed);
        if is_addressed && !is_reply {
            self.begin_arp(MessageContent { operation: Operation::Reply, about, line: line.back() });
        }
    }

    /// Makes a node learn the address of a station behind a line. If the node is a router that resolves addresses, packets that wait for it continue.
    fn learn_sender(&mut self, line: TreeLine, station: NodeId, is_addressed: bool) {
        let arp = &mut self.frames.arp;
        let Some(interface) = arp.interfaces.iter().position(|own| own.tree[0].port == line.port ^ 1) else {
            return;
        };
        let Some(place) = arp.place_of(Key { interface, station }) else { return };
        let config = &arp.interfaces[interface].config;
        for packet in arp.neighbours[place].1.on_arp(config, self.now, is_addressed) {
            self.leave_hold(packet);
        }
    }
}
