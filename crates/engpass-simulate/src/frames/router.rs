//! What routers, and switches that choose or copy, do with packets. The rules of each special case are in the file of its name; here they are applied, and
//! packets are forwarded.

use engpass_frames::{ALL_NEIGHBOURS, Packet, Step, Stop};
use engpass_model::arp::{HoldResult, TimeoutAction};
use engpass_model::wire::igmp::Message;
use engpass_model::wire::ip::{Fragments, IP_HEADER_BYTES};

use super::control::Said;
use super::igmp::{self, await_deadline, await_message};
use super::keepalive;
use crate::Network;
use crate::event_queue::Event;
use crate::flow_counters::DropLocation;

impl Network {
    /// Forwards a packet that an engine of a router has finished.
    pub(crate) fn on_engine_done(&mut self, number: u32) {
        let (packet, progress, next) = self.links().finish_packet(number);
        self.clock.schedule(next);
        self.proceed(packet, progress, true);
    }

    /// Handles a packet at the node where its branch ends: the copies are made at once, or after the processing time of the router.
    #[cold]
    pub(super) fn on_branch_point(&mut self, packet: u32) {
        let Packet { datagram, ip, .. } = *self.shared.datagrams.packet(packet);
        let router = self
            .shared
            .copying_router(datagram)
            .filter(|router| !self.frames.engines[*router].takes_no_time());
        let Some(router) = router else {
            self.copy_onward(packet);
            return;
        };
        // A packet that finds no room decides nothing.
        let first = self.shared.first_engine(&mut self.frames, router, packet);
        let copies = match self.frames.engines[first].has_room(ip) {
            true => self.shared.decide_copies(datagram, self.clock.now),
            false => 0,
        };
        let progress = self.links().enter_engine(Step::at_router(router), packet, copies);
        self.proceed(packet, progress, true);
    }

    /// Copies a packet to the branches that begin at the node where its own branch ends.
    pub(super) fn copy_onward(&mut self, id: u32) {
        let whole = *self.shared.datagrams.packet(id);
        if let Some(router) = self.shared.copying_router(whole.datagram)
            && whole.ttl <= 1
        {
            self.shared.datagrams.packet_mut(id).ttl = 0;
            self.drop_or_fragment(id, Step::at_router(router), self.clock.now);
            return;
        }
        let now = self.clock.now;
        for copy in self.shared.copy_to_branches(id, &self.frames, now) {
            self.forward(copy, now, true);
        }
    }

    /// Drops a packet whose TTL has expired. Fragments a packet that is too large, or drops it if it must not be fragmented.
    #[cold]
    pub(super) fn drop_or_fragment(&mut self, id: u32, step: Step, at: u64) {
        let packet = self.shared.datagrams.packet(id);
        let node = self.frames.engines[step.router as usize].node;
        match self.frames.stop(packet, step, || self.shared.has_df_bit(packet.datagram, &self.frames)) {
            Stop::Expired => self.drop_at_router(id, step, DropLocation::Ttl(node), at),
            Stop::TooBig => self.drop_at_router(id, step, DropLocation::TooBig(node), at),
            Stop::Fragment => self.fragment(id, step, at),
            Stop::FragmentOuter => {
                for fragment in self.shared.fragment_outer(id, step, &mut self.frames) {
                    self.forward(fragment, at, false);
                }
            }
        }
    }

    /// Drops a packet at a router in front of `step`, and sends an ICMP message about it if that is due.
    pub(super) fn drop_at_router(&mut self, id: u32, step: Step, place: DropLocation, at: u64) {
        let deferred = self.links().try_defer_drop(id, place, at);
        if deferred.is_some() {
            return self.clock.schedule(deferred);
        }
        let message = self.shared.message_about(id, step, place, &self.frames);
        self.shared.drop_packet(&self.frames, id, place, at);
        if let Some(message) = message {
            let sender = self.number_of_control(message.number);
            let (line, event) = self.shared.begin_message(message, sender, at, &mut self.frames);
            self.clock.events.push(at, line, event);
        }
    }

