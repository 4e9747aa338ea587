//! The system calls of the probe, each wrapped where it is safe to call.
#![allow(unsafe_code, reason = "system calls that no crate wraps as the probe needs them")]

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::path::Path;

/// Memory of our own, written once so that every page is there, in huge pages where the kernel gives them.
pub(super) struct Region {
    mapping: *mut u8,
    mapped: usize,
    start: *mut u8,
    bytes: usize,
}

// SAFETY: a region is plain memory that only its owner hands out.
unsafe impl Send for Region {}

impl Region {
    /// `bytes` of memory, a multiple of 4096. What is large enough begins at a huge page.
    pub(super) fn new(bytes: usize) -> io::Result<Self> {
        const HUGE: usize = 2 << 20;
        // Not every kernel places a mapping so that huge pages fit: room to do it here.
        let mapped = if bytes < HUGE { bytes } else { bytes.next_multiple_of(HUGE) + HUGE };
        // SAFETY: a fresh anonymous mapping touches no memory of ours.
        let mapping = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                mapped,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                -1,
                0,
            )
        };
        if mapping == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let mapping = mapping.cast::<u8>();
        let before = if bytes < HUGE { 0 } else { mapping.align_offset(HUGE) };
        // SAFETY: the mapping is a huge page longer than what begins there.
        let start = unsafe { mapping.add(before) };
        let mut region = Self { mapping, mapped, start, bytes };
        // SAFETY: the range is the mapping's. It is only advice: what the kernel says to it does not matter.
        unsafe { libc::madvise(mapping.cast(), mapped, libc::MADV_HUGEPAGE) };
        region.bytes_mut().fill(1);
        Ok(region)
    }

    pub(super) fn bytes(&self) -> &[u8] {
        // SAFETY: the mapping is ours, initialised, and lives as long as the region.
        unsafe { std::slice::from_raw_parts(self.start, self.bytes) }
    }

    pub(super) fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above, and borrowed for writing.
        unsafe { std::slice::from_raw_parts_mut(self.start, self.bytes) }
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours and nothing refers to it any more.
        unsafe { libc::munmap(self.mapping.cast(), self.mapped) };
    }
}

/// CPUs that this process may use, in order.
pub(super) fn cpus() -> Vec<usize> {
    // SAFETY: a set of zeros is an empty set, and the kernel writes at most its size.
    let set = unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        if libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &raw mut set) != 0 {
            return vec![0];
        }
        set
    };
    // SAFETY: the index is below the size of the set.
    (0..libc::CPU_SETSIZE as usize).filter(|cpu| unsafe { libc::CPU_ISSET(*cpu, &set) }).collect()
}

/// Do it in a thread of its own: what it sets for itself ends with it.
///
/// # Errors
/// When no thread can be started.
pub(super) fn aside<T: Send>(work: impl FnOnce() -> T + Send) -> io::Result<T> {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().spawn_scoped(scope, work)?;
        Ok(thread.join().expect("a worker only measures"))
    })
}

/// Keep the calling thread on one CPU; it ends with the thread.
pub(super) fn pin(cpu: usize) {
    // SAFETY: a set of zeros is an empty set; `cpu` came from [`cpus`]. A refusal only makes the figures less steady.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(cpu, &mut set);
        libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &raw const set);
    }
}

/// Timers of the calling thread go off as late as one nanosecond allows, not 50 us; it ends with the thread.
pub(super) fn exact_timers() {
    // SAFETY: a number for the calling thread.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1_u64) };
}

/// Nanoseconds of a clock of the kernel.
fn clock(id: libc::clockid_t) -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel writes one timespec.
    unsafe { libc::clock_gettime(id, &raw mut now) };
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// Nanoseconds of the monotonic clock.
pub(super) fn now() -> u64 {
    clock(libc::CLOCK_MONOTONIC)
}

/// CPU time of the calling thread in nanoseconds.
pub(super) fn thread_cpu() -> u64 {
    clock(libc::CLOCK_THREAD_CPUTIME_ID)
}

/// CPU time of this process, all threads, in nanoseconds.
pub(super) fn process_cpu() -> u64 {
    clock(libc::CLOCK_PROCESS_CPUTIME_ID)
}

/// Nanoseconds of the unit in which the kernel tells times in `/proc/stat`.
pub(super) fn tick() -> u64 {
    // SAFETY: a number for a number.
    let a_second = unsafe { libc::sysconf(libc::_SC_CLK_TCK) };
    1_000_000_000 / u64::try_from(a_second).unwrap_or(100).max(1)
}

/// Resolution of the monotonic clock in nanoseconds.
pub(super) fn resolution() -> u64 {
    let mut step = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel writes one timespec.
    unsafe { libc::clock_getres(libc::CLOCK_MONOTONIC, &raw mut step) };
    step.tv_sec as u64 * 1_000_000_000 + step.tv_nsec as u64
}

