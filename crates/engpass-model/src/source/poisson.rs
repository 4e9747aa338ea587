//! UDP datagrams as a Poisson process.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::udp_keys::udp_traffic;
use super::{Arrivals, Common, SourceConfig, SourceOutput};
use crate::random::Stream;
use crate::range_errors::{FASTEST, RangeErrors};
use crate::time::{Pace, Time};
use crate::unit::{Rate, Size};
use crate::wire::ip::MAX_UDP_PAYLOAD;

udp_traffic! {
    /// Datagrams with exponential gaps between them, at a mean rate: the arrivals of an M/D/1 or M/M/1 queue. The first is due one gap after the start.
    pub struct Poisson {
        /// Mean payload of a datagram: 1 B to 65 507 B, and at most 8 kB where sizes are exponential.
        pub message: Size,
        /// Mean offered rate of payload.
        pub rate: Rate,
        /// Distribution of the payloads; `fixed` if not given.
        #[serde(default)]
        pub sizes: Sizes,
    }
}

/// Distribution of the payloads of datagrams.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Sizes {
    /// Each as long as the mean.
    #[default]
    Fixed,
    /// Exponential, in whole bytes, at least 1 B and at most 65 507 B.
    Exponential,
}

/// The largest mean of exponential payloads, in bytes. The limit of 65 507 B then takes away less than 0.03 % of the payload.
const MAX_EXPONENTIAL_MEAN: u64 = 8000;

impl SourceConfig for Poisson {
    fn common(&self) -> Common<'_> {
        self.shared_settings()
    }

    fn sends(&self) -> SourceOutput<'_> {
        SourceOutput::Datagrams { bytes: self.message.bytes(), rate: Some(self.rate) }
    }

    fn arrivals(&self, random: Stream) -> Option<Arrivals> {
        Some(Box::new(self.process(random)))
    }

    fn check(&self, errors: &mut RangeErrors) {
        let (most, cause) = match self.sizes {
            Sizes::Fixed => (MAX_UDP_PAYLOAD, "a UDP datagram cannot have a payload of this size"),
            Sizes::Exponential => (
                MAX_EXPONENTIAL_MEAN,
                "exponential sizes with this mean exceed the largest UDP payload too often",
            ),
        };
        errors.between(&["message"], self.message.bytes(), (1, most), "B", cause);
        self.check_shared(errors);
        errors.between(&["rate"], self.rate.0, (1, FASTEST), "bit/s", "the rate is out of range");
    }
}

impl Poisson {
    /// Returns the datagrams of one run, drawn from `random`. The values must have been checked.
    fn process(&self, random: Stream) -> Process {
        let mean = self.message.bytes();
        Process { mean_gap: Pace::of_bits(8, self.rate.0).after(mean), mean, sizes: self.sizes, random }
    }
}

/// A datagram of a Poisson process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// Time since the previous datagram, or since the start.
    pub gap: Time,
    /// Payload in bytes.
    pub bytes: u64,
}

/// The datagrams of a Poisson process, an endless series. For each one the gap is drawn first, then the size if it is drawn.
#[derive(Clone, Debug)]
struct Process {
    /// Mean gap in picoseconds, rounded up once.
    mean_gap: u64,
    /// Mean payload in bytes.
    mean: u64,
    sizes: Sizes,
    random: Stream,
}

impl Iterator for Process {
    type Item = Arrival;

