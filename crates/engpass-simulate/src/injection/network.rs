//! The network as injection drives it: time, measurement windows, and packets that enter.

use engpass_frames::FramePort;
use engpass_ledger::SenderState;
use engpass_model::window::Window;
use engpass_model::wire::ip::IP_HEADER_BYTES;

use super::nic_queues::{QueuedPacket, Sender};
use super::{FOREVER, Packet};
use crate::Network;
use crate::clock::ADVANCE_INTERVAL;
use crate::flow_counters::{FlowCounters, VcCounters};
use crate::ready_packet::{EgressPath, ReadyPacket};
use crate::shared_state::SharedState;

impl SharedState {
    /// Sets the measurement window.
    pub(super) fn set_window(&mut self, window: Window) {
        self.window = window;
        self.ledger.set_window(window);
    }
}

impl Network {
    /// Like [`Self::run_until`], for a network with packet injection: handles everything that happens at or before `until`.
    pub(super) fn reach(&mut self, until: u64) {
        self.clock.until = until;
        loop {
            let limit = self.clock.next_advance.min(until);
            if let Some((at, event)) = self.clock.events.pop_until(limit) {
                self.clock.now = at;
                self.clock.handled += 1;
                self.handle_event(event);
            } else if self.clock.next_advance <= until {
                self.sweep_and_report();
            } else {
                break;
            }
        }
        self.clock.now = self.clock.now.max(until);
    }

    /// Advances all cell ports to just before the next multiple of [`ADVANCE_INTERVAL`], reports losses of cells, and ends the sweeps when nothing is left in the network.
    fn sweep_and_report(&mut self) {
        let at = self.clock.next_advance;
        self.clock.now = at;
        self.advance_periodically();
        self.shared.post_until(at - 1);
        let Some(reports) = &mut self.shared.reports else { return };
        reports.confirm_losses_before(at);
        if self.cells.sources.is_empty() && reports.count_unreported() == 0 {
            self.clock.next_advance = u64::MAX;
        }
    }

    /// Resumes the sweeps, because there may be cells from now on.
    pub(super) fn sweep_from_now(&mut self) {
        if self.clock.next_advance == u64::MAX {
            self.clock.next_advance = (self.clock.now / ADVANCE_INTERVAL + 1) * ADVANCE_INTERVAL;
        }
    }

    /// Begins a measurement window at `from`. Everything at `from` must have happened.
    pub(super) fn open_window(&mut self, from: u64) {
        self.shared.post_until(from);
        self.shared.set_window(Window { from: Some(from), end: FOREVER });
        self.shared.ledger.begin_window(from);
        for (port, line) in self.cells.ports.iter().enumerate() {
            // Other ports begin when they are advanced to `from`.
            if line.is_advanced_to(from) {
                self.shared.ledger.begin_window_on(port, line.line_status(from));
            }
        }
        for counter in self.shared.counters.iter_mut().flatten() {
            *counter = VcCounters { vc: counter.vc, ..VcCounters::default() };
        }
        self.shared.flows.iter_mut().for_each(FlowCounters::reset_counters);
        self.frames.ports.iter_mut().for_each(FramePort::reset_counters);
        self.frames.engines.iter_mut().for_each(|engine| engine.busy.begin_window(from));
        self.cells.sources.iter_mut().for_each(|source| source.forget_before(from));
    }

    /// Ends the measurement window at `end`. Everything at `end` must have happened.
    pub(super) fn close_window(&mut self, end: u64) {
        self.cells.advance_all(end, &mut self.shared);
        self.shared.post_until(end);
        self.shared.set_window(Window { end, ..self.shared.window });
        self.shared.count_open_losses();
        let ledger = &mut self.shared.ledger;
        for port in 0..self.hosts.nics.len() {
            match self.frames.port_mut(port) {
                Some(line) => {
                    ledger.close_deferred_line(port, end);
                    line.set_sent(ledger.deferred.as_ref().map_or((0, 0), |deferred| deferred.left(port)));
                }
                None => ledger.end_window_on(port, self.cells.ports[port].line_status(end)),
            }
        }
    }

