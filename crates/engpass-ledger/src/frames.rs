//! Lines that carry frames: each transmission is known when it begins, or before.

use engpass_cells::{LineStatus, Window};
use engpass_model::line::{Told, Transmission};
use engpass_model::wire::ip::Fragments;
use engpass_model::wire::layers::Change;

use super::waits::{StateTimes, parts_of};
use super::{Ledger, Line, LineSenders, Teller, Whose, put};

impl Ledger {
    /// Whether the line of `port` is to tell of every transmission: several senders use it, or it is booked later.
    pub fn is_watched(&self, port: usize) -> bool {
        self.on && (self.lines[port].user == LineSenders::Shared || self.later.is_some())
    }

    /// A watched line, whose book has this slot in the lane of a datagram, sends a packet of it behind all that it knows of.
    #[inline]
    pub fn transmits(
        &mut self,
        slot: u16,
        (id, whose): (u32, Whose),
        packet: u32,
        sent: &Transmission,
        from: &impl Teller,
    ) {
        if self.later.is_some() {
            self.transmits_later(slot, (id, whose), packet, sent, from);
            return;
        }
        let line = &mut self.lines[from.number()];
        line.idle = from.told().idle;
        if sent.held > 0 {
            line.held(sent.held.min(sent.idle));
        }
        self.book_outage(from.number());
        // What leaves after the end says nothing.
        if whose.counted && sent.end <= self.window.end {
            let book = self.book_of(whose, slot);
            self.packet_left(from.number(), book, packet, sent.bytes);
        }
    }

    /// The same of a line that several senders use, and that has held nothing back: it sends a packet of `ip` bytes.
    #[inline(always)]
    pub fn shares_line(&mut self, slot: u16, whose: Whose, packet: u32, ip: u32, from: &impl Teller) {
        let place = self.book_of(whose, slot);
        let line = &mut self.lines[from.number()];
        line.idle = from.told().idle;
        if !whose.counted {
            return;
        }
        let (book, stamps) = (&mut self.books[place as usize], &mut self.packet_stamps);
        if line.idle > line.booked {
            line.user_left_by(book, place, (packet, from.line_bytes(ip)), stamps);
        }
        line.left_by(book, place, packet, stamps);
    }

    /// The book of a datagram with this slot in its lane.
    #[inline]
    pub(super) fn book_of(&self, whose: Whose, slot: u16) -> u32 {
        self.first[self.lane(whose.flow, whose.to)] + u32::from(slot)
    }

    /// The discipline of a line that has told `idle` has held back what it sends now.
    pub fn held(&mut self, port: usize, sent: &Transmission, idle: u64) {
        if !self.on {
            return;
        }
        let line = &mut self.lines[port];
        line.idle = idle;
        line.held(sent.held.min(sent.idle));
    }

    /// A transmission does not lie in the window.
    #[cold]
    pub fn cut_off(&mut self, port: usize, sent: &Transmission) {
        if self.on {
            self.lines[port].cut_off(sent, self.window);
        }
    }

    /// So many bytes of a datagram, of those that are written down, were carried by the line whose book has this slot; or taken back.
    pub fn write(&mut self, datagram: u32, slot: u16, bytes: u32, back: bool) {
        if !self.on {
            return;
        }
        let carried = &mut self.carried[datagram as usize * self.stride + usize::from(slot)];
        // What an edge of the window has cut off is taken back before all that was carried is written.
        *carried = if back { carried.wrapping_sub(bytes) } else { carried.wrapping_add(bytes) };
    }

    /// What the sender of a lane makes of a datagram with so many bytes behind its IP header.
    pub fn cut_by_sender(&self, (flow, to): (u32, Option<u32>), bytes: u64) -> Fragments {
        let book = &self.books[self.first[self.lane(flow, to)] as usize];
        match self.entries[book.entry as usize].changes[0] {
            Change::Cut(mtu) => Fragments::of(bytes, mtu),
            Change::Wrap(_) => unreachable!("first the sender cuts"),
        }
    }

    /// So many packets of a datagram that its sender cut, with so many bytes behind the IP header, have arrived before anything was written down
    /// of it: all lines have carried them.
    pub fn write_arrived(&mut self, datagram: u32, (flow, to): (u32, Option<u32>), bytes: u64, arrived: u64) {
        if !self.on {
            return;
        }
        // They have come in the order in which they were sent.
        let sent = self.cut_by_sender((flow, to), bytes);
        let lane = self.lane(flow, to);
        let books = &self.books[self.first[lane] as usize..self.first[lane + 1] as usize];
        for (book, carried) in books.iter().zip(&mut self.carried[datagram as usize * self.stride..]) {
            let entry = &self.entries[book.entry as usize];
            let units: u64 =
                (0..arrived).map(|place| entry.wire.units(sent.payload(place) + entry.added())).sum();
            *carried += units as u32;
        }
    }

    /// The window begins on a line that carries frames at `at`: what the edge cuts has told itself.
    pub fn opens_frames(&mut self, from: &impl Teller, at: u64) {
        let line = &mut self.lines[from.number()];
        line.learn(from.told());
        let begun = line.edges[0].begun;
        line.open(LineStatus { begun, ..from.doing(at) });
    }

