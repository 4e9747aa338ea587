//! Clocks, in nanoseconds.

use std::mem::MaybeUninit;

fn read(clock: libc::clockid_t) -> u64 {
    let mut time = MaybeUninit::<libc::timespec>::uninit();
    // SAFETY: `time` can hold a timespec; the call fills it or fails.
    let result = unsafe { libc::clock_gettime(clock, time.as_mut_ptr()) };
    assert_eq!(result, 0, "Linux has this clock");
    // SAFETY: the call succeeded, so it filled `time`.
    let time = unsafe { time.assume_init() };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Returns the monotonic time. Its origin is arbitrary.
#[inline]
pub(crate) fn now() -> u64 {
    read(libc::CLOCK_MONOTONIC)
}

/// Returns the time since 1970 according to the host.
#[inline]
pub(crate) fn realtime() -> u64 {
    read(libc::CLOCK_REALTIME)
}

/// Returns the CPU time of the calling thread. Time that the hypervisor took is excluded as far as the kernel knows it.
#[inline]
pub(crate) fn ran() -> u64 {
    read(libc::CLOCK_THREAD_CPUTIME_ID)
}

/// Returns the resolution of the monotonic clock, as the kernel reports it.
pub(crate) fn resolution() -> u64 {
    let mut time = MaybeUninit::<libc::timespec>::uninit();
    // SAFETY: `time` can hold a timespec.
    let result = unsafe { libc::clock_getres(libc::CLOCK_MONOTONIC, time.as_mut_ptr()) };
    assert_eq!(result, 0, "Linux has this clock");
    // SAFETY: the call succeeded, so it filled `time`.
    let time = unsafe { time.assume_init() };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Sleeps until `due` on the monotonic clock. Continues after signals.
pub(crate) fn sleep_until(due: u64) {
    let time = libc::timespec {
        tv_sec: (due / 1_000_000_000) as libc::time_t,
        tv_nsec: (due % 1_000_000_000) as libc::c_long,
    };
    // SAFETY: `time` is a valid timespec; with TIMER_ABSTIME nothing is written back.
    while unsafe {
        libc::clock_nanosleep(
            libc::CLOCK_MONOTONIC,
            libc::TIMER_ABSTIME,
            &raw const time,
            std::ptr::null_mut(),
        )
    } == libc::EINTR
    {}
}
