//! Compares paths through random networks of hosts, switches, routers and circuits with an exhaustive search.

use engpass_testbed::topology::{Fan, FlowPath, PathSegment, Topology};
use engpass_testbed::{Gateway, NextHop};
use engpass_testbed::{Point, Source, load};
use proptest::prelude::*;

/// Kind of a node, in the order of the topology.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Host,
    Frames,
    Cells,
    Router,
}

#[derive(Clone, Debug)]
struct Network {
    kinds: Vec<Kind>,
    /// Ends of each link, and true if it carries cells.
    links: Vec<([usize; 2], bool)>,
    /// Ends of each circuit.
    circuits: Vec<[usize; 2]>,
    /// Policies of the routers, by node.
    policies: Vec<&'static str>,
    /// Weight that the policies give to each link at their router.
    weights: Vec<u32>,
}

/// A step from one node to another over these links.
#[derive(Clone, Debug, PartialEq)]
struct Step {
    ends: [usize; 2],
    links: Vec<usize>,
    circuit: Option<usize>,
}

/// A node and the steps that packets may take from there.
type At = (usize, Vec<Step>);

/// Returns every path from `from` to `to` that visits no node twice, as steps in its direction.
fn every_way(steps: &[Step], pass: &dyn Fn(usize) -> bool, from: usize, to: usize) -> Vec<Vec<Step>> {
    let mut found = Vec::new();
    let mut begun = vec![(vec![from], Vec::<Step>::new())];
    while let Some((met, way)) = begun.pop() {
        let here = met[met.len() - 1];
        if here == to {
            found.push(way);
            continue;
        }
        if here != from && !pass(here) {
            continue;
        }
        for step in steps {
            for turned in [false, true] {
                let mut step = step.clone();
                if turned {
                    step.ends.reverse();
                    step.links.reverse();
                }
                if step.ends[0] == here && !met.contains(&step.ends[1]) {
                    let met = met.iter().copied().chain([step.ends[1]]).collect();
                    begun.push((met, way.iter().cloned().chain([step]).collect()));
                }
            }
        }
    }
    found
}

/// Returns the best path: the fewest links, then the links that come first in the file, then the first circuits.
fn best(ways: Vec<Vec<Step>>) -> Option<Vec<Step>> {
    ways.into_iter().min_by_key(|way| rank(way))
}

/// Returns the sort key of a path: its number of links, its links, its circuits.
fn rank(way: &[Step]) -> (usize, Vec<usize>, Vec<Option<usize>>) {
    let links: Vec<usize> = way.iter().flat_map(|step| step.links.clone()).collect();
    (links.len(), links, way.iter().map(|step| step.circuit).collect())
}

impl Network {
    fn steps(&self, cells: bool) -> Vec<Step> {
        let links = self.links.iter().enumerate().filter(|(_, (_, atm))| *atm == cells);
        links.map(|(index, (ends, _))| Step { ends: *ends, links: vec![index], circuit: None }).collect()
    }

    fn circuit(&self, [from, to]: [usize; 2]) -> Option<Vec<usize>> {
        let pass = |node| self.kinds[node] == Kind::Cells;
        let way = best(every_way(&self.steps(true), &pass, from, to))?;
        Some(way.iter().flat_map(|step| step.links.clone()).collect())
    }

    /// Returns the steps that packets may take.
    fn packet_steps(&self) -> Vec<Step> {
        let mut steps = self.steps(false);
        for (index, ends) in self.circuits.iter().enumerate() {
            let links = self.circuit(*ends).expect("every circuit of the network has a path");
            steps.push(Step { ends: *ends, links, circuit: Some(index) });
        }
        steps
    }

    fn passes(&self, node: usize) -> bool {
        matches!(self.kinds[node], Kind::Frames | Kind::Router)
    }

    fn chooses(&self, node: usize) -> bool {
        self.kinds[node] == Kind::Router && self.policies[node] != "first"
    }