/// Sleep until this instant of the monotonic clock.
pub(super) fn sleep_until(instant: u64) {
    let until = libc::timespec {
        tv_sec: (instant / 1_000_000_000) as libc::time_t,
        tv_nsec: (instant % 1_000_000_000) as libc::c_long,
    };
    // SAFETY: the kernel reads one timespec.
    unsafe {
        libc::clock_nanosleep(
            libc::CLOCK_MONOTONIC,
            libc::TIMER_ABSTIME,
            &raw const until,
            std::ptr::null_mut(),
        )
    };
}

/// The shortest system call, which no library answers by itself.
pub(super) fn empty_call() {
    // SAFETY: it takes no arguments and always succeeds.
    unsafe { libc::syscall(libc::SYS_getppid) };
}

/// A file in memory without a name: it goes with its descriptor.
pub(super) fn memory_file(bytes: u64) -> io::Result<OwnedFd> {
    // SAFETY: the name ends with a zero byte; the descriptor is new and ours.
    let file = unsafe {
        let fd = libc::memfd_create(c"engpass-probe".as_ptr(), libc::MFD_CLOEXEC);
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        OwnedFd::from_raw_fd(fd)
    };
    let block = vec![7; 1 << 20];
    let mut at = 0;
    while at < bytes {
        at += write_at(&file, &block[..block.len().min((bytes - at) as usize)], at)? as u64;
    }
    Ok(file)
}

/// A file without a name in this directory, opened past the page cache: it goes with its descriptor, even after a crash.
pub(super) fn direct_file(directory: &Path) -> io::Result<OwnedFd> {
    use std::os::unix::fs::OpenOptionsExt;
    let flags = libc::O_TMPFILE | libc::O_DIRECT;
    let file =
        std::fs::OpenOptions::new().read(true).write(true).custom_flags(flags).mode(0o600).open(directory)?;
    Ok(file.into())
}

/// What a file system is, by its magic number.
pub(super) fn file_system(file: &impl AsRawFd) -> io::Result<i64> {
    // SAFETY: the kernel fills the structure or says that it did not.
    unsafe {
        let mut about: libc::statfs = std::mem::zeroed();
        if libc::fstatfs(file.as_raw_fd(), &raw mut about) != 0 {
            return Err(io::Error::last_os_error());
        }
        #[allow(clippy::unnecessary_cast, reason = "the type differs between C libraries")]
        Ok(about.f_type as i64)
    }
}

/// Write to a file at a place; bytes written.
pub(super) fn write_at(file: &impl AsRawFd, bytes: &[u8], at: u64) -> io::Result<usize> {
    // SAFETY: the kernel reads what the slice holds.
    let done =
        unsafe { libc::pwrite(file.as_raw_fd(), bytes.as_ptr().cast(), bytes.len(), at as libc::off_t) };
    usize::try_from(done).map_err(|_| io::Error::last_os_error())
}

/// Read from a file at a place; bytes read.
pub(super) fn read_at(file: &impl AsRawFd, bytes: &mut [u8], at: u64) -> io::Result<usize> {
    // SAFETY: the kernel writes no more than the slice holds.
    let done =
        unsafe { libc::pread(file.as_raw_fd(), bytes.as_mut_ptr().cast(), bytes.len(), at as libc::off_t) };
    usize::try_from(done).map_err(|_| io::Error::last_os_error())
}

