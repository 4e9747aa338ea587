//! CPU time, affinity and timers of threads.

use std::fs::File;
use std::io;
use std::mem::MaybeUninit;
use std::os::unix::fs::FileExt;

use serde::Serialize;

/// CPU time and context switches of a thread or process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Cpu {
    pub(crate) user_ns: u64,
    pub(crate) system_ns: u64,
    /// Voluntary context switches.
    pub(crate) switches_voluntary: u64,
    /// Involuntary context switches.
    pub(crate) switches_forced: u64,
    /// Time in which the thread was runnable while another thread had its core; unknown for a whole process.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) waited_ns: Option<u64>,
}

impl Cpu {
    /// Returns what was used since `earlier`.
    pub(crate) fn since(self, earlier: Self) -> Self {
        Self {
            user_ns: self.user_ns.saturating_sub(earlier.user_ns),
            system_ns: self.system_ns.saturating_sub(earlier.system_ns),
            switches_voluntary: self.switches_voluntary.saturating_sub(earlier.switches_voluntary),
            switches_forced: self.switches_forced.saturating_sub(earlier.switches_forced),
            waited_ns: self.waited_ns.zip(earlier.waited_ns).map(|(now, then)| now.saturating_sub(then)),
        }
    }

    /// Returns the sum of both.
    pub(crate) fn plus(self, other: Self) -> Self {
        Self {
            user_ns: self.user_ns + other.user_ns,
            system_ns: self.system_ns + other.system_ns,
            switches_voluntary: self.switches_voluntary + other.switches_voluntary,
            switches_forced: self.switches_forced + other.switches_forced,
            waited_ns: match (self.waited_ns, other.waited_ns) {
                (Some(one), Some(two)) => Some(one + two),
                (one, two) => one.or(two),
            },
        }
    }
}

fn usage(who: libc::c_int) -> Cpu {
    let mut usage = MaybeUninit::<libc::rusage>::uninit();
    // SAFETY: `usage` can hold an rusage; the call fills it.
    let result = unsafe { libc::getrusage(who, usage.as_mut_ptr()) };
    assert_eq!(result, 0, "`who` and the pointer are valid");
    // SAFETY: the call succeeded, so it filled `usage`.
    let usage = unsafe { usage.assume_init() };
    let ns = |time: libc::timeval| time.tv_sec as u64 * 1_000_000_000 + time.tv_usec as u64 * 1000;
    Cpu {
        user_ns: ns(usage.ru_utime),
        system_ns: ns(usage.ru_stime),
        switches_voluntary: usage.ru_nvcsw as u64,
        switches_forced: usage.ru_nivcsw as u64,
        waited_ns: None,
    }
}

/// The scheduler's statistics of one thread (`schedstat`).
#[derive(Debug)]
pub(crate) struct Watch {
    schedstat: File,
}

impl Watch {
    /// Opens the statistics of the calling thread; `None` if the kernel does not report them (`CONFIG_SCHED_INFO`).
    pub(crate) fn here() -> Option<Self> {
        let watch = Self { schedstat: File::open("/proc/thread-self/schedstat").ok()? };
        watch.waited().map(|_| watch)
    }

    /// Returns the time in ns in which the thread was runnable while another one had its core.
    pub(crate) fn waited(&self) -> Option<u64> {
        let mut text = [0; 96];
        let length = self.schedstat.read_at(&mut text, 0).ok()?;
        let text = std::str::from_utf8(&text[..length]).ok()?;
        text.split_whitespace().nth(1)?.parse().ok()
    }
}

/// Returns what the calling thread has used so far.
pub(crate) fn used() -> Cpu {
    Cpu { waited_ns: Watch::here().and_then(|watch| watch.waited()), ..usage(libc::RUSAGE_THREAD) }
}

/// Returns what the whole process has used so far.
pub(crate) fn used_by_process() -> Cpu {
    usage(libc::RUSAGE_SELF)
}

/// Pins the calling thread to one core.
pub(crate) fn pin(core: usize) -> io::Result<()> {
    let mut set = MaybeUninit::<libc::cpu_set_t>::zeroed();
    if core >= libc::CPU_SETSIZE as usize {
        return Err(io::Error::from_raw_os_error(libc::EINVAL));
    }
    // SAFETY: a zeroed cpu_set_t is the empty set; `core` is below its size.
    unsafe { libc::CPU_SET(core, set.assume_init_mut()) };
    // SAFETY: the set is initialised, and its size is given.
    let result = unsafe { libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), set.as_ptr()) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Returns the cores on which this process may run.
pub(crate) fn cores() -> Vec<usize> {
    let mut set = MaybeUninit::<libc::cpu_set_t>::zeroed();
    // SAFETY: the set is writable, and its size is given.
    let result = unsafe { libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), set.as_mut_ptr()) };
    if result != 0 {
        return Vec::new();
    }
    // SAFETY: the set was zeroed and then filled by the call.
    let set = unsafe { set.assume_init() };
    // SAFETY: every index is below CPU_SETSIZE.
    (0..libc::CPU_SETSIZE as usize).filter(|&core| unsafe { libc::CPU_ISSET(core, &set) }).collect()
}

/// Returns the core on which the calling thread runs now.
pub(crate) fn core() -> u64 {
    // SAFETY: no arguments.
    let core = unsafe { libc::sched_getcpu() };
    u64::try_from(core).unwrap_or(0)
}

/// Reduces the timer slack of the calling thread from 50 us to one nanosecond.
pub(crate) fn exact_timers() {
    // SAFETY: PR_SET_TIMERSLACK takes an unsigned long and touches no memory.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1 as libc::c_ulong) };
}

/// Returns whether this process runs as root.
pub(crate) fn is_root() -> bool {
    // SAFETY: no arguments, cannot fail.
    unsafe { libc::geteuid() == 0 }
}

/// Returns random bytes from the kernel.
pub(crate) fn random<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    // SAFETY: the buffer is writable for its length.
    let got = unsafe { libc::getrandom(bytes.as_mut_ptr().cast(), N, 0) };
    assert_eq!(usize::try_from(got), Ok(N), "`getrandom` fills up to 256 bytes at once");
    bytes
}
