//! Path MTU discovery (RFC 1191): a router signals that it has dropped a packet that is too long for its next link.

use super::connection::Connection;
use super::parameters::PathMtu;
use super::rare::SlowPathFlags;
use super::recovery::Phase;
use super::timers::Timer;
use crate::time::Time;

/// The smallest MTU, which every link carries (RFC 791). Linux accepts no less than 552 (`ip_rt_min_pmtu`); below that, it clears DF and lets routers
/// fragment.
const SMALLEST_MTU: u64 = 68;
/// Bytes of the IP and TCP headers without options, and of the timestamps option.
const HEADERS: u64 = 40;
const TIMESTAMPS: u64 = 12;

impl Connection {
    /// Handles the signal that a router has dropped a packet of this connection, which begins at sequence number `seq` and has more than `mtu` bytes.
    /// Returns whether the connection accepts the signal. A [`SegmentBurst`](super::SegmentBurst) from before is then invalid.
    ///
    /// The connection ignores the signal unless it [discovers](PathMtu::Discovered) the path MTU, `seq` is outstanding (RFC 5927 section 4.1), and
    /// its packets are longer than `mtu`. Therefore it ignores signals for a SYN, which has 60 bytes at most, and for a pure acknowledgment.
    ///
    /// Otherwise its segments become shorter, and outstanding segments that are too long are resent as the congestion window allows. The signal does
    /// not indicate congestion: neither the window nor the timer reacts as to a loss (RFC 1191 section 6.4, Linux' `tcp_simple_retransmit`).
    pub fn on_too_big(&mut self, now: Time, seq: u64, mtu: u64) -> bool {
        let options = if self.agreed.timestamps() { TIMESTAMPS } else { 0 };
        let (before, mss) = (self.window.mss(), mtu.max(SMALLEST_MTU) - HEADERS - options);
        let taken = self.p.path_mtu == PathMtu::Discovered
            && self.is_open()
            && !self.special.has(SlowPathFlags::RESET_DUE)
            && (self.board.una()..self.tx.next).contains(&seq)
            && mss < before;
        if taken {
            self.shorten_segments(mss);
            self.update_persist_timer(now);
        }
        taken
    }

    fn shorten_segments(&mut self, mss: u64) {
        let (before, window) = (self.window.mss(), self.window_size());
        let size = self.received_size() as u32;
        let rare = self.rare();
        rare.agreed_size = size;
        rare.stats.path_mtu_signals += 1;
        self.window.shrink_segments(mss);
        self.control.begun_mut().on_shorter_segments(&self.window, before);
        // An undo would restore the old window, and segments that are too long.
        self.rule_out_undo();
        if !self.board.lose_longer_than(mss) {
            return;
        }
        if self.window.counts_segments() && self.recovery.phase == Phase::Open {
            // As in Linux (`tcp_current_ssthresh`).
            let (half, quarter) =
                (self.window.cut(self.window.size / 2), self.window.cut(self.window.size / 4));
            self.window.threshold = self.window.threshold.max(half + quarter);
        }
        // A fast recovery in progress may have allowed less than the congestion window.
        self.window.size = self.window.size.min(self.window.rescale(window, before));
        self.recovery.on_shorter_segments(self.tx.next);
        self.timers.stop(Timer::TailProbe);
        self.special.set(SlowPathFlags::TAIL_PROBE_DUE, false);
        self.special.set(SlowPathFlags::TAIL_PROBING, false);
        self.rare().tail_probe = None;
    }

    /// Rules out an undo of the last recovery or timeout.
    fn rule_out_undo(&mut self) {
        self.rare().saved = None;
        self.recovery.may_be_spurious = false;
    }

    /// Returns the segment size in bytes by which the receiving half acknowledges and opens its window: the negotiated one. The path MTU of the
    /// sending direction does not limit received segments.
    #[inline]
    pub(super) fn received_size(&self) -> u64 {
        if self.window.has_shrunk() { self.agreed_size() } else { self.window.mss() }
    }

    #[cold]
    #[inline(never)]
    fn agreed_size(&self) -> u64 {
        self.rare.as_ref().map_or(self.window.mss(), |rare| rare.agreed_size.into())
    }
}
