//! Congestion control: how much data may be in the network.
//!
//! The connection detects losses and marks; an algorithm decides how they change the window. Windows are bytes, and no value is a float.

pub mod bbr;
pub mod cubic;
pub mod dctcp;
pub mod reno;

pub use bbr::Bbr;
pub use cubic::Cubic;
pub use dctcp::Dctcp;
pub use reno::Reno;

use super::parameters::TcpParameters;
use crate::component_family::family;
use crate::time::Time;

family! {
    /// A congestion control, by its kind.
    Congestion, "congestion control": CongestionConfig {
        "reno" => Reno(Reno),
        "cubic" => Cubic(Cubic),
        "dctcp" => Dctcp(Dctcp),
        "bbr" => Bbr(Bbr),
    }
}

/// The congestion window of a connection, with its units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// Congestion window in bytes.
    pub size: u64,
    /// Slow start threshold in bytes.
    pub threshold: u64,
    mss: u32,
    byte_counting: u16,
    /// Whether congestion control counts whole segments.
    whole: bool,
    /// Whether the segment size has fallen since the connection opened.
    shrunk: bool,
}

impl Window {
    /// Creates the window of a new connection with these parameters.
    pub fn new(p: &TcpParameters) -> Self {
        let mut window = Self {
            size: p.initial_window * p.mss,
            threshold: u64::MAX,
            mss: 0,
            // No acknowledgment covers 65 535 segments.
            byte_counting: u16::try_from(p.byte_counting).unwrap_or(u16::MAX),
            whole: p.whole_segments,
            shrunk: false,
        };
        window.set_mss(p.mss);
        window
    }

    /// Sets the segment size, in bytes.
    pub(super) fn set_mss(&mut self, mss: u64) {
        self.mss = u32::try_from(mss).expect("a segment is at most 64 KiB long");
    }

    /// Sets a smaller segment size, in bytes. A stack that counts segments keeps their number, so that its window and threshold shrink in bytes.
    pub(super) fn shrink_segments(&mut self, mss: u64) {
        let before = self.mss();
        self.set_mss(mss);
        self.shrunk = true;
        self.size = self.rescale(self.size, before);
        if self.threshold < u64::MAX {
            self.threshold = self.rescale(self.threshold, before);
        }
    }

    /// Converts `bytes` that were counted in segments of `before` bytes. A stack that counts segments keeps their number, any other keeps the number
    /// of bytes.
    pub fn rescale(&self, bytes: u64, before: u64) -> u64 {
        let rescaled = u128::from(bytes) * u128::from(self.mss) / u128::from(before);
        if self.whole { u64::try_from(rescaled).unwrap_or(u64::MAX) } else { bytes }
    }

    /// Returns whether the segment size has fallen since the connection opened.
    #[inline]
    pub(super) fn has_shrunk(&self) -> bool {
        self.shrunk
    }

    /// Returns the segment size in bytes (SMSS).
    #[inline]
    pub fn mss(&self) -> u64 {
        u64::from(self.mss)
    }

    /// Returns whether acknowledgments are counted instead of bytes.
    #[inline]
    pub fn counts_acknowledgments(&self) -> bool {
        self.byte_counting == 0
    }

    /// Returns whether congestion control counts whole segments.
    #[inline]
    pub fn counts_segments(&self) -> bool {
        self.whole
    }

    /// Returns whether the window is in slow start (RFC 5681 section 3.1: "cwnd < ssthresh").
    #[inline]
    pub fn in_slow_start(&self) -> bool {
        self.size < self.threshold
    }

    /// Grows the window by slow start. Returns the acknowledged bytes that are left once the threshold is reached.
    ///
    /// RFC 5681 (2): "cwnd += min (N, SMSS)", with RFC 3465's limit in the place of SMSS.
    #[inline]
    pub fn slow_start(&mut self, acked: u64) -> u64 {
        let step = match self.byte_counting {
            0 => self.mss(),
            limit => acked.min(u64::from(limit) * self.mss()),
        };
        let room = self.threshold - self.size;
        self.size += step.min(room);
        step.saturating_sub(room)
    }

    /// Returns half of the bytes in flight as a threshold. RFC 5681 (4): "ssthresh = max (FlightSize / 2, 2*SMSS)".
    pub fn half_of(&self, in_flight: u64) -> u64 {
        self.least_two(in_flight / 2)
    }

