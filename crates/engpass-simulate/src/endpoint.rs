//! A TCP endpoint at a host: it joins a connection to its application, the CPU of its host, and the NIC buffer.

use engpass_ledger::{Load, SenderState};
use engpass_model::host::{ByteTime, CpuCost};
use engpass_model::tcp::{CompactConnection, Effects, LimitedBy, Stats};
use engpass_model::time::Time;
use engpass_model::wire::Encapsulation;
use engpass_model::wire::ip::IP_HEADER_BYTES;

use super::clock::{Clock, NewEvent};
use super::event_queue::Event;
use super::host::Hosts;
use super::packet_store::{Datagram, Destination, PacketStore};
use super::ready_packet::{BONDED, EgressPath, ONWARD, ReadyPacket};
use super::shared_state::SharedState;
use super::tcp_application::TcpApplication;

/// One end of a TCP connection. Endpoints are in pairs: an even one writes, the odd one behind it reads.
///
/// Large numbers of endpoints do not fit into the CPU caches; therefore an endpoint is exactly one cache line.
#[derive(Debug)]
#[repr(align(64))]
pub(super) struct Endpoint {
    pub(super) connection: CompactConnection,
    pub(super) flow: u32,
    pub(super) nic: u32,
    /// Path of the endpoint's packets: with `encapsulation` a circuit direction (with the flag [`ONWARD`]: the route that begins with a circuit), else a route.
    pub(super) egress: u32,
    pub(super) encapsulation: Option<Encapsulation>,
    /// Instant of the earliest pending wake event.
    pub(super) timer: u64,
    /// Instant up to which all arrivals have been handled, possibly ahead of virtual time (lookahead).
    pub(super) handled_until: u64,
    /// Datagram of the segment that the CPU forms or that waits for the NIC; [`NOTHING`] if there is none.
    pub(super) ready_segment: u32,
    /// True while a segment is in the CPU or waits for the NIC. The endpoint forms the next one only after it was handed over.
    pub(super) busy: bool,
    /// True if nothing costs the host CPU time, so that its CPU is always idle.
    pub(super) is_host_zero_cost: bool,
    /// Index of the endpoint's CPU costs in `Hosts::costs`, or [`NOTHING`].
    pub(super) cost: u32,
    /// The application that writes; `None` at a receive-only endpoint.
    pub(super) application: Option<Box<TcpApplication>>,
}

// Every connection has two endpoints; therefore the size counts.
const _: () = assert!(size_of::<Endpoint>() == 64);

/// CPU time of an endpoint's work items, in picoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SegmentCost {
    per_write: u64,
    byte: ByteTime,
    per_segment: u64,
    per_ack: u64,
}

impl From<&CpuCost> for SegmentCost {
    fn from(cost: &CpuCost) -> Self {
        Self { per_write: cost.write(), byte: cost.byte(), per_segment: cost.segment(), per_ack: cost.ack() }
    }
}

impl SegmentCost {
    /// Returns true if sending and writing cost the host no CPU time.
    pub(super) fn is_zero_cost(&self) -> bool {
        self.per_write | self.per_segment | self.per_ack == 0 && self.byte.is_zero_cost()
    }
}

/// Counts of a connection at the end of the warm-up, which the outcome subtracts.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct WarmupCounts {
    pub(super) retransmissions: u64,
    pub(super) timeouts: u64,
    pub(super) fast_recoveries: u64,
}

impl From<Stats> for WarmupCounts {
    fn from(stats: Stats) -> Self {
        let Stats { retransmissions, timeouts, fast_recoveries, .. } = stats;
        Self { retransmissions, timeouts, fast_recoveries }
    }
}

/// Effects of an arrived segment at its endpoint.
pub(super) struct SegmentEffects {
    /// Load of the segment for the ledger, if the receiver refused no byte of it.
    pub(super) load: Option<Load>,
    /// If it counts in the results of its flow: the bytes that it has brought to the application, its own or others.
    pub(super) delivered: Option<u64>,
}

/// Stands in place of an index for "no datagram" or "no cost".
pub(super) const NOTHING: u32 = u32::MAX;

impl Endpoint {
    /// Returns true if the endpoint's work costs its host no CPU time.
    #[inline]
    pub(super) fn is_zero_cost(&self) -> bool {
        self.cost == NOTHING
    }

    /// Returns the route of the endpoint's packets; meaningless if a circuit leads from host to host.
    pub(super) fn route(&self) -> u32 {
        self.egress & !(ONWARD | BONDED)
    }

    #[inline(always)]
    pub(super) fn egress_path(&self) -> EgressPath {
        match self.encapsulation {
            Some(encapsulation) => EgressPath::Circuit { vc: self.egress, encapsulation },
            None if self.egress & BONDED != 0 => EgressPath::Bond { route: self.egress & !BONDED },
            None => EgressPath::Frames { route: self.egress },
        }
    }

