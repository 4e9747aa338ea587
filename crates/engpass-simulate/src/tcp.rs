//! TCP endpoints at work: what they send and write, and segments that they receive.

use engpass_ledger::SenderState;
use engpass_model::tcp::{Effects, LimitedBy};
use engpass_model::time::Time;

use super::Network;
use super::endpoint::{NOTHING, SegmentEffects};
use super::host::{CpuTask, Hosts, Reception, View};
use super::queueing::PathId;
use super::shared_state::SharedState;

impl Network {
    /// Handles a wake event of an endpoint: its application starts or continues, or a timer of its connection expires.
    #[inline(never)]
    pub(super) fn on_endpoint_wake(&mut self, endpoint: u32) {
        let index = endpoint as usize;
        let now = self.clock.now;
        let this = &mut self.hosts.endpoints[index];
        if this.timer <= now {
            this.timer = u64::MAX;
        }
        if now < this.handled_until {
            // Lookahead has handled arrivals later than now, because nothing was to happen before them.
            self.hosts.endpoints[index].schedule_wake(index, &mut self.clock);
            return;
        }
        if let Some(application) = &mut this.application {
            // The first wake starts the application.
            application.open = true;
            application.resume(now);
        }
        let this = &mut self.hosts.endpoints[index];
        if this.connection.next_wake().is_some_and(|wake| wake.ps() <= now) {
            let mut out = Effects::default();
            let before = this.connection.stats().timeouts;
            this.connection.on_timer(Time(now), &mut out);
            if let Some(trace) = &mut self.shared.trace
                && this.connection.stats().timeouts > before
            {
                trace.record_timeout(this.flow as usize, now);
            }
            if out.timed_out {
                self.shared.ledger.reassign_to_timer(self.shared.processes + index, now);
            }
        }
        self.send_and_schedule_wake(index);
    }

    /// Sends all segments that can be sent, lets the application write, and schedules the next wake event.
    #[inline(always)]
    pub(super) fn send_and_schedule_wake(&mut self, endpoint: usize) {
        let this = &mut self.hosts.endpoints[endpoint];
        if !this.busy && !this.is_quiescent() {
            self.send_and_write(endpoint);
        }
        self.hosts.endpoints[endpoint].schedule_wake(endpoint, &mut self.clock);
    }

    /// Sends and writes: at once if that costs no CPU time, otherwise through the CPU.
    #[inline(always)]
    fn send_and_write(&mut self, endpoint: usize) {
        let this = &self.hosts.endpoints[endpoint];
        let idle = || self.hosts.cpus[self.hosts.nics[this.nic as usize].host as usize].is_idle();
        if !(this.is_host_zero_cost || this.is_zero_cost() && idle()) {
            self.request_cpu(endpoint);
            return;
        }
        let reads = this.application.is_none();
        match this.fast_path_route(&self.shared) {
            Some(route) if reads => self.send_receiver_segments_fast_path(endpoint, route),
            Some(route) => self.send_and_write_fast_path(endpoint, route),
            None => self.send_and_write_slow_path(endpoint),
        }
    }

    /// Asks the CPU to form a segment or, if none can be sent, to copy a piece of a write. Records the sender state.
    fn request_cpu(&mut self, endpoint: usize) {
        let (now, sender) = (self.clock.now, self.shared.processes + endpoint);
        let this = &mut self.hosts.endpoints[endpoint];
        let host = self.hosts.nics[this.nic as usize].host as usize;
        if !this.is_open() {
            self.shared.ledger.set_sender_state(sender, now, SenderState::Application);
            return;
        }
        let limited = this.connection.limited_by(Time(now));
        if limited == LimitedBy::Nothing {
            this.busy = true;
            self.shared.ledger.set_sender_state(sender, now, SenderState::Cpu);
            self.queue_cpu_task(host, CpuTask::Output(endpoint));
            return;
        }
        let copies = self.hosts.endpoints[endpoint].next_copy(endpoint, &mut self.clock);
        // An incoming segment that the CPU has not processed yet may remove the reason.
        let asked = self.hosts.unprocessed_segments.get(endpoint).is_some_and(|inputs| *inputs > 0);
        let wait = if asked {
            SenderState::Cpu
        } else {
            self.hosts.endpoints[endpoint].sender_state(limited, self.clock.now)
        };
        self.shared.ledger.set_sender_state(sender, now, wait);
        if copies {
            self.queue_cpu_task(host, CpuTask::Write(endpoint));
        }
    }

    /// Sends and writes until neither is possible. It must cost nothing, and the CPU must be idle.
    #[inline(never)]
    fn send_and_write_slow_path(&mut self, endpoint: usize) {
        let (now, sender) = (Time(self.clock.now), self.shared.processes + endpoint);
        let mut limited = None;
        loop {
            let this = &mut self.hosts.endpoints[endpoint];
            if !this.is_open() {
                self.shared.ledger.set_sender_state(sender, now.ps(), SenderState::Application);
                return;
            }
            // If a window holds data back, further writes cannot make segments go.
            let shut = matches!(limited, Some(LimitedBy::CongestionWindow | LimitedBy::ReceiveWindow));
            if !shut {
                let Err(reason) = self.hosts.form_segment(endpoint, &mut self.shared, self.clock.now) else {
                    let ready_packet = self.hosts.endpoints[endpoint].ready_packet(&self.shared.datagrams);
                    if !self.enter_nic_or_wait_with(sender, ready_packet) {
                        self.hosts.endpoints[endpoint].busy = true;
                        return;
                    }
                    self.on_segment_in_nic(endpoint);
                    if self.hosts.endpoints[endpoint].is_quiescent() {
                        return;
                    }
                    continue;
                };
                limited = Some(reason);
            }
            if !self.hosts.endpoints[endpoint].next_copy(endpoint, &mut self.clock) {
                break;
            }
            self.hosts.endpoints[endpoint].commit_write(self.clock.now);
        }
        let wait = limited.map_or(SenderState::Cpu, |limited| {
            self.hosts.endpoints[endpoint].sender_state(limited, self.clock.now)
        });
        self.shared.ledger.set_sender_state(sender, now.ps(), wait);
    }

