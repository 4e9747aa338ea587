//! Checks events of receivers that join and leave a multicast group: their targets, and which of their keys must or must not appear together.

use engpass_model::event::Event;
use engpass_model::source::Traffic;

use super::names::Names;
use super::{Checker, find};
use crate::diagnostic::Diagnostic;
use crate::path::suggestion;
use crate::read::Draft;
use crate::tree::{Node, Value, shortened};

/// Returns true if the table of an event is about a receiver, not about a link.
pub(super) fn is_of_member(tree: &Node, name: &str) -> bool {
    let change = find(tree, &["event", name, "change"]).and_then(Node::name);
    find(tree, &["event", name, "traffic"]).is_some() || matches!(change.as_deref(), Some("join" | "leave"))
}

/// Returns true if an event names a multicast traffic and one of its receivers; otherwise reports the error.
pub(super) fn references(checker: &mut Checker<'_>, draft: &Draft, name: &str, hosts: &Names<'_>) -> bool {
    let (at, of) = (["event", name, "target"], ["event", name, "traffic"]);
    let Some(traffic) = find(checker.tree, &of).and_then(Node::name) else { return false };
    let traffics = Names::new(draft.traffic.keys());
    if !checker.refers(&of, &traffic, "a traffic", &traffics, draft.may_be("traffic", &traffic)) {
        return false;
    }
    if let Some(Some(other)) =
        draft.traffic.get(&traffic).filter(|read| !matches!(read, Some(Traffic::Multicast(_))))
    {
        let message = format!(
            "traffic `{}` is `{}`, and receivers join and leave only `multicast` traffic",
            shortened(&traffic),
            other.kind()
        );
        let help = "name a traffic of kind `multicast`, or give this one `start` and `stop`";
        checker.report(&of, Diagnostic::error("not-allowed", message).help(help));
        return false;
    }
    let Some(host) = find(checker.tree, &at).and_then(Node::name) else { return false };
    if !checker.refers(&at, &host, "a host", hosts, draft.may_be("host", &host)) {
        return false;
    }
    let Some(Value::List(receivers)) = find(checker.tree, &["traffic", &traffic, "to"]).map(|to| &to.value)
    else {
        return false;
    };
    let receivers: Vec<String> = receivers.iter().filter_map(Node::name).collect();
    if receivers.contains(&host) {
        return true;
    }
    let message = format!("`{}` is no receiver of traffic `{}`", shortened(&host), shortened(&traffic));
    let names: Vec<&str> = receivers.iter().map(String::as_str).collect();
    // A group without receivers was reported before, so nothing can be suggested.
    let Some(known) = suggestion(&host, "receivers", &names) else { return false };
    let help = format!("add it to `to` of the traffic, or name a receiver; {known}");
    checker.report(&at, Diagnostic::error("dangling-reference", message).help(help));
    false
}

/// Reports keys that the event of a receiver lacks or must not have. `given` tells which keys the event has.
pub(super) fn keys(checker: &mut Checker<'_>, name: &str, event: &Event, given: impl Fn(&str) -> bool) {
    let table = crate::path::join(&["event", name]);
    for key in ["mean_time_between_failures", "mean_time_to_repair"].into_iter().filter(|key| given(key)) {
        let message = format!("`{key}` is for links, but the event is about a receiver of a group");
        let help = format!("remove `{key}`, and give `at` and optionally `every`");
        checker.report_key(&["event", name, key], Diagnostic::error("not-allowed", message).help(help));
    }
    if event.change.is_some_and(|change| !change.is_of_member()) {
        let written = checker.written(&["event", name, "change"]);
        let message = format!("`traffic` is for receivers, but `{written}` is a change of a link");
        let help = "remove `traffic`, or write `change = \"join\"` or `change = \"leave\"`";
        checker.report_key(&["event", name, "traffic"], Diagnostic::error("not-allowed", message).help(help));
        return;
    }
    let missing = [
        ("change", "add `change = \"join\"` or `change = \"leave\"`"),
        (
            "traffic",
            "add `traffic = \"NAME\"`: the multicast traffic whose group the receiver joins or leaves",
        ),
        ("at", "add `at = \"1 s\"`: the time of the event"),
    ];
    for (key, help) in missing.into_iter().filter(|(key, _)| !given(key)) {
        let message = format!("`{key}` is missing in `{table}`");
        checker.report(&["event", name, key], Diagnostic::error("missing-key", message).help(help));
    }
}
