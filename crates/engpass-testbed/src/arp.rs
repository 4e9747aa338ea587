//! Address resolution (docs/model.md): the router interfaces that send ARP requests, and the trees over which the requests are flooded.

use crate::topology::{Hop, NodeId, PathSegment, Topology};

/// An Ethernet interface of a router that sends ARP requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArpInterface {
    /// The router.
    pub router: NodeId,
    /// Index of the interface's link.
    pub link: usize,
    /// The lines that carry a request, breadth first: a line comes after the one over which the request reaches its node. The first is the router's line.
    pub tree: Vec<Hop>,
}

impl Topology {
    /// Returns the interface (index) on which a router resolves the next node before it sends a packet on this path segment; `None` if it sends no request.
    pub fn arp_interface(&self, leg: PathSegment) -> Option<usize> {
        let PathSegment::Link(Hop { link, from, .. }) = leg else { return None };
        self.arp.iter().position(|interface| (interface.router, interface.link) == (from, link))
    }
}
