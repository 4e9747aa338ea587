//! The receiving half: reassembly, the window, selective acknowledgments and congestion echoes.

use super::delayed_ack::DelayedAck;
use super::out_of_order::{Range, Ranges};
use super::parameters::{Shared, TcpParameters, WindowUpdate};
use super::segment::{Flags, SackBlocks, Segment};
use crate::time::Time;

/// The receiving half of a connection.
#[derive(Clone, Debug)]
pub(super) struct Receiver {
    /// Next sequence number expected (RCV.NXT).
    next: u64,
    /// Right edge of the window, as announced.
    edge: u64,
    /// TSval to echo (TS.Recent of RFC 7323 section 4.3); [`Time::MAX`] before there is one.
    recent: Time,
    /// Last acknowledgment number sent.
    last_ack: u64,
    pub(super) acks: DelayedAck,
    more: Option<Box<ReceiverCold>>,
    /// Number of acknowledgments that the timer released.
    delayed_acks: u32,
    scale: u8,
    /// The FIN has arrived, in order.
    finished: bool,
    /// `more` may affect data in order or outgoing segments. While false, the fast path ignores `more`.
    odd: bool,
    /// ECN: marks are echoed until CWR arrives (RFC 3168), or this is the state of the last packet (RFC 8257).
    echo: bool,
}

/// State that is allocated when data arrives out of order or twice, when marks change, or when the application reads by itself.
#[derive(Clone, Debug, Default)]
struct ReceiverCold {
    /// First sequence number that the application has not read, unless it reads all data on arrival. The flag is false once it does so again; the
    /// next data in order then clears the field.
    read: Option<(u64, bool)>,
    /// Sequence number of a FIN that arrived out of order.
    fin: Option<u64>,
    ranges: Ranges,
    stamp: u64,
    /// For each range, one of its sequence numbers and its stamp, the most recent range last. Entries of former ranges may remain.
    recent: Vec<(u64, u64)>,
    /// A duplicate segment to report first (RFC 2883).
    duplicate: Option<(u64, u64)>,
    /// Number and echo of an acknowledgment that must go out with the state before the marks changed (RFC 8257 section 3.2).
    early: Option<(u64, bool)>,
}

impl ReceiverCold {
    /// Returns whether nothing in it affects data in order or outgoing segments.
    fn is_quiet(&self) -> bool {
        self.ranges.is_empty()
            && self.fin.is_none()
            && self.read.is_none()
            && self.duplicate.is_none()
            && self.early.is_none()
    }
}

/// The result of processing a segment's data.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Received {
    /// Bytes newly in order.
    pub(super) in_order: u64,
    /// Bytes that were discarded: duplicates, or bytes beyond the window.
    pub(super) refused: u64,
    /// The FIN is now in order.
    pub(super) finished: bool,
}

impl Receiver {
    pub(super) fn new() -> Self {
        Self {
            next: 0,
            edge: 0,
            recent: Time::MAX,
            last_ack: 0,
            acks: DelayedAck::default(),
            more: None,
            delayed_acks: 0,
            scale: 0,
            finished: false,
            odd: false,
            echo: false,
        }
    }

    /// Returns the cold state for a change, which ends the fast path.
    fn more(&mut self) -> &mut ReceiverCold {
        self.odd = true;
        self.more.get_or_insert_default()
    }

    /// Takes the fast path again, if the cold state needs no handling.
    fn settle(&mut self) {
        self.odd = self.more.as_ref().is_some_and(|more| !more.is_quiet());
    }

    /// Returns the size of the buffer in bytes. Its minimum number of segments applies once the segment size is known.
    #[inline]
    fn capacity(&self, p: &TcpParameters, mss: u64) -> u64 {
        let least = if self.next == 0 { 0 } else { p.receive_minimum_segments };
        p.receive_buffer.max(least * mss)
    }

