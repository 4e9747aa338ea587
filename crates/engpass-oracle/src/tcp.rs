//! Endpoints of TCP connections (docs/model.md, "Hosts that speak TCP"): when the state machine is asked, and what that costs.

use engpass_model::random::Stream;
use engpass_model::tcp::{Connection, LimitedBy, Stats};
use engpass_model::time::{Pace, Time};

use crate::packet::way_index;

/// One end of a connection.
#[derive(Debug)]
pub(crate) struct Endpoint {
    pub(crate) flow: usize,
    /// Among the endpoints of its flow: connection by connection, the writing end before the reading one.
    pub(crate) place: usize,
    pub(crate) host: usize,
    pub(crate) connection: Connection,
    /// A segment is being formed or handed over.
    pub(crate) sending: bool,
    /// That segment, once it is formed.
    pub(crate) segment: Option<usize>,
    /// When the event for its timer stands on the agenda.
    pub(crate) timer: Option<u64>,
    /// Of the writing end.
    pub(crate) application: Option<Application>,
    /// What it had counted when the warm-up was over.
    pub(crate) before: Stats,
}

/// What writes into a connection.
#[derive(Debug)]
pub(crate) struct Application {
    pub(crate) random: Stream,
    /// Bytes of a write.
    pub(crate) message: u64,
    pub(crate) start: u64,
    pub(crate) stop: Option<u64>,
    /// Of a payload byte, where writes have a rate.
    pub(crate) pace: Option<Pace>,
    /// Writes begun.
    pub(crate) writes: u64,
    /// The next write waits until it is due.
    pub(crate) early: bool,
    /// The connection may be opened.
    pub(crate) started: bool,
    /// It is established.
    pub(crate) connected: bool,
    /// A pause goes on before the next write.
    pub(crate) pauses: bool,
    /// Bytes that the write under way has not copied, if one is.
    pub(crate) left: Option<u64>,
    /// Bytes of the piece that is being copied.
    pub(crate) copying: Option<u64>,
}

impl Endpoint {
    pub(crate) fn writes(&self) -> bool {
        self.application.is_some()
    }

    /// The way of its segments.
    pub(crate) fn way(&self) -> usize {
        way_index(self.flow, !self.writes())
    }

    /// Why its connection sends nothing; `None` before the application opens it.
    pub(crate) fn limited_by(&self, now: Time) -> Option<LimitedBy> {
        let opened = self.application.as_ref().is_none_or(|application| application.started);
        opened.then(|| self.connection.limited_by(now))
    }

    /// The write under way has bytes that are not in the send buffer.
    pub(crate) fn has_more_to_write(&self) -> bool {
        self.application.as_ref().is_some_and(|application| application.left.is_some())
    }
}
