//! Checks what bonds refer to: the node, the member links, and the link that the mode names.

use std::collections::BTreeSet;

use super::names::Names;
use super::{Checker, find};
use crate::diagnostic::Diagnostic;
use crate::path::suggestion;
use crate::read::Draft;
use crate::tree::{Node, Value, shortened};

/// Names that a bond may refer to.
pub(super) struct Nodes<'n> {
    pub(super) all: &'n Names<'n>,
    pub(super) routers: &'n Names<'n>,
    pub(super) links: &'n Names<'n>,
}

/// Checks what bonds refer to. Returns the names of the bonds with invalid references.
pub(super) fn references<'d>(checker: &mut Checker<'_>, draft: &'d Draft, names: &Nodes<'_>) -> Vec<&'d str> {
    // Pairs of node and link that a bond uses.
    let mut taken = BTreeSet::new();
    let is_good = |name: &&String| {
        let node = node(checker, draft, name, names);
        let members = members(checker, draft, name, (node.as_deref(), names), &mut taken);
        let named = is_named(checker, draft, name);
        node.is_some() && members && named
    };
    let good: Vec<&String> = draft.bonds.keys().filter(is_good).collect();
    draft.bonds.keys().filter(|name| !good.contains(name)).map(String::as_str).collect()
}

/// Returns the name of a bond's node; `None` if that node cannot have bonds, which is reported.
fn node(checker: &mut Checker<'_>, draft: &Draft, name: &str, names: &Nodes<'_>) -> Option<String> {
    let path = ["bond", name, "node"];
    let node = find(checker.tree, &path).and_then(Node::name)?;
    if names.routers.has(&node) {
        let message = format!("`{}` is a router, and bonds are for hosts and switches", shortened(&node));
        let help = "remove the bond: `ecmp` of the router chooses among links to the same node";
        checker.report(&path, Diagnostic::error("dangling-reference", message).help(help));
        return None;
    }
    let elsewhere = ["host", "switch", "router"].iter().any(|family| draft.may_be(family, &node));
    checker.refers(&path, &node, "a host or switch", names.all, elsewhere).then_some(node)
}

/// Checks that the links of a bond exist, end at its node, and belong to no other bond there.
fn members(
    checker: &mut Checker<'_>,
    draft: &Draft,
    name: &str,
    (node, names): (Option<&str>, &Nodes<'_>),
    taken: &mut BTreeSet<(String, String)>,
) -> bool {
    let Some(Value::List(items)) = find(checker.tree, &["bond", name, "links"]).map(|links| &links.value)
    else {
        return false;
    };
    let mut good = true;
    for (index, item) in items.iter().enumerate() {
        let index = index.to_string();
        let path = ["bond", name, "links", &index];
        let Some(link) = item.name() else { return false };
        if !checker.refers(&path, &link, "a link", names.links, draft.may_be("link", &link)) {
            good = false;
            continue;
        }
        let Some(node) = node else { continue };
        let ends = match find(checker.tree, &["link", &link, "ends"]).map(|ends| &ends.value) {
            Some(Value::List(ends)) => ends.iter().filter_map(Node::name).collect::<Vec<_>>(),
            _ => return false,
        };
        let (message, help) = if !ends.iter().any(|end| end == node) {
            let (link, node) = (shortened(&link), shortened(node));
            (format!("link `{link}` does not end at `{node}`"), format!("name links of `{node}`"))
        } else if !taken.insert((node.to_owned(), link.clone())) {
            let (link, node) = (shortened(&link), shortened(node));
            let help = "name each link once, in one bond of the node";
            (format!("link `{link}` is already in a bond of `{node}`"), help.into())
        } else {
            continue;
        };
        checker.report(&path, Diagnostic::error("wrong-bond", message).help(help));
        good = false;
    }
    good
}

/// Checks that the link which the mode of a bond names, if any, is a member.
fn is_named(checker: &mut Checker<'_>, draft: &Draft, name: &str) -> bool {
    let Some(bond) = draft.bonds.get(name).and_then(Option::as_ref) else { return true };
    let Some((key, link)) = bond.mode.config().named() else { return true };
    if bond.links.iter().any(|member| member == link) {
        return true;
    }
    let message = format!("`{}` is not a member of bond `{}`", shortened(link), shortened(name));
    let members: Vec<&str> = bond.links.iter().map(String::as_str).collect();
    let help = suggestion(link, "its members", &members);
    let path = ["bond", name, "mode", bond.mode.kind(), key];
    checker.report(&path, Diagnostic::error("dangling-reference", message).maybe_help(help));
    false
}
