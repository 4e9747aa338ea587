//! Events: links that go down and come back up, and receivers that join and leave a multicast group, during a run.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::random::Stream;
use crate::range_errors::{LONGEST, RangeErrors};
use crate::unit::Duration;

/// A link or an interface that goes down or comes up, or a receiver that joins or leaves a multicast group (with `traffic`). It happens at given times (`at`,
/// `change` and optionally `every`); links and interfaces also fail at random times (`mean_time_between_failures` and `mean_time_to_repair`).
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Event {
    /// The link that changes, or the interface `NODE/LINK`; with `traffic`, the receiver: a host in its `to`. Links that carry cells are not supported.
    ///
    /// While it is down, the link carries nothing in either direction. Both ends see a link go down; only `NODE` sees its interface go
    /// down.
    pub target: String,
    /// The multicast traffic whose group the receiver joins or leaves. A receiver whose first event is a `join` is no member before; any other receiver is a
    /// member from the beginning.
    pub traffic: Option<String>,
    /// Time of the change. With random times, the start of the first time to failure; the beginning of the run if not given.
    pub at: Option<Duration>,
    /// The change at that time: `down` or `up`; with `traffic`, `join` or `leave`.
    pub change: Option<EventChange>,
    /// Interval at which the change repeats. If not given, it happens once.
    pub every: Option<Duration>,
    /// Mean time from coming up to the next failure, exponentially distributed.
    pub mean_time_between_failures: Option<Duration>,
    /// Mean time from a failure to coming up again, exponentially distributed.
    pub mean_time_to_repair: Option<Duration>,
}

/// A change of a link, or of a receiver's membership in a multicast group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum EventChange {
    /// The link carries nothing from now on.
    Down,
    /// The link carries packets from now on.
    Up,
    /// The receiver joins the group.
    Join,
    /// The receiver leaves the group.
    Leave,
}

impl EventChange {
    /// Returns true for changes of a receiver's membership, false for those of a link.
    pub fn is_of_member(self) -> bool {
        matches!(self, Self::Join | Self::Leave)
    }
}

/// Maximum number of changes of one event in a run; for random changes, the expected number.
pub const MAX_CHANGES: u64 = 100_000;

impl Event {
    /// Adds an error for every invalid value. The number of changes is checked only if the `duration` of the run is known.
    pub fn check(&self, duration: Option<Duration>, errors: &mut RangeErrors) {
        errors.at_most(&["at"], self.at, LONGEST);
        let means = [
            ("mean_time_between_failures", self.mean_time_between_failures),
            ("mean_time_to_repair", self.mean_time_to_repair),
        ];
        for (key, time) in means.into_iter().chain([("every", self.every)]) {
            if let Some(time) = time {
                errors.positive(&[key], time, LONGEST);
            }
        }
        let Some(duration) = duration else { return };
        let least = Duration(duration.0.div_ceil(MAX_CHANGES));
        let cause = format!("it causes more than {MAX_CHANGES} changes in a run of {duration}");
        if self.every.is_some_and(|every| every.0 > 0 && every < least) {
            errors.add(&["every"], cause, format!("give at least {least}"));
        } else if let [(key, Some(up)), (_, Some(down))] = means
            && up.0 > 0
            && down.0 > 0
            && up.0.saturating_add(down.0) / 2 < least.0
        {
            errors.add(&[key], cause, format!("give at least {}", Duration(2 * least.0)));
        }
    }

    /// Whether the event ever takes its target down.
    pub fn takes_down(&self) -> bool {
        !self.is_of_member() && self.change != Some(EventChange::Up)
    }

    /// Whether a receiver joins or leaves, instead of a link that changes.
    pub fn is_of_member(&self) -> bool {
        self.traffic.is_some() || self.change.is_some_and(EventChange::is_of_member)
    }

    /// Returns the changes up to and including `end` in time order; times are in picoseconds. Random times are drawn from `random`,
    /// alternately a time up and a time down.
    pub fn changes(&self, random: Stream, end: u64) -> Vec<(u64, EventChange)> {
        self.all_changes(random).take_while(|(at, _)| *at <= end).collect()
    }

    /// Returns all changes, without an end; see [`changes`](Self::changes).
    pub fn all_changes(&self, random: Stream) -> Changes {
        let means = self.mean_time_between_failures.zip(self.mean_time_to_repair);
        Changes {
            random,
            at: Some(self.at.map_or(0, |at| at.0)),
            change: self.change,
            every: self.every.map(|every| every.0),
            means: means.map(|(up, down)| (up.0, down.0)),
            is_down: false,
        }
    }
}

