//! Use of the host's cores (`/proc/stat`).

use serde_json::{Map, Value, json};

/// Columns of a core's line, in ticks (`proc_stat(5)`); `guest` is part of `user`.
const NAMES: [&str; 8] = ["user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal"];
/// Indices of the columns that count the time in which a core works for this host.
const BUSY: [usize; 5] = [0, 1, 2, 5, 6];

/// A reading of all cores: core number and ticks by column.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Cores(Vec<(u64, [u64; 8])>);

impl Cores {
    /// Reads the cores now.
    pub(crate) fn read() -> Self {
        Self::parse(&std::fs::read_to_string("/proc/stat").unwrap_or_default())
    }

    fn parse(text: &str) -> Self {
        let core = |line: &str| {
            let (name, values) = line.split_once(' ')?;
            let core = name.strip_prefix("cpu")?.parse().ok()?;
            let mut ticks = [0; 8];
            let mut words = values.split_whitespace();
            for tick in &mut ticks {
                *tick = words.next()?.parse().ok()?;
            }
            Some((core, ticks))
        };
        Self(text.lines().filter_map(core).collect())
    }

    /// Returns the ticks since boot, as in `before` and `after`.
    pub(crate) fn to_json(&self) -> Value {
        let core = |(core, ticks): &(u64, [u64; 8])| {
            let mut all: Map<String, Value> =
                NAMES.iter().zip(ticks).map(|(name, tick)| ((*name).to_owned(), json!(tick))).collect();
            all.insert("core".to_owned(), json!(core));
            Value::Object(all)
        };
        Value::Array(self.0.iter().map(core).collect())
    }
}

/// Returns each core's fractions of the time between two readings, in millionths; `null` if no tick passed.
pub(crate) fn shares(before: &Cores, after: &Cores) -> Value {
    let core = |(core, now): &(u64, [u64; 8])| {
        let (_, earlier) = before.0.iter().find(|(same, _)| same == core)?;
        let mut ticks = [0; 8];
        for ((tick, now), earlier) in ticks.iter_mut().zip(now).zip(earlier) {
            *tick = now.saturating_sub(*earlier);
        }
        let all: u64 = ticks.iter().sum();
        if all == 0 {
            return None;
        }
        let ppm = |ticks: u64| ticks * 1_000_000 / all;
        Some(json!({
            "core": core,
            "busy_ppm": ppm(BUSY.iter().map(|&column| ticks[column]).sum()),
            "user_ppm": ppm(ticks[0] + ticks[1]),
            "system_ppm": ppm(ticks[2]),
            "irq_ppm": ppm(ticks[5]),
            "softirq_ppm": ppm(ticks[6]),
            "steal_ppm": ppm(ticks[7]),
        }))
    };
    let all: Vec<Value> = after.0.iter().filter_map(core).collect();
    if all.is_empty() { Value::Null } else { Value::Array(all) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn core_shares_cover_the_time_between_readings() {
        let text = |a: u64| format!("cpu 9 9\ncpu0 {a} 0 100 50 0 0 10 {a} 0 0\ncpu1 1 2 3\nintr 5\n");
        let (before, after) = (Cores::parse(&text(0)), Cores::parse(&text(50)));
        assert_eq!(after.0.len(), 1);
        let shares = shares(&before, &after);
        assert_eq!((&shares[0]["busy_ppm"], &shares[0]["steal_ppm"]), (&json!(500_000), &json!(500_000)));
        assert_eq!(super::shares(&before, &before), Value::Null);
        assert!(!Cores::read().0.is_empty());
    }
}
