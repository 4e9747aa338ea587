//! Loss detection and recovery: which segments are held to be lost, and when that is over.
//!
//! A kind of recovery sees each acknowledgment and the scoreboard, marks what is lost and returns a verdict; the
//! connection then tells the congestion control, moves the timers and counts. The window during recovery is the
//! congestion control's window plus `inflation`, which only the kinds without SACK use.

mod new_reno;
pub(super) mod rack;
mod reno;
mod sack;
mod watch;

use super::first_needed;
use super::parameters::{RecoveryKind, TcpParameters};
use super::progress::Progress;
use super::reduction::Reduction;
use super::scoreboard::Scoreboard;
use crate::time::Time;
use rack::{Clock, Rack};

/// Where the connection stands between losses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Phase {
    /// Nothing is known to be lost.
    #[default]
    Open,
    /// Fast recovery.
    Fast,
    /// The retransmission timer has expired, or segments go out again because the path carries shorter ones only: Linux' state Loss.
    Timeout,
}

/// What an acknowledgment means for recovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Nothing.
    Nothing,
    /// Fast recovery begins: reduce the window.
    Enter,
    /// Recovery goes on after a partial acknowledgment; the argument is whether the timer starts again.
    Partial(bool),
    /// Recovery is over.
    Exit,
}

/// What a kind of recovery sees beside the scoreboard.
pub(super) struct AckView {
    /// Oldest unacknowledged sequence number, after this acknowledgment.
    pub(super) una: u64,
    /// Next new sequence number.
    pub(super) next: u64,
    /// Sequence numbers that it acknowledges.
    pub(super) acked: u64,
    /// It is a duplicate (RFC 5681 section 2).
    pub(super) duplicate: bool,
    /// Segment size.
    pub(super) mss: u64,
}

/// What RACK sees of it.
pub(super) struct RackView<'a> {
    /// What it told.
    pub(super) progress: &'a Progress,
    /// It reports a duplicate (RFC 2883).
    pub(super) reported_duplicate: bool,
    pub(super) clock: Clock,
}

/// The state that all kinds share.
#[derive(Clone, Debug, Default)]
#[repr(C)]
pub(super) struct Recovery {
    more: Option<Box<More>>,
    rack: Option<Box<Rack>>,
    /// The round trip that RACK knew when it last rested.
    rack_rtt: Time,
    pub(super) phase: Phase,
    /// One lost segment goes out whatever the window says.
    pub(super) force: bool,
    /// RFC 6675 NextSeg rule 4 was used in this recovery.
    pub(super) rescued: bool,
    /// It may have been unnecessary: what must be undone then is saved.
    pub(super) doubted: bool,
    /// Duplicate acknowledgments in a row.
    pub(super) duplicates: u32,
}

/// What is kept once something was lost.
#[derive(Clone, Debug, Default)]
pub(super) struct More {
    /// Recovery ends when everything below is acknowledged (RFC 6582 `recover`, RFC 6675 RecoveryPoint).
    pub(super) recover: u64,
    /// What duplicate and partial acknowledgments add to the window in fast recovery (RFC 5681, RFC 6582).
    pub(super) inflation: i64,
    /// Bytes that duplicate acknowledgments have let out (RFC 3042): no part of FlightSize. Windows are below 2^30 (RFC 7323 section 2.3).
    limited_transmitted: u32,
    /// The timer was already started again in this recovery (RFC 6582 section 3.2 step 3: "first partial ACK").
    partial_seen: bool,
    /// What the window is while fast recovery with RACK goes on.
    pub(super) reduction: Option<Reduction>,
    /// Up to this sequence number, segments went out again because the path carries shorter ones only: duplicates are no sign of a loss.
    shortened_to: u64,
}

impl Recovery {
    #[inline]
    pub(super) fn more(&mut self) -> &mut More {
        self.more.get_or_insert_with(first_needed)
    }

