//! Processing of segments and expired timers on an open connection.

use super::ack_sample::{AckSample, AckedRun, OriginalFilter};
use super::congestion::{Ack, CurrentControl, RateSample, Signal};
use super::connection::{Connection, Effects, State};
use super::parameters::RecoveryKind;
use super::prr::Reduction;
use super::rare::{SlowPathFlags, UndoState};
use super::recovery::rack::RttClock;
use super::recovery::{AckView, Phase, RackView, Verdict};
use super::segment::{Flags, Segment};
use super::timers::Timer;
use crate::time::Time;

impl Connection {
    /// Fast path in the manner of "header prediction". Applies to an open connection without special conditions, and to three kinds of segments: one
    /// that brings data while nothing is unacknowledged, one that acknowledges in order segments that were sent once, and one without news. Returns
    /// false, without any effect, for every other segment.
    #[inline]
    pub(super) fn on_segment_fast_path(&mut self, now: Time, segment: &Segment, out: &mut Effects) -> bool {
        let is_ordinary = self.state == State::Established
            && self.special.is_empty()
            && self.recovery.phase == Phase::Open
            && segment.flags.is_ack_only()
            && !segment.ce;
        if !is_ordinary {
            return false;
        }
        let expected = self.rx.is_next_in_order(segment);
        if self.board.is_empty() {
            // Nothing is outstanding, so that only SND.NXT can be acknowledged.
            if segment.ack != self.tx.next {
                return false;
            }
            self.tx.take_window(segment);
            if !expected {
                self.receive_data(now, segment, out);
                return true;
            }
        } else {
            debug_assert!(
                self.recovery.may_be_spurious || self.rare.as_ref().is_none_or(|rare| rare.saved.is_none())
            );
            let acknowledges_in_order = expected
                && segment.ack > self.board.una()
                && segment.ack <= self.tx.next
                && segment.len == 0
                && self.board.absent() == 0
                && !self.p.derived().rates
                && !self.recovery.may_be_spurious;
            if !acknowledges_in_order {
                return false;
            }
            let Some(run) = self.board.unmarked_run(segment.ack) else { return false };
            self.remove_run(now, segment, run, out);
        }
        let size = self.received_size();
        self.rx.on_segment_fast_path(&self.p, size, segment, now);
        out.delivered += segment.payload();
        true
    }

    /// Slow path: processes any segment.
    #[inline(never)]
    pub(super) fn on_segment_slow_path(&mut self, now: Time, segment: &Segment, out: &mut Effects) {
        if segment.ce {
            self.rare().stats.ce_received += 1;
        }
        match self.state {
            State::Closed => self.refuse(segment.payload(), out),
            State::Listen | State::SynSent | State::SynReceived => self.receive_opening(now, segment, out),
            _ => self.receive_open(now, segment, out),
        }
    }

    /// Counts bytes that were received and discarded.
    pub(super) fn refuse(&mut self, bytes: u64, out: &mut Effects) {
        if bytes > 0 {
            self.rare().stats.bytes_refused += bytes;
            out.refused += bytes;
        }
    }

    /// Processes a segment of an open connection: acknowledgment, then data, then FIN.
    pub(super) fn receive_open(&mut self, now: Time, segment: &Segment, out: &mut Effects) {
        if segment.flags.has(Flags::RST) {
            self.reset(out);
            return;
        }
        if segment.flags.has(Flags::ACK) && !segment.flags.has(Flags::SYN) {
            self.receive_ack(now, segment, out);
        }
        if self.state != State::Closed {
            self.receive_data(now, segment, out);
        }
    }

    /// Processes the data and the FIN of a segment, independent of its acknowledgment.
    #[inline(never)]
    fn receive_data(&mut self, now: Time, segment: &Segment, out: &mut Effects) {
        let size = self.received_size();
        let received = self.rx.receive_segment(&self.p, size, segment, now);
        out.delivered += received.in_order;
        self.refuse(received.refused, out);
        if received.finished {
            self.after_fin_received(now, out);
        } else if self.state == State::TimeWait && segment.flags.has(Flags::FIN) {
            // RFC 9293 section 3.10.7.4, eighth step: "Restart the 2 MSL time-wait timeout."
            self.wait(now);
        }
    }

