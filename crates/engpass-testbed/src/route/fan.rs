//! All ways between which policies choose.

use std::collections::BTreeMap;

use super::ways::Ways;
use crate::topology::{Fan, Leg, NodeId};

impl Ways {
    /// The ways there and back of the packets between two nodes; `None` where no policy has a choice in either direction, and where no
    /// way leads.
    pub(crate) fn fans(&self, from: NodeId, to: NodeId) -> Option<Box<[Fan; 2]>> {
        if !self.has_choices() {
            return None;
        }
        let fans = [self.fan(from, to)?, self.fan(to, from)?];
        let chosen = fans.iter().flat_map(|fan| &fan.at).any(|(_, legs)| legs.len() > 1);
        chosen.then(|| Box::new(fans))
    }

    fn fan(&self, from: NodeId, to: NodeId) -> Option<Fan> {
        let towards = self.towards(to, None);
        let mut at: BTreeMap<NodeId, Vec<Leg>> = BTreeMap::new();
        let mut next = vec![from];
        while let Some(node) = next.pop() {
            if node == to || at.contains_key(&node) {
                continue;
            }
            let mut group = towards.group(node);
            if group.is_empty() {
                return None;
            }
            if !self.chooses(node) {
                group.truncate(1);
            }
            next.extend(group.iter().map(|step| step.to));
            at.insert(node, group.iter().map(|step| step.leg).collect());
        }
        Some(Fan { at: at.into_iter().collect() })
    }
}

/// The least of a figure of all legs that packets there may take; `None` where a leg has none.
pub(crate) fn narrowest(
    legs: &[Leg],
    fans: Option<&[Fan; 2]>,
    of: impl Fn(Leg) -> Option<u64>,
) -> Option<u64> {
    let chosen = fans.into_iter().flat_map(|[there, _]| there.legs());
    let all: Option<Vec<u64>> = legs.iter().copied().chain(chosen).map(of).collect();
    all?.into_iter().min()
}
