//! Address resolution (docs/model.md): routers that hold packets for a neighbour until they know its hardware address.
//!
//! The table of steps has a mark ([`HOLD`]) in front of each line on which a router asks for addresses. It does the work of a router, and the line behind it is
//! like that of a host. Each line that may carry ARP packets has a route of its own, of one line, and a lane of books: an ARP packet is a datagram that ends
//! where its line ends, and switches and stations begin others.

use std::collections::BTreeMap;

use engpass_ledger::{FlowDirection, HeldBack, LaneLine};
use engpass_model::arp::{Arp, Met, Neighbour, Overdue};
use engpass_model::queue::Ecn;
use engpass_model::wire::arp::{BYTES, Operation};
use engpass_model::wire::ip::IP_HEADER_BYTES;
use engpass_testbed::topology::{ArpInterface, Hop, Leg, NodeId};
use engpass_testbed::{Testbed, Topology};

use super::marks::HOLD;
use super::{END, Frames, Packet, Step};
use crate::simulate::Network;
use crate::simulate::datagrams::{Datagram, To};
use crate::simulate::event::Event;
use crate::simulate::tally::Place;
use crate::simulate::tap::Arp as Seen;

/// The interfaces of routers that ask for addresses, their neighbours, and the ARP packets on their way.
#[derive(Debug, Default)]
pub(in crate::simulate) struct Resolution {
    interfaces: Vec<Interface>,
    /// Of the nodes: hosts, and hosts and switches.
    kinds: [usize; 2],
    /// By the port of the interface, then by station.
    neighbours: Vec<(Key, Neighbour<u32>)>,
    /// By transmitter, the place of ARP packets on its line.
    lines: BTreeMap<usize, u32>,
    /// What the ARP packets on their way say, by datagram. A lost one stays until its datagram number is used again.
    packets: BTreeMap<u32, Said>,
    /// Where ARP packets are counted, behind all flows.
    pub(in crate::simulate) tally: u32,
}

/// In place of the number of a neighbour: all are forgotten that are known.
pub(super) const FORGET: u32 = u32::MAX >> 1;

/// A neighbour: the number of its interface, and the station.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Key {
    interface: usize,
    station: NodeId,
}

/// An interface of a router that asks for addresses.
#[derive(Debug)]
struct Interface {
    config: Arp,
    router: NodeId,
    link: usize,
    /// The lines that carry a request, each behind the one that brings it to where it begins. The first one is the router's.
    tree: Vec<TreeLine>,
    /// The router sees that the link is down.
    is_down: bool,
}

/// A line on the tree of an interface, or back: its transmitter, and the nodes at its ends.
#[derive(Clone, Copy, Debug)]
struct TreeLine {
    port: usize,
    from: NodeId,
    to: NodeId,
}

/// What an ARP packet says, and the line that carries it.
#[derive(Clone, Copy, Debug)]
struct Said {
    operation: Operation,
    /// The station that is asked for on this interface, or has been.
    about: Key,
    line: TreeLine,
}

impl TreeLine {
    /// The other direction of its link.
    fn back(self) -> Self {
        Self { port: self.port ^ 1, from: self.to, to: self.from }
    }
}

impl Interface {
    fn new(testbed: &Testbed, topology: &Topology, path: &ArpInterface) -> Self {
        let router = path.router - topology.hosts - topology.switches;
        let line = |hop: &Hop| TreeLine { port: topology.port_of(hop), from: hop.from, to: hop.to };
        Self {
            config: testbed.routers[router].arp.clone().expect("it asks for addresses"),
            router: path.router,
            link: path.link,
            tree: path.tree.iter().map(line).collect(),
            is_down: false,
        }
    }

    /// Number of its transmitter.
    fn port(&self) -> usize {
        self.tree[0].port
    }

    /// The line of the tree that leads to a node.
    fn line_to(&self, node: NodeId) -> TreeLine {
        *self.tree.iter().find(|line| line.to == node).expect("a request comes to it")
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

    /// Whether no router asks.
    pub(in crate::simulate) fn is_idle(&self) -> bool {
        self.interfaces.is_empty()
    }

    /// The hosts that may be asked.
    pub(in crate::simulate) fn hosts(&self) -> impl Iterator<Item = NodeId> {
        let ends = self.interfaces.iter().flat_map(|interface| interface.tree.iter().map(|line| line.to));
        ends.filter(|node| *node < self.kinds[0])
    }

    /// The transmitters whose lines may carry ARP packets, in the order of their lanes.
    pub(super) fn ports(&self) -> impl Iterator<Item = usize> {
        self.lines.keys().copied()
    }

    /// Lanes of books: one for each line that may carry ARP packets, and one that is not used.
    pub(in crate::simulate) fn lanes(&self) -> usize {
        2 * self.lines.len()
    }

    /// What the books must know of its lanes.
    pub(in crate::simulate) fn open_lanes<'a>(
        &'a self,
        topology: &'a Topology,
    ) -> impl Iterator<Item = Option<FlowDirection<'a>>> {
        self.lines.keys().flat_map(move |port| {
            let wire = topology.links[port / 2].wire(port % 2, Default::default());
            let line = LaneLine { number: *port, wire, changes: Vec::new(), held_back: HeldBack::Upstream };
            let lane = FlowDirection {
                flow: self.tally as usize,
                against: true,
                traffic: None,
                sender: None,
                rare: true,
                mtu: topology.links[port / 2].mtu,
                lines: vec![line],
            };
            [Some(lane), None]
        })
    }

    /// An ARP packet as somebody who captures sees it.
    fn seen(&self, said: &Said) -> Seen {
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

    /// The place of a neighbour, if packets ever go to it.
    fn place_of(&self, key: Key) -> Option<usize> {
        let order = |key: Key| (self.interfaces[key.interface].port(), key.station);
        self.neighbours.binary_search_by_key(&order(key), |(known, _)| order(*known)).ok()
    }
}

