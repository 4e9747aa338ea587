//! State that all ports share: PDUs, circuits, channels, counters. It takes the cell trains that leave a port.

use std::collections::BTreeMap;

use engpass_cells::{
    CellDropCause, CellSink, CellTrain, Channel, DedicatedLine, Pdu, PduId, Reassembly, Shaper, TrainPiece,
    VcId, generator_of, one_by_one,
};
use engpass_ledger::{Arrivals, Carried, DatagramClass, DeliveryStatus, Ledger, Load, StateTimes};
use engpass_model::time::Pace;
use engpass_model::window::Window;

use super::flow_counters::{DropLocation, FlowCounters, VcCounters};
use super::injection::{DeliveryReports, PendingCopies};
use super::packet_store::{Datagram, PacketStore};
use super::progress::Progress;
use super::queueing::IdleDelays;
use super::slab::Slab;
use super::source::Source;
use super::trace::Trace;
use super::trees::Trees;

/// An AAL5 PDU in the network.
#[derive(Clone, Debug, Default)]
pub(super) struct Aal5Pdu {
    pub(super) vc: VcId,
    pub(super) datagram: u32,
    /// The packet that continues after the circuit; [`Aal5Pdu::NO_PACKET`] if the circuit leads from host to host.
    pub(super) packet: u32,
    /// Slot in the ledger of the circuit's first line.
    pub(super) line_index: u16,
    /// Bytes of the PDU's SDU, which it occupies in the NIC buffer.
    pub(super) sdu: u32,
    /// Number of transmitters that the last cell has left.
    pub(super) hop: u16,
    /// Instant at which the last cell arrives after these transmitters (at hop 0: its emission time).
    pub(super) eta: u64,
    /// Class and number of the last cell in the queue at `hop`, if it waits there.
    pub(super) waiting: Option<(usize, u64)>,
    /// True if a cell was lost, so that the PDU cannot arrive complete.
    pub(super) incomplete: bool,
    /// True if the last cell was lost, so that reassembly does not notice the end of the PDU.
    pub(super) end_lost: bool,
    pub(super) reassembled: Option<Pdu>,
    /// True if the last cell arrived with EFCI.
    pub(super) efci: bool,
    /// Reference count: cells of the PDU in the network, plus one while an event refers to it.
    pub(super) refs: u32,
}

impl Aal5Pdu {
    /// Value of `packet` if nothing continues after the circuit.
    pub(super) const NO_PACKET: u32 = u32::MAX;

    /// Creates the PDU of a datagram, with an SDU of `sdu` bytes and `refs` references.
    pub(super) fn new(vc: VcId, datagram: u32, sdu: u32, refs: u32) -> Self {
        Self { vc, datagram, packet: Self::NO_PACKET, sdu, refs, ..Self::default() }
    }

    /// Returns true if no more events are needed for the PDU. An adaptive shaper (`adapts`) gets feedback even for a dead PDU, if its end arrives.
    pub(super) fn is_over(&self, adapts: bool) -> bool {
        self.incomplete && (self.end_lost || !adapts)
    }
}

/// A circuit direction.
#[derive(Debug)]
pub(super) struct Vc {
    pub(super) circuit: usize,
    pub(super) forward: bool,
    /// Ports that the circuit crosses; the first one is that of the NIC's line, or of a router.
    pub(super) hops: Vec<usize>,
    /// Minimum time from the arrival at port `hop` to the arrival at the end of the circuit, in picoseconds.
    pub(super) transit: Vec<u64>,
    /// Sum of the propagation delays from the line of port `hop` to the end of the circuit, in picoseconds.
    pub(super) delays: Vec<u64>,
    pub(super) shaper: Shaper,
    /// Pace of the shaper; if it is adaptive, the fastest one.
    pub(super) pace: Pace,
    /// Index of the adaptive shaper, if the circuit direction has one.
    pub(super) adaptive_shaper: Option<usize>,
    /// The router where the circuit direction ends, from which packets continue; otherwise [`Vc::NO_ROUTER`].
    pub(super) router: u32,
    /// Index of the shaper's channel among those of the circuit's first port.
    pub(super) entry: usize,
    pub(super) reassembly: Reassembly,
}

impl Vc {
    pub(super) const NO_ROUTER: u32 = u32::MAX;

