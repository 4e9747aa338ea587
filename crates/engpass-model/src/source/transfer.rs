//! Transfers of a given number of messages, and the datagrams with which ttcp marks begin and end of one.

use super::poisson::Arrival;
use crate::time::{Pace, Time};

/// The largest number of messages of a transfer.
pub(super) const MAX_COUNT: u64 = 1_000_000_000_000;
/// Payload of a datagram that marks begin or end, in bytes (ttcp.c, `Nwrite(fd, buf, 4)`).
pub const SENTINEL_BYTES: u64 = 4;
/// Numbers of such datagrams before the first message and after the last.
pub const SENTINELS: (u64, u64) = (1, 5);

/// A transfer of a given number of messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// Payload of all messages of all connections in bytes.
    pub bytes: u64,
    /// Begin and end are marked by datagrams of [`SENTINEL_BYTES`].
    pub sentinels: bool,
}

impl Transfer {
    /// Returns the payload of its sentinels in bytes.
    pub fn sentinel_bytes(&self) -> u64 {
        let (before, behind) = SENTINELS;
        if self.sentinels { (before + behind) * SENTINEL_BYTES } else { 0 }
    }
}

/// The datagrams of a transfer, and behind them one that is never due.
#[derive(Clone, Debug)]
pub(super) struct Datagrams {
    /// Payload of a message in bytes, and the time of one at the rate; without a rate all are due at once.
    pub(super) bytes: u64,
    pub(super) pace: Option<Pace>,
    pub(super) count: u64,
    pub(super) sentinels: bool,
    /// Number of datagrams so far, and when the last one was due.
    pub(super) sent: u64,
    pub(super) last: u64,
}

impl Iterator for Datagrams {
    type Item = Arrival;

    fn next(&mut self) -> Option<Arrival> {
        let (before, behind) = if self.sentinels { SENTINELS } else { (0, 0) };
        let bytes = match self.sent.checked_sub(before) {
            Some(message) if message < self.count => {
                let due = self.pace.map_or(0, |pace| pace.after(message));
                let gap = Time(due - self.last);
                self.last = due;
                self.sent += 1;
                return Some(Arrival { gap, bytes: self.bytes });
            }
            Some(message) if message >= self.count + behind => {
                return Some(Arrival { gap: Time::MAX, bytes: self.bytes });
            }
            _ => SENTINEL_BYTES,
        };
        self.sent += 1;
        Some(Arrival { gap: Time::ZERO, bytes })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentinels_mark_begin_and_end_of_a_transfer() {
        let of = |sentinels, pace| {
            let all = Datagrams { bytes: 1000, pace, count: 3, sentinels, sent: 0, last: 0 };
            all.take(10).map(|arrival| (arrival.gap.0, arrival.bytes)).collect::<Vec<_>>()
        };
        let never = (u64::MAX, 1000);
        let plain = of(false, None);
        assert_eq!(plain[..4], [(0, 1000), (0, 1000), (0, 1000), never]);
        // 8 Mbit/s: a message every millisecond.
        let gap = 1_000_000_000;
        let marked = of(true, Some(Pace::of_bits(8000, 8_000_000)));
        assert_eq!(marked[..4], [(0, 4), (0, 1000), (gap, 1000), (gap, 1000)]);
        assert_eq!(marked[4..], [(0, 4), (0, 4), (0, 4), (0, 4), (0, 4), never]);
        assert_eq!(Transfer { bytes: 3000, sentinels: true }.sentinel_bytes(), 24);
    }
}
