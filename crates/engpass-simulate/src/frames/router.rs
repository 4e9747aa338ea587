//! What routers, and switches that choose or copy, do with packets. The rules of each special case are in the file of its name; here they are applied, and
//! packets are forwarded.

use engpass_frames::{ALL_NEIGHBOURS, Packet, Step, Stop, TunnelArrival, Verdict};
use engpass_model::arp::{HoldResult, TimeoutAction};
use engpass_model::wire::igmp::Message;
use engpass_model::wire::ip::{Fragments, IP_HEADER_BYTES};

use super::control::Said;
use super::igmp::{self, await_deadline, await_message};
use super::keepalive;
use super::tunnels::await_timeout;
use crate::Network;
use crate::event_queue::Event;
use crate::flow_counters::DropLocation;

impl Network {
    /// Forwards a packet that a router's forwarding engine has finished, or that needs no engine, to a step without lookahead.
    #[inline(never)]
    pub(super) fn leave_engine(&mut self, packet: u32, place: u32) {
        let step = self.frames.steps[place as usize];
        match step.verdict {
            Verdict::Choose(decision) => self.choose_path(packet, step, decision),
            Verdict::Up => match self.shared.is_of_tree(self.shared.datagrams.packet(packet).datagram) {
                true => self.copy_onward(packet),
                false => self.on_packet_at_host(packet),
            },
            Verdict::Unwrap(_) => self.leave_tunnel(packet, place),
            _ => self.forward(packet, place, self.clock.now, true),
        }
    }

    /// Puts a packet into the engine of a router; `copies` of it will leave. Returns when the engine finishes it, if the packet may continue ahead of
    /// virtual time. Otherwise an event follows.
    #[inline(never)]
    pub(super) fn process(&mut self, step: Step, packet: u32, copies: u64) -> Option<u64> {
        let entered = if self.frames.switching.depends_on_packet(step.router) {
            let arrival = self.shared.arrival_at(&mut self.frames, step.router, packet);
            self.frames.begin_work(&arrival, copies, self.clock.now)
        } else {
            let ip = self.shared.datagrams.packet(packet).ip;
            let times = (self.clock.now, self.clock.end);
            (step.router as usize, self.frames.process(step, (packet, ip), copies, times))
        };
        self.shared.on_engine_entered(packet, entered, &self.frames, &mut self.clock)
    }

    /// Forwards a packet that an engine of a router has finished.
    pub(crate) fn on_engine_done(&mut self, number: u32) {
        let router = self.frames.router_of_engine(number);
        let engine = &mut self.frames.engines[number as usize];
        let (packet, next) = engine.finish(|packet| self.shared.datagrams.packet(packet).ip);
        if let Some(at) = next {
            self.clock.events.push(at, engine.node, Event::EngineDone(number));
        }
        if router != number
            && let Some(copies) = self.frames.switching.take_punted(packet)
        {
            // A line card hands the packet to the route processor.
            let arrival = self.shared.arrival_at(&mut self.frames, router, packet);
            let entered = self.frames.forward_with_engine(&arrival, copies, self.clock.now);
            self.shared.on_engine_entered(packet, entered, &self.frames, &mut self.clock);
            return;
        }
        let place = self.shared.datagrams.packet(packet).place;
        self.leave_engine(packet, place);
    }

    /// Decides at a decision step where a packet continues: a router's forwarding engine has finished it, or it has arrived at a switch. A packet whose TTL
    /// expires here does not reach the policy.
    #[inline(never)]
    pub(super) fn choose_path(&mut self, id: u32, step: Step, decision: u32) {
        let packet = self.shared.datagrams.packet_mut(id);
        if packet.ttl <= 1 && step.is_routed() {
            packet.ttl = 0;
            self.drop_or_fragment(id, step, self.clock.now);
            return;
        }
        let packet = *packet;
        let takes_first =
            self.shared.reports.as_ref().is_some_and(|reports| reports.takes_first(packet.datagram));
        let first = if takes_first { self.frames.choices.first_of_equal(decision) } else { None };
        let place = first.unwrap_or_else(|| {
            let fragment = self.shared.datagrams[packet.datagram].fragments > 1;
            let outer = self.frames.outer_heads(decision);
            let heads = outer.unwrap_or_else(|| self.shared.heads_of(&packet, &self.frames));
            self.frames.choices.decide(decision, &heads, fragment)
        });
        self.shared.datagrams.packet_mut(id).place = place;
        self.forward(id, place, self.clock.now, true);
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
        self.process(Step::at_router(router), packet, copies);
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
        for (copy, place) in self.shared.copy_to_branches(id, &self.frames, now) {
            self.forward(copy, place, now, true);
        }
    }

