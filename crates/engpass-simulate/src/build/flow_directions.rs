//! Inputs of the ledger: flow directions. There is one for each flow. Two each follow for connections, for the ICMP messages of each router about a flow, for
//! each line that may carry ARP packets, for the IGMP messages of each receiver that joins or leaves, for the keepalives of each end of a tunnel, and for each branch of a multicast tree.

use std::iter::successors;

use engpass_frames::{Frames, RouteLine};
use engpass_ledger::{FlowDirection, FlowDirectionLine, HeldBack, Ledger, LedgerInputs};
use engpass_model::source::Traffic;
use engpass_model::wire::icmp;
use engpass_model::wire::ip::MIN_MTU;
use engpass_testbed::topology::FlowPath;

use super::Builder;
use crate::endpoint::Endpoint;
use crate::host::UdpApplication;
use crate::injection::Sender;
use crate::shared_state::Vc;

/// Path and sender of the packets of a flow direction.
struct DirectionInputs<'a> {
    flow: usize,
    against: bool,
    traffic: Option<&'a Traffic>,
    sender: Option<usize>,
    rare: bool,
    /// Route of the packets if frames carry them. For a branch of a multicast tree, `before` holds the routes of the branches that lead to it.
    route: u32,
    before: Vec<u32>,
    mtu: u64,
}

impl<'a> Builder<'a> {
    /// Returns the empty ledger of the network.
    pub(super) fn build_ledger(
        &self,
        (frames, control_counters): (&Frames, u32),
        processes: &[UdpApplication],
        endpoints: &[Endpoint],
        outside: &[Sender],
    ) -> Ledger {
        // A connection has flow directions of its own.
        let has_own = |traffic: &Traffic| !matches!(traffic, Traffic::TcpStream(_));
        let traffics = || self.testbed.traffic.values().enumerate();
        let flows = self.testbed.traffic.values().rposition(has_own).map_or(0, |last| last + 1);
        let hops = self.vcs.iter().map(|vc| vc.hops.len());
        let inside = processes.len() + endpoints.len();
        let process = |flow: usize| processes.binary_search_by_key(&flow, |process| process.flow).ok();
        let own = traffics().take(flows).map(|(flow, traffic)| {
            has_own(traffic).then(|| {
                let outside = outside.binary_search_by_key(&flow, |sender| sender.flow).ok();
                let sender = process(flow).or(outside.map(|place| inside + place));
                let route = frames.route_of(flow, 0, false);
                self.flow_direction(frames, self.direction_inputs(flow, Some(traffic), sender, route))
            })
        });
        let connections = endpoints.chunks(2).enumerate().flat_map(|(pair, ends)| {
            let flow = ends[0].flow as usize;
            let sender = Some(processes.len() + 2 * pair);
            let there =
                self.direction_inputs(flow, Some(&self.testbed.traffic[flow]), sender, ends[0].route());
            let back =
                DirectionInputs { against: true, ..self.direction_inputs(flow, None, None, ends[1].route()) };
            [there, back].map(|sent| Some(self.flow_direction(frames, sent)))
        });
        let messages = frames.icmp.ways.iter().flat_map(|way| {
            let sent = self.direction_inputs(way.flow as usize, None, None, way.route);
            // Any router may send messages about injected packets, but few do.
            let sent = DirectionInputs { against: true, rare: self.outside, mtu: icmp::LONGEST, ..sent };
            [Some(self.flow_direction(frames, sent)), None]
        });
        let branches = self.branches(frames).flat_map(|(flow, path, place, routes)| {
            // The first branch of a tree uses the flow direction of its flow.
            let direction = path.branches[place].of.map(|of| {
                let mut before: Vec<u32> = successors(Some(of), |place| path.branches[*place].of)
                    .map(|place| routes[place])
                    .collect();
                before.reverse();
                let sent = self.direction_inputs(
                    flow,
                    Some(&self.testbed.traffic[flow]),
                    process(flow),
                    routes[place],
                );
                self.flow_direction(frames, DirectionInputs { before, ..sent })
            });
            [direction, None]
        });
        let [.., first_branch] = frames.control_directions(flows + endpoints.len());
        let mut trees: Vec<Vec<usize>> = Vec::new();
        for (number, (flow, _, place, _)) in self.branches(frames).enumerate() {
            if place == 0 {
                trees.push(vec![flow]);
            }
            trees.last_mut().expect("a multicast tree has a first branch").push(first_branch + 2 * number);
        }
        let opening = LedgerInputs {
            topology: self.topology,
            window: self.window,
            processes: processes.len(),
            endpoints: endpoints.len(),
            outside: outside.len(),
            flows,
            stride: hops.max().unwrap_or(0).max(frames.most_lines()),
            trees,
            usable_for_data: &frames.usable_for_data,
            trails: &frames.trails,
        };
        Ledger::open(
            opening,
            own.chain(connections)
                .chain(messages)
                .chain(self.control_directions(frames, control_counters))
                .chain(branches),
        )
    }

