//! Checks the targets of events, and which of their keys must or must not appear together.

use engpass_model::event::Event;
use engpass_model::range_errors::LONGEST;
use engpass_model::unit::Duration;

use super::names::Names;
use super::{Checker, find};
use crate::diagnostic::Diagnostic;
use crate::read::Draft;
use crate::reported::ReportedValues;
use crate::tree::{Node, Value, shortened};

/// A target as written in the file: a link, and the node if only the interface at one end changes.
pub(crate) struct Target {
    pub(crate) link: String,
    pub(crate) node: Option<String>,
}

impl Target {
    /// Parses a target. Names may contain slashes. Therefore the whole text is first tried as the name of a link, and then every slash as the separator.
    pub(crate) fn read(text: &str, is_link: impl Fn(&str) -> bool, is_node: impl Fn(&str) -> bool) -> Self {
        let pairs = || text.match_indices('/').map(|(at, _)| (&text[..at], &text[at + 1..]));
        let pair = if is_link(text) {
            None
        } else {
            pairs().find(|(node, link)| is_node(node) && is_link(link)).or_else(|| pairs().next())
        };
        match pair {
            Some((node, link)) => Self { link: link.into(), node: Some(node.into()) },
            None => Self { link: text.into(), node: None },
        }
    }
}

/// Returns the target of an event; `None` if it does not exist, which is then reported.
pub(super) fn target(
    checker: &mut Checker<'_>,
    draft: &Draft,
    name: &str,
    links: &Names<'_>,
    nodes: &Names<'_>,
) -> Option<Target> {
    let path = ["event", name, "target"];
    let text = find(checker.tree, &path).and_then(Node::name)?;
    let target = Target::read(&text, |link| links.has(link), |node| nodes.has(node));
    if target.node.is_none() && !links.has(&text) && nodes.has(&text) {
        node_alone(checker, &path, &text, links);
        return None;
    }
    if !checker.refers(&path, &target.link, "a link", links, draft.may_be("link", &target.link)) {
        return None;
    }
    let Some(node) = &target.node else { return Some(target) };
    let elsewhere = ["host", "switch", "router"].iter().any(|family| draft.may_be(family, node));
    if !checker.refers(&path, node, "a host, switch or router", nodes, elsewhere) {
        return None;
    }
    let Some(Value::List(ends)) = find(checker.tree, &["link", &target.link, "ends"]).map(|ends| &ends.value)
    else {
        return None;
    };
    let ends: Vec<String> = ends.iter().filter_map(Node::name).collect();
    if !ends.contains(node) {
        let (link, node) = (shortened(&target.link), shortened(node));
        let message = format!("link `{link}` does not end at `{node}`");
        let written = |end: &String| format!("`\"{}/{link}\"`", shortened(end));
        let known = ends.iter().map(written).collect::<Vec<_>>().join(" or ");
        let help = format!("name one of its ends, {known}, or the link for both: `\"{link}\"`");
        checker.report(&path, Diagnostic::error("dangling-reference", message).help(help));
        return None;
    }
    Some(target)
}

/// Reports a target that is a node, and lists the interfaces of the node.
fn node_alone(checker: &mut Checker<'_>, path: &[&str], node: &str, links: &Names<'_>) {
    let ends_here = |link: &&&str| match find(checker.tree, &["link", link, "ends"]).map(|ends| &ends.value) {
        Some(Value::List(ends)) => ends.iter().filter_map(Node::name).any(|end| end == node),
        _ => false,
    };
    let own: Vec<String> = links
        .list
        .iter()
        .filter(ends_here)
        .map(|link| format!("`\"{}/{}\"`", shortened(node), shortened(link)))
        .collect();
    let message = format!("`{}` is a node: an event changes a link or an interface", shortened(node));
    let help = match own.is_empty() {
        true => "name a link".to_owned(),
        false => format!("name an interface of it, {}, or a link", own.join(", ")),
    };
    checker.report(path, Diagnostic::error("dangling-reference", message).help(help));
}

const UP: &str = "mean_time_between_failures";
const DOWN: &str = "mean_time_to_repair";

/// Reports keys that others require, and keys that others exclude.
pub(super) fn keys(checker: &mut Checker<'_>, faulty: &ReportedValues, name: &str, event: &Event) {
    let given = |key: &str| {
        faulty.has(&["event", name, key])
            || match key {
                "at" => event.at.is_some(),
                "change" => event.change.is_some(),
                "traffic" => event.traffic.is_some(),
                "every" => event.every.is_some(),
                UP => event.mean_time_between_failures.is_some(),
                _ => event.mean_time_to_repair.is_some(),
            }
    };
    if event.is_of_member() {
        return super::memberships::keys(checker, name, event, given);
    }
    let table = crate::path::join(&["event", name]);
    let mut missing = |key: &str, help: String| {
        let message = format!("`{key}` is missing in `{table}`");
        checker.report(&["event", name, key], Diagnostic::error("missing-key", message).help(help));
    };
    if !given(UP) && !given(DOWN) {
        if !given("change") {
            let help = format!(
                "add `change = \"down\"` and `at`, or `{UP}` and `{DOWN}` for failures at random times"
            );
            return missing("change", help);
        }
        if !given("at") {
            missing("at", "add `at = \"1 s\"`: the time of the event".into());
        }
        return;
    }
    for (key, example) in [(UP, "10 s"), (DOWN, "500 ms")] {
        if !given(key) {
            missing(key, format!("add `{key} = \"{example}\"`: the target fails and recovers repeatedly"));
        }
    }
    for key in ["change", "every"].into_iter().filter(|key| given(key)) {
        let random = if given(UP) { UP } else { DOWN };
        let message = format!("`{key}` is for events at given times, but `{random}` makes the times random");
        let help = format!("remove `{key}`, or remove `{UP}` and `{DOWN}`");
        checker.report_key(&["event", name, key], Diagnostic::error("not-allowed", message).help(help));
    }
}

/// Warns about an event after the end of the run.
pub(super) fn warn_after_end(checker: &mut Checker<'_>, name: &str, event: &Event, run: Duration) {
    let Some(at) = event.at.filter(|at| *at > run && *at <= LONGEST) else { return };
    let message = format!("event `{name}` is at {at}, but a run ends at {run}: the event never happens");
    let help = "set an earlier `at` or a longer `duration`; a testbed started with `engpass up` runs longer";
    checker.report(&["event", name, "at"], Diagnostic::warning("no-effect", message).help(help));
}
