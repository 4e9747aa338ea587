//! Limits of the agents on real hosts, which may be narrower than those of the model.

use super::Traffic;
use super::poisson::Sizes;
use super::real_host_options::{Method, Pacing};
use crate::range_errors::RangeErrors;
use crate::unit::{Duration, Rate};
use crate::wire::ip::MAX_UDP_PAYLOAD;

/// The smallest payload of a datagram in bytes: a header with sequence number and tag.
pub const LEAST_DATAGRAM: u64 = 12;
/// The largest message of a byte stream in bytes, because agents hold it in memory.
pub const MOST_WRITE: u64 = 64 << 20;
/// The largest number of streams of a flow, because each is a thread.
pub const MOST_STREAMS: u64 = 128;
/// The smallest and largest segment size that a Linux socket accepts, in bytes.
pub const SEGMENT: (u64, u64) = (88, 32_767);
/// The largest number of flows in a run that begin or end at one host.
pub const MOST_FLOWS: usize = 64;
/// The longest name of a flow, in bytes.
pub const MOST_NAME: usize = 64;
/// The longest time for which a flow may send: a week.
pub const LONGEST: Duration = Duration(7 * 86_400 * 1_000_000_000_000);
/// The highest rate of a schedule, in bit/s of payload.
pub const FASTEST: u64 = 10_000_000_000_000;

impl Traffic {
    /// Adds an error for each value that real hosts do not support, in `measure` and `emulate`.
    pub fn check_agents(&self, errors: &mut RangeErrors) {
        if let Some((bytes, _)) = self.datagrams() {
            let cause = "agents put a header into the payload of each datagram";
            errors.between(&["message"], bytes, (LEAST_DATAGRAM, MAX_UDP_PAYLOAD), "B", cause);
        }
        match self {
            Self::TcpStream(config) => {
                let cause = "agents keep the whole message in memory";
                errors.between(&["message"], config.message.bytes(), (1, MOST_WRITE), "B", cause);
                let (streams, cause) = (u64::from(config.streams), "agents use one thread per connection");
                errors.between(&["streams"], streams, (1, MOST_STREAMS), "connections", cause);
            }
            Self::Poisson(config) if config.sizes == Sizes::Exponential => {
                errors.add(&["sizes"], "agents send datagrams of one size only", "remove it");
            }
            Self::RequestResponse(config) => {
                let bits = u128::from(config.request.bytes()) * 8;
                let per_second = |every: Duration| bits * 1_000_000_000_000 / u128::from(every.0.max(1));
                if config.every.is_some_and(|every| per_second(every) > u128::from(FASTEST)) {
                    let cause = format!("agents send requests at up to {}", Rate(FASTEST));
                    errors.add(&["every"], cause, "give a longer interval, or smaller requests");
                }
            }
            _ => {}
        }
        self.check_how(errors);
    }