    /// Passes a formed segment to the NIC.
    pub(super) fn enqueue_segment_at_nic(&mut self, endpoint: usize) {
        if self.hosts.endpoints[endpoint].ready_segment == NOTHING {
            // There is nothing to send any more.
            self.hosts.endpoints[endpoint].busy = false;
            self.send_and_schedule_wake(endpoint);
            return;
        }
        let ready_packet = self.hosts.endpoints[endpoint].ready_packet(&self.shared.datagrams);
        if self.enter_nic_or_wait_with(self.shared.processes + endpoint, ready_packet) {
            self.on_segment_sent(endpoint);
        }
    }

    /// Continues an endpoint after the NIC has taken a segment of a CPU item, or one that waited.
    pub(super) fn on_segment_sent(&mut self, endpoint: usize) {
        self.hosts.endpoints[endpoint].busy = false;
        self.on_segment_in_nic(endpoint);
        self.send_and_schedule_wake(endpoint);
    }

    /// Records that the formed segment has entered the NIC.
    #[inline(always)]
    pub(super) fn on_segment_in_nic(&mut self, endpoint: usize) {
        let datagram = std::mem::replace(&mut self.hosts.endpoints[endpoint].ready_segment, NOTHING);
        debug_assert_ne!(datagram, NOTHING, "the endpoint has formed a segment");
        self.shared.ledger.note_activity(self.shared.processes + endpoint, self.clock.now);
        self.shared.datagram_sent(datagram, self.clock.now);
    }
}

impl Hosts {
    /// Receives a segment that is complete at its host: at once if that costs no CPU time, otherwise through the CPU.
    #[inline(always)]
    pub(super) fn receive_segment(
        &mut self,
        datagram: u32,
        endpoint: usize,
        shared: &mut SharedState,
        view: View,
    ) -> Reception {
        let this = &self.endpoints[endpoint];
        if this.is_zero_cost() || self.input_cost(&shared.datagrams[datagram]) == 0 {
            return Reception::Sends(self.process_segment(datagram, shared, view));
        }
        shared.datagrams[datagram].refs += 1;
        if self.unprocessed_segments.is_empty() {
            self.unprocessed_segments.resize(self.endpoints.len(), 0);
        }
        self.unprocessed_segments[endpoint] += 1;
        if !this.busy {
            shared.ledger.set_sender_state(shared.processes + endpoint, view.now, SenderState::Cpu);
        }
        Reception::Task(self.nics[this.nic as usize].host as usize, CpuTask::Input(datagram))
    }

    /// Fast path of [`Self::process_segment`], for a segment that costs no CPU time whose datagram has no other reference: also posts it in the ledger.
    #[inline(never)]
    pub(super) fn receive_and_post(
        &mut self,
        datagram: u32,
        endpoint: usize,
        shared: &mut SharedState,
        view: View,
    ) {
        let this = &mut self.endpoints[endpoint];
        let SegmentEffects { load, delivered } = this.on_segment(view.now, endpoint, datagram, shared);
        let direction = (this.flow, Some(endpoint as u32));
        if let Some(delivered) = delivered {
            let path = PathId::to(shared.datagrams.packet(datagram).place);
            self.count_segment((datagram, path), delivered, shared, view);
        }
        shared.finish_datagram_fast_path(view.frames, datagram, direction, load);
    }

    /// Passes a segment to its connection, and counts it. Returns the endpoint, which may now send.
    #[inline(never)]
    pub(super) fn process_segment(&mut self, datagram: u32, shared: &mut SharedState, view: View) -> usize {
        let to = shared.datagrams[datagram].to.get();
        let endpoint = to.expect("a segment is addressed to an endpoint") as usize;
        let effects = self.endpoints[endpoint].on_segment(view.now, endpoint, datagram, shared);
        if let Some(delivered) = effects.delivered {
            let path = shared.path_of(datagram, view.frames, &self.endpoints);
            self.count_segment((datagram, path), delivered, shared, view);
        }
        endpoint
    }

    /// Counts a segment that has arrived and has brought the application `delivered` bytes, its own or others.
    // Inlined, it would take registers from the code around it.
    #[inline(never)]
    fn count_segment(
        &mut self,
        segment: (u32, PathId),
        delivered: u64,
        shared: &mut SharedState,
        view: View,
    ) {
        if !shared.count_segment(segment, delivered, view.now)
            && let Some(key) = shared.count_delays_apart(segment, delivered, &mut self.endpoints, view.now)
        {
            shared.count_queueing(segment.0, key, self, view);
        }
    }
}
