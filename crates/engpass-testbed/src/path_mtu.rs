//! Path MTU discovery: the routers that may find packets of a traffic too long, and the paths of their ICMP messages to the sender.

use std::collections::BTreeMap;

use engpass_model::source::Traffic;
use engpass_model::wire::ip::{IP_HEADER_BYTES, TCP_HEADER_BYTES};

use crate::diagnostic::Diagnostic;
use crate::resolve::Resolver;
use crate::route::ShortestPaths;
use crate::topology::{Fan, IcmpWay, NodeId, NodeKind, PathSegment};

/// IP and TCP headers without options, in bytes.
pub(crate) const HEADERS: u64 = IP_HEADER_BYTES + TCP_HEADER_BYTES;

impl IcmpWay {
    /// Returns the path of a router's ICMP messages, given the shortest paths to the node that they go to.
    pub(crate) fn along(router: NodeId, reach: &ShortestPaths) -> Self {
        Self { router, legs: reach.path(), fan: reach.has_choice().then(|| reach.fan()) }
    }
}

impl Resolver<'_> {
    /// Returns true if the sender of a traffic discovers the path MTU.
    pub(crate) fn discovers_mtu(&self, traffic: &Traffic, from: NodeId) -> bool {
        let NodeKind::Host(host) = self.kind(from) else { return false };
        let Some((own, host)) = traffic.tcp().zip(self.draft.hosts[host].as_ref()) else { return false };
        own.over(&host.tcp).discovers_path_mtu()
    }

    /// Returns the paths of ICMP messages about packets of a traffic that `from` sends and that are too long for a later path segment. The packets take
    /// `legs`, or the first of `fans` if given. Returns `None` if a circuit or tunnel has an error. Warns about routers that send no ICMP messages.
    pub(crate) fn icmp_ways(
        &mut self,
        (name, traffic): (&str, &Traffic),
        legs: &[PathSegment],
        fans: Option<&[Fan; 2]>,
        from: NodeId,
    ) -> Option<Box<[IcmpWay]>> {
        let whole = self.mtu(*legs.first()?)?;
        let back = self.mtu(*legs.last()?)?;
        let taken: Vec<PathSegment> = match fans {
            Some([there, _]) => there.legs().collect(),
            None => legs.to_vec(),
        };
        // By router, the smallest MTU of the path segments on which it forwards packets of the traffic.
        let mut narrow: BTreeMap<NodeId, u64> = BTreeMap::new();
        for leg in taken {
            let (node, mtu) = (self.route(&[leg])?.first()?.from, self.mtu(leg)?);
            if mtu < whole && matches!(self.kind(node), NodeKind::Router(_)) {
                let least = narrow.entry(node).or_insert(mtu);
                *least = mtu.min(*least);
            }
        }
        let longest = whole.min(back).min(self.segment_limit(traffic, from));
        let mut ways = Vec::new();
        for (router, mtu) in narrow {
            if self.sends_icmp(router) {
                ways.push(IcmpWay::along(router, &self.reach(router, from)?));
            } else if mtu < longest {
                self.black_hole(name, router, (longest, mtu));
            }
        }
        Some(ways.into())
    }

    /// Returns the length of the longest packets that the sender's `mss` allows, in bytes.
    pub(crate) fn segment_limit(&self, traffic: &Traffic, from: NodeId) -> u64 {
        let NodeKind::Host(host) = self.kind(from) else { return u64::MAX };
        let host = self.draft.hosts[host].as_ref();
        let given = traffic.tcp().zip(host).and_then(|(own, host)| own.over(&host.tcp).mss);
        given.map_or(u64::MAX, |mss| mss.bytes() + HEADERS)
    }

    fn black_hole(&mut self, traffic: &str, router: NodeId, (longest, mtu): (u64, u64)) {
        let router = self.nodes[router].clone();
        let message = format!(
            "router `{router}` drops segments of traffic `{traffic}` that are longer than {mtu} B and sends no ICMP message: packets have up to {longest} B"
        );
        let help = format!(
            "set `icmp = true` for the router, or use segments that fit: `tcp = {{ mss = \"{} B\" }}`",
            mtu - HEADERS
        );
        let found = Diagnostic::warning("black-hole", message).help(help);
        self.checker.report_key(&["router", &router, "icmp"], found);
    }

    /// Returns true if the node is a router that sends ICMP messages.
    fn sends_icmp(&self, node: NodeId) -> bool {
        let NodeKind::Router(router) = self.kind(node) else { return false };
        self.draft.routers[router].as_ref().is_some_and(|router| router.icmp)
    }
}