    /// Fragments a packet for the MTU of `step`, and forwards the fragments.
    pub(super) fn fragment(&mut self, id: u32, step: Step, at: u64) {
        let whole = *self.shared.datagrams.packet(id);
        let cut = Fragments::of(u64::from(whole.ip) - IP_HEADER_BYTES, step.mtu.into());
        // The first fragment may reuse the packet's index.
        let head = self.shared.trace.as_ref().and_then(|trace| trace.head_of(id));
        // The first fragment may arrive, and use up the sender snapshot, before the second one is created.
        let stamp = self.shared.ledger.snapshot_of(id);
        self.shared.track_per_hop(whole.datagram);
        self.shared.record_hops_carried(&self.frames, id);
        self.shared.datagrams.release_packet(id);
        let more = cut.count - 1;
        let datagram = &mut self.shared.datagrams[whole.datagram];
        datagram.fragments += more as u16;
        datagram.refs += more as u32;
        let since = self.frames.lines_before(whole.place);
        for index in 0..cut.count {
            let packet = whole.fragment(&cut, index, whole.offset, since);
            let ip = packet.ip;
            let fragment = self.shared.datagrams.insert_packet(packet);
            self.shared.ledger.set_snapshot(fragment, stamp.as_ref());
            if let (Some(trace), Some(head)) = (&mut self.shared.trace, head) {
                let offset = (index * cut.full) as u32;
                trace.fragment(head, fragment, (ip, offset), index + 1 == cut.count);
            }
            self.forward(fragment, at, false);
        }
    }

    /// Lets a packet leave a tunnel, and forwards it and the copies made of it there.
    pub(super) fn leave_tunnel(&mut self, id: u32, place: u32) {
        let (whole, timeout) = self.links().leave_tunnel(id, place);
        self.clock.schedule(timeout);
        let Some(id) = whole else { return };
        let parts = !self.shared.copies.is_empty() && self.frames.tunnels.at(place + 1).is_empty();
        let copies = if parts { self.shared.copy(id, &self.frames) } else { Vec::new() };
        self.forward(id, self.clock.now, true);
        copies.into_iter().for_each(|copy| self.receive_or_forward(copy));
    }

    /// Handles a packet at the mark in front of a line: the packet continues, or waits until the router knows the neighbour's address.
    #[cold]
    pub(super) fn resolve_or_hold(&mut self, id: u32, place: u32, neighbour: u32) {
        let (step, now) = (self.frames.steps[place as usize], self.clock.now);
        if !self.links().passes_router(id, place) {
            return self.drop_or_fragment(id, step, now);
        }
        match self.frames.resolve(neighbour, id, now) {
            HoldResult::GoesOn => self.leave_hold(id),
            HoldResult::Held { lost, asks } => {
                if asks {
                    self.ask_address(neighbour);
                }
                if let Some(lost) = lost {
                    let place = DropLocation::HoldFull(self.frames.arp.router_of(neighbour));
                    self.shared.drop_packet(&self.frames, lost, place, now);
                }
            }
        }
    }

    /// Moves a packet from the mark on to the line behind it.
    pub(super) fn leave_hold(&mut self, id: u32) {
        self.shared.datagrams.packet_mut(id).place += 1;
        self.forward(id, self.clock.now, true);
    }

    /// Sends a request for the address of a neighbour.
    fn ask_address(&mut self, neighbour: u32) {
        let (said, due) = self.frames.arp.request(neighbour);
        self.clock.events.push(due, said.port(), Event::ArpTimeout(neighbour));
        self.send_control(Said::Arp(said));
    }

