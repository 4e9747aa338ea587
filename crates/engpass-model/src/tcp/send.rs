//! The sending half: the send buffer, the division of writes into segments, Nagle's rule and silly window avoidance.

use std::collections::VecDeque;

use super::limited_by::LimitedBy;
use super::parameters::{Nagle, SendBufferRule, TcpParameters};
use super::segment::Segment;

/// The sending half of a connection. The scoreboard holds what is unacknowledged; therefore most methods take SND.UNA as an argument.
#[derive(Clone, Debug)]
pub(super) struct Sender {
    /// Next sequence number to send (SND.NXT).
    pub(super) next: u64,
    /// One past the sequence number of the last byte that the application wrote.
    written: u64,
    /// Sequence number of the segment that announced the window (SND.WL1). Its acknowledgment number (SND.WL2) is never beyond `una` and therefore
    /// makes no difference.
    announced_by: u64,
    /// End of the last segment sent that was not full.
    small_end: u64,
    /// Ends of the writes that are not sent yet, if segments end there.
    #[allow(clippy::box_collection, reason = "most connections have none: a pointer is all that they pay")]
    boundaries: Option<Box<VecDeque<u64>>>,
    /// Window that the peer announced (SND.WND), in bytes from `una`.
    pub(super) window: u32,
    /// The largest window ever announced (Max(SND.WND)).
    largest_window: u32,
    /// Length of the last segment sent.
    last_len: u32,
    /// The application writes no more.
    pub(super) closing: bool,
    /// The FIN was sent.
    pub(super) fin_sent: bool,
    /// [`SendBufferRule::HighWater`] blocks the application.
    stopped: bool,
    /// The application could not write everything it wanted to.
    refused: bool,
}

/// A piece of the unsent data that may go out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct UnsentPiece {
    pub(super) len: u32,
    pub(super) fin: bool,
}

impl Sender {
    pub(super) fn new() -> Self {
        Self {
            next: 1,
            written: 1,
            announced_by: 0,
            small_end: 0,
            boundaries: None,
            window: 0,
            largest_window: 0,
            last_len: 0,
            closing: false,
            fin_sent: false,
            stopped: false,
            refused: false,
        }
    }

    /// Writes `bytes` at once. Returns how many bytes the buffer takes.
    pub(super) fn write(&mut self, p: &TcpParameters, una: u64, bytes: u64) -> u64 {
        if self.closing {
            return 0;
        }
        let taken = bytes.min(self.room(p, una, bytes));
        if taken > 0 {
            // If the socket takes only a part, the write does not end yet.
            self.put(p, taken, taken == bytes);
        }
        self.refused = taken < bytes;
        taken
    }

    /// Returns how many bytes of a write are copied next; `left` bytes of it are to come. Returns 0 while the application is blocked.
    ///
    /// Sockets copy a write piece by piece, and a piece can be sent before the next one is copied: STREAMS copies messages of a multiple of the
    /// segment size, BSD clusters, Linux segments. Here a piece is a segment for all of them. Winsock's rule looks at the whole write.
    #[inline]
    pub(super) fn next_copy(&mut self, p: &TcpParameters, mss: u64, una: u64, left: u64) -> u64 {
        let piece = if p.send_buffer_rule == SendBufferRule::WholeWrites { left } else { left.min(mss) };
        let taken = piece.min(self.room(p, una, piece));
        self.refused = left > 0 && taken == 0;
        taken
    }

    /// Copies as many pieces of a write as the buffer takes; `left` bytes of the write are to come. Returns how many bytes are copied.
    #[inline]
    pub(super) fn copy(&mut self, p: &TcpParameters, mss: u64, una: u64, left: u64) -> u64 {
        if p.send_buffer_rule != SendBufferRule::Bytes {
            return self.copy_pieces(p, mss, una, left);
        }
        // With this rule, all pieces together are equivalent to one.
        let taken = left.min(self.room(p, una, left));
        if taken > 0 {
            self.put(p, taken, taken == left);
        }
        self.refused = taken < left;
        taken
    }

    #[inline(never)]
    fn copy_pieces(&mut self, p: &TcpParameters, mss: u64, una: u64, left: u64) -> u64 {
        let mut taken = 0;
        loop {
            let piece = self.next_copy(p, mss, una, left - taken);
            if piece == 0 {
                return taken;
            }
            taken += piece;
            self.put(p, piece, taken == left);
        }
    }

