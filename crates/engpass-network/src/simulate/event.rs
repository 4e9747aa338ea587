//! The few events there are, in a total order.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// What can happen to a host. Cells have no events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Event {
    /// The last cell of this frame may have reached its host.
    Frame(u32),
    /// This host's CPU has done its item.
    CpuDone(u32),
    /// This process may send its next message, or goes on after a pause.
    Ready(u32),
    /// This NIC may have room again.
    Room(u32),
    /// This sender, a process or an endpoint, hands its packet to the NIC.
    Hand(u32),
    /// A wake of this TCP endpoint: its application or one of its timers.
    Wake(u32),
}

/// Marks a NIC among the senders of the handing group, and an endpoint among the processes of the ready group.
const OTHER: u32 = 1 << 31;

/// Pending events, earliest first. Ties go by the order in `docs/model.md`, then by position in the file.
#[derive(Debug, Default)]
pub(super) struct Events(BinaryHeap<Reverse<u128>>);

impl Events {
    /// Let `event` happen at `at`, for the flow at `position` of the file.
    pub(super) fn push(&mut self, at: u64, position: usize, event: Event) {
        let (group, payload) = match event {
            Event::Frame(frame) => (0, frame),
            Event::CpuDone(host) => (1, host),
            Event::Ready(process) => (2, process),
            Event::Wake(endpoint) => (2, endpoint | OTHER),
            Event::Hand(sender) => (3, sender),
            // Whoever waits for room is handing, too, and takes its turn among the others.
            Event::Room(nic) => (3, nic | OTHER),
        };
        let position = position as u128 & 0x1fff_ffff;
        self.0.push(Reverse(u128::from(at) << 64 | group << 61 | position << 32 | u128::from(payload)));
    }

    /// When the next event happens.
    pub(super) fn next(&self) -> Option<u64> {
        self.0.peek().map(|Reverse(key)| (key >> 64) as u64)
    }

    /// Take the next event if it happens at or before `until`.
    pub(super) fn pop_until(&mut self, until: u64) -> Option<(u64, Event)> {
        if self.next()? > until {
            return None;
        }
        let Reverse(key) = self.0.pop()?;
        let payload = key as u32;
        let event = match (key >> 61) & 7 {
            0 => Event::Frame(payload),
            1 => Event::CpuDone(payload),
            2 if payload & OTHER == 0 => Event::Ready(payload),
            2 => Event::Wake(payload & !OTHER),
            _ if payload & OTHER == 0 => Event::Hand(payload),
            _ => Event::Room(payload & !OTHER),
        };
        Some(((key >> 64) as u64, event))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ties_follow_the_contract() {
        let mut events = Events::default();
        events.push(5, 0, Event::Hand(7));
        events.push(5, 1, Event::Ready(1));
        events.push(5, 0, Event::Ready(0));
        events.push(5, 9, Event::Frame(3));
        events.push(4, 9, Event::Room(3));
        events.push(5, 1, Event::Room(4));
        let order: Vec<_> = std::iter::from_fn(|| events.pop_until(5)).map(|(_, event)| event).collect();
        assert_eq!(
            order,
            [
                Event::Room(3),
                Event::Frame(3),
                Event::Ready(0),
                Event::Ready(1),
                Event::Hand(7),
                Event::Room(4)
            ]
        );
    }
}
