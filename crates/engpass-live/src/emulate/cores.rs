//! Cores that are kept awake while packets come.
//!
//! A packet wakes its receiver, on a core that is idle where there is one. An idle core sleeps, and that of a virtual machine is handed back to
//! the host, which may take a millisecond to return it: each way of a packet would take that much longer. So as long as packets come,
//! idle cores poll.

use crate::sys::urgent::Awake;
use crate::time::MILLISECOND;

/// How long after a packet, in nanoseconds: a ping every second keeps them awake.
const LINGER: u64 = 2_000 * MILLISECOND;

/// The cores of this host.
pub(super) struct Cores {
    /// Whatever comes.
    always: bool,
    held: Option<Awake>,
    /// It was not granted: it is not asked for again.
    refused: bool,
    until: u64,
}

impl Cores {
    /// Kept awake always, or while packets come.
    pub(super) fn new(always: bool) -> Self {
        let mut this = Self { always, held: None, refused: false, until: 0 };
        if always {
            this.hold();
        }
        this
    }

    fn hold(&mut self) {
        self.held = Awake::hold();
        self.refused = self.held.is_none();
    }

    /// A packet came or went just before `now`.
    #[inline]
    pub(super) fn stir(&mut self, now: u64) {
        self.until = now + LINGER;
        if self.held.is_none() && !self.refused {
            self.hold();
        }
    }

    /// The driver is about to sleep.
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
    fn they_are_kept_awake_for_a_while_after_a_packet() {
        let granted = Awake::hold().is_some();
        let mut cores = Cores::new(false);
        assert!(cores.held.is_none(), "nothing has come");
        cores.stir(5);
        assert_eq!(cores.held.is_some(), granted);
        cores.rest(5 + LINGER);
        assert_eq!(cores.held.is_some(), granted);
        cores.rest(6 + LINGER);
        assert!(cores.held.is_none());
        cores.stir(7 + LINGER);
        assert_eq!((cores.held.is_some(), cores.refused), (granted, !granted));

        let mut always = Cores::new(true);
        always.rest(u64::MAX);
        assert_eq!(always.held.is_some(), granted);
    }
}
