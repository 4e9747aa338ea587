//! The sending end of a TCP stream.

use std::io;

use super::control::EndReason;
use super::pacing::{Pacing, in_time};
use super::schedule::Schedule;
use super::socket::is_timeout;
use super::stream_result::{StreamResult, Window};
use super::worker::Worker;
use super::writer::Writer;
use crate::protocol_error::{ErrorContext, ProtocolError};
use crate::statistics::Distribution;
use crate::sys::{clock, option};

/// Maximum number of bytes written between two reads of the clock.
const STRIDE: u64 = 64 << 10;

/// Enables kernel pacing of the connection, if the request asks for it or a rate limit applies.
fn pace(worker: &Worker) -> Result<(), ProtocolError> {
    let asked = &worker.spec.asked;
    let streams = u64::from(asked.streams);
    let asked_rate = asked.schedule.as_ref().filter(|_| asked.pacing == Pacing::Kernel).map(Schedule::rate);
    let allowed = worker.spec.limits.rate_bit_per_s.map(|rate| rate / streams);
    match asked_rate.or(allowed) {
        Some(rate) => {
            option::pace(&*worker.socket, (rate / 8).max(1)).doing("let the kernel pace the connection")
        }
        None => Ok(()),
    }
}

/// Sends until the time is over, all bytes are sent, the peer closes, or the flow is stopped.
pub(crate) fn run(worker: Worker) -> StreamResult {
    let asked = &worker.spec.asked;
    let message = asked.message_bytes;
    let writer = pace(&worker).and_then(|()| Writer::new(asked.method, message, &worker.socket));
    let mut writer = match writer {
        Ok(writer) => writer,
        Err(problem) => return worker.failed(problem),
    };
    let mut pacing = worker.pacing().filter(|(.., (chosen, _))| *chosen != Pacing::Kernel);
    let mut late = pacing.is_some().then(Distribution::new);
    let stride = (STRIDE / message).clamp(1, 64);
    let Some(start) = worker.control.wait_start() else {
        return StreamResult::new(
            worker.why(EndReason::Stopped),
            &Window::new(u64::MAX, None),
            &worker.meter,
        );
    };
    worker.meter.began(start);
    let end = worker.spec.ends_after.map_or(u64::MAX, |length| start.saturating_add(length));
    let most = asked.bytes.unwrap_or(u64::MAX);
    let mut window = Window::new(start + asked.warmup_ns, asked.duration_ns);
    let (mut bytes, mut messages, mut now) = (0_u64, 0_u64, clock::now());
    let (mut failure, mut over) = (None, false);
    let ended = 'traffic: loop {
        if let Some((plan, waiter, _)) = &mut pacing {
            let due = start.saturating_add(plan.next());
            now = waiter.wait(due.min(end), || worker.control.stopped());
            over = !in_time(due, now, end);
            // As with datagrams, the first message that is not sent because it is too late still counts in the lateness.
            if let Some(late) = late.as_mut().filter(|_| window.holds(due)) {
                late.record(now.saturating_sub(due));
            }
        } else if messages.is_multiple_of(stride) {
            now = clock::now();
            over = now >= end;
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
        let mut left = message.min(most - bytes);
        if left == 0 {
            break EndReason::Bytes;
        }
        while left > 0 {
            match writer.write(&worker.socket, left as usize) {
                Ok(0) => break 'traffic EndReason::Peer,
                Ok(written) => {
                    left -= written as u64;
                    bytes += written as u64;
                }
                Err(error) if is_timeout(&error) => {
                    now = clock::now();
                    worker.meter.set(bytes, messages);
                    if now >= window.next() {
                        window.pass(now, &worker.meter, &worker.socket);
                    }
                    if now >= end {
                        break 'traffic EndReason::Duration;
                    }
                    if worker.control.stopped() {
                        break 'traffic worker.why(EndReason::Stopped);
                    }
                }
                Err(error) => break 'traffic failed(&error, &mut failure),
            }
        }
        messages += 1;
        worker.meter.set(bytes, messages);
    };
    worker.meter.set(bytes, messages);
    window.close_now(&worker.meter, &worker.socket);
    let copied = writer.finish(&worker.socket);
    // The peer sees the end of the stream; the socket stays open for later readings.
    let _ = worker.socket.shutdown(std::net::Shutdown::Write);
    let mut tally = StreamResult::new(ended, &window, &worker.meter);
    tally.error = failure;
    tally.copied = copied;
    tally.late = late;
    tally.pacing = match pacing {
        Some((.., chosen)) => Some(chosen),
        None => (asked.pacing == Pacing::Kernel).then(|| (Pacing::Kernel, "as requested".to_owned())),
    };
    tally
}

fn failed(error: &io::Error, failure: &mut Option<ProtocolError>) -> EndReason {
    match error.raw_os_error() {
        Some(libc::EPIPE | libc::ECONNRESET) => EndReason::Peer,
        _ => {
            *failure = Some(ProtocolError::system("send", error));
            EndReason::Failed
        }
    }
}
