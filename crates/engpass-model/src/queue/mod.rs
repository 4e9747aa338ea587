//! Queue disciplines: what an output port does with packets that cannot be sent immediately.
//!
//! There are two kinds. An [`Admission`] decides when a packet arrives. Its port is a FIFO, so the engine knows the departure time at
//! arrival. A [`Scheduler`] decides when the line is free. It holds the packets and may drop packets that it accepted earlier.
//!
//! The port counts and sends packets; the discipline only decides. The times passed to one discipline never decrease. `docs/queues.md`
//! describes each kind and its simplifications.

pub mod codel;
pub mod drop_tail;
pub mod drr;
pub mod fq_codel;
mod packet_fifo;
pub mod priority;
pub mod red;
pub mod token_bucket;

pub use codel::CoDel;
pub use drop_tail::DropTail;
pub use drr::Drr;
pub use fq_codel::FqCoDel;
pub use priority::Priority;
pub use red::Red;
pub use token_bucket::TokenBucket;

use crate::component_family::family;
use crate::random::Stream;
use crate::range_errors::RangeErrors;
use crate::time::Time;
use crate::unit::QueueLimit;

family! {
    /// A queue discipline, by its kind.
    Queue, "queue discipline": QueueConfig {
        "drop-tail" => DropTail(DropTail),
        "red" => Red(Red),
        "codel" => CoDel(CoDel),
        "fq-codel" => FqCoDel(FqCoDel),
        "priority" => Priority(Priority),
        "drr" => Drr(Drr),
        "token-bucket" => TokenBucket(TokenBucket),
    }
}

/// The settings of a queue discipline.
pub trait QueueConfig {
    /// Adds an error for every invalid value. Paths begin in the kind's own table.
    fn check(&self, errors: &mut RangeErrors);

    /// Maximum queue length of a port with this discipline.
    fn limit(&self) -> QueueLimit;

    /// Creates the discipline of one output port on a line of `line_rate` bit/s (not zero). Random disciplines draw from `random`. The
    /// values must have been checked.
    fn build(&self, random: Stream, line_rate: u64) -> Discipline;

    /// Whether its disciplines mark ECN-capable packets instead of dropping them.
    fn marks(&self) -> bool {
        false
    }

    /// Whether packets leave in the order of their arrival, one whenever the line is free.
    fn keeps_order(&self) -> bool {
        true
    }

    /// Whether its disciplines draw random numbers, so that their decisions depend on the seed.
    fn draws(&self) -> bool {
        false
    }
}

impl Queue {
    /// Adds an error for every invalid value. Paths begin with the kind.
    pub fn check(&self, errors: &mut RangeErrors) {
        let mut inner = RangeErrors::default();
        self.config().check(&mut inner);
        errors.under(&[self.kind()], inner);
    }

    /// Adds an error for every invalid value. Paths begin with the key `queue` of the enclosing table.
    pub fn check_below(&self, errors: &mut RangeErrors) {
        let mut own = RangeErrors::default();
        self.check(&mut own);
        errors.under(&["queue"], own);
    }

    /// Maximum queue length of a port with this discipline.
    pub fn limit(&self) -> QueueLimit {
        self.config().limit()
    }

    /// Creates the discipline of one output port; see [`QueueConfig::build`].
    pub fn build(&self, random: Stream, line_rate: u64) -> Discipline {
        self.config().build(random, line_rate)
    }
}

impl Default for Queue {
    fn default() -> Self {
        Self::DropTail(DropTail::default())
    }
}

/// The queue discipline of one output port.
pub enum Discipline {
    /// A FIFO that decides when a packet arrives.
    Arrival(Box<dyn Admission>),
    /// A scheduler, which holds packets and decides when the line is free.
    Service(Box<dyn Scheduler>),
}

/// ECN codepoint in the IP header of a packet (RFC 3168 section 5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Ecn {
    /// Not-ECT: congestion is signalled by loss only.
    #[default]
    NotCapable,
    /// ECT(0) or ECT(1): the packet may be marked.
    Capable,
    /// CE: the packet has been marked.
    Marked,
}

