//! Decides what is sent next, or why nothing is, and builds the segments.

use super::ack_output::EstablishedTerms;
use super::ack_sample::RateSnapshot;
use super::connection::{Connection, State};
use super::limited_by::LimitedBy;
use super::parameters::RecoveryKind;
use super::rare::SlowPathFlags;
use super::receive::Receiver;
use super::recovery::Phase;
use super::segment::{Flags, Segment};
use super::send::UnsentPiece;
use super::timers::Timer;
use crate::time::{SECOND, Time};

/// The next thing to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    Reset,
    Syn,
    /// An acknowledgment with the state before the marks changed (RFC 8257 section 3.2).
    EarlyAck,
    /// A retransmission of the segment at this index of the scoreboard.
    Retransmission(u32),
    /// New data or a FIN.
    New(UnsentPiece),
    Ack,
}

impl Connection {
    /// Returns the next thing to send, or why there is none.
    #[inline(always)]
    pub(super) fn decide(&self, now: Time) -> Result<Next, LimitedBy> {
        let is_ordinary = self.state == State::Established && self.special.is_empty() && !self.rx.has_early();
        if !is_ordinary || self.board.waiting() > 0 || self.recovery.phase == Phase::Fast {
            return self.decide_slow_path(now);
        }
        let reason = match self.next_piece() {
            Ok(piece) => {
                let in_flight = self.in_flight() + u64::from(piece.len);
                let window = self.window.size.max(self.window.mss());
                if in_flight > window && piece.len > 0 && in_flight > window + self.limited_transmit() {
                    LimitedBy::CongestionWindow
                } else if self.p.derived().rates && piece.len > 0 && self.is_paced(now) {
                    LimitedBy::Pacing
                } else {
                    return Ok(Next::New(piece));
                }
            }
            Err(reason) => reason,
        };
        if self.rx.acks.is_due() { Ok(Next::Ack) } else { Err(reason) }
    }

    /// Slow path of [`decide`](Self::decide).
    #[inline(never)]
    fn decide_slow_path(&self, now: Time) -> Result<Next, LimitedBy> {
        if self.special.has(SlowPathFlags::RESET_DUE) {
            return Ok(Next::Reset);
        }
        match self.state {
            State::Closed => return Err(LimitedBy::Closed),
            State::Listen => return Err(LimitedBy::Handshake),
            State::SynSent | State::SynReceived => {
                let due = self.special.has(SlowPathFlags::SYN_DUE);
                return if due { Ok(Next::Syn) } else { Err(LimitedBy::Handshake) };
            }
            _ => {}
        }
        if self.rx.has_early() {
            return Ok(Next::EarlyAck);
        }
        match self.decide_data(now) {
            Err(_) if self.rx.acks.is_due() => Ok(Next::Ack),
            decided => decided,
        }
    }

    fn decide_data(&self, now: Time) -> Result<Next, LimitedBy> {
        if !self.is_open() {
            return Err(LimitedBy::Closed);
        }
        if self.special.has(SlowPathFlags::PROBE_DUE) {
            return Ok(if self.board.is_empty() {
                let usable = self.tx.usable_window(self.board.una()).min(self.window.mss());
                Next::New(UnsentPiece { len: usable.min(self.tx.unsent()).max(1) as u32, fin: false })
            } else {
                Next::Retransmission(0)
            });
        }
        if self.special.has(SlowPathFlags::TAIL_PROBE_DUE) && !self.board.is_empty() {
            return Ok(self.decide_tail_probe());
        }
        if self.special.has(SlowPathFlags::PROBING) {
            return Err(LimitedBy::ReceiveWindow);
        }
        self.decide_paced(now)
    }

    fn decide_paced(&self, now: Time) -> Result<Next, LimitedBy> {
        let next = self.decide_within_window()?;
        // A pure FIN is not paced.
        let paced = !matches!(next, Next::New(UnsentPiece { len: 0, .. }));
        if paced && self.is_paced(now) { Err(LimitedBy::Pacing) } else { Ok(next) }
    }

    /// Returns the next piece of new data, or why there is none.
    #[inline(always)]
    fn next_piece(&self) -> Result<UnsentPiece, LimitedBy> {
        self.tx.next_piece(&self.p, self.window.mss(), self.board.una(), self.board.is_empty())
    }

    /// Returns whether pacing holds the next segment back.
    fn is_paced(&self, now: Time) -> bool {
        self.timers.at(Timer::Pacing).is_some_and(|at| at > now)
    }

