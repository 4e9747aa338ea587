//! The time in which a flow can be served, and the most that an application offers in it: both for bounds.
//!
//! A bound counts the units between two instants. Therefore it holds for runs of any length. The bound of a random source fails with a probability of at
//! most [`UNLIKELY`].

use engpass_model::event::Event;
use engpass_model::source::{FramePattern, Traffic, on_off, poisson};
use engpass_model::time::{Pace, SECOND};
use engpass_testbed::topology::FlowPath;
use engpass_testbed::{Membership, Testbed, Topology};

/// Probability that a random source offers more than its bound.
const UNLIKELY: f64 = 1e-9;

/// The part of the measurement window in which one flow can be served.
#[derive(Clone, Copy, Debug)]
pub(super) struct Span {
    /// Begin in picoseconds: the end of the warm-up, or the start of the flow if that is later.
    pub(super) from: u64,
    /// The end of the run, in picoseconds.
    pub(super) until: u64,
    /// Instant at which the flow's application stops, in picoseconds.
    stop: u64,
    /// True if the flow may have sent before the measurement window.
    pub(super) warm: bool,
    /// Length of the measurement window, in picoseconds.
    counted: u64,
    /// For a receiver that joins and leaves: number of its memberships from `from` until the flow stops, and their sum in picoseconds.
    memberships: Option<(u64, u64)>,
}

impl Span {
    pub(super) fn new(testbed: &Testbed, traffic: &Traffic, path: &FlowPath) -> Self {
        let run = &testbed.run;
        let (start, stop) = traffic.window();
        let (start, until) = (start.map_or(0, |start| start.0), run.duration.0);
        let warmup = run.warmup.map_or(0, |warmup| warmup.0);
        let stop = stop.map_or(until, |stop| stop.0.min(until));
        let from = warmup.max(start).min(until);
        // The path to one receiver has one member at most.
        let memberships = path.members.first().map(|member| {
            let within = Membership::new(testbed, member, until).within(from, stop.max(from));
            (within.len() as u64, within.into_iter().map(|(begin, end)| end - begin).sum())
        });
        Self { from, until, stop, warm: start < warmup, counted: until - warmup, memberships }
    }

    /// Returns the time in which the flow can be served, in seconds.
    pub(super) fn seconds(&self) -> f64 {
        (self.until - self.from) as f64 / SECOND as f64
    }

    /// Returns the share of the measurement window that lies before the flow's start.
    pub(super) fn late(&self) -> f64 {
        1.0 - (self.until - self.from) as f64 / self.counted as f64
    }

    /// Returns the rate in bit/s that `bits` are over the whole measurement window.
    pub(super) fn rate(&self, bits: f64) -> f64 {
        bits * SECOND as f64 / self.counted as f64
    }

    /// Returns the time in which the flow's application offers data, in picoseconds.
    fn offering(&self) -> u64 {
        self.stop.saturating_sub(self.from)
    }

    /// Returns the largest number of units that an application can offer at this pace; the first one may come at any instant.
    pub(super) fn even(&self, pace: Pace) -> f64 {
        // A receiver counts datagrams that begin while it is a member, in each membership anew.
        let (times, length) = self.memberships.unwrap_or((1, self.offering()));
        (pace.units_within(length) + times) as f64
    }

    /// Returns the largest number of messages or cells that a source of bursts can offer. `on` and `off` are the mean lengths in picoseconds, `pace` is the
    /// time between units in a burst.
    pub(super) fn bursts(&self, pace: Pace, [on, off]: [u64; 2], lengths: on_off::Lengths) -> f64 {
        let time = self.offering();
        match lengths {
            on_off::Lengths::Fixed => {
                let begun = time / (on + off) + 1;
                let whole = begun as f64 * lengths.units_in(on, pace);
                // The partial bursts at both ends together count as one more burst.
                whole.min((pace.units_within(time) + begun + 1) as f64)
            }
            on_off::Lengths::Exponential => {
                let gap = pace.after(1) as f64;
                // Time from one unit to the next: a gap within a burst, or the rest of the on-time and an off-time.
                unlikely(time as f64, |rate| {
                    let ends = 1.0 / on as f64;
                    let goes_on = libm::exp(-(ends + rate) * gap);
                    let pauses = ends / (ends + rate) * (1.0 - goes_on) / (1.0 + rate * off as f64);
                    goes_on + pauses
                })
            }
        }
    }

    /// Returns the largest number of messages that a video with this pattern can offer.
    pub(super) fn frames(&self, pattern: FramePattern) -> f64 {
        match self.memberships {
            Some((times, length)) => pattern.most_within_several(times, length),
            None => pattern.most_within(self.offering()),
        }
    }

