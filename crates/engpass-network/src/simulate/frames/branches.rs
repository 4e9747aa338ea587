//! Multicast copies: routers make them when their engine has finished a packet, switches when the packet arrives.

use engpass_testbed::Topology;
use engpass_testbed::topology::NodeKind;

use super::build::first_within;
use super::{Frames, Packet, Route, Step};
use crate::simulate::Network;

impl Frames {
    /// Adds the routes of the branches of all multicast trees to the step table, tree by tree.
    pub(super) fn add_branches(&mut self, topology: &Topology) {
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

/// Returns a step that stands for a router which copies packets; it has no line.
fn behind(router: usize) -> Step {
    Step { router: router as u32, ..Step::END }
}

impl Network {
    /// Handles a packet at the node where its branch ends: the copies are made at once, or after the processing time of the router.
    #[cold]
    pub(super) fn on_branch_point(&mut self, packet: u32) {
        let Packet { datagram, ip, .. } = *self.shared.datagrams.packet(packet);
        let router = self
            .shared
            .copying_router(datagram)
            .filter(|router| !self.frames.engines[*router].takes_no_time());
        let Some(router) = router else {
            self.copy_onward(packet);
            return;
        };
        // A packet that finds no room decides nothing.
        let first = self.first_engine(router, packet);
        let copies = match self.frames.engines[first].has_room(ip) {
            true => self.shared.decide_copies(datagram, self.now),
            false => 0,
        };
        self.process(behind(router), packet, copies);
    }

    /// Copies a packet to the branches that begin at the node where its own branch ends.
    pub(super) fn copy_onward(&mut self, id: u32) {
        let whole = *self.shared.datagrams.packet(id);
        if let Some(router) = self.shared.copying_router(whole.datagram)
            && whole.ttl <= 1
        {
            self.shared.datagrams.packet_mut(id).ttl = 0;
            self.drop_or_fragment(id, behind(router), self.now);
            return;
        }
        // For a packet that has left a tunnel here, the copies were not decided before.
        self.shared.decide_copies(whole.datagram, self.now);
        let stamp = self.shared.ledger.snapshot_of(id);
        let mut copies = Vec::new();
        for (datagram, route) in self.shared.copies_of(whole.datagram) {
            let place = self.frames.routes[route as usize].first;
            let copy = self.shared.datagrams.insert_packet(Packet { datagram, place, since: 0, ..whole });
            self.shared.datagrams[datagram].refs += 1;
            self.shared.ledger.set_snapshot(copy, stamp.as_ref());
            if let Some(trace) = &mut self.shared.trace {
                trace.copied(id, copy);
            }
            copies.push((copy, place));
        }
        self.shared.datagrams[whole.datagram].arrived += 1;
        self.record_hops_carried(id);
        self.shared.datagrams.release_packet(id);
        self.shared.release_datagram(whole.datagram);
        for (copy, place) in copies {
            self.forward(copy, place, self.now, true);
        }
    }
}