    fn receive_ack(&mut self, now: Time, segment: &Segment, out: &mut Effects) {
        // RFC 9293 section 3.10.7.4: a segment that acknowledges data not yet sent is answered and dropped.
        if segment.ack > self.tx.next {
            self.rx.acks.at_once();
            return;
        }
        if segment.ack < self.board.una() {
            return;
        }
        let mut progress = self.new_ack_sample(now, segment);
        let (before, outstanding) = (self.in_flight(), self.outstanding());
        self.board.acknowledge(segment.ack, &mut progress);
        if self.agreed.sack() {
            let acknowledged_at = progress.last_at;
            self.board.sack(segment.sack(), &mut progress);
            // Linux' `tcp_ack` processes the SACK blocks first.
            progress.last_at = acknowledged_at.or(progress.last_at);
        }
        let window_changed = self.tx.take_window(segment);
        if progress.acked > 0 {
            self.special.set(SlowPathFlags::PROBING, false);
            self.expired = false;
        }
        if window_changed {
            self.after_window_change();
        }
        // RFC 5681 section 2; with SACK, a duplicate is an acknowledgment with new SACK information (RFC 6675 section 2).
        let fin = segment.flags.has(Flags::FIN);
        let repeats_ack = outstanding > 0 && segment.len == 0 && !fin && !window_changed;
        let duplicate = progress.acked == 0
            && !self.special.has(SlowPathFlags::PROBING)
            && if self.agreed.sack() { progress.sacked > 0 } else { repeats_ack };
        if duplicate {
            self.rare().stats.duplicate_acks += 1;
        }
        self.measure(now, segment, progress.acked, progress.sample, out);
        let rate = self.measure_delivery(now, &progress);
        if progress.acked > 0 {
            self.detect_spurious(segment);
        }
        let phase_before = self.recovery.phase;
        let view = AckView {
            una: self.board.una(),
            next: self.tx.next,
            acked: progress.acked,
            duplicate,
            mss: self.window.mss(),
        };
        let seen = RackView {
            progress: &progress,
            reported_duplicate: segment.sack().duplicate(segment.ack).is_some(),
            clock: self.clock(now),
        };
        let limited_transmitted = self.recovery.limited_transmitted();
        let waiting_before = self.board.waiting();
        let verdict = self.recovery.on_ack(&self.p, self.agreed.sack(), &mut self.board, &view, &seen);
        let recovering = phase_before == Phase::Fast || self.recovery.phase == Phase::Fast;
        self.apply(now, verdict, phase_before, limited_transmitted);
        let lost = self.board.waiting() > waiting_before;
        self.update_rate_reduction(progress.delivered, progress.acked > 0 && !lost);
        self.update_reordering_timer();
        self.take_tail_probe_answer(now, segment, progress.acked);
        self.react_to_ece(now, segment);
        if progress.delivered > 0 {
            let newest = progress.newest.filter(|newest| !newest.ambiguous);
            let ack = Ack {
                now,
                acked: progress.acked,
                delivered: progress.delivered,
                total_delivered: self.rare.as_ref().map_or(0, |rare| rare.delivery.total),
                in_flight_before: before,
                in_flight: self.in_flight(),
                next: self.tx.next,
                unacknowledged: self.board.una(),
                rtt: newest.map(|newest| now.saturating_sub(newest.at)),
                smoothed_rtt: self.rtt.smoothed(),
                window_limited: self.is_window_limited(before),
                marked: self.agreed.ecn() && segment.flags.has(Flags::ECE),
                recovering,
                lost: self.board.waiting().saturating_sub(waiting_before),
                rate,
            };
            self.control.begun_mut().on_ack(&mut self.window, &ack);
            self.limit_window();
        }
        self.restart_timer(now, &progress, verdict);
        if progress.acked > 0 {
            let fin = u64::from(self.tx.is_finished(self.board.una()));
            out.acked += progress.acked - fin;
            if fin == 1 {
                self.after_fin_acknowledged(now, out);
            }
        }
    }

