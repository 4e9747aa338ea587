//! The clock of a run: virtual time, and the events to come.

use super::event_queue::{Event, EventQueue};

/// Longest interval at which all cell ports are advanced, in picoseconds.
pub(super) const ADVANCE_INTERVAL: u64 = 10_000_000_000;

/// Number of events between two calls of the [`RunControl`](super::RunControl).
const EVENTS_PER_CALLBACK: u64 = 4096;

/// An event to come: its instant, its place among the events of that instant, and what happens.
pub(super) type NewEvent = (u64, usize, Event);

/// The events that a handler adds; most handlers add at most one.
pub(super) type NewEvents = [Option<NewEvent>; 2];

/// Virtual time, in picoseconds, and the events to come.
#[derive(Debug)]
pub(super) struct Clock {
    pub(super) now: u64,
    /// End of the run.
    pub(super) end: u64,
    /// Instant up to which the current call of `run_until` handles events.
    pub(super) until: u64,
    /// Instant at which all cell ports are advanced next, so that no channel grows without bound.
    pub(super) next_advance: u64,
    pub(super) events: EventQueue,
    /// Number of events handled, and the number at which the [`RunControl`](super::RunControl) is called next.
    pub(super) handled: u64,
    next_callback: u64,
}

impl Clock {
    /// Returns the clock at time zero of a run that ends at `end`. Without cells there are no cell ports to advance.
    pub(super) fn new(end: u64, events: EventQueue, has_cells: bool) -> Self {
        let next_advance = if has_cells { ADVANCE_INTERVAL } else { u64::MAX };
        Self { now: 0, end, until: 0, next_advance, events, handled: 0, next_callback: EVENTS_PER_CALLBACK }
    }

    /// Advances all cell ports again from now on, if that had ended.
    pub(super) fn resume_sweeps(&mut self) {
        if self.next_advance == u64::MAX {
            self.next_advance = (self.now / ADVANCE_INTERVAL + 1) * ADVANCE_INTERVAL;
        }
    }

    /// Schedules the event that a handler has returned.
    #[inline(always)]
    pub(super) fn schedule(&mut self, event: Option<NewEvent>) {
        if let Some((at, place, event)) = event {
            self.events.push(at, place, event);
        }
    }

    /// Like [`Self::schedule`], for several events.
    #[inline(always)]
    pub(super) fn schedule_all(&mut self, [first, second]: NewEvents) {
        self.schedule(first);
        self.schedule(second);
    }

    /// Returns true if enough events were handled since the last call of the run control.
    #[inline(always)]
    pub(super) fn is_callback_due(&mut self) -> bool {
        let due = self.handled >= self.next_callback;
        if due {
            self.next_callback = self.handled + EVENTS_PER_CALLBACK;
        }
        due
    }

    /// Returns the instant that the run has reached. With only generators there are no events, and without cells there are no sweeps.
    pub(super) fn reached(&self) -> u64 {
        let swept = match self.next_advance {
            u64::MAX => 0,
            next => next.saturating_sub(ADVANCE_INTERVAL),
        };
        self.now.max(swept)
    }
}