    /// Whether nothing hints at a loss: what goes out is counted nowhere.
    #[inline]
    pub(super) fn is_calm(&self) -> bool {
        self.duplicates == 0 && self.phase != Phase::Fast
    }

    /// New data goes out.
    #[inline]
    pub(super) fn sent(&mut self, bytes: u64) {
        if !self.is_calm() {
            self.count_sent(bytes);
        }
    }

    #[inline(never)]
    fn count_sent(&mut self, bytes: u64) {
        if self.phase == Phase::Open {
            self.more().limited_transmitted += bytes as u32;
        }
        if let Some(reduction) = self.reduction() {
            reduction.sent(bytes);
        }
    }

    /// See [`More::recover`].
    pub(super) fn recover(&self) -> u64 {
        self.more.as_ref().map_or(0, |more| more.recover)
    }

    /// See [`More::inflation`].
    #[inline]
    pub(super) fn inflation(&self) -> i64 {
        if self.phase != Phase::Fast {
            debug_assert!(self.more.as_ref().is_none_or(|more| more.inflation == 0), "recovery is over");
            return 0;
        }
        self.more.as_ref().map_or(0, |more| more.inflation)
    }

    /// The reduction that goes on.
    #[inline]
    pub(super) fn reduction(&mut self) -> Option<&mut Reduction> {
        if self.phase != Phase::Fast {
            return None;
        }
        self.more.as_mut().and_then(|more| more.reduction.as_mut())
    }

    /// The window that it gives.
    pub(super) fn reduced_window(&self) -> Option<u64> {
        if self.phase != Phase::Fast {
            return None;
        }
        self.more.as_ref().and_then(|more| more.reduction).and_then(|reduction| reduction.window())
    }

    /// See [`More::limited_transmitted`].
    pub(super) fn limited_transmitted(&self) -> u64 {
        self.more.as_ref().map_or(0, |more| more.limited_transmitted.into())
    }

    /// RACK, where it watches.
    #[inline]
    pub(super) fn rack(&self) -> Option<&Rack> {
        self.rack.as_deref()
    }

    /// The same, which begins to watch.
    pub(super) fn rack_mut(&mut self, board: &Scoreboard) -> &mut Rack {
        let rtt = self.rack_rtt;
        self.rack.get_or_insert_with(|| Box::new(Rack::new(rtt, board)))
    }

    /// What ends at `end` was sent again.
    pub(super) fn sent_again(&mut self, now: Time, end: u64) {
        if let Some(rack) = &mut self.rack {
            rack.sent_again(now, end);
        }
    }

    /// All is acknowledged: RACK looks back no further, but for the round trip.
    pub(super) fn rest(&mut self) {
        if self.phase == Phase::Open
            && let Some(rack) = self.rack.take_if(|rack| rack.can_rest())
        {
            self.rack_rtt = rack.rtt();
        }
    }

    /// New data is acknowledged: duplicates count from 0.
    #[inline]
    pub(super) fn advance(&mut self) {
        // Without duplicates they have let nothing out.
        if self.duplicates > 0 {
            self.duplicates = 0;
            if let Some(more) = &mut self.more {
                more.limited_transmitted = 0;
            }
        }
    }

    /// Judge an acknowledgment.
    pub(super) fn on_ack(
        &mut self,
        p: &TcpParameters,
        with_sack: bool,
        board: &mut Scoreboard,
        view: &AckView,
        seen: &RackView,
    ) -> Verdict {
        if self.ends_timeout(view) {
            self.rack.iter_mut().for_each(|rack| rack.on_exit());
            return Verdict::Exit;
        }
        match p.recovery {
            RecoveryKind::Plain => Verdict::Nothing,
            RecoveryKind::Reno => reno::on_ack(self, p, board, view),
            RecoveryKind::Sack if with_sack => sack::on_ack(self, p, board, view),
            RecoveryKind::RackTlp if with_sack => rack::on_ack(self, p, board, view, seen),
            RecoveryKind::NewReno | RecoveryKind::Sack | RecoveryKind::RackTlp => {
                new_reno::on_ack(self, p, board, view)
            }
        }
    }