impl Frames {
    /// The mark in front of the line of a leg, where its router asks for the address of a station; `line` is the step of the leg, and a host's then.
    pub(super) fn hold_before(
        &mut self,
        topology: &Topology,
        leg: Leg,
        station: impl FnOnce() -> NodeId,
        line: &mut Step,
    ) -> Option<Step> {
        let key = Key { interface: topology.arp_interface(leg)?, station: station() };
        let neighbours = &mut self.arp.neighbours;
        let place = neighbours.iter().position(|(known, _)| *known == key).unwrap_or_else(|| {
            neighbours.push((key, Neighbour::default()));
            neighbours.len() - 1
        });
        // No packet goes on ahead of the clock.
        self.routers[line.router as usize].asks = true;
        let hold = Step { port: HOLD + place as u32, takes_time: true, ..*line };
        (line.router, line.takes_time) = (END, false);
        Some(hold)
    }

    /// Lay out the lines that may carry ARP packets, each as a way of its own.
    pub(super) fn add_arp_lines(&mut self, topology: &Topology) {
        for hop in
            topology.arp.iter().flat_map(|interface| &interface.tree).flat_map(|hop| [*hop, hop.back()])
        {
            let port = topology.port_of(&hop);
            if !self.arp.lines.contains_key(&port) {
                self.arp.lines.insert(port, self.steps.len() as u32);
                self.put_run(topology, &[Leg::Link(hop)], &[], false);
            }
        }
    }

    /// All ways are laid out: bring the neighbours in the order in which their requests are repeated at one instant.
    pub(super) fn sort_neighbours(&mut self) {
        let Resolution { interfaces, neighbours, .. } = &mut self.arp;
        let before: Vec<Key> = neighbours.iter().map(|(key, _)| *key).collect();
        neighbours.sort_by_key(|(key, _)| (interfaces[key.interface].port(), key.station));
        for step in self.steps.iter_mut().filter(|step| step.is_hold()) {
            let key = before[(step.port - HOLD) as usize];
            let place = neighbours.iter().position(|(known, _)| *known == key);
            step.port = HOLD + place.expect("it was there before") as u32;
        }
    }
}

impl Network {
    /// A packet comes to the mark in front of a line: it goes on, or is held until the router knows the neighbour's address.
    #[cold]
    pub(super) fn meets_hold(&mut self, id: u32, place: u32) {
        let step = self.frames.steps[place as usize];
        self.fabric.datagrams.packet_mut(id).place = place;
        if !self.passes_router(id, step, self.now) {
            return;
        }
        let number = (step.port - HOLD) as usize;
        let Resolution { interfaces, neighbours, .. } = &mut self.frames.arp;
        let (key, neighbour) = &mut neighbours[number];
        let interface = &interfaces[key.interface];
        let (config, router) = (&interface.config, interface.router);
        let line = &self.frames.ports[self.frames.places[interface.port()] as usize];
        if interface.is_down && line.is_down() && !neighbour.is_known(self.now) {
            // The line loses it.
            self.leaves_hold(id);
            return;
        }
        match neighbour.meets(config, self.now, id) {
            Met::GoesOn => self.leaves_hold(id),
            Met::Held { lost, asks } => {
                if asks {
                    self.ask_address(number);
                }
                if let Some(lost) = lost {
                    self.lose_packet(lost, Place::HoldFull(router), self.now);
                }
            }
        }
    }

    /// A packet comes to the line behind the mark.
    fn leaves_hold(&mut self, id: u32) {
        let packet = self.fabric.datagrams.packet_mut(id);
        packet.place += 1;
        let place = packet.place;
        self.go(id, place, self.now, true);
    }

    /// A router sends a request for the address of a neighbour.
    fn ask_address(&mut self, number: usize) {
        let Resolution { interfaces, neighbours, .. } = &self.frames.arp;
        let (about, neighbour) = &neighbours[number];
        let line = interfaces[about.interface].tree[0];
        let due = neighbour.due().expect("it is asked for");
        let said = Said { operation: Operation::Request, about: *about, line };
        self.events.push(due, line.port, Event::Arp(number as u32));
        self.begin_arp(said);
    }

