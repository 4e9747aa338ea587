//! One endpoint of a connection: its parts and its interface.

use std::ops::Range;

use super::congestion::{CurrentControl, Window};
use super::first_needed;
use super::limited_by::LimitedBy;
use super::parameters::{RecoveryKind, Role, Shared};
use super::rare::{ConnectionCold, SlowPathFlags};
use super::receive::Receiver;
use super::recovery::{Phase, Recovery};
use super::rtt::{Backoff, Rtt};
use super::scoreboard::Scoreboard;
use super::segment::Segment;
use super::send::Sender;
use super::stats::{Counts, Snapshot, Stats};
use super::timers::{Timer, Timers};
use crate::time::Time;

/// The states of RFC 9293 section 3.3.2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Waits for a SYN.
    Listen,
    /// Has sent a SYN, or is about to.
    SynSent,
    /// Has received and sent a SYN.
    SynReceived,
    /// Open in both directions.
    Established,
    /// Has sent a FIN.
    FinWait1,
    /// Its FIN is acknowledged.
    FinWait2,
    /// Has received a FIN.
    CloseWait,
    /// Both sides have sent a FIN; its own is not acknowledged yet.
    Closing,
    /// Has received a FIN and then sent one.
    LastAck,
    /// Waits until old segments are gone.
    TimeWait,
    /// No connection.
    Closed,
}

/// The effects of an input, or of several inputs if it is not cleared between them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Effects {
    /// The handshake is done.
    pub established: bool,
    /// Bytes newly in order: readable, or already read where reading is automatic.
    pub delivered: u64,
    /// Bytes received and discarded: duplicates, or bytes beyond the window.
    pub refused: u64,
    /// Bytes newly acknowledged.
    pub acked: u64,
    /// The peer will send no more data.
    pub finished: bool,
    /// The connection has ended, in order or by a reset.
    pub closed: bool,
    /// The peer has reset the connection.
    pub reset: bool,
    /// The retransmission timer expired. The time since the last segment sent or received was spent on waiting for it.
    pub timed_out: bool,
    /// The round trip that was measured (RFC 6298 section 3).
    pub round_trip: Option<Time>,
}

/// The options that the handshake has negotiated.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct NegotiatedOptions(u8);

impl NegotiatedOptions {
    pub(super) const TIMESTAMPS: Self = Self(1);
    pub(super) const SACK: Self = Self(2);
    pub(super) const ECN: Self = Self(4);
    pub(super) const SCALING: Self = Self(8);

    /// Returns these options, and also `others` if `agreed`.
    pub(super) fn with_if(self, agreed: bool, others: Self) -> Self {
        if agreed { Self(self.0 | others.0) } else { self }
    }

    #[inline]
    pub(super) fn timestamps(self) -> bool {
        self.0 & Self::TIMESTAMPS.0 != 0
    }

    #[inline]
    pub(super) fn sack(self) -> bool {
        self.0 & Self::SACK.0 != 0
    }

    #[inline]
    pub(super) fn ecn(self) -> bool {
        self.0 & Self::ECN.0 != 0
    }

    #[inline]
    pub(super) fn scaling(self) -> bool {
        self.0 & Self::SCALING.0 != 0
    }
}

/// One endpoint of a TCP connection.
///
/// Its size matters: state that an idle connection does not need is allocated at its first use. The order of its fields matters too, if there are too
/// many connections for the CPU caches: fields that nearly all segments leave unchanged come first.
#[derive(Debug)]
#[repr(C)]
pub struct Connection {
    pub(super) rare: Option<Box<ConnectionCold>>,
    pub(super) recovery: Recovery,
    pub(super) counts: Counts,
    pub(super) p: Shared,
    pub(super) board: Scoreboard,
    pub(super) tx: Sender,
    pub(super) timers: Timers,
    /// When a segment other than a pure acknowledgment was last sent.
    pub(super) sent_at: Time,
    pub(super) control: CurrentControl,
    pub(super) window: Window,
    pub(super) rtt: Rtt,
    pub(super) rx: Receiver,
    pub(super) state: State,
    pub(super) special: SlowPathFlags,
    pub(super) agreed: NegotiatedOptions,
    pub(super) backoff: Backoff,
    /// More than one SYN was sent.
    pub(super) syn_resent: bool,
    /// The retransmission timer has expired, and nothing was acknowledged since.
    pub(super) expired: bool,
    /// ECN: the next new segment carries CWR.
    pub(super) cwr_due: bool,
}

