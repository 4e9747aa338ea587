//! Sends and receives many datagrams per call, in memory that is allocated once.

use std::io;
use std::os::fd::AsRawFd;

use super::option::UDP_GRO;

/// Bytes of control messages per datagram: a time stamp and a segment size need 56.
const CONTROL: usize = 64;

/// Buffers for `recvmmsg`. They contain pointers into themselves, so they must stay in the thread that created them.
pub(crate) struct Incoming {
    size: usize,
    with_control: bool,
    data: Vec<u8>,
    control: Vec<[u64; CONTROL / 8]>,
    vectors: Vec<libc::iovec>,
    headers: Vec<libc::mmsghdr>,
    used: usize,
}

/// A datagram, or several of equal size that GRO has joined.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Datagram<'a> {
    /// Received bytes.
    pub(crate) bytes: &'a [u8],
    /// Length of each joined datagram; the last one may be shorter.
    pub(crate) segment: usize,
    /// Kernel time stamp of the arrival (realtime, ns); 0 if time stamps are off.
    pub(crate) stamp: u64,
}

impl Incoming {
    /// Creates buffers for `count` datagrams of `size` bytes, with room for control messages if `with_control`.
    pub(crate) fn new(count: usize, size: usize, with_control: bool) -> Self {
        let mut batch = Self {
            size,
            with_control,
            data: vec![0; count * size],
            control: vec![[0; CONTROL / 8]; if with_control { count } else { 0 }],
            vectors: Vec::with_capacity(count),
            headers: Vec::with_capacity(count),
            used: 0,
        };
        for index in 0..count {
            let base = batch.data[index * size..].as_mut_ptr().cast();
            batch.vectors.push(libc::iovec { iov_base: base, iov_len: size });
        }
        for index in 0..count {
            // SAFETY: an all-zero message header is valid: no name, no vectors, no control data.
            let mut header: libc::mmsghdr = unsafe { std::mem::zeroed() };
            header.msg_hdr.msg_iov = &raw mut batch.vectors[index];
            header.msg_hdr.msg_iovlen = 1;
            batch.headers.push(header);
        }
        batch.used = count;
        batch
    }

    /// Receives the datagrams that are there and returns their number. Waits for at least one unless `flags` say otherwise.
    #[inline]
    pub(crate) fn receive(&mut self, socket: &impl AsRawFd, flags: libc::c_int) -> io::Result<usize> {
        if self.with_control {
            for (header, control) in self.headers[..self.used].iter_mut().zip(&mut self.control) {
                header.msg_hdr.msg_control = control.as_mut_ptr().cast();
                header.msg_hdr.msg_controllen = CONTROL;
            }
        }
        // SAFETY: every header points to its own vector and control buffer in `self`, which outlive the call and do not move.
        let count = unsafe {
            libc::recvmmsg(
                socket.as_raw_fd(),
                self.headers.as_mut_ptr(),
                self.headers.len() as libc::c_uint,
                flags as _,
                std::ptr::null_mut(),
            )
        };
        self.used = usize::try_from(count).map_err(|_| io::Error::last_os_error())?;
        Ok(self.used)
    }

    /// Returns the number of datagrams that the buffers hold.
    pub(crate) fn room(&self) -> usize {
        self.headers.len()
    }

    /// Returns datagram number `index` of the last `receive` call.
    #[inline]
    pub(crate) fn datagram(&self, index: usize) -> Datagram<'_> {
        let header = &self.headers[index];
        let length = (header.msg_len as usize).min(self.size);
        let start = index * self.size;
        let mut datagram =
            Datagram { bytes: &self.data[start..start + length], segment: length.max(1), stamp: 0 };
        if self.with_control {
            self.control_of(&header.msg_hdr, &mut datagram);
        }
        datagram
    }

    fn control_of(&self, header: &libc::msghdr, datagram: &mut Datagram<'_>) {
        // SAFETY: `header` describes a control buffer in `self` that the kernel has filled; the macros stay within `msg_controllen`.
        let mut message = unsafe { libc::CMSG_FIRSTHDR(header) };
        while !message.is_null() {
            // SAFETY: the pointer is not null, so it points to a whole control message header in our aligned buffer.
            let (level, kind) = unsafe { ((*message).cmsg_level, (*message).cmsg_type) };
            // SAFETY: as above; the data follows the header.
            let data = unsafe { libc::CMSG_DATA(message) };
            if level == libc::SOL_UDP && kind == UDP_GRO {
                // SAFETY: the kernel writes an int here.
                let size = unsafe { data.cast::<libc::c_int>().read_unaligned() };
                datagram.segment = usize::try_from(size).unwrap_or(0).max(1);
            } else if level == libc::SOL_SOCKET && kind == libc::SCM_TIMESTAMPNS {
                // SAFETY: the kernel writes a timespec here.
                let time = unsafe { data.cast::<libc::timespec>().read_unaligned() };
                datagram.stamp = time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64;
            }
            // SAFETY: both pointers belong to the same control buffer.
            message = unsafe { libc::CMSG_NXTHDR(header, message) };
        }
    }
}

/// Buffers for `sendmmsg` on a connected socket: datagrams of equal size, stored one after the other.
pub(crate) struct Outgoing {
    size: usize,
    data: Vec<u8>,
    vectors: Vec<libc::iovec>,
    headers: Vec<libc::mmsghdr>,
}

impl Outgoing {
    /// Creates buffers for `count` datagrams of `size` bytes, filled with `fill`.
    pub(crate) fn new(count: usize, size: usize, fill: impl Fn(usize) -> u8) -> Self {
        let mut batch = Self {
            size,
            data: (0..count * size).map(fill).collect(),
            vectors: Vec::with_capacity(count),
            headers: Vec::with_capacity(count),
        };
        for index in 0..count {
            let base = batch.data[index * size..].as_mut_ptr().cast();
            batch.vectors.push(libc::iovec { iov_base: base, iov_len: size });
        }
        for index in 0..count {
            // SAFETY: an all-zero message header is valid.
            let mut header: libc::mmsghdr = unsafe { std::mem::zeroed() };
            header.msg_hdr.msg_iov = &raw mut batch.vectors[index];
            header.msg_hdr.msg_iovlen = 1;
            batch.headers.push(header);
        }
        batch
    }

    /// Returns the buffer of the datagram at `index`.
    #[inline]
    pub(crate) fn datagram(&mut self, index: usize) -> &mut [u8] {
        &mut self.data[index * self.size..(index + 1) * self.size]
    }

    /// Sends the datagrams from `first` to before `end`. Returns how many the kernel took.
    #[inline]
    pub(crate) fn send(&mut self, socket: &impl AsRawFd, first: usize, end: usize) -> io::Result<usize> {
        let headers = &mut self.headers[first..end];
        // SAFETY: the headers point to vectors and data in `self`, which outlive the call and do not move.
        let count = unsafe {
            libc::sendmmsg(
                socket.as_raw_fd(),
                headers.as_mut_ptr(),
                headers.len() as libc::c_uint,
                libc::MSG_NOSIGNAL as _,
            )
        };
        usize::try_from(count).map_err(|_| io::Error::last_os_error())
    }

    /// Returns the first `count` datagrams as one buffer, for a GSO call.
    #[inline]
    pub(crate) fn joined(&self, count: usize) -> &[u8] {
        &self.data[..count * self.size]
    }
}
