//! Settings for the agents on real hosts: properties of a real stack, which the model does not have.

use std::fmt;

use schemars::JsonSchema;
use serde::de::{self, Deserializer, Visitor};
use serde::{Deserialize, Serialize, Serializer};

use crate::range_errors::RangeErrors;
use crate::unit::Size;

/// How real hosts send a traffic. `limit` and `simulate` ignore these settings, with a note.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Live {
    /// Differentiated services code point of the packets (RFC 2474): `ef`, `af41`, `cs5` or a number.
    pub dscp: Option<Dscp>,
    /// How a sender with a rate keeps it; `auto` if not given.
    pub pacing: Option<Pacing>,
    /// Messages per burst, for the pacing `burst`; 64 if not given.
    pub burst: Option<u32>,
    /// How a TCP sender passes data to the kernel; `write` if not given.
    pub method: Option<Method>,
    /// Whether the kernel segments and joins UDP datagrams (`UDP_SEGMENT`, `UDP_GRO`). The host can send far more of them, but in bursts.
    pub segmentation: Option<bool>,
    /// Whether a TCP receiver discards the data in the kernel instead of copying it (`MSG_TRUNC`).
    pub truncate: Option<bool>,
    /// Whether routers must not fragment the packets; the host's choice if not given.
    pub dont_fragment: Option<bool>,
    /// Ask for Multipath TCP (RFC 8684).
    pub mptcp: Option<bool>,
    /// Send buffer of a UDP socket. For TCP, use `tcp.send_buffer`.
    pub send_buffer: Option<Size>,
    /// Numbers, from 0, of the cores that the sender's threads are bound to, one thread to each in turn; the list starts again if there are more
    /// threads. If not given, the scheduler chooses.
    pub send_cores: Vec<u32>,
    /// Cores that the receiver's threads are bound to, like `send_cores`.
    pub receive_cores: Vec<u32>,
}

/// How a sender waits for the instant at which a message is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Pacing {
    /// Chosen by a calibration of the host's timer.
    Auto,
    /// Polls the clock all the time: exact, but occupies a core.
    Busy,
    /// Sleeps until shortly before the instant, then polls the clock.
    Hybrid,
    /// Sleeps until the instant: as exact as the host's timer.
    Sleep,
    /// The kernel keeps the rate of the stream (`SO_MAX_PACING_RATE`). UDP needs the queue discipline `fq`.
    Kernel,
    /// Sends several messages together, so that the sender wakes less often.
    Burst,
}

/// How data gets from the process into the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Method {
    /// One system call for every message.
    Write,
    /// `sendfile` from a file, without a copy by the process.
    Sendfile,
    /// `MSG_ZEROCOPY`. The report gives the share that the kernel copied nevertheless.
    Zerocopy,
    /// io_uring, with a copy.
    IoUring,
    /// io_uring without a copy.
    IoUringZerocopy,
}

/// The largest number of messages in a burst.
const MAX_BURST: u64 = 1024;
/// The highest core number.
const MAX_CORE: u64 = 4095;

impl Live {
    /// Returns whether all settings are the defaults.
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }

    /// Adds an error for each wrong value. Paths begin with `live`.
    pub(super) fn check(&self, transport: Transport, errors: &mut RangeErrors) {
        let mut own = RangeErrors::default();
        let tcp = transport == Transport::Tcp;
        let (other, only) = if tcp { ("TCP", "UDP") } else { ("UDP", "TCP") };
        for (key, given, for_tcp) in [
            ("method", self.method.is_some(), true),
            ("truncate", self.truncate.is_some(), true),
            ("mptcp", self.mptcp.is_some(), true),
            ("segmentation", self.segmentation.is_some(), false),
        ] {
            if given && for_tcp != tcp {
                own.add(&[key], format!("it is for {only}, but this traffic uses {other}"), "remove it");
            }
        }
        if let Some(size) = self.send_buffer {
            if tcp {
                own.add(
                    &["send_buffer"],
                    "it is for UDP, but this traffic uses TCP",
                    "use `tcp.send_buffer` instead",
                );
            }
            own.between(
                &["send_buffer"],
                size.bytes(),
                (1, 1 << 30),
                "B",
                "a socket buffer cannot have this size",
            );
        }
        if let Some(burst) = self.burst {
            if self.pacing != Some(Pacing::Burst) {
                own.add(
                    &["burst"],
                    "it applies only to the pacing `burst`",
                    "add `pacing = \"burst\"`, or remove it",
                );
            }
            let cause = "the length of a burst is out of range";
            own.between(&["burst"], u64::from(burst), (1, MAX_BURST), "messages", cause);
        }
        for (key, cores) in [("send_cores", &self.send_cores), ("receive_cores", &self.receive_cores)] {
            if let Some(core) = cores.iter().find(|core| u64::from(**core) > MAX_CORE) {
                own.add(
                    &[key],
                    format!("core {core} is above the maximum of {MAX_CORE}"),
                    "core numbers start at 0",
                );
            }
        }
        errors.under(&["live"], own);
    }
}

