//! Lateness of writes: the instant at which a packet was written less the instant that the network computed.

use serde_json::{Value, json};

use crate::statistics::Distribution;

/// Lateness of all packets and of those in the measurement window, in ns of virtual time.
pub(super) struct Lateness {
    limit: u64,
    all: Count,
    window: Option<Count>,
}

struct Count {
    late: Distribution,
    over: u64,
}

impl Count {
    fn new() -> Self {
        Self { late: Distribution::new(), over: 0 }
    }

    /// Returns the counts as JSON, with the full histogram if `all` is set.
    fn to_json(&self, limit: u64, all: bool) -> Value {
        let quantile = |millionths| self.late.quantile(millionths);
        let p999 = quantile(999_000);
        let mut value = json!({
            "limit_ns": limit,
            "valid": is_valid(p999, limit),
            "over_limit": self.over,
            "packets": self.late.count(),
            "p50_ns": quantile(500_000),
            "p99_ns": quantile(990_000),
            "p999_ns": p999,
            "max_ns": quantile(1_000_000),
        });
        if all {
            value["late"] = self.late.to_json();
        }
        value
    }
}

/// Returns whether a run is valid: 99.9 % of the packets were written within the limit. A run without packets is valid.
fn is_valid(p999: u64, limit: u64) -> bool {
    p999 <= limit
}

impl Lateness {
    pub(super) fn new(limit: u64) -> Self {
        Self { limit, all: Count::new(), window: None }
    }

    /// Counts a packet that was written `ns` late.
    #[inline]
    pub(super) fn record(&mut self, ns: u64) {
        let over = u64::from(ns > self.limit);
        for count in [Some(&mut self.all), self.window.as_mut()].into_iter().flatten() {
            count.late.record(ns);
            count.over += over;
        }
    }

    pub(super) fn begin_window(&mut self) {
        self.window = Some(Count::new());
    }

    /// Ends the window and returns its counts; `None` if no window was begun.
    pub(super) fn end_window(&mut self) -> Option<Value> {
        self.window.take().map(|count| count.to_json(self.limit, true))
    }

    pub(super) fn to_json(&self, all: bool) -> Value {
        self.all.to_json(self.limit, all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_packet_in_a_thousand_may_exceed_the_lateness_limit() {
        let mut late = Lateness::new(1000);
        late.begin_window();
        (0..999).for_each(|_| late.record(10));
        late.record(5_000_000);
        let seen = late.to_json(false);
        assert_eq!((&seen["valid"], &seen["over_limit"]), (&json!(true), &json!(1)));
        late.record(5_000_000);
        assert_eq!(late.to_json(false)["valid"], false);
        assert_eq!(late.end_window().expect("a window has begun")["over_limit"], 2);
        assert_eq!(late.end_window(), None);
    }

    #[test]
    fn lateness_without_packets_is_valid() {
        assert_eq!(Lateness::new(0).to_json(true)["valid"], true);
    }
}
