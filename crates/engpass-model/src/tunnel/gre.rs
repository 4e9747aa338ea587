//! Generic routing encapsulation (RFC 2784, RFC 2890).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::TunnelHeaderConfig;
use crate::wire::ip::IP_HEADER_BYTES;
use crate::wire::packet::checksum;

/// Generic routing encapsulation (RFC 2784): a header of 4 bytes, plus 4 bytes each for a checksum, a key and a sequence number.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Gre {
    /// Whether the header contains a checksum of header and packet (RFC 2784 section 2.3).
    pub checksum: bool,
    /// Key that distinguishes tunnels between the same routers (RFC 2890 section 2.1). If not given, the header has no key.
    pub key: Option<u32>,
    /// Whether the header contains a sequence number (RFC 2890 section 2.2). The end of the tunnel then drops packets that arrive after a later one.
    pub sequence: bool,
}

/// Length of a keepalive before it enters the tunnel, in bytes: an IP packet from the other end of the tunnel to its sender, with a GRE header and nothing
/// behind it.
pub const KEEPALIVE_BYTES: u64 = IP_HEADER_BYTES + 4;
/// Time to live of a keepalive: an estimate, as for ICMP messages. Cisco's description does not give it.
pub const KEEPALIVE_TTL: u8 = 64;
/// Priority of a keepalive: that of network control (RFC 4594 section 3.2).
pub const KEEPALIVE_PRIORITY: u8 = 6;

/// Appends the GRE header of a keepalive behind its own IP header: no fields, and the protocol type 0, which no packet has.
pub fn write_keepalive(out: &mut Vec<u8>) {
    out.extend([0; 4]);
}

/// Protocol types of IP packets: their EtherTypes (RFC 2784 section 2.4, RFC 7676 section 2).
const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86dd;
/// Flags in the first word for optional fields (RFC 2890 section 2).
const HAS_CHECKSUM: u16 = 1 << 15;
const HAS_KEY: u16 = 1 << 13;
const HAS_SEQUENCE: u16 = 1 << 12;

impl TunnelHeaderConfig for Gre {
    fn bytes(&self) -> u64 {
        4 + 4 * (u64::from(self.checksum) + u64::from(self.key.is_some()) + u64::from(self.sequence))
    }

    fn protocol(&self) -> u8 {
        47
    }

    fn is_sequenced(&self) -> bool {
        self.sequence
    }

    fn has_keepalives(&self) -> bool {
        true
    }

    fn write(&self, inner: &[u8], sequence: u32, out: &mut Vec<u8>) {
        let begin = out.len();
        let flag = |is: bool, bit| if is { bit } else { 0 };
        let flags = flag(self.checksum, HAS_CHECKSUM)
            | flag(self.key.is_some(), HAS_KEY)
            | flag(self.sequence, HAS_SEQUENCE);
        out.extend(flags.to_be_bytes());
        let is_v6 = inner.first().is_some_and(|first| first >> 4 == 6);
        out.extend(if is_v6 { IPV6 } else { IPV4 }.to_be_bytes());
        if self.checksum {
            // Checksum, and two reserved bytes.
            out.extend([0; 4]);
        }
        if let Some(key) = self.key {
            out.extend(key.to_be_bytes());
        }
        if self.sequence {
            out.extend(sequence.to_be_bytes());
        }
        if self.checksum {
            let all = [&out[begin..], inner].concat();
            out[begin + 4..begin + 6].copy_from_slice(&checksum(&all).to_be_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(header: &Gre, inner: &[u8]) -> Vec<u8> {
        let mut out = vec![0xff];
        header.write(inner, 0x0a0b_0c0d, &mut out);
        assert_eq!(out.len() as u64, 1 + header.bytes());
        out.split_off(1)
    }

    #[test]
    fn gre_header_fields_match_rfc_2784_and_rfc_2890() {
        assert_eq!(written(&Gre::default(), &[1, 2]), [0, 0, 8, 0]);
        assert_eq!(written(&Gre::default(), &[0x60, 2]), [0, 0, 0x86, 0xdd]);
        let key = Gre { key: Some(0x0102_0304), ..Gre::default() };
        assert_eq!(written(&key, &[1, 2]), [0x20, 0, 8, 0, 1, 2, 3, 4]);
        let both = Gre { checksum: true, ..key };
        // The one's complement of 0xa000 + 0x0800 + 0x0102 + 0x0304 + 0x0102.
        assert_eq!(written(&both, &[1, 2]), [0xa0, 0, 8, 0, 0x52, 0xf7, 0, 0, 1, 2, 3, 4]);
        let numbered = Gre { sequence: true, ..Gre::default() };
        assert_eq!(written(&numbered, &[1, 2]), [0x10, 0, 8, 0, 0x0a, 0x0b, 0x0c, 0x0d]);
        let numbered = Gre { key: Some(0x0102_0304), ..numbered };
        assert_eq!(written(&numbered, &[1, 2]), [0x30, 0, 8, 0, 1, 2, 3, 4, 0x0a, 0x0b, 0x0c, 0x0d]);
    }
}
