//! Choices of routers among equally short paths (docs/model.md, "Forwarding").

use engpass_model::forward::hash::hash32;
use engpass_model::forward::{Ecmp, Hash, HashFields, Headers, PacketView, RoundRobin};
use engpass_testbed::topology::{NodeId, NodeKind};

use super::Engine;
use crate::acted::Mechanism;
use crate::event_queue::Sender;
use crate::packet::Out;
use crate::resolve::kind;

/// Address of the host with index 0, 10.64.0.1.
pub(crate) const FIRST_ADDRESS: u32 = 0x0a40_0001;
/// Port of receivers; after each round of source ports the next one.
const PORT: u16 = 5001;
/// First port of the senders, and number of ports.
const FIRST_PORT: u16 = 49_152;
const PORTS: u64 = 16_384;

/// Members of a group with their weights.
pub(crate) type Shares = Vec<(usize, u64)>;

/// Returns the member whose turn it is.
fn in_turn(turn: u64, shares: &Shares) -> usize {
    let total: u64 = shares.iter().map(|(_, weight)| weight).sum();
    let mut place = turn % total;
    for &(member, weight) in shares {
        if place < weight {
            return member;
        }
        place -= weight;
    }
    unreachable!("a turn is below the total weight")
}

impl Engine<'_> {
    /// Returns the path segments that packets of a path may take from a node.
    pub(crate) fn group_at(&self, way: usize, node: NodeId) -> Vec<Out> {
        self.ways[way].at.get(&node).cloned().unwrap_or_default()
    }

    /// Chooses the path segment on which a packet leaves a node.
    pub(crate) fn way_out(&mut self, node: NodeId, packet: usize) -> Out {
        let this = &self.packets[packet];
        let group = self.group_at(this.way, node);
        if group.len() == 1 {
            return group[0];
        }
        let (way, datagram, framed_at, is_outer) =
            (this.way, this.datagram, this.framed_at, this.carries.is_some());
        let (fragment, heads) = (self.is_fragment(packet), self.heads_shown(packet));
        if is_outer {
            self.acted.note(Mechanism::TunnelChoice);
        }
        if let Some(bond) = self.bond_on(group[0]) {
            let macs = self.macs(way, framed_at.expect("a host or router has framed the packet"), group[0]);
            return self.leaves_by_bond(node, bond, &group, &PacketView { heads: &heads, fragment, macs });
        }
        let up: Vec<bool> = group.iter().map(|out| self.is_seen_up(*out)).collect();
        let shares = self.shares(&group, &up);
        let equal: Shares = shares.iter().map(|(member, _)| (*member, 1)).collect();
        let turn = self.turns.get(&(node, group.clone())).copied().unwrap_or(0);
        let choose = |shares: &Shares| {
            let hashed = self.hashed(group[0], shares, &heads, fragment);
            hashed.unwrap_or_else(|| in_turn(turn, shares))
        };
        let (member, by_equal_weights) = (choose(&shares), choose(&equal));
        *self.turns.entry((node, group.clone())).or_default() += 1;
        self.note_choice(node, (&group, &up), member, by_equal_weights);
        if fragment {
            self.acted.fragment_leaves(node, datagram, group[member]);
        }
        group[member]
    }

    /// Returns the member of a group that the hash of a packet's headers chooses; `None` if the policy of the router is no hash. `first` is the first
    /// segment of the group.
    pub(crate) fn hashed(
        &self,
        first: Out,
        shares: &Shares,
        heads: &Headers,
        fragment: bool,
    ) -> Option<usize> {
        let Ecmp::Hash(Hash { fields, seed, .. }) = self.policy_of(first) else { return None };
        let hash = hash32(*seed, heads, *fields == HashFields::Layer4 && !fragment);
        let total: u128 = shares.iter().map(|(_, weight)| u128::from(*weight)).sum();
        let mut cumulative = 0;
        let mut last_of = |weight: u64| {
            cumulative += u128::from(weight);
            // c 2^31 / t, rounded to the nearest integer (halves up), less 1.
            (2 * (cumulative << 31) + total) / (2 * total) - 1
        };
        let chosen = shares.iter().find(|(_, weight)| u128::from(hash >> 1) <= last_of(*weight));
        Some(chosen.expect("the shares cover every hash value").0)
    }

    /// Returns the members that a policy chooses among, with their weights: those that are up, or all if none is.
    pub(crate) fn shares(&self, group: &[Out], up: &[bool]) -> Shares {
        let weights = match self.policy_of(group[0]) {
            Ecmp::Hash(Hash { weights, .. }) | Ecmp::RoundRobin(RoundRobin { weights }) => weights,
            Ecmp::First(_) => unreachable!("the `first` policy has a single member"),
        };
        let all = !up.contains(&true);
        let of = |out: &Out| {
            let link = &self.topology.links[self.first_line(*out).link];
            u64::from(weights.get(&link.name).copied().unwrap_or(1))
        };
        let members = group.iter().enumerate().filter(|(member, _)| all || up[*member]);
        members.map(|(member, out)| (member, of(out))).collect()
    }

    /// Returns the policy of the router at which a path segment begins.
    fn policy_of(&self, out: Out) -> &Ecmp {
        let line = self.first_line(out);
        let node = self.topology.links[line.link].ends[line.end];
        match kind(&self.topology, node) {
            NodeKind::Router(router) => &self.testbed.routers[router].ecmp,
            _ => unreachable!("a path segment group begins at a router"),
        }
    }

    /// Returns the headers of packets of the sender or router with this number in the queue disciplines.
    pub(crate) fn heads_of(&self, number: usize) -> Headers {
        let senders = self.senders();
        match number.checked_sub(senders.len()) {
            Some(number) => self.message_heads(self.messages()[number]),
            None => self.heads(senders[number]),
        }
    }

    /// Returns the headers of packets of a sender.
    pub(crate) fn heads(&self, sender: Sender) -> Headers {
        let (flow, stream, back) = match sender {
            Sender::Process(flow) => (flow, 0, false),
            Sender::Endpoint(endpoint) => {
                let this = &self.endpoints[endpoint];
                (this.flow, this.place as u64 / 2, !this.writes())
            }
        };
        let protocol = if matches!(sender, Sender::Endpoint(_)) { 6 } else { 17 };
        let path = &self.topology.flows[flow];
        let [mut source, mut destination] = [path.from, path.to].map(|host| FIRST_ADDRESS + host as u32);
        let number = path.first_source + stream;
        let mut ports = [FIRST_PORT + (number % PORTS) as u16, PORT + (number / PORTS) as u16];
        if back {
            std::mem::swap(&mut source, &mut destination);
            ports.reverse();
        }
        Headers { source, destination, protocol, ports }
    }
}