    /// Lets the acknowledgment timer expire, if it is due.
    pub(super) fn on_timer(&mut self, now: Time) {
        self.delayed_acks += u32::from(self.acks.on_timer(now));
    }

    pub(super) fn delayed_acks(&self) -> u64 {
        u64::from(self.delayed_acks)
    }

    /// Returns the scale that is needed to announce the whole buffer (RFC 7323 section 2.2).
    pub(super) fn wanted_scale(&self, p: &TcpParameters, mss: u64) -> u8 {
        let capacity = self.capacity(p, mss);
        (0..14).find(|scale| capacity >> scale <= 65535).unwrap_or(14)
    }

    /// Processes the peer's SYN: the segment size and the window scale are known now.
    pub(super) fn synchronize(&mut self, p: &TcpParameters, mss: u64, scale: Option<u8>) {
        self.next = 1;
        self.scale = scale.unwrap_or(0);
        self.edge = 1;
        self.open_window(p, mss);
    }

    #[inline]
    pub(super) fn next(&self) -> u64 {
        self.next
    }

    /// Returns the first sequence number that the application has not read.
    #[inline]
    fn read_to(&self) -> u64 {
        let automatic = (self.next - u64::from(self.finished)).max(1);
        if !self.odd {
            return automatic;
        }
        self.more.as_ref().and_then(|more| more.read).map_or(automatic, |(read, _)| read)
    }

    /// Returns whether a FIN has arrived, in order or not.
    pub(super) fn has_fin(&self) -> bool {
        self.finished || self.more.as_ref().is_some_and(|more| more.fin.is_some())
    }

    /// Returns how many bytes of payload arrived in order.
    pub(super) fn bytes_received(&self) -> u64 {
        self.next.saturating_sub(1) - u64::from(self.finished)
    }

    /// Returns how many bytes the application can read.
    pub(super) fn readable(&self) -> u64 {
        self.next - u64::from(self.finished) - self.read_to().min(self.next)
    }

    pub(super) fn set_automatic(&mut self, automatic: bool) {
        if !automatic {
            let read = self.read_to();
            self.more().read = Some((read, true));
        } else if let Some(more) = &mut self.more
            && let Some((_, goes_on)) = &mut more.read
        {
            *goes_on = false;
        }
    }

    /// Returns the window of a SYN, which is never scaled.
    pub(super) fn syn_window(&self, p: &TcpParameters, mss: u64) -> u32 {
        self.capacity(p, mss).min(65535) as u32
    }

    /// Rounds a window up to units of the scale, so that the edge never moves back.
    #[inline]
    fn in_units(&self, window: u64) -> u64 {
        let unit = 1 << self.scale;
        (window + (unit - 1)) & !(unit - 1)
    }

    /// Moves the right edge as far as silly window avoidance allows, never back. If it has moved, returns the window in bytes, a whole number of
    /// units.
    #[inline]
    fn open_window(&mut self, p: &TcpParameters, mss: u64) -> Option<u64> {
        let most = 65535 << self.scale;
        let capacity = self.capacity(p, mss);
        let unread = if self.odd || self.finished { self.next.saturating_sub(self.read_to()) } else { 0 };
        let free = capacity.saturating_sub(unread).min(most);
        let window = self.in_units(free).min(most);
        let edge = self.next + window;
        // RFC 9293 section 3.8.6.2.2: keep the edge "until […] RCV.BUFF - RCV.USER - RCV.WND >=
        // min ( Fr * RCV.BUFF, Eff.snd.MSS )", Fr = 1/2.
        if edge < self.edge + (capacity / 2).min(mss) {
            return None;
        }
        self.edge = edge;
        Some(window)
    }

