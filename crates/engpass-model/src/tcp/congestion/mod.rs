//! Congestion control: how much may be in the network.
//!
//! The connection finds losses and marks, an algorithm decides what they mean for the window. Windows are bytes;
//! nothing is a float.

pub mod bbr;
pub mod cubic;
pub mod dctcp;
pub mod reno;

pub use bbr::Bbr;
pub use cubic::Cubic;
pub use dctcp::Dctcp;
pub use reno::Reno;

use super::parameters::TcpParameters;
use crate::family::family;
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

/// The window that a congestion control sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// Congestion window in bytes.
    pub size: u64,
    /// Slow start threshold in bytes.
    pub threshold: u64,
    mss: u32,
    byte_counting: u16,
    /// Whether windows are whole segments.
    whole: bool,
    /// Whether the segment size has fallen since the connection opened.
    shrunk: bool,
}

impl Window {
    /// The window of a connection with these parameters before any loss.
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

    /// The segment size is known, in bytes.
    pub(super) fn set_mss(&mut self, mss: u64) {
        self.mss = u32::try_from(mss).expect("a segment is at most 64 KiB long");
    }

    /// The path carries shorter segments than before. A stack that counts segments keeps their number, so that its window and threshold shrink in
    /// bytes.
    pub(super) fn shrink_segments(&mut self, mss: u64) {
        let before = self.mss();
        self.set_mss(mss);
        self.shrunk = true;
        self.size = self.rescale(self.size, before);
        if self.threshold < u64::MAX {
            self.threshold = self.rescale(self.threshold, before);
        }
    }

    /// Converts `bytes` that were counted in segments of `before` bytes: the number of segments stays where the stack counts segments, else the
    /// number of bytes.
    pub fn rescale(&self, bytes: u64, before: u64) -> u64 {
        let rescaled = u128::from(bytes) * u128::from(self.mss) / u128::from(before);
        if self.whole { u64::try_from(rescaled).unwrap_or(u64::MAX) } else { bytes }
    }

    /// Whether the segment size has fallen since the connection opened.
    #[inline]
    pub(super) fn has_shrunk(&self) -> bool {
        self.shrunk
    }

    /// Segment size in bytes (SMSS).
    #[inline]
    pub fn mss(&self) -> u64 {
        u64::from(self.mss)
    }

    /// Whether acknowledgments are counted instead of bytes.
    #[inline]
    pub fn counts_acknowledgments(&self) -> bool {
        self.byte_counting == 0
    }

    /// Whether what congestion control finds is cut to whole segments.
    #[inline]
    pub fn counts_segments(&self) -> bool {
        self.whole
    }

    /// Slow start below the threshold (RFC 5681 section 3.1: "cwnd < ssthresh").
    #[inline]
    pub fn in_slow_start(&self) -> bool {
        self.size < self.threshold
    }

    /// Grow by slow start; returns the acknowledged bytes that are left once the threshold is reached.
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

    /// RFC 5681 (4): "ssthresh = max (FlightSize / 2, 2*SMSS)".
    pub fn half_of(&self, in_flight: u64) -> u64 {
        self.least_two(in_flight / 2)
    }

    /// `bytes` as a threshold: two segments at least.
    pub fn least_two(&self, bytes: u64) -> u64 {
        self.cut(bytes).max(2 * self.mss())
    }

    /// `bytes` as the stack counts them: in whole segments, or as they are.
    pub fn cut(&self, bytes: u64) -> u64 {
        if self.whole { bytes / self.mss() * self.mss() } else { bytes }
    }
}

/// An estimate of the delivery rate (draft-ietf-ccwg-bbr, section 4.1).
#[derive(Clone, Copy, Debug)]
pub struct RateSample {
    /// Bytes delivered in the interval.
    pub delivered: u64,
    /// Length of the interval.
    pub interval: Time,
    /// Bytes delivered in all when the newest segment was sent.
    pub prior_delivered: u64,
    /// Whether the application set the pace.
    pub application_limited: bool,
}

/// What an acknowledgment means for the window.
#[derive(Clone, Copy, Debug)]
pub struct Ack {
    /// When it came.
    pub now: Time,
    /// Bytes that it acknowledges cumulatively.
    pub acked: u64,
    /// Bytes that it reports for the first time, in order or not.
    pub delivered: u64,
    /// Bytes delivered since the connection began, these included.
    pub total_delivered: u64,
    /// Bytes in flight before it.
    pub in_flight_before: u64,
    /// Bytes in flight after it.
    pub in_flight: u64,
    /// Next new sequence number.
    pub next: u64,
    /// Oldest unacknowledged sequence number.
    pub unacknowledged: u64,
    /// Sample of the round trip of the newest segment that it reports.
    pub rtt: Option<Time>,
    /// Smoothed round trip.
    pub smoothed_rtt: Option<Time>,
    /// Whether the congestion window is what limited the sender.
    pub window_limited: bool,
    /// The other side echoes a mark (ECE).
    pub marked: bool,
    /// Whether a recovery is going on.
    pub recovering: bool,
    /// Bytes newly held to be lost.
    pub lost: u64,
    /// Delivery rate.
    pub rate: Option<RateSample>,
}

