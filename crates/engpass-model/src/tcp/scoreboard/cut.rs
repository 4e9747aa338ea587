//! Splitting unacknowledged segments that have become too long for the path.

use std::cmp::Reverse;
use std::collections::VecDeque;

use super::{AMBIGUOUS, FIN, MARKS, PART, Ring, SACKED, Scoreboard, Sent};
use crate::tcp::segment::SackBlocks;

impl Scoreboard {
    /// Marks every segment lost that is not SACKed and has more than `most` bytes of payload, and splits it. Returns whether there was one.
    pub(in crate::tcp) fn lose_longer_than(&mut self, most: u64) -> bool {
        let mut found = false;
        for index in 0..self.len() {
            if self.is_longer(index, most) {
                self.mark_lost(index);
                found = true;
            }
        }
        if found {
            self.cut(most);
        }
        found
    }

    /// Splits every segment that is not SACKed into pieces of at most `most` bytes of payload. The pieces keep all other properties of the segment.
    pub(in crate::tcp) fn cut_longer_than(&mut self, most: u64) {
        if (0..self.len()).any(|index| self.is_longer(index, most)) {
            self.cut(most);
        }
    }

    fn is_longer(&self, index: usize, most: u64) -> bool {
        let record = &self.sent[index];
        let fin = u64::from(record.is(FIN));
        !record.is(SACKED) && record.end() - self.start(index) > most + fin
    }

    fn cut(&mut self, most: u64) {
        let old = std::mem::take(&mut self.sent);
        let more = self.more.get_or_insert_default();
        let old_rates = std::mem::take(&mut more.rates);
        let old_top = more.top;
        let (mut sent, mut rates, mut start) = (Ring::default(), VecDeque::new(), self.una);
        more.lost.clear();
        for index in 0..old.len() {
            let record: Sent = old[index];
            let last = record.end() - u64::from(record.is(FIN));
            let whole = sent.len();
            while !record.is(SACKED) && last.saturating_sub(start) > most {
                start += most;
                sent.push(Sent {
                    tagged: start << MARKS | record.tagged & ((1 << MARKS) - 1) & !FIN | PART,
                    ..record
                });
            }
            sent.push(record);
            start = record.end();
            let pieces = sent.len() - whole;
            if record.is(AMBIGUOUS) && !record.is(SACKED) {
                more.retransmitted += pieces - 1;
            }
            if index < old_top {
                more.top += pieces - 1;
            }
            if record.waits() {
                more.lost.extend((whole..sent.len()).map(|piece| Reverse(sent[piece].end())));
            }
            if let Some(rate) = old_rates.get(index) {
                rates.extend(std::iter::repeat_n(*rate, pieces));
            }
        }
        (self.sent, more.rates) = (sent, rates);
        // A SACK block that reported a part of a segment may cover one of its pieces now.
        more.known = SackBlocks::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tcp::ack_sample::RateSnapshot;
    use crate::tcp::scoreboard::Record;
    use crate::time::Time;
    use proptest::prelude::*;

    #[derive(Clone, Copy, Debug)]
    enum Step {
        Send(u64),
        Acknowledge(u64),
        Report(u64, u64),
        Lose(usize),
        Resend,
        DetectLosses,
        Undo,
        Renege,
        Cut(u64),
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            6 => (1u64..40).prop_map(Step::Send),
            2 => (1u64..60).prop_map(Step::Acknowledge),
            4 => (1u64..200, 1u64..60).prop_map(|(start, length)| Step::Report(start, length)),
            2 => (0usize..30).prop_map(Step::Lose),
            3 => Just(Step::Resend),
            2 => Just(Step::DetectLosses),
            1 => Just(Step::Undo),
            1 => Just(Step::Renege),
            2 => (1u64..30).prop_map(Step::Cut),
        ]
    }

    /// Returns the state of each sequence number: the marks of its segment, its send time and its rate mark.
    fn by_number(board: &Scoreboard) -> Vec<(u64, String)> {
        let mut numbers = vec![];
        for index in 0..board.len() {
            let record = board.get(index);
            let rate = board.rate(index).delivered;
            for number in record.seq..record.end {
                let fin = record.fin && number + 1 == record.end;
                let marks = (record.sacked, record.lost, record.resent, record.ambiguous);
                numbers.push((number, format!("{fin} {marks:?} {:?} {rate}", record.at)));
            }
        }
        numbers
    }

    /// Checks the derived values of the scoreboard against its records.
    fn check(board: &Scoreboard) {
        let records: Vec<Record> = (0..board.len()).map(|index| board.get(index)).collect();
        let waits = |record: &Record| record.lost && !record.resent && !record.sacked;
        let length = |is: &dyn Fn(&Record) -> bool| {
            records.iter().filter(|r| is(r)).map(|r| r.end - r.seq).sum::<u64>()
        };
        assert_eq!(u64::from(board.sacked), length(&|record| record.sacked));
        assert_eq!(board.waiting(), length(&waits));
        assert_eq!(board.next_lost(), records.iter().position(waits));
        assert_eq!(board.has_resent(), records.iter().any(|record| record.ambiguous && !record.sacked));
        assert_eq!(board.sacked_segments(), records.iter().filter(|record| record.sacked).count());
        let Some(more) = &board.more else { return };
        assert_eq!(
            more.retransmitted,
            records.iter().filter(|record| record.ambiguous && !record.sacked).count()
        );
        let highest = records.iter().rposition(|record| record.sacked);
        if let Some(highest) = highest {
            assert!(more.top > highest && more.top <= records.len());
            assert!(!more.all_checked || board.is_all_checked(more));
        }
        let hole = records[..highest.unwrap_or(0)].iter().position(|record| !record.sacked && !record.lost);
        assert_eq!(board.first_unmarked_hole(), hole);
        if !more.rates.is_empty() {
            assert_eq!(more.rates.len(), records.len());
        }
    }

