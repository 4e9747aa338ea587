//! The scoreboard: all segments that are sent and not acknowledged, with the state of each.
//!
//! One ring of records serves all recovery algorithms: each record is SACKed, lost, retransmitted, or none of these. The sender counts everything as
//! in the network except what is SACKed, and what is lost and waits for retransmission (RFC 6675's `pipe`; without SACK and losses it is RFC 5681's
//! FlightSize).

mod cut;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};
use std::ops::Range;

use super::ack_sample::{AckSample, AckedRun, RateSnapshot};
use super::first_needed;
use super::ring::Ring;
use super::segment::{NewBlock, SackBlocks};
use crate::time::Time;

/// One unacknowledged segment. It begins where the one before it ends.
#[derive(Clone, Copy, Debug, Default)]
struct Sent {
    /// One past its last sequence number, a FIN included, above [`MARKS`] bits of marks.
    tagged: u64,
    /// Time of its last transmission.
    at: Time,
}

const MARKS: u32 = 6;
/// Its last sequence number is the FIN.
const FIN: u64 = 1;
/// The peer has SACKed it.
const SACKED: u64 = 2;
/// Marked lost.
const LOST: u64 = 4;
/// Retransmitted since it was last marked lost.
const RESENT: u64 = 8;
/// Sent more than once: Karn's rule takes no sample from it.
const AMBIGUOUS: u64 = 16;
/// A piece of a segment that was split, but not its last one.
const PART: u64 = 32;

impl Sent {
    #[inline]
    fn new(end: u64, at: Time, fin: bool) -> Self {
        Self { tagged: end << MARKS | if fin { FIN } else { 0 }, at }
    }

    #[inline]
    fn end(&self) -> u64 {
        self.tagged >> MARKS
    }

    #[inline]
    fn is(&self, mark: u64) -> bool {
        self.tagged & mark != 0
    }

    #[inline]
    fn waits(&self) -> bool {
        self.tagged & (LOST | RESENT | SACKED) == LOST
    }
}

/// An unacknowledged segment with its state, unpacked from [`Sent`].
#[derive(Clone, Copy, Debug)]
pub(super) struct Record {
    /// First sequence number.
    pub(super) seq: u64,
    /// One past the last sequence number, a FIN included.
    pub(super) end: u64,
    /// Time of its last transmission.
    pub(super) at: Time,
    /// Whether its last sequence number is the FIN.
    pub(super) fin: bool,
    /// The peer has SACKed it.
    pub(super) sacked: bool,
    /// Marked lost.
    pub(super) lost: bool,
    /// Retransmitted since it was last marked lost.
    pub(super) resent: bool,
    /// Sent more than once: Karn's rule takes no sample from it.
    pub(super) ambiguous: bool,
}

impl Record {
    /// Returns whether it counts as in the network: not SACKed, and not lost and waiting for retransmission.
    pub(super) fn in_network(&self) -> bool {
        !self.sacked && (!self.lost || self.resent)
    }
}

/// The unacknowledged segments.
#[derive(Clone, Debug, Default)]
pub(super) struct Scoreboard {
    sent: Ring<Sent>,
    /// First sequence number that is not acknowledged (SND.UNA).
    una: u64,
    /// Unacknowledged sequence numbers that are SACKed. 32 bits suffice: windows are below 2^30 (RFC 7323 section 2.3).
    sacked: u32,
    /// Unacknowledged sequence numbers that are lost and wait for retransmission.
    waiting: u32,
    more: Option<Box<ScoreboardCold>>,
}

/// State that is allocated at the first SACK or loss, or if the delivery rate is measured.
#[derive(Clone, Debug, Default)]
struct ScoreboardCold {
    sacked_records: u32,
    /// Records that were sent more than once and are not SACKed.
    retransmitted: usize,
    /// While anything is SACKed: no record at this index or above is.
    top: usize,
    /// RFC 6675's IsLost has nothing left to find below `top`: the records between `checked_to` and `top` are all SACKed.
    all_checked: bool,
    /// Ends of the records that are lost and wait for retransmission. The first entry is valid; others may be stale.
    lost: BinaryHeap<Reverse<u64>>,
    /// IsLost has been applied to every record below this sequence number.
    checked_to: u64,
    /// Below this sequence number, records that IsLost marked lost may have been unmarked since.
    unmarked_to: u64,
    /// Blocks of the last SACK option, so that a growing block is not walked from its start each time.
    known: SackBlocks,
    /// For each record, if the delivery rate is measured.
    rates: VecDeque<RateSnapshot>,
    /// By the end of a record that was sent more than once: time of its first transmission.
    first_sent: BTreeMap<u64, Time>,
}