/// Why the window must shrink.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// A segment is lost and recovery begins.
    Loss,
    /// The retransmission timer expired.
    Timeout {
        /// It had expired before for the same segment.
        again: bool,
    },
    /// The network marked a packet.
    Mark,
}

/// The settings of a congestion control.
pub trait CongestionConfig {
    /// The control of a new connection with these parameters; `None` for Reno's, which every connection has in place.
    fn control(&self, p: &TcpParameters) -> Option<Box<dyn CongestionControl>>;

    /// Whether Reno's control stands for it until something is lost or marked. Its own begins only then.
    fn is_reno_until_loss(&self) -> bool {
        false
    }

    /// Whether it sets the window in recovery too, in the place of the rules of RFC 5681 and RFC 6675.
    fn rules_recovery(&self) -> bool {
        false
    }

    /// Whether it looks at [`Ack::rate`], [`Ack::rtt`] and [`Ack::total_delivered`]; where not, they are not measured.
    fn wants_rates(&self) -> bool {
        false
    }

    /// Whether the receiver must echo every mark exactly (RFC 8257 section 3.2). It then uses ECN unless the file says otherwise.
    fn wants_exact_marks(&self) -> bool {
        false
    }
}

/// Decides on the congestion window.
pub trait CongestionControl: std::fmt::Debug + Send {
    /// An acknowledgment reported new data.
    fn on_ack(&mut self, window: &mut Window, ack: &Ack);

    /// Reduce for `signal`, with `in_flight` bytes outstanding.
    fn on_signal(&mut self, window: &mut Window, signal: Signal, in_flight: u64, now: Time);

    /// Recovery is over.
    fn on_recovered(&mut self, _window: &mut Window, _now: Time) {}

    /// The sender was idle for `idle`.
    fn on_idle(&mut self, _idle: Time) {}

    /// The segment size fell from `before` bytes to that of `window`, which is rescaled already.
    fn on_shorter_segments(&mut self, _window: &Window, _before: u64) {}

    /// The last reduction was unnecessary: `window` is what it was before.
    fn on_undo(&mut self, _window: &Window) {}

    /// Pace of sending in bit/s; `None` sends whenever the window allows. Asked only of one whose config [wants rates](CongestionConfig::wants_rates).
    fn pacing_rate(&self) -> Option<u64> {
        None
    }
}

/// The control of one connection. Reno's few bytes are in place, and its most frequent step is called without a table; the others are
/// allocated when they have something to control.
#[derive(Debug)]
pub(super) enum Control {
    /// Reno's; or that of another kind has not begun.
    Reno(reno::Control),
    Other(Box<dyn CongestionControl>),
}

impl Control {
    /// The control of a new connection.
    pub(super) fn new() -> Self {
        Self::Reno(reno::Control::default())
    }

    /// The control of a connection with these parameters begins with the first data, if it has not and does not begin later.
    #[inline]
    pub(super) fn begin(&mut self, p: &TcpParameters) {
        if !p.congestion.config().is_reno_until_loss() {
            self.get_mut(p);
        }
    }

    /// The control of a connection with these parameters: it begins, if it has not.
    #[inline]
    pub(super) fn get_mut(&mut self, p: &TcpParameters) -> &mut dyn CongestionControl {
        if let Self::Reno(_) = self
            && let Some(other) = p.congestion.config().control(p)
        {
            *self = Self::Other(other);
        }
        self.begun_mut()
    }

    /// What controls until something is lost or marked, and from then on.
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

    /// The threshold, in hundredths of a segment, of a sender with `hundredths` of one in its window when `signal` comes.
    fn threshold(kind: &str, whole: bool, hundredths: u64, signal: Signal) -> u64 {
        let p = TcpParameters {
            congestion: serde_json::from_value(kind.into()).expect("it is a kind"),
            whole_segments: whole,
            ..Profile::Linux6.parameters(1040)
        };
        let mut window = Window { size: hundredths * 10, ..Window::new(&p) };
        let in_flight = window.size / 1000 * 1000;
        Control::new().get_mut(&p).on_signal(&mut window, signal, in_flight, Time::ZERO);
        window.threshold / 10
    }

    /// Window and threshold once segments have 300 bytes instead of 1000: in a stack that counts segments, and in one that counts bytes.
    #[test]
    fn shorter_segments_leave_the_unit_that_is_counted() {
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
    fn stacks_go_on_with_whole_segments() {
        for (kind, size, bytes, segments) in [
            ("cubic", 400, 280, 200),
            ("cubic", 1070, 700, 700),
            ("reno", 500, 250, 200),
            ("reno", 300, 200, 200),
        ] {
            for signal in [Signal::Loss, Signal::Timeout { again: false }] {
                assert_eq!(threshold(kind, false, size, signal), bytes, "{kind} at {size}");
                assert_eq!(threshold(kind, true, size, signal), segments, "{kind} at {size}");
            }
        }
        // DCTCP begins with a share of marks of 1: half of the window.
        assert_eq!(threshold("dctcp", false, 500, Signal::Mark), 250);
        assert_eq!(threshold("dctcp", true, 500, Signal::Mark), 300);
    }
}
