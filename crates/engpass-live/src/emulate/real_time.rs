//! Real-time scheduling for a driver that sleeps.
//!
//! A write wakes the receiver, which may take the driver's core. Other threads may follow it until the next scheduler tick (4 ms at 250 Hz). Packets that
//! become due in that time are late, even if the driver has the highest weight. A real-time thread runs at once instead. But the kernel stops a real-time
//! thread that never sleeps for 50 ms of every second, because it starves its core. Therefore the driver is real-time only while it leaves enough of a core to
//! other threads.

use crate::sys::{clock, thread_priority};
use crate::time::MILLISECOND;

/// Time between two checks of the driver's CPU use, in ns.
const TERM: u64 = 10 * MILLISECOND;
/// CPU use, in per cent of a core, from which on the driver gives up real-time scheduling.
const MOST: u64 = 70;
/// CPU use, in per cent of a core, below which the driver asks for real-time scheduling again.
const AGAIN: u64 = 50;

/// Real-time scheduling of the calling thread. Dropping it restores normal scheduling.
pub(super) struct RealTimeGuard {
    /// True if the kernel allows real-time scheduling.
    granted: bool,
    real_time: bool,
    /// Time of the last check of the CPU use, in ns.
    looked: u64,
    /// CPU time of the thread at that check, in ns.
    ran: u64,
}

impl RealTimeGuard {
    /// Asks for real-time scheduling if `wanted`. Without the privilege nothing changes.
    pub(super) fn ask(wanted: bool) -> Self {
        let granted = wanted && thread_priority::real_time();
        Self { granted, real_time: granted, looked: clock::now(), ran: clock::ran() }
    }

    /// Checks the CPU use if `TERM` has passed since the last check, and switches real-time scheduling on or off.
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
                self.granted = thread_priority::real_time();
            } else {
                thread_priority::not_real_time();
            }
        }
    }
}

impl Drop for RealTimeGuard {
    fn drop(&mut self) {
        if self.granted && self.real_time {
            thread_priority::not_real_time();
        }
    }
}

/// Returns whether the thread should be real-time from now on, given that it used `ran` ns of CPU time in the last `time` ns.
fn stays(real_time: bool, ran: u64, time: u64) -> bool {
    ran * 100 < time * if real_time { MOST } else { AGAIN }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn real_time_thread_must_leave_part_of_its_core_idle() {
        assert!(stays(true, 69, 100) && !stays(true, 70, 100));
        assert!(stays(false, 49, 100) && !stays(false, 50, 100) && !stays(false, 69, 100));
    }

    #[test]
    fn spinning_thread_gives_up_real_time() {
        let spun = std::thread::spawn(|| {
            let mut urgency = RealTimeGuard::ask(true);
            let (begin, ran) = (clock::now(), clock::ran());
            while clock::ran() - ran < TERM {}
            let took = clock::now() - begin;
            urgency.look(begin + took);
            // On a busy machine the thread may have had only a part of a core.
            (urgency.real_time, TERM * 100 < took * MOST)
        });
        let (real_time, little) = spun.join().expect("the thread does not panic");
        assert!(!real_time || little, "the thread used a whole core and is still real-time");
        assert!(!RealTimeGuard::ask(false).granted);
    }
}
