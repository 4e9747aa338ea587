//! Fast path for acknowledgments while losses are found and repaired with SACK (RFC 6675).

use super::connection::{Connection, Effects, State};
use super::recovery::{AckView, Phase};
use super::scoreboard::Arrived;
use super::segment::Segment;
use crate::time::Time;

impl Connection {
    /// Processes a segment that only acknowledges or SACKs data, if RFC 6675 governs recovery and no special condition holds. The result is that of
    /// `receive_ack`. Returns false, without any effect, for every other segment.
    #[inline(never)]
    pub(super) fn on_segment_sack_path(&mut self, now: Time, segment: &Segment, out: &mut Effects) -> bool {
        let applies = segment.len == 0
            && segment.flags.is_ack_or_sack()
            && !segment.ce
            && segment.ack >= self.board.una()
            && segment.ack <= self.tx.next
            && self.state == State::Established
            && self.special.is_empty()
            && self.agreed.sack()
            && !self.board.is_empty()
            && self.p.derived().allows_sack_fast_path;
        if !applies {
            return false;
        }
        let (acked, before) = (segment.ack - self.board.una(), self.in_flight());
        let next = if acked == 0 { self.board.try_sack_next(segment.sack()) } else { None };
        let arrived = next.unwrap_or_else(|| self.board.record_ack(segment.ack, segment.sack()));
        self.process_recorded_ack(now, segment, (acked, before), arrived, out);
        true
    }

    /// Processes an acknowledgment after the scoreboard has recorded it. `acked` bytes are newly acknowledged; `before` bytes were in flight.
    #[inline(always)]
    fn process_recorded_ack(
        &mut self,
        now: Time,
        segment: &Segment,
        (acked, before): (u64, u64),
        arrived: Arrived,
        out: &mut Effects,
    ) {
        self.tx.take_window(segment);
        let (next, mss, limited_transmitted) =
            (self.tx.next, self.window.mss(), self.recovery.limited_transmitted());
        let duplicate = acked == 0 && arrived.sacked > 0;
        if duplicate {
            self.rare().stats.duplicate_acks += 1;
        }
        self.measure(now, segment, acked, arrived.sample, out);
        if acked > 0 {
            self.expired = false;
            self.detect_spurious(segment);
        }
        let phase = self.recovery.phase;
        let view = AckView { una: segment.ack, next, acked, duplicate, mss };
        let verdict = self.recovery.on_sacked(&self.p, &mut self.board, &view);
        self.apply(now, verdict, phase, limited_transmitted);
        if arrived.delivered > 0 {
            let recovering = phase == Phase::Fast || self.recovery.phase == Phase::Fast;
            self.grow(now, acked, before, recovering);
        }
        if acked > 0 {
            self.advance_timer(now);
            out.acked += acked;
        }
        let size = self.received_size();
        self.rx.on_segment_fast_path(&self.p, size, segment, now);
    }
}
