//! Strict priority by the priority code point.
//!
//! IEEE 802.1Q-2022 section 8.6.8.1 (strict priority transmission selection), with eight traffic classes, class = priority.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::packet_fifo::Fifo;
use super::{Backlog, Cause, DEFAULT_LIMIT, Discipline, Packet, QueueConfig, Scheduler, check_limit};
use crate::random::Stream;
use crate::range_errors::RangeErrors;
use crate::time::Time;
use crate::unit::QueueLimit;

/// Eight queues with strict priority: 7 before 6, and so on down to 0 (IEEE 802.1Q). A packet in transmission is not preempted.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Priority {
    /// Maximum length of each of the eight queues: packets, bytes, or both.
    pub limit: QueueLimit,
}

impl Default for Priority {
    fn default() -> Self {
        Self { limit: DEFAULT_LIMIT }
    }
}

impl QueueConfig for Priority {
    fn check(&self, errors: &mut RangeErrors) {
        check_limit("limit", self.limit, errors);
    }

    fn keeps_order(&self) -> bool {
        false
    }

    fn limit(&self) -> QueueLimit {
        self.limit
    }

    fn build(&self, _random: Stream, _line_rate: u64) -> Discipline {
        Discipline::Service(Box::new(Classes { limit: self.limit, classes: Default::default() }))
    }
}

/// The queues of a port, indexed by priority.
#[derive(Debug)]
struct Classes {
    limit: QueueLimit,
    classes: [Fifo; 8],
}

impl Scheduler for Classes {
    fn enqueue(&mut self, now: Time, packet: Packet, lost: &mut Vec<(Packet, Cause)>) {
        let class = &mut self.classes[usize::from(packet.priority.min(7))];
        if class.backlog().has_room(self.limit, packet.bytes) {
            class.push(now, packet);
        } else {
            lost.push((packet, Cause::Full));
        }
    }

    fn dequeue(&mut self, _now: Time, _lost: &mut Vec<(Packet, Cause)>) -> Option<Packet> {
        self.classes.iter_mut().rev().find_map(Fifo::pop).map(|held| held.packet)
    }

    fn backlog(&self) -> Backlog {
        self.classes.iter().fold(Backlog::default(), |sum, class| Backlog {
            bytes: sum.bytes + class.backlog().bytes,
            packets: sum.packets + class.backlog().packets,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::Ecn;

    #[test]
    fn priority_serves_highest_class_first_and_limits_each_class() {
        let config = Priority { limit: QueueLimit::packets(2) };
        let Discipline::Service(mut queue) = config.build(Stream::new(1, "queue"), 1) else { unreachable!() };
        let mut lost = Vec::new();
        for (id, priority) in [(0, 0), (1, 0), (2, 0), (3, 7), (4, 3), (5, 7), (6, 7)] {
            let packet = Packet { id, bytes: 100, flow: 0, priority, ecn: Ecn::NotCapable };
            queue.enqueue(Time::ZERO, packet, &mut lost);
        }
        let ids: Vec<_> = lost.iter().map(|(packet, cause)| (packet.id, *cause)).collect();
        assert_eq!(ids, [(2, Cause::Full), (6, Cause::Full)]);
        assert_eq!(queue.backlog(), Backlog { bytes: 500, packets: 5 });
        let order: Vec<_> =
            std::iter::from_fn(|| queue.dequeue(Time::ZERO, &mut lost)).map(|packet| packet.id).collect();
        assert_eq!(order, [3, 5, 4, 0, 1]);
        assert_eq!(queue.next_ready(Time(9)), None);
    }
}
