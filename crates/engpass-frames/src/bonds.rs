//! Bonds: the state of their members at hosts and switches, and the choice of the member by which a host sends a packet.

use std::collections::BTreeMap;

use engpass_model::bond::{Monitor, Monitoring};
use engpass_model::forward::{Headers, PacketView};
use engpass_testbed::Topology;
use engpass_testbed::topology::{BondPath, NodeId};

use super::choices::Choices;
use super::{Frames, Verdict};

/// A bond and the state of its members.
struct Bonded {
    node: NodeId,
    links: Vec<usize>,
    /// By member, the transmitter at the other end of its link; empty unless the node receives on the active member only.
    heard: Vec<u32>,
    carriers: Vec<bool>,
    config: Monitoring,
    monitor: Monitor,
    /// True while a `BondMonitor` event is pending.
    looks: bool,
}

/// The bonds of a testbed, and the members chosen for packets that wait for a NIC.
#[derive(Default)]
pub(crate) struct Bonds {
    all: Vec<Bonded>,
    /// By process or endpoint, the route of the bond member that was chosen for the packet that waits for a NIC.
    chosen: BTreeMap<usize, u32>,
    /// Instant that counts as time 0 of the file's events.
    from: u64,
}

impl Bonds {
    /// Creates the bonds of a testbed, with all links up.
    pub(crate) fn new(topology: &Topology) -> Self {
        let heard = |path: &BondPath| -> Vec<u32> {
            let other_end = |link: &usize| 2 * *link + 1 - topology.links[*link].end_of(path.node);
            let is_heard = |link: &&usize| topology.hears_active(path.node, **link);
            path.links.iter().filter(is_heard).map(|link| other_end(link) as u32).collect()
        };
        let bond = |path: &BondPath| Bonded {
            node: path.node,
            links: path.links.clone(),
            heard: heard(path),
            carriers: vec![true; path.links.len()],
            config: path.config.monitor,
            monitor: path.config.monitor(),
            looks: false,
        };
        Self { all: topology.bonds.iter().map(bond).collect(), ..Self::default() }
    }

    /// Records that a node sees the carrier of a link come or go. Returns the bond of the node to which the link belongs, and the instant of the bond monitor's
    /// next look if none was pending.
    pub(crate) fn see(
        &mut self,
        node: NodeId,
        link: usize,
        up: bool,
        now: u64,
    ) -> Option<(usize, Option<u64>)> {
        let is_here = |bond: &&mut Bonded| bond.node == node && bond.links.contains(&link);
        let (index, bond) = self.all.iter_mut().enumerate().find(|(_, bond)| is_here(bond))?;
        for (member, carrier) in bond.links.iter().zip(&mut bond.carriers) {
            *carrier = if *member == link { up } else { *carrier };
        }
        let looks = std::mem::replace(&mut bond.looks, true);
        let at = self.from.saturating_add(bond.config.next_check(now - self.from));
        Some((index, (!looks).then_some(at)))
    }
}

impl Frames {
    /// Returns the decision with which a route begins, if its packets leave their host by a bond that decides for every packet.
    fn first_decision(&self, route: u32) -> Option<u32> {
        let step = self.steps[self.routes[route as usize].first as usize];
        match step.verdict {
            Verdict::Choose(decision) if !step.is_routed() => Some(decision),
            _ => None,
        }
    }

    /// Returns true if the packets of a route leave their host by a bond that decides for every packet.
    pub fn begins_with_bond(&self, route: u32) -> bool {
        self.first_decision(route).is_some()
    }

    /// Returns the first transmitter of a route that leaves its host by a frame link.
    #[inline]
    pub fn first_port(&self, route: u32) -> usize {
        let step = self.steps[self.routes[route as usize].first as usize];
        self.ports[step.port() as usize].port as usize
    }

    /// Returns the transmitters by which packets of a route may leave their host. A bond must decide for every packet.
    pub fn member_ports(&self, route: u32) -> Vec<usize> {
        let decision = self.first_decision(route).expect("the route begins with a bond");
        let members = 0..self.choices.first_steps_of_decision(decision).len() as u32;
        members.map(|member| self.first_port(route + 1 + member)).collect()
    }

    /// Returns the route of the member that a bond chooses for a packet with these headers.
    pub fn choose_member(&mut self, route: u32, heads: &Headers, fragment: bool) -> u32 {
        let decision = self.first_decision(route).expect("the route begins with a bond");
        let macs = self.choices.macs_at(decision);
        let member = self.choices.member(decision, &PacketView { heads, fragment, macs });
        route + 1 + member as u32
    }

    /// Returns the route of the bond member that carries the next packet of a sender. The choice is kept until [`Self::clear_bond_member`].
    pub fn member_for(&mut self, sender: usize, route: u32, fragment: bool) -> u32 {
        if let Some(chosen) = self.bonds.chosen.get(&sender) {
            return *chosen;
        }
        let heads = self.choices.heads[sender];
        let chosen = self.choose_member(route, &heads, fragment);
        self.bonds.chosen.insert(sender, chosen);
        chosen
    }

    /// Forgets the chosen bond member, because the sender's packet has entered its NIC.
    #[inline(always)]
    pub fn clear_bond_member(&mut self, sender: usize) {
        if !self.bonds.all.is_empty() {
            self.bonds.chosen.remove(&sender);
        }
    }

    /// Sets the instant that counts as time 0 of the file's events for the monitors of all bonds.
    pub fn begin_bonds(&mut self, from: u64) {
        self.bonds.from = from;
    }

    /// Returns true if the host at the other end of this transmitter drops what arrives there, because another member of its bond is active.
    #[inline]
    pub fn drops_on_inactive_member(&self, transmitter: u32) -> bool {
        self.bonds.all.iter().any(|bond| {
            let member = bond.heard.iter().position(|heard| *heard == transmitter);
            member.is_some_and(|member| bond.monitor.active() != Some(member))
        })
    }

    /// Lets the monitor of a bond look at the carriers of its members. Returns the instant at which it looks again, if it does.
    pub fn check_carriers(&mut self, bond: u32, now: u64) -> Option<u64> {
        let this = &mut self.bonds.all[bond as usize];
        this.looks = this.monitor.check_carriers(&this.carriers);
        let again = this.looks.then(|| this.config.look_again(now));
        self.choices.update_bond_policies(bond as usize, &self.bonds);
        again
    }

    /// Appends the routes of a bond's members directly after the route that chooses among them.
    pub(crate) fn add_member_routes(&mut self, route: u32) {
        let Some(decision) = self.first_decision(route) else { return };
        let whole = self.routes[route as usize];
        for first in self.choices.first_steps_of_decision(decision).to_vec() {
            self.routes.push(super::Route { first, ..whole });
        }
    }
}

impl Choices {
    /// Passes the state of a bond's members to all policies that choose among them.
    pub(crate) fn update_bond_policies(&mut self, bond: usize, bonds: &Bonds) {
        let Bonded { carriers, monitor, .. } = &bonds.all[bond];
        for group in self.groups.iter_mut().filter(|group| group.bond == Some(bond)) {
            for (place, member) in group.members.iter_mut().enumerate() {
                (member.up, member.carrier) = (monitor.is_up(place), carriers[place]);
                member.active = monitor.active() == Some(place);
            }
            group.policy.see(&group.members);
        }
    }
}
