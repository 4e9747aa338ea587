//! Applications that write to TCP connections, and what delays their writes.

use engpass_model::host::Pauses;
use engpass_model::random::Stream;
use engpass_model::time::Pace;
use engpass_model::unit::Share;

use super::clock::{Clock, NewEvent};
use super::event_queue::Event;

/// Stands for an instant later than every run.
pub(super) const NEVER: u64 = u64::MAX;

/// An application that writes messages of one size, one after the other. The testbed limits a message to 1 GiB.
#[derive(Debug)]
pub(super) struct TcpApplication {
    pub(super) stop: u64,
    /// Causes that delay the writes; `None` if nothing does.
    pub(super) delays: Option<Box<Delays>>,
    pub(super) message: u32,
    /// Number of writes still to begin.
    pub(super) writes: u64,
    /// Bytes of the current write that are not yet in the send buffer; equal to `message` at its start.
    pub(super) left: u32,
    /// Bytes that the CPU is copying, or will copy next.
    pub(super) copying: u32,
    /// True once the application has started: the connection may be opened.
    pub(super) open: bool,
    /// True once the connection is established: writes may begin.
    pub(super) connected: bool,
}

/// Causes that delay an application's writes.
#[derive(Debug)]
pub(super) struct Delays {
    /// Random pauses of the host before writes, with their random stream.
    pub(super) chance: Option<(Pauses, Stream)>,
    /// Pace of the writes in time per byte, and the instant at which the first is due.
    pub(super) pace: Option<(Pace, u64)>,
    /// Number of writes begun.
    pub(super) begun: u64,
    /// Instant at which the current pause ends or the next write is due; [`NEVER`] if the application waits for neither.
    pub(super) resume: u64,
    /// True if the next write becomes due at `resume`; a pause may still follow.
    pub(super) early: bool,
}

impl Delays {
    /// Returns the instant at which the next write is due, if all writes have `message` bytes.
    fn due(&self, message: u32) -> u64 {
        let bytes = self.begun.saturating_mul(message.into());
        self.pace.as_ref().map_or(0, |(pace, start)| start.saturating_add(pace.after(bytes)))
    }
}

impl TcpApplication {
    /// Returns true if the application pauses, or if its next write is not due yet.
    #[inline]
    pub(super) fn is_paused(&self) -> bool {
        self.delays.as_ref().is_some_and(|delays| delays.resume != NEVER)
    }

    /// Returns true if it has another write, and waits neither for the connection nor for an instant.
    fn may_begin_write(&self, now: u64) -> bool {
        self.connected && !self.is_paused() && now < self.stop && self.writes > 0
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

    /// Begins the next write if it is due; otherwise returns the wake event for when it is due or a pause ends.
    #[inline(never)]
    pub(super) fn next_write(&mut self, endpoint: usize, flow: usize, clock: &Clock) -> Option<NewEvent> {
        let (now, end) = (clock.now, clock.end);
        if !self.may_begin_write(now) || now >= end {
            return None;
        }
        if let Some(delays) = self.delays.as_deref_mut() {
            let due = delays.due(self.message);
            if now < due {
                if due >= end {
                    // A write due after the end of the run never happens.
                    return None;
                }
                (delays.resume, delays.early) = (due, true);
                return Some((due, flow, Event::EndpointWake(endpoint as u32)));
            }
            if let Some((pauses, random)) = &mut delays.chance
                && random.below(Share::WHOLE) < pauses.share.0
            {
                delays.resume = now.saturating_add(random.exponential(pauses.mean.0)).min(NEVER - 1);
                return Some((delays.resume, flow, Event::EndpointWake(endpoint as u32)));
            }
        }
        self.begin_write();
        None
    }

    fn begin_write(&mut self) {
        self.left = self.message;
        self.writes -= 1;
        self.delays.iter_mut().for_each(|delays| delays.begun += 1);
    }
}