    /// The window ends on a line that carries frames at `at`.
    pub fn closes_frames(&mut self, from: &impl Teller, at: u64) {
        let port = from.number();
        let line = &mut self.lines[port];
        line.learn(from.told());
        let begun = line.edges[1].begun;
        self.closes(port, LineStatus { begun, ..from.doing(at) });
    }

    /// A line that carries frames goes down or comes up: while it is down its idle time has that reason.
    pub fn line_changes(&mut self, from: &impl Teller, at: u64, down: bool) {
        if !self.on {
            return;
        }
        let idle = from.told().idle + from.doing(at).idle;
        let port = from.number();
        if down {
            self.down.entry(port).or_insert(idle);
        } else if let Some(since) = self.down.remove(&port) {
            self.lines[port].was_down(since, idle);
        }
    }

    /// A line has sent something: if it is down, the idle time before that has this reason, and nobody's else.
    #[inline]
    pub(super) fn book_outage(&mut self, port: usize) {
        if let Some(since) = self.down.get_mut(&port) {
            let line = &mut self.lines[port];
            line.was_down(*since, line.idle);
            *since = line.idle.max(*since);
        }
    }

    /// A packet, `elastic` if it carries data of the sender, enters the NIC of a line that carries frames, and has left at `until` with all that is around it.
    #[inline]
    pub fn emitted_packet(&mut self, sender: usize, (elastic, packet): (bool, u32), now: u64, until: u64) {
        if let Some(place) = self.emit(sender, elastic, now, until) {
            let waits = &self.senders[place];
            if waits.is_emitting_after(until) {
                // Another NIC of the host has more of it.
                self.packet_stamps.put(packet, parts_of(&waits.sums_at(until)));
            } else {
                self.packet_stamps.put(packet, waits.parts());
            }
        }
    }

    /// The same, and its sender's connection was spoken to.
    #[inline(always)]
    pub fn sends_packet(
        &mut self,
        states: Option<usize>,
        (elastic, packet): (bool, u32),
        now: u64,
        until: u64,
    ) {
        let Some(place) = states else { return };
        let waits = &mut self.senders[place];
        waits.emit_and_stir(now, until);
        if elastic && waits.stamped {
            self.packet_stamps.put(packet, waits.parts());
        }
    }

    /// The same of a process, whose application has nothing more to send then.
    #[inline(always)]
    pub fn sends_message(&mut self, process: usize, packet: u32, now: u64, until: u64) {
        if !self.on {
            return;
        }
        let waits = &mut self.senders[process];
        waits.emit_last(now, until);
        if waits.stamped {
            self.packet_stamps.put(packet, waits.parts());
        }
    }

    /// No packet is on its way, and those to come begin anew.
    pub fn forget_packets(&mut self) {
        self.packet_stamps.forget_packets(self.books.iter_mut().map(|book| &mut book.stamp));
    }

    /// What the sender of a packet had done when it was emitted, for those that come into being of it.
    pub fn stamp_of(&self, packet: u32) -> Option<StateTimes> {
        self.packet_stamps.known(packet)
    }

    /// A packet becomes a frame of cells.
    pub fn frame_inherits(&mut self, frame: u32, packet: u32) {
        if let Some(stamp) = self.packet_stamps.known(packet) {
            put(&mut self.stamps, frame, &stamp);
        }
    }

    /// A frame of cells is a packet again.
    pub fn packet_inherits(&mut self, packet: u32, frame: u32) {
        if let Some(stamp) = self.stamps.get(frame as usize) {
            self.packet_stamps.put(packet, parts_of(stamp));
        }
    }

    /// A fragment or a copy of a packet with this stamp has come into being.
    pub fn inherits(&mut self, packet: u32, stamp: Option<&StateTimes>) {
        if let Some(stamp) = stamp {
            self.packet_stamps.put(packet, parts_of(stamp));
        }
    }
}

impl Line {
    /// Take over what the line has told.
    fn learn(&mut self, told: Told) {
        (self.idle, self.rounding) = (told.idle, told.rounding);
        (self.frames, self.bytes) = (told.frames, told.bytes);
    }

    /// A transmission does not lie in the window: note what an edge cuts of it.
    pub(super) fn cut_off(&mut self, sent: &Transmission, window: Window) {
        let (ticks, per_ps) = (u128::from(self.ticks), u128::from(self.ticks_per_ps));
        let begin = u128::from(sent.begin.0) * per_ps + u128::from(sent.begin.1);
        let since = |at: u64| (u128::from(at) * per_ps).checked_sub(begin).filter(|since| *since > 0);
        let whole = sent.end <= window.end;
        if !whole && let Some(begun) = since(window.end) {
            self.edges[1].begun = begun;
        }
        if let Some(from) = window.from
            && sent.end > from
            && let Some(begun) = since(from)
        {
            self.edges[0].begun = begun;
            self.cut = whole.then_some(u128::from(sent.bytes) * ticks);
        }
    }
}
