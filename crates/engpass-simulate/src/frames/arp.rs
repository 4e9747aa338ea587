//! Address resolution: packets that routers hold, timers of requests, and ARP packets that arrive.

use engpass_frames::{ALL_NEIGHBOURS, ArpMessage, ControlKind};
use engpass_model::arp::{HoldResult, TimeoutAction};
use engpass_model::wire::arp::BYTES;

use super::control::ControlPacket;
use crate::Network;
use crate::event_queue::Event;
use crate::flow_counters::DropLocation;
use crate::tap::Arp as Seen;

impl Network {
    /// Handles a packet at the mark in front of a line: the packet continues, or waits until the router knows the neighbour's address.
    #[cold]
    pub(super) fn resolve_or_hold(&mut self, id: u32, place: u32, neighbour: u32) {
        let step = self.frames.steps[place as usize];
        self.shared.datagrams.packet_mut(id).place = place;
        if !self.passes_router(id, step, self.clock.now) {
            return;
        }
        match self.frames.resolve(neighbour, id, self.clock.now) {
            HoldResult::GoesOn => self.leave_hold(id),
            HoldResult::Held { lost, asks } => {
                if asks {
                    self.ask_address(neighbour);
                }
                if let Some(lost) = lost {
                    let router = self.frames.arp.router_of(neighbour);
                    self.shared.drop_packet(
                        &self.frames,
                        lost,
                        DropLocation::HoldFull(router),
                        self.clock.now,
                    );
                }
            }
        }
    }

    /// Moves a packet from the mark on to the line behind it.
    fn leave_hold(&mut self, id: u32) {
        let packet = self.shared.datagrams.packet_mut(id);
        packet.place += 1;
        let place = packet.place;
        self.forward(id, place, self.clock.now, true);
    }

    /// Sends a request for the address of a neighbour.
    fn ask_address(&mut self, neighbour: u32) {
        let (said, due) = self.frames.arp.request(neighbour);
        self.clock.events.push(due, said.port(), Event::ArpTimeout(neighbour));
        self.begin_arp(said);
    }

    /// Handles the timer of a request: repeats the request, or after the last one drops the packets that wait.
    pub(crate) fn on_arp_timeout(&mut self, neighbour: u32) {
        if neighbour == ALL_NEIGHBOURS {
            self.frames.arp.forget_known(self.clock.now);
            return;
        }
        match self.frames.arp.on_timeout(neighbour, self.clock.now) {
            TimeoutAction::Nothing => {}
            TimeoutAction::Asks => self.ask_address(neighbour),
            TimeoutAction::GivesUp(packets) => {
                let router = self.frames.arp.router_of(neighbour);
                for packet in packets {
                    self.shared.drop_packet(
                        &self.frames,
                        packet,
                        DropLocation::NoReply(router),
                        self.clock.now,
                    );
                }
            }
        }
    }

    /// Creates an ARP packet at the node where its line begins, and sends it.
    fn begin_arp(&mut self, said: ArpMessage) {
        let (sender, place) = self.frames.arp.place_on_line(&said);
        // The router decrements the TTL.
        let packet = ControlPacket { sender, place, bytes: BYTES, ttl: 2, priority: 0 };
        let (datagram, packet) = self.begin_control(ControlKind::Arp, packet);
        self.frames.arp.register(datagram, said);
        if let Some(trace) = &mut self.shared.trace {
            let [router, station] = self.frames.arp.parties(&said);
            trace.asks(datagram, Seen { operation: said.operation, router, station });
        }
        if self.frames.arp.is_from_host(&said) {
            self.send_from_nic(packet, None);
        } else {
            self.receive_or_forward(packet);
        }
    }

    /// Handles an ARP packet at the end of its line: packets that waited for its sender continue, and the node sends further ARP packets.
    pub(super) fn take_arp(&mut self, datagram: u32) {
        let (released, messages) = self.frames.arp.receive(datagram, self.clock.now);
        released.into_iter().for_each(|packet| self.leave_hold(packet));
        messages.into_iter().for_each(|said| self.begin_arp(said));
    }
}