    fn check_how(&self, errors: &mut RangeErrors) {
        let Some(live) = self.live() else { return };
        let (talks, even) = match self {
            Self::RequestResponse(_) => (true, false),
            Self::UdpStream(config) => (false, config.rate.is_some()),
            Self::TcpStream(config) => (false, config.rate.is_some()),
            Self::Multicast(config) => (false, config.video.is_none()),
            _ => (false, false),
        };
        let tcp = matches!(self, Self::TcpStream(_));
        if live.pacing == Some(Pacing::Kernel) && !even {
            let cause = "the kernel can pace only a stream with a constant rate";
            let help = "give the stream a `rate`, or use another `pacing`, such as `sleep`";
            errors.add(&["live", "pacing"], cause, help);
        }
        if live.pacing == Some(Pacing::Burst) && self.frame_pattern().is_some() {
            let help = "use another `pacing`, such as `sleep`";
            errors.add(&["live", "pacing"], "the frames of a video are bursts of their own", help);
        }
        if live.pacing == Some(Pacing::Burst) && (tcp || talks) {
            let help = "use another `pacing`, such as `sleep`";
            errors.add(&["live", "pacing"], "only streams of datagrams can be sent in bursts", help);
        }
        if talks {
            let streams = [
                ("method", live.method.is_some_and(|method| method != Method::Write)),
                ("truncate", live.truncate == Some(true)),
                ("segmentation", live.segmentation == Some(true)),
            ];
            for (key, _) in streams.into_iter().filter(|(_, given)| *given) {
                errors.add(&["live", key], "it is for streams, not for requests and responses", "remove it");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn errors(change: Value) -> Vec<String> {
        let mut table = json!({ "from": "a", "to": "b", "message": "1 kB" });
        if let (Some(table), Value::Object(change)) = (table.as_object_mut(), change) {
            table.extend(change);
        }
        let kind = table
            .as_object_mut()
            .and_then(|table| table.shift_remove("kind"))
            .expect("the traffic config has a kind");
        let traffic = match kind.as_str().expect("the kind is a string") {
            "udp-stream" => {
                Traffic::UdpStream(serde_json::from_value(table).expect("the traffic config is valid"))
            }
            "tcp-stream" => {
                Traffic::TcpStream(serde_json::from_value(table).expect("the traffic config is valid"))
            }
            "poisson" => {
                Traffic::Poisson(serde_json::from_value(table).expect("the traffic config is valid"))
            }
            "video" => Traffic::Video(serde_json::from_value(table).expect("the traffic config is valid")),
            _ => {
                table.as_object_mut().expect("the traffic config is a table").shift_remove("message");
                Traffic::RequestResponse(serde_json::from_value(table).expect("the traffic config is valid"))
            }
        };
        let mut found = RangeErrors::default();
        traffic.check_agents(&mut found);
        found.into_iter().map(|complaint| complaint.path.join(".")).collect()
    }

    #[test]
    fn agent_limits_reject_unsupported_traffic_by_key() {
        let rr = json!({ "request": "64 B", "response": "64 B" });
        let rr = |live: Value| {
            let mut table = rr.clone();
            table["kind"] = json!("request-response");
            table["live"] = live;
            table
        };
        for (table, keys) in [
            (json!({ "kind": "udp-stream", "message": "12 B" }), vec![]),
            (json!({ "kind": "udp-stream", "message": "11 B" }), vec!["message"]),
            (json!({ "kind": "udp-stream", "live": { "pacing": "kernel" } }), vec!["live.pacing"]),
            (json!({ "kind": "udp-stream", "rate": "1 Mbit/s", "live": { "pacing": "kernel" } }), vec![]),
            (json!({ "kind": "poisson", "rate": "1 Mbit/s", "sizes": "exponential" }), vec!["sizes"]),
            (
                json!({ "kind": "video", "message": "11 B", "rate": "1 Mbit/s", "frame_rate": "25 fps", "live": { "pacing": "burst" } }),
                vec!["message", "live.pacing"],
            ),
            (json!({ "kind": "tcp-stream", "message": "1 B" }), vec![]),
            (json!({ "kind": "tcp-stream", "count": 2048 }), vec![]),
            (
                json!({ "kind": "tcp-stream", "message": "65 MiB", "streams": 129 }),
                vec!["message", "streams"],
            ),
            (json!({ "kind": "tcp-stream", "live": { "pacing": "burst" } }), vec!["live.pacing"]),
            (rr(json!({ "pacing": "burst", "method": "sendfile" })), vec!["live.pacing", "live.method"]),
            (rr(json!({ "pacing": "sleep", "method": "write" })), vec![]),
            (
                json!({ "kind": "request-response", "request": "1 MiB", "response": "20 B", "every": "800 ns" }),
                vec!["every"],
            ),
            (
                json!({ "kind": "request-response", "request": "1 MiB", "response": "20 B", "every": "1 us" }),
                vec![],
            ),
        ] {
            assert_eq!(errors(table.clone()), keys, "{table}");
        }
    }
}
