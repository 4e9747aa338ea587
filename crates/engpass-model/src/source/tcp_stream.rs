//! A bulk TCP transfer.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::complaint::Complaints;
use crate::unit::{Duration, Size};

/// Writes of one size into a TCP connection, one after the other (netperf's TCP_STREAM).
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TcpStream {
    /// Sending host.
    pub from: String,
    /// Receiving host.
    pub to: String,
    /// Size of one write.
    pub message: Size,
    /// The circuit to take, where there are several.
    pub circuit: Option<String>,
    /// When it starts.
    #[serde(default)]
    pub start: Option<Duration>,
    /// When it stops; at the end of the run if not given.
    #[serde(default)]
    pub stop: Option<Duration>,
}

/// The largest write, in bytes.
const MAX_WRITE: u64 = 1 << 30;

impl TcpStream {
    /// What is wrong with the values.
    pub fn check(&self, complaints: &mut Complaints) {
        let cause = "no application writes that at once";
        complaints.between(&["message"], self.message.bytes(), (1, MAX_WRITE), "B", cause);
    }
}
