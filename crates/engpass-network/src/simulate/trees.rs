//! Multicast: datagrams of which nodes make copies where the ways to their receivers part.
//!
//! A tree has branches. Each carries a datagram of its own: packets end where a branch ends at a node, and the node makes a copy of each for every
//! branch that begins there. So a branch has books, losses and fragments like the way of any datagram. What a branch has lost, the branches behind
//! it have lost too; and what it has carried was delivered if any receiver behind it got the whole datagram.
//!
//! Books of a branch are settled behind those of all branches that begin at its end, when it is known whether a receiver got the datagram. So a datagram
//! and its copies hold each other. A copy begins with one hold, by the datagram of which it is one: it ends when nothing of that is on its way, for then
//! no packet can come any more ([`SharedState::end_branch`]). From there on each copy that is not gone holds the datagram; the last one to go lets it go, too
//! ([`SharedState::branch_ends`], for the second time).

use std::collections::BTreeMap;

use engpass_ledger::DeliveryStatus;
use engpass_testbed::Topology;
use engpass_testbed::topology::NodeKind;

use super::datagrams::{Datagram, Destination};
use super::fabric::SharedState;

/// All trees of a testbed, and the datagrams on their way in them.
#[derive(Debug, Default)]
pub(super) struct Trees {
    /// Branches of all trees, those of a tree in its order, in the order of the file.
    branches: Vec<TreeBranch>,
    /// By traffic, the number of the first branch of its tree, and of its receivers the numbers of what they count.
    roots: BTreeMap<u32, (u32, Vec<usize>)>,
    /// The destination of datagrams on the first branch: endpoints and messages of routers come before.
    first_lane: u32,
    /// Datagrams of which copies were made, until all of these are gone.
    copied: BTreeMap<u32, Copied>,
    /// By copy, the datagram of which it is one.
    of: BTreeMap<u32, u32>,
}

/// A branch of a tree.
#[derive(Clone, Debug)]
struct TreeBranch {
    /// Where its packets are counted: a traffic, or one of its receivers.
    tally: u32,
    route: u32,
    /// The branches that begin where it ends.
    onward: Vec<u32>,
    /// The router at which it ends, if it does not end at a host or switch.
    router: Option<usize>,
}

/// A datagram of which copies were made.
#[derive(Debug, Default)]
struct Copied {
    /// In the order of the branches.
    copies: Vec<u32>,
    /// Fragments that it had when the last copy was made.
    fragments: u16,
    /// Nothing of it is on its way any more.
    has_ended: bool,
    /// A receiver has got the datagram.
    was_received: bool,
}

impl Trees {
    /// The trees of a testbed. The routes of all branches are these; receivers are counted behind all traffic.
    pub(super) fn new(topology: &Topology, routes: &[u32], first_lane: usize) -> Self {
        let mut trees = Self { first_lane: first_lane as u32, ..Self::default() };
        let mut receivers = topology.flows.len();
        for (flow, path) in topology.flows.iter().enumerate().filter(|(_, path)| !path.branches.is_empty()) {
            let first = trees.branches.len();
            let mut tallies = Vec::new();
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
                    receivers += 1;
                }
                let route = routes[trees.branches.len()];
                trees.branches.push(TreeBranch { tally: tally as u32, route, onward, router });
            }
            trees.roots.insert(flow as u32, (first as u32, tallies));
        }
        trees
    }

    /// The destination of datagrams on a branch. Destinations are endpoints, and endpoints come in pairs of which the second one receives.
    fn lane(&self, branch: u32) -> usize {
        (self.first_lane + 2 * branch + 1) as usize
    }

    /// What the receivers of a traffic count, by their numbers among what is counted: in the order of the branches that end at them. The outcome has
    /// them in the order of the file.
    pub(super) fn receivers(&self, flow: usize) -> &[usize] {
        self.roots.get(&(flow as u32)).map_or(&[], |(_, receivers)| receivers)
    }

    /// The branch of a datagram.
    fn branch_of(&self, datagram: &Datagram) -> Option<u32> {
        match datagram.to.get() {
            None => self.roots.get(&datagram.flow).map(|(first, _)| *first),
            Some(to) => Some(to.checked_sub(self.first_lane)? / 2),
        }
    }

    /// Whether nodes make copies of a datagram.
    pub(super) fn parts(&self, datagram: &Datagram) -> bool {
        self.branch_of(datagram).is_some_and(|branch| !self.branches[branch as usize].onward.is_empty())
    }
}

impl SharedState {
    fn trees_mut(&mut self) -> &mut Trees {
        self.trees.as_mut().expect("a datagram of a tree was sent")
    }

    /// Whether nodes make copies of a datagram.
    #[inline]
    pub(super) fn parts(&self, datagram: u32) -> bool {
        self.trees.as_ref().is_some_and(|trees| trees.parts(&self.datagrams[datagram]))
    }

    /// The router that makes the copies of a datagram, if no switch does.
    pub(super) fn copying_router(&self, datagram: u32) -> Option<usize> {
        self.trees.as_ref()?.branches[self.branch_of(datagram)].router
    }

    /// Whether a datagram is one of a tree.
    #[inline]
    pub(super) fn is_of_tree(&self, datagram: u32) -> bool {
        self.trees.as_ref().is_some_and(|trees| trees.branch_of(&self.datagrams[datagram]).is_some())
    }