    /// Returns `bytes` as a threshold: at least two segments.
    pub fn least_two(&self, bytes: u64) -> u64 {
        self.cut(bytes).max(2 * self.mss())
    }

    /// Returns `bytes` as the stack counts them: rounded down to whole segments, or unchanged.
    pub fn cut(&self, bytes: u64) -> u64 {
        if self.whole { bytes / self.mss() * self.mss() } else { bytes }
    }
}

/// A sample of the delivery rate (draft-ietf-ccwg-bbr, section 4.1).
#[derive(Clone, Copy, Debug)]
pub struct RateSample {
    /// Bytes delivered in the interval.
    pub delivered: u64,
    /// Length of the interval.
    pub interval: Time,
    /// Bytes delivered in total when the newest delivered segment was sent.
    pub prior_delivered: u64,
    /// Whether the application limited the rate.
    pub application_limited: bool,
}

/// An acknowledgment of new data, as congestion control sees it.
#[derive(Clone, Copy, Debug)]
pub struct Ack {
    /// When it arrived.
    pub now: Time,
    /// Bytes that it acknowledges cumulatively.
    pub acked: u64,
    /// Bytes that it reports for the first time, in order or not.
    pub delivered: u64,
    /// Bytes delivered since the connection began, including these.
    pub total_delivered: u64,
    /// Bytes in flight before it.
    pub in_flight_before: u64,
    /// Bytes in flight after it.
    pub in_flight: u64,
    /// Next new sequence number.
    pub next: u64,
    /// Oldest unacknowledged sequence number.
    pub unacknowledged: u64,
    /// Round trip of the newest segment that it reports, unless that was retransmitted.
    pub rtt: Option<Time>,
    /// Smoothed round trip.
    pub smoothed_rtt: Option<Time>,
    /// Whether the congestion window limits the sender.
    pub window_limited: bool,
    /// The peer echoes a mark (ECE).
    pub marked: bool,
    /// Whether a fast recovery is in progress.
    pub recovering: bool,
    /// Bytes newly marked lost.
    pub lost: u64,
    /// Sample of the delivery rate.
    pub rate: Option<RateSample>,
}

/// The reason for a reduction of the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// A segment is lost and recovery begins.
    Loss,
    /// The retransmission timer expired.
    Timeout {
        /// Whether it had expired before, without progress since.
        repeated: bool,
    },
    /// The network marked a packet.
    Mark,
}

/// The settings of a congestion control.
pub trait CongestionConfig {
    /// Returns the control of a new connection with these parameters; `None` for Reno, which is part of every connection.
    fn control(&self, p: &TcpParameters) -> Option<Box<dyn CongestionControl>>;

    /// Returns whether Reno controls the connection until the first loss or mark. Its own control begins only then.
    fn is_reno_until_loss(&self) -> bool {
        false
    }

    /// Returns whether it also sets the window during recovery, in place of the rules of RFC 5681 and RFC 6675.
    fn rules_recovery(&self) -> bool {
        false
    }

    /// Returns whether it uses [`Ack::rate`], [`Ack::rtt`] and [`Ack::total_delivered`]. Otherwise they are not measured.
    fn wants_rates(&self) -> bool {
        false
    }

    /// Returns whether the receiver must echo every mark exactly (RFC 8257 section 3.2). The connection then uses ECN unless the file says otherwise.
    fn wants_exact_marks(&self) -> bool {
        false
    }
}

/// Sets the congestion window of one connection.
pub trait CongestionControl: std::fmt::Debug + Send {
    /// Handles an acknowledgment of new data.
    fn on_ack(&mut self, window: &mut Window, ack: &Ack);

    /// Reduces the window for `signal`, with `in_flight` bytes outstanding.
    fn on_signal(&mut self, window: &mut Window, signal: Signal, in_flight: u64, now: Time);

    /// Handles the end of a recovery.
    fn on_recovered(&mut self, _window: &mut Window, _now: Time) {}

    /// Handles an idle time of the sender, longer than the retransmission timeout.
    fn on_idle(&mut self, _idle: Time) {}

    /// Handles a fall of the segment size from `before` bytes to that of `window`, which is rescaled already.
    fn on_shorter_segments(&mut self, _window: &Window, _before: u64) {}

