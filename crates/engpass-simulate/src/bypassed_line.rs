//! Bypassed lines: one generator uses such a line alone, and the next port reads the generator directly. The line's use is posted at the end of the run.

use engpass_cells::{CellDropCause, CellSink, CellTrain, Channel, Inputs, PduId, VcTreatment};
use engpass_ledger::Ledger;
use engpass_model::window::Window;

use super::cell_ports::{CellNetwork, Queue};
use super::shared_state::SharedState;

/// Posts the cells of one generator on its bypassed line.
struct BypassedLine<'a> {
    ledger: &'a mut Ledger,
    window: Window,
    port: usize,
    flow: usize,
}

impl CellSink for BypassedLine<'_> {
    fn sent(&mut self, cells: CellTrain) {
        let count = cells.count_within(self.window, 0);
        let begun = self.ledger.begun(self.port, &cells, count);
        self.ledger.generated(self.flow, 0, begun);
    }

    fn lost(&mut self, _: &CellTrain, _: u64, _: CellDropCause) {
        unreachable!("the queue of a NIC is unbounded");
    }

    fn idle(&mut self, ps: u64, rounding: u64) {
        self.ledger.idle(self.port, ps, rounding);
    }

    fn policed(&mut self, _: &CellTrain, _: u64) {
        unreachable!("a NIC does not police");
    }

    fn waiting(&mut self, _: PduId, _: usize, _: u64) {}

    fn coalesce_until(&self) -> u64 {
        0
    }
}

impl CellNetwork {
    /// Posts the use of bypassed lines in the ledger at the end of the run: sends the generators' cells over them in whole trains.
    pub(super) fn post_bypassed_lines(&mut self, shared: &mut SharedState) {
        let mut rules = vec![VcTreatment::default(); shared.vcs.len()];
        let window = shared.window;
        for source in &self.sources {
            let Some((port, _)) = source.bypassed else { continue };
            let (next, place) = source.feeds;
            shared.channels[next][place].drain_generator();
            let line =
                shared.line_of(source).map(|line| (line.sent().0, line.idle(), line.line_status(window.end)));
            let ledger = &mut shared.ledger;
            if let Some((sent, (idle, rounding), doing)) = line {
                ledger.generated(source.flow, 0, sent);
                ledger.idle(port, idle, rounding);
                ledger.end_window_on(port, doing);
                continue;
            }
            // The port of the bypassed line has sent nothing so far, so its queue is still at the start.
            let Queue::Fifo(line) = &mut self.ports[port].queue else { continue };
            let mut channels = [Channel::generated(source.generator.clone())];
            for until in [window.from, Some(window.end)].into_iter().flatten() {
                let mut alone = BypassedLine { ledger, window, port, flow: source.flow };
                line.advance(until, Inputs::new(&mut channels), &mut rules, &mut alone);
                if until == window.end {
                    ledger.end_window_on(port, line.line_status(until));
                } else {
                    ledger.begin_window_on(port, line.line_status(until));
                }
            }
        }
    }
}
