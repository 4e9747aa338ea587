//! Routers whose work depends on the packet: packets that their engines take, and those that a line card hands to the route processor.

use engpass_frames::{Arrival, EngineResult, Packet};

use crate::Network;
use crate::event_queue::Event;
use crate::flow_counters::DropLocation;

impl Network {
    /// Returns the index of the first engine that works on a packet at a router.
    pub(super) fn first_engine(&mut self, router: usize, packet: u32) -> usize {
        if !self.frames.switching.depends_on_packet(router as u32) {
            return router;
        }
        let arrival = self.arrival_at(router as u32, packet);
        self.frames.first_engine(&arrival)
    }

    /// Gives a packet to the first engine that works on it; `copies` of it will leave.
    pub(super) fn begin_work(&mut self, router: u32, packet: u32, copies: u64) {
        let arrival = self.arrival_at(router, packet);
        let entered = self.frames.begin_work(&arrival, copies, self.clock.now);
        self.on_engine_entered(packet, entered);
    }

    /// Continues with a packet that an engine has finished: a card may hand it to the route processor. Returns false if no engine works on it any more.
    pub(super) fn continues_work(&mut self, router: u32, packet: u32) -> bool {
        let Some(copies) = self.frames.switching.take_punted(packet) else { return false };
        let arrival = self.arrival_at(router, packet);
        let entered = self.frames.forward_with_engine(&arrival, copies, self.clock.now);
        self.on_engine_entered(packet, entered);
        true
    }

    /// Returns the arrival of a packet at a router. Finds the work on such packets if it is not known.
    fn arrival_at(&mut self, router: u32, packet: u32) -> Arrival {
        let Packet { datagram, place, ip, .. } = *self.shared.datagrams.packet(packet);
        let is_of_tree = self.shared.is_of_tree(datagram);
        let is_multicast = is_of_tree
            || self.frames.switching.is_multicast(self.shared.datagrams[datagram].flow)
            // Only injected packets to a group take the first of equal-cost paths.
            || self.shared.reports.as_ref().is_some_and(|reports| reports.takes_first(datagram));
        // The headers of a tunnel let routers fragment the packets in it.
        let never_fragmented = self.frames.tunnels.at(place).is_empty() && self.has_df_bit(datagram);
        let arrival = Arrival { router, packet, ip, place, is_multicast, never_fragmented };
        if !self.frames.switching.knows(&arrival) {
            let branches = if is_of_tree { self.shared.branches_behind(datagram) } else { Vec::new() };
            self.frames.find_work(&arrival, &branches);
        }
        arrival
    }

    /// Handles the result of giving a packet to an engine: drops the packet, or schedules the event of an engine that had no work.
    pub(super) fn on_engine_entered(&mut self, packet: u32, (engine, result): (usize, EngineResult)) {
        match result {
            EngineResult::Full => {
                self.shared.drop_packet(&self.frames, packet, DropLocation::InputFull(engine), self.clock.now)
            }
            EngineResult::Held(Some(done)) => {
                let node = self.frames.engines[engine].node;
                self.clock.events.push(done, node, Event::EngineDone(engine as u32));
            }
            EngineResult::Held(None) => {}
            EngineResult::ContinuesAt(_) => {
                unreachable!("an engine whose work depends on the packet never works ahead")
            }
        }
    }
}
