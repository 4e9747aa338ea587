//! Link monitoring: a bond looks at the carriers of its members now and then (in Linux `miimon`, `bond_miimon_inspect`).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::complaint::{Complaints, LONGEST};
use crate::unit::Duration;

/// How a bond learns that a member is down. It sees the carrier of its own end alone: a failure behind that stays unknown to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Monitoring {
    /// Time from one look at the carriers to the next (in Linux `miimon`). With zero it sees every change at once.
    pub interval: Duration,
    /// How long a member without a carrier counts as up, rounded down to whole intervals (in Linux `downdelay`).
    pub down_delay: Duration,
    /// How long a member that has its carrier back counts as down, rounded down to whole intervals (in Linux `updelay`). Not where no member is up.
    pub up_delay: Duration,
}

impl Default for Monitoring {
    fn default() -> Self {
        Self { interval: Duration(100_000_000_000), down_delay: Duration(0), up_delay: Duration(0) }
    }
}

impl Monitoring {
    /// What is wrong with the values.
    pub fn check(&self, complaints: &mut Complaints) {
        complaints.at_most(&["interval"], Some(self.interval), LONGEST);
        for (key, delay) in [("down_delay", self.down_delay), ("up_delay", self.up_delay)] {
            complaints.at_most(&[key], Some(delay), LONGEST);
            if self.interval.0 == 0 && delay.0 > 0 {
                let cause = "a delay is counted in intervals, and `interval` is zero";
                complaints.add(&[key], cause, "take it out, or give an `interval`");
            }
        }
    }

    /// When a bond looks next at carriers of which one has changed at `now`, in picoseconds.
    pub fn next_look(&self, now: u64) -> u64 {
        match self.interval.0 {
            0 => now,
            interval => now.div_ceil(interval).saturating_mul(interval),
        }
    }

    /// When it looks again after a look at `now`.
    pub fn look_again(&self, now: u64) -> u64 {
        now.saturating_add(self.interval.0)
    }

    fn looks(&self, delay: Duration) -> u64 {
        delay.0.checked_div(self.interval.0).unwrap_or(0)
    }
}

/// What a bond knows of its members.
#[derive(Clone, Debug)]
pub struct Monitor {
    config: Monitoring,
    links: Vec<Link>,
}

/// The state of one member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Link {
    Up,
    /// It has no carrier, and counts as up for so many looks.
    Failing(u64),
    Down,
    /// It has its carrier back, and counts as down for so many looks.
    Returning(u64),
}

impl Monitor {
    /// That of a bond whose members are all up.
    pub fn new(config: Monitoring, members: usize) -> Self {
        Self { config, links: vec![Link::Up; members] }
    }

    /// Whether a member counts as up.
    pub fn is_up(&self, member: usize) -> bool {
        matches!(self.links[member], Link::Up | Link::Failing(_))
    }

    /// Look at the carriers of all members. Returns whether another look may find something new while they stay as they are.
    pub fn look(&mut self, carriers: &[bool]) -> bool {
        let mut waits = (0..self.links.len()).any(|member| self.is_up(member));
        for (link, carrier) in self.links.iter_mut().zip(carriers) {
            let left = match (*link, carrier) {
                (Link::Up | Link::Failing(_), true) => {
                    *link = Link::Up;
                    continue;
                }
                (Link::Down | Link::Returning(_), false) => {
                    *link = Link::Down;
                    continue;
                }
                (Link::Up, false) => self.config.looks(self.config.down_delay),
                (Link::Down, true) => self.config.looks(self.config.up_delay),
                (Link::Failing(left) | Link::Returning(left), _) => left,
            };
            // The first one that returns where none is up does not wait.
            let left = if *carrier && !waits { 0 } else { left };
            *link = match (carrier, left) {
                (false, 0) => Link::Down,
                (false, left) => Link::Failing(left - 1),
                (true, 0) => {
                    waits = true;
                    Link::Up
                }
                (true, left) => Link::Returning(left - 1),
            };
        }
        if !(0..self.links.len()).any(|member| self.is_up(member)) {
            self.hurry();
        }
        self.links.iter().any(|link| matches!(link, Link::Failing(_) | Link::Returning(_)))
    }

    /// No member is up any more: of those that return, the one that has waited longest is up now.
    fn hurry(&mut self) {
        let left = |link: &&mut Link| match link {
            Link::Returning(left) => Some(*left),
            _ => None,
        };
        let returning = self.links.iter_mut().filter(|link| left(link).is_some());
        if let Some(link) = returning.min_by_key(|link| left(link)) {
            *link = Link::Up;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000_000;

    fn monitoring(interval: u64, down_delay: u64, up_delay: u64) -> Monitoring {
        Monitoring {
            interval: Duration(interval * MS),
            down_delay: Duration(down_delay * MS),
            up_delay: Duration(up_delay * MS),
        }
    }

    /// What counts as up after each look at these carriers of two members.
    fn looks(config: Monitoring, carriers: &[[bool; 2]]) -> Vec<[bool; 2]> {
        let mut monitor = Monitor::new(config, 2);
        let mut look = |carriers: &[bool; 2]| {
            monitor.look(carriers);
            [0, 1].map(|member| monitor.is_up(member))
        };
        carriers.iter().map(&mut look).collect()
    }

    const BOTH: [bool; 2] = [true; 2];
    const FIRST: [bool; 2] = [true, false];
    const SECOND: [bool; 2] = [false, true];
    const NONE: [bool; 2] = [false; 2];

    #[test]
    fn without_delays_each_look_counts() {
        let carriers = [BOTH, SECOND, BOTH, NONE, FIRST, BOTH];
        assert_eq!(looks(monitoring(100, 0, 0), &carriers), carriers);
        // Less than an interval is none.
        assert_eq!(looks(monitoring(100, 99, 99), &carriers), carriers);
    }

    #[test]
    fn delays_count_looks() {
        let config = monitoring(100, 250, 100);
        // Two whole intervals down; one up.
        let carriers = [SECOND, SECOND, SECOND, SECOND, BOTH, BOTH, BOTH];
        assert_eq!(looks(config, &carriers), [BOTH, BOTH, SECOND, SECOND, SECOND, BOTH, BOTH]);
        // A carrier that comes back in time was never away.
        assert_eq!(
            looks(config, &[SECOND, SECOND, BOTH, SECOND, SECOND, SECOND]),
            [BOTH, BOTH, BOTH, BOTH, BOTH, SECOND]
        );
    }

    #[test]
    fn where_none_is_up_nobody_waits() {
        let config = monitoring(100, 0, 1000);
        // Both return: the first one at once, the other one after its delay.
        assert_eq!(looks(config, &[NONE, BOTH, BOTH]), [NONE, FIRST, FIRST]);
        // One returns while the other one is up, which then fails.
        assert_eq!(looks(config, &[SECOND, BOTH, FIRST]), [SECOND, SECOND, FIRST]);
    }

    #[test]
    fn looks_are_at_whole_intervals() {
        let config = monitoring(100, 0, 0);
        assert_eq!(
            [1, 100 * MS, 100 * MS + 1].map(|now| config.next_look(now)),
            [100 * MS, 100 * MS, 200 * MS]
        );
        assert_eq!(config.look_again(200 * MS), 300 * MS);
        assert_eq!(monitoring(0, 0, 0).next_look(7), 7);
        let mut monitor = Monitor::new(monitoring(100, 100, 0), 2);
        assert!(monitor.look(&SECOND), "one more look finds it down");
        assert!(!monitor.look(&SECOND) && !monitor.is_up(0));
    }
}
