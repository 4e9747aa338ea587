//! Tunnels: virtual interfaces of two routers that encapsulate packets and send them to each other (RFC 1853, RFC 4459).

pub mod gre;
pub mod ipip;

pub use gre::Gre;
pub use ipip::IpIp;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::component_family::family;
use crate::range_errors::{LONGEST, RangeErrors};
use crate::unit::{Duration, Size};
use crate::wire::ip::{IP_HEADER_BYTES, MAX_PACKET_BYTES, MIN_MTU};

family! {
    /// A tunnel header, by its kind.
    TunnelHeader, "tunnel header": TunnelHeaderConfig {
        "gre" => Gre(Gre),
        "ipip" => IpIp(IpIp),
    }
}

/// The tunnel header between the outer IP header and the encapsulated packet.
pub trait TunnelHeaderConfig {
    /// Length of the tunnel header in bytes.
    fn bytes(&self) -> u64;

    /// IP protocol number of the tunnel header, for the outer IP header.
    fn protocol(&self) -> u8;

    /// Returns true if packets are numbered, and those that arrive after a later one are dropped.
    fn is_sequenced(&self) -> bool {
        false
    }

    /// Returns true if the ends may send keepalives.
    fn has_keepalives(&self) -> bool {
        false
    }

    /// Appends the tunnel header for the packet `inner`. A header without sequence numbers ignores `sequence`.
    fn write(&self, inner: &[u8], sequence: u32, out: &mut Vec<u8>);
}

impl TunnelHeader {
    /// Bytes that the tunnel adds to a packet: tunnel header and outer IP header.
    pub fn added_bytes(&self) -> u64 {
        IP_HEADER_BYTES + self.config().bytes()
    }
}

impl Default for TunnelHeader {
    fn default() -> Self {
        Self::Gre(Gre::default())
    }
}

/// A tunnel between two routers. Packets whose shortest path leads from one of them to the other enter the tunnel: a path through the
/// tunnel is preferred to the same path without it.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Tunnel {
    /// The two routers at its ends.
    pub ends: [String; 2],
    /// Header between the outer IP header and the packet.
    #[serde(default)]
    pub header: TunnelHeader,
    /// Largest packet that enters the tunnel, without the added headers. If not given, the MTU of the links on its path less the headers
    /// or, if the tunnel fragments the outer packet, 65,535 B less the headers.
    pub mtu: Option<Size>,
    /// How the tunnel handles packets that are too long.
    #[serde(default)]
    pub fragment: Fragment,
    /// TTL of the outer packets, 1 to 254.
    #[serde(default = "ttl")]
    #[schemars(range(min = 1, max = 254))]
    pub ttl: u8,
    /// The tunnel through which this tunnel sends its packets, if any.
    pub over: Option<String>,
    /// Whether the tunnel is up. If not, packets are forwarded as if it and the tunnels over it did not exist.
    #[serde(default = "up")]
    pub up: bool,
    /// Reassembly of fragmented outer packets at the ends of the tunnel.
    #[serde(default)]
    pub reassembly: Reassembly,
    /// Keepalives of a GRE tunnel. If not given, neither end notices a failure on the path of the tunnel.
    pub keepalive: Option<Keepalive>,
}

/// Keepalives of a GRE tunnel (Cisco IOS, `keepalive SECONDS RETRIES`). Each end sends packets through the tunnel that the other end sends back outside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Keepalive {
    /// Time between two keepalives of an end, at least 1 us.
    pub period: Duration,
    /// Number of keepalives that an end sends since one last came back before it takes the tunnel for down. It is up again when one comes back.
    pub retries: u64,
}

impl Default for Keepalive {
    fn default() -> Self {
        Self { period: Duration(10_000_000_000_000), retries: 3 }
    }
}

/// Shortest time between two keepalives: a guard against a wrong unit, and our choice. Routers take whole seconds (`keepalive SECONDS`); shorter periods
/// shorten an experiment.
const LEAST_PERIOD: Duration = Duration(1_000_000);

/// The longest packet that every host can reassemble (RFC 791 section 3.2).
const LEAST_MEMORY: u64 = 576;

/// How a tunnel handles packets that are too long (RFC 4459 section 3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Fragment {
    /// Fragments the packet; each fragment gets its own outer headers, and the receiving host reassembles them (RFC 4459 section 3.4).
    #[default]
    Inner,
    /// Fragments the outer packet; the other end of the tunnel reassembles it (RFC 4459 section 3.1).
    Outer,
    /// Drops the packet and sends "fragmentation needed" to a sender that uses path MTU discovery (RFC 4459 section 3.2).
    None,
}

