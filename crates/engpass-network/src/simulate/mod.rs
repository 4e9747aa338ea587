//! The `simulate` engine: every cell exact, in virtual time. `docs/model.md` is its contract.
//!
//! A [`Network`] is built from a testbed ([`build`]), run, and asked for its [`SimOutcome`]. Events exist only for hosts and
//! for the arrival of frames ([`event`]); cells move in trains when somebody needs to know ([`fabric`], [`advance`]).

mod adapt;
mod advance;
mod application;
mod arena;
mod booking;
mod build;
mod datagrams;
mod event;
mod fabric;
mod frames;
mod host;
mod losses;
mod nic;
mod outcome;
pub mod outside;
mod passed;
mod pull;
mod sending;
mod sketch;
mod source;
#[cfg(test)]
mod spoiled;
mod stored;
mod tally;
mod tap;
mod tcp;
mod timeline;
mod trees;

use engpass_model::time::{SECOND, Time};
use engpass_testbed::{Testbed, Topology};

use adapt::AdaptiveShaper;
use advance::Port;
pub use engpass_ledger::{Accounts, LineUsageStats};
use event::{Event, EventQueue};
use fabric::SharedState;
#[doc(hidden)]
pub use frames::LookaheadRule;
pub(crate) use frames::choices_are_known;
use frames::{Frames, Upcoming};
use host::{Cpu, Process, Socket};
use nic::Nic;
pub use outcome::{
    Carried, Direction, Drop, Flow, LinkUse, Outage, Receptions, SimOutcome, TcpCounts, VcCount,
};
use outside::InjectedSenders;
use pull::{Ring, Worklist};
use source::Source;
pub use tap::{Arp, Capture, Cell, Content, Head, Outer, Packet, Passing, Pdu, Unit, captured};
use tcp::{Counted, Endpoint, SegmentCost};
#[doc(hidden)]
pub use timeline::watched;
pub use timeline::{MOST_EVENTS, timeline};

/// Why a run has no outcome.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SimError {
    /// It was interrupted; nothing of it is kept.
    Interrupted,
    /// The testbed has something that this engine does not carry: what, in a sentence.
    Unsupported(String),
    /// The books of a link do not balance, so that the outcome would be wrong: which one, what and by how much. It is our bug.
    Ledger(String),
}

impl From<engpass_ledger::Unbalanced> for SimError {
    fn from(engpass_ledger::Unbalanced(what): engpass_ledger::Unbalanced) -> Self {
        Self::Ledger(what)
    }
}

/// Somebody outside who looks at a run now and then: every few thousand events, and every 10 ms of virtual time.
///
/// A closure that says whether it ends is one.
pub trait Watch {
    /// Whether the run ends here, with [`SimError::Interrupted`].
    fn interrupted(&self) -> bool;

    /// The run has come to this instant, in picoseconds.
    fn reached(&self, _ps: u64) {}
}

impl<F: Fn() -> bool> Watch for F {
    fn interrupted(&self) -> bool {
        self()
    }
}

/// A network in virtual time: built, running, or finished.
pub struct Network {
    now: u64,
    end: u64,
    /// When the ports that nobody asked for are advanced next, so that no channel grows without bound.
    next_sweep: u64,
    events: EventQueue,
    ports: Vec<Port>,
    rings: Vec<Ring>,
    worklist: Worklist,
    fabric: SharedState,
    frames: Frames,
    processes: Vec<Process>,
    /// Two for every connection.
    endpoints: Vec<Endpoint>,
    /// What they had counted when the warm-up was over, if there was one.
    counted: Vec<Counted>,
    /// What their hosts pay.
    costs: Vec<SegmentCost>,
    /// By endpoint, segments to it that its host's CPU has to take in, once there were any.
    inputs: Vec<u32>,
    cpus: Vec<Cpu>,
    nics: Vec<Nic>,
    /// By sender, its place in the order of the file, where there are bonds.
    turns: Vec<u32>,
    /// Senders whose packets come from outside, and what of them waits.
    outsiders: InjectedSenders,
    groups: outside::Groups,
    /// Shapers that adapt.
    adapting: Vec<AdaptiveShaper>,
    /// By flow, of those of datagrams that come from processes; none behind the last of these.
    sockets: Vec<Option<Box<Socket>>>,
    sources: Vec<Source>,
    /// What events of the file change next, by event.
    changes: Vec<Upcoming>,
    /// Events handled, and at how many somebody is asked whether to go on.
    handled: u64,
    next_question: u64,
    /// When endpoints are asked next for what they do not need.
    next_rest: u64,
    /// Nothing later is to happen yet.
    until: u64,
}

/// Events between two questions whether to go on.
const QUESTIONS: u64 = 4096;

/// Endpoints are asked at most this often for what they do not need, in picoseconds of virtual time.
const REST: u64 = SECOND;

/// Every port is advanced at least this often, in picoseconds of virtual time.
const SWEEP: u64 = 10_000_000_000;