    /// Returns the steps that packets from one host to another may take at every node that they may reach, from all shortest paths.
    fn fan(&self, from: usize, to: usize) -> Vec<At> {
        let mut ways = every_way(&self.packet_steps(), &|node| self.passes(node), from, to);
        ways.sort_by_key(|way| rank(way));
        let shortest = ways.first().map_or(0, |way| rank(way).0);
        ways.retain(|way| rank(way).0 == shortest);
        let mut next = vec![from];
        let mut fan: Vec<At> = Vec::new();
        while let Some(node) = next.pop() {
            if node == to || fan.iter().any(|(met, _)| *met == node) {
                continue;
            }
            // The rest of a shortest path is a shortest path from there.
            let mut rests: Vec<&[Step]> = Vec::new();
            for way in &ways {
                rests.extend(way.iter().position(|step| step.ends[0] == node).map(|at| &way[at..]));
            }
            rests.sort_by_key(|rest| rank(rest));
            let mut group: Vec<Step> = Vec::new();
            for rest in rests {
                if !group.contains(&rest[0]) {
                    group.push(rest[0].clone());
                }
            }
            if !self.chooses(node) {
                group.truncate(1);
            }
            next.extend(group.iter().map(|step| step.ends[1]));
            fan.push((node, group));
        }
        fan.sort_by_key(|(node, _)| *node);
        fan
    }

    /// Returns the fans of the packets between the first host and the second in both directions, if there is a choice.
    fn fans(&self) -> Option<[Vec<At>; 2]> {
        if self.circuits.iter().any(|ends| ends.iter().sum::<usize>() == 1) {
            return None;
        }
        let fans = [self.fan(0, 1), self.fan(1, 0)];
        let chosen = fans.iter().flatten().any(|(_, group)| group.len() > 1);
        chosen.then_some(fans)
    }

    /// Returns the path of packets from the first host to the second, over the circuit `over` if given.
    fn way(&self, over: Option<usize>) -> Option<Vec<Step>> {
        let steps = self.packet_steps();
        let pass = |node| self.passes(node);
        let ways = every_way(&steps, &pass, 0, 1);
        let direct = steps.iter().find(|step| step.circuit.is_some() && step.ends.iter().sum::<usize>() == 1);
        match (over, direct) {
            (None, Some(direct)) => {
                let turned = |step: &Step| {
                    let (mut ends, mut links) = (step.ends, step.links.clone());
                    ends.reverse();
                    links.reverse();
                    Step { ends, links, ..step.clone() }
                };
                Some(vec![if direct.ends[0] == 0 { direct.clone() } else { turned(direct) }])
            }
            (None, None) => best(ways),
            (Some(circuit), _) => best(
                ways.into_iter().filter(|way| way.iter().any(|step| step.circuit == Some(circuit))).collect(),
            ),
        }
    }

    /// Returns the gateways towards each link of each host: the first routers on the best paths that arrive over this link, one for each path segment
    /// that begins a shortest path and that the sender may take.
    fn gateways(&self) -> Vec<Gateway> {
        let pass = |node| matches!(self.kinds[node], Kind::Frames | Kind::Router);
        let mut found = Vec::new();
        let hosts = (0..self.kinds.len()).filter(|node| self.kinds[*node] == Kind::Host);
        let ends = hosts.flat_map(|host| (0..self.links.len()).map(move |link| (link, host))).filter(
            |(link, host)| {
                let (ends, cells) = self.links[*link];
                ends.contains(host) && !cells
            },
        );
        for to in ends {
            let arrives = |step: &Step| !step.ends.contains(&to.1) || step.links == [to.0];
            let steps: Vec<Step> = self.steps(false).into_iter().filter(arrives).collect();
            for at in (0..self.kinds.len()).filter(|at| *at != to.1) {
                if !matches!(self.kinds[at], Kind::Host | Kind::Router) {
                    continue;
                }
                let mut ways = every_way(&steps, &pass, at, to.1);
                ways.sort_by_key(|way| rank(way));
                let shortest = ways.first().map_or(0, Vec::len);
                ways.retain(|way| way.len() == shortest);
                let mut hops: Vec<NextHop> = Vec::new();
                for way in ways {
                    let over = way[0].links[0];
                    let ends =
                        |step: &&Step| self.kinds[step.ends[1]] == Kind::Router || step.ends[1] == to.1;
                    let last = way.iter().find(ends).expect("the path reaches the target");
                    if hops.iter().all(|hop| hop.over != over) {
                        let weight = if self.chooses(at) { self.weights[over] } else { 1 };
                        hops.push(NextHop { over, via: (last.links[0], last.ends[1]), weight });
                    }
                }
                if !self.chooses(at) {
                    hops.truncate(1);
                }
                if hops.len() > 1 || hops.iter().any(|hop| hop.via.1 != to.1) {
                    found.push(Gateway { at, to, hops });
                }
            }
        }
        found
    }

