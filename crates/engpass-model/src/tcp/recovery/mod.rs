//! Loss detection and recovery: which segments count as lost, and when a recovery ends.
//!
//! Each recovery algorithm receives every acknowledgment and the scoreboard, marks lost segments and returns a verdict. The connection then notifies
//! the congestion control, sets the timers and updates its counters. During recovery the window is the congestion control's window plus `inflation`,
//! which only the algorithms without SACK use; with RACK, proportional rate reduction sets it.

mod new_reno;
pub(super) mod rack;
mod reno;
mod sack;
mod send_order;

use super::ack_sample::AckSample;
use super::first_needed;
use super::parameters::{RecoveryKind, TcpParameters};
use super::prr::Reduction;
use super::scoreboard::Scoreboard;
use crate::time::Time;
use rack::{Rack, RttClock};

/// The state of loss recovery.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Phase {
    /// No loss is known.
    #[default]
    Open,
    /// Fast recovery.
    Fast,
    /// The retransmission timer has expired, or segments are resent because the path now carries only shorter ones. Linux calls this state Loss.
    Loss,
}

/// Effect of an acknowledgment on the recovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// No change.
    Nothing,
    /// Fast recovery begins: reduce the window.
    Enter,
    /// A partial acknowledgment: recovery goes on.
    Partial {
        /// Whether to restart the retransmission timer.
        restarts_timer: bool,
    },
    /// Recovery is over.
    Exit,
}

/// Properties of one acknowledgment that every recovery algorithm needs.
pub(super) struct AckView {
    /// Oldest unacknowledged sequence number, after this acknowledgment.
    pub(super) una: u64,
    /// Next new sequence number.
    pub(super) next: u64,
    /// Number of sequence numbers (bytes, SYN and FIN) that it newly acknowledges cumulatively.
    pub(super) acked: u64,
    /// It is a duplicate (RFC 5681 section 2).
    pub(super) duplicate: bool,
    /// Segment size.
    pub(super) mss: u64,
}

/// Properties of one acknowledgment that only RACK needs.
pub(super) struct RackView<'a> {
    /// The segments that it reports as delivered.
    pub(super) progress: &'a AckSample,
    /// It reports a duplicate segment (RFC 2883).
    pub(super) reported_duplicate: bool,
    pub(super) clock: RttClock,
}

/// The state of loss recovery, for all algorithms.
#[derive(Clone, Debug, Default)]
#[repr(C)]
pub(super) struct Recovery {
    more: Option<Box<RecoveryCold>>,
    rack: Option<Box<Rack>>,
    /// RACK.rtt when [`release_unused_memory`](Self::release_unused_memory) last dropped RACK's state.
    rack_rtt: Time,
    pub(super) phase: Phase,
    /// One lost segment may be sent even if the congestion window is full.
    pub(super) force: bool,
    /// RFC 6675 NextSeg rule 4 was used in this recovery.
    pub(super) rescued: bool,
    /// The recovery or timeout may prove spurious; the state to restore is saved.
    pub(super) may_be_spurious: bool,
    /// Duplicate acknowledgments in a row.
    pub(super) duplicates: u32,
}

/// State that is allocated at the first sign of a loss: limited transmit, a recovery, a timeout, or a smaller path MTU.
#[derive(Clone, Debug, Default)]
pub(super) struct RecoveryCold {
    /// Recovery ends once everything below this sequence number is acknowledged (RFC 6582 `recover`, RFC 6675 RecoveryPoint).
    pub(super) recover: u64,
    /// Bytes that duplicate and partial acknowledgments add to the window in fast recovery (RFC 5681, RFC 6582).
    pub(super) inflation: i64,
    /// Bytes sent by limited transmit (RFC 3042), which are not part of FlightSize. 32 bits suffice: windows are below 2^30 (RFC 7323 section 2.3).
    limited_transmitted: u32,
    /// A partial acknowledgment has already restarted the timer in this recovery (RFC 6582 section 3.2 step 3: "first partial ACK").
    partial_seen: bool,
    /// Sets the window during fast recovery with RACK.
    pub(super) reduction: Option<Reduction>,
    /// Segments below this sequence number were resent because the path carries only shorter ones. Duplicate acknowledgments up to there do not
    /// indicate a loss.
    shortened_to: u64,
}

impl Recovery {
    #[inline]
    pub(super) fn more(&mut self) -> &mut RecoveryCold {
        self.more.get_or_insert_with(first_needed)
    }

    /// Returns whether nothing hints at a loss. Bytes sent then need no accounting.
    #[inline]
    pub(super) fn has_no_loss_hint(&self) -> bool {
        self.duplicates == 0 && self.phase != Phase::Fast
    }

