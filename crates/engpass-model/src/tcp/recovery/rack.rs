//! RACK: a segment is lost if another one that was sent sufficiently later has been delivered (RFC 8985 section 6).

use super::send_order::SendOrder;
use super::{AckView, Phase, RackView, Recovery, Verdict};
use crate::tcp::ack_sample::{AckedRun, NewestDelivered};
use crate::tcp::parameters::TcpParameters;
use crate::tcp::scoreboard::Scoreboard;
use crate::tcp::timers::TIMER_SLACK;
use crate::time::Time;

/// RACK's state (RFC 8985 section 5.2).
#[derive(Clone, Debug, Default)]
pub(in crate::tcp) struct Rack {
    /// Send time and end of the most recently sent segment that has been delivered (RACK.xmit_ts, RACK.end_seq). An end of 0 means none.
    newest: (Time, u64),
    /// RACK.rtt, usually the round trip of that segment; see `note`.
    rtt: Time,
    /// Highest sequence number that has been delivered (RACK.fack).
    pub(in crate::tcp) highest: u64,
    /// RACK.reordering_seen.
    reordering_seen: bool,
    /// RACK.reo_wnd_persist.
    persist: u8,
    /// RACK.reo_wnd_mult, less 1.
    extra_quarters: u32,
    /// RACK.dsack_round; 0 if none, because no round ends at sequence number 0.
    duplicate_round: u64,
    /// When the last of the suspects becomes lost; zero if there are none.
    deadline: Time,
    order: SendOrder,
}

/// RFC 8985 section 6.2 step 4: an enlarged reordering window persists for 16 loss recoveries.
const PERSIST: u8 = 16;

impl Rack {
    /// Starts with a known round trip `rtt` and with the segments in `board`.
    pub(super) fn new(rtt: Time, board: &Scoreboard) -> Self {
        Self { rtt, order: SendOrder::of(board), ..Self::default() }
    }

    /// Examines all segments again, because lost ones count as in the network again.
    pub(super) fn rebuild_send_order(&mut self, board: &Scoreboard) {
        self.order = SendOrder::of(board);
    }

    /// Records that the segment that ends at `end` was retransmitted at `at`.
    pub(super) fn on_retransmit(&mut self, at: Time, end: u64) {
        self.order.on_retransmit(at, end);
    }

    pub(super) fn note_reordering(&mut self) {
        self.reordering_seen = true;
    }

    pub(super) fn rtt(&self) -> Time {
        self.rtt
    }

    /// Returns whether the state, except the round trip, can be dropped while nothing is in the network. Later segments follow every recorded one, in
    /// send time and in sequence number.
    pub(super) fn can_rest(&self) -> bool {
        !self.reordering_seen && self.persist == 0 && self.extra_quarters == 0 && self.deadline == Time::ZERO
    }

    /// Steps 2 and 3: records the segments that were delivered.
    ///
    /// RFC 8985 takes segments in the order of transmission, so that RACK.rtt is the round trip of the most recently sent one. Linux'
    /// `tcp_rack_advance` instead keeps the round trip of the segment that it processes last. If an acknowledgment covers a probe and also an older
    /// segment that waited long for it, RACK.rtt is therefore the long round trip of the older segment, and segments sent after it are not late yet.
    fn note(&mut self, seen: &RackView) {
        if let Some(NewestDelivered { at, end, .. }) = seen.progress.newest
            && (at, end) > self.newest
        {
            self.newest = (at, end);
        }
        if let Some(at) = seen.progress.last_at {
            self.rtt = seen.clock.now.saturating_sub(at);
        }
        self.highest = self.highest.max(seen.progress.highest);
        self.reordering_seen |= seen.progress.reordered;
    }

    /// Does steps 2 to 4 for an acknowledgment of segments in order. Returns true if [`detect_losses`](Self::detect_losses) may find a loss.
    pub(in crate::tcp) fn note_run(&mut self, run: &AckedRun, now: Time, board: &Scoreboard) -> bool {
        let last = (run.last_at, run.last_end);
        self.newest = self.newest.max(last);
        self.rtt = now.saturating_sub(run.last_at);
        self.reordering_seen |= run.first_end < self.highest;
        self.highest = self.highest.max(run.last_end);
        if run.una >= self.duplicate_round {
            self.duplicate_round = 0;
        }
        self.set_no_deadline();
        let (at, end) = self.newest;
        !board.begins_after(at, end)
    }