    /// Decrements the TTL of a packet at a router in front of `step`. Returns true if the packet continues; a too large one, or one whose TTL expires, is
    /// handled here.
    pub(super) fn passes_router(&mut self, id: u32, step: Step, at: u64) -> bool {
        let passes = self.shared.datagrams.packet_mut(id).passes_router(&step);
        if !passes {
            self.drop_or_fragment(id, step, at);
        }
        passes
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
                let place = packet.place;
                for fragment in self.shared.fragment_outer(id, step, &mut self.frames) {
                    self.forward(fragment, place, at, false);
                }
            }
        }
    }

    /// Drops a packet at a router in front of `step`, and sends an ICMP message about it if that is due.
    pub(super) fn drop_at_router(&mut self, id: u32, step: Step, place: DropLocation, at: u64) {
        if self.shared.try_defer_drop(id, place, at, &mut self.clock) {
            return;
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
            self.forward(fragment, whole.place, at, false);
        }
    }

    /// Encapsulates a packet at the entry of a tunnel, and forwards it.
    pub(super) fn enter_tunnel(&mut self, id: u32, place: u32, direction: u32) {
        let step = self.frames.steps[place as usize];
        self.shared.datagrams.packet_mut(id).place = place;
        if !self.passes_router(id, step, self.clock.now)
            || !self.shared.may_enter_tunnel(id, direction, &self.frames, self.clock.now)
        {
            return;
        }
        let packet = self.shared.datagrams.packet_mut(id);
        let inner = (packet.ttl, packet.ecn);
        let (sequence, ttl) = self.frames.tunnels.enter(id, packet, direction);
        if let Some(trace) = &mut self.shared.trace {
            trace.enters(id, (direction, sequence), step.router as usize, (packet.ip, ttl), inner);
        }
        self.leave_engine(id, place + 1);
    }

    /// Decapsulates a packet at the end of a tunnel, and forwards it. A fragment of an outer packet is reassembled first.
    pub(super) fn leave_tunnel(&mut self, id: u32, place: u32) {
        let whole = match self.frames.tunnels.arrival(id, place) {
            TunnelArrival::Whole => Some(id),
            TunnelArrival::Fragment => {
                let gathered = self.shared.gather(id, place, self.clock.now, &mut self.frames);
                if let Err(Some(tunnel)) = gathered {
                    await_timeout(tunnel, &mut self.frames, &mut self.clock);
                }
                gathered.ok()
            }
            TunnelArrival::Late => {
                let end = self.frames.tunnels.end_at(place);
                self.shared.drop_packet(&self.frames, id, DropLocation::Timeout(end), self.clock.now);
                None
            }
        };
        let Some(id) = whole else { return };
        if !self.frames.tunnels.leave(id, self.shared.datagrams.packet_mut(id), place) {
            let end = self.frames.tunnels.end_at(place);
            self.shared.drop_packet(&self.frames, id, DropLocation::OutOfSequence(end), self.clock.now);
            return;
        }
        if let Some(trace) = &mut self.shared.trace {
            trace.leaves_tunnel(id);
        }
        let parts = !self.shared.copies.is_empty() && self.frames.tunnels.at(place + 1).is_empty();
        let copies = if parts { self.shared.copy(id, &self.frames) } else { Vec::new() };
        self.leave_engine(id, place + 1);
        copies.into_iter().for_each(|copy| self.receive_or_forward(copy));
    }

    /// Handles a packet at the mark in front of a line: the packet continues, or waits until the router knows the neighbour's address.
    #[cold]
    pub(super) fn resolve_or_hold(&mut self, id: u32, place: u32, neighbour: u32) {
        let (step, now) = (self.frames.steps[place as usize], self.clock.now);
        self.shared.datagrams.packet_mut(id).place = place;
        if !self.passes_router(id, step, now) {
            return;
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
        let packet = self.shared.datagrams.packet_mut(id);
        packet.place += 1;
        let place = packet.place;
        self.forward(id, place, self.clock.now, true);
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
            true => self.send_from_nic(packet, None),
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
