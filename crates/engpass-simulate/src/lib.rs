//! The `simulate` engine: exact for every frame and cell, in virtual time. `docs/model.md` is its contract. Pure: no clock, no socket, no file.
//!
//! A [`Network`] is built from a testbed ([`build`]), run, and then asked for its [`SimOutcome`]. Hosts, packets at ports and routers, adaptive shapers and
//! changes of the testbed have events ([`event_queue`]). Cells have none: they move in trains, and only when a result depends on them ([`shared_state`],
//! [`cell_ports`]). An event checks whether the last cell of a packet has arrived.

mod adaptive_shaper;
mod build;
mod bypassed_line;
mod cell_ports;
mod clock;
mod datagrams;
mod deferred;
mod delays;
mod drops;
mod endpoint;
mod engine_load;
mod event_queue;
mod flow_counters;
mod frames;
mod histogram;
mod host;
pub mod injection;
#[cfg(test)]
mod ledger_faults;
mod members;
mod memory;
mod nic;
mod outcome;
mod packet_store;
mod pull;
mod queueing;
mod ready_packet;
mod shared_state;
mod slab;
mod source;
mod stored;
mod tap;
mod tcp;
mod tcp_application;
mod timeline;
mod trace;
mod trees;
mod unsupported;

#[doc(hidden)]
pub use engpass_frames::LookaheadRule;
use engpass_frames::{DecisionMode, Frames, TooManyPaths};
use engpass_model::time::{SECOND, Time};
use engpass_testbed::{Testbed, Topology};

use build::{build, window_of};
use cell_ports::CellNetwork;
use clock::{ADVANCE_INTERVAL, Clock};
pub use engine_load::{EngineUse, NodeUse};
pub use engpass_ledger::{Accounts, LineUsageStats};
use event_queue::Event;
use frames::{PduContent, await_change, next_timeout};
use host::Hosts;
use injection::InjectedSenders;
pub use memory::{Memory, memory};
pub use outcome::{
    Carried, Direction, Drop, FlowInstants, LinkUse, QueueUse, Receptions, SimOutcome, VcCount,
};
use shared_state::SharedState;
pub use tap::{
    Arp, CaptureRecord, CaptureSink, Cell, Content, Head, Igmp, Outer, Packet, Pdu, Unit, captured,
};
pub use timeline::timeline;
#[doc(hidden)]
pub use timeline::{watched, watched_network};
pub use trace::MOST_EVENTS;
pub(crate) use unsupported::unsupported_group;
pub use unsupported::{Engine, SupportedTestbed, left_out, modelled, unmodelled};

/// Why a run has no outcome.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SimError {
    /// The run was interrupted; it leaves no result.
    Interrupted,
    /// The testbed needs something that this engine does not support; the text is a sentence.
    Unsupported(String),
    /// The ledger of a link does not balance, so the outcome would be wrong. The text names the link, the rule and the difference. This is a bug of the engine,
    /// never of a testbed.
    Ledger(String),
}

impl From<engpass_ledger::Unbalanced> for SimError {
    fn from(engpass_ledger::Unbalanced(what): engpass_ledger::Unbalanced) -> Self {
        Self::Ledger(what)
    }
}

impl From<TooManyPaths> for SimError {
    fn from(what: TooManyPaths) -> Self {
        Self::Unsupported(what.to_string())
    }
}

/// Progress and cancellation callback, called every few thousand events and every 10 ms of virtual time.
///
/// A closure that returns whether to stop implements it.
pub trait RunControl {
    /// Returns true to end the run with [`SimError::Interrupted`].
    fn interrupted(&self) -> bool;

    /// Reports the virtual time that the run has reached, in picoseconds.
    fn reached(&self, _ps: u64) {}
}

impl<F: Fn() -> bool> RunControl for F {
    fn interrupted(&self) -> bool {
        self()
    }
}

/// A network in virtual time: built, running, or finished.
pub struct Network {
    clock: Clock,
    hosts: Hosts,
    frames: Frames,
    cells: CellNetwork,
    shared: SharedState,
    /// Senders of injected packets, with the packets that wait at NICs.
    injected: InjectedSenders,
}

/// Simulates one run.
///
/// # Errors
/// [`SimError`]: the testbed is not supported, `watch` ended the run, or the ledger does not balance.
pub fn simulate(
    testbed: &Testbed,
    topology: &Topology,
    seed: u64,
    watch: &dyn RunControl,
) -> Result<SimOutcome, SimError> {
    let mut network = Network::new(testbed, topology, seed)?;
    network.run(watch)?;
    network.outcome(testbed, topology)
}

impl Network {
    /// Builds the network of this testbed at time zero, for one seed. Fails if the testbed needs something that this engine does not support.
    pub fn new(testbed: &Testbed, topology: &Topology, seed: u64) -> Result<Self, SimError> {
        if let Some(why) =
            unmodelled(testbed).or_else(|| unsupported_group(testbed, topology, Engine::Simulate))
        {
            return Err(SimError::Unsupported(why));
        }
        build(testbed, topology, seed, window_of(testbed), (false, DecisionMode::Unknown, None))
    }

