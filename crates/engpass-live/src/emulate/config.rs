//! Configuration of the driver, as JSON. `docs/driver.md` is the contract.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::PathBuf;

use engpass_testbed::{Point, Source, load};
use serde::{Deserialize, Serialize};

use super::capture::CaptureConfig;
use super::error::EmulateError;
use super::routers::Routers;
use super::wait_strategy::Clock;
use crate::time::{MILLISECOND, nanoseconds};

/// The whole configuration.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Config {
    pub(super) testbed: Bed,
    /// Seed; default: that of the testbed.
    pub(super) seed: Option<u64>,
    pub(super) hosts: Vec<HostConfig>,
    /// Addresses of routers by name. A router with an address sends ICMP messages when it drops packets.
    #[serde(default)]
    pub(super) routers: BTreeMap<String, Vec<IpAddr>>,
    #[serde(default)]
    pub(super) clock: Clock,
    /// Limit for the lateness of 99.9 % of the packets: text with a unit, such as `1 ms`.
    pub(super) limit: Option<String>,
    /// Time dilation: everything runs this many times slower than the testbed says.
    #[serde(default = "one")]
    pub(super) slow: u64,
    /// True if the devices give no GSO packets: every packet then has the length that it would have on a wire.
    #[serde(default)]
    pub(super) wire_true: bool,
    /// When the events of the testbed begin.
    #[serde(default)]
    pub(super) events: EventsBegin,
    /// Path of the control socket to listen on.
    pub(super) socket: PathBuf,
    /// File for the log of injected packets and delivery reports.
    pub(super) log: Option<PathBuf>,
    #[serde(default)]
    pub(super) capture: CaptureConfig,
}

/// When the events of a testbed begin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum EventsBegin {
    /// With the network.
    #[default]
    AtOnce,
    /// On request.
    WhenAsked,
}

/// A testbed: its text, or its text with the point to run.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(untagged)]
pub(super) enum Bed {
    Text(String),
    Point(BedPoint),
}

/// A point of a testbed file.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct BedPoint {
    text: String,
    /// Name of the file that messages show.
    #[serde(default)]
    source: String,
    /// Overrides, as pairs of path and value, like those of `--set`.
    #[serde(default)]
    overrides: Vec<(String, String)>,
    variant: Option<String>,
    #[serde(default)]
    sweep: Vec<(String, String)>,
}

/// A host and its device.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct HostConfig {
    pub(super) name: String,
    /// Path of the host's network namespace.
    pub(super) netns: PathBuf,
    pub(super) device: String,
    #[serde(default)]
    pub(super) kind: DeviceKind,
    pub(super) addresses: Vec<IpAddr>,
}

/// Kind of packets that a device carries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum DeviceKind {
    /// IP packets.
    #[default]
    Tun,
    /// Ethernet frames.
    Tap,
}

fn one() -> u64 {
    1
}

/// Default limit of the lateness, in ns.
const LIMIT: u64 = MILLISECOND;
/// Greatest time dilation: a second of the host's time for one nanosecond of the testbed.
const SLOWEST: u64 = 1_000_000_000;

impl Config {
    /// Parses JSON and checks everything that does not need the testbed.
    pub(super) fn parse(text: &str) -> Result<Self, EmulateError> {
        let config: Self = serde_json::from_str(text).map_err(|error| {
            EmulateError::config(format!("the configuration is invalid: {error}"), FORMAT)
        })?;
        if config.slow == 0 || config.slow > SLOWEST {
            return Err(EmulateError::config(
                format!("`slow` is {}, which is out of range", config.slow),
                "give a whole number from 1 to 1000000000",
            ));
        }
        if config.hosts.len() < 2 {
            return Err(EmulateError::config(
                "`hosts` has fewer than two entries",
                "list at least two hosts",
            ));
        }
        config.limit_ns()?;
        Ok(config)
    }