    fn next(&mut self) -> Option<Arrival> {
        let gap = Time(self.random.exponential(self.mean_gap));
        let bytes = match self.sizes {
            Sizes::Fixed => self.mean,
            Sizes::Exponential => {
                // Drawn in 2^-16 of a byte and rounded to the nearest, so that the mean is not half a byte short.
                let parts = self.random.exponential(self.mean << 16);
                ((parts + (1 << 15)) >> 16).clamp(1, MAX_UDP_PAYLOAD)
            }
        };
        Some(Arrival { gap, bytes })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn poisson(message: u64, rate: u64, sizes: Sizes) -> Poisson {
        let text =
            serde_json::json!({ "from": "a", "to": "b", "message": Size(message), "rate": Rate(rate) });
        Poisson { sizes, ..serde_json::from_value(text).expect("the test's JSON is valid") }
    }

    fn errors(config: &Poisson) -> usize {
        let mut errors = RangeErrors::default();
        config.check(&mut errors);
        errors.into_iter().count()
    }

    /// Returns mean and variance.
    fn moments(values: impl Iterator<Item = u64> + Clone) -> (f64, f64) {
        let count = values.clone().count() as f64;
        let mean = values.clone().sum::<u64>() as f64 / count;
        (mean, values.map(|value| (value as f64 - mean).powi(2)).sum::<f64>() / count)
    }

    const N: usize = 200_000;

    #[test]
    fn poisson_gaps_are_exponential() {
        // 1000 B at 8 Mbit/s: 1 ms.
        let all: Vec<_> =
            poisson(1000, 8_000_000, Sizes::Fixed).process(Stream::new(1, "traffic.p")).take(N).collect();
        assert!(all.iter().all(|arrival| arrival.bytes == 1000));
        let (mean, variance) = moments(all.iter().map(|arrival| arrival.gap.0 / 1000));
        assert!((mean / 1e6 - 1.0).abs() < 0.01, "{mean}");
        assert!((variance.sqrt() / mean - 1.0).abs() < 0.01, "{variance}");
        // Counts of a Poisson process in windows of 10 ms: their variance is their mean, 10.
        let mut counts = vec![0u64; N / 11];
        let mut now = 0;
        for arrival in &all {
            now += arrival.gap.0;
            if let Some(count) = counts.get_mut((now / 10_000_000_000) as usize) {
                *count += 1;
            }
        }
        let (mean, variance) = moments(counts.iter().copied());
        assert!((mean - 10.0).abs() < 0.1 && (variance - 10.0).abs() < 0.4, "{mean} {variance}");
    }

    #[test]
    fn poisson_sizes_are_exponential_and_fit_into_udp() {
        for mean in [1, 20, 500, 8000] {
            let config = poisson(mean, 1_000_000, Sizes::Exponential);
            let all: Vec<_> = config.process(Stream::new(1, "traffic.p")).take(N).collect();
            assert!(all.iter().all(|arrival| (1..=MAX_UDP_PAYLOAD).contains(&arrival.bytes)));
            let (got, variance) = moments(all.iter().map(|arrival| arrival.bytes));
            // Sizes drawn below half a byte are sent as one byte, which matters for small means.
            let raised = (1.0 - libm::exp(-0.5 / mean as f64)) * if mean > 1 { 1.0 } else { 0.0 };
            let rounded = if mean > 1 { mean as f64 + raised } else { got };
            assert!((got / rounded - 1.0).abs() < 0.01, "{mean}: {got}");
            if mean >= 500 {
                assert!((variance.sqrt() / got - 1.0).abs() < 0.01, "{mean}: {variance}");
                // Independent of the gaps.
                let gap = all.iter().map(|arrival| arrival.gap.0 as f64).sum::<f64>() / N as f64;
                let covariance: f64 = all
                    .iter()
                    .map(|arrival| (arrival.gap.0 as f64 / gap - 1.0) * (arrival.bytes as f64 / got - 1.0))
                    .sum();
                assert!((covariance / N as f64).abs() < 0.01);
            }
        }
    }

    #[test]
    fn same_seed_gives_the_same_datagrams() {
        let config = poisson(1000, 8_000_000, Sizes::Exponential);
        let draw = |seed| config.process(Stream::new(seed, "traffic.p")).take(100).collect::<Vec<_>>();
        assert_eq!(draw(1), draw(1));
        assert_ne!(draw(1), draw(2));
    }

    #[test]
    fn poisson_rejects_sizes_that_udp_cannot_carry() {
        assert_eq!(errors(&poisson(65_507, 1000, Sizes::Fixed)), 0);
        assert_eq!(errors(&poisson(65_508, 1000, Sizes::Fixed)), 1);
        assert_eq!(errors(&poisson(8000, 1000, Sizes::Exponential)), 0);
        assert_eq!(errors(&poisson(8001, 1000, Sizes::Exponential)), 1);
        assert_eq!(errors(&poisson(0, 0, Sizes::Fixed)), 2);
    }
}