    /// Returns the router where the circuit direction ends, if it ends at one.
    pub(super) fn ends_at_router(&self) -> Option<u32> {
        (self.router != Self::NO_ROUTER).then_some(self.router)
    }
}

/// Next hop of the cells of a circuit direction after a port.
#[derive(Clone, Copy, Debug)]
pub(super) struct NextHop {
    pub(super) vc: VcId,
    pub(super) delay: u64,
    /// The next port, and the index of the channel there; `None` if the line leads to the end of the circuit.
    pub(super) channel: Option<(usize, usize)>,
    /// Path number for the queue, as in [`CellSink::path_number`].
    pub(super) path_number: usize,
    /// Index of the circuit direction in the port's counters.
    pub(super) counter: usize,
    /// Index of the port on the circuit, from 0.
    pub(super) hop: u16,
}

/// The state of a network that ports share: all except what is inside ports, hosts and frame lines.
#[derive(Debug)]
pub(super) struct SharedState {
    pub(super) window: Window,
    /// By port, the channels that lead to it, in the order that breaks ties.
    pub(super) channels: Vec<Vec<Channel>>,
    pub(super) vcs: Vec<Vc>,
    pub(super) pdus: Slab<Aal5Pdu>,
    pub(super) datagrams: PacketStore,
    /// By datagram, time and place of its earliest loss known so far. Ports process cells in no common order, so an earlier loss may be found later.
    pub(super) losses: Vec<(u64, DropLocation)>,
    /// By port, the next hops of the circuit directions that use it, in their order.
    pub(super) next_hops: Vec<Vec<NextHop>>,
    /// By port: true if the port leads only to hosts that do not need the arrival of each cell inside a PDU.
    pub(super) may_coalesce: Vec<bool>,
    pub(super) counters: Vec<Vec<VcCounters>>,
    /// Counters of flows, then of receivers, then of control traffic.
    pub(super) flows: Vec<FlowCounters>,
    /// Number of TCP endpoints. Datagrams to higher numbers are packets that nodes make.
    pub(super) endpoints: usize,
    /// Number of UDP processes, whose sender numbers come before those of the endpoints.
    pub(super) processes: usize,
    /// ICMP messages to endpoints that have not arrived, by datagram. A lost message stays until its datagram number is reused.
    pub(super) messages: BTreeMap<u32, TooBigMessage>,
    /// Index of the counters of ARP packets, IGMP messages and keepalives.
    pub(super) control_counters: u32,
    /// By datagram number, for fragmented datagrams on a route with decision steps: the step at which the first fragment has arrived.
    pub(super) first_fragment_ends: BTreeMap<u32, u32>,
    /// By number of a fragmented outer packet, the sender snapshot of the packet.
    pub(super) outer_snapshots: BTreeMap<u32, StateTimes>,
    pub(super) ledger: Ledger,
    /// Recording, if the run has a timeline or a capture.
    pub(super) trace: Option<Box<Trace>>,
    /// Delivery reports, if packets are injected.
    pub(super) reports: Option<Box<DeliveryReports>>,
    /// Copies of injected packets to groups that have not been made.
    pub(super) copies: PendingCopies,
    /// Multicast trees, if any traffic has several receivers.
    pub(super) trees: Option<Box<Trees>>,
    /// Idle delays of the datagrams received last.
    pub(super) idle: IdleDelays,
    /// Packets that go on in place of others, until the driver has moved them.
    pub(super) parts: Vec<(u32, Progress)>,
}

/// Content of an ICMP message: the endpoint's segment that begins at `seq` is longer than `mtu`, in bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct TooBigMessage {
    pub(super) endpoint: u32,
    pub(super) seq: u64,
    pub(super) mtu: u32,
}

/// A PDU whose last cell has left the first port of its circuit.
#[derive(Clone, Copy, Debug)]
pub(super) struct NicDeparture {
    pub(super) nic: usize,
    pub(super) pdu: PduId,
    /// Instant at which the shaper emitted the last cell.
    pub(super) emitted: u64,
    /// Instant at which the last cell left the line.
    pub(super) at: u64,
    /// Bytes that become free in the NIC buffer.
    pub(super) bytes: u32,
}

