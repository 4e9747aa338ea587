//! Address resolution: packets that routers hold, and timers of requests.

use engpass_frames::{ALL_NEIGHBOURS, ArpMessage, Frames};
use engpass_model::arp::{HoldResult, TimeoutAction};
use engpass_model::wire::arp::BYTES;

use super::control::{ControlPacket, Said};
use super::hop::Links;
use crate::clock::NewEvent;
use crate::event_queue::Event;
use crate::flow_counters::DropLocation;
use crate::progress::{Departed, Progress};
use crate::shared_state::SharedState;
use crate::tap::Arp as Seen;

/// Returns an ARP packet at the node where its line begins.
pub(super) fn packet(said: &ArpMessage, frames: &Frames) -> ControlPacket {
    let (sender, place) = frames.arp.place_on_line(said);
    // The router decrements the TTL.
    ControlPacket { sender, place, bytes: BYTES, ttl: 2, priority: 0 }
}

/// Registers an ARP packet that is about to be sent.
pub(super) fn register(said: ArpMessage, datagram: u32, frames: &mut Frames, shared: &mut SharedState) {
    frames.arp.register(datagram, said);
    if let Some(trace) = &mut shared.trace {
        let [router, station] = frames.arp.parties(&said);
        trace.asks(datagram, Seen { operation: said.operation, router, station });
    }
}

impl Links<'_> {
    /// Handles a packet at the mark in front of a line: the packet continues, or waits until the router knows the neighbour's address.
    #[cold]
    pub(super) fn resolve_or_hold(&mut self, id: u32, place: u32, neighbour: u32) -> Progress {
        let now = self.clock.now;
        if !self.passes_router(id, place) {
            return self.stop(id, place, now);
        }
        match self.frames.resolve(neighbour, id, now) {
            HoldResult::GoesOn => self.leave_hold(id),
            HoldResult::Held { lost, asks } => {
                if let Some(lost) = lost {
                    let place = DropLocation::HoldFull(self.frames.arp.router_of(neighbour));
                    self.shared.drop_packet(self.frames, lost, place, now);
                }
                if !asks {
                    return Progress::Rests(None);
                }
                let (timeout, request) = self.ask_address(neighbour);
                self.shared.parts.extend([(id, Progress::Rests(Some(timeout))), request]);
                Progress::Parts(2)
            }
        }
    }

    /// Moves a packet from the mark on to the line behind it.
    pub(super) fn leave_hold(&mut self, id: u32) -> Progress {
        self.shared.datagrams.packet_mut(id).place += 1;
        Progress::Ahead(self.clock.now)
    }

    /// Sends a request for the address of a neighbour. Returns its timeout, and the packet.
    fn ask_address(&mut self, neighbour: u32) -> (NewEvent, (u32, Progress)) {
        let (said, due) = self.frames.arp.request(neighbour);
        ((due, said.port(), Event::ArpTimeout(neighbour)), self.say(Said::Arp(said)))
    }

    /// Handles the timer of a request: repeats the request, or after the last one drops the packets that wait.
    pub(super) fn on_arp_timeout(&mut self, neighbour: u32) -> Departed {
        let now = self.clock.now;
        if neighbour == ALL_NEIGHBOURS {
            self.frames.arp.forget_known(now);
            return ([None; 2], None);
        }
        match self.frames.arp.on_timeout(neighbour, now) {
            TimeoutAction::Nothing => {}
            TimeoutAction::Asks => {
                let (timeout, request) = self.ask_address(neighbour);
                return ([Some(timeout), None], Some(request));
            }
            TimeoutAction::GivesUp(packets) => {
                let place = DropLocation::NoReply(self.frames.arp.router_of(neighbour));
                for packet in packets {
                    self.shared.drop_packet(self.frames, packet, place, now);
                }
            }
        }
        ([None; 2], None)
    }
}
