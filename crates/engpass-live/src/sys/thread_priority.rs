//! Scheduling requests of threads with strict timing. All of them need privileges and may be refused.

use std::fs::{self, File, OpenOptions};
use std::io::Write;

use serde::Serialize;

/// Scheduling class of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Class {
    /// Runs as soon as it is awake, before all normal threads (`SCHED_FIFO`). Only for threads that sleep: the kernel stops one that never sleeps for 50 ms
    /// of every second.
    RealTime,
    /// The thread and its session have the highest weight, so other threads get little of its core.
    Heavy,
    /// Like any other thread.
    Normal,
}

/// Makes the calling thread real-time, so that it runs before all normal threads as soon as it is awake; its children are normal. Returns whether that was
/// granted.
pub(crate) fn real_time() -> bool {
    let lowest = libc::sched_param { sched_priority: 1 };
    let policy = libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK;
    // SAFETY: a valid sched_param; 0 is the calling thread.
    unsafe { libc::sched_setscheduler(0, policy, &raw const lowest) == 0 }
}

/// Undoes [`real_time`] for the calling thread and restores its nice value.
pub(crate) fn not_real_time() {
    let none = libc::sched_param { sched_priority: 0 };
    // SAFETY: a valid sched_param; 0 is the calling thread. Giving up real-time scheduling is always permitted.
    unsafe { libc::sched_setscheduler(0, libc::SCHED_OTHER | libc::SCHED_RESET_ON_FORK, &raw const none) };
}

/// The highest scheduling weight for this process's session (`sched(7)`, autogroups). Dropping it restores the previous weight of the session.
#[derive(Debug)]
pub(crate) struct RaisedNice {
    before: Option<String>,
}

const GROUP: &str = "/proc/self/autogroup";

impl RaisedNice {
    /// Gives the calling thread and its session the highest weight. `None` if that is not granted.
    pub(crate) fn ask() -> Option<Self> {
        // SAFETY: no memory is touched; 0 is the calling thread.
        let granted = unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, -20) } == 0;
        // Thread weights count only within a session. A session that other processes share is left alone.
        // SAFETY: no arguments that could be wrong.
        let own = unsafe { libc::getsid(0) == libc::getpid() };
        let before = fs::read_to_string(GROUP).ok().filter(|_| granted && own);
        let before = before.and_then(|text| text.split_whitespace().last().map(str::to_owned));
        let before = before.filter(|_| fs::write(GROUP, "-20").is_ok());
        granted.then_some(Self { before })
    }
}

impl Drop for RaisedNice {
    fn drop(&mut self) {
        if let Some(before) = &self.before {
            let _ = fs::write(GROUP, before);
        }
    }
}

/// While this value lives, no core enters a sleep state that takes time to leave (`/dev/cpu_dma_latency`, PM QoS): idle cores poll. On a virtual machine this
/// keeps idle cores from going back to the hypervisor, which may take milliseconds to return them.
#[derive(Debug)]
pub(crate) struct CpuLatencyHold {
    _held: File,
}

impl CpuLatencyHold {
    /// Keeps the cores from such sleep states; `None` if the kernel does not permit it.
    pub(crate) fn hold() -> Option<Self> {
        let mut file = OpenOptions::new().write(true).open("/dev/cpu_dma_latency").ok()?;
        file.write_all(&0_i32.to_ne_bytes()).ok()?;
        Some(Self { _held: file })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn real_time_and_nice_end_with_the_thread_that_asked() {
        let class = || std::thread::spawn(real_time).join().expect("the thread does not panic");
        // Whether granted or not, the test's own thread keeps its class.
        let _ = class();
        let undone = || {
            real_time();
            not_real_time();
            // SAFETY: no arguments that could be wrong.
            unsafe { libc::sched_getscheduler(0) & !libc::SCHED_RESET_ON_FORK }
        };
        assert_eq!(std::thread::spawn(undone).join().expect("the thread does not panic"), libc::SCHED_OTHER);
        // SAFETY: no arguments that could be wrong.
        assert_eq!(unsafe { libc::sched_getscheduler(0) } & !libc::SCHED_RESET_ON_FORK, libc::SCHED_OTHER);
        let before = fs::read_to_string(GROUP).ok();
        std::thread::spawn(|| drop(RaisedNice::ask())).join().expect("the thread does not panic");
        assert_eq!(fs::read_to_string(GROUP).ok(), before);
        drop(CpuLatencyHold::hold());
    }
}
