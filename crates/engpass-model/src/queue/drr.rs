//! Deficit round robin.
//!
//! Shreedhar and Varghese, "Efficient Fair Queueing Using Deficit Round Robin", IEEE/ACM Transactions on Networking 4(3), 1996 (SIGCOMM
//! 1995), section 3: the `Enqueuing` and `Dequeuing` modules, with buffer stealing when the queue is full.

use std::collections::VecDeque;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::packet_fifo::Fifo;
use super::{Backlog, Cause, DEFAULT_LIMIT, Discipline, Packet, QueueConfig, Scheduler, check_limit};
use crate::random::Stream;
use crate::range_errors::RangeErrors;
use crate::time::Time;
use crate::unit::{QueueLimit, Size};

/// One queue per flow. In each round a flow may send `quantum` bytes plus its unused bytes of earlier rounds (Shreedhar and Varghese 1996).
/// When the limit is exceeded, the longest queue drops its last packet.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Drr {
    /// Bytes that a flow may send per round. With less than the largest packet, some rounds send nothing.
    pub quantum: Size,
    /// Maximum length of all queues together: packets, bytes, or both.
    pub limit: QueueLimit,
}

impl Default for Drr {
    fn default() -> Self {
        // The longest basic Ethernet frame (IEEE 802.3 clause 4.4.2). The paper requires a quantum of at least the longest packet.
        Self { quantum: Size(1518), limit: DEFAULT_LIMIT }
    }
}

impl QueueConfig for Drr {
    fn check(&self, errors: &mut RangeErrors) {
        check_limit("limit", self.limit, errors);
        let cause = "a queue would send too few or too many bytes per round";
        errors.between(&["quantum"], self.quantum.bytes(), (64, 1 << 24), "B", cause);
    }

    fn keeps_order(&self) -> bool {
        false
    }

    fn limit(&self) -> QueueLimit {
        self.limit
    }

    fn build(&self, _random: Stream, _line_rate: u64) -> Discipline {
        Discipline::Service(Box::new(RoundRobin {
            quantum: self.quantum.bytes(),
            limit: self.limit,
            flows: Vec::new(),
            active: VecDeque::new(),
            in_turn: false,
            backlog: Backlog::default(),
        }))
    }
}

/// The queue and the state of one flow.
#[derive(Debug, Default)]
struct Flow {
    queue: Fifo,
    /// DC: bytes that the flow may still send in this round. Meaningful only while the flow is active.
    deficit: u64,
}

#[derive(Debug)]
struct RoundRobin {
    quantum: u64,
    limit: QueueLimit,
    flows: Vec<Flow>,
    /// ActiveList: the flows that have packets, in the order of their turns.
    active: VecDeque<u32>,
    /// Whether the first of `active` has received its quantum for this round.
    in_turn: bool,
    backlog: Backlog,
}

impl RoundRobin {
    /// Removes and returns the last packet of the flow with the most bytes. If several have the most, takes the one with the lowest number.
    fn steal(&mut self) -> Packet {
        let longest = (0..self.flows.len())
            .rev()
            .max_by_key(|flow| self.flows[*flow].queue.backlog().bytes)
            .expect("a queue over its limit holds a packet");
        let flow = &mut self.flows[longest];
        let packet = flow.queue.pop_last().expect("the longest queue is not empty").packet;
        self.backlog.remove(packet.bytes);
        if flow.queue.is_empty() {
            self.in_turn &= self.active.front() != Some(&(longest as u32));
            self.active.retain(|flow| *flow != longest as u32);
        }
        packet
    }
}

impl Scheduler for RoundRobin {
    fn enqueue(&mut self, now: Time, packet: Packet, lost: &mut Vec<(Packet, Cause)>) {
        let index = packet.flow as usize;
        if index >= self.flows.len() {
            self.flows.resize_with(index + 1, Flow::default);
        }
        let flow = &mut self.flows[index];
        if flow.queue.is_empty() {
            // The flow joins at the end of the active list, with no unused bytes of an earlier active period.
            self.active.push_back(packet.flow);
            flow.deficit = 0;
        }
        flow.queue.push(now, packet);
        self.backlog.add(packet.bytes);
        while self.backlog.exceeds(self.limit) {
            lost.push((self.steal(), Cause::Full));
        }
    }

    fn dequeue(&mut self, _now: Time, _lost: &mut Vec<(Packet, Cause)>) -> Option<Packet> {
        loop {
            let flow = &mut self.flows[*self.active.front()? as usize];
            if !self.in_turn {
                flow.deficit += self.quantum;
                self.in_turn = true;
            }
            let bytes = flow.queue.head().expect("an active flow holds a packet").bytes;
            if u64::from(bytes) > flow.deficit {
                self.active.rotate_left(1);
                self.in_turn = false;
                continue;
            }
            flow.deficit -= u64::from(bytes);
            let packet = flow.queue.pop().expect("an active flow holds a packet").packet;
            self.backlog.remove(bytes);
            if flow.queue.is_empty() {
                self.active.pop_front();
                self.in_turn = false;
            }
            return Some(packet);
        }
    }

