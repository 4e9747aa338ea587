//! What a segment and an expired timer do to an open connection.

use super::congestion::{Ack, RateSample, Signal};
use super::connection::{Connection, Out, Saved, State};
use super::parameters::RecoveryKind;
use super::recovery::rack::Clock;
use super::recovery::{AckView, Phase, Verdict};
use super::scoreboard::{Answers, Progress};
use super::segment::Segment;
use super::timers::Timer;
use crate::time::Time;

impl Connection {
    /// Whether this kind of recovery uses SACK.
    pub(super) fn wants_sack(&self) -> bool {
        matches!(self.p.recovery, RecoveryKind::Sack | RecoveryKind::RackTlp)
    }

    pub(super) fn receive_segment(&mut self, now: Time, segment: &Segment, out: &mut Out) {
        match self.state {
            State::Closed => self.stats.bytes_refused += segment.len,
            State::Listen | State::SynSent | State::SynReceived => self.receive_opening(now, segment, out),
            _ => self.receive_open(now, segment, out),
        }
    }

    /// A segment for an open connection: acknowledgment, then data, then FIN.
    pub(super) fn receive_open(&mut self, now: Time, segment: &Segment, out: &mut Out) {
        if segment.flags.rst {
            self.reset(out);
            return;
        }
        if segment.flags.ack && !segment.flags.syn {
            self.receive_ack(now, segment, out);
        }
        if self.state == State::Closed {
            return;
        }
        let received = self.rx.take(&self.p, segment, now);
        self.stats.bytes_received += received.in_order;
        self.stats.bytes_refused += received.refused;
        out.delivered += received.in_order;
        if received.finished {
            self.after_fin_received(now, out);
        } else if self.state == State::TimeWait && segment.flags.fin {
            // RFC 9293 section 3.10.7.4, eighth step: "Restart the 2 MSL time-wait timeout."
            self.wait(now);
        }
    }

    fn receive_ack(&mut self, now: Time, segment: &Segment, out: &mut Out) {
        // RFC 9293 section 3.10.7.4: an acknowledgment of something not yet sent is answered and dropped.
        if segment.ack > self.tx.next {
            self.rx.acks.at_once();
            return;
        }
        if segment.ack < self.tx.una {
            return;
        }
        let mut progress = self.new_progress(now, segment);
        let (before, outstanding) = (self.board.in_flight(), self.board.outstanding());
        self.board.acknowledge(segment.ack, &mut progress);
        if self.agreed.sack {
            self.board.sack(&segment.sack, &mut progress);
        }
        self.tx.una = segment.ack;
        let window_changed = self.tx.take_window(segment);
        if progress.acked > 0 {
            self.probing = false;
            self.expiries = 0;
        }
        if window_changed {
            self.after_window_change();
        }
        // RFC 5681 section 2; with SACK a duplicate is one that brings new SACK information (RFC 6675 section 2).
        let plain = outstanding > 0 && segment.len == 0 && !segment.flags.fin && !window_changed;
        let duplicate = progress.acked == 0
            && !self.probing
            && if self.agreed.sack { progress.sacked > 0 } else { plain };
        self.stats.duplicate_acks += u64::from(duplicate);
        self.measure(now, segment, &progress);
        let rate = self.measure_delivery(now, &progress);
        if progress.acked > 0 {
            self.detect_spurious(segment);
        }
        let phase_before = self.recovery.phase;
        let view = AckView {
            una: self.tx.una,
            next: self.tx.next,
            duplicate,
            progress: &progress,
            mss: self.tx.mss,
            reported_duplicate: segment.sack.duplicate(segment.ack).is_some(),
            now,
            minimum_rtt: self.rtt.minimum().unwrap_or(Time::ZERO),
            smoothed_rtt: self.rtt.smoothed().unwrap_or(Time::ZERO),
        };
        let limited = self.recovery.limited_transmitted;
        let waiting_before = self.board.waiting();
        let verdict = self.recovery.on_ack(&self.p, self.agreed.sack, &mut self.board, &view);
        let recovering = phase_before == Phase::Fast || self.recovery.phase == Phase::Fast;
        self.apply(now, verdict, phase_before, limited);
        self.watch_reordering();
        self.take_tail_probe_answer(now, segment, progress.acked);
        self.take_mark(now, segment);
        if progress.delivered > 0 {
            let ack = Ack {
                now,
                acked: progress.acked,
                delivered: progress.delivered,
                total_delivered: self.delivery.total,
                in_flight_before: before,
                in_flight: self.board.in_flight(),
                next: self.tx.next,
                unacknowledged: self.tx.una,
                rtt: progress
                    .newest
                    .filter(|newest| !newest.ambiguous)
                    .map(|newest| now.saturating_sub(newest.at)),
                smoothed_rtt: self.rtt.smoothed(),
                window_limited: self.is_window_limited(before),
                marked: self.agreed.ecn && segment.flags.ece,
                recovering,
                lost: self.board.waiting().saturating_sub(waiting_before),
                rate,
            };
            self.control.on_ack(&mut self.window, &ack);
            self.window.size = self.window.size.min(self.largest_congestion_window());
        }
        self.restart_timer(now, &progress, verdict);
        if progress.acked > 0 {
            let fin = u64::from(self.tx.is_finished());
            out.acked += progress.acked - fin;
            self.stats.bytes_acked += progress.acked - fin;
            if fin == 1 {
                self.after_fin_acknowledged(now, out);
            }
        }
    }

