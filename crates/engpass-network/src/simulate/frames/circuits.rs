//! Virtual circuits as part of a route: a packet enters a circuit at a host or a router, crosses it as the cells of a PDU, and is a packet again at its end.
//!
//! At a router each circuit direction has a queue, with the discipline of the link on which it begins. When the line begins the last cell of a packet, the
//! discipline is asked for the next packet. Therefore circuits share a line, and packets that the line cannot take wait in the queues.

use engpass_model::queue::{self, Backlog, Cause, Discipline, Ecn, PortView, Scheduler};
use engpass_model::random::Stream;
use engpass_model::time::Time;
use engpass_model::wire::{Encapsulation, aal5};
use engpass_testbed::topology::{CircuitPath, LinkEnds};

use super::outage::apart;
use super::port_counts::LongestQueue;
use super::{Frames, Packet, Step, Verdict};
use crate::simulate::Network;
use crate::simulate::event_queue::Event;
use crate::simulate::flow_counters::DropLocation;
use crate::simulate::ready_packet::ReadyPacket;
use crate::simulate::shared_state::{Aal5Pdu, NicDeparture};
use crate::simulate::tap::Carrier;

/// Entry of a circuit direction: where packets become cells.
pub(in crate::simulate) struct Entry {
    pub(super) vc: u32,
    pub(in crate::simulate) encapsulation: Encapsulation,
    /// Transmitters that the circuit crosses. Packets wait at the first one if it belongs to a router.
    pub(super) ports: Vec<usize>,
    queue: Option<Queue>,
}

/// The queue of a circuit direction at a router.
struct Queue {
    /// The admission policy, if the discipline decides on arrival.
    admission: Option<Box<dyn queue::Admission>>,
    scheduler: Box<dyn Scheduler>,
    /// Instant of the pending `CircuitFree` event; `u64::MAX` if there is none.
    asked: u64,
    /// Instant until which a packet is being sent, and its bytes. The instant is `u64::MAX` while it is unknown when the line begins the last cell.
    sends: (u64, u32),
    pdu: Option<u32>,
    longest: LongestQueue,
}

impl Entry {
    /// Creates the entry of a circuit direction over these transmitters. If it begins at a router, `queued` is the first link and the router's end of it.
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
            let longest = LongestQueue::default();
            Queue { admission, scheduler, asked: u64::MAX, sends: (0, 0), pdu: None, longest }
        });
        Self { vc, encapsulation: circuit.encapsulation, ports, queue }
    }

    /// Returns the longest queue in the measurement window; `None` if the circuit does not begin at a router.
    pub(super) fn longest_queue(&self) -> Option<Backlog> {
        self.queue.as_ref().map(|queue| queue.longest.lengths())
    }

    fn queue(&mut self) -> &mut Queue {
        self.queue.as_mut().expect("a circuit that begins at a router has a queue")
    }
}

impl Queue {
    /// Admits or drops a packet that arrives at `now`. Returns the instant of a new `CircuitFree` event, if an earlier one is not pending, and true if the packet was
    /// marked.
    fn join(
        &mut self,
        now: u64,
        mut packet: queue::Packet,
        lost: &mut Vec<(queue::Packet, Cause)>,
    ) -> (Option<u64>, bool) {
        let (until, _) = self.sends;
        let (backlog, mut marks) = (self.backlog(now), false);
        if let Some(admission) = &mut self.admission {
            let idle_since = (backlog.packets == 0).then_some(Time(until));
            match admission.admit(Time(now), PortView { backlog, idle_since }, &packet) {
                queue::Verdict::Drop(cause) => {
                    lost.push((packet, cause));
                    return (None, false);
                }
                queue::Verdict::Accept { mark } => {
                    marks = mark && packet.ecn != Ecn::Marked;
                    packet.ecn = if mark { Ecn::Marked } else { packet.ecn };
                }
            }
        }
        if self.asked == u64::MAX && until < now && self.scheduler.backlog().packets == 0 {
            // A scheduler expects a `dequeue` whenever the line has sent everything. With an empty queue that call was skipped; this call makes up for it.
            self.scheduler.dequeue(Time(now), lost);
        }
        self.scheduler.enqueue(Time(now), packet, lost);
        self.longest.note(self.backlog(now));
        let due = now.max(until);
        let sooner = due < self.asked;
        if sooner {
            self.asked = due;
        }
        (sooner.then_some(due), marks)
    }

