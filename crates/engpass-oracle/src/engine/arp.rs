//! Address resolution: routers hold packets and send requests, stations reply, and switches flood requests (docs/model.md, "Address resolution").
//!
//! The state is in `../arp.rs`.

use engpass_model::arp::{Arp, HoldResult, Neighbour, TimeoutAction};
use engpass_model::source::Traffic;
use engpass_model::wire::Framing;
use engpass_model::wire::arp::BYTES;
use engpass_testbed::topology::{EventPath, NodeId, NodeKind};

use super::Engine;
use crate::acted::Mechanism;
use crate::arp::{ArpPacket, Key, far_end, tree};
use crate::cell::LineId;
use crate::event_queue::{Event, Group};
use crate::ledger::Datagram;
use crate::outcome::Place;
use crate::packet::Packet;
use crate::resolve::kind;

impl Engine<'_> {
    /// Returns the ARP configuration of the router at the beginning of a line, if it uses ARP.
    fn arp_of(&self, line: LineId) -> Option<Arp> {
        match kind(&self.topology, self.topology.links[line.link].ends[line.end]) {
            NodeKind::Router(router) => self.testbed.routers[router].arp.clone(),
            _ => None,
        }
    }

    /// Returns the node behind all switches to which a packet leaves a router over a line.
    fn station(&self, line: LineId, packet: usize) -> NodeId {
        let mut node = far_end(&self.topology, line);
        while matches!(kind(&self.topology, node), NodeKind::Switch(_)) {
            node = self.end_of(self.group_at(self.packets[packet].way, node)[0]);
        }
        node
    }

    /// Returns true for multicast packets: their IP address determines the address of the frame.
    fn needs_no_address(&self, packet: usize) -> bool {
        let Packet { flow, carries, .. } = self.packets[packet];
        // Outer packets go to a router, even if the inner packet is multicast.
        let traffic = self.testbed.traffic.get_index(flow).map(|(_, traffic)| traffic);
        carries.is_none() && matches!(traffic, Some(Traffic::Multicast(_)))
    }

    /// Sends a packet from a router over a line, or holds it until the address of the neighbour is known.
    pub(crate) fn goes_to_neighbour(&mut self, now: u64, line: LineId, packet: usize) {
        let is_ethernet = self.topology.links[line.link].lines[0].framing == Framing::Ethernet;
        let arp = self.arp_of(line).filter(|_| is_ethernet && !self.needs_no_address(packet));
        let Some(arp) = arp else { return self.joins_queue(now, line, packet) };
        let key = (line, self.station(line, packet));
        let seen_up = self.outages.is_seen_up(line) || !self.outages.is_down(line);
        let neighbour = self.neighbours.all.entry(key).or_default();
        if !seen_up && !neighbour.is_known(now) {
            return self.joins_queue(now, line, packet);
        }
        let was_known = matches!(neighbour, Neighbour::Known { .. });
        let HoldResult::Held { lost, asks } = neighbour.on_packet(&arp, now, packet) else {
            return self.joins_queue(now, line, packet);
        };
        self.neighbours.held += 1;
        if let Some(lost) = lost {
            self.acted.note(Mechanism::HoldFull);
            let node = self.topology.links[line.link].ends[line.end];
            self.lose_held(now, Place::HoldFull { node }, lost);
        }
        if asks {
            if was_known {
                self.acted.note(Mechanism::Expired);
            }
            self.asks(now, key);
        }
    }

    fn lose_held(&mut self, now: u64, place: Place, packet: usize) {
        self.neighbours.lost += 1;
        self.ledger.lose_carrier(now, place, self.packets[packet].datagram);
    }

    /// Sends a request for a neighbour from the router and schedules its timeout.
    fn asks(&mut self, now: u64, key: Key) {
        let (interface, station) = key;
        let due = self.neighbours.all[&key].due().expect("the neighbour is being resolved");
        let place = (2 * interface.link + interface.end, station);
        self.agenda.put(due, Group::ArpRetry, place, Event::ArpRetry { of: key });
        let NodeKind::Router(router) =
            kind(&self.topology, self.topology.links[interface.link].ends[interface.end])
        else {
            unreachable!("only routers resolve addresses")
        };
        let request = self.arp_packet(now, ArpPacket { asks: true, interface, station });
        self.comes_to_engine(now, router, request);
    }

    /// Handles the timeout of a request.
    pub(crate) fn arp_retry(&mut self, now: u64, key: Key) {
        let (line, _) = key;
        let arp = self.arp_of(line).expect("a neighbour belongs to a router with ARP");
        let neighbour = self.neighbours.all.get_mut(&key).expect("the neighbour is being resolved");
        match neighbour.on_timeout(&arp, now) {
            TimeoutAction::Nothing => {}
            TimeoutAction::Asks => {
                self.acted.note(Mechanism::AskedAgain);
                self.asks(now, key);
            }
            TimeoutAction::GivesUp(held) => {
                self.acted.note(Mechanism::NoReply);
                let node = self.topology.links[line.link].ends[line.end];
                for packet in held {
                    self.lose_held(now, Place::NoReply { node }, packet);
                }
            }
        }
    }

    /// Creates an ARP packet for one line.
    fn arp_packet(&mut self, now: u64, arp: ArpPacket) -> usize {
        // The flow number of ARP comes after all flows and receivers.
        let flow = self.topology.flows.len() + self.receivers.len();
        let datagram = self.ledger.begin(now, Datagram::arp(flow));
        let number = self.senders().len() + self.messages().len();
        // It follows the tree of its interface instead of a path.
        self.packets.push(Packet {
            room: BYTES,
            arp: Some(arp),
            ..Packet::of_sender(flow, datagram, number)
        });
        self.packets.len() - 1
    }

    /// Returns the line on which a reply leaves a node: that of the request, in the other direction.
    fn line_back(&self, node: NodeId, interface: LineId) -> LineId {
        let lines = tree(&self.topology, interface);
        let came = lines.into_iter().find(|line| far_end(&self.topology, *line) == node);
        let LineId { link, end } = came.expect("the interface's tree reaches the node");
        LineId { link, end: 1 - end }
    }

    /// Sends an ARP packet that a router has processed.
    pub(crate) fn arp_leaves_router(&mut self, now: u64, router: usize, packet: usize) {
        let ArpPacket { asks, interface, .. } =
            self.packets[packet].arp.expect("the packet is an ARP packet");
        let line = if asks { interface } else { self.line_back(self.router_node(router), interface) };
        self.joins_queue(now, line, packet);
    }

    /// Handles the arrival of an ARP packet at the far end of a line.
    pub(crate) fn arp_arrives(&mut self, now: u64, line: LineId, packet: usize) {
        let arp = self.packets[packet].arp.expect("the packet is an ARP packet");
        self.ledger.received(now, self.packets[packet].datagram, 0, None);
        let node = far_end(&self.topology, line);
        match kind(&self.topology, node) {
            NodeKind::Switch(_) => self.arp_at_switch(now, node, arp),
            NodeKind::Router(router) => {
                self.hears(now, line, arp);
                if arp.asks && arp.station == node {
                    let reply = self.arp_packet(now, ArpPacket { asks: false, ..arp });
                    self.comes_to_engine(now, router, reply);
                }
            }
            NodeKind::Host(_) if arp.asks && arp.station == node => {
                let reply = self.arp_packet(now, ArpPacket { asks: false, ..arp });
                let back = self.line_back(node, arp.interface);
                self.nics[back.link][back.end].occupied += self.packets[reply].room;
                self.joins_queue(now, back, reply);
            }
            NodeKind::Host(_) => {}
        }
    }

    /// Floods a request at a switch, or sends a reply back.
    fn arp_at_switch(&mut self, now: u64, node: NodeId, arp: ArpPacket) {
        let lines = if arp.asks {
            let from_here = |line: &LineId| self.topology.links[line.link].ends[line.end] == node;
            tree(&self.topology, arp.interface).into_iter().filter(from_here).collect()
        } else {
            vec![self.line_back(node, arp.interface)]
        };
        if lines.len() > 1 {
            self.acted.note(Mechanism::RequestCopied);
        }
        for line in lines {
            let copy = self.arp_packet(now, arp);
            self.joins_queue(now, line, copy);
        }
    }

    /// Handles an ARP packet that arrived at a router, which may learn its sender.
    fn hears(&mut self, now: u64, line: LineId, ArpPacket { asks, interface, station }: ArpPacket) {
        let own = LineId { link: line.link, end: 1 - line.end };
        let Some(arp) = self.arp_of(own) else { return };
        let node = far_end(&self.topology, line);
        let sender = if asks { self.topology.links[interface.link].ends[interface.end] } else { station };
        let addressed = !asks || station == node;
        let neighbour = self.neighbours.all.entry((own, sender)).or_default();
        let was_known = neighbour.is_known(now);
        let held = neighbour.on_arp(&arp, now, addressed);
        if asks && !was_known && neighbour.is_known(now) {
            self.acted.note(Mechanism::LearnedFromRequest);
        }
        if !asks && !held.is_empty() {
            self.acted.note(Mechanism::Resolved);
        }
        for packet in held {
            self.neighbours.went_on += 1;
            self.joins_queue(now, own, packet);
        }
    }

    /// Deletes the neighbours of a router on a line that it sees go down.
    pub(crate) fn forgets_neighbours(&mut self, now: u64, line: LineId) {
        for key in self.neighbours.on(line) {
            let neighbour = self.neighbours.all.get_mut(&key).expect("the neighbour is on the line");
            if neighbour.is_known(now) || neighbour.due().is_some() {
                self.acted.note(Mechanism::ForgottenOnDown);
            }
            for packet in neighbour.forget() {
                self.neighbours.lost += 1;
                self.lose_to_outage(now, line, packet);
            }
        }
    }

    /// Checks that every packet that was held has continued, was lost, or is still held, and that no request is overdue and no hold queue too long.
    ///
    /// # Errors
    /// The violated rule.
    pub(crate) fn holds_balance(&self, at: u64) -> Result<(), String> {
        let all = &self.neighbours;
        let waiting = all.waiting();
        if all.held != all.went_on + all.lost + waiting {
            return Err(format!(
                "{} packets were held, {} went on, {} were lost, {waiting} wait",
                all.held, all.went_on, all.lost
            ));
        }
        for (&(line, station), neighbour) in &all.all {
            let Neighbour::Asked { held, due, left } = neighbour else { continue };
            let arp = self.arp_of(line).expect("a neighbour belongs to a router with ARP");
            let places = held.len() as u64 <= arp.hold;
            // A router that has not seen the link come up asks again once it is up. So only a router that sees all events of the link must see it up.
            let sees_all = |path: &EventPath| path.link != line.link || path.seen_by[line.end];
            let up = self.outages.is_seen_up(line) || !self.topology.events.iter().all(sees_all);
            if *due <= at || *left >= arp.attempts || !places || !up {
                return Err(format!("{line:?} asks for {station} at {at}: {neighbour:?}"));
            }
        }
        Ok(())
    }
}
