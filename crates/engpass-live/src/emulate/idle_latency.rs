//! Keeps idle cores awake while packets arrive.
//!
//! A packet wakes its receiver, preferably on an idle core. An idle core of a virtual machine goes back to the hypervisor, which may take a millisecond to
//! return it. Each packet would then arrive that much later, in both directions. Therefore idle cores poll while packets arrive.

use crate::sys::thread_priority::CpuLatencyHold;
use crate::time::MILLISECOND;

/// Time for which cores stay awake after a packet, in ns. A ping every second keeps them awake.
const LINGER: u64 = 2_000 * MILLISECOND;

/// The request to keep this host's cores awake.
pub(super) struct IdleLatencyGuard {
    /// True if the cores stay awake even if no packets arrive.
    always: bool,
    held: Option<CpuLatencyHold>,
    /// True if the kernel has refused the request, so that it is not made again.
    refused: bool,
    until: u64,
}

impl IdleLatencyGuard {
    /// Creates the guard. With `always`, the cores stay awake all the time, otherwise only while packets arrive.
    pub(super) fn new(always: bool) -> Self {
        let mut this = Self { always, held: None, refused: false, until: 0 };
        if always {
            this.hold();
        }
        this
    }

    fn hold(&mut self) {
        self.held = CpuLatencyHold::hold();
        self.refused = self.held.is_none();
    }

    /// Keeps the cores awake, because a packet came or went just before `now` (ns).
    #[inline]
    pub(super) fn stir(&mut self, now: u64) {
        self.until = now + LINGER;
        if self.held.is_none() && !self.refused {
            self.hold();
        }
    }

    /// Releases the cores if no packet came for `LINGER`. Must be called before the driver sleeps.
    #[inline]
    pub(super) fn rest(&mut self, now: u64) {
        if self.held.is_some() && !self.always && now > self.until {
            self.held = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cores_stay_awake_for_a_while_after_a_packet() {
        let granted = CpuLatencyHold::hold().is_some();
        let mut cores = IdleLatencyGuard::new(false);
        assert!(cores.held.is_none(), "nothing is held before the first packet");
        cores.stir(5);
        assert_eq!(cores.held.is_some(), granted);
        cores.rest(5 + LINGER);
        assert_eq!(cores.held.is_some(), granted);
        cores.rest(6 + LINGER);
        assert!(cores.held.is_none());
        cores.stir(7 + LINGER);
        assert_eq!((cores.held.is_some(), cores.refused), (granted, !granted));

        let mut always = IdleLatencyGuard::new(true);
        always.rest(u64::MAX);
        assert_eq!(always.held.is_some(), granted);
    }
}
