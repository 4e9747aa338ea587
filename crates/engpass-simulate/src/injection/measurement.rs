//! Measurement windows of a network that runs on: outcomes of windows, and counters of lines at any time.

use engpass_frames::{FramePort, Frames};
use engpass_model::window::Window;
use engpass_outcome::FlowOutcome;
use serde::Serialize;

use super::{DeliveryReport, FOREVER, InjectedNetwork};
use crate::cell_ports::CellNetwork;
use crate::flow_counters::{FlowCounters, VcCounters};
use crate::shared_state::SharedState;
use crate::{Network, SimError, SimOutcome};

/// Kind of traffic of injected flows in an outcome.
const KIND: &str = "outside";

/// Window that contains no instant: nothing is measured.
pub(super) const CLOSED: Window = Window { from: Some(FOREVER), end: FOREVER };

/// Counters of one direction of a link while the network runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LineStats {
    /// Name of the link.
    pub link: String,
    /// Node of the transmitter.
    pub from: String,
    /// Node at the other end.
    pub to: String,
    /// Bits carried since the beginning: of frames with all framing, of cells 424 each.
    pub bits: u64,
    /// Cells or frames carried since the beginning.
    pub sent: u64,
    /// Cells or frames lost since the beginning: in the line's queue, in the policer before it, corrupted on the line, or by outages.
    pub lost: u64,
    /// True while an event has taken the line down.
    pub down: bool,
    /// Length of the queue in front of the line, in `unit`.
    pub queue: u64,
    /// Unit of `queue`: `cells`, including the one being sent, or `bytes` that wait, in a FIFO including those being sent.
    pub unit: &'static str,
}

impl InjectedNetwork {
    /// Returns the start of the open measurement window, in picoseconds, if there is one.
    pub fn window(&self) -> Option<u64> {
        self.network.shared.window.from.filter(|from| *from < FOREVER)
    }

    /// Runs up to and including `at`, in picoseconds, and begins a measurement window there. Discards a window that is open. Reports go to `each`.
    pub fn begin_window(&mut self, at: u64, each: &mut impl FnMut(DeliveryReport)) {
        self.run_until(at, each);
        let Network { frames, cells, shared, .. } = &mut self.network;
        shared.open_window(self.reached, frames);
        cells.open_window(self.reached, shared);
        if !self.topology.events.is_empty() {
            for (path, flow) in self.topology.flows.iter().zip(&mut self.network.shared.flows) {
                // Events never affect links that carry the cells of generators.
                if path.cells.is_none() {
                    flow.note_gaps(self.reached);
                }
            }
        }
        self.handled = self.network.clock.handled;
    }

    /// Runs up to and including `at`, in picoseconds, ends the measurement window and returns its outcome. A window lasts at least a picosecond, and later
    /// injections come after it. The outcome leaves out paths without traffic.
    ///
    /// # Errors
    /// [`SimError::Ledger`] if the ledger of a link does not balance.
    ///
    /// # Panics
    /// If no window is open.
    pub fn end_window(
        &mut self,
        at: u64,
        each: &mut impl FnMut(DeliveryReport),
    ) -> Result<SimOutcome, SimError> {
        let from = self.window().expect("a measurement window has begun");
        self.run_until(at.max(from + 1), each);
        let Network { frames, cells, shared, .. } = &mut self.network;
        cells.advance_all(self.reached, shared);
        shared.close_window(self.reached, frames);
        cells.end_window(self.reached, frames, shared);
        // Everything at this instant has been processed.
        self.earliest = self.reached + 1;
        let outcome = self.network.outcome(&self.testbed, &self.topology);
        self.network.shared.set_window(CLOSED);
        let mut outcome = outcome?;
        outcome.events -= self.handled;
        let mut place = 0;
        let first = self.topology.flows.len() - self.ways.len();
        outcome.flows.retain(|name, flow| {
            place += 1;
            if place > first {
                KIND.clone_into(&mut flow.kind);
            }
            place <= first || has_happened(flow) || outcome.drops.iter().any(|drop| drop.flow == *name)
        });
        outcome.instants.retain(|name, _| outcome.flows.contains_key(name));
        Ok(outcome)
    }

