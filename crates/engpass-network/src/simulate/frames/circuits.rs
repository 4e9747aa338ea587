//! Circuits among the legs of a way: a packet enters one at a host or a router, crosses it as the cells of a PDU, and is a packet again where it
//! ends.
//!
//! At a router each direction of a circuit has a queue of its own, with the discipline of the link on which it begins. It is asked for the next
//! packet when the line begins the last cell of the one before: so circuits share a line, and what the line does not take waits in their queues.

use engpass_model::queue::{self, Backlog, Cause, Discipline, Ecn, PortView, Scheduler, Verdict};
use engpass_model::random::Stream;
use engpass_model::time::Time;
use engpass_model::wire::{Encapsulation, aal5};
use engpass_testbed::topology::{CircuitPath, LinkEnds};

use super::marks::ENTRY;
use super::outage::apart;
use super::{Frames, Packet, Step};
use crate::simulate::Network;
use crate::simulate::event::Event;
use crate::simulate::fabric::{Frame, NicDeparture};
use crate::simulate::sending::Sending;
use crate::simulate::tally::Place;
use crate::simulate::tap::Carrier;

/// Where packets enter one direction of a circuit.
pub(in crate::simulate) struct Entry {
    pub(super) vc: u32,
    pub(in crate::simulate) encapsulation: Encapsulation,
    /// The transmitters on the way; at the first one, a router's, packets wait.
    pub(super) ports: Vec<usize>,
    queue: Option<Queue>,
}

/// What waits at a router for a circuit.
struct Queue {
    /// Asked when a packet comes, where a first in, first out discipline decides then.
    admission: Option<Box<dyn queue::Admission>>,
    scheduler: Box<dyn Scheduler>,
    /// When it is asked next; `u64::MAX` when it need not be.
    asked: u64,
    /// Until when a packet of so many bytes is being sent: `u64::MAX` as long as it is not known when the line begins its last cell.
    sends: (u64, u32),
    frame: Option<u32>,
}

impl Entry {
    /// The entry of one direction of a circuit over these transmitters. `queued` has the link on which it begins and the end of that, where it begins at a router.
    pub(super) fn new(
        circuit: &CircuitPath,
        vc: u32,
        ports: Vec<usize>,
        queued: Option<(&LinkEnds, usize)>,
        random: Stream,
    ) -> Self {
        let discipline = queued
            .and_then(|(link, end)| Some(link.queues[end].as_ref()?.build(random, link.lines[end].rate)));
        let queue = discipline.map(|discipline: Discipline| {
            let (admission, scheduler) = apart(discipline);
            Queue { admission, scheduler, asked: u64::MAX, sends: (0, 0), frame: None }
        });
        Self { vc, encapsulation: circuit.encapsulation, ports, queue }
    }

    fn queue(&mut self) -> &mut Queue {
        self.queue.as_mut().expect("packets wait for circuits at routers")
    }
}

impl Queue {
    /// A packet comes. Returns when to ask what is next, if that is not known already.
    fn join(
        &mut self,
        now: u64,
        mut packet: queue::Packet,
        lost: &mut Vec<(queue::Packet, Cause)>,
    ) -> Option<u64> {
        let (until, bytes) = self.sends;
        if let Some(admission) = &mut self.admission {
            let Backlog { bytes: waits, packets } = self.scheduler.backlog();
            let sent = if until > now { (u64::from(bytes), 1) } else { (0, 0) };
            let backlog = Backlog { bytes: waits + sent.0, packets: packets + sent.1 };
            let idle_since = (backlog.packets == 0).then_some(Time(until));
            match admission.admit(Time(now), PortView { backlog, idle_since }, &packet) {
                Verdict::Drop(cause) => {
                    lost.push((packet, cause));
                    return None;
                }
                Verdict::Accept { mark } => packet.ecn = if mark { Ecn::Marked } else { packet.ecn },
            }
        }
        if self.asked == u64::MAX && until < now && self.scheduler.backlog().packets == 0 {
            // It is asked whenever the line has taken all, and may note that.
            self.scheduler.dequeue(Time(now), lost);
        }
        self.scheduler.enqueue(Time(now), packet, lost);
        let due = now.max(until);
        let sooner = due < self.asked;
        if sooner {
            self.asked = due;
        }
        sooner.then_some(due)
    }

