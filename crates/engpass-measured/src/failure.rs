//! Why a point has no outcome.

use std::fmt;

use serde_json::Value;

use crate::answer::{End, without_nulls};

/// An error that a user can cause: its cause and its cure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The cause.
    pub cause: String,
    /// The cure, if there is one.
    pub help: Option<String>,
}

impl Failure {
    pub(crate) fn new(cause: impl Into<String>, help: &str) -> Self {
        Self { cause: cause.into(), help: Some(help.to_owned()) }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.cause)
    }
}

/// Fails if an end of a flow failed or ended before its time. `told` is its result, or its event `done`.
///
/// # Errors
/// With the agent's cause, or the reason why the end is over.
pub fn check_end(flow: &str, host: &str, told: Value) -> Result<(), Failure> {
    match serde_json::from_value(without_nulls(told)) {
        Ok(end) => refuse_early_end(flow, host, &end),
        Err(error) => Err(unknown_answer(host, &error)),
    }
}

pub(crate) fn refuse_early_end(flow: &str, host: &str, end: &End) -> Result<(), Failure> {
    let early = match end.ended.as_deref() {
        None | Some("duration" | "bytes" | "stopped") => return Ok(()),
        Some("peer") if end.role == "receive" => return Ok(()),
        Some("peer") => "the peer closed the connection early",
        Some("limit-rate") => "the owner of that host does not allow this rate",
        Some("limit-bytes") => "the owner of that host does not allow more bytes",
        Some("limit-time") => "the owner of that host does not allow more time",
        Some("silent") => "nothing arrived",
        Some(_) => "no reason given",
    };
    let error = end.error.clone().unwrap_or_default();
    let cause = error.cause.as_deref().unwrap_or(early);
    Err(Failure { cause: format!("traffic `{flow}` failed at host `{host}`: {cause}"), help: error.help })
}

pub(crate) fn unknown_answer(host: &str, error: &serde_json::Error) -> Failure {
    Failure::new(
        format!("the agent of host `{host}` sent an unknown answer: {error}"),
        "install the same version of engpass on both hosts",
    )
}
