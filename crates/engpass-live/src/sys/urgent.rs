//! What a thread that keeps to instants asks of the kernel. All of it needs privileges, and none of it is taken for granted.

use std::fs::{self, File, OpenOptions};
use std::io::Write;

use serde::Serialize;

/// How the scheduler treats a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Class {
    /// It runs as soon as it is awake, whoever else has the core (`SCHED_FIFO`). For threads that sleep: one that never does is stopped by
    /// the kernel for 50 ms of every second.
    RealTime,
    /// It and its session have the most weight: others get little of its core.
    Heavy,
    /// As any other.
    Normal,
}

/// Let the calling thread run as soon as it is awake, before all that are not real-time; its children are normal. Whether that was granted.
pub(crate) fn real_time() -> bool {
    let lowest = libc::sched_param { sched_priority: 1 };
    let policy = libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK;
    // SAFETY: a valid sched_param; 0 is the calling thread.
    unsafe { libc::sched_setscheduler(0, policy, &raw const lowest) == 0 }
}

/// Undo [`real_time`] for the calling thread; its nice value is as it was before.
pub(crate) fn not_real_time() {
    let none = libc::sched_param { sched_priority: 0 };
    // SAFETY: a valid sched_param; 0 is the calling thread. Whoever was real-time may always be less.
    unsafe { libc::sched_setscheduler(0, libc::SCHED_OTHER | libc::SCHED_RESET_ON_FORK, &raw const none) };
}

/// The scheduler's weight of this process's session (`sched(7)`, autogroups), as long as this lives.
#[derive(Debug)]
pub(crate) struct RaisedNice {
    before: Option<String>,
}

const GROUP: &str = "/proc/self/autogroup";

impl RaisedNice {
    /// Give the calling thread and its session the most weight; `None` where that is not granted.
    pub(crate) fn ask() -> Option<Self> {
        // SAFETY: no memory is touched; 0 is the calling thread.
        let granted = unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, -20) } == 0;
        // Weights count within a session. One that others share is left alone.
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

/// As long as this lives, no core of this host sleeps so deep that waking it takes time (`/dev/cpu_dma_latency`, PM QoS): idle ones poll.
/// On a virtual machine an idle core is not handed back to the host, which may take milliseconds to return it.
#[derive(Debug)]
pub(crate) struct CpuLatencyHold {
    _held: File,
}

impl CpuLatencyHold {
    /// Ask for it; `None` where that is not granted.
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
    fn what_was_asked_ends_with_who_asked() {
        let class = || std::thread::spawn(real_time).join().expect("no panic");
        // Granted or not, the test's own thread stays as it is.
        let _ = class();
        let undone = || {
            real_time();
            not_real_time();
            // SAFETY: no arguments that could be wrong.
            unsafe { libc::sched_getscheduler(0) & !libc::SCHED_RESET_ON_FORK }
        };
        assert_eq!(std::thread::spawn(undone).join().expect("no panic"), libc::SCHED_OTHER);
        // SAFETY: no arguments that could be wrong.
        assert_eq!(unsafe { libc::sched_getscheduler(0) } & !libc::SCHED_RESET_ON_FORK, libc::SCHED_OTHER);
        let before = fs::read_to_string(GROUP).ok();
        std::thread::spawn(|| drop(RaisedNice::ask())).join().expect("no panic");
        assert_eq!(fs::read_to_string(GROUP).ok(), before);
        drop(CpuLatencyHold::hold());
    }
}
