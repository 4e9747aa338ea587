//! Finds costs of hosts that have no effect: costs of a protocol or direction that no traffic uses, and a `per_byte` that memory or I/O bus hides.

use engpass_model::host::{Cost, Host, Side};
use engpass_model::source::{SourceOutput, Traffic};

use super::Checker;
use crate::diagnostic::Diagnostic;
use crate::read::Draft;

/// One end of a traffic, at the host that is checked: direction and protocol as the engines with cost models see them.
struct Part<'a> {
    traffic: &'a Traffic,
    side: Side,
    tcp: bool,
}

/// Warns about each cost that changes nothing at this point.
pub(super) fn host(checker: &mut Checker<'_>, draft: &Draft, name: &str, host: &Host) {
    let costs = [(Side::Send, "cost", &host.cost), (Side::Receive, "receive_cost", &host.receive_cost)];
    // Most hosts have no costs. Skip the search through all traffic for them.
    if costs.iter().all(|(side, _, cost)| keys(cost, *side).iter().all(|(_, given, ..)| !given)) {
        return;
    }
    // Traffic that could not be read may pay the cost.
    if draft.traffic.values().any(Option::is_none) || draft.elsewhere.contains_key("traffic") {
        return;
    }
    let parts: Vec<Part<'_>> =
        draft.traffic.values().flatten().flat_map(|traffic| parts(traffic, name)).collect();
    for (side, table, cost) in costs {
        for (key, given, udp, tcp) in keys(cost, side) {
            if !given {
                continue;
            }
            let serves = |part: &&Part<'_>| if part.tcp { tcp } else { udp };
            let (cause, help) = if parts.iter().filter(serves).any(|part| part.side == side) {
                if key != "per_byte" || !hidden(host, cost, side, &parts) {
                    continue;
                }
                let cause =
                    "the memory or I/O bus of the host takes longer per byte than the CPU in any case";
                (cause.into(), "remove it, or give the host a faster `memory` or `io_bus`".into())
            } else if (udp || tcp) && twin(key).is_some_and(|twin| pays(twin, cost, side, &parts)) {
                // A table that a probe wrote for a whole host has the costs of both protocols, so an unused one is normal.
                continue;
            } else {
                nobody(name, (table, key), (udp, tcp), side, &parts)
            };
            let message = format!("`{key}` has no effect: {cause}");
            let found = Diagnostic::warning("no-effect", message).help(help).only_if_at_every_point("");
            checker.report_key(&["host", name, table, key], found);
        }
    }
}

/// Returns the ends of this traffic at this host.
fn parts<'a>(traffic: &'a Traffic, name: &str) -> Vec<Part<'a>> {
    let tcp = match traffic.sends() {
        SourceOutput::Writes(_) => true,
        SourceOutput::Datagrams { .. } => false,
        // Generators need no CPU of the host, and traffic that only real hosts make has the costs of real hosts.
        SourceOutput::OnRealHosts(_) | SourceOutput::Cells(_) => return Vec::new(),
    };
    let (from, _) = traffic.ends();
    let receivers = traffic.receivers().into_iter().map(|to| (to, Side::Receive));
    [(from, Side::Send)]
        .into_iter()
        .chain(receivers)
        .filter(|(end, _)| *end == name)
        .map(|(_, side)| Part { traffic, side, tcp })
        .collect()
}

/// Returns the costs of one direction: the key; whether it is positive (`per_byte`: whether it is given); whether it applies to UDP; whether it
/// applies to TCP.
fn keys(cost: &Cost, side: Side) -> [(&'static str, bool, bool, bool); 6] {
    let some = |time: Option<engpass_model::unit::Duration>| time.is_some_and(|time| time.0 > 0);
    [
        ("per_datagram", some(cost.per_datagram), true, false),
        ("per_fragment", some(cost.per_fragment), true, false),
        ("per_byte", cost.per_byte.is_some(), true, true),
        ("per_write", some(cost.per_write), false, side == Side::Send),
        ("per_segment", some(cost.per_segment), false, true),
        ("per_ack", some(cost.per_ack), false, true),
    ]
}

/// Returns the cost of the other protocol that usually stands in the same table as this cost.
fn twin(key: &str) -> Option<&'static str> {
    like(if key == "per_ack" { "per_segment" } else { key })
}

/// Returns the corresponding cost of the other protocol.
fn like(key: &str) -> Option<&'static str> {
    match key {
        "per_datagram" => Some("per_write"),
        "per_write" => Some("per_datagram"),
        "per_fragment" => Some("per_segment"),
        "per_segment" => Some("per_fragment"),
        _ => None,
    }
}

/// Returns true if this cost is given and applies to some traffic of the host.
fn pays(key: &str, cost: &Cost, side: Side, parts: &[Part<'_>]) -> bool {
    keys(cost, side).into_iter().any(|(name, given, udp, tcp)| {
        name == key && given && parts.iter().any(|part| part.side == side && if part.tcp { tcp } else { udp })
    })
}

/// Returns the cause and the help text for a cost that applies to no traffic.
fn nobody(
    host: &str,
    (table, key): (&str, &str),
    (udp, tcp): (bool, bool),
    side: Side,
    parts: &[Part<'_>],
) -> (String, String) {
    if !udp && !tcp {
        let cause = "a receiving TCP application does not write".into();
        return (cause, "remove it, or move it to `cost`, which applies to sending".into());
    }
    let (does, other) = match side {
        Side::Send => ("begins", "receive_cost"),
        Side::Receive => ("ends", "cost"),
    };
    let protocol = match (udp, tcp) {
        (true, false) => "UDP ",
        (false, true) => "TCP ",
        _ => "",
    };
    let cause = format!("no {protocol}traffic {does} at `{host}`");
    let here = parts.iter().any(|part| part.side == side);
    let there = parts.iter().any(|part| part.side != side && if part.tcp { tcp } else { udp });
    let help = match like(key).filter(|_| here) {
        _ if there => format!("move it from `{table}` to `{other}`"),
        Some("per_write") if side == Side::Receive => "remove it".into(),
        Some(instead) => {
            format!(
                "remove it, or use `{instead}`, the corresponding cost for {}",
                if udp { "TCP" } else { "UDP" }
            )
        }
        None => "remove it".into(),
    };
    (cause, help)
}

/// Returns true if memory or I/O bus hides the CPU cost of a byte: the host has a single traffic without other costs, whose bytes take equally long with and
/// without the cost. With several traffics, which share the CPU, every cost may count.
fn hidden(host: &Host, cost: &Cost, side: Side, parts: &[Part<'_>]) -> bool {
    let [part] = parts else { return false };
    let others = keys(cost, side)
        .into_iter()
        .any(|(key, given, udp, tcp)| key != "per_byte" && given && if part.tcp { tcp } else { udp });
    let own = part.traffic.data_path(side);
    let mut without = host.clone();
    match side {
        Side::Send => without.cost.per_byte = None,
        Side::Receive => without.receive_cost.per_byte = None,
    }
    let whole = |host: &Host| host.transfer(side, own).map(|(_, transfer)| transfer.whole);
    !others && host.pauses.is_none() && whole(host).is_some() && whole(host) == whole(&without)
}
