//! UDP datagrams in bursts.

use super::on_off::Lengths;
use super::poisson::Arrival;
use super::udp_keys::udp_traffic;
use super::{Arrivals, Common, SourceConfig, SourceOutput};
use crate::random::Stream;
use crate::range_errors::{FASTEST, LONGEST, RangeErrors};
use crate::time::{Pace, SECOND, Time};
use crate::unit::{Duration, Rate, Size};
use crate::wire::ip::MAX_UDP_PAYLOAD;

udp_traffic! {
    /// Datagrams of one size, evenly spaced at a peak rate during on-times, none during off-times. It begins with an on-time.
    pub struct UdpOnOff {
        /// Payload of a datagram, 1 B to 65 507 B.
        pub message: Size,
        /// Offered rate of payload during an on-time.
        pub rate: Rate,
        /// Mean length of an on-time. The first datagram is due at its beginning.
        pub on: Duration,
        /// Mean length of an off-time.
        pub off: Duration,
        /// Distribution of the lengths; `fixed` if not given.
        #[serde(default)]
        pub lengths: Lengths,
    }
}

impl SourceConfig for UdpOnOff {
    fn common(&self) -> Common<'_> {
        self.shared_settings()
    }

    fn sends(&self) -> SourceOutput<'_> {
        SourceOutput::Datagrams { bytes: self.message.bytes(), rate: Some(self.mean()) }
    }

    fn arrivals(&self, random: Stream) -> Option<Arrivals> {
        Some(Box::new(self.datagrams(random)))
    }

    fn check(&self, errors: &mut RangeErrors) {
        let cause = "a UDP datagram cannot have a payload of this size";
        errors.between(&["message"], self.message.bytes(), (1, MAX_UDP_PAYLOAD), "B", cause);
        errors.between(&["rate"], self.rate.0, (1, FASTEST), "bit/s", "the rate is out of range");
        errors.positive(&["on"], self.on, LONGEST);
        errors.positive(&["off"], self.off, LONGEST);
        self.check_shared(errors);
    }
}

impl UdpOnOff {
    /// Returns its mean rate of payload, over datagrams that begin in its on-times; at least 1 bit/s, because a rate of 0 is not valid.
    pub fn mean(&self) -> Rate {
        let bits = self.message.bytes() * 8;
        if bits == 0 || self.rate.0 == 0 {
            // `check` rejects these values, but the rate is needed before that.
            return Rate(1);
        }
        let units = self.lengths.units_in(self.on.0, Pace::of_bits(bits, self.rate.0));
        let cycle = self.on.0 as f64 + self.off.0 as f64;
        Rate((units * bits as f64 * SECOND as f64 / cycle).round().max(1.0) as u64)
    }

    /// Returns the datagrams of one run; lengths of times are drawn from `random`. The values must have been checked.
    fn datagrams(&self, random: Stream) -> Datagrams {
        let bytes = self.message.bytes();
        let pace = Pace::of_bits(bytes * 8, self.rate.0);
        Datagrams { bytes, last: 0, bursts: Bursts::new(pace, [self.on.0, self.off.0], self.lengths, random) }
    }
}

/// The datagrams of an on-off source, an endless series.
#[derive(Clone, Debug)]
struct Datagrams {
    bytes: u64,
    /// When the last datagram was due.
    last: u64,
    bursts: Bursts,
}

impl Iterator for Datagrams {
    type Item = Arrival;

    fn next(&mut self) -> Option<Arrival> {
        let due = self.bursts.due();
        let gap = Time(due - self.last);
        self.last = due;
        Some(Arrival { gap, bytes: self.bytes })
    }
}

/// The times at which the messages of an on-off source are due, an endless series. Times are in picoseconds from its start.
#[derive(Clone, Debug)]
pub struct Bursts {
    pace: Pace,
    on: u64,
    off: u64,
    lengths: Lengths,
    random: Stream,
    /// Begin and end of the present on-time, and the number of its messages so far.
    begin: u64,
    end: u64,
    sent: u64,
}

impl Bursts {
    /// Creates a source with a message every `pace` during on-times and none during off-times. `means` are the mean lengths of both, in picoseconds.
    /// It begins with an on-time.
    pub fn new(pace: Pace, means: [u64; 2], lengths: Lengths, random: Stream) -> Self {
        let [on, off] = means;
        let mut bursts = Self { pace, on, off, lengths, random, begin: 0, end: 0, sent: 0 };
        bursts.end = bursts.length(on);
        bursts
    }

    fn length(&mut self, mean: u64) -> u64 {
        match self.lengths {
            Lengths::Fixed => mean,
            Lengths::Exponential => self.random.exponential(mean),
        }
    }

    /// Returns when the next message is due, never before the last one. Returns `u64::MAX` at the end of time.
    pub fn due(&mut self) -> u64 {
        loop {
            let due = self.begin.saturating_add(self.pace.after(self.sent));
            if due < self.end {
                self.sent += 1;
                return due;
            }
            let off = self.length(self.off);
            self.begin = self.end.saturating_add(off);
            let on = self.length(self.on);
            self.end = self.begin.saturating_add(on);
            self.sent = 0;
            if self.end == u64::MAX {
                return u64::MAX;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000_000;

    fn source(on_ms: u64, off_ms: u64, lengths: Lengths) -> UdpOnOff {
        let table = serde_json::json!({
            "from": "a", "to": "b", "message": Size(1000), "rate": Rate(8_000_000),
            "on": Duration(on_ms * MS), "off": Duration(off_ms * MS),
        });
        UdpOnOff { lengths, ..serde_json::from_value(table).expect("the test's JSON is valid") }
    }

    fn dues(source: &UdpOnOff, seed: u64, count: usize) -> Vec<u64> {
        let mut at = 0;
        let arrivals = source.datagrams(Stream::new(seed, "traffic.b")).take(count);
        arrivals
            .map(|arrival| {
                at += arrival.gap.ps();
                at
            })
            .collect()
    }

    #[test]
    fn on_off_schedule_alternates_on_and_off_times() {
        // 1000 B at 8 Mbit/s: 1 ms.
        let ms: Vec<_> = dues(&source(3, 7, Lengths::Fixed), 1, 8).iter().map(|due| due / MS).collect();
        assert_eq!(ms, [0, 1, 2, 10, 11, 12, 20, 21]);
    }

    #[test]
    fn exponential_on_off_lengths_have_their_means() {
        let config = source(20, 60, Lengths::Exponential);
        let due = dues(&config, 1, 200_000);
        // An on-time has one datagram more than whole gaps fit into it: 1 / (1 - e^(-1/20)) on average.
        let per_cycle = 1.0 / (1.0 - libm::exp(-1.0 / 20.0));
        let cycles = due.len() as f64 / per_cycle;
        let mean = *due.last().expect("datagrams were sent") as f64 / MS as f64 / cycles;
        assert!((mean / 80.0 - 1.0).abs() < 0.03, "{mean}");
        assert_eq!(config.mean(), Rate((per_cycle * 8000.0 / 80e-3).round() as u64));
        assert_ne!(dues(&config, 2, 100), due[..100]);
        assert_eq!(dues(&config, 1, 100), due[..100]);
    }

    #[test]
    fn udp_on_off_rejects_times_of_zero() {
        let mut errors = RangeErrors::default();
        source(0, 0, Lengths::Fixed).check(&mut errors);
        let paths: Vec<_> = errors.into_iter().map(|complaint| complaint.path.join(".")).collect();
        assert_eq!(paths, ["on", "off"]);
    }
}
