//! SIGINT and SIGTERM as a flag, and waking of threads.

use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::{io, mem};

static CAUGHT: AtomicBool = AtomicBool::new(false);

extern "C" fn note(_: libc::c_int) {
    CAUGHT.store(true, Ordering::Relaxed);
}

/// While this value lives, SIGTERM and SIGINT only set a flag; an ignored SIGINT stays ignored. Dropping it restores the previous handlers.
pub(crate) struct Caught(Vec<(libc::c_int, libc::sigaction)>);

impl Caught {
    pub(crate) fn new() -> Self {
        CAUGHT.store(false, Ordering::Relaxed);
        let mut before = Vec::new();
        for signal in [libc::SIGTERM, libc::SIGINT] {
            // SAFETY: an all-zero sigaction is valid, and the handler only stores to an atomic. Without SA_RESTART, waits end on a signal.
            unsafe {
                let mut old: libc::sigaction = mem::zeroed();
                libc::sigaction(signal, std::ptr::null(), &raw mut old);
                if old.sa_sigaction == libc::SIG_IGN && signal == libc::SIGINT {
                    continue;
                }
                let mut new: libc::sigaction = mem::zeroed();
                new.sa_sigaction = note as extern "C" fn(libc::c_int) as libc::sighandler_t;
                libc::sigemptyset(&raw mut new.sa_mask);
                libc::sigaction(signal, &raw const new, std::ptr::null_mut());
                before.push((signal, old));
            }
        }
        Self(before)
    }

    /// Returns whether a signal has arrived.
    #[inline]
    #[allow(clippy::unused_self, reason = "only while they are caught there is an answer")]
    pub(crate) fn any(&self) -> bool {
        CAUGHT.load(Ordering::Relaxed)
    }
}

impl Drop for Caught {
    fn drop(&mut self) {
        for (signal, old) in &self.0 {
            // SAFETY: the kernel returned this sigaction before.
            unsafe { libc::sigaction(*signal, std::ptr::from_ref(old), std::ptr::null_mut()) };
        }
    }
}

/// Blocks all signals in the calling thread, so that they go to the threads that wait for them.
pub(crate) fn block_all() {
    // SAFETY: an all-zero set is valid, and it is filled before use.
    unsafe {
        let mut all: libc::sigset_t = mem::zeroed();
        libc::sigfillset(&raw mut all);
        libc::pthread_sigmask(libc::SIG_BLOCK, &raw const all, std::ptr::null_mut());
    }
}

/// Wakes a thread that waits for file descriptors (an eventfd).
pub(crate) struct Bell(OwnedFd);

impl Bell {
    pub(crate) fn new() -> io::Result<Self> {
        // SAFETY: no pointers; the result is checked.
        let fd = unsafe { libc::eventfd(0, libc::EFD_NONBLOCK | libc::EFD_CLOEXEC) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor is new and has no other owner.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    /// Wakes the waiting thread. Any thread may call it.
    pub(crate) fn ring(&self) {
        let one = 1_u64.to_ne_bytes();
        // SAFETY: the kernel reads eight bytes. The call fails only if the counter is full, and then it is already set.
        unsafe { libc::write(self.0.as_raw_fd(), one.as_ptr().cast(), 8) };
    }

    /// Resets the eventfd.
    pub(crate) fn hush(&self) {
        let mut count = [0; 8];
        // SAFETY: the kernel writes at most eight bytes. The call fails if the counter is zero.
        unsafe { libc::read(self.0.as_raw_fd(), count.as_mut_ptr().cast(), 8) };
    }
}

impl AsRawFd for Bell {
    fn as_raw_fd(&self) -> std::os::fd::RawFd {
        self.0.as_raw_fd()
    }
}