impl SharedState {
    fn next_hop(&self, port: usize, vc: VcId) -> NextHop {
        let list = &self.next_hops[port];
        // Most ports serve few circuits, or all of them in order; therefore that index is tried first.
        match list.get(vc as usize) {
            Some(next_hop) if next_hop.vc == vc => *next_hop,
            _ => {
                let place = list.binary_search_by_key(&vc, |next_hop| next_hop.vc);
                list[place.expect("the port belongs to the cell's circuit")]
            }
        }
    }

    /// Returns the dedicated line of a generator, if the generator passes one in place of a bypassed port.
    pub(super) fn line_of(&self, source: &Source) -> Option<&DedicatedLine> {
        let (port, channel) = source.feeds;
        self.channels[port][channel].generator()?.line()
    }

    /// Counts the cells that a port has sent within the measurement window, and returns their number.
    #[inline]
    pub(super) fn count_sent(&mut self, port: usize, counter: usize, cells: &CellTrain) -> u64 {
        let counted = cells.count_within(self.window, 0);
        let counter = &mut self.counters[port][counter];
        counter.sent += counted;
        counter.sent_clp += if cells.clp { counted } else { 0 };
        counter.sent_efci += if cells.efci { counted } else { 0 };
        counted
    }

    /// Returns true if nothing records the run and postings are not deferred; a fast path could not serve these.
    #[inline(always)]
    pub(super) fn fast_path_allowed(&self) -> bool {
        self.trace.is_none() && self.ledger.deferred.is_none()
    }

    /// Releases memory once no packet is in flight.
    pub(super) fn release_unused_memory(&mut self) {
        if self.datagrams.release_unused_memory() {
            self.losses = Vec::new();
            self.ledger.forget_packets();
        }
    }

    /// Adds a datagram and returns its index. If `tracked_per_hop` is true, starts its per-hop record in the ledger.
    #[inline(always)]
    pub(super) fn begin_datagram(&mut self, tracked_per_hop: bool, datagram: Datagram) -> u32 {
        let id = self.datagrams.insert(datagram);
        if tracked_per_hop {
            self.ledger.track_per_hop(id, self.datagrams.len());
        }
        id
    }

    /// Starts the per-hop record of a datagram in the ledger, unless it has one.
    pub(super) fn track_per_hop(&mut self, datagram: u32) {
        let this = &mut self.datagrams[datagram];
        if std::mem::replace(&mut this.tracked_per_hop, true) {
            return;
        }
        let direction = (this.flow, this.to.get());
        let (bytes, arrived) = (this.header + this.bytes, this.arrived);
        self.ledger.track_per_hop(datagram, self.datagrams.len());
        if arrived > 0 {
            self.ledger.add_arrived_fragments(datagram, direction, bytes.into(), arrived.into());
        }
    }

    /// Starts the per-hop record of a fragmented datagram, because something happens to one fragment that may not happen to the others. Ignores unfragmented
    /// ones.
    #[inline]
    pub(super) fn track_fragments_per_hop(&mut self, datagram: u32) {
        if self.datagrams[datagram].fragments > 1 {
            self.track_per_hop(datagram);
        }
    }

    /// Posts a datagram in the ledger: one that is finished, or with `open` one that is still in the network at the end of the run.
    #[inline(never)]
    pub(super) fn post_finished_datagram(&mut self, datagram: u32, open: bool) {
        let this = &self.datagrams[datagram];
        if this.train {
            self.post_train(datagram, open);
            return;
        }
        // All fragments may have arrived while the gap behind the last frame still keeps a reference.
        let arrived = self.ledger.deferred.is_some() && this.arrived == this.fragments;
        let fate = match (this.lost, open && !arrived) {
            (true, _) => DeliveryStatus::Lost,
            (false, true) => DeliveryStatus::InFlight,
            (false, false) => DeliveryStatus::Delivered,
        };
        let load = self.load_of(this);
        let carried =
            if this.tracked_per_hop { Carried::Written(datagram) } else { Carried::Whole(this.trail) };
        self.ledger.post_datagram((this.flow, this.to.get()), fate, load, carried, this.refused);
    }

    /// Like [`Self::post_finished_datagram`], for all datagrams of a packet train.
    fn post_train(&mut self, datagram: u32, open: bool) {
        let this = &self.datagrams[datagram];
        let arrived = if open { this.arrived } else { this.fragments };
        self.ledger.post_train(this.flow, this.load(), datagram, this.fragments.into(), arrived.into());
    }