    /// Adds copied bytes to the send buffer; `ends` if the write ends there.
    #[inline]
    pub(super) fn put(&mut self, p: &TcpParameters, bytes: u64, ends: bool) {
        self.written += bytes;
        if p.write_boundaries && ends {
            self.boundaries.get_or_insert_default().push_back(self.written);
        }
        if p.send_buffer_rule == SendBufferRule::HighWater && self.unsent() >= p.send_buffer {
            self.stopped = true;
        }
    }

    /// Returns how many bytes of a write of `bytes` the buffer would take.
    #[inline]
    pub(super) fn room(&self, p: &TcpParameters, una: u64, bytes: u64) -> u64 {
        if self.closing {
            return 0;
        }
        let held = self.written - una.min(self.written);
        let free = p.send_buffer.saturating_sub(held);
        match p.send_buffer_rule {
            SendBufferRule::Bytes => free,
            SendBufferRule::HighWater if self.stopped => 0,
            SendBufferRule::HighWater => u64::MAX,
            SendBufferRule::WholeWrites if held == 0 || bytes <= free => u64::MAX,
            SendBufferRule::WholeWrites => 0,
        }
    }

    /// Returns whether the next segments are full as long as enough is written: no write ends in between, and no FIN follows.
    #[inline]
    pub(super) fn sends_only_full(&self) -> bool {
        self.boundaries.is_none() && !self.closing && !self.stopped
    }

    /// Returns how many bytes are written and not sent.
    #[inline]
    pub(super) fn unsent(&self) -> u64 {
        self.written.saturating_sub(self.next)
    }

    /// Returns whether the FIN was sent and acknowledged.
    pub(super) fn is_finished(&self, una: u64) -> bool {
        self.fin_sent && una == self.next
    }

    /// Returns whether nothing was written, and no FIN is to follow.
    pub(super) fn is_unused(&self) -> bool {
        self.written == 1 && self.next == 1 && !self.closing
    }

    /// Returns how many bytes of payload were sent, each counted once.
    pub(super) fn bytes_sent(&self) -> u64 {
        self.next - 1 - u64::from(self.fin_sent)
    }

    /// Returns how many bytes of payload were acknowledged.
    pub(super) fn bytes_acked(&self, una: u64) -> u64 {
        una - 1 - u64::from(self.is_finished(una))
    }

    /// Returns how many bytes the announced window still allows.
    #[inline]
    pub(super) fn usable_window(&self, una: u64) -> u64 {
        (una + u64::from(self.window)).saturating_sub(self.next)
    }

    /// Takes over the window of an acceptable acknowledgment (RFC 9293 section 3.10.7.4, fifth step). Returns whether it changed.
    #[inline]
    pub(super) fn take_window(&mut self, segment: &Segment) -> bool {
        // "If SND.WL1 < SEG.SEQ or (SND.WL1 = SEG.SEQ and SND.WL2 =< SEG.ACK)".
        if self.announced_by > segment.seq {
            return false;
        }
        self.announced_by = segment.seq;
        self.largest_window = self.largest_window.max(segment.window);
        let changed = self.window != segment.window;
        self.window = segment.window;
        changed
    }

    /// Returns the next piece of new data, or why there is none. `idle` is true if nothing is unacknowledged.
    #[inline(always)]
    pub(super) fn next_piece(
        &self,
        p: &TcpParameters,
        mss: u64,
        una: u64,
        idle: bool,
    ) -> Result<UnsentPiece, LimitedBy> {
        let unsent = self.unsent();
        if unsent >= mss && self.boundaries.is_none() && self.usable_window(una) >= mss {
            // Nearly all segments are full.
            return Ok(UnsentPiece { len: mss as u32, fin: self.closing && unsent == mss });
        }
        if unsent == 0 && !self.closing {
            return Err(if self.refused { LimitedBy::SendBuffer } else { LimitedBy::Application });
        }
        self.next_piece_slow_path(p, mss, una, idle, unsent)
    }