    /// Returns the policy of a router as written in the file.
    fn policy(&self, node: usize) -> String {
        let links = self.links.iter().enumerate().filter(|(_, (ends, _))| ends.contains(&node));
        let weights = links.map(|(link, _)| format!("l{link} = {}", self.weights[link]));
        match self.policies[node] {
            "first" => "\"first\"".into(),
            kind => {
                format!("{{ {kind} = {{ weights = {{ {} }} }} }}", weights.collect::<Vec<_>>().join(", "))
            }
        }
    }

    fn name(&self, node: usize) -> String {
        let before = self.kinds[..node].iter().filter(|kind| **kind == self.kinds[node]).count();
        let letter = match self.kinds[node] {
            Kind::Host => 'h',
            Kind::Frames => 'f',
            Kind::Cells => 'c',
            Kind::Router => 'r',
        };
        format!("{letter}{before}")
    }

    fn text(&self, over: Option<usize>) -> String {
        let mut text = String::new();
        for (node, kind) in self.kinds.iter().enumerate() {
            let policy = format!("ecmp = {}\n", self.policy(node));
            let (family, keys) = match kind {
                Kind::Host => ("host", ""),
                Kind::Frames => ("switch", "kind = \"ethernet\"\n"),
                Kind::Cells => ("switch", "kind = \"atm\"\n"),
                Kind::Router => ("router", policy.as_str()),
            };
            text += &format!("[{family}.{}]\n{keys}", self.name(node));
        }
        for (index, (ends, atm)) in self.links.iter().enumerate() {
            let medium = if *atm { "oc-3c" } else { "ethernet-1g" };
            let ends = ends.map(|end| self.name(end));
            text += &format!("[link.l{index}]\nends = {ends:?}\nmedium = \"{medium}\"\n");
        }
        for (index, ends) in self.circuits.iter().enumerate() {
            let [from, to] = ends.map(|end| self.name(end));
            text += &format!("[circuit.v{index}]\nfrom = \"{from}\"\nto = \"{to}\"\n");
        }
        text += "[traffic.t]\nkind = \"udp-stream\"\nfrom = \"h0\"\nto = \"h1\"\nmessage = \"1 kB\"\n";
        text + &over.map_or(String::new(), |over| format!("circuit = \"v{over}\"\n"))
    }
}

