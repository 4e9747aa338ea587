//! The Ethernet segments on which routers send ARP requests: the lines that requests take, and what is not supported there.

use std::collections::VecDeque;

use engpass_model::switch::Switch;
use engpass_model::wire::Framing;

use crate::arp::ArpInterface;
use crate::diagnostic::Diagnostic;
use crate::links;
use crate::resolve::Resolver;
use crate::topology::{Hop, NodeId};

impl Resolver<'_> {
    /// Returns the interfaces of all routers that send ARP requests, in the order of the routers, then of the links. Reports a bond on their segment,
    /// and warns about a router without an Ethernet link.
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
                let message = format!("router `{name}` has no Ethernet link, so it sends no ARP requests");
                let help = "remove `arp`, or give one of its links an Ethernet medium, such as `ethernet-1g`";
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
                        "router `{name}` uses ARP on link `{}`, but bond `{}` is on the same Ethernet segment: the model does not send ARP over bonds",
                        self.links[link].name, bond.name
                    );
                    let help = format!(
                        "remove `arp` from `{name}`, or set `up = false` for the bond; use two variants to run both"
                    );
                    let error = Diagnostic::error("wrong-bond", message).help(help);
                    self.checker.report_key(&["router", name, "arp"], error);
                    break;
                }
                found.push(ArpInterface { router: node, link, tree });
            }
        }
        found
    }

    /// Returns the other end of an Ethernet link at this node; `None` if the link is not Ethernet or not at this node.
    fn ethernet_to(&self, link: usize, node: NodeId) -> Option<NodeId> {
        let this = &self.links[link];
        let is_own = this.ends.contains(&node) && matches!(this.lines[0].framing, Framing::Ethernet);
        is_own.then(|| this.ends[1 - this.end_of(node)])
    }

    /// Returns true if a node is an Ethernet switch.
    fn passes(&self, node: NodeId) -> bool {
        matches!(links::switch(self.draft, node), Some(Switch::Ethernet(_)))
    }

    /// Returns the lines that carry a broadcast of a node on this link, breadth first.
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
