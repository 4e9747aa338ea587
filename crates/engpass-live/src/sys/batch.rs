//! Many datagrams in one call, out of and into memory that is allocated once.

use std::io;
use std::os::fd::AsRawFd;

use super::option::UDP_GRO;

/// Room for control messages of one datagram: a time stamp and a segment size need 56 bytes.
const CONTROL: usize = 64;

/// Buffers of `recvmmsg`. It holds pointers into itself, so it stays in the thread that made it.
pub(crate) struct Incoming {
    size: usize,
    with_control: bool,
    data: Vec<u8>,
    control: Vec<[u64; CONTROL / 8]>,
    vectors: Vec<libc::iovec>,
    headers: Vec<libc::mmsghdr>,
    used: usize,
}

/// A datagram, or several of one size that the kernel has joined.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Datagram<'a> {
    /// What was received.
    pub(crate) bytes: &'a [u8],
    /// Length of each segment, the last may be shorter.
    pub(crate) segment: usize,
    /// When the kernel got it, realtime ns; 0 if it was not asked to say.
    pub(crate) stamp: u64,
}

impl Incoming {
    /// Room for `count` datagrams of `size` bytes; with control messages where there are any to come.
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
            // SAFETY: a message header of zeros is valid: no name, no vectors, no control.
            let mut header: libc::mmsghdr = unsafe { std::mem::zeroed() };
            header.msg_hdr.msg_iov = &raw mut batch.vectors[index];
            header.msg_hdr.msg_iovlen = 1;
            batch.headers.push(header);
        }
        batch.used = count;
        batch
    }

    /// Receive what is there, at least one datagram unless `flags` say otherwise; how many.
    #[inline]
    pub(crate) fn receive(&mut self, socket: &impl AsRawFd, flags: libc::c_int) -> io::Result<usize> {
        if self.with_control {
            for (header, control) in self.headers[..self.used].iter_mut().zip(&mut self.control) {
                header.msg_hdr.msg_control = control.as_mut_ptr().cast();
                header.msg_hdr.msg_controllen = CONTROL;
            }
        }
        // SAFETY: every header points to its own vector and control room inside `self`, which outlive the call and are not moved.
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

    /// How many there is room for.
    pub(crate) fn room(&self) -> usize {
        self.headers.len()
    }

    /// The `index`-th of those just received.
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
        // SAFETY: `header` describes control room inside `self`, filled by the kernel; the macros stay inside `msg_controllen`.
        let mut message = unsafe { libc::CMSG_FIRSTHDR(header) };
        while !message.is_null() {
            // SAFETY: not null, so it points to a whole control message header in our aligned room.
            let (level, kind) = unsafe { ((*message).cmsg_level, (*message).cmsg_type) };
            // SAFETY: as above; the data follows the header.
            let data = unsafe { libc::CMSG_DATA(message) };
            if level == libc::SOL_UDP && kind == UDP_GRO {
                // SAFETY: the kernel puts an int there.
                let size = unsafe { data.cast::<libc::c_int>().read_unaligned() };
                datagram.segment = usize::try_from(size).unwrap_or(0).max(1);
            } else if level == libc::SOL_SOCKET && kind == libc::SCM_TIMESTAMPNS {
                // SAFETY: the kernel puts a timespec there.
                let time = unsafe { data.cast::<libc::timespec>().read_unaligned() };
                datagram.stamp = time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64;
            }
            // SAFETY: both pointers describe the same control room.
            message = unsafe { libc::CMSG_NXTHDR(header, message) };
        }
    }
}

/// Buffers of `sendmmsg`: datagrams of one size, one behind the other, to where the socket is connected.
pub(crate) struct Outgoing {
    size: usize,
    data: Vec<u8>,
    vectors: Vec<libc::iovec>,
    headers: Vec<libc::mmsghdr>,
}

impl Outgoing {
    /// Room for `count` datagrams of `size` bytes, filled with `fill`.
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
            // SAFETY: a message header of zeros is valid.
            let mut header: libc::mmsghdr = unsafe { std::mem::zeroed() };
            header.msg_hdr.msg_iov = &raw mut batch.vectors[index];
            header.msg_hdr.msg_iovlen = 1;
            batch.headers.push(header);
        }
        batch
    }

    /// How many there is room for.
    pub(crate) fn room(&self) -> usize {
        self.headers.len()
    }

    /// The `index`-th datagram, to be written.
    #[inline]
    pub(crate) fn datagram(&mut self, index: usize) -> &mut [u8] {
        &mut self.data[index * self.size..(index + 1) * self.size]
    }

    /// Send those from `first` to before `end`, each by itself; how many the kernel took.
    #[inline]
    pub(crate) fn send(&mut self, socket: &impl AsRawFd, first: usize, end: usize) -> io::Result<usize> {
        let headers = &mut self.headers[first..end];
        // SAFETY: the headers point to vectors and data inside `self`, which outlive the call and are not moved.
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

    /// The first `count` datagrams, for one call that segments them.
    #[inline]
    pub(crate) fn joined(&self, count: usize) -> &[u8] {
        &self.data[..count * self.size]
    }
}
