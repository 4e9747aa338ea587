//! Endpoints of TCP connections (docs/model.md, "Hosts that speak TCP"): when the state machine runs, and its CPU cost.

use std::collections::VecDeque;

use engpass_model::random::Stream;
use engpass_model::tcp::{Connection, LimitedBy, Stats};
use engpass_model::time::{Pace, Time};

use crate::packet::way_index;

/// One end of a connection.
#[derive(Debug)]
pub(crate) struct Endpoint {
    pub(crate) flow: usize,
    /// Index among the endpoints of its flow: by connection, the writing end before the reading one.
    pub(crate) place: usize,
    pub(crate) host: usize,
    pub(crate) connection: Connection,
    /// True while a segment is being formed or handed over.
    pub(crate) sending: bool,
    /// The datagram of that segment, once it is formed.
    pub(crate) segment: Option<usize>,
    /// Time of the scheduled event for its timer.
    pub(crate) timer: Option<u64>,
    /// Segments that the other end's application does not have completely: one past the last sequence number, and time of the first transmission.
    pub(crate) undelivered: VecDeque<(u64, u64)>,
    /// One past the last sequence number of data sent.
    pub(crate) sent_to: u64,
    /// The application; only at the writing end.
    pub(crate) application: Option<Application>,
    /// Its counts at the end of the warm-up.
    pub(crate) before: Stats,
}

/// The application that writes into a connection.
#[derive(Debug)]
pub(crate) struct Application {
    pub(crate) random: Stream,
    /// Bytes of a write.
    pub(crate) message: u64,
    pub(crate) start: u64,
    pub(crate) stop: Option<u64>,
    /// Time per payload byte, if writes have a rate.
    pub(crate) pace: Option<Pace>,
    /// Number of writes of a transfer.
    pub(crate) count: Option<u64>,
    /// Number of writes begun.
    pub(crate) writes: u64,
    /// True while the next write is not due yet.
    pub(crate) early: bool,
    /// True once the connection may be opened.
    pub(crate) started: bool,
    /// True once the connection is established.
    pub(crate) connected: bool,
    /// True during a pause before the next write.
    pub(crate) pauses: bool,
    /// Bytes of the current write that are not copied yet; `None` between writes.
    pub(crate) left: Option<u64>,
    /// Bytes of the piece that is being copied; `None` if there is none.
    pub(crate) copying: Option<u64>,
}

impl Endpoint {
    pub(crate) fn writes(&self) -> bool {
        self.application.is_some()
    }

    /// Returns the index of the path of its segments.
    pub(crate) fn way(&self) -> usize {
        way_index(self.flow, !self.writes())
    }

    /// Returns why its connection sends nothing; `None` before the application opens it.
    pub(crate) fn limited_by(&self, now: Time) -> Option<LimitedBy> {
        let opened = self.application.as_ref().is_none_or(|application| application.started);
        opened.then(|| self.connection.limited_by(now))
    }

    /// Returns true if the current write has bytes that are not in the send buffer.
    pub(crate) fn has_more_to_write(&self) -> bool {
        self.application.as_ref().is_some_and(|application| application.left.is_some())
    }
}
