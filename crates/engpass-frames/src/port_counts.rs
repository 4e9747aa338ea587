//! Counts of frame ports for the outcome: frames, CE marks, longest queues.

use engpass_model::queue::Backlog;

/// Traffic of a port in the measurement window. A frame counts as sent if its last bit leaves in the window.
#[derive(Clone, Copy, Debug, Default)]
pub struct PortTally {
    /// Frames sent.
    pub frames: u64,
    /// Bytes that they occupied on the line, framing included.
    pub bytes: u64,
    /// Frames lost in the queue or on the line.
    pub lost: u64,
}

/// Frames that an edge of the measurement window cuts and whose last bit leaves in the window: at most one at each edge.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ClippedFrames {
    pub(crate) frames: u32,
    pub(crate) bytes: u32,
}

/// Number of packets that queue disciplines marked CE in the measurement window, by transmitter.
#[derive(Debug, Default)]
pub struct CongestionMarks(Vec<u64>);

impl CongestionMarks {
    /// Counts a packet that the discipline in front of a transmitter has marked, if `counts` is true: in the measurement window.
    #[cold]
    pub fn add(&mut self, port: usize, counts: bool) {
        if port >= self.0.len() {
            self.0.resize(port + 1, 0);
        }
        self.0[port] += u64::from(counts);
    }

    /// Returns the number of packets marked in front of a transmitter.
    pub fn of(&self, port: usize) -> u64 {
        self.0.get(port).copied().unwrap_or(0)
    }
}

/// The longest queue of a port so far: the most bytes and the most packets, maybe at different instants. Packed, so that it fits into a cache line with other
/// fields.
#[derive(Clone, Copy, Default)]
#[repr(C, packed(4))]
pub(crate) struct LongestQueue {
    bytes: u64,
    packets: u32,
}

impl LongestQueue {
    /// Returns true if `queue` is no longer than the longest one.
    #[inline(always)]
    pub(crate) fn covers(self, queue: Backlog) -> bool {
        queue.bytes <= self.bytes && queue.packets <= self.packets.into()
    }

    /// Updates the longest queue with `queue`, the queue after a packet has joined.
    #[inline(always)]
    pub(crate) fn note(&mut self, queue: Backlog) {
        if !self.covers(queue) {
            self.bytes = self.bytes.max(queue.bytes);
            // A port has fewer than 2^32 packets.
            self.packets = self.packets.max(queue.packets as u32);
        }
    }

    /// Returns the longest queue in bytes and in packets.
    pub(crate) fn lengths(self) -> Backlog {
        Backlog { bytes: self.bytes, packets: self.packets.into() }
    }
}