    /// A packet of a datagram has come to the end of its branch: the datagrams of the branches that begin there, with their routes.
    pub(super) fn copies_of(&mut self, datagram: u32) -> Vec<(u32, u32)> {
        self.begin_copies(datagram);
        let fragments = self.datagrams[datagram].fragments;
        let branch = self.branch_of(datagram);
        let trees = self.trees_mut();
        let onward = trees.branches[branch].onward.iter().map(|next| trees.branches[*next as usize].route);
        let onward: Vec<u32> = onward.collect();
        let copied = trees.copied.get_mut(&datagram).expect("its copies have begun");
        let more = fragments - std::mem::replace(&mut copied.fragments, fragments);
        let copies = copied.copies.clone();
        // Routers before have cut what is to come.
        copies.iter().for_each(|copy| self.datagrams[*copy].fragments += more);
        copies.into_iter().zip(onward).collect()
    }

    fn branch_of(&self, datagram: u32) -> usize {
        let trees = self.trees.as_ref().expect("a datagram of a tree was sent");
        trees.branch_of(&self.datagrams[datagram]).expect("the datagram is of a tree") as usize
    }

    /// The copies of a datagram come into being, each held by the one of which it is a copy; if they have not yet.
    fn begin_copies(&mut self, datagram: u32) {
        if self.trees_mut().copied.contains_key(&datagram) {
            return;
        }
        let branch = self.branch_of(datagram);
        let whole = self.datagrams[datagram].clone();
        let mut copies = Vec::new();
        for next in self.trees_mut().branches[branch].onward.clone() {
            let trees = self.trees_mut();
            let (flow, lane) = (trees.branches[next as usize].tally, trees.lane(next));
            let copy = Datagram {
                flow,
                to: Destination::endpoint(lane),
                arrived: 0,
                lost: false,
                holds: 1,
                written: true,
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

    /// The last packet of a datagram was handed over at the sender, now.
    pub(super) fn sent_to_group(&mut self, datagram: u32, now: u64) {
        let Datagram { flow, bytes, .. } = self.datagrams[datagram];
        for tally in self.trees_mut().receivers(flow as usize).to_vec() {
            self.flows[tally].count_sent(1, bytes.into(), self.window.holds(now));
        }
        self.mark_sent(datagram);
    }

    fn mark_sent(&mut self, datagram: u32) {
        self.datagrams[datagram].sent = true;
        let copies = self.trees_mut().copied.get(&datagram).map(|copied| copied.copies.clone());
        copies.into_iter().flatten().for_each(|copy| self.mark_sent(copy));
    }

    /// Nothing of a datagram of a tree is on its way, or all copies of it are gone.
    pub(super) fn branch_ends(&mut self, datagram: u32) {
        let parts = self.parts(datagram);
        let copied = self.trees_mut().copied.get(&datagram);
        if parts && !copied.is_some_and(|copied| copied.has_ended) {
            return self.end_branch(datagram);
        }
        let copied = self.trees_mut().copied.remove(&datagram);
        let was_received = copied.map_or(!self.datagrams[datagram].lost, |copied| copied.was_received);
        self.datagrams[datagram].lost |= !was_received;
        self.settle_books(datagram, false);
        self.ledger.forget_pieces(datagram);
        if !parts {
            self.count_loss(datagram);
        }
        let of = self.trees_mut().of.remove(&datagram);
        self.datagrams.release(datagram);
        let Some(of) = of else { return };
        if let Some(copied) = self.trees_mut().copied.get_mut(&of) {
            // No packet is copied any more: their order has no meaning.
            let place = copied.copies.iter().position(|copy| *copy == datagram);
            copied.copies.swap_remove(place.expect("it is a copy of that"));
        }
        if was_received {
            self.note_received(of);
        }
        self.release_datagram(of);
    }

    /// A receiver has got a datagram, and all those of which its own is a copy with it.
    fn note_received(&mut self, datagram: u32) {
        let trees = self.trees_mut();
        let mut at = Some(datagram);
        while let Some(copied) = at.and_then(|datagram| trees.copied.get_mut(&datagram)) {
            copied.was_received = true;
            at = at.and_then(|datagram| trees.of.get(&datagram).copied());
        }
    }

    /// Nothing of a datagram is on its way to where copies of it are made: what it has lost is lost for all copies, and they hold it until they are gone.
    fn end_branch(&mut self, datagram: u32) {
        self.begin_copies(datagram);
        let loss = self.loss_of(datagram);
        let copied = self.trees_mut().copied.get_mut(&datagram).expect("its copies have begun");
        copied.has_ended = true;
        let copies = copied.copies.clone();
        self.datagrams[datagram].holds = copies.len() as u32;
        for copy in copies {
            if let Some((at, place)) = loss {
                self.lose_datagram(copy, place, at);
            }
            self.release_datagram(copy);
        }
    }

    /// The run is over: what datagrams have lost that are still on their way is lost for their copies.
    pub(super) fn lose_open_copies(&mut self) {
        if self.trees.is_none() {
            return;
        }
        for datagram in 0..self.datagrams.len() {
            let is_copy = self.trees_mut().of.contains_key(&datagram);
            if self.datagrams[datagram].holds > 0 && !is_copy {
                self.lose_behind(datagram);
            }
        }
    }

    fn lose_behind(&mut self, datagram: u32) {
        if !self.parts(datagram) {
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

    /// What has become of a datagram of which copies are still on their way when the run is over.
    pub(super) fn open_fate(&self, datagram: u32) -> DeliveryStatus {
        let copied = self.trees.as_ref().and_then(|trees| trees.copied.get(&datagram));
        match copied {
            Some(copied) if copied.was_received => DeliveryStatus::Delivered,
            Some(copied)
                if copied.copies.iter().all(|copy| self.open_fate(*copy) == DeliveryStatus::Lost) =>
            {
                DeliveryStatus::Lost
            }
            _ if self.datagrams[datagram].lost => DeliveryStatus::Lost,
            _ => DeliveryStatus::InFlight,
        }
    }
}
