//! What happens to a cell at a switch (docs/model.md, "Switches").

use engpass_model::discard::Discard;
use engpass_model::shape::gcra::LeakyBucket;
use engpass_model::switch::Switch;
use engpass_model::time::Time;
use engpass_testbed::Topology;
use engpass_testbed::topology::CircuitPath;

use crate::cell::{Cell, LineId};
use crate::engine::Engine;
use crate::outcome::Place;

/// The policer of a circuit's forward direction, where it enters its first switch.
#[derive(Debug)]
pub(crate) struct Policer(LeakyBucket);

impl Policer {
    /// The policer of a circuit that has one and enters a switch.
    pub(crate) fn of(topology: &Topology, circuit: &CircuitPath) -> Option<Self> {
        let enters = circuit.route[0].to >= topology.hosts;
        let (increment, tolerance) = circuit.policing.filter(|_| enters)?;
        Some(Self(LeakyBucket::new(increment, tolerance)))
    }
}

impl Engine<'_> {
    /// A cell is at its output port in the instant it arrives.
    pub(crate) fn arrives_at_switch(&mut self, now: u64, output: LineId, cell: Cell) {
        let frame = self.frames[cell.frame].clone();
        let vc = self.vcs[cell.vc].clone();
        if vc.forward
            && cell.hop == 1
            && let Some(Policer(bucket)) = &mut self.policers[vc.circuit]
            && !bucket.conforms(Time(now))
        {
            let place = Place::Policer { circuit: vc.circuit };
            return self.ledger.lose_cell(now, place, frame.flow, frame.datagram);
        }
        let node = self.topology.links[output.link].ends[output.end];
        let Switch::Atm(config) = &self.testbed.switches[node - self.topology.hosts] else {
            panic!("the oracle knows ATM switches only")
        };
        let class = match self.line(output).classes() {
            1 => 0,
            // `cbr` before `ubr`.
            _ => self.topology.circuits[vc.circuit].category as usize,
        };
        let full = self.line(output).held(class) >= config.output_buffer.0;
        let discard = config.discard.clone();
        if self.is_discarded(&discard, full, output, &cell) {
            let place = Place::Port { link: output.link, end: output.end };
            return self.ledger.lose_cell(now, place, frame.flow, frame.datagram);
        }
        self.join(now, output, cell, class);
        assert!(
            self.line(output).held(class) <= config.output_buffer.0,
            "a port holds what it has places for"
        );
    }

    /// Whether the port loses the cell ("Discard").
    fn is_discarded(&mut self, discard: &Discard, full: bool, output: LineId, cell: &Cell) -> bool {
        match discard {
            Discard::Tail(_) => full,
            Discard::Ppd(_) => {
                let direction = (output, cell.vc);
                if cell.last {
                    self.cut.remove(&direction);
                } else if full {
                    self.cut.insert(direction);
                }
                full || self.cut.contains(&direction)
            }
        }
    }
}
