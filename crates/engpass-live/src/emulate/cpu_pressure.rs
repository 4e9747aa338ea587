//! Detects whether threads wait for a core of this host. If so, the driver sleeps where it would otherwise poll.

use std::fs::File;
use std::os::unix::fs::FileExt;

use crate::sys::thread;
use crate::time::{MILLISECOND, SECOND};

/// Pressure stall information: the time in which some thread waited for a core (Linux 4.20 and later; not enabled on every kernel).
const PRESSURE: &str = "/proc/pressure/cpu";
/// Time between two reads while no thread waits, in ns.
const LOOK: u64 = 250 * MILLISECOND;
/// Time between two reads after contention was seen, in ns; until the next read it is assumed to last.
const BELIEVE: u64 = 2 * SECOND;
/// Contention counts only if threads waited for more than one part in this many of the time.
const SELDOM: u64 = 20;
/// Without pressure information of the kernel, a host with this many cores is assumed to have a free one.
const MANY: usize = 4;

/// State of the detection.
pub(super) struct Contention {
    pressure: Option<File>,
    /// Total waiting time since boot in ns.
    waited: u64,
    /// Time of the last reading, in ns.
    read: u64,
    /// Time of the next reading, in ns.
    look: u64,
    some: bool,
}

impl Contention {
    pub(super) fn new() -> Self {
        let few = thread::cores().len() < MANY;
        let mut this = Self { pressure: File::open(PRESSURE).ok(), waited: 0, read: 0, look: 0, some: few };
        match this.waited() {
            Some(waited) => (this.waited, this.some) = (waited, true),
            None => this.pressure = None,
        }
        this
    }

    fn waited(&self) -> Option<u64> {
        let mut text = [0; 256];
        let length = self.pressure.as_ref()?.read_at(&mut text, 0).ok()?;
        parse(std::str::from_utf8(&text[..length]).ok()?)
    }

    /// Returns whether threads wait for cores, according to the last reading.
    #[inline]
    pub(super) fn is_some(&mut self, now: u64) -> bool {
        if now >= self.look && self.pressure.is_some() {
            self.look_again(now);
        }
        self.some
    }

    #[cold]
    fn look_again(&mut self, now: u64) {
        if let Some(waited) = self.waited() {
            self.see(now, waited);
        }
    }

    fn see(&mut self, now: u64, waited: u64) {
        let (before, since) = (self.waited, self.read);
        (self.waited, self.read) = (waited, now);
        self.some = since == 0 || waited.saturating_sub(before) > (now - since) / SELDOM;
        self.look = now + if self.some && since > 0 { BELIEVE } else { LOOK };
    }
}

/// Parses a line like `some avg10=0.00 avg60=0.00 avg300=0.00 total=0`, with the total in microseconds. Returns nanoseconds.
fn parse(text: &str) -> Option<u64> {
    let total = text.lines().next()?.strip_prefix("some ")?.rsplit_once("total=")?.1;
    total.parse::<u64>().ok()?.checked_mul(1000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_pressure_total_is_parsed() {
        let text = "some avg10=98.34 avg60=90.32 avg300=92.41 total=30159852200\nfull avg10=0.00 total=7\n";
        assert_eq!(parse(text), Some(30_159_852_200_000));
        assert_eq!(parse("full avg10=0.00 total=7"), None);
        assert_eq!(parse(""), None);
    }

    #[test]
    fn contention_is_more_than_a_twentieth_of_the_time() {
        let mut seen = Contention { pressure: None, waited: 5, read: 0, look: 0, some: false };
        seen.see(1000, 5_000_000);
        assert!(seen.some, "the first look assumes contention");
        assert_eq!(seen.look, 1000 + LOOK);
        seen.see(1000 + LOOK, 5_000_000 + LOOK / 20);
        assert!(!seen.some);
        seen.see(1000 + 2 * LOOK, 5_000_001 + LOOK / 10);
        assert!(seen.some);
        assert_eq!(seen.look, 1000 + 2 * LOOK + BELIEVE);
    }
}