    /// Returns whether RACK detects the losses of this connection: it is configured, and SACK is negotiated.
    fn uses_rack(&self) -> bool {
        self.p.derived().rack && self.agreed.sack()
    }

    /// Processes an acknowledgment of segments in order that were sent once. The result is that of [`receive_ack`](Self::receive_ack).
    #[inline(always)]
    fn remove_run(&mut self, now: Time, segment: &Segment, run: AckedRun, out: &mut Effects) {
        let before = self.outstanding();
        let acked = segment.ack - self.board.una();
        self.board.remove_run(&run);
        self.tx.take_window(segment);
        self.expired = false;
        let sent = if self.p.rtt_every_ack { Some(run.first_at) } else { self.pop_timed() };
        self.update_rtt(now, sent, out);
        if self.uses_rack() {
            self.detect_losses_after_run(now, run, acked);
        } else {
            self.recovery.reset_duplicates();
        }
        let recovering = self.recovery.phase == Phase::Fast;
        self.grow(now, acked, before, recovering);
        self.advance_timer(now);
        self.arm_tail_probe(now);
        out.acked += acked;
    }

    /// Grows the congestion window for `acked` bytes, with a congestion control that does not use rates. `before` bytes were in flight.
    #[inline(always)]
    pub(super) fn grow(&mut self, now: Time, acked: u64, before: u64, recovering: bool) {
        let window_limited = self.is_window_limited(before);
        if let CurrentControl::Reno(reno) = &mut self.control {
            reno.grow(&mut self.window, acked, window_limited && !recovering);
        } else {
            let ack = Ack {
                now,
                acked,
                delivered: acked,
                total_delivered: 0,
                in_flight_before: before,
                in_flight: self.in_flight(),
                next: self.tx.next,
                unacknowledged: self.board.una(),
                rtt: None,
                smoothed_rtt: self.rtt.smoothed(),
                window_limited,
                marked: false,
                recovering,
                lost: 0,
                rate: None,
            };
            self.control.begun_mut().on_ack(&mut self.window, &ack);
        }
        self.limit_window();
    }

    /// Restarts or stops the retransmission timer, because new data is acknowledged (RFC 6298 (5.2), (5.3)).
    #[inline(always)]
    pub(super) fn advance_timer(&mut self, now: Time) {
        if self.board.is_empty() {
            self.timers.stop(Timer::Retransmission);
        } else {
            self.start_timer(now);
        }
    }

    /// The part of [`remove_run`](Self::remove_run) that RACK needs. `acked` bytes are acknowledged.
    #[inline(never)]
    fn detect_losses_after_run(&mut self, now: Time, run: AckedRun, acked: u64) {
        let limited_transmitted = self.recovery.limited_transmitted();
        self.recovery.reset_duplicates();
        if self.recovery.rack_mut(&self.board).note_run(&run, now, &self.board) {
            let clock = self.clock(now);
            let verdict = self.recovery.detect_losses_by_time(&self.p, &mut self.board, self.tx.next, &clock);
            self.apply(now, verdict, Phase::Open, limited_transmitted);
            // As in `receive_ack`. A reduction is in progress only if a loss was found now.
            self.update_rate_reduction(acked, false);
        }
        self.update_reordering_timer();
    }

    fn new_ack_sample(&self, now: Time, segment: &Segment) -> AckSample {
        let echo = segment.timestamps.and_then(|stamp| stamp.echo()).filter(|_| self.agreed.timestamps());
        let answers = OriginalFilter {
            now,
            echo,
            tick: self.p.timestamp_tick,
            minimum_rtt: self.rtt.minimum().unwrap_or(Time::ZERO),
        };
        AckSample {
            highest: self.recovery.rack().map_or(0, |rack| rack.highest),
            answers: (self.p.recovery == RecoveryKind::RackTlp).then_some(answers),
            ..AckSample::default()
        }
    }

    /// Sets the reordering timer to RACK's deadline, or stops it.
    fn update_reordering_timer(&mut self) {
        match self.recovery.rack().and_then(|rack| rack.deadline()) {
            Some(at) => self.timers.set(Timer::Reordering, at),
            None => self.timers.stop(Timer::Reordering),
        }
    }

