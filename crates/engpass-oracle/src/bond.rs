//! The state of a bond: its members, those that are up, and the active one (docs/model.md, "Bonds").

use std::collections::{BTreeMap, BTreeSet};

use engpass_model::bond::active_backup::Reselect;
use engpass_model::bond::{Bond, BondMode};
use engpass_testbed::Testbed;
use engpass_testbed::topology::{BondPath, LinkEnds, NodeId};

#[derive(Clone, Debug)]
pub(crate) struct BondState {
    /// Members that the monitor has not declared down. While such a member has an entry in `otherwise`, it is not up
    /// either.
    pub(crate) kept: BTreeSet<usize>,
    /// By member, the number of consecutive checks whose carrier state differs from the recorded one.
    pub(crate) otherwise: BTreeMap<usize, u64>,
    pub(crate) active: Option<usize>,
    /// The member that was active last.
    pub(crate) last_active: usize,
    /// Packets sent over the bond, by node.
    pub(crate) sent: BTreeMap<NodeId, u64>,
    /// Time of the next carrier check, if one is scheduled.
    pub(crate) looks: Option<u64>,
}

/// Returns the bonds of a testbed that are up, with indices in place of names.
pub(crate) fn bonds(testbed: &Testbed, links: &[LinkEnds], node: impl Fn(&str) -> NodeId) -> Vec<BondPath> {
    let bond = |(name, config): (&String, &Bond)| {
        let index = |name: &String| {
            links.iter().position(|link| link.name == *name).expect("the testbed has this link")
        };
        let members: Vec<usize> = config.links.iter().map(index).collect();
        let node = node(&config.node);
        let [one, other] = links[members[0]].ends;
        let peer = if one == node { other } else { one };
        BondPath { name: name.clone(), node, peer, links: members, config: config.clone() }
    };
    testbed.bonds.iter().filter(|(_, config)| config.up).map(bond).collect()
}

/// Returns true if one member of a bond carries all packets, in both directions.
pub(crate) fn is_single(path: &BondPath) -> bool {
    matches!(path.config.mode, BondMode::ActiveBackup(_))
}

/// Returns the bond that chooses among links from a node, if `link` is one of its members: a bond of the node, or a single-member one of the other end.
pub(crate) fn bond_of(bonds: &[BondPath], links: &[LinkEnds], node: NodeId, link: usize) -> Option<usize> {
    if !links[link].ends.contains(&node) {
        return None;
    }
    let of = |path: &BondPath| path.links.contains(&link);
    let own = bonds.iter().position(|path| of(path) && path.node == node);
    own.or_else(|| bonds.iter().position(|path| of(path) && path.peer == node && is_single(path)))
}

/// Returns the preferred active member of a bond.
fn primary(path: &BondPath) -> Option<usize> {
    let BondMode::ActiveBackup(config) = &path.config.mode else { return None };
    config.primary.as_ref().and_then(|name| path.config.links.iter().position(|link| link == name))
}

impl BondState {
    pub(crate) fn new(path: &BondPath) -> Self {
        let active = primary(path).unwrap_or(0);
        Self {
            kept: (0..path.links.len()).collect(),
            otherwise: BTreeMap::new(),
            active: Some(active),
            last_active: active,
            sent: BTreeMap::new(),
            looks: None,
        }
    }

    pub(crate) fn is_up(&self, member: usize) -> bool {
        self.kept.contains(&member) && !self.otherwise.contains_key(&member)
    }

    /// Checks the carriers and updates the members.
    pub(crate) fn check_carriers(&mut self, path: &BondPath, carriers: &[bool]) {
        let monitor = path.config.monitor;
        let looks = |delay: u64| delay.checked_div(monitor.interval.0).unwrap_or(0);
        let (down_looks, up_looks) = (looks(monitor.down_delay.0), looks(monitor.up_delay.0));
        let mut at_once = match path.config.mode {
            BondMode::ActiveBackup(_) => self.active.is_none(),
            BondMode::Hash(_) => !(0..carriers.len()).any(|member| self.is_up(member) && carriers[member]),
            BondMode::RoundRobin(_) => false,
        };
        let mut changes = BTreeSet::new();
        for (member, &carrier) in carriers.iter().enumerate() {
            if carrier == self.kept.contains(&member) {
                let recovers = self.otherwise.remove(&member).is_some() && carrier;
                changes.extend(recovers.then_some(member));
                continue;
            }
            let seen = self.otherwise.entry(member).or_default();
            *seen += 1;
            if carrier && (at_once || *seen > up_looks) {
                at_once = false;
                self.kept.insert(member);
            } else if !carrier && *seen > down_looks {
                self.kept.remove(&member);
            } else {
                continue;
            }
            self.otherwise.remove(&member);
            changes.insert(member);
        }
        let concerns = |member: &usize| {
            if self.is_up(*member) {
                self.active.is_none() || primary(path) == Some(*member)
            } else {
                self.active == Some(*member)
            }
        };
        if changes.iter().any(concerns) {
            self.choose(path);
        }
    }

    /// Selects the active member.
    fn choose(&mut self, path: &BondPath) {
        let always = match &path.config.mode {
            BondMode::ActiveBackup(config) => config.reselect == Reselect::Always,
            _ => false,
        };
        let primary = primary(path).filter(|primary| self.is_up(*primary));
        let stays = self.active.filter(|active| self.is_up(*active));
        let first = (0..path.links.len()).find(|member| self.is_up(*member));
        let chosen = if always { primary.or(stays) } else { stays.or(primary) }.or(first);
        // Without a member that is up, take the one that has waited longest to come up again.
        let waiting = self.otherwise.iter().filter(|(member, _)| !self.kept.contains(member));
        let longest = waiting.max_by_key(|(member, seen)| (**seen, std::cmp::Reverse(**member)));
        self.active = chosen.or(longest.map(|(member, _)| *member));
        if let Some(active) = self.active {
            self.last_active = active;
            self.otherwise.remove(&active);
            self.kept.insert(active);
        }
    }
}
