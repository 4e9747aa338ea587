//! A token bucket: a queue that limits its rate, but allows bursts.
//!
//! Turner, "New Directions in Communications", IEEE Communications Magazine 24(10), 1986. As a shaper with a queue: RFC 2475 section
//! 2.3.3.3 and Linux's `tbf`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::packet_fifo::Fifo;
use super::{
    Backlog, Cause, DEFAULT_LIMIT, Discipline, MAX_BYTES, Packet, QueueConfig, Scheduler, check_limit,
};
use crate::random::Stream;
use crate::range_errors::{FASTEST, RangeErrors};
use crate::time::{Pace, Time};
use crate::unit::{QueueLimit, Rate, Size};

/// FIFO that sends a packet when the bucket has a token for each of its bytes. Tokens arrive at `rate`, and the bucket holds `burst` of
/// them. Packets longer than `burst` are dropped.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TokenBucket {
    /// Token rate: the long-term rate of the queue, counted in whole frames.
    pub rate: Rate,
    /// Size of the bucket, which is full at the start. At least the longest packet.
    pub burst: Size,
    /// Maximum queue length: packets, bytes, or both.
    #[serde(default = "default_limit")]
    pub limit: QueueLimit,
}

fn default_limit() -> QueueLimit {
    DEFAULT_LIMIT
}

impl QueueConfig for TokenBucket {
    fn check(&self, errors: &mut RangeErrors) {
        errors.between(&["rate"], self.rate.0, (1, FASTEST), "bit/s", "the rate is out of range");
        let cause = "no packet would pass, or all packets at once";
        errors.between(&["burst"], self.burst.bytes(), (64, MAX_BYTES), "B", cause);
        check_limit("limit", self.limit, errors);
    }

    fn keeps_order(&self) -> bool {
        false
    }

    fn limit(&self) -> QueueLimit {
        self.limit
    }

    fn build(&self, _random: Stream, _line_rate: u64) -> Discipline {
        Discipline::Service(Box::new(Shaper {
            byte: Pace::of_bits(8, self.rate.0),
            burst: self.burst.bytes(),
            limit: self.limit,
            queue: Fifo::default(),
            full: Time::ZERO,
            spent: 0,
        }))
    }
}

#[derive(Debug)]
struct Shaper {
    /// Time per token (one byte).
    byte: Pace,
    burst: u64,
    limit: QueueLimit,
    queue: Fifo,
    /// A time at which the bucket was full.
    full: Time,
    /// Bytes sent since `full`. At time `t` there are `burst + (t - full) / byte - spent` tokens; rounding errors do not accumulate.
    spent: u64,
}

impl Shaper {
    /// The first time at which the bucket has a token for each of `bytes`.
    fn ready(&self, bytes: u32) -> Time {
        let missing = (self.spent + u64::from(bytes)).saturating_sub(self.burst);
        Time(self.full.0.saturating_add(self.byte.after(missing)))
    }
}

impl Scheduler for Shaper {
    fn enqueue(&mut self, now: Time, packet: Packet, lost: &mut Vec<(Packet, Cause)>) {
        if u64::from(packet.bytes) > self.burst {
            lost.push((packet, Cause::LongerThanBurst));
        } else if self.queue.backlog().has_room(self.limit, packet.bytes) {
            self.queue.push(now, packet);
        } else {
            lost.push((packet, Cause::Full));
        }
    }

    fn dequeue(&mut self, now: Time, _lost: &mut Vec<(Packet, Cause)>) -> Option<Packet> {
        let bytes = self.queue.head()?.bytes;
        if self.ready(bytes) > now {
            return None;
        }
        if now.saturating_sub(self.full).0 >= self.byte.after(self.spent) {
            // The bucket is full again; later tokens overflowed.
            (self.full, self.spent) = (now, 0);
        }
        self.spent += u64::from(bytes);
        self.queue.pop().map(|held| held.packet)
    }

