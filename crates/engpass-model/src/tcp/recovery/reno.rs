//! Fast retransmit and fast recovery of one segment (RFC 5681 section 3.2).

use super::{AckView, Phase, Recovery, Verdict};
use crate::tcp::parameters::TcpParameters;
use crate::tcp::scoreboard::Scoreboard;

pub(super) fn on_ack(r: &mut Recovery, p: &TcpParameters, board: &mut Scoreboard, view: &AckView) -> Verdict {
    if view.acked > 0 && r.phase == Phase::Fast {
        // Step 6: "When the next ACK arrives that acknowledges previously unacknowledged data, a TCP MUST set cwnd to ssthresh". Further losses need
        // another three duplicates, or the timer.
        return r.exit();
    }
    if !view.duplicate {
        return Verdict::Nothing;
    }
    match r.phase {
        Phase::Fast => {
            // Step 4: "For each additional duplicate ACK received, cwnd MUST be incremented by SMSS."
            r.more().inflation += view.mss as i64;
            Verdict::Nothing
        }
        // Reno keeps no `recover`: duplicates after a timeout may start a spurious fast retransmit.
        Phase::Open | Phase::Loss if r.duplicates == p.duplicate_threshold && view.una > r.shortened_to() => {
            let verdict = r.enter(board, view.next);
            // Step 3: "cwnd set to ssthresh plus 3*SMSS".
            r.more().inflation = i64::from(p.duplicate_threshold) * view.mss as i64;
            verdict
        }
        _ => Verdict::Nothing,
    }
}
