//! Names that must lead somewhere.

use std::collections::BTreeSet;

use engpass_model::source::Traffic;

use super::Checker;
use crate::diagnostic::Diagnostic;
use crate::path::suggestion;
use crate::read::Draft;
use crate::tree::{Node, shortened};

/// Names in the order of the file.
struct Names<'a> {
    list: Vec<&'a str>,
    set: BTreeSet<&'a str>,
}

impl<'a> Names<'a> {
    fn new(names: impl IntoIterator<Item = &'a String>) -> Self {
        let mut set = BTreeSet::new();
        let list = names.into_iter().map(String::as_str).filter(|name| set.insert(*name)).collect();
        Self { list, set }
    }

    fn has(&self, name: &str) -> bool {
        self.set.contains(name)
    }
}

pub(super) fn check(draft: &mut Draft, tree: &Node, found: &mut Vec<Diagnostic>) {
    let mut checker = Checker::new(tree, found);
    let hosts = Names::new(draft.hosts.keys());
    let switches = Names::new(draft.switches.keys());
    let nodes = Names::new(draft.hosts.keys().chain(draft.switches.keys()));

    for name in switches.list.iter().filter(|name| hosts.has(name)) {
        let message = format!("`{name}` is the name of a host and of a switch");
        let help = "give one of them another name: links name their ends without saying what they are";
        checker.report_key(&["switch", name], Diagnostic::error("duplicate-name", message).help(help));
    }
    for (name, slot) in &mut draft.links {
        let Some(link) = slot else { continue };
        let mut good = true;
        for (index, end) in link.ends.iter().enumerate() {
            let index = index.to_string();
            good &= checker.refers(&["link", name, "ends", &index], end, "a host or switch", &nodes);
        }
        if good && link.ends[0] == link.ends[1] {
            let message = format!("link `{name}` joins `{}` to itself", shortened(&link.ends[0]));
            let help = "a link joins two different nodes";
            checker.report(&["link", name, "ends", "1"], Diagnostic::error("self-link", message).help(help));
            good = false;
        }
        if !good {
            *slot = None;
        }
    }
    let ends = |checker: &mut Checker<'_>, family: &str, name: &str, from: &str, to: &str| {
        let mut good = true;
        for (key, end) in [("from", from), ("to", to)] {
            let path = [family, name, key];
            if switches.has(end) && !hosts.has(end) {
                let message = format!("`{end}` is a switch, and `{key}` needs a host");
                let help =
                    suggestion(end, "hosts", &hosts.list).unwrap_or_else(|| "the file has no host".into());
                checker.report(&path, Diagnostic::error("dangling-reference", message).help(help));
                good = false;
            } else {
                good &= checker.refers(&path, end, "a host", &hosts);
            }
        }
        if good && from == to {
            let message = format!("{family} `{name}` goes from `{from}` to itself");
            let help = "`from` and `to` are two different hosts";
            checker.report(&[family, name, "to"], Diagnostic::error("self-link", message).help(help));
            good = false;
        }
        good
    };
    for (name, slot) in &mut draft.circuits {
        if slot
            .as_ref()
            .is_some_and(|circuit| !ends(&mut checker, "circuit", name, &circuit.from, &circuit.to))
        {
            *slot = None;
        }
    }
    let names: Vec<String> = draft.circuits.keys().cloned().collect();
    let circuits = Names::new(&names);
    for (name, slot) in &mut draft.traffic {
        let Some(traffic) = slot else { continue };
        let (from, to) = traffic.ends();
        let mut good = ends(&mut checker, "traffic", name, from, to);
        if let Some(circuit) = traffic.circuit() {
            good &= checker.refers(&["traffic", name, "circuit"], circuit, "a circuit", &circuits);
            if let Some(Some(circuit)) = draft.circuits.get(circuit) {
                good &= good && joins(&mut checker, name, traffic, (&circuit.from, &circuit.to));
            }
        }
        if !good {
            *slot = None;
        }
    }
}

/// Whether the circuit that a traffic names goes between its hosts, in either direction.
fn joins(checker: &mut Checker<'_>, name: &str, traffic: &Traffic, ends: (&str, &str)) -> bool {
    let (from, to) = traffic.ends();
    if (from, to) == ends || (to, from) == ends {
        return true;
    }
    let circuit = traffic.circuit().unwrap_or_default();
    let message = format!(
        "circuit `{circuit}` joins `{}` and `{}`, and the traffic goes from `{from}` to `{to}`",
        ends.0, ends.1
    );
    let help = format!("name a circuit between `{from}` and `{to}`, or change `from` and `to`");
    checker.report(&["traffic", name, "circuit"], Diagnostic::error("wrong-circuit", message).help(help));
    false
}

impl Checker<'_> {
    fn refers(&mut self, path: &[&str], name: &str, what: &str, known: &Names<'_>) -> bool {
        if known.has(name) {
            return true;
        }
        let plural = match what {
            "a host" => "hosts",
            "a circuit" => "circuits",
            _ => "hosts and switches",
        };
        let message = format!("`{}` is not the name of {what}", shortened(name));
        let family = what.trim_start_matches("a ").split(' ').next().unwrap_or("host");
        // Who has made so many mistakes looks for the first ones.
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
