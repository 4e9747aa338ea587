//! Reno's additive increase, multiplicative decrease (RFC 5681).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Ack, CongestionConfig, CongestionControl, Signal, Window};
use crate::tcp::parameters::TcpParameters;
use crate::time::Time;

/// Adds one segment in each round trip and halves the window after a loss (RFC 5681).
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Reno {}

impl CongestionConfig for Reno {
    fn control(&self, _: &TcpParameters) -> Option<Box<dyn CongestionControl>> {
        None
    }

    fn is_reno_until_loss(&self) -> bool {
        true
    }
}

/// The state of Reno.
#[derive(Clone, Debug, Default)]
pub struct RenoState {
    /// Bytes acknowledged in congestion avoidance that have not yet earned a segment.
    credit: u64,
}

impl RenoState {
    /// Grows the window for `acked` bytes. `grows` is false during recovery, and while the window does not limit the sender.
    #[inline]
    pub(crate) fn grow(&mut self, window: &mut Window, acked: u64, grows: bool) {
        if !grows || acked == 0 {
            return;
        }
        if window.in_slow_start() {
            window.slow_start(acked);
        } else {
            self.avoid(window, acked);
        }
    }

    /// Congestion avoidance.
    #[inline(always)]
    fn avoid(&mut self, window: &mut Window, acked: u64) {
        if window.counts_acknowledgments() {
            // RFC 5681 (3): "cwnd += SMSS*SMSS/cwnd", at least one byte.
            window.size += (window.mss() * window.mss() / window.size).max(1);
            return;
        }
        // RFC 3465 section 2.1: once cwnd bytes are acknowledged, cwnd grows by a segment.
        self.credit += acked;
        if self.credit >= window.size {
            self.credit -= window.size;
            window.size += window.mss();
        }
    }
}

impl CongestionControl for RenoState {
    fn on_ack(&mut self, window: &mut Window, ack: &Ack) {
        self.grow(window, ack.acked, ack.window_limited && !ack.recovering);
    }

    fn on_signal(&mut self, window: &mut Window, signal: Signal, in_flight: u64, _now: Time) {
        self.credit = 0;
        match signal {
            Signal::Loss | Signal::Mark => {
                window.threshold = window.half_of(in_flight);
                window.size = window.threshold;
            }
            Signal::Timeout { repeated } => {
                // RFC 5681 section 3.1: ssthresh "is held constant" if the timer has sent this segment before.
                if !repeated {
                    window.threshold = window.half_of(in_flight);
                }
                window.size = window.mss();
            }
        }
    }

    fn on_shorter_segments(&mut self, window: &Window, before: u64) {
        self.credit = window.rescale(self.credit, before);
    }
}
