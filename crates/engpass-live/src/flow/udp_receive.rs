//! The receiving end of a UDP stream.

use std::net::SocketAddr;

use super::control::EndReason;
use super::socket::{NAP, is_timeout};
use super::stream_result::{RejectedInput, StreamResult, Window};
use super::worker::{SILENCE, Worker};
use crate::handshake::{DatagramHeader, HEAD, HandshakeServer, Reply};
use crate::protocol_error::ProtocolError;
use crate::statistics::{Distribution, Gaps, Sequence};
use crate::sys::batch::{Datagram, Incoming};
use crate::sys::thread::{self, Cpu};
use crate::sys::thread_priority::CpuLatencyHold;
use crate::sys::{clock, option, send};
use crate::time::MILLISECOND;

/// Maximum number of datagrams in one `recvmmsg`.
const BATCH: usize = 64;
/// Bytes of memory for the datagrams of one call.
const ARENA: usize = 1 << 20;
/// From this many datagrams per call on, the stream counts as fast.
const MANY: usize = 8;
/// Length of the naps of a receiver whose datagrams the kernel time-stamps, in ns.
const STAMPED_NAP: u64 = MILLISECOND;
/// Least socket buffer for such naps, in bytes as the kernel reports it. It holds more 64-byte datagrams than any network stack delivers in a millisecond.
const STAMPED_ROOM: i32 = 4 << 20;
/// Largest packet that GRO returns, in bytes.
const JOINED: usize = 65_535;

/// Receives until the flow is stopped, a limit is reached, or nothing arrives for `SILENCE`.
pub(crate) fn run(worker: &Worker) -> StreamResult {
    let asked = &worker.spec.asked;
    // One extra byte reveals a datagram that is too long.
    let size = if asked.segmentation { JOINED } else { asked.message_bytes as usize + 1 };
    let count = (ARENA / size).clamp(1, BATCH);
    let mut batch = Incoming::new(count, size, asked.segmentation || worker.spec.gaps);
    let mut receiver = Receiver::new(worker);
    // A core that wakes from idle time-stamps its first datagrams late.
    let _awake = worker.spec.gaps.then(CpuLatencyHold::hold).flatten();
    let calm = is_calm(worker);
    let mut heard = clock::now();
    let mut deadline = heard + SILENCE;
    let mut failure = None;
    let (mut emptying, mut napped) = (false, false);
    let ended = loop {
        // Datagrams that are in the socket when the flow is stopped arrived before the stop, so the socket is emptied first.
        let flags = if emptying || napped { libc::MSG_DONTWAIT } else { libc::MSG_WAITFORONE };
        match batch.receive(&*worker.socket, flags) {
            Ok(count) => {
                let now = clock::now();
                if receiver.bytes == 0 {
                    deadline = worker.deadline(now);
                }
                for index in 0..count {
                    receiver.take(batch.datagram(index), now);
                }
                receiver.tell();
                if let Some(membership) = worker.membership.as_ref().filter(|_| receiver.bytes > 0) {
                    membership.arrived(now);
                }
                heard = now;
                // With GRO the wake-ups are rare enough without a nap.
                napped = !asked.segmentation && count < batch.room() && (calm || count >= MANY);
                if napped {
                    clock::sleep_until(now + if calm { STAMPED_NAP } else { NAP });
                }
                if receiver.bytes > receiver.allowed {
                    break EndReason::LimitBytes;
                }
                if now >= deadline {
                    break EndReason::LimitTime;
                }
            }
            Err(error) if is_timeout(&error) && napped => napped = false,
            Err(error) if is_timeout(&error) => {
                if emptying {
                    break worker.why(EndReason::Stopped);
                }
                let now = clock::now();
                if now >= heard.saturating_add(SILENCE) {
                    break EndReason::Silent;
                }
                if now >= deadline {
                    break EndReason::LimitTime;
                }
            }
            // ICMP port unreachable for a handshake message of ours. Data can still arrive.
            Err(error) if error.raw_os_error() == Some(libc::ECONNREFUSED) => {}
            Err(error) => {
                failure = Some(ProtocolError::system("receive", &error));
                break EndReason::Failed;
            }
        }
        if !emptying && worker.control.stopped() {
            if worker.control.reason() != Some(EndReason::Stopped) {
                break worker.why(EndReason::Stopped);
            }
            emptying = true;
        }
    };
    receiver.finish(ended, failure)
}

/// Returns whether the receiver may look only once per millisecond: the kernel time-stamps the datagrams, and the socket buffer is large enough. On one machine
/// a wake-up per datagram would cost the sender time in its send call; between virtual CPUs each wake-up is an interrupt that the hypervisor delivers.
/// Multicast receivers always look at once, because the join time is measured.
fn is_calm(worker: &Worker) -> bool {
    let room = || option::get(&*worker.socket, libc::SOL_SOCKET, libc::SO_RCVBUF);
    worker.spec.gaps && worker.membership.is_none() && room().is_ok_and(|room| room >= STAMPED_ROOM)
}

