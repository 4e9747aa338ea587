//! Socket options by number.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::AsRawFd;

/// `SO_MAX_PACING_RATE`.
const MAX_PACING_RATE: libc::c_int = 47;
/// UDP options that `libc` does not define.
pub(crate) const UDP_SEGMENT: libc::c_int = 103;
pub(crate) const UDP_GRO: libc::c_int = 104;
/// `SOL_MPTCP`, `MPTCP_INFO`, `MPTCP_TCPINFO` and `MPTCP_SUBFLOW_ADDRS` of `linux/mptcp.h`.
pub(crate) const SOL_MPTCP: libc::c_int = 284;
pub(crate) const MPTCP_INFO: libc::c_int = 1;
pub(crate) const MPTCP_TCPINFO: libc::c_int = 2;
pub(crate) const MPTCP_SUBFLOW_ADDRS: libc::c_int = 3;
/// `IPPROTO_MPTCP`.
pub(crate) const MPTCP: i32 = 262;

/// `SO_MEMINFO` of `asm-generic/socket.h`.
const MEMINFO: libc::c_int = 55;
/// Index of the drop counter in it (`SK_MEMINFO_DROPS` of `linux/sock_diag.h`).
const MEMINFO_DROPS: usize = 8;

/// Returns the number of packets that this socket dropped, mostly because its buffer was full; `None` if the kernel does not report it.
pub(crate) fn drops(socket: &impl AsRawFd) -> Option<u64> {
    let mut words = [0; 4 * (MEMINFO_DROPS + 1)];
    let length = get_bytes(socket, libc::SOL_SOCKET, MEMINFO, &mut words).ok()?;
    let drops = words[..length].get(4 * MEMINFO_DROPS..)?.first_chunk()?;
    Some(u64::from(u32::from_ne_bytes(*drops)))
}

/// Sets an `int` option.
pub(crate) fn set(
    socket: &impl AsRawFd,
    level: libc::c_int,
    name: libc::c_int,
    value: i32,
) -> io::Result<()> {
    set_bytes(socket, level, name, &value.to_ne_bytes())
}

/// Sets an option that is a structure.
pub(crate) fn set_bytes(
    socket: &impl AsRawFd,
    level: libc::c_int,
    name: libc::c_int,
    value: &[u8],
) -> io::Result<()> {
    // SAFETY: the kernel reads `value.len()` bytes from `value` and keeps no pointer.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            level,
            name,
            value.as_ptr().cast(),
            value.len() as libc::socklen_t,
        )
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Reads an `int` option.
pub(crate) fn get(socket: &impl AsRawFd, level: libc::c_int, name: libc::c_int) -> io::Result<i32> {
    let mut value = [0; 4];
    let length = get_bytes(socket, level, name, &mut value)?;
    if length == 4 { Ok(i32::from_ne_bytes(value)) } else { Ok(i32::from(value[0])) }
}

/// Reads a socket option of any type as bytes. Returns the number of bytes that the kernel wrote.
pub(crate) fn get_bytes(
    socket: &impl AsRawFd,
    level: libc::c_int,
    name: libc::c_int,
    value: &mut [u8],
) -> io::Result<usize> {
    let mut length = MaybeUninit::new(value.len() as libc::socklen_t);
    // SAFETY: the kernel writes at most `length` bytes to `value`, and the length written to `length`.
    let result = unsafe {
        libc::getsockopt(socket.as_raw_fd(), level, name, value.as_mut_ptr().cast(), length.as_mut_ptr())
    };
    if result != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: `length` was initialised above, and the kernel only overwrites it.
    Ok(unsafe { length.assume_init() } as usize)
}

/// Enables kernel pacing, in bytes per second. TCP paces itself; for UDP it needs the queue discipline `fq` and has no effect without it.
pub(crate) fn pace(socket: &impl AsRawFd, bytes_per_s: u64) -> io::Result<()> {
    set_bytes(socket, libc::SOL_SOCKET, MAX_PACING_RATE, &bytes_per_s.to_ne_bytes())
}

/// Sets the receive buffer, beyond the host's limit if permitted. Read the option back to see the granted size.
pub(crate) fn receive_buffer(socket: &impl AsRawFd, bytes: i32) -> io::Result<()> {
    set(socket, libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, bytes)
        .or_else(|_| set(socket, libc::SOL_SOCKET, libc::SO_RCVBUF, bytes))
}

/// Like [`receive_buffer`], for the send buffer.
pub(crate) fn send_buffer(socket: &impl AsRawFd, bytes: i32) -> io::Result<()> {
    set(socket, libc::SOL_SOCKET, libc::SO_SNDBUFFORCE, bytes)
        .or_else(|_| set(socket, libc::SOL_SOCKET, libc::SO_SNDBUF, bytes))
}
