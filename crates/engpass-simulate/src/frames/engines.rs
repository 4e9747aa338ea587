//! Routers whose work depends on the packet: packets that their engines take, and those that a line card hands to the route processor.

use engpass_frames::{Arrival, EngineResult, Frames, Packet};

use crate::clock::Clock;
use crate::event_queue::Event;
use crate::flow_counters::DropLocation;
use crate::shared_state::SharedState;

impl SharedState {
    /// Returns the index of the first engine that works on a packet at a router.
    pub(super) fn first_engine(&self, frames: &mut Frames, router: usize, packet: u32) -> usize {
        if !frames.switching.depends_on_packet(router as u32) {
            return router;
        }
        let arrival = self.arrival_at(frames, router as u32, packet);
        frames.first_engine(&arrival)
    }

    /// Returns the arrival of a packet at a router. Finds the work on such packets if it is not known.
    pub(super) fn arrival_at(&self, frames: &mut Frames, router: u32, packet: u32) -> Arrival {
        let Packet { datagram, place, ip, .. } = *self.datagrams.packet(packet);
        let is_of_tree = self.is_of_tree(datagram);
        let is_multicast = is_of_tree
            || frames.switching.is_multicast(self.datagrams[datagram].flow)
            // Only injected packets to a group take the first of equal-cost paths.
            || self.reports.as_ref().is_some_and(|reports| reports.takes_first(datagram));
        // The headers of a tunnel let routers fragment the packets in it.
        let never_fragmented = frames.tunnels.at(place).is_empty() && self.has_df_bit(datagram, frames);
        let arrival = Arrival { router, packet, ip, place, is_multicast, never_fragmented };
        if !frames.switching.knows(&arrival) {
            let branches = if is_of_tree { self.branches_behind(datagram) } else { Vec::new() };
            frames.find_work(&arrival, &branches);
        }
        arrival
    }

    /// Handles the result of giving a packet to an engine: drops the packet, or schedules the event of an engine that had no work. Returns when the engine
    /// finishes it, if the packet may continue ahead of virtual time.
    pub(super) fn on_engine_entered(
        &mut self,
        packet: u32,
        (engine, result): (usize, EngineResult),
        frames: &Frames,
        clock: &mut Clock,
    ) -> Option<u64> {
        match result {
            EngineResult::ContinuesAt(done) => return Some(done),
            EngineResult::Full => {
                self.drop_packet(frames, packet, DropLocation::InputFull(engine), clock.now);
            }
            EngineResult::Held(Some(done)) => {
                clock.events.push(done, frames.engines[engine].node, Event::EngineDone(engine as u32));
            }
            EngineResult::Held(None) => {}
        }
        None
    }
}
