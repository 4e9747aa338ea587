//! Tunnels: virtual interfaces of two routers that put a header around each packet and send it to each other (RFC 1853, RFC 4459).

pub mod gre;
pub mod ipip;

pub use gre::Gre;
pub use ipip::IpIp;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::complaint::{Complaints, LONGEST};
use crate::family::family;
use crate::unit::{Duration, Size};
use crate::wire::ip::{IP_HEADER_BYTES, MAX_PACKET_BYTES, MIN_MTU};

family! {
    /// A tunnel header, by its kind.
    TunnelHeader, "tunnel header": TunnelHeaderConfig {
        "gre" => Gre(Gre),
        "ipip" => IpIp(IpIp),
    }
}

/// The header that a tunnel puts between its outer IP header and the packet that it carries.
pub trait TunnelHeaderConfig {
    /// Its length in bytes.
    fn bytes(&self) -> u64;

    /// Its IP protocol number, for the outer header.
    fn protocol(&self) -> u8;

    /// Append the header for this packet.
    fn write(&self, inner: &[u8], out: &mut Vec<u8>);
}

impl TunnelHeader {
    /// Bytes that a tunnel adds to a packet: its header and the outer IP header.
    pub fn added_bytes(&self) -> u64 {
        IP_HEADER_BYTES + self.config().bytes()
    }
}

impl Default for TunnelHeader {
    fn default() -> Self {
        Self::Gre(Gre::default())
    }
}

/// A tunnel between two routers. Packets whose shortest way leads from one of them to the other enter it: a way through a tunnel comes before
/// the same way without it.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Tunnel {
    /// The two routers at its ends.
    pub ends: [String; 2],
    /// What stands between the outer IP header and the packet.
    #[serde(default)]
    pub header: TunnelHeader,
    /// Largest packet that enters it, as an IP packet without the outer headers. If not given, what the links on its way leave beside the
    /// headers; where it fragments the outer packet, 65,535 B less the headers.
    pub mtu: Option<Size>,
    /// What becomes of a packet that is too long.
    #[serde(default)]
    pub fragment: Fragment,
    /// Time to live of the outer packets, 1 to 254.
    #[serde(default = "ttl")]
    #[schemars(range(min = 1, max = 254))]
    pub ttl: u8,
    /// The tunnel that carries its packets, if another one does.
    pub over: Option<String>,
    /// Whether it is up. Else packets go as if it were not there, and so does what it would carry.
    #[serde(default = "up")]
    pub up: bool,
    /// What its ends spend on putting fragments of outer packets together.
    #[serde(default)]
    pub reassembly: Reassembly,
}

/// The longest packet that everybody can reassemble (RFC 791 section 3.2).
const LEAST_MEMORY: u64 = 576;

/// What a tunnel does with packets that are too long for it (RFC 4459 section 3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Fragment {
    /// It fragments the packet, and each fragment gets outer headers of its own; the receiving host puts them together (RFC 4459 section 3.4).
    #[default]
    Inner,
    /// It fragments the outer packet, and the other end puts that together (RFC 4459 section 3.1).
    Outer,
    /// It drops the packet, and tells a sender that discovers the path MTU (RFC 4459 section 3.2).
    None,
}

/// What the end of a tunnel spends on fragments of packets that are not complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Reassembly {
    /// How long the first fragment of a packet waits for the last one (in Linux `net.ipv4.ipfrag_time`).
    pub timeout: Duration,
    /// Most bytes of fragments that wait; a fragment that would be more is dropped (in Linux `net.ipv4.ipfrag_high_thresh`).
    pub memory: Size,
}

impl Default for Reassembly {
    fn default() -> Self {
        Self { timeout: Duration(30_000_000_000_000), memory: Size(4 << 20) }
    }
}

fn ttl() -> u8 {
    64
}

fn up() -> bool {
    true
}

impl Tunnel {
    /// What is wrong with values that no other component must be known for.
    pub fn check(&self, complaints: &mut Complaints) {
        let added = self.header.added_bytes();
        if let Some(mtu) = self.mtu {
            let cause = "IPv4 does not work with that";
            complaints.between(&["mtu"], mtu.bytes(), (MIN_MTU, MAX_PACKET_BYTES - added), "B", cause);
        }
        if self.ttl == 0 || self.ttl == u8::MAX {
            complaints.add(
                &["ttl"],
                "outer packets pass at least one line, and at most 254",
                "give 1 to 254",
            );
        }
        let Reassembly { timeout, memory } = self.reassembly;
        complaints.positive(&["reassembly", "timeout"], timeout, LONGEST);
        if memory.bytes() < LEAST_MEMORY {
            let cause = "whoever reassembles has room for packets of 576 B (RFC 791 section 3.2)";
            complaints.add(&["reassembly", "memory"], cause, format!("give at least {LEAST_MEMORY} B"));
        }
    }

    /// The largest packet that may enter where nothing on the way is narrower.
    pub fn widest(&self) -> u64 {
        MAX_PACKET_BYTES - self.header.added_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(json: serde_json::Value) -> Tunnel {
        serde_json::from_value(json).expect("it can be read")
    }

    #[test]
    fn headers_have_the_lengths_of_their_standards() {
        let added = |header: serde_json::Value| {
            read(serde_json::json!({ "ends": ["a", "b"], "header": header })).header.added_bytes()
        };
        // RFC 2784 section 2: 4 bytes and perhaps 4 of a checksum; RFC 2890 section 2: 4 of a key. RFC 2003: no header but the IP header.
        assert_eq!(added(serde_json::json!("gre")), 24);
        assert_eq!(added(serde_json::json!({ "gre": { "checksum": true } })), 28);
        assert_eq!(added(serde_json::json!({ "gre": { "checksum": true, "key": 7 } })), 32);
        assert_eq!(added(serde_json::json!("ipip")), 20);
    }

    #[test]
    fn values_that_cannot_be_are_refused() {
        let tunnel = read(serde_json::json!({
            "ends": ["a", "b"], "mtu": "67 B", "ttl": 0, "reassembly": { "timeout": "0 s", "memory": "575 B" },
        }));
        let mut complaints = Complaints::default();
        tunnel.check(&mut complaints);
        let paths: Vec<String> = complaints.into_iter().map(|complaint| complaint.path.join(".")).collect();
        assert_eq!(paths, ["mtu", "ttl", "reassembly.timeout", "reassembly.memory"]);
        let mut complaints = Complaints::default();
        read(serde_json::json!({ "ends": ["a", "b"], "mtu": "65511 B" })).check(&mut complaints);
        assert_eq!(complaints, Complaints::default());
    }
}
