//! Tests that taking many cells of a train at once equals taking them cell by cell.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use engpass_model::discard::tail_drop::Tail;

use super::*;
use crate::{CellThresholds, PduId, TrainPiece, generated_by, one_by_one};

/// Returns the slot of OC-3c.
fn slot() -> Pace {
    Pace::of_bits(424, 149_760_000)
}

/// Output of a queue.
#[derive(Debug, Default, PartialEq)]
struct Seen {
    /// By circuit: departures of its cells.
    sent: Vec<Vec<u64>>,
    /// PDUs whose last cell has left, with its departure.
    ends: Vec<(PduId, u64)>,
    /// By circuit: number of lost cells, and instant of the first loss.
    lost: Vec<(u64, u64)>,
    /// Time without a cell on the line.
    idle: u64,
}

/// Records the output of a queue and passes cells of circuit 0 on to the next one.
struct Behind<'a> {
    seen: Seen,
    next: Option<&'a mut Channel>,
    /// All circuits take one path.
    mixed: bool,
}

const DELAY: u64 = 5_000_000;

impl Behind<'_> {
    fn see(&mut self, cells: &CellTrain) {
        let sent = &mut self.seen.sent;
        sent.resize_with(sent.len().max(cells.vc as usize + 1), Vec::new);
        sent[cells.vc as usize].extend((0..cells.count).map(|k| cells.nth(k)));
    }

    fn ended(&mut self, cells: &CellTrain) {
        if !cells.are_generated() && cells.ends_pdu() {
            self.seen.ends.push((cells.pdu, cells.last));
        }
    }
}

impl CellSink for Behind<'_> {
    fn sent(&mut self, cells: CellTrain) {
        self.see(&cells);
        self.ended(&cells);
        if let Some(next) = self.next.as_mut().filter(|_| cells.vc == 0) {
            next.push(cells.shifted(DELAY));
        }
    }

    fn sent_along(&mut self, _: usize, trains: &mut [CellTrain], pieces: &[TrainPiece]) {
        let mut taken = trains.to_vec();
        for cells in one_by_one(&mut taken, pieces) {
            self.see(&cells);
        }
        trains.iter().filter(|train| train.count > 0).for_each(|train| self.ended(train));
        if let Some(next) = self.next.as_mut().filter(|_| trains.iter().any(|train| train.vc == 0)) {
            assert!(
                trains.iter().all(|train| train.vc == 0),
                "all trains of a batch go to the same next hop"
            );
            next.push_pieces(trains, pieces, DELAY);
        }
    }

    fn path_number(&self, vc: VcId) -> usize {
        if self.mixed { 1 } else { 1 + vc as usize }
    }

    fn lost(&mut self, cells: &CellTrain, at: u64, _: CellDropCause) {
        let lost = &mut self.seen.lost;
        lost.resize(lost.len().max(cells.vc as usize + 1), (0, u64::MAX));
        let (count, first) = lost[cells.vc as usize];
        lost[cells.vc as usize] = (count + cells.count, first.min(at));
    }

    fn idle(&mut self, ps: u64, _: u64) {
        self.seen.idle += ps;
    }

    fn policed(&mut self, _: &CellTrain, _: u64) {}
    fn waiting(&mut self, _: PduId, _: usize, _: u64) {}

    fn coalesce_until(&self) -> u64 {
        0
    }
}

/// Trains of one circuit. `pace` is relative to a slot. Each train has a number of cells, the time before it in thousandths of a slot, and extra
/// picoseconds. Trains are PDUs, or all of one generator.
#[derive(Clone, Debug)]
struct Stream {
    pace: (u64, u64),
    generated: bool,
    trains: Vec<(u64, u64, u64)>,
}

impl Stream {
    fn fill(&self, vc: VcId, channel: &mut Channel) {
        let pace = slot().stretched(self.pace.0, self.pace.1);
        let mut base = 0;
        for (index, &(count, before, more)) in self.trains.iter().enumerate() {
            base += before * slot().after(1) / 1000 + more;
            let last = base + pace.after(count - 1);
            let (pdu, of) = match self.generated {
                true => (generated_by(vc as usize), 1),
                false => (1000 * vc + index as u32, count as u16),
            };
            channel.push(CellTrain { base, pace, count, last, vc, pdu, of, ..CellTrain::none(pace) });
            base += pace.after(count);
        }
    }
}

fn stream() -> impl Strategy<Value = Stream> {
    let half = prop_oneof![3 => Just((1, 2)), 2 => Just((1, 1)), 1 => Just((1, 4)), 1 => Just((1944, 1625)), 1 => Just((2, 1))];
    let pace = prop_oneof![4 => half, 1 => (1u64..=40, 1u64..=10)];
    let before = prop_oneof![Just(0u64), (0u64..=8).prop_map(|half| 500 * half), 0u64..=3000, 0u64..=80_000];
    let count = prop_oneof![1 => 1u64..=8, 3 => 1u64..=200];
    let more = prop_oneof![Just(0u64), 0u64..=8];
    let trains = vec((count, before, more), 1..=12);
    (pace, any::<bool>(), trains).prop_map(|(pace, generated, trains)| Stream { pace, generated, trains })
}

fn queue(capacity: u64, exact: bool) -> Fifo {
    let bounds = CellThresholds { capacity, clp: None, efci: None };
    let mut queue = Fifo::new(slot(), CellAdmission::new(bounds, Box::new(Tail::default())));
    if exact {
        queue.emit_exact_trains();
    }
    queue
}

/// Returns the output of every queue of a chain that circuit 0 crosses. Each other circuit crosses one of the queues. The run is advanced in `looks` parts.
fn line(streams: &[Stream], capacities: &[u64], looks: u64, (exact, mixed): (bool, bool)) -> Vec<Seen> {
    let rules = &mut vec![VcTreatment::default(); streams.len()];
    let mut first = Channel::new(slot());
    streams[0].fill(0, &mut first);
    let mut outcome = Vec::new();
    for (hop, &capacity) in capacities.iter().enumerate() {
        let mut cross = Channel::new(slot());
        if let Some(stream) = streams.get(hop + 1) {
            stream.fill(hop as u32 + 1, &mut cross);
        }
        // A mixed chain ends at the first queue.
        let mut next = Channel::new(slot());
        let mut out = Behind { seen: Seen::default(), next: (!mixed).then_some(&mut next), mixed };
        let mut queue = queue(capacity, exact);
        let end = first.last().max(cross.last());
        let mut channels = [first, cross];
        for look in 1..=looks {
            queue.advance(end * look / looks, Inputs::new(&mut channels), rules, &mut out);
        }
        out.seen.ends.sort_unstable();
        outcome.push(out.seen);
        if mixed {
            break;
        }
        first = next;
    }
    outcome
}

proptest! {
    #[test]
    fn fifo_of_trains_equals_cell_by_cell(
        streams in vec(stream(), 2..=4),
        capacities in vec(prop_oneof![1u64..=8, 8u64..=60, 60u64..=600], 1..=3),
        looks in select(vec![1u64, 1, 2, 7]),
        mixed in prop::bool::weighted(0.2),
    ) {
        let quick = line(&streams, &capacities, looks, (false, mixed));
        let exact = line(&streams, &capacities, looks, (true, mixed));
        for (hop, (quick, exact)) in quick.iter().zip(&exact).enumerate() {
            prop_assert_eq!(quick, exact, "at queue {}", hop);
        }
    }
}
