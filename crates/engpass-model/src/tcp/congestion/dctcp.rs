//! DCTCP: reduces the window by the share of marked bytes (RFC 8257).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Ack, CongestionConfig, CongestionControl, Signal, Window, reno};
use crate::tcp::parameters::TcpParameters;
use crate::time::Time;

/// Reno that reduces its window by the share of marked bytes instead of by half (RFC 8257). It needs ECN and a queue that marks above a low
/// threshold.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Dctcp {}

impl CongestionConfig for Dctcp {
    fn control(&self, _: &TcpParameters) -> Option<Box<dyn CongestionControl>> {
        Some(Box::new(DctcpState::default()))
    }

    fn wants_exact_marks(&self) -> bool {
        true
    }
}

/// An alpha of 1.
const ONE: u64 = 1 << 20;

/// The state of DCTCP.
#[derive(Clone, Debug)]
pub struct DctcpState {
    /// Grows the window between marks, and reacts to losses.
    reno: reno::RenoState,
    /// DCTCP.Alpha, in 2^-20: the estimated share of marked bytes.
    alpha: u64,
    /// End of the observation window (DCTCP.WindowEnd).
    window_end: u64,
    /// DCTCP.BytesAcked.
    acked: u64,
    /// DCTCP.BytesMarked.
    marked: u64,
}

impl Default for DctcpState {
    fn default() -> Self {
        // RFC 8257 section 4.2: alpha starts at 1.
        Self { reno: reno::RenoState::default(), alpha: ONE, window_end: 0, acked: 0, marked: 0 }
    }
}

impl CongestionControl for DctcpState {
    fn on_ack(&mut self, window: &mut Window, ack: &Ack) {
        // RFC 8257 section 3.3, steps 1 to 6.
        self.acked += ack.acked;
        if ack.marked {
            self.marked += ack.acked;
        }
        if ack.unacknowledged > self.window_end {
            // Step 4: "DCTCP.Alpha = DCTCP.Alpha * (1 - g) + g * M", g = 1/16.
            let share = self.marked * ONE / self.acked.max(1);
            self.alpha = (self.alpha - self.alpha.div_ceil(16) + share / 16).min(ONE);
            (self.window_end, self.acked, self.marked) = (ack.next, 0, 0);
        }
        self.reno.on_ack(window, ack);
    }

    fn on_signal(&mut self, window: &mut Window, signal: Signal, in_flight: u64, now: Time) {
        if signal != Signal::Mark {
            // Section 3.5: the reaction to loss is that of any TCP.
            self.reno.on_signal(window, signal, in_flight, now);
            return;
        }
        // "cwnd = cwnd * (1 - DCTCP.Alpha / 2)".
        let less = (u128::from(window.size) * u128::from(self.alpha) / u128::from(2 * ONE)) as u64;
        // In whole segments, the reduction is rounded down (`dctcp_ssthresh`): less than one segment is none.
        window.size = window.least_two(window.size - window.cut(less));
        window.threshold = window.size;
    }

    fn on_shorter_segments(&mut self, window: &Window, before: u64) {
        self.reno.on_shorter_segments(window, before);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tcp::Profile;

    /// An acknowledgment of `acked` bytes that ends at `upto`, with `next` as the next byte to be sent.
    fn ack(acked: u64, upto: u64, next: u64, marked: bool) -> Ack {
        Ack {
            now: Time::ZERO,
            acked,
            delivered: acked,
            total_delivered: 0,
            in_flight_before: 0,
            in_flight: 0,
            next,
            unacknowledged: upto,
            rtt: None,
            smoothed_rtt: None,
            window_limited: false,
            marked,
            recovering: false,
            lost: 0,
            rate: None,
        }
    }

    fn window() -> Window {
        Window { threshold: 100_000, ..Window::new(&Profile::Linux6.parameters(1040)) }
    }

    #[test]
    fn dctcp_alpha_approaches_the_share_of_marks() {
        let (mut control, mut window) = (DctcpState::default(), window());
        for round in 1..400u64 {
            control.on_ack(&mut window, &ack(1000, round * 1000, round * 1000, round % 4 == 0));
        }
        let share = control.alpha as f64 / ONE as f64;
        assert!((share - 0.25).abs() < 0.06, "{share}");
    }

    /// RFC 8257 section 3.3: alpha is updated once in an observation window, with g = 1/16. By hand, from alpha = 1:
    ///
    /// | M | alpha |
    /// |---|---|
    /// | 0 | 15/16 |
    /// | 1/2 | 15/16 * 15/16 + 1/32 = 233/256 |
    /// | 1 | 233/256 * 15/16 + 1/16 = 3751/4096 |
    #[test]
    fn dctcp_alpha_per_window_matches_hand_calculation() {
        let (mut control, mut window) = (DctcpState::default(), window());
        // The acknowledgments of 1000, 7000 and 11 000 end an observation window: each lies beyond the next byte to be sent when the window began.
        let acks = [
            (ack(1000, 1000, 4000, false), ONE * 15 / 16),
            (ack(1000, 2000, 5000, true), ONE * 15 / 16),
            (ack(2000, 4000, 7000, true), ONE * 15 / 16),
            (ack(3000, 7000, 9000, false), ONE * 233 / 256),
            (ack(2000, 9000, 11_000, true), ONE * 233 / 256),
            (ack(2000, 11_000, 13_000, true), ONE * 3751 / 4096),
        ];
        for (ack, alpha) in acks {
            control.on_ack(&mut window, &ack);
            assert_eq!(control.alpha, alpha, "acknowledged up to {}", ack.unacknowledged);
        }
    }

    /// RFC 8257 section 3.3: "cwnd = cwnd * (1 - DCTCP.Alpha / 2)".
    #[test]
    fn dctcp_mark_reduces_the_window_by_half_of_alpha() {
        let mut window = Window { size: 64_000, ..window() };
        let mut control = DctcpState { alpha: ONE / 4, ..DctcpState::default() };
        control.on_signal(&mut window, Signal::Mark, 64_000, Time::ZERO);
        assert_eq!((window.size, window.threshold), (56_000, 56_000));
    }
}
