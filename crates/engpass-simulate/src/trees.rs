//! Multicast: nodes copy datagrams where the paths to their receivers part.
//!
//! A tree has branches. Each branch carries a datagram of its own: packets end where a branch ends, and the node there copies each of them to every branch that
//! begins there. So a branch has ledger entries, losses and fragments like any route. A datagram lost on a branch is lost on all branches behind it. The
//! traffic of a branch counts as delivered if any receiver behind it got the whole datagram.
//!
//! A branch is posted after all branches behind it, when it is known whether a receiver got the datagram. Therefore a datagram and its copies refer to each
//! other. While packets of the original may still arrive, it holds one reference to each copy; then it releases them ([`SharedState::end_branch`]). From then
//! on each remaining copy holds a reference to the original, and the last one to end releases it ([`SharedState::branch_ends`], called a second time).

use std::collections::BTreeMap;

use engpass_ledger::DeliveryStatus;
use engpass_testbed::topology::{NodeId, NodeKind};
use engpass_testbed::{Testbed, Topology};

use super::flow_counters::DropLocation;
use super::members::Members;
use super::packet_store::{Datagram, Destination};
use super::shared_state::SharedState;

/// All multicast trees of a testbed, and the datagrams in flight in them.
#[derive(Debug, Default)]
pub(super) struct Trees {
    /// Branches of all trees, in the order of the file, then of the tree.
    branches: Vec<TreeBranch>,
    /// By traffic, the first branch of its tree, and the counter indices of its receivers.
    roots: BTreeMap<u32, (u32, Vec<usize>)>,
    /// First destination number of branches, after endpoints, ICMP messages and ARP packets.
    first_destination: u32,
    /// Datagrams that were copied, until all copies are gone.
    copied: BTreeMap<u32, Copied>,
    /// By copy, its original.
    of: BTreeMap<u32, u32>,
    /// Receivers that join and leave.
    pub(super) members: Members,
}

const HAS_TREES: &str = "the network has multicast trees";

/// A branch of a tree.
#[derive(Debug)]
struct TreeBranch {
    /// Index of its counters: of the traffic, or of one of its receivers.
    tally: u32,
    route: u32,
    /// The branches that begin where it ends.
    onward: Vec<u32>,
    /// The node at which it ends.
    to: NodeId,
    /// The router at which it ends; `None` if it ends at a host or switch.
    router: Option<usize>,
    /// Number of receivers behind it to which it forwards. A node makes no copies for a branch with none.
    forwards: u32,
}

/// A datagram that was copied.
#[derive(Debug, Default)]
struct Copied {
    /// In the order of the branches, pruned ones included.
    copies: Vec<u32>,
    /// Branches that were pruned when the first packet was copied; the node copies no packet of the datagram to them. Empty if there were none.
    pruned: Vec<u32>,
    /// The node has decided which branches get copies.
    is_decided: bool,
    /// Number of its fragments when it was last copied.
    fragments: u16,
    /// Nothing of it is in flight any more.
    has_ended: bool,
    /// A receiver got the datagram.
    was_received: bool,
}

impl Trees {
    /// Builds the trees of a testbed from the routes of all branches. Counters of receivers follow those of all traffic.
    pub(super) fn new(
        testbed: &Testbed,
        topology: &Topology,
        routes: &[u32],
        first_destination: usize,
    ) -> Self {
        let mut trees = Self { first_destination: first_destination as u32, ..Self::default() };
        let mut receivers = topology.flows.len();
        for (flow, path) in topology.flows.iter().enumerate().filter(|(_, path)| !path.branches.is_empty()) {
            let first = trees.branches.len();
            let mut tallies = Vec::new();
            let mut leaves = BTreeMap::new();
            for (place, branch) in path.branches.iter().enumerate() {
                let behind = path.branches.iter().enumerate().filter(|(_, other)| other.of == Some(place));
                let onward: Vec<u32> = behind.map(|(other, _)| (first + other) as u32).collect();
                let router = match topology.kind(branch.to) {
                    NodeKind::Router(router) => Some(router),
                    NodeKind::Host(_) | NodeKind::Switch(_) => None,
                };
                let tally = if onward.is_empty() { receivers } else { flow };
                if onward.is_empty() {
                    tallies.push(receivers);
                    let branches = path.branches_to(place).into_iter().map(|place| (first + place) as u32);
                    leaves.insert(branch.to, (receivers, branches.collect::<Vec<u32>>()));
                    receivers += 1;
                }
                let route = routes[trees.branches.len()];
                let (tally, to) = (tally as u32, branch.to);
                trees.branches.push(TreeBranch { tally, route, onward, to, router, forwards: 0 });
            }
            let always =
                leaves.iter().filter(|(host, _)| path.members.iter().all(|member| member.host != **host));
            for (_, (_, branches)) in always {
                branches.iter().for_each(|branch| trees.branches[*branch as usize].forwards += 1);
            }
            trees.members.add(testbed, flow, path, &leaves);
            trees.roots.insert(flow as u32, (first as u32, tallies));
        }
        for member in trees.members.forwarded() {
            member.branches.iter().for_each(|branch| trees.branches[*branch as usize].forwards += 1);
        }
        trees
    }

