//! Builds the ends of flows: processes, sockets and endpoints.

use engpass_model::host::{Side, ps};
use engpass_model::random::{Label, Stream};
use engpass_model::source::{TcpStream, Traffic};
use engpass_model::tcp::{CompactConnection, Role, Shared};
use engpass_model::time::{Pace, SECOND, Time};
use engpass_model::wire::ip::{Fragments, UDP_HEADER_BYTES};

use super::Builder;
use crate::endpoint::{Endpoint, NOTHING, SegmentCost};
use crate::flow_counters::FlowCounters;
use crate::host::{Socket, UdpApplication};
use crate::ready_packet::{BONDED, EgressPath};
use crate::tcp_application::{Delays, NEVER, TcpApplication};

impl Builder<'_> {
    /// Returns the process that sends the datagrams of a flow; `None` if its rate is zero or it sends no datagrams.
    pub(super) fn process(&self, flow: usize, traffic: &Traffic) -> Option<UdpApplication> {
        let (message, rate) = traffic.datagrams()?;
        let (start, stop) = traffic.window();
        let path = &self.topology.flows[flow];
        let (nic, way) = self.way_of(flow, 0, false);
        let host = &self.testbed.hosts[path.from];
        if rate.is_some_and(|rate| rate.0 == 0) {
            return None;
        }
        let cost = host.occupation(Side::Send, traffic.data_path(Side::Send));
        Some(UdpApplication {
            flow,
            host: path.from,
            nic,
            way,
            message,
            mtu: path.mtu,
            fragments: Fragments::of(message + UDP_HEADER_BYTES, path.mtu),
            arrivals: traffic.arrivals(self.seed, &path.name),
            due: ps(start),
            pace: rate.map(|rate| Pace::of_bits(8, rate.0)),
            start: ps(start),
            stop: stop.map_or(u64::MAX, |stop| stop.0),
            is_zero_cost: cost.datagram(1, 1) == 0,
            cost,
            pauses: host.pauses.clone(),
            random: Stream::new(self.seed, Label::Traffic(&path.name)),
            messages: 0,
            fragment: 0,
            datagram: None,
            pausing: false,
            is_copied: !path.branches.is_empty(),
        })
    }

    /// Returns one end of a flow's connection: the writing one if `writes` is given, otherwise the receive-only one. `stream` is the number of the connection.
    pub(super) fn endpoint(&mut self, flow: usize, stream: u32, writes: Option<&TcpStream>) -> Endpoint {
        let path = &self.topology.flows[flow];
        let (nic, way) = self.way_of(flow, stream, writes.is_none());
        let (at, role, side) = match writes {
            Some(_) => (path.from, Role::Active, Side::Send),
            None => (path.to, Role::Passive, Side::Receive),
        };
        let host = &self.testbed.hosts[at];
        let application = writes.map(|config| {
            let chance = host
                .pauses
                .clone()
                .map(|pauses| (pauses, Stream::new(self.seed, Label::Connection(&path.name, stream))));
            let pace = config.rate.map(|rate| (Pace::of_bits(8, rate.0), ps(config.start)));
            let waits = chance.is_some() || pace.is_some();
            let delays = Delays { chance, pace, begun: 0, resume: NEVER, early: false };
            TcpApplication {
                stop: config.stop.map_or(u64::MAX, |stop| stop.0),
                delays: waits.then(|| Box::new(delays)),
                message: u32::try_from(config.message.bytes()).expect("a write has at most 1 GiB"),
                writes: config.count.unwrap_or(u64::MAX),
                left: 0,
                copying: 0,
                open: false,
                connected: false,
            }
        });
        let mtu = self.topology.segment_mtus(path)[usize::from(writes.is_none())];
        let cost = host.occupation(side, self.testbed.traffic[flow].data_path(side));
        let cost = SegmentCost::from(&cost);
        let (egress, encapsulation) = match way {
            EgressPath::Circuit { vc, encapsulation } => (vc, Some(encapsulation)),
            EgressPath::Frames { route } => (route, None),
            EgressPath::Bond { route } => (route | BONDED, None),
        };
        Endpoint {
            flow: flow as u32,
            nic: nic as u32,
            egress,
            encapsulation,
            connection: CompactConnection::new(self.tcp_of(at, flow, mtu), role),
            cost: self.place_of(cost),
            timer: u64::MAX,
            handled_until: 0,
            ready_segment: NOTHING,
            busy: false,
            is_host_zero_cost: false,
            application: application.map(Box::new),
        }
    }

    /// Returns the index of an endpoint's CPU costs in `costs`, where equal costs share one entry; [`NOTHING`] if the endpoint costs nothing.
    fn place_of(&mut self, cost: SegmentCost) -> u32 {
        if cost.is_zero_cost() {
            return NOTHING;
        }
        // Similar flows are usually adjacent in a file, so only recent entries are compared.
        let known = self.costs.iter().rev().take(16).position(|known| *known == cost);
        let place = known.map_or(self.costs.len(), |back| self.costs.len() - 1 - back);
        if known.is_none() {
            self.costs.push(cost);
        }
        place as u32
    }

    /// Returns the TCP parameters of a flow at a host. Connections with equal parameters share them.
    fn tcp_of(&mut self, host: usize, flow: usize, mtu: u64) -> Shared {
        let tcp = &self.testbed.hosts[host].tcp;
        let own = self.testbed.traffic[flow].tcp().map(|own| own.over(tcp));
        let mut p = own.as_ref().unwrap_or(tcp).resolve(mtu);
        if p.ack_heartbeat || p.rto_heartbeat {
            // Heartbeats of different hosts are not synchronized.
            let label = Label::Heartbeat(&self.topology.nodes[host]);
            p.heartbeat_phase = Time(Stream::new(self.seed, label).below(SECOND));
        }
        // Flows with equal parameters are usually adjacent in a file, so only recent entries are compared.
        if let Some(shared) = self.tcp.iter().rev().take(16).find(|shared| ***shared == p) {
            return shared.clone();
        }
        let shared = Shared::from(p);
        self.tcp.push(shared.clone());
        shared
    }

    /// Returns the socket that receives a flow at the host `to`.
    pub(super) fn socket(&self, flow: usize, to: usize) -> Socket {
        let host = &self.testbed.hosts[to];
        let cost = host.occupation(Side::Receive, self.testbed.traffic[flow].data_path(Side::Receive));
        let buffer = self.testbed.traffic[flow].receive_buffer().unwrap_or(host.receive_buffer);
        Socket { host: to, is_zero_cost: cost.datagram(1, 1) == 0, cost, capacity: buffer.bytes(), used: 0 }
    }

    /// Returns the initial counters of all flows, and behind them those of multicast receivers. Appends the sockets of these receivers to `sockets`.
    pub(super) fn tallies(&self, sockets: &mut Vec<Option<Box<Socket>>>) -> Vec<FlowCounters> {
        let mut all: Vec<FlowCounters> =
            self.testbed.traffic.values().map(|traffic| self.tally(traffic)).collect();
        for (flow, (path, traffic)) in
            self.topology.flows.iter().zip(self.testbed.traffic.values()).enumerate()
        {
            for leaf in path.leaves() {
                sockets.resize_with(all.len(), || None);
                sockets.push(Some(Box::new(self.socket(flow, path.branches[leaf].to))));
                all.push(self.tally(traffic));
            }
        }
        all
    }

    /// Returns the initial counters of a flow or of a multicast receiver.
    fn tally(&self, traffic: &Traffic) -> FlowCounters {
        // Multicast, and sources whose datagrams are not evenly spaced, count as varied even with datagrams of one length: the ledger's class `FixedLength` is
        // only for messages of a `udp-stream` without a `count`.
        let varied = matches!(traffic, Traffic::Multicast(_)) || traffic.arrivals(self.seed, "").is_some();
        let mut tally = FlowCounters::new(varied);
        if let Some(transfer) = traffic.transfer() {
            tally.note_transfer(transfer);
        }
        // Events never affect links that carry the cells of generators. Injected packets count from the start of each measurement window.
        if !self.topology.events.is_empty() && !self.outside && traffic.cells().is_none() {
            let start = traffic.window().0.map_or(0, |start| start.0);
            tally.note_gaps(self.window.from.unwrap_or(0).max(start));
        }
        tally
    }
}
