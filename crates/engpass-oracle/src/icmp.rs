//! ICMP messages of routers to senders that discover the path MTU (docs/model.md, "Packets of routers").

use engpass_model::source::Traffic;
use engpass_testbed::topology::{FlowPath, IcmpWay, NodeId};

use crate::routing::Network;

/// Reports that a segment of an endpoint, starting at a sequence number, is longer than an MTU.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Message {
    pub(crate) endpoint: usize,
    pub(crate) seq: u64,
    pub(crate) mtu: u64,
}

/// The ICMP messages of a router about one traffic.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Messages {
    pub(crate) flow: usize,
    pub(crate) router: NodeId,
}

impl Network<'_> {
    /// Returns true if the sender of a traffic discovers the path MTU.
    pub(crate) fn discovers(&self, traffic: &Traffic, from: NodeId) -> bool {
        let Traffic::TcpStream(config) = traffic else { return false };
        config.tcp.over(&self.testbed.hosts[from].tcp).discovers_path_mtu()
    }

    /// Returns the paths of ICMP messages about a traffic whose sender discovers the path MTU, by router. They come from the routers at which its
    /// data may continue on a path segment with a smaller MTU than the first one.
    pub(crate) fn icmp_ways(&self, path: &FlowPath) -> Box<[IcmpWay]> {
        let legs = match &path.fans {
            Some(fans) => fans[0].at.iter().flat_map(|(_, legs)| legs.clone()).collect(),
            None => path.legs.clone(),
        };
        let narrow = legs.into_iter().filter(|leg| self.mtu(*leg) < path.mtu);
        let mut routers: Vec<NodeId> = narrow.map(|leg| self.hops(leg)[0].from).collect();
        routers.sort_unstable();
        routers.dedup();
        let before = self.testbed.hosts.len() + self.testbed.switches.len();
        routers
            .retain(|node| node.checked_sub(before).is_some_and(|router| self.testbed.routers[router].icmp));
        let way = |router: NodeId| {
            let fan = self.fan(router, path.from);
            let chooses = fan.at.iter().any(|(_, legs)| legs.len() > 1);
            IcmpWay { router, legs: self.path(router, path.from), fan: chooses.then_some(fan) }
        };
        routers.into_iter().map(way).collect()
    }
}