/// The transport protocol of a traffic.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Transport {
    /// TCP.
    #[default]
    Tcp,
    /// UDP.
    Udp,
}

/// A differentiated services code point, 0 to 63.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dscp(pub u8);

impl Dscp {
    /// Parses a name (RFC 2474, 2597, 3246, 8622) or a number. The error gives cause and remedy.
    ///
    /// # Errors
    /// For any other word, and for numbers above 63.
    pub fn parse(text: &str) -> Result<Self, String> {
        let lower = text.to_ascii_lowercase();
        let digits = |rest: &str| rest.bytes().map(|digit| digit.wrapping_sub(b'0')).collect::<Vec<u8>>();
        let value = match lower.as_str() {
            "be" | "default" => Some(0),
            "le" => Some(1),
            "ef" => Some(46),
            other => {
                if let Some(rest) = other.strip_prefix("cs") {
                    match digits(rest)[..] {
                        [class @ 0..=7] => Some(class * 8),
                        _ => None,
                    }
                } else if let Some(rest) = other.strip_prefix("af") {
                    match digits(rest)[..] {
                        [class @ 1..=4, drop @ 1..=3] => Some(class * 8 + drop * 2),
                        _ => None,
                    }
                } else {
                    other.parse().ok().filter(|value| *value < 64)
                }
            }
        };
        value.map(Self).ok_or_else(|| {
            format!(
                "`{text}` is not a DSCP: write `ef`, `af11` to `af43`, `cs0` to `cs7`, `le`, `be` or `0` to `63`"
            )
        })
    }
}

impl fmt::Display for Dscp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl<'de> Deserialize<'de> for Dscp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Word;
        impl Visitor<'_> for Word {
            type Value = Dscp;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a DSCP in quotes, like \"ef\"")
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Dscp, E> {
                Dscp::parse(text).map_err(E::custom)
            }
            fn visit_i64<E: de::Error>(self, number: i64) -> Result<Dscp, E> {
                Dscp::parse(&number.to_string()).map_err(E::custom)
            }
            fn visit_u64<E: de::Error>(self, number: u64) -> Result<Dscp, E> {
                Dscp::parse(&number.to_string()).map_err(E::custom)
            }
        }
        deserializer.deserialize_any(Word)
    }
}

impl Serialize for Dscp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl JsonSchema for Dscp {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Dscp".into()
    }
    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": ["string", "integer"], "title": "a DSCP", "examples": ["ef"] })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dscp_is_parsed_from_names_and_numbers() {
        for (text, value) in [("EF", 46), ("af41", 34), ("af13", 14), ("cs5", 40), ("le", 1), ("63", 63)] {
            assert_eq!(Dscp::parse(text), Ok(Dscp(value)), "{text}");
            assert_eq!(Dscp::parse(&Dscp(value).to_string()), Ok(Dscp(value)));
        }
        for text in ["af51", "af4", "cs8", "cs", "64", "-1", "gold"] {
            assert!(Dscp::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn live_keys_of_another_transport_are_rejected() {
        let keys = |live: &Live, transport| {
            let mut errors = RangeErrors::default();
            live.check(transport, &mut errors);
            errors.into_iter().map(|complaint| complaint.path.join(".")).collect::<Vec<_>>()
        };
        let tcp = Live { method: Some(Method::Sendfile), mptcp: Some(true), ..Live::default() };
        assert!(keys(&tcp, Transport::Tcp).is_empty());
        assert_eq!(keys(&tcp, Transport::Udp), ["live.method", "live.mptcp"]);
        let udp = Live { segmentation: Some(true), send_buffer: Some(Size(1 << 20)), ..Live::default() };
        assert!(keys(&udp, Transport::Udp).is_empty());
        assert_eq!(keys(&udp, Transport::Tcp), ["live.segmentation", "live.send_buffer"]);
        let burst = Live { burst: Some(0), send_cores: vec![0, 5000], ..Live::default() };
        assert_eq!(keys(&burst, Transport::Udp), ["live.burst", "live.burst", "live.send_cores"]);
    }
}
