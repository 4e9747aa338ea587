//! Checks what tunnels refer to: the routers at their ends, and the tunnels that carry them.

use super::names::Names;
use super::{Checker, find};
use crate::diagnostic::Diagnostic;
use crate::read::Draft;
use crate::topology::MOST_TUNNELS;
use crate::tree::{Node, Value, shortened};

/// Checks the routers and the carrier that a tunnel refers to. Returns true if all of them exist.
pub(super) fn references(
    checker: &mut Checker<'_>,
    draft: &Draft,
    name: &str,
    (nodes, routers): (&Names<'_>, &Names<'_>),
) -> bool {
    let ends = match find(checker.tree, &["tunnel", name, "ends"]).map(|ends| &ends.value) {
        Some(Value::List(items)) => items.as_slice(),
        _ => &[],
    };
    let mut good = ends.len() == 2;
    for (index, end) in ends.iter().enumerate() {
        let index = index.to_string();
        let path = ["tunnel", name, "ends", &index];
        let Some(end) = end.name() else {
            good = false;
            continue;
        };
        if nodes.has(&end) && !routers.has(&end) {
            let end = shortened(&end);
            let message = format!("`{end}` is not a router, but a tunnel ends at routers");
            let help = format!("name the router next to `{end}`");
            checker.report(&path, Diagnostic::error("dangling-reference", message).help(help));
            good = false;
        } else {
            good &= checker.refers(&path, &end, "a router", routers, draft.may_be("router", &end));
        }
    }
    if let [Some(one), Some(other)] = &ends.iter().map(Node::name).collect::<Vec<_>>()[..]
        && good
        && one == other
    {
        let message = format!("tunnel `{name}` joins `{}` to itself", shortened(one));
        let help = "a tunnel joins two different routers";
        checker.report(&["tunnel", name, "ends", "1"], Diagnostic::error("self-link", message).help(help));
        good = false;
    }
    let path = ["tunnel", name, "over"];
    if let Some(node) = find(checker.tree, &path) {
        good &= node.name().is_some_and(|over| {
            // A tunnel that is carried by itself is reported by `loops`.
            let others = Names::new(draft.tunnels.keys().filter(|other| *other != name));
            over == name || checker.refers(&path, &over, "a tunnel", &others, draft.may_be("tunnel", &over))
        });
    }
    good
}

/// Reports tunnels that are routed through themselves or nested too deeply. Returns their names.
pub(super) fn loops<'d>(checker: &mut Checker<'_>, draft: &'d Draft) -> Vec<&'d str> {
    let over = |name: &str| -> Option<&'d str> { draft.tunnels.get(name)?.as_ref()?.over.as_deref() };
    let mut found: Vec<&str> = Vec::new();
    for name in draft.tunnels.keys() {
        let mut met = vec![name.as_str()];
        while let Some(next) = met.last().and_then(|last| over(last))
            && !met.contains(&next)
        {
            met.push(next);
        }
        if met.len() > MOST_TUNNELS && !found.contains(&name.as_str()) {
            let message = format!("packets of tunnel `{name}` are in {} nested tunnels", met.len());
            let help = format!("nest at most {MOST_TUNNELS} tunnels");
            checker.report(&["tunnel", name, "over"], Diagnostic::error("out-of-range", message).help(help));
            found.push(name);
            continue;
        }
        if met.last().and_then(|last| over(last)) != Some(name) {
            continue;
        }
        if !found.contains(&name.as_str()) {
            let way: Vec<String> =
                met.iter().chain([&name.as_str()]).map(|name| format!("`{name}`")).collect();
            let message = format!("tunnel `{name}` is routed through itself: {}", way.join(" over "));
            let help = "remove `over` from one of them";
            checker.report(&["tunnel", name, "over"], Diagnostic::error("tunnel-loop", message).help(help));
            found.extend(met);
        }
    }
    found
}
