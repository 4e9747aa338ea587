//! A testbed: what one file, one variant and one point of its sweep describe.

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
    /// What it is called in reports.
    pub name: String,
    /// What it is about, in a sentence or two.
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
    /// How long and how often.
    pub run: Run,
}

/// How long a run is and how often it is repeated.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Run {
    /// Simulated (or real) time of one run.
    pub duration: Duration,
    /// Time at the beginning that does not count.
    pub warmup: Option<Duration>,
    /// Of `measure`: a run goes on until the 95 % confidence interval of every flow's mean reaches no further than this share to either side, instead
    /// of ending after `duration`, which is then the least. The model's engines run for `duration`.
    pub precision: Option<Share>,
    /// Of `measure`: the longest that a run with a `precision` lasts, `duration` and `warmup` included; ten times `duration` if not given.
    pub longest: Option<Duration>,
    /// Repeats of every point, each with a seed of its own.
    pub repeats: u32,
    /// Seed of the first repeat; the others count on from it.
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
    /// The longest that a real run lasts: `longest`, or ten times `duration`, where there is a `precision` to reach.
    pub fn most(&self) -> Duration {
        match (self.precision, self.longest) {
            (None, _) => self.duration,
            (Some(_), Some(longest)) => longest,
            (Some(_), None) => Duration(self.duration.0.saturating_mul(10)),
        }
    }
}
