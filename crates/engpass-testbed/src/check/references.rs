//! Checks that names refer to existing components.

use std::collections::{BTreeMap, BTreeSet};

use engpass_model::source::Traffic;

use super::names::Names;
use super::{Checker, find};
use crate::diagnostic::Diagnostic;
use crate::findings::Findings;
use crate::path::suggestion;
use crate::read::Draft;
use crate::tree::{Node, Value, shortened};

/// Checks all references. Names come from the tree and are therefore known even if their component could not be read.
pub(super) fn check(draft: &mut Draft, tree: &Node, found: &mut Findings) {
    let mut astray = BTreeSet::new();
    let mut checker = Checker::new(tree, found);
    let hosts = Names::new(draft.hosts.keys());
    let switches = Names::new(draft.switches.keys());
    let routers = Names::new(draft.routers.keys());
    let nodes = Names::new(draft.hosts.keys().chain(draft.switches.keys()).chain(draft.routers.keys()));
    let packets = Names::new(draft.hosts.keys().chain(draft.routers.keys()));
    let circuits = Names::new(draft.circuits.keys());

    let twice = |checker: &mut Checker<'_>, family: &str, name: &str, other: &str| {
        let message = format!("`{name}` is the name of a {other} and of a {family}");
        let help = "rename one of them: links refer to their ends by name only";
        checker.report_key(&[family, name], Diagnostic::error("duplicate-name", message).help(help));
    };
    for name in switches.list.iter().filter(|name| hosts.has(name)) {
        twice(&mut checker, "switch", name, "host");
    }
    for name in &routers.list {
        if let Some((_, other)) =
            [(&hosts, "host"), (&switches, "switch")].iter().find(|(names, _)| names.has(name))
        {
            twice(&mut checker, "router", name, other);
        }
    }
    for name in draft.links.keys() {
        let ends = find(tree, &["link", name, "ends"]);
        let items = match ends.map(|ends| &ends.value) {
            Some(Value::List(items)) => items.as_slice(),
            _ => &[],
        };
        let mut good = items.len() == 2;
        for (index, end) in items.iter().enumerate() {
            let index = index.to_string();
            let path = ["link", name, "ends", &index];
            good &= end.name().is_some_and(|end| {
                let elsewhere = ["host", "switch", "router"].iter().any(|family| draft.may_be(family, &end));
                checker.refers(&path, &end, "a host, switch or router", &nodes, elsewhere)
            });
        }
        if let [Some(one), Some(other)] = &items.iter().map(Node::name).collect::<Vec<_>>()[..]
            && good
            && one == other
        {
            let message = format!("link `{name}` joins `{}` to itself", shortened(one));
            let help = "a link joins two different nodes";
            checker.report(&["link", name, "ends", "1"], Diagnostic::error("self-link", message).help(help));
            good = false;
        }
        if !good {
            astray.insert(("link", name.clone()));
        }
    }
    let ends = |checker: &mut Checker<'_>, family: &'static str, name: &str| -> Option<[String; 2]> {
        let mut good = true;
        // Packets begin and end at hosts; circuits may also end at routers.
        let (what, plural, known) = match family {
            "circuit" => ("a host or router", "hosts and routers", &packets),
            _ => ("a host", "hosts", &hosts),
        };
        let names = ["from", "to"].map(|key| find(tree, &[family, name, key]).and_then(Node::name));
        for (key, end) in ["from", "to"].iter().zip(&names) {
            let path = [family, name, key];
            let Some(end) = end else { continue };
            let other = [(&switches, "switch"), (&routers, "router")];
            let other = other.iter().find(|(names, _)| names.has(end) && !known.has(end));
            if let Some((_, other)) = other {
                let message = format!("`{end}` is a {other}, and `{key}` needs {what}");
                let help =
                    suggestion(end, plural, &known.list).unwrap_or_else(|| "the file has no host".into());
                checker.report(&path, Diagnostic::error("dangling-reference", message).help(help));
                good = false;
            } else {
                let elsewhere =
                    draft.may_be("host", end) || (family == "circuit" && draft.may_be("router", end));
                good &= checker.refers(&path, end, what, known, elsewhere);
            }
        }
        let [Some(from), Some(to)] = names else { return None };
        if good && from == to {
            let message = format!("{family} `{name}` goes from `{from}` to itself");
            let help = format!("`from` and `to` must be two different {plural}");
            checker.report(&[family, name, "to"], Diagnostic::error("self-link", message).help(help));
            good = false;
        }
        good.then_some([from, to])
    };
    for name in draft.tunnels.keys() {
        if !super::tunnels::references(&mut checker, draft, name, (&nodes, &routers)) {
            astray.insert(("tunnel", name.clone()));
        }
    }
    for name in super::tunnels::loops(&mut checker, draft) {
        astray.insert(("tunnel", name.to_owned()));
    }
    let mut joined: BTreeMap<&str, [String; 2]> = BTreeMap::new();
    for name in draft.circuits.keys() {
        match ends(&mut checker, "circuit", name) {
            Some(ends) => {
                joined.insert(name, ends);
            }
            None => {
                astray.insert(("circuit", name.clone()));
            }
        }
    }
    for name in draft.traffic.keys() {
        let group = match find(tree, &["traffic", name, "to"]).map(|to| &to.value) {
            Some(Value::List(items)) => Some(items),
            _ => None,
        };
        let is_multicast = matches!(&draft.traffic[name], Some(Traffic::Multicast(_)) | None);
        let own = match group {
            // Only a multicast has a list of receivers. The wrong type was reported when the table was read.
            Some(_) if !is_multicast => None,
            Some(items) => receivers(&mut checker, name, items, &hosts, draft),
            None => ends(&mut checker, "traffic", name),
        };
        let mut good = own.is_some();
        if let Some(node) = find(tree, &["traffic", name, "circuit"]) {
            let path = ["traffic", name, "circuit"];
            good &= node.name().is_some_and(|circuit| {
                let elsewhere = draft.may_be("circuit", &circuit);
                checker.refers(&path, &circuit, "a circuit", &circuits, elsewhere)
                    && match (&own, joined.get(circuit.as_str())) {
                        // A circuit that ends at a router may cover only a part of the path.
                        (Some(_), Some(ends))
                            if ends.iter().any(|end| routers.has(end)) && !sends_cells(draft, name) =>
                        {
                            true
                        }
                        (Some(own), Some(ends)) => joins(&mut checker, name, &circuit, own, ends),
                        _ => true,
                    }
            });
        }
        if !good {
            astray.insert(("traffic", name.clone()));
        }
    }
    let links = Names::new(draft.links.keys());
    let names = super::bonds::Nodes { all: &nodes, routers: &routers, links: &links };
    for name in super::bonds::references(&mut checker, draft, &names) {
        astray.insert(("bond", name.to_owned()));
    }
    super::policies::weights(&mut checker, draft, &links);
    super::engines::check(&mut checker, draft, &links);
    for name in draft.events.keys() {
        let is_known = match super::memberships::is_of_member(tree, name) {
            true => super::memberships::references(&mut checker, draft, name, &hosts),
            false => super::events::target(&mut checker, draft, name, &links, &nodes).is_some(),
        };
        if !is_known {
            astray.insert(("event", name.clone()));
        }
    }
    draft.astray = astray;
}

