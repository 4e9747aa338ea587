//! Buffer for departures from a queue. If cells of other trains lie between those of a train, the buffer still hands the train on as one record, in pieces.

use super::{CellSink, CellTrain, TrainPiece, VcId};

/// Number of recent trains of a path among which the buffer looks for the train that new cells continue.
const OPEN: usize = 3;

/// Departures, past or future, that were not handed to the [`CellSink`] yet.
#[derive(Debug, Default)]
pub(super) struct DepartureBuffer {
    paths: Vec<PathTrains>,
    /// True if the buffer has cells.
    any: bool,
    /// True if the buffer has cells of PDUs, not only of generators.
    pdus: bool,
    /// True if no pieces are kept of cells that go to a host (path 0).
    gather: bool,
    /// True if a lost cell ends a train; otherwise a train may have gaps in its PDU.
    exact: bool,
    /// Initial capacity for the pieces of a path.
    room: usize,
}

#[derive(Debug, Default)]
struct PathTrains {
    /// Departing trains. Until a train is handed on, its `last` is the position of its last cell, not an instant.
    trains: Vec<CellTrain>,
    pieces: Vec<TrainPiece>,
}

/// A train in the buffer to which cells can be added: its path, and its index there.
#[derive(Clone, Copy, Debug)]
pub(super) struct OpenTrain {
    path_number: usize,
    train: u32,
}

/// Pieces of two interleaving trains, taken out of the buffer while a loop adds cells.
pub(super) struct InterleavedPieces {
    /// The pieces of each train's path. If both trains take the same path, the first list has the pieces of both.
    lists: [Vec<TrainPiece>; 2],
    same_path: bool,
    train: [u32; 2],
    kept: [bool; 2],
}

impl InterleavedPieces {
    /// Returns whether both trains take the same path, so that their cells must be added in order.
    pub(super) fn take_same_path(&self) -> bool {
        self.same_path
    }

    /// Adds `count` cells, at least one, of train `which` (0 or 1): those whose bits are set in `bits`; the lowest bit stands for position `n`.
    #[inline(always)]
    pub(super) fn add(&mut self, which: usize, n: u64, bits: u64, count: u64) {
        if !self.kept[which] {
            return;
        }
        let [one, other] = &mut self.lists;
        let (pieces, train) = (if which == 0 || self.same_path { one } else { other }, self.train[which]);
        let piece = TrainPiece::pattern(n, bits, count, train);
        match pieces.last_mut() {
            Some(last) if piece.is_run() && last.train() == train && last.ends_before(piece.first()) => {
                last.grow(count);
            }
            _ => pieces.push(piece),
        }
    }
}

fn add_piece(pieces: &mut Vec<TrainPiece>, n: u64, count: u64, train: u32) {
    match pieces.last_mut() {
        Some(last) if last.train() == train && last.ends_before(n) => last.grow(count),
        _ => pieces.push(TrainPiece::run(n, count, train)),
    }
}

impl DepartureBuffer {
    /// Returns an empty buffer for a queue with `capacity` cells.
    pub(super) fn of(capacity: u64) -> Self {
        Self { room: capacity.min(512) as usize, ..Self::default() }
    }

    /// Lets a lost cell end its train from now on, so that a train has no gaps in its PDU.
    pub(super) fn emit_exact_trains(&mut self) {
        self.exact = true;
    }

    /// Sets whether the next departures to a host are only counted, without pieces.
    pub(super) fn set_count_only(&mut self, gather: bool) {
        self.gather = gather;
    }

    /// Returns whether the buffer has cells of PDUs, not only of generators.
    pub(super) fn has_pdu_cells(&self) -> bool {
        self.pdus
    }

    /// Returns whether cells of the circuit `vc` are only counted, without pieces.
    pub(super) fn only_count(&self, vc: VcId, out: &impl CellSink) -> bool {
        self.gather && out.path_number(vc) == 0
    }

