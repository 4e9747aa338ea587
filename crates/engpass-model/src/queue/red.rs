//! Random early detection.
//!
//! Floyd and Jacobson, "Random Early Detection Gateways for Congestion Avoidance", IEEE/ACM Transactions on Networking 1(4),
//! 1993: the algorithm of figure 2. Floyd, "Recommendation on using the gentle_ variant of RED", 2000. Marks: RFC 3168
//! section 5.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    Admission, Backlog, Cause, DEFAULT_LIMIT, Discipline, Packet, PortView, QueueConfig, Verdict, check_limit,
};
use crate::random::Stream;
use crate::range_errors::RangeErrors;
use crate::time::{Pace, Time};
use crate::unit::{BufferSize, QueueLimit, Share, Size};

/// FIFO with random early detection. As the average queue length grows from `min` to `max`, packets are dropped at random with a
/// probability that grows to `max_probability` (Floyd and Jacobson 1993).
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Red {
    /// Average queue length above which packets are dropped, in packets or bytes.
    pub min: BufferSize,
    /// Average queue length from which every packet is dropped (with `gentle`, from twice this value), in the unit of `min`.
    pub max: BufferSize,
    /// Drop probability when the average reaches `max`, before drops are spread evenly.
    pub max_probability: Share,
    /// Weight of a sample in the average queue length, as a negative power of two: 9 means 1/512.
    pub weight_log2: u8,
    /// Whether the drop probability grows from `max_probability` to 100 % between `max` and twice `max`, instead of jumping at `max`.
    pub gentle: bool,
    /// Whether ECN-capable packets are marked instead of dropped at random.
    pub ecn: bool,
    /// Typical packet length. While the queue is empty, the average falls as if packets of this length arrived back to back.
    pub mean_packet: Size,
    /// Maximum queue length, the packet in transmission included: packets, bytes, or both.
    pub limit: QueueLimit,
}

impl Default for Red {
    /// Floyd, "RED: Discussions of Setting Parameters", 1997. The last two values are estimates.
    fn default() -> Self {
        Self {
            min: BufferSize::Packets(5),
            max: BufferSize::Packets(15),
            max_probability: Share(Share::WHOLE / 10),
            weight_log2: 9,
            gentle: true,
            ecn: false,
            mean_packet: Size(1000),
            limit: DEFAULT_LIMIT,
        }
    }
}

/// Maximum of `max`, in packets or bytes. Twice this value still fits into the fixed-point average.
const MAX_THRESHOLD: u64 = 1 << 30;

impl QueueConfig for Red {
    fn check(&self, errors: &mut RangeErrors) {
        match (self.min, self.max) {
            (BufferSize::Packets(min), BufferSize::Packets(max))
            | (BufferSize::Bytes(min), BufferSize::Bytes(max)) => {
                if min >= max {
                    let cause = format!("it is not below `max`, which is {}", self.max);
                    errors.add(&["min"], cause, "lower `min`, or raise `max`");
                }
                if max > MAX_THRESHOLD {
                    errors.add(
                        &["max"],
                        "too large for the buffer of a port",
                        format!("give at most {MAX_THRESHOLD}"),
                    );
                }
            }
            _ => {
                let cause = format!("`max` is {}, in another unit", self.max);
                errors.add(&["min"], cause, "give `min` and `max` both in packets or both in bytes");
            }
        }
        if self.max_probability.0 == 0 || self.max_probability.0 > Share::WHOLE {
            errors.add(
                &["max_probability"],
                "the drop probability must be above 0 % and at most 100 %",
                "give more than 0 %, at most 100 %",
            );
        }
        if self.weight_log2 > 24 {
            errors.add(
                &["weight_log2"],
                "the average queue length would hardly ever follow the queue",
                "give `0` to `24`; the average moves by 1/2^N of the difference with each packet, and `9` is usual",
            );
        }
        let cause = "no IP packet has this length";
        errors.between(&["mean_packet"], self.mean_packet.bytes(), (1, 65_535), "B", cause);
        check_limit("limit", self.limit, errors);
    }

    fn limit(&self) -> QueueLimit {
        self.limit
    }

    fn build(&self, random: Stream, line_rate: u64) -> Discipline {
        Discipline::Arrival(Box::new(Gateway::new(self.clone(), random, line_rate)))
    }

    fn draws(&self) -> bool {
        true
    }

    fn marks(&self) -> bool {
        self.ecn
    }
}

/// Fractional bits of the average: it is counted in 2^-32 packets or bytes.
const PLACES: u32 = 32;

/// State of the RED algorithm (figure 2 of Floyd and Jacobson 1993).
#[derive(Debug)]
struct Gateway {
    config: Red,
    random: Stream,
    /// `min` and `max` in units of 2^-32 packets or bytes.
    min: u64,
    max: u64,
    /// `s`: transmission time of a typical packet.
    typical: Pace,
    /// `avg`, in 2^-32 packets or bytes.
    average: u64,
    /// `count`: packets since the last drop while the average is above `min`. `None` corresponds to -1 in the paper.
    count: Option<u64>,
}

