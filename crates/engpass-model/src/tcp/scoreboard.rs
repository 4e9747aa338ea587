//! The segments that are sent and not acknowledged, and what is known of each.
//!
//! One ring of records serves all kinds of recovery: each record is SACKed, lost, sent again, or none of these. What
//! the sender holds to be in the network is everything but what is SACKed and what is lost and not yet sent again
//! (RFC 6675's `pipe`; without SACK and losses it is RFC 5681's FlightSize).

use std::collections::VecDeque;

use super::segment::SackBlocks;
use crate::time::Time;

/// One segment in the network.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sent {
    /// First sequence number.
    pub(super) seq: u64,
    /// One past the last, a FIN included.
    pub(super) end: u64,
    /// When it was last sent.
    pub(super) at: Time,
    /// Whether its last sequence number is the FIN.
    pub(super) fin: bool,
    /// The other side has reported it with SACK.
    pub(super) sacked: bool,
    /// Held to be lost.
    pub(super) lost: bool,
    /// Sent again since it was last held to be lost.
    pub(super) resent: bool,
    /// Sent more than once: Karn's rule takes no sample from it.
    pub(super) ambiguous: bool,
    /// State of the rate estimate when it was sent.
    pub(super) rate: RateMark,
}

/// What the rate estimate must remember of the time when a segment was sent (draft-ietf-ccwg-bbr, section 4.1).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RateMark {
    /// Bytes delivered so far.
    pub(super) delivered: u64,
    /// When the last of them was.
    pub(super) delivered_at: Time,
    /// When the first segment of that flight was sent.
    pub(super) first_sent_at: Time,
    /// Whether the application, not the network, set the pace.
    pub(super) application_limited: bool,
}

impl Sent {
    fn len(&self) -> u64 {
        self.end - self.seq
    }

    fn waits(&self) -> bool {
        self.lost && !self.resent && !self.sacked
    }
}

/// The segment that was sent last of those an acknowledgment reports for the first time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Newest {
    pub(super) at: Time,
    pub(super) end: u64,
    pub(super) ambiguous: bool,
    pub(super) rate: RateMark,
}

/// What one acknowledgment told.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Progress {
    /// Sequence numbers that are now acknowledged cumulatively.
    pub(super) acked: u64,
    /// Bytes newly known to have arrived, in order or not.
    pub(super) delivered: u64,
    /// Bytes newly SACKed.
    pub(super) sacked: u64,
    /// When the oldest segment was sent that Karn's rule allows to measure.
    pub(super) sample: Option<Time>,
    /// The segment among the newly delivered that was sent last.
    pub(super) newest: Option<Newest>,
    /// Highest sequence number that has arrived; set it to the highest before.
    pub(super) highest: u64,
    /// Something sent once arrived below what had arrived before: packets were reordered (RFC 8985 section 6.2).
    pub(super) reordered: bool,
    /// What tells an answer to a retransmission from one to the original; `None` accepts everything.
    pub(super) answers: Option<Answers>,
}

/// RFC 8985 section 6.2 step 2: an acknowledgment of a segment sent again may be for the original.
#[derive(Clone, Copy, Debug)]
pub(super) struct Answers {
    pub(super) now: Time,
    /// TSecr, cut to the tick of the timestamp clock.
    pub(super) echo: Option<Time>,
    pub(super) tick: Time,
    pub(super) minimum_rtt: Time,
}

impl Answers {
    fn original(&self, sent: Time) -> bool {
        self.echo.is_some_and(|echo| echo + self.tick <= sent)
            || self.now.saturating_sub(sent) < self.minimum_rtt
    }
}

#[derive(Clone, Debug, Default)]
pub(super) struct Scoreboard {
    sent: VecDeque<Sent>,
    sacked: u64,
    sacked_records: usize,
    waiting: u64,
    /// Nothing below is lost and waits to be sent again.
    waiting_from: u64,
    /// Below, RFC 6675's IsLost has been applied to every record.
    judged_to: u64,
    /// Blocks of the last option, so that a growing block is not walked from its start each time.
    known: SackBlocks,
}

