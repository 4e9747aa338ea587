//! The outcome of a node: the load of its engines.

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::signal::share;

/// The outcome of a host or router.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NodeOutcome {
    /// Engines that process its packets, by name: `cpu` at a host, `forwarding` at a router.
    pub engines: IndexMap<String, EngineOutcome>,
}

/// An engine that processes packets one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EngineOutcome {
    /// Share of the measurement window in which the engine was busy, 0 to 1. With `limit`: the share of its time that it works if every flow
    /// sends at its limit, without the time that a host's memory or I/O bus takes.
    #[schemars(extend("x-signal" = share("Load").summary(&[])))]
    pub load: f64,
}
