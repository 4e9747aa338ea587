//! Queue disciplines: what a port does with packets that cannot leave at once.
//!
//! There are two sorts. An [`Admission`] decides when a packet arrives; the port is first in, first out, and an engine knows at the
//! arrival when the packet will leave. A [`Scheduler`] decides when the line is free: it holds the packets, and may
//! drop some that it took.
//!
//! The port counts and sends, the discipline decides. Instants never go back between two calls on one discipline.
//! docs/queues.md says what each kind does, and what it leaves out.

pub mod codel;
pub mod drop_tail;
pub mod drr;
mod fifo;
pub mod fq_codel;
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

use crate::complaint::Complaints;
use crate::family::family;
use crate::random::Stream;
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
    /// What is wrong with the values; paths begin in the kind's own table.
    fn check(&self, complaints: &mut Complaints);

    /// What a port with this discipline holds at most.
    fn limit(&self) -> QueueLimit;

    /// The discipline of one new port on a line of `line_rate` bit/s (not zero), which draws from `random` if it draws at all.
    /// The values have been checked.
    fn build(&self, random: Stream, line_rate: u64) -> Discipline;
}

impl Queue {
    /// What is wrong with the values; paths begin with the kind.
    pub fn check(&self, complaints: &mut Complaints) {
        let mut inner = Complaints::default();
        self.config().check(&mut inner);
        complaints.under(&[self.kind()], inner);
    }

    /// What is wrong with the values; paths begin with the `queue` of the table at hand.
    pub fn check_below(&self, complaints: &mut Complaints) {
        let mut own = Complaints::default();
        self.check(&mut own);
        complaints.under(&["queue"], own);
    }

    /// What a port with this discipline holds at most.
    pub fn limit(&self) -> QueueLimit {
        self.config().limit()
    }

    /// The discipline of one new port: see [`QueueConfig::build`].
    pub fn build(&self, random: Stream, line_rate: u64) -> Discipline {
        self.config().build(random, line_rate)
    }
}

impl Default for Queue {
    fn default() -> Self {
        Self::DropTail(DropTail::default())
    }
}

/// The discipline of one port.
pub enum Discipline {
    /// First in, first out, and everything is decided when a packet arrives.
    Arrival(Box<dyn Admission>),
    /// Decides when the line is free, and holds the packets until then.
    Service(Box<dyn Scheduler>),
}

/// What the IP header of a packet says about congestion (RFC 3168 section 5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Ecn {
    /// Not-ECT: congestion is told by loss alone.
    #[default]
    NotCapable,
    /// ECT(0) or ECT(1): it may be marked.
    Capable,
    /// CE: it has been marked.
    Marked,
}

/// A packet as a discipline sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet {
    /// The engine's handle; disciplines only hand it back.
    pub id: u32,
    /// Bytes that count in the queue: the frame with its headers.
    pub bytes: u32,
    /// Its flow. Flows are numbered from 0 without large gaps: disciplines have a table of them.
    pub flow: u32,
    /// Its priority code point (IEEE 802.1Q), 0 to 7.
    pub priority: u8,
    /// What its IP header says about congestion.
    pub ecn: Ecn,
}

impl Packet {
    /// Whether it can be marked instead of dropped, or is marked already.
    pub fn takes_marks(&self) -> bool {
        self.ecn != Ecn::NotCapable
    }
}

/// Why a discipline drops a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Cause {
    /// There was no room.
    Full,
    /// RED dropped it before the queue was full.
    Early,
    /// CoDel dropped it, because packets wait too long.
    CoDel,
    /// It is exceeds token bucket burst of a token bucket and would wait for ever.
    LongerThanBurst,
}

impl Cause {
    /// Every cause.
    pub const ALL: [Self; 4] = [Self::Full, Self::Early, Self::CoDel, Self::LongerThanBurst];

    /// The words for it in a table of drops.
    pub const fn text(self) -> &'static str {
        match self {
            Self::Full => "buffer full",
            Self::Early => "early drop",
            Self::CoDel => "codel",
            Self::LongerThanBurst => "exceeds token bucket burst",
        }
    }
}

/// How much a queue holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Backlog {
    /// Bytes, as [`Packet::bytes`] counts them.
    pub bytes: u64,
    /// Packets.
    pub packets: u64,
}