/// Returns the sender and the first receiver of a traffic to several hosts; `None` if a name is invalid.
fn receivers(
    checker: &mut Checker<'_>,
    name: &str,
    items: &[Node],
    hosts: &Names<'_>,
    draft: &Draft,
) -> Option<[String; 2]> {
    let from = find(checker.tree, &["traffic", name, "from"]).and_then(Node::name)?;
    let mut good =
        checker.refers(&["traffic", name, "from"], &from, "a host", hosts, draft.may_be("host", &from));
    let mut met = BTreeSet::new();
    for (index, item) in items.iter().enumerate() {
        let index = index.to_string();
        let path = ["traffic", name, "to", &index];
        let to = item.name()?;
        good &= checker.refers(&path, &to, "a host", hosts, draft.may_be("host", &to));
        let wrong = if to == from {
            format!("traffic `{name}` goes from `{from}` to itself")
        } else if !met.insert(to.clone()) {
            format!("traffic `{name}` goes to `{}` twice", shortened(&to))
        } else {
            continue;
        };
        let help = "list each receiver once, and not the sender";
        checker.report(&path, Diagnostic::error("self-link", wrong).help(help));
        good = false;
    }
    let first = items.first().and_then(Node::name)?;
    good.then_some([from, first])
}

fn sends_cells(draft: &Draft, traffic: &str) -> bool {
    draft.traffic.get(traffic).is_some_and(|read| read.as_ref().is_some_and(|read| read.cells().is_some()))
}

/// Checks that the circuit which a traffic names connects its hosts, in either direction.
fn joins(
    checker: &mut Checker<'_>,
    name: &str,
    circuit: &str,
    [from, to]: &[String; 2],
    [one, other]: &[String; 2],
) -> bool {
    if (from, to) == (one, other) || (to, from) == (one, other) {
        return true;
    }
    let message = format!(
        "circuit `{circuit}` joins `{one}` and `{other}`, but the traffic goes from `{from}` to `{to}`"
    );
    let help = format!("name a circuit between `{from}` and `{to}`, or change `from` and `to`");
    checker.report(&["traffic", name, "circuit"], Diagnostic::error("wrong-circuit", message).help(help));
    false
}

impl Checker<'_> {
    /// Returns true if a name is known. Reports an unknown name, unless it may be in a table that could not be read.
    pub(super) fn refers(
        &mut self,
        path: &[&str],
        name: &str,
        what: &str,
        known: &Names<'_>,
        elsewhere: bool,
    ) -> bool {
        if known.has(name) {
            return true;
        }
        if elsewhere {
            return false;
        }
        let plural = match what {
            "a host" => "hosts",
            "a circuit" => "circuits",
            "a link" => "links",
            "a router" => "routers",
            "a traffic" => "traffic tables",
            "a tunnel" => "tunnels",
            "a host or router" => "hosts and routers",
            "a host or switch" => "hosts and switches",
            _ => "hosts, switches and routers",
        };
        let message = format!("`{}` is not the name of {what}", shortened(name));
        let family = what.trim_start_matches("a ").split([' ', ',']).next().unwrap_or("host");
        // After 200 errors, suggestions are not worth the time that they take.
        if self.errors > 200 {
            self.report(path, Diagnostic::error("dangling-reference", message));
            return false;
        }
        let help = suggestion(name, plural, &known.list).unwrap_or_else(|| {
            format!("add `[{family}.{}]`: the file has no {plural}", crate::path::quoted(name))
        });
        self.report(path, Diagnostic::error("dangling-reference", message).help(help));
        false
    }
}