    fn decide_within_window(&self) -> Result<Next, LimitedBy> {
        let window = self.window_size();
        let in_flight = self.in_flight();
        if let Some(index) = self.board.next_lost() {
            let lost = self.board.get(index);
            let fits = in_flight + (lost.end - lost.seq) <= window;
            return if fits || self.recovery.force {
                Ok(Next::Retransmission(index as u32))
            } else {
                Err(LimitedBy::CongestionWindow)
            };
        }
        let piece = match self.next_piece() {
            Ok(piece) => piece,
            Err(reason) => return self.decide_hole(in_flight, window).ok_or(reason),
        };
        if piece.len > 0 && in_flight + u64::from(piece.len) > window + self.limited_transmit() {
            return Err(LimitedBy::CongestionWindow);
        }
        Ok(Next::New(piece))
    }

    /// RFC 3042: returns how many bytes may be sent beyond the window, one segment for each of the first duplicate acknowledgments. With SACK it is
    /// 0, because SACKed data no longer counts as in flight.
    #[inline]
    pub(super) fn limited_transmit(&self) -> u64 {
        if self.recovery.duplicates == 0 {
            return 0;
        }
        let applies = self.p.limited_transmit && !self.agreed.sack() && self.recovery.phase == Phase::Open;
        let duplicates = self.recovery.duplicates.min(self.p.duplicate_threshold - 1);
        if applies { u64::from(duplicates) * self.window.mss() } else { 0 }
    }

    /// RFC 6675 section 4, NextSeg rules 3 and 4: without new data, returns a segment to retransmit that may be lost.
    fn decide_hole(&self, in_flight: u64, window: u64) -> Option<Next> {
        let applies = self.recovery.phase == Phase::Fast && self.agreed.sack();
        if applies { self.find_hole(in_flight, window) } else { None }
    }

    fn find_hole(&self, in_flight: u64, window: u64) -> Option<Next> {
        if self.p.recovery != RecoveryKind::Sack || in_flight + self.window.mss() > window {
            return None;
        }
        if let Some(index) = self.board.first_unmarked_hole() {
            return Some(Next::Retransmission(index as u32));
        }
        let last = self.board.last()?;
        // Rule 4: once in a recovery, the last segment if it is "unSACKed" and below RecoveryPoint.
        let rescue =
            !self.recovery.rescued && !last.sacked && !last.resent && last.end <= self.recovery.recover();
        rescue.then(|| Next::Retransmission(self.board.len() as u32 - 1))
    }

    /// Returns the next segment. Call it when the host has room, until it returns `None`.
    #[inline]
    pub fn transmit(&mut self, now: Time) -> Option<Segment> {
        let mut segment = Segment::default();
        self.next_segment(now, &mut segment).ok().map(|()| segment)
    }

    /// Writes the next segment into `segment`. If there is none, returns the reason, as [`limited_by`](Self::limited_by) does, and leaves `segment`
    /// unchanged.
    pub fn next_segment(&mut self, now: Time, segment: &mut Segment) -> Result<(), LimitedBy> {
        // The common case of an acknowledgment: the endpoint only reads.
        let acknowledges = self.has_nothing_to_send() && self.rx.acks.is_due();
        let next = if acknowledges { Ok(Next::Ack) } else { self.decide(now) };
        match next {
            Ok(Next::New(piece)) => self.send_new(now, piece, segment),
            Ok(Next::Ack) => self.send_ack(now, segment),
            Ok(Next::Retransmission(index)) => self.send_retransmission(now, index as usize, segment),
            Ok(next) => *segment = self.send_slow_path(now, next),
            Err(reason) => return Err(self.refine_reason(reason)),
        }
        Ok(())
    }

    #[inline(never)]
    fn send_slow_path(&mut self, now: Time, next: Next) -> Segment {
        let segment = match next {
            Next::Reset => self.send_reset(),
            Next::Syn => self.send_syn(now),
            Next::EarlyAck => self.send_early_ack(now),
            Next::Retransmission(_) | Next::New(_) | Next::Ack => {
                unreachable!("`next_segment` itself sends data, retransmissions and acknowledgments")
            }
        };
        self.counts.segments_sent += 1;
        if segment.is_pure_ack() {
            self.counts.acks_sent += 1;
        } else {
            self.sent_at = now;
        }
        self.update_persist_timer(now);
        segment
    }

    /// Returns the receiving half and the terms of the connection.
    #[inline(always)]
    fn receiving(&mut self) -> (&mut Receiver, EstablishedTerms<'_>) {
        let (mss, path) = (self.received_size(), self.window.mss());
        (&mut self.rx, EstablishedTerms { p: &self.p, agreed: self.agreed, mss, path })
    }

    /// Fills `segment` with the header fields of an open connection. `place` is its first sequence number and its length.
    #[inline(always)]
    pub(super) fn outgoing(&mut self, now: Time, place: (u64, u32), flags: Flags, segment: &mut Segment) {
        let (rx, terms) = self.receiving();
        rx.outgoing(terms, now, place, flags, segment);
    }