    /// The same where it is [`RecoveryKind::Sack`], with SACK.
    #[inline(always)]
    pub(super) fn on_sacked(&mut self, p: &TcpParameters, board: &mut Scoreboard, view: &AckView) -> Verdict {
        if self.ends_timeout(view) { Verdict::Exit } else { sack::on_ack(self, p, board, view) }
    }

    /// Count duplicates. Whether all is acknowledged that was in the network when the retransmission timer expired.
    #[inline(always)]
    fn ends_timeout(&mut self, view: &AckView) -> bool {
        if view.acked > 0 {
            self.advance();
        }
        self.duplicates += u32::from(view.duplicate);
        let ends = self.phase == Phase::Timeout && view.una >= self.recover();
        if ends {
            self.phase = Phase::Open;
        }
        ends
    }

    /// Fast recovery begins with the oldest segment.
    fn enter(&mut self, board: &mut Scoreboard, next: u64) -> Verdict {
        board.mark_lost(0);
        self.enter_at(next)
    }

    /// Fast recovery begins; what is lost is marked.
    fn enter_at(&mut self, next: u64) -> Verdict {
        self.phase = Phase::Fast;
        let more = self.more();
        (more.recover, more.reduction, more.partial_seen) = (next, None, false);
        self.rescued = false;
        self.force = true;
        Verdict::Enter
    }

    fn exit(&mut self) -> Verdict {
        self.phase = Phase::Open;
        self.more().inflation = 0;
        self.force = false;
        Verdict::Exit
    }

    /// The recovery was unnecessary: nothing is lost.
    pub(super) fn undo(&mut self, board: &Scoreboard) {
        self.phase = Phase::Open;
        self.more().inflation = 0;
        self.force = false;
        if let Some(rack) = &mut self.rack {
            rack.look_again(board);
        }
    }

    /// The retransmission timer has expired.
    pub(super) fn on_timeout(
        &mut self,
        p: &TcpParameters,
        with_sack: bool,
        board: &mut Scoreboard,
        next: u64,
        clock: &Clock,
    ) {
        let phase_before = self.phase;
        self.phase = Phase::Timeout;
        self.duplicates = 0;
        self.force = true;
        self.rescued = false;
        let more = self.more();
        (more.recover, more.inflation, more.limited_transmitted) = (next, 0, 0);
        self.rack.iter_mut().for_each(|rack| rack.set_no_deadline());
        if with_sack && p.recovery == RecoveryKind::RackTlp && !board.reneged() {
            self.rack_mut(board).on_timeout(p, phase_before, board, clock);
        } else {
            board.mark_all_lost();
        }
    }

    /// Segments below `next` were too long for the path and are marked lost. They go out again as after a timeout, whatever recovery went on.
    pub(super) fn on_shorter_segments(&mut self, next: u64) {
        self.phase = Phase::Timeout;
        self.duplicates = 0;
        self.rescued = false;
        let more = self.more();
        (more.recover, more.shortened_to) = (next, next);
        (more.inflation, more.limited_transmitted, more.reduction) = (0, 0, None);
    }

    /// See [`More::shortened_to`].
    fn shortened_to(&self) -> u64 {
        self.more.as_ref().map_or(0, |more| more.shortened_to)
    }

    /// RACK's reordering window has ended (RFC 8985 section 6.2 step 5).
    pub(super) fn on_reordering_end(
        &mut self,
        p: &TcpParameters,
        board: &mut Scoreboard,
        next: u64,
        clock: &Clock,
    ) -> Verdict {
        let phase = self.phase;
        let found = self.rack_mut(board).detect(p, phase, board, clock);
        if found && self.phase == Phase::Open { self.enter_at(next) } else { Verdict::Nothing }
    }
}
