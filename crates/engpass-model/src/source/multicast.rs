//! UDP datagrams from one sender to a group of receivers.

use std::fmt;
use std::net::IpAddr;

use schemars::JsonSchema;
use serde::de::{self, Deserializer, Visitor};
use serde::{Deserialize, Serialize, Serializer};

use super::real_host_options::{Live, Transport};
use super::{Arrivals, Common, FramePattern, Frames, SourceConfig, SourceOutput};
use crate::igmp::Igmp;
use crate::random::Stream;
use crate::range_errors::{FASTEST, RangeErrors};
use crate::unit::{Duration, Rate, Size};
use crate::wire::ip::MAX_UDP_PAYLOAD;

/// UDP datagrams to an IP multicast group; shows what each receiver gets (RFC 3918). Each link carries a datagram once. Nodes copy it where the paths
/// to the receivers part.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Multicast {
    /// Sending host.
    pub from: String,
    /// Receiving hosts.
    pub to: Vec<String>,
    /// Address of the group.
    #[serde(default = "default_group")]
    pub group: Group,
    /// Payload of a datagram, 12 B to 65 507 B.
    pub message: Size,
    /// Offered rate of payload, evenly spaced; with `video`, the mean.
    pub rate: Rate,
    /// The frames of a video; each is a burst of datagrams, as those of a traffic of kind `video`.
    pub video: Option<Frames>,
    /// Receive buffer of the receivers' sockets; the host's `receive_buffer` if not given.
    pub receive_buffer: Option<Size>,
    /// Settings for real hosts.
    #[serde(default)]
    pub live: Live,
    /// Timers of IGMP, for receivers that join and leave by an event.
    #[serde(default)]
    pub igmp: Igmp,
    /// Priority of the packets, 0 (default) to 7, for queue disciplines with priorities: 7 goes first (IEEE 802.1Q, priority code point).
    #[serde(default)]
    pub priority: u8,
    /// Time to live of the packets, 64 by default: they cross at most one router fewer than this (RFC 1812 section 5.3.1).
    #[serde(default = "super::default_ttl")]
    pub ttl: u8,
    /// When it starts; at the beginning of the run if not given.
    #[serde(default)]
    pub start: Option<Duration>,
    /// When it stops; at the end of the run if not given.
    #[serde(default)]
    pub stop: Option<Duration>,
}

/// Returns the name of one receiver of a group, for tables and for the sentences of `limit`. No traffic may have such a name.
pub fn receiver_name(traffic: &str, host: &str) -> String {
    format!("{traffic} to {host}")
}

/// The first address of the IPv4 local scope (RFC 2365 section 6.1).
fn default_group() -> Group {
    Group(IpAddr::from([239, 255, 0, 1]))
}

/// The address of an IP multicast group (RFC 1112, RFC 4291 section 2.7).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Group(pub IpAddr);

impl Group {
    const WHAT: &'static str = "the address of a multicast group";

    /// Parses an address from a testbed file. The error gives cause and remedy.
    ///
    /// # Errors
    /// If the text is no address, or the address of a single host.
    pub fn parse(text: &str) -> Result<Self, String> {
        let address: Option<IpAddr> = text.parse().ok();
        address.filter(IpAddr::is_multicast).map(Self).ok_or_else(|| {
            format!("`{text}` is not the address of a multicast group: write one like `239.255.0.1`")
        })
    }
}

impl fmt::Display for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl<'de> Deserialize<'de> for Group {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text;
        impl Visitor<'_> for Text {
            type Value = Group;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{} in quotes", Group::WHAT)
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Group, E> {
                Group::parse(text).map_err(E::custom)
            }
        }
        deserializer.deserialize_any(Text)
    }
}

impl Serialize for Group {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl JsonSchema for Group {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Group".into()
    }
    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "string", "title": Group::WHAT, "examples": ["239.255.0.1"] })
    }
}

/// The smallest payload of a datagram in bytes: a header with sequence number and tag.
const MIN_DATAGRAM: u64 = 12;

impl SourceConfig for Multicast {
    fn common(&self) -> Common<'_> {
        Common {
            receive_buffer: self.receive_buffer,
            priority: self.priority,
            ttl: Some(self.ttl),
            live: Some(&self.live),
            ..Common::between(
                (&self.from, self.to.first().map_or("", String::as_str)),
                (self.start, self.stop),
            )
        }
    }

    fn sends(&self) -> SourceOutput<'_> {
        SourceOutput::Datagrams { bytes: self.message.bytes(), rate: Some(self.rate) }
    }

    fn arrivals(&self, _random: Stream) -> Option<Arrivals> {
        Some(self.video?.arrivals(self.message, self.rate))
    }

    fn frame_pattern(&self) -> Option<FramePattern> {
        Some(self.video?.pattern(self.message, self.rate))
    }

    fn check(&self, errors: &mut RangeErrors) {
        if let Some(video) = &self.video {
            let mut own = RangeErrors::default();
            video.check(&mut own);
            errors.under(&["video"], own);
        }
        if self.to.is_empty() {
            errors.add(&["to"], "the group has no receivers", "name at least one host");
        }
        let cause = "a datagram must have room for a sequence number, and UDP limits its size";
        errors.between(&["message"], self.message.bytes(), (MIN_DATAGRAM, MAX_UDP_PAYLOAD), "B", cause);
        errors.between(&["rate"], self.rate.0, (1, FASTEST), "bit/s", "the rate is out of range");
        super::check_receive_buffer(self.receive_buffer, errors);
        self.live.check(Transport::Udp, errors);
        let mut own = RangeErrors::default();
        self.igmp.check(&mut own);
        errors.under(&["igmp"], own);
        super::check_packets(self.priority, self.ttl, errors);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn multicast_group_rejects_unicast_addresses() {
        assert_eq!(Group::parse("ff0e::1").map(|group| group.to_string()), Ok("ff0e::1".into()));
        for text in ["10.0.0.1", "everyone", ""] {
            assert!(Group::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn multicast_rejects_empty_receivers_and_short_messages() {
        let table = serde_json::json!({ "from": "a", "to": [], "message": "1 B", "rate": "1 Mbit/s" });
        let config: Multicast = serde_json::from_value(table).expect("the test's JSON is valid");
        let mut errors = RangeErrors::default();
        config.check(&mut errors);
        let keys: Vec<_> = errors.into_iter().map(|complaint| complaint.path[0].clone()).collect();
        assert_eq!(keys, ["to", "message"]);
    }
}
