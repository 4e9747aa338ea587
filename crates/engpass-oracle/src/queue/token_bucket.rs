//! The token bucket (docs/queues.md, `token-bucket`).

use std::collections::VecDeque;

use engpass_model::queue::TokenBucket as Config;

use super::{Cause, Dropped, Packet, Scheduler, put_last};

/// Parts per token (one token is one byte). At 1 bit/s one part arrives per picosecond.
const TOKEN: u128 = 8_000_000_000_000;

#[derive(Debug)]
pub(super) struct TokenBucket {
    config: Config,
    list: VecDeque<Packet>,
    /// Parts of tokens in the bucket at `at`.
    parts: u128,
    at: u64,
}

impl TokenBucket {
    pub(super) fn new(config: Config) -> Self {
        let parts = u128::from(config.burst.bytes()) * TOKEN;
        Self { config, list: VecDeque::new(), parts, at: 0 }
    }

    fn parts_at(&self, now: u64) -> u128 {
        let more = u128::from(now - self.at) * u128::from(self.config.rate.0);
        (self.parts + more).min(u128::from(self.config.burst.bytes()) * TOKEN)
    }
}

impl Scheduler for TokenBucket {
    fn put(&mut self, _: u64, packet: Packet, dropped: &mut Dropped) {
        if packet.bytes > self.config.burst.bytes() {
            dropped.push((packet, Cause::LongerThanBurst));
        } else {
            put_last(&mut self.list, self.config.limit, packet, dropped);
        }
    }

    fn take(&mut self, now: u64, _: &mut Dropped) -> Option<Packet> {
        let needed = u128::from(self.list.front()?.bytes) * TOKEN;
        let there = self.parts_at(now);
        if there < needed {
            return None;
        }
        (self.parts, self.at) = (there - needed, now);
        self.list.pop_front()
    }

    fn ready(&self, now: u64) -> Option<u64> {
        let needed = u128::from(self.list.front()?.bytes) * TOKEN;
        let missing = needed.saturating_sub(self.parts_at(now));
        Some(now + missing.div_ceil(u128::from(self.config.rate.0)) as u64)
    }

    fn waiting(&self) -> Vec<Packet> {
        self.list.iter().copied().collect()
    }
}
