//! One member carries everything, and another one takes its place when it fails.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::BondModeConfig;
use crate::forward::{Answer, Forward, Keep, Member, View};

/// One member carries everything, in both directions; when it fails, the first that is up takes its place (in Linux `active-backup`).
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ActiveBackup {
    /// The member that carries everything at first, and again when it has come back; the first of `links` at first, and none later, if not given.
    pub primary: Option<String>,
    /// When the primary takes its place again.
    pub reselect: Reselect,
}

/// When the primary member of a bond takes its place again (in Linux `primary_reselect`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Reselect {
    /// As soon as it is up.
    #[default]
    Always,
    /// When the member that carries everything fails.
    Failure,
}

impl BondModeConfig for ActiveBackup {
    fn named(&self) -> Option<(&'static str, &str)> {
        self.primary.as_deref().map(|primary| ("primary", primary))
    }

    fn is_single(&self) -> bool {
        true
    }

    fn build(&self, members: &[String]) -> Box<dyn Forward> {
        let primary = self.primary.as_ref();
        let primary = primary.and_then(|primary| members.iter().position(|member| member == primary));
        let reselect = self.reselect;
        Box::new(State { primary, reselect, active: primary.unwrap_or(0) })
    }
}

#[derive(Debug)]
struct State {
    primary: Option<usize>,
    reselect: Reselect,
    active: usize,
}

impl State {
    /// The member that is active next, as `bond_find_best_slave` of Linux finds it.
    fn best(&self, members: &[Member]) -> usize {
        let is_up = |member: &usize| members[*member].up;
        let primary = self.primary.filter(is_up);
        let active = Some(self.active).filter(is_up);
        let best = match (primary, active) {
            (Some(primary), Some(_)) if self.reselect == Reselect::Always => Some(primary),
            (_, Some(active)) => Some(active),
            (primary, None) => primary.or_else(|| (0..members.len()).find(is_up)),
        };
        // Where none is up, the line that is down drops the packet.
        best.unwrap_or(self.active)
    }
}

impl Forward for State {
    fn decide(&mut self, _: &View<'_>, _: &[Member]) -> Answer {
        Answer { member: self.active, keep: Keep::Flow }
    }

    fn is_per_packet(&self) -> bool {
        false
    }

    fn see(&mut self, members: &[Member]) {
        self.active = self.best(members);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bond::tests::{VIEW, members};

    /// The active member at first, and after each of these sets of three members is down.
    fn active(config: &ActiveBackup, downs: &[&[usize]]) -> Vec<usize> {
        let names = ["x", "y", "z"].map(String::from);
        let mut state = config.build(&names);
        let mut all = vec![state.decide(&VIEW, &members(3, &[])).member];
        for down in downs {
            let members = members(3, down);
            state.see(&members);
            all.push(state.decide(&VIEW, &members).member);
        }
        all
    }

    #[test]
    fn the_first_that_is_up_takes_its_place_and_keeps_it() {
        let config = ActiveBackup::default();
        assert_eq!(
            active(&config, &[&[], &[0], &[], &[1], &[], &[0], &[0, 1, 2], &[0, 1]]),
            [0, 0, 1, 1, 0, 0, 1, 1, 2]
        );
    }

    #[test]
    fn a_primary_comes_back_at_once_or_when_the_other_fails() {
        let always = ActiveBackup { primary: Some("y".into()), ..ActiveBackup::default() };
        let downs: [&[usize]; 4] = [&[1], &[], &[0, 1], &[0]];
        assert_eq!(active(&always, &downs), [1, 0, 1, 2, 1]);
        let failure = ActiveBackup { reselect: Reselect::Failure, ..always };
        assert_eq!(active(&failure, &[&[1], &[], &[0], &[0]]), [1, 0, 0, 1, 1]);
    }
}
