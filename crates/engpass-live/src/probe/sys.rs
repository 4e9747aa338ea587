//! Safe wrappers around the system calls of the probe.
#![allow(unsafe_code, reason = "no crate wraps these system calls in the form that the probe needs")]

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::path::Path;

/// A memory region with a mapping of its own. Every page was written once, and huge pages are used where the kernel has them.
pub(super) struct Region {
    mapping: *mut u8,
    mapped: usize,
    start: *mut u8,
    bytes: usize,
}

// SAFETY: a region owns its memory, and only its owner gives access to it.
unsafe impl Send for Region {}

impl Region {
    /// Maps `bytes` of memory, a multiple of 4096. A region of at least one huge page starts at a huge-page boundary.
    pub(super) fn new(bytes: usize) -> io::Result<Self> {
        const HUGE: usize = 2 << 20;
        // Not every kernel aligns mappings to huge pages. Therefore the mapping is longer, and the region starts at a boundary inside it.
        let mapped = if bytes < HUGE { bytes } else { bytes.next_multiple_of(HUGE) + HUGE };
        // SAFETY: a new anonymous mapping does not touch existing memory.
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
        // SAFETY: the mapping is at least one huge page longer than the region, so the aligned start lies inside it.
        let start = unsafe { mapping.add(before) };
        let mut region = Self { mapping, mapped, start, bytes };
        // SAFETY: the range is the mapping. The call is only advice, so its result does not matter.
        unsafe { libc::madvise(mapping.cast(), mapped, libc::MADV_HUGEPAGE) };
        region.bytes_mut().fill(1);
        Ok(region)
    }

    pub(super) fn bytes(&self) -> &[u8] {
        // SAFETY: the mapping is ours, initialised, and lives as long as the region.
        unsafe { std::slice::from_raw_parts(self.start, self.bytes) }
    }

    pub(super) fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `bytes`, and the region is borrowed mutably.
        unsafe { std::slice::from_raw_parts_mut(self.start, self.bytes) }
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, and no reference to it remains.
        unsafe { libc::munmap(self.mapping.cast(), self.mapped) };
    }
}

/// Returns the CPUs that this process may use, in ascending order; only CPU 0 if the kernel does not tell.
pub(super) fn cpus() -> Vec<usize> {
    // SAFETY: an all-zero set is an empty set, and the kernel writes at most its size.
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

/// Runs `work` in a new thread, so that thread settings such as affinity end with it.
///
/// # Errors
/// Fails when the thread cannot be started.
pub(super) fn aside<T: Send>(work: impl FnOnce() -> T + Send) -> io::Result<T> {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().spawn_scoped(scope, work)?;
        Ok(thread.join().expect("the measuring thread does not panic"))
    })
}

/// Pins the calling thread to one CPU for the rest of its life.
pub(super) fn pin(cpu: usize) {
    // SAFETY: an all-zero set is an empty set, and `cpu` comes from [`cpus`]. A failure only makes the figures less steady.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(cpu, &mut set);
        libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &raw const set);
    }
}

/// Reduces the timer slack of the calling thread from 50 us to one nanosecond for the rest of its life.
pub(super) fn exact_timers() {
    // SAFETY: the call only takes a number.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1_u64) };
}

/// Reads a clock of the kernel, in nanoseconds.
fn clock(id: libc::clockid_t) -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel writes one timespec.
    unsafe { libc::clock_gettime(id, &raw mut now) };
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// Reads the monotonic clock, in nanoseconds.
pub(super) fn now() -> u64 {
    clock(libc::CLOCK_MONOTONIC)
}

/// Returns the CPU time of the calling thread in nanoseconds.
pub(super) fn thread_cpu() -> u64 {
    clock(libc::CLOCK_THREAD_CPUTIME_ID)
}

/// Returns the CPU time of this process, over all threads, in nanoseconds.
pub(super) fn process_cpu() -> u64 {
    clock(libc::CLOCK_PROCESS_CPUTIME_ID)
}

/// Returns the unit of the times in `/proc/stat`, in nanoseconds.
pub(super) fn tick() -> u64 {
    // SAFETY: the call only takes and returns a number.
    let a_second = unsafe { libc::sysconf(libc::_SC_CLK_TCK) };
    1_000_000_000 / u64::try_from(a_second).unwrap_or(100).max(1)
}

/// Returns the resolution of the monotonic clock in nanoseconds.
pub(super) fn resolution() -> u64 {
    let mut step = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel writes one timespec.
    unsafe { libc::clock_getres(libc::CLOCK_MONOTONIC, &raw mut step) };
    step.tv_sec as u64 * 1_000_000_000 + step.tv_nsec as u64
}

/// Sleeps until this instant of the monotonic clock, in nanoseconds.
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

/// Makes the shortest system call that no library answers without the kernel.
pub(super) fn empty_call() {
    // SAFETY: the call takes no arguments and always succeeds.
    unsafe { libc::syscall(libc::SYS_getppid) };
}