    /// Returns the window to announce, in bytes, and counts it as announced.
    #[inline]
    pub(super) fn announce(&mut self, p: &TcpParameters, mss: u64) -> u32 {
        let reads = self.odd && self.more.as_ref().is_some_and(|more| more.read.is_some());
        if self.next == self.last_ack && !reads {
            // The edge has not moved since the last segment was sent: no data arrived in order, and nothing was read.
            let window = self.edge.saturating_sub(self.next);
            debug_assert_eq!(self.in_units(window), window);
            return window as u32;
        }
        if let Some(window) = self.open_window(p, mss) {
            return window as u32;
        }
        let window = self.edge.saturating_sub(self.next);
        // After data with a length that is no whole number of units, a part of a unit is open. The announced window is rounded up.
        let window = self.in_units(window).min(65535 << self.scale);
        self.edge = self.edge.max(self.next + window);
        window as u32
    }

    /// Reads up to `bytes`. Returns how many bytes the application gets.
    pub(super) fn read(&mut self, p: &TcpParameters, mss: u64, bytes: u64) -> u64 {
        let taken = bytes.min(self.readable());
        if taken == 0 {
            return 0;
        }
        let read = self.read_to() + taken;
        let more = self.more();
        let goes_on = more.read.is_some_and(|(_, goes_on)| goes_on);
        more.read = Some((read, goes_on));
        if !self.finished {
            let capacity = self.capacity(p, mss);
            let before = self.edge.saturating_sub(self.next);
            let after = capacity.saturating_sub(self.readable());
            let gain = after.saturating_sub(before);
            let update = match p.window_update {
                WindowUpdate::TwoSegments => gain >= (2 * mss).min(capacity / 2),
                WindowUpdate::BelowSegment => before < mss && gain >= mss.min(capacity / 2),
                WindowUpdate::Doubled => {
                    2 * before <= capacity && after >= 2 * before && gain >= mss.min(capacity / 2)
                }
            };
            if update {
                self.acks.at_once();
            }
        }
        taken
    }

    /// Returns whether a segment that carries only data, or nothing, is the expected one: the next in order.
    #[inline]
    pub(super) fn is_next_in_order(&self, segment: &Segment) -> bool {
        debug_assert!(self.odd || self.more.as_ref().is_none_or(|more| more.is_quiet()));
        segment.len == 0 || segment.seq == self.next && segment.end() <= self.edge && !self.odd
    }

    /// Processes an expected segment. The result is that of [`receive_segment`](Self::receive_segment).
    #[inline(always)]
    pub(super) fn on_segment_fast_path(&mut self, p: &Shared, mss: u64, segment: &Segment, now: Time) {
        self.note_timestamp(segment);
        if segment.ect {
            self.note_mark(segment, p.derived().exact_marks);
        }
        if segment.len > 0 {
            self.next = segment.end();
            self.acks.in_order(p, mss, segment.len, now);
        }
    }

    /// Fast path while there is a hole: processes a segment that carries only data, if it continues the most recent range. Returns false, without any
    /// effect, for other segments.
    #[inline]
    pub(super) fn try_extend_newest(&mut self, segment: &Segment) -> bool {
        let Some(more) = &mut self.more else { return false };
        let fits = segment.len > 0 && !segment.ect && segment.end() <= self.edge;
        let joins = fits && more.grow(segment.seq, segment.end());
        if joins {
            self.acks.owe_duplicate();
        }
        joins
    }