    /// Returns the load of a datagram, as the ledger sees it.
    #[inline(always)]
    pub(super) fn load_of(&self, datagram: &Datagram) -> Load {
        let message = datagram.to.get().is_none() && !self.flows[datagram.flow as usize].is_varied();
        let load = datagram.load();
        if message { Load { class: DatagramClass::FixedLength, ..load } } else { load }
    }

    /// Releases `count` references of a PDU: cells that were delivered or lost, or its event.
    pub(super) fn release_cells(&mut self, pdu: PduId, count: u32) {
        let this = &mut self.pdus[pdu];
        this.refs -= count;
        if this.refs == 0 {
            let (datagram, packet) = (this.datagram, this.packet);
            self.pdus.release(pdu);
            if packet != Aal5Pdu::NO_PACKET {
                // The packet is lost with its cells.
                self.datagrams.release_packet(packet);
                self.release_datagram(datagram);
            }
            self.release_datagram(datagram);
        }
    }

    #[inline(always)]
    pub(super) fn release_datagram(&mut self, datagram: u32) {
        let this = &mut self.datagrams[datagram];
        this.refs -= 1;
        if this.refs == 0 && !self.ledger.deferred.as_ref().is_some_and(|deferred| deferred.holds(datagram)) {
            self.finish_datagram(datagram);
        }
    }

    /// Finishes a datagram of which nothing is in the network and all is posted: posts it, counts its loss, and frees its index.
    #[inline(never)]
    pub(super) fn finish_datagram(&mut self, datagram: u32) {
        if self.is_of_tree(datagram) {
            return self.branch_ends(datagram);
        }
        self.post_finished_datagram(datagram, false);
        self.ledger.forget_pieces(datagram);
        self.count_loss(datagram);
        self.datagrams.release(datagram);
    }

    fn deliver(&mut self, cells: CellTrain, delay: u64) {
        let reassembly = &mut self.vcs[cells.vc as usize].reassembly;
        let pending = reassembly.pending();
        let reassembled = reassembly.add_cells(&cells);
        // A PDU keeps its references while cells of it wait for reassembly.
        let mut own = cells.count as u32;
        let mut cut = None;
        match pending {
            Some((pdu, count)) if pdu != cells.pdu => {
                let at = cells.nth(0) + delay;
                if cells.are_generated() && self.ledger.deferred.is_some() {
                    cut = Some((pdu, count));
                } else if cells.are_generated() && at <= self.window.end {
                    // A generator's cell ends a PDU between its cells, and the PDU is lost.
                    self.lose_pdu(pdu, DropLocation::Reassembly(None), at);
                }
                if cut.is_none() {
                    self.release_cells(pdu, count);
                }
            }
            Some((_, count)) => own += count,
            None => {}
        }
        if let Some(flow) = generator_of(cells.pdu) {
            let bad = reassembled == Some(Pdu::Bad);
            if let Some(deferred) = &mut self.ledger.deferred {
                let port = self.vcs[cells.vc as usize].hops.last().expect("a circuit has a line");
                deferred.arrive(*port, Arrivals { cells: cells.shifted(delay), flow, bad, cut });
            } else {
                self.receive_generated(flow, cells, delay, bad);
            }
        } else if let Some(reassembled) = reassembled {
            let pdu = &mut self.pdus[cells.pdu];
            (pdu.reassembled, pdu.efci) = (Some(reassembled), cells.efci);
            self.release_cells(cells.pdu, own);
        }
    }

    pub(super) fn receive_generated(
        &mut self,
        flow: usize,
        mut cells: CellTrain,
        delay: u64,
        first_is_bad: bool,
    ) {
        if first_is_bad {
            let at = cells.nth(0) + delay;
            if at <= self.window.end {
                self.lose_generated(
                    flow,
                    &CellTrain { count: 1, ..cells },
                    DropLocation::Reassembly(None),
                    at,
                );
            }
            cells.n += 1;
            cells.count -= 1;
            if cells.count == 0 {
                return;
            }
        }
        let count = cells.count_within(self.window, delay);
        let ever = cells.count_within(self.window.with_warmup(), delay);
        let tally = &mut self.flows[flow];
        tally.received += count;
        if ever > 0 {
            tally.note_last_reception(delay + cells.nth(ever - 1));
        }
        let rare = tally.rare();
        rare.marked += if cells.efci { count } else { 0 };
        rare.received_ever += ever;
    }
}