/// A packet as a queue discipline sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet {
    /// The engine's handle; disciplines only pass it through.
    pub id: u32,
    /// Length in bytes that counts in the queue: the frame with its headers.
    pub bytes: u32,
    /// Number of the flow. Disciplines keep tables indexed by flow, so numbers start at 0 and have no large gaps.
    pub flow: u32,
    /// Priority code point (IEEE 802.1Q), 0 to 7.
    pub priority: u8,
    /// ECN codepoint of the IP header.
    pub ecn: Ecn,
}

impl Packet {
    /// Whether the packet can be marked instead of dropped, or is already marked.
    pub fn takes_marks(&self) -> bool {
        self.ecn != Ecn::NotCapable
    }
}

/// Why a discipline dropped a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Cause {
    /// The queue was full.
    Full,
    /// RED dropped the packet before the queue was full.
    Early,
    /// CoDel dropped the packet because packets waited too long.
    CoDel,
    /// The packet exceeds the burst of the token bucket and could never be sent.
    LongerThanBurst,
}

impl Cause {
    /// All causes.
    pub const ALL: [Self; 4] = [Self::Full, Self::Early, Self::CoDel, Self::LongerThanBurst];

    /// Name of the cause in a table of drops.
    pub const fn text(self) -> &'static str {
        match self {
            Self::Full => "buffer full",
            Self::Early => "early drop",
            Self::CoDel => "codel",
            Self::LongerThanBurst => "exceeds token bucket burst",
        }
    }
}

/// Content of a queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Backlog {
    /// Bytes, in terms of [`Packet::bytes`].
    pub bytes: u64,
    /// Packets.
    pub packets: u64,
}

impl Backlog {
    /// Whether one more packet of `bytes` bytes stays within the limit.
    #[inline]
    pub fn has_room(self, limit: QueueLimit, bytes: u32) -> bool {
        self.packets < limit.packets
            && self.bytes.checked_add(u64::from(bytes)).is_some_and(|sum| sum <= limit.bytes)
    }

    /// Returns the backlog with one more packet of `bytes` bytes.
    #[inline]
    #[must_use]
    pub fn with(self, bytes: u32) -> Self {
        Self { bytes: self.bytes + u64::from(bytes), packets: self.packets + 1 }
    }

    /// Returns the sum of both.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self { bytes: self.bytes + other.bytes, packets: self.packets + other.packets }
    }

    fn exceeds(self, limit: QueueLimit) -> bool {
        self.packets > limit.packets || self.bytes > limit.bytes
    }

    fn add(&mut self, bytes: u32) {
        self.packets += 1;
        self.bytes += u64::from(bytes);
    }

    fn remove(&mut self, bytes: u32) {
        self.packets -= 1;
        self.bytes -= u64::from(bytes);
    }
}

/// A FIFO port as an [`Admission`] sees it when a packet arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortView {
    /// Accepted packets that have not left. The packet in transmission counts in full.
    pub backlog: Backlog,
    /// If the port is empty, the time since when, or the beginning of the run if it never held a packet.
    pub idle_since: Option<Time>,
}

/// Decision about an arriving packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The packet joins the queue.
    Accept {
        /// Whether the packet gets the CE mark. Only true if it [takes marks](Packet::takes_marks).
        mark: bool,
    },
    /// The packet is dropped.
    Drop(Cause),
}

/// A discipline that decides about packets when they arrive at a FIFO port.
pub trait Admission: Send {
    /// Decides about `packet`. Called once for every packet, in the order of arrival.
    fn admit(&mut self, now: Time, port: PortView, packet: &Packet) -> Verdict;

    /// The limit, if the discipline is a pure tail drop: it accepts packets within the limit, marks none and drops the rest with
    /// [`Cause::Full`].
    fn only_limit(&self) -> Option<QueueLimit> {
        None
    }
}

/// A discipline that holds packets and decides which one to send when the line is free.
///
/// It no longer holds the packet in transmission. Calls only append to `lost`.
pub trait Scheduler: Send {
    /// Accepts an arriving packet. Dropped packets, possibly the new one, are added to `lost`.
    fn enqueue(&mut self, now: Time, packet: Packet, lost: &mut Vec<(Packet, Cause)>);