impl ScoreboardCold {
    #[inline(never)]
    fn settle(&mut self, sent: &Ring<Sent>, waiting: u32) {
        if waiting == 0 {
            self.lost.clear();
        }
        while let Some(Reverse(end)) = self.lost.peek() {
            let record = sent.get(sent.partition_point(|record| record.end() < *end));
            if record.is_some_and(|record| record.end() == *end && record.waits()) {
                break;
            }
            self.lost.pop();
        }
    }
}

/// The effect of one acknowledgment, in less detail than [`AckSample`].
#[derive(Clone, Copy, Debug)]
pub(super) struct Arrived {
    /// See [`AckSample::delivered`].
    pub(super) delivered: u64,
    /// See [`AckSample::sacked`].
    pub(super) sacked: u64,
    /// See [`AckSample::sample`].
    pub(super) sample: Option<Time>,
}

impl Scoreboard {
    /// Creates an empty scoreboard. `una` is the first sequence number that will be sent.
    pub(super) fn new(una: u64) -> Self {
        Self { una, ..Self::default() }
    }

    /// Returns the first sequence number that is not acknowledged (SND.UNA).
    #[inline]
    pub(super) fn una(&self) -> u64 {
        self.una
    }

    #[inline]
    fn more(&mut self) -> &mut ScoreboardCold {
        self.more.get_or_insert_with(first_needed)
    }

    /// Returns how many unacknowledged sequence numbers are not in the network: SACKed, or lost and waiting for retransmission.
    #[inline]
    pub(super) fn absent(&self) -> u64 {
        u64::from(self.sacked) + u64::from(self.waiting)
    }

    /// Frees the ring of records, which must be empty.
    pub(super) fn release_unused_memory(&mut self) {
        debug_assert!(self.is_empty(), "the scoreboard is empty when its memory is freed");
        self.sent = Ring::default();
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.sent.is_empty()
    }

    /// Returns the first sequence number of a record.
    fn start(&self, index: usize) -> u64 {
        if index == 0 { self.una } else { self.sent[index - 1].end() }
    }

    fn length(&self, index: usize) -> u32 {
        (self.sent[index].end() - self.start(index)) as u32
    }

    pub(super) fn get(&self, index: usize) -> Record {
        let sent = &self.sent[index];
        Record {
            seq: self.start(index),
            end: sent.end(),
            at: sent.at,
            fin: sent.is(FIN),
            sacked: sent.is(SACKED),
            lost: sent.is(LOST),
            resent: sent.is(RESENT),
            ambiguous: sent.is(AMBIGUOUS),
        }
    }

    /// Returns how many records are SACKed.
    pub(super) fn sacked_segments(&self) -> usize {
        self.more.as_ref().map_or(0, |more| more.sacked_records as usize)
    }

    /// Returns whether the peer has discarded data that it had SACKed: the oldest segment is SACKed but not acknowledged (RFC 2018 section 8).
    pub(super) fn reneged(&self) -> bool {
        self.sent.get(0).is_some_and(|first| first.is(SACKED))
    }

    pub(super) fn last(&self) -> Option<Record> {
        (!self.is_empty()).then(|| self.get(self.len() - 1))
    }

    #[inline]
    pub(super) fn len(&self) -> usize {
        self.sent.len()
    }

    /// Returns how many sequence numbers are lost and wait for retransmission.
    #[inline]
    pub(super) fn waiting(&self) -> u64 {
        u64::from(self.waiting)
    }

    #[inline]
    pub(super) fn has_sacked(&self) -> bool {
        self.sacked > 0
    }

    /// Adds a new segment that ends at `end`. Give `rate` if the delivery rate is measured.
    #[inline]
    pub(super) fn push(&mut self, end: u64, at: Time, fin: bool, rate: Option<RateSnapshot>) {
        debug_assert!(
            self.sent.back().is_none_or(|last| last.end() <= end),
            "segments are recorded in sequence order"
        );
        self.sent.push(Sent::new(end, at, fin));
        if let Some(rate) = rate {
            self.more().rates.push_back(rate);
        }
    }

