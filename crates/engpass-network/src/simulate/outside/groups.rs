//! One packet to several hosts: it takes each line once, and is copied where ways part.
//!
//! Every member of a group has a datagram of its own, on its own way. That of one of them, the *root*, is sent; those of the others are
//! *due*: each takes a copy of another one's packet when that comes to the node where their ways part, and is lost with it before. The way
//! of a member is the first of those that are equally short, whatever routers choose for packets to it alone.

use std::collections::BTreeMap;

use super::Packet;
use crate::simulate::Network;
use crate::simulate::datagrams::Datagram;
use crate::simulate::frames::Frames;
use crate::simulate::sending::EgressPath;

/// A member whose way begins with that of another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct TreeBranch {
    /// Place of the member in its group.
    member: usize,
    /// That of the one whose packet is copied.
    from: usize,
    /// Hops that both share.
    hop: u32,
}

/// A group of hosts that one host sends to.
#[derive(Clone, Debug, Default)]
pub(super) struct Group {
    /// The ways to its members.
    pub(super) ways: Vec<u32>,
    /// The members that are sent to, and the copies that are made on the way, each behind that of which it is made.
    roots: Vec<(usize, Vec<TreeBranch>)>,
}

/// What is copied from the packet that a host sends to a root.
#[derive(Clone, Debug)]
struct PacketCopies {
    group: u32,
    root: usize,
    /// By member of the group.
    tokens: std::rc::Rc<[u64]>,
}

/// A copy that is to come.
#[derive(Clone, Copy, Debug)]
struct PendingCopy {
    datagram: u32,
    /// When the packet of which it is made has so many hops behind it.
    hop: u32,
    route: u32,
}

/// All groups, and the copies that are to come.
#[derive(Debug, Default)]
pub(in crate::simulate) struct Groups {
    all: Vec<Group>,
    /// What packets bring along that were put in, by a number that they have; the last such number.
    brought: BTreeMap<u64, PacketCopies>,
    last: u64,
    /// By datagram of which copies are made.
    due: BTreeMap<u32, Vec<PendingCopy>>,
    /// Copies by the datagram of the root, until its host has handed it over.
    unsent: BTreeMap<u32, Vec<u32>>,
}

impl Group {
    /// The tree of these ways.
    pub(super) fn new(ways: Vec<u32>, way_of: impl Fn(u32) -> EgressPath, frames: &Frames) -> Self {
        let ports = |way: &u32| match way_of(*way) {
            EgressPath::Circuit { .. } => Vec::new(),
            EgressPath::Frames { route } | EgressPath::Bond { route } => frames.first_way(route),
        };
        let ports: Vec<Vec<(u32, bool)>> = ways.iter().map(ports).collect();
        // Lines that both cross: a way parts from another one where it enters a tunnel that the other does not.
        let shared = |a: usize, b: usize| {
            let alike = ports[a].iter().zip(&ports[b]).take_while(|(a, b)| a == b);
            alike.filter(|((_, is_line), _)| *is_line).count() as u32
        };
        let mut roots: Vec<(usize, Vec<TreeBranch>)> = Vec::new();
        for member in 0..ways.len() {
            // Of those that share as much the first: then it has come into being before the ways part.
            let nearest = (0..member).rev().max_by_key(|&other| shared(member, other));
            match nearest.map(|from| (from, shared(member, from))) {
                Some((from, hop)) if hop > 0 => {
                    let holds = |(root, branches): &&mut (usize, Vec<TreeBranch>)| {
                        *root == from || branches.iter().any(|branch| branch.member == from)
                    };
                    let tree = roots.iter_mut().find(holds).expect("every earlier member is in a tree");
                    tree.1.push(TreeBranch { member, from, hop });
                }
                _ => roots.push((member, Vec::new())),
            }
        }
        Self { ways, roots }
    }

    /// Whether anything is copied on the way.
    pub(super) fn parts(&self) -> bool {
        self.roots.iter().any(|(_, branches)| !branches.is_empty())
    }
}

impl Groups {
    pub(super) fn add(&mut self, group: Group) -> u32 {
        self.all.push(group);
        self.all.len() as u32 - 1
    }

    pub(super) fn get(&self, group: u32) -> &Group {
        &self.all[group as usize]
    }