    /// Returns the train in the buffer that `cells` continue, or a new one without cells. Unless trains are exact, cells before `cells` may have been lost.
    pub(super) fn open(&mut self, cells: &CellTrain, out: &impl CellSink) -> OpenTrain {
        let path_number = out.path_number(cells.vc);
        if path_number >= self.paths.len() {
            self.paths.resize_with(path_number + 1, PathTrains::default);
            self.paths[path_number].pieces.reserve(self.room);
        }
        let trains = &mut self.paths[path_number].trains;
        let gapless = |train: &CellTrain| train.cell + train.step() * train.count as u32 == cells.cell;
        let goes_on = |train: &CellTrain| {
            train.pdu == cells.pdu
                && train.base == cells.base
                && train.pace == cells.pace
                && train.alike(cells)
                && (!self.exact || gapless(train))
        };
        // No other train of the circuit may have come between, because a host reassembles cells in their order.
        let last = trains.iter().rev().take(OPEN).position(|train| train.vc == cells.vc);
        let train = match last.map(|back| trains.len() - 1 - back) {
            Some(place) if goes_on(&trains[place]) => place,
            _ => {
                trains.push(CellTrain { count: 0, ..*cells });
                trains.len() - 1
            }
        };
        self.any = true;
        self.pdus |= !cells.are_generated();
        OpenTrain { path_number, train: train as u32 }
    }

    /// Adds a piece of `count` cells from position `n` on to the train `open`.
    #[inline]
    pub(super) fn piece(&mut self, open: OpenTrain, n: u64, count: u64) {
        if open.path_number == 0 && self.gather {
            return;
        }
        add_piece(&mut self.paths[open.path_number].pieces, n, count, open.train);
    }

    /// Takes the pieces of two trains' paths out of the buffer, so that a loop can add cells.
    pub(super) fn take_pieces(&mut self, open: [OpenTrain; 2]) -> InterleavedPieces {
        // If both take the same path, the second list is empty.
        let lists = open.map(|open| std::mem::take(&mut self.paths[open.path_number].pieces));
        let kept = open.map(|open| open.path_number > 0 || !self.gather);
        InterleavedPieces {
            lists,
            same_path: open[0].path_number == open[1].path_number,
            train: open.map(|open| open.train),
            kept,
        }
    }

    /// Puts the pieces that [`Self::take_pieces`] took out back.
    pub(super) fn put_pieces(&mut self, open: [OpenTrain; 2], pieces: InterleavedPieces) {
        let [one, other] = pieces.lists;
        self.paths[open[0].path_number].pieces = one;
        if open[1].path_number != open[0].path_number {
            self.paths[open[1].path_number].pieces = other;
        }
    }

    /// Counts `count` cells at positions from `first` to `last` as part of the train `open`. `ends` is true if the last one ends its PDU.
    pub(super) fn joined(&mut self, open: OpenTrain, count: u64, (first, last): (u64, u64), ends: bool) {
        let train = &mut self.paths[open.path_number].trains[open.train as usize];
        if train.count == 0 {
            train.n = first;
        }
        train.count += count;
        train.last = last;
        if ends && !train.are_generated() {
            // If cells were lost, this position in the PDU lets `ends_pdu` return true.
            train.cell = (u64::from(train.of) - train.count) as u32;
        }
    }

    /// Adds consecutive cells to the train that they continue, or to a new one.
    pub(super) fn add(&mut self, cells: &CellTrain, out: &impl CellSink) {
        let open = self.open(cells, out);
        self.piece(open, cells.n, cells.count);
        self.joined(open, cells.count, (cells.n, cells.n + cells.count - 1), cells.ends_pdu());
    }

