//! Send and receive calls, including sends without a copy.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

/// `SO_EE_ORIGIN_ZEROCOPY`.
const ORIGIN_ZEROCOPY: u8 = 5;
/// `SO_EE_CODE_ZEROCOPY_COPIED`: the kernel copied the data after all.
const CODE_COPIED: u8 = 1;

/// Creates a file in memory with these contents.
pub(crate) fn memory_file(contents: &[u8]) -> io::Result<std::fs::File> {
    // SAFETY: the name is a valid C string, and the result is checked.
    let file = unsafe { libc::memfd_create(c"engpass".as_ptr(), libc::MFD_CLOEXEC) };
    if file < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor is new and has no other owner.
    let mut file = std::fs::File::from(unsafe { OwnedFd::from_raw_fd(file) });
    io::Write::write_all(&mut file, contents)?;
    Ok(file)
}

/// Sends `count` bytes of `file`, starting at `offset`. Returns the number of bytes sent.
#[inline]
pub(crate) fn sendfile(
    socket: &impl AsRawFd,
    file: &impl AsRawFd,
    offset: usize,
    count: usize,
) -> io::Result<usize> {
    let mut offset = offset as libc::off_t;
    // SAFETY: `offset` is writable, and both descriptors are open during the call.
    let sent = unsafe { libc::sendfile(socket.as_raw_fd(), file.as_raw_fd(), &raw mut offset, count) };
    usize::try_from(sent).map_err(|_| io::Error::last_os_error())
}

/// Calls `send` with flags on a connected socket.
#[inline]
pub(crate) fn send(socket: &impl AsRawFd, data: &[u8], flags: libc::c_int) -> io::Result<usize> {
    // SAFETY: the kernel reads `data.len()` bytes. With MSG_ZEROCOPY it also reads them later; callers keep such data until the completions have arrived or
    // the socket is closed.
    let sent = unsafe {
        libc::send(socket.as_raw_fd(), data.as_ptr().cast(), data.len(), flags | libc::MSG_NOSIGNAL)
    };
    usize::try_from(sent).map_err(|_| io::Error::last_os_error())
}

/// Calls `recv` with flags on a connected socket.
#[inline]
pub(crate) fn receive(socket: &impl AsRawFd, data: &mut [u8], flags: libc::c_int) -> io::Result<usize> {
    // SAFETY: the kernel writes at most `data.len()` bytes; with MSG_TRUNC on TCP it writes none.
    let got = unsafe { libc::recv(socket.as_raw_fd(), data.as_mut_ptr().cast(), data.len(), flags) };
    usize::try_from(got).map_err(|_| io::Error::last_os_error())
}

/// Reads the completions of `MSG_ZEROCOPY` sends. Returns the number of sends, and how many of them were copied.
pub(crate) fn completions(socket: RawFd) -> (u64, u64) {
    let (mut completed, mut copied) = (0, 0);
    loop {
        let mut control = [0_u64; 32];
        // SAFETY: an all-zero message header is valid.
        let mut header: libc::msghdr = unsafe { std::mem::zeroed() };
        header.msg_control = control.as_mut_ptr().cast();
        header.msg_controllen = size_of_val(&control);
        // SAFETY: the header points to `control`, which is aligned and outlives the call.
        let result =
            unsafe { libc::recvmsg(socket, &raw mut header, libc::MSG_ERRQUEUE | libc::MSG_DONTWAIT) };
        if result < 0 {
            return (completed, copied);
        }
        // SAFETY: the kernel has filled the control buffer that `header` describes.
        let mut message = unsafe { libc::CMSG_FIRSTHDR(&raw const header) };
        while !message.is_null() {
            // SAFETY: `message` is a complete header; in these two kinds of message a sock_extended_err follows it.
            unsafe {
                let kind = ((*message).cmsg_level, (*message).cmsg_type);
                if kind == (libc::SOL_IP, libc::IP_RECVERR) || kind == (libc::SOL_IPV6, libc::IPV6_RECVERR) {
                    let error = libc::CMSG_DATA(message).cast::<libc::sock_extended_err>().read_unaligned();
                    if error.ee_origin == ORIGIN_ZEROCOPY {
                        let count = u64::from(error.ee_data.wrapping_sub(error.ee_info)) + 1;
                        completed += count;
                        copied += if error.ee_code & CODE_COPIED == 0 { 0 } else { count };
                    }
                }
                message = libc::CMSG_NXTHDR(&raw const header, message);
            }
        }
    }
}

/// Waits until a descriptor is readable or has an error. Returns which ones.
pub(crate) fn poll<const N: usize>(sockets: [RawFd; N], timeout_ms: i32) -> [bool; N] {
    let mut polled = sockets.map(|fd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 });
    // SAFETY: the array is valid for its length.
    let result = unsafe { libc::poll(polled.as_mut_ptr(), N as libc::nfds_t, timeout_ms) };
    polled.map(|one| result > 0 && one.revents != 0)
}

/// Like [`poll`], for any number of descriptors.
pub(crate) fn poll_all(sockets: &[RawFd], timeout_ms: i32) -> Vec<bool> {
    let mut polled: Vec<_> =
        sockets.iter().map(|&fd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 }).collect();
    // SAFETY: the array is valid for its length.
    let result = unsafe { libc::poll(polled.as_mut_ptr(), polled.len() as libc::nfds_t, timeout_ms) };
    polled.iter().map(|one| result > 0 && one.revents != 0).collect()
}

/// Returns a buffer for a short datagram.
pub(crate) fn buffer<const N: usize>() -> [MaybeUninit<u8>; N] {
    [const { MaybeUninit::new(0) }; N]
}

/// Returns the first `length` bytes of such a buffer.
pub(crate) fn filled(buffer: &[MaybeUninit<u8>], length: usize) -> Vec<u8> {
    // SAFETY: `buffer` initialises all bytes, and a call that writes some of them keeps them initialised.
    buffer[..length].iter().map(|byte| unsafe { byte.assume_init() }).collect()
}

fn wait(socket: RawFd, events: libc::c_short, ns: u64) {
    let mut polled = libc::pollfd { fd: socket, events, revents: 0 };
    let time = libc::timespec {
        tv_sec: (ns / 1_000_000_000) as libc::time_t,
        tv_nsec: (ns % 1_000_000_000) as libc::c_long,
    };
    // SAFETY: one valid pollfd and a valid timespec; no signal mask.
    unsafe { libc::ppoll(&raw mut polled, 1, &raw const time, std::ptr::null()) };
}

/// Waits until the socket is readable, for at most `ns`.
pub(crate) fn wait_readable(socket: RawFd, ns: u64) {
    wait(socket, libc::POLLIN, ns);
}

/// Waits until the socket is writable, for at most `ns`.
pub(crate) fn wait_writable(socket: RawFd, ns: u64) {
    wait(socket, libc::POLLOUT, ns);
}
