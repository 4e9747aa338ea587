//! Tail drop: a cell that finds the queue full is lost.

use schemars::JsonSchema;
use serde::Deserialize;

/// A cell that finds the queue full is lost, whatever frame it belongs to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Tail {}
