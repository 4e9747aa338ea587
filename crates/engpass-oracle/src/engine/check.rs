//! Invariants of the oracle that hold at every instant.

use std::collections::BTreeMap;

use engpass_model::switch::Switch;
use engpass_testbed::topology::NodeKind;

use super::Engine;
use crate::outcome::{Departing, Observed, Place};
use crate::resolve::kind;

impl Engine<'_> {
    /// Checks that every cell that entered a circuit direction is at one place: dropped, on a line, in a queue, or at the end.
    ///
    /// `seen` is the snapshot of this instant. The run must have no warm-up.
    ///
    /// # Errors
    /// The first circuit direction and hop with missing or surplus cells.
    pub fn balance(&self, seen: &Observed) -> Result<(), String> {
        let mut on_the_way = BTreeMap::new();
        for (line, cell) in self.agenda.cells_on_the_way() {
            *on_the_way.entry((line, cell.vc)).or_insert(0) += 1;
        }
        for (index, vc) in self.vcs.iter().enumerate() {
            let mut entered = self.emitted[index];
            for (hop, &line) in vc.lines.iter().enumerate() {
                let lost = self.cells_lost.get(&(line, index)).copied().unwrap_or(0);
                let queued = self.lines[&line].cells().filter(|cell| cell.vc == index).count();
                let key =
                    Departing { link: line.link, end: line.end, circuit: vc.circuit, forward: vc.forward };
                let left = seen.departures.get(&key).map_or(0, |departed| departed.cells);
                if entered != lost + queued as u64 + left {
                    return Err(format!(
                        "direction {index} hop {hop}: {entered} cells entered, {lost} were lost, {queued} wait, {left} left"
                    ));
                }
                entered = left - on_the_way.get(&(line, index)).copied().unwrap_or(0);
            }
            let arrived = self.arrived(index);
            if entered != arrived {
                return Err(format!(
                    "direction {index}: {entered} cells came to its end, which has {arrived}"
                ));
            }
        }
        for &(line, _) in self.cells_lost.keys() {
            let by_circuit: u64 =
                self.cells_lost.range((line, 0)..=(line, usize::MAX)).map(|(_, lost)| lost).sum();
            let here = |place: &Place| match *place {
                Place::Port { link, end, .. } | Place::Policer { link, end } => {
                    (link, end) == line.position()
                }
                _ => false,
            };
            let told = seen.losses.iter().filter(|(key, _)| here(&key.place));
            let told: u64 = told.map(|(_, lost)| lost.cells).sum();
            let told = told + self.ledger.unlisted(here);
            if told != by_circuit {
                return Err(format!(
                    "{line:?}: {by_circuit} cells were lost on its circuits, but {told} are reported"
                ));
            }
        }
        Ok(())
    }

    /// Checks that every packet that arrived at a frame line was dropped there, is there, or has left, and that no more propagate than left. Checks
    /// the same for queues in front of circuits at routers, packets that wait for an address, and fragments at the ends of tunnels.
    ///
    /// # Errors
    /// The first location with missing or surplus packets.
    pub fn frames_balance(&self, seen: &Observed) -> Result<(), String> {
        for (&line, this) in &self.frame_lines {
            let is_here = |place: &Place| match *place {
                Place::Queue { link, end, .. } => (link, end) == line.position(),
                _ => false,
            };
            let lost = seen.losses.iter().filter(|(key, _)| is_here(&key.place));
            let lost: u64 = lost.map(|(_, lost)| lost.cells).sum();
            let lost = lost + self.ledger.unlisted(is_here);
            let left = seen.frames.get(&line.position()).map_or(0, |seen| seen.frames);
            let entered = self.entered.get(&line).copied().unwrap_or(0);
            let flushed = self.flushed.get(&line).copied().unwrap_or(0);
            if entered != lost + flushed + left + this.holds() {
                let holds = this.holds();
                return Err(format!(
                    "{line:?}: {entered} came, {lost} were lost, {flushed} when it went down, {left} left, {holds} are there"
                ));
            }
            let on_the_way = self.agenda.frames_on_the_way().filter(|on| *on == line).count() as u64;
            if on_the_way > left {
                return Err(format!("{line:?}: {on_the_way} are on the way, and {left} left"));
            }
        }
        for (&vc, this) in &self.entrances {
            let (came, lost, handed, holds) = this.counts();
            if came != lost + handed + holds {
                return Err(format!(
                    "in front of direction {vc}: {came} came, {lost} were lost, {handed} were handed over, {holds} wait"
                ));
            }
        }
        self.holds_balance(seen.at)?;
        self.tunnels_balance()
    }

    /// Checks that no queue of an ATM switch port exceeds its buffer.
    ///
    /// # Errors
    /// The first queue that does.
    pub fn within_buffers(&self) -> Result<(), String> {
        for (id, line) in &self.lines {
            let link = &self.topology.links[id.link];
            let NodeKind::Switch(switch) = kind(&self.topology, link.ends[id.end]) else { continue };
            let Switch::Atm(config) = &self.testbed.switches[switch] else { continue };
            let full = (0..line.classes()).find(|&class| line.held(class) > config.output_buffer.0);
            if let Some(class) = full {
                return Err(format!("`{}`: class {class} holds {}", link.name, line.held(class)));
            }
        }
        Ok(())
    }
}
