//! The sending end of a UDP stream.

use std::io;

use super::control::EndReason;
use super::paced_sender::PacedSender;
use super::pacing::{LatenessTracker, Pacing, in_time};
use super::socket::{self, is_timeout};
use super::stream_result::{StreamResult, Window};
use super::worker::Worker;
use super::writer::fill;
use crate::handshake::DatagramHeader;
use crate::protocol_error::{Code, ErrorContext, ProtocolError, Result};
use crate::statistics::{Distribution, Gaps};
use crate::sys::batch::Outgoing;
use crate::sys::{clock, option, send};

/// Largest number of datagrams in one `sendmmsg` call.
const BATCH: usize = 32;
/// Maximum number of bytes of memory for the datagrams of one call.
const ARENA: usize = 256 << 10;
/// Largest number of bytes in one GSO call: the largest UDP payload.
const SEGMENTED: usize = 65_507;
/// Largest number of segments in one GSO call (`UDP_MAX_SEGMENTS` of `linux/udp.h`).
const SEGMENTS: usize = 128;
/// Largest number of segments in one GSO call on older kernels.
const SEGMENTS_BEFORE: usize = 64;

/// Grouping of datagrams into instants and calls.
struct Groups {
    /// Number of datagrams that are due at one instant.
    together: usize,
    /// Largest number of datagrams in one call.
    call: usize,
    segmented: bool,
}

impl Groups {
    fn new(worker: &Worker, chosen: Option<Pacing>) -> Self {
        let asked = &worker.spec.asked;
        let message = asked.message_bytes as usize;
        let segmented = asked.segmentation;
        let call =
            if segmented { (SEGMENTED / message).min(SEGMENTS) } else { BATCH.min(ARENA / message) }.max(1);
        match chosen {
            None | Some(Pacing::Kernel) => Self { together: call, call, segmented },
            Some(Pacing::Burst) => {
                let together = asked.burst_messages as usize;
                Self { together, call: call.min(together), segmented }
            }
            Some(_) => Self { together: 1, call: 1, segmented: false },
        }
    }
}

/// Enables kernel pacing if the request asks for it. Fails without the queue discipline `fq`, because nothing else paces UDP sockets.
fn pace(worker: &Worker) -> Result<()> {
    let asked = &worker.spec.asked;
    let (Pacing::Kernel, Some(schedule)) = (asked.pacing, &asked.schedule) else { return Ok(()) };
    let way = worker.socket.local_addr().ok().and_then(|local| local.as_socket());
    let interface = way.and_then(|way| crate::kernel_counters::interface_of(way.ip()));
    let discipline = interface.as_deref().and_then(crate::kernel_counters::discipline_of);
    if discipline.as_deref() != Some("fq") {
        let found = discipline.unwrap_or_else(|| "unknown".to_owned());
        return Err(ProtocolError::new(
            Code::NotSupported,
            format!(
                "the kernel paces datagrams only with the queue discipline `fq`, and here it is `{found}`"
            ),
            "use another `pacing`, or `tc qdisc replace dev INTERFACE root fq`",
        ));
    }
    option::pace(&*worker.socket, (schedule.rate() / 8).max(1)).doing("let the kernel pace the socket")
}

