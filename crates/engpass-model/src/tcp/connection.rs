//! One endpoint of a connection: its parts, and how the outside sees them.

use super::congestion::{CongestionControl, Window};
use super::limited::LimitedBy;
use super::parameters::{RecoveryKind, Role, TcpParameters};
use super::receive::Receiver;
use super::recovery::{Phase, Recovery};
use super::rtt::Rtt;
use super::scoreboard::Scoreboard;
use super::segment::Segment;
use super::send::Sender;
use super::stats::{Snapshot, Stats};
use super::tail_probe::TailProbe;
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
    /// Both have sent a FIN, its own is not acknowledged.
    Closing,
    /// Has received a FIN and then sent one.
    LastAck,
    /// Waits until old segments are gone.
    TimeWait,
    /// No connection.
    Closed,
}

/// What an input brought about. Clear it, or let it add up over several inputs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Out {
    /// The handshake is done.
    pub established: bool,
    /// Bytes newly in order: readable, or already read where reading is automatic.
    pub delivered: u64,
    /// Bytes newly acknowledged.
    pub acked: u64,
    /// The other side will send no more.
    pub finished: bool,
    /// The connection is gone, in order or by a reset.
    pub closed: bool,
    /// The other side has reset it.
    pub reset: bool,
    /// The retransmission timer expired, and since that instant nothing had been sent or received: the wait was for the timer.
    pub timer_since: Option<Time>,
}

/// What the handshake has agreed on.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Agreed {
    pub(super) timestamps: bool,
    pub(super) sack: bool,
    pub(super) ecn: bool,
    pub(super) scaling: bool,
}

/// What may have to be undone if a retransmission was spurious.
#[derive(Clone, Copy, Debug)]
pub(super) struct Saved {
    pub(super) window: Window,
    /// Timestamp of the first retransmission, once it is sent.
    pub(super) resent_at: Option<Time>,
}

/// Rate estimate of draft-ietf-ccwg-bbr, section 4.1.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Delivery {
    pub(super) total: u64,
    pub(super) at: Time,
    pub(super) first_sent_at: Time,
    /// Samples up to this delivered count are application limited; 0 when none are.
    pub(super) application_limited_to: u64,
}

/// One endpoint of a TCP connection.
#[derive(Debug)]
pub struct Connection {
    pub(super) p: TcpParameters,
    pub(super) state: State,
    pub(super) agreed: Agreed,
    pub(super) tx: Sender,
    pub(super) rx: Receiver,
    pub(super) board: Scoreboard,
    pub(super) rtt: Rtt,
    pub(super) recovery: Recovery,
    pub(super) window: Window,
    pub(super) control: Box<dyn CongestionControl>,
    pub(super) delivery: Delivery,
    pub(super) timers: Timers,
    /// A SYN must go out.
    pub(super) syn_due: bool,
    /// When the first SYN went out, until another did.
    pub(super) syn_sent: Option<Time>,
    /// The SYN was sent more than once.
    pub(super) syn_resent: bool,
    /// A reset must go out.
    pub(super) reset_due: bool,
    /// A probe of the window must go out.
    pub(super) probe_due: bool,
    /// What is in the network is a byte beyond the window.
    pub(super) probing: bool,
    /// How often the persist timer has expired in a row.
    pub(super) persist_count: u32,
    /// How often the retransmission timer has expired without progress.
    pub(super) expiries: u32,
    /// The one segment that is timed, where not every acknowledgment gives a sample: its end, and when it was sent.
    pub(super) timed: Option<(u64, Time)>,
    /// ECN: CWR goes on the next new segment.
    pub(super) cwr_due: bool,
    /// ECN: no further reduction until everything below is acknowledged.
    pub(super) cwr_until: u64,
    pub(super) saved: Option<Saved>,
    /// A tail loss probe must go out.
    pub(super) tail_probe_due: bool,
    pub(super) tail_probe: Option<TailProbe>,
    /// When something was last sent or received.
    pub(super) active_at: Time,
    /// When data was last sent.
    pub(super) sent_at: Time,
    pub(super) stats: Stats,
}

impl Connection {
    /// An endpoint that opens the connection at its first [`transmit`](Self::transmit), or waits for the other's SYN.
    pub fn new(parameters: &TcpParameters, role: Role) -> Self {
        let p = parameters.clone();
        Self {
            state: if role == Role::Active { State::SynSent } else { State::Listen },
            agreed: Agreed::default(),
            tx: Sender::new(&p),
            rx: Receiver::new(&p),
            board: Scoreboard::default(),
            rtt: Rtt::new(&p),
            recovery: Recovery::default(),
            window: Window {
                size: p.initial_window * p.mss,
                threshold: u64::MAX,
                mss: p.mss,
                byte_counting: p.byte_counting,
            },
            control: p.congestion.control(&p),
            delivery: Delivery::default(),
            timers: Timers::default(),
            syn_due: role == Role::Active,
            syn_sent: None,
            syn_resent: false,
            reset_due: false,
            probe_due: false,
            probing: false,
            persist_count: 0,
            expiries: 0,
            timed: None,
            cwr_due: false,
            cwr_until: 0,
            saved: None,
            tail_probe_due: false,
            tail_probe: None,
            active_at: Time::ZERO,
            sent_at: Time::ZERO,
            stats: Stats::default(),
            p,
        }
    }