    /// Handles the timer of a request: repeats the request, or after the last one drops the packets that wait.
    pub(crate) fn on_arp_timeout(&mut self, neighbour: u32) {
        let now = self.clock.now;
        if neighbour == ALL_NEIGHBOURS {
            self.frames.arp.forget_known(now);
            return;
        }
        match self.frames.arp.on_timeout(neighbour, now) {
            TimeoutAction::Nothing => {}
            TimeoutAction::Asks => self.ask_address(neighbour),
            TimeoutAction::GivesUp(packets) => {
                let place = DropLocation::NoReply(self.frames.arp.router_of(neighbour));
                for packet in packets {
                    self.shared.drop_packet(&self.frames, packet, place, now);
                }
            }
        }
    }

    /// Handles an IGMP timer: a host sends its next message, or routers may stop forwarding to branches.
    pub(crate) fn on_igmp_timer(&mut self, timer: u32) {
        let (member, now) = (timer / 2, self.clock.now);
        if timer % 2 == igmp::PRUNE {
            if self.shared.members_mut().on_deadline(member, now) {
                self.shared.forward_to(member, false);
            }
            return;
        }
        let message = self.frames.igmp.pop_due(member);
        await_message(member, &self.frames, &mut self.clock);
        if message == Message::Leave {
            let deadline = self.shared.members_mut().get_mut(member).on_left(now);
            await_deadline(member, deadline, &mut self.clock);
        }
        self.send_control(Said::Igmp(member, message));
    }

    /// Handles the timer of an end: it may take the tunnel for down, and sends its next keepalive.
    pub(crate) fn on_keepalive_timer(&mut self, end: u32) {
        let (number, now) = (end as usize, self.clock.now);
        let (next, goes_down) = self.frames.keepalive_sent(number, now);
        if goes_down {
            self.shared.record_tunnel_change(number, true, now);
        }
        if next <= self.clock.end {
            self.clock.events.push(next, keepalive::POSITION + number, Event::KeepaliveTimer(end));
        }
        self.send_control(Said::Keepalive(number));
    }

    /// Creates the packet in which a node says something, and sends it.
    pub(super) fn send_control(&mut self, said: Said) {
        // The number follows those of all senders and of routers' messages.
        let sender = self.number_of_control(self.frames.icmp.ways.len() + said.kind() as usize);
        let packet = self.shared.create_control(&said, sender, &mut self.frames, self.clock.now);
        match said.is_from_host(&self.frames) {
            true => {
                let progress = self.links().emit_slow_path(packet, None);
                self.proceed(packet, progress, false);
            }
            false => self.receive_or_forward(packet),
        }
    }

    /// Returns the sender number of packets that nodes make. In `number`, routes of routers' messages come first, then the kinds of control packets.
    pub(super) fn number_of_control(&mut self, number: usize) -> u32 {
        match self.shared.reports {
            Some(_) => self.injected.number_of_control(number),
            None => (self.shared.processes + self.shared.endpoints + number) as u32,
        }
    }

    /// Delivers a packet that a node has made: an ICMP message, an ARP packet, an IGMP message or a keepalive.
    pub(crate) fn take_control(&mut self, datagram: u32, direction: u32) {
        let (direction, now) = (direction as usize, self.clock.now);
        let [arp, igmp, keepalives, _] = self.frames.control_directions(self.shared.endpoints);
        if direction < arp {
            if let Some(endpoint) = self.shared.deliver_icmp_message(datagram, &mut self.hosts.endpoints, now)
            {
                self.send_and_schedule_wake(endpoint);
            }
        } else if direction < igmp {
            // Packets that waited for the sender of the ARP packet continue, and the node sends further ones.
            let (released, messages) = self.frames.arp.receive(datagram, now);
            released.into_iter().for_each(|packet| self.leave_hold(packet));
            messages.into_iter().for_each(|said| self.send_control(Said::Arp(said)));
        } else if direction < keepalives {
            self.shared.take_igmp(self.frames.igmp.receive(datagram), &mut self.clock);
        } else {
            self.shared.take_keepalive((direction - keepalives) / 2, &mut self.frames, now);
        }
    }
}
