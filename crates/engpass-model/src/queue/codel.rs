//! CoDel, controlled delay (RFC 8289).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::packet_fifo::{Fifo, Held};
use super::{Backlog, Cause, DEFAULT_LIMIT, Discipline, Ecn, Packet, QueueConfig, Scheduler, check_limit};
use crate::random::Stream;
use crate::range_errors::{LONGEST, RangeErrors};
use crate::time::Time;
use crate::unit::{Duration, QueueLimit};

/// FIFO with controlled delay (RFC 8289). When packets have waited longer than `target` for a whole `interval`, packets are dropped at the
/// head, at an increasing rate.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct CoDel {
    /// TARGET: the acceptable waiting time.
    pub target: Duration,
    /// INTERVAL: how long the waiting time may exceed `target` before packets are dropped; about the longest round-trip time.
    pub interval: Duration,
    /// Whether ECN-capable packets are marked instead of dropped.
    pub ecn: bool,
    /// Maximum queue length: packets, bytes, or both.
    pub limit: QueueLimit,
}

impl Default for CoDel {
    fn default() -> Self {
        // RFC 8289 section 4. The limit is that of Linux.
        Self { target: TARGET, interval: INTERVAL, ecn: false, limit: DEFAULT_LIMIT }
    }
}

/// 5 ms, RFC 8289 section 4.
pub(super) const TARGET: Duration = Duration(5_000_000_000);
/// 100 ms, RFC 8289 section 4.
pub(super) const INTERVAL: Duration = Duration(100_000_000_000);

/// Adds an error for `target` and `interval` if the control law cannot work with them.
pub(super) fn check_times(target: Duration, interval: Duration, errors: &mut RangeErrors) {
    errors.positive(&["target"], target, LONGEST);
    errors.positive(&["interval"], interval, LONGEST);
    if target > interval && interval.0 > 0 {
        let cause = format!("it is longer than `interval`, which is {interval}");
        errors.add(&["target"], cause, "give 5 % to 10 % of `interval` (RFC 8289 section 4)");
    }
}

impl QueueConfig for CoDel {
    fn check(&self, errors: &mut RangeErrors) {
        check_times(self.target, self.interval, errors);
        check_limit("limit", self.limit, errors);
    }

    fn limit(&self) -> QueueLimit {
        self.limit
    }

    fn build(&self, _random: Stream, _line_rate: u64) -> Discipline {
        Discipline::Service(Box::new(Controlled {
            law: Law::new(self.target, self.interval, self.ecn),
            limit: self.limit,
            queue: Fifo::default(),
            control: Control::default(),
            longest: 0,
        }))
    }

    fn marks(&self) -> bool {
        self.ecn
    }
}

/// Parameters of the control loop.
#[derive(Clone, Copy, Debug)]
pub(super) struct Law {
    target: u64,
    interval: u64,
    ecn: bool,
}

impl Law {
    pub(super) fn new(target: Duration, interval: Duration, ecn: bool) -> Self {
        Self { target: target.0, interval: interval.0, ecn }
    }

    /// `control_law` of the RFC: `from + INTERVAL / sqrt(count)`. The quotient is exact but for rounding down to a picosecond.
    fn next(&self, from: Time, count: u64) -> Time {
        let square = u128::from(self.interval) * u128::from(self.interval);
        Time(from.0.saturating_add((square / u128::from(count)).isqrt() as u64))
    }
}

/// State of the control loop of one queue (RFC 8289 section 5).
#[derive(Debug, Default)]
pub(super) struct Control {
    /// `first_above_time_`; `None` corresponds to 0 in the RFC.
    first_above: Option<Time>,
    drop_next: Time,
    count: u64,
    last_count: u64,
    dropping: bool,
}

impl Control {
    /// `dodequeue` (RFC 8289 section 5): takes the head of the queue and returns it, with whether it may be dropped. `longest` is
    /// MAXPACKET.
    fn take(&mut self, law: &Law, now: Time, queue: &mut Fifo, longest: u32) -> Option<(Held, bool)> {
        let Some(held) = queue.pop() else {
            self.first_above = None;
            return None;
        };
        let wait = now.saturating_sub(held.arrived).0;
        if wait < law.target || queue.backlog().bytes <= u64::from(longest) {
            self.first_above = None;
            return Some((held, false));
        }
        match self.first_above {
            None => {
                self.first_above = Some(Time(now.0.saturating_add(law.interval)));
                Some((held, false))
            }
            Some(first_above) => Some((held, now >= first_above)),
        }
    }

    /// `deque` (RFC 8289 section 5): returns the packet to send and adds dropped packets to `lost`. A marked packet is sent, not dropped.
    pub(super) fn dequeue(
        &mut self,
        law: &Law,
        now: Time,
        queue: &mut Fifo,
        longest: u32,
        lost: &mut Vec<(Packet, Cause)>,
    ) -> Option<Packet> {
        let Some((mut held, mut may_drop)) = self.take(law, now, queue, longest) else {
            self.dropping = false;
            return None;
        };
        if self.dropping {
            self.dropping = may_drop;
            while self.dropping && now >= self.drop_next {
                self.count += 1;
                if law.ecn && held.packet.takes_marks() {
                    held.packet.ecn = Ecn::Marked;
                    self.drop_next = law.next(self.drop_next, self.count);
                    break;
                }
                lost.push((held.packet, Cause::CoDel));
                (held, may_drop) = self.after_a_drop(law, now, queue, longest);
                if may_drop {
                    self.drop_next = law.next(self.drop_next, self.count);
                } else {
                    self.dropping = false;
                }
            }
        } else if may_drop {
            if law.ecn && held.packet.takes_marks() {
                held.packet.ecn = Ecn::Marked;
            } else {
                lost.push((held.packet, Cause::CoDel));
                (held, _) = self.after_a_drop(law, now, queue, longest);
            }
            self.dropping = true;
            // "If min went above TARGET close to when it last went below, assume that the drop rate that controlled the queue
            // on the last cycle is a good starting point."
            let delta = self.count - self.last_count;
            let recent = now.saturating_sub(self.drop_next).0 < law.interval.saturating_mul(16);
            self.count = if delta > 1 && recent { delta } else { 1 };
            self.drop_next = law.next(now, self.count);
            self.last_count = self.count;
        }
        Some(held.packet)
    }

    fn after_a_drop(&mut self, law: &Law, now: Time, queue: &mut Fifo, longest: u32) -> (Held, bool) {
        self.take(law, now, queue, longest).expect("a queue that CoDel drops from holds another packet")
    }
}

#[derive(Debug)]
struct Controlled {
    law: Law,
    limit: QueueLimit,
    queue: Fifo,
    control: Control,
    /// MAXPACKET: length of the longest packet so far, as in ns-2. If all packets have the same length, it equals the maximum in the RFC,
    /// the MTU.
    longest: u32,
}

impl Scheduler for Controlled {
    fn enqueue(&mut self, now: Time, packet: Packet, lost: &mut Vec<(Packet, Cause)>) {
        if self.queue.backlog().has_room(self.limit, packet.bytes) {
            self.longest = self.longest.max(packet.bytes);
            self.queue.push(now, packet);
        } else {
            lost.push((packet, Cause::Full));
        }
    }

    fn dequeue(&mut self, now: Time, lost: &mut Vec<(Packet, Cause)>) -> Option<Packet> {
        self.control.dequeue(&self.law, now, &mut self.queue, self.longest, lost)
    }

    fn backlog(&self) -> Backlog {
        self.queue.backlog()
    }
}

#[cfg(test)]
mod tests;