    /// Handles a spurious reduction. `window` is restored already.
    fn on_undo(&mut self, _window: &Window) {}

    /// Returns the pacing rate in bit/s; `None` sends whenever the window allows. Called only if the config [wants
    /// rates](CongestionConfig::wants_rates).
    fn pacing_rate(&self) -> Option<u64> {
        None
    }
}

/// The control in charge of one connection. Reno's few bytes are stored in place, and its most frequent step needs no dynamic dispatch. Other controls are
/// allocated when they begin.
#[derive(Debug)]
pub(super) enum CurrentControl {
    /// Reno, or a control of another kind that has not begun.
    Reno(reno::RenoState),
    Other(Box<dyn CongestionControl>),
}

impl CurrentControl {
    /// Creates the control of a new connection.
    pub(super) fn new() -> Self {
        Self::Reno(reno::RenoState::default())
    }

    /// Begins the control with the first data, unless it begins at the first loss or mark.
    #[inline]
    pub(super) fn begin(&mut self, p: &TcpParameters) {
        if !p.congestion.config().is_reno_until_loss() {
            self.get_mut(p);
        }
    }

    /// Returns the control for these parameters, and begins it if it has not begun.
    #[inline]
    pub(super) fn get_mut(&mut self, p: &TcpParameters) -> &mut dyn CongestionControl {
        if let Self::Reno(_) = self
            && let Some(other) = p.congestion.config().control(p)
        {
            *self = Self::Other(other);
        }
        self.begun_mut()
    }

    /// Returns the control in charge: Reno until another one has begun.
    #[inline]
    pub(super) fn begun_mut(&mut self) -> &mut dyn CongestionControl {
        match self {
            Self::Reno(control) => control,
            Self::Other(control) => control.as_mut(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tcp::Profile;

    /// Returns the threshold after `signal`, in hundredths of a segment, of a sender with `hundredths` of a segment in its window.
    fn threshold(kind: &str, whole: bool, hundredths: u64, signal: Signal) -> u64 {
        let p = TcpParameters {
            congestion: serde_json::from_value(kind.into()).expect("the congestion control kind exists"),
            whole_segments: whole,
            ..Profile::Linux6.parameters(1040)
        };
        let mut window = Window { size: hundredths * 10, ..Window::new(&p) };
        let in_flight = window.size / 1000 * 1000;
        CurrentControl::new().get_mut(&p).on_signal(&mut window, signal, in_flight, Time::ZERO);
        window.threshold / 10
    }

    /// Window and threshold after the segment size falls from 1000 to 300 bytes, in a stack that counts segments and in one that counts bytes.
    #[test]
    fn window_keeps_its_segments_or_bytes_when_mss_shrinks() {
        for (whole, expected) in [
            (true, [(2100, 1200), (2100, u64::MAX), (150, 1200)]),
            (false, [(7000, 4000), (7000, u64::MAX), (500, 4000)]),
        ] {
            let p = TcpParameters { whole_segments: whole, ..Profile::Linux6.parameters(1040) };
            for (before, after) in [(7000, 4000), (7000, u64::MAX), (500, 4000)].into_iter().zip(expected) {
                let mut window = Window { size: before.0, threshold: before.1, ..Window::new(&p) };
                window.shrink_segments(300);
                assert_eq!((window.size, window.threshold), after);
                assert!(window.has_shrunk() && window.mss() == 300);
            }
        }
    }

    #[test]
    fn threshold_is_rounded_to_whole_segments_if_configured() {
        for (kind, size, bytes, segments) in [
            ("cubic", 400, 280, 200),
            ("cubic", 1070, 700, 700),
            ("reno", 500, 250, 200),
            ("reno", 300, 200, 200),
        ] {
            for signal in [Signal::Loss, Signal::Timeout { repeated: false }] {
                assert_eq!(threshold(kind, false, size, signal), bytes, "{kind} at {size}");
                assert_eq!(threshold(kind, true, size, signal), segments, "{kind} at {size}");
            }
        }
        // DCTCP starts with alpha = 1: a mark halves the window.
        assert_eq!(threshold("dctcp", false, 500, Signal::Mark), 250);
        assert_eq!(threshold("dctcp", true, 500, Signal::Mark), 300);
    }
}
