//! Real-time scheduling for a driver that sleeps.
//!
//! A write wakes the receiver, who may take the driver's core; and behind the receiver somebody else does, until the next tick of the
//! kernel's clock, 4 ms where that has 250 Hz. However much weight the driver has, packets that are due then are late. To a real-time
//! thread that does not happen. But one that never sleeps starves its core, and is stopped for 50 ms of every second: so the driver is
//! one as long as it leaves enough of a core to others.

use crate::sys::{clock, urgent};
use crate::time::MILLISECOND;

/// How often it is looked at how much of a core the driver takes, in nanoseconds.
const TERM: u64 = 10 * MILLISECOND;
/// From this share of a core on it is not real-time, in hundredths, and below that one it is again.
const MOST: u64 = 70;
const AGAIN: u64 = 50;

/// Of the calling thread, as long as this lives.
pub(super) struct RealTimeGuard {
    /// It may be real-time, and is.
    granted: bool,
    real_time: bool,
    /// When it was looked at last, and how long the thread had run then, in nanoseconds.
    looked: u64,
    ran: u64,
}

impl RealTimeGuard {
    /// Ask for it, where it is `wanted`; without the privilege all stays as it is.
    pub(super) fn ask(wanted: bool) -> Self {
        let granted = wanted && urgent::real_time();
        Self { granted, real_time: granted, looked: clock::now(), ran: clock::ran() }
    }

    /// It is `now`: look whether there is enough left for others, if it is time to.
    #[inline]
    pub(super) fn look(&mut self, now: u64) {
        if self.granted && now >= self.looked + TERM {
            self.look_again(now);
        }
    }

    #[cold]
    fn look_again(&mut self, now: u64) {
        let ran = clock::ran();
        let real_time = stays(self.real_time, ran - self.ran, now - self.looked);
        (self.looked, self.ran) = (now, ran);
        if real_time != self.real_time {
            self.real_time = real_time;
            if real_time {
                self.granted = urgent::real_time();
            } else {
                urgent::not_real_time();
            }
        }
    }
}

impl Drop for RealTimeGuard {
    fn drop(&mut self) {
        if self.granted && self.real_time {
            urgent::not_real_time();
        }
    }
}

/// Whether a thread that is real-time, or not, is so from now on, when it has run so long in that time.
fn stays(real_time: bool, ran: u64, time: u64) -> bool {
    ran * 100 < time * if real_time { MOST } else { AGAIN }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_leaves_nothing_is_not_real_time() {
        assert!(stays(true, 69, 100) && !stays(true, 70, 100));
        assert!(stays(false, 49, 100) && !stays(false, 50, 100) && !stays(false, 69, 100));
    }

    #[test]
    fn a_thread_that_spins_gives_it_back() {
        let spun = std::thread::spawn(|| {
            let mut urgency = RealTimeGuard::ask(true);
            let (begin, ran) = (clock::now(), clock::ran());
            while clock::ran() - ran < TERM {}
            let took = clock::now() - begin;
            urgency.look(begin + took);
            // On a busy machine it may not have had most of a core.
            (urgency.real_time, TERM * 100 < took * MOST)
        });
        let (real_time, little) = spun.join().expect("no panic");
        assert!(!real_time || little, "it took a whole core");
        assert!(!RealTimeGuard::ask(false).granted);
    }
}
