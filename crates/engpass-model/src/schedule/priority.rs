//! Strict priority between service categories.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A queue for each service category; a cell is taken from the first that is not empty. A cell being sent is finished.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Priority {}
