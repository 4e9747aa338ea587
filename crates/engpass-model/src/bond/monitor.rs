//! Link monitoring: a bond checks the carriers of its members periodically (in Linux `miimon`, `bond_miimon_inspect`).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::range_errors::{LONGEST, RangeErrors};
use crate::unit::Duration;

/// How a bond detects that a member is down. It sees only the carrier at its own end, so it does not notice a failure further away.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Monitoring {
    /// Interval between checks of the carriers (in Linux `miimon`). With zero, the bond sees every change immediately.
    pub interval: Duration,
    /// How long a member without a carrier is not yet declared down, rounded down to whole intervals (in Linux `downdelay`). Meanwhile the
    /// active member stays active.
    pub down_delay: Duration,
    /// How long a member counts as down after its carrier has returned, rounded down to whole intervals (in Linux `updelay`). `hash` and
    /// `active-backup` skip the delay while no other member can carry packets.
    pub up_delay: Duration,
}

impl Default for Monitoring {
    fn default() -> Self {
        Self { interval: Duration(100_000_000_000), down_delay: Duration(0), up_delay: Duration(0) }
    }
}

impl Monitoring {
    /// Adds an error for every invalid value.
    pub fn check(&self, errors: &mut RangeErrors) {
        errors.at_most(&["interval"], Some(self.interval), LONGEST);
        for (key, delay) in [("down_delay", self.down_delay), ("up_delay", self.up_delay)] {
            errors.at_most(&[key], Some(delay), LONGEST);
            if self.interval.0 == 0 && delay.0 > 0 {
                let cause = "the delay is a number of intervals, but `interval` is zero";
                errors.add(&[key], cause, "remove it, or set `interval`");
            }
        }
    }

    /// Time of the first check of the carriers after one changed at `now`, in picoseconds.
    pub fn next_check(&self, now: u64) -> u64 {
        match self.interval.0 {
            0 => now,
            interval => now.div_ceil(interval).saturating_mul(interval),
        }
    }

    /// Time of the check of the carriers that follows the one at `now`, in picoseconds.
    pub fn look_again(&self, now: u64) -> u64 {
        now.saturating_add(self.interval.0)
    }

    fn looks(&self, delay: Duration) -> u64 {
        delay.0.checked_div(self.interval.0).unwrap_or(0)
    }
}

/// Preferences of a bond mode: the active member, and when the up delay is skipped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Preference {
    /// Preferred active member.
    pub primary: Option<usize>,
    /// Whether the primary becomes active as soon as it is up, instead of only when the active member fails.
    pub always: bool,
    /// When the up delay is skipped.
    pub hurry: SkipUpDelay,
}

impl Preference {
    /// The member that is active at first.
    pub fn first_active(&self) -> usize {
        self.primary.unwrap_or(0)
    }
}

/// When a returning member skips the up delay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SkipUpDelay {
    /// While no member is active.
    NoneActive,
    /// While no member is up and has a carrier.
    NoneUsable,
    /// Never.
    Never,
}

/// State of the link monitoring of a bond.
#[derive(Clone, Debug)]
pub struct Monitor {
    config: Monitoring,
    preference: Preference,
    links: Vec<Link>,
    active: Option<usize>,
}

/// State of one member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Link {
    Up,
    /// No carrier; declared down after this number of further checks.
    Failing(u64),
    Down,
    /// Carrier returned; counts as down for this number of further checks.
    Returning(u64),
}

impl Monitor {
    /// Creates the monitor of a bond whose members are all up.
    pub fn new(config: Monitoring, preference: Preference, members: usize) -> Self {
        let active = Some(preference.first_active());
        Self { config, preference, links: vec![Link::Up; members], active }
    }

    /// Whether a member counts as up. False during the down delay and during the up delay.
    pub fn is_up(&self, member: usize) -> bool {
        self.links[member] == Link::Up
    }

    /// The active member. Every mode has one, but only some modes send on it alone.
    pub fn active(&self) -> Option<usize> {
        self.active
    }

