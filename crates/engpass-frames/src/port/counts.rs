//! Measurement of a port: frames, bytes and losses, and its longest queue.

use engpass_model::queue::Backlog;

use super::{FramePort, PortQueue};
use crate::port_counts::{ClippedFrames, PortTally};

impl FramePort {
    /// Returns the frames and bytes sent, and the frames lost, in the measurement window.
    pub fn tally(&self) -> PortTally {
        let ClippedFrames { frames, bytes } = self.clipped;
        PortTally {
            frames: u64::from(frames) + self.totals.frames,
            bytes: u64::from(bytes) + self.totals.bytes,
            lost: self.lost,
        }
    }

    /// Resets the counters of lost and cut frames.
    pub fn reset_counters(&mut self) {
        (self.clipped, self.lost) = (ClippedFrames::default(), 0);
    }

    /// Sets the frames and bytes sent in the measurement window. With packet injection, a window may begin at any instant, so the caller counts them.
    pub fn set_sent(&mut self, (frames, bytes): (u64, u64)) {
        (self.totals.frames, self.totals.bytes) = (frames, bytes);
        self.clipped = ClippedFrames::default();
    }

    /// Counts a frame that was lost in the measurement window, in the queue or on the line.
    pub fn count_lost(&mut self) {
        self.lost += 1;
    }

    /// Returns the longest queue in the measurement window; `None` for the port of a host, where senders wait instead.
    pub fn longest_queue(&self) -> Option<Backlog> {
        (!matches!(self.queue, PortQueue::Unlimited)).then(|| self.longest.lengths())
    }
}
