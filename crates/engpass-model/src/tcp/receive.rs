//! The receiving half: reassembly, the window, selective acknowledgments and congestion echoes.

use super::delayed_ack::DelayedAck;
use super::parameters::{TcpParameters, WindowUpdate};
use super::segment::{SackBlocks, Segment};
use crate::time::Time;

/// Bytes received above a hole.
#[derive(Clone, Copy, Debug)]
struct Range {
    start: u64,
    end: u64,
    /// Grows with every report: the largest is the most recent.
    stamp: u64,
}

/// The receiving half of a connection.
#[derive(Clone, Debug)]
pub(super) struct Receiver {
    /// Next sequence number expected (RCV.NXT).
    next: u64,
    /// First sequence number that the application has not read.
    read: u64,
    /// Right edge of the window as announced.
    edge: u64,
    capacity: u64,
    scale: u8,
    mss: u64,
    /// Sequence number of the FIN, once one has come.
    fin: Option<u64>,
    ranges: Vec<Range>,
    stamp: u64,
    /// A duplicate to report first (RFC 2883).
    duplicate: Option<(u64, u64)>,
    /// Reads everything as it comes.
    automatic: bool,
    pub(super) acks: DelayedAck,
    /// TSval to echo (TS.Recent of RFC 7323 section 4.3).
    recent: Option<Time>,
    /// Last acknowledgment sent.
    last_ack: u64,
    /// ECN: the echo goes on until CWR (RFC 3168), or is the state of the last packet (RFC 8257).
    echo: bool,
    exact_marks: bool,
    /// An acknowledgment that must go out as it was before the marks changed (RFC 8257 section 3.2).
    early: Option<(u64, bool)>,
}

/// What came of a segment's data.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Received {
    /// Bytes newly in order.
    pub(super) in_order: u64,
    /// Bytes that were refused: there already, or beyond the window.
    pub(super) refused: u64,
    /// The FIN is now in order.
    pub(super) finished: bool,
}

impl Receiver {
    pub(super) fn new(p: &TcpParameters) -> Self {
        Self {
            next: 0,
            read: 1,
            edge: 0,
            capacity: p.receive_buffer,
            scale: 0,
            mss: p.mss,
            fin: None,
            ranges: Vec::new(),
            stamp: 0,
            duplicate: None,
            automatic: true,
            acks: DelayedAck::default(),
            recent: None,
            last_ack: 0,
            echo: false,
            exact_marks: p.congestion.control(p).wants_exact_marks(),
            early: None,
        }
    }

    /// The scale that is needed to announce the whole buffer (RFC 7323 section 2.2).
    pub(super) fn wanted_scale(&self) -> u8 {
        (0..14).find(|scale| self.capacity >> scale <= 65535).unwrap_or(14)
    }

    /// The SYN came; sizes are now known.
    pub(super) fn synchronize(&mut self, p: &TcpParameters, mss: u64, scale: Option<u8>) {
        self.next = 1;
        self.mss = mss;
        self.scale = scale.unwrap_or(0);
        self.capacity = self.capacity.max(p.receive_minimum_segments * mss);
        self.edge = 1;
        self.open_window();
    }

    pub(super) fn next(&self) -> u64 {
        self.next
    }

    pub(super) fn is_finished(&self) -> bool {
        self.fin.is_some_and(|fin| self.next > fin)
    }

    /// Bytes that the application can read.
    pub(super) fn readable(&self) -> u64 {
        self.next - u64::from(self.is_finished()) - self.read.min(self.next)
    }

    pub(super) fn set_automatic(&mut self, automatic: bool) {
        self.automatic = automatic;
    }

    /// The window of the first SYN, which is never scaled.
    pub(super) fn syn_window(&self) -> u64 {
        self.capacity.min(65535)
    }