    /// Checks the carriers of all members. Returns whether another check may change a state although the carriers stay the same.
    pub fn check_carriers(&mut self, carriers: &[bool]) -> bool {
        let mut hurries = match self.preference.hurry {
            SkipUpDelay::NoneActive => self.active.is_none(),
            SkipUpDelay::NoneUsable => {
                !self.links.iter().zip(carriers).any(|(link, carrier)| *link == Link::Up && *carrier)
            }
            SkipUpDelay::Never => false,
        };
        let mut selects = false;
        for (member, carrier) in carriers.iter().enumerate() {
            let before = self.links[member];
            let left = match (before, carrier) {
                (Link::Up, true) | (Link::Down, false) => continue,
                (Link::Failing(_), true) => 0,
                (Link::Returning(_), false) => {
                    self.links[member] = Link::Down;
                    continue;
                }
                (Link::Up, false) => self.config.looks(self.config.down_delay),
                (Link::Down, true) => self.config.looks(self.config.up_delay),
                (Link::Failing(left) | Link::Returning(left), _) => left,
            };
            let left = if *carrier && hurries { 0 } else { left };
            self.links[member] = match (carrier, left) {
                (false, 0) => Link::Down,
                (false, left) => Link::Failing(left - 1),
                (true, 0) => Link::Up,
                (true, left) => Link::Returning(left - 1),
            };
            match self.links[member] {
                Link::Up => {
                    hurries &= matches!(before, Link::Failing(_));
                    selects |= self.active.is_none() || self.preference.primary == Some(member);
                }
                Link::Down => selects |= self.active == Some(member),
                Link::Failing(_) | Link::Returning(_) => {}
            }
        }
        if selects {
            self.select();
        }
        self.links.iter().any(|link| matches!(link, Link::Failing(_) | Link::Returning(_)))
    }