    fn next_ready(&self, now: Time) -> Option<Time> {
        self.queue.head().map(|packet| self.ready(packet.bytes).max(now))
    }

    fn backlog(&self) -> Backlog {
        self.queue.backlog()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::Ecn;

    fn build(rate: u64, burst: u64) -> Box<dyn Scheduler> {
        let config = TokenBucket { rate: Rate(rate), burst: Size(burst), limit: QueueLimit::packets(3) };
        match config.build(Stream::new(1, "queue"), 1) {
            Discipline::Service(queue) => queue,
            Discipline::Arrival(_) => unreachable!("the queue kind is a scheduler"),
        }
    }

    fn packet(id: u32, bytes: u32) -> Packet {
        Packet { id, bytes, flow: 0, priority: 0, ecn: Ecn::NotCapable }
    }

    #[test]
    fn token_bucket_sends_as_soon_as_tokens_suffice() {
        // 8 Mbit/s: a token takes 1 us. The full bucket of 2000 B sends 1500 B immediately; the second packet needs 1000 more tokens.
        const US: u64 = 1_000_000;
        let (mut queue, mut lost) = (build(8_000_000, 2000), Vec::new());
        queue.enqueue(Time::ZERO, packet(0, 1500), &mut lost);
        queue.enqueue(Time::ZERO, packet(1, 1500), &mut lost);
        assert_eq!(queue.next_ready(Time::ZERO), Some(Time::ZERO));
        assert_eq!(queue.dequeue(Time::ZERO, &mut lost).map(|sent| sent.id), Some(0));
        assert_eq!(queue.dequeue(Time::ZERO, &mut lost), None);
        assert_eq!(queue.next_ready(Time(5)), Some(Time(1000 * US)));
        assert_eq!(queue.dequeue(Time(1000 * US - 1), &mut lost), None);
        assert_eq!(queue.dequeue(Time(1000 * US), &mut lost).map(|sent| sent.id), Some(1));
        // After 2000 us the bucket is full, and a second later it still holds 2000 B.
        queue.enqueue(Time(3_000_000 * US), packet(2, 2000), &mut lost);
        queue.enqueue(Time(3_000_000 * US), packet(3, 64), &mut lost);
        assert!(queue.dequeue(Time(3_000_000 * US), &mut lost).is_some());
        assert_eq!(queue.next_ready(Time(3_000_000 * US)), Some(Time(3_000_064 * US)));
        assert_eq!(lost, []);
    }

    #[test]
    fn token_bucket_rounding_does_not_accumulate() {
        // At 3·10^9 bit/s a token takes 8000/3 ps. After the burst of 64 B, packet n of 1 B is due at ceil(n * 8000 / 3).
        let (mut queue, mut lost) = (build(3_000_000_000, 64), Vec::new());
        queue.enqueue(Time::ZERO, packet(0, 64), &mut lost);
        assert!(queue.dequeue(Time::ZERO, &mut lost).is_some());
        let mut now = Time::ZERO;
        for n in 1..1000u64 {
            queue.enqueue(now, packet(n as u32, 1), &mut lost);
            now = queue.next_ready(now).expect("a packet waits");
            assert_eq!(now.0, (n * 8000).div_ceil(3));
            assert!(queue.dequeue(now, &mut lost).is_some());
        }
    }

    #[test]
    fn token_bucket_drops_packets_above_burst_or_buffer() {
        let (mut queue, mut lost) = (build(8_000_000, 1000), Vec::new());
        for (id, bytes) in [(0, 1001), (1, 1000), (2, 1000), (3, 1000), (4, 1000)] {
            queue.enqueue(Time::ZERO, packet(id, bytes), &mut lost);
        }
        let lost: Vec<_> = lost.iter().map(|(packet, cause)| (packet.id, *cause)).collect();
        assert_eq!(lost, [(0, Cause::LongerThanBurst), (4, Cause::Full)]);
    }
}
