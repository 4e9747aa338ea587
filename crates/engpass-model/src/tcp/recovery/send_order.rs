//! The segments that RACK has to check for loss: still in the network, and sent before a segment that has been delivered.

use std::collections::VecDeque;

use crate::tcp::scoreboard::Scoreboard;
use crate::time::Time;

/// Finds the segments that were sent before the newest delivered one, the delivered segment that was sent last. An entry is the time of a segment's
/// last transmission, and the segment's end.
///
/// Segments that were sent once are in the scoreboard in the order of their transmission; retransmitted ones are in a queue here. Therefore an
/// acknowledgment examines only the segments that it overtakes and those still missing, no matter how many are in the network.
#[derive(Clone, Debug, Default)]
pub(super) struct SendOrder {
    /// Segments up to this sequence number that were sent only once predate the newest delivered segment.
    passed: u64,
    /// Retransmitted segments not yet moved to `suspects`, in order. Some may have been delivered or marked lost since.
    retransmitted: VecDeque<(Time, u64)>,
    /// Segments sent before the newest delivered one. Some may have been delivered since.
    suspects: Vec<(Time, u64)>,
}

impl SendOrder {
    /// Starts from the scoreboard as if no segment had been examined yet.
    pub(super) fn of(board: &Scoreboard) -> Self {
        let all = (0..board.len()).map(|index| board.get(index));
        let retransmitted = all.filter(|record| record.ambiguous && record.in_network());
        let mut retransmitted: Vec<_> = retransmitted.map(|record| (record.at, record.end)).collect();
        retransmitted.sort_unstable();
        Self { retransmitted: retransmitted.into(), ..Self::default() }
    }

    /// Records that the segment that ends at `end` was retransmitted at `at`.
    pub(super) fn on_retransmit(&mut self, at: Time, end: u64) {
        let later = self.retransmitted.iter().rev().take_while(|other| **other > (at, end)).count();
        self.retransmitted.insert(self.retransmitted.len() - later, (at, end));
    }

    /// Moves every segment that was sent before `newest` to the suspects. `newest` is the send time and the end of the newest delivered segment.
    pub(super) fn pass(&mut self, newest: (Time, u64), board: &Scoreboard) {
        for index in board.index_of(self.passed)..board.len() {
            let record = board.get(index);
            if !record.ambiguous {
                if (record.at, record.end) >= newest {
                    break;
                }
                if record.in_network() {
                    self.suspects.push((record.at, record.end));
                }
            }
            self.passed = record.end;
        }
        let passed = self.retransmitted.partition_point(|one| *one < newest);
        self.suspects.extend(self.retransmitted.drain(..passed));
    }

    /// Calls `keep` for every suspect that is still in the network. Keeps a suspect only if `keep` returns true.
    pub(super) fn retain(
        &mut self,
        board: &mut Scoreboard,
        mut keep: impl FnMut(&mut Scoreboard, usize, Time) -> bool,
    ) {
        self.suspects.retain(|(at, end)| {
            let index = board.index_of(end - 1);
            let there = index < board.len() && {
                let record = board.get(index);
                (record.at, record.end) == (*at, *end) && record.in_network()
            };
            there && keep(board, index, *at)
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tcp::ack_sample::AckSample;
    use crate::tcp::segment::SackBlocks;
    use proptest::prelude::*;

    /// An event between two calls of [`SendOrder::retain`].
    #[derive(Clone, Copy, Debug)]
    enum Step {
        Send,
        Reported(u64, u64),
        Acknowledged(u64),
        Lost(usize),
        SentAgain,
        Probe,
        Spurious,
        TooLong(u64),
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            6 => Just(Step::Send),
            4 => (0u64..40, 1u64..4).prop_map(|(start, length)| Step::Reported(start, length)),
            1 => (0u64..6).prop_map(Step::Acknowledged),
            1 => (0usize..40).prop_map(Step::Lost),
            4 => Just(Step::SentAgain),
            1 => Just(Step::Probe),
            1 => Just(Step::Spurious),
            1 => (1u64..10).prop_map(Step::TooLong),
        ]
    }

    /// Reference: searches the whole scoreboard for segments in the network that were sent before `newest`.
    fn all_before(newest: (Time, u64), board: &Scoreboard) -> Vec<usize> {
        let before = |index: &usize| {
            let record = board.get(*index);
            record.in_network() && (record.at, record.end) < newest
        };
        (0..board.len()).filter(before).collect()
    }

    proptest! {
        /// After any sequence of events, the suspects are exactly the segments in the network that were sent before the newest delivered one.
        #[test]
        fn send_order_finds_all_segments_sent_before_the_newest(steps in prop::collection::vec((step(), 0u64..3, any::<bool>()), 1..200)) {
            let (mut board, mut now, mut next, mut newest) = (Scoreboard::new(1), Time::ZERO, 1, (Time::ZERO, 0));
            let mut order = SendOrder::of(&board);
            for (step, later, marks) in steps {
                now = Time(now.ps() + later);
                let mut progress = AckSample::default();
                match step {
                    Step::Send => {
                        next += 10;
                        board.push(next, now, false, None);
                    }
                    Step::Reported(start, length) => {
                        let mut blocks = SackBlocks::default();
                        let start = board.una() + 10 * (start + 1);
                        blocks.push(start, start + 10 * length);
                        board.sack(&blocks, &mut progress);
                    }
                    Step::Acknowledged(count) => {
                        board.acknowledge((board.una() + 10 * count).min(next), &mut progress);
                    }
                    Step::Lost(index) if index < board.len() => board.mark_lost(index),
                    Step::Lost(_) => {}
                    Step::SentAgain => {
                        if let Some(index) = board.next_lost() {
                            board.resend(index, now, None);
                            order.on_retransmit(now, board.get(index).end);
                        }
                    }
                    Step::Probe => {
                        if let Some(index) = board.len().checked_sub(1).filter(|last| board.get(*last).in_network()) {
                            board.resend(index, now, None);
                            order.on_retransmit(now, board.get(index).end);
                        }
                    }
                    Step::Spurious => {
                        board.unmark_lost();
                        order = SendOrder::of(&board);
                    }
                    Step::TooLong(most) => {
                        board.lose_longer_than(most);
                    }
                }
                let first_lost = (0..board.len()).find(|index| {
                    let record = board.get(*index);
                    record.lost && !record.resent && !record.sacked
                });
                prop_assert_eq!(board.next_lost(), first_lost);
                if let Some(arrived) = progress.newest {
                    newest = newest.max((arrived.at, arrived.end));
                }
                let wanted = all_before(newest, &board);
                let mut seen = Vec::new();
                order.pass(newest, &board);
                order.retain(&mut board, |board, index, at| {
                    assert_eq!(board.get(index).at, at);
                    seen.push(index);
                    let stays = !marks || index % 2 == 0;
                    if !stays {
                        board.mark_lost(index);
                    }
                    stays
                });
                // A segment that is sent twice at one instant appears twice, which is harmless.
                seen.sort_unstable();
                seen.dedup();
                prop_assert_eq!(seen, wanted);
            }
        }
    }
}