    /// Returns the queue at `now`, as the discipline's limit counts it: the packet being sent is included if the discipline decides on arrival.
    fn backlog(&self, now: u64) -> Backlog {
        let (until, bytes) = self.sends;
        let waits = self.scheduler.backlog();
        if self.admission.is_some() && until > now { waits.with(bytes) } else { waits }
    }

    /// Returns the packet to send next; otherwise the instant at which there may be one, if known.
    fn next(
        &mut self,
        now: u64,
        lost: &mut Vec<(queue::Packet, Cause)>,
    ) -> Result<queue::Packet, Option<u64>> {
        if self.asked != now {
            // Outdated event: an earlier one was scheduled since.
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
    /// Returns the circuit entry of a step; `None` for other steps.
    pub(in crate::simulate) fn entry(&self, step: Step) -> Option<&Entry> {
        match step.verdict {
            Verdict::Circuit(entry) => Some(&self.entries[entry as usize]),
            _ => None,
        }
    }

    /// Returns the circuit entry with which a route begins, if its host sends on a circuit.
    pub(in crate::simulate) fn first_circuit_entry(&self, route: u32) -> Option<&Entry> {
        self.entry(self.steps[self.routes[route as usize].first as usize])
    }
}

impl Network {
    /// Puts a packet into the queue of a circuit that begins at a router.
    #[inline(never)]
    pub(super) fn enter_circuit(&mut self, id: u32, place: u32, number: u32, at: u64) {
        debug_assert_eq!(at, self.now, "a packet enters a circuit at the present instant");
        let step = self.frames.steps[place as usize];
        self.shared.datagrams.packet_mut(id).place = place;
        if !self.passes_router(id, step, at) {
            return;
        }
        let entry = &mut self.frames.entries[number as usize];
        let position = entry.ports[0];
        // The packet being sent may have left the queue by now.
        if entry.queue().pdu.is_some_and(|pdu| self.shared.pdus[pdu].eta < at) {
            self.catch_up_departures(position);
        }
        let entry = &mut self.frames.entries[number as usize];
        let packet = self.shared.datagrams.packet(id);
        let bytes = entry.encapsulation.sdu(packet.ip.into()) as u32;
        let (flow, priority, ecn) = (packet.sender, packet.priority, packet.ecn);
        let view = queue::Packet { id, bytes, flow, priority, ecn };
        let (due, marks) = entry.queue().join(at, view, &mut self.frames.dropped);
        if let Some(due) = due {
            self.events.push(due, position, Event::CircuitFree(number));
        }
        if marks {
            self.frames.marks.add(position, self.shared.window.holds(at));
        }
        self.drop_discarded_at_circuit(position);
    }

    /// Handles a `CircuitFree` event: sends the next packet on a circuit that begins at a router, if the line is ready for it.
    pub(in crate::simulate) fn feed_circuit(&mut self, number: u32) {
        let entry = &mut self.frames.entries[number as usize];
        let (position, vc) = (entry.ports[0], entry.vc as usize);
        if entry.queue().asked != self.now {
            // Outdated event: an earlier one was scheduled since.
            return;
        }
        if entry.queue().pdu.is_some() {
            self.catch_up_departures(position);
        }
        if self.is_line_busy(number) {
            return;
        }
        let entry = &mut self.frames.entries[number as usize];
        match entry.queue().next(self.now, &mut self.frames.dropped) {
            Ok(chosen) => {
                let ecn = std::mem::replace(&mut self.shared.datagrams.packet_mut(chosen.id).ecn, chosen.ecn);
                let entry = &mut self.frames.entries[number as usize];
                if ecn != chosen.ecn && entry.queue().admission.is_none() {
                    self.frames.marks.add(position, self.shared.window.holds(self.now));
                }
                if let Some(shaper) = self.shared.vcs[vc].adaptive_shaper {
                    let pace = self.adaptive_shapers[shaper].rate.begin();
                    self.shared.vcs[vc].shaper.restart(self.now, pace);
                }
                let pdu = self.create_pdu(chosen.id, number);
                let queue = self.frames.entries[number as usize].queue();
                (queue.sends, queue.pdu) = ((u64::MAX, chosen.bytes), Some(pdu));
                self.emit_router_pdu(pdu);
                self.is_line_busy(number);
            }
            Err(Some(ready)) => self.events.push(ready, position, Event::CircuitFree(number)),
            Err(None) => {}
        }
        self.drop_discarded_at_circuit(position);
    }

    /// Returns the longest queue at `at` in front of the circuits that begin at a router and use this transmitter; `None` if there is no such circuit.
    /// Everything at `at` must have happened.
    pub(in crate::simulate) fn backlog_before_circuits(&mut self, port: usize, at: u64) -> Option<Backlog> {
        let is_here = |entry: &&Entry| entry.queue.is_some() && entry.ports[0] == port;
        self.frames.entries.iter().find(is_here)?;
        // The line may have begun the last cell of a packet by now.
        self.advance(port, at);
        self.collect_nic_departures();
        let queues = self.frames.entries.iter().filter(is_here).filter_map(|entry| entry.queue.as_ref());
        queues.map(|queue| queue.backlog(at)).max_by_key(|queue| queue.bytes)
    }

    /// Begins the measurement window of the queues in front of circuits. Everything at `from` must have happened.
    pub(in crate::simulate) fn begin_window_on_circuits(&mut self, from: u64) {
        for number in 0..self.frames.entries.len() {
            let entry = &mut self.frames.entries[number];
            let position = entry.ports[0];
            let Some(queue) = &mut entry.queue else { continue };
            if queue.pdu.is_some() {
                // The line may have begun the last cell of the packet by now.
                self.advance(position, from);
                self.collect_nic_departures();
            }
            let queue = self.frames.entries[number].queue();
            queue.longest = LongestQueue::default();
            queue.longest.note(queue.backlog(from));
        }
    }

    /// Advances a cell port to the instant before now, so that departures of the cells that arrived before are known.
    fn catch_up_departures(&mut self, position: usize) {
        // Only to the instant before: a cell that arrives now may meet others that are not known yet. Cells that have left by now arrived before.
        self.advance(position, self.now - 1);
        self.collect_nic_departures();
    }

    /// Returns true if the line has not begun the last cell of the packet being sent. Then schedules a `CircuitFree` event for the instant at which it has, or at
    /// which that may be known.
    fn is_line_busy(&mut self, number: u32) -> bool {
        let entry = &mut self.frames.entries[number as usize];
        let position = entry.ports[0];
        let queue = entry.queue();
        let at = match queue.pdu {
            // The emission time of the last cell is known; the cell leaves the line later.
            Some(pdu) => self.shared.pdus[pdu].eta.max(self.now) + 1,
            None => queue.sends.0,
        };
        if at <= self.now {
            return false;
        }
        let asks = queue.pdu.is_some() || queue.scheduler.backlog().packets > 0;
        queue.asked = if asks { at } else { u64::MAX };
        if asks {
            self.events.push(at, position, Event::CircuitFree(number));
        }
        true
    }

    /// Records when the last cell of a PDU leaves the router on which its circuit begins. The next packet is chosen when the line begins that cell, so that a
    /// shaper keeps its pace, but no earlier than a picosecond after the cell's emission, because this is not known before.
    pub(in crate::simulate) fn on_last_cell_left_router(&mut self, left: NicDeparture) {
        let begins = (left.at - self.ports[left.nic].slot_at_least).max(left.emitted + 1);
        for entry in &mut self.frames.entries {
            let Some(queue) = entry.queue.as_mut().filter(|queue| queue.pdu == Some(left.pdu)) else {
                continue;
            };
            // An adaptive shaper begins its next PDU no earlier than its pace allows.
            let vc = &self.shared.vcs[entry.vc as usize];
            let turn = vc.adaptive_shaper.map_or(0, |_| vc.shaper.next());
            (queue.sends.0, queue.pdu) = (begins.max(turn), None);
        }
    }

    /// Drops the packets that the discipline in front of a circuit has dropped in the current call.
    fn drop_discarded_at_circuit(&mut self, port: usize) {
        while let Some((packet, cause)) = self.frames.dropped.pop() {
            if let Some(deferred) = &mut self.shared.ledger.deferred {
                deferred.lost(port, 1);
            }
            if let Some(trace) = &mut self.shared.trace {
                trace.dropped(port, self.now);
            }
            self.drop_packet(packet.id, DropLocation::Queue(port, cause), self.now);
        }
    }

    /// Converts a packet into a PDU on a circuit. When all cells have arrived, the packet continues at the step after the circuit.
    fn create_pdu(&mut self, id: u32, number: u32) -> u32 {
        let place = self.shared.datagrams.packet(id).place;
        let datagram = self.shared.datagrams.packet(id).datagram;
        // The frame lines crossed so far are recorded now; on the lines of the circuit, the cells are.
        self.shared.track_per_hop(datagram);
        self.record_hops_carried(id);
        let step = self.frames.steps[place as usize];
        let since = self.frames.lines_before(place + 1);
        let packet = self.shared.datagrams.packet_mut(id);
        (packet.place, packet.since) = (place + 1, since);
        let ip = packet.ip;
        let Entry { vc, encapsulation, ref ports, .. } = self.frames.entries[number as usize];
        if self.frames.is_branched(place) || self.shared.ledger.tracks_packets() {
            let packet = self.shared.datagrams.packet(id);
            let piece = self.frames.piece(id, &Packet { place, ..*packet }, place);
            for line_index in step.line_index..step.line_index + ports.len() as u16 {
                self.shared.ledger.track_packet(datagram, line_index, piece);
            }
        }
        let sdu = encapsulation.sdu(ip.into());
        let pdu = self.shared.pdus.insert(Aal5Pdu {
            packet: id,
            line_index: step.line_index,
            ..Aal5Pdu::new(vc, datagram, sdu as u32, aal5::cells(sdu) as u32 + 1)
        });
        self.shared.datagrams[datagram].refs += 1;
        self.shared.ledger.copy_snapshot_to_pdu(pdu, id);
        if let Some(trace) = &mut self.shared.trace {
            trace.carries(pdu, id, self.shared.datagrams.packet(id).ttl());
        }
        pdu
    }

    /// Creates the PDU of a host's packet whose route begins with a circuit and goes on behind it.
    pub(in crate::simulate) fn create_first_pdu(
        &mut self,
        sender: usize,
        ready_packet: &ReadyPacket,
        route: u32,
    ) -> u32 {
        let id = self.packet_of(sender, ready_packet, route);
        if self.shared.trace.is_some() {
            self.tap_emitted(Carrier::Packet(id), sender, ready_packet);
        }
        let first = self.frames.routes[route as usize].first;
        let Verdict::Circuit(number) = self.frames.steps[first as usize].verdict else {
            unreachable!("the route begins with a circuit")
        };
        self.create_pdu(id, number)
    }

    /// Forwards the packet of a PDU that has arrived at the end of its circuit.
    pub(in crate::simulate) fn leave_circuit(&mut self, pdu: u32) {
        let packet = std::mem::replace(&mut self.shared.pdus[pdu].packet, Aal5Pdu::NO_PACKET);
        self.shared.ledger.copy_snapshot_to_packet(packet, pdu);
        self.receive_or_forward(packet);
    }

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
            _ => self.forward(packet, place, self.now, true),
        }
    }
}