    /// Returns the segments that an acknowledgment of everything below `una` covers, if none of them is marked as SACKed, lost or retransmitted.
    #[inline(always)]
    pub(super) fn unmarked_run(&self, una: u64) -> Option<AckedRun> {
        let first = self.sent.get(0)?;
        let (mut last, mut whole) = (first, 0);
        loop {
            if last.is(SACKED | LOST | RESENT | AMBIGUOUS) {
                return None;
            }
            whole += usize::from(last.end() <= una);
            if last.end() >= una {
                break;
            }
            last = self.sent.get(whole)?;
        }
        Some(AckedRun {
            una,
            whole,
            first_at: first.at,
            first_end: first.end(),
            last_at: last.at,
            last_end: last.end(),
        })
    }

    /// Removes these segments.
    #[inline]
    pub(super) fn remove_run(&mut self, run: &AckedRun) {
        self.sent.pop(run.whole);
        self.una = run.una;
    }

    /// Returns whether the first record was sent once, and after the segment that was sent at `at` and ends at `end`. True if there is no record.
    pub(super) fn begins_after(&self, at: Time, end: u64) -> bool {
        self.sent.get(0).is_none_or(|first| (first.at, first.end()) >= (at, end) && !first.is(AMBIGUOUS))
    }

    /// Processes an acknowledgment of everything below `una` with these SACK blocks.
    #[inline(never)]
    pub(super) fn record_ack(&mut self, una: u64, blocks: &SackBlocks) -> Arrived {
        let (taken, oldest) = if una > self.una { self.remove_below(una, |_, _, _| {}) } else { (0, None) };
        let (sacked, sample) = self.mark_sacked(blocks, |_, _, _| {});
        Arrived { delivered: taken + sacked, sacked, sample: oldest.or(sample) }
    }

    /// Fast path for an acknowledgment that acknowledges nothing and SACKs exactly one more record: the one directly above all SACKed records, if it
    /// was sent once and is not marked lost. Returns `None`, without any effect, for any other acknowledgment.
    #[inline(always)]
    pub(super) fn try_sack_next(&mut self, blocks: &SackBlocks) -> Option<Arrived> {
        let more = self.more.as_mut().filter(|_| self.sacked > 0)?;
        let NewBlock { from, end, .. } = blocks.grown(&more.known, self.una)?;
        if self.sent.get(more.top - 1)?.end() != from {
            return None;
        }
        let record = self.sent.get_mut(more.top)?;
        if record.end() != end || record.is(LOST | AMBIGUOUS) {
            return None;
        }
        record.tagged |= SACKED;
        let sacked = end - from;
        self.sacked += sacked as u32;
        more.sacked_records += 1;
        more.top += 1;
        more.known = *blocks;
        Some(Arrived { delivered: sacked, sacked, sample: Some(record.at) })
    }

    /// Processes a cumulative acknowledgment of everything below `una`.
    pub(super) fn acknowledge(&mut self, una: u64, progress: &mut AckSample) {
        progress.acked = una - self.una;
        let (taken, sample) = self.remove_below(una, |board, record, index| {
            progress.note(record.at, record.end(), record.is(AMBIGUOUS), true, board.rate(index));
        });
        progress.delivered += taken;
        progress.sample = sample;
    }

    /// Marks the records that the blocks report.
    pub(super) fn sack(&mut self, blocks: &SackBlocks, progress: &mut AckSample) {
        let (sacked, sample) = self.mark_sacked(blocks, |board, record, index| {
            progress.note(record.at, record.end(), record.is(AMBIGUOUS), false, board.rate(index));
        });
        progress.sacked += sacked;
        progress.delivered += sacked;
        progress.sample = progress.sample.or(sample);
    }