    /// Returns the destination number of datagrams on a branch. It is odd, like the numbers of receiving endpoints.
    fn destination(&self, branch: u32) -> usize {
        (self.first_destination + 2 * branch + 1) as usize
    }

    /// Returns the counter indices of a traffic's receivers, in the order of the branches that end at them (not the order of the file).
    pub(super) fn receivers(&self, flow: usize) -> &[usize] {
        self.roots.get(&(flow as u32)).map_or(&[], |(_, receivers)| receivers)
    }

    /// Returns the traffic of a datagram of a tree, and the routes of the branches to the end of its own, in order.
    pub(super) fn path_of(&self, datagram: &Datagram) -> Option<(u32, Vec<u32>)> {
        let mut branch = self.branch_of(datagram)?;
        let mut routes = vec![self.branches[branch as usize].route];
        while let Some(before) = self.branches.iter().position(|other| other.onward.contains(&branch)) {
            routes.insert(0, self.branches[before].route);
            branch = before as u32;
        }
        let root = self.roots.iter().find(|(_, (first, _))| *first == branch);
        Some((*root.expect("a tree has a root").0, routes))
    }

    /// Returns the branch of a datagram.
    fn branch_of(&self, datagram: &Datagram) -> Option<u32> {
        match datagram.to.get() {
            None => self.roots.get(&datagram.flow).map(|(first, _)| *first),
            Some(to) => Some(to.checked_sub(self.first_destination)? / 2),
        }
    }

    /// Returns true if a node copies this datagram.
    pub(super) fn is_copied(&self, datagram: &Datagram) -> bool {
        self.branch_of(datagram).is_some_and(|branch| !self.branches[branch as usize].onward.is_empty())
    }
}

impl SharedState {
    fn trees_mut(&mut self) -> &mut Trees {
        self.trees.as_mut().expect(HAS_TREES)
    }

    /// Returns the receivers that join and leave.
    pub(super) fn members_mut(&mut self) -> &mut Members {
        &mut self.trees_mut().members
    }

    /// Makes the branches to a member begin or stop forwarding packets for it.
    pub(super) fn forward_to(&mut self, member: u32, begins: bool) {
        let trees = self.trees_mut();
        for branch in trees.members.get_mut(member).branches.clone() {
            let forwards = &mut trees.branches[branch as usize].forwards;
            *forwards = if begins { *forwards + 1 } else { *forwards - 1 };
        }
    }

    /// Decides, with the first packet of a datagram that comes to the node where it is copied, which branches get copies. Returns their number.
    pub(super) fn decide_copies(&mut self, datagram: u32, now: u64) -> u64 {
        self.begin_copies(datagram);
        let branch = self.branch_of(datagram);
        let Trees { branches, copied, .. } = self.trees_mut();
        let TreeBranch { onward, to, .. } = &branches[branch];
        let to = *to;
        let copied = copied.get_mut(&datagram).expect("the datagram has a copy record");
        let mut lost = Vec::new();
        if !std::mem::replace(&mut copied.is_decided, true) {
            for (copy, next) in copied.copies.iter().zip(onward) {
                if branches[*next as usize].forwards == 0 {
                    copied.pruned.push(*next);
                    lost.push(*copy);
                }
            }
        }
        let count = onward.len() - copied.pruned.len();
        for copy in lost {
            self.lose_datagram(copy, DropLocation::NoMember(to), now);
        }
        count as u64
    }

    /// Returns true if a node copies this datagram.
    #[inline]
    pub(super) fn is_copied(&self, datagram: u32) -> bool {
        self.trees.as_ref().is_some_and(|trees| trees.is_copied(&self.datagrams[datagram]))
    }

