//! NIC buffers and shapers (docs/model.md, "NIC room" and "The way from a NIC").
//!
//! The state is in `../nic.rs`.

use engpass_model::wire::Framing;
use engpass_model::wire::ip::IP_HEADER_BYTES;

use super::{Engine, Source};
use crate::cell::{Cell, LineId, after};
use crate::event_queue::{Event, Group, Sender};
use crate::idle::Crossing;
use crate::nic::{Nic, parts};
use crate::packet::{Out, Packet};
use crate::wire::cells;

impl Engine<'_> {
    /// Creates a packet with `bytes` of the IP payload of a datagram, at the beginning of its path.
    pub(crate) fn packet(&self, way: usize, datagram: usize, offset: u64, bytes: u64) -> Packet {
        let this = self.ledger.datagram(datagram);
        let processes = self.sources.iter().filter(|source| matches!(source, Source::Process(_)));
        let sender = match &this.segment {
            Some((_, to)) => processes.count() + (*to ^ 1),
            None => {
                let before = self.sources[..this.flow].iter();
                before.filter(|source| matches!(source, Source::Process(_))).count()
            }
        };
        let room = match self.ways[way].first {
            Out::Circuit(vc) => self.sdu(vc, IP_HEADER_BYTES + bytes),
            Out::Line(_) => IP_HEADER_BYTES + bytes,
            Out::Tunnel(_) => unreachable!("a tunnel does not begin at a host"),
        };
        Packet {
            offset,
            bytes,
            way,
            ttl: self.testbed.traffic[this.flow].ttl().expect("packet traffic has a TTL"),
            priority: self.testbed.traffic[this.flow].priority(),
            ect: this.segment.is_some_and(|(segment, _)| segment.ect),
            room,
            path: Some(Vec::new()),
            ..Packet::of_sender(this.flow, datagram, sender)
        }
    }

    pub(crate) fn packet_in_work(&mut self, sender: Sender) -> Packet {
        match sender {
            Sender::Process(flow) => self.fragment_in_work(flow),
            Sender::Endpoint(endpoint) => self.segment_in_work(endpoint),
        }
    }

    /// Hands over the packet of a sender, at once if it has room; otherwise the sender waits behind the others.
    pub(crate) fn packet_handed(&mut self, now: u64, sender: Sender) {
        let out = self.leaves_host(sender);
        self.chosen.insert(self.sender_number(sender), out);
        let nic = self.first_line(out);
        self.nic(nic).waiting.push_back(sender);
        if self.nic(nic).waiting.len() == 1 {
            self.serve_waiting(now, nic);
        }
    }

    fn nic(&mut self, nic: LineId) -> &mut Nic {
        &mut self.nics[nic.link][nic.end]
    }

    /// Serves the first waiting sender if its packet has room. The next one has its own position among the events of the instant.
    pub(crate) fn serve_waiting(&mut self, now: u64, nic: LineId) {
        let host = self.topology.links[nic.link].ends[nic.end];
        let Some(&sender) = self.nic(nic).waiting.front() else { return };
        let packet = self.packet_in_work(sender);
        let occupied = self.nic(nic).occupied;
        if occupied > 0 && occupied + packet.room > self.testbed.hosts[host].nic_buffer.bytes() {
            return;
        }
        self.nic(nic).waiting.pop_front();
        self.nic(nic).occupied += packet.room;
        self.history(sender).enters_nic();
        self.look_again(now, nic);
        let number = self.packets.len();
        let first = self.chosen[&self.sender_number(sender)];
        self.packets.push(packet);
        match first {
            Out::Circuit(vc) => self.hand_to_shaper(now, vc, number),
            Out::Line(line) => self.joins_queue(now, line, number),
            Out::Tunnel(_) => unreachable!("a tunnel does not begin at a host"),
        }
        match sender {
            Sender::Process(flow) => self.process_goes_on(now, flow),
            Sender::Endpoint(endpoint) => self.endpoint_goes_on(now, endpoint),
        }
    }

    /// Schedules a check of the room for the first waiting sender.
    fn look_again(&mut self, now: u64, nic: LineId) {
        if let Some(&sender) = self.nic(nic).waiting.front() {
            self.agenda.put(now, Group::PacketHanded, self.place_of(sender), Event::RoomFreed(nic));
        }
    }

    /// Frees the NIC buffer of a packet that has left.
    pub(crate) fn frees_room(&mut self, now: u64, nic: LineId, packet: usize) {
        let room = self.packets[packet].room;
        self.nic(nic).occupied -= room;
        self.look_again(now, nic);
    }

    /// Handles a cell that left the line of the NIC: with the last cell of a packet its buffer becomes free. Generators occupy none.
    pub(crate) fn left_the_nic(&mut self, now: u64, nic: LineId, cell: &Cell) {
        if cell.last {
            self.frees_room(now, nic, cell.packet);
        }
    }

    /// Hands all cells of a packet to the shaper of its circuit direction.
    pub(crate) fn hand_to_shaper(&mut self, now: u64, vc: usize, packet: usize) {
        let cells = cells(self.sdu(vc, self.packets[packet].ip()));
        self.packets[packet].cells = cells;
        self.packets[packet].crosses(Crossing::Circuit(vc));
        let clp = self.topology.circuits[self.vcs[vc].circuit].clp;
        let shaper = &mut self.shapers[vc];
        if shaper.waiting.is_empty() {
            if now >= shaper.next() {
                shaper.base = now;
                shaper.n = 0;
            }
            self.agenda.put(shaper.next(), Group::CellReachesNic, (vc, 0), Event::ShaperEmits { vc });
        }
        for number in 0..cells {
            let last = number + 1 == cells;
            let cell = Cell { packet, number, last, vc, hop: 0, clp, efci: false, order: 0 };
            shaper.waiting.push_back(cell);
        }
    }

    /// Emits the first cell of a shaper, which reaches the line in the same instant.
    pub(crate) fn shaper_emits(&mut self, now: u64, vc: usize) {
        let at_host = self.at_host(self.vcs[vc].lines[0]);
        let shaper = &mut self.shapers[vc];
        let cell = shaper.waiting.pop_front().expect("an emitting shaper has a waiting cell");
        if cell.number == 0 && at_host {
            shaper.begins_frame(now);
        }
        shaper.n += 1;
        let more = !shaper.waiting.is_empty();
        if cell.last && at_host {
            self.packet_emitted(now, cell.packet, now + self.slot_of_nic(vc));
        }
        let shaper = &mut self.shapers[vc];
        if more {
            self.agenda.put(shaper.next(), Group::CellReachesNic, (vc, 0), Event::ShaperEmits { vc });
        }
        let last = cell.last;
        self.reaches_nic_line(now, cell);
        if last && !at_host {
            self.last_cell_waits(now, vc);
        }
    }

    /// Returns the time of a cell on the line of the NIC in picoseconds, rounded down.
    fn slot_of_nic(&self, vc: usize) -> u64 {
        self.unit(self.vcs[vc].lines[0]).time(1)
    }

    pub(crate) fn waits_for_nic(&self, nic: LineId, sender: Sender) -> bool {
        self.nics[nic.link][nic.end].waiting.contains(&sender)
    }

    /// Records that a NIC emits the last cell of a packet, or the last bit of its frame. Its sender counts as sending until `until`: the end of the cell, or of
    /// the gap behind the frame.
    pub(crate) fn packet_emitted(&mut self, now: u64, packet: usize, until: u64) {
        let this = &mut self.packets[packet];
        this.emitted = Some(until);
        if this.arp.is_some() || this.igmp.is_some() {
            return;
        }
        self.histories[this.discipline_flow as usize].emitted(now, until);
    }

    /// Schedules feedback to an adaptive shaper when the last cell of a PDU reaches the end of its circuit.
    pub(crate) fn answer_pdu(&mut self, now: u64, vc: usize, marked: bool) {
        if self.shapers[vc].rate.is_none() {
            return;
        }
        let mut at = now;
        for line in &self.vcs[vc].lines {
            let link = &self.topology.links[line.link];
            // The feedback travels against the direction of the cells.
            let Framing::Cells { slot } = link.lines[1 - line.end].framing else {
                panic!("the oracle knows ATM links only")
            };
            at += link.delay.ps() + after(slot, 1);
        }
        self.agenda.put(at, Group::Answer, (vc, 0), Event::Answer { vc, marked });
    }

    /// Handles feedback that reached its shaper.
    pub(crate) fn answer(&mut self, vc: usize, marked: bool) {
        let rate = self.shapers[vc].rate.as_mut().expect("only an adaptive shaper gets feedback");
        rate.unanswered = 0;
        if marked {
            rate.lower();
        } else {
            rate.parts = (rate.parts + parts(rate.config.increase)).min(parts(rate.config.max));
        }
    }

    /// Adds a cell to the first line of its circuit, whose queue is unbounded.
    pub(crate) fn reaches_nic_line(&mut self, now: u64, mut cell: Cell) {
        cell.order = self.emitted[cell.vc];
        self.emitted[cell.vc] += 1;
        let line = self.vcs[cell.vc].lines[0];
        self.join(now, line, cell, 0);
    }
}