impl Connection {
    /// Creates an endpoint. An active one opens the connection at its first [`transmit`](Self::transmit); a passive one waits for a SYN.
    ///
    /// Connections with the same parameters share them if they are given as [`Shared`].
    pub fn new(parameters: impl Into<Shared>, role: Role) -> Self {
        let p: Shared = parameters.into();
        let mut special = SlowPathFlags::default();
        special.set(SlowPathFlags::SYN_DUE, role == Role::Active);
        Self {
            tx: Sender::new(),
            rx: Receiver::new(),
            board: Scoreboard::new(1),
            rtt: Rtt::new(),
            window: Window::new(&p),
            control: CurrentControl::new(),
            timers: Timers::default(),
            recovery: Recovery::default(),
            sent_at: Time::ZERO,
            counts: Counts::default(),
            rare: None,
            state: if role == Role::Active { State::SynSent } else { State::Listen },
            special,
            agreed: NegotiatedOptions::default(),
            backoff: Backoff::default(),
            syn_resent: false,
            expired: false,
            cwr_due: false,
            p,
        }
    }

    /// Returns whether a SYN was sent, which is always the first segment.
    pub(super) fn has_sent_syn(&self) -> bool {
        self.counts.segments_sent > 0
    }

    #[inline]
    pub(super) fn rare(&mut self) -> &mut ConnectionCold {
        self.rare.get_or_insert_with(first_needed)
    }

    /// Processes a segment that has arrived.
    #[inline]
    pub fn on_segment(&mut self, now: Time, segment: &Segment, out: &mut Effects) {
        self.counts.segments_received += 1;
        if !self.on_segment_fast_path(now, segment, out) && !self.on_segment_sack_path(now, segment, out) {
            self.on_segment_slow_path(now, segment, out);
        }
        self.update_persist_timer(now);
    }

    /// Handles the timers that have expired. Has no effect if none has.
    pub fn on_timer(&mut self, now: Time, out: &mut Effects) {
        self.rx.on_timer(now);
        if self.timers.expired(Timer::TimeWait, now) {
            self.set_closed(out);
        }
        if self.timers.expired(Timer::Persist, now) {
            self.on_persist();
        }
        if self.timers.expired(Timer::Reordering, now) {
            self.on_reordering_end(now);
        }
        // A probe is never due later than the timeout, and must be handled before it.
        if self.timers.expired(Timer::TailProbe, now) {
            self.on_tail_probe(now);
        }
        if self.timers.expired(Timer::Retransmission, now) {
            self.on_timeout(now, out);
        }
        // The pacing timer only wakes the host: `transmit` is allowed again.
        self.timers.expired(Timer::Pacing, now);
        self.update_persist_timer(now);
    }

    /// Returns when [`on_timer`](Self::on_timer) must be called next.
    #[inline]
    pub fn next_wake(&self) -> Option<Time> {
        let at = self.timers.next().min(self.rx.acks.deadline());
        (at != Time::MAX).then_some(at)
    }

    /// Writes `bytes` at once. Returns how many bytes the send buffer takes; the application keeps the others and writes them later. To write piece
    /// by piece, use [`next_copy`](Self::next_copy).
    pub fn write(&mut self, now: Time, bytes: u64) -> u64 {
        let taken = self.tx.write(&self.p, self.board.una(), bytes);
        self.update_persist_timer(now);
        taken
    }

    /// Returns how many bytes the socket copies next of a write that has `left` bytes to come; 0 while the application is blocked. It is at most a
    /// segment, except with `SendBufferRule::WholeWrites`. Call [`put`](Self::put) once the bytes are copied.
    #[inline]
    pub fn next_copy(&mut self, left: u64) -> u64 {
        self.tx.next_copy(&self.p, self.window.mss(), self.board.una(), left)
    }