    /// Removes everything below `una`, and calls `note` for each record that was not SACKed. Returns how many bytes are newly delivered, and when the
    /// oldest of these records was sent. The time is `None` if one of them was sent more than once: a sample behind a hole that a retransmission
    /// filled would measure the hole.
    #[inline(always)]
    fn remove_below(&mut self, una: u64, mut note: impl FnMut(&Self, &Sent, usize)) -> (u64, Option<Time>) {
        let (mut new, mut oldest, mut ambiguous) = (0, None, false);
        let (mut waiting, mut sacked, mut sacked_records, mut retransmitted, mut whole) = (0, 0, 0, 0, 0);
        let mut start = self.una;
        while start < una {
            let record = self.sent[whole];
            let (ends, covered) = (record.end() <= una, record.end().min(una) - start);
            waiting += if record.waits() { covered as u32 } else { 0 };
            if record.is(SACKED) {
                sacked += covered as u32;
                sacked_records += u32::from(ends);
            } else {
                new += covered;
                ambiguous |= record.is(AMBIGUOUS);
                retransmitted += usize::from(record.is(AMBIGUOUS) && ends);
                oldest = oldest.or(Some(record.at));
                note(self, &record, whole);
            }
            start += covered;
            whole += usize::from(ends);
        }
        self.una = start;
        self.sent.pop(whole);
        self.sacked -= sacked;
        self.waiting -= waiting;
        if let Some(more) = &mut self.more {
            more.sacked_records -= sacked_records;
            more.retransmitted -= retransmitted;
            more.top = more.top.saturating_sub(whole);
            more.rates.drain(..whole.min(more.rates.len()));
            while more.first_sent.first_key_value().is_some_and(|(end, _)| *end <= una) {
                more.first_sent.pop_first();
            }
        }
        if waiting > 0 {
            self.settle();
        }
        (new, if ambiguous { None } else { oldest })
    }

    /// Marks the records that the blocks report, and calls `note` for each newly SACKed one, in sequence order. Skips blocks below the cumulative
    /// acknowledgment (RFC 2883 duplicates). Returns how many bytes are newly SACKed, and when the first of these records was sent that was sent only
    /// once.
    #[inline(always)]
    fn mark_sacked(
        &mut self,
        blocks: &SackBlocks,
        mut note: impl FnMut(&Self, &Sent, usize),
    ) -> (u64, Option<Time>) {
        if blocks.is_empty() {
            if let Some(more) = &mut self.more {
                more.known = *blocks;
            }
            return (0, None);
        }
        let (before, waiting) = (self.sacked, self.waiting);
        let (mut records, mut retransmitted, mut sample) = (0, 0, None);
        let more = self.more.get_or_insert_with(first_needed);
        let news = blocks.beyond(&more.known, self.una);
        more.known = *blocks;
        let mut top = if before > 0 { more.top } else { 0 };
        let mut joins = true;
        for &NewBlock { start, end, from } in news.as_slice() {
            let mut index = self.index_near(top, from);
            let mut seq = if index < self.len() { self.start(index) } else { end };
            joins &= index == top && top > 0 && seq >= start;
            while let Some(record) = self.sent.get_mut(index).filter(|record| record.end() <= end) {
                let len = (record.end() - seq) as u32;
                let new = seq >= start && !record.is(SACKED);
                seq = record.end();
                if new {
                    self.waiting -= if record.waits() { len } else { 0 };
                    record.tagged |= SACKED;
                    self.sacked += len;
                    records += 1;
                    let record = *record;
                    if record.is(AMBIGUOUS) {
                        retransmitted += 1;
                    } else {
                        sample = sample.or(Some(record.at));
                    }
                    note(self, &record, index);
                }
                index += 1;
            }
            top = top.max(index);
        }
        let more = self.more();
        more.top = top;
        more.all_checked &= joins;
        more.sacked_records += records;
        more.retransmitted -= retransmitted;
        if self.waiting != waiting {
            self.settle();
        }
        (u64::from(self.sacked - before), sample)
    }

    fn rate(&self, index: usize) -> RateSnapshot {
        let rates = self.more.as_ref().map(|more| &more.rates);
        rates.and_then(|rates| rates.get(index)).copied().unwrap_or_default()
    }

