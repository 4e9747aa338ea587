//! IGMP messages of hosts that join and leave multicast groups: timers of hosts and routers, and messages that arrive.

use engpass_frames::{Frames, Reporter};
use engpass_model::wire::igmp::{Message, PACKET_BYTES, PRIORITY, TTL};

use super::control::ControlPacket;
use crate::clock::Clock;
use crate::event_queue::Event;
use crate::shared_state::SharedState;
use crate::tap::Igmp as Seen;

/// Timers are numbered: `2 * member` sends the next message of the member's host, `2 * member + PRUNE` may prune its branches: at ties later.
pub(super) const PRUNE: u32 = 1;
/// Position of the first member for ties. It is above all port numbers, which are the positions of ARP timers; therefore these come first.
const POSITION: usize = 1 << 27;

/// Schedules the IGMP messages of all receivers that join or leave.
pub(crate) fn begin_memberships(frames: &mut Frames, shared: &SharedState, clock: &mut Clock) {
    let Some(trees) = &shared.trees else { return };
    for (member, this) in trees.members.all().iter().enumerate() {
        frames.igmp.plan(member as u32, this.messages(clock.end));
        await_message(member as u32, frames, clock);
    }
}

pub(super) fn await_message(member: u32, frames: &Frames, clock: &mut Clock) {
    if let Some(at) = frames.igmp.next_due(member) {
        clock.events.push(at, POSITION + member as usize, Event::IgmpTimer(2 * member));
    }
}

pub(super) fn await_deadline(member: u32, at: Option<u64>, clock: &mut Clock) {
    if let Some(at) = at.filter(|at| *at <= clock.end) {
        clock.events.push(at, POSITION + member as usize, Event::IgmpTimer(2 * member + PRUNE));
    }
}

impl SharedState {
    /// Handles an IGMP message that has reached its router: branches begin to forward, or the last-member queries begin.
    pub(super) fn take_igmp(&mut self, (member, message): (u32, Message), clock: &mut Clock) {
        let (change, deadline) = self.members_mut().on_message(member, message, clock.now);
        await_deadline(member, deadline, clock);
        if change == Some(true) {
            self.forward_to(member, true);
        }
    }
}

/// Returns an IGMP message at its host.
pub(super) fn packet(member: u32, frames: &Frames) -> ControlPacket {
    let place = frames.igmp.members()[member as usize].first;
    ControlPacket { sender: member as usize, place, bytes: PACKET_BYTES, ttl: TTL, priority: PRIORITY }
}

/// Registers an IGMP message that is about to be sent.
pub(super) fn register(
    (member, message): (u32, Message),
    datagram: u32,
    frames: &mut Frames,
    shared: &mut SharedState,
) {
    frames.igmp.register(datagram, member, message);
    let Reporter { flow, host, port, .. } = frames.igmp.members()[member as usize];
    if let Some(trace) = &mut shared.trace {
        trace.says(datagram, Seen { flow, message, host: (host, port) });
    }
}
