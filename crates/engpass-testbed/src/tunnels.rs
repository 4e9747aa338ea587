//! Resolves tunnels: the paths of their outer packets, and the MTU.

use engpass_model::tunnel::{Fragment, Reassembly, Tunnel};
use engpass_model::wire::ip::{IP_HEADER_BYTES, MAX_PACKET_BYTES, MIN_MTU};

use crate::check::find;
use crate::diagnostic::Diagnostic;
use crate::resolve::{Resolver, Way};
use crate::route::RoutingGraph;
use crate::topology::{BondPath, Fan, NodeId, NodeKind, PathSegment, TunnelPath, TunnelWay};
use crate::tree::Value;

impl Resolver<'_> {
    /// Resolves the tunnels of the file; those with errors become `None`. A tunnel that carries another one is resolved before it.
    pub(crate) fn resolve_tunnels(&mut self) {
        let draft = self.draft;
        self.tunnels = vec![None; draft.tunnels.len()];
        let mut open: Vec<usize> = (0..draft.tunnels.len()).collect();
        // Each pass resolves the tunnels whose carrier is resolved, until a pass resolves none.
        while !open.is_empty() {
            let before = open.len();
            open.retain(|&index| {
                let (name, config) = draft.tunnels.get_index(index).expect("the tunnel index is valid");
                let over = config.as_ref().and_then(|config| config.over.as_ref());
                let carrier = over.and_then(|over| draft.tunnels.get_index_of(over));
                if carrier.is_some_and(|carrier| self.tunnels[carrier].is_none()) {
                    return true;
                }
                let usable = config.as_ref().filter(|_| !draft.has_invalid_reference("tunnel", name));
                self.tunnels[index] = usable.and_then(|config| self.tunnel(name, config, carrier));
                self.tunnels[index].is_none()
            });
            if open.len() == before {
                return;
            }
        }
    }

    /// Resolves a tunnel. `carrier` is the tunnel that carries its outer packets, if any. Returns `None` after it has reported an error.
    fn tunnel(&mut self, name: &str, config: &Tunnel, carrier: Option<usize>) -> Option<TunnelPath> {
        let ends = [self.node(&config.ends[0]), self.node(&config.ends[1])];
        let ways = self.outer_ways((name, config.ttl), ends, carrier)?;
        let narrowest = ways.iter().flat_map(|way| way.fan.legs()).map(|leg| Some((self.mtu(leg)?, leg)));
        let (narrow, leg) = narrowest.collect::<Option<Vec<_>>>()?.into_iter().min()?;
        let added = config.header.added_bytes();
        let most = narrow.saturating_sub(added);
        if config.fragment != Fragment::Outer && config.mtu.is_none() && most < MIN_MTU {
            self.no_room(name, (narrow, leg), added);
            return None;
        }
        let mtu = match (config.mtu, config.fragment) {
            (Some(mtu), _) => mtu.bytes(),
            (None, Fragment::Outer) => MAX_PACKET_BYTES - added,
            (None, Fragment::Inner | Fragment::None) => most,
        };
        if config.fragment != Fragment::Outer && mtu > most {
            self.fragments_both(name, (mtu, most), leg);
        }
        if mtu <= most {
            self.fragments_no_outer_packet(name, most);
        } else if config.reassembly.memory.bytes() <= narrow + IP_HEADER_BYTES {
            self.has_no_room_for_fragments(name, narrow);
        }
        let carried = carrier.and_then(|carrier| self.tunnels[carrier].as_ref());
        let is_up = config.up && carried.is_none_or(|carrier| carrier.is_up);
        let depth = 1 + carried.map_or(0, |carrier| carrier.depth);
        Some(TunnelPath { name: name.into(), config: config.clone(), ends, is_up, depth, mtu, added, ways })
    }

    /// Returns the paths of outer packets from the first end to the second, and back: over links, circuits, and the tunnel that carries them.
    fn outer_ways(
        &mut self,
        (name, ttl): (&str, u8),
        [from, to]: [NodeId; 2],
        carrier: Option<usize>,
    ) -> Option<[TunnelWay; 2]> {
        let passages = (0..self.nodes.len()).map(|node| self.passage(node)).collect();
        let below = carrier.map(|carrier| self.tunnels[carrier].as_ref().map(|path| (carrier, path)));
        let below: Option<Vec<_>> = below.into_iter().collect();
        let bonds: Vec<BondPath> = self.bonds.iter().flatten().cloned().collect();
        let ways = RoutingGraph::new(passages, self.links, &self.circuits, below?).with_bonds(&bonds);
        let Some(there) = ways.reach(from, to) else {
            if self.whole && !self.unknown_circuits() {
                self.report_no_route(&["tunnel", name], from, to);
            }
            return None;
        };
        let back = ways.reach_back(&there);
        let is_router = |node: NodeId| matches!(self.kind(node), NodeKind::Router(_));
        let longest = there.longest(is_router);
        let way = Way { legs: there.path(), reach: Some((there, back)) };
        let fans = self.all_fans(&way)?;
        let carries = |leg: PathSegment| matches!(leg, PathSegment::Tunnel { .. });
        if let Some(carrier) = carrier
            && !fans.iter().all(|fan| fan.legs().any(carries))
        {
            self.carries_nothing(name, carrier, [from, to]);
            return None;
        }
        self.check_outer_ttl(name, ttl, &longest)?;
        let [there, back] = fans;
        let first = |fan: &Fan, from: NodeId, to: NodeId| {
            let mut route = Vec::new();
            let mut node = from;
            while node != to {
                let hops = self.route(&[fan.legs_at(node)[0]])?;
                node = hops.last()?.to;
                route.extend(hops);
            }
            Some(route)
        };
        let routes = [first(&there, from, to)?, first(&back, to, from)?];
        let [one, other] = routes;
        Some([TunnelWay { route: one, fan: there }, TunnelWay { route: other, fan: back }])
    }

    /// Warns if the TTL of outer packets is too small: every router between the ends of a tunnel decrements it. Returns `None` only if a path segment
    /// has an error.
    fn check_outer_ttl(&mut self, name: &str, ttl: u8, legs: &[PathSegment]) -> Option<()> {
        let mut between = Vec::new();
        for leg in &legs[..legs.len() - 1] {
            let node = self.route(&[*leg])?.last()?.to;
            between.extend(matches!(self.kind(node), NodeKind::Router(_)).then_some(node));
        }
        let Some(last) = usize::from(ttl).checked_sub(1).and_then(|last| between.get(last)) else {
            return Some(());
        };
        let (count, last) = (between.len(), &self.nodes[*last]);
        let message = format!(
            "outer packets of tunnel `{name}` have a TTL of {ttl} and are dropped at router `{last}`"
        );
        let routers = if count == 1 { "is 1 router".into() } else { format!("are {count} routers") };
        let help = format!("there {routers} between its ends: give at least `ttl = {}`", count + 1);
        let found = Diagnostic::warning("ttl-exceeded", message).help(help);
        self.checker.report(&["tunnel", name, "ttl"], found);
        Some(())
    }

    /// Returns the path segments in both directions, whether policies choose or not.
    pub(crate) fn all_fans(&self, way: &Way) -> Option<[Fan; 2]> {
        if let Some(fans) = way.fans() {
            return Some(*fans);
        }
        let along = |legs: Vec<PathSegment>| -> Option<Fan> {
            let begins = |leg: PathSegment| Some((self.route(&[leg])?.first()?.from, leg));
            Some(Fan::along(legs.into_iter().map(begins).collect::<Option<Vec<_>>>()?.into_iter()))
        };
        let back = way.legs.iter().rev().map(|leg| leg.back()).collect();
        Some([along(way.legs.clone())?, along(back)?])
    }

    /// Returns true if policies choose among the paths of the outer packets of any of these tunnels, or of the tunnels that carry them.
    pub(crate) fn chooses_in_tunnels(&self, legs: &[PathSegment]) -> bool {
        legs.iter().any(|leg| {
            let PathSegment::Tunnel { tunnel, .. } = *leg else { return false };
            let ways = self.tunnels[tunnel].iter().flat_map(|path| &path.ways);
            ways.into_iter().any(|way| {
                way.fan.has_choice() || self.chooses_in_tunnels(&way.fan.legs().collect::<Vec<_>>())
            })
        })
    }

    fn no_room(&mut self, name: &str, (narrow, leg): (u64, PathSegment), added: u64) {
        let on = self.leg_name(leg);
        let message = format!(
            "tunnel `{name}` adds {added} B of headers, but {on} has an MTU of {narrow} B: less than the {MIN_MTU} B that IPv4 needs are left"
        );
        let help = format!(
            "give {on} an `mtu` of at least {} B, or let the tunnel fragment outer packets, `fragment = \"outer\"`",
            added + MIN_MTU
        );
        self.checker.report(&["tunnel", name], Diagnostic::error("tunnel-mtu", message).help(help));
    }

    fn fragments_both(&mut self, name: &str, (mtu, most): (u64, u64), leg: PathSegment) {
        let on = self.leg_name(leg);
        let message = format!(
            "tunnel `{name}` accepts packets of {mtu} B, which exceed the MTU of {on} with the outer headers: outer packets are fragmented"
        );
        let help = if most >= MIN_MTU {
            format!("give at most {most} B, or remove `mtu`, or set `fragment = \"outer\"`")
        } else {
            "set `fragment = \"outer\"`".into()
        };
        self.checker.report(&["tunnel", name, "mtu"], Diagnostic::warning("tunnel-mtu", message).help(help));
    }

    /// Warns about settings for the fragments of outer packets if no outer packet can be too long for the path.
    fn fragments_no_outer_packet(&mut self, name: &str, most: u64) {
        for key in ["fragment", "reassembly"] {
            let given = find(self.checker.tree, &["tunnel", name, key]).map(|found| &found.value);
            let is_said = match given {
                Some(Value::Text(text)) => text == "outer",
                given => given.is_some(),
            };
            if !is_said {
                continue;
            }
            let message =
                format!("`{key}` has no effect: no outer packet of tunnel `{name}` is too long for its path");
            let help = if key == "fragment" {
                format!("remove it, or remove `mtu`, so that packets longer than {most} B enter")
            } else {
                format!(
                    "remove it, or allow packets longer than {most} B: `fragment = \"outer\"` without `mtu`"
                )
            };
            let found = Diagnostic::warning("no-effect", message).help(help).only_if_at_every_point("");
            self.checker.report_key(&["tunnel", name, key], found);
        }
    }

    fn has_no_room_for_fragments(&mut self, name: &str, narrow: u64) {
        let message = format!(
            "no fragmented packet of tunnel `{name}` can be reassembled: the fragments of one packet are longer than {narrow} B in total"
        );
        let usual = Reassembly::default().memory;
        let help = format!("give memory for several packets, or remove it: the default is {usual}");
        let found = Diagnostic::warning("reassembly-memory", message).help(help);
        self.checker.report(&["tunnel", name, "reassembly", "memory"], found);
    }

    fn carries_nothing(&mut self, name: &str, carrier: usize, [from, to]: [NodeId; 2]) {
        let over = self.draft.tunnels.get_index(carrier).map_or("", |(name, _)| name);
        let (a, b) = (&self.nodes[from], &self.nodes[to]);
        let message = format!("the path of tunnel `{name}` from `{a}` to `{b}` does not use tunnel `{over}`");
        let help = format!("choose two routers on that path as the ends of `{over}`, or remove `over`");
        self.checker.report(&["tunnel", name, "over"], Diagnostic::error("wrong-tunnel", message).help(help));
    }
}