    /// Accounts for `bytes` of new data that are sent.
    #[inline]
    pub(super) fn sent(&mut self, bytes: u64) {
        if !self.has_no_loss_hint() {
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

    /// See [`RecoveryCold::recover`].
    pub(super) fn recover(&self) -> u64 {
        self.more.as_ref().map_or(0, |more| more.recover)
    }

    /// See [`RecoveryCold::inflation`].
    #[inline]
    pub(super) fn inflation(&self) -> i64 {
        if self.phase != Phase::Fast {
            debug_assert!(
                self.more.as_ref().is_none_or(|more| more.inflation == 0),
                "window inflation is zero outside fast recovery"
            );
            return 0;
        }
        self.more.as_ref().map_or(0, |more| more.inflation)
    }

    /// Returns the rate reduction of the current fast recovery, if it has one.
    #[inline]
    pub(super) fn reduction(&mut self) -> Option<&mut Reduction> {
        if self.phase != Phase::Fast {
            return None;
        }
        self.more.as_mut().and_then(|more| more.reduction.as_mut())
    }

    /// Returns the window that this rate reduction allows.
    pub(super) fn reduced_window(&self) -> Option<u64> {
        if self.phase != Phase::Fast {
            return None;
        }
        self.more.as_ref().and_then(|more| more.reduction).and_then(|reduction| reduction.window())
    }

    /// See [`RecoveryCold::limited_transmitted`].
    pub(super) fn limited_transmitted(&self) -> u64 {
        self.more.as_ref().map_or(0, |more| more.limited_transmitted.into())
    }

    /// Returns RACK's state, if it exists.
    #[inline]
    pub(super) fn rack(&self) -> Option<&Rack> {
        self.rack.as_deref()
    }

    /// Returns RACK's state, and creates it from `board` if it does not exist.
    pub(super) fn rack_mut(&mut self, board: &Scoreboard) -> &mut Rack {
        let rtt = self.rack_rtt;
        self.rack.get_or_insert_with(|| Box::new(Rack::new(rtt, board)))
    }

    /// Records that the segment that ends at `end` was retransmitted.
    pub(super) fn on_retransmit(&mut self, now: Time, end: u64) {
        if let Some(rack) = &mut self.rack {
            rack.on_retransmit(now, end);
        }
    }

    /// Records that a segment has filled a hole after its spurious retransmission: packets were reordered (Linux: `tcp_try_undo_partial`).
    pub(super) fn note_reordering(&mut self) {
        if let Some(rack) = &mut self.rack {
            rack.note_reordering();
        }
    }

    /// Drops RACK's state except the round trip, if it affects nothing later. Call it only when everything is acknowledged.
    pub(super) fn release_unused_memory(&mut self) {
        if self.phase == Phase::Open
            && let Some(rack) = self.rack.take_if(|rack| rack.can_rest())
        {
            self.rack_rtt = rack.rtt();
        }
    }

    /// Resets the count of duplicates, because new data is acknowledged.
    #[inline]
    pub(super) fn reset_duplicates(&mut self) {
        // Without duplicates, limited transmit has sent nothing.
        if self.duplicates > 0 {
            self.duplicates = 0;
            if let Some(more) = &mut self.more {
                more.limited_transmitted = 0;
            }
        }
    }

    /// Processes an acknowledgment: updates the recovery state, marks lost segments and returns the verdict.
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

    /// Like `on_ack`, for [`RecoveryKind::Sack`] with SACK negotiated.
    #[inline(always)]
    pub(super) fn on_sacked(&mut self, p: &TcpParameters, board: &mut Scoreboard, view: &AckView) -> Verdict {
        if self.ends_timeout(view) { Verdict::Exit } else { sack::on_ack(self, p, board, view) }
    }

    /// Counts duplicates. Returns whether the recovery from a timeout ends: everything outstanding at the timeout is acknowledged.
    #[inline(always)]
    fn ends_timeout(&mut self, view: &AckView) -> bool {
        if view.acked > 0 {
            self.reset_duplicates();
        }
        self.duplicates += u32::from(view.duplicate);
        let ends = self.phase == Phase::Loss && view.una >= self.recover();
        if ends {
            self.phase = Phase::Open;
        }
        ends
    }

    /// Marks the oldest segment lost and enters fast recovery.
    fn enter(&mut self, board: &mut Scoreboard, next: u64) -> Verdict {
        board.mark_lost(0);
        self.enter_at(next)
    }

    /// Enters fast recovery. The caller has marked the lost segments.
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

    /// Ends a recovery that proved spurious.
    pub(super) fn undo(&mut self, board: &Scoreboard) {
        self.phase = Phase::Open;
        self.more().inflation = 0;
        self.force = false;
        if let Some(rack) = &mut self.rack {
            rack.rebuild_send_order(board);
        }
    }

    /// Handles an expired retransmission timer: starts the recovery from it and marks segments lost.
    pub(super) fn on_timeout(
        &mut self,
        p: &TcpParameters,
        with_sack: bool,
        board: &mut Scoreboard,
        next: u64,
        clock: &RttClock,
    ) {
        let phase_before = self.phase;
        self.phase = Phase::Loss;
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

    /// Handles a smaller path MTU: segments below `next` were too long and are marked lost. They are resent as after a timeout, and any other
    /// recovery ends.
    pub(super) fn on_shorter_segments(&mut self, next: u64) {
        self.phase = Phase::Loss;
        self.duplicates = 0;
        self.rescued = false;
        let more = self.more();
        (more.recover, more.shortened_to) = (next, next);
        (more.inflation, more.limited_transmitted, more.reduction) = (0, 0, None);
    }

    /// See [`RecoveryCold::shortened_to`].
    fn shortened_to(&self) -> u64 {
        self.more.as_ref().map_or(0, |more| more.shortened_to)
    }

    /// Detects losses by time (RFC 8985 section 6.2 step 5), which may start fast recovery. Called when RACK's reordering window ends, and for an
    /// acknowledgment on the fast path that may show a loss.
    pub(super) fn detect_losses_by_time(
        &mut self,
        p: &TcpParameters,
        board: &mut Scoreboard,
        next: u64,
        clock: &RttClock,
    ) -> Verdict {
        let phase = self.phase;
        let found = self.rack_mut(board).detect_losses(p, phase, board, clock);
        if found && self.phase == Phase::Open { self.enter_at(next) } else { Verdict::Nothing }
    }
}