    /// Returns when each segment was sent first whose end is in `ends`, in sequence order. A segment that was split since counts once.
    pub(super) fn first_sent(&self, ends: Range<u64>) -> impl Iterator<Item = Time> {
        let records = (self.index_of(ends.start)..self.len()).map(|index| &self.sent[index]);
        let within = records.take_while(move |record| record.end() <= ends.end);
        within.filter(|record| !record.is(PART)).map(|record| {
            let more = self.more.as_ref().filter(|_| record.is(AMBIGUOUS));
            let first = more.and_then(|more| more.first_sent.get(&record.end()));
            first.copied().unwrap_or(record.at)
        })
    }

    /// Returns the index of the first record that ends after `seq`.
    pub(super) fn index_of(&self, seq: u64) -> usize {
        self.sent.partition_point(|record| record.end() <= seq)
    }

    /// Like [`index_of`](Self::index_of), but faster if the record is at `top` or shortly above it.
    #[inline]
    fn index_near(&self, top: usize, seq: u64) -> usize {
        if top > 0 && self.sent[top - 1].end() > seq {
            return self.index_of(seq);
        }
        let mut index = top;
        while self.sent.get(index).is_some_and(|record| record.end() <= seq) {
            index += 1;
        }
        index
    }

    /// Marks a record lost, even if it was retransmitted before. Ignores records that are SACKed or already wait for retransmission.
    pub(super) fn mark_lost(&mut self, index: usize) {
        let len = self.length(index);
        let record = &mut self.sent[index];
        if record.is(SACKED) || record.waits() {
            return;
        }
        record.tagged = (record.tagged | LOST) & !RESENT;
        let end = record.end();
        self.waiting += len;
        self.more().lost.push(Reverse(end));
    }

    /// Marks all records lost that are not SACKed (after a retransmission timeout).
    pub(super) fn mark_all_lost(&mut self) {
        // RFC 2018 section 8: a receiver may discard data that it has SACKed. A SACKed first record shows that it did.
        if self.reneged() {
            self.forget_sacks();
        }
        for index in 0..self.len() {
            self.mark_lost(index);
        }
    }

    fn forget_sacks(&mut self) {
        for index in 0..self.len() {
            let len = self.length(index);
            let record = &mut self.sent[index];
            let sacked = record.is(SACKED);
            let retransmitted = sacked && record.is(AMBIGUOUS);
            record.tagged &= !SACKED;
            let (waits, end) = (sacked && record.waits(), record.end());
            self.more().retransmitted += usize::from(retransmitted);
            if waits {
                self.waiting += len;
                self.more().lost.push(Reverse(end));
            }
        }
        self.sacked = 0;
        let more = self.more();
        more.sacked_records = 0;
        more.known = SackBlocks::default();
        more.checked_to = 0;
    }

    /// Unmarks all records that wait for retransmission (after a spurious recovery or timeout).
    pub(super) fn unmark_lost(&mut self) {
        for index in 0..self.len() {
            let record = &mut self.sent[index];
            if record.waits() {
                record.tagged &= !LOST;
            }
        }
        self.waiting = 0;
        if let Some(more) = &mut self.more {
            more.unmarked_to = more.checked_to;
        }
        self.settle();
    }

    /// Returns the first record that waits for retransmission.
    #[inline]
    pub(super) fn next_lost(&self) -> Option<usize> {
        if self.waiting == 0 { None } else { self.find_lost() }
    }

    #[inline(never)]
    fn find_lost(&self) -> Option<usize> {
        let Reverse(end) = self.more.as_ref()?.lost.peek()?;
        Some(self.index_of(end - 1))
    }

    /// Removes entries from the front of [`ScoreboardCold::lost`] that no longer wait for retransmission.
    #[inline]
    fn settle(&mut self) {
        if let Some(more) = &mut self.more
            && !more.lost.is_empty()
        {
            more.settle(&self.sent, self.waiting);
        }
    }

    /// Returns whether any record that was sent more than once is not SACKed.
    pub(super) fn has_resent(&self) -> bool {
        self.more.as_ref().is_some_and(|more| more.retransmitted > 0)
    }

    /// Records a retransmission.
    pub(super) fn resend(&mut self, index: usize, now: Time, rate: Option<RateSnapshot>) {
        let len = self.length(index);
        let record = &mut self.sent[index];
        let (waited, first) = (record.waits(), !record.is(AMBIGUOUS | SACKED));
        let before = *record;
        record.tagged |= RESENT | AMBIGUOUS;
        record.at = now;
        let more = self.more();
        more.retransmitted += usize::from(first);
        if !before.is(AMBIGUOUS | PART) {
            more.first_sent.insert(before.end(), before.at);
        }
        if waited {
            self.waiting -= len;
            self.settle();
        }
        if let Some(rate) = rate {
            self.more().rates[index] = rate;
        }
    }

