//! Due times of datagrams of sources without a fixed interval (docs/model.md, "poisson" and "udp-on-off").

use engpass_model::random::Stream;
use engpass_model::source::on_off::Lengths;
use engpass_model::source::poisson::Sizes;
use engpass_model::source::{Poisson, UdpOnOff};
use engpass_model::time::Pace;

use crate::cell::after;
use crate::cost::ps;

/// The sequence of datagrams of a source.
#[derive(Debug)]
pub(crate) enum Arrivals {
    Poisson(Gaps),
    OnOff(Bursts),
}

impl Arrivals {
    /// Returns when the next datagram is due, in picoseconds, and its payload in bytes.
    pub(crate) fn next(&mut self) -> (u64, u64) {
        match self {
            Self::Poisson(gaps) => gaps.next(),
            Self::OnOff(bursts) => bursts.next(),
        }
    }
}

#[derive(Debug)]
pub(crate) struct Gaps {
    random: Stream,
    /// Mean gap in picoseconds.
    mean_gap: u64,
    mean_bytes: u64,
    sizes: Sizes,
    /// Due time of the last datagram in picoseconds.
    due: u64,
}

impl Gaps {
    pub(crate) fn new(config: &Poisson, random: Stream) -> Self {
        let mean_bytes = config.message.bytes();
        let mean_gap = after(Pace::of_bits(8, config.rate.0), mean_bytes);
        Self { random, mean_gap, mean_bytes, sizes: config.sizes, due: ps(config.start) }
    }

    pub(crate) fn next(&mut self) -> (u64, u64) {
        self.due += self.random.exponential(self.mean_gap);
        let bytes = match self.sizes {
            Sizes::Fixed => self.mean_bytes,
            // In 2^-16 of a byte, rounded to the nearest.
            Sizes::Exponential => {
                ((self.random.exponential(self.mean_bytes << 16) + (1 << 15)) >> 16).clamp(1, 65_507)
            }
        };
        (self.due, bytes)
    }
}

/// On-times with evenly spaced datagrams.
#[derive(Debug)]
pub(crate) struct Bursts {
    random: Stream,
    bytes: u64,
    /// Time between datagrams at the rate.
    pace: Pace,
    /// Means in picoseconds.
    on: u64,
    off: u64,
    lengths: Lengths,
    /// The current on-time: its beginning and length in picoseconds, and its number of datagrams so far.
    begun: u64,
    length: u64,
    sent: u64,
}

impl Bursts {
    pub(crate) fn new(config: &UdpOnOff, random: Stream) -> Self {
        let bytes = config.message.bytes();
        let mut bursts = Self {
            random,
            bytes,
            pace: Pace::of_bits(8 * bytes, config.rate.0),
            on: config.on.0,
            off: config.off.0,
            lengths: config.lengths,
            begun: ps(config.start),
            length: 0,
            sent: 0,
        };
        bursts.length = bursts.draw(bursts.on);
        bursts
    }

    pub(crate) fn draw(&mut self, mean: u64) -> u64 {
        match self.lengths {
            Lengths::Fixed => mean,
            Lengths::Exponential => self.random.exponential(mean),
        }
    }

    pub(crate) fn next(&mut self) -> (u64, u64) {
        loop {
            let offset = after(self.pace, self.sent);
            if offset < self.length {
                self.sent += 1;
                return (self.begun + offset, self.bytes);
            }
            let off = self.draw(self.off);
            self.begun += self.length + off;
            self.length = self.draw(self.on);
            self.sent = 0;
        }
    }
}
