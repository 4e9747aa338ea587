//! Frame lines: the ledger learns of each transmission when it begins, or earlier.

use engpass_model::line::{FrameLine, LineStatus, LineTotals, Transmission};
use engpass_model::window::Window;
use engpass_model::wire::ip::Fragments;
use engpass_model::wire::layers::Change;

use super::sender_states::{StateTimes, parts_of};
use super::{DatagramOwner, Ledger, Line, LineSenders, put};

impl Ledger {
    /// Returns whether the line of `port` must report every transmission: several senders share it, or postings are deferred.
    pub fn needs_every_transmission(&self, port: usize) -> bool {
        self.on && (self.lines[port].user == LineSenders::Shared || self.deferred.is_some())
    }

    /// Posts a packet whose transmission a line reports. `line_index` is the index of the line's usage record in the flow direction.
    #[inline]
    pub fn post_transmission(
        &mut self,
        line_index: u16,
        (id, whose): (u32, DatagramOwner),
        packet: u32,
        sent: &Transmission,
        from: &impl FrameLine,
    ) {
        if self.deferred.is_some() {
            self.defer_transmission(line_index, (id, whose), packet, sent, from);
            return;
        }
        let line = &mut self.lines[from.number()];
        line.idle = from.totals().idle;
        if sent.held > 0 {
            line.held(sent.held.min(sent.idle));
        }
        self.assign_outage(from.number());
        // Packets that leave after the end of the window divide no idle time.
        if whose.counted && sent.end <= self.window.end {
            let usage = self.usage_of(whose, line_index);
            self.attribute_on_packet(from.number(), usage, packet, sent.bytes);
        }
    }

    /// Like [`Self::post_transmission`], for a packet of `ip` bytes on a shared line without deferral, where no discipline has held packets back.
    #[inline(always)]
    pub fn attribute_shared_idle(
        &mut self,
        line_index: u16,
        whose: DatagramOwner,
        packet: u32,
        ip: u32,
        from: &impl FrameLine,
    ) {
        let place = self.usage_of(whose, line_index);
        let line = &mut self.lines[from.number()];
        line.idle = from.totals().idle;
        if !whose.counted {
            return;
        }
        let (usage, stamps) = (&mut self.usages[place as usize], &mut self.packet_stamps);
        if line.idle > line.booked {
            line.attribute_idle_of_packet(usage, place, (packet, from.line_bytes(ip)), stamps);
        }
        line.note_departure(usage, place, packet, stamps);
    }

    /// Returns the index of the usage record with number `line_index` in the datagram's flow direction.
    #[inline]
    pub(super) fn usage_of(&self, whose: DatagramOwner, line_index: u16) -> u32 {
        self.first[self.direction_of(whose.flow, whose.to)] + u32::from(line_index)
    }

    /// Posts the time for which the queue discipline held back a transmission. `idle` is the line's idle time so far, in picoseconds.
    pub fn held(&mut self, port: usize, sent: &Transmission, idle: u64) {
        if !self.on {
            return;
        }
        let line = &mut self.lines[port];
        line.idle = idle;
        line.held(sent.held.min(sent.idle));
    }

    /// Records how much of a transmission across a window edge lies in the window.
    #[cold]
    pub fn clip_to_window(&mut self, port: usize, sent: &Transmission) {
        if self.on {
            self.lines[port].clip_to_window(sent, self.window);
        }
    }

    /// Adds `bytes` to the per-hop record of a datagram, or subtracts them if `back` is set. `line_index` is the line's usage record.
    pub fn write(&mut self, datagram: u32, line_index: u16, bytes: u32, back: bool) {
        if !self.on {
            return;
        }
        let carried = &mut self.carried[datagram as usize * self.stride + usize::from(line_index)];
        // Bytes that cross a window edge may be taken back before the carried bytes are added; therefore the sum wraps.
        *carried = if back { carried.wrapping_sub(bytes) } else { carried.wrapping_add(bytes) };
    }

    /// Returns the fragments that the sender makes of a datagram with `bytes` behind its IP header.
    pub fn fragments_of_sender(&self, (flow, to): (u32, Option<u32>), bytes: u64) -> Fragments {
        let usage = &self.usages[self.first[self.direction_of(flow, to)] as usize];
        match self.entries[usage.entry as usize].changes[0] {
            Change::Cut(mtu) => Fragments::of(bytes, mtu),
            Change::Wrap(_) => unreachable!("the sender's first change is fragmentation"),
        }
    }

    /// Adds the first `arrived` fragments of a datagram, which its sender fragmented, to its new per-hop record: all lines of the path have carried them.
    pub fn add_arrived_fragments(
        &mut self,
        datagram: u32,
        (flow, to): (u32, Option<u32>),
        bytes: u64,
        arrived: u64,
    ) {
        if !self.on {
            return;
        }
        // Fragments arrive in the order of sending.
        let sent = self.fragments_of_sender((flow, to), bytes);
        let direction = self.direction_of(flow, to);
        let usages = &self.usages[self.first[direction] as usize..self.first[direction + 1] as usize];
        for (usage, carried) in usages.iter().zip(&mut self.carried[datagram as usize * self.stride..]) {
            let entry = &self.entries[usage.entry as usize];
            let units: u64 =
                (0..arrived).map(|place| entry.wire.units(sent.payload(place) + entry.added())).sum();
            *carried += units as u32;
        }
    }

