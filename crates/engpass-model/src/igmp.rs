//! IGMPv2 (RFC 2236): the timers by which hosts join and leave a multicast group.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::range_errors::{LONGEST, RangeErrors};
use crate::time::SECOND;
use crate::unit::Duration;

/// Timers of IGMPv2 (RFC 2236 section 8) for a multicast group whose receivers join and leave.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Igmp {
    /// Number of reports that a host sends when it joins, in case one is lost (RFC 2236 section 8.1, robustness variable). The other defaults do not
    /// follow it.
    #[serde(default = "robustness")]
    pub robustness: u64,
    /// Interval between these reports (RFC 2236 section 8.10).
    #[serde(default = "unsolicited_report_interval")]
    pub unsolicited_report_interval: Duration,
    /// Number of queries that the router sends after a leave message (RFC 2236 section 8.9; the default there is the robustness variable). If none is
    /// answered, the branch is pruned.
    #[serde(default = "last_member_query_count")]
    pub last_member_query_count: u64,
    /// Time that the router waits for an answer to each query that follows a leave message (RFC 2236 section 8.8).
    #[serde(default = "last_member_query_interval")]
    pub last_member_query_interval: Duration,
    /// Time from a leave to the pruning of the branch if the leave message was lost. RFC 2236 section 8.4 counts it from the last report, so a real router
    /// may prune earlier.
    #[serde(default = "group_membership_interval")]
    pub group_membership_interval: Duration,
}

fn robustness() -> u64 {
    2
}

fn unsolicited_report_interval() -> Duration {
    Duration(10 * SECOND)
}

fn last_member_query_count() -> u64 {
    2
}

fn last_member_query_interval() -> Duration {
    Duration(SECOND)
}

fn group_membership_interval() -> Duration {
    Duration(260 * SECOND)
}

impl Default for Igmp {
    fn default() -> Self {
        Self {
            robustness: robustness(),
            unsolicited_report_interval: unsolicited_report_interval(),
            last_member_query_count: last_member_query_count(),
            last_member_query_interval: last_member_query_interval(),
            group_membership_interval: group_membership_interval(),
        }
    }
}

/// Largest number of reports or queries.
const MOST: u64 = 100;

impl Igmp {
    /// Adds an error for every invalid value.
    pub fn check(&self, errors: &mut RangeErrors) {
        let counts = [
            ("robustness", self.robustness, "reports", "a host sends at least one report"),
            (
                "last_member_query_count",
                self.last_member_query_count,
                "queries",
                "a router asks at least once",
            ),
        ];
        for (key, count, unit, cause) in counts {
            let cause = if count == 0 { cause } else { "too many for one change" };
            errors.between(&[key], count, (1, MOST), unit, cause);
        }
        for (key, time) in [
            ("unsolicited_report_interval", self.unsolicited_report_interval),
            ("last_member_query_interval", self.last_member_query_interval),
            ("group_membership_interval", self.group_membership_interval),
        ] {
            errors.positive(&[key], time, LONGEST);
        }
    }

    /// Returns the time from the arrival of a leave message at the router to the end of forwarding, in picoseconds (RFC 2236 section 3; RFC 3376
    /// section 8.10 calls it the last member query time).
    pub fn last_member_query_time(&self) -> u64 {
        self.last_member_query_count.saturating_mul(self.last_member_query_interval.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn igmp_defaults_are_those_of_rfc_2236() {
        let igmp: Igmp = serde_json::from_value(serde_json::json!({})).expect("an empty table is valid");
        assert_eq!(igmp, Igmp::default());
        assert_eq!(igmp.last_member_query_time(), 2 * SECOND);
        let mut errors = RangeErrors::default();
        igmp.check(&mut errors);
        assert_eq!(errors, RangeErrors::default());
    }

    #[test]
    fn igmp_rejects_timers_that_never_act() {
        let table = serde_json::json!({ "robustness": 0, "last_member_query_count": 101, "group_membership_interval": "0 s" });
        let igmp: Igmp = serde_json::from_value(table).expect("the test's JSON is valid");
        let mut errors = RangeErrors::default();
        igmp.check(&mut errors);
        let keys: Vec<_> = errors.into_iter().map(|complaint| complaint.path[0].clone()).collect();
        assert_eq!(keys, ["robustness", "last_member_query_count", "group_membership_interval"]);
    }
}
