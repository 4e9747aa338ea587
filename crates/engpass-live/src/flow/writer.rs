//! Methods to send data over a TCP socket.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

use io_uring::{IoUring, cqueue, opcode, types};
use socket2::Socket;

use super::spec::Method;
use crate::protocol_error::{Code, ErrorContext, ProtocolError, Result};
use crate::sys::clock;
use crate::sys::{option, send};
use crate::time::{MILLISECOND, SECOND};

/// Size in bytes of the ring from which zero-copy sends read, so that data is not overwritten while the kernel may still read it.
const RING: usize = 16 << 20;
/// Number of outstanding sends from which on completions are collected.
const OUTSTANDING: u64 = 32;

/// Data of a stream, with the method that sends it.
pub(crate) enum Writer {
    Write(Vec<u8>),
    Sendfile { file: File, length: usize, at: usize },
    Zerocopy { ring: Vec<u8>, at: usize, sent: u64, completed: u64, copied: u64 },
    Uring(Box<Uring>),
}

/// Returns a byte of a sequence that compresses badly: the top byte of a multiplicative hash of the index.
pub(crate) fn fill(index: usize) -> u8 {
    ((index as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8
}

fn filled(length: usize) -> Vec<u8> {
    (0..length).map(fill).collect()
}

impl Writer {
    /// Prepares a writer for messages of `message` bytes. Fails if the kernel does not support the method.
    pub(crate) fn new(method: Method, message: u64, socket: &Socket) -> Result<Self> {
        let message = message as usize;
        Ok(match method {
            Method::Write => Self::Write(filled(message)),
            Method::Sendfile => {
                let length = RING.max(message);
                let file = send::memory_file(&filled(length)).doing("make a file in memory")?;
                Self::Sendfile { file, length, at: 0 }
            }
            Method::Zerocopy => {
                option::set(socket, libc::SOL_SOCKET, libc::SO_ZEROCOPY, 1).doing("ask for SO_ZEROCOPY")?;
                Self::Zerocopy { ring: filled(RING.max(message)), at: 0, sent: 0, completed: 0, copied: 0 }
            }
            Method::IoUring | Method::IoUringZerocopy => {
                Self::Uring(Box::new(Uring::new(message, method == Method::IoUringZerocopy)?))
            }
        })
    }

    /// Writes at most `count` bytes of a message. Returns the number of bytes written.
    #[inline]
    pub(crate) fn write(&mut self, socket: &Socket, count: usize) -> io::Result<usize> {
        match self {
            Self::Write(data) => send::send(socket, &data[..count], 0),
            Self::Sendfile { file, length, at } => {
                if *at + count > *length {
                    *at = 0;
                }
                let sent = send::sendfile(socket, file, *at, count)?;
                *at += sent;
                Ok(sent)
            }
            Self::Zerocopy { ring, at, sent, completed, copied } => {
                if *at + count > ring.len() {
                    *at = 0;
                }
                let result = send::send(socket, &ring[*at..*at + count], libc::MSG_ZEROCOPY);
                let full = result.as_ref().is_err_and(|error| error.raw_os_error() == Some(libc::ENOBUFS));
                if full || *sent - *completed >= OUTSTANDING {
                    let (more, of_them) = send::completions(socket.as_raw_fd());
                    *completed += more;
                    *copied += of_them;
                }
                if full {
                    // The socket's memory for notifications was full. They have been collected now, so the caller may try again.
                    return Err(io::ErrorKind::Interrupted.into());
                }
                let count = result?;
                *sent += 1;
                *at += count;
                Ok(count)
            }
            Self::Uring(ring) => ring.write(socket, count),
        }
    }

    /// Waits at most one second until the kernel has finished reading the sent data. With zero copy, returns how many completions came, and how many copied.
    pub(crate) fn finish(&mut self, socket: &Socket) -> Option<(u64, u64)> {
        match self {
            Self::Write(_) | Self::Sendfile { .. } => None,
            Self::Zerocopy { sent, completed, copied, .. } => {
                let until = clock::now() + SECOND;
                while *completed < *sent && clock::now() < until {
                    let (more, of_them) = send::completions(socket.as_raw_fd());
                    *completed += more;
                    *copied += of_them;
                    if *completed < *sent {
                        clock::sleep_until(clock::now() + MILLISECOND);
                    }
                }
                Some((*completed, *copied))
            }
            Self::Uring(ring) => ring.finish(),
        }
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        // The ring is leaked while the kernel may still read its pages: a peer that never acknowledges costs memory, not correctness.
        if let Self::Zerocopy { ring, sent, completed, .. } = self
            && completed < sent
        {
            std::mem::forget(std::mem::take(ring));
        }
    }
}

/// Number of messages in the buffer of an `io_uring` writer.
const DEPTH: usize = 4;

/// An `io_uring` with the data to send. Only one send is in flight at a time, so sends complete in order.
pub(crate) struct Uring {
    ring: IoUring,
    data: Vec<u8>,
    zerocopy: bool,
    notified: u64,
    copied: u64,
    outstanding: u64,
}

impl Uring {
    fn new(message: usize, zerocopy: bool) -> Result<Self> {
        let ring = IoUring::builder().setup_single_issuer().build(64).or_else(|_| IoUring::new(64));
        let ring = ring.map_err(|error| {
            let help = "this kernel has no io_uring, or forbids it (`kernel.io_uring_disabled`): use another `method`";
            ProtocolError::new(Code::NotSupported, format!("set up an io_uring: {error}"), help)
        })?;
        let data = filled(message.saturating_mul(DEPTH).min(RING.max(message)));
        Ok(Self { ring, data, zerocopy, notified: 0, copied: 0, outstanding: 0 })
    }

    fn write(&mut self, socket: &Socket, count: usize) -> io::Result<usize> {
        let fd = types::Fd(socket.as_raw_fd());
        let entry = if self.zerocopy {
            // Bit 3 of the flags (IORING_SEND_ZC_REPORT_USAGE): the notification reports whether the data was copied.
            opcode::SendZc::new(fd, self.data.as_ptr(), count as u32)
                .flags(libc::MSG_NOSIGNAL)
                .zc_flags(1 << 3)
                .build()
        } else {
            opcode::Send::new(fd, self.data.as_ptr(), count as u32).flags(libc::MSG_NOSIGNAL).build()
        };
        crate::sys::uring::push(&mut self.ring, &entry)?;
        loop {
            self.ring.submit_and_wait(1)?;
            let mut result = None;
            for event in self.ring.completion() {
                if cqueue::notif(event.flags()) {
                    self.notified += 1;
                    self.outstanding -= 1;
                    // Bit 31: IORING_NOTIF_USAGE_ZC_COPIED.
                    self.copied += u64::from(event.result() as u32 >> 31);
                } else {
                    self.outstanding += u64::from(cqueue::more(event.flags()));
                    result = Some(event.result());
                }
            }
            match result {
                Some(count) if count >= 0 => return Ok(count as usize),
                Some(error) => return Err(io::Error::from_raw_os_error(-error)),
                None => {}
            }
        }
    }

    fn finish(&mut self) -> Option<(u64, u64)> {
        let until = clock::now() + SECOND;
        while self.outstanding > 0 && clock::now() < until {
            let _ = self.ring.submit();
            for event in self.ring.completion() {
                if cqueue::notif(event.flags()) {
                    self.notified += 1;
                    self.outstanding -= 1;
                    self.copied += u64::from(event.result() as u32 >> 31);
                }
            }
            if self.outstanding > 0 {
                clock::sleep_until(clock::now() + MILLISECOND);
            }
        }
        self.zerocopy.then_some((self.notified, self.copied))
    }
}

impl Drop for Uring {
    fn drop(&mut self) {
        if self.outstanding > 0 {
            std::mem::forget(std::mem::take(&mut self.data));
        }
    }
}
