//! The driver of the simulation: it connects the rooms of a [`Network`], and nothing else does.
//!
//! Handlers stand in the rooms, change at most two of them, and return what has happened. The driver calls them and does what they return: it schedules events,
//! moves packets ([`Network::forward`], [`Network::proceed`]) and lets hosts act ([`Network::act`]). Its methods call each other, because a packet that is handed
//! on may at once make its receiver send.

use engpass_frames::Verdict;
use engpass_ledger::SenderState;

use super::clock::ADVANCE_INTERVAL;
use super::event_queue::Event;
use super::frames::{Links, Pause, PduContent, SendLoop, with_bond_member};
use super::host::{CpuTask, HostStep, Hosts, View};
use super::injection::QueuedPacket;
use super::progress::{Departed, Progress};
use super::ready_packet::{EgressPath, ReadyPacket};
use super::tap::Carrier;
use super::{Network, RunControl, SimError};

impl Network {
    /// Runs up to and including `at`, and begins the measurement window on the way.
    pub(super) fn run_to(&mut self, at: u64, watch: &dyn RunControl) -> Result<(), SimError> {
        let from = self.shared.window.from.filter(|from| self.clock.until < *from && *from <= at);
        if let Some(from) = from {
            self.run_until(from, watch)?;
            // Everything at the last instant of the warm-up has happened.
            self.hosts.begin_window(from);
            self.shared.begin_measurement(&mut self.frames, from);
            self.cells.begin_window_on_circuits(from, &mut self.shared);
        }
        self.run_until(at, watch)
    }

    /// Ends the run: advances all ports to its end, and completes the counts and the ledger.
    pub(super) fn finish(&mut self) {
        self.clock.now = self.clock.end;
        self.cells.advance_all(self.clock.end, &mut self.shared);
        self.shared.record_packets_in_flight(&self.frames);
        self.shared.count_open_losses();
        self.cells.end_measurement(&self.frames, &mut self.shared);
    }

    /// Handles everything that happens at or before `until`.
    pub(super) fn run_until(&mut self, until: u64, watch: &dyn RunControl) -> Result<(), SimError> {
        self.clock.until = until;
        loop {
            let limit = self.clock.next_advance.min(until);
            if let Some((at, event)) = self.clock.events.pop_until(limit) {
                self.clock.now = at;
                self.clock.handled += 1;
                match event {
                    // Nearly all events are of these kinds.
                    Event::FrameArrival(port) => self.on_frame_arrival(port, limit),
                    Event::EndpointWake(endpoint) => {
                        let next = self.hosts.on_endpoint_wake(endpoint as usize, &mut self.shared, at);
                        self.act(next);
                    }
                    other => self.handle_event(other),
                }
                if !self.clock.is_callback_due() {
                    continue;
                }
                self.release_unused_memory(self.clock.now);
            } else if self.clock.next_advance <= until {
                self.advance_periodically();
            } else {
                break;
            }
            watch.reached(self.clock.reached());
            if watch.interrupted() {
                return Err(SimError::Interrupted);
            }
        }
        self.release_unused_memory(until);
        self.clock.now = self.clock.now.max(until);
        Ok(())
    }

    /// Advances all cell ports to just before the next multiple of [`ADVANCE_INTERVAL`]: events at that very instant are still to be handled. With packet
    /// injection, reports losses of cells, and ends this when nothing is left in the network.
    fn advance_periodically(&mut self) {
        let at = self.clock.next_advance;
        self.cells.advance_all(at - 1, &mut self.shared);
        self.clock.next_advance += ADVANCE_INTERVAL;
        if self.shared.reports.is_some() {
            self.clock.now = at;
            if self.shared.report_losses_before(at) && self.cells.sources.is_empty() {
                self.clock.next_advance = u64::MAX;
            }
        }
    }

    /// Releases memory: of events and packets once none is pending or in flight, and of connections that need it no longer. Packet injection goes on, and needs it again.
    fn release_unused_memory(&mut self, now: u64) {
        if self.shared.reports.is_some() {
            return;
        }
        self.clock.events.release_unused_memory();
        self.hosts.release_unused_memory(now);
        self.shared.release_unused_memory();
    }