    fn new_progress(&self, now: Time, segment: &Segment) -> Progress {
        let echo = segment.timestamps.and_then(|stamp| stamp.echo).filter(|_| self.agreed.timestamps);
        let answers = Answers {
            now,
            echo,
            tick: self.p.timestamp_tick,
            minimum_rtt: self.rtt.minimum().unwrap_or(Time::ZERO),
        };
        Progress {
            highest: self.recovery.rack.highest,
            answers: (self.p.recovery == RecoveryKind::RackTlp).then_some(answers),
            ..Progress::default()
        }
    }

    /// Set RACK's timer as its last look at the scoreboard asks for.
    fn watch_reordering(&mut self) {
        match self.recovery.rack.deadline {
            Some(at) => self.timers.set(Timer::Reordering, at),
            None => self.timers.stop(Timer::Reordering),
        }
    }

    fn clock(&self, now: Time) -> Clock {
        Clock {
            now,
            minimum_rtt: self.rtt.minimum().unwrap_or(Time::ZERO),
            smoothed_rtt: self.rtt.smoothed().unwrap_or(Time::ZERO),
        }
    }

    /// RACK's reordering window has ended.
    pub(super) fn on_reordering_end(&mut self, now: Time) {
        let (clock, phase) = (self.clock(now), self.recovery.phase);
        let verdict = self.recovery.on_reordering_end(&self.p, &mut self.board, self.tx.next, &clock);
        let limited = self.recovery.limited_transmitted;
        self.apply(now, verdict, phase, limited);
        self.watch_reordering();
    }

    /// The congestion window need not grow beyond what a receive window can be (65 535 with the largest scale).
    fn largest_congestion_window(&self) -> u64 {
        65535 << if self.agreed.scaling { 14 } else { 0 }
    }

    fn is_window_limited(&self, in_flight: u64) -> bool {
        !self.p.window_validation
            || in_flight + self.tx.mss > self.window.size
            // In slow start a flight of half the window is growth enough to double it.
            || (self.window.in_slow_start() && self.window.size < 2 * in_flight)
    }

    /// Take a sample of the round trip (RFC 6298 section 3, Karn; RFC 7323 section 4).
    fn measure(&mut self, now: Time, segment: &Segment, progress: &Progress) {
        if self.p.rtt_every_ack {
            let echo = segment.timestamps.and_then(|stamp| stamp.echo);
            let echo = echo.filter(|_| self.agreed.timestamps && progress.acked > 0);
            if let Some(sent) = progress.sample.or(echo) {
                self.rtt.sample(&self.p, sent, now);
            }
        } else if let Some((end, sent)) = self.timed
            && self.tx.una >= end
        {
            self.timed = None;
            self.rtt.sample(&self.p, sent, now);
        }
    }

    /// Estimate the delivery rate (draft-ietf-ccwg-bbr, section 4.1.2.3).
    fn measure_delivery(&mut self, now: Time, progress: &Progress) -> Option<RateSample> {
        if progress.delivered == 0 {
            return None;
        }
        self.delivery.total += progress.delivered;
        self.delivery.at = now;
        if self.delivery.total > self.delivery.application_limited_to {
            self.delivery.application_limited_to = 0;
        }
        let newest = progress.newest?;
        self.delivery.first_sent_at = newest.at;
        let sending = newest.at.saturating_sub(newest.rate.first_sent_at);
        let acking = now.saturating_sub(newest.rate.delivered_at);
        Some(RateSample {
            delivered: self.delivery.total - newest.rate.delivered,
            interval: sending.max(acking),
            prior_delivered: newest.rate.delivered,
            application_limited: newest.rate.application_limited,
        })
    }

