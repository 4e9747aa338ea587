//! Routers whose work depends on the packet: packets that their engines take, and those that a line card hands to the route processor.

use engpass_frames::{Arrival, EngineResult, ForwardingEngine, Frames, Packet, Step};

use super::hop::Links;
use crate::event_queue::Event;
use crate::flow_counters::DropLocation;
use crate::progress::{Departed, Progress};
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
}

impl Links<'_> {
    /// Handles the result of giving a packet to an engine: drops the packet, or returns the event of an engine that had no work.
    fn on_engine_entered(&mut self, packet: u32, (engine, result): (usize, EngineResult)) -> Progress {
        match result {
            EngineResult::ContinuesAt(done) => return Progress::Ahead(done),
            EngineResult::Full => {
                let (place, now) = (DropLocation::InputFull(engine), self.clock.now);
                self.shared.drop_packet(self.frames, packet, place, now);
            }
            EngineResult::Held(Some(done)) => {
                let event = (done, self.frames.engines[engine].node, Event::EngineDone(engine as u32));
                return Progress::Rests(Some(event));
            }
            EngineResult::Held(None) => {}
        }
        Progress::Rests(None)
    }

    /// Puts a packet into the engine of a router; `copies` of it will leave. The packet may continue ahead of virtual time, or an event follows.
    #[inline(never)]
    pub(super) fn enter_engine(&mut self, step: Step, packet: u32, copies: u64) -> Progress {
        let Self { frames, shared, clock } = self;
        let entered = if frames.switching.depends_on_packet(step.router) {
            let arrival = shared.arrival_at(frames, step.router, packet);
            frames.begin_work(&arrival, copies, clock.now)
        } else {
            let ip = shared.datagrams.packet(packet).ip;
            (step.router as usize, frames.process(step, (packet, ip), copies, (clock.now, clock.end)))
        };
        self.on_engine_entered(packet, entered)
    }

    /// Handles a packet that has come to a switch or router, or that a router has made: it continues at once, or after an engine of the router.
    pub(crate) fn arrive(&mut self, packet: u32) -> Progress {
        let step = self.frames.steps[self.shared.datagrams.packet(packet).place as usize];
        let engine = self.frames.engines.get(step.router as usize);
        if !step.takes_time || !step.is_line() && engine.is_none_or(ForwardingEngine::takes_no_time) {
            return Progress::Ahead(self.clock.now);
        }
        self.enter_engine(step, packet, 1)
    }

    /// Takes the packet that an engine of a router has finished. Also returns the event of the next packet.
    pub(super) fn finish_packet(&mut self, number: u32) -> Departed {
        let Self { frames, shared, clock } = self;
        let router = frames.router_of_engine(number);
        let engine = &mut frames.engines[number as usize];
        let (packet, next) = engine.finish(|packet| shared.datagrams.packet(packet).ip);
        let next = next.map(|at| (at, engine.node, Event::EngineDone(number)));
        if router != number
            && let Some(copies) = frames.switching.take_punted(packet)
        {
            // A line card hands the packet to the route processor.
            let arrival = shared.arrival_at(frames, router, packet);
            let entered = frames.forward_with_engine(&arrival, copies, clock.now);
            return ([next, None], Some((packet, self.on_engine_entered(packet, entered))));
        }
        ([next, None], Some((packet, Progress::Ahead(clock.now))))
    }
}
