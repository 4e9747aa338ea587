//! Address resolution (docs/model.md): the interfaces of routers that ask for addresses, and the trees on which their requests go.

use std::collections::VecDeque;

use engpass_model::switch::Switch;
use engpass_model::wire::Framing;

use crate::diagnostic::Diagnostic;
use crate::links;
use crate::resolve::Resolver;
use crate::topology::{Hop, Leg, NodeId, NodeKind, Topology};

/// An Ethernet interface of a router that asks for addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArpInterface {
    /// The router.
    pub router: NodeId,
    /// Index of its link.
    pub link: usize,
    /// The lines that carry a request, each behind the one that brings it to where it begins: breadth first. The first one is the router's.
    pub tree: Vec<Hop>,
}

impl ArpInterface {
    /// The lines on which a request comes to a station, in their order; `None` if it does not.
    pub fn lines_to(&self, station: NodeId) -> Option<Vec<Hop>> {
        let mut lines = Vec::new();
        let mut node = station;
        while node != self.router {
            let hop = self.tree.iter().find(|hop| hop.to == node)?;
            lines.push(*hop);
            node = hop.from;
        }
        lines.reverse();
        Some(lines)
    }

    /// The nodes that get requests and are no switches.
    pub fn stations(&self, topology: &Topology) -> impl Iterator<Item = NodeId> {
        let is_station = |node: &NodeId| !matches!(topology.kind(*node), NodeKind::Switch(_));
        self.tree.iter().map(|hop| hop.to).filter(is_station)
    }
}

impl Topology {
    /// The number of the interface on which a router asks for the next node when it sends a packet on this leg; `None` if it does not ask.
    pub fn arp_interface(&self, leg: Leg) -> Option<usize> {
        let Leg::Link(Hop { link, from, .. }) = leg else { return None };
        self.arp.iter().position(|interface| (interface.router, interface.link) == (from, link))
    }
}

impl Resolver<'_> {
    /// The interfaces of all routers that ask for addresses, in the order of the routers, then of the links. A bond on their segment is reported, and so is a
    /// router without an Ethernet link.
    pub(crate) fn arp_interfaces(&mut self) -> Vec<ArpInterface> {
        let mut found = Vec::new();
        for (index, (name, router)) in self.draft.routers.iter().enumerate() {
            if router.as_ref().is_none_or(|router| router.arp.is_none()) {
                continue;
            }
            let node = self.draft.hosts.len() + self.draft.switches.len() + index;
            let own: Vec<usize> =
                (0..self.links.len()).filter(|link| self.ethernet_to(*link, node).is_some()).collect();
            if own.is_empty() && self.whole {
                let message = format!("router `{name}` has no Ethernet link, and asks for addresses on none");
                let help = "take `arp` out, or give a link of it an Ethernet medium, such as `ethernet-1g`";
                let warning = Diagnostic::warning("no-effect", message).help(help);
                self.checker.report_key(&["router", name, "arp"], warning);
            }
            for link in own {
                let tree = self.flood(node, link);
                let is_reached = |node: &NodeId| tree.iter().any(|hop| hop.to == *node);
                let is_on_segment = |member: &usize| {
                    let mut ends = self.links[*member].ends.iter();
                    *member == link || ends.any(|end| self.passes(*end) && is_reached(end))
                };
                let bond = self.bonds.iter().flatten().find(|bond| bond.links.iter().any(is_on_segment));
                if let Some(bond) = bond {
                    let message = format!(
                        "router `{name}` asks for addresses on link `{}`, and bond `{}` is on the same Ethernet segment: the model does not send ARP over bonds",
                        self.links[link].name, bond.name
                    );
                    let help = format!(
                        "take `arp` out of `{name}`, or give the bond `up = false`, each in a variant of its own"
                    );
                    let error = Diagnostic::error("wrong-bond", message).help(help);
                    self.checker.report_key(&["router", name, "arp"], error);
                    return Vec::new();
                }
                found.push(ArpInterface { router: node, link, tree });
            }
        }
        found
    }

    /// The other end of an Ethernet link at this node; `None` if the link is none.
    fn ethernet_to(&self, link: usize, node: NodeId) -> Option<NodeId> {
        let this = &self.links[link];
        let is_own = this.ends.contains(&node) && matches!(this.lines[0].framing, Framing::Ethernet);
        is_own.then(|| this.ends[1 - this.end_of(node)])
    }

    /// Whether a node is an Ethernet switch.
    fn passes(&self, node: NodeId) -> bool {
        matches!(links::switch(self.draft, node), Some(Switch::Ethernet(_)))
    }

    /// The lines that carry what a node sends to all on this link.
    fn flood(&self, from: NodeId, link: usize) -> Vec<Hop> {
        let mut reached = vec![from];
        let mut tree = Vec::new();
        let mut waiting = VecDeque::new();
        let mut go = |link: usize, from: NodeId, to: NodeId, waiting: &mut VecDeque<NodeId>| {
            if !reached.contains(&to) {
                reached.push(to);
                tree.push(Hop { link, from, to });
                waiting.push_back(to);
            }
        };
        if let Some(to) = self.ethernet_to(link, from) {
            go(link, from, to, &mut waiting);
        }
        while let Some(node) = waiting.pop_front() {
            let links = if self.passes(node) { 0..self.links.len() } else { 0..0 };
            for link in links {
                if let Some(to) = self.ethernet_to(link, node) {
                    go(link, node, to, &mut waiting);
                }
            }
        }
        tree
    }
}
