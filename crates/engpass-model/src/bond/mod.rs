//! Bonds: several links between two nodes that act as one interface of a host or Ethernet switch (link aggregation; in Linux the bonding
//! driver).
//!
//! A *mode* chooses the member that carries a packet. A *monitor* checks the carriers of the links periodically and reports to the mode
//! which links are up.

pub mod active_backup;
pub mod hash;
pub mod monitor;
pub mod round_robin;

pub use active_backup::ActiveBackup;
pub use hash::{BondHash, HashLayers};
pub use monitor::{Monitor, Monitoring, Preference, SkipUpDelay};
pub use round_robin::BondRoundRobin;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::component_family::family;
use crate::forward::Forward;
use crate::range_errors::RangeErrors;

family! {
    /// A bond mode, by its kind.
    BondMode, "bond mode": BondModeConfig {
        "hash" => Hash(BondHash),
        "round-robin" => RoundRobin(BondRoundRobin),
        "active-backup" => ActiveBackup(ActiveBackup),
    }
}

/// The settings of a bond mode.
pub trait BondModeConfig {
    /// The member that the file names, if any: its key and the link.
    fn named(&self) -> Option<(&'static str, &str)> {
        None
    }

    /// Whether one member carries all packets in both directions. The node at the other end then sends on the same member.
    fn is_single(&self) -> bool {
        false
    }

    /// Maximum total rate of members with these rates.
    fn rate(&self, members: &[u64]) -> u64 {
        members.iter().sum()
    }

    /// Which of these members is preferred as active, and when a returning member skips the up delay.
    fn preference(&self, members: &[String]) -> Preference;

    /// Creates the state of a bond with these members.
    fn build(&self, members: &[String]) -> Box<dyn Forward>;
}

impl Default for BondMode {
    fn default() -> Self {
        Self::Hash(BondHash::default())
    }
}

/// Links of a host or an Ethernet switch that act as one interface. All lead to the same node. Traffic from that node takes the first link,
/// unless it has a bond of the same links.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Bond {
    /// The host or Ethernet switch that has the bond.
    pub node: String,
    /// Member links: at least two between the same two nodes, in the order in which the mode counts them.
    pub links: Vec<String>,
    /// How the bond chooses the member that carries a packet.
    #[serde(default)]
    pub mode: BondMode,
    /// How the bond detects that a member is down.
    #[serde(default)]
    pub monitor: Monitoring,
    /// Whether the bond is up. If not, packets are forwarded as if the bond did not exist.
    #[serde(default = "up")]
    pub up: bool,
}

fn up() -> bool {
    true
}

/// Maximum number of members: more than the ports of any network card.
pub const MOST_MEMBERS: usize = 64;

impl Bond {
    /// Adds errors for values that are invalid regardless of other components.
    pub fn check(&self, errors: &mut RangeErrors) {
        if !(2..=MOST_MEMBERS).contains(&self.links.len()) {
            let cause = "a bond joins several links";
            let help = format!("list 2 to {MOST_MEMBERS} links; this list has {}", self.links.len());
            errors.add(&["links"], cause, help);
        }
        let mut inner = RangeErrors::default();
        self.monitor.check(&mut inner);
        errors.under(&["monitor"], inner);
    }

    /// Creates the monitor of the members, all of which are up.
    pub fn monitor(&self) -> Monitor {
        Monitor::new(self.monitor, self.mode.config().preference(&self.links), self.links.len())
    }

    /// Creates the state of the mode.
    pub fn policy(&self) -> Box<dyn Forward> {
        self.mode.config().build(&self.links)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::forward::{Headers, Member, PacketView};

    pub(super) const HEADS: Headers =
        Headers { source: 0x0a00_0001, destination: 0x0a00_0002, protocol: 17, ports: [49_152, 5001] };

    pub(super) const VIEW: PacketView<'_> = PacketView { heads: &HEADS, fragment: false, macs: [1, 2] };

    /// `count` members, all up except those in `down`.
    pub(super) fn members(count: usize, down: &[usize]) -> Vec<Member> {
        (0..count).map(|index| Member { up: !down.contains(&index), ..Member::of_weight(1) }).collect()
    }

    fn read(json: serde_json::Value) -> Bond {
        serde_json::from_value(json).expect("the test's JSON is valid")
    }

    #[test]
    fn bond_defaults_match_linux() {
        let bond = read(serde_json::json!({ "node": "a", "links": ["x", "y"] }));
        assert_eq!(bond.mode, BondMode::Hash(BondHash { layers: HashLayers::Layer2 }));
        assert_eq!(bond.monitor, Monitoring::default());
        let mut errors = RangeErrors::default();
        bond.check(&mut errors);
        assert_eq!(errors, RangeErrors::default());
    }

    #[test]
    fn bond_rejects_invalid_values() {
        let bond = read(serde_json::json!({
            "node": "a", "links": ["x"],
            "monitor": { "interval": "0 s", "down_delay": "1 s" },
        }));
        let mut errors = RangeErrors::default();
        bond.check(&mut errors);
        let paths: Vec<String> = errors.into_iter().map(|complaint| complaint.path.join(".")).collect();
        assert_eq!(paths, ["links", "monitor.down_delay"]);
    }
}
