//! Checks the engines of routers: the links of line cards, and values without effect.

use std::collections::BTreeMap;

use engpass_model::engine::Engine;
use engpass_model::router::Router;

use super::Checker;
use super::names::Names;
use super::policies::{foreign_link, links_of};
use crate::diagnostic::Diagnostic;
use crate::read::Draft;
use crate::tree::shortened;

/// Checks the engines of all routers.
pub(super) fn check(checker: &mut Checker<'_>, draft: &Draft, links: &Names<'_>) {
    for (name, router) in &draft.routers {
        let Some(router) = router else { continue };
        short_form(checker, name, router);
        process_time(checker, name, router);
        cards(checker, draft, name, router, links);
        if let Some(processor) = &router.processor {
            let unused = [("punt", "only a line card hands packets to the route processor")];
            without_effect(checker, name, &["router", name, "processor"], processor, &unused);
        }
        for (card, config) in &router.cards {
            if let Some(engine) = &config.engine {
                let unused = [
                    ("process", "only the route processor switches packets in a process"),
                    ("control", "only the route processor works on control packets"),
                ];
                without_effect(checker, name, &["router", name, "cards", card, "engine"], engine, &unused);
            }
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
    let own = links_of(checker, links, name);
    let mut met: BTreeMap<&str, &str> = BTreeMap::new();
    for (card, config) in &router.cards {
        if config.links.is_empty() {
            let message = format!("card `{card}` of router `{name}` has no effect: no link ends at it");
            let found = Diagnostic::warning("no-effect", message)
                .help("name links of the router, or remove the card");
            checker.report(&["router", name, "cards", card, "links"], found);
        }
        for (index, link) in config.links.iter().enumerate() {
            let index = index.to_string();
            let path = ["router", name, "cards", card, "links", &index];
            if let Some(other) = met.insert(link, card) {
                let link = shortened(link);
                let (message, help) = match other == card {
                    true => (format!("link `{link}` is twice on card `{card}`"), "remove one of them"),
                    false => (
                        format!("link `{link}` is on card `{other}` and on card `{card}`"),
                        "remove it from one of them: a link ends at one card",
                    ),
                };
                checker.report(&path, Diagnostic::error("not-allowed", message).help(help));
            }
            if let Some(found) = foreign_link(draft, links, (name, &own), link) {
                checker.report(&path, found);
            }
        }
    }
}

/// Warns about values of an engine that change nothing: the keys `unused`, each for the reason beside it, and a queue in which no packet waits.
fn without_effect(
    checker: &mut Checker<'_>,
    name: &str,
    path: &[&str],
    engine: &Engine,
    unused: &[(&str, &str)],
) {
    for (key, reason) in unused {
        let wrong = [path, &[*key]].concat();
        if checker.has(&wrong) {
            let message = format!("`{key}` of this engine of router `{name}` has no effect");
            let help = format!("remove it: {reason}");
            checker.report_key(&wrong, Diagnostic::warning("no-effect", message).help(help));
        }
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