    #[inline(never)]
    fn handle_event(&mut self, event: Event) {
        let now = self.clock.now;
        match event {
            Event::EngineDone(_)
            | Event::IcmpReady(_)
            | Event::Dequeue(_)
            | Event::ArpTimeout(_)
            | Event::IgmpTimer(_)
            | Event::KeepaliveTimer(_)
            | Event::ReassemblyTimeout(_)
            | Event::DeferredDrop(_)
            | Event::BondMonitor(_) => {
                let departed = self.links().on_event(event);
                self.depart(departed, true);
            }
            Event::PduDueAtHost(pdu) | Event::PduDueAtRouter(pdu) => {
                let (content, next) = self.cells.on_pdu_may_arrive(pdu, now, &mut self.shared);
                self.clock.schedule(next);
                match content {
                    Some(PduContent::Packet(packet)) => self.receive_or_forward(packet),
                    Some(PduContent::Datagram(datagram)) => self.receive(datagram),
                    None => return,
                }
                self.shared.release_cells(pdu, 1);
            }
            Event::CpuDone(host) => {
                if let Some(task) = self.hosts.cpus[host as usize].end_task(now) {
                    self.finish_task(task);
                    self.begin_tasks(host as usize);
                }
            }
            Event::ProcessWake(process) => {
                let next = self.hosts.on_process_wake(process, &mut self.shared, &self.clock);
                self.act(next);
            }
            Event::FrameArrival(_) | Event::EndpointWake(_) => unreachable!("the loop handles these"),
            Event::ShaperFeedback(shaper, marked) => self.cells.shapers[shaper as usize].rate.answer(marked),
            Event::NextPdu(shaper) => {
                self.clock.schedule_all(self.cells.start_next_pdu(shaper, now, &mut self.shared));
            }
            Event::NicSpace(nic) => self.serve_waiting(nic as usize),
            Event::HandOver(process) => self.hand_over(process as usize),
            Event::CircuitFree(entry) => {
                self.clock.schedule_all(self.cells.feed_circuit(entry, now, &self.frames, &mut self.shared));
            }
            Event::LineChange(change) => {
                for event in self.links().change_line(change) {
                    self.clock.schedule(Some(event));
                }
            }
        }
    }