    /// Takes an injected packet whose instant is now. `number` is the number of packets before it; `copies` is the key of its copies.
    pub(super) fn on_packet_injected(&mut self, sender: usize, packet: Packet, number: u64, copies: u64) {
        if let Some(reports) = &mut self.shared.reports {
            reports.count_in(1 + self.injected.groups.copies(copies) as u32);
        }
        let (nic, way) = self.injected.way_of_packet(sender, &packet, &mut self.frames);
        let queued = QueuedPacket { sender, way, packet, since: self.clock.now, number, copies };
        if copies == 0 && self.try_enter_nic_directly(&queued, nic) {
            return;
        }
        if self.injected.enqueue(nic, queued) {
            self.drain_nic_queue(nic);
        } else {
            let place = self.shared.processes + self.shared.endpoints + sender;
            self.shared.ledger.set_sender_state(place, self.clock.now, SenderState::Nic);
        }
    }

    /// Shortcut: hands over an unfragmented packet at once, if nothing waits for its NIC and there is room. Returns false, without effect, otherwise. The queue
    /// would give the same result.
    fn try_enter_nic_directly(&mut self, first: &QueuedPacket, nic: usize) -> bool {
        let QueuedPacket { sender, way, packet, .. } = *first;
        let Sender { flow, mtu, .. } = self.injected.sender(sender);
        let ip = u64::from(packet.bytes).max(IP_HEADER_BYTES);
        if ip > mtu || self.injected.has_waiting(nic) {
            return false;
        }
        let mut ready_packet = ReadyPacket { flow, nic, way, ip, datagram: u32::MAX, offset: 0 };
        if self.hosts.nics[nic].has_waiters() || !self.nic_has_room(&ready_packet) {
            return false;
        }
        ready_packet.datagram = self.injected.create_datagram(first, (1, false), &mut self.shared);
        let place = self.shared.processes + self.shared.endpoints + sender;
        self.emit(place, &ready_packet);
        self.shared.ledger.set_sender_state(place, self.clock.now, SenderState::Application);
        self.shared.datagram_sent(ready_packet.datagram, self.clock.now);
        true
    }

    /// Hands waiting packets to a NIC until it has no room.
    fn drain_nic_queue(&mut self, nic: usize) {
        while let Some(sender) = self.injected.next_sender(nic, &mut self.shared) {
            let place = self.shared.processes + self.shared.endpoints + sender;
            if !self.enter_nic_or_wait_with(place, self.injected.ready_packet(nic)) {
                return;
            }
            self.injected.finish_head_fragment(nic, &mut self.shared, self.clock.now);
        }
    }

    /// Continues the queue of a NIC, which has taken a fragment that had to wait.
    pub(crate) fn on_packet_sent(&mut self, nic: usize) {
        self.injected.finish_head_fragment(nic, &mut self.shared, self.clock.now);
        self.drain_nic_queue(nic);
    }

    /// Takes the first of `count` identical packets whose instant is now, as many as form a packet train; `number` is the number of packets before them.
    /// Returns how many it took.
    pub(super) fn try_inject_train(&mut self, sender: usize, packet: Packet, count: u32, number: u64) -> u32 {
        let Sender { nic, mtu, way: EgressPath::Frames { route }, .. } = self.injected.sender(sender) else {
            return 0;
        };
        let ip = u64::from(packet.bytes).max(IP_HEADER_BYTES);
        let waits = self.injected.has_waiting(nic) || self.hosts.nics[nic].has_waiters();
        if count < 2 || ip > mtu || waits {
            return 0;
        }
        let (capacity, now) = (self.hosts.nics[nic].capacity, self.clock.now);
        let (length, times) = ((ip as u32, packet.ttl), (capacity, now));
        let count = self.shared.max_train_len(route, length, count, times, &mut self.frames);
        if count < 2 {
            return 0;
        }
        if let Some(reports) = &mut self.shared.reports {
            reports.count_in(count);
        }
        let datagram = self.injected.create_datagram(
            &QueuedPacket {
                sender,
                way: EgressPath::Frames { route },
                packet,
                since: self.clock.now,
                number,
                copies: 0,
            },
            (count as u16, true),
            &mut self.shared,
        );
        let place = self.shared.processes + self.shared.endpoints + sender;
        let train = (datagram, ip as u32);
        if let Some((at, line, event)) = self.shared.emit_train(place, train, route, now, &mut self.frames) {
            self.clock.events.push(at, line, event);
        }
        self.shared.ledger.set_sender_state(place, self.clock.now, SenderState::Application);
        self.shared.datagram_sent(datagram, self.clock.now);
        count
    }
}