    /// Move the right edge as far as silly window avoidance allows, never back.
    fn open_window(&mut self) {
        let most = 65535 << self.scale;
        let free = self.capacity.saturating_sub(self.next.max(self.read) - self.read).min(most);
        // The field counts units of the scale: round up so that the edge never moves back.
        let free = free.div_ceil(1 << self.scale) << self.scale;
        let edge = self.next + free.min(most);
        // RFC 9293 section 3.8.6.2.2: keep the edge "until […] RCV.BUFF - RCV.USER - RCV.WND >=
        // min ( Fr * RCV.BUFF, Eff.snd.MSS )", Fr = 1/2.
        if edge >= self.edge + (self.capacity / 2).min(self.mss) {
            self.edge = edge;
        }
    }

    /// The window to announce, which thereby is announced.
    pub(super) fn announce(&mut self) -> u64 {
        self.open_window();
        let window = self.edge.saturating_sub(self.next);
        // The rest of a unit may stand open when data came in odd lengths: what is announced is rounded up.
        let window = (window.div_ceil(1 << self.scale) << self.scale).min(65535 << self.scale);
        self.edge = self.edge.max(self.next + window);
        window
    }

    /// The application reads up to `bytes`. Returns how many.
    pub(super) fn read(&mut self, p: &TcpParameters, bytes: u64) -> u64 {
        let taken = bytes.min(self.readable());
        self.read += taken;
        if taken > 0 && !self.is_finished() {
            let before = self.edge.saturating_sub(self.next);
            let after = self.capacity.saturating_sub(self.readable());
            let gain = after.saturating_sub(before);
            let update = match p.window_update {
                WindowUpdate::TwoSegments => gain >= (2 * self.mss).min(self.capacity / 2),
                WindowUpdate::BelowSegment => before < self.mss && gain >= self.mss.min(self.capacity / 2),
                WindowUpdate::Doubled => {
                    2 * before <= self.capacity
                        && after >= 2 * before
                        && gain >= self.mss.min(self.capacity / 2)
                }
            };
            if update {
                self.acks.at_once();
            }
        }
        taken
    }

    /// Take a segment's data and FIN.
    pub(super) fn take(&mut self, p: &TcpParameters, segment: &Segment, now: Time) -> Received {
        self.note_timestamp(segment);
        self.note_mark(segment);
        let mut received = Received::default();
        let end = segment.seq + segment.len;
        if segment.sequence_len() == 0 {
            return received;
        }
        if segment.flags.fin && end <= self.edge.max(self.next) {
            self.fin = Some(end);
        }
        let (start, stop) = (segment.seq.max(self.next), end.min(self.edge.max(self.next)));
        let kept = stop.saturating_sub(start);
        received.refused = segment.len - kept;
        if end + u64::from(segment.flags.fin) <= self.next {
            // RFC 9293 section 3.10.7.4: "If an incoming segment is not acceptable, an acknowledgment should be sent".
            self.duplicate = (segment.len > 0).then_some((segment.seq, end));
            self.acks.at_once();
            return received;
        }
        if kept == 0 && !(segment.flags.fin && self.next == end) {
            self.acks.at_once();
            return received;
        }
        if start > self.next {
            received.refused += kept - self.insert(start, stop);
            // RFC 5681 section 4.2: "Out-of-order data segments SHOULD be acknowledged immediately".
            self.acks.duplicate();
            return received;
        }
        let before = self.next;
        let had_hole = !self.ranges.is_empty();
        self.next = stop.max(self.next);
        received.refused += self.absorb(start);
        received.in_order = self.next - before;
        if let Some(fin) = self.fin.filter(|fin| *fin == self.next) {
            self.next = fin + 1;
            received.finished = true;
        }
        if self.automatic {
            self.read = self.next - u64::from(self.is_finished());
        }
        self.acks.in_order(p, self.mss, segment.len, now);
        // RFC 5681 section 4.2: "a TCP receiver SHOULD send an immediate ACK when it receives a data segment that
        // fills in all or part of a gap". A FIN, and a segment that is partly old or beyond the window, cannot wait.
        if had_hole || received.finished || received.refused > 0 {
            self.acks.at_once();
        }
        received
    }