    /// Returns the segment that is ready for the NIC.
    #[inline(always)]
    pub(super) fn ready_packet(&self, datagrams: &PacketStore) -> ReadyPacket {
        debug_assert_ne!(self.ready_segment, NOTHING, "a segment is formed before it is handed over");
        let ready_segment = &datagrams[self.ready_segment];
        ReadyPacket {
            flow: self.flow as usize,
            nic: self.nic as usize,
            way: self.egress_path(),
            ip: IP_HEADER_BYTES + u64::from(ready_segment.header) + u64::from(ready_segment.bytes),
            datagram: self.ready_segment,
            offset: 0,
        }
    }

    fn cost<'a>(&self, costs: &'a [SegmentCost]) -> Option<&'a SegmentCost> {
        costs.get(self.cost as usize)
    }

    /// Returns the CPU time, in picoseconds, to copy the current piece of a write. The first piece also pays for the system call.
    pub(super) fn write_cost(&self, costs: &[SegmentCost]) -> u64 {
        let application = self.application.as_ref().expect("only a writing endpoint has an application");
        let Some(cost) = self.cost(costs) else { return 0 };
        let call = if application.left == application.message { cost.per_write } else { 0 };
        // A gigabyte at a minute per byte exceeds the range of time.
        cost.byte.bytes(application.copying.into()).saturating_add(call)
    }

    /// Returns true for a receive-only endpoint that has nothing to send.
    #[inline]
    pub(super) fn is_quiescent(&self) -> bool {
        self.application.is_none() && self.connection.is_quiescent()
    }

    /// Releases memory that the endpoint does not need while it is idle, and for good what a receive-only endpoint never needs.
    pub(super) fn release_unused_memory(&mut self, now: Time) {
        self.connection.release_unused_memory(now, self.application.is_none());
    }

    /// Returns true if the endpoint may send: its application has started, or it is receive-only.
    #[inline]
    pub(super) fn is_open(&self) -> bool {
        self.application.as_ref().is_none_or(|application| application.open)
    }

    /// Returns the route of the endpoint's packets if they may take the fast path: frames, without captures, deferred postings or injection.
    #[inline(always)]
    pub(super) fn fast_path_route(&self, shared: &SharedState) -> Option<u32> {
        match self.egress_path() {
            EgressPath::Frames { route }
                if self.is_open() && shared.fast_path_allowed() && shared.reports.is_none() =>
            {
                Some(route)
            }
            _ => None,
        }
    }

    /// Returns the instant up to which only arrivals from the network affect the endpoint; zero if it is unknown.
    #[inline]
    pub(super) fn lookahead_until(&self) -> u64 {
        let waits = self.application.as_ref().is_some_and(|this| !this.open || this.is_paused());
        if self.busy || waits {
            return 0;
        }
        self.connection.next_wake().map_or(u64::MAX, |wake| wake.ps()).saturating_sub(1)
    }

    /// Returns the sender state that follows from the reason why the connection sends nothing.
    fn sender_state_for(&self, limited: LimitedBy) -> SenderState {
        let application = self.application.as_ref();
        let (copying, left) =
            application.map_or((0, 0), |application| (application.copying, application.left));
        match limited {
            LimitedBy::Application | LimitedBy::SendBuffer if copying > 0 => SenderState::Cpu,
            LimitedBy::Application | LimitedBy::SendBuffer if left > 0 => SenderState::SendBuffer,
            LimitedBy::SendBuffer => SenderState::Application,
            other => SenderState::of(other),
        }
    }

    /// Returns the wake event of the connection's next timer, unless an earlier one is pending.
    #[inline(always)]
    pub(super) fn next_wake(&mut self, endpoint: usize, now: u64) -> Option<NewEvent> {
        let wake = self.connection.next_wake()?.ps().max(now);
        if wake >= self.timer {
            return None;
        }
        self.timer = wake;
        Some((wake, self.flow as usize, Event::EndpointWake(endpoint as u32)))
    }

    /// Passes a segment to its connection.
    #[inline(always)]
    pub(super) fn on_segment(
        &mut self,
        now: u64,
        endpoint: usize,
        datagram: u32,
        shared: &mut SharedState,
    ) -> SegmentEffects {
        let (this, segment) = shared.datagrams.with_segment(datagram);
        let (mut refused, mut in_order) = (0, u64::from(this.bytes));
        if !self.connection.take_next(Time(now), segment) {
            let mut out = Effects::default();
            self.connection.on_segment(Time(now), segment, &mut out);
            (refused, in_order) = (out.refused, out.delivered);
            this.refused = refused as u32;
            // Receive-only endpoints keep no measurements and no sender states.
            if let Some(application) = &mut self.application {
                if let Some(round_trip) = out.round_trip
                    && shared.window.holds(now)
                {
                    shared.flows[this.flow as usize].round_trips.add(round_trip.ps());
                }
                application.connected |= out.established;
                shared.ledger.note_writer_activity(endpoint, now);
            }
        }
        let load = (refused == 0).then(|| this.load());
        SegmentEffects { load, delivered: this.counted.then_some(in_order) }
    }

    /// Returns the CPU time of sending, or with `incoming` of receiving, a segment with `len` bytes of payload, in picoseconds.
    #[inline]
    pub(super) fn segment_cost(&self, costs: &[SegmentCost], len: u64, incoming: bool) -> u64 {
        let Some(cost) = self.cost(costs) else { return 0 };
        let reads = self.application.is_none();
        match len {
            0 => cost.per_ack,
            // For sent data, the write has already paid the cost per byte.
            len if incoming && reads => cost.per_segment + cost.byte.bytes(len),
            _ => cost.per_segment,
        }
    }

    /// Takes the next piece of the application's writes to be copied, if the send buffer has room and no piece is being copied. Returns true if there is one.
    /// Otherwise the application may have a wake event.
    #[inline(always)]
    pub(super) fn next_copy(&mut self, endpoint: usize, clock: &Clock) -> (bool, Option<NewEvent>) {
        let Some(application) = self.application.as_mut().filter(|this| this.copying == 0) else {
            return (false, None);
        };
        let wake = match application.left {
            0 => application.next_write(endpoint, self.flow as usize, clock),
            _ => None,
        };
        application.copying = self.connection.whole().next_copy(application.left.into()) as u32;
        (application.copying > 0, wake)
    }

    /// Puts the copied piece of a write into the send buffer.
    #[inline(always)]
    pub(super) fn commit_write(&mut self, now: u64) {
        let application = self.application.as_mut().expect("only a writing endpoint has an application");
        let bytes = std::mem::take(&mut application.copying);
        application.left -= bytes;
        self.connection.whole().put(Time(now), bytes.into(), application.left == 0);
    }

    /// Returns the sender state if the connection sends nothing for the reason `limited`.
    #[inline(never)]
    pub(super) fn sender_state(&self, limited: LimitedBy, now: u64) -> SenderState {
        if self.application.is_none() {
            return SenderState::of(limited);
        }
        // A copy since then may have removed the reason, and a longer segment may exceed the receive window. Then the connection is asked again.
        let asked = match limited {
            LimitedBy::Application | LimitedBy::SendBuffer | LimitedBy::Nagle => true,
            LimitedBy::CongestionWindow => !self.connection.has_room_for_segment(),
            _ => false,
        };
        self.sender_state_for(if asked { self.connection.limited_by(Time(now)) } else { limited })
    }
}

