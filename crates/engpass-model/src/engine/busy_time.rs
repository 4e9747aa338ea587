//! Busy time of an engine that works on one item after the other: the CPU of a host, the forwarding engine of a router.

/// The time for which an engine has been busy, and will be with the work that it has accepted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BusyTime {
    /// Duration of all work accepted so far, in picoseconds.
    work: u64,
    /// End of the last work, in picoseconds. The engine is busy from the present until then.
    until: u64,
    /// Busy time before the measurement window, in picoseconds.
    before: u64,
}

impl BusyTime {
    /// Adds work from `from` to `until`, in picoseconds. It must follow all work so far.
    pub fn add(&mut self, from: u64, until: u64) {
        debug_assert!(from >= self.until, "an engine does one thing at a time");
        self.work += until - from;
        self.until = until;
    }

    /// Interrupts the work in progress at `now`.
    pub fn interrupt(&mut self, now: u64) {
        self.work -= self.until - now;
        self.until = now;
    }

    /// Returns the instant at which all work so far ends.
    pub fn until(&self) -> u64 {
        self.until
    }

    /// Returns the busy time up to `at`, in picoseconds. Everything at `at` must have happened.
    pub fn up_to(&self, at: u64) -> u64 {
        self.work - self.until.saturating_sub(at)
    }

    /// Begins the measurement window at `from`.
    pub fn begin_window(&mut self, from: u64) {
        self.before = self.up_to(from);
    }

    /// Returns the busy time in the measurement window, which ends at `end`, in picoseconds.
    pub fn in_window(&self, end: u64) -> u64 {
        self.up_to(end) - self.before
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn busy_time_ends_with_the_instant_and_with_an_interruption() {
        let mut busy = BusyTime::default();
        busy.add(10, 30);
        busy.add(30, 35);
        assert_eq!([30, 33, 35, 90].map(|at| busy.up_to(at)), [20, 23, 25, 25]);
        busy.add(40, 60);
        busy.interrupt(45);
        busy.begin_window(45);
        busy.add(50, 70);
        assert_eq!((busy.up_to(80), busy.in_window(80), busy.in_window(60)), (50, 20, 10));
    }
}
