//! Drop tail, with optional DCTCP marking by the queue length at arrival.
//!
//! Marking: RFC 8257 section 3.1; Alizadeh et al., "Data Center TCP (DCTCP)", SIGCOMM 2010, section 3.1.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Admission, DEFAULT_LIMIT, Discipline, Packet, PortView, QueueConfig, Verdict, check_limit};
use super::{Backlog, Cause};
use crate::random::Stream;
use crate::range_errors::RangeErrors;
use crate::time::Time;
use crate::unit::{BufferSize, QueueLimit};

/// FIFO that drops packets that do not fit. With `ecn_threshold`, ECN-capable packets are marked while the queue is longer than the
/// threshold (DCTCP, RFC 8257).
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct DropTail {
    /// Maximum queue length, the packet in transmission included: packets, bytes, or both.
    pub limit: QueueLimit,
    /// DCTCP's K: an ECN-capable packet is marked if it finds more than this in the queue. No marking if not given.
    pub ecn_threshold: Option<BufferSize>,
}

impl Default for DropTail {
    fn default() -> Self {
        Self { limit: DEFAULT_LIMIT, ecn_threshold: None }
    }
}

impl QueueConfig for DropTail {
    fn check(&self, errors: &mut RangeErrors) {
        check_limit("limit", self.limit, errors);
        let never = match self.ecn_threshold {
            Some(BufferSize::Packets(packets)) => packets >= self.limit.packets,
            Some(BufferSize::Bytes(bytes)) => bytes >= self.limit.bytes,
            None => false,
        };
        if never {
            let cause = format!("the queue holds at most {}, so no packet is ever marked", self.limit);
            errors.add(&["ecn_threshold"], cause, "give less than `limit`");
        }
    }

    fn limit(&self) -> QueueLimit {
        self.limit
    }

    fn build(&self, _random: Stream, _line_rate: u64) -> Discipline {
        Discipline::Arrival(Box::new(self.clone()))
    }

    fn marks(&self) -> bool {
        self.ecn_threshold.is_some()
    }
}

/// The discipline has no state besides its config.
impl Admission for DropTail {
    fn admit(&mut self, _now: Time, port: PortView, packet: &Packet) -> Verdict {
        if !port.backlog.has_room(self.limit, packet.bytes) {
            return Verdict::Drop(Cause::Full);
        }
        let above = self.ecn_threshold.is_some_and(|threshold| is_above(port.backlog, threshold));
        Verdict::Accept { mark: above && packet.takes_marks() }
    }

    fn only_limit(&self) -> Option<QueueLimit> {
        self.ecn_threshold.is_none().then_some(self.limit)
    }
}

/// Whether the queue is above the threshold. The arriving packet is not counted: DCTCP uses the occupancy that it finds.
fn is_above(backlog: Backlog, threshold: BufferSize) -> bool {
    match threshold {
        BufferSize::Packets(packets) => backlog.packets > packets,
        BufferSize::Bytes(bytes) => backlog.bytes > bytes,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::Ecn;

    fn verdict(queue: &DropTail, (packets, bytes): (u64, u64), length: u32, ecn: Ecn) -> Verdict {
        let packet = Packet { id: 0, bytes: length, flow: 0, priority: 0, ecn };
        let port = PortView { backlog: Backlog { bytes, packets }, idle_since: None };
        queue.clone().admit(Time::ZERO, port, &packet)
    }

    const ACCEPT: Verdict = Verdict::Accept { mark: false };
    const MARK: Verdict = Verdict::Accept { mark: true };
    const FULL: Verdict = Verdict::Drop(Cause::Full);

    #[test]
    fn drop_tail_accepts_a_packet_that_fits_exactly() {
        let bytes = DropTail { limit: QueueLimit::bytes(3000), ..DropTail::default() };
        assert_eq!(verdict(&bytes, (1, 1500), 1500, Ecn::NotCapable), ACCEPT);
        assert_eq!(verdict(&bytes, (1, 1501), 1500, Ecn::NotCapable), FULL);
        assert_eq!(verdict(&bytes, (1, 1501), 64, Ecn::NotCapable), ACCEPT, "a shorter packet fits");
        let packets = DropTail { limit: QueueLimit::packets(2), ..DropTail::default() };
        assert_eq!(verdict(&packets, (1, 64_000), 1500, Ecn::NotCapable), ACCEPT);
        assert_eq!(verdict(&packets, (2, 80), 40, Ecn::NotCapable), FULL);
        let both = DropTail { limit: QueueLimit { packets: 2, bytes: 3000 }, ..DropTail::default() };
        assert_eq!(verdict(&both, (2, 80), 40, Ecn::NotCapable), FULL);
        assert_eq!(verdict(&both, (1, 2000), 1500, Ecn::NotCapable), FULL);
        assert_eq!(verdict(&both, (1, 1500), 1500, Ecn::NotCapable), ACCEPT);
    }

    #[test]
    fn drop_tail_marks_above_the_ecn_threshold_and_not_at_it() {
        let queue =
            DropTail { limit: QueueLimit::packets(100), ecn_threshold: Some(BufferSize::Packets(20)) };
        assert_eq!(verdict(&queue, (20, 30_000), 1500, Ecn::Capable), ACCEPT);
        assert_eq!(verdict(&queue, (21, 31_500), 1500, Ecn::Capable), MARK);
        assert_eq!(verdict(&queue, (21, 31_500), 1500, Ecn::Marked), MARK);
        assert_eq!(
            verdict(&queue, (21, 31_500), 1500, Ecn::NotCapable),
            ACCEPT,
            "a packet without ECN is not marked"
        );
        assert_eq!(
            verdict(&queue, (100, 150_000), 1500, Ecn::Capable),
            FULL,
            "a full queue drops ECN packets"
        );
        let bytes = DropTail { ecn_threshold: Some(BufferSize::Bytes(30_000)), ..queue };
        assert_eq!(verdict(&bytes, (20, 30_000), 1500, Ecn::Capable), ACCEPT);
        assert_eq!(verdict(&bytes, (20, 30_001), 1500, Ecn::Capable), MARK);
    }
}
