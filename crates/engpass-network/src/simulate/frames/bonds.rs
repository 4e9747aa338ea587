//! Bonds: the state of their members at hosts and switches, and the choice of the member by which a host sends a packet.

use std::collections::BTreeMap;

use engpass_model::bond::{Monitor, Monitoring};
use engpass_model::forward::{Headers, PacketView};
use engpass_testbed::Topology;
use engpass_testbed::topology::{BondPath, NodeId};

use super::choices::Choices;
use super::{Frames, Verdict};
use crate::simulate::Network;
use crate::simulate::event_queue::Event;
use crate::simulate::ready_packet::{EgressPath, ReadyPacket};

/// A bond and the state of its members.
pub(in crate::simulate) struct Bonded {
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
pub(in crate::simulate) struct Bonds {
    all: Vec<Bonded>,
    /// By process or endpoint, the route of the bond member that was chosen for the packet that waits for a NIC.
    chosen: BTreeMap<usize, u32>,
    /// Instant that counts as time 0 of the file's events.
    pub(super) from: u64,
}

impl Bonds {
    /// Creates the bonds of a testbed, with all links up.
    pub(super) fn new(topology: &Topology) -> Self {
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

    /// Returns true if the host at the other end of this transmitter drops what arrives there, because another member of its bond is active.
    pub(super) fn drops_on_inactive_member(&self, transmitter: u32) -> bool {
        self.all.iter().any(|bond| {
            let member = bond.heard.iter().position(|heard| *heard == transmitter);
            member.is_some_and(|member| bond.monitor.active() != Some(member))
        })
    }

    /// Records that a node sees the carrier of a link come or go. Returns the bond of the node to which the link belongs, and the instant of the bond monitor's
    /// next look if none was pending.
    pub(super) fn see(
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
    pub(in crate::simulate) fn begins_with_bond(&self, route: u32) -> bool {
        self.first_decision(route).is_some()
    }

    /// Returns the first transmitter of a route that leaves its host by a frame link.
    pub(in crate::simulate) fn first_port(&self, route: u32) -> usize {
        let step = self.steps[self.routes[route as usize].first as usize];
        self.ports[step.port() as usize].port as usize
    }

    /// Returns the transmitters by which packets of this route may leave their host: `nic` alone, unless a bond decides for every packet.
    pub(in crate::simulate) fn first_ports(&self, way: EgressPath, nic: usize) -> Vec<usize> {
        let EgressPath::Bond { route } = way else { return vec![nic] };
        let decision = self.first_decision(route).expect("the route begins with a bond");
        let members = 0..self.choices.first_steps_of_decision(decision).len() as u32;
        members.map(|member| self.first_port(route + 1 + member)).collect()
    }

    /// Appends the routes of a bond's members directly after the route that chooses among them.
    pub(super) fn add_member_routes(&mut self, route: u32) {
        let Some(decision) = self.first_decision(route) else { return };
        let whole = self.routes[route as usize];
        for first in self.choices.first_steps_of_decision(decision).to_vec() {
            self.routes.push(super::Route { first, ..whole });
        }
    }
}

impl Choices {
    /// Passes the state of a bond's members to all policies that choose among them.
    pub(super) fn update_bond_policies(&mut self, bond: usize, bonds: &Bonds) {
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

impl Network {
    /// Lets the monitor of a bond look at the carriers of its members.
    pub(in crate::simulate) fn on_bond_monitor(&mut self, bond: u32) {
        let Frames { bonds, choices, .. } = &mut self.frames;
        let this = &mut bonds.all[bond as usize];
        this.looks = this.monitor.check_carriers(&this.carriers);
        if this.looks {
            self.events.push(this.config.look_again(self.now), 0, Event::BondMonitor(bond));
        }
        choices.update_bond_policies(bond as usize, bonds);
    }

    /// Returns a ready packet with the route of the bond member that carries it. The choice is kept until the packet is in the NIC.
    #[inline(never)]
    pub(in crate::simulate) fn choose_bond_member(
        &mut self,
        sender: usize,
        ready_packet: ReadyPacket,
        route: u32,
    ) -> ReadyPacket {
        let chosen = match self.frames.bonds.chosen.get(&sender) {
            Some(chosen) => *chosen,
            None => {
                let fragment = self.shared.datagrams[ready_packet.datagram].fragments > 1;
                let heads = self.frames.choices.heads[sender];
                let chosen = self.choose_member(route, &heads, fragment);
                self.frames.bonds.chosen.insert(sender, chosen);
                chosen
            }
        };
        ReadyPacket {
            nic: self.frames.first_port(chosen),
            way: EgressPath::Frames { route: chosen },
            ..ready_packet
        }
    }

    /// Forgets the chosen bond member, because the sender's packet has entered its NIC.
    #[inline(always)]
    pub(in crate::simulate) fn clear_bond_member(&mut self, sender: usize) {
        if !self.frames.bonds.all.is_empty() {
            self.frames.bonds.chosen.remove(&sender);
        }
    }

    /// Returns the route of the member that a bond chooses for a packet with these headers.
    pub(in crate::simulate) fn choose_member(&mut self, route: u32, heads: &Headers, fragment: bool) -> u32 {
        let decision = self.frames.first_decision(route).expect("the route begins with a bond");
        let macs = self.frames.choices.macs_at(decision);
        let member = self.frames.choices.member(decision, &PacketView { heads, fragment, macs });
        route + 1 + member as u32
    }
}
