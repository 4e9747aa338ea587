//! Checks routers against the rest of the file: the links that policies give weights to.

use super::names::Names;
use super::{Checker, find};
use crate::diagnostic::Diagnostic;
use crate::path::suggestion;
use crate::read::Draft;
use crate::tree::{Node, Value, shortened};

/// Reports weights of links that do not end at the router.
pub(super) fn weights(checker: &mut Checker<'_>, draft: &Draft, links: &Names<'_>) {
    for (router, config) in &draft.routers {
        let Some(ecmp) = config.as_ref().map(|config| &config.ecmp) else { continue };
        let Some(weights) = ecmp.config().weights().filter(|weights| !weights.is_empty()) else { continue };
        let own = links_of(checker, links, router);
        for link in weights.keys() {
            if let Some(found) = foreign_link(draft, links, (router, &own), link) {
                checker.report_key(&["router", router, "ecmp", ecmp.kind(), "weights", link], found);
            }
        }
    }
}

/// Returns the links that end at a router, or may do so because their ends could not be read.
pub(super) fn links_of<'a>(checker: &Checker<'_>, links: &Names<'a>, router: &str) -> Vec<&'a str> {
    let ends_here = |link: &&str| match find(checker.tree, &["link", link, "ends"]).map(|ends| &ends.value) {
        Some(Value::List(ends)) => ends.iter().filter_map(Node::name).any(|end| end == *router),
        _ => true,
    };
    links.list.iter().copied().filter(ends_here).collect()
}

/// Returns the error for a link that a router with the links `own` names, and that does not end there; otherwise `None`.
pub(super) fn foreign_link(
    draft: &Draft,
    links: &Names<'_>,
    (router, own): (&str, &[&str]),
    link: &str,
) -> Option<Diagnostic> {
    if own.contains(&link) || draft.may_be("link", link) {
        return None;
    }
    let message = match links.has(link) {
        true => format!("link `{}` does not end at router `{router}`", shortened(link)),
        false => format!("`{}` is not the name of a link", shortened(link)),
    };
    let help = suggestion(link, &format!("links of `{router}`"), own);
    let help = help.unwrap_or_else(|| format!("remove it: router `{router}` has no links"));
    Some(Diagnostic::error("dangling-reference", message).help(help))
}
