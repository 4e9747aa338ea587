//! The sender of request-response traffic: either one request at a time, or requests on a schedule that does not wait for responses (a probe beside load).

use std::io;
use std::os::fd::AsRawFd;

use super::control::EndReason;
use super::socket::is_timeout;
use super::stream_result::{StreamResult, Window};
use super::worker::Worker;
use super::writer::fill;
use crate::handshake::{DatagramHeader, STAMP_WITH_TIME};
use crate::protocol_error::{ErrorContext, ProtocolError};
use crate::statistics::{Distribution, Sequence};
use crate::sys::{clock, send};
use crate::time::SECOND;

/// A UDP response that takes longer than this (ns) counts as unanswered.
const UNANSWERED: u64 = SECOND;
/// Longest wait between two checks of the stop flag, in ns.
const LOOK: u64 = 50_000_000;

/// Sends requests until the flow's time is over, the peer closes, or the flow is stopped.
pub(crate) fn run(worker: &Worker) -> StreamResult {
    let asked = &worker.spec.asked;
    if let Err(problem) = worker.socket.set_nonblocking(true).doing("make the socket not block") {
        return worker.failed(problem);
    }
    let mut asker = Requester::new(worker);
    let mut pacing = worker.pacing();
    let mut late = pacing.is_some().then(Distribution::new);
    let Some(start) = worker.control.wait_start() else {
        return StreamResult::new(
            worker.why(EndReason::Stopped),
            &Window::new(u64::MAX, None),
            &worker.meter,
        );
    };
    worker.meter.began(start);
    let end = worker.spec.ends_after.map_or(u64::MAX, |length| start.saturating_add(length));
    let mut window = Window::new(start + asked.warmup_ns, asked.duration_ns);
    let mut due = pacing.as_mut().map_or(start, |(plan, ..)| start.saturating_add(plan.next()));
    let mut failure = None;
    let ended = loop {
        let now = clock::now();
        if now >= window.next() {
            window.pass(now, &worker.meter, &worker.socket);
        }
        if now >= end {
            // A request that was due but is not sent any more still counts in the lateness.
            if let Some(late) = late.as_mut().filter(|_| window.holds(due)) {
                late.record(now - due);
            }
            break EndReason::Duration;
        }
        if worker.control.stopped() {
            break worker.why(EndReason::Stopped);
        }
        asker.give_up(now);
        let step = if due <= now && asker.may_ask(pacing.is_some()) {
            if let Some(late) = late.as_mut().filter(|_| window.holds(due)) {
                late.record(now - due);
            }
            let result = asker.ask(window.holds(now));
            // Without a schedule, the next request is due as soon as `may_ask` finds no open request.
            due = pacing.as_mut().map_or(0, |(plan, ..)| start.saturating_add(plan.next()));
            result
        } else {
            // Reads responses until the next request is due. If that must wait for a response, checks again after `LOOK`.
            let until = if due > now { due } else { now + LOOK };
            send::wait_readable(worker.socket.as_raw_fd(), until.min(end).min(now + LOOK) - now);
            asker.hear()
        };
        match step {
            Ok(true) => {}
            Ok(false) => break EndReason::Peer,
            Err(error) => match error.raw_os_error() {
                Some(libc::ECONNREFUSED | libc::ECONNRESET | libc::EPIPE) => break EndReason::Peer,
                _ => {
                    failure = Some(ProtocolError::system("ask", &error));
                    break EndReason::Failed;
                }
            },
        }
    };
    asker.give_up(u64::MAX);
    window.close_now(&worker.meter, &worker.socket);
    let _ = worker.socket.shutdown(std::net::Shutdown::Write);
    let mut tally = StreamResult::new(ended, &window, &worker.meter);
    tally.error = failure;
    tally.latency = Some(asker.latency);
    tally.unanswered = asker.unanswered;
    tally.sequence = worker.spec.udp.then_some(asker.sequence);
    tally.late = late;
    tally.pacing = pacing.map(|(.., chosen)| chosen);
    tally
}

/// State of the requester of one stream.
struct Requester<'a> {
    worker: &'a Worker,
    tag: u32,
    request: Vec<u8>,
    response: Vec<u8>,
    /// Bytes of the current response received so far (TCP only).
    filled: usize,
    /// Requests without a response, the oldest first: sequence number, send time in ns, and whether the request counts as measured.
    open: std::collections::VecDeque<(u64, u64, bool)>,
    next: u64,
    answered: u64,
    latency: Distribution,
    sequence: Sequence,
    unanswered: u64,
}

