//! Join and leave delays of multicast receivers (RFC 3918 section 5).

use engpass_outcome::Receiver;
use indexmap::IndexMap;

use crate::answer::{GroupTrial, Membership, without_nulls};
use crate::failure::{Failure, unknown_answer};

/// The join and leave delay of one receiver in seconds, or why they are unknown.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Delays {
    join_s: Option<f64>,
    leave_s: Option<f64>,
    join_unknown: Option<String>,
    leave_unknown: Option<String>,
}

impl Delays {
    /// Writes the delays into the outcome of the receiver.
    pub(crate) fn put(self, receiver: &mut Receiver) {
        receiver.join_delay_s = self.join_s;
        receiver.leave_delay_s = self.leave_s;
        receiver.join_unknown = self.join_unknown;
        receiver.leave_unknown = self.leave_unknown;
    }
}

/// Returns the delays of each receiver. If the trial failed, they are unknown.
pub(crate) fn delays(trial: &GroupTrial) -> Result<IndexMap<&str, Delays>, Failure> {
    let one = |(host, told): (_, &serde_json::Value)| {
        let host: &String = host;
        if trial.error.is_some() {
            let unknown = Delays {
                join_unknown: trial.error.clone(),
                leave_unknown: trial.error.clone(),
                ..Delays::default()
            };
            return Ok((host.as_str(), unknown));
        }
        let changes: Vec<Membership> = serde_json::from_value(without_nulls(told.clone()))
            .map_err(|error| unknown_answer(host, &error))?;
        Ok((host.as_str(), of(trial, &changes)))
    };
    trial.receivers.iter().map(one).collect()
}

fn of(trial: &GroupTrial, changes: &[Membership]) -> Delays {
    let mut found = Delays::default();
    for change in changes {
        match (change.join_ns, change.first_ns) {
            (Some(join), Some(first)) => found.join_s = Some((first - join) as f64 / 1e9),
            (Some(_), None) => {
                // Without a first datagram, the leave delay is unknown as well.
                return Delays {
                    join_unknown: Some(format!("nothing arrived within {} s", trial.member_s)),
                    leave_unknown: Some("nothing had arrived".to_owned()),
                    ..Delays::default()
                };
            }
            (None, _) if change.seen_by.is_none() => {
                found.leave_unknown = Some("not seen: that needs CAP_NET_RAW".to_owned());
            }
            (None, _) if !change.quiet => {
                found.leave_unknown = Some(format!("still forwarded {} s later", trial.left_s));
            }
            (None, _) => {
                let last = change.last_ns.filter(|last| *last != 0).unwrap_or(change.leave_ns);
                found.leave_s = Some((last - change.leave_ns) as f64 / 1e9);
            }
        }
    }
    found
}

/// Returns a sentence for each reason why join delays of a flow are unknown.
pub(crate) fn unknown_joins(flow: &str, delays: &IndexMap<&str, Delays>) -> Vec<String> {
    let mut why: IndexMap<&str, Vec<String>> = IndexMap::new();
    for (host, told) in delays {
        if let Some(reason) = &told.join_unknown {
            why.entry(reason).or_default().push(format!("`{host}`"));
        }
    }
    let sentence = |(reason, hosts): (&str, Vec<String>)| {
        format!(
            "the join delay of the group of `{flow}` is unknown at {}: {reason}; check whether the routers and switches on the path forward multicast",
            hosts.join(" and ")
        )
    };
    why.into_iter().map(sentence).collect()
}