    /// Slow path of [`next_piece`](Self::next_piece): the window, the end of the data or the end of a write may matter.
    #[inline(never)]
    fn next_piece_slow_path(
        &self,
        p: &TcpParameters,
        mss: u64,
        una: u64,
        idle: bool,
        unsent: u64,
    ) -> Result<UnsentPiece, LimitedBy> {
        if unsent == 0 {
            return if self.fin_sent {
                Err(LimitedBy::Closed)
            } else {
                Ok(UnsentPiece { len: 0, fin: true })
            };
        }
        let mut want = unsent.min(mss);
        let to_boundary = self.next_boundary().map_or(want, |end| want.min(end - self.next));
        if to_boundary < want && !self.nagle_holds(p, mss, una, idle, to_boundary) {
            want = to_boundary;
        }
        let len = want.min(self.usable_window(una));
        if len < want && len < mss {
            // RFC 9293 section 3.8.6.2.1: "if the maximum-sized segment can be sent", else if "at least a fraction Fs
            // of the maximum window can be sent", Fs = 1/2.
            if len == 0 {
                return Err(LimitedBy::ReceiveWindow);
            }
            if len < u64::from(self.largest_window) / 2 {
                // Less than a segment is left of the window, either because of data in flight or because the window is small.
                let taken = self.next > una;
                return Err(if taken { LimitedBy::ReceiveWindow } else { LimitedBy::SillyWindow });
            }
        }
        let fin = self.closing && len == unsent;
        let last = len == want && want == unsent;
        if last && !fin && len < mss && self.nagle_holds(p, mss, una, idle, len) {
            // With more space in the buffer, the application would have filled the segment.
            return Err(if self.refused { LimitedBy::SendBuffer } else { LimitedBy::Nagle });
        }
        Ok(UnsentPiece { len: len as u32, fin })
    }

    fn next_boundary(&self) -> Option<u64> {
        self.boundaries.as_ref()?.front().copied()
    }

    /// Returns whether Nagle's rule holds back a segment of `len` bytes.
    fn nagle_holds(&self, p: &TcpParameters, mss: u64, una: u64, idle: bool, len: u64) -> bool {
        let naglim = p.naglim.min(mss);
        len < mss
            && match p.nagle {
                Nagle::Off => false,
                // RFC 896: "inhibit the sending of new TCP segments when new outgoing data arrives from the user if
                // any previously transmitted data on the connection remains unacknowledged".
                Nagle::Rfc896 => !idle,
                // draft-minshall-nagle-01: only while a small segment is unacknowledged.
                Nagle::Minshall => self.small_end > una,
                Nagle::Naglim => !idle && len < naglim && u64::from(self.last_len) < naglim,
            }
    }

    /// Records that a piece is sent. Returns whether it ends a write or empties the buffer (PSH).
    #[inline]
    pub(super) fn sent(&mut self, p: &TcpParameters, mss: u64, piece: UnsentPiece) -> bool {
        self.next += u64::from(piece.len);
        let mut ends_write = self.next == self.written;
        if let Some(boundaries) = &mut self.boundaries {
            while boundaries.front().is_some_and(|end| *end <= self.next) {
                ends_write |= boundaries.pop_front() == Some(self.next);
            }
        }
        if piece.len > 0 {
            self.last_len = piece.len;
            if u64::from(piece.len) < mss {
                self.small_end = self.next;
            }
        }
        if piece.fin {
            self.next += 1;
            self.fin_sent = true;
        }
        if self.stopped && self.unsent() <= p.send_low_water {
            self.stopped = false;
        }
        ends_write && piece.len > 0
    }

    /// Like [`sent`](Self::sent), for a full piece; requires [`sends_only_full`](Self::sends_only_full).
    #[inline]
    pub(super) fn sent_full(&mut self, mss: u64) -> bool {
        self.next += mss;
        self.last_len = mss as u32;
        self.next == self.written
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Stream;
    use crate::tcp::Profile;

    /// Copying piece by piece, as long as there is room, gives the same result as copying all at once.
    #[test]
    fn copying_in_pieces_equals_copying_at_once() {
        let p = TcpParameters { send_buffer: 20_000, ..Profile::Linux6.parameters(1500) };
        assert_eq!(p.send_buffer_rule, SendBufferRule::Bytes);
        let mut random = Stream::new(3, "copies");
        let (mut pieces, mut whole, mut una) = (Sender::new(), Sender::new(), 1);
        for _ in 0..5000 {
            let mut left = random.below(30_000) + 1;
            let all = whole.next_copy(&p, u64::MAX, una, left);
            whole.put(&p, all, all == left);
            let mut copied = 0;
            loop {
                let piece = pieces.next_copy(&p, 1448, una, left);
                if piece == 0 {
                    break;
                }
                left -= piece;
                copied += piece;
                pieces.put(&p, piece, left == 0);
            }
            whole.next_copy(&p, u64::MAX, una, left);
            assert_eq!((copied, pieces.written, pieces.refused), (all, whole.written, whole.refused));
            una += random.below(pieces.written - una + 1);
            (pieces.next, whole.next) = (una, una);
        }
    }
}
