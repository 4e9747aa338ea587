//! Paths of outer packets, and MTUs of tunnels (docs/model.md, "Tunnels").

use std::collections::BTreeMap;

use engpass_model::tunnel::{Fragment, TunnelHeader};
use engpass_model::wire::ip::IP_HEADER_BYTES;
use engpass_testbed::Testbed;
use engpass_testbed::topology::{BondPath, CircuitPath, Fan, Hop, LinkEnds, NodeId, TunnelPath, TunnelWay};

use crate::routing::Network;

/// Length of the longest IP packet in bytes (RFC 791 section 3.1, "Total Length").
const LONGEST: u64 = 65_535;

/// Returns the bytes of the tunnel header, without the outer IP header.
pub(crate) fn header_bytes(header: &TunnelHeader) -> u64 {
    match header {
        // RFC 2784 section 2, RFC 2890 section 2: 4 bytes, and 4 more for each optional field.
        TunnelHeader::Gre(gre) => {
            let optional = [gre.checksum, gre.key.is_some(), gre.sequence];
            4 + 4 * optional.into_iter().filter(|is_there| *is_there).count() as u64
        }
        // RFC 2003 section 3: there is only the outer IP header.
        TunnelHeader::IpIp(_) => 0,
    }
}

/// Resolves all tunnels of the file. A tunnel that carries others is resolved before them.
pub(crate) fn tunnels(
    testbed: &Testbed,
    links: &[LinkEnds],
    circuits: &[CircuitPath],
    bonds: &[BondPath],
    node: impl Fn(&str) -> NodeId,
) -> Vec<TunnelPath> {
    let mut known: BTreeMap<usize, TunnelPath> = BTreeMap::new();
    while known.len() < testbed.tunnels.len() {
        for (index, (name, config)) in testbed.tunnels.iter().enumerate() {
            let over = config.over.as_ref();
            let over =
                over.map(|over| testbed.tunnels.get_index_of(over).expect("the testbed has this tunnel"));
            if known.contains_key(&index) || over.is_some_and(|over| !known.contains_key(&over)) {
                continue;
            }
            let is_up = config.up && over.is_none_or(|over| known[&over].is_up);
            let depth = 1 + over.map_or(0, |over| known[&over].depth);
            let tunnels = over.map(|over| (over, &known[&over])).into_iter().collect();
            let network = Network { testbed, links, circuits, tunnels, bonds };
            let ends = [node(&config.ends[0]), node(&config.ends[1])];
            let ways = network.outer_ways(ends);
            let legs = ways.iter().flat_map(|way| &way.fan.at).flat_map(|(_, legs)| legs);
            let least = legs.map(|leg| network.mtu(*leg)).min().expect("a path has segments");
            let headers = IP_HEADER_BYTES + header_bytes(&config.header);
            let room = if config.fragment == Fragment::Outer { LONGEST } else { least };
            let mtu = config.mtu.map_or_else(|| room - headers, |mtu| mtu.bytes());
            let path = TunnelPath {
                name: name.clone(),
                config: config.clone(),
                ends,
                is_up,
                depth,
                mtu,
                added: headers,
                ways,
            };
            known.insert(index, path);
        }
    }
    known.into_values().collect()
}

impl Network<'_> {
    /// Returns the paths of outer packets between two routers, in both directions.
    fn outer_ways(&self, [from, to]: [NodeId; 2]) -> [TunnelWay; 2] {
        let fans = match self.fans(from, to) {
            Some(fans) => *fans,
            None => self.there_and_back(&self.path(from, to)),
        };
        let mut ends = [(from, to), (to, from)].into_iter();
        fans.map(|fan| {
            let (from, to) = ends.next().expect("a tunnel has two directions");
            TunnelWay { route: self.first_route(&fan, from, to), fan }
        })
    }

    /// Returns the links of the path that takes the first path segment at every node.
    fn first_route(&self, fan: &Fan, from: NodeId, to: NodeId) -> Vec<Hop> {
        let (mut route, mut node) = (Vec::new(), from);
        while node != to {
            let here =
                fan.at.iter().find(|(at, _)| *at == node).expect("every node on the path has a next segment");
            route.extend(self.hops(here.1[0]));
            node = route[route.len() - 1].to;
        }
        route
    }
}
