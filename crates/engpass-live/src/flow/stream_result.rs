//! The result of one stream's thread.

use serde::Serialize;
use serde_json::{Value, json};
use socket2::Socket;

use super::control::{EndReason, Meter};
use super::subflow::{self, Subflow};
use super::tcp_info::TcpInfo;
use crate::protocol_error::ProtocolError;
use crate::statistics::{Distribution, Gaps, Sequence};
use crate::sys::thread::{self, Cpu};
use crate::sys::{clock, option};

/// Numbers of messages or connections dropped at a data port, by cause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct RejectedInput {
    pub(crate) no_token: u64,
    pub(crate) wrong_peer: u64,
    pub(crate) malformed: u64,
    pub(crate) replayed: u64,
}

impl RejectedInput {
    pub(crate) fn plus(self, other: Self) -> Self {
        Self {
            no_token: self.no_token + other.no_token,
            wrong_peer: self.wrong_peer + other.wrong_peer,
            malformed: self.malformed + other.malformed,
            replayed: self.replayed + other.replayed,
        }
    }
}

/// Result of one stream.
#[derive(Debug)]
pub(crate) struct StreamResult {
    pub(crate) ended: EndReason,
    pub(crate) error: Option<ProtocolError>,
    pub(crate) bytes: u64,
    pub(crate) messages: u64,
    pub(crate) total_bytes: u64,
    pub(crate) total_messages: u64,
    pub(crate) elapsed: u64,
    pub(crate) cpu: Cpu,
    pub(crate) core: u64,
    /// Statistics of the connection when the window opened, when it closed, and at the end of the flow.
    pub(crate) tcp: [Option<TcpInfo>; 3],
    /// Statistics of the subflows at the same instants; for MPTCP only.
    pub(crate) subflows: [Vec<Subflow>; 3],
    pub(crate) late: Option<Distribution>,
    pub(crate) gaps: Option<Gaps>,
    pub(crate) sequence: Option<Sequence>,
    pub(crate) latency: Option<Distribution>,
    pub(crate) unanswered: u64,
    pub(crate) delay: Option<Distribution>,
    pub(crate) copied: Option<(u64, u64)>,
    pub(crate) pacing: Option<(super::pacing::Pacing, String)>,
    /// Granted scheduling class and idle-state request of a paced sender, and its stalls.
    pub(crate) punctual: Option<Value>,
    pub(crate) unfit: RejectedInput,
    /// Packets that the socket dropped, mostly because its buffer was full.
    pub(crate) dropped: Option<u64>,
}

impl StreamResult {
    /// Builds the result of a stream from its reason to end, its window and its meter.
    pub(crate) fn new(ended: EndReason, window: &Window, meter: &Meter) -> Self {
        let total = meter.read();
        let mut tally = Self {
            ended,
            error: None,
            bytes: 0,
            messages: 0,
            total_bytes: total.bytes,
            total_messages: total.messages,
            elapsed: 0,
            cpu: Cpu::default(),
            core: thread::core(),
            tcp: [None; 3],
            subflows: [const { Vec::new() }; 3],
            late: None,
            gaps: None,
            sequence: None,
            latency: None,
            unanswered: 0,
            delay: None,
            copied: None,
            pacing: None,
            punctual: None,
            unfit: RejectedInput::default(),
            dropped: None,
        };
        if let [Some(open), Some(close)] = &window.edges {
            tally.bytes = close.bytes - open.bytes;
            tally.messages = close.messages - open.messages;
            tally.elapsed = close.at - open.at;
            tally.cpu = close.cpu.since(open.cpu);
            tally.tcp = [open.tcp, close.tcp, None];
            tally.subflows = [open.subflows.clone(), close.subflows.clone(), Vec::new()];
        }
        tally
    }

    /// Adds the final statistics. Must be called when the flow is over: packets that were in flight have then arrived or are lost.
    pub(crate) fn over(mut self, socket: &Socket) -> Self {
        self.tcp[2] = TcpInfo::of(socket);
        self.subflows[2] = subflow::of(socket);
        self.dropped = option::drops(socket);
        self
    }