    /// Returns the router that copies a datagram; `None` if a switch or host does.
    pub(super) fn copying_router(&self, datagram: u32) -> Option<usize> {
        self.trees.as_ref()?.branches[self.branch_of(datagram)].router
    }

    /// Returns the routes of the branches that begin where the branch of a datagram of a tree ends, those that do not forward included.
    pub(super) fn branches_behind(&self, datagram: u32) -> Vec<u32> {
        let trees = self.trees.as_ref().expect("the network has multicast trees");
        let onward = &trees.branches[self.branch_of(datagram)].onward;
        onward.iter().map(|next| trees.branches[*next as usize].route).collect()
    }

    /// Returns true if a datagram belongs to a tree.
    #[inline]
    pub(super) fn is_of_tree(&self, datagram: u32) -> bool {
        self.trees.as_ref().is_some_and(|trees| trees.branch_of(&self.datagrams[datagram]).is_some())
    }

    /// Returns the copies of a datagram for the branches that begin where its own ends, with their routes.
    pub(super) fn copies_of(&mut self, datagram: u32) -> Vec<(u32, u32)> {
        self.begin_copies(datagram);
        let fragments = self.datagrams[datagram].fragments;
        let branch = self.branch_of(datagram);
        let Trees { branches, copied, .. } = self.trees.as_deref_mut().expect(HAS_TREES);
        let copied = copied.get_mut(&datagram).expect("the datagram has a copy record");
        let more = fragments - std::mem::replace(&mut copied.fragments, fragments);
        // Fragments made by routers before are still to come.
        copied.copies.iter().for_each(|copy| self.datagrams[*copy].fragments += more);
        let all = copied.copies.iter().zip(&branches[branch].onward);
        let kept = all.filter(|(_, next)| !copied.pruned.contains(next));
        kept.map(|(copy, next)| (*copy, branches[*next as usize].route)).collect()
    }

    fn branch_of(&self, datagram: u32) -> usize {
        let trees = self.trees.as_ref().expect(HAS_TREES);
        trees.branch_of(&self.datagrams[datagram]).expect("the datagram belongs to a multicast tree") as usize
    }

    /// Creates the copies of a datagram, each with a reference by the original, unless they exist.
    fn begin_copies(&mut self, datagram: u32) {
        if self.trees_mut().copied.contains_key(&datagram) {
            return;
        }
        let branch = self.branch_of(datagram);
        let whole = self.datagrams[datagram].clone();
        let mut copies = Vec::new();
        for next in self.trees_mut().branches[branch].onward.clone() {
            let trees = self.trees_mut();
            let (flow, destination) = (trees.branches[next as usize].tally, trees.destination(next));
            let copy = Datagram {
                flow,
                to: Destination::endpoint(destination),
                arrived: 0,
                lost: false,
                refs: 1,
                tracked_per_hop: true,
                trail: engpass_ledger::Trail::default(),
                ..whole.clone()
            };
            let copy = self.begin_datagram(true, copy);
            self.trees_mut().of.insert(copy, datagram);
            copies.push(copy);
        }
        let copied = Copied { copies, fragments: whole.fragments, ..Copied::default() };
        self.trees_mut().copied.insert(datagram, copied);
    }

    /// Counts a datagram whose last packet the sender has handed over now, for each receiver.
    pub(super) fn sent_to_group(&mut self, datagram: u32, now: u64) {
        let Datagram { flow, bytes, begun, .. } = self.datagrams[datagram];
        for tally in self.trees_mut().receivers(flow as usize).to_vec() {
            if self.trees_mut().members.counts(tally, begun) {
                self.flows[tally].count_sent(1, bytes.into(), self.window.holds(now));
            }
        }
        self.mark_sent(datagram);
    }

    fn mark_sent(&mut self, datagram: u32) {
        self.datagrams[datagram].sent = true;
        let copies = self.trees_mut().copied.get(&datagram).map(|copied| copied.copies.clone());
        copies.into_iter().flatten().for_each(|copy| self.mark_sent(copy));
    }