    /// Put `[start, end)` into the ranges above the hole. Returns how many bytes of it are new.
    fn insert(&mut self, start: u64, end: u64) -> u64 {
        self.stamp += 1;
        let first = self.ranges.partition_point(|range| range.end < start);
        let last = self.ranges.partition_point(|range| range.start <= end);
        let held: u64 = self.ranges[first..last]
            .iter()
            .map(|range| range.end.min(end).saturating_sub(range.start.max(start)))
            .sum();
        let new = (end - start) - held;
        if new == 0 {
            self.duplicate = Some((start, end));
        }
        let merged = self.ranges[first..last]
            .iter()
            .fold((start, end), |(s, e), range| (s.min(range.start), e.max(range.end)));
        let range = Range { start: merged.0, end: merged.1, stamp: self.stamp };
        self.ranges.splice(first..last, [range]);
        new
    }

    /// Take the ranges that the cumulative acknowledgment has reached. Returns the bytes that were there twice.
    fn absorb(&mut self, start: u64) -> u64 {
        let reached = self.ranges.iter().take_while(|range| range.start <= self.next).count();
        let mut twice = 0;
        for range in self.ranges.drain(..reached) {
            twice += range.end.min(self.next).saturating_sub(range.start.max(start));
            self.next = self.next.max(range.end);
        }
        twice
    }

    fn note_timestamp(&mut self, segment: &Segment) {
        // RFC 7323 section 4.3 (2): "If SEG.TSval >= TS.Recent and SEG.SEQ <= Last.ACK.sent < SEG.SEQ + SEG.LEN".
        // The right side is left out, as stacks do: a segment that only acknowledges has no length.
        if let Some(stamp) = segment.timestamps
            && segment.seq <= self.last_ack
            && self.recent.is_none_or(|recent| stamp.value >= recent)
        {
            self.recent = Some(stamp.value);
        }
    }

    /// The SYN's timestamp is the first to echo.
    pub(super) fn note_syn_timestamp(&mut self, value: Time) {
        self.recent = Some(value);
    }

    fn note_mark(&mut self, segment: &Segment) {
        if !segment.ect {
            return;
        }
        if self.exact_marks {
            if segment.len > 0 && segment.ce != self.echo {
                // RFC 8257 section 3.2: on a change of state with an acknowledgment pending, "immediately send an
                // ACK" with the old state.
                if self.acks.is_pending() {
                    self.early = Some((self.next, self.echo));
                }
                self.echo = segment.ce;
            }
        } else {
            // RFC 3168 section 6.1.3: the echo goes on until a CWR comes; a CE in the same packet starts it again.
            self.echo = segment.ce || (self.echo && !segment.flags.cwr);
        }
    }

    /// The blocks to report: a duplicate first, then the most recent ranges (RFC 2018 section 4, RFC 2883).
    pub(super) fn sack_blocks(&mut self, p: &TcpParameters, room: usize) -> SackBlocks {
        let mut blocks = SackBlocks::default();
        if let Some((start, end)) = self.duplicate.take().filter(|_| p.dsack) {
            blocks.push(start, end);
        }
        let mut below = u64::MAX;
        while blocks.as_slice().len() < room {
            let newest =
                self.ranges.iter().filter(|range| range.stamp < below).max_by_key(|range| range.stamp);
            let Some(range) = newest else { break };
            below = range.stamp;
            blocks.push(range.start, range.end);
        }
        blocks
    }

    /// An acknowledgment of everything received goes out.
    pub(super) fn acknowledged(&mut self, pure: bool) {
        self.last_ack = self.next;
        self.acks.sent(pure);
    }

    pub(super) fn recent_timestamp(&self) -> Option<Time> {
        self.recent
    }

    pub(super) fn echoes_mark(&self) -> bool {
        self.echo
    }

    /// Take the acknowledgment number and echo that must go out first, if marks have changed.
    pub(super) fn take_early(&mut self) -> Option<(u64, bool)> {
        self.early.take()
    }

    pub(super) fn has_early(&self) -> bool {
        self.early.is_some()
    }
}
