//! Parses requests. Pure.

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::flow::Prepare;
use crate::lines::Line;
use crate::protocol_error::{Code, ProtocolError, Result};

/// A request.
#[derive(Debug)]
pub(super) enum Request {
    Prepare(Box<Prepare>),
    Start(Start),
    Stop(Of),
    Collect(Of),
    Drop(Of),
    Join(Of),
    Leave(Of),
    Ping,
    Calibrate(Calibrate),
    Readings,
}

/// The fields of `start`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Start {
    pub(super) run: String,
    #[serde(default)]
    pub(super) after_ns: u64,
}

/// The fields of requests about a run, or about one of its flows.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Of {
    pub(super) run: String,
    pub(super) flow: Option<String>,
}

/// The fields of `calibrate`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Calibrate {
    #[serde(default = "tenth")]
    pub(super) duration_ns: u64,
}

fn tenth() -> u64 {
    100_000_000
}

/// A request without fields.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Nothing {}

/// Returns the id and the request of a line; an error if the line is no valid request.
pub(super) fn of(line: Line) -> (Value, Result<Request>) {
    match line {
        Line::Text(text) => read(&text),
        Line::TooLong => {
            let problem =
                ProtocolError::new(Code::BadLine, "the line is longer than 1 MiB", "send shorter lines");
            (Value::Null, Err(problem))
        }
    }
}

/// Parses a line. The id is returned even if the rest is wrong, as long as the id can be read.
fn read(line: &[u8]) -> (Value, Result<Request>) {
    let bad = |cause: String| {
        ProtocolError::new(
            Code::BadLine,
            cause,
            "send one JSON object per line: `{\"id\": 1, \"do\": \"ping\"}`",
        )
    };
    let mut fields: Map<String, Value> = match serde_json::from_slice(line) {
        Ok(Value::Object(fields)) => fields,
        Ok(_) => return (Value::Null, Err(bad("the line is not a JSON object".to_owned()))),
        Err(error) => return (Value::Null, Err(bad(format!("the line is not valid JSON: {error}")))),
    };
    let id = match fields.shift_remove("id") {
        Some(id) if id.is_u64() => id,
        _ => {
            return (
                Value::Null,
                Err(ProtocolError::field(
                    "id",
                    "is missing or not a number",
                    "give each request a number, such as `\"id\": 1`",
                )),
            );
        }
    };
    let Some(Value::String(what)) = fields.shift_remove("do") else {
        return (
            id,
            Err(ProtocolError::field("do", "is missing or not text", "name a request, such as `ping`")),
        );
    };
    let rest = Value::Object(fields);
    let request = match what.as_str() {
        "prepare" => from(rest).map(|prepare| Request::Prepare(Box::new(prepare))),
        "start" => from(rest).map(Request::Start),
        "stop" => from(rest).map(Request::Stop),
        "collect" => from(rest).map(Request::Collect),
        "drop" => from(rest).map(Request::Drop),
        "join" => from(rest).map(Request::Join),
        "leave" => from(rest).map(Request::Leave),
        "ping" => from(rest).map(|Nothing {}| Request::Ping),
        "calibrate" => from(rest).map(Request::Calibrate),
        "readings" => from(rest).map(|Nothing {}| Request::Readings),
        other => Err(ProtocolError::field(
            "do",
            format_args!("unknown request `{other}`"),
            "use `prepare`, `start`, `stop`, `collect`, `drop`, `join`, `leave`, `ping`, `calibrate` or `readings`",
        )),
    };
    (id, request)
}

fn from<T: DeserializeOwned>(fields: Value) -> Result<T> {
    serde_json::from_value(fields).map_err(|error| {
        ProtocolError::new(
            Code::BadRequest,
            error.to_string(),
            "docs/agent.md lists the fields of each request",
        )
    })
}

/// Returns whether a line is a valid request. For tests and fuzzing.
pub fn parse(line: &[u8]) -> bool {
    read(line).1.is_ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn code(line: &str) -> (Value, Option<Code>) {
        let (id, request) = read(line.as_bytes());
        (id, request.err().map(|problem| problem.code))
    }

    #[test]
    fn agent_line_is_a_request_or_an_error() {
        assert_eq!(code(r#"{"id": 3, "do": "ping"}"#), (3.into(), None));
        assert_eq!(code(r#"{"id": 3, "do": "ping", "x": 1}"#), (3.into(), Some(Code::BadRequest)));
        assert_eq!(code(r#"{"id": 3, "do": "pong"}"#), (3.into(), Some(Code::BadRequest)));
        assert_eq!(code(r#"{"id": 3}"#), (3.into(), Some(Code::BadRequest)));
        assert_eq!(code(r#"{"do": "ping"}"#), (Value::Null, Some(Code::BadRequest)));
        assert_eq!(code("[1]"), (Value::Null, Some(Code::BadLine)));
        assert_eq!(code(""), (Value::Null, Some(Code::BadLine)));
        assert_eq!(code(&"[".repeat(100_000)), (Value::Null, Some(Code::BadLine)));
        assert_eq!(code(r#"{"id": 1, "do": "start", "run": 7}"#), (1.into(), Some(Code::BadRequest)));
    }

    const PREPARE: &str = r#"{"id":1,"do":"prepare","run":"0123456789abcdef0123456789abcdef","flow":"a","kind":"udp-stream","side":"connect","to":["127.0.0.1:9"],"message_bytes":1472,"duration_ns":5,"schedule":{"kind":"cbr","rate_bit_per_s":5},"socket":{"dscp":4}}"#;

    proptest! {
        #[test]
        fn agent_request_parser_survives_random_bytes(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let _ = read(&bytes);
        }

        /// Takes a valid request, changes some bytes and cuts it off.
        #[test]
        fn agent_request_parser_survives_damaged_requests(
            changes in prop::collection::vec((0..PREPARE.len(), any::<u8>()), 0..6),
            end in 0..=PREPARE.len(),
        ) {
            let mut bytes = PREPARE.as_bytes().to_vec();
            for (at, byte) in changes {
                bytes[at] = byte;
            }
            let (_, request) = read(&bytes[..end]);
            if let Ok(Request::Prepare(prepare)) = request {
                let _ = crate::flow::Spec::new(*prepare, &crate::limits::Limits::default());
            }
        }
    }
}