    /// Hands all departures to the sink.
    pub(super) fn flush(&mut self, out: &mut impl CellSink) {
        if !self.any {
            return;
        }
        (self.any, self.pdus) = (false, false);
        for (index, path_number) in self.paths.iter_mut().enumerate() {
            if path_number.trains.is_empty() {
                continue;
            }
            for train in path_number.trains.iter_mut().filter(|train| train.count > 0) {
                train.last = train.base + train.pace.after(train.last);
            }
            out.sent_along(index, &mut path_number.trains, &path_number.pieces);
            path_number.trains.clear();
            path_number.pieces.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Channel, one_by_one};
    use super::*;
    use engpass_model::time::Pace;
    use proptest::collection::vec;
    use proptest::prelude::*;

    /// Returns a train, its pieces made from blocks of positions, and these positions.
    fn told(blocks: &[(u64, u64)]) -> (CellTrain, Vec<TrainPiece>, Vec<u64>) {
        let mut pieces = InterleavedPieces {
            lists: [Vec::new(), Vec::new()],
            same_path: false,
            train: [0; 2],
            kept: [true; 2],
        };
        let (mut n, mut places) = (1, Vec::new());
        for &(gap, bits) in blocks {
            n += gap;
            pieces.add(0, n, bits, u64::from(bits.count_ones()));
            places.extend((0..64).filter(|bit| bits >> bit & 1 == 1).map(|bit| n + bit));
            n += 64 - u64::from(bits.leading_zeros());
        }
        let pace = Pace::new(10, 1);
        let (first, last, count) = (places[0], 10 * places[places.len() - 1], places.len() as u64);
        let train = CellTrain { n: first, count, last, pdu: 1, of: u16::MAX, ..CellTrain::none(pace) };
        let [list, _] = pieces.lists;
        (train, list, places)
    }

    fn blocks() -> impl Strategy<Value = Vec<(u64, u64)>> {
        let dense = prop_oneof![
            any::<u64>(),
            Just(u64::MAX),
            (1u32..64).prop_map(|count| u64::MAX >> count),
            Just(1)
        ];
        let sparse =
            (any::<u64>(), any::<u64>(), any::<u64>()).prop_map(|(one, two, three)| one & two & three);
        let bits = prop_oneof![dense, sparse].prop_map(|bits| bits.max(1));
        vec((prop_oneof![Just(0u64), 0u64..100], bits), 1..12)
    }

    proptest! {
        #[test]
        fn train_pieces_hold_exactly_the_added_positions(blocks in blocks()) {
            let (train, pieces, places) = told(&blocks);
            let seen = one_by_one(&mut [train], &pieces).flat_map(|cells| cells.n..cells.n + cells.count).collect::<Vec<_>>();
            prop_assert_eq!(&seen, &places);
            prop_assert_eq!(pieces.iter().map(TrainPiece::count).sum::<u64>(), places.len() as u64);
        }

        #[test]
        fn channel_yields_all_positions_with_any_mix_of_reads(blocks in blocks(), paths in vec((0u8..4, 0u64..150), 1..40)) {
            let (train, pieces, places) = told(&blocks);
            let mut channel = Channel::new(train.pace);
            channel.push_pieces(&[train], &pieces, 0);
            let mut left = &places[..];
            for &(path_number, many) in paths.iter().cycle() {
                if left.is_empty() {
                    break;
                }
                prop_assert_eq!((channel.head(), channel.front().n), (10 * left[0], left[0]));
                prop_assert_eq!(channel.front().cell as usize, places.len() - left.len());
                let until = left[0] + many;
                let taken = match path_number {
                    0 => {
                        let (count, last) = channel.take_train(10 * until);
                        prop_assert_eq!(last, left[count as usize - 1]);
                        prop_assert_eq!(count as usize, left.iter().filter(|place| **place <= until).count());
                        count
                    }
                    1 => channel.take_front_until(10 * until),
                    2 => {
                        let mut count = 0;
                        channel.take_until(10 * until, |at| {
                            assert_eq!(at, 10 * left[count as usize]);
                            count += 1;
                        });
                        count
                    }
                    _ => {
                        let (mut walk, mut count) = (channel.walk(), 0);
                        while count <= many {
                            prop_assert_eq!((walk.head, walk.n), (10 * left[count as usize], left[count as usize]));
                            count += 1;
                            if !walk.step(&mut channel) {
                                break;
                            }
                        }
                        channel.walked(&walk);
                        count
                    }
                };
                left = &left[taken as usize..];
            }
            if left.is_empty() {
                prop_assert_eq!(channel.head(), u64::MAX);
            }
        }
    }
}
