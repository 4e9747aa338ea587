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
mod driver;
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
mod progress;
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
use engpass_testbed::{Testbed, Topology};

use build::{build, window_of};
use cell_ports::CellNetwork;
use clock::{ADVANCE_INTERVAL, Clock};
pub use engine_load::{EngineUse, NodeUse};
pub use engpass_ledger::{Accounts, LineUsageStats};
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