    /// RFC 6675 section 4, IsLost: applies the rule to every record. Returns whether a record is newly lost.
    #[inline(always)]
    pub(super) fn detect_losses(&mut self, duplicate_threshold: u32, mss: u64) -> bool {
        // "The routine returns true when either DupThresh discontiguous SACKed sequences have arrived above SeqNum or
        // more than (DupThresh - 1) * SMSS bytes with sequence numbers greater than SeqNum have been SACKed."
        let enough = u64::from(duplicate_threshold - 1) * mss;
        let Some(more) = self.more.as_ref().filter(|_| self.sacked > 0) else { return false };
        let few = more.sacked_records < duplicate_threshold && u64::from(self.sacked) <= enough;
        debug_assert!(!more.all_checked || self.is_all_checked(more));
        if few || more.all_checked {
            false
        } else {
            self.detect_losses_slow_path(duplicate_threshold, enough)
        }
    }

    /// Checks [`ScoreboardCold::all_checked`].
    fn is_all_checked(&self, more: &ScoreboardCold) -> bool {
        (self.index_of(more.checked_to)..more.top).all(|index| self.sent[index].is(SACKED))
            && (more.top..self.len()).all(|index| !self.sent[index].is(SACKED))
    }

    #[inline(never)]
    fn detect_losses_slow_path(&mut self, duplicate_threshold: u32, enough: u64) -> bool {
        let top = self.more().top;
        let (mut bytes, mut runs, mut above) = (0, 0, u64::MAX);
        let mut index = top;
        let below = loop {
            index -= 1;
            let record = &self.sent[index];
            if record.is(SACKED) {
                let (start, end) = (self.start(index), record.end());
                bytes += end - start;
                runs += u32::from(above != end);
                above = start;
                if bytes > enough || runs >= duplicate_threshold {
                    break start;
                }
                if bytes == u64::from(self.sacked) {
                    return false;
                }
            }
        };
        // If all records from `below` up to `top` are SACKed, nothing is left to detect until another hole appears.
        let all_checked = self.start(top) - below == bytes;
        let checked_to = self.more().checked_to;
        let mut found = false;
        while index > 0 && self.sent[index - 1].end() > checked_to {
            index -= 1;
            if !self.sent[index].is(SACKED | LOST) {
                self.mark_lost(index);
                found = true;
            }
        }
        let more = self.more();
        (more.checked_to, more.all_checked) = (checked_to.max(below), all_checked);
        found
    }