    /// Returns the TCP readings as in results.
    pub(crate) fn tcp_json(&self) -> Value {
        if self.tcp == [None; 3] {
            return Value::Null;
        }
        let [open, close, end] = self.tcp.map(|info| info.map(TcpInfo::to_json));
        json!({ "open": open, "close": close, "end": end })
    }
}

/// Counters at one edge of the measurement window.
#[derive(Clone, Debug)]
struct Edge {
    at: u64,
    bytes: u64,
    messages: u64,
    cpu: Cpu,
    tcp: Option<TcpInfo>,
    subflows: Vec<Subflow>,
}

impl Edge {
    fn now(at: u64, meter: &Meter, socket: &Socket) -> Self {
        let total = meter.read();
        Self {
            at,
            bytes: total.bytes,
            messages: total.messages,
            cpu: thread::used(),
            tcp: TcpInfo::of(socket),
            subflows: subflow::of(socket),
        }
    }
}

/// The measurement window of a stream. It reads the counters when it opens and when it closes.
#[derive(Debug)]
pub(crate) struct Window {
    begin: u64,
    end: u64,
    edges: [Option<Edge>; 2],
}

impl Window {
    /// Creates a window that opens at `begin` on the monotonic clock and lasts for `duration` ns, or until traffic ends.
    pub(crate) fn new(begin: u64, duration: Option<u64>) -> Self {
        Self {
            begin,
            end: duration.map_or(u64::MAX, |duration| begin.saturating_add(duration)),
            edges: [None, None],
        }
    }

    /// Returns the instant of the next edge that has not been passed; `u64::MAX` if there is none.
    #[inline]
    pub(crate) fn next(&self) -> u64 {
        match self.edges {
            [None, _] => self.begin,
            [_, None] => self.end,
            _ => u64::MAX,
        }
    }

    /// Returns whether the window contains the instant `at`.
    #[inline]
    pub(crate) fn holds(&self, at: u64) -> bool {
        (self.begin..self.end).contains(&at)
    }

    /// Records an edge of the window if `now` has reached it. The meter must be up to date.
    #[cold]
    pub(crate) fn pass(&mut self, now: u64, meter: &Meter, socket: &Socket) {
        if self.edges[0].is_none() && now >= self.begin {
            self.edges[0] = Some(Edge::now(now, meter, socket));
        } else if self.edges[0].is_some() && self.edges[1].is_none() && now >= self.end {
            self.edges[1] = Some(Edge::now(now, meter, socket));
        }
    }

    /// Closes an open window at `at`, the end of the traffic.
    pub(crate) fn close(&mut self, at: u64, meter: &Meter, socket: &Socket) {
        if let [Some(open), None] = &self.edges {
            let at = at.max(open.at);
            self.edges[1] = Some(Edge::now(at, meter, socket));
        }
    }

    /// Reads the kernel's counters at the closing edge again, while time, bytes and CPU stay those of the edge. Returns whether the peer has acknowledged
    /// everything, or the connection is closed.
    pub(crate) fn recount(&mut self, socket: &Socket) -> bool {
        let Some(close) = &mut self.edges[1] else { return true };
        close.tcp = TcpInfo::of(socket).or(close.tcp);
        let subflows = subflow::of(socket);
        let is_done = if subflows.is_empty() {
            close.tcp.is_none_or(TcpInfo::is_acknowledged)
        } else {
            subflows.iter().all(Subflow::is_acknowledged)
        };
        // A closed connection has no subflows left: their last reading counts.
        if !subflows.is_empty() {
            close.subflows = subflows;
        }
        is_done
    }

    /// Closes an open window now.
    pub(crate) fn close_now(&mut self, meter: &Meter, socket: &Socket) {
        self.close(clock::now(), meter, socket);
    }
}