    /// Removes and returns the packet to send now, marked if the discipline marks it. Packets dropped on the way are added to `lost`.
    /// Returns `None` if the discipline holds no packet, or none that may leave yet; see [`next_ready`](Self::next_ready).
    fn dequeue(&mut self, now: Time, lost: &mut Vec<(Packet, Cause)>) -> Option<Packet>;

    /// The first time from `now` on at which `dequeue` returns a packet if none arrives before. `None` if the discipline holds no packet.
    fn next_ready(&self, now: Time) -> Option<Time> {
        (self.backlog().packets > 0).then_some(now)
    }

    /// Packets and bytes that the discipline holds.
    fn backlog(&self) -> Backlog;
}

/// Default maximum queue length: 1000 packets, as for the transmit queue of a Linux interface (`DEFAULT_TX_QUEUE_LEN`).
const DEFAULT_LIMIT: QueueLimit = QueueLimit::packets(1000);
/// Maximum of a queue limit in bytes.
const MAX_BYTES: u64 = 1 << 30;
/// Maximum of a queue limit in packets.
const MAX_PACKETS: u64 = 10_000_000;

/// Adds an error for a limit of zero, or one that is larger than any port.
fn check_limit(key: &'static str, limit: QueueLimit, errors: &mut RangeErrors) {
    if limit.packets == 0 || limit.bytes == 0 {
        errors.add(&[key], "no packet fits into the queue", "give at least `1 packet`");
    }
    let too_many = |value: u64, most: u64| value != u64::MAX && value > most;
    if too_many(limit.packets, MAX_PACKETS) || too_many(limit.bytes, MAX_BYTES) {
        errors.add(
            &[key],
            "too large for the buffer of a port",
            format!("give at most {MAX_PACKETS} packets and 1 GiB"),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::unit::{BufferSize, Duration, Size};

    #[test]
    fn range_errors_name_the_queue_kind() {
        let queue = Queue::CoDel(CoDel { target: Duration(0), ..CoDel::default() });
        let mut errors = RangeErrors::default();
        queue.check(&mut errors);
        let paths: Vec<_> = errors.into_iter().map(|complaint| complaint.path).collect();
        assert_eq!(paths, [["codel", "target"]]);
    }

    #[test]
    fn queue_rejects_invalid_values() {
        let bad = [
            Queue::DropTail(DropTail { limit: QueueLimit::packets(0), ..DropTail::default() }),
            Queue::DropTail(DropTail { limit: QueueLimit::bytes(MAX_BYTES + 1), ..DropTail::default() }),
            Queue::DropTail(DropTail {
                ecn_threshold: Some(BufferSize::Packets(1000)),
                ..DropTail::default()
            }),
            Queue::Red(Red { min: BufferSize::Bytes(5000), ..Red::default() }),
            Queue::Red(Red { min: BufferSize::Packets(15), ..Red::default() }),
            Queue::Red(Red { weight_log2: 25, ..Red::default() }),
            Queue::CoDel(CoDel { target: Duration(101_000_000_000), ..CoDel::default() }),
            Queue::FqCoDel(FqCoDel { quantum: Size(0), ..FqCoDel::default() }),
            Queue::FqCoDel(FqCoDel { queues: Some(0), ..FqCoDel::default() }),
            Queue::Drr(Drr { quantum: Size(1), ..Drr::default() }),
            Queue::Priority(Priority { limit: QueueLimit::bytes(0) }),
        ];
        for queue in bad {
            let mut errors = RangeErrors::default();
            queue.check(&mut errors);
            assert_eq!(errors.into_iter().count(), 1, "{queue:?}");
        }
    }

    #[test]
    fn queue_kind_without_keys_is_valid_and_round_trips() {
        for kind in Queue::KINDS.iter().filter(|kind| **kind != "token-bucket") {
            let queue: Queue =
                serde_json::from_value(serde_json::json!(kind)).expect("a queue kind needs no keys");
            let mut errors = RangeErrors::default();
            queue.check(&mut errors);
            assert_eq!(errors, RangeErrors::default(), "{kind}");
            let text = serde_json::to_value(&queue).expect("the value serializes to JSON");
            assert_eq!(serde_json::from_value::<Queue>(text).expect("the written JSON is readable"), queue);
        }
    }
}