    /// RFC 6675 section 4, NextSeg rule 3: returns the first record below the highest SACKed one that is neither SACKed nor marked lost. It was sent, and
    /// IsLost does not hold for it.
    pub(super) fn first_unmarked_hole(&self) -> Option<usize> {
        if self.sacked == 0 {
            return None;
        }
        let more = self.more.as_ref()?;
        let highest = (0..more.top).rfind(|index| self.sent[*index].is(SACKED))?;
        let from = if self.una < more.unmarked_to { 0 } else { self.index_of(more.checked_to) };
        (from..highest).find(|index| !self.sent[*index].is(SACKED | LOST))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MSS: u64 = 10;

    /// Reference: RFC 6675's IsLost for one record, as in the text.
    fn is_lost(board: &Scoreboard, index: usize) -> bool {
        let (mut bytes, mut runs, mut joins) = (0, 0, false);
        for record in (index + 1..board.len()).map(|index| board.get(index)) {
            bytes += if record.sacked { record.end - record.seq } else { 0 };
            runs += u32::from(record.sacked && !joins);
            joins = record.sacked;
        }
        bytes > 2 * MSS || runs >= 3
    }

    /// RFC 2018 section 8: the receiver discards SACKed data. A record that waits for retransmission already is counted once.
    #[test]
    fn reneging_counts_a_segment_to_retransmit_once() {
        let mut board = Scoreboard::new(1);
        [11, 21, 31].into_iter().for_each(|end| board.push(end, Time::ZERO, false, None));
        let mut blocks = SackBlocks::default();
        blocks.push(11, 21);
        board.record_ack(1, &blocks);
        board.mark_lost(2);
        board.record_ack(11, &SackBlocks::default());
        assert!(board.reneged());
        board.mark_all_lost();
        assert_eq!((board.waiting(), board.absent()), (20, 20));
    }

    proptest! {
        /// Segments are delivered in any order, and some acknowledgments are lost. A record is SACKed if an acknowledgment reported it, and lost if
        /// the rule says so.
        #[test]
        fn scoreboard_fast_path_equals_loss_rule(steps in prop::collection::vec((0u8..10, 0usize..12, any::<u8>()), 1..200)) {
            let (mut board, mut twin) = (Scoreboard::new(1), Scoreboard::new(1));
            // For each segment: delivered; reported or acknowledged; lost. `first` is the first segment not delivered.
            let (mut come, mut told, mut lost, mut first) = (vec![], vec![], vec![], 0);
            for (kind, place, chance) in steps {
                let newest = match kind {
                    0..=2 => {
                        come.push(false);
                        told.push(false);
                        lost.push(false);
                        for board in [&mut board, &mut twin] {
                            board.push(1 + MSS * come.len() as u64, Time::ZERO, false, None);
                        }
                        continue;
                    }
                    3 => first,
                    4..=5 => first + place,
                    // The segment after the last delivered one.
                    _ => come.iter().rposition(|come| *come).map_or(first + 1, |last| last + 1),
                };
                if newest >= come.len() {
                    continue;
                }
                come[newest] = true;
                first = come.iter().position(|come| !come).unwrap_or(come.len());
                if chance.is_multiple_of(5) {
                    continue;
                }
                let mut ranges = vec![];
                for index in (first..come.len()).filter(|index| come[*index]) {
                    match ranges.last_mut() {
                        Some((_, end)) if *end == index => *end += 1,
                        _ => ranges.push((index, index + 1)),
                    }
                }
                ranges.sort_by_key(|(start, end)| (!(*start..*end).contains(&newest), Reverse(*start)));
                let (mut blocks, mut delivered) = (SackBlocks::default(), 0);
                for (start, end) in ranges.into_iter().take(4).chain([(0, first)]) {
                    if start > 0 {
                        blocks.push(1 + MSS * start as u64, 1 + MSS * end as u64);
                    }
                    for told in &mut told[start..end] {
                        delivered += if std::mem::replace(told, true) { 0 } else { MSS };
                    }
                }
                let una = 1 + MSS * first as u64;
                let next = if una == board.una() { board.try_sack_next(&blocks) } else { None };
                let arrived = next.unwrap_or_else(|| board.record_ack(una, &blocks));
                prop_assert_eq!(arrived.delivered, delivered);
                prop_assert_eq!(twin.record_ack(una, &blocks).delivered, delivered);
                let found = board.detect_losses(3, MSS);
                prop_assert_eq!(found, twin.detect_losses(3, MSS));
                let mut finds = false;
                for (index, segment) in (first..come.len()).enumerate() {
                    let record = board.get(index);
                    prop_assert_eq!(record.sacked, told[segment]);
                    let newly = !record.sacked && !lost[segment] && is_lost(&board, index);
                    lost[segment] |= newly;
                    finds |= newly;
                    prop_assert!(record.sacked || record.lost == lost[segment]);
                    prop_assert_eq!(format!("{record:?}"), format!("{:?}", twin.get(index)));
                }
                prop_assert_eq!(found, finds);
                let waits = |index: &usize| {
                    let record = board.get(*index);
                    record.lost && !record.resent && !record.sacked
                };
                prop_assert_eq!(board.next_lost(), (0..board.len()).find(waits));
                let highest = (0..board.len()).rfind(|index| board.get(*index).sacked).unwrap_or(0);
                let hole = |index: &usize| !board.get(*index).sacked && !board.get(*index).lost;
                prop_assert_eq!(board.first_unmarked_hole(), (0..highest).find(hole));
                if chance % 2 == 0
                    && let Some(index) = board.next_lost()
                {
                    board.resend(index, Time::ZERO, None);
                    twin.resend(index, Time::ZERO, None);
                }
            }
        }
    }
}
