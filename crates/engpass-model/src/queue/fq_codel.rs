//! FlowQueue-CoDel (RFC 8290).

use std::collections::VecDeque;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::codel::{Control, INTERVAL, Law, TARGET, check_times};
use super::packet_fifo::Fifo;
use super::{Backlog, Cause, Discipline, Packet, QueueConfig, Scheduler, check_limit};
use crate::random::Stream;
use crate::range_errors::RangeErrors;
use crate::time::Time;
use crate::unit::{Duration, QueueLimit, Size};

/// One queue with CoDel per flow, served by deficit round robin. Queues of flows that send little are served first (RFC 8290).
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct FqCoDel {
    /// Bytes that a queue may send per turn.
    pub quantum: Size,
    /// CoDel's acceptable waiting time.
    pub target: Duration,
    /// How long the waiting time may exceed `target` before CoDel drops packets.
    pub interval: Duration,
    /// Whether ECN-capable packets are marked instead of dropped.
    pub ecn: bool,
    /// Number of queues to which flows are hashed. If not given, each flow has its own queue.
    pub queues: Option<u32>,
    /// Maximum length of all queues together: packets, bytes, or both. When it is exceeded, the queue with the most bytes drops packets.
    pub limit: QueueLimit,
}

impl Default for FqCoDel {
    /// As in RFC 8290 section 5.2. ECN is on, as in Linux.
    fn default() -> Self {
        Self {
            quantum: Size(1514),
            target: TARGET,
            interval: INTERVAL,
            ecn: true,
            queues: None,
            limit: QueueLimit::packets(10_240),
        }
    }
}

impl QueueConfig for FqCoDel {
    fn check(&self, errors: &mut RangeErrors) {
        let cause = "a queue would send too few or too many bytes per round";
        errors.between(&["quantum"], self.quantum.bytes(), (64, 1 << 24), "B", cause);
        check_times(self.target, self.interval, errors);
        if let Some(queues) = self.queues {
            errors.between(
                &["queues"],
                queues.into(),
                (1, 65_536),
                "queues",
                "the number of queues is out of range",
            );
        }
        check_limit("limit", self.limit, errors);
    }

    fn keeps_order(&self) -> bool {
        false
    }

    fn limit(&self) -> QueueLimit {
        self.limit
    }

    fn build(&self, mut random: Stream, _line_rate: u64) -> Discipline {
        Discipline::Service(Box::new(Flows {
            law: Law::new(self.target, self.interval, self.ecn),
            quantum: self.quantum.bytes() as i64,
            limit: self.limit,
            hash: self.queues.map(|queues| Hash { queues, perturbation: random.bits() }),
            queues: Vec::new(),
            new: VecDeque::new(),
            old: VecDeque::new(),
            backlog: Backlog::default(),
            longest: 0,
        }))
    }

    fn draws(&self) -> bool {
        self.queues.is_some()
    }

    fn marks(&self) -> bool {
        self.ecn
    }
}

/// Maps flows to a number of queues, differently for every seed.
#[derive(Clone, Copy, Debug)]
struct Hash {
    queues: u32,
    perturbation: u64,
}

impl Hash {
    fn queue(self, flow: u32) -> usize {
        // The finalizer of SplitMix64 (Steele, Lea and Flood 2014) replaces the Jenkins hash of the five-tuple.
        let mut z = u64::from(flow) ^ self.perturbation;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((((z ^ (z >> 31)) >> 32) * u64::from(self.queues)) >> 32) as usize
    }
}

/// State of one queue.
#[derive(Debug, Default)]
struct Flow {
    queue: Fifo,
    control: Control,
    /// Byte credits. A queue without credits waits for its next turn.
    credits: i64,
    /// Whether the queue is on one of the lists.
    active: bool,
}

#[derive(Debug)]
struct Flows {
    law: Law,
    quantum: i64,
    limit: QueueLimit,
    hash: Option<Hash>,
    queues: Vec<Flow>,
    /// Queues that were empty and have not finished their first turn.
    new: VecDeque<u32>,
    /// All other active queues.
    old: VecDeque<u32>,
    backlog: Backlog,
    /// CoDel's MAXPACKET.
    longest: u32,
}

impl Flows {
    fn remove(&mut self, bytes: u64, packets: u64) {
        self.backlog.bytes -= bytes;
        self.backlog.packets -= packets;
    }

    /// Drops packets from the head of the queue with the most bytes: half of its packets, but at most 64 (RFC 8290 section 4.1). If several
    /// queues have the most bytes, takes the first.
    fn drop_from_longest_queue(&mut self, lost: &mut Vec<(Packet, Cause)>) {
        let fattest = self.queues.iter_mut().rev().max_by_key(|flow| flow.queue.backlog().bytes);
        let queue = &mut fattest.expect("the list of queues is not empty").queue;
        let before = queue.backlog();
        for _ in 0..before.packets.div_ceil(2).min(64) {
            lost.extend(queue.pop().map(|held| (held.packet, Cause::Full)));
        }
        let after = queue.backlog();
        self.remove(before.bytes - after.bytes, before.packets - after.packets);
    }
}

impl Scheduler for Flows {
    fn enqueue(&mut self, now: Time, packet: Packet, lost: &mut Vec<(Packet, Cause)>) {
        let index = self.hash.map_or(packet.flow as usize, |hash| hash.queue(packet.flow));
        if index >= self.queues.len() {
            self.queues.resize_with(index + 1, Flow::default);
        }
        self.longest = self.longest.max(packet.bytes);
        let flow = &mut self.queues[index];
        flow.queue.push(now, packet);
        self.backlog.add(packet.bytes);
        if !flow.active {
            flow.active = true;
            flow.credits = self.quantum;
            self.new.push_back(index as u32);
        }
        while self.backlog.exceeds(self.limit) {
            self.drop_from_longest_queue(lost);
        }
    }

    fn dequeue(&mut self, now: Time, lost: &mut Vec<(Packet, Cause)>) -> Option<Packet> {
        // RFC 8290 section 4.2.
        loop {
            let is_new = !self.new.is_empty();
            let list = if is_new { &mut self.new } else { &mut self.old };
            let index = *list.front()?;
            let flow = &mut self.queues[index as usize];
            if flow.credits <= 0 {
                flow.credits += self.quantum;
                list.pop_front();
                self.old.push_back(index);
                continue;
            }
            let before = flow.queue.backlog();
            let packet = flow.control.dequeue(&self.law, now, &mut flow.queue, self.longest, lost);
            let after = flow.queue.backlog();
            if let Some(packet) = packet {
                flow.credits -= i64::from(packet.bytes);
                self.remove(before.bytes - after.bytes, before.packets - after.packets);
                return Some(packet);
            }
            list.pop_front();
            if is_new {
                // Otherwise a queue that gets a packet now and then would be new every time and starve the old queues.
                self.old.push_back(index);
            } else {
                flow.active = false;
            }
        }
    }

    fn backlog(&self) -> Backlog {
        self.backlog
    }
}

#[cfg(test)]
mod tests;