    /// Returns the flow directions of ARP packets, IGMP messages and keepalives: two for each sender, of which the second is unused.
    /// `counters` is the index of their counters.
    fn control_directions(
        &self,
        frames: &Frames,
        counters: u32,
    ) -> impl Iterator<Item = Option<FlowDirection<'a>>> {
        let frame_line =
            move |number| self.line(RouteLine { number, vc: None, changes: Vec::new(), avoidable: false });
        let links = &self.topology.links;
        let resolution = frames.arp.ports().map(move |port| (links[port / 2].mtu, vec![frame_line(port)]));
        let memberships = frames.igmp.members().iter().map(move |member| {
            let lines = member.links.iter().map(|hop| frame_line(self.topology.port_of(hop)));
            (links[member.links[0].link].mtu, lines.collect())
        });
        let keepalives = frames.keepalives.routes().map(|route| {
            let lines = frames.lines_of(&[], route, MIN_MTU);
            (MIN_MTU, lines.into_iter().map(|line| self.line(line)).collect())
        });
        let flow = counters as usize;
        resolution.chain(memberships).chain(keepalives).flat_map(move |(mtu, lines)| {
            let (traffic, sender) = (None, None);
            [Some(FlowDirection { flow, against: true, traffic, sender, rare: true, mtu, lines }), None]
        })
    }

    /// Iterates over the branches of all multicast trees: flow, its path, index of the branch in its tree, and the routes of that tree.
    fn branches<'f>(
        &'f self,
        frames: &'f Frames,
    ) -> impl Iterator<Item = (usize, &'f FlowPath, usize, &'f [u32])> {
        let mut begun = 0;
        self.topology.flows.iter().enumerate().flat_map(move |(flow, path)| {
            let routes = &frames.branches[begun..][..path.branches.len()];
            begun += routes.len();
            (0..routes.len()).map(move |place| (flow, path, place, routes))
        })
    }

    /// Returns the inputs of a flow direction for packets that flow with the data. Its sender fragments for the MTU of the first path segment.
    fn direction_inputs(
        &self,
        flow: usize,
        traffic: Option<&'a Traffic>,
        sender: Option<usize>,
        route: u32,
    ) -> DirectionInputs<'a> {
        let mtu = self.topology.flows[flow].mtu;
        DirectionInputs { flow, against: false, traffic, sender, rare: false, route, before: Vec::new(), mtu }
    }

    /// Returns a flow direction with the lines that it crosses.
    fn flow_direction(&self, frames: &Frames, sent: DirectionInputs<'a>) -> FlowDirection<'a> {
        let DirectionInputs { flow, against, traffic, sender, rare, route, before, mtu } = sent;
        let path = &self.topology.flows[flow];
        let lines = match path.circuit {
            Some(circuit) => {
                let vc = 2 * circuit as u32 + u32::from(path.forward == against);
                let line = |number: &usize| RouteLine {
                    number: *number,
                    vc: Some(vc),
                    changes: Vec::new(),
                    avoidable: false,
                };
                self.vcs[vc as usize].hops.iter().map(line).collect()
            }
            None => frames.lines_of(&before, route, mtu),
        };
        let lines = lines.into_iter().map(|line| self.line(line)).collect();
        FlowDirection { flow, against, traffic, sender, rare, mtu, lines }
    }

    fn line(&self, RouteLine { number, vc, changes, avoidable }: RouteLine) -> FlowDirectionLine {
        let circuit = vc.map(|vc| &self.topology.circuits[vc as usize / 2]);
        let encapsulation = circuit.map(|circuit| circuit.encapsulation).unwrap_or_default();
        let wire = self.topology.links[number / 2].wire(number % 2, encapsulation);
        let shaped = vc.is_some_and(|vc| self.is_shaped(&self.vcs[vc as usize], number));
        let held_back = match (avoidable, shaped) {
            (true, _) => HeldBack::OtherWay,
            (false, true) => HeldBack::Shaper,
            (false, false) => HeldBack::Upstream,
        };
        FlowDirectionLine { number, wire, changes, held_back }
    }

    /// Returns true if a circuit's shaper is adaptive, or slower than both the NIC's line and this port's line.
    fn is_shaped(&self, vc: &Vc, port: usize) -> bool {
        let slower = |port: usize| {
            let ((num, den), (slot, per_ps)) = (vc.shaper.pace().ratio(), self.slots[port].ratio());
            u128::from(num) * u128::from(per_ps) > u128::from(slot) * u128::from(den)
        };
        // A circuit at the rate of its NIC's line has no shaper, however fast later lines are.
        let shapes = vc.hops.first().is_some_and(|&first| slower(first));
        vc.adaptive_shaper.is_some() || (shapes && slower(port))
    }
}