/// Sends until the time is over, the peer is gone, or the flow is stopped.
pub(crate) fn run(worker: &Worker) -> StreamResult {
    let asked = &worker.spec.asked;
    let mut pacing = worker.pacing();
    let chosen = pacing.as_ref().map(|(.., (chosen, _))| *chosen);
    let groups = Groups::new(worker, chosen);
    let prepared = pace(worker);
    let prepared = if groups.segmented {
        prepared.and_then(|()| socket::segment(&worker.socket, &worker.spec))
    } else {
        prepared
    };
    if let Err(problem) = prepared {
        return worker.failed(problem);
    }
    let kernel = chosen == Some(Pacing::Kernel);
    let mut sender = Sender {
        tag: worker.spec.token.tag(&asked.flow, worker.stream),
        batch: Outgoing::new(groups.call, asked.message_bytes as usize, fill),
        worker,
        segmented: groups.segmented,
        most: groups.call,
        timed: worker.spec.gaps,
        sent: 0,
        measured: 0,
    };
    let ideal = asked.schedule.as_ref().map(|schedule| schedule.gap(asked.message_bytes));
    let mut gaps = worker.spec.gaps.then(|| Gaps::new(ideal));
    let mut late = (pacing.is_some() && !kernel).then(Distribution::new);
    let group_gap = ideal.unwrap_or(0).saturating_mul(groups.together as u64);
    let mut punctual = chosen.filter(|_| !kernel).map(|chosen| PacedSender::new(chosen, group_gap));
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
    let mut behind = LatenessTracker::new(start);
    // A stream that ends after a number of bytes sends whole datagrams.
    let most = asked.bytes.map_or(u64::MAX, |bytes| bytes.div_ceil(asked.message_bytes));
    let mut failure = None;
    let ended = loop {
        if sender.sent >= most {
            break EndReason::Bytes;
        }
        let mut now = clock::now();
        let mut measured = window.holds(now);
        let mut over = now >= end;
        let mut due = now;
        if let (Some((plan, waiter, _)), Some(punctual)) = (&mut pacing, &mut punctual) {
            due = start.saturating_add(plan.next());
            // The other messages of a burst leave with the first.
            for _ in 1..groups.together {
                plan.next();
            }
            let instant = if due < end { punctual.instant(due, waiter) } else { end };
            now = waiter.wait(instant, || worker.control.stopped());
            measured = window.holds(behind.counts_at(due, now));
            over = !in_time(due, now, end);
            // The first message that is not sent because it is too late still counts in the lateness; earlier messages only if measured.
            let told = if over { due < end } else { measured };
            if let Some(late) = late.as_mut().filter(|_| told) {
                late.record(now.saturating_sub(due));
            }
        }
        if now >= window.next() {
            window.pass(now, &worker.meter, &worker.socket);
        }
        if over {
            break EndReason::Duration;
        }
        if worker.control.stopped() {
            break worker.why(EndReason::Stopped);
        }
        let together = (most - sender.sent).min(groups.together as u64);
        if let Some(gaps) = gaps.as_mut().filter(|_| measured) {
            gaps.record(now, together);
        }
        match sender.send(together as usize, measured) {
            Ok(()) => {}
            Err(error) if is_timeout(&error) => {}
            Err(error) => break failed(&error, worker, &mut failure),
        }
        if let Some(punctual) = &mut punctual {
            punctual.left(now, due, measured);
        }
    };
    window.close_now(&worker.meter, &worker.socket);
    let mut tally = StreamResult::new(ended, &window, &worker.meter);
    tally.error = failure;
    // The receiver counts the datagrams that are marked as measured, so the sender reports exactly these.
    tally.messages = sender.measured;
    tally.bytes = sender.measured * asked.message_bytes;
    tally.gaps = gaps;
    tally.late = late;
    tally.pacing = pacing.map(|(.., chosen)| chosen);
    tally.punctual = punctual.map(|punctual| punctual.to_json());
    tally
}

/// Writes the headers of datagrams and sends them.
struct Sender<'a> {
    worker: &'a Worker,
    tag: u32,
    batch: Outgoing,
    segmented: bool,
    /// Maximum number of datagrams in one call.
    most: usize,
    timed: bool,
    sent: u64,
    /// Number of sent datagrams that are marked as measured.
    measured: u64,
}

impl Sender<'_> {
    /// Returns whether an older kernel has refused a call because of too many segments. Later calls then use fewer segments.
    #[cold]
    fn is_too_many(&mut self, group: usize) -> bool {
        let too_many = self.segmented && group > SEGMENTS_BEFORE;
        if too_many {
            self.most = SEGMENTS_BEFORE;
        }
        too_many
    }

    /// Sends `count` datagrams. A datagram that the kernel refuses is not counted, and its sequence number is used again.
    #[inline]
    fn send(&mut self, count: usize, measured: bool) -> io::Result<()> {
        let mut left = count;
        while left > 0 {
            let group = left.min(self.most);
            let sent = self.timed.then(clock::realtime);
            for index in 0..group {
                let stamp = DatagramHeader { sequence: self.sent + index as u64, measured, sent };
                stamp.write(self.tag, self.batch.datagram(index));
            }
            let taken = if self.segmented {
                send::send(&*self.worker.socket, self.batch.joined(group), 0).map(|_| group)
            } else if group == 1 {
                send::send(&*self.worker.socket, self.batch.joined(1), 0).map(|_| 1)
            } else {
                self.batch.send(&*self.worker.socket, 0, group)
            };
            let taken = match taken {
                Err(error) if error.raw_os_error() == Some(libc::EINVAL) && self.is_too_many(group) => {
                    continue;
                }
                taken => taken?,
            };
            self.sent += taken as u64;
            self.measured += if measured { taken as u64 } else { 0 };
            left -= taken.max(1).min(left);
            let bytes = self.sent * self.worker.spec.asked.message_bytes;
            self.worker.meter.set(bytes, self.sent);
        }
        Ok(())
    }
}

fn failed(error: &io::Error, worker: &Worker, failure: &mut Option<ProtocolError>) -> EndReason {
    match error.raw_os_error() {
        // ICMP port unreachable: the peer has closed its socket.
        Some(libc::ECONNREFUSED) => EndReason::Peer,
        Some(libc::EMSGSIZE) => {
            let size = worker.spec.asked.message_bytes;
            *failure = Some(ProtocolError::new(
                Code::System,
                format!("a datagram of {size} B of payload does not fit the path, and may not be fragmented"),
                "make `message_bytes` smaller, or leave `dont_fragment` and `segmentation` out",
            ));
            EndReason::Failed
        }
        _ => {
            *failure = Some(ProtocolError::system("send", error));
            EndReason::Failed
        }
    }
}
