//! SIGINT and SIGTERM as a flag, for as long as somebody wants them so.

use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::{io, mem};

static CAUGHT: AtomicBool = AtomicBool::new(false);

extern "C" fn note(_: libc::c_int) {
    CAUGHT.store(true, Ordering::Relaxed);
}

/// While it lives, SIGTERM and SIGINT only set a flag; SIGINT stays ignored where it was. Then all is as it was before.
pub(crate) struct Caught(Vec<(libc::c_int, libc::sigaction)>);

impl Caught {
    pub(crate) fn new() -> Self {
        CAUGHT.store(false, Ordering::Relaxed);
        let mut before = Vec::new();
        for signal in [libc::SIGTERM, libc::SIGINT] {
            // SAFETY: a sigaction of zeros is valid, and the handler only stores to an atomic; no SA_RESTART, so that waits end.
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

    /// Whether one has come.
    #[inline]
    #[allow(clippy::unused_self, reason = "only while they are caught there is an answer")]
    pub(crate) fn any(&self) -> bool {
        CAUGHT.load(Ordering::Relaxed)
    }
}

impl Drop for Caught {
    fn drop(&mut self) {
        for (signal, old) in &self.0 {
            // SAFETY: what the kernel gave us when we asked.
            unsafe { libc::sigaction(*signal, std::ptr::from_ref(old), std::ptr::null_mut()) };
        }
    }
}

/// Let the calling thread get no signals, so that they come to those that wait for them.
pub(crate) fn block_all() {
    // SAFETY: a set of zeros is valid, and is filled before it is used.
    unsafe {
        let mut all: libc::sigset_t = mem::zeroed();
        libc::sigfillset(&raw mut all);
        libc::pthread_sigmask(libc::SIG_BLOCK, &raw const all, std::ptr::null_mut());
    }
}

/// Wakes a thread that waits for descriptors.
pub(crate) struct Bell(OwnedFd);

impl Bell {
    pub(crate) fn new() -> io::Result<Self> {
        // SAFETY: no pointers; the result is checked.
        let fd = unsafe { libc::eventfd(0, libc::EFD_NONBLOCK | libc::EFD_CLOEXEC) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: a fresh descriptor that nobody else owns.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    /// From any thread.
    pub(crate) fn ring(&self) {
        let one = 1_u64.to_ne_bytes();
        // SAFETY: the kernel reads eight bytes. It fails only where it rings already.
        unsafe { libc::write(self.0.as_raw_fd(), one.as_ptr().cast(), 8) };
    }

    /// Be silent until it rings again.
    pub(crate) fn hush(&self) {
        let mut count = [0; 8];
        // SAFETY: the kernel writes eight bytes at most. It fails where it did not ring.
        unsafe { libc::read(self.0.as_raw_fd(), count.as_mut_ptr().cast(), 8) };
    }
}

impl AsRawFd for Bell {
    fn as_raw_fd(&self) -> std::os::fd::RawFd {
        self.0.as_raw_fd()
    }
}
