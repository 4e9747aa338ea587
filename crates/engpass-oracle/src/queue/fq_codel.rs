//! FQ-CoDel (docs/queues.md, `fq-codel`; RFC 8290 section 4).

use std::collections::{BTreeMap, VecDeque};

use engpass_model::queue::FqCoDel as Config;
use engpass_model::random::Stream;

use super::codel::{Law, State};
use super::{Cause, Dropped, Length, Packet, Scheduler};

/// Largest number of packets dropped from a queue at once (section 4.1).
const MOST_DROPPED: u64 = 64;

/// All queues, and the lists of new and old queues.
#[derive(Debug)]
pub(super) struct FqCoDel {
    config: Config,
    law: Law,
    /// Perturbation of the hash, if flows share queues.
    perturbation: Option<u64>,
    queues: BTreeMap<u32, Flow>,
    new: VecDeque<u32>,
    old: VecDeque<u32>,
    longest: u64,
}

#[derive(Debug, Default)]
struct Flow {
    list: VecDeque<Packet>,
    state: State,
    credits: i64,
}

impl FqCoDel {
    pub(super) fn new(config: Config, mut random: Stream) -> Self {
        let law = Law { target: config.target.0, interval: config.interval.0, ecn: config.ecn };
        let perturbation = config.queues.map(|_| random.bits());
        let (new, old) = (VecDeque::new(), VecDeque::new());
        Self { config, law, perturbation, queues: BTreeMap::new(), new, old, longest: 0 }
    }

    /// Returns the number of the queue of a flow.
    fn number(&self, flow: u32) -> u32 {
        let (Some(queues), Some(perturbation)) = (self.config.queues, self.perturbation) else { return flow };
        let high = split_mix(u64::from(flow) ^ perturbation) >> 32;
        ((high * u64::from(queues)) >> 32) as u32
    }

    fn length(&self) -> Length {
        Length::of(self.queues.values().flat_map(|flow| &flow.list))
    }

    /// Drops half of the packets (rounded up, at most `MOST_DROPPED`) from the head of the queue with the most bytes; of several such queues, the one with the
    /// lowest number.
    fn drop_from_longest(&mut self, dropped: &mut Dropped) {
        let most = self.queues.values().map(|flow| Length::of(&flow.list).bytes).max();
        let longest = self.queues.values_mut().find(|flow| Some(Length::of(&flow.list).bytes) == most);
        let longest = longest.expect("a queue over its limit holds packets");
        let half = (longest.list.len() as u64).div_ceil(2).min(MOST_DROPPED);
        dropped.extend(longest.list.drain(..half as usize).map(|packet| (packet, Cause::Full)));
    }
}

impl Scheduler for FqCoDel {
    fn put(&mut self, _: u64, packet: Packet, dropped: &mut Dropped) {
        self.longest = self.longest.max(packet.bytes);
        let number = self.number(packet.flow);
        let flow = self.queues.entry(number).or_default();
        flow.list.push_back(packet);
        if !self.new.contains(&number) && !self.old.contains(&number) {
            flow.credits = self.config.quantum.bytes() as i64;
            self.new.push_back(number);
        }
        while !self.length().is_within(self.config.limit) {
            self.drop_from_longest(dropped);
        }
    }

    fn take(&mut self, now: u64, dropped: &mut Dropped) -> Option<Packet> {
        loop {
            let is_new = !self.new.is_empty();
            let number = *self.new.front().or(self.old.front())?;
            let flow = self.queues.get_mut(&number).expect("a queue on a list exists");
            let from = if is_new { &mut self.new } else { &mut self.old };
            if flow.credits <= 0 {
                flow.credits += self.config.quantum.bytes() as i64;
                from.pop_front();
                self.old.push_back(number);
                continue;
            }
            match flow.state.deque(now, (self.law, self.longest), &mut flow.list, dropped) {
                Some(packet) => {
                    flow.credits -= packet.bytes as i64;
                    return Some(packet);
                }
                None => {
                    from.pop_front();
                    if is_new {
                        self.old.push_back(number);
                    }
                }
            }
        }
    }

    fn waiting(&self) -> Vec<Packet> {
        self.queues.values().flat_map(|flow| &flow.list).copied().collect()
    }
}

/// The finalizer of SplitMix64 (Steele, Lea and Flood 2014).
fn split_mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