    /// Nothing is being sent: the packet that is next, or when there may be one.
    fn next(
        &mut self,
        now: u64,
        lost: &mut Vec<(queue::Packet, Cause)>,
    ) -> Result<queue::Packet, Option<u64>> {
        if self.asked != now {
            // It was asked for an earlier instant since.
            return Err(None);
        }
        self.asked = u64::MAX;
        self.scheduler.dequeue(Time(now), lost).ok_or_else(|| {
            let ready = self.scheduler.next_ready(Time(now)).map(|ready| ready.ps().max(now + 1));
            self.asked = ready.unwrap_or(u64::MAX);
            ready
        })
    }
}

impl Frames {
    /// The entry that a step is, if it is one.
    pub(in crate::simulate) fn entry(&self, step: Step) -> Option<&Entry> {
        (step.port & ENTRY > 0).then(|| self.entries.get((step.port ^ ENTRY) as usize)).flatten()
    }

    /// The entry with which a route begins, if a host sends its packets on a circuit.
    pub(in crate::simulate) fn begins_with(&self, route: u32) -> Option<&Entry> {
        self.entry(self.steps[self.routes[route as usize].first as usize])
    }
}

impl Network {
    /// A packet comes to the entry of a circuit at a router.
    #[inline(never)]
    pub(super) fn enter_circuit(&mut self, id: u32, place: u32, at: u64) {
        debug_assert_eq!(at, self.now, "nothing is known of a circuit ahead of the clock");
        let step = self.frames.steps[place as usize];
        self.fabric.datagrams.packet_mut(id).place = place;
        if !self.passes_router(id, step, at) {
            return;
        }
        let number = step.port ^ ENTRY;
        let entry = &mut self.frames.entries[number as usize];
        let position = entry.ports[0];
        // The packet being sent may have counted up to now.
        if entry.queue().frame.is_some_and(|frame| self.fabric.frames[frame].eta < at) {
            self.see_what_left(position);
        }
        let entry = &mut self.frames.entries[number as usize];
        let packet = self.fabric.datagrams.packet(id);
        let bytes = entry.encapsulation.sdu(packet.ip.into()) as u32;
        let (flow, priority, ecn) = (packet.sender, packet.priority, packet.ecn);
        let view = queue::Packet { id, bytes, flow, priority, ecn };
        if let Some(due) = entry.queue().join(at, view, &mut self.frames.lost) {
            self.events.push(due, position, Event::Feed(number));
        }
        self.lose_at_entry(position);
    }

    /// A circuit that begins at a router may be free for its next packet.
    pub(in crate::simulate) fn feed_circuit(&mut self, number: u32) {
        let entry = &mut self.frames.entries[number as usize];
        let (position, vc) = (entry.ports[0], entry.vc as usize);
        if entry.queue().asked != self.now {
            // It was asked for an earlier instant since.
            return;
        }
        if entry.queue().frame.is_some() {
            self.see_what_left(position);
        }
        if self.waits_for_line(number) {
            return;
        }
        let entry = &mut self.frames.entries[number as usize];
        match entry.queue().next(self.now, &mut self.frames.lost) {
            Ok(chosen) => {
                self.fabric.datagrams.packet_mut(chosen.id).ecn = chosen.ecn;
                if let Some(shaper) = self.fabric.vcs[vc].adapting {
                    let pace = self.adapting[shaper].rate.begin();
                    self.fabric.vcs[vc].shaper.restart(self.now, pace);
                }
                let frame = self.frame_of(chosen.id, number);
                let queue = self.frames.entries[number as usize].queue();
                (queue.sends, queue.frame) = ((u64::MAX, chosen.bytes), Some(frame));
                self.emit_cells_of(frame);
                self.waits_for_line(number);
            }
            Err(Some(ready)) => self.events.push(ready, position, Event::Feed(number)),
            Err(None) => {}
        }
        self.lose_at_entry(position);
    }

    /// Find out when cells leave that have come to the line before now.
    fn see_what_left(&mut self, position: usize) {
        // A cell emitted now may still get company at this instant; all that have left by now were emitted before.
        self.advance(position, self.now - 1);
        self.collect_nic_departures();
    }

    /// Whether the line has not taken all of the packet that is being sent. The queue is asked when it has, or when that may be known.
    fn waits_for_line(&mut self, number: u32) -> bool {
        let entry = &mut self.frames.entries[number as usize];
        let position = entry.ports[0];
        let queue = entry.queue();
        let at = match queue.frame {
            // Its emission is known, and the last cell leaves later.
            Some(frame) => self.fabric.frames[frame].eta.max(self.now) + 1,
            None => queue.sends.0,
        };
        if at <= self.now {
            return false;
        }
        let asks = queue.frame.is_some() || queue.scheduler.backlog().packets > 0;
        queue.asked = if asks { at } else { u64::MAX };
        if asks {
            self.events.push(at, position, Event::Feed(number));
        }
        true
    }