    /// Copies as many pieces of a write as the socket takes one after the other; `left` bytes of the write are to come. Use it only if no piece can
    /// be sent before the last one is copied. Returns how many bytes are copied.
    #[inline]
    pub fn copy(&mut self, now: Time, left: u64) -> u64 {
        let taken = self.tx.copy(&self.p, self.window.mss(), self.board.una(), left);
        self.update_persist_timer(now);
        taken
    }

    /// Adds the bytes that [`next_copy`](Self::next_copy) returned to the send buffer. `ends` is true if the write ends there.
    #[inline]
    pub fn put(&mut self, now: Time, bytes: u64, ends: bool) {
        self.tx.put(&self.p, bytes, ends);
        self.update_persist_timer(now);
    }

    /// Sets whether the application reads all data as it arrives (the default), or calls [`read`](Self::read).
    pub fn read_automatically(&mut self, automatic: bool) {
        self.rx.set_automatic(automatic);
    }

    /// Reads up to `bytes`. Returns how many bytes the application gets.
    pub fn read(&mut self, now: Time, bytes: u64) -> u64 {
        let size = self.received_size();
        let taken = self.rx.read(&self.p, size, bytes);
        self.update_persist_timer(now);
        taken
    }

    /// Frees memory that only data in the network needs, if nothing was sent for longer than the retransmission timeout (RFC 5681 section 4.1). The
    /// behaviour of the connection does not change.
    pub fn release_unused_memory(&mut self, now: Time) {
        if self.board.is_empty() && now.saturating_sub(self.sent_at) > self.timeout() {
            self.board.release_unused_memory();
            self.timers.release_unused_memory();
            self.recovery.release_unused_memory();
        }
    }

    /// Returns how many bytes the application can [`read`](Self::read).
    pub fn readable(&self) -> u64 {
        self.rx.readable()
    }

    /// Closes the sending side: a FIN follows the last byte written.
    pub fn close(&mut self, now: Time, out: &mut Effects) {
        self.tx.closing = true;
        if self.state == State::Listen {
            self.set_closed(out);
        }
        self.update_persist_timer(now);
    }

    /// Aborts the connection: sends a reset, unless it is closed or listening, and closes it.
    pub fn abort(&mut self) {
        let resets = !matches!(self.state, State::Closed | State::Listen);
        self.special.set(SlowPathFlags::RESET_DUE, resets);
        self.timers.stop_all();
        if !resets {
            self.state = State::Closed;
        }
    }

    /// Returns whether the endpoint is quiescent: open, with no data to send and no acknowledgment due. It then sends nothing before its next input
    /// or timer. If false, it may still have nothing to send; [`next_segment`](Self::next_segment) decides that.
    #[inline]
    pub fn is_quiescent(&self) -> bool {
        self.has_nothing_to_send() && !self.rx.acks.is_due()
    }

    /// Like [`is_quiescent`](Self::is_quiescent), but an acknowledgment of all received data may be due.
    #[inline]
    pub(super) fn has_nothing_to_send(&self) -> bool {
        self.board.is_empty()
            && self.state == State::Established
            && self.special.is_empty()
            && self.tx.unsent() == 0
            && !self.tx.closing
            && !self.rx.has_early()
    }

    /// Returns whether [`transmit`](Self::transmit) would return a segment.
    pub fn wants_to_transmit(&self, now: Time) -> bool {
        self.decide(now).is_ok()
    }

    /// Returns whether the peer's receive window has room for a full segment. If so, it does not hold back data that is written later.
    #[inline]
    pub fn has_room_for_segment(&self) -> bool {
        self.tx.usable_window(self.board.una()) >= self.window.mss()
    }

    /// Returns why nothing is sent now.
    #[inline(never)]
    pub fn limited_by(&self, now: Time) -> LimitedBy {
        self.decide(now).err().map_or(LimitedBy::Nothing, |reason| self.refine_reason(reason))
    }