/// Iterator over the changes of an event in time order, with times in picoseconds.
#[derive(Clone, Debug)]
pub struct Changes {
    random: Stream,
    /// Time of the next change; for random changes, the time of the last one, from which the next is drawn. `None` after the last change.
    at: Option<u64>,
    change: Option<EventChange>,
    every: Option<u64>,
    /// Mean times up and down in picoseconds, for random changes.
    means: Option<(u64, u64)>,
    /// The last drawn change took the link down.
    is_down: bool,
}

impl Iterator for Changes {
    type Item = (u64, EventChange);

    fn next(&mut self) -> Option<Self::Item> {
        let at = self.at?;
        if let Some((up, down)) = self.means {
            let (mean, state) = if self.is_down { (down, EventChange::Up) } else { (up, EventChange::Down) };
            self.is_down = state == EventChange::Down;
            let at = at.saturating_add(self.random.exponential(mean));
            self.at = Some(at);
            return Some((at, state));
        }
        let state = self.change?;
        self.at = self.every.map(|every| at.saturating_add(every));
        Some((at, state))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::SECOND;

    fn event(json: serde_json::Value) -> Event {
        let mut table = json;
        table["target"] = "l".into();
        serde_json::from_value(table).expect("the test's JSON is valid")
    }

    fn changes(event: &Event, end: u64) -> Vec<(u64, EventChange)> {
        event.changes(Stream::new(1, "event.e"), end)
    }

    #[test]
    fn event_happens_once_or_periodically_until_the_end() {
        let once = event(serde_json::json!({ "at": "1 s", "change": "up" }));
        assert_eq!(changes(&once, 10 * SECOND), [(SECOND, EventChange::Up)]);
        assert_eq!(changes(&once, SECOND), [(SECOND, EventChange::Up)]);
        assert_eq!(changes(&once, SECOND - 1), []);
        let often = event(serde_json::json!({ "at": "1 s", "change": "down", "every": "4 s" }));
        let at: Vec<u64> = changes(&often, 9 * SECOND).into_iter().map(|(at, _)| at / SECOND).collect();
        assert_eq!(at, [1, 5, 9]);
        // The next change would be later than the latest time that `u64` can hold.
        let far = event(serde_json::json!({ "at": "1 s", "change": "down", "every": "1440 min" }));
        assert_eq!(changes(&far, u64::MAX - 1).len(), 214);
    }

    #[test]
    fn random_failures_and_repairs_have_the_given_means() {
        let random = event(serde_json::json!({
            "at": "5 s", "mean_time_between_failures": "9 s", "mean_time_to_repair": "1 s",
        }));
        let drawn = changes(&random, 100_000 * SECOND);
        assert!(drawn[0].0 > 5 * SECOND);
        let states: Vec<EventChange> = drawn.iter().map(|(_, state)| *state).collect();
        assert!(
            states
                .chunks(2)
                .all(|pair| pair.iter().eq([EventChange::Down, EventChange::Up][..pair.len()].iter()))
        );
        assert!((19_000..21_000).contains(&drawn.len()), "{}", drawn.len());
        let down: u64 = drawn.chunks_exact(2).map(|pair| pair[1].0 - pair[0].0).sum();
        let mean = down as f64 / (drawn.len() / 2) as f64 / SECOND as f64;
        assert!((0.95..1.05).contains(&mean), "{mean}");
        // Another seed gives other times.
        assert_ne!(random.changes(Stream::new(2, "event.e"), 100_000 * SECOND)[0], drawn[0]);
        // The first changes do not depend on the end of the run.
        assert_eq!(changes(&random, 1000 * SECOND)[..], drawn[..changes(&random, 1000 * SECOND).len()]);
    }

    #[test]
    fn event_rejects_invalid_values() {
        let cases = [
            (serde_json::json!({ "at": "1441 min", "change": "down" }), "at"),
            (serde_json::json!({ "at": "1 s", "change": "down", "every": "0 s" }), "every"),
            (serde_json::json!({ "at": "1 s", "change": "down", "every": "99 us" }), "every"),
            (
                serde_json::json!({ "mean_time_between_failures": "1 us", "mean_time_to_repair": "198 us" }),
                "mean_time_between_failures",
            ),
            (
                serde_json::json!({ "mean_time_between_failures": "1 s", "mean_time_to_repair": "0 s" }),
                "mean_time_to_repair",
            ),
        ];
        for (json, key) in cases {
            let mut errors = RangeErrors::default();
            event(json).check(Some(Duration(10 * SECOND)), &mut errors);
            let paths: Vec<_> = errors.into_iter().map(|complaint| complaint.path.join(".")).collect();
            assert_eq!(paths, [key]);
        }
        let mut errors = RangeErrors::default();
        let edge = event(serde_json::json!({ "at": "1440 min", "change": "down", "every": "100 us" }));
        edge.check(Some(Duration(10 * SECOND)), &mut errors);
        assert_eq!(errors, RangeErrors::default());
    }
}
