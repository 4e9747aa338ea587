//! One queue for all, first in, first out.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One shared queue: cells leave in the order of their arrival, regardless of their service category.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Fifo {}