    /// Returns the counters of all lines up to now. Later injections come after this instant.
    pub fn seen(&mut self) -> Vec<LineStats> {
        let Network { cells, shared, hosts, .. } = &mut self.network;
        if self.inputs.front().is_none_or(|input| input.at > self.reached) {
            cells.advance_all(self.reached, shared);
            self.earliest = self.earliest.max(self.reached + 1);
        } else if let Some(before) = self.reached.checked_sub(1) {
            // Packets injected for this instant have not entered yet.
            cells.advance_all(before, shared);
        }
        shared.post_until(self.reached);
        let ports = 0..hosts.nics.len();
        let circuits: Vec<_> =
            ports.map(|port| cells.backlog_before_circuits(port, self.reached, shared)).collect();
        let network = &self.network;
        let line = |port: usize| {
            let link = &self.topology.links[port / 2];
            let (queue, unit, down) = match network.frames.port(port) {
                None if let Some(packets) = circuits[port] => (packets.bytes, "bytes", false),
                Some(line) => (line.backlog(self.reached).bytes, "bytes", line.is_down()),
                None => {
                    let line = &network.cells.ports[port];
                    (line.horizon.map_or(0, |at| line.length(at)), "cells", false)
                }
            };
            let deferred = network.shared.ledger.deferred.as_ref();
            let totals = deferred.map(|deferred| deferred.totals(port)).unwrap_or_default();
            LineStats {
                link: link.name.clone(),
                from: self.topology.nodes[link.ends[port % 2]].clone(),
                to: self.topology.nodes[link.ends[1 - port % 2]].clone(),
                bits: totals.bits,
                sent: totals.sent,
                lost: totals.lost,
                down,
                queue,
                unit,
            }
        };
        (0..network.hosts.nics.len()).map(line).collect()
    }
}

impl SharedState {
    fn set_window(&mut self, window: Window) {
        self.window = window;
        self.ledger.set_window(window);
    }

    /// Begins a measurement window at `from`. Everything at `from` must have happened.
    fn open_window(&mut self, from: u64, frames: &mut Frames) {
        self.post_until(from);
        self.set_window(Window { from: Some(from), end: FOREVER });
        self.ledger.begin_window(from);
        for counter in self.counters.iter_mut().flatten() {
            *counter = VcCounters { vc: counter.vc, ..VcCounters::default() };
        }
        self.flows.iter_mut().for_each(FlowCounters::reset_counters);
        frames.ports.iter_mut().for_each(FramePort::reset_counters);
        frames.engines.iter_mut().for_each(|engine| engine.busy.begin_window(from));
    }

    /// Ends the measurement window at `end`. Everything at `end` must have happened.
    fn close_window(&mut self, end: u64, frames: &mut Frames) {
        self.post_until(end);
        self.set_window(Window { end, ..self.window });
        self.count_open_losses();
        for line in &mut frames.ports {
            let port = line.port as usize;
            self.ledger.close_deferred_line(port, end);
            line.set_sent(self.ledger.deferred.as_ref().map_or((0, 0), |deferred| deferred.left(port)));
        }
    }
}

impl CellNetwork {
    fn open_window(&mut self, from: u64, shared: &mut SharedState) {
        for (port, line) in self.ports.iter().enumerate() {
            // Other ports begin when they are advanced to `from`.
            if line.is_advanced_to(from) {
                shared.ledger.begin_window_on(port, line.line_status(from));
            }
        }
        self.sources.iter_mut().for_each(|source| source.forget_before(from));
    }
}

/// Returns true if a flow had any traffic.
fn has_happened(flow: &FlowOutcome) -> bool {
    flow.datagrams
        .is_some_and(|counts| counts.sent + counts.received + counts.lost + counts.in_flight.unwrap_or(0) > 0)
}