    /// A request may not have been answered in time.
    pub(in crate::simulate) fn arp_overdue(&mut self, number: u32) {
        let Resolution { interfaces, neighbours, .. } = &mut self.frames.arp;
        if number == FORGET {
            let known = neighbours.iter_mut().filter(|(_, neighbour)| neighbour.is_known(self.now));
            known.for_each(|(_, neighbour)| *neighbour = Neighbour::Unknown);
            return;
        }
        let (key, neighbour) = &mut neighbours[number as usize];
        let Interface { config, router, .. } = &interfaces[key.interface];
        let router = *router;
        match neighbour.times_out(config, self.now) {
            Overdue::Nothing => {}
            Overdue::Asks => self.ask_address(number as usize),
            Overdue::GivesUp(packets) => {
                for packet in packets {
                    self.lose_packet(packet, Place::NoReply(router), self.now);
                }
            }
        }
    }

    /// A router sees a link go down or come up: it knows nothing of the neighbours there any more.
    pub(super) fn arp_sees(&mut self, router: NodeId, link: usize, down: bool) {
        let Resolution { interfaces, neighbours, .. } = &mut self.frames.arp;
        let own = |interface: &Interface| (interface.router, interface.link) == (router, link);
        let Some(number) = interfaces.iter().position(own) else { return };
        if std::mem::replace(&mut interfaces[number].is_down, down) || !down {
            return;
        }
        let port = self.frames.places[interfaces[number].port()];
        let there = neighbours.iter_mut().filter(|(key, _)| key.interface == number);
        let held: Vec<u32> = there.flat_map(|(_, neighbour)| neighbour.forget()).collect();
        for packet in held {
            self.lose_to_outage(port, packet, self.now);
        }
    }

    /// An ARP packet begins at the node at which its line begins.
    fn begin_arp(&mut self, said: Said) {
        let Resolution { lines, tally, kinds, .. } = &self.frames.arp;
        let lane = lines.range(..said.line.port).count();
        let place = lines[&said.line.port];
        let is_host = said.line.from < kinds[0];
        let messages = self.frames.icmp.ways.len();
        let written = self.fabric.fates.is_some();
        let datagram = Datagram {
            flow: *tally,
            to: To::endpoint(self.endpoints.len() + 2 * (messages + lane) + 1),
            // All of it is control, whatever it is called.
            header: (BYTES - IP_HEADER_BYTES) as u32,
            fragments: 1,
            holds: 1,
            begun: self.now,
            written,
            ..Datagram::default()
        };
        let datagram = self.fabric.begin_datagram(written, datagram);
        self.frames.arp.packets.insert(datagram, said);
        if let Some(trace) = &mut self.fabric.trace {
            trace.asks(datagram, self.frames.arp.seen(&said));
        }
        let sender = match &mut self.fabric.fates {
            None => (self.processes.len() + self.endpoints.len() + messages) as u32,
            Some(fates) => {
                let number = self.outsiders.number_of_control(messages);
                fates.arp_begins(datagram, number);
                number
            }
        };
        let packet = self.fabric.datagrams.insert_packet(Packet {
            datagram,
            ip: BYTES as u32,
            sender,
            place,
            since: 0,
            offset: 0,
            // The engine of its router subtracts one.
            ttl: 2,
            priority: 0,
            ecn: Ecn::NotCapable,
        });
        if is_host {
            self.send_from_nic(packet, None);
        } else {
            self.goes_on(packet);
        }
    }

    /// An ARP packet has come to the end of its line.
    pub(super) fn take_arp(&mut self, datagram: u32) {
        let said = self.frames.arp.packets.remove(&datagram).expect("an ARP packet that arrives was sent");
        let Said { operation, about, line } = said;
        let arp = &self.frames.arp;
        let interface = &arp.interfaces[about.interface];
        let is_reply = operation == Operation::Reply;
        if arp.is_switch(line.to) {
            let onward = match is_reply {
                true => vec![interface.line_to(line.to).back()],
                false => interface.tree.iter().filter(|next| next.from == line.to).copied().collect(),
            };
            for line in onward {
                self.begin_arp(Said { line, ..said });
            }
            return;
        }
        let sender = if is_reply { about.station } else { interface.router };
        let is_addressed = is_reply || line.to == about.station;
        self.hears(line, sender, is_addressed);
        if is_addressed && !is_reply {
            self.begin_arp(Said { operation: Operation::Reply, about, line: line.back() });
        }
    }

    /// A node hears the address of a station behind a line, in a packet that is addressed to it or not: what it held goes on, if it is a router that asks.
    fn hears(&mut self, line: TreeLine, station: NodeId, is_addressed: bool) {
        let arp = &mut self.frames.arp;
        let Some(interface) = arp.interfaces.iter().position(|own| own.tree[0].port == line.port ^ 1) else {
            return;
        };
        let Some(place) = arp.place_of(Key { interface, station }) else { return };
        let config = &arp.interfaces[interface].config;
        for packet in arp.neighbours[place].1.learns(config, self.now, is_addressed) {
            self.leaves_hold(packet);
        }
    }
}