impl Hosts {
    /// Forms an endpoint's next segment. Returns its CPU time in picoseconds, or the reason why there is no segment.
    #[inline(always)]
    pub(super) fn form_segment(
        &mut self,
        endpoint: usize,
        shared: &mut SharedState,
        now: u64,
    ) -> Result<u64, LimitedBy> {
        let this = &mut self.endpoints[endpoint];
        let before = shared.trace.as_ref().map(|_| this.connection.stats().retransmissions);
        let next = shared.datagrams.next();
        let segment = shared.datagrams.segment_mut(next);
        let new = this.connection.next_sequence();
        this.connection.next_segment(Time(now), segment)?;
        let (header, len, resent) = (segment.header_len(), segment.len, segment.seq < new);
        if let Some(trace) = &mut shared.trace
            && before.is_some_and(|before| this.connection.stats().retransmissions > before)
        {
            trace.on_retransmit(this.flow as usize, now);
        }
        if let Some(trace) = &mut shared.trace {
            trace.formed(endpoint, segment);
        }
        let cost = this.segment_cost(&self.costs, u64::from(len), false);
        let tracked_per_hop = this.encapsulation.is_some();
        this.ready_segment = shared.begin_datagram(
            tracked_per_hop,
            Datagram {
                flow: this.flow,
                index: this.connection.segments_sent(),
                bytes: len,
                fragments: 1,
                resent,
                to: Destination::endpoint(endpoint ^ 1),
                counted: len > 0 && this.application.is_some(),
                header: header as u32,
                begun: now,
                refs: 1,
                tracked_per_hop,
                ..Datagram::default()
            },
        );
        Ok(cost)
    }

    /// Returns the CPU time of receiving a segment, in picoseconds.
    pub(super) fn input_cost(&self, datagram: &Datagram) -> u64 {
        let endpoint = datagram.to.get().expect("a segment is addressed to an endpoint");
        self.endpoints[endpoint as usize].segment_cost(&self.costs, datagram.bytes.into(), true)
    }
}
