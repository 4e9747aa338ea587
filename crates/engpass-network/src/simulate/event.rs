//! The few events there are, in a total order.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// What can happen. Cells have no events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Event {
    /// A frame arrives at the node behind this port.
    Arrive(u32),
    /// This router has done a packet.
    Forward(u32),
    /// The last cell of this frame may have reached its host.
    Frame(u32),
    /// This port is free, and its discipline chooses what it sends.
    Serve(u32),
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
    /// This shaper that adapts hears of a PDU that arrived: without the EFCI mark, or with it.
    Answer(u32, bool),
    /// This shaper that adapts may begin its next frame.
    Begin(u32),
}

/// Marks the second of the two kinds of events in a group.
const SECOND: u32 = 1 << 31;
/// Says of an answer that the PDU had the mark.
const MARKED: u32 = 1 << 30;

/// Pending events, earliest first. Ties go by the order in `docs/model.md`, then by position in the file.
#[derive(Debug, Default)]
pub(super) struct Events(BinaryHeap<Reverse<u128>>);

impl Events {
    /// Let `event` happen at `at`, for the flow (or port, or router) at `position` of the file.
    pub(super) fn push(&mut self, at: u64, position: usize, event: Event) {
        let (group, payload) = match event {
            Event::Arrive(port) => (0, port),
            Event::Forward(router) => (0, router | SECOND),
            Event::Serve(port) => (1, port),
            Event::Frame(frame) => (2, frame),
            Event::Answer(shaper, marked) => (2, shaper | SECOND | if marked { MARKED } else { 0 }),
            Event::CpuDone(host) => (3, host),
            Event::Ready(process) => (4, process),
            Event::Wake(endpoint) => (4, endpoint | SECOND),
            Event::Hand(sender) => (5, sender),
            // Whoever waits for room is handing, too, and takes its turn among the others.
            Event::Room(nic) => (5, nic | SECOND),
            Event::Begin(shaper) => (6, shaper),
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
        let (kind, payload) = (key as u32 & SECOND, key as u32 & !SECOND);
        let event = match ((key >> 61) & 7, kind) {
            (0, SECOND) => Event::Forward(payload),
            (0, _) => Event::Arrive(payload),
            (1, _) => Event::Serve(payload),
            (2, SECOND) => Event::Answer(payload & !MARKED, payload & MARKED != 0),
            (2, _) => Event::Frame(payload),
            (6, _) => Event::Begin(payload),
            (3, _) => Event::CpuDone(payload),
            (4, SECOND) => Event::Wake(payload),
            (4, _) => Event::Ready(payload),
            (_, SECOND) => Event::Room(payload),
            _ => Event::Hand(payload),
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