/// One port's view of the shared state: takes the cells that the port's queue hands on.
pub(super) struct PortOutput<'a> {
    pub(super) shared: &'a mut SharedState,
    pub(super) departures: &'a mut Vec<NicDeparture>,
    pub(super) port: usize,
}

impl CellSink for PortOutput<'_> {
    fn sent(&mut self, cells: CellTrain) {
        if self.shared.trace.is_some() {
            self.shared.tap_cells(self.port, &cells);
        }
        let next_hop = self.post(&cells);
        match next_hop.channel {
            Some((port, channel)) => {
                self.shared.channels[port][channel].push(cells.shifted(next_hop.delay));
            }
            None => self.shared.deliver(cells, next_hop.delay),
        }
    }

    fn path_number(&self, vc: VcId) -> usize {
        // Cells pass in order until the first transmission of a measurement window is found.
        if self.shared.ledger.has_started(self.port) && self.shared.ledger.deferred.is_none() {
            self.shared.next_hop(self.port, vc).path_number
        } else {
            MIXED
        }
    }

    fn sent_along(&mut self, path_number: usize, trains: &mut [CellTrain], pieces: &[TrainPiece]) {
        let inside = |train: &CellTrain| self.is_within_window(train);
        if path_number == MIXED || !trains.iter().all(inside) {
            // Cells are counted one by one if the order of PDUs matters, or if a window edge lies within the trains.
            one_by_one(trains, pieces).for_each(|cells| self.sent(cells));
            return;
        }
        if self.shared.trace.is_some() {
            self.shared.tap_pieces(self.port, trains, pieces);
        }
        let mut behind = None;
        for train in trains.iter().filter(|train| train.count > 0) {
            let next_hop = self.post(train);
            match next_hop.channel {
                None => self.shared.deliver(*train, next_hop.delay),
                Some(channel) => behind = Some((channel, next_hop.delay)),
            }
        }
        if let Some(((port, channel), delay)) = behind {
            self.shared.channels[port][channel].push_pieces(trains, pieces, delay);
        }
    }

    fn count_only_until(&self) -> u64 {
        let Window { from, end } = self.shared.window;
        // A window edge needs every instant, and so does a capture.
        if from.is_some() || self.is_tapped() {
            return 0;
        }
        end.saturating_sub(self.shared.next_hops[self.port].first().map_or(0, |next_hop| next_hop.delay))
    }

    fn lost(&mut self, cells: &CellTrain, at: u64, cause: CellDropCause) {
        let shared = &mut *self.shared;
        let next_hop = shared.next_hop(self.port, cells.vc);
        if let Some(trace) = &mut shared.trace {
            trace.dropped(self.port, at);
        }
        if shared.window.holds(at) {
            shared.counters[self.port][next_hop.counter].lost += cells.count;
        }
        if let Some(deferred) = &mut shared.ledger.deferred {
            deferred.lost(self.port, cells.count);
        }
        self.gone(cells, DropLocation::Port(self.port, cause), at);
    }

    #[inline]
    fn needs_loss_times(&self) -> bool {
        // Ports stop at the window edges anyway; only a recording needs the times.
        self.shared.trace.is_some()
    }

    fn policed(&mut self, cells: &CellTrain, at: u64) {
        let shared = &mut *self.shared;
        let next_hop = shared.next_hop(self.port, cells.vc);
        if shared.window.holds(at) {
            shared.counters[self.port][next_hop.counter].policed += cells.count;
        }
        if let Some(deferred) = &mut shared.ledger.deferred {
            deferred.lost(self.port, cells.count);
        }
        self.gone(cells, DropLocation::Policer(self.port), at);
    }

    #[inline]
    fn idle(&mut self, ps: u64, rounding: u64) {
        if self.shared.ledger.deferred.is_some() {
            // Everything sent so far has left before this idle time.
            self.shared.write_cells(self.port, u64::MAX);
        }
        self.shared.ledger.idle(self.port, ps, rounding);
    }

    fn waiting(&mut self, pdu: PduId, class: usize, sequence: u64) {
        self.shared.pdus[pdu].waiting = Some((class, sequence));
    }

    fn coalesce_until(&self) -> u64 {
        // A host only counts; the next queue needs every instant.
        if self.shared.may_coalesce[self.port] { self.count_only_until() } else { 0 }
    }
}