    /// Returns the reason to report why nothing is sent: the retransmission timer instead of `reason`, if only that timer can end the wait. With RACK this is
    /// never known in advance; the ledger then learns of the wait from [`Effects::timed_out`].
    #[inline]
    pub(super) fn refine_reason(&self, reason: LimitedBy) -> LimitedBy {
        let waits = reason != LimitedBy::Pacing && self.awaits_timeout();
        if waits { LimitedBy::RetransmissionTimer } else { reason }
    }

    /// Returns whether duplicates have arrived, but too few segments are outstanding for the number of duplicates that indicates a loss.
    #[inline]
    fn awaits_timeout(&self) -> bool {
        let enough = self.board.len() > self.p.duplicate_threshold as usize;
        self.recovery.duplicates > 0
            && self.recovery.phase != Phase::Fast
            && self.p.recovery != RecoveryKind::RackTlp
            && !enough
    }

    /// Returns the connection's state.
    #[inline]
    pub fn state(&self) -> State {
        self.state
    }

    /// Returns the counters.
    #[inline]
    pub fn stats(&self) -> Stats {
        let rare = self.rare.as_deref();
        Stats {
            bytes_sent: self.tx.bytes_sent() + rare.map_or(0, |rare| rare.bytes_resent),
            bytes_acked: self.tx.bytes_acked(self.board.una()),
            ..Stats::of(&self.counts, &self.rx, rare.map(|rare| rare.stats))
        }
    }

    /// Returns how many segments were sent so far, as in [`stats`](Self::stats).
    #[inline]
    pub fn segments_sent(&self) -> u64 {
        self.counts.segments_sent
    }

    /// Returns the sequence number of the next new data (SND.NXT): a segment that begins before it repeats data.
    #[inline]
    pub fn next_sequence(&self) -> u64 {
        self.tx.next
    }

    /// Returns when each segment was sent first that ends in these sequence numbers (above the start, up to the end), in order. The peer must
    /// not have acknowledged any of them. A segment that was sent again in shorter ones counts once.
    pub fn first_sent(&self, ends: Range<u64>) -> impl Iterator<Item = Time> {
        self.board.first_sent(ends)
    }

    /// Returns the state of the control loops.
    pub fn snapshot(&self) -> Snapshot {
        Snapshot {
            congestion_window: self.window_size(),
            slow_start_threshold: self.window.threshold,
            segment_size: self.window.mss(),
            in_flight: self.in_flight(),
            unacknowledged: self.outstanding(),
            send_window: u64::from(self.tx.window),
            smoothed_rtt: self.rtt.smoothed(),
            minimum_rtt: self.rtt.minimum(),
            timeout: self.timeout(),
        }
    }

    /// Returns the tick of the timestamp clock.
    pub fn timestamp_tick(&self) -> Time {
        self.p.timestamp_tick
    }

    /// Returns the segment size in use, in bytes, options subtracted.
    pub fn segment_size(&self) -> u64 {
        self.window.mss()
    }

    /// Returns the congestion window in bytes: with the inflation of fast recovery, or as a rate reduction sets it.
    #[inline]
    pub(super) fn window_size(&self) -> u64 {
        if let Some(window) = self.recovery.reduced_window() {
            return window;
        }
        self.window.size.saturating_add_signed(self.recovery.inflation()).max(self.window.mss())
    }

    /// Returns how many sequence numbers are sent and not acknowledged.
    #[inline]
    pub(super) fn outstanding(&self) -> u64 {
        self.tx.next - self.board.una()
    }

    /// Returns how many sequence numbers count as in the network.
    #[inline]
    pub(super) fn in_flight(&self) -> u64 {
        self.outstanding() - self.board.absent()
    }

    #[inline]
    pub(super) fn timeout(&self) -> Time {
        self.rtt.timeout(&self.p, self.backoff)
    }

    pub(super) fn set_closed(&mut self, out: &mut Effects) {
        self.state = State::Closed;
        self.timers.stop_all();
        out.closed = true;
    }
}