    /// Step 4: enlarges the reordering window if the peer reports a duplicate segment.
    fn adapt(&mut self, view: &AckView, seen: &RackView) {
        if view.una >= self.duplicate_round {
            self.duplicate_round = 0;
        }
        if self.duplicate_round == 0 && seen.reported_duplicate {
            self.duplicate_round = view.next;
            self.extra_quarters += 1;
            self.persist = PERSIST;
        }
    }

    /// Returns when [`detect_losses`](Self::detect_losses) must run again, if any suspect is not lost yet.
    pub(in crate::tcp) fn deadline(&self) -> Option<Time> {
        (self.deadline > Time::ZERO).then_some(self.deadline)
    }

    pub(super) fn set_no_deadline(&mut self) {
        self.deadline = Time::ZERO;
    }

    /// Counts down the recoveries for which the reordering window stays enlarged.
    pub(super) fn on_exit(&mut self) {
        self.persist = self.persist.saturating_sub(1);
        if self.persist == 0 {
            self.extra_quarters = 0;
        }
    }

    /// Step 4: returns the reordering window.
    fn reordering_window(
        &self,
        p: &TcpParameters,
        phase: Phase,
        board: &Scoreboard,
        clock: &RttClock,
    ) -> Time {
        let many_sacked = board.sacked_segments() >= p.duplicate_threshold as usize;
        if !self.reordering_seen && (phase != Phase::Open || many_sacked) {
            return Time::ZERO;
        }
        let quarters = (1 + u64::from(self.extra_quarters)).saturating_mul(clock.minimum_rtt.ps() / 4);
        Time(quarters.min(clock.smoothed_rtt.ps()))
    }

    /// Step 5: marks lost segments. Returns whether it found any.
    pub(super) fn detect_losses(
        &mut self,
        p: &TcpParameters,
        phase: Phase,
        board: &mut Scoreboard,
        clock: &RttClock,
    ) -> bool {
        self.set_no_deadline();
        if self.newest.1 == 0 {
            return false;
        }
        let late = self.rtt + self.reordering_window(p, phase, board, clock);
        let (mut found, mut deadline) = (false, Time::ZERO);
        self.order.pass(self.newest, board);
        self.order.retain(board, |board, index, at| {
            let waits = at + late > clock.now;
            if waits {
                deadline = deadline.max(at + late + TIMER_SLACK);
            } else {
                board.mark_lost(index);
                found = true;
            }
            waits
        });
        self.deadline = deadline;
        found
    }

    /// Section 6.3: after a retransmission timeout, marks the first segment lost, and every segment that is late by RACK's measure.
    pub(super) fn on_timeout(
        &self,
        p: &TcpParameters,
        phase: Phase,
        board: &mut Scoreboard,
        clock: &RttClock,
    ) {
        let window = self.reordering_window(p, phase, board, clock);
        for index in 0..board.len() {
            if index == 0 || board.get(index).at + self.rtt + window <= clock.now {
                board.mark_lost(index);
            }
        }
    }
}

/// The present time and the round-trip estimates.
#[derive(Clone, Copy, Debug)]
pub(in crate::tcp) struct RttClock {
    pub(in crate::tcp) now: Time,
    pub(in crate::tcp) minimum_rtt: Time,
    pub(in crate::tcp) smoothed_rtt: Time,
}

pub(super) fn on_ack(
    r: &mut Recovery,
    p: &TcpParameters,
    board: &mut Scoreboard,
    view: &AckView,
    seen: &RackView,
) -> Verdict {
    let phase = r.phase;
    if r.rack.is_none() && seen.progress.newest.is_none() && !seen.reported_duplicate {
        // An endpoint that sends no data needs no state.
        return Verdict::Nothing;
    }
    let ends = phase == Phase::Fast && view.una >= r.recover();
    let rack = r.rack_mut(board);
    rack.note(seen);
    rack.adapt(view, seen);
    if ends {
        rack.on_exit();
        return r.exit();
    }
    let found = rack.detect_losses(p, phase, board, &seen.clock);
    if found && r.phase == Phase::Open {
        return r.enter_at(view.next);
    }
    if r.phase == Phase::Fast && view.acked > 0 {
        Verdict::Partial { restarts_timer: true }
    } else {
        Verdict::Nothing
    }
}
