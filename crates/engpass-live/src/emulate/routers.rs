//! Builds the ICMP messages of routers.

use std::net::IpAddr;

use engpass_capture::passing;
use engpass_model::queue::Ecn;
use engpass_model::wire::icmp;
use engpass_simulate::Head;

use super::network::MessageContent;
use super::packet::set_identification;

/// Addresses of each router of the testbed, in the order of its file.
#[derive(Clone, Debug, Default)]
pub(super) struct Routers(pub(super) Vec<Vec<IpAddr>>);

impl Routers {
    /// Returns the ICMP message about the packet with this token, as the router sends it. `None` if the router has no address.
    pub(super) fn message(&self, said: &MessageContent, packet: &[u8], token: u64) -> Option<Vec<u8>> {
        let ttl = if packet[0] >> 4 == 4 { packet[8] } else { packet[7] };
        // The message quotes the packet as it arrived at the router.
        let head = Head {
            bytes: said.bytes.into(),
            more: said.more,
            ttl: ttl.saturating_sub(said.passed),
            ecn: if said.marked { Ecn::Marked } else { Ecn::NotCapable },
            ..Head::default()
        };
        let mut quoted = Vec::new();
        passing(packet, &head, &mut quoted);
        let mut message = icmp::message(self.0.get(usize::from(said.router))?, &quoted, said.error)?;
        // The token has slot, segment and generation of the packet in different bits. The identification mixes them, so that fragments of different messages
        // are not confused.
        set_identification(&mut message, (token ^ token >> 16 ^ token >> 40) as u16 | 1 << 15);
        Some(message)
    }
}