    /// Returns the addresses of the testbed's routers, in order. Fails if the configuration names another router.
    pub(super) fn routers<'n>(
        &self,
        names: impl Iterator<Item = &'n String> + Clone,
    ) -> Result<Routers, EmulateError> {
        if let Some(other) = self.routers.keys().find(|router| !names.clone().any(|name| name == *router)) {
            return Err(EmulateError::config(
                format!("the testbed has no router `{other}`"),
                "remove it from `routers`",
            ));
        }
        Ok(Routers(names.map(|name| self.routers.get(name).cloned().unwrap_or_default()).collect()))
    }

    /// Returns the limit of the lateness in ns of virtual time.
    pub(super) fn limit_ns(&self) -> Result<u64, EmulateError> {
        let Some(text) = &self.limit else { return Ok(LIMIT) };
        nanoseconds(text).map_err(|cause| EmulateError::config(format!("`limit`: {cause}"), FORMAT))
    }

    /// Returns the index in the testbed of each configured host, and the index of a host by address. Fails for duplicate names or addresses and unknown names.
    pub(super) fn directory(
        &self,
        names: &[&str],
    ) -> Result<(Vec<usize>, BTreeMap<IpAddr, usize>), EmulateError> {
        let (mut places, mut addresses) = (Vec::new(), BTreeMap::new());
        for host in &self.hosts {
            let Some(index) = names.iter().position(|name| *name == host.name) else {
                return Err(EmulateError::config(
                    format!("the testbed has no host `{}`", host.name),
                    format!("its hosts are `{}`", names.join("`, `")),
                ));
            };
            if places.contains(&index) {
                return Err(EmulateError::config(
                    format!("host `{}` is listed twice", host.name),
                    "list it once, with one device",
                ));
            }
            places.push(index);
            for address in &host.addresses {
                if addresses.insert(*address, index).is_some() {
                    return Err(EmulateError::config(
                        format!("{address} is listed twice"),
                        "give every host different addresses",
                    ));
                }
            }
        }
        Ok((places, addresses))
    }
}

const FORMAT: &str = "see the page `driver.md` for the format";