    /// Processes the data and the FIN of a segment.
    pub(super) fn receive_segment(&mut self, p: &Shared, mss: u64, segment: &Segment, now: Time) -> Received {
        self.note_timestamp(segment);
        if segment.ect {
            self.note_mark(segment, p.derived().exact_marks);
        }
        let mut received = Received::default();
        if segment.sequence_len() == 0 {
            return received;
        }
        let end = segment.end();
        let has_fin = segment.flags.has(Flags::FIN);
        let fin = (has_fin && end <= self.edge.max(self.next)).then_some(end);
        if fin.is_some() && segment.seq > self.next {
            self.more().fin = fin;
        }
        let (start, stop) = (segment.seq.max(self.next), end.min(self.edge.max(self.next)));
        let kept = stop.saturating_sub(start);
        received.refused = segment.payload() - kept;
        if end + u64::from(has_fin) <= self.next {
            // RFC 9293 section 3.10.7.4: "If an incoming segment is not acceptable, an acknowledgment should be sent".
            let duplicate = (segment.len > 0).then_some((segment.seq, end));
            if duplicate.is_some() || self.more.is_some() {
                self.more().duplicate = duplicate;
            }
            self.acks.at_once();
            return received;
        }
        if kept == 0 && !(has_fin && self.next == end) {
            self.acks.at_once();
            return received;
        }
        if start > self.next {
            received.refused += kept - self.more().insert(start, stop);
            // RFC 5681 section 4.2: "Out-of-order data segments SHOULD be acknowledged immediately".
            self.acks.owe_duplicate();
            return received;
        }
        let before = self.next;
        self.next = stop.max(self.next);
        let (mut fin, mut had_hole) = (fin, false);
        if let Some(more) = &mut self.more {
            had_hole = !more.ranges.is_empty();
            received.refused += more.merge_reached(&mut self.next, start);
            fin = fin.or(more.fin);
            more.read = more.read.filter(|(_, goes_on)| *goes_on);
            self.settle();
        }
        received.in_order = self.next - before;
        if !self.finished && fin == Some(self.next) {
            self.next += 1;
            self.finished = true;
            received.finished = true;
        }
        self.acks.in_order(p, mss, segment.len, now);
        // RFC 5681 section 4.2: "a TCP receiver SHOULD send an immediate ACK when it receives a data segment that
        // fills in all or part of a gap". A FIN, and a segment that is partly old or beyond the window, cannot wait.
        if had_hole || received.finished || received.refused > 0 {
            self.acks.at_once();
        }
        received
    }

    #[inline]
    fn note_timestamp(&mut self, segment: &Segment) {
        // RFC 7323 section 4.3 (2): "If SEG.TSval >= TS.Recent and SEG.SEQ <= Last.ACK.sent < SEG.SEQ + SEG.LEN". The last comparison is left out, as
        // in the stacks: a pure acknowledgment has no length.
        if let Some(stamp) = segment.timestamps
            && segment.seq <= self.last_ack
            && (self.recent == Time::MAX || stamp.value() >= self.recent)
        {
            self.recent = stamp.value();
        }
    }

    /// Records the SYN's timestamp, which is the first to echo.
    pub(super) fn note_syn_timestamp(&mut self, value: Time) {
        self.recent = value;
    }

    #[inline(never)]
    fn note_mark(&mut self, segment: &Segment, exact: bool) {
        if exact {
            if segment.len > 0 && segment.ce != self.echo {
                // RFC 8257 section 3.2: on a change of state with an acknowledgment pending, "immediately send an
                // ACK" with the old state.
                if self.acks.is_pending() {
                    let early = (self.next, self.echo);
                    self.more().early = Some(early);
                }
                self.echo = segment.ce;
            }
        } else {
            // RFC 3168 section 6.1.3: marks are echoed until CWR arrives; CE in the same packet starts the echo again.
            self.echo = segment.ce || (self.echo && !segment.flags.has(Flags::CWR));
        }
    }

    /// Returns whether there may be SACK blocks to report.
    #[inline]
    pub(super) fn has_blocks(&self) -> bool {
        self.odd && self.more.as_ref().is_some_and(|more| more.duplicate.is_some() || !more.ranges.is_empty())
    }

