//! Tail loss probes (RFC 8985 section 7): when acknowledgments stay away, one more segment is sent. SACK then finds losses at the end of the data before
//! the retransmission timer does.

use super::congestion::Signal;
use super::connection::Connection;
use super::rare::{SlowPathFlags, TailProbe};
use super::recovery::Phase;
use super::segment::Segment;
use super::send::UnsentPiece;
use super::timers::{TIMER_SLACK, Timer};
use super::transmit::Next;
use crate::time::{SECOND, Time};

/// The longest delay of an acknowledgment that is expected (TLP.max_ack_delay; 200 ms as in Linux).
const MAX_ACK_DELAY: Time = Time(SECOND / 5);

impl Connection {
    /// Sets the probe timer after new data was sent or acknowledged, or stops it (section 7.2).
    #[inline]
    pub(super) fn arm_tail_probe(&mut self, now: Time) {
        if self.p.derived().rack {
            self.arm_or_stop_tail_probe(now);
        }
    }

    #[inline(never)]
    fn arm_or_stop_tail_probe(&mut self, now: Time) {
        let applies = self.agreed.sack()
            && self.recovery.phase == Phase::Open
            && !self.board.is_empty()
            && !self.board.has_sacked()
            && !self.special.has(SlowPathFlags::PROBING)
            && !self.special.has(SlowPathFlags::TAIL_PROBING);
        if !applies {
            self.timers.stop(Timer::TailProbe);
            return;
        }
        // "PTO = 2 * SRTT; If FlightSize is one segment: PTO += TLP.max_ack_delay", at most the retransmission timeout. With several segments, Linux
        // adds its timer slack.
        let wait = match self.rtt.smoothed() {
            None => Time::from_secs(1),
            Some(smoothed) if self.board.len() == 1 => smoothed + smoothed + MAX_ACK_DELAY,
            Some(smoothed) => smoothed + smoothed + TIMER_SLACK,
        };
        let timeout = self.timers.at(Timer::Retransmission).unwrap_or(Time::MAX);
        self.timers.set(Timer::TailProbe, (now + wait).min(timeout));
    }

    /// Handles the expired probe timer.
    pub(super) fn on_tail_probe(&mut self, now: Time) {
        let due = !self.board.is_empty() && self.recovery.phase == Phase::Open;
        self.special.set(SlowPathFlags::TAIL_PROBE_DUE, due);
        if due {
            // The retransmission timer restarts with the probe.
            self.start_timer(now);
        }
    }

    /// Returns what a probe sends: the next new segment, even beyond the congestion window, or else the last segment again.
    pub(super) fn decide_tail_probe(&self) -> Next {
        let unsent = self.tx.unsent().min(self.window.mss());
        if unsent > 0 && self.tx.usable_window(self.board.una()) >= unsent {
            Next::New(UnsentPiece { len: unsent as u32, fin: false })
        } else {
            Next::Retransmission(self.board.len() as u32 - 1)
        }
    }

    /// Records that a probe was sent; `is_retransmission` if it is a retransmission.
    pub(super) fn after_tail_probe(&mut self, now: Time, is_retransmission: bool) {
        self.special.set(SlowPathFlags::TAIL_PROBE_DUE, false);
        self.special.set(SlowPathFlags::TAIL_PROBING, true);
        let end = self.tx.next;
        let rare = self.rare();
        rare.tail_probe = Some(TailProbe { end, is_retransmission });
        rare.stats.tail_probes += 1;
        self.timers.stop(Timer::TailProbe);
        self.start_timer(now);
    }

    /// Checks for the answer to a probe. If the probe has repaired a loss, signals that to the congestion control (section 7.4.2).
    pub(super) fn take_tail_probe_answer(&mut self, now: Time, segment: &Segment, acked: u64) {
        let probe = self.rare.as_ref().and_then(|rare| rare.tail_probe);
        let Some(probe) = probe.filter(|probe| segment.ack >= probe.end) else { return };
        let reported = segment.sack().duplicate(segment.ack).is_some_and(|(_, end)| end == probe.end);
        if !probe.is_retransmission || reported {
            self.forget_tail_probe();
        } else if segment.ack > probe.end {
            self.forget_tail_probe();
            if self.recovery.phase == Phase::Open {
                let flight = self.flight_size(0);
                self.control.get_mut(&self.p).on_signal(&mut self.window, Signal::Loss, flight, now);
            }
        } else if acked == 0 && !segment.has_sack() && segment.is_pure_ack() {
            // A duplicate: both the original and the probe have arrived, so that nothing was lost.
            self.forget_tail_probe();
        }
    }

    fn forget_tail_probe(&mut self) {
        self.rare().tail_probe = None;
        self.special.set(SlowPathFlags::TAIL_PROBING, false);
    }
}
