//! From names to indices: links, circuits with their routes, the way of every flow.

use engpass_model::circuit::{Category, Circuit};
use engpass_model::source::{CellDemand, Traffic};
use engpass_model::wire::Encapsulation;

use crate::check::Checker;
use crate::diagnostic::Diagnostic;
use crate::faulty::Faulty;
use crate::graph::{Graph, reversed};
use crate::rates::{self, Wanted};
use crate::read::Draft;
use crate::topology::{CircuitPath, FlowPath, Hop, LinkEnds, NodeId, Topology};
use crate::tree::Node;

/// The MTU of an Ethernet or point-to-point link that names none, in bytes.
const DEFAULT_MTU: u64 = 1500;

/// Resolve what of the draft is in order, and report what cannot be: the topology, if all of it could.
///
/// `faulty` is what was reported before: what depends on it is let alone.
pub(crate) fn resolve(
    draft: &Draft,
    tree: &Node,
    found: &mut Vec<Diagnostic>,
    faulty: &Faulty,
) -> Option<Topology> {
    let nodes: Vec<String> = draft.hosts.keys().chain(draft.switches.keys()).cloned().collect();
    let mut links = Vec::new();
    for (name, link) in &draft.links {
        let Some(link) = link else { continue };
        let unknown = ["medium", "rate"].iter().any(|key| faulty.has(&["link", name, key]));
        if unknown || draft.is_astray("link", name) {
            continue;
        }
        let end = |name: &String| node_id(draft, name);
        let (Some(a), Some(b)) = (end(&link.ends[0]), end(&link.ends[1])) else { continue };
        let Some(line_rate) = link.medium.line_rate().or(link.rate.map(|rate| rate.0)) else { continue };
        links.push(LinkEnds {
            name: name.clone(),
            ends: [a, b],
            medium: link.medium,
            line_rate,
            framing: link.medium.framing(line_rate),
            delay: link.delay.time(),
            mtu: link.mtu.map_or(DEFAULT_MTU, |mtu| mtu.bytes()),
            overhead: link.overhead.map_or(0, |overhead| overhead.bytes()),
        });
    }
    let whole = links.len() == draft.links.len() && !draft.elsewhere.contains_key("link");
    let mut resolver = Resolver {
        draft,
        faulty,
        hosts: draft.hosts.len(),
        graph: Graph::new(nodes.len(), &links),
        nodes: &nodes,
        links: &links,
        whole,
        checker: Checker::new(tree, found),
        circuits: Vec::new(),
    };
    let declared: Vec<Option<CircuitPath>> =
        draft.circuits.iter().map(|(name, circuit)| resolver.circuit(name, circuit.as_ref()?)).collect();
    let complete = declared.iter().all(Option::is_some);
    // A circuit that is not in order keeps its index, so that the others keep theirs.
    resolver.circuits = declared;
    let flows: Vec<Option<FlowPath>> =
        draft.traffic.iter().map(|(name, traffic)| resolver.flow(name, traffic.as_ref()?)).collect();
    let circuits = std::mem::take(&mut resolver.circuits);
    let errors = resolver.checker.errors;
    if !whole || !complete || errors > 0 {
        return None;
    }
    Some(Topology {
        hosts: draft.hosts.len(),
        nodes,
        links,
        circuits: circuits.into_iter().collect::<Option<_>>()?,
        flows: flows.into_iter().collect::<Option<_>>()?,
    })
}

/// Hosts first, then switches.
fn node_id(draft: &Draft, name: &str) -> Option<NodeId> {
    let switch = || Some(draft.hosts.len() + draft.switches.get_index_of(name)?);
    draft.hosts.get_index_of(name).or_else(switch)
}

struct Resolver<'a> {
    draft: &'a Draft,
    faulty: &'a Faulty,
    hosts: usize,
    nodes: &'a [String],
    links: &'a [LinkEnds],
    graph: Graph<'a>,
    /// Whether all links of the file are there: else a missing path proves nothing.
    whole: bool,
    checker: Checker<'a>,
    circuits: Vec<Option<CircuitPath>>,
}

