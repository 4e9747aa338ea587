//! Entries of an `io_uring`.

use std::io;

use io_uring::{IoUring, squeue};

/// Queues one entry. The data that it points to must live until its completion; the callers own it for longer than they use the ring.
pub(crate) fn push(ring: &mut IoUring, entry: &squeue::Entry) -> io::Result<()> {
    // SAFETY: the entries of this crate name a socket and data that their owner keeps until the completion, or leaks.
    unsafe { ring.submission().push(entry) }.map_err(|_| io::ErrorKind::WouldBlock.into())
}
