//! Applications that write to TCP connections, and why their writes wait.

use engpass_model::host::Pauses;
use engpass_model::random::Stream;
use engpass_model::time::Pace;

/// No instant of any run.
pub(super) const NEVER: u64 = u64::MAX;

/// An application that writes messages of one size, one after the other: of at most 1 GiB, as a testbed is checked for.
#[derive(Debug)]
pub(super) struct TcpApplication {
    pub(super) stop: u64,
    /// Why its next write may have to wait, if anything is.
    pub(super) delays: Option<Box<Delays>>,
    pub(super) message: u32,
    /// Bytes of the current write that are not copied to the send buffer; none of it is yet while this is `message`.
    pub(super) left: u32,
    /// Bytes that the CPU copies, or waits to copy.
    pub(super) copying: u32,
    /// The connection may be opened.
    pub(super) open: bool,
    /// The connection is established: writes may begin.
    pub(super) connected: bool,
}

/// Why and until when an application does not write.
#[derive(Debug)]
pub(super) struct Delays {
    /// Its host pauses before writes by chance.
    pub(super) chance: Option<(Pauses, Stream)>,
    /// The pace of its writes, and when the first is due.
    pub(super) pace: Option<(Pace, u64)>,
    /// How many writes have begun.
    pub(super) begun: u64,
    /// When a pause ends, or the next write is due; [`NEVER`] if it waits for neither.
    pub(super) resume: u64,
    /// It is due then: there is no pause, or it comes after that.
    pub(super) early: bool,
}

impl Delays {
    /// When the next write is due, of so many bytes.
    pub(super) fn due(&self, message: u32) -> u64 {
        let bytes = self.begun.saturating_mul(message.into());
        self.pace.as_ref().map_or(0, |(pace, start)| start.saturating_add(pace.after(bytes)))
    }
}

impl TcpApplication {
    /// Whether it pauses, or its next write is not due yet.
    #[inline]
    pub(super) fn waits(&self) -> bool {
        self.delays.as_ref().is_some_and(|delays| delays.resume != NEVER)
    }

    /// What it waited for has come, if that is so.
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