    /// Begins the window on a frame line at the instant `at`. A transmission across the edge is reported with `clip_to_window`.
    pub fn begin_window_on_frame_line(&mut self, from: &impl FrameLine, at: u64) {
        let line = &mut self.lines[from.number()];
        line.learn(from.totals());
        let begun = line.edges[0].begun;
        line.open(LineStatus { begun, ..from.line_status(at) });
    }

    /// Ends the window on a frame line at the instant `at`.
    pub fn end_window_on_frame_line(&mut self, from: &impl FrameLine, at: u64) {
        let port = from.number();
        let line = &mut self.lines[port];
        line.learn(from.totals());
        let begun = line.edges[1].begun;
        self.end_window_on(port, LineStatus { begun, ..from.line_status(at) });
    }

    /// Records that a frame line goes down or comes up. Idle time while it is down is posted as "line down".
    pub fn line_changes(&mut self, from: &impl FrameLine, at: u64, down: bool) {
        if !self.on {
            return;
        }
        let idle = from.totals().idle + from.line_status(at).idle;
        let port = from.number();
        if down {
            self.down.entry(port).or_insert(idle);
        } else if let Some(since) = self.down.remove(&port) {
            self.lines[port].assign_to_line_down(since, idle);
        }
    }

    /// If the line is down, posts the idle time before its current transmission as "line down".
    #[inline]
    pub(super) fn assign_outage(&mut self, port: usize) {
        if let Some(since) = self.down.get_mut(&port) {
            let line = &mut self.lines[port];
            line.assign_to_line_down(*since, line.idle);
            *since = line.idle.max(*since);
        }
    }

    /// Records that a packet enters the NIC of a frame line; `has_data` is true if it carries data of the sender. The NIC has sent it at `until`, gap included.
    #[inline]
    pub fn emitted_packet(&mut self, sender: usize, (has_data, packet): (bool, u32), now: u64, until: u64) {
        if let Some(place) = self.emit(sender, has_data, now, until) {
            let waits = &self.senders[place];
            if waits.is_emitting_after(until) {
                // Another NIC of the host still sends packets of this sender.
                self.packet_stamps.put(packet, parts_of(&waits.sums_at(until)));
            } else {
                self.packet_stamps.put(packet, waits.parts());
            }
        }
    }

    /// Like [`Self::emitted_packet`], for a TCP connection, and also records its activity.
    #[inline(always)]
    pub fn sends_packet(
        &mut self,
        states: Option<usize>,
        (has_data, packet): (bool, u32),
        now: u64,
        until: u64,
    ) {
        let Some(place) = states else { return };
        let waits = &mut self.senders[place];
        waits.emit_and_note_activity(now, until);
        if has_data && waits.stamped {
            self.packet_stamps.put(packet, waits.parts());
        }
    }

    /// Like [`Self::emitted_packet`], for a process whose application then has nothing more to send.
    #[inline(always)]
    pub fn sends_message(&mut self, process: usize, packet: u32, now: u64, until: u64) {
        if !self.on {
            return;
        }
        let waits = &mut self.senders[process];
        waits.emit_then_idle(now, until);
        if waits.stamped {
            self.packet_stamps.put(packet, waits.parts());
        }
    }

    /// Drops the snapshots of all packets. No packet may be in flight.
    pub fn forget_packets(&mut self) {
        self.packet_stamps.forget_packets(self.usages.iter_mut().map(|usage| &mut usage.stamp));
    }

    /// Returns the sender snapshot of a packet, which fragments and copies of it inherit.
    pub fn snapshot_of(&self, packet: u32) -> Option<StateTimes> {
        self.packet_stamps.known(packet)
    }

    /// Copies the sender snapshot of a packet to the PDU that carries it on a circuit.
    pub fn copy_snapshot_to_pdu(&mut self, pdu: u32, packet: u32) {
        if let Some(stamp) = self.packet_stamps.known(packet) {
            put(&mut self.stamps, pdu, &stamp);
        }
    }

    /// Copies the sender snapshot of a PDU to the packet that comes out of it.
    pub fn copy_snapshot_to_packet(&mut self, packet: u32, pdu: u32) {
        if let Some(stamp) = self.stamps.get(pdu as usize) {
            self.packet_stamps.put(packet, parts_of(stamp));
        }
    }

    /// Sets the sender snapshot of a fragment or copy to that of its original.
    pub fn set_snapshot(&mut self, packet: u32, stamp: Option<&StateTimes>) {
        if let Some(stamp) = stamp {
            self.packet_stamps.put(packet, parts_of(stamp));
        }
    }
}

impl Line {
    /// Takes over the totals that a frame line reports.
    fn learn(&mut self, totals: LineTotals) {
        (self.idle, self.rounding) = (totals.idle, totals.rounding);
        (self.frames, self.bytes) = (totals.frames, totals.bytes);
    }

    /// Records how much of a transmission lies before each window edge that it crosses, in ticks.
    pub(super) fn clip_to_window(&mut self, sent: &Transmission, window: Window) {
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
