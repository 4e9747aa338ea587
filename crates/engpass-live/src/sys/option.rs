//! Socket options by number.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::AsRawFd;

/// `SO_MAX_PACING_RATE`.
const MAX_PACING_RATE: libc::c_int = 47;
/// `SO_RXQ_OVFL` and others come from `libc`; these do not.
pub(crate) const UDP_SEGMENT: libc::c_int = 103;
pub(crate) const UDP_GRO: libc::c_int = 104;
/// `SOL_MPTCP`, `MPTCP_INFO`, `MPTCP_TCPINFO` and `MPTCP_SUBFLOW_ADDRS` of `linux/mptcp.h`.
pub(crate) const SOL_MPTCP: libc::c_int = 284;
pub(crate) const MPTCP_INFO: libc::c_int = 1;
pub(crate) const MPTCP_TCPINFO: libc::c_int = 2;
pub(crate) const MPTCP_SUBFLOW_ADDRS: libc::c_int = 3;
/// `IPPROTO_MPTCP`.
pub(crate) const MPTCP: i32 = 262;

/// `SO_MEMINFO` of `asm-generic/socket.h`, and the place of the drops in it (`SK_MEMINFO_DROPS` of `linux/sock_diag.h`).
const MEMINFO: libc::c_int = 55;
const MEMINFO_DROPS: usize = 8;

/// Packets that this socket has dropped, mostly because its buffer was full; `None` if the kernel does not tell.
pub(crate) fn drops(socket: &impl AsRawFd) -> Option<u64> {
    let mut words = [0; 4 * (MEMINFO_DROPS + 1)];
    let length = get_bytes(socket, libc::SOL_SOCKET, MEMINFO, &mut words).ok()?;
    let drops = words[..length].get(4 * MEMINFO_DROPS..)?.first_chunk()?;
    Some(u64::from(u32::from_ne_bytes(*drops)))
}

/// Set an option that is an `int`.
pub(crate) fn set(
    socket: &impl AsRawFd,
    level: libc::c_int,
    name: libc::c_int,
    value: i32,
) -> io::Result<()> {
    set_bytes(socket, level, name, &value.to_ne_bytes())
}

/// Set an option that is a structure.
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

/// An option that is an `int`.
pub(crate) fn get(socket: &impl AsRawFd, level: libc::c_int, name: libc::c_int) -> io::Result<i32> {
    let mut value = [0; 4];
    let length = get_bytes(socket, level, name, &mut value)?;
    if length == 4 { Ok(i32::from_ne_bytes(value)) } else { Ok(i32::from(value[0])) }
}

/// An option that is a structure: how many bytes of it the kernel knows.
pub(crate) fn get_bytes(
    socket: &impl AsRawFd,
    level: libc::c_int,
    name: libc::c_int,
    value: &mut [u8],
) -> io::Result<usize> {
    let mut length = MaybeUninit::new(value.len() as libc::socklen_t);
    // SAFETY: the kernel writes at most `length` bytes to `value`, and the length that it wrote to `length`.
    let result = unsafe {
        libc::getsockopt(socket.as_raw_fd(), level, name, value.as_mut_ptr().cast(), length.as_mut_ptr())
    };
    if result != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: it was initialised above and the kernel only overwrites it.
    Ok(unsafe { length.assume_init() } as usize)
}

/// Pace a socket in the kernel, in bytes per second: by TCP itself, of UDP by a `fq` queue discipline and not at all without one.
pub(crate) fn pace(socket: &impl AsRawFd, bytes_per_s: u64) -> io::Result<()> {
    set_bytes(socket, libc::SOL_SOCKET, MAX_PACING_RATE, &bytes_per_s.to_ne_bytes())
}

/// A buffer of this size: beyond the host's limit where we may. What was granted is to be read back.
pub(crate) fn receive_buffer(socket: &impl AsRawFd, bytes: i32) -> io::Result<()> {
    set(socket, libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, bytes)
        .or_else(|_| set(socket, libc::SOL_SOCKET, libc::SO_RCVBUF, bytes))
}

/// As [`receive_buffer`], for sending.
pub(crate) fn send_buffer(socket: &impl AsRawFd, bytes: i32) -> io::Result<()> {
    set(socket, libc::SOL_SOCKET, libc::SO_SNDBUFFORCE, bytes)
        .or_else(|_| set(socket, libc::SOL_SOCKET, libc::SO_SNDBUF, bytes))
}
