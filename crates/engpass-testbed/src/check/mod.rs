//! Rules for a testbed beyond the types of its values.

pub(crate) mod agents;
mod bonds;
mod costs;
mod engines;
pub(crate) mod events;
mod groups;
mod memberships;
mod names;
mod paths;
mod policies;
mod ranges;
mod references;
mod tunnels;

use crate::diagnostic::{Diagnostic, Severity};
use crate::findings::Findings;
use crate::provenance::{Origin, ValueSource};
use crate::read::Draft;
use crate::reported::ReportedValues;
use crate::tree::Node;

/// Checks a draft. `begin` is the number of findings before it was read.
pub(crate) fn check(draft: &mut Draft, tree: &Node, found: &mut Findings, begin: usize) {
    empty(draft, found);
    ranges::check(draft, tree, found, &ReportedValues::of(&found[begin..]));
    if ReportedValues::of(&found[begin..]).within(&["run"]) {
        draft.run = None;
    }
    references::check(draft, tree, found);
    groups::check(draft, tree, found);
}

/// Looks up positions in the tree and collects findings.
pub(crate) struct Checker<'a> {
    pub(crate) tree: &'a Node,
    found: &'a mut Findings,
    /// Errors so far, warnings not counted.
    pub(crate) errors: usize,
}

impl<'a> Checker<'a> {
    pub(crate) fn new(tree: &'a Node, found: &'a mut Findings) -> Self {
        Self { tree, found, errors: 0 }
    }

    fn push(&mut self, diagnostic: Diagnostic) {
        self.errors += usize::from(diagnostic.severity == Severity::Error);
        self.found.push(diagnostic);
    }

    /// Reports a finding at the value of a path, or at the nearest existing table above it.
    pub(crate) fn report(&mut self, path: &[&str], diagnostic: Diagnostic) {
        let diagnostic = diagnostic.path(path).at(&self.place(path));
        self.push(diagnostic);
    }

    /// Reports a finding at the key of a path.
    pub(crate) fn report_key(&mut self, path: &[&str], diagnostic: Diagnostic) {
        let place = key_place(self.tree, path).unwrap_or_default();
        self.push(diagnostic.path(path).at(&place));
    }

    /// Returns true if the file has a value at this path.
    pub(crate) fn has(&self, path: &[&str]) -> bool {
        find(self.tree, path).is_some()
    }

    /// Returns true if a variant, a sweep or the caller gives the value at this path.
    pub(crate) fn is_changed(&self, path: &[&str]) -> bool {
        find(self.tree, path).is_some_and(|node| node.origin.giver != ValueSource::File)
    }

    /// Returns the value at a path as it is written in the file.
    pub(crate) fn written(&self, path: &[&str]) -> String {
        find(self.tree, path).map(Node::text).unwrap_or_default()
    }

    fn place(&self, path: &[&str]) -> Origin {
        for end in (1..=path.len()).rev() {
            if let Some(node) = find(self.tree, &path[..end]) {
                // For a table, the position of its name, not of its whole content.
                let whole = node.table().is_some() || end < path.len();
                return if whole { key_place(self.tree, &path[..end]) } else { None }
                    .unwrap_or_else(|| node.origin.clone());
            }
        }
        Origin::default()
    }
}

pub(crate) fn find<'a>(tree: &'a Node, path: &[&str]) -> Option<&'a Node> {
    let mut node = tree;
    for part in path {
        node = match &node.value {
            crate::tree::Value::Table(table) => &table.get(*part)?.node,
            crate::tree::Value::List(nodes) => nodes.get(part.parse::<usize>().ok()?)?,
            _ => return None,
        };
    }
    Some(node)
}

/// Returns the position of the key of a path; for a list item, that of the item.
fn key_place(tree: &Node, path: &[&str]) -> Option<Origin> {
    let (last, above) = path.split_last()?;
    let node = find(tree, above)?;
    match node.table() {
        Some(table) => Some(table.get(*last)?.key.clone()),
        None => find(tree, path).map(|node| node.origin.clone()),
    }
}

const MINIMAL: &str = "a small testbed is:

[host.a]
[host.b]

[link.cable]
ends = [\"a\", \"b\"]
medium = \"ethernet-100\"

[traffic.stream]
kind = \"udp-stream\"
from = \"a\"
to = \"b\"
message = \"1 kB\"";

fn empty(draft: &Draft, found: &mut Findings) {
    let none = |family: &str, count: usize| count == 0 && !draft.elsewhere.contains_key(family);
    let idle = none("traffic", draft.traffic.len());
    if none("host", draft.hosts.len()) {
        let message = format!(
            "there is nothing to run: the testbed has no hosts{}",
            if idle { " and no traffic" } else { "" }
        );
        found.push(Diagnostic::error("empty-testbed", message).help(MINIMAL));
    } else if idle {
        // Users can still run their own programs in the hosts.
        let message = "the testbed has no traffic: there is nothing to run but programs in its hosts";
        let help = "`engpass up` makes the hosts, `engpass exec` runs a program in one; \
                    for the engines, add a `[traffic.NAME]` with `kind`, `from`, `to` and what it sends";
        found.push(Diagnostic::warning("no-traffic", message).help(help));
    }
}