    /// Builds the network with one rule of the lookahead disabled, for a test that the rule is needed.
    #[doc(hidden)]
    pub fn with_rule_disabled(
        testbed: &Testbed,
        topology: &Topology,
        seed: u64,
        rule: LookaheadRule,
    ) -> Result<Self, SimError> {
        build(testbed, topology, seed, window_of(testbed), (false, DecisionMode::Unknown, Some(rule)))
    }

    /// Builds the network so that policies of routers decide for each packet, even where the choice is known in advance, for a test that this changes nothing.
    #[doc(hidden)]
    pub fn with_all_decisions(testbed: &Testbed, topology: &Topology, seed: u64) -> Result<Self, SimError> {
        build(testbed, topology, seed, window_of(testbed), (false, DecisionMode::Routers, None))
    }

    /// Returns the number of ICMP messages made so far, for tests.
    #[doc(hidden)]
    pub fn messages(&self) -> u32 {
        self.frames.icmp.made()
    }

    /// Returns the number of decisions of routers' policies so far, for tests.
    #[doc(hidden)]
    pub fn decisions(&self) -> u64 {
        self.frames.choices.decided
    }

    /// Runs to the end of the testbed's duration.
    pub fn run(&mut self, watch: &dyn RunControl) -> Result<(), SimError> {
        self.run_to(self.clock.end, watch)?;
        self.finish();
        Ok(())
    }

    /// Runs up to and including `at`, and begins the measurement window on the way.
    fn run_to(&mut self, at: u64, watch: &dyn RunControl) -> Result<(), SimError> {
        let from = self.shared.window.from.filter(|from| self.clock.until < *from && *from <= at);
        if let Some(from) = from {
            self.run_until(from, watch)?;
            self.begin_window(from);
        }
        self.run_until(at, watch)
    }

    /// Starts a capture at these transmitters. Nothing may have happened yet.
    fn tap(&mut self, testbed: &Testbed, topology: &Topology, ports: &[usize]) {
        if ports.iter().any(|port| self.frames.port(*port).is_none()) {
            self.cells.emit_exact_trains();
        }
        self.shared.trace = Some(Box::new(tap::trace_of(self, testbed, topology, ports)));
    }

    /// Returns the outcome of the run, which must have ended.
    ///
    /// # Errors
    /// [`SimError::Ledger`] if the ledger of a link does not balance.
    pub fn outcome(&self, testbed: &Testbed, topology: &Topology) -> Result<SimOutcome, SimError> {
        let (flows, instants, drops) = outcome::flows(self, testbed, topology);
        let links = outcome::links(self, topology)?;
        let nodes = engine_load::node_uses(self, testbed);
        Ok(SimOutcome { flows, instants, links, nodes, drops, events: self.clock.handled })
    }

    /// Begins the measurement window, after everything at the last instant of the warm-up has happened.
    fn begin_window(&mut self, from: u64) {
        self.hosts.warmup_counts =
            self.hosts.endpoints.iter().map(|endpoint| endpoint.connection.stats().into()).collect();
        self.shared.begin_measurement(&mut self.frames, from);
        self.cells.begin_window_on_circuits(from, &mut self.shared);
        self.hosts.cpus.iter_mut().for_each(|cpu| cpu.busy.begin_window(from));
        self.frames.engines.iter_mut().for_each(|engine| engine.busy.begin_window(from));
    }

    /// Ends the run: advances all ports to its end, and completes the counts and the ledger.
    fn finish(&mut self) {
        self.clock.now = self.clock.end;
        self.cells.advance_all(self.clock.end, &mut self.shared);
        self.shared.record_packets_in_flight(&self.frames);
        self.shared.count_open_losses();
        self.cells.end_measurement(&self.frames, &mut self.shared);
    }

    /// Handles everything that happens at or before `until`.
    fn run_until(&mut self, until: u64, watch: &dyn RunControl) -> Result<(), SimError> {
        self.clock.until = until;
        loop {
            let limit = self.clock.next_advance.min(until);
            if let Some((at, event)) = self.clock.events.pop_until(limit) {
                self.clock.now = at;
                self.clock.handled += 1;
                match event {
                    // Nearly all events are of these kinds.
                    Event::FrameArrival(port) => self.on_frame_arrival(port, limit),
                    Event::EndpointWake(endpoint) => {
                        let next = self.hosts.on_endpoint_wake(endpoint as usize, &mut self.shared, at);
                        self.act(next);
                    }
                    other => self.handle_event(other),
                }
                if !self.clock.is_callback_due() {
                    continue;
                }
                self.release_unused_memory(self.clock.now);
            } else if limit < until {
                self.advance_periodically();
            } else {
                break;
            }
            watch.reached(self.clock.reached());
            if watch.interrupted() {
                return Err(SimError::Interrupted);
            }
        }
        self.release_unused_memory(until);
        Ok(())
    }

