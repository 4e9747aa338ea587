//! NewReno: fast recovery goes on through partial acknowledgments (RFC 6582).

use super::{AckView, Phase, Recovery, Verdict};
use crate::tcp::parameters::TcpParameters;
use crate::tcp::scoreboard::Scoreboard;

pub(super) fn on_ack(r: &mut Recovery, p: &TcpParameters, board: &mut Scoreboard, view: &AckView) -> Verdict {
    let mss = view.mss as i64;
    if view.acked > 0 && r.phase == Phase::Fast {
        if view.una >= r.recover() {
            return r.exit();
        }
        // Section 3.2 step 3, partial acknowledgment: "retransmit the first unacknowledged segment. Deflate the
        // congestion window by the amount of new data acknowledged […] If the partial ACK acknowledges at least one
        // SMSS of new data, then add back SMSS bytes".
        board.mark_lost(0);
        r.force = true;
        let added = if view.acked >= view.mss { mss } else { 0 };
        r.more().inflation += added - view.acked as i64;
        let first = !std::mem::replace(&mut r.more().partial_seen, true);
        return Verdict::Partial { restarts_timer: first };
    }
    if !view.duplicate {
        return Verdict::Nothing;
    }
    match r.phase {
        Phase::Fast => {
            r.more().inflation += mss;
            Verdict::Nothing
        }
        // Step 2: only "if the Cumulative Acknowledgment field covers more than recover".
        Phase::Open if r.duplicates == p.duplicate_threshold && view.una > r.recover() => {
            let verdict = r.enter(board, view.next);
            r.more().inflation = i64::from(p.duplicate_threshold) * mss;
            verdict
        }
        _ => Verdict::Nothing,
    }
}
