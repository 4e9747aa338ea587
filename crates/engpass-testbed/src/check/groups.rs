//! Checks multicast traffic against other traffic: names of receivers, and groups that mix on real hosts.

use engpass_model::source::{Multicast, Traffic, multicast};

use super::Checker;
use crate::diagnostic::Diagnostic;
use crate::findings::Findings;
use crate::read::Draft;
use crate::tree::Node;

/// Reports traffic whose name is that of another traffic's receiver, because tables name receivers `FLOW to HOST`. Warns about several traffics to one group
/// with different receivers, because every receiver of the group gets the packets of all of them.
pub(super) fn check(draft: &Draft, tree: &Node, found: &mut Findings) {
    let mut checker = Checker::new(tree, found);
    let groups = draft.traffic.iter().filter_map(|(name, traffic)| match traffic {
        Some(Traffic::Multicast(config)) => Some((name.as_str(), config)),
        _ => None,
    });
    let groups: Vec<(&str, &Multicast)> = groups.collect();
    for (place, (name, config)) in groups.iter().enumerate() {
        for host in config.to.iter().filter(|_| config.to.len() > 1) {
            let receiver = multicast::receiver_name(name, host);
            if draft.traffic.contains_key(&receiver) {
                let message = format!("`{receiver}` is also the name of a receiver of traffic `{name}`");
                let help = "give this traffic another name: tables have a row for each receiver of a group";
                let found = Diagnostic::error("duplicate-name", message).help(help);
                checker.report_key(&["traffic", &receiver], found);
            }
        }
        // With equal sets of receivers, no host gets packets that are not meant for it.
        let differs = |(_, other): &&(&str, &Multicast)| {
            let lacks =
                |one: &Multicast, other: &Multicast| other.to.iter().any(|host| !one.to.contains(host));
            other.group == config.group && (lacks(config, other) || lacks(other, config))
        };
        let before = groups[..place].iter().rev().find(differs);
        if let Some((other, _)) = before {
            let group = config.group;
            let message = format!(
                "`{other}` and `{name}` send to the same group, `{group}`: on real hosts and in `emulate`, their receivers get the datagrams of both"
            );
            let help = format!(
                "give `{name}` another `group`; `simulate` and `limit` treat the two as separate groups"
            );
            let found = Diagnostic::warning("shared-group", message).help(help);
            checker.report(&["traffic", name, "group"], found);
        }
    }
}
