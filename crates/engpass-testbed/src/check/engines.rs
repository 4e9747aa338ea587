//! Checks the engines of routers: the links of line cards, and values without effect.

use std::collections::BTreeMap;

use engpass_model::engine::Engine;
use engpass_model::router::Router;

use super::names::Names;
use super::{Checker, find};
use crate::diagnostic::Diagnostic;
use crate::path::suggestion;
use crate::read::Draft;
use crate::tree::{Node, Value, shortened};

/// Checks the engines of all routers.
pub(super) fn check(checker: &mut Checker<'_>, draft: &Draft, links: &Names<'_>) {
    for (name, router) in &draft.routers {
        let Some(router) = router else { continue };
        short_form(checker, name, router);
        process_time(checker, name, router);
        cards(checker, draft, name, router, links);
        let card = |(card, config): (&'_ String, &'_ engpass_model::router::Card)| {
            config
                .engine
                .clone()
                .map(|engine| (vec!["cards".to_owned(), card.clone(), "engine".to_owned()], engine))
        };
        let processor = router.processor.clone().map(|engine| (vec!["processor".to_owned()], engine));
        let engines: Vec<_> = processor.into_iter().chain(router.cards.iter().filter_map(card)).collect();
        for (path, engine) in engines {
            let path: Vec<&str> =
                ["router", name].into_iter().chain(path.iter().map(String::as_str)).collect();
            without_effect(checker, name, &path, &engine);
        }
        if router.input_queue.is_some() && router.processor().takes_no_time() {
            no_wait(checker, name, &["router", name, "input_queue"]);
        }
    }
}

/// Reports values of the short form beside a `processor`.
fn short_form(checker: &mut Checker<'_>, name: &str, router: &Router) {
    if router.processor.is_none() {
        return;
    }
    for key in ["per_packet", "per_copy", "input_queue"] {
        let path = ["router", name, key];
        if checker.has(&path) {
            let message = format!("router `{name}` gives `{key}` beside its `processor`");
            let help = format!("move it into `processor`: `processor = {{ {key} = … }}`");
            checker.report_key(&path, Diagnostic::error("not-allowed", message).help(help));
        }
    }
}

/// Reports process switching without its time.
fn process_time(checker: &mut Checker<'_>, name: &str, router: &Router) {
    let is_short = router.processor.is_none();
    if !router.process_switched.is_empty() && (is_short || router.processor().process == 0) {
        let message = format!("router `{name}` has no time for process switching");
        let help = "give `processor` a `process` time, or a `preset` that has one: `processor = { preset = \"rsp4\" }`";
        let found = Diagnostic::error("missing-key", message).help(help);
        checker.report_key(&["router", name, "process_switched"], found);
    }
}

/// Reports links of cards that do not end at the router, and links on two cards.
fn cards(checker: &mut Checker<'_>, draft: &Draft, name: &str, router: &Router, links: &Names<'_>) {
    let is_own = |link: &str| match find(checker.tree, &["link", link, "ends"]).map(|ends| &ends.value) {
        Some(Value::List(ends)) => ends.iter().filter_map(Node::name).any(|end| end == *name),
        // A link whose ends could not be read may end here.
        _ => true,
    };
    let own: Vec<&str> = links.list.iter().copied().filter(|link| is_own(link)).collect();
    let mut met: BTreeMap<&str, &str> = BTreeMap::new();
    for (card, config) in &router.cards {
        for (index, link) in config.links.iter().enumerate() {
            if let Some(other) = met.insert(link, card) {
                let message = format!("link `{}` is on card `{other}` and on card `{card}`", shortened(link));
                let help = "remove it from one of them: a link ends at one card";
                let path = ["router", name, "cards", card, "links", &index.to_string()];
                checker.report(&path, Diagnostic::error("not-allowed", message).help(help));
            }
            if own.contains(&link.as_str()) || draft.may_be("link", link) {
                continue;
            }
            let message = match links.has(link) {
                true => format!("link `{}` does not end at router `{name}`", shortened(link)),
                false => format!("`{}` is not the name of a link", shortened(link)),
            };
            let help = suggestion(link, &format!("links of `{name}`"), &own);
            let help = help.unwrap_or_else(|| format!("remove it: router `{name}` has no links"));
            let path = ["router", name, "cards", card, "links", &index.to_string()];
            checker.report(&path, Diagnostic::error("dangling-reference", message).help(help));
        }
    }
}

/// Warns about values of an engine that change nothing.
fn without_effect(checker: &mut Checker<'_>, name: &str, path: &[&str], engine: &Engine) {
    let (key, cure) = if path.last() == Some(&"processor") {
        ("punt", "remove it: only a line card hands packets to the route processor")
    } else {
        ("process", "remove it: only the route processor switches packets in a process")
    };
    let wrong = [path, &[key]].concat();
    if checker.has(&wrong) {
        let message = format!("`{key}` of this engine of router `{name}` has no effect");
        checker.report_key(&wrong, Diagnostic::warning("no-effect", message).help(cure));
    }
    if engine.input_queue.is_some() && engine.times().takes_no_time() {
        no_wait(checker, name, &[path, &["input_queue"]].concat());
    }
}

/// Warns about a queue in front of an engine that takes no time.
fn no_wait(checker: &mut Checker<'_>, name: &str, path: &[&str]) {
    let message = format!("router `{name}` has no processing time, so no packet waits in its `input_queue`");
    let help = "remove it, or give the router a processing time: `per_packet = \"10 us\"`";
    checker.report_key(path, Diagnostic::warning("no-effect", message).help(help));
}
