//! Checks the data paths of hosts and traffic: that the path exists in the direction, and that the host has a memory or I/O bus that limits it.

use engpass_model::host::{Host, Memory, Side};
use engpass_model::range_errors::RangeErrors;
use engpass_model::unit::ByteRate;

use super::Checker;
use crate::diagnostic::Diagnostic;
use crate::read::Draft;

const SIDES: [(Side, &str); 2] = [(Side::Send, "send_path"), (Side::Receive, "receive_path")];

/// Checks the data paths that traffic sets; hosts check their own. Warns if neither host has a memory or an I/O bus.
pub(super) fn traffic(checker: &mut Checker<'_>, draft: &Draft, name: &str, errors: &mut RangeErrors) {
    let Some(Some(traffic)) = draft.traffic.get(name) else { return };
    let (from, to) = traffic.ends();
    let (Some(Some(sender)), Some(Some(receiver))) = (draft.hosts.get(from), draft.hosts.get(to)) else {
        return;
    };
    for (side, key) in SIDES {
        let Some(path) = traffic.data_path(side) else { continue };
        let host = if side == Side::Send { sender } else { receiver };
        host.check_path(side, key, Some(path), errors);
        if !bounds(sender) && !bounds(receiver) {
            let hosts = format!("neither `{from}` nor `{to}` has a `memory` or an `io_bus`");
            no_effect(checker, &["traffic", name, key], &hosts);
        }
    }
}

/// Warns about each data path of a host that has no effect, and about rates above what a slower part allows.
pub(super) fn host(checker: &mut Checker<'_>, name: &str, host: &Host) {
    for (_, key) in SIDES {
        if !bounds(host) && !checker.written(&["host", name, key]).is_empty() {
            no_effect(checker, &["host", name, key], "the host has no `memory` and no `io_bus`");
        }
    }
    let mut slower = |keys: [&str; 2], most: ByteRate, why: &str| {
        let message = format!("`{}` is higher than possible: {why}, at most {}", keys[1], most);
        let found =
            Diagnostic::warning("no-effect", message).help("give a lower rate, or a higher `bandwidth`");
        checker.report(&["host", name, keys[0], keys[1]], found);
    };
    // A zero bandwidth is reported elsewhere.
    if let Some(memory) = host.memory.as_ref().filter(|memory| memory.bandwidth.0 > 0) {
        let copies = if memory.write_allocate {
            "a copy with `write_allocate` reads the memory twice and writes it"
        } else {
            "a copy reads and writes the memory"
        };
        // Encryption within the cache does not move data to or from memory.
        let encryption = memory.encryption.filter(|_| memory.resident().is_none());
        for (key, rate, transfers, why) in [
            ("copy", memory.copy, memory.copy_transfers(), copies),
            ("checksum", memory.checksum, 1, "a checksum reads the memory"),
            (
                "encryption",
                encryption,
                Memory::ENCRYPTION_TRANSFERS,
                "encryption reads and writes the memory",
            ),
        ] {
            let most = memory.most(transfers);
            if rate.is_some_and(|rate| rate > most) {
                slower(["memory", key], most, why);
            }
        }
    }
    if let Some(bus) = host.io_bus.as_ref().filter(|bus| bus.bandwidth.0 > 0) {
        for (key, rate) in [("to_device", bus.to_device), ("from_device", bus.from_device)] {
            if rate.is_some_and(|rate| rate > bus.bandwidth) {
                slower(["io_bus", key], bus.bandwidth, "DMA uses the bus");
            }
        }
    }
}

fn bounds(host: &Host) -> bool {
    host.memory.is_some() || host.io_bus.is_some()
}

fn no_effect(checker: &mut Checker<'_>, path: &[&str], why: &str) {
    let key = path.last().expect("a key path is not empty");
    let message = format!("`{key}` has no effect: {why}");
    let help = "add one of them to a host, such as `memory = { bandwidth = \"20 GB/s\" }`";
    checker.report_key(path, Diagnostic::warning("no-effect", message).help(help));
}
