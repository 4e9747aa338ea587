//! What routers say: the bytes of their messages.

use std::net::IpAddr;

use engpass_model::wire::icmp;

use super::network::Said;
use super::packet::{Change, forward};

/// Addresses of the routers of the testbed, in the order of its file.
#[derive(Clone, Debug, Default)]
pub(super) struct Routers(pub(super) Vec<Vec<IpAddr>>);

impl Routers {
    /// The message about a packet, as its router sends it. `None` where that has no address.
    pub(super) fn message(&self, said: &Said, mut packet: Vec<u8>) -> Option<Vec<u8>> {
        // It is quoted as it came to the router.
        forward(&mut packet, Change { ce: false, hops: said.passed });
        icmp::message(self.0.get(usize::from(said.router))?, &packet, said.error)
    }
}