/// Simulate one run.
///
/// # Errors
/// [`SimError`]: a testbed that is not carried, `watch` that ended it, books that do not balance.
pub fn simulate(
    testbed: &Testbed,
    topology: &Topology,
    seed: u64,
    watch: &dyn Watch,
) -> Result<SimOutcome, SimError> {
    let mut network = Network::new(testbed, topology, seed)?;
    network.run(watch)?;
    network.outcome(testbed, topology)
}

impl Network {
    /// Run to the end of the testbed's duration.
    pub fn run(&mut self, watch: &dyn Watch) -> Result<(), SimError> {
        if let Some(from) = self.fabric.window.from {
            self.run_until(from, watch)?;
            self.begin_window(from);
        }
        self.run_until(self.end, watch)?;
        self.finish();
        Ok(())
    }

    /// The warm-up is over, and all that happens at its last instant has happened.
    fn begin_window(&mut self, from: u64) {
        self.counted = self.endpoints.iter().map(|endpoint| endpoint.connection.stats().into()).collect();
        self.open_books(from);
    }

    /// The run is over.
    fn finish(&mut self) {
        self.now = self.end;
        self.advance_all(self.end);
        self.note_all_lines();
        self.fabric.count_open_losses();
        self.stop_lines();
    }

    /// Handle everything that happens at or before `until`.
    fn run_until(&mut self, until: u64, watch: &dyn Watch) -> Result<(), SimError> {
        self.until = until;
        loop {
            let limit = self.next_sweep.min(until);
            if let Some((at, event)) = self.events.pop_until(limit) {
                self.now = at;
                self.handled += 1;
                match event {
                    // What nearly all are.
                    Event::Arrive(port) => self.frame_lands(port, limit),
                    Event::Wake(endpoint) => self.endpoint_wake(endpoint),
                    other => self.handle(other),
                }
                if self.handled < self.next_question {
                    continue;
                }
                self.next_question = self.handled + QUESTIONS;
                self.rest(self.now);
            } else if limit < until {
                self.sweep();
            } else {
                break;
            }
            // Where only generators send there are no events, and where there are no cells nothing is swept.
            let swept = if self.next_sweep == u64::MAX { 0 } else { self.next_sweep.saturating_sub(SWEEP) };
            watch.reached(self.now.max(swept));
            if watch.interrupted() {
                return Err(SimError::Interrupted);
            }
        }
        self.rest(until);
        Ok(())
    }

    #[inline(never)]
    fn handle(&mut self, event: Event) {
        match event {
            Event::Arrive(port) => self.frame_lands(port, self.until.min(self.next_sweep)),
            Event::Forward(router) => self.router_done(router),
            Event::Icmp(number) => self.send_icmp(number),
            Event::GiveUp(tunnel) => self.give_up(tunnel),
            Event::Arp(neighbour) => self.arp_overdue(neighbour),
            Event::Serve(port) => self.serve_port(port),
            Event::Frame(frame) | Event::Land(frame) => self.frame_wake(frame),
            Event::CpuDone(host) => self.cpu_done(host),
            Event::Ready(process) => self.process_ready(process),
            Event::Wake(endpoint) => self.endpoint_wake(endpoint),
            Event::Answer(shaper, marked) => self.answered(shaper, marked),
            Event::Begin(shaper) => self.begin_turn(shaper),
            Event::Room(nic) => self.serve_waiting(nic),
            Event::Hand(sender) => self.hand_over(sender),
            Event::Lose(packet) => self.lose_now(packet),
            Event::Feed(entry) => self.feed_circuit(entry),
            Event::Change(event) => self.change_line(event),
            Event::Look(bond) => self.look_at_bond(bond),
        }
    }

    /// Give the memory back that many packets have taken, if none is on its way, and what connections do not need that send nothing.
    fn rest(&mut self, now: u64) {
        self.events.rest();
        if now >= self.next_rest {
            self.next_rest = now.saturating_add(REST);
            self.endpoints.iter_mut().for_each(|endpoint| endpoint.rest(Time(now)));
        }
        if self.fabric.datagrams.rest() {
            self.fabric.losses = Vec::new();
            self.fabric.ledger.forget_packets();
        }
    }

    /// Advance every port to the next multiple of [`SWEEP`]. What happens at that very instant is still open.
    fn sweep(&mut self) {
        self.advance_all(self.next_sweep - 1);
        self.next_sweep += SWEEP;
    }

    /// Keep no books, for a benchmark of what they cost. The outcome has none then.
    #[doc(hidden)]
    pub fn keep_no_books(&mut self) {
        self.fabric.ledger.on = false;
        self.frames.watch(&self.fabric.ledger);
    }

    /// The events so far, for a benchmark of queues: those that were entered, as keys in the order in which they are to be taken, and the greatest
    /// number where one was taken.
    #[cfg(feature = "event-log")]
    #[doc(hidden)]
    pub fn event_log(&self) -> &[u128] {
        &self.events.log
    }

    /// Events handled so far.
    pub fn events_handled(&self) -> u64 {
        self.handled
    }
}