    /// Finishes a datagram of a tree: first when none of it is in flight, and again when all its copies are gone.
    pub(super) fn branch_ends(&mut self, datagram: u32) {
        let is_copied = self.is_copied(datagram);
        let copied = self.trees_mut().copied.get(&datagram);
        if is_copied && !copied.is_some_and(|copied| copied.has_ended) {
            return self.end_branch(datagram);
        }
        let copied = self.trees_mut().copied.remove(&datagram);
        let was_received = copied.map_or(!self.datagrams[datagram].lost, |copied| copied.was_received);
        self.datagrams[datagram].lost |= !was_received;
        self.post_finished_datagram(datagram, false);
        self.ledger.forget_pieces(datagram);
        if !is_copied {
            self.count_loss(datagram);
        }
        let of = self.trees_mut().of.remove(&datagram);
        self.datagrams.release(datagram);
        let Some(of) = of else { return };
        if let Some(copied) = self.trees_mut().copied.get_mut(&of) {
            // No packet is copied any more, so their order does not matter.
            let place = copied.copies.iter().position(|copy| *copy == datagram);
            copied.copies.swap_remove(place.expect("the original lists the copy"));
        }
        if was_received {
            self.note_received(of);
        }
        self.release_datagram(of);
    }

    /// Marks a datagram, and the originals that it was copied from, as received.
    fn note_received(&mut self, datagram: u32) {
        let trees = self.trees_mut();
        let mut at = Some(datagram);
        while let Some(copied) = at.and_then(|datagram| trees.copied.get_mut(&datagram)) {
            copied.was_received = true;
            at = at.and_then(|datagram| trees.of.get(&datagram).copied());
        }
    }

    /// Ends a branch: passes its loss to the copies, which from now on refer to the original.
    fn end_branch(&mut self, datagram: u32) {
        self.begin_copies(datagram);
        let loss = self.loss_of(datagram);
        let copied = self.trees_mut().copied.get_mut(&datagram).expect("the datagram has a copy record");
        copied.has_ended = true;
        let copies = copied.copies.clone();
        self.datagrams[datagram].refs = copies.len() as u32;
        for copy in copies {
            if let Some((at, place)) = loss {
                self.lose_datagram(copy, place, at);
            }
            self.release_datagram(copy);
        }
    }

    /// Passes, at the end of the run, the losses of datagrams in flight to their copies.
    pub(super) fn settle_open_copies(&mut self) {
        if self.trees.is_none() {
            return;
        }
        for datagram in 0..self.datagrams.len() {
            let is_copy = self.trees_mut().of.contains_key(&datagram);
            if self.datagrams[datagram].refs > 0 && !is_copy {
                self.lose_behind(datagram);
            }
        }
    }

    fn lose_behind(&mut self, datagram: u32) {
        if !self.is_copied(datagram) {
            return;
        }
        let loss = self.loss_of(datagram);
        if loss.is_some() {
            self.begin_copies(datagram);
        }
        let copies = self.trees_mut().copied.get(&datagram).map(|copied| copied.copies.clone());
        for copy in copies.into_iter().flatten() {
            if let Some((at, place)) = loss {
                self.lose_datagram(copy, place, at);
            }
            self.lose_behind(copy);
        }
    }

    /// Returns the delivery status of a copied datagram whose copies are in flight at the end of the run.
    pub(super) fn status_of_open_copies(&self, datagram: u32) -> DeliveryStatus {
        let copied = self.trees.as_ref().and_then(|trees| trees.copied.get(&datagram));
        match copied {
            Some(copied) if copied.was_received => DeliveryStatus::Delivered,
            Some(copied)
                if copied
                    .copies
                    .iter()
                    .all(|copy| self.status_of_open_copies(*copy) == DeliveryStatus::Lost) =>
            {
                DeliveryStatus::Lost
            }
            _ if self.datagrams[datagram].lost => DeliveryStatus::Lost,
            _ => DeliveryStatus::InFlight,
        }
    }

    /// Returns true if a datagram counts for the receiver that it is for. Those of members that join and leave count if its sender began with them while the
    /// host was a member.
    pub(super) fn counts_for_receiver(&self, datagram: u32) -> bool {
        let Some(trees) = &self.trees else { return true };
        let this = &self.datagrams[datagram];
        trees.members.counts(this.flow as usize, this.begun)
    }

    /// Notes that a datagram of a group is complete at its host. Returns false if it is not for that host, which then discards it.
    pub(super) fn reaches_receiver(&mut self, datagram: u32, host: NodeId, now: u64) -> bool {
        let tally = self.datagrams[datagram].flow;
        if let Some(trees) = &mut self.trees {
            trees.members.note_arrival(tally, now);
        }
        let counts = self.counts_for_receiver(datagram);
        if !counts {
            self.lose_datagram(datagram, DropLocation::NoMember(host), now);
        }
        counts
    }
}