    /// When the last cell of a frame leaves the line on which its circuit begins at a router is known. The next packet is chosen when the line begins that
    /// cell, so that a shaper keeps its pace; not before a picosecond after its emission, when that can be known.
    pub(in crate::simulate) fn left_router(&mut self, left: NicDeparture) {
        let begins = (left.at - self.ports[left.nic].slot_at_least).max(left.emitted + 1);
        for entry in &mut self.frames.entries {
            let Some(queue) = entry.queue.as_mut().filter(|queue| queue.frame == Some(left.frame)) else {
                continue;
            };
            // A shaper that adapts begins its next frame no earlier than its pace says.
            let vc = &self.fabric.vcs[entry.vc as usize];
            let turn = vc.adapting.map_or(0, |_| vc.shaper.next());
            (queue.sends.0, queue.frame) = (begins.max(turn), None);
        }
    }

    /// Lose what the discipline in front of a circuit has lost now.
    fn lose_at_entry(&mut self, port: usize) {
        while let Some((packet, cause)) = self.frames.lost.pop() {
            if let Some(later) = &mut self.fabric.ledger.later {
                later.lost(port, 1);
            }
            if let Some(trace) = &mut self.fabric.trace {
                trace.dropped(port, self.now);
            }
            self.lose_packet(packet.id, Place::Queue(port, cause), self.now);
        }
    }

    /// A packet becomes the cells of a PDU, and comes to the step behind the circuit when these have arrived.
    fn frame_of(&mut self, id: u32, number: u32) -> u32 {
        let place = self.fabric.datagrams.packet(id).place;
        let datagram = self.fabric.datagrams.packet(id).datagram;
        // What lines of frames have carried is written down now; those of the circuit write down their cells.
        self.fabric.write_down(datagram);
        self.note_lines(id);
        let step = self.frames.steps[place as usize];
        let since = self.frames.lines_before(place + 1);
        let packet = self.fabric.datagrams.packet_mut(id);
        (packet.place, packet.since) = (place + 1, since);
        let ip = packet.ip;
        let Entry { vc, encapsulation, ref ports, .. } = self.frames.entries[number as usize];
        if self.frames.is_branched(place) || self.fabric.ledger.writes_pieces() {
            let packet = self.fabric.datagrams.packet(id);
            let piece = self.frames.piece(id, &Packet { place, ..*packet }, place);
            for slot in step.slot..step.slot + ports.len() as u16 {
                self.fabric.ledger.write_piece(datagram, slot, piece);
            }
        }
        let sdu = encapsulation.sdu(ip.into());
        let frame = self.fabric.frames.insert(Frame {
            packet: id,
            slot: step.slot,
            ..Frame::new(vc, datagram, sdu as u32, aal5::cells(sdu) as u32 + 1)
        });
        self.fabric.datagrams[datagram].holds += 1;
        self.fabric.ledger.frame_inherits(frame, id);
        if let Some(trace) = &mut self.fabric.trace {
            trace.carries(frame, id, self.fabric.datagrams.packet(id).ttl());
        }
        frame
    }

    /// A packet of a host enters a circuit that is not all of its way: its frame.
    pub(in crate::simulate) fn frame_onward(&mut self, sender: usize, sending: &Sending, route: u32) -> u32 {
        let id = self.packet_of(sender, sending, route);
        if self.fabric.trace.is_some() {
            self.tap_emitted(Carrier::Packet(id), sender, sending);
        }
        let first = self.frames.routes[route as usize].first;
        let number = self.frames.steps[first as usize].port ^ ENTRY;
        self.frame_of(id, number)
    }

    /// A PDU has arrived at the node where its circuit ends: its packet goes on.
    pub(in crate::simulate) fn leave_circuit(&mut self, frame: u32) {
        let packet = std::mem::replace(&mut self.fabric.frames[frame].packet, Frame::NO_PACKET);
        self.fabric.ledger.packet_inherits(packet, frame);
        self.goes_on(packet);
    }

    /// The engine of a router has finished a packet, or takes no time: it goes on to what is no line that tells anything.
    #[inline(never)]
    pub(super) fn goes_on_from_engine(&mut self, packet: u32, place: u32) {
        let step = self.frames.steps[place as usize];
        if step.port == super::choices::ASK {
            self.ask_way(packet, step);
        } else if step.port == super::END {
            self.copy_onward(packet);
        } else if step.is_unwrap() {
            self.leave_tunnel(packet, place);
        } else {
            self.go(packet, place, self.now, true);
        }
    }
}
