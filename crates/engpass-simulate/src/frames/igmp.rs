//! IGMP messages of hosts that join and leave multicast groups: timers of hosts and routers, and messages that arrive.

use engpass_frames::{Frames, Reporter};
use engpass_model::wire::igmp::{Message, PACKET_BYTES, PRIORITY, TTL};

use super::control::{ControlPacket, Said};
use super::hop::Links;
use crate::clock::{Clock, NewEvent};
use crate::event_queue::Event;
use crate::progress::Departed;
use crate::shared_state::SharedState;
use crate::tap::Igmp as Seen;

/// Timers are numbered: `2 * member` sends the next message of the member's host, `2 * member + PRUNE` may prune its branches: at ties later.
const PRUNE: u32 = 1;
/// Position of the first member for ties. It is above all port numbers, which are the positions of ARP timers; therefore these come first.
const POSITION: usize = 1 << 27;

/// Schedules the IGMP messages of all receivers that join or leave.
pub(crate) fn begin_memberships(frames: &mut Frames, shared: &SharedState, clock: &mut Clock) {
    let Some(trees) = &shared.trees else { return };
    for (member, this) in trees.members.all().iter().enumerate() {
        frames.igmp.plan(member as u32, this.messages(clock.end));
        clock.schedule(next_message(member as u32, frames));
    }
}

fn next_message(member: u32, frames: &Frames) -> Option<NewEvent> {
    let at = frames.igmp.next_due(member)?;
    Some((at, POSITION + member as usize, Event::IgmpTimer(2 * member)))
}

fn prune_at(member: u32, deadline: Option<u64>, clock: &Clock) -> Option<NewEvent> {
    let at = deadline.filter(|at| *at <= clock.end)?;
    Some((at, POSITION + member as usize, Event::IgmpTimer(2 * member + PRUNE)))
}

impl Links<'_> {
    /// Handles an IGMP message that has reached its router: branches begin to forward, or the last-member queries begin.
    pub(super) fn take_igmp(&mut self, datagram: u32) -> Option<NewEvent> {
        let (member, message) = self.frames.igmp.receive(datagram);
        let (change, deadline) = self.shared.members_mut().on_message(member, message, self.clock.now);
        if change == Some(true) {
            self.shared.forward_to(member, true);
        }
        prune_at(member, deadline, self.clock)
    }

    /// Handles an IGMP timer: a host sends its next message, or routers may stop forwarding to branches.
    pub(super) fn on_igmp_timer(&mut self, timer: u32) -> Departed {
        let (member, now) = (timer / 2, self.clock.now);
        if timer % 2 == PRUNE {
            if self.shared.members_mut().on_deadline(member, now) {
                self.shared.forward_to(member, false);
            }
            return ([None; 2], None);
        }
        let message = self.frames.igmp.pop_due(member);
        let deadline = match message {
            Message::Leave => self.shared.members_mut().get_mut(member).on_left(now),
            _ => None,
        };
        let events = [next_message(member, self.frames), prune_at(member, deadline, self.clock)];
        (events, Some(self.say(Said::Igmp(member, message))))
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
