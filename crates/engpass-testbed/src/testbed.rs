//! A testbed: the file with one variant and one value of every sweep axis applied.

use engpass_model::bond::Bond;
use engpass_model::circuit::Circuit;
use engpass_model::event::Event;
use engpass_model::host::Host;
use engpass_model::link::Link;
use engpass_model::router::Router;
use engpass_model::source::Traffic;
use engpass_model::switch::Switch;
use engpass_model::tunnel::Tunnel;
use engpass_model::unit::{Duration, Share};
use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One testbed, every table in the order of the file.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Testbed {
    /// Name in reports.
    pub name: String,
    /// Description in a sentence or two.
    pub description: Option<String>,
    /// Hosts by name.
    pub hosts: IndexMap<String, Host>,
    /// Switches by name.
    pub switches: IndexMap<String, Switch>,
    /// Routers by name.
    pub routers: IndexMap<String, Router>,
    /// Links by name.
    pub links: IndexMap<String, Link>,
    /// Circuits by name.
    pub circuits: IndexMap<String, Circuit>,
    /// Tunnels by name.
    pub tunnels: IndexMap<String, Tunnel>,
    /// Bonds by name.
    pub bonds: IndexMap<String, Bond>,
    /// Traffic by name.
    pub traffic: IndexMap<String, Traffic>,
    /// Events by name.
    pub events: IndexMap<String, Event>,
    /// Length and number of runs.
    pub run: Run,
}

/// Length of a run and number of repeats.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Run {
    /// Length of one run in simulated or real time, warm-up included.
    pub duration: Duration,
    /// Warm-up: time at the beginning of a run that is not counted.
    pub warmup: Option<Duration>,
    /// Only for `measure`: a run lasts until the half width of the 95 % confidence interval of every flow's mean is at most this share of the mean,
    /// but at least `duration`. The model's engines always run for `duration`.
    pub precision: Option<Share>,
    /// Only for `measure`: longest time of a run with a `precision`, warm-up included; default: ten times `duration`.
    pub longest: Option<Duration>,
    /// Number of repeats of every point, each with a different seed.
    pub repeats: u32,
    /// Seed of the first repeat; every further repeat adds one.
    pub seed: u64,
}

impl Default for Run {
    fn default() -> Self {
        Self {
            duration: Duration(10_000_000_000_000),
            warmup: None,
            precision: None,
            longest: None,
            repeats: 1,
            seed: 1,
        }
    }
}

impl Run {
    /// Returns the longest time of a real run: with a `precision`, `longest` or ten times `duration`; otherwise `duration`.
    pub fn most(&self) -> Duration {
        match (self.precision, self.longest) {
            (None, _) => self.duration,
            (Some(_), Some(longest)) => longest,
            (Some(_), None) => Duration(self.duration.0.saturating_mul(10)),
        }
    }
}
