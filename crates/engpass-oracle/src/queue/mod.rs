//! Queue disciplines, implemented from docs/queues.md. They keep plain lists and sum up lengths each time.

mod codel;
mod drr;
mod fq_codel;
mod priority;
mod red;
mod token_bucket;

use std::collections::VecDeque;

use engpass_model::queue::{DropTail, Queue};
use engpass_model::random::Stream;
use engpass_model::unit::{BufferSize, QueueLimit};

use codel::CoDel;
use drr::Drr;
use fq_codel::FqCoDel;
use priority::Priority;
use red::Red;
use token_bucket::TokenBucket;

/// A packet at a port, as a discipline sees it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Packet {
    /// Index among all packets of the run.
    pub(crate) index: usize,
    /// Bytes of its frame, without preamble and gap.
    pub(crate) bytes: u64,
    /// Number of its flow.
    pub(crate) flow: u32,
    /// Priority code point.
    pub(crate) priority: u8,
    /// True if its header allows a mark (ECT).
    pub(crate) markable: bool,
    /// True if it has the mark (CE).
    pub(crate) marked: bool,
    /// Arrival time at the port in picoseconds.
    pub(crate) came: u64,
}

impl Packet {
    /// Marks the packet. Returns false if its header does not allow that.
    fn mark(&mut self) -> bool {
        self.marked |= self.markable;
        self.marked
    }
}

/// Why a discipline drops a packet, in the order of the table of drops.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cause {
    /// `buffer full`.
    Full,
    /// `early drop`.
    Early,
    /// `codel`.
    CoDel,
    /// `exceeds token bucket burst`.
    LongerThanBurst,
}

impl Cause {
    /// Every cause.
    pub const ALL: [Self; 4] = [Self::Full, Self::Early, Self::CoDel, Self::LongerThanBurst];

    /// Returns the cause as the table of drops writes it.
    pub const fn text(self) -> &'static str {
        match self {
            Self::Full => "buffer full",
            Self::Early => "early drop",
            Self::CoDel => "codel",
            Self::LongerThanBurst => "exceeds token bucket burst",
        }
    }
}

/// Packets that a discipline has dropped.
pub(crate) type Dropped = Vec<(Packet, Cause)>;

/// Packets and bytes in a queue.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Length {
    pub(crate) packets: u64,
    pub(crate) bytes: u64,
}

impl Length {
    /// Returns the length of a list of packets.
    pub(crate) fn of<'a>(packets: impl IntoIterator<Item = &'a Packet>) -> Self {
        let zero = Self { packets: 0, bytes: 0 };
        packets.into_iter().fold(zero, |sum, packet| sum.with(packet))
    }

    fn with(self, packet: &Packet) -> Self {
        Self { packets: self.packets + 1, bytes: self.bytes + packet.bytes }
    }

    /// Returns true if a queue of this length is within a limit.
    fn is_within(self, limit: QueueLimit) -> bool {
        self.packets <= limit.packets && self.bytes <= limit.bytes
    }
}

/// A discipline that holds packets until the line is free ("A scheduler").
pub(crate) trait Scheduler {
    /// Takes a packet that arrives at `now`.
    fn put(&mut self, now: u64, packet: Packet, dropped: &mut Dropped);
    /// Returns the packet that is sent next; the line is free at `now`.
    fn take(&mut self, now: u64, dropped: &mut Dropped) -> Option<Packet>;
    /// Returns when it will have a packet to send, if `take` returned `None` although it holds packets.
    fn ready(&self, _now: u64) -> Option<u64> {
        None
    }
    /// Returns the packets that it holds, in any order.
    fn waiting(&self) -> Vec<Packet>;
}

/// A discipline at a port.
pub(crate) enum Discipline {
    /// Accepts or drops a packet when it arrives.
    DropTail(DropTail),
    /// Accepts, marks or drops a packet when it arrives.
    Red(Red),
    /// Holds packets, and chooses the next one when the line is free.
    Scheduler(Box<dyn Scheduler>),
}

impl Discipline {
    /// Returns the length of the queue as its limit counts it. `held` are the accepted packets that have not left; a scheduler holds its packets itself.
    pub(crate) fn length(&self, held: &VecDeque<Packet>) -> Length {
        match self {
            Self::DropTail(_) | Self::Red(_) => Length::of(held),
            Self::Scheduler(scheduler) => Length::of(&scheduler.waiting()),
        }
    }

    /// Builds the discipline for a line of `rate` bit/s.
    pub(crate) fn new(config: &Queue, rate: u64, random: Stream) -> Self {
        match config {
            Queue::DropTail(config) => Self::DropTail(config.clone()),
            Queue::Red(config) => Self::Red(Red::new(config.clone(), rate, random)),
            Queue::CoDel(config) => Self::Scheduler(Box::new(CoDel::new(config.clone()))),
            Queue::FqCoDel(config) => Self::Scheduler(Box::new(FqCoDel::new(config.clone(), random))),
            Queue::Priority(config) => Self::Scheduler(Box::new(Priority::new(config.clone()))),
            Queue::Drr(config) => Self::Scheduler(Box::new(Drr::new(config.clone()))),
            Queue::TokenBucket(config) => Self::Scheduler(Box::new(TokenBucket::new(config.clone()))),
        }
    }
}

/// Drop tail: drops a packet that does not fit. Marks a packet that finds more than the threshold, if possible.
///
/// # Errors
/// The cause of the drop.
pub(crate) fn admits(config: &DropTail, found: Length, packet: &mut Packet) -> Result<(), Cause> {
    if !found.with(packet).is_within(config.limit) {
        return Err(Cause::Full);
    }
    let over = match config.ecn_threshold {
        None => false,
        Some(BufferSize::Packets(threshold)) => found.packets > threshold,
        Some(BufferSize::Bytes(threshold)) => found.bytes > threshold,
    };
    if over {
        packet.mark();
    }
    Ok(())
}

/// Appends a packet to a list with a limit, or drops it. Returns true if it joins.
fn put_last(list: &mut VecDeque<Packet>, limit: QueueLimit, packet: Packet, dropped: &mut Dropped) -> bool {
    let joins = Length::of(&*list).with(&packet).is_within(limit);
    if joins {
        list.push_back(packet);
    } else {
        dropped.push((packet, Cause::Full));
    }
    joins
}