    fn clock(&self, now: Time) -> RttClock {
        RttClock {
            now,
            minimum_rtt: self.rtt.minimum().unwrap_or(Time::ZERO),
            smoothed_rtt: self.rtt.smoothed().unwrap_or(Time::ZERO),
        }
    }

    /// Handles the reordering timer: RACK's window has ended for a suspect.
    pub(super) fn on_reordering_end(&mut self, now: Time) {
        let (clock, phase) = (self.clock(now), self.recovery.phase);
        let verdict = self.recovery.detect_losses_by_time(&self.p, &mut self.board, self.tx.next, &clock);
        let limited_transmitted = self.recovery.limited_transmitted();
        self.apply(now, verdict, phase, limited_transmitted);
        if verdict == Verdict::Enter {
            // Linux' `tcp_rack_reo_timeout` counts one segment as delivered.
            self.update_rate_reduction(self.window.mss(), false);
        }
        self.update_reordering_timer();
    }

    /// Limits the congestion window to the largest receive window possible (65 535 bytes, with the largest scale).
    #[inline]
    pub(super) fn limit_window(&mut self) {
        let largest = 65535 << if self.agreed.scaling() { 14 } else { 0 };
        self.window.size = self.window.size.min(largest);
    }

    #[inline]
    fn is_window_limited(&self, in_flight: u64) -> bool {
        !self.p.window_validation
            || in_flight + self.window.mss() > self.window.size
            // In slow start the window may grow to twice the data in flight.
            || (self.window.in_slow_start() && self.window.size < 2 * in_flight)
    }

    /// Samples the round trip (RFC 6298 section 3, Karn; RFC 7323 section 4).
    #[inline(always)]
    pub(super) fn measure(
        &mut self,
        now: Time,
        segment: &Segment,
        acked: u64,
        sample: Option<Time>,
        out: &mut Effects,
    ) {
        let sent = if self.p.rtt_every_ack {
            let echo = segment.timestamps.and_then(|stamp| stamp.echo());
            let echo = echo.filter(|_| self.agreed.timestamps() && acked > 0);
            sample.or(echo)
        } else {
            self.pop_timed()
        };
        self.update_rtt(now, sent, out);
    }

    /// Updates the round-trip estimate with a segment that was sent at `sent`, if there is one.
    #[inline(always)]
    fn update_rtt(&mut self, now: Time, sent: Option<Time>, out: &mut Effects) {
        if let Some(sent) = sent {
            self.rtt.sample(&self.p, &mut self.backoff, sent, now);
            out.round_trip = Some(now.saturating_sub(sent));
        }
    }

    /// Returns when the one timed segment was sent, if it is acknowledged now.
    #[inline(never)]
    fn pop_timed(&mut self) -> Option<Time> {
        let timed = self.rare.as_ref().and_then(|rare| rare.timed);
        let (_, sent) = timed.filter(|(end, _)| self.board.una() >= *end)?;
        self.rare().timed = None;
        Some(sent)
    }

    /// Updates the delivery rate estimate and returns a sample (draft-ietf-ccwg-bbr, section 4.1.2.3).
    fn measure_delivery(&mut self, now: Time, progress: &AckSample) -> Option<RateSample> {
        if progress.delivered == 0 || !self.p.derived().rates {
            return None;
        }
        let delivery = &mut self.rare().delivery;
        delivery.total += progress.delivered;
        delivery.at = now;
        if delivery.total > delivery.application_limited_to {
            delivery.application_limited_to = 0;
        }
        let newest = progress.newest?;
        delivery.first_sent_at = newest.at;
        let sending = newest.at.saturating_sub(newest.rate.first_sent_at);
        let acking = now.saturating_sub(newest.rate.delivered_at);
        Some(RateSample {
            delivered: delivery.total - newest.rate.delivered,
            interval: sending.max(acking),
            prior_delivered: newest.rate.delivered,
            application_limited: newest.rate.application_limited,
        })
    }

