//! What goes out next, and why nothing does.

use super::connection::{Connection, State};
use super::limited::LimitedBy;
use super::parameters::RecoveryKind;
use super::recovery::Phase;
use super::scoreboard::{RateMark, Sent};
use super::segment::{Flags, Segment, Timestamps};
use super::send::Piece;
use super::timers::Timer;
use crate::time::{SECOND, Time};

/// The next thing to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    Reset,
    Syn,
    /// An acknowledgment that must go out as it was (RFC 8257 section 3.2).
    EarlyAck,
    /// The segment at that place of the scoreboard, again.
    Again(usize),
    /// New data or a FIN.
    New(Piece),
    Ack,
}

impl Connection {
    /// The next thing to send, or why there is none.
    pub(super) fn decide(&self, now: Time) -> Result<Next, LimitedBy> {
        if self.reset_due {
            return Ok(Next::Reset);
        }
        match self.state {
            State::Closed => return Err(LimitedBy::Closed),
            State::Listen => return Err(LimitedBy::Handshake),
            State::SynSent | State::SynReceived => {
                return if self.syn_due { Ok(Next::Syn) } else { Err(LimitedBy::Handshake) };
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
        if self.probe_due {
            return Ok(if self.board.is_empty() {
                Next::New(Piece { len: self.tx.usable_window().min(self.tx.unsent()).max(1), fin: false })
            } else {
                Next::Again(0)
            });
        }
        if self.tail_probe_due && !self.board.is_empty() {
            return Ok(self.decide_tail_probe());
        }
        if self.probing {
            return Err(LimitedBy::ReceiveWindow);
        }
        let next = self.decide_within_window()?;
        // A pure FIN is not paced.
        let paced = !matches!(next, Next::New(Piece { len: 0, .. }));
        if paced && self.timers.at(Timer::Pacing).is_some_and(|at| at > now) {
            return Err(LimitedBy::Pacing);
        }
        Ok(next)
    }

    fn decide_within_window(&self) -> Result<Next, LimitedBy> {
        let window = self.window_size();
        let in_flight = self.board.in_flight();
        if let Some(index) = self.board.next_lost() {
            let lost = self.board.get(index);
            let fits = in_flight + (lost.end - lost.seq) <= window;
            return if fits || self.recovery.force {
                Ok(Next::Again(index))
            } else {
                Err(LimitedBy::CongestionWindow)
            };
        }
        let piece = match self.tx.next_piece(&self.p, self.board.is_empty()) {
            Ok(piece) => piece,
            Err(reason) => return self.decide_hole(in_flight, window).ok_or(reason),
        };
        if piece.len > 0 && in_flight + piece.len > window + self.limited_transmit() {
            return Err(LimitedBy::CongestionWindow);
        }
        Ok(Next::New(piece))
    }

    /// RFC 3042: the first duplicate acknowledgments each let a new segment out. With SACK they do so by themselves.
    fn limited_transmit(&self) -> u64 {
        let applies = self.p.limited_transmit && !self.agreed.sack && self.recovery.phase == Phase::Open;
        let duplicates = self.recovery.duplicates.min(self.p.duplicate_threshold - 1);
        if applies { u64::from(duplicates) * self.tx.mss } else { 0 }
    }

    /// RFC 6675 section 4, NextSeg rules 3 and 4: with no new data, what may be lost goes out again.
    fn decide_hole(&self, in_flight: u64, window: u64) -> Option<Next> {
        let applies =
            self.agreed.sack && self.p.recovery == RecoveryKind::Sack && self.recovery.phase == Phase::Fast;
        if !applies || in_flight + self.tx.mss > window {
            return None;
        }
        if let Some(index) = self.board.first_unsent_hole() {
            return Some(Next::Again(index));
        }
        let last = self.board.last()?;
        // Rule 4: once in a recovery, the last segment if it is "unSACKed" and below RecoveryPoint.
        let rescue =
            !self.recovery.rescued && !last.sacked && !last.resent && last.end <= self.recovery.recover;
        rescue.then(|| Next::Again(self.board.len() - 1))
    }

    /// The next segment, when the host has room for it. Pull until it gives none.
    pub fn transmit(&mut self, now: Time) -> Option<Segment> {
        let next = self.decide(now).ok()?;
        let segment = match next {
            Next::Reset => self.send_reset(),
            Next::Syn => self.send_syn(now),
            Next::EarlyAck => self.send_early_ack(now),
            Next::Again(index) => self.send_again(now, index),
            Next::New(piece) => self.send_new(now, piece),
            Next::Ack => self.send_ack(now),
        };
        self.stats.segments_sent += 1;
        self.stats.bytes_sent += segment.len;
        if !segment.is_pure_ack() {
            self.sent_at = now;
            self.pace(now, &segment);
        } else {
            self.stats.acks_sent += 1;
        }
        self.rearm(now);
        Some(segment)
    }

    /// A segment with what every segment of an open connection carries.
    fn base(&mut self, now: Time, seq: u64) -> Segment {
        let window = self.rx.announce();
        Segment {
            seq,
            ack: self.rx.next(),
            window,
            flags: Flags { ack: true, ece: self.agreed.ecn && self.rx.echoes_mark(), ..Flags::default() },
            timestamps: self.agreed.timestamps.then(|| self.stamp(now)),
            ..Segment::default()
        }
    }

    fn stamp(&self, now: Time) -> Timestamps {
        let tick = self.p.timestamp_tick.ps().max(1);
        Timestamps { value: Time(now.ps() / tick * tick), echo: self.rx.recent_timestamp() }
    }

    fn send_reset(&mut self) -> Segment {
        self.reset_due = false;
        self.state = State::Closed;
        Segment {
            seq: self.tx.next,
            flags: Flags { rst: true, ack: true, ..Flags::default() },
            ack: self.rx.next(),
            ..Segment::default()
        }
    }

    fn send_syn(&mut self, now: Time) -> Segment {
        let answer = self.state == State::SynReceived;
        self.syn_due = false;
        if self.syn_sent.is_some() {
            self.syn_resent = true;
        }
        self.syn_sent = Some(now);
        self.start_timer(now);
        // A SYN-ACK offers only what the SYN did (RFC 7323 sections 2.2 and 3.2, RFC 2018 section 2).
        let timestamps = if answer { self.agreed.timestamps } else { self.p.timestamps };
        let scaling = if answer { self.agreed.scaling } else { self.p.window_scaling };
        let sack = if answer { self.agreed.sack } else { self.wants_sack() };
        let ecn = if answer { self.agreed.ecn } else { self.p.ecn };
        Segment {
            ack: if answer { 1 } else { 0 },
            window: self.rx.syn_window(),
            flags: Flags { syn: true, ack: answer, ece: ecn, cwr: ecn && !answer, ..Flags::default() },
            mss: Some(self.p.mss),
            window_scale: scaling.then(|| self.rx.wanted_scale()),
            sack_permitted: sack,
            timestamps: timestamps.then(|| self.stamp(now)),
            ..Segment::default()
        }
    }

    fn send_ack(&mut self, now: Time) -> Segment {
        let mut segment = self.base(now, self.tx.next);
        if self.agreed.sack {
            let room = if self.agreed.timestamps { 3 } else { 4 };
            segment.sack = self.rx.sack_blocks(&self.p, room);
        }
        self.rx.acknowledged(true);
        segment
    }

    fn send_early_ack(&mut self, now: Time) -> Segment {
        let mut segment = self.base(now, self.tx.next);
        let (ack, echo) = self.rx.take_early().expect("an early acknowledgment was decided on");
        segment.window += segment.ack - ack;
        segment.ack = ack;
        segment.flags.ece = self.agreed.ecn && echo;
        segment
    }

    fn rate_mark(&mut self, now: Time) -> RateMark {
        if self.board.is_empty() {
            self.delivery.first_sent_at = now;
            self.delivery.at = now;
        }
        RateMark {
            delivered: self.delivery.total,
            delivered_at: self.delivery.at,
            first_sent_at: self.delivery.first_sent_at,
            application_limited: self.delivery.application_limited_to > 0,
        }
    }

    fn send_again(&mut self, now: Time, index: usize) -> Segment {
        if !self.board.get(index).lost && !self.probe_due && !self.tail_probe_due {
            if self.board.first_unsent_hole().is_none() {
                self.recovery.rescued = true;
            }
            self.board.mark_lost(index);
        }
        self.recovery.force = false;
        self.timed = None;
        let rate = self.rate_mark(now);
        self.board.resend(index, now, rate);
        let sent = *self.board.get(index);
        let mut segment = self.base(now, sent.seq);
        segment.len = sent.end - sent.seq - u64::from(sent.fin);
        segment.flags.fin = sent.fin;
        segment.flags.psh = index + 1 == self.board.len() && self.tx.unsent() == 0;
        let stamp = segment.timestamps.map_or(now, |stamp| stamp.value);
        if let Some(saved) = &mut self.saved {
            saved.resent_at.get_or_insert(stamp);
        }
        self.rx.acknowledged(false);
        if self.probe_due {
            self.probe_due = false;
            self.probing = true;
            self.stats.window_probes += 1;
        } else {
            self.stats.retransmissions += 1;
            self.stats.bytes_retransmitted += segment.len;
            if self.tail_probe_due {
                self.after_tail_probe(now, true);
            }
            if !self.timers.is_set(Timer::Retransmission) {
                self.start_timer(now);
            }
        }
        segment
    }

    fn send_new(&mut self, now: Time, piece: Piece) -> Segment {
        self.restart_after_idle(now);
        let beyond = piece.len > self.tx.usable_window();
        let rate = self.rate_mark(now);
        if self.recovery.phase == Phase::Open && self.recovery.duplicates > 0 {
            self.recovery.limited_transmitted += piece.len;
        }
        self.control.on_send(now, self.board.in_flight(), piece.len);
        let seq = self.tx.next;
        let psh = self.tx.sent(&self.p, piece);
        self.board.push(Sent {
            seq,
            end: self.tx.next,
            at: now,
            fin: piece.fin,
            sacked: false,
            lost: false,
            resent: false,
            ambiguous: false,
            rate,
        });
        let mut segment = self.base(now, seq);
        segment.len = piece.len;
        segment.flags.fin = piece.fin;
        segment.flags.psh = psh;
        if piece.len > 0 {
            segment.ect = self.agreed.ecn;
            segment.flags.cwr = std::mem::take(&mut self.cwr_due);
            self.timed = self.timed.or(Some((self.tx.next, now)));
        }
        if piece.fin {
            self.after_fin_sent();
        }
        self.rx.acknowledged(false);
        if self.probe_due {
            self.probe_due = false;
            self.probing = beyond;
            self.stats.window_probes += 1;
        }
        // RFC 6298 (5.1): "if the timer is not running, start it running". A refused probe is the persist timer's.
        if !self.probing && !self.timers.is_set(Timer::Retransmission) {
            self.start_timer(now);
        }
        if self.tail_probe_due {
            self.after_tail_probe(now, false);
        } else {
            self.arm_tail_probe(now);
        }
        self.note_application_limit();
        segment
    }

    /// RFC 5681 section 4.1: after more than a timeout without data the window starts again.
    fn restart_after_idle(&mut self, now: Time) {
        let idle = now.saturating_sub(self.sent_at);
        if !self.board.is_empty() || idle <= self.rtt.timeout(&self.p) {
            return;
        }
        self.control.on_idle(idle);
        if self.p.restart_after_idle && !self.control.rules_recovery() {
            self.window.size = self.window.size.min(self.p.initial_window * self.tx.mss);
        }
    }

    /// With nothing left to send and room in the window, the application sets the pace from here on.
    fn note_application_limit(&mut self) {
        if self.tx.unsent() == 0 && self.board.in_flight() < self.window_size() {
            self.delivery.application_limited_to = self.delivery.total + self.board.in_flight();
        }
    }

    fn pace(&mut self, now: Time, segment: &Segment) {
        if let Some(rate) = self.control.pacing_rate().filter(|_| segment.len > 0) {
            let bits = u128::from(segment.wire_len()) * 8 * u128::from(SECOND);
            let gap = u64::try_from(bits.div_ceil(u128::from(rate.max(1)))).unwrap_or(SECOND);
            self.timers.set(Timer::Pacing, now + Time(gap));
        }
    }
}