/// Creates an unnamed file in memory with `bytes` bytes. It disappears when its descriptor closes.
pub(super) fn memory_file(bytes: u64) -> io::Result<OwnedFd> {
    // SAFETY: the name ends with a zero byte, and the descriptor is new and ours.
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

/// Creates an unnamed file in this directory that bypasses the page cache. It disappears when its descriptor closes, even after a crash.
pub(super) fn direct_file(directory: &Path) -> io::Result<OwnedFd> {
    use std::os::unix::fs::OpenOptionsExt;
    let flags = libc::O_TMPFILE | libc::O_DIRECT;
    let file =
        std::fs::OpenOptions::new().read(true).write(true).custom_flags(flags).mode(0o600).open(directory)?;
    Ok(file.into())
}

/// Returns the magic number of a file's file system.
pub(super) fn file_system(file: &impl AsRawFd) -> io::Result<i64> {
    // SAFETY: the kernel fills the structure or reports an error.
    unsafe {
        let mut about: libc::statfs = std::mem::zeroed();
        if libc::fstatfs(file.as_raw_fd(), &raw mut about) != 0 {
            return Err(io::Error::last_os_error());
        }
        #[allow(clippy::unnecessary_cast, reason = "the type differs between C libraries")]
        Ok(about.f_type as i64)
    }
}

/// Writes to a file at an offset. Returns the bytes written.
pub(super) fn write_at(file: &impl AsRawFd, bytes: &[u8], at: u64) -> io::Result<usize> {
    // SAFETY: the kernel reads only the slice.
    let done =
        unsafe { libc::pwrite(file.as_raw_fd(), bytes.as_ptr().cast(), bytes.len(), at as libc::off_t) };
    usize::try_from(done).map_err(|_| io::Error::last_os_error())
}

/// Reads from a file at an offset. Returns the bytes read.
pub(super) fn read_at(file: &impl AsRawFd, bytes: &mut [u8], at: u64) -> io::Result<usize> {
    // SAFETY: the kernel writes no more than the slice holds.
    let done =
        unsafe { libc::pread(file.as_raw_fd(), bytes.as_mut_ptr().cast(), bytes.len(), at as libc::off_t) };
    usize::try_from(done).map_err(|_| io::Error::last_os_error())
}

/// Waits until the data written to a file is on its device.
pub(super) fn flush(file: &impl AsRawFd) -> io::Result<()> {
    // SAFETY: the call only takes a descriptor.
    match unsafe { libc::fdatasync(file.as_raw_fd()) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Sends with these flags. Returns the bytes taken by the kernel.
pub(super) fn send(socket: &impl AsRawFd, bytes: &[u8], flags: i32) -> io::Result<usize> {
    // SAFETY: the kernel reads only the slice; with `MSG_ZEROCOPY` the caller keeps it until the completion.
    let done = unsafe {
        libc::send(socket.as_raw_fd(), bytes.as_ptr().cast(), bytes.len(), flags | libc::MSG_NOSIGNAL)
    };
    usize::try_from(done).map_err(|_| io::Error::last_os_error())
}

/// Receives with these flags. Returns the bytes received, or discarded with `MSG_TRUNC`.
pub(super) fn receive(socket: &impl AsRawFd, bytes: &mut [u8], flags: i32) -> io::Result<usize> {
    // SAFETY: the kernel writes no more than the slice holds.
    let done = unsafe { libc::recv(socket.as_raw_fd(), bytes.as_mut_ptr().cast(), bytes.len(), flags) };
    usize::try_from(done).map_err(|_| io::Error::last_os_error())
}

/// Sends from a file without a copy. Returns the bytes taken by the kernel.
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

/// Sets an integer option of a socket.
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

/// Requests a congestion control. Returns the one that the socket then uses.
pub(super) fn congestion(socket: &impl AsRawFd, wanted: &str) -> String {
    let mut name = [0_u8; 16];
    let mut length = name.len() as libc::socklen_t;
    // SAFETY: the kernel reads `wanted.len()` bytes and writes at most `length` bytes.
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

/// Number of completed `MSG_ZEROCOPY` sends since the last call, and how many of them the kernel copied after all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Completed {
    pub(super) sends: u64,
    pub(super) copied: u64,
}

/// Reads all completions from the socket's error queue.
pub(super) fn completions(socket: &impl AsRawFd) -> Completed {
    const ORIGIN_ZEROCOPY: u8 = 5;
    const CODE_COPIED: u8 = 1;
    let mut all = Completed::default();
    loop {
        let mut control = [0_u64; 32];
        // SAFETY: the message refers to our buffer, the kernel writes at most its size, and the control messages are walked with the C library's macros.
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

/// Waits until the socket has an error or a completion, at most for this many milliseconds.
pub(super) fn wait_for_errors(socket: &impl AsRawFd, milliseconds: i32) {
    let mut one = libc::pollfd { fd: socket.as_raw_fd(), events: 0, revents: 0 };
    // SAFETY: the kernel reads and writes one entry.
    unsafe { libc::poll(&raw mut one, 1, milliseconds) };
}

/// Sends the same bytes `times` times in one call. Returns the number of datagrams sent.
pub(super) fn send_many(socket: &impl AsRawFd, bytes: &[u8], times: usize) -> io::Result<usize> {
    let mut part = libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
    // SAFETY: an all-zero message has no address and no control data; the kernel only reads what `part` refers to.
    let mut messages: Vec<libc::mmsghdr> = (0..times)
        .map(|_| unsafe {
            let mut message: libc::mmsghdr = std::mem::zeroed();
            message.msg_hdr.msg_iov = &raw mut part;
            message.msg_hdr.msg_iovlen = 1;
            message
        })
        .collect();
    // SAFETY: the vector holds `times` messages.
    let done = unsafe { libc::sendmmsg(socket.as_raw_fd(), messages.as_mut_ptr(), times as u32, 0) };
    usize::try_from(done).map_err(|_| io::Error::last_os_error())
}
