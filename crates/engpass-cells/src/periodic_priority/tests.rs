//! Tests that counting at a port with periodic priority cells equals choosing slot by slot.

use engpass_model::discard::tail_drop::Tail;
use engpass_model::line::LineStatus;
use proptest::collection::vec;
use proptest::prelude::*;

use super::super::{CellAdmission, CellDropCause, CellThresholds, Generator, PduId, Shaper};
use super::*;

/// Output of a port as a host sees it, and its idle time.
#[derive(Debug, Default, PartialEq)]
struct Seen {
    /// For class 1 and for the generator: number of sent cells, departure of the last one, number of lost cells.
    cells: [(u64, u64, u64); 2],
    ends: Vec<(PduId, u64)>,
    idle: (u64, u64),
    doing: Vec<LineStatus>,
}

impl CellSink for Seen {
    fn sent(&mut self, cells: CellTrain) {
        let (count, last, _) = &mut self.cells[cells.vc as usize];
        (*count, *last) = (*count + cells.count, cells.last);
        if !cells.are_generated() && cells.ends_pdu() {
            self.ends.push((cells.pdu, cells.last));
        }
    }

    fn lost(&mut self, cells: &CellTrain, _: u64, _: CellDropCause) {
        self.cells[cells.vc as usize].2 += cells.count;
    }

    fn idle(&mut self, ps: u64, rounding: u64) {
        self.idle = (self.idle.0 + ps, self.idle.1 + rounding);
    }

    fn policed(&mut self, _: &CellTrain, _: u64) {}
    fn waiting(&mut self, _: PduId, _: usize, _: u64) {}

    fn coalesce_until(&self) -> u64 {
        u64::MAX
    }
}

/// A random port with its generator and the PDUs of class 1.
#[derive(Clone, Debug)]
struct Port {
    /// Slot, and spacing of the generator's cells and of the others.
    slot: Pace,
    high: Pace,
    low: Pace,
    capacity: u64,
    phase: u64,
    /// For every PDU: its cells, and the time before it in slots.
    pdus: Vec<(u32, u64)>,
    looks: u64,
}

/// Returns a pace of whole picoseconds and a fraction.
fn pace(whole: u64, (part, parts): (u64, u64)) -> Pace {
    Pace::new(u128::from(whole * parts + part % parts), u128::from(parts))
}

/// Slots are short, so that instants often lie a few picoseconds apart.
fn port() -> impl Strategy<Value = Port> {
    let fraction = || (0u64..128, 1u64..128);
    let slot = (prop_oneof![20u64..200, 200u64..5000], fraction());
    // In thousandths of a slot: by how much the generator's spacing exceeds a slot, and by how much that of class 1 exceeds the generator's.
    let wider = (prop_oneof![1u64..600, 600u64..3000], prop_oneof![1000u64..8000, 1000u64..70_000]);
    let pdus = vec((1u32..300, prop_oneof![2 => Just(0u64), 1 => 0u64..200]), 1..8);
    (slot, wider, (fraction(), fraction()), prop_oneof![2u64..8, 8u64..400], any::<u64>(), pdus, 1u64..4)
        .prop_map(|((slot, part), (more, most), (high_part, low_part), capacity, phase, pdus, looks)| {
            let high = slot + 2 + slot * more / 1000;
            let low = high + slot * most / 1000;
            let (slot, high, low) = (pace(slot, part), pace(high, high_part), pace(low, low_part));
            Port { slot, high, low, capacity, phase: phase % high.at_least(), pdus, looks }
        })
}

/// Returns the output of the port. The generator's cells are drawn if `drawn` is set, else queued.
fn seen(port: &Port, drawn: bool) -> Seen {
    let Port { slot, high, low, capacity, phase, ref pdus, looks } = *port;
    let admission = || {
        let bounds = CellThresholds { capacity, clp: None, efci: None };
        CellAdmission::new(bounds, Box::new(Tail::default()))
    };
    let mut queue = StrictPriority::new(slot, vec![admission(), admission()]);
    if drawn {
        queue.set_periodic_class(0, high);
    }
    let mut trains = Channel::new(low);
    let mut shaper = Shaper::new(0, low);
    let mut now = slot.after(3);
    for (pdu, &(cells, before)) in pdus.iter().enumerate() {
        now = shaper.next().max(now + slot.after(before));
        trains.push(shaper.emit(now, pdu as PduId, cells));
    }
    let end = trains.last();
    let generator = Generator::constant((0, 1), high, slot.after(2) + phase, end);
    let mut channels = [Channel::generated(generator), trains];
    let mut rules = [VcTreatment { class: 1, ..VcTreatment::default() }, VcTreatment::default()];
    let mut seen = Seen::default();
    for look in 1..=looks + 1 {
        // The last step reaches beyond the end of all transmissions.
        let until = if look > looks { end + slot.after(2 * capacity + 10) } else { end * look / looks };
        queue.advance(until, Inputs::new(&mut channels), &mut rules, &mut seen);
        seen.doing.push(queue.line_status(until));
    }
    seen
}

proptest! {
    #[test]
    fn periodic_priority_counting_equals_slot_by_slot(port in port()) {
        prop_assert_eq!(seen(&port, true), seen(&port, false));
    }
}