/// Path number of cells that are posted and handed on in order, one train at a time. All cells of a port have it in these cases: the line carries PDUs of
/// several circuits, whose order decides to which sender idle time is posted; a NIC leads to a host, where cells of a shaper and a generator interleave; no
/// cell has left in the measurement window yet; postings are deferred.
pub(super) const MIXED: usize = 1;

impl PortOutput<'_> {
    fn is_tapped(&self) -> bool {
        self.shared.trace.as_ref().is_some_and(|trace| trace.taps(self.port))
    }

    /// Returns true if all cells of `train` leave the line and arrive at its far end within the measurement window, and none is the first in it.
    fn is_within_window(&self, train: &CellTrain) -> bool {
        let Window { from, end } = self.shared.window;
        let begins = |from| self.shared.ledger.has_started(self.port) && train.first() > from;
        let delay = self.shared.next_hops[self.port].first().map_or(0, |next_hop| next_hop.delay);
        train.count == 0 || train.last + delay <= end && from.is_none_or(begins)
    }

    /// Counts the sent cells of one train, and posts them in the ledger. Returns their next hop.
    fn post(&mut self, cells: &CellTrain) -> NextHop {
        let shared = &mut *self.shared;
        let next_hop = shared.next_hop(self.port, cells.vc);
        let last = cells.last;
        if shared.ledger.deferred.is_some() {
            let mut line_index = next_hop.hop;
            let datagram = (!cells.are_generated()).then(|| {
                let Aal5Pdu { datagram, line_index: first, .. } = shared.pdus[cells.pdu];
                line_index += first;
                (datagram, shared.datagrams[datagram].owner())
            });
            shared.ledger.defer_cells(self.port, (next_hop.counter, line_index), *cells, datagram);
            self.on_last_cell_sent(cells, next_hop.delay);
            return next_hop;
        }
        let counted = shared.count_sent(self.port, next_hop.counter, cells);
        let counter = &mut shared.counters[self.port][next_hop.counter];
        if shared.ledger.on {
            let begun = shared.ledger.begun(self.port, cells, counted);
            match generator_of(cells.pdu) {
                Some(flow) => shared.ledger.generated(flow, next_hop.hop, begun),
                None => {
                    let Aal5Pdu { datagram: id, line_index, .. } = shared.pdus[cells.pdu];
                    let datagram = (id, shared.datagrams[id].owner());
                    shared.ledger.carried(self.port, line_index + next_hop.hop, datagram, cells, begun);
                }
            }
        }
        if last <= shared.window.end {
            // Interleaved trains of one circuit are not in order of time.
            counter.last_sent = counter.last_sent.max(Some(last));
        } else {
            let ever = cells.count_within(shared.window.with_warmup(), 0);
            if ever > 0 {
                counter.last_sent = counter.last_sent.max(Some(cells.nth(ever - 1)));
            }
        }
        self.on_last_cell_sent(cells, next_hop.delay);
        next_hop
    }

    /// If the train ends a PDU, records that its last cell has left the port.
    #[inline]
    fn on_last_cell_sent(&mut self, cells: &CellTrain, delay: u64) {
        let shared = &mut *self.shared;
        if !cells.are_generated() && cells.ends_pdu() {
            let pdu = &mut shared.pdus[cells.pdu];
            if pdu.hop == 0 {
                let nic = self.port;
                self.departures.push(NicDeparture {
                    nic,
                    pdu: cells.pdu,
                    emitted: pdu.eta,
                    at: cells.last,
                    bytes: pdu.sdu,
                });
            }
            pdu.hop += 1;
            pdu.eta = cells.last + delay;
            pdu.waiting = None;
        }
    }

    fn gone(&mut self, cells: &CellTrain, place: DropLocation, at: u64) {
        match generator_of(cells.pdu) {
            Some(flow) => self.shared.lose_generated(flow, cells, place, at),
            None => {
                self.shared.lose_pdu(cells.pdu, place, at);
                self.shared.pdus[cells.pdu].end_lost |= cells.ends_pdu();
                if self.shared.window.holds(at) {
                    let datagram = self.shared.pdus[cells.pdu].datagram;
                    let flow = self.shared.datagrams[datagram].flow as usize;
                    self.shared.flows[flow].losses(place).cells += cells.count;
                }
                self.shared.release_cells(cells.pdu, cells.count as u32);
            }
        }
    }
}