/// Position of the average relative to the thresholds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Zone {
    Below,
    /// Drop with probability `p_b`, in units of 2^-32.
    Between(u64),
    Above,
}

impl Gateway {
    fn new(config: Red, random: Stream, line_rate: u64) -> Self {
        let typical = Pace::of_bits(8 * config.mean_packet.bytes(), line_rate);
        let scaled = |size| match size {
            BufferSize::Packets(units) | BufferSize::Bytes(units) => units << PLACES,
        };
        let (min, max) = (scaled(config.min), scaled(config.max));
        Self { config, random, min, max, typical, average: 0, count: None }
    }

    /// "Calculate the new average queue size."
    fn update(&mut self, now: Time, port: PortView) {
        let weight = u32::from(self.config.weight_log2);
        match port.idle_since {
            Some(since) if port.backlog.packets == 0 => {
                // m = f(time - q_time) = (time - q_time) / s, in whole packets.
                let packets = self.typical.units_within(now.saturating_sub(since).0);
                self.average = decayed(self.average, weight, packets);
            }
            _ => {
                let queue = self.length(port.backlog) << PLACES;
                // avg = avg + w (q - avg). The shift rounds down, so for a constant q the average approaches q to within 2^weight units.
                let step = (i128::from(queue) - i128::from(self.average)) >> weight;
                self.average = self
                    .average
                    .checked_add_signed(step as i64)
                    .expect("the average stays between 0 and the longest queue");
            }
        }
    }

    /// `q` in the unit of the thresholds, limited to the range of the fixed point.
    fn length(&self, backlog: Backlog) -> u64 {
        let length = match self.config.min {
            BufferSize::Packets(_) => backlog.packets,
            BufferSize::Bytes(_) => backlog.bytes,
        };
        length.min(u64::from(u32::MAX >> 1))
    }

    fn zone(&self) -> Zone {
        let (average, min, max) = (self.average, self.min, self.max);
        let whole = u128::from(Share::WHOLE);
        let top = u128::from(self.config.max_probability.0);
        // Linear from `parts` (of 10^9) at `from` to `parts + rise` at `from + width`; rounded down to 2^-32.
        let line = |parts: u128, rise: u128, from: u64, width: u64| {
            let (over, width) = (u128::from(average - from), u128::from(width));
            Zone::Between((((parts * width + rise * over) << 32) / (whole * width)) as u64)
        };
        if average < min {
            Zone::Below
        } else if average < max {
            line(0, top, min, max - min)
        } else if self.config.gentle && average - max < max {
            line(top, whole - top, max, max)
        } else {
            Zone::Above
        }
    }

    /// Draws whether to drop this packet, with `p_a = p_b / (1 - count p_b)`, which spreads the drops.
    fn chooses(&mut self, probability: u64) -> bool {
        let count = self.count.map_or(0, |count| count + 1);
        self.count = Some(count);
        let left = (1u64 << 32).saturating_sub(count.saturating_mul(probability));
        // If `p_a` is 1 or more, no random number is drawn.
        let chosen = probability > 0 && (probability >= left || self.random.below(left) < probability);
        if chosen {
            self.count = Some(0);
        }
        chosen
    }
}

/// Returns `average * (1 - 2^-weight)^packets`, computed by squaring. Each of the at most 127 products is rounded down to 2^-64.
fn decayed(average: u64, weight: u32, packets: u64) -> u64 {
    if packets == 0 || average == 0 {
        return average;
    }
    if weight == 0 {
        return 0;
    }
    let product = |a: u64, b: u64| ((u128::from(a) * u128::from(b)) >> 64) as u64;
    // 1 - 2^-weight in units of 2^-64. It is less than 1, and so are its powers.
    let mut power = (1u64 << (64 - weight)).wrapping_neg();
    let mut left = packets;
    let mut result = average;
    while left > 0 && result > 0 {
        if left & 1 == 1 {
            result = product(result, power);
        }
        power = product(power, power);
        left >>= 1;
    }
    result
}

impl Admission for Gateway {
    fn admit(&mut self, now: Time, port: PortView, packet: &Packet) -> Verdict {
        self.update(now, port);
        let zone = self.zone();
        if !port.backlog.has_room(self.config.limit, packet.bytes) {
            // The paper has no limit. A drop is a signal to the sender, as a mark is.
            self.count = (zone != Zone::Below).then_some(0);
            return Verdict::Drop(Cause::Full);
        }
        match zone {
            Zone::Below => {
                self.count = None;
                Verdict::Accept { mark: false }
            }
            Zone::Between(probability) if !self.chooses(probability) => Verdict::Accept { mark: false },
            Zone::Between(_) if self.config.ecn && packet.takes_marks() => Verdict::Accept { mark: true },
            Zone::Between(_) => Verdict::Drop(Cause::Early),
            Zone::Above => {
                // Marking did not help, so ECN-capable packets are dropped too, as in ns-2.
                self.count = Some(0);
                Verdict::Drop(Cause::Early)
            }
        }
    }
}

#[cfg(test)]
mod tests;