    /// A receiver whose window ended within a segment has kept and reported a part of it. Once the segment is split there, that part counts as
    /// delivered.
    #[test]
    fn sacked_part_of_a_segment_counts_after_a_split() {
        let mut board = Scoreboard::new(1);
        board.push(41, Time::ZERO, false, None);
        let mut blocks = SackBlocks::default();
        blocks.push(11, 21);
        assert_eq!(board.record_ack(1, &blocks).sacked, 0);
        assert!(board.lose_longer_than(10));
        assert_eq!(board.record_ack(1, &blocks).sacked, 10);
        assert_eq!((board.waiting(), board.sacked_segments()), (30, 1));
    }

    proptest! {
        /// A cut changes only the ends of segments, and marks too long ones lost. Afterwards the scoreboard works as if the segments had been short
        /// from the start.
        #[test]
        fn split_changes_only_segment_ends_and_loss_marks(
            steps in prop::collection::vec(step(), 1..120),
            rates in any::<bool>(),
            fin in any::<bool>(),
        ) {
            let mut board = Scoreboard::new(1);
            let (mut next, mut now, mut sent) = (1, 0, Vec::new());
            for step in steps {
                now += 1;
                let at = Time(now);
                let rate = rates.then(|| RateSnapshot { delivered: now, ..RateSnapshot::default() });
                match step {
                    Step::Send(length) => {
                        next += length;
                        let ends = fin && now % 50 == 0;
                        next += u64::from(ends);
                        board.push(next, at, ends, rate);
                        sent.push((next, at));
                        if ends {
                            break;
                        }
                    }
                    Step::Acknowledge(length) => {
                        board.record_ack((board.una() + length).min(next), &SackBlocks::default());
                    }
                    Step::Report(start, length) => {
                        let start = board.una() + start;
                        let end = (start + length).min(next);
                        if start < end {
                            let mut blocks = SackBlocks::default();
                            blocks.push(start, end);
                            let una = board.una();
                            if board.try_sack_next(&blocks).is_none() {
                                board.record_ack(una, &blocks);
                            }
                        }
                    }
                    Step::Lose(index) if index < board.len() && !board.get(index).sacked => board.mark_lost(index),
                    Step::Lose(_) => {}
                    Step::Resend => {
                        if let Some(index) = board.next_lost() {
                            board.resend(index, at, rate);
                        }
                    }
                    Step::DetectLosses => {
                        board.detect_losses(3, 20);
                    }
                    Step::Undo => board.unmark_lost(),
                    Step::Renege => {
                        if board.reneged() {
                            board.mark_all_lost();
                        }
                    }
                    Step::Cut(most) => {
                        let (before, long) = (by_number(&board), |record: &Record| {
                            !record.sacked && record.end - record.seq - u64::from(record.fin) > most
                        });
                        let mut lost = board.clone();
                        let found = (0..lost.len()).filter(|index| long(&lost.get(*index))).collect::<Vec<_>>();
                        found.iter().for_each(|index| lost.mark_lost(*index));
                        // Only the marks of segments that are too long change.
                        let ends: Vec<u64> = (0..board.len()).map(|index| board.get(index).end).collect();
                        prop_assert_eq!(board.lose_longer_than(most), !found.is_empty());
                        prop_assert_eq!(by_number(&board), by_number(&lost));
                        prop_assert_eq!(before.len(), by_number(&board).len());
                        prop_assert!(!(0..board.len()).any(|index| long(&board.get(index))));
                        // No segments are joined, and none is split without need.
                        let now_ends: Vec<u64> = (0..board.len()).map(|index| board.get(index).end).collect();
                        prop_assert!(ends.iter().all(|end| now_ends.binary_search(end).is_ok()));
                        let pieces: usize = (0..ends.len())
                            .map(|index| {
                                let whole = lost.get(index);
                                let payload = whole.end - whole.seq - u64::from(whole.fin);
                                if long(&whole) { payload.div_ceil(most) as usize } else { 1 }
                            })
                            .sum();
                        prop_assert_eq!(now_ends.len(), pieces);
                    }
                }
                check(&board);
                // Splits and retransmissions change no first transmission.
                let first: Vec<Time> = board.first_sent(board.una()..next).collect();
                let open = sent.iter().filter(|(end, _)| *end > board.una()).map(|(_, at)| *at);
                prop_assert_eq!(first, open.collect::<Vec<_>>());
            }
            // Everything is retransmitted and acknowledged.
            board.mark_all_lost();
            check(&board);
            while let Some(index) = board.next_lost() {
                board.resend(index, Time(now), rates.then(RateSnapshot::default));
                check(&board);
            }
            board.record_ack(next, &SackBlocks::default());
            check(&board);
            prop_assert!(board.is_empty() && board.absent() == 0 && !board.has_resent());
        }
    }
}
