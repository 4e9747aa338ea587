//! Warnings about parts without effect (unused links, policies without a choice, events that change nothing), and about queues that drop full packets.

use std::collections::{BTreeMap, BTreeSet};

use engpass_model::forward::Ecmp;
use engpass_model::queue::Queue;
use engpass_model::shape::PolicingAction;
use engpass_model::source::Traffic;
use engpass_model::switch::Switch;
use engpass_model::unit::Size;

use crate::arp::ArpInterface;
use crate::diagnostic::Diagnostic;
use crate::links::switch;
use crate::resolve::Resolver;
use crate::route::{Passage, ShortestPaths};
use crate::topology::{CircuitPath, EventPath, Fan, NodeId, NodeKind, PathSegment};

/// The use of links, nodes and segments by all traffic, collected while its paths are found.
#[derive(Default)]
pub(crate) struct PathUsage {
    /// Path segments that packets take, in their direction.
    taken: BTreeSet<PathSegment>,
    /// By node and unused path segment of a shortest path: the segment that packets take instead.
    spare: BTreeMap<(NodeId, PathSegment), PathSegment>,
    /// Nodes at which packets have a choice of segments, with the segments.
    choices: BTreeSet<(NodeId, Vec<PathSegment>)>,
}

impl PathUsage {
    /// Records the unused segments of the shortest paths in one direction.
    pub(crate) fn note_spare(&mut self, reach: &ShortestPaths) {
        self.spare.extend(reach.spare().map(|(node, first, spare)| ((node, spare), first)));
    }

    /// Records the path of a traffic, and the reverse path if the traffic is answered.
    pub(crate) fn note(&mut self, legs: &[PathSegment], fans: Option<&[Fan; 2]>, answered: bool) {
        let directions = if answered { 2 } else { 1 };
        let Some(fans) = fans else {
            return self
                .taken
                .extend(legs.iter().flat_map(|leg| [*leg, leg.back()].into_iter().take(directions)));
        };
        for (node, legs) in fans.iter().take(directions).flat_map(|fan| &fan.at) {
            self.taken.extend(legs);
            if legs.len() > 1 {
                self.choices.insert((*node, legs.clone()));
            }
        }
    }

    fn has_choice_at(&self, node: NodeId) -> bool {
        self.choices.iter().any(|(at, _)| *at == node)
    }
}