/// Counters of one stream.
struct Receiver<'a> {
    worker: &'a Worker,
    tag: u32,
    peer: Option<SocketAddr>,
    size: usize,
    allowed: u64,
    sequence: Sequence,
    gaps: Option<Gaps>,
    delay: Option<Distribution>,
    unfit: RejectedInput,
    bytes: u64,
    datagrams: u64,
    measured_bytes: u64,
    /// Arrival of the first and of the last measured datagram, in ns.
    span: Option<(u64, u64)>,
    /// CPU time and similar use of the thread at the first measured datagram.
    cpu: Cpu,
}

impl<'a> Receiver<'a> {
    fn new(worker: &'a Worker) -> Self {
        let asked = &worker.spec.asked;
        let ideal = asked.schedule.as_ref().map(|schedule| schedule.gap(asked.message_bytes));
        Self {
            worker,
            tag: worker.spec.token.tag(&asked.flow, worker.stream),
            peer: worker.socket.peer_addr().ok().and_then(|peer| peer.as_socket()),
            size: asked.message_bytes as usize,
            allowed: worker.spec.limits.bytes.map_or(u64::MAX, |bytes| bytes / u64::from(asked.streams)),
            sequence: Sequence::new(),
            gaps: worker.spec.gaps.then(|| Gaps::new(ideal)),
            delay: worker.spec.gaps.then(Distribution::new),
            unfit: RejectedInput::default(),
            bytes: 0,
            datagrams: 0,
            measured_bytes: 0,
            span: None,
            cpu: Cpu::default(),
        }
    }

    #[inline]
    fn take(&mut self, datagram: Datagram<'_>, now: u64) {
        let mut fresh = 0;
        for bytes in datagram.bytes.chunks(datagram.segment) {
            let Some(stamp) = DatagramHeader::read(self.tag, bytes).filter(|_| bytes.len() == self.size)
            else {
                self.unfit(bytes);
                continue;
            };
            if self.bytes == 0 {
                self.worker.meter.began(now);
            }
            self.bytes += bytes.len() as u64;
            self.datagrams += 1;
            let new = self.sequence.take(stamp.sequence, stamp.measured);
            if !stamp.measured {
                continue;
            }
            if new {
                self.measured_bytes += bytes.len() as u64;
            }
            fresh += 1;
            if let (Some(delay), Some(sent)) = (&mut self.delay, stamp.sent)
                && let Some(late) = datagram.stamp.checked_sub(sent)
            {
                delay.record(late);
            }
        }
        if fresh == 0 {
            return;
        }
        if let Some(gaps) = self.gaps.as_mut().filter(|_| datagram.stamp > 0) {
            gaps.record(datagram.stamp, fresh);
        }
        match &mut self.span {
            Some((_, last)) => *last = now,
            None => {
                self.span = Some((now, now));
                self.cpu = thread::used();
            }
        }
    }

    #[cold]
    fn unfit(&mut self, bytes: &[u8]) {
        // The peer has repeated a `confirm` because it did not receive our `ready`.
        if let (Some(greeting), Some(peer), HEAD) = (&self.worker.greeting, self.peer, bytes.len())
            && self.repeat(greeting, peer, bytes)
        {
            return;
        }
        if bytes.len() == self.size {
            self.unfit.no_token += 1;
        } else {
            self.unfit.malformed += 1;
        }
    }

    fn repeat(&self, greeting: &HandshakeServer, peer: SocketAddr, bytes: &[u8]) -> bool {
        match greeting.take(peer.to_string().as_bytes(), bytes) {
            Reply::Ready(stream, head) if stream == self.worker.stream => {
                let _ = send::send(&*self.worker.socket, &head, 0);
                true
            }
            _ => false,
        }
    }

    /// Publishes the counters for the monitor.
    #[inline]
    fn tell(&self) {
        self.worker.meter.set(self.bytes, self.datagrams);
        self.worker.meter.set_lost(self.sequence.missing());
    }

    fn finish(self, ended: EndReason, failure: Option<ProtocolError>) -> StreamResult {
        let mut tally = StreamResult::new(ended, &Window::new(u64::MAX, None), &self.worker.meter);
        tally.error = failure;
        tally.bytes = self.measured_bytes;
        tally.messages = self.sequence.received();
        if let Some((first, last)) = self.span {
            tally.elapsed = last - first;
            tally.cpu = thread::used().since(self.cpu);
        }
        tally.sequence = Some(self.sequence);
        tally.gaps = self.gaps;
        tally.delay = self.delay;
        tally.unfit = self.unfit;
        tally
    }
}