impl Resolver<'_> {
    fn node(&self, name: &str) -> NodeId {
        node_id(self.draft, name).expect("references were checked before")
    }

    /// Over ATM links and through switches.
    fn atm_path(&self, from: NodeId, to: NodeId) -> Option<Vec<Hop>> {
        self.graph.path(from, to, |link| link.medium.is_atm(), |node| node >= self.hosts)
    }

    /// Over links that carry frames. No node forwards frames yet, so that is one link.
    fn frame_path(&self, from: NodeId, to: NodeId) -> Option<Vec<Hop>> {
        self.graph.path(from, to, |link| !link.medium.is_atm(), |_| false)
    }

    fn circuit(&mut self, name: &str, circuit: &Circuit) -> Option<CircuitPath> {
        let base = ["circuit", name];
        let mut route = None;
        if !self.draft.is_astray("circuit", name) {
            let (from, to) = (self.node(&circuit.from), self.node(&circuit.to));
            route = self.atm_path(from, to);
            if route.is_none() {
                self.no_atm_path(&base, &format!("circuit `{name}`"), from, to);
            }
        }
        let first = route.as_ref().map(|route| &self.links[route[0].link]);
        let uncounted = self.faulty.has(&[base[0], base[1], "counts"]);
        let shaping = circuit.shaping.filter(|_| !uncounted).map_or(Some(None), |rate| {
            let wanted = Wanted { rate, counts: circuit.counts, zero: false, bounded: true };
            rates::pace(&mut self.checker, wanted, &[base[0], base[1], "shaping"], first)
        });
        let policing = match &circuit.policing {
            None => Some(None),
            Some(_) if uncounted || self.faulty.has(&[base[0], base[1], "policing", "counts"]) => Some(None),
            Some(policing) => {
                let wanted = Wanted {
                    rate: policing.rate,
                    counts: policing.counts.or(circuit.counts),
                    zero: false,
                    bounded: false,
                };
                let path = [base[0], base[1], "policing", "rate"];
                rates::pace(&mut self.checker, wanted, &path, first)
                    .map(|pace| pace.map(|pace| (pace, policing.tolerance.time())))
            }
        };
        let route = route?;
        if circuit.policing.is_some() && route.len() == 1 {
            let message = format!("circuit `{name}` enters no switch that could police it");
            let help = "take `policing` out, or put a switch between the hosts";
            self.checker.report_key(
                &["circuit", name, "policing"],
                Diagnostic::warning("no-effect", message).help(help),
            );
        }
        Some(CircuitPath {
            name: name.to_string(),
            route,
            category: circuit.category,
            encapsulation: circuit.encapsulation,
            mtu: circuit.mtu.map_or(circuit.encapsulation.default_mtu(), |mtu| mtu.bytes()),
            shaping: shaping?,
            policing: policing?,
        })
    }

    fn flow(&mut self, name: &str, traffic: &Traffic) -> Option<FlowPath> {
        let uncounted = ["rate", "counts"].iter().any(|key| self.faulty.has(&["traffic", name, key]));
        let demand = traffic.cells().filter(|_| !uncounted);
        let wanted = demand.map(|CellDemand { rate, counts, can_be_off: zero, .. }| Wanted {
            rate,
            counts,
            zero,
            bounded: true,
        });
        if self.draft.is_astray("traffic", name) || self.faulty.has(&["traffic", name, "circuit"]) {
            // Its way is not known, but perhaps that its rate is wrong on any.
            if let Some(wanted) = wanted {
                rates::pace(&mut self.checker, wanted, &["traffic", name, "rate"], None);
            }
            return None;
        }
        let (from, to) = traffic.ends();
        let (from, to) = (self.node(from), self.node(to));
        let circuit = match traffic.circuit() {
            Some(circuit) => Some(self.draft.circuits.get_index_of(circuit)?),
            None => match traffic.cells() {
                Some(demand) => Some(self.implicit_circuit(name, demand.category, from, to)?),
                None => self.only_circuit(name, from, to)?,
            },
        };
        let Some(index) = circuit else {
            let route = self.frame_path(from, to)?;
            return Some(FlowPath {
                name: name.into(),
                from,
                to,
                circuit: None,
                forward: true,
                route,
                cells: None,
            });
        };
        let taken = self.circuits[index].as_ref();
        let forward = taken.is_none_or(|circuit| circuit.route[0].from == from);
        let route =
            taken.map(|circuit| if forward { circuit.route.clone() } else { reversed(&circuit.route) });
        let cells = match wanted {
            None => None,
            Some(wanted) => {
                let first = route.as_ref().map(|route| &self.links[route[0].link]);
                rates::pace(&mut self.checker, wanted, &["traffic", name, "rate"], first)?
            }
        };
        Some(FlowPath { name: name.into(), from, to, circuit, forward, route: route?, cells })
    }

    /// The circuit that a generator without one brings along; `None` after a complaint.
    fn implicit_circuit(
        &mut self,
        name: &str,
        category: Category,
        from: NodeId,
        to: NodeId,
    ) -> Option<usize> {
        let Some(route) = self.atm_path(from, to) else {
            self.no_atm_path(&["traffic", name], &format!("traffic `{name}`"), from, to);
            return None;
        };
        let encapsulation = Encapsulation::default();
        self.circuits.push(Some(CircuitPath {
            name: name.to_string(),
            route,
            category,
            encapsulation,
            mtu: encapsulation.default_mtu(),
            shaping: None,
            policing: None,
        }));
        Some(self.circuits.len() - 1)
    }

    /// The one circuit between two hosts, or `Some(None)` where frames go without one; `None` after a complaint.
    fn only_circuit(&mut self, name: &str, from: NodeId, to: NodeId) -> Option<Option<usize>> {
        let (a, b) = (self.nodes[from].as_str(), self.nodes[to].as_str());
        let draft = self.draft;
        let unknown = draft.elsewhere.contains_key("circuit")
            || draft.circuits.iter().any(|(name, read)| read.is_none() || draft.is_astray("circuit", name));
        let between = |circuit: &Circuit| {
            let ends = (circuit.from.as_str(), circuit.to.as_str());
            ends == (a, b) || ends == (b, a)
        };
        let joining: Vec<&str> = (draft.circuits.iter())
            .filter(|(name, _)| !draft.is_astray("circuit", name))
            .filter(|(_, circuit)| circuit.as_ref().is_some_and(between))
            .map(|(name, _)| name.as_str())
            .collect();
        let path = ["traffic", name];
        match joining[..] {
            [only] => Some(draft.circuits.get_index_of(only)),
            [first, ..] => {
                let names = joining.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
                let message = format!("several circuits join `{a}` and `{b}`: {names}");
                let help = format!("say which one traffic `{name}` takes: `circuit = \"{first}\"`");
                self.checker.report(&path, Diagnostic::error("ambiguous-circuit", message).help(help));
                None
            }
            [] if self.frame_path(from, to).is_some() => Some(None),
            // The circuit that is missing may be one that was reported.
            [] if unknown => None,
            [] if self.atm_path(from, to).is_some() => {
                let message =
                    format!("no circuit joins `{a}` and `{b}`, and ATM carries datagrams only on circuits");
                let table = crate::path::join(&["circuit", name]);
                let help = format!("add a circuit:\n\n[{table}]\nfrom = \"{a}\"\nto = \"{b}\"");
                self.checker.report(&path, Diagnostic::error("no-circuit", message).help(help));
                None
            }
            [] => {
                self.no_path(&path, &format!("traffic `{name}`"), from, to);
                None
            }
        }
    }

    fn no_atm_path(&mut self, path: &[&str; 2], what: &str, from: NodeId, to: NodeId) {
        if !self.whole {
            return;
        }
        if [from, to].iter().any(|host| !self.links.iter().any(|link| link.ends.contains(host))) {
            return self.no_path(path, what, from, to);
        }
        for (key, host) in [("from", from), ("to", to)] {
            if !self.links.iter().any(|link| link.ends.contains(&host) && link.medium.is_atm()) {
                let host = &self.nodes[host];
                let message = format!("{what} needs an ATM link at `{host}`, and that host has none");
                let help =
                    format!("give one of the links of `{host}` an ATM medium, such as `medium = \"oc-3c\"`");
                self.checker
                    .report(&[path[0], path[1], key], Diagnostic::error("not-atm", message).help(help));
                return;
            }
        }
        let Some(route) = self.graph.path(from, to, |_| true, |node| node >= self.hosts) else {
            return self.no_path(path, what, from, to);
        };
        let others: Vec<String> = (route.iter())
            .map(|hop| &self.links[hop.link])
            .filter(|link| !link.medium.is_atm())
            .map(|link| format!("`{}`", link.name))
            .collect();
        let message = format!("{what} cannot cross {}: no ATM there", counted_links(&others));
        let help = "give the links of a circuit an ATM medium, such as `medium = \"oc-3c\"`";
        self.checker.report(path, Diagnostic::error("not-atm", message).help(help));
    }

    fn no_path(&mut self, path: &[&str; 2], what: &str, from: NodeId, to: NodeId) {
        if !self.whole {
            return;
        }
        let (a, b) = (&self.nodes[from], &self.nodes[to]);
        let message = format!("{what} has no path: no links lead from `{a}` to `{b}`");
        let relay = self.graph.path(from, to, |_| true, |_| true).and_then(|route| {
            let relay = route[1..].iter().map(|hop| hop.from).find(|node| *node < self.hosts)?;
            Some(format!(
                "the way leads through host `{}`, and hosts do not forward: put a switch there",
                self.nodes[relay]
            ))
        });
        let mixed = self.graph.path(from, to, |_| true, |node| node >= self.hosts);
        let help = relay
            .or_else(|| {
                mixed.map(|_| {
                    "the way changes between ATM and other media, and an ATM switch passes only cells".into()
                })
            })
            .unwrap_or_else(|| {
                let bare = [a, b].into_iter().find(|name| {
                    !self.links.iter().any(|link| link.ends.iter().any(|end| self.nodes[*end] == **name))
                });
                match bare {
                    Some(bare) => format!(
                        "`{bare}` has no link at all: add a `[link.NAME]` with `ends = [\"{bare}\", …]`"
                    ),
                    None => "join the two parts of the network with a link".into(),
                }
            });
        self.checker.report(path, Diagnostic::error("no-path", message).help(help));
    }
}

fn counted_links(names: &[String]) -> String {
    match names {
        [one] => format!("link {one}"),
        _ => format!("links {}", names.join(", ")),
    }
}