    fn backlog(&self) -> Backlog {
        self.backlog
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::Ecn;

    fn build(quantum: u64, limit: QueueLimit) -> Box<dyn Scheduler> {
        match (Drr { quantum: Size(quantum), limit }).build(Stream::new(1, "queue"), 1) {
            Discipline::Service(queue) => queue,
            Discipline::Arrival(_) => unreachable!("the queue kind is a scheduler"),
        }
    }

    /// Enqueues packets given as (flow, bytes); their ids are their positions. Returns the ids of dropped packets.
    fn fill(queue: &mut dyn Scheduler, packets: &[(u32, u32)]) -> Vec<u32> {
        let mut lost = Vec::new();
        for (id, (flow, bytes)) in packets.iter().enumerate() {
            let packet =
                Packet { id: id as u32, bytes: *bytes, flow: *flow, priority: 0, ecn: Ecn::NotCapable };
            queue.enqueue(Time::ZERO, packet, &mut lost);
        }
        lost.into_iter().map(|(packet, _)| packet.id).collect()
    }

    fn drain(queue: &mut dyn Scheduler) -> Vec<(u32, u32)> {
        let mut lost = Vec::new();
        std::iter::from_fn(|| queue.dequeue(Time::ZERO, &mut lost))
            .map(|packet| (packet.flow, packet.bytes))
            .collect()
    }

    #[test]
    fn drr_service_order_matches_hand_calculation() {
        // Quantum 500. Flow 0: 200, 750, 20; flow 1: 500, 500; flow 2: 600.
        // Round 1: flow 0 sends 200 (300 left, 750 does not fit); flow 1 sends 500; flow 2 sends nothing (500 left). Round 2: flow 0 has
        // 800, sends 750 and 20 and becomes inactive; flow 1 sends 500 and becomes inactive; flow 2 has 1000 and sends 600.
        let mut queue = build(500, QueueLimit::packets(100));
        fill(&mut *queue, &[(0, 200), (1, 500), (2, 600), (0, 750), (0, 20), (1, 500)]);
        assert_eq!(drain(&mut *queue), [(0, 200), (1, 500), (0, 750), (0, 20), (1, 500), (2, 600)]);
    }

    #[test]
    fn drr_empty_flow_keeps_no_deficit() {
        let mut queue = build(1500, QueueLimit::packets(100));
        fill(&mut *queue, &[(0, 100), (1, 1500)]);
        assert_eq!(drain(&mut *queue), [(0, 100), (1, 1500)]);
        // If flow 0 had kept its 1400 bytes, it would send both packets before flow 1.
        fill(&mut *queue, &[(0, 1500), (0, 1400), (1, 100)]);
        assert_eq!(drain(&mut *queue), [(0, 1500), (1, 100), (0, 1400)]);
    }

    #[test]
    fn drr_drops_from_the_longest_queue() {
        let mut queue = build(1500, QueueLimit::packets(4));
        // When flow 0 arrives, flow 1 has the longest queue and loses its last packet.
        assert_eq!(fill(&mut *queue, &[(1, 500), (1, 500), (1, 500), (0, 40), (0, 40)]), [2]);
        // With a limit in bytes, one long arrival may cause several drops, also from its own queue.
        let mut queue = build(1500, QueueLimit::bytes(2000));
        assert_eq!(fill(&mut *queue, &[(0, 600), (0, 600), (1, 700), (2, 500)]), [1]);
        assert_eq!(fill(&mut *queue, &[(2, 1500)]), [0]);
        assert_eq!(queue.backlog(), Backlog { bytes: 1800, packets: 3 });
    }

    #[test]
    fn drr_flow_that_loses_all_packets_gives_up_its_turn() {
        let mut queue = build(700, QueueLimit::bytes(2000));
        fill(&mut *queue, &[(0, 500), (0, 1400)]);
        assert_eq!(queue.dequeue(Time::ZERO, &mut Vec::new()).map(|sent| sent.bytes), Some(500));
        // Flow 0 has the turn and the longest queue.
        assert_eq!(fill(&mut *queue, &[(1, 300), (2, 301)]).len(), 1);
        assert_eq!(drain(&mut *queue), [(1, 300), (2, 301)]);
    }

    #[test]
    fn drr_drops_only_the_packet_longer_than_the_limit() {
        let mut queue = build(1500, QueueLimit::bytes(1000));
        assert_eq!(fill(&mut *queue, &[(3, 1500)]), [0]);
        assert_eq!(drain(&mut *queue), []);
        assert_eq!(queue.next_ready(Time::ZERO), None);
    }
}