    /// What a host sends to reach a group: for each root its way, its token, and a number for what is copied.
    pub(super) fn send(&mut self, group: u32, tokens: &[u64]) -> Vec<(u32, u64, u64)> {
        let this = &self.all[group as usize];
        let tokens: std::rc::Rc<[u64]> = tokens.into();
        let mut sent = Vec::new();
        for (root, (member, _)) in this.roots.iter().enumerate() {
            self.last += 1;
            self.brought.insert(self.last, PacketCopies { group, root, tokens: std::rc::Rc::clone(&tokens) });
            sent.push((this.ways[*member], tokens[*member], self.last));
        }
        sent
    }

    /// Whether nothing is to be copied.
    #[inline]
    pub(in crate::simulate) fn is_idle(&self) -> bool {
        self.due.is_empty()
    }
}

impl Network {
    /// Copies that a packet which comes from outside brings along are inside, too.
    pub(super) fn count_copies_in(&mut self, number: u64) {
        let Some(PacketCopies { group, root, .. }) = self.groups.brought.get(&number) else { return };
        let copies = self.groups.all[*group as usize].roots[*root].1.len();
        if let Some(fates) = &mut self.fabric.fates {
            fates.count_in(copies as u32);
        }
    }

    /// The packet of a root is at hand as `datagram`: the datagrams of the other members begin with it. If a bond has chosen for it, their routes are
    /// those of the same member, so many behind the ones with the question.
    pub(super) fn begin_copies(&mut self, number: u64, datagram: u32, packet: &Packet, member: u32) {
        let Some(PacketCopies { group, root, tokens }) = self.groups.brought.remove(&number) else { return };
        let Group { ways, roots } = self.groups.all[group as usize].clone();
        let (own, branches) = &roots[root];
        if let Some(fates) = &mut self.fabric.fates {
            fates.take_first(datagram);
        }
        let mut datagrams = BTreeMap::from([(*own, datagram)]);
        let whole = self.fabric.datagrams[datagram].clone();
        for branch in branches {
            let way = ways[branch.member];
            let sender = self.outsiders.sender(way);
            let route = match sender.way {
                EgressPath::Frames { route } => route,
                EgressPath::Bond { route } => route + member,
                _ => unreachable!("only ways of frames are shared"),
            };
            // Held until it is handed over, and until it has come into being.
            let copy = Datagram { flow: sender.flow as u32, holds: 2, lost: false, ..whole.clone() };
            let copy = self.fabric.begin_datagram(copy.written, copy);
            let flow = self.outsiders.number_of(way, packet.transport);
            if let Some(fates) = &mut self.fabric.fates {
                let packet = Packet { token: tokens[branch.member], ..*packet };
                fates.enters(copy, way, &packet, flow);
                fates.take_first(copy);
            }
            datagrams.insert(branch.member, copy);
            let due = PendingCopy { datagram: copy, hop: branch.hop, route };
            self.groups.due.entry(datagrams[&branch.from]).or_default().push(due);
            self.groups.unsent.entry(datagram).or_default().push(copy);
        }
    }

    /// The datagram of a root was handed over, and those of its copies with it.
    pub(super) fn copies_sent(&mut self, datagram: u32) {
        for copy in self.groups.unsent.remove(&datagram).unwrap_or_default() {
            self.datagram_sent(copy);
        }
    }

    /// A packet has come to a node: the copies that are made of it there, with their routes.
    pub(in crate::simulate) fn copies_at(&mut self, datagram: u32, hop: u32) -> Vec<(u32, u32)> {
        let Some(due) = self.groups.due.get_mut(&datagram) else { return Vec::new() };
        let here = due.extract_if(.., |due| due.hop == hop).map(|due| (due.datagram, due.route)).collect();
        if due.is_empty() {
            self.groups.due.remove(&datagram);
        }
        here
    }

    /// A packet is lost, and with it what would have been copied from it.
    #[cold]
    pub(in crate::simulate) fn lose_copies(
        &mut self,
        datagram: u32,
        place: crate::simulate::tally::DropLocation,
        at: u64,
    ) {
        for due in self.groups.due.remove(&datagram).unwrap_or_default() {
            self.fabric.lose_datagram(due.datagram, place, at);
            self.lose_copies(due.datagram, place, at);
            self.fabric.release_datagram(due.datagram);
        }
    }
}
