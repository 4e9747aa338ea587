//! The responder of request-response traffic.

use std::io;

use super::control::EndReason;
use super::socket::is_timeout;
use super::stream_result::{RejectedInput, StreamResult, Window};
use super::worker::{SILENCE, Worker};
use super::writer::fill;
use crate::handshake::{DatagramHeader, HEAD, Reply, STAMP_WITH_TIME};
use crate::protocol_error::ProtocolError;
use crate::sys::{clock, send};

/// Answers requests until the peer closes, a limit is reached, nothing arrives for `SILENCE`, or the flow is stopped.
pub(crate) fn run(worker: &Worker) -> StreamResult {
    let asked = &worker.spec.asked;
    let request = asked.message_bytes as usize;
    let mut answerer = Responder {
        worker,
        tag: worker.spec.token.tag(&asked.flow, worker.stream),
        request: vec![0; request + usize::from(worker.spec.udp)],
        response: (0..worker.spec.response as usize).map(fill).collect(),
        filled: 0,
        answered: 0,
        unfit: RejectedInput::default(),
    };
    let mut window = Window::new(u64::MAX, None);
    let mut heard = clock::now();
    let mut deadline = heard + SILENCE;
    let mut failure = None;
    let ended = loop {
        let before = answerer.answered;
        let step = answerer.step();
        let now = clock::now();
        if before == 0 && answerer.answered == 1 {
            worker.meter.began(now);
            window = Window::new(now + asked.warmup_ns, asked.duration_ns);
            deadline = worker.deadline(now);
        }
        if now >= window.next() {
            window.pass(now, &worker.meter, &worker.socket);
        }
        let bytes = answerer.answered * (asked.message_bytes + worker.spec.response);
        worker.meter.set(bytes, answerer.answered);
        if worker.spec.limits.bytes.is_some_and(|most| bytes > most) {
            break EndReason::LimitBytes;
        }
        if worker.control.stopped() {
            break worker.why(EndReason::Stopped);
        }
        if now >= deadline {
            break EndReason::LimitTime;
        }
        match step {
            Ok(true) => heard = now,
            Ok(false) => break EndReason::Peer,
            Err(error) if is_timeout(&error) => {
                if now >= heard.saturating_add(SILENCE) {
                    break EndReason::Silent;
                }
            }
            Err(error) => match error.raw_os_error() {
                Some(libc::ECONNRESET | libc::EPIPE) => break EndReason::Peer,
                // ICMP port unreachable for one of our responses: the peer has closed its socket. The time-out for silence then ends the loop.
                Some(libc::ECONNREFUSED) => {}
                _ => {
                    failure = Some(ProtocolError::system("answer", &error));
                    break EndReason::Failed;
                }
            },
        }
    };
    window.close(heard, &worker.meter, &worker.socket);
    let _ = worker.socket.shutdown(std::net::Shutdown::Both);
    let mut tally = StreamResult::new(ended, &window, &worker.meter);
    tally.error = failure;
    tally.unfit = answerer.unfit;
    tally
}

struct Responder<'a> {
    worker: &'a Worker,
    tag: u32,
    request: Vec<u8>,
    response: Vec<u8>,
    filled: usize,
    answered: u64,
    unfit: RejectedInput,
}

impl Responder<'_> {
    /// Receives once and responds if the request is complete. Returns `false` if the peer has closed the connection.
    fn step(&mut self) -> io::Result<bool> {
        let at = if self.worker.spec.udp { 0 } else { self.filled };
        let count = send::receive(&*self.worker.socket, &mut self.request[at..], 0)?;
        if self.worker.spec.udp {
            return self.datagram(count);
        }
        if count == 0 {
            return Ok(false);
        }
        self.filled += count;
        if self.filled < self.request.len() {
            return Ok(true);
        }
        self.filled = 0;
        self.respond()
    }

    fn datagram(&mut self, length: usize) -> io::Result<bool> {
        if length == 0 && self.worker.control.stopped() {
            // The call returned no datagram, because the socket was shut down to wake this thread.
            return Ok(true);
        }
        let bytes = &self.request[..length];
        if length == self.request.len() - 1 && DatagramHeader::read(self.tag, bytes).is_some() {
            return self.respond();
        }
        let peer = self.worker.socket.peer_addr().ok().and_then(|peer| peer.as_socket());
        if let (Some(greeting), Some(peer), HEAD) = (&self.worker.greeting, peer, length)
            && let Reply::Ready(stream, head) = greeting.take(peer.to_string().as_bytes(), bytes)
            && stream == self.worker.stream
        {
            let _ = send::send(&*self.worker.socket, &head, 0);
        } else if length == self.request.len() - 1 {
            self.unfit.no_token += 1;
        } else {
            self.unfit.malformed += 1;
        }
        Ok(true)
    }

    /// Sends the response. It starts with a copy of the request's header, in which the requester finds its sequence number.
    fn respond(&mut self) -> io::Result<bool> {
        let echo = STAMP_WITH_TIME.min(self.response.len()).min(self.request.len());
        self.response[..echo].copy_from_slice(&self.request[..echo]);
        let mut sent = 0;
        while sent < self.response.len() {
            match send::send(&*self.worker.socket, &self.response[sent..], 0) {
                Ok(count) => sent += count,
                Err(error) if is_timeout(&error) && !self.worker.control.stopped() => {}
                Err(error) => return Err(error),
            }
        }
        self.answered += 1;
        Ok(true)
    }
}