impl<'a> Requester<'a> {
    fn new(worker: &'a Worker) -> Self {
        let asked = &worker.spec.asked;
        Self {
            worker,
            tag: worker.spec.token.tag(&asked.flow, worker.stream),
            request: (0..asked.message_bytes as usize).map(fill).collect(),
            // With UDP, one extra byte shows that a datagram is too long.
            response: vec![0; worker.spec.response as usize + usize::from(worker.spec.udp)],
            filled: 0,
            open: std::collections::VecDeque::new(),
            next: 0,
            answered: 0,
            latency: Distribution::new(),
            sequence: Sequence::new(),
            unanswered: 0,
        }
    }

    /// Returns whether the next request may go out: without a schedule if no request is open, on a schedule if fewer than 65,536 are open.
    fn may_ask(&self, scheduled: bool) -> bool {
        self.open.is_empty() || (scheduled && self.open.len() < 65_536)
    }

    /// Sends one request. A full socket drops it (UDP) or makes the call wait (TCP).
    fn ask(&mut self, measured: bool) -> io::Result<bool> {
        let now = clock::now();
        if self.request.len() >= STAMP_WITH_TIME {
            let stamp = DatagramHeader { sequence: self.next, measured, sent: Some(now) };
            stamp.write(self.tag, &mut self.request);
        }
        let mut sent = 0;
        while sent < self.request.len() {
            match send::send(&*self.worker.socket, &self.request[sent..], 0) {
                Ok(count) => sent += count,
                Err(error) if is_timeout(&error) => {
                    if self.worker.spec.udp || self.worker.control.stopped() {
                        return Ok(true);
                    }
                    send::wait_writable(self.worker.socket.as_raw_fd(), LOOK);
                }
                Err(error) => return Err(error),
            }
        }
        self.open.push_back((self.next, now, measured));
        self.next += 1;
        Ok(true)
    }

    /// Reads all responses that are there. Returns `false` if the peer has closed the connection.
    fn hear(&mut self) -> io::Result<bool> {
        loop {
            let room = if self.worker.spec.udp { 0 } else { self.filled };
            match send::receive(&*self.worker.socket, &mut self.response[room..], 0) {
                Ok(0) if !self.worker.spec.udp => return Ok(false),
                Ok(count) if self.worker.spec.udp => self.datagram(count),
                Ok(count) => {
                    self.filled += count;
                    if self.filled == self.response.len() {
                        self.filled = 0;
                        // TCP keeps the order, so this answers the oldest open request.
                        if let Some((_, asked, measured)) = self.open.pop_front() {
                            self.answer(asked, measured);
                        }
                    }
                }
                Err(error) if is_timeout(&error) => return Ok(true),
                Err(error) => return Err(error),
            }
        }
    }

    fn datagram(&mut self, length: usize) {
        let expected = self.response.len() - 1;
        let stamp = DatagramHeader::read(self.tag, &self.response[..length]).filter(|_| length == expected);
        let Some(stamp) = stamp else { return };
        if !self.sequence.take(stamp.sequence, stamp.measured) {
            return;
        }
        let found = self.open.iter().position(|(number, ..)| *number == stamp.sequence);
        if let Some((_, asked, measured)) = found.and_then(|at| self.open.remove(at)) {
            self.answer(asked, measured);
        }
    }

    fn answer(&mut self, asked: u64, measured: bool) {
        self.answered += 1;
        let bytes = (self.request.len() as u64 + self.worker.spec.response) * self.answered;
        self.worker.meter.set(bytes, self.answered);
        if measured {
            self.latency.record(clock::now() - asked);
        }
    }

    /// Gives up UDP requests that are older than `UNANSWERED`. With `now == u64::MAX` it gives up every open request.
    fn give_up(&mut self, now: u64) {
        while let Some((_, asked, measured)) = self.open.front().copied() {
            let is_late =
                now.saturating_sub(asked) >= UNANSWERED && (self.worker.spec.udp || now == u64::MAX);
            if !is_late {
                break;
            }
            self.open.pop_front();
            // A request sent just before the end had no time to be answered and does not count.
            let had_time = clock::now().saturating_sub(asked) >= UNANSWERED;
            self.unanswered += u64::from(measured && had_time);
        }
    }
}
