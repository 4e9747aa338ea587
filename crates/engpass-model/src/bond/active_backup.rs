//! Active backup: one member carries all packets, and another replaces it when it fails.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{BondModeConfig, Preference, SkipUpDelay};
use crate::forward::{Answer, Forward, Keep, Member, PacketView};

/// One member carries all packets in both directions. When it fails, the first member that is up replaces it (in Linux `active-backup`).
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ActiveBackup {
    /// The preferred member: active at first, and again when it has returned. If not given, the first of `links` is active at first, and no
    /// member is preferred later.
    pub primary: Option<String>,
    /// When the primary becomes active again.
    pub reselect: Reselect,
}

/// When the primary member of a bond becomes active again (in Linux `primary_reselect`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Reselect {
    /// As soon as it is up.
    #[default]
    Always,
    /// When the active member fails.
    Failure,
}

impl BondModeConfig for ActiveBackup {
    fn named(&self) -> Option<(&'static str, &str)> {
        self.primary.as_deref().map(|primary| ("primary", primary))
    }

    fn is_single(&self) -> bool {
        true
    }

    fn rate(&self, members: &[u64]) -> u64 {
        members.iter().copied().max().unwrap_or(0)
    }

    fn preference(&self, members: &[String]) -> Preference {
        let primary = self.primary.as_ref();
        let primary = primary.and_then(|primary| members.iter().position(|member| member == primary));
        Preference { primary, always: self.reselect == Reselect::Always, hurry: SkipUpDelay::NoneActive }
    }

    fn build(&self, members: &[String]) -> Box<dyn Forward> {
        Box::new(State { active: self.preference(members).first_active() })
    }
}

#[derive(Debug)]
struct State {
    active: usize,
}

impl Forward for State {
    fn decide(&mut self, _: &PacketView<'_>, _: &[Member]) -> Answer {
        Answer { member: self.active, keep: Keep::Flow }
    }

    fn is_per_packet(&self) -> bool {
        false
    }

    fn see(&mut self, members: &[Member]) {
        // If no member is active, the last active one drops the packet, because its line is down.
        self.active = members.iter().position(|member| member.active).unwrap_or(self.active);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bond::tests::{VIEW, members};

    #[test]
    fn active_backup_uses_only_the_active_member() {
        let names = ["x", "y", "z"].map(String::from);
        let config = ActiveBackup { primary: Some("y".into()), ..ActiveBackup::default() };
        let mut state = config.build(&names);
        assert_eq!(state.decide(&VIEW, &members(3, &[])).member, 1);
        let mut told = members(3, &[]);
        told[2].active = true;
        state.see(&told);
        assert_eq!(state.decide(&VIEW, &told).member, 2);
        // No member is active.
        state.see(&members(3, &[]));
        assert_eq!(state.decide(&VIEW, &told).member, 2);
        assert_eq!(ActiveBackup::default().build(&names).decide(&VIEW, &told).member, 0);
    }
}
