//! Multicast: computes the limit of each receiver as if the sender sent to this receiver alone, but shared resources carry each datagram only once.

use std::collections::{BTreeMap, BTreeSet};

use engpass_model::source::{Multicast, Traffic, multicast};
use engpass_outcome::Share;
use engpass_testbed::topology::{FlowPath, NodeId, PathSegment};
use engpass_testbed::{Testbed, Topology};
use indexmap::IndexMap;

use crate::engine_work::CopyPoint;
use crate::outcome::{FlowLimit, LimitOutcome};

/// A testbed in which each receiver of a multicast group is a traffic of its own.
pub(crate) struct SeparateReceivers {
    pub(crate) testbed: Testbed,
    pub(crate) topology: Topology,
    /// By traffic of this testbed: index of the traffic in the file.
    pub(crate) of: Vec<usize>,
    /// By traffic of this testbed, for receivers: number of the copy on each link of the path, by the number of links before.
    pub(crate) copies: Vec<Vec<usize>>,
    /// By traffic in the file, the nodes that copy its packets.
    pub(crate) copy_points: Vec<BTreeMap<NodeId, CopyPoint>>,
    /// Names of the traffic in the file.
    names: Vec<String>,
}

impl SeparateReceivers {
    /// Separates the receivers of all multicast groups. Returns `None` if no group has several receivers.
    pub(crate) fn new(testbed: &Testbed, topology: &Topology) -> Option<Self> {
        if topology.flows.iter().all(|path| path.branches.is_empty()) {
            return None;
        }
        let (mut traffics, mut flows) = (IndexMap::new(), Vec::new());
        let (mut of, mut copies) = (Vec::new(), Vec::new());
        for (index, (path, (name, traffic))) in topology.flows.iter().zip(&testbed.traffic).enumerate() {
            let config = match traffic {
                Traffic::Multicast(config) if !path.branches.is_empty() => config,
                _ => {
                    traffics.insert(name.clone(), traffic.clone());
                    flows.push(path.clone());
                    of.push(index);
                    copies.push(Vec::new());
                    continue;
                }
            };
            let leaves = path.leaf_by_receiver();
            for host in &config.to {
                let only = Multicast { to: vec![host.clone()], ..config.clone() };
                let node = topology
                    .nodes
                    .iter()
                    .position(|node| node == host)
                    .expect("a receiver is a node of the testbed");
                let (way, crossed) = to_one(topology, path, leaves[&node]);
                let name = multicast::receiver_name(name, host);
                flows.push(FlowPath { name: name.clone(), ..way });
                copies.push(crossed);
                traffics.insert(name, Traffic::Multicast(only));
                of.push(index);
            }
        }
        let testbed = Testbed { traffic: traffics, ..testbed.clone() };
        let names = topology.flows.iter().map(|path| path.name.clone()).collect();
        let copy_points = topology.flows.iter().map(copy_points).collect();
        let topology = Topology { flows, ..topology.clone() };
        Some(Self { testbed, topology, of, copies, copy_points, names })
    }

    /// Returns the name of a traffic in the file.
    pub(crate) fn table(&self, flow: usize) -> &str {
        &self.names[self.of[flow]]
    }