fn networks() -> impl Strategy<Value = Network> {
    let nodes = (2usize..4, 0usize..3, 0usize..3, 0usize..4);
    let pairs = || prop::collection::vec((0usize..12, 0usize..12, any::<bool>()), 1..12);
    let policies = prop::collection::vec(prop::sample::select(&["first", "hash", "round-robin"][..]), 12);
    let weights = prop::collection::vec(1u32..5, 12);
    (nodes, pairs(), pairs(), policies, weights).prop_map(
        |((hosts, frames, cells, routers), links, circuits, policies, weights)| {
            let mut kinds = vec![Kind::Host; hosts];
            kinds.extend(vec![Kind::Frames; frames]);
            kinds.extend(vec![Kind::Cells; cells]);
            kinds.extend(vec![Kind::Router; routers]);
            let count = kinds.len();
            let mut network = Network { kinds, links: Vec::new(), circuits: Vec::new(), policies, weights };
            for (a, b, atm) in links {
                let ends = [a % count, b % count];
                let has = |kind| ends.iter().any(|end| network.kinds[*end] == kind);
                if ends[0] == ends[1] || (has(Kind::Cells) && has(Kind::Frames)) {
                    continue;
                }
                let atm = (atm || has(Kind::Cells)) && !has(Kind::Frames);
                network.links.push((ends, atm));
            }
            for (a, b, _) in circuits {
                let ends = [a % count, b % count];
                let handles = |end: usize| matches!(network.kinds[end], Kind::Host | Kind::Router);
                // Two circuits between the hosts of one traffic would be an error.
                let hosts = |ends: [usize; 2]| ends.iter().sum::<usize>() == 1;
                let again = hosts(ends) && network.circuits.iter().any(|other| hosts(*other));
                if ends[0] != ends[1]
                    && ends.iter().all(|end| handles(*end))
                    && !again
                    && network.circuit(ends).is_some()
                {
                    network.circuits.push(ends);
                }
            }
            network
        },
    )
}

fn steps_of(topology: &Topology, legs: &[PathSegment]) -> Vec<Step> {
    let step = |leg: &PathSegment| {
        let hops = topology.hops(*leg);
        let circuit = match leg {
            PathSegment::Link(_) | PathSegment::Tunnel { .. } => None,
            PathSegment::Circuit { circuit, .. } => Some(*circuit),
        };
        let ends = [hops[0].from, hops[hops.len() - 1].to];
        Step { ends, links: hops.iter().map(|hop| hop.link).collect(), circuit }
    };
    legs.iter().map(step).collect()
}

/// Converts fans to steps.
fn fans_of(topology: &Topology, path: &FlowPath) -> Option<[Vec<At>; 2]> {
    let fan = |fan: &Fan| {
        let at = fan.at.iter().map(|(node, legs)| (*node, steps_of(topology, legs)));
        at.collect::<Vec<_>>()
    };
    path.fans.as_deref().map(|fans| fans.each_ref().map(fan))
}

proptest! {
    #![proptest_config(engpass_cases::cases(1500))]

    #[test]
    fn path_search_equals_best_of_all_paths(network in networks(), over in any::<prop::sample::Index>()) {
        let named = (!network.circuits.is_empty()).then(|| over.index(network.circuits.len()));
        for over in [None, named] {
            let source = Source { name: "x.toml".into(), text: network.text(over) };
            let loaded = load(&source, &[], None);
            match network.way(over) {
                None => {
                    let found = loaded.expect_err("no path crosses the circuit");
                    let codes: Vec<&str> = found.list().iter().map(|found| found.code).collect();
                    let expected: &[&str] = if over.is_some() { &["wrong-circuit"] } else { &["no-path", "no-circuit"] };
                    prop_assert!(codes.iter().all(|code| expected.contains(code)), "{}", found);
                }
                Some(way) => {
                    let campaign = loaded.unwrap_or_else(|found| panic!("{found}\n{}", source.text));
                    let Point { testbed, topology } = campaign.point("base", &[]).expect("a checked file has a base point");
                    let got = steps_of(&topology, &topology.flows[0].legs);
                    prop_assert_eq!(&got, &way, "{}", source.text);
                    let route: Vec<usize> = topology.flows[0].route.iter().map(|hop| hop.link).collect();
                    prop_assert_eq!(route, got.iter().flat_map(|step| step.links.clone()).collect::<Vec<_>>());
                    let fans = if over.is_some() { None } else { network.fans() };
                    prop_assert_eq!(fans_of(&topology, &topology.flows[0]), fans, "{}", source.text);
                    prop_assert_eq!(topology.gateways(&testbed), network.gateways(), "{}", source.text);
                    prop_assert_eq!(topology.flows[0].circuit, if got.len() == 1 { got[0].circuit } else { None });
                }
            }
        }
    }
}
