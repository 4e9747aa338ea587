//! Applications that write to TCP connections, and what delays their writes.

use engpass_model::host::Pauses;
use engpass_model::random::Stream;
use engpass_model::time::Pace;

/// An instant later than every run.
pub(super) const NEVER: u64 = u64::MAX;

/// An application that writes messages of one size, one after the other. The testbed limits a message to 1 GiB.
#[derive(Debug)]
pub(super) struct TcpApplication {
    pub(super) stop: u64,
    /// What may delay its writes, if anything.
    pub(super) delays: Option<Box<Delays>>,
    pub(super) message: u32,
    /// Bytes of the current write that are not yet in the send buffer; equal to `message` at its start.
    pub(super) left: u32,
    /// Bytes that the CPU is copying, or will copy next.
    pub(super) copying: u32,
    /// The connection may be opened.
    pub(super) open: bool,
    /// The connection is established: writes may begin.
    pub(super) connected: bool,
}

/// Delays of an application's writes.
#[derive(Debug)]
pub(super) struct Delays {
    /// Random pauses of its host before writes.
    pub(super) chance: Option<(Pauses, Stream)>,
    /// Pace of its writes, and when the first is due.
    pub(super) pace: Option<(Pace, u64)>,
    /// Number of writes begun.
    pub(super) begun: u64,
    /// When the current pause ends or the next write is due; [`NEVER`] if it waits for neither.
    pub(super) resume: u64,
    /// At `resume` the next write becomes due; a pause may still follow.
    pub(super) early: bool,
}

impl Delays {
    /// Returns when the next write is due, if all have `message` bytes.
    pub(super) fn due(&self, message: u32) -> u64 {
        let bytes = self.begun.saturating_mul(message.into());
        self.pace.as_ref().map_or(0, |(pace, start)| start.saturating_add(pace.after(bytes)))
    }
}

impl TcpApplication {
    /// Returns true during a pause, or if its next write is not due yet.
    #[inline]
    pub(super) fn is_paused(&self) -> bool {
        self.delays.as_ref().is_some_and(|delays| delays.resume != NEVER)
    }

    /// Ends its waiting if the time has come, and begins the write after a pause.
    pub(super) fn resume(&mut self, now: u64) {
        if let Some(delays) = self.delays.as_mut().filter(|delays| delays.resume <= now) {
            delays.resume = NEVER;
            if !std::mem::take(&mut delays.early) {
                self.begin_write();
            }
        }
    }

    pub(super) fn begin_write(&mut self) {
        self.left = self.message;
        self.delays.iter_mut().for_each(|delays| delays.begun += 1);
    }
}