    #[inline(always)]
    fn links(&mut self) -> Links<'_> {
        Links { frames: &mut self.frames, shared: &mut self.shared, clock: &self.clock }
    }

    /// Moves a packet that is at its step at `at` on, from step to step, until an event must come first. It reaches its host ahead of virtual time only if
    /// `arrives` is true.
    #[inline(never)]
    fn forward(&mut self, id: u32, at: u64, arrives: bool) {
        let packet = self.shared.datagrams.packet(id);
        let (place, datagram) = (packet.place, packet.datagram);
        let verdict = self.frames.steps[place as usize].verdict;
        let progress = match verdict {
            Verdict::Out(_) => return self.hop(id, place, at, arrives),
            Verdict::Up if !self.shared.is_of_tree(datagram) => return self.on_packet_at_host(id),
            Verdict::Circuit(entry) if self.links().passes_router(id, place) => {
                debug_assert_eq!(at, self.clock.now, "a packet enters a circuit at the present instant");
                let queued = (id, entry);
                Progress::Rests(self.cells.enter_circuit(queued, at, &self.frames, &mut self.shared))
            }
            _ => self.links().pass_mark(id, place, verdict, at),
        };
        self.proceed(id, progress, arrives);
    }

    /// Like [`Self::forward`], for a step that is a line.
    #[inline(always)]
    fn hop(&mut self, id: u32, place: u32, at: u64, arrives: bool) {
        let hosts = arrives.then_some(&self.hosts);
        let Self { frames, shared, clock, .. } = self;
        match (Links { frames, shared, clock }).hop(id, place, at, hosts) {
            Progress::Ahead(at) => {
                // The packet reaches its host ahead of virtual time.
                let now = std::mem::replace(&mut self.clock.now, at);
                self.on_packet_at_host(id);
                self.clock.now = now;
            }
            other => self.proceed(id, other, arrives),
        }
    }

    /// Continues with a packet after a step.
    #[inline(always)]
    fn proceed(&mut self, id: u32, progress: Progress, arrives: bool) {
        match progress {
            Progress::Ahead(at) => self.forward(id, at, arrives),
            Progress::Rests(event) => self.clock.schedule(event),
            Progress::Parts(count) => self.proceed_in_parts(count, arrives),
        }
    }

    /// Continues with the last `count` packets of `SharedState::parts`.
    #[inline(never)]
    fn proceed_in_parts(&mut self, count: usize, arrives: bool) {
        let first = self.shared.parts.len() - count;
        for index in first..first + count {
            let (id, progress) = self.shared.parts[index];
            self.proceed(id, progress, arrives);
        }
        self.shared.parts.truncate(first);
    }

    /// Continues with a packet that has left a queue or its sender.
    #[inline(always)]
    fn depart(&mut self, (events, packet): Departed, arrives: bool) {
        self.clock.schedule_all(events);
        if let Some((id, progress)) = packet {
            self.proceed(id, progress, arrives);
        }
    }

    /// Handles the frame that arrives at the far end of this port's line, and the frames that follow it up to `limit` as long as no other event comes first.
    #[inline(always)]
    fn on_frame_arrival(&mut self, port: u32, limit: u64) {
        loop {
            let this = &mut self.frames.ports[port as usize];
            let (landed, next) = this.pop_arrival(self.clock.now);
            let number = this.port as usize;
            if let Some(landed) = landed {
                let is_doubtful = landed.damaged || landed.sent.1 > 0;
                if !is_doubtful || !self.links().drops_on_arrival(port, landed) {
                    match self.shared.copies.is_empty() {
                        true => self.receive_or_forward(landed.packet),
                        false => self.receive_or_forward_copies(landed.packet),
                    }
                }
            }
            if next == u64::MAX {
                return;
            }
            // Frames that were sent while this one was handled arrive later than those on the line.
            let event = Event::FrameArrival(port);
            if next > limit || !self.clock.events.would_be_next(next, number, event) {
                self.clock.events.push(next, number, event);
                return;
            }
            self.clock.now = next;
            self.clock.handled += 1;
        }
    }

    /// Delivers or forwards a packet and the copies made of it.
    #[inline(never)]
    fn receive_or_forward_copies(&mut self, packet: u32) {
        let copies = self.shared.copy_on_arrival(packet, &self.frames);
        for id in std::iter::once(packet).chain(copies) {
            self.receive_or_forward(id);
        }
    }

    /// Delivers a packet at its end, or forwards it from a switch or router.
    #[inline(always)]
    fn receive_or_forward(&mut self, packet: u32) {
        let place = self.shared.datagrams.packet(packet).place;
        let step = &self.frames.steps[place as usize];
        if step.takes_time {
            let progress = self.links().arrive(packet);
            self.proceed(packet, progress, true);
        } else if step.is_end() {
            self.on_packet_at_host(packet);
        } else {
            self.hop(packet, place, self.clock.now, true);
        }
    }

    #[inline(always)]
    fn on_packet_at_host(&mut self, packet: u32) {
        let view = View { now: self.clock.now, frames: &self.frames, cells: &self.cells };
        match self.hosts.receive_fast_path(packet, &mut self.shared, view) {
            Some(next) => self.act(next),
            None => self.receive_slow_path(packet),
        }
    }

    #[inline(never)]
    fn receive_slow_path(&mut self, packet: u32) {
        let datagram = self.shared.datagrams.packet(packet).datagram;
        if self.shared.is_copied(datagram) {
            let progress = self.links().on_branch_point(packet);
            self.proceed(packet, progress, true);
        } else if self.shared.completes_datagram(packet, datagram, self.clock.now, &self.frames) {
            self.receive(datagram);
            self.shared.release_datagram(datagram);
        }
    }

    /// Receives a datagram that is complete at its host, and lets the host act on it.
    fn receive(&mut self, datagram: u32) {
        let view = View { now: self.clock.now, frames: &self.frames, cells: &self.cells };
        let next = self.hosts.receive(datagram, &mut self.shared, view);
        self.act(next);
    }

    /// Lets a host do its next step.
    #[inline(always)]
    fn act(&mut self, next: HostStep) {
        match next {
            HostStep::Waits(event) => self.clock.schedule(event),
            HostStep::Sends(endpoint) => self.send_and_schedule_wake(endpoint),
            HostStep::SendsMessage(process) => self.send_message(process),
            HostStep::HandsOver(sender) => self.hand_over(sender),
            HostStep::ServesQueue(nic) => {
                self.injected.finish_head_fragment(nic, &mut self.shared, self.clock.now);
                self.drain_nic_queue(nic);
            }
            HostStep::Task(host, task) => {
                if self.hosts.cpus[host].enqueue(task, self.clock.now) {
                    self.begin_tasks(host);
                }
            }
            HostStep::Control(datagram, direction) => {
                let progress = self.links().take_control(datagram, direction);
                self.proceed(datagram, progress, true);
            }
        }
    }

    /// Begins waiting tasks of a CPU until one takes time.
    fn begin_tasks(&mut self, host: usize) {
        loop {
            let (events, at_once) = self.hosts.begin_task(host, &mut self.shared, self.clock.now);
            self.clock.schedule_all(events);
            let Some(task) = at_once else { return };
            self.finish_task(task);
        }
    }

    fn finish_task(&mut self, task: CpuTask) {
        let view = View { now: self.clock.now, frames: &self.frames, cells: &self.cells };
        let next = self.hosts.finish_task(task, &mut self.shared, view);
        self.act(next);
    }

    /// Sends the next message of a process.
    #[inline(never)]
    fn send_message(&mut self, process: usize) {
        let now = self.clock.now;
        // Shortcut: the CPU needs no time, and no other event comes before the packet is handed over.
        let event = Event::HandOver(process as u32);
        let turn = self.hosts.turn_at_once(process);
        let at_once = turn.is_some_and(|turn| self.clock.events.would_be_next(now, turn, event));
        let Self { clock, hosts, frames, shared, .. } = self;
        if at_once && let Some(departed) = (Links { frames, shared, clock }).send_message(process, hosts) {
            return self.depart(departed, false);
        }
        let next = self.hosts.begin_message(process, at_once, &mut self.shared, now, &self.frames);
        self.act(next);
    }

    /// Sends all segments that can be sent, lets the application write, and schedules the next wake event.
    #[inline(always)]
    fn send_and_schedule_wake(&mut self, endpoint: usize) {
        let this = &mut self.hosts.endpoints[endpoint];
        if !this.busy && !this.is_quiescent() {
            self.send_and_write(endpoint);
        }
        let wake = self.hosts.endpoints[endpoint].next_wake(endpoint, self.clock.now);
        self.clock.schedule(wake);
    }

    /// Sends and writes: at once if that costs no CPU time, otherwise through the CPU.
    #[inline(always)]
    fn send_and_write(&mut self, endpoint: usize) {
        if !self.hosts.sends_at_once(endpoint) {
            return self.request_cpu(endpoint);
        }
        let this = &self.hosts.endpoints[endpoint];
        match this.fast_path_route(&self.shared) {
            Some(route) if this.application.is_none() => {
                self.run_send_loop(endpoint, route, |links, hosts, this| links.send_as_reader(this, hosts));
            }
            Some(route) => {
                self.run_send_loop(endpoint, route, |links, hosts, this| links.send_and_write(this, hosts));
            }
            None => self.run_send_loop(endpoint, 0, |links, hosts, this| {
                hosts.send_and_write(this, links.shared, links.clock)
            }),
        }
    }

    #[inline(never)]
    fn request_cpu(&mut self, endpoint: usize) {
        let next = self.hosts.request_cpu(endpoint, &mut self.shared, &self.clock);
        self.act(next);
    }

    /// Lets an endpoint send and write with `run` until neither is possible any more, or until a segment has to wait for the NIC.
    #[inline(never)]
    fn run_send_loop(
        &mut self,
        endpoint: usize,
        route: u32,
        run: impl Fn(&mut Links<'_>, &mut Hosts, &mut SendLoop) -> Pause,
    ) {
        let mut this = SendLoop::new(endpoint, route, self.shared.processes + endpoint);
        loop {
            let Self { clock, hosts, frames, shared, .. } = self;
            let pause = run(&mut Links { frames, shared, clock }, hosts, &mut this);
            self.clock.schedule_all(this.take_events());
            match pause {
                Pause::DeliveredAhead(id, at) => self.forward(id, at, false),
                Pause::Formed if self.enter_formed_segment(endpoint) => {}
                Pause::Formed | Pause::Ends => return,
            }
        }
    }

    /// Passes the segment that an endpoint has formed to its NIC. Returns false if it has to wait.
    #[inline(never)]
    fn enter_formed_segment(&mut self, endpoint: usize) -> bool {
        let ready = self.hosts.endpoints[endpoint].ready_packet(&self.shared.datagrams);
        let enters = self.enter_nic(self.shared.processes + endpoint, ready);
        self.hosts.endpoints[endpoint].busy = !enters;
        if enters {
            self.hosts.on_segment_in_nic(endpoint, &mut self.shared, self.clock.now);
        }
        enters
    }

    /// Hands the ready packet of a process or endpoint to its NIC, or queues the sender behind the senders that wait for the NIC.
    #[inline(never)]
    fn hand_over(&mut self, sender: usize) {
        // Only an injected sender may have packets for several NICs.
        let ready = self.hosts.ready_packet(sender, 0, &self.shared.datagrams, &self.injected);
        if self.enter_nic(sender, ready) {
            let next = self.hosts.packet_sent(sender, ready.nic, &mut self.shared, self.clock.now);
            self.act(next);
        }
    }

    /// Sends the sender's packet into its NIC, or queues the sender behind the senders that wait. Returns true if the packet has entered.
    #[inline(always)]
    fn enter_nic(&mut self, sender: usize, ready: ReadyPacket) -> bool {
        let ready = with_bond_member(sender, ready, &mut self.frames, &self.shared.datagrams);
        if !self.hosts.nics[ready.nic].has_waiters() && self.nic_has_room(&ready) {
            self.emit(sender, &ready);
            return true;
        }
        self.shared.ledger.set_sender_state(sender, self.clock.now, SenderState::Nic);
        let waiting = &mut self.hosts.nics[ready.nic].waiting;
        waiting.push_back(sender);
        if waiting.len() == 1 {
            self.await_space(ready.nic);
        }
        false
    }

    /// Serves the first sender that waits for this NIC if there is room.
    fn serve_waiting(&mut self, nic: usize) {
        let Some(&sender) = self.hosts.nics[nic].waiting.front() else { return };
        let ready = self.hosts.ready_packet(sender, nic, &self.shared.datagrams, &self.injected);
        let ready = with_bond_member(sender, ready, &mut self.frames, &self.shared.datagrams);
        if !self.nic_has_room(&ready) {
            return self.await_space(nic);
        }
        self.hosts.nics[nic].waiting.pop_front();
        let others = self.hosts.nics[nic].has_waiters();
        self.emit(sender, &ready);
        let next = self.hosts.packet_sent(sender, nic, &mut self.shared, self.clock.now);
        self.act(next);
        // An endpoint whose next packet finds no other sender waiting schedules its own turn.
        if others {
            // Other senders' packets may fit at this instant, after everything that this packet has caused.
            self.schedule_space_check(nic, self.clock.now);
        }
    }

    /// Returns true if the NIC buffer has room for the packet now.
    #[inline(always)]
    fn nic_has_room(&mut self, ready: &ReadyPacket) -> bool {
        let (now, capacity) = (self.clock.now, self.hosts.nics[ready.nic].capacity);
        match self.frames.port_mut(ready.nic) {
            // A frame line knows its departures at once; departures of cells must be computed.
            Some(line) => line.has_memory(now, ready.ip as u32, capacity),
            None => self.cells.nic_has_room(ready, (now, capacity), &mut self.shared),
        }
    }

    /// Schedules the instant at which the NIC may have room for the first sender that waits.
    fn await_space(&mut self, nic: usize) {
        let now = self.clock.now;
        let at = match self.frames.port_mut(nic) {
            Some(line) => line.memory(now).1.unwrap_or(now + 1),
            None => self.cells.next_departure(nic, now, &self.shared),
        };
        self.schedule_space_check(nic, at.max(now + 1));
    }

    /// Schedules that the first waiting sender tries again at `at`.
    fn schedule_space_check(&mut self, nic: usize, at: u64) {
        let first = *self.hosts.nics[nic].waiting.front().expect("a sender waits for room in the NIC");
        let flow = self.hosts.ready_packet(first, nic, &self.shared.datagrams, &self.injected).flow;
        self.clock.events.push(at, self.hosts.rank_of(first, flow), Event::NicSpace(nic as u32));
    }

    /// Sends the sender's packet into the NIC now. The NIC must have room.
    #[inline(always)]
    fn emit(&mut self, sender: usize, ready: &ReadyPacket) {
        self.frames.clear_bond_member(sender);
        let Self { clock, hosts, frames, cells, shared, injected } = self;
        match ready.way {
            EgressPath::Circuit { vc, .. } => {
                cells.nic_buffer(ready.nic).occupied += ready.memory();
                let pdu = shared.pdu_of(sender, ready, vc, (frames, hosts, injected));
                clock.schedule_all(cells.hand_to_shaper(sender, pdu, clock.now, shared));
            }
            EgressPath::Frames { route } => {
                let id = shared.packet_of(frames, sender, ready, route);
                if shared.trace.is_some() {
                    shared.tap_emitted(Carrier::Packet(id), sender, ready, hosts, injected);
                }
                let has_data = shared.datagrams[ready.datagram].counted;
                let progress = Links { frames, shared, clock }.emit(id, sender, has_data);
                self.proceed(id, progress, false);
            }
            EgressPath::Bond { .. } => unreachable!("the bond member is chosen before"),
        }
    }

    /// Takes an injected packet whose instant is now.
    pub(super) fn on_packet_injected(&mut self, queued: QueuedPacket) {
        let now = self.clock.now;
        let (nic, queued) = self.injected.receive(queued, &mut self.frames, &mut self.shared);
        // Shortcut for an unfragmented packet if nothing waits for its NIC and there is room. The queue would give the same result.
        if let Some(mut ready) = self.injected.alone(&queued, nic)
            && !self.hosts.nics[nic].has_waiters()
            && self.nic_has_room(&ready)
        {
            ready.datagram = self.injected.create_datagram(&queued, (1, false), &mut self.shared);
            let sender = self.shared.sender_of_injected(queued.sender);
            self.emit(sender, &ready);
            self.shared.injected_sent(sender, ready.datagram, now);
        } else if self.injected.enqueue(nic, queued, &mut self.shared, now) {
            self.drain_nic_queue(nic);
        }
    }

    /// Hands waiting injected packets to a NIC until it has no room.
    fn drain_nic_queue(&mut self, nic: usize) {
        while let Some(sender) = self.injected.next_sender(nic, &mut self.shared) {
            if !self.enter_nic(sender, self.injected.ready_packet(nic)) {
                return;
            }
            self.injected.finish_head_fragment(nic, &mut self.shared, self.clock.now);
        }
    }

    /// Takes the first of `count` identical packets whose instant is now, as many as form a packet train. Returns how many it took.
    pub(super) fn try_inject_train(&mut self, first: &QueuedPacket, count: u32) -> u32 {
        let Self { clock, hosts, frames, shared, injected, .. } = self;
        let sent = Links { frames, shared, clock }.inject_train(first, count, hosts, injected);
        let Some((count, arrival)) = sent else { return 0 };
        self.clock.schedule(arrival);
        count
    }
}
