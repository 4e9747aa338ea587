//! Routers on a common Ethernet segment, which may have rings and parallel links, with hosts on it and behind routers.

use engpass_model::link::Link;
use engpass_model::router::Router;
use engpass_model::switch::EthernetSwitch;
use engpass_testbed::Run;
use proptest::collection::vec;
use proptest::option::weighted;
use proptest::prelude::*;

use super::mesh::{EcmpDraw, EventDraw, event, events_of, policy, policy_of};
use super::{
    AFFORDABLE, Drawn, Duration, IndexMap, LinkDraw, NodeDraw, Parts, SECOND, Switch, Testbed, assemble,
    frame_link, grouped, link, node, tunnelled, turn, uneven, way,
};
use crate::networks::{tcp, udp};

/// The drawn values of a segment, without those of the traffic.
#[derive(Clone, Debug)]
struct Segment {
    /// Switches in a row; `ring` adds a link from the last to the first.
    switches: Vec<NodeDraw>,
    ring: bool,
    /// Routers, each with its switch and perhaps a second one, or the same again; modulo their number.
    routers: Vec<(NodeDraw, EcmpDraw, usize, Option<usize>)>,
    /// The first two routers have a direct link.
    direct: bool,
    /// Location of hosts: a switch, or behind a router; modulo their number.
    hosts: Vec<(bool, usize)>,
    links: Vec<LinkDraw>,
    /// All links are identical.
    alike: bool,
    /// Rotation of the links in the file.
    turned: usize,
    events: Vec<EventDraw>,
}

impl Segment {
    fn switch(&self, index: usize) -> String {
        format!("s{}", index % self.switches.len())
    }

    fn router(&self, index: usize) -> String {
        format!("r{}", index % self.routers.len())
    }

    fn ends(&self) -> Vec<[String; 2]> {
        let switches = self.switches.len();
        let mut ends: Vec<[String; 2]> =
            (1..switches).map(|i| [self.switch(i - 1), self.switch(i)]).collect();
        // With two switches it is a second link.
        if self.ring && switches > 1 {
            ends.push([self.switch(switches - 1), self.switch(0)]);
        }
        for (i, (_, _, at, second)) in self.routers.iter().enumerate() {
            let at = [Some(*at), *second].into_iter().flatten();
            ends.extend(at.map(|at| [self.router(i), self.switch(at)]));
        }
        if self.direct {
            ends.push([self.router(0), self.router(1)]);
        }
        for (i, (on_segment, at)) in self.hosts.iter().enumerate() {
            let at = if *on_segment { self.switch(*at) } else { self.router(*at) };
            ends.push([format!("h{i}"), at]);
        }
        ends
    }

    fn links(&self) -> IndexMap<String, Link> {
        let link = |(i, ends): (usize, [String; 2])| {
            let own = &self.links[i];
            let draw = if self.alike { &self.links[0] } else { own };
            (format!("l{i}"), frame_link(draw, own, self.links[0].mtu, ends))
        };
        turn(self.ends().into_iter().enumerate().map(link).collect(), self.turned)
    }

    fn testbed(self, parts: Parts) -> Testbed {
        let links = self.links();
        let at_hosts = links.values().filter(|link| link.ends.iter().any(|end| end.starts_with('h')));
        let rates: u64 = at_hosts.map(assemble::mean_rate).sum();
        let (share, warmup) = parts.run;
        let affordable = u128::from(AFFORDABLE) * 8 * u128::from(SECOND) / u128::from(rates);
        let duration = (affordable as u64).min(SECOND) / 1000 * share;
        let switches = self.switches.iter().enumerate().map(|(i, draw)| {
            let config = EthernetSwitch { latency: Duration(draw.time), queue: draw.queue.clone() };
            (self.switch(i), Switch::Ethernet(config))
        });
        let routers = self.routers.iter().enumerate().map(|(i, (draw, ecmp, ..))| {
            let name = self.router(i);
            let own = links.iter().filter(|(_, link)| link.ends.contains(&name)).map(|(name, _)| name);
            let ecmp = policy_of(ecmp, &own.collect::<Vec<_>>());
            let (per_packet, queue) = (Duration(draw.time), draw.queue.clone());
            (name, Router { per_packet, queue, ecmp, ..Router::default() })
        });
        let hosts = parts.hosts.iter().take(self.hosts.len()).enumerate();
        let ends = links.iter().map(|(name, link)| (name.clone(), link.ends.clone())).collect();
        Testbed {
            name: "random".into(),
            description: None,
            hosts: hosts.map(|(i, draw)| (format!("h{i}"), assemble::host(draw))).collect(),
            switches: switches.collect(),
            routers: routers.collect(),
            traffic: parts.traffic(self.hosts.len(), duration),
            events: events_of(&self.events, &ends, duration),
            run: Run {
                duration: Duration(duration),
                warmup: warmup.map(|part| Duration(duration / 1000 * part)),
                ..Run::default()
            },
            links,
            circuits: IndexMap::new(),
            tunnels: IndexMap::new(),
            bonds: IndexMap::new(),
        }
    }
}

/// Returns a random network with a segment, sometimes with tunnels or groups.
pub(super) fn segment() -> impl Strategy<Value = Drawn> {
    // Most inner nodes are fast.
    let node = || {
        (node(), prop::bool::weighted(0.6)).prop_map(|(node, fast)| {
            let time = if fast { node.time % 20_000_000 } else { node.time };
            NodeDraw { time, ..node }
        })
    };
    let router = (node(), policy(), 0usize..3, weighted(0.4, 0usize..3));
    // The first two hosts are usually behind the first two routers.
    let hosts = (vec((any::<bool>(), 0usize..3), 2..=5), prop::bool::weighted(0.6));
    let hosts = hosts.prop_map(|(mut hosts, apart)| {
        if apart {
            (hosts[0], hosts[1]) = ((false, 0), (false, 1));
        }
        hosts
    });
    let nodes = (vec(node(), 1..=3), any::<bool>(), vec(router, 2..=3), prop::bool::weighted(0.2), hosts);
    let links = (vec(link(), 15), prop::bool::weighted(0.4), 0usize..12);
    let events = prop_oneof![1 => Just(Vec::new()), 1 => vec(event(), 1..=4)];
    let sent =
        (vec((udp(), way()), 0..=3), vec((uneven(), way()), 0..=2), vec((tcp::stream(), way()), 0..=3));
    let sent =
        sent.prop_filter("something is sent", |(udp, uneven, tcp)| udp.len() + uneven.len() + tcp.len() > 0);
    let run = ((200u64..=1000, weighted(0.25, 0u64..=900)), 0usize..6);
    let drawn = (nodes, links, events, vec(crate::networks::host(), 5), sent, run).prop_map(
        |(nodes, links, events, drawn, (udp, uneven, tcp), (run, order))| {
            let (switches, ring, routers, direct, hosts) = nodes;
            let (links, alike, turned) = links;
            let segment = Segment { switches, ring, routers, direct, hosts, links, alike, turned, events };
            let parts = Parts {
                ring: false,
                nodes: Vec::new(),
                at: Vec::new(),
                links: Vec::new(),
                order: (0, order, false),
                hosts: drawn,
                udp,
                uneven,
                tcp,
                run,
                mesh: None,
            };
            Drawn(segment.testbed(parts))
        },
    );
    grouped::at_times(tunnelled::at_times(drawn))
}