    /// Detects a spurious retransmission (Eifel, RFC 3522): an acknowledgment that echoes a timestamp from before the retransmission acknowledges the
    /// original. If the stack supports undo, this restores the state from before.
    pub(super) fn detect_spurious(&mut self, segment: &Segment) {
        let Some(rare) = self.rare.as_mut().filter(|_| self.recovery.may_be_spurious) else { return };
        let Some(saved) = rare.saved else { return };
        let Some(resent) = saved.resent_at else { return };
        rare.saved = None;
        self.recovery.may_be_spurious = false;
        let echo = segment.timestamps.and_then(|stamp| stamp.echo());
        if !self.agreed.timestamps() || echo.is_none_or(|echo| echo >= resent) {
            return;
        }
        rare.stats.spurious += 1;
        if self.recovery.phase == Phase::Fast && self.board.una() < self.recovery.recover() {
            self.recovery.note_reordering();
        }
        if self.p.undo {
            self.window.size = self.window.size.max(saved.window.size);
            self.window.threshold = self.window.threshold.max(saved.window.threshold);
            self.control.get_mut(&self.p).on_undo(&self.window);
            self.board.unmark_lost();
            self.recovery.undo(&self.board);
        }
    }

    /// Acts on the verdict of loss recovery.
    #[inline]
    pub(super) fn apply(
        &mut self,
        now: Time,
        verdict: Verdict,
        phase_before: Phase,
        limited_transmitted: u64,
    ) {
        if matches!(verdict, Verdict::Enter | Verdict::Exit) {
            self.enter_or_exit(now, verdict, phase_before, limited_transmitted);
        }
    }

    #[inline(never)]
    fn enter_or_exit(&mut self, now: Time, verdict: Verdict, phase_before: Phase, limited_transmitted: u64) {
        match verdict {
            Verdict::Enter => {
                let (window, next, resent) = (self.window, self.tx.next, self.board.has_resent());
                let rare = self.rare();
                // An acknowledgment of a retransmission from an earlier recovery does not show that this one is spurious (Linux: `retrans_stamp`).
                let resent_at = resent.then_some(rare.resent_since);
                rare.stats.fast_recoveries += 1;
                rare.saved = Some(UndoState { window, resent_at });
                rare.cwr_until = next;
                self.recovery.may_be_spurious = true;
                let flight = self.flight_size(limited_transmitted);
                let prior = self.window.size;
                self.control.get_mut(&self.p).on_signal(&mut self.window, Signal::Loss, flight, now);
                if self.uses_rack() && !self.p.derived().rules_recovery {
                    self.recovery.more().reduction = Some(Reduction::new(prior));
                }
                self.cwr_due = self.agreed.ecn();
            }
            Verdict::Exit if phase_before == Phase::Fast => {
                if !self.p.derived().rules_recovery {
                    self.window.size = self.window.threshold;
                    if !(self.agreed.sack() || self.p.recovery == RecoveryKind::Reno) {
                        // RFC 6582 section 3.2 step 3, option 1: "min (ssthresh, max(FlightSize, SMSS) + SMSS)".
                        let mss = self.window.mss();
                        let flight = self.outstanding().max(mss) + mss;
                        self.window.size = self.window.threshold.min(flight);
                    }
                }
                self.control.get_mut(&self.p).on_recovered(&mut self.window, now);
            }
            Verdict::Exit => self.control.get_mut(&self.p).on_recovered(&mut self.window, now),
            Verdict::Nothing | Verdict::Partial { .. } => {}
        }
    }

    /// Returns FlightSize in bytes, for a reduction of the window.
    ///
    /// RFC 5681 section 3.2 step 2: bytes sent by limited transmit are not part of it. Neither are segments that pile up above a hole during a
    /// recovery; otherwise each recovery would end with a larger window than the one before. As in the stacks, the result is therefore at most the
    /// congestion window.
    pub(super) fn flight_size(&self, limited_transmitted: u64) -> u64 {
        self.outstanding().saturating_sub(limited_transmitted).min(self.window.size)
    }

