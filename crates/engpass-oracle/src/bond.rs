//! A bond by itself: its members, which of them are up, and which one is active (docs/model.md, "Bonds").

use std::collections::{BTreeMap, BTreeSet};

use engpass_model::bond::active_backup::Reselect;
use engpass_model::bond::{Bond, BondMode};
use engpass_testbed::Testbed;
use engpass_testbed::topology::{BondPath, LinkEnds, NodeId};

/// What a bond knows and does.
#[derive(Clone, Debug)]
pub(crate) struct BondState {
    pub(crate) up: BTreeSet<usize>,
    /// By member, how many looks one after the other have found its carrier otherwise than it counts.
    pub(crate) otherwise: BTreeMap<usize, u64>,
    pub(crate) active: usize,
    /// Packets that it has sent, by node.
    pub(crate) sent: BTreeMap<NodeId, u64>,
    /// When it looks next, if it will.
    pub(crate) looks: Option<u64>,
}

/// The bonds of a testbed, with names as indices.
pub(crate) fn bonds(testbed: &Testbed, links: &[LinkEnds], node: impl Fn(&str) -> NodeId) -> Vec<BondPath> {
    let bond = |(name, config): (&String, &Bond)| {
        let index =
            |name: &String| links.iter().position(|link| link.name == *name).expect("a link of the testbed");
        let members: Vec<usize> = config.links.iter().map(index).collect();
        let node = node(&config.node);
        let [one, other] = links[members[0]].ends;
        let peer = if one == node { other } else { one };
        BondPath { name: name.clone(), node, peer, links: members, config: config.clone() }
    };
    testbed.bonds.iter().filter(|(_, config)| config.up).map(bond).collect()
}

/// Whether one member of a bond carries everything, in both directions.
fn is_single(path: &BondPath) -> bool {
    matches!(path.config.mode, BondMode::ActiveBackup(_))
}

/// The bond that chooses among links that begin at a node, if this is one of them: one of the node's own, or a single-member one of the other end.
pub(crate) fn bond_of(bonds: &[BondPath], links: &[LinkEnds], node: NodeId, link: usize) -> Option<usize> {
    if !links[link].ends.contains(&node) {
        return None;
    }
    let of = |path: &BondPath| path.links.contains(&link);
    let own = bonds.iter().position(|path| of(path) && path.node == node);
    own.or_else(|| bonds.iter().position(|path| of(path) && path.peer == node && is_single(path)))
}

impl BondState {
    pub(crate) fn new(path: &BondPath) -> Self {
        let active = match &path.config.mode {
            BondMode::ActiveBackup(config) => config
                .primary
                .as_ref()
                .and_then(|primary| path.config.links.iter().position(|link| link == primary)),
            _ => None,
        };
        Self {
            up: (0..path.links.len()).collect(),
            otherwise: BTreeMap::new(),
            active: active.unwrap_or(0),
            sent: BTreeMap::new(),
            looks: None,
        }
    }

    /// A look at the carriers.
    pub(crate) fn look(&mut self, carriers: &[bool], down_looks: u64, up_looks: u64) {
        let mut none = self.up.is_empty();
        for (member, carrier) in carriers.iter().enumerate() {
            if *carrier == self.up.contains(&member) {
                self.otherwise.remove(&member);
                continue;
            }
            let seen = self.otherwise.entry(member).or_default();
            *seen += 1;
            let enough = if *carrier { *seen > up_looks || none } else { *seen > down_looks };
            if enough {
                self.otherwise.remove(&member);
                if *carrier {
                    self.up.insert(member);
                    none = false;
                } else {
                    self.up.remove(&member);
                }
            }
        }
        if self.up.is_empty() {
            let longest =
                self.otherwise.iter().max_by_key(|(member, seen)| (**seen, std::cmp::Reverse(**member)));
            if let Some((&member, _)) = longest {
                self.otherwise.remove(&member);
                self.up.insert(member);
            }
        }
    }

    /// Members have gone down or come up: which of them is active.
    pub(crate) fn reselect(&mut self, path: &BondPath) {
        let BondMode::ActiveBackup(config) = &path.config.mode else { return };
        let primary =
            config.primary.as_ref().and_then(|name| path.config.links.iter().position(|link| link == name));
        let primary = primary.filter(|primary| self.up.contains(primary));
        let stays = self.up.contains(&self.active);
        match primary {
            Some(primary) if !stays || config.reselect == Reselect::Always => self.active = primary,
            _ if stays => {}
            _ => self.active = self.up.first().copied().unwrap_or(self.active),
        }
    }
}