/// Wait until what was written to a file is on its device.
pub(super) fn flush(file: &impl AsRawFd) -> io::Result<()> {
    // SAFETY: a call on a descriptor.
    match unsafe { libc::fdatasync(file.as_raw_fd()) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Send with these flags; bytes taken.
pub(super) fn send(socket: &impl AsRawFd, bytes: &[u8], flags: i32) -> io::Result<usize> {
    // SAFETY: the kernel reads what the slice holds; with `MSG_ZEROCOPY` the caller keeps it until the completion.
    let done = unsafe {
        libc::send(socket.as_raw_fd(), bytes.as_ptr().cast(), bytes.len(), flags | libc::MSG_NOSIGNAL)
    };
    usize::try_from(done).map_err(|_| io::Error::last_os_error())
}

/// Receive with these flags; bytes received, or thrown away with `MSG_TRUNC`.
pub(super) fn receive(socket: &impl AsRawFd, bytes: &mut [u8], flags: i32) -> io::Result<usize> {
    // SAFETY: the kernel writes no more than the slice holds.
    let done = unsafe { libc::recv(socket.as_raw_fd(), bytes.as_mut_ptr().cast(), bytes.len(), flags) };
    usize::try_from(done).map_err(|_| io::Error::last_os_error())
}

/// Send from a file without a copy; bytes taken.
pub(super) fn send_file(
    socket: &impl AsRawFd,
    file: &impl AsRawFd,
    at: u64,
    bytes: usize,
) -> io::Result<usize> {
    let mut at = at as libc::off_t;
    // SAFETY: the kernel reads and writes one offset.
    let done = unsafe { libc::sendfile(socket.as_raw_fd(), file.as_raw_fd(), &raw mut at, bytes) };
    usize::try_from(done).map_err(|_| io::Error::last_os_error())
}

/// Set a whole number as an option of a socket.
pub(super) fn option(socket: &impl AsRawFd, level: i32, name: i32, value: i32) -> io::Result<()> {
    // SAFETY: the kernel reads one number.
    let set = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            level,
            name,
            (&raw const value).cast(),
            size_of::<i32>() as libc::socklen_t,
        )
    };
    if set == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Ask for a congestion control; the one that the socket then has.
pub(super) fn congestion(socket: &impl AsRawFd, wanted: &str) -> String {
    let mut name = [0_u8; 16];
    let mut length = name.len() as libc::socklen_t;
    // SAFETY: the kernel reads as many bytes as are said, and writes at most `length`.
    unsafe {
        let fd = socket.as_raw_fd();
        let text = wanted.as_ptr().cast();
        libc::setsockopt(fd, libc::IPPROTO_TCP, libc::TCP_CONGESTION, text, wanted.len() as libc::socklen_t);
        libc::getsockopt(
            fd,
            libc::IPPROTO_TCP,
            libc::TCP_CONGESTION,
            name.as_mut_ptr().cast(),
            &raw mut length,
        );
    }
    String::from_utf8_lossy(&name).trim_end_matches('\0').to_owned()
}

/// Sends that `MSG_ZEROCOPY` has completed since the last call, and how many of them were copied after all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Completed {
    pub(super) sends: u64,
    pub(super) copied: u64,
}

/// Take the completions that are there from the error queue.
pub(super) fn completions(socket: &impl AsRawFd) -> Completed {
    const ORIGIN_ZEROCOPY: u8 = 5;
    const CODE_COPIED: u8 = 1;
    let mut all = Completed::default();
    loop {
        let mut control = [0_u64; 32];
        // SAFETY: the message refers to our buffer; the kernel writes at most its size, and control messages are walked as the macros
        // of the C library say.
        unsafe {
            let mut message: libc::msghdr = std::mem::zeroed();
            message.msg_control = control.as_mut_ptr().cast();
            message.msg_controllen = size_of_val(&control) as _;
            let flags = libc::MSG_ERRQUEUE | libc::MSG_DONTWAIT;
            if libc::recvmsg(socket.as_raw_fd(), &raw mut message, flags) < 0 {
                return all;
            }
            let mut part = libc::CMSG_FIRSTHDR(&raw const message);
            while !part.is_null() {
                let error: libc::sock_extended_err = std::ptr::read_unaligned(libc::CMSG_DATA(part).cast());
                if error.ee_errno == 0 && error.ee_origin == ORIGIN_ZEROCOPY {
                    let sends = u64::from(error.ee_data.wrapping_sub(error.ee_info)) + 1;
                    all.sends += sends;
                    if error.ee_code & CODE_COPIED != 0 {
                        all.copied += sends;
                    }
                }
                part = libc::CMSG_NXTHDR(&raw const message, part);
            }
        }
    }
}

/// Wait until the socket has something to say, errors and completions among it, or so many milliseconds.
pub(super) fn wait_for_errors(socket: &impl AsRawFd, milliseconds: i32) {
    let mut one = libc::pollfd { fd: socket.as_raw_fd(), events: 0, revents: 0 };
    // SAFETY: the kernel reads and writes one entry.
    unsafe { libc::poll(&raw mut one, 1, milliseconds) };
}

/// Send the same bytes so many times in one call; how many went.
pub(super) fn send_many(socket: &impl AsRawFd, bytes: &[u8], times: usize) -> io::Result<usize> {
    let mut part = libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
    // SAFETY: zeros are a message without address and control; the kernel only reads what the parts refer to.
    let mut messages: Vec<libc::mmsghdr> = (0..times)
        .map(|_| unsafe {
            let mut message: libc::mmsghdr = std::mem::zeroed();
            message.msg_hdr.msg_iov = &raw mut part;
            message.msg_hdr.msg_iovlen = 1;
            message
        })
        .collect();
    // SAFETY: as many messages as the vector holds.
    let done = unsafe { libc::sendmmsg(socket.as_raw_fd(), messages.as_mut_ptr(), times as u32, 0) };
    usize::try_from(done).map_err(|_| io::Error::last_os_error())
}
