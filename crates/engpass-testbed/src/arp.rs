//! Address resolution (docs/model.md): the interfaces of routers that ask for addresses, and the trees on which their requests go.

use crate::topology::{Hop, Leg, NodeId, Topology};

/// An Ethernet interface of a router that asks for addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArpInterface {
    /// The router.
    pub router: NodeId,
    /// Index of its link.
    pub link: usize,
    /// The lines that carry a request, breadth first: a line stands after the one through which the request comes to its node. The first one is the router's.
    pub tree: Vec<Hop>,
}

impl Topology {
    /// The number of the interface on which a router asks for the next node when it sends a packet on this leg; `None` if it does not ask.
    pub fn arp_interface(&self, leg: Leg) -> Option<usize> {
        let Leg::Link(Hop { link, from, .. }) = leg else { return None };
        self.arp.iter().position(|interface| (interface.router, interface.link) == (from, link))
    }
}