/// Resources for reassembly at the end of a tunnel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Reassembly {
    /// How long an incomplete packet is kept after its first fragment arrived (in Linux `net.ipv4.ipfrag_time`).
    pub timeout: Duration,
    /// Maximum total size of stored fragments; fragments beyond it are dropped (in Linux `net.ipv4.ipfrag_high_thresh`).
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
    /// Adds errors for values that are invalid regardless of other components.
    pub fn check(&self, errors: &mut RangeErrors) {
        let added = self.header.added_bytes();
        if let Some(mtu) = self.mtu {
            let cause = "IPv4 does not allow this MTU";
            errors.between(&["mtu"], mtu.bytes(), (MIN_MTU, MAX_PACKET_BYTES - added), "B", cause);
        }
        if self.ttl == 0 || self.ttl == u8::MAX {
            errors.add(&["ttl"], "outer packets cross at least 1 and at most 254 links", "give 1 to 254");
        }
        if let Some(Keepalive { period, retries }) = self.keepalive {
            errors.positive(&["keepalive", "period"], period, LONGEST);
            if (1..LEAST_PERIOD.0).contains(&period.0) {
                errors.add(
                    &["keepalive", "period"],
                    "no router sends keepalives that often",
                    "give at least 1 us",
                );
            }
            if retries == 0 {
                errors.add(&["keepalive", "retries"], "a tunnel would always be down", "give at least 1");
            }
            if !self.header.config().has_keepalives() {
                errors.add(
                    &["header"],
                    "this header has no keepalives",
                    "remove `keepalive`, or give the tunnel `header = \"gre\"`",
                );
            }
        }
        let Reassembly { timeout, memory } = self.reassembly;
        errors.positive(&["reassembly", "timeout"], timeout, LONGEST);
        if memory.bytes() < LEAST_MEMORY {
            let cause =
                "the end of a tunnel must have room to reassemble packets of 576 B (RFC 791 section 3.2)";
            errors.add(&["reassembly", "memory"], cause, format!("give at least {LEAST_MEMORY} B"));
        }
    }

    /// Largest packet that may enter the tunnel if no link on its path has a smaller limit.
    pub fn widest(&self) -> u64 {
        MAX_PACKET_BYTES - self.header.added_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(json: serde_json::Value) -> Tunnel {
        serde_json::from_value(json).expect("the test's JSON is valid")
    }

    #[test]
    fn tunnel_header_lengths_match_their_rfcs() {
        let added = |header: serde_json::Value| {
            read(serde_json::json!({ "ends": ["a", "b"], "header": header })).header.added_bytes()
        };
        // RFC 2784 section 2: 4 bytes, and 4 for a checksum. RFC 2890 section 2: 4 each for a key and a sequence number. RFC 2003: only the IP header.
        assert_eq!(added(serde_json::json!("gre")), 24);
        assert_eq!(added(serde_json::json!({ "gre": { "checksum": true } })), 28);
        assert_eq!(added(serde_json::json!({ "gre": { "checksum": true, "key": 7 } })), 32);
        let all = serde_json::json!({ "gre": { "checksum": true, "key": 7, "sequence": true } });
        assert_eq!(added(all), 36);
        assert_eq!(added(serde_json::json!("ipip")), 20);
    }

    #[test]
    fn tunnel_rejects_invalid_values() {
        let tunnel = read(serde_json::json!({
            "ends": ["a", "b"], "header": "ipip", "keepalive": { "period": "0 s", "retries": 0 }, "mtu": "67 B", "ttl": 0, "reassembly": { "timeout": "0 s", "memory": "575 B" },
        }));
        let mut errors = RangeErrors::default();
        tunnel.check(&mut errors);
        let paths: Vec<String> = errors.into_iter().map(|complaint| complaint.path.join(".")).collect();
        let keepalive = ["keepalive.period", "keepalive.retries", "header"];
        assert_eq!(paths[..2], ["mtu", "ttl"]);
        assert_eq!(paths[2..5], keepalive);
        assert_eq!(paths[5..], ["reassembly.timeout", "reassembly.memory"]);
        let mut errors = RangeErrors::default();
        read(serde_json::json!({ "ends": ["a", "b"], "mtu": "65511 B" })).check(&mut errors);
        assert_eq!(errors, RangeErrors::default());
    }
}