impl Resolver<'_> {
    /// Warns about parts of the file without effect. The paths of all traffic must be recorded before.
    pub(crate) fn warn_of_unused(&mut self, events: &[EventPath], arp: &[ArpInterface]) {
        // Without traffic the hosts run the user's programs, which may use any path.
        if self.draft.traffic.is_empty() {
            return;
        }
        let mut shown = std::mem::take(&mut self.shown);
        self.enter_tunnels(&mut shown);
        for ((node, leg), first) in &shown.spare {
            if let NodeKind::Router(_) = self.kind(*node)
                && !shown.taken.contains(leg)
            {
                self.unused_segment(*node, *leg, *first);
            }
        }
        for index in 0..self.draft.routers.len() {
            let node = self.draft.hosts.len() + self.draft.switches.len() + index;
            let given = self.checker.has(&["router", &self.nodes[node], "ecmp"]);
            if given && self.passage(node) == Passage::Choice && !shown.has_choice_at(node) {
                self.policy_without_choice(node);
            }
        }
        self.choices_of_engines(&shown);
        self.bonds_without_traffic(&shown);
        self.queues_below_the_mtu(&shown);
        self.cell_priorities_without_effect();
        self.events_without_effect(events, &shown, arp);
    }

    /// Warns about queues of used lines that drop a packet as long as the MTU even if they are empty: token buckets that are too small to hold its tokens, and
    /// limits in bytes.
    fn queues_below_the_mtu(&mut self, shown: &PathUsage) {
        let mut found = Vec::new();
        for leg in &shown.taken {
            let PathSegment::Link(hop) = leg else { continue };
            let link = &self.links[hop.link];
            // Only path segments over links are listed, and they carry frames.
            let frame = Size(link.frame_bytes(link.mtu));
            let Some(queue) = &link.queues[link.end_of(hop.from)] else { continue };
            if let Queue::TokenBucket(bucket) = queue
                && bucket.burst < frame
            {
                found.push((*hop, "short-burst", "token bucket", ("burst", bucket.burst), frame));
            }
            let limit = Size(queue.limit().bytes);
            if limit < frame {
                found.push((*hop, "short-limit", "queue", ("limit", limit), frame));
            }
        }
        for (hop, code, what, (key, most), frame) in found {
            let (link, node) = (&self.links[hop.link], self.nodes[hop.from].clone());
            let (name, mtu) = (link.name.clone(), link.mtu);
            let family = match self.kind(hop.from) {
                NodeKind::Router(_) => "router",
                _ => "switch",
            };
            let own = ["link", &name, "queue"];
            let path = if self.checker.has(&own) { own } else { [family, &node, "queue"] };
            let message = format!(
                "the {what} of `{node}` on link `{name}` drops all frames longer than its `{key}` of {most}, but a packet of {mtu} B, the MTU, needs {frame}"
            );
            let help = format!("set `{key}` to at least `{frame}`, or reduce the `mtu` of the link");
            let warning = Diagnostic::warning(code, message).help(help).only_if_at_every_point(&name);
            self.checker.report(&path, warning);
        }
    }

    /// Warns about thresholds for cells of low priority (CLP = 1) that no such cell meets, and about policers that tag cells with it although no switch behind
    /// them has a threshold.
    fn cell_priorities_without_effect(&mut self) {
        let tags = |circuit: &CircuitPath| matches!(circuit.policing, Some((_, _, PolicingAction::Tag)));
        let nodes = |circuit: &CircuitPath| -> Vec<NodeId> {
            // Cells wait at the nodes that they leave, in both directions.
            circuit.route.iter().skip(1).map(|hop| hop.from).collect()
        };
        let has_threshold = |node: &NodeId| matches!(switch(self.draft, *node), Some(Switch::Atm(switch)) if switch.clp_threshold.is_some());
        let circuits: Vec<&CircuitPath> = self.circuits.iter().flatten().collect();
        let met: BTreeSet<NodeId> = circuits
            .iter()
            .filter(|circuit| circuit.clp || tags(circuit))
            .flat_map(|circuit| nodes(circuit))
            .collect();
        let first = self.draft.hosts.len();
        let unmet: Vec<String> = (first..first + self.draft.switches.len())
            .filter(|node| has_threshold(node) && !met.contains(node))
            .map(|node| self.nodes[node].clone())
            .collect();
        let tagging: Vec<String> = circuits
            .iter()
            .filter(|circuit| tags(circuit) && !nodes(circuit).iter().any(has_threshold))
            .map(|circuit| circuit.name.clone())
            .collect();
        for name in unmet {
            let message =
                format!("`clp_threshold` has no effect: no cells with CLP = 1 come to switch `{name}`");
            let help = "set `clp = 1` for a circuit that crosses the switch, let its policer `tag` cells, or remove it";
            let found = Diagnostic::warning("no-effect", message).help(help).only_if_at_every_point("");
            self.checker.report_key(&["switch", &name, "clp_threshold"], found);
        }
        for name in tagging {
            let message = format!(
                "`tag` has no effect: no switch that circuit `{name}` crosses has a `clp_threshold`, so tagged cells are like others"
            );
            let help =
                "give a switch on the path of the circuit a `clp_threshold`, or set `action = \"discard\"`";
            let found = Diagnostic::warning("no-effect", message).help(help).only_if_at_every_point("");
            self.checker.report(&["circuit", &name, "policing", "action"], found);
        }
    }

    /// Reports policies of routers with several kinds of work that choose among path segments of which each takes other work.
    fn choices_of_engines(&mut self, shown: &PathUsage) {
        let mut found = Vec::new();
        for (node, legs) in &shown.choices {
            let NodeKind::Router(router) = self.kind(*node) else { continue };
            let Some(router) =
                self.draft.routers[router].as_ref().filter(|router| router.has_kinds_of_work())
            else {
                continue;
            };
            if matches!(router.ecmp, Ecmp::First(_)) {
                continue;
            }
            let work = |leg: &PathSegment| {
                let first = self.route(&[*leg])?.first()?.link;
                let card = router.cards.values().find(|card| card.links.contains(&self.links[first].name));
                let is_tunnel = matches!(leg, PathSegment::Tunnel { .. });
                Some((card.map(|card| card.distributed.clone()), is_tunnel, self.mtu(*leg)))
            };
            if let Some(other) = legs.iter().find(|leg| work(leg) != work(&legs[0])) {
                found.push((self.nodes[*node].clone(), self.leg_name(legs[0]), self.leg_name(*other)));
            }
        }
        for (router, one, other) in found {
            let message = format!(
                "the policy of router `{router}` chooses between {one} and {other}, which need different work of its engines"
            );
            let help =
                "give both the same MTU and cards with the same `distributed`, or set `ecmp = \"first\"`";
            self.checker
                .report_key(&["router", &router], Diagnostic::error("not-allowed", message).help(help));
        }
    }

    fn bonds_without_traffic(&mut self, shown: &PathUsage) {
        let used = |link: usize| {
            shown.taken.iter().any(|leg| matches!(leg, PathSegment::Link(hop) if hop.link == link))
        };
        let idle = self.bonds.iter().flatten().filter(|bond| !bond.links.iter().any(|link| used(*link)));
        let found: Vec<(String, Option<PathSegment>)> = idle
            .map(|bond| {
                let is_own = |(node, leg): &(NodeId, PathSegment)| {
                    *node == bond.node
                        && matches!(leg, PathSegment::Link(hop) if bond.links.contains(&hop.link))
                };
                let first = shown.spare.iter().find(|(spare, _)| is_own(spare)).map(|(_, first)| *first);
                (bond.name.clone(), first)
            })
            .collect();
        for (name, first) in found {
            let first = first.map(|leg| self.leg_name(leg));
            let (reason, help) = match &first {
                Some(first) => (
                    format!("{first} is equally short and comes first"),
                    format!("make {first} a member, or declare the links of the bond before it"),
                ),
                None => (
                    "no shortest path of any traffic uses its links".into(),
                    "send traffic over its links, or remove it".into(),
                ),
            };
            let message = format!("bond `{name}` carries nothing: {reason}");
            let found = Diagnostic::warning("no-effect", message).help(help).only_if_at_every_point("");
            self.checker.report_key(&["bond", &name], found);
        }
    }

    /// Records the segments that packets take inside the tunnels that they enter. Warns about tunnels that no packet enters.
    fn enter_tunnels(&mut self, shown: &mut PathUsage) {
        let mut entered: Vec<PathSegment> = shown.taken.iter().copied().collect();
        while let Some(leg) = entered.pop() {
            let PathSegment::Tunnel { tunnel, forward } = leg else { continue };
            let Some(path) = &self.tunnels[tunnel] else { continue };
            let fan = &path.way(forward).fan;
            for (node, legs) in &fan.at {
                entered.extend(legs.iter().filter(|leg| shown.taken.insert(**leg)));
                if legs.len() > 1 {
                    shown.choices.insert((*node, legs.clone()));
                }
            }
        }
        for index in 0..self.tunnels.len() {
            let ways = [true, false].map(|forward| PathSegment::Tunnel { tunnel: index, forward });
            if let Some(path) = self.tunnels[index].as_ref().filter(|path| path.is_up)
                && !ways.iter().any(|leg| shown.taken.contains(leg))
            {
                let (name, [a, b]) = (path.name.clone(), path.ends.map(|end| &self.nodes[end]));
                let message = format!(
                    "tunnel `{name}` carries nothing: no shortest path of any traffic leads from `{a}` to `{b}` or back"
                );
                let help = "choose routers that traffic crosses as its ends, or remove it";
                let found = Diagnostic::warning("no-effect", message).help(help).only_if_at_every_point("");
                self.checker.report_key(&["tunnel", &name], found);
            }
        }
    }

    fn unused_segment(&mut self, node: NodeId, leg: PathSegment, first: PathSegment) {
        let (router, spare, first) = (&self.nodes[node], self.leg_name(leg), self.leg_name(first));
        let message = format!(
            "{spare} is unused: router `{router}` sends nothing on it, because its `ecmp` is `first` and {first} is equally short and comes first"
        );
        let help = "remove `ecmp`: then a hash distributes the flows over the paths";
        let subject = spare.clone();
        let found = Diagnostic::warning("spare-link", message).help(help).only_if_at_every_point(&subject);
        self.checker.report(&["router", router, "ecmp"], found);
    }

    pub(crate) fn leg_name(&self, leg: PathSegment) -> String {
        match leg {
            PathSegment::Link(hop) => format!("link `{}`", self.links[hop.link].name),
            PathSegment::Circuit { circuit, .. } => {
                let name = self.draft.circuits.get_index(circuit).map_or("", |(name, _)| name);
                format!("circuit `{name}`")
            }
            PathSegment::Tunnel { tunnel, .. } => {
                let name = self.draft.tunnels.get_index(tunnel).map_or("", |(name, _)| name);
                format!("tunnel `{name}`")
            }
        }
    }

    fn policy_without_choice(&mut self, node: NodeId) {
        let router = &self.nodes[node];
        let message =
            format!("`ecmp` has no effect: no traffic has several equally short paths at router `{router}`");
        let help = "remove it, or add a second path of the same length";
        let found = Diagnostic::warning("no-effect", message).help(help).only_if_at_every_point("");
        self.checker.report_key(&["router", router, "ecmp"], found);
    }

    fn events_without_effect(&mut self, events: &[EventPath], shown: &PathUsage, arp: &[ArpInterface]) {
        let link = |leg: &PathSegment| match leg {
            PathSegment::Link(hop) => Some(hop.link),
            PathSegment::Circuit { .. } | PathSegment::Tunnel { .. } => None,
        };
        let mut crossed: BTreeSet<usize> = shown.taken.iter().filter_map(link).collect();
        // ARP requests and replies may take other links than data.
        crossed.extend(arp.iter().flat_map(|interface| &interface.tree).map(|hop| hop.link));
        let pairs = || self.draft.events.values().flatten().filter(|event| !event.is_of_member()).zip(events);
        let downs: BTreeSet<usize> =
            pairs().filter(|(config, _)| config.takes_down()).map(|(_, event)| event.link).collect();
        for EventPath { name, link, .. } in events {
            let link_name = &self.links[*link].name;
            if !crossed.contains(link) {
                let message = format!("event `{name}` has no effect: no traffic crosses link `{link_name}`");
                let help = match crossed.first() {
                    Some(crossed) => {
                        format!("name a link that traffic crosses, such as `{}`", self.links[*crossed].name)
                    }
                    None => "send traffic over it: all traffic uses ATM links".into(),
                };
                let found = Diagnostic::warning("no-effect", message).help(help).only_if_at_every_point("");
                self.checker.report(&["event", name, "target"], found);
            } else if !downs.contains(link) {
                let message = format!("event `{name}` has no effect: no event takes link `{link_name}` down");
                let help = format!(
                    "add an event with `target = \"{link_name}\"` and `change = \"down\"`, or remove this one"
                );
                let found = Diagnostic::warning("no-effect", message).help(help).only_if_at_every_point("up");
                self.checker.report(&["event", name, "change"], found);
            }
        }
    }
}

/// Returns true if packets of a traffic return to its sender.
pub(crate) fn is_answered(traffic: &Traffic) -> bool {
    traffic.tcp().is_some() || matches!(traffic, Traffic::RequestResponse(_))
}
