//! Groups: one injected packet for several hosts crosses each line once, and is copied where paths part.
//!
//! Every member of a group has a datagram on its own path. That of one member, the *root*, is sent. The others are *pending*: each is a copy of another
//! member's packet, made when this packet reaches the node where the two paths part. If the packet is lost before, so is the copy. Members use the first of
//! equal-cost paths, whatever routers choose for other packets to them.

use std::collections::BTreeMap;

use engpass_frames::{Frames, Verdict};

use super::pending_copies::PendingCopy;
use super::{InjectedSenders, Packet};
use crate::flow_counters::DropLocation;
use crate::packet_store::Datagram;
use crate::ready_packet::EgressPath;
use crate::shared_state::SharedState;

/// A member whose path begins like that of another member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct TreeBranch {
    /// Index of the member in its group.
    member: usize,
    /// Index of the member whose packet is copied.
    from: usize,
    /// Number of lines that both paths cross.
    hop: u32,
}

/// A group of hosts to which one host sends.
#[derive(Clone, Debug, Default)]
pub(super) struct Group {
    /// Paths to the members of the group.
    pub(super) ways: Vec<u32>,
    /// The roots, each with the copies that are made of its packet; every copy follows the member that it is copied from.
    roots: Vec<(usize, Vec<TreeBranch>)>,
}

/// The copies that are to be made of the packet to a root.
#[derive(Clone, Debug)]
struct PacketCopies {
    group: u32,
    root: usize,
    /// Tokens of the packets, by member of the group.
    tokens: std::rc::Rc<[u64]>,
}

/// All groups, and the copies of packets that have not entered the network.
#[derive(Debug, Default)]
pub(super) struct Groups {
    all: Vec<Group>,
    /// Copies of packets that wait at a NIC, by key; and the last key that was used.
    waiting_copies: BTreeMap<u64, PacketCopies>,
    last: u64,
}

impl Group {
    /// Builds the multicast tree of these paths.
    pub(super) fn new(ways: Vec<u32>, way_of: impl Fn(u32) -> EgressPath, frames: &Frames) -> Self {
        let path = |way: &u32| match way_of(*way) {
            EgressPath::Circuit { .. } => Vec::new(),
            EgressPath::Frames { route } | EgressPath::Bond { route } => frames.first_path(route).collect(),
        };
        let paths: Vec<Vec<Verdict>> = ways.iter().map(path).collect();
        // Returns the number of lines that both paths cross. A path also parts from another one where only one of them enters a tunnel.
        let shared = |a: usize, b: usize| {
            let alike = paths[a].iter().zip(&paths[b]).take_while(|(a, b)| a == b);
            alike.filter(|(verdict, _)| matches!(verdict, Verdict::Out(_))).count() as u32
        };
        let mut roots: Vec<(usize, Vec<TreeBranch>)> = Vec::new();
        for member in 0..ways.len() {
            // Of several members that share most, the first one, because its packet exists before the paths part.
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

    /// Returns true if any packet to the group is copied on its path.
    pub(super) fn has_copies(&self) -> bool {
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

    /// Returns the packets that a host sends to reach a group: for each root, its path, its token, and the key of the copies.
    pub(super) fn send(&mut self, group: u32, tokens: &[u64]) -> Vec<(u32, u64, u64)> {
        let this = &self.all[group as usize];
        let tokens: std::rc::Rc<[u64]> = tokens.into();
        let mut sent = Vec::new();
        for (root, (member, _)) in this.roots.iter().enumerate() {
            self.last += 1;
            self.waiting_copies
                .insert(self.last, PacketCopies { group, root, tokens: std::rc::Rc::clone(&tokens) });
            sent.push((this.ways[*member], tokens[*member], self.last));
        }
        sent
    }

    /// Returns the number of copies of an injected packet, which has this key.
    pub(super) fn copies(&self, number: u64) -> usize {
        let copies = self.waiting_copies.get(&number);
        copies.map_or(0, |copies| self.all[copies.group as usize].roots[copies.root].1.len())
    }
}

impl InjectedSenders {
    /// Creates the datagrams of the other members when the packet to a root becomes `datagram`. With a bond, `member` is the bond member chosen for the root,
    /// and the copies take that member too.
    pub(super) fn begin_copies(
        &mut self,
        number: u64,
        datagram: u32,
        (packet, member): (&Packet, u32),
        shared: &mut SharedState,
    ) {
        let Some(PacketCopies { group, root, tokens }) = self.groups.waiting_copies.remove(&number) else {
            return;
        };
        let Group { ways, roots } = self.groups.all[group as usize].clone();
        let (own, branches) = &roots[root];
        if let Some(reports) = &mut shared.reports {
            reports.take_first(datagram);
        }
        let mut datagrams = BTreeMap::from([(*own, datagram)]);
        let whole = shared.datagrams[datagram].clone();
        for branch in branches {
            let way = ways[branch.member];
            let sender = self.sender(way as usize);
            let route = match sender.way {
                EgressPath::Frames { route } => route,
                EgressPath::Bond { route } => route + member,
                _ => unreachable!("only frame paths form a multicast tree"),
            };
            // A copy has two references: until it is handed over, and until it is made.
            let copy = Datagram { flow: sender.flow as u32, refs: 2, lost: false, ..whole.clone() };
            let copy = shared.begin_datagram(copy.tracked_per_hop, copy);
            if let Some(reports) = &mut shared.reports {
                let packet = Packet { token: tokens[branch.member], ..*packet };
                reports.register_packet(copy, way, &packet);
                reports.take_first(copy);
            }
            datagrams.insert(branch.member, copy);
            let pending = PendingCopy { datagram: copy, hop: branch.hop, route };
            shared.copies.pending.entry(datagrams[&branch.from]).or_default().push(pending);
            shared.copies.unsent.entry(datagram).or_default().push(copy);
        }
    }
}

impl SharedState {
    /// Counts a datagram, and the copies of it that are made on its path, as sent.
    pub(super) fn packet_sent(&mut self, datagram: u32, now: u64) {
        self.datagram_sent(datagram, now);
        for copy in self.copies.unsent.remove(&datagram).unwrap_or_default() {
            self.datagram_sent(copy, now);
        }
    }

    /// Drops the pending copies of a packet that is lost, and theirs.
    #[cold]
    pub(crate) fn lose_copies(&mut self, datagram: u32, place: DropLocation, at: u64) {
        for pending in self.copies.pending.remove(&datagram).unwrap_or_default() {
            self.lose_datagram(pending.datagram, place, at);
            self.lose_copies(pending.datagram, place, at);
            self.release_datagram(pending.datagram);
        }
    }
}
