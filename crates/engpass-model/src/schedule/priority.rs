//! Strict priority between service categories.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One queue per service category; the next cell comes from the first queue that is not empty. A cell in transmission is not preempted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Priority {}