    /// Chooses the active member, as `bond_find_best_slave` does. If no member is up, a returning one is declared up immediately.
    fn select(&mut self) {
        let is_up = |member: &usize| self.links[*member] == Link::Up;
        let (primary, active) = (self.preference.primary.filter(is_up), self.active.filter(is_up));
        let best = match (primary, active) {
            (Some(primary), Some(_)) if self.preference.always => Some(primary),
            (_, Some(active)) => Some(active),
            (primary, None) => primary.or_else(|| (0..self.links.len()).find(is_up)),
        };
        let left = |member: &usize| match self.links[*member] {
            Link::Returning(left) => Some(left),
            _ => None,
        };
        let returning = || (0..self.links.len()).filter(|member| left(member).is_some()).min_by_key(left);
        self.active = best.or_else(returning);
        if let Some(active) = self.active {
            self.links[active] = Link::Up;
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

    const TURNS: Preference = Preference { primary: None, always: true, hurry: SkipUpDelay::Never };
    const HASH: Preference = Preference { hurry: SkipUpDelay::NoneUsable, ..TURNS };
    const BACKUP: Preference = Preference { hurry: SkipUpDelay::NoneActive, ..TURNS };

    /// The members that count as up after each check of these carriers of two members, and the active member.
    fn told(
        config: Monitoring,
        preference: Preference,
        carriers: &[[bool; 2]],
    ) -> Vec<([bool; 2], Option<usize>)> {
        let mut monitor = Monitor::new(config, preference, 2);
        let mut look = |carriers: &[bool; 2]| {
            monitor.check_carriers(carriers);
            ([0, 1].map(|member| monitor.is_up(member)), monitor.active())
        };
        carriers.iter().map(&mut look).collect()
    }

    fn looks(config: Monitoring, preference: Preference, carriers: &[[bool; 2]]) -> Vec<[bool; 2]> {
        told(config, preference, carriers).into_iter().map(|(up, _)| up).collect()
    }

    fn active(config: Monitoring, preference: Preference, carriers: &[[bool; 2]]) -> Vec<Option<usize>> {
        told(config, preference, carriers).into_iter().map(|(_, active)| active).collect()
    }

    const BOTH: [bool; 2] = [true; 2];
    const FIRST: [bool; 2] = [true, false];
    const SECOND: [bool; 2] = [false, true];
    const NONE: [bool; 2] = [false; 2];

    #[test]
    fn bond_monitor_without_delays_follows_every_check() {
        let carriers = [BOTH, SECOND, BOTH, NONE, FIRST, BOTH];
        for preference in [TURNS, HASH, BACKUP] {
            assert_eq!(looks(monitoring(100, 0, 0), preference, &carriers), carriers);
            // A delay of less than an interval has no effect.
            assert_eq!(looks(monitoring(100, 99, 99), preference, &carriers), carriers);
        }
    }

    #[test]
    fn bond_monitor_delays_count_whole_check_intervals() {
        let config = monitoring(100, 250, 100);
        // After two whole intervals the member is declared down; it does not count as up meanwhile either. After one interval it is back.
        let carriers = [SECOND, SECOND, SECOND, SECOND, BOTH, BOTH, BOTH];
        assert_eq!(looks(config, TURNS, &carriers), [SECOND, SECOND, SECOND, SECOND, SECOND, BOTH, BOTH]);
        let zero = Some(0);
        assert_eq!(
            active(config, TURNS, &carriers),
            [zero, zero, Some(1), Some(1), Some(1), Some(1), Some(1)]
        );
        // A carrier that returns in time is up at the next check, and nothing else changes.
        assert_eq!(looks(config, TURNS, &[SECOND, SECOND, BOTH, BOTH]), [SECOND, SECOND, BOTH, BOTH]);
        assert_eq!(active(config, TURNS, &[SECOND, SECOND, BOTH, BOTH]), [zero; 4]);
    }

    /// Observed on Linux 6.1.
    #[test]
    fn bond_mode_decides_if_the_up_delay_is_skipped() {
        let config = monitoring(100, 0, 200);
        // Both return: in modes that skip the delay, the first is up immediately, and the second after its delay.
        let carriers = [NONE, BOTH, BOTH, BOTH];
        assert_eq!(looks(config, BACKUP, &carriers), [NONE, FIRST, FIRST, BOTH]);
        assert_eq!(looks(config, HASH, &carriers), [NONE, FIRST, FIRST, BOTH]);
        assert_eq!(looks(config, TURNS, &carriers), [NONE, NONE, NONE, BOTH]);
        // One member returns while the other is up. When the other fails, the returning member replaces it in every mode.
        for preference in [TURNS, HASH, BACKUP] {
            assert_eq!(looks(config, preference, &[SECOND, BOTH, FIRST]), [SECOND, SECOND, FIRST]);
        }
        // The other member has lost its carrier and is in its down delay. For a hash it is not usable any more.
        let patient = monitoring(100, 500, 200);
        let carriers = [SECOND, SECOND, SECOND, SECOND, SECOND, SECOND, BOTH, FIRST];
        assert_eq!(looks(patient, HASH, &carriers)[6..], [SECOND, FIRST]);
        assert_eq!(looks(patient, BACKUP, &carriers)[6..], [SECOND, NONE]);
    }

    /// Observed on Linux 6.1.
    #[test]
    fn active_member_is_selected_anew_after_all_were_down() {
        let config = monitoring(100, 0, 0);
        let (zero, one) = (Some(0), Some(1));
        assert_eq!(active(config, BACKUP, &[BOTH, SECOND, BOTH, NONE, BOTH]), [zero, one, one, None, zero]);
        let failure = Preference { primary: Some(1), always: false, ..BACKUP };
        assert_eq!(active(config, failure, &[BOTH, FIRST, BOTH, NONE, BOTH]), [one, zero, zero, None, one]);
        let always = Preference { always: true, ..failure };
        assert_eq!(active(config, always, &[BOTH, FIRST, BOTH]), [one, zero, one]);
        // A returning primary replaces an active member that is in its down delay.
        let patient = monitoring(100, 1000, 0);
        let mut monitor = Monitor::new(patient, failure, 2);
        for _ in 0..11 {
            monitor.check_carriers(&FIRST);
        }
        assert_eq!(monitor.active(), zero);
        monitor.check_carriers(&NONE);
        assert_eq!(monitor.active(), zero);
        monitor.check_carriers(&SECOND);
        assert_eq!(monitor.active(), one);
    }

    #[test]
    fn carrier_checks_are_at_whole_intervals() {
        let config = monitoring(100, 0, 0);
        assert_eq!(
            [1, 100 * MS, 100 * MS + 1].map(|now| config.next_check(now)),
            [100 * MS, 100 * MS, 200 * MS]
        );
        assert_eq!(config.look_again(200 * MS), 300 * MS);
        assert_eq!(monitoring(0, 0, 0).next_check(7), 7);
        let mut monitor = Monitor::new(monitoring(100, 100, 0), TURNS, 2);
        assert!(monitor.check_carriers(&SECOND), "the next carrier check finds the link down");
        assert!(!monitor.check_carriers(&SECOND) && monitor.active() == Some(1));
    }
}
