//! The forwarding engine of a router, with its input queue.

use std::collections::VecDeque;

use engpass_model::engine::{BusyTime, EngineTimes};
use engpass_model::queue::Backlog;
use engpass_model::unit::QueueLimit;

/// The forwarding engine of a router: processes one packet at a time.
#[derive(Debug, Default)]
pub struct ForwardingEngine {
    /// Node number of its router.
    pub node: usize,
    /// Time for each packet, in picoseconds.
    pub(crate) per_packet: u64,
    /// Time for each copy of a multicast packet beyond the first, in picoseconds.
    pub(crate) per_copy: u64,
    /// Bound of the input queue; `None` if there is no bound.
    pub(crate) input_limit: Option<QueueLimit>,
    /// Bytes of the packets that wait for the engine or are in it.
    bytes: u64,
    /// The time in which it works.
    pub busy: BusyTime,
    /// True if some engine of the router takes time. Only set at route processors.
    pub(crate) takes_time: bool,
    /// True if it never works ahead of virtual time. Its input queue is bounded, its work depends on the packet, or copies take time; or some packets need a
    /// decision, a copy, a tunnel or an address when it finishes them.
    pub(crate) never_ahead: bool,
    /// Packets that wait for the engine or are in it, in order: the instant at which each is finished, and its packet number.
    packets: VecDeque<(u64, u32)>,
}

/// Result of giving a packet to an engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EngineResult {
    /// The input queue has no room for the packet.
    Full,
    /// The engine finishes the packet at this instant, and the packet may continue ahead of virtual time.
    ContinuesAt(u64),
    /// The packet waits for the engine or is in it. If an instant is given, the caller must schedule an event for it: the engine had no work before.
    Held(Option<u64>),
}

impl ForwardingEngine {
    /// Creates an engine with these times at a node.
    pub(crate) fn new(node: usize, times: EngineTimes) -> Self {
        Self {
            node,
            per_packet: times.per_packet,
            per_copy: times.per_copy,
            input_limit: times.input_queue,
            ..Self::default()
        }
    }

    /// Returns true if packets never wait at this router.
    #[inline]
    pub fn takes_no_time(&self) -> bool {
        !self.takes_time
    }

    /// Returns true if the input queue has room for a packet of `ip` bytes.
    #[inline]
    pub fn has_room(&self, ip: u32) -> bool {
        let held = Backlog { bytes: self.bytes, packets: self.packets.len() as u64 };
        self.input_limit.is_none_or(|room| held.has_room(room, ip))
    }

    /// Returns true if the engine has no work.
    #[inline]
    pub(crate) fn is_idle(&self) -> bool {
        self.packets.is_empty()
    }

    /// Adds work of `takes` picoseconds, which begins at `now` or after all work so far. Returns the instant at which it ends.
    #[inline]
    pub(crate) fn add_work(&mut self, now: u64, takes: u64) -> u64 {
        let begins = self.busy.until().max(now);
        let done = begins.saturating_add(takes);
        self.busy.add(begins, done);
        done
    }

    /// Adds a packet of `ip` bytes, which it finishes at `done`.
    #[inline]
    pub(crate) fn hold(&mut self, done: u64, packet: u32, ip: u32) -> EngineResult {
        self.bytes += u64::from(ip);
        self.packets.push_back((done, packet));
        EngineResult::Held((self.packets.len() == 1).then_some(done))
    }

    /// Removes and returns the packet that the engine has finished, and the instant at which it finishes the next one, if there is one. `length` returns the
    /// bytes of a packet.
    ///
    /// # Panics
    /// If the engine has no packet.
    #[inline]
    pub fn finish(&mut self, length: impl FnOnce(u32) -> u32) -> (u32, Option<u64>) {
        let (_, packet) = self.packets.pop_front().expect("an engine that finishes has a packet");
        self.bytes -= u64::from(length(packet));
        (packet, self.packets.front().map(|(at, _)| *at))
    }
}
