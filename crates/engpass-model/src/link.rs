//! Links: full duplex, point to point.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::value::MapAccessDeserializer;
use serde::de::{self, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::queue::Queue;
use crate::range_errors::{LONGEST, RangeErrors};
use crate::unit::{Duration, Quantity, Rate, Share, Size};
use crate::wire::Medium;

/// A full-duplex link between two nodes.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Link {
    /// The two nodes at its ends: hosts, switches or routers.
    pub ends: [String; 2],
    /// The medium, which gives line rate and framing.
    pub medium: Medium,
    /// Line rate, one for both directions or one for each. Required for `atm` and `point-to-point`, not allowed for other media.
    pub rate: Option<LineRate>,
    /// Propagation delay in one direction. It must be more than zero.
    #[serde(default = "default_delay")]
    pub delay: Duration,
    /// Largest IP packet on an Ethernet or point-to-point link; 1500 B if not given. On ATM links, each circuit has its own MTU.
    pub mtu: Option<Size>,
    /// Bytes around every packet on a point-to-point link, for example HDLC framing; none if not given.
    pub overhead: Option<Size>,
    /// Whether frames on an Ethernet link carry a VLAN tag (IEEE 802.1Q) of 4 B.
    #[serde(default)]
    pub vlan: bool,
    /// Maximum extra delay of a packet beyond `delay`, drawn for each packet uniformly between zero and this value. Packets stay in order:
    /// a packet also waits for the one before it. Not on ATM links.
    pub jitter: Option<Duration>,
    /// Share of the packets that are lost on the line, independently at random. Not on ATM links.
    pub loss: Option<Share>,
    /// Random reordering: some packets arrive later than packets sent after them. Not on ATM links.
    pub reorder: Option<Reorder>,
    /// Queue discipline of the link's output ports at Ethernet switches and routers. It takes precedence over the node's own. Not on ATM
    /// links.
    pub queue: Option<Queue>,
}

/// Line rate of a link: `"100 Mbit/s"` in both directions, or `{ forward = "100 Mbit/s", backward = "1 Mbit/s" }`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineRate {
    /// One rate for both directions.
    Both(Rate),
    /// One rate per direction.
    Each(DirectedRates),
}

/// Line rates of the two directions of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DirectedRates {
    /// Line rate from the first of `ends` to the second.
    pub forward: Rate,
    /// Line rate from the second of `ends` to the first.
    pub backward: Rate,
}

impl LineRate {
    /// Line rates in bit/s of the transmitters at the two ends, in the order of `ends`.
    pub const fn of_ends(self) -> [u64; 2] {
        match self {
            Self::Both(rate) => [rate.0; 2],
            Self::Each(rates) => [rates.forward.0, rates.backward.0],
        }
    }
}

impl<'de> Deserialize<'de> for LineRate {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;
        impl<'de> Visitor<'de> for Reader {
            type Value = LineRate;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let rate = Rate::EXAMPLE;
                write!(
                    f,
                    "a rate in quotes, like \"{rate}\", or `{{ forward = \"{rate}\", backward = \"1 Mbit/s\" }}`"
                )
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<LineRate, E> {
                Rate::parse(text).map(LineRate::Both).map_err(E::custom)
            }
            fn visit_map<A: MapAccess<'de>>(self, table: A) -> Result<LineRate, A::Error> {
                DirectedRates::deserialize(MapAccessDeserializer::new(table)).map(LineRate::Each)
            }
        }
        deserializer.deserialize_any(Reader)
    }
}

impl Serialize for LineRate {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Both(rate) => rate.serialize(serializer),
            Self::Each(rates) => rates.serialize(serializer),
        }
    }
}

impl JsonSchema for LineRate {
    fn schema_name() -> Cow<'static, str> {
        "LineRate".into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let both = generator.subschema_for::<Rate>();
        let each = generator.subschema_for::<DirectedRates>();
        json_schema!({ "title": "a line rate", "anyOf": [both, each], "examples": [Rate::EXAMPLE] })
    }
}

/// Reordering: a random share of the packets arrives later and is overtaken.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Reorder {
    /// Share of the packets that are delayed.
    pub share: Share,
    /// Extra delay of these packets.
    pub delay: Duration,
}

/// Default delay: 1 us, a few hundred metres of cable.
fn default_delay() -> Duration {
    Duration(1_000_000)
}

impl Link {
    /// Line rates in bit/s of the transmitters at the two ends, in the order of `ends`. `None` if the medium needs a `rate` and none is
    /// given.
    pub fn line_rates(&self) -> Option<[u64; 2]> {
        self.medium.line_rate().map(|rate| [rate; 2]).or(self.rate.map(LineRate::of_ends))
    }

    /// Adds errors for invalid values, except for limits that depend on the medium.
    pub fn check(&self, errors: &mut RangeErrors) {
        errors.positive(&["delay"], self.delay, LONGEST);
        errors.at_most(&["jitter"], self.jitter, LONGEST);
        if self.loss.is_some_and(|share| share.0 > Share::WHOLE) {
            errors.add(&["loss"], "a share of the packets cannot exceed 100 %", "give `0 %` to `100 %`");
        }
        if let Some(reorder) = &self.reorder {
            if reorder.share.0 > Share::WHOLE {
                let cause = "a share of the packets cannot exceed 100 %";
                errors.add(&["reorder", "share"], cause, "give `0 %` to `100 %`");
            }
            errors.positive(&["reorder", "delay"], reorder.delay, LONGEST);
        }
        if let Some(queue) = &self.queue {
            queue.check_below(errors);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_rate_is_one_rate_or_one_per_direction() {
        let read = |json: serde_json::Value| serde_json::from_value::<LineRate>(json);
        let plain = read(serde_json::json!("100 Mbit/s")).expect("the JSON is a rate");
        assert_eq!(plain.of_ends(), [100_000_000; 2]);
        let table = serde_json::json!({ "forward": "100 Mbit/s", "backward": "1 Mbit/s" });
        let each = read(table.clone()).expect("the table has both rates");
        assert_eq!(each.of_ends(), [100_000_000, 1_000_000]);
        assert_eq!(serde_json::to_value(each).expect("a rate serializes to JSON"), table);
        assert!(read(serde_json::json!({ "forward": "100 Mbit/s" })).is_err());
        assert!(
            read(serde_json::json!({ "forward": "1 bit/s", "backward": "1 bit/s", "up": "1 bit/s" }))
                .is_err()
        );
    }
}
