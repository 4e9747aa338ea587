//! IGMP messages of hosts that join and leave multicast groups: timers of hosts and routers, and messages that arrive.

use engpass_frames::{ControlKind, Reporter};
use engpass_model::wire::igmp::{Message, PACKET_BYTES, PRIORITY, TTL};

use super::control::ControlPacket;
use crate::Network;
use crate::event_queue::Event;
use crate::tap::Igmp as Seen;

/// Timers are numbered: `2 * member` sends the next message of the member's host, `2 * member + PRUNE` may prune its branches: at ties later.
const PRUNE: u32 = 1;
/// Position of the first member for ties. It is above all port numbers, which are the positions of ARP timers; therefore these come first.
const POSITION: usize = 1 << 27;

impl Network {
    /// Schedules the IGMP messages of all receivers that join or leave.
    pub(crate) fn begin_memberships(&mut self) {
        let Some(trees) = &self.shared.trees else { return };
        let messages: Vec<_> =
            trees.members.all().iter().map(|member| member.messages(self.clock.end)).collect();
        for (member, messages) in messages.into_iter().enumerate() {
            self.frames.igmp.plan(member as u32, messages);
            self.await_message(member as u32);
        }
    }

    fn await_message(&mut self, member: u32) {
        if let Some(at) = self.frames.igmp.next_due(member) {
            self.clock.events.push(at, POSITION + member as usize, Event::IgmpTimer(2 * member));
        }
    }

    fn await_deadline(&mut self, member: u32, at: Option<u64>) {
        if let Some(at) = at.filter(|at| *at <= self.clock.end) {
            self.clock.events.push(at, POSITION + member as usize, Event::IgmpTimer(2 * member + PRUNE));
        }
    }

    /// Handles an IGMP timer: a host sends its next message, or routers may stop forwarding to branches.
    pub(crate) fn on_igmp_timer(&mut self, timer: u32) {
        let (member, now) = (timer / 2, self.clock.now);
        if timer % 2 == PRUNE {
            if self.shared.members_mut().on_deadline(member, now) {
                self.shared.forward_to(member, false);
            }
            return;
        }
        let message = self.frames.igmp.pop_due(member);
        self.await_message(member);
        if message == Message::Leave {
            let deadline = self.shared.members_mut().get_mut(member).on_left(now);
            self.await_deadline(member, deadline);
        }
        self.send_igmp(member, message);
    }

    /// Sends an IGMP message from the NIC of its host.
    fn send_igmp(&mut self, member: u32, message: Message) {
        let Reporter { flow, host, port, first, .. } = self.frames.igmp.members()[member as usize];
        let (ttl, priority) = (TTL, PRIORITY);
        let packet =
            ControlPacket { sender: member as usize, place: first, bytes: PACKET_BYTES, ttl, priority };
        let (datagram, packet) = self.begin_control(ControlKind::Igmp, packet);
        self.frames.igmp.register(datagram, member, message);
        if let Some(trace) = &mut self.shared.trace {
            trace.says(datagram, Seen { flow, message, host: (host, port) });
        }
        self.send_from_nic(packet, None);
    }

    /// Handles an IGMP message that has reached its router: branches begin to forward, or the last-member queries begin.
    pub(super) fn take_igmp(&mut self, datagram: u32) {
        let (member, message) = self.frames.igmp.receive(datagram);
        let (change, deadline) = self.shared.members_mut().on_message(member, message, self.clock.now);
        self.await_deadline(member, deadline);
        if change == Some(true) {
            self.shared.forward_to(member, true);
        }
    }
}
