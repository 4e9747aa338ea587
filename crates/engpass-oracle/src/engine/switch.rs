//! Handling of cells at a switch (docs/model.md, "Switches").
//!
//! The state is in `../switch.rs`.

use std::collections::BTreeMap;

use engpass_model::discard::Discard;
use engpass_model::random::Stream;
use engpass_model::shape::PolicingAction;
use engpass_model::switch::{AtmSwitch, Switch};

use super::Engine;
use crate::cell::{Cell, LineId};
use crate::outcome::{Cause, Place};
use crate::switch::{Fate, cells, refuses};

impl Engine<'_> {
    /// Handles a cell that arrives at a switch. It reaches its output port in the same instant.
    pub(crate) fn arrives_at_switch(&mut self, now: u64, output: LineId, mut cell: Cell) {
        let datagram = self.packets[cell.packet].datagram;
        let vc = self.vcs[cell.vc].clone();
        if vc.forward
            && cell.hop == 1
            && let Some(policer) = &mut self.policers[vc.circuit]
            && !policer.conforms(now)
        {
            match policer.action {
                PolicingAction::Tag => cell.clp = true,
                PolicingAction::Discard => {
                    let place = Place::Policer { link: output.link, end: output.end };
                    *self.cells_lost.entry((output, cell.vc)).or_default() += 1;
                    return self.ledger.lose_carrier(now, place, datagram);
                }
            }
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
        let buffer = config.output_buffer.0;
        let mut found: BTreeMap<usize, u64> = BTreeMap::new();
        for there in self.line(output).of_class(class) {
            *found.entry(there.vc).or_default() += 1;
        }
        let q: u64 = found.values().sum();
        let full = q >= buffer;
        let too_low = cell.clp && config.clp_threshold.is_some_and(|level| q > cells(level, buffer));
        let refused = self.is_discarded(config, !full && !too_low, (output, class), &cell, &found);
        let cause = match (full, too_low, refused) {
            (true, _, _) => Cause::Full,
            (_, true, _) => Cause::LowPriority,
            (_, _, true) => Cause::Policy,
            _ => {
                cell.efci |= config.efci_threshold.is_some_and(|level| q > cells(level, buffer));
                self.join(now, output, cell, class);
                let held = self.line(output).held(class);
                self.longest.cells(now, output, held);
                assert!(self.line(output).held(class) <= buffer, "a queue stays within its buffer");
                return;
            }
        };
        let place = Place::Port { link: output.link, end: output.end, cause };
        *self.cells_lost.entry((output, cell.vc)).or_default() += 1;
        self.ledger.lose_carrier(now, place, datagram);
    }

    /// Returns true if the discard policy drops the cell. `found` is the number of cells in the queue by circuit direction ("Discard").
    fn is_discarded(
        &mut self,
        config: &AtmSwitch,
        room: bool,
        (output, class): (LineId, usize),
        cell: &Cell,
        found: &BTreeMap<usize, u64>,
    ) -> bool {
        let direction = (output, cell.vc);
        let fate = match self.pdus.get(&direction) {
            Some(fate) => *fate,
            None => {
                let link = &self.topology.links[output.link];
                let name =
                    format!("discard.{}.{}.{class}", link.name, self.topology.nodes[link.ends[output.end]]);
                let random = self.discard_random.entry((output, class));
                let random = random.or_insert_with(|| Stream::new(self.seed, name));
                match refuses(config, cell.vc, found, random) {
                    true => Fate::Refused,
                    false => Fate::Begun,
                }
            }
        };
        let cuts = !matches!(config.discard, Discard::Tail(_) | Discard::Epd(_));
        let (lost, then) = match fate {
            Fate::Refused => (true, Fate::Refused),
            Fate::Cut => (!room || !cell.last, Fate::Cut),
            Fate::Begun if !room && cuts => (true, Fate::Cut),
            Fate::Begun => (!room, Fate::Begun),
        };
        if cell.last {
            self.pdus.remove(&direction);
        } else {
            self.pdus.insert(direction, then);
        }
        lost
    }
}
