//! Captures: records packets and cells that leave a transmitter, each with its instant.
//!
//! Records are part of the [`Trace`]. Ports work ahead of virtual time, each by a different amount. Therefore records are kept until no earlier one can follow,
//! and are then handed on in order of time.

mod buffers;
mod record;
mod tunnels;

use engpass_cells::{CellTrain, Generator, generator_of};
use engpass_model::queue::Ecn;
use engpass_testbed::topology::NodeKind;
use engpass_testbed::{Testbed, Topology};

use super::clock::ADVANCE_INTERVAL;
use super::host::Hosts;
use super::injection::InjectedSenders;
use super::ready_packet::ReadyPacket;
use super::shared_state::SharedState;
use super::trace::Trace;
use super::{Network, RunControl, SimError, SimOutcome};
pub(super) use buffers::{Carrier, Quoted, TapBuffers};
use buffers::{FlowInfo, Marks, Record};
pub use record::{Arp, CaptureRecord, CaptureSink, Cell, Content, Head, Igmp, Outer, Packet, Pdu, Unit};
pub(super) use tunnels::HiddenHeaders;

/// Simulates one run, and captures all packets and cells that leave the transmitters `ports` (`2 * link + end`). The run is the same as that of
/// [`simulate`](super::simulate).
///
/// # Errors
/// Those of [`simulate`](super::simulate); a capture that stops the run counts as an interruption.
pub fn captured(
    testbed: &Testbed,
    topology: &Topology,
    seed: u64,
    ports: &[usize],
    watch: &dyn RunControl,
    capture: &mut dyn CaptureSink,
) -> Result<SimOutcome, SimError> {
    let mut network = Network::new(testbed, topology, seed)?;
    network.tap(testbed, topology, ports);
    let mut at = 0;
    while at < network.clock.end {
        // When the sink wants no more, the run continues without pauses.
        at = if capture.wants_more() {
            (at + ADVANCE_INTERVAL).min(network.clock.end)
        } else {
            network.clock.end
        };
        network.run_to(at, watch)?;
        // With cells, ports were advanced only to the last sweep; later records may be missing.
        let complete_until = if network.shared.vcs.is_empty() {
            Some(at)
        } else {
            network.clock.next_advance.checked_sub(ADVANCE_INTERVAL + 1)
        };
        if let Some(complete_until) =
            complete_until.filter(|complete_until| *complete_until < network.clock.end)
        {
            network.shared.deliver_records(complete_until, capture)?;
        }
    }
    network.finish();
    network.shared.deliver_records(network.clock.end, capture)?;
    network.outcome(testbed, topology)
}

impl SharedState {
    /// Records the header of a sender's packet that enters its NIC.
    #[cold]
    pub(super) fn tap_emitted(
        &mut self,
        carrier: Carrier,
        sender: usize,
        ready_packet: &ReadyPacket,
        hosts: &Hosts,
        injected: &InjectedSenders,
    ) {
        let Some(trace) = &mut self.trace else { return };
        let (id, datagram) = (ready_packet.datagram, &self.datagrams[ready_packet.datagram]);
        let cut = match hosts.processes.get(sender) {
            Some(process) => {
                (process.fragment * process.fragments.full, process.fragment + 1 < process.fragments.count)
            }
            None => injected.fragment(ready_packet.nic),
        };
        let marks = match (&self.reports, datagram.to.get().map(|_| self.datagrams.segment(id))) {
            (Some(reports), _) => {
                let head = reports.head(id);
                Marks { ecn: head.ecn, own: Some((head.ttl, head.priority)) }
            }
            (None, Some(segment)) if segment.ce => Marks { ecn: Ecn::Marked, own: None },
            (None, Some(segment)) if segment.ect => Marks { ecn: Ecn::Capable, own: None },
            (None, _) => Marks { ecn: Ecn::NotCapable, own: None },
        };
        trace.emitted(carrier, ready_packet, datagram, cut, marks);
    }

