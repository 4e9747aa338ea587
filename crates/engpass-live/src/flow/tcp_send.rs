//! The sending end of a TCP stream.

use std::io;

use socket2::Socket;

use super::control::{Control, EndReason};
use super::pacing::{Pacing, in_time};
use super::schedule::Schedule;
use super::socket::is_timeout;
use super::stream_result::{StreamResult, Window};
use super::worker::{SILENCE, Worker};
use super::writer::Writer;
use crate::protocol_error::{ErrorContext, ProtocolError};
use crate::statistics::Distribution;
use crate::sys::{clock, option};
use crate::time::MILLISECOND;

/// Maximum number of bytes written between two reads of the clock.
const STRIDE: u64 = 64 << 10;

/// Time between two looks at the acknowledgements of a transfer, in ns.
const LOOK: u64 = 5 * MILLISECOND;

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
    if ended == EndReason::Bytes {
        await_acknowledgements(&mut window, &worker.socket, &worker.control, end);
    }
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

/// Reads the kernel's counters until the peer has acknowledged a whole transfer, the flow's time is over at `end`, or the flow is stopped: segments that are
/// lost after the last write are repeated in this time. Without an end of the flow the wait is limited like that of a receiver.
fn await_acknowledgements(window: &mut Window, socket: &Socket, control: &Control, end: u64) {
    let due = end.min(clock::now().saturating_add(SILENCE));
    while !window.recount(socket) && clock::now() < due && !control.stopped() {
        control.wait_until(due.min(clock::now() + LOOK), || control.stopped());
    }
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

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};

    use super::super::control::Meter;
    use super::*;

    /// A sender with a closed window, whose data fill both socket buffers, and a receiver that has not read any of it.
    fn full() -> (Socket, TcpStream, Window) {
        let listener = TcpListener::bind("127.0.0.1:0").expect("loopback is available");
        let sender = TcpStream::connect(listener.local_addr().expect("the socket is bound"));
        let mut sender = sender.expect("the port is open");
        let receiver = listener.accept().expect("a peer has connected").0;
        sender.set_nonblocking(true).expect("the socket can be changed");
        while sender.write(&[0; 1 << 16]).is_ok() {}
        let (sender, meter) = (Socket::from(sender), Meter::default());
        sender.shutdown(std::net::Shutdown::Write).expect("the socket is connected");
        let mut window = Window::new(0, None);
        window.pass(clock::now(), &meter, &sender);
        window.close_now(&meter, &sender);
        (sender, receiver, window)
    }

    #[test]
    fn counters_of_a_transfer_are_read_again_until_the_last_acknowledgement() {
        let (sender, mut receiver, mut window) = full();
        let before = StreamResult::new(EndReason::Bytes, &window, &Meter::default());
        let read = std::thread::spawn(move || receiver.read_to_end(&mut Vec::new()));
        await_acknowledgements(&mut window, &sender, &Control::default(), u64::MAX);
        let count = read.join().expect("the reader does not panic").expect("the stream ends") as u64;
        let after = StreamResult::new(EndReason::Bytes, &window, &Meter::default());
        let [early, late] = [before.tcp, after.tcp].map(|tcp| tcp[1].expect("the kernel reports TCP_INFO"));
        assert!(early.get("bytes_acked") < Some(count), "{}", early.to_json());
        assert!(late.get("bytes_acked") >= Some(count), "{}", late.to_json());
        assert_eq!(before.elapsed, after.elapsed);
    }

    #[test]
    fn wait_for_acknowledgements_ends_with_the_flow() {
        let (sender, _receiver, mut window) = full();
        let control = Control::default();
        let end = clock::now() + 20 * MILLISECOND;
        await_acknowledgements(&mut window, &sender, &control, end);
        assert!(clock::now() >= end);
        control.stop(EndReason::Stopped);
        await_acknowledgements(&mut window, &sender, &control, u64::MAX);
        assert!(!window.recount(&sender), "the receiver has read nothing");
    }
}
