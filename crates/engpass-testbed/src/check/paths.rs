//! Data paths of hosts and traffic: ways that exist at that end, and hosts with something to bound them.

use engpass_model::complaint::Complaints;
use engpass_model::host::{Host, Side};

use super::Checker;
use crate::diagnostic::Diagnostic;
use crate::read::Draft;

const SIDES: [(Side, &str); 2] = [(Side::Send, "send_path"), (Side::Receive, "receive_path")];

/// What traffic says of its own data paths; hosts check theirs themselves. And a warning for each that has no effect.
pub(super) fn traffic(checker: &mut Checker<'_>, draft: &Draft, name: &str, complaints: &mut Complaints) {
    let Some(Some(traffic)) = draft.traffic.get(name) else { return };
    let (from, to) = traffic.ends();
    for (side, key) in SIDES {
        let end = if side == Side::Send { from } else { to };
        let Some(path) = traffic.data_path(side) else { continue };
        let Some(Some(host)) = draft.hosts.get(end) else { continue };
        host.check_path(side, key, Some(path), complaints);
        no_effect(checker, &["traffic", name, key], end, host);
    }
}

/// A warning for each data path that a host names to no effect.
pub(super) fn host(checker: &mut Checker<'_>, name: &str, host: &Host) {
    for (_, key) in SIDES {
        if !checker.written(&["host", name, key]).is_empty() {
            no_effect(checker, &["host", name, key], name, host);
        }
    }
}

fn no_effect(checker: &mut Checker<'_>, path: &[&str], end: &str, host: &Host) {
    if host.memory.is_some() || host.io_bus.is_some() {
        return;
    }
    let key = path.last().expect("a path has a key");
    let message = format!("`{key}` changes nothing: host `{end}` has no `memory` and no `io_bus`");
    let help = "give the host one of them, such as `memory = { bandwidth = \"20 GB/s\" }`";
    checker.report_key(path, Diagnostic::warning("no-effect", message).help(help));
}