    /// The Eifel detection algorithm (RFC 3522): an acknowledgment that echoes a timestamp from before the
    /// retransmission acknowledges the original.
    fn detect_spurious(&mut self, segment: &Segment) {
        let Some(saved) = self.saved else { return };
        let Some(resent) = saved.resent_at else { return };
        self.saved = None;
        let echo = segment.timestamps.and_then(|stamp| stamp.echo);
        if !self.agreed.timestamps || echo.is_none_or(|echo| echo >= resent) {
            return;
        }
        self.stats.spurious += 1;
        if self.p.undo {
            self.window.size = self.window.size.max(saved.window.size);
            self.window.threshold = self.window.threshold.max(saved.window.threshold);
            self.control.on_undo(&self.window);
            self.board.unmark_lost();
            self.recovery.undo();
        }
    }

    /// Do what the recovery's verdict asks for.
    fn apply(&mut self, now: Time, verdict: Verdict, phase_before: Phase, limited: u64) {
        match verdict {
            Verdict::Enter => {
                self.stats.fast_recoveries += 1;
                self.saved = Some(Saved { window: self.window, resent_at: None });
                let flight = self.flight_size(limited);
                self.control.on_signal(&mut self.window, Signal::Loss, flight, now);
                self.cwr_due = self.agreed.ecn;
                self.cwr_until = self.tx.next;
            }
            Verdict::Exit if phase_before == Phase::Fast => {
                if !self.control.rules_recovery() {
                    self.window.size = self.window.threshold;
                    if !(self.agreed.sack || self.p.recovery == RecoveryKind::Reno) {
                        // RFC 6582 section 3.2 step 3, option 1: "min (ssthresh, max(FlightSize, SMSS) + SMSS)".
                        let flight = self.board.outstanding().max(self.tx.mss) + self.tx.mss;
                        self.window.size = self.window.threshold.min(flight);
                    }
                }
                self.control.on_recovered(&mut self.window, now);
            }
            Verdict::Exit => self.control.on_recovered(&mut self.window, now),
            Verdict::Nothing | Verdict::Partial(_) => {}
        }
    }

    /// FlightSize for the reduction of the window.
    ///
    /// RFC 5681 section 3.2 step 2: what limited transmit let out is not part of it. Neither is what piles up above a
    /// hole while a recovery lasts, or each recovery would end with a larger window than the one before: like the
    /// stacks, it is at most the congestion window.
    pub(super) fn flight_size(&self, limited: u64) -> u64 {
        self.board.outstanding().saturating_sub(limited).min(self.window.size)
    }

    /// React to an echoed mark, once for a window of data (RFC 3168 section 6.1.2).
    fn take_mark(&mut self, now: Time, segment: &Segment) {
        let marked = self.agreed.ecn && segment.flags.ece;
        if marked && self.tx.una > self.cwr_until && self.recovery.phase == Phase::Open {
            let flight = self.flight_size(0);
            self.control.on_signal(&mut self.window, Signal::Mark, flight, now);
            self.stats.ecn_reductions += 1;
            self.cwr_due = true;
            self.cwr_until = self.tx.next;
        }
    }

    fn restart_timer(&mut self, now: Time, progress: &Progress, verdict: Verdict) {
        if self.board.is_empty() {
            // RFC 6298 (5.2): "When all outstanding data has been acknowledged, turn off the retransmission timer."
            self.timers.stop(Timer::Retransmission);
        } else if progress.acked > 0 && verdict != Verdict::Partial(false) {
            // RFC 6298 (5.3).
            self.start_timer(now);
        }
        if progress.acked > 0 || progress.sacked > 0 {
            self.arm_tail_probe(now);
        }
    }

    /// Start the retransmission timer anew.
    pub(super) fn start_timer(&mut self, now: Time) {
        self.timers.set(Timer::Retransmission, self.rtt.deadline(&self.p, now));
    }

    /// The retransmission timer has expired (RFC 6298 (5.4) to (5.7)).
    pub(super) fn on_timeout(&mut self, now: Time, out: &mut Out) {
        self.stats.timeouts += 1;
        out.timer_since = Some(self.active_at.max(self.sent_at));
        self.rtt.back_off();
        if !self.is_open() {
            self.syn_due = true;
            self.syn_resent = true;
            self.start_timer(now);
            return;
        }
        if self.saved.is_none() && self.recovery.phase == Phase::Open {
            self.saved = Some(Saved { window: self.window, resent_at: None });
        }
        let again = self.expiries > 0;
        self.expiries += 1;
        let flight = self.flight_size(self.recovery.limited_transmitted);
        self.control.on_signal(&mut self.window, Signal::Timeout { again }, flight, now);
        let clock = self.clock(now);
        self.recovery.on_timeout(&self.p, self.agreed.sack, &mut self.board, self.tx.next, &clock);
        self.timers.stop(Timer::TailProbe);
        self.timers.stop(Timer::Reordering);
        (self.tail_probe, self.tail_probe_due) = (None, false);
        self.cwr_due = self.agreed.ecn;
        self.cwr_until = self.tx.next;
        self.timed = None;
        self.start_timer(now);
    }
}