    /// Converts the limits of this testbed back to limits of the file's testbed.
    pub(crate) fn fold(&self, answer: LimitOutcome, testbed: &Testbed, topology: &Topology) -> LimitOutcome {
        let mut each: BTreeMap<usize, Vec<FlowLimit>> = BTreeMap::new();
        for (limit, of) in answer.flows.into_values().zip(&self.of) {
            each.entry(*of).or_default().push(limit);
        }
        let flows = testbed.traffic.iter().enumerate().map(|(index, (name, traffic))| {
            let all = each.remove(&index).expect("every traffic entry has a limit");
            let Traffic::Multicast(config) = traffic else {
                return (name.clone(), all.into_iter().next().expect("a traffic entry has a limit"));
            };
            let least = |key: fn(&FlowLimit) -> f64| {
                let least = all.iter().min_by(|one, other| key(one).total_cmp(&key(other)));
                least.expect("a group has a receiver").clone()
            };
            let (limit, bound) = (least(|one| one.goodput_bit_per_s), least(|one| one.bound_bit_per_s));
            let limit = FlowLimit {
                paths: topology.paths(testbed, index),
                // The receiver that gets least gets no more than any other, so the smallest bound holds for the flow.
                bound_bit_per_s: bound.bound_bit_per_s,
                bound_bottleneck: bound.bound_bottleneck,
                bound_summary: bound.bound_summary,
                // Not the delay of one particular receiver, because in a run another receiver may get least.
                idle_delay_s: all.iter().filter_map(|one| one.idle_delay_s).reduce(f64::min),
                receivers: config.to.iter().cloned().zip(all).collect(),
                ..limit
            };
            (name.clone(), limit)
        });
        let flows = flows.collect();
        let mut links = answer.links;
        for direction in links.values_mut().flat_map(|link| &mut link.directions) {
            direction.shares = self.shares(std::mem::take(&mut direction.shares), testbed);
        }
        LimitOutcome { flows, links, nodes: answer.nodes }
    }

    /// Returns the shares of a line, with those of the receivers of a group added up.
    fn shares(&self, shares: Vec<Share>, testbed: &Testbed) -> Vec<Share> {
        let mut all: Vec<Share> = Vec::new();
        for share in shares {
            let place =
                self.testbed.traffic.get_index_of(&share.flow).expect("a share belongs to a traffic entry");
            let (name, _) =
                testbed.traffic.get_index(self.of[place]).expect("the testbed has this traffic entry");
            match all.last_mut().filter(|last| last.flow == *name) {
                Some(last) => last.share += share.share,
                None => all.push(Share { flow: name.clone(), ..share }),
            }
        }
        all
    }
}

/// Returns the nodes that copy the packets of a group. Only copies for receivers that never leave are certain. Copies of packets that come to the node in a
/// tunnel do not count, since its engine takes the time of one packet for them.
fn copy_points(path: &FlowPath) -> BTreeMap<NodeId, CopyPoint> {
    let always: BTreeSet<usize> = path
        .leaf_by_receiver()
        .into_iter()
        .filter(|(host, _)| path.members.iter().all(|member| member.host != *host))
        .flat_map(|(_, leaf)| path.branches_to(leaf))
        .collect();
    let mut points = BTreeMap::new();
    for (place, branch) in path.branches.iter().enumerate() {
        let copies: Vec<_> =
            path.branches.iter().enumerate().filter(|(_, branch)| branch.of == Some(place)).collect();
        if copies.is_empty() {
            continue;
        }
        let mut point = CopyPoint { legs: copies.iter().map(|(_, copy)| copy.legs[0]).collect(), more: 0 };
        let certain = copies.iter().filter(|(next, _)| always.contains(next)).count();
        if !matches!(branch.legs.last(), Some(PathSegment::Tunnel { .. })) {
            point.more = certain.saturating_sub(1) as u64;
        }
        points.insert(branch.to, point);
    }
    points
}

/// Returns the path of a group's packets to the receiver at the end of the branch `leaf`, and the number of the copy on each link: 1 plus the index of its
/// branch.
fn to_one(topology: &Topology, path: &FlowPath, leaf: usize) -> (FlowPath, Vec<usize>) {
    let branches = path.branches_to(leaf);
    let links = |branch: &usize| {
        let links = path.branches[*branch].legs.iter().map(|leg| topology.hops(*leg).len()).sum();
        std::iter::repeat_n(1 + branch, links)
    };
    let copies = branches.iter().flat_map(links).collect();
    let legs = path.legs_to(leaf);
    let way = FlowPath {
        to: path.branches[leaf].to,
        route: legs.iter().flat_map(|leg| topology.hops(*leg)).collect(),
        path_mtu: legs.iter().map(|leg| topology.mtu(*leg)).min().expect("a path has a segment"),
        legs,
        branches: Box::default(),
        members: path
            .members
            .iter()
            .filter(|member| member.host == path.branches[leaf].to)
            .cloned()
            .collect(),
        ..path.clone()
    };
    (way, copies)
}
