//! Needs of a unit at the hosts: CPUs, memories and I/O buses at both ends.

use engpass_model::host::{CpuCost, Host, Side};
use engpass_model::idle::{self, LonePacket};
use engpass_model::source::Traffic;
use engpass_model::time::SECOND;
use engpass_outcome::BottleneckKind;
use engpass_testbed::topology::FlowPath;

use super::ROUNDING;
use super::demand::Builder;
use super::idle::{Arrived, Pick, Travel};
use super::need::{Demand, Need, Resource, named};

/// Kinds of bottlenecks at one host of a flow.
struct Kinds {
    path: BottleneckKind,
    memory: BottleneckKind,
    bus: BottleneckKind,
    host: BottleneckKind,
}

const SENDING: Kinds = Kinds {
    path: BottleneckKind::SendingPath,
    memory: BottleneckKind::SendingMemory,
    bus: BottleneckKind::SendingBus,
    host: BottleneckKind::SendingHost,
};

const RECEIVING: Kinds = Kinds {
    path: BottleneckKind::ReceivingPath,
    memory: BottleneckKind::ReceivingMemory,
    bus: BottleneckKind::ReceivingBus,
    host: BottleneckKind::ReceivingHost,
};

/// CPU time of a host in picoseconds: per unit, and the least time per bit of payload.
pub(super) type Times<U, B> = (U, B);

/// Returns when packets reach the receiver on the fastest path.
fn shortest(demand: &Demand<'_>, packets: Vec<LonePacket>) -> Arrived {
    Travel::new(demand.work, &demand.lane.there, Pick::Shortest).of(packets)
}

impl<'a> Builder<'a> {
    /// Returns the time that a UDP message takes to its receiver without other traffic, in picoseconds.
    pub(super) fn idle_datagram(&self, demand: &Demand<'_>, message: u64) -> u64 {
        let [send, receive] = self.occupations(demand.traffic, demand.path);
        let arrived = shortest(demand, idle::message(&send, message, demand.path.mtu).collect());
        arrived.last + receive.datagram(message, arrived.packets)
    }

    /// Returns the time that a TCP segment takes to its receiver without other traffic, in picoseconds.
    pub(super) fn idle_segment(&self, demand: &Demand<'_>, header: u64, payload: u64) -> u64 {
        let [send, receive] = self.occupations(demand.traffic, demand.path);
        let formed = vec![LonePacket::new(header + payload, send.segment())];
        let arrived = shortest(demand, formed);
        arrived.last + receive.segment() + receive.bytes(payload)
    }

    /// Returns the CPU costs of the sender and of the receiver.
    fn occupations(&self, traffic: &Traffic, path: &FlowPath) -> [CpuCost; 2] {
        [(Side::Send, path.from), (Side::Receive, path.to)]
            .map(|(side, host)| self.testbed.hosts[host].occupation(side, traffic.data_path(side)))
    }

    /// Adds the needs at both hosts, given the CPU times of each. Pauses of hosts do not count, because they are random and a run may have none. `acks_ahead`
    /// acknowledgements may arrive after the end of the run.
    pub(super) fn hosts<S, LS, R, LR>(
        &mut self,
        demand: &mut Demand<'a>,
        sending: Times<S, LS>,
        receiving: Times<R, LR>,
        acks_ahead: f64,
    ) where
        S: Fn(&CpuCost) -> f64,
        LS: Fn(&CpuCost) -> f64,
        R: Fn(&CpuCost) -> f64,
        LR: Fn(&CpuCost) -> f64,
    {
        self.host(demand, Side::Send, sending, acks_ahead);
        self.host(demand, Side::Receive, receiving, acks_ahead);
    }

