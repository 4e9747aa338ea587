//! RED (docs/queues.md, `red`; Floyd and Jacobson 1993, figure 2).

use engpass_model::queue::Red as Config;
use engpass_model::random::Stream;
use engpass_model::unit::{BufferSize, Share};

use super::{Cause, Length, Packet};

/// The value 1 in the unit of averages and probabilities, 2^-32.
const ONE: u128 = 1 << 32;

/// The gateway of figure 2.
#[derive(Debug)]
pub(crate) struct Red {
    config: Config,
    /// Line rate in bit/s.
    rate: u64,
    random: Stream,
    /// `avg` in 2^-32 packets or bytes.
    average: u128,
    /// `count`: packets since the last dropped or marked one; -1 while the average is below `min`.
    count: i64,
}

/// The three cases of the figure.
enum Zone {
    Below,
    /// `p_b` in 2^-32.
    Chance(u128),
    Above,
}

fn amount(size: BufferSize) -> u128 {
    match size {
        BufferSize::Packets(packets) => packets.into(),
        BufferSize::Bytes(bytes) => bytes.into(),
    }
}

impl Red {
    /// Builds a gateway that has seen no packet.
    pub(super) fn new(config: Config, rate: u64, random: Stream) -> Self {
        Self { config, rate, random, average: 0, count: -1 }
    }

    /// Decides whether a packet that arrives at `now` joins. The port holds `found`; if that is empty, it has been empty since `idle_since`.
    ///
    /// # Errors
    /// The cause of the drop.
    pub(crate) fn admits(
        &mut self,
        now: u64,
        found: Length,
        idle_since: u64,
        packet: &mut Packet,
    ) -> Result<(), Cause> {
        self.averages(now, found, idle_since);
        let zone = self.zone();
        if !found.with(packet).is_within(self.config.limit) {
            self.count = if matches!(zone, Zone::Below) { -1 } else { 0 };
            return Err(Cause::Full);
        }
        match zone {
            Zone::Below => self.count = -1,
            Zone::Chance(probability) => {
                self.count += 1;
                if self.chooses(probability) {
                    self.count = 0;
                    if !(self.config.ecn && packet.mark()) {
                        return Err(Cause::Early);
                    }
                }
            }
            Zone::Above => {
                self.count = 0;
                return Err(Cause::Early);
            }
        }
        Ok(())
    }

    fn averages(&mut self, now: u64, found: Length, idle_since: u64) {
        let weight = u32::from(self.config.weight_log2);
        if found.packets > 0 {
            let length = match self.config.min {
                BufferSize::Packets(_) => found.packets,
                BufferSize::Bytes(_) => found.bytes,
            };
            let times = (1 << weight) - 1;
            self.average = (self.average * times + u128::from(length) * ONE) >> weight;
        } else {
            let bits = u128::from(now - idle_since) * u128::from(self.rate) / 1_000_000_000_000;
            let packets = bits / (8 * u128::from(self.config.mean_packet.bytes()));
            self.decays(weight, packets);
        }
    }

    /// `avg *= (1 - w)^exponent`.
    fn decays(&mut self, weight: u32, exponent: u128) {
        let mut factor = (1 << 64) - (1_u128 << (64 - weight));
        for digit in 0..u128::BITS {
            if exponent >> digit & 1 == 1 {
                self.average = (self.average * factor) >> 64;
            }
            factor = (factor * factor) >> 64;
        }
    }

    fn zone(&self) -> Zone {
        let (min, max) = (amount(self.config.min), amount(self.config.max));
        let whole = u128::from(Share::WHOLE);
        let most = u128::from(self.config.max_probability.0);
        let average = self.average;
        if average < min * ONE {
            Zone::Below
        } else if average < max * ONE {
            Zone::Chance(most * (average - min * ONE) / (whole * (max - min)))
        } else if self.config.gentle && average < 2 * max * ONE {
            let above = (whole - most) * (average - max * ONE);
            Zone::Chance((most * max * ONE + above) / (whole * max))
        } else {
            Zone::Above
        }
    }

    /// Returns true with the probability `p_a = p_b / (1 - count p_b)`.
    fn chooses(&mut self, probability: u128) -> bool {
        let rest = ONE.saturating_sub(self.count as u128 * probability);
        if probability == 0 || rest <= probability {
            return probability > 0;
        }
        u128::from(self.random.below(rest as u64)) < probability
    }
}
