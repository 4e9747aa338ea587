//! The progress of packets: the result of a handler that has moved one.

use super::clock::{NewEvent, NewEvents};

/// The result of one step of a packet's route.
#[derive(Clone, Copy, Debug)]
pub(super) enum Progress {
    /// It reaches the next step at this instant, which may lie ahead of virtual time.
    Ahead(u64),
    /// It waits, is on its way, or is dropped; this event follows.
    Rests(Option<NewEvent>),
    /// Fragments, copies or other packets go on in its place: this number of them, the last ones in `SharedState::parts`.
    Parts(usize),
}

/// Events that follow, and a packet that goes on.
pub(super) type Departed = (NewEvents, Option<(u32, Progress)>);