    fn send_reset(&mut self) -> Segment {
        self.special.set(SlowPathFlags::RESET_DUE, false);
        self.state = State::Closed;
        Segment {
            seq: self.tx.next,
            flags: Flags::RST | Flags::ACK,
            ack: self.rx.next(),
            ..Segment::default()
        }
    }

    fn send_syn(&mut self, now: Time) -> Segment {
        let answer = self.state == State::SynReceived;
        self.special.set(SlowPathFlags::SYN_DUE, false);
        self.syn_resent |= self.has_sent_syn();
        self.start_timer(now);
        // A SYN-ACK offers only what the SYN did (RFC 7323 sections 2.2 and 3.2, RFC 2018 section 2).
        let timestamps = if answer { self.agreed.timestamps() } else { self.p.timestamps };
        let scaling = if answer { self.agreed.scaling() } else { self.p.window_scaling };
        let sack = if answer { self.agreed.sack() } else { self.p.derived().sack };
        let ecn = if answer { self.agreed.ecn() } else { self.p.ecn };
        Segment {
            ack: if answer { 1 } else { 0 },
            window: self.rx.syn_window(&self.p, self.window.mss()),
            flags: Flags::SYN
                .with_if(answer, Flags::ACK)
                .with_if(ecn, Flags::ECE)
                .with_if(ecn && !answer, Flags::CWR),
            ect: ecn && self.p.derived().exact_marks,
            mss: u16::try_from(self.p.mss).unwrap_or(u16::MAX),
            window_scale: scaling.then(|| self.rx.wanted_scale(&self.p, self.window.mss())),
            sack_permitted: sack,
            timestamps: timestamps.then(|| self.rx.stamp(&self.p, now)),
            ..Segment::default()
        }
    }

    #[inline]
    fn send_ack(&mut self, now: Time, segment: &mut Segment) {
        self.counts.segments_sent += 1;
        self.counts.acks_sent += 1;
        self.update_persist_timer(now);
        let seq = self.tx.next;
        let (rx, terms) = self.receiving();
        rx.acknowledge(terms, now, seq, segment);
    }

    fn send_early_ack(&mut self, now: Time) -> Segment {
        let seq = self.tx.next;
        let (rx, terms) = self.receiving();
        rx.acknowledge_early(terms, now, seq)
    }

    /// Returns the state of the delivery rate estimate to store with a segment, if the rate is measured.
    #[inline]
    fn rate_mark(&mut self, now: Time) -> Option<RateSnapshot> {
        if self.p.derived().rates { Some(self.mark_rate(now)) } else { None }
    }

    #[inline(never)]
    fn mark_rate(&mut self, now: Time) -> RateSnapshot {
        let idle = self.board.is_empty();
        let delivery = &mut self.rare().delivery;
        if idle {
            delivery.first_sent_at = now;
            delivery.at = now;
        }
        RateSnapshot {
            delivered: delivery.total,
            delivered_at: delivery.at,
            first_sent_at: delivery.first_sent_at,
            application_limited: delivery.application_limited_to > 0,
        }
    }

    #[inline(never)]
    fn send_retransmission(&mut self, now: Time, index: usize, segment: &mut Segment) {
        let (probe, tail_probe) =
            (self.special.has(SlowPathFlags::PROBE_DUE), self.special.has(SlowPathFlags::TAIL_PROBE_DUE));
        if !self.board.get(index).lost && !probe && !tail_probe {
            if self.board.first_unmarked_hole().is_none() {
                self.recovery.rescued = true;
            }
            self.board.mark_lost(index);
        }
        self.recovery.force = false;
        let (rate, resent) = (self.rate_mark(now), self.board.has_resent());
        self.board.resend(index, now, rate);
        let sent = self.board.get(index);
        self.recovery.on_retransmit(now, sent.end);
        let len = (sent.end - sent.seq - u64::from(sent.fin)) as u32;
        let pushes = index + 1 == self.board.len() && self.tx.unsent() == 0;
        let flags = Flags::default().with_if(sent.fin, Flags::FIN).with_if(pushes, Flags::PSH);
        self.outgoing(now, (sent.seq, len), flags, segment);
        let stamp = segment.timestamps.map_or(now, |stamp| stamp.value());
        let bytes = segment.payload();
        if let Some(reduction) = self.recovery.reduction() {
            reduction.sent(bytes);
        }
        let rare = self.rare();
        rare.timed = None;
        if !resent {
            rare.resent_since = stamp;
        }
        if let Some(saved) = &mut rare.saved {
            saved.resent_at.get_or_insert(stamp);
        }
        rare.bytes_resent += bytes;
        self.rx.acknowledged(false);
        if probe {
            self.rare().stats.window_probes += 1;
            self.special.set(SlowPathFlags::PROBE_DUE, false);
            self.special.set(SlowPathFlags::PROBING, true);
        } else {
            let stats = &mut self.rare().stats;
            stats.retransmissions += 1;
            stats.bytes_retransmitted += bytes;
            if tail_probe {
                self.after_tail_probe(now, true);
            }
            // Linux restarts the timer when it retransmits the first segment (`tcp_xmit_retransmit_queue`).
            let anew = index == 0 && self.p.derived().rack && !self.timers.is_set(Timer::Reordering);
            if anew || !self.timers.is_set(Timer::Retransmission) {
                self.start_timer(now);
            }
        }
        self.counts.segments_sent += 1;
        self.sent_at = now;
        self.pace(now, segment);
        self.update_persist_timer(now);
    }