    /// A segment arrives.
    pub fn on_segment(&mut self, now: Time, segment: &Segment, out: &mut Out) {
        self.stats.segments_received += 1;
        self.stats.ce_received += u64::from(segment.ce);
        self.receive_segment(now, segment, out);
        self.active_at = now;
        self.rearm(now);
    }

    /// A wake is due. Does nothing when none is.
    pub fn on_timer(&mut self, now: Time, out: &mut Out) {
        if self.rx.acks.on_timer(now) {
            self.stats.delayed_acks += 1;
        }
        if self.timers.expired(Timer::TimeWait, now) {
            self.set_closed(out);
        }
        if self.timers.expired(Timer::Persist, now) {
            self.on_persist();
        }
        if self.timers.expired(Timer::Reordering, now) {
            self.on_reordering_end(now);
        }
        // A probe is never later than the timeout, and goes before it.
        if self.timers.expired(Timer::TailProbe, now) {
            self.on_tail_probe(now);
        }
        if self.timers.expired(Timer::Retransmission, now) {
            self.on_timeout(now, out);
        }
        // The pacing timer only wakes the host: `transmit` is allowed again.
        self.timers.expired(Timer::Pacing, now);
        self.rearm(now);
    }

    /// When [`on_timer`](Self::on_timer) must be called next.
    pub fn next_wake(&self) -> Option<Time> {
        [self.timers.next(), self.rx.acks.deadline()].into_iter().flatten().min()
    }

    /// The application writes `bytes` at once. Returns how many are taken: the rest is the application's to keep and
    /// to write later. [`next_copy`](Self::next_copy) asks first, piece by piece.
    pub fn write(&mut self, now: Time, bytes: u64) -> u64 {
        let taken = self.tx.write(&self.p, bytes);
        self.rearm(now);
        taken
    }

    /// How many bytes of a write of which `left` are to come the socket copies next, at most a segment; 0 while the
    /// application is blocked. Give them with [`put`](Self::put) when they are copied.
    pub fn next_copy(&mut self, left: u64) -> u64 {
        self.tx.next_copy(&self.p, left)
    }

    /// What [`next_copy`](Self::next_copy) said is copied; `ends` when the write ends there.
    pub fn put(&mut self, now: Time, bytes: u64, ends: bool) {
        self.tx.put(&self.p, bytes, ends);
        self.rearm(now);
    }

    /// Whether the application reads everything as it comes (which is how a connection begins), or calls
    /// [`read`](Self::read).
    pub fn read_automatically(&mut self, automatic: bool) {
        self.rx.set_automatic(automatic);
    }

    /// The application reads up to `bytes`. Returns how many.
    pub fn read(&mut self, now: Time, bytes: u64) -> u64 {
        let taken = self.rx.read(&self.p, bytes);
        self.rearm(now);
        taken
    }

    /// Bytes that [`read`](Self::read) would give.
    pub fn readable(&self) -> u64 {
        self.rx.readable()
    }

    /// The application writes no more: a FIN follows the last byte.
    pub fn close(&mut self, now: Time, out: &mut Out) {
        self.tx.closing = true;
        if self.state == State::Listen {
            self.set_closed(out);
        }
        self.rearm(now);
    }

    /// Give the connection up: a reset goes out, then it is gone.
    pub fn abort(&mut self) {
        self.reset_due = !matches!(self.state, State::Closed | State::Listen);
        self.timers.stop_all();
        if !self.reset_due {
            self.state = State::Closed;
        }
    }

    /// Whether [`transmit`](Self::transmit) would give a segment.
    pub fn wants_to_transmit(&self, now: Time) -> bool {
        self.decide(now).is_ok()
    }

    /// Why nothing is sent now.
    pub fn limited_by(&self, now: Time) -> LimitedBy {
        match self.decide(now) {
            Ok(_) => LimitedBy::Nothing,
            Err(LimitedBy::Pacing) => LimitedBy::Pacing,
            Err(_) if self.only_the_timer_goes_on() => LimitedBy::RetransmissionTimer,
            Err(reason) => reason,
        }
    }

    /// Duplicates have come, and what is outstanding is too little for as many as mean a loss.
    fn only_the_timer_goes_on(&self) -> bool {
        let enough = self.board.len() > self.p.duplicate_threshold as usize;
        self.recovery.duplicates > 0
            && self.recovery.phase != Phase::Fast
            && self.p.recovery != RecoveryKind::RackTlp
            && !enough
    }

    /// The connection's state.
    pub fn state(&self) -> State {
        self.state
    }

    /// The counters.
    pub fn stats(&self) -> &Stats {
        &self.stats
    }

    /// The control loops' state.
    pub fn snapshot(&self) -> Snapshot {
        Snapshot {
            congestion_window: self.window_size(),
            slow_start_threshold: self.window.threshold,
            in_flight: self.board.in_flight(),
            unacknowledged: self.board.outstanding(),
            send_window: self.tx.window,
            smoothed_rtt: self.rtt.smoothed(),
            minimum_rtt: self.rtt.minimum(),
            timeout: self.rtt.timeout(&self.p),
        }
    }

    /// The segment size in use, options subtracted.
    pub fn segment_size(&self) -> u64 {
        self.tx.mss
    }

    /// The congestion window with the inflation of fast recovery.
    pub(super) fn window_size(&self) -> u64 {
        self.window.size.saturating_add_signed(self.recovery.inflation).max(self.tx.mss)
    }

    pub(super) fn set_closed(&mut self, out: &mut Out) {
        self.state = State::Closed;
        self.timers.stop_all();
        out.closed = true;
    }
}
