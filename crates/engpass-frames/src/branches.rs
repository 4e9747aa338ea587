//! Routes of the branches of multicast trees.

use engpass_testbed::Topology;
use engpass_testbed::topology::NodeKind;

use super::build::first_within;
use super::{Frames, Route};

impl Frames {
    /// Adds the routes of the branches of all multicast trees to the step table, tree by tree.
    pub(crate) fn add_branches(&mut self, topology: &Topology) {
        for (flow, path) in topology.flows.iter().enumerate() {
            let whole = self.routes[2 * flow];
            for branch in &path.branches {
                let first = self.steps.len() as u32;
                self.add_run(topology, &branch.legs, &first_within(topology, &branch.legs), false);
                self.routes.push(Route { first, hops: 0, ..whole });
                self.branches.push(self.routes.len() as u32 - 1);
                if let NodeKind::Router(router) = topology.kind(branch.to) {
                    self.engines[router].never_ahead = true;
                }
            }
            if let Some(first) = self.branches.len().checked_sub(path.branches.len())
                && !path.branches.is_empty()
            {
                self.routes[2 * flow] = self.routes[self.branches[first] as usize];
            }
        }
    }
}