    #[inline(never)]
    fn handle_event(&mut self, event: Event) {
        let now = self.clock.now;
        match event {
            Event::FrameArrival(port) => {
                self.on_frame_arrival(port, self.clock.until.min(self.clock.next_advance))
            }
            Event::EngineDone(router) => {
                let departed = self.links().finish_packet(router);
                self.depart(departed);
            }
            Event::IcmpReady(number) => {
                let packet = self.frames.icmp.release(number);
                self.receive_or_forward(packet);
            }
            Event::ReassemblyTimeout(tunnel) => {
                self.shared.on_reassembly_timeout(tunnel, now, &mut self.frames);
                self.clock.schedule(next_timeout(tunnel, &mut self.frames));
            }
            Event::ArpTimeout(neighbour) => {
                let parts = self.links().on_arp_timeout(neighbour);
                self.proceed_in_parts(parts, true);
            }
            Event::IgmpTimer(timer) => {
                let parts = self.links().on_igmp_timer(timer);
                self.proceed_in_parts(parts, true);
            }
            Event::KeepaliveTimer(end) => {
                let parts = self.links().on_keepalive_timer(end);
                self.proceed_in_parts(parts, true);
            }
            Event::Dequeue(port) => {
                let departed = self.links().dequeue(port);
                self.depart(departed);
            }
            Event::PduDueAtHost(pdu) | Event::PduDueAtRouter(pdu) => {
                let (content, next) = self.cells.on_pdu_may_arrive(pdu, now, &mut self.shared);
                self.clock.schedule(next);
                match content {
                    Some(PduContent::Packet(packet)) => self.receive_or_forward(packet),
                    Some(PduContent::Datagram(datagram)) => self.receive(datagram),
                    None => return,
                }
                self.shared.release_cells(pdu, 1);
            }
            Event::CpuDone(host) => self.on_cpu_done(host),
            Event::ProcessWake(process) => self.on_process_wake(process),
            Event::EndpointWake(endpoint) => {
                let next = self.hosts.on_endpoint_wake(endpoint as usize, &mut self.shared, now);
                self.act(next);
            }
            Event::ShaperFeedback(shaper, marked) => self.cells.shapers[shaper as usize].rate.answer(marked),
            Event::NextPdu(shaper) => {
                self.clock.schedule_all(self.cells.start_next_pdu(shaper, now, &mut self.shared));
            }
            Event::NicSpace(nic) => self.serve_waiting(nic),
            Event::HandOver(process) => {
                let process = process as usize;
                self.hand_over(process, self.hosts.processes[process].ready_packet());
            }
            Event::DeferredDrop(packet) => {
                let message = self.links().on_deferred_drop(packet);
                self.clock.schedule(message);
            }
            Event::CircuitFree(entry) => {
                self.clock.schedule_all(self.cells.feed_circuit(entry, now, &self.frames, &mut self.shared));
            }
            Event::LineChange(event) => {
                let monitors = self.links().change_line(event);
                await_change(event as usize, &mut self.frames, &mut self.clock);
                for (bond, at) in monitors {
                    self.clock.events.push(at, 0, Event::BondMonitor(bond));
                }
            }
            Event::BondMonitor(bond) => {
                if let Some(again) = self.frames.check_carriers(bond, now) {
                    self.clock.events.push(again, 0, Event::BondMonitor(bond));
                }
            }
        }
    }

    /// Releases memory: of events and packets once none is pending or in flight, and of connections that need it no longer.
    fn release_unused_memory(&mut self, now: u64) {
        self.clock.events.release_unused_memory();
        if now >= self.hosts.next_release {
            self.hosts.next_release = now.saturating_add(SECOND);
            self.hosts.endpoints.iter_mut().for_each(|endpoint| endpoint.release_unused_memory(Time(now)));
        }
        if self.shared.datagrams.release_unused_memory() {
            self.shared.losses = Vec::new();
            self.shared.ledger.forget_packets();
        }
    }

    /// Advances all cell ports to just before the next multiple of [`ADVANCE_INTERVAL`]: events at that very instant are still to be handled.
    fn advance_periodically(&mut self) {
        self.cells.advance_all(self.clock.next_advance - 1, &mut self.shared);
        self.clock.next_advance += ADVANCE_INTERVAL;
    }

    /// Disables the ledger, for a benchmark of its cost. The outcome then has no accounts.
    #[doc(hidden)]
    pub fn disable_ledger(&mut self) {
        self.shared.ledger.on = false;
        self.frames.update_posting(|port| self.shared.ledger.needs_every_transmission(port));
    }

    /// Test switch: disables lookahead, so that every packet has an event at every hop. The outcome must not change.
    #[doc(hidden)]
    pub fn disable_lookahead(&mut self) {
        self.frames.disable_lookahead();
    }

    /// Returns a log of the event queue, for benchmarks of queues: the key of each event entered, in order, and `u128::MAX` wherever one was taken out.
    #[cfg(feature = "event-log")]
    #[doc(hidden)]
    pub fn event_log(&self) -> &[u128] {
        &self.clock.events.log
    }

    /// Returns the number of events handled so far.
    pub fn events_handled(&self) -> u64 {
        self.clock.handled
    }
}