    /// Reacts to an echoed ECN mark, once per window of data (RFC 3168 section 6.1.2).
    fn react_to_ece(&mut self, now: Time, segment: &Segment) {
        let marked = self.agreed.ecn() && segment.flags.has(Flags::ECE);
        if marked && self.recovery.phase == Phase::Open && self.board.una() > self.rare().cwr_until {
            let flight = self.flight_size(0);
            self.control.get_mut(&self.p).on_signal(&mut self.window, Signal::Mark, flight, now);
            self.cwr_due = true;
            let next = self.tx.next;
            let rare = self.rare();
            rare.stats.ecn_reductions += 1;
            rare.cwr_until = next;
        }
    }

    fn restart_timer(&mut self, now: Time, progress: &AckSample, verdict: Verdict) {
        if self.board.is_empty() {
            // RFC 6298 (5.2): "When all outstanding data has been acknowledged, turn off the retransmission timer."
            self.timers.stop(Timer::Retransmission);
        } else if progress.acked > 0 && verdict != (Verdict::Partial { restarts_timer: false }) {
            // RFC 6298 (5.3).
            self.start_timer(now);
        } else if progress.sacked > 0
            && self.uses_rack()
            && progress.sample.is_some_and(|sent| sent < self.board.get(0).at)
        {
            // Linux also restarts it if the SACKed data was sent before the last transmission of the first segment. Later data does not count;
            // otherwise the timer would never expire (`tcp_clean_rtx_queue`).
            self.start_timer(now);
        }
        if progress.acked > 0 || progress.sacked > 0 {
            self.arm_tail_probe(now);
        }
    }

    /// Starts or restarts the retransmission timer.
    #[inline(always)]
    pub(super) fn start_timer(&mut self, now: Time) {
        let at = self.rtt.deadline(&self.p, self.backoff, now);
        self.timers.set(Timer::Retransmission, at);
    }

    /// Handles the expired retransmission timer (RFC 6298 (5.4) to (5.7)).
    pub(super) fn on_timeout(&mut self, now: Time, out: &mut Effects) {
        let rare = self.rare();
        rare.stats.timeouts += 1;
        let timeouts = rare.stats.timeouts;
        out.timed_out = true;
        if self.state != State::SynSent || timeouts > self.p.syn_linear_timeouts {
            self.backoff.back_off();
        }
        if !self.is_open() {
            self.special.set(SlowPathFlags::SYN_DUE, true);
            self.syn_resent = true;
            self.start_timer(now);
            return;
        }
        let (window, next) = (self.window, self.tx.next);
        let was_open = self.recovery.phase == Phase::Open;
        let rare = self.rare();
        if was_open {
            rare.saved.get_or_insert(UndoState { window, resent_at: None });
        }
        rare.cwr_until = next;
        rare.timed = None;
        rare.tail_probe = None;
        self.recovery.may_be_spurious |= was_open;
        let repeated = std::mem::replace(&mut self.expired, true);
        let flight = self.flight_size(self.recovery.limited_transmitted());
        self.control.get_mut(&self.p).on_signal(&mut self.window, Signal::Timeout { repeated }, flight, now);
        let clock = self.clock(now);
        self.recovery.on_timeout(&self.p, self.agreed.sack(), &mut self.board, self.tx.next, &clock);
        if self.window.has_shrunk() {
            // If the peer has discarded SACKed data, some segments may still be too long.
            self.board.cut_longer_than(self.window.mss());
        }
        self.timers.stop(Timer::TailProbe);
        self.timers.stop(Timer::Reordering);
        self.special.set(SlowPathFlags::TAIL_PROBE_DUE, false);
        self.special.set(SlowPathFlags::TAIL_PROBING, false);
        self.cwr_due = self.agreed.ecn();
        self.start_timer(now);
    }

    /// Tells proportional rate reduction, if it is in progress, that `delivered` bytes were delivered: it then lets data out. `safe` is true if the
    /// acknowledgment advanced and showed no further loss.
    pub(super) fn update_rate_reduction(&mut self, delivered: u64, safe: bool) {
        if delivered == 0 || self.recovery.reduction().is_none() {
            return;
        }
        let (in_flight, threshold, mss) = (self.in_flight(), self.window.threshold, self.window.mss());
        if let Some(reduction) = self.recovery.reduction() {
            reduction.on_delivery(delivered, safe, in_flight, threshold, mss);
        }
    }
}