impl Bed {
    /// Loads and checks the testbed and returns the point.
    pub(super) fn point(&self) -> Result<Point, EmulateError> {
        let plain;
        let bed = match self {
            Self::Point(bed) => bed,
            Self::Text(text) => {
                plain = BedPoint {
                    text: text.clone(),
                    source: String::new(),
                    overrides: Vec::new(),
                    variant: None,
                    sweep: Vec::new(),
                };
                &plain
            }
        };
        let source = if bed.source.is_empty() { "testbed.toml" } else { &bed.source };
        let refused = |found| EmulateError::Testbed(Box::new(found));
        let source = Source::from_bytes(source, bed.text.as_bytes()).map_err(refused)?;
        let campaign = load(&source, &bed.overrides, None).map_err(refused)?;
        let variant = match &bed.variant {
            Some(variant) if campaign.variants().contains(variant) => variant,
            Some(variant) => {
                let known = campaign.variants().join("`, `");
                return Err(EmulateError::config(
                    format!("the testbed has no variant `{variant}`"),
                    format!("it has `{known}`"),
                ));
            }
            None => &campaign.variants()[0],
        };
        campaign.point(variant, &bed.sweep).map_err(refused)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn config(change: impl FnOnce(&mut Value)) -> Result<Config, EmulateError> {
        let host = |name: &str, address: &str| json!({ "name": name, "netns": "/run/netns/x", "device": "lan", "addresses": [address] });
        let mut value = json!({
            "testbed": "name = \"x\"",
            "hosts": [host("a", "10.0.0.1"), host("b", "fd00::2")],
            "socket": "/tmp/x",
        });
        change(&mut value);
        Config::parse(&value.to_string())
    }

    #[test]
    fn driver_config_has_defaults() {
        let config = config(|_| {}).expect("the config is valid");
        assert_eq!((config.clock, config.slow, config.wire_true), (Clock::Auto, 1, false));
        assert_eq!(config.limit_ns().expect("the config is valid"), 1_000_000);
        assert_eq!((config.seed, config.log, config.hosts[0].kind), (None, None, DeviceKind::Tun));
        let (places, addresses) = super::tests::config(|_| {})
            .and_then(|config| config.directory(&["z", "b", "a"]))
            .expect("the testbed has both hosts");
        assert_eq!(places, [2, 1]);
        assert_eq!(addresses.into_values().collect::<Vec<_>>(), [2, 1]);
    }

    #[test]
    fn driver_config_errors_name_the_cause_and_give_help() {
        type Change = fn(&mut Value);
        let cases: [(Change, &str); 9] = [
            (|value| value["slow"] = json!(0), "`slow` is 0"),
            (|value| value["slow"] = json!(1.5), "the configuration is invalid"),
            (|value| value["limit"] = json!("1"), "`limit`: "),
            (|value| value["clock"] = json!("busy"), "unknown variant `busy`"),
            (|value| value["sokcet"] = json!(""), "unknown field `sokcet`"),
            (|value| value["hosts"] = json!([]), "`hosts` has fewer than two entries"),
            (|value| value["hosts"][0]["addresses"] = json!(["10.0.0"]), "invalid IP address syntax"),
            (|value| value["hosts"][0]["kind"] = json!("veth"), "unknown variant `veth`"),
            (|value| value["testbed"] = json!(3), "the configuration is invalid"),
        ];
        for (change, told) in cases {
            let error = config(change).expect_err(told).to_string();
            assert!(error.contains(told) && error.contains("\nhelp: "), "{error}");
        }
    }

    #[test]
    fn driver_config_rejects_unknown_or_repeated_hosts() {
        let told = |change: fn(&mut Value)| {
            let config = config(change).expect("the config is valid by itself");
            config.directory(&["a", "b"]).expect_err("the hosts do not match the testbed").to_string()
        };
        let error = told(|value| value["hosts"][1]["name"] = json!("c"));
        assert_eq!(error, "the testbed has no host `c`\nhelp: its hosts are `a`, `b`");
        let error = told(|value| value["hosts"][1]["name"] = json!("a"));
        assert!(error.starts_with("host `a` is listed twice"), "{error}");
        let error = told(|value| value["hosts"][1]["addresses"] = json!(["10.0.0.1"]));
        assert!(error.starts_with("10.0.0.1 is listed twice"), "{error}");
    }

    #[test]
    fn driver_config_rejects_unknown_routers() {
        let config =
            config(|value| value["routers"] = json!({ "s": ["10.0.0.3"] })).expect("the config is valid");
        let names = ["r", "s"].map(str::to_owned);
        let address: IpAddr = "10.0.0.3".parse().expect("the address is valid");
        assert_eq!(
            config.routers(names.iter()).expect("the testbed has the router").0,
            [vec![], vec![address]]
        );
        let error = config.routers(names[..1].iter()).expect_err("the testbed has no router `s`").to_string();
        assert_eq!(error, "the testbed has no router `s`\nhelp: remove it from `routers`");
    }

    #[test]
    fn driver_config_takes_a_testbed_as_text_or_point() {
        let bed = |value: Value| serde_json::from_value::<Bed>(value).expect("the config is valid").point();
        assert!(matches!(bed(json!("name = 3")), Err(EmulateError::Testbed(_))));
        let text = "name = \"x\"\n[host.a]\n[host.b]\n[link.l]\nends = [\"a\", \"b\"]\nmedium = \"ethernet-1g\"\n\
                    [traffic.t]\nkind = \"udp-stream\"\nfrom = \"a\"\nto = \"b\"\nmessage = \"1 kB\"\nrate = \"1 Mbit/s\"\n\
                    [run]\nduration = \"1 s\"\n";
        assert_eq!(bed(json!(text)).expect("the config is valid").testbed.run.duration.0, 1_000_000_000_000);
        let set = json!({ "text": text, "overrides": [["run.duration", "2 s"]] });
        assert_eq!(bed(set).expect("the config is valid").testbed.run.duration.0, 2_000_000_000_000);
        let error =
            bed(json!({ "text": text, "variant": "other" })).expect_err("the testbed has no such variant");
        assert!(error.to_string().starts_with("the testbed has no variant `other`"), "{error}");
    }
}