impl Scoreboard {
    /// Sequence numbers held to be in the network.
    pub(super) fn in_flight(&self) -> u64 {
        self.outstanding() - self.sacked - self.waiting
    }

    /// Sequence numbers sent and not acknowledged.
    pub(super) fn outstanding(&self) -> u64 {
        match (self.sent.front(), self.sent.back()) {
            (Some(first), Some(last)) => last.end - first.seq,
            _ => 0,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.sent.is_empty()
    }

    pub(super) fn get(&self, index: usize) -> &Sent {
        &self.sent[index]
    }

    /// Records that the other side has reported with SACK.
    pub(super) fn sacked_segments(&self) -> usize {
        self.sacked_records
    }

    /// Whether the other side has dropped what it had reported: the oldest hole is none (RFC 2018 section 8).
    pub(super) fn reneged(&self) -> bool {
        self.sent.front().is_some_and(|first| first.sacked)
    }

    pub(super) fn last(&self) -> Option<&Sent> {
        self.sent.back()
    }

    pub(super) fn len(&self) -> usize {
        self.sent.len()
    }

    /// Sequence numbers that are lost and wait to be sent again.
    pub(super) fn waiting(&self) -> u64 {
        self.waiting
    }

    pub(super) fn has_sacked(&self) -> bool {
        self.sacked > 0
    }

    /// A new segment went out.
    pub(super) fn push(&mut self, sent: Sent) {
        debug_assert!(self.sent.back().is_none_or(|last| last.end == sent.seq), "segments follow each other");
        self.sent.push_back(sent);
    }

    /// Everything below `una` has arrived.
    pub(super) fn acknowledge(&mut self, una: u64, progress: &mut Progress) {
        let (mut oldest, mut ambiguous) = (None, false);
        while let Some(first) = self.sent.front_mut() {
            if first.seq >= una {
                break;
            }
            let covered = first.end.min(una) - first.seq;
            progress.acked += covered;
            self.waiting -= if first.waits() { covered } else { 0 };
            if first.sacked {
                self.sacked -= covered;
                self.sacked_records -= usize::from(first.end <= una);
            } else {
                progress.delivered += covered;
                ambiguous |= first.ambiguous;
                oldest = oldest.or(Some(first.at));
                note_newest(progress, first);
            }
            if first.end > una {
                first.seq = una;
                break;
            }
            self.sent.pop_front();
        }
        // A sample behind a hole that a retransmission filled would measure the hole.
        progress.sample = if ambiguous { None } else { oldest };
    }

    /// Mark what the blocks report; blocks below the cumulative acknowledgment are skipped (RFC 2883 duplicates).
    pub(super) fn sack(&mut self, blocks: &SackBlocks, progress: &mut Progress) {
        let mut ascending = *blocks;
        ascending.sort();
        for &(start, end) in ascending.as_slice() {
            let seen = self
                .known
                .as_slice()
                .iter()
                .find(|(s, e)| *s <= start && start <= *e && *e <= end)
                .map(|b| b.1);
            let mut index = self.index_of(seen.unwrap_or(start));
            while let Some(record) = self.sent.get_mut(index) {
                if record.end > end {
                    break;
                }
                if record.seq >= start && !record.sacked {
                    let len = record.len();
                    self.waiting -= if record.waits() { len } else { 0 };
                    record.sacked = true;
                    self.sacked_records += 1;
                    self.sacked += len;
                    progress.sacked += len;
                    progress.delivered += len;
                    if !record.ambiguous {
                        progress.sample = progress.sample.or(Some(record.at));
                    }
                    note_newest(progress, record);
                }
                index += 1;
            }
        }
        self.known = *blocks;
    }

    /// Index of the first record that ends after `seq`.
    fn index_of(&self, seq: u64) -> usize {
        self.sent.partition_point(|record| record.end <= seq)
    }

    /// Hold a record to be lost, whether or not it was sent again before.
    pub(super) fn mark_lost(&mut self, index: usize) {
        let record = &mut self.sent[index];
        if record.sacked || record.waits() {
            return;
        }
        record.lost = true;
        record.resent = false;
        self.waiting += record.len();
        self.waiting_from = self.waiting_from.min(record.seq);
    }

    /// Hold everything to be lost that is not SACKed (a retransmission timeout).
    pub(super) fn mark_all_lost(&mut self) {
        // RFC 2018 section 8: a receiver may drop what it has SACKed; that the first hole is SACKed shows it did.
        if self.reneged() {
            self.forget_sacks();
        }
        for index in 0..self.sent.len() {
            self.mark_lost(index);
        }
        self.waiting_from = 0;
    }

    fn forget_sacks(&mut self) {
        for record in &mut self.sent {
            record.sacked = false;
            if record.waits() {
                self.waiting += record.len();
            }
        }
        self.sacked = 0;
        self.sacked_records = 0;
        self.known = SackBlocks::default();
        self.judged_to = 0;
        self.waiting_from = 0;
    }

    /// Take back that anything is lost (a timeout that was spurious).
    pub(super) fn unmark_lost(&mut self) {
        for record in &mut self.sent {
            if record.waits() {
                record.lost = false;
            }
        }
        self.waiting = 0;
    }

    /// The first record that is lost and not yet sent again.
    pub(super) fn next_lost(&self) -> Option<usize> {
        if self.waiting == 0 {
            return None;
        }
        let from = self.index_of(self.waiting_from);
        (from..self.sent.len()).find(|index| self.sent[*index].waits())
    }

    /// A record was sent again.
    pub(super) fn resend(&mut self, index: usize, now: Time, rate: RateMark) {
        let record = &mut self.sent[index];
        if record.waits() {
            self.waiting -= record.len();
            self.waiting_from = record.end;
        }
        record.resent = true;
        record.ambiguous = true;
        record.at = now;
        record.rate = rate;
    }

    /// RFC 6675 section 4, IsLost: apply it to every record. True when something is newly lost.
    pub(super) fn judge(&mut self, duplicate_threshold: u32, mss: u64) -> bool {
        // "The routine returns true when either DupThresh discontiguous SACKed sequences have arrived above SeqNum or
        // more than (DupThresh - 1) * SMSS bytes with sequence numbers greater than SeqNum have been SACKed."
        let enough = u64::from(duplicate_threshold - 1) * mss;
        let (mut bytes, mut runs, mut above) = (0, 0, u64::MAX);
        let mut lost_below = None;
        for record in self.sent.iter().rev() {
            if self.sacked == bytes {
                break;
            }
            if record.sacked {
                bytes += record.len();
                runs += u32::from(above != record.end);
                above = record.seq;
                if bytes > enough || runs >= duplicate_threshold {
                    lost_below = Some(record.seq);
                    break;
                }
            }
        }
        let Some(below) = lost_below else { return false };
        let mut found = false;
        let mut index = self.index_of(self.judged_to);
        while let Some(record) = self.sent.get(index).copied().filter(|record| record.end <= below) {
            if !record.sacked && !record.lost {
                self.mark_lost(index);
                found = true;
            }
            index += 1;
        }
        self.judged_to = self.judged_to.max(below);
        found
    }

    /// RFC 6675 section 4, NextSeg rule 3: the first record below the highest SACKed one that was never sent again.
    pub(super) fn first_unsent_hole(&self) -> Option<usize> {
        let highest = self.sent.iter().rposition(|record| record.sacked)?;
        (0..highest).find(|index| {
            let record = &self.sent[*index];
            !record.sacked && !record.lost
        })
    }
}

fn note_newest(progress: &mut Progress, record: &Sent) {
    if record.end > progress.highest {
        progress.highest = record.end;
    } else if record.end < progress.highest && !record.ambiguous {
        progress.reordered = true;
    }
    if record.ambiguous && progress.answers.is_some_and(|answers| answers.original(record.at)) {
        return;
    }
    let later = progress.newest.is_none_or(|newest| (record.at, record.end) >= (newest.at, newest.end));
    if later {
        progress.newest =
            Some(Newest { at: record.at, end: record.end, ambiguous: record.ambiguous, rate: record.rate });
    }
}