    fn host(
        &mut self,
        demand: &mut Demand<'a>,
        side: Side,
        (time, least): Times<impl Fn(&CpuCost) -> f64, impl Fn(&CpuCost) -> f64>,
        acks_ahead: f64,
    ) {
        let (node, kinds) = match side {
            Side::Send => (demand.path.from, SENDING),
            Side::Receive => (demand.path.to, RECEIVING),
        };
        let name = &self.topology.nodes[node];
        let host = self.testbed.hosts.get(name).expect("a flow begins and ends at a host");
        let own = demand.traffic.data_path(side);
        let busy = time(&host.work(side, own));
        // The engine `simulate` has one CPU for the whole data path; no engine is faster.
        let whole = host.occupation(side, own);
        let before = demand.limiters.len();
        let supply = SECOND as f64 * demand.span.seconds();
        let least = least(&whole);
        let ahead = if least > 0.0 { acks_ahead * whole.ack() as f64 / least } else { 0.0 };
        let most = demand.span.rate(supply / least + ahead);
        self.data(demand, (side, time(&whole), most), host, &kinds);
        let parts = demand.limiters[before..].iter().flat_map(|limiter| &limiter.resources);
        let slowest =
            parts.map(|part| demand.time(&self.resources, *part)).fold(busy / SECOND as f64, f64::max);
        let cpu = self.resources.get(Resource::Cpu(node), || SECOND as f64);
        // If one part of the data path takes all the time, that part is the limit in the long run, and the CPU sets none.
        let whole_time = time(&whole) / SECOND as f64;
        let is_one = whole_time <= slowest * (1.0 + ROUNDING);
        let in_the_long_run = if is_one { f64::INFINITY } else { demand.payload_bits / whole_time };
        let need = Need { unit: busy, least, ahead };
        let bottleneck = named(kinds.host, name, format!("host `{name}`"));
        if let Some(limiter) = demand.add_bounded(bottleneck, (cpu, need), supply, None) {
            limiter.in_the_long_run = in_the_long_run;
        }
    }

    /// Adds the needs of memory and I/O bus of a host, and of CPU and DMA that work in turn on a data path without pipelining. `turns` is the sum of their
    /// times in picoseconds per unit, as `simulate` counts them; `most` is their bound in bit/s.
    fn data(
        &mut self,
        demand: &mut Demand<'a>,
        (side, turns, most): (Side, f64, f64),
        host: &Host,
        kinds: &Kinds,
    ) {
        let own = demand.traffic.data_path(side);
        let Some((path, transfer)) = host.transfer(side, own) else { return };
        let sends = side == Side::Send;
        let node = if sends { demand.path.from } else { demand.path.to };
        let name = &self.topology.nodes[node];
        let bytes = demand.payload_bits / 8.0;
        let before = demand.limiters.len();
        if transfer.then_dma.is_some() {
            // Every connection alternates by itself.
            let streams = demand.streams();
            let time = self.resources.get(Resource::Turns(demand.index, node), || SECOND as f64 * streams);
            let title = format!("copies and DMA of host `{name}`");
            if let Some(limiter) = demand.add(named(kinds.path, name, title), &[(time, turns)]) {
                limiter.at_most = Some(most);
            }
        }
        if let Some(memory) = &host.memory {
            let resource = self.resources.get(Resource::Memory(node), || memory.bandwidth.0 as f64);
            let times = transfer.memory.0 + transfer.memory.1;
            let title = format!("memory of host `{name}`");
            demand.add(named(kinds.memory, name, title), &[(resource, bytes * times as f64)]);
        }
        if let Some(bus) = &host.io_bus {
            let need = bytes * transfer.bus as f64;
            let way = self.resources.get(Resource::Bus(node, sends), || bus.rate(side) as f64);
            let mut needs = vec![(way, need)];
            if bus.half_duplex {
                let both = self.resources.get(Resource::BothWays(node), || bus.bandwidth.0 as f64);
                needs.push((both, need));
            }
            demand.add(named(kinds.bus, name, format!("I/O bus of host `{name}`")), &needs);
        }
        for limiter in &mut demand.limiters[before..] {
            limiter.data = Some((path, transfer));
        }
    }
}