impl Backlog {
    /// Whether one more packet of so many bytes stays within the limit.
    #[inline]
    pub fn has_room(self, limit: QueueLimit, bytes: u32) -> bool {
        self.packets < limit.packets
            && self.bytes.checked_add(u64::from(bytes)).is_some_and(|sum| sum <= limit.bytes)
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

/// A first in, first out port as an [`Admission`] sees it when a packet arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortView {
    /// What it has accepted that has not left; the packet being sent counts in full.
    pub backlog: Backlog,
    /// Where it holds nothing: since when; the beginning of the run if it never held anything.
    pub idle_since: Option<Time>,
}

/// What becomes of an arriving packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It joins the queue.
    Accept {
        /// It is given the CE mark; only where it [takes marks](Packet::takes_marks).
        mark: bool,
    },
    /// It is lost.
    Drop(Cause),
}

/// Decides about packets when they arrive at a first in, first out port.
pub trait Admission: Send {
    /// What becomes of `packet`. It is asked once for every packet, in the order of arrival.
    fn admit(&mut self, now: Time, port: PortView, packet: &Packet) -> Verdict;

    /// The limit, of a discipline that accepts what has room in it, marks nothing and drops the rest for [`Cause::Full`].
    fn only_limit(&self) -> Option<QueueLimit> {
        None
    }
}

/// Holds packets and decides which one leaves when the line is free.
///
/// The packet being sent is no longer in it. `lost` is only pushed to; what was there stays.
pub trait Scheduler: Send {
    /// Take a packet that arrives. What is lost for it, itself perhaps, goes to `lost`.
    fn enqueue(&mut self, now: Time, packet: Packet, lost: &mut Vec<(Packet, Cause)>);

    /// The packet to be sent from now on, marked where the discipline marks. Packets that it drops on the way go to `lost`.
    /// `None` where it holds none, or none that may leave yet: then [`next_ready`](Self::next_ready) says when.
    fn dequeue(&mut self, now: Time, lost: &mut Vec<(Packet, Cause)>) -> Option<Packet>;

    /// The first instant from `now` on at which a `dequeue` gives a packet if none arrives before; `None` where it holds none.
    fn next_ready(&self, now: Time) -> Option<Time> {
        (self.backlog().packets > 0).then_some(now)
    }

    /// What it holds.
    fn backlog(&self) -> Backlog;
}

/// What a queue holds at most by default: 1000 packets, the transmit queue of a Linux interface (`DEFAULT_TX_QUEUE_LEN`).
const DEFAULT_LIMIT: QueueLimit = QueueLimit::packets(1000);
/// The largest queue, in bytes.
const MAX_BYTES: u64 = 1 << 30;
/// The largest queue, in packets.
const MAX_PACKETS: u64 = 10_000_000;

/// Complain about a limit under which nothing fits, or that no port has.
fn check_limit(key: &'static str, limit: QueueLimit, complaints: &mut Complaints) {
    if limit.packets == 0 || limit.bytes == 0 {
        complaints.add(&[key], "nothing fits in it", "give at least `1 packet`");
    }
    let too_many = |value: u64, most: u64| value != u64::MAX && value > most;
    if too_many(limit.packets, MAX_PACKETS) || too_many(limit.bytes, MAX_BYTES) {
        complaints.add(&[key], "no port holds that", format!("give at most {MAX_PACKETS} packets and 1 GiB"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::unit::{BufferSize, Duration, Size};

    #[test]
    fn complaints_name_the_kind() {
        let queue = Queue::CoDel(CoDel { target: Duration(0), ..CoDel::default() });
        let mut complaints = Complaints::default();
        queue.check(&mut complaints);
        let paths: Vec<_> = complaints.into_iter().map(|complaint| complaint.path).collect();
        assert_eq!(paths, [["codel", "target"]]);
    }

    #[test]
    fn values_that_cannot_be_are_refused() {
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
            let mut complaints = Complaints::default();
            queue.check(&mut complaints);
            assert_eq!(complaints.into_iter().count(), 1, "{queue:?}");
        }
    }

    #[test]
    fn what_is_left_out_has_a_default() {
        for kind in Queue::KINDS.iter().filter(|kind| **kind != "token-bucket") {
            let queue: Queue =
                serde_json::from_value(serde_json::json!(kind)).expect("the kind alone is enough");
            let mut complaints = Complaints::default();
            queue.check(&mut complaints);
            assert_eq!(complaints, Complaints::default(), "{kind}");
            let text = serde_json::to_value(&queue).expect("it can be written");
            assert_eq!(serde_json::from_value::<Queue>(text).expect("and read again"), queue);
        }
    }
}
