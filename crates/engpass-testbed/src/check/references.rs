//! Names that must lead somewhere.

use engpass_model::source::Traffic;

use super::Checker;
use crate::diagnostic::Diagnostic;
use crate::path::suggestion;
use crate::read::Draft;
use crate::tree::{Node, shortened};

pub(super) fn check(draft: &mut Draft, tree: &Node, found: &mut Vec<Diagnostic>) {
    let mut checker = Checker { tree, found };
    let hosts: Vec<String> = draft.hosts.keys().cloned().collect();
    let hosts: Vec<&str> = hosts.iter().map(String::as_str).collect();
    let switches: Vec<String> = draft.switches.keys().cloned().collect();
    let switches: Vec<&str> = switches.iter().map(String::as_str).collect();
    let nodes: Vec<&str> = hosts.iter().chain(&switches).copied().collect();

    for name in switches.iter().filter(|name| hosts.contains(name)) {
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
            if switches.contains(&end) && !hosts.contains(&end) {
                let message = format!("`{end}` is a switch, and `{key}` needs a host");
                let help = suggestion(end, "hosts", &hosts).unwrap_or_else(|| "the file has no host".into());
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
    let circuits: Vec<&str> = draft.circuits.keys().map(String::as_str).collect();
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
    fn refers(&mut self, path: &[&str], name: &str, what: &str, known: &[&str]) -> bool {
        if known.contains(&name) {
            return true;
        }
        let plural = match what {
            "a host" => "hosts",
            "a circuit" => "circuits",
            _ => "hosts and switches",
        };
        let message = format!("`{}` is not the name of {what}", shortened(name));
        let family = what.trim_start_matches("a ").split(' ').next().unwrap_or("host");
        let help = suggestion(name, plural, known).unwrap_or_else(|| {
            format!("add `[{family}.{}]`: the file has no {plural}", crate::path::quoted(name))
        });
        self.report(path, Diagnostic::error("dangling-reference", message).help(help));
        false
    }
}
