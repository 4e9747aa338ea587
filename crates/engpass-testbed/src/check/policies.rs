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
        let mut own = Vec::new();
        for link in &links.list {
            match find(checker.tree, &["link", link, "ends"]).map(|ends| &ends.value) {
                Some(Value::List(ends)) if !ends.iter().filter_map(Node::name).any(|end| end == *router) => {}
                // The ends of this link could not be read, so it may end at the router.
                _ => own.push(*link),
            }
        }
        for link in weights.keys() {
            if own.contains(&link.as_str()) || draft.may_be("link", link) {
                continue;
            }
            let message = match links.has(link) {
                true => format!("link `{}` does not end at router `{router}`", shortened(link)),
                false => format!("`{}` is not the name of a link", shortened(link)),
            };
            let help = suggestion(link, &format!("links of `{router}`"), &own);
            let help = help.unwrap_or_else(|| format!("remove it: router `{router}` has no links"));
            let path = ["router", router, "ecmp", ecmp.kind(), "weights", link];
            let found = Diagnostic::error("dangling-reference", message).help(help);
            checker.report_key(&path, found);
        }
    }
}
