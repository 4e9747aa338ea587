//! Recovery with selective acknowledgments (RFC 6675).

use super::{AckView, Phase, Recovery, Verdict};
use crate::tcp::parameters::TcpParameters;
use crate::tcp::scoreboard::Scoreboard;

#[inline(always)]
pub(super) fn on_ack(r: &mut Recovery, p: &TcpParameters, board: &mut Scoreboard, view: &AckView) -> Verdict {
    if r.phase == Phase::Fast && view.una >= r.recover() {
        return r.exit();
    }
    let found = board.detect_losses(p.duplicate_threshold, view.mss);
    if r.phase == Phase::Open && !board.is_empty() {
        // Section 5 (1) "if DupAcks >= DupThresh go to step (4)", (2) "if […] IsLost (HighACK + 1) returns true".
        let by_count = view.duplicate && r.duplicates >= p.duplicate_threshold && board.has_sacked();
        if by_count || found {
            return r.enter(board, view.next);
        }
    }
    if r.phase == Phase::Fast && view.acked > 0 {
        Verdict::Partial { restarts_timer: true }
    } else {
        Verdict::Nothing
    }
}