    #[inline]
    fn send_new(&mut self, now: Time, piece: UnsentPiece, segment: &mut Segment) {
        if self.board.is_empty() {
            self.restart_after_idle(now);
        }
        let rate = self.rate_mark(now);
        self.recovery.sent(piece.len.into());
        let probes = self.special.has(SlowPathFlags::PROBE_DUE);
        let beyond = probes && u64::from(piece.len) > self.tx.usable_window(self.board.una());
        let seq = self.tx.next;
        let pushes = self.tx.sent(&self.p, self.window.mss(), piece);
        self.board.push(self.tx.next, now, piece.fin, rate);
        let mut flags = Flags::default().with_if(pushes, Flags::PSH);
        if piece.len > 0 {
            flags = flags.with_if(self.cwr_due, Flags::CWR);
            self.cwr_due = false;
            if !self.p.rtt_every_ack {
                self.time_to(self.tx.next, now);
            }
        }
        if piece.fin {
            flags |= Flags::FIN;
            self.after_fin_sent();
        }
        if probes {
            self.rare().stats.window_probes += 1;
            self.special.set(SlowPathFlags::PROBE_DUE, false);
            self.special.set(SlowPathFlags::PROBING, beyond);
        }
        // RFC 6298 (5.1): "if the timer is not running, start it running". A probe beyond the window is left to the persist timer.
        if !self.timers.is_set(Timer::Retransmission) && !self.special.has(SlowPathFlags::PROBING) {
            self.start_timer(now);
        }
        if self.special.has(SlowPathFlags::TAIL_PROBE_DUE) {
            self.after_tail_probe(now, false);
        } else {
            self.arm_tail_probe(now);
        }
        self.counts.segments_sent += 1;
        self.sent_at = now;
        self.update_persist_timer(now);
        self.outgoing(now, (seq, piece.len), flags, segment);
        segment.ect = self.agreed.ecn() && piece.len > 0;
        self.rx.acknowledged(false);
        if self.p.derived().rates {
            self.note_application_limit();
            self.pace(now, segment);
        }
    }

    /// Times the segment that ends at `end`, if no other one is timed.
    #[inline(never)]
    fn time_to(&mut self, end: u64, now: Time) {
        self.rare().timed.get_or_insert((end, now));
    }

    /// RFC 5681 section 4.1: restarts with the initial window after more than a timeout without data, if the stack does so.
    #[inline(never)]
    pub(super) fn restart_after_idle(&mut self, now: Time) {
        self.control.begin(&self.p);
        let idle = now.saturating_sub(self.sent_at);
        if idle <= self.timeout() {
            return;
        }
        self.control.begun_mut().on_idle(idle);
        if self.p.restart_after_idle && !self.p.derived().rules_recovery {
            self.window.size = self.window.size.min(self.p.initial_window * self.window.mss());
        }
    }

    /// If nothing is left to send or to retransmit and the window has room, the application limits the rate from here on (draft-ietf-ccwg-bbr,
    /// section 4.1).
    fn note_application_limit(&mut self) {
        if self.tx.unsent() == 0 && self.board.waiting() == 0 && self.in_flight() < self.window_size() {
            let in_flight = self.in_flight();
            let delivery = &mut self.rare().delivery;
            delivery.application_limited_to = delivery.total + in_flight;
        }
    }

    fn pace(&mut self, now: Time, segment: &Segment) {
        if segment.len > 0
            && self.p.derived().rates
            && let Some(rate) = self.control.get_mut(&self.p).pacing_rate()
        {
            let bits = u128::from(segment.wire_len()) * 8 * u128::from(SECOND);
            let gap = u64::try_from(bits.div_ceil(u128::from(rate.max(1)))).unwrap_or(SECOND);
            self.timers.set(Timer::Pacing, now + Time(gap));
        }
    }
}