    /// Returns the blocks to report: a duplicate first, then the most recent ranges (RFC 2018 section 4, RFC 2883).
    pub(super) fn sack_blocks(&mut self, p: &TcpParameters, room: usize) -> SackBlocks {
        let mut blocks = SackBlocks::default();
        let Some(more) = &mut self.more else { return blocks };
        let (mut count, duplicate) = (0, more.duplicate.take());
        if let Some((start, end)) = duplicate.filter(|_| p.dsack) {
            blocks.put(count, start, end);
            count += 1;
        }
        let (mut place, most) = (more.recent.len(), room.min(count + more.ranges.len()));
        while count < most && place > 0 {
            place -= 1;
            match more.range(more.recent[place]) {
                Some(range) => {
                    blocks.put(count, range.start, range.end);
                    count += 1;
                }
                None => _ = more.recent.remove(place),
            }
        }
        if duplicate.is_some() {
            self.settle();
        }
        blocks
    }

    /// Drops the duplicate to report, because SACK was not negotiated.
    pub(super) fn forget_duplicate(&mut self) {
        if let Some(more) = &mut self.more {
            more.duplicate = None;
        }
        self.settle();
    }

    /// Records that an acknowledgment of everything received was sent; `pure` if the segment carried nothing else.
    #[inline]
    pub(super) fn acknowledged(&mut self, pure: bool) {
        self.last_ack = self.next;
        self.acks.sent(pure);
    }

    #[inline]
    pub(super) fn recent_timestamp(&self) -> Option<Time> {
        (self.recent != Time::MAX).then_some(self.recent)
    }

    #[inline]
    pub(super) fn echoes_mark(&self) -> bool {
        self.echo
    }

    /// Takes the number and the echo of the acknowledgment that must go out first, if marks have changed.
    pub(super) fn take_early(&mut self) -> Option<(u64, bool)> {
        let early = self.more.as_mut()?.early.take();
        self.settle();
        early
    }

    #[inline]
    pub(super) fn has_early(&self) -> bool {
        self.odd && self.more.as_ref().is_some_and(|more| more.early.is_some())
    }
}

impl ReceiverCold {
    /// Adds `[start, end)` to the ranges above the hole. Returns how many of its bytes are new.
    fn insert(&mut self, start: u64, end: u64) -> u64 {
        if self.grow(start, end) {
            return end - start;
        }
        self.stamp += 1;
        let new = self.ranges.add(Range { start, end, stamp: self.stamp });
        if new == 0 {
            self.duplicate = Some((start, end));
        }
        self.is_recent(start);
        new
    }

    /// Extends the last range by `[start, end)`, if it ends at `start` and is the most recent one, which it then stays. Returns false, without any
    /// effect, if not.
    #[inline]
    fn grow(&mut self, start: u64, end: u64) -> bool {
        let stamp = self.stamp;
        let last = self.ranges.last_mut().filter(|last| last.end == start && last.stamp == stamp);
        last.is_some_and(|last| {
            last.end = end;
            true
        })
    }

    /// Records the range with this sequence number as the most recent one.
    fn is_recent(&mut self, seq: u64) {
        if self.recent.len() > 2 * self.ranges.len() + 8 {
            let recent = std::mem::take(&mut self.recent);
            self.recent = recent.into_iter().filter(|one| self.range(*one).is_some()).collect();
        }
        self.recent.push((seq, self.stamp));
    }

    /// Returns the range with this sequence number, if it has this stamp.
    #[inline]
    fn range(&self, (seq, stamp): (u64, u64)) -> Option<&Range> {
        match self.ranges.last() {
            Some(last) if last.stamp == stamp => Some(last),
            _ => self.ranges.behind(seq).filter(|range| range.stamp == stamp),
        }
    }

    /// Removes the ranges that `next` has reached, and moves `next` to their end. Returns how many bytes arrived twice.
    fn merge_reached(&mut self, next: &mut u64, start: u64) -> u64 {
        let mut twice = 0;
        while let Some(range) = self.ranges.take_reached(*next) {
            twice += range.end.min(*next).saturating_sub(range.start.max(start));
            *next = range.end.max(*next);
        }
        if self.ranges.is_empty() {
            self.recent.clear();
        }
        twice
    }
}
