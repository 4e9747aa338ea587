//! Resolves links: ends, media, options, and the queue disciplines of their transmitters.

use engpass_model::link::Link;
use engpass_model::switch::Switch;
use engpass_model::unit::Share;
use engpass_model::wire::Framing;

use crate::check::Checker;
use crate::diagnostic::Diagnostic;
use crate::read::Draft;
use crate::reported::ReportedValues;
use crate::topology::{Line, LinkEnds, NodeId, NodeKind, node_kind};

/// Default MTU of Ethernet and point-to-point links, in bytes.
const DEFAULT_MTU: u64 = 1500;

/// Returns the index of a node: hosts first, then switches, then routers.
pub(crate) fn node_id(draft: &Draft, name: &str) -> Option<NodeId> {
    let (hosts, switches) = (draft.hosts.len(), draft.switches.len());
    let switch = || Some(hosts + draft.switches.get_index_of(name)?);
    let router = || Some(hosts + switches + draft.routers.get_index_of(name)?);
    draft.hosts.get_index_of(name).or_else(switch).or_else(router)
}

pub(crate) fn kind(draft: &Draft, node: NodeId) -> NodeKind {
    node_kind(draft.hosts.len(), draft.switches.len(), node)
}

/// Returns the switch at a node; `None` if the node is no switch or could not be read.
pub(crate) fn switch(draft: &Draft, node: NodeId) -> Option<&Switch> {
    match kind(draft, node) {
        NodeKind::Switch(index) => draft.switches[index].as_ref(),
        NodeKind::Host(_) | NodeKind::Router(_) => None,
    }
}

/// Returns the valid links in the order of the file. Reports new errors of the others.
pub(crate) fn links(draft: &Draft, checker: &mut Checker<'_>, faulty: &ReportedValues) -> Vec<LinkEnds> {
    let mut links = Vec::new();
    for (name, link) in &draft.links {
        let Some(link) = link else { continue };
        let reported = |key: &&str| faulty.has(&["link", name, key]) || faulty.within(&["link", name, key]);
        let unknown = ["medium", "rate"].iter().any(reported);
        if unknown || draft.has_invalid_reference("link", name) {
            continue;
        }
        let end = |name: &String| node_id(draft, name);
        let (Some(a), Some(b)) = (end(&link.ends[0]), end(&link.ends[1])) else { continue };
        let Some(rates) = link.line_rates() else { continue };
        if !fits(draft, checker, name, link, [a, b]) {
            continue;
        }
        links.push(LinkEnds {
            name: name.clone(),
            ends: [a, b],
            medium: link.medium,
            lines: rates.map(|rate| Line::new(link.medium, rate)),
            delay: link.delay.time(),
            mtu: link.mtu.map_or(DEFAULT_MTU, |mtu| mtu.bytes()),
            overhead: link.overhead.map_or(0, |overhead| overhead.bytes()),
            vlan: link.vlan,
            jitter: link.jitter.unwrap_or(engpass_model::unit::Duration(0)).time(),
            loss: link.loss.unwrap_or(Share(0)),
            reorder: link.reorder.as_ref().map(|reorder| (reorder.share, reorder.delay.time())),
            queues: [a, b].map(|node| match kind(draft, node) {
                NodeKind::Host(_) => None,
                NodeKind::Switch(_) => match switch(draft, node)? {
                    Switch::Atm(_) => None,
                    Switch::Ethernet(config) => Some(link.queue.as_ref().unwrap_or(&config.queue).clone()),
                },
                NodeKind::Router(index) => {
                    Some(link.queue.as_ref().unwrap_or(&draft.routers[index].as_ref()?.queue).clone())
                }
            }),
        });
    }
    one_mtu(draft, checker, faulty, &links);
    links
}

/// Checks that the switches at the ends of a link support its medium.
fn fits(draft: &Draft, checker: &mut Checker<'_>, name: &str, link: &Link, ends: [NodeId; 2]) -> bool {
    let framing = link.medium.framing(1_000_000);
    for (end, node) in link.ends.iter().zip(ends) {
        let (what, help) = match (switch(draft, node), framing) {
            (Some(Switch::Ethernet(_)), Framing::Cells { .. } | Framing::Packets) => (
                "an Ethernet switch",
                "give the link an Ethernet medium, such as `ethernet-100`, or make the switch a router",
            ),
            (Some(Switch::Atm(_)), Framing::Ethernet | Framing::Packets) => (
                "an ATM switch",
                "give the link an ATM medium, such as `oc-3c`, or put a router where ATM and frames meet",
            ),
            _ => continue,
        };
        let medium = checker.written(&["link", name, "medium"]);
        let message = format!("link `{name}` is `{medium}`, and `{end}` is {what}");
        let diagnostic = Diagnostic::error("wrong-medium", message).help(help);
        checker.report(&["link", name, "medium"], diagnostic);
        return false;
    }
    true
}

/// Checks that all links of an Ethernet switch have the same MTU, because a switch does not fragment.
fn one_mtu(draft: &Draft, checker: &mut Checker<'_>, faulty: &ReportedValues, links: &[LinkEnds]) {
    for (index, (name, config)) in draft.switches.iter().enumerate() {
        if !matches!(config, Some(Switch::Ethernet(_))) {
            continue;
        }
        let node = draft.hosts.len() + index;
        let mut here = (links.iter())
            .filter(|link| link.ends.contains(&node) && !faulty.has(&["link", &link.name, "mtu"]));
        let Some(first) = here.next() else { continue };
        let Some(other) = here.find(|link| link.mtu != first.mtu) else { continue };
        // The MTU that a variant gives is at fault, rather than that of the file.
        let changed = |link: &LinkEnds| checker.is_changed(&["link", &link.name, "mtu"]);
        let (first, other) = if changed(first) && !changed(other) { (other, first) } else { (first, other) };
        let message = format!(
            "link `{}` has an MTU of {} B, and link `{}` at the same Ethernet switch `{name}` one of {} B",
            other.name, other.mtu, first.name, first.mtu
        );
        let help =
            "a switch does not fragment frames: give all its links the same `mtu`, or make it a router";
        let diagnostic = Diagnostic::error("mtu-mismatch", message).help(help);
        checker.report(&["link", &other.name, "mtu"], diagnostic);
    }
}
