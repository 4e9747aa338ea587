//! TCP endpoints at work: timers, the CPU, and segments that they receive.

use engpass_ledger::SenderState;
use engpass_model::tcp::{Effects, LimitedBy};
use engpass_model::time::Time;

use super::clock::Clock;
use super::endpoint::{NOTHING, SegmentEffects};
use super::host::{CpuTask, HostStep, Hosts, View};
use super::queueing::PathId;
use super::shared_state::SharedState;

impl Hosts {
    /// Returns true if an endpoint may send and write at once: nothing costs CPU time, and the CPU is idle.
    #[inline(always)]
    pub(super) fn sends_at_once(&self, endpoint: usize) -> bool {
        let this = &self.endpoints[endpoint];
        let idle = || self.cpus[self.nics[this.nic as usize].host as usize].is_idle();
        this.is_host_zero_cost || this.is_zero_cost() && idle()
    }

    /// Handles a wake event of an endpoint: its application starts or continues, or a timer of its connection expires.
    #[inline(never)]
    pub(super) fn on_endpoint_wake(&mut self, index: usize, shared: &mut SharedState, now: u64) -> HostStep {
        let this = &mut self.endpoints[index];
        if this.timer <= now {
            this.timer = u64::MAX;
        }
        if now < this.handled_until {
            // Lookahead has handled arrivals later than now, because nothing was to happen before them.
            return HostStep::Waits(this.next_wake(index, now));
        }
        if let Some(application) = &mut this.application {
            // The first wake starts the application.
            application.open = true;
            application.resume(now);
        }
        if this.connection.next_wake().is_some_and(|wake| wake.ps() <= now) {
            let mut out = Effects::default();
            let before = this.connection.stats().timeouts;
            this.connection.on_timer(Time(now), &mut out);
            if let Some(trace) = &mut shared.trace
                && this.connection.stats().timeouts > before
            {
                trace.record_timeout(this.flow as usize, now);
            }
            if out.timed_out {
                shared.ledger.reassign_to_timer(shared.processes + index, now);
            }
        }
        HostStep::Sends(index)
    }

    /// Asks the CPU to form a segment or, if none can be sent, to copy a piece of a write. Records the sender state.
    pub(super) fn request_cpu(
        &mut self,
        endpoint: usize,
        shared: &mut SharedState,
        clock: &Clock,
    ) -> HostStep {
        let (now, sender) = (clock.now, shared.processes + endpoint);
        let this = &mut self.endpoints[endpoint];
        let host = self.nics[this.nic as usize].host as usize;
        if !this.is_open() {
            shared.ledger.set_sender_state(sender, now, SenderState::Application);
            return HostStep::Waits(None);
        }
        let limited = this.connection.limited_by(Time(now));
        if limited == LimitedBy::Nothing {
            this.busy = true;
            shared.ledger.set_sender_state(sender, now, SenderState::Cpu);
            return HostStep::Task(host, CpuTask::Output(endpoint));
        }
        let (copies, wake) = this.next_copy(endpoint, clock);
        // An incoming segment that the CPU has not processed yet may remove the reason.
        let asked = self.unprocessed_segments.get(endpoint).is_some_and(|inputs| *inputs > 0);
        let wait = if asked { SenderState::Cpu } else { self.endpoints[endpoint].sender_state(limited, now) };
        shared.ledger.set_sender_state(sender, now, wait);
        if copies { HostStep::Task(host, CpuTask::Write(endpoint)) } else { HostStep::Waits(wake) }
    }

    /// Records that the formed segment has entered the NIC.
    #[inline(always)]
    pub(super) fn on_segment_in_nic(&mut self, endpoint: usize, shared: &mut SharedState, now: u64) {
        let this = &mut self.endpoints[endpoint];
        let datagram = std::mem::replace(&mut this.ready_segment, NOTHING);
        debug_assert_ne!(datagram, NOTHING, "the endpoint has formed a segment");
        shared.ledger.note_activity(shared.processes + endpoint, now);
        shared.datagram_sent(datagram, now);
    }

    /// Receives a segment that is complete at its host: at once if that costs no CPU time, otherwise through the CPU.
    #[inline(always)]
    pub(super) fn take_segment(&mut self, datagram: u32, shared: &mut SharedState, view: View) -> HostStep {
        let to = shared.datagrams[datagram].to.get();
        let endpoint = to.expect("a segment is addressed to an endpoint") as usize;
        let this = &self.endpoints[endpoint];
        if this.is_zero_cost() || self.input_cost(&shared.datagrams[datagram]) == 0 {
            return HostStep::Sends(self.process_segment(datagram, shared, view));
        }
        shared.datagrams[datagram].refs += 1;
        if self.unprocessed_segments.is_empty() {
            self.unprocessed_segments.resize(self.endpoints.len(), 0);
        }
        self.unprocessed_segments[endpoint] += 1;
        if !this.busy {
            shared.ledger.set_sender_state(shared.processes + endpoint, view.now, SenderState::Cpu);
        }
        HostStep::Task(self.nics[this.nic as usize].host as usize, CpuTask::Input(datagram))
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
        this.handled_until = view.now;
        let SegmentEffects { load, delivered } = this.on_segment(view.now, endpoint, datagram, shared);
        let direction = (this.flow, Some(endpoint as u32));
        if let Some(delivered) = delivered {
            let path = PathId::to(shared.datagrams.packet(datagram).place);
            shared.count_segment((datagram, path), delivered, self, view);
        }
        shared.finish_datagram_fast_path(view.frames, datagram, direction, load);
    }

    /// Passes a segment to its connection, and counts it. Returns the endpoint, which may now send.
    #[inline(never)]
    pub(super) fn process_segment(&mut self, datagram: u32, shared: &mut SharedState, view: View) -> usize {
        let to = shared.datagrams[datagram].to.get();
        let endpoint = to.expect("a segment is addressed to an endpoint") as usize;
        self.endpoints[endpoint].handled_until = view.now;
        let effects = self.endpoints[endpoint].on_segment(view.now, endpoint, datagram, shared);
        if let Some(delivered) = effects.delivered {
            let path = shared.path_of(datagram, view.frames, &self.endpoints);
            shared.count_segment((datagram, path), delivered, self, view);
        }
        endpoint
    }
}