    /// Hands the records at or before `until` to the sink, in order of time. No more such records may appear later.
    pub(super) fn deliver_records(
        &mut self,
        until: u64,
        capture: &mut dyn CaptureSink,
    ) -> Result<(), SimError> {
        let Some(trace) = &mut self.trace else { return Ok(()) };
        let Some(taps) = &mut trace.taps else { return Ok(()) };
        let mut all = Vec::new();
        for (port, records) in taps.ports.iter_mut().enumerate() {
            let Some(records) = records else { continue };
            for (_, generator, left) in taps.bypassed.iter_mut().filter(|(line, ..)| *line == port) {
                generated_until(generator, left, until, records);
            }
            let mut later = Vec::new();
            for record in records.drain(..) {
                match record {
                    Record::Packet(at, _) | Record::Arp(at, _) | Record::Igmp(at, _) if at > until => {
                        later.push(record);
                    }
                    Record::Arp(at, arp) => all.push(CaptureRecord { at, port, unit: Unit::Arp(arp) }),
                    Record::Igmp(at, igmp) => all.push(CaptureRecord { at, port, unit: Unit::Igmp(igmp) }),
                    Record::Packet(at, packet) => {
                        all.push(CaptureRecord { at, port, unit: Unit::Packet(packet) })
                    }
                    Record::Cells(cells, packet) => {
                        let vcs = &self.vcs;
                        let circuit = |cells: &CellTrain| {
                            let vc = &vcs[cells.vc as usize];
                            (vc.circuit, vc.forward)
                        };
                        let left = emit_cells_until(cells, until, |at, place| {
                            let (circuit, forward) = circuit(&cells);
                            let pdu = match (&packet, generator_of(cells.pdu)) {
                                (Some(packet), _) => Pdu::Packet(packet.clone()),
                                (None, flow) => {
                                    Pdu::Generated(flow.expect("a frame without a packet has a generator"))
                                }
                            };
                            let CellTrain { clp, efci, of, .. } = cells;
                            let of = u32::from(of);
                            let cell = Cell { circuit, forward, clp, efci, place, of, pdu };
                            all.push(CaptureRecord { at, port, unit: Unit::Cell(cell) });
                        });
                        later.extend(left.map(|cells| Record::Cells(cells, packet)));
                    }
                }
            }
            *records = later;
        }
        all.sort_by_key(|passing| (passing.at, passing.port));
        for passing in &all {
            if !capture.wants_more() {
                break;
            }
            if capture.passed(passing).is_break() {
                return Err(SimError::Interrupted);
            }
        }
        if !capture.wants_more() {
            trace.taps = None;
        }
        Ok(())
    }
}

/// Returns the trace of a capture at these transmitters. Nothing may have happened yet.
pub(super) fn trace_of(network: &Network, testbed: &Testbed, topology: &Topology, ports: &[usize]) -> Trace {
    let (mut source, mut endpoint) = (0, 0);
    let flows = topology.flows.iter().zip(testbed.traffic.values()).enumerate();
    let flows = flows.map(|(flow, (path, traffic))| {
        let (first, begins) = (source, endpoint);
        let mine = network.hosts.endpoints.iter().filter(|end| end.flow as usize == flow).count();
        source += (mine as u32 / 2).max(1);
        endpoint += mine as u32;
        let (ttl, priority) = (traffic.ttl().unwrap_or(u8::MAX), traffic.priority());
        let ends = [path.from, path.to];
        FlowInfo { table: flow, ends, source: first, endpoint: begins, ttl, priority }
    });
    let mut flows: Vec<FlowInfo> = flows.collect();
    for flow in 0..flows.len() {
        // A multicast copy shows the same headers as the original.
        flows.extend(topology.flows[flow].leaves().map(|_| flows[flow]).collect::<Vec<_>>());
    }
    let bypassed = network.cells.sources.iter().filter_map(|source| {
        let (port, later) = source.bypassed?;
        ports.contains(&port).then(|| (port, source.generator.clone().shifted(later), None))
    });
    let bypassed = bypassed.collect();
    let [first_arp, first_igmp, first_keepalive, first_copy] =
        network.frames.control_directions(network.hosts.endpoints.len());
    let taps = TapBuffers {
        ports: (0..network.hosts.nics.len()).map(|port| ports.contains(&port).then(Vec::new)).collect(),
        bypassed,
        next_id: vec![0; topology.hosts],
        next_of_routers: vec![0; testbed.routers.len()],
        flows,
        keepalives: network.frames.keepalives.all().collect(),
        first_arp: first_arp as u32,
        first_igmp: first_igmp as u32,
        first_keepalive: first_keepalive as u32,
        first_copy: first_copy as u32,
        of_switches: (0..network.hosts.nics.len())
            .map(|port| topology.links[port / 2].ends[port % 2])
            .map(|node| matches!(topology.kind(node), NodeKind::Switch(_)))
            .collect(),
        scales: vec![None; network.hosts.endpoints.len()],
        ticks: network.hosts.endpoints.iter().map(|end| end.connection.timestamp_tick()).collect(),
        ..TapBuffers::default()
    };
    let mut trace =
        Trace::new(network.hosts.nics.len(), testbed.traffic.len(), network.shared.flows.len(), &[]);
    trace.taps = Some(Box::new(taps));
    trace
}

/// Records the trains that a generator has made by `until`; `left` keeps the first train after that.
fn generated_until(
    generator: &mut Generator,
    left: &mut Option<CellTrain>,
    until: u64,
    records: &mut Vec<Record>,
) {
    loop {
        let Some(cells) = left.take().or_else(|| generator.next_cells()) else { return };
        if cells.first() > until {
            *left = Some(cells);
            return;
        }
        // The cells of this train after `until` wait among the records.
        records.push(Record::Cells(cells, None));
    }
}

/// Calls `each` with the instant of every cell at or before `until` and its index in the PDU. Returns the remaining cells.
fn emit_cells_until(mut cells: CellTrain, until: u64, mut each: impl FnMut(u64, u32)) -> Option<CellTrain> {
    while cells.count > 0 {
        let at = cells.nth(0);
        if at > until {
            return Some(cells);
        }
        each(at, cells.cell);
        cells.skip_cells(1);
        cells.n += 1;
        cells.count -= 1;
    }
    None
}