    /// Returns the largest number of bits that a Poisson process of datagrams can offer. The arguments are the means of their lengths in bytes and gaps in
    /// picoseconds.
    pub(super) fn poisson(&self, message: u64, gap: u64, sizes: poisson::Sizes) -> f64 {
        let time = self.offering() as f64;
        let count = unlikely(time, |rate| 1.0 / (1.0 + rate * gap as f64));
        let bytes = match sizes {
            poisson::Sizes::Fixed => count * message as f64,
            poisson::Sizes::Exponential => {
                // Chernoff's bound of a compound Poisson process: exp(-(sqrt(x) - sqrt(n))^2) for x mean lengths in n mean gaps. Rounding to whole bytes adds
                // at most one byte each.
                let mean = time / (gap.max(2) - 1) as f64;
                let root = mean.sqrt() + (-libm::log(UNLIKELY)).sqrt();
                message as f64 * (root * root + 1.0) + count
            }
        };
        8.0 * bytes
    }
}

/// Returns how often a link can go down while a flow is served.
pub(super) fn restarts(testbed: &Testbed, topology: &Topology, link: usize, span: &Span) -> f64 {
    let events = testbed.events.values().filter(|event| !event.is_of_member()).zip(&topology.events);
    events.filter(|(_, path)| path.link == link).map(|(event, _)| falls(event, span)).sum()
}

/// Returns how often one event of the testbed file can take its link down while a flow is served.
fn falls(event: &Event, span: &Span) -> f64 {
    let at = event.at.map_or(0, |at| at.0);
    if !event.takes_down() || at > span.until {
        return 0.0;
    }
    if let (Some(up), Some(down)) = (event.mean_time_between_failures, event.mean_time_to_repair) {
        let time = (span.until - at.max(span.from).min(span.until)) as f64;
        let exponential = |mean: u64, rate: f64| 1.0 / (1.0 + rate * mean as f64);
        return unlikely(time, |rate| exponential(up.0, rate) * exponential(down.0, rate));
    }
    // Number of times up to and including an instant.
    let up_to = |end: u64| match event.every {
        Some(every) => end.checked_sub(at).map_or(0, |time| time / every.0 + 1),
        None => u64::from(at <= end),
    };
    (up_to(span.until) - span.from.checked_sub(1).map_or(0, up_to)) as f64
}

/// Returns the largest number of events of a renewal process within `time` picoseconds: more have a probability of at most [`UNLIKELY`]. `transform` is the
/// Laplace transform of a gap, the mean of exp(-rate · gap).
///
/// Chernoff's bound: the probability that `n` times add up to less than `time` is at most exp(rate · time) · transform(rate)^n, for every rate.
fn unlikely(time: f64, transform: impl Fn(f64) -> f64) -> f64 {
    if time <= 0.0 {
        return 1.0;
    }
    let count = |exponent: f64| {
        let rate = libm::exp(exponent);
        // Random times are truncated to whole picoseconds; an event has at most two random times.
        let each = -libm::log(transform(rate)) - 2.0 * rate;
        if each > 0.0 { (rate * time - libm::log(UNLIKELY)) / each } else { f64::INFINITY }
    };
    // Finds the best rate by golden-section search over its logarithm, from 1 / (100 · time) to one per picosecond.
    let golden = (5f64.sqrt() - 1.0) / 2.0;
    let (mut low, mut high) = (-libm::log(100.0 * time), 0.0);
    for _ in 0..100 {
        let width = golden * (high - low);
        if count(high - width) <= count(low + width) { high = low + width } else { low = high - width }
    }
    // The first event may come at any instant.
    count((low + high) / 2.0) + 1.0
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 1000 expected datagrams. A Poisson variable exceeds 1200 with a probability of 5e-10.
    #[test]
    fn poisson_bound_is_near_the_tail_of_the_distribution() {
        let most = unlikely(1e12, |rate| 1.0 / (1.0 + rate * 1e9));
        assert!((1190.0..1215.0).contains(&most), "{most}");
        let many = unlikely(1e15, |rate| 1.0 / (1.0 + rate * 1e9));
        assert!((1.005..1.008).contains(&(many / 1e6)), "{many}");
    }

    #[test]
    fn link_failures_are_counted_within_the_span() {
        let span = |from: u64, until: u64| Span {
            from: from * SECOND,
            until: until * SECOND,
            stop: until,
            warm: true,
            counted: 1,
            memberships: None,
        };
        let event =
            |json: serde_json::Value| -> Event { serde_json::from_value(json).expect("the event is valid") };
        let once = event(serde_json::json!({ "target": "l", "at": "5 s", "change": "down" }));
        assert_eq!(
            [span(0, 9), span(5, 9), span(6, 9), span(0, 4)].map(|span| falls(&once, &span)),
            [1.0, 1.0, 0.0, 0.0]
        );
        let often =
            event(serde_json::json!({ "target": "l", "at": "5 s", "change": "down", "every": "2 s" }));
        assert_eq!([span(0, 9), span(6, 9), span(8, 8)].map(|span| falls(&often, &span)), [3.0, 2.0, 0.0]);
        let up = event(serde_json::json!({ "target": "l", "at": "5 s", "change": "up" }));
        assert_eq!(falls(&up, &span(0, 9)), 0.0);
        let random = event(serde_json::json!({
            "target": "l", "mean_time_between_failures": "9 s", "mean_time_to_repair": "1 s",
        }));
        // The mean number of outages is 1000.
        assert!((1100.0..1250.0).contains(&falls(&random, &span(0, 10_000))));
    }
}
