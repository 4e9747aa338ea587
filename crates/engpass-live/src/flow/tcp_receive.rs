//! The receiving end of a TCP stream.

use socket2::Socket;

use super::control::EndReason;
use super::socket::{NAP, is_timeout};
use super::stream_result::{StreamResult, Window};
use super::worker::{SILENCE, Worker};
use crate::protocol_error::ProtocolError;
use crate::sys::{clock, send};

/// Size of the read buffer in bytes: large, but it leaves room for other data in a core's second-level cache.
const BUFFER: usize = 128 << 10;

/// If a read returns a number of bytes in this range, the stream is fast and the socket nearly empty, so a nap is worth while.
const SMALL: std::ops::Range<usize> = 4096..65_536;

/// Receives until the peer closes, a limit is reached, nothing arrives for `SILENCE`, or the flow is stopped.
pub(crate) fn run(worker: &Worker) -> StreamResult {
    let asked = &worker.spec.asked;
    let mut buffer = vec![0; BUFFER];
    // `tcp(7)`: with MSG_TRUNC the kernel discards the bytes and returns their number.
    let flags = if asked.truncate { libc::MSG_TRUNC } else { 0 };
    let allowed = worker.spec.limits.bytes.map_or(u64::MAX, |bytes| bytes / u64::from(asked.streams));
    let (mut bytes, mut messages) = (0_u64, 0_u64);
    let mut window = Window::new(u64::MAX, None);
    let mut heard = clock::now();
    let mut deadline = heard + SILENCE;
    let mut failure = None;
    let ended = loop {
        match send::receive(&*worker.socket, &mut buffer, flags) {
            Ok(0) => break EndReason::Peer,
            Ok(count) => {
                let now = clock::now();
                if bytes == 0 {
                    worker.meter.began(now);
                    window = Window::new(now + asked.warmup_ns, asked.duration_ns);
                    deadline = worker.deadline(now);
                }
                if now >= window.next() {
                    // The bytes just received belong to the time after the edge of the window.
                    window.pass(now, &worker.meter, &worker.socket);
                }
                bytes += count as u64;
                messages += 1;
                heard = now;
                worker.meter.set(bytes, messages);
                if SMALL.contains(&count) {
                    clock::sleep_until(now + NAP);
                }
                if bytes > allowed {
                    break EndReason::LimitBytes;
                }
                if now >= deadline {
                    break EndReason::LimitTime;
                }
                if worker.control.stopped() {
                    break worker.why(EndReason::Stopped);
                }
            }
            Err(error) if is_timeout(&error) => {
                let now = clock::now();
                if now >= window.next() {
                    window.pass(now, &worker.meter, &worker.socket);
                }
                if worker.control.stopped() {
                    break worker.why(EndReason::Stopped);
                }
                if now >= heard.saturating_add(SILENCE) {
                    break EndReason::Silent;
                }
                if now >= deadline {
                    break EndReason::LimitTime;
                }
            }
            Err(error) if error.raw_os_error() == Some(libc::ECONNRESET) => break EndReason::Peer,
            Err(error) => {
                failure = Some(ProtocolError::system("receive", &error));
                break EndReason::Failed;
            }
        }
    };
    // If traffic stops before the window does, the window ends with the last byte, not with the silence after it.
    window.close(heard, &worker.meter, &worker.socket);
    dismiss(&worker.socket, &mut buffer);
    let mut tally = StreamResult::new(ended, &window, &worker.meter);
    tally.error = failure;
    tally
}

/// Closes the connection so that the sender notices: the kernel answers further data with a reset (RFC 1122 section 4.2.2.13). Drains the socket first,
/// because a sender with a zero window sends no data that could be answered.
fn dismiss(socket: &Socket, buffer: &mut [u8]) {
    let _ = socket.shutdown(std::net::Shutdown::Both);
    while send::receive(socket, buffer, 0).is_ok_and(|count| count > 0) {}
}

#[cfg(test)]
mod tests {
    use std::io::{ErrorKind, Write};
    use std::net::{TcpListener, TcpStream};
    use std::time::Duration;

    use super::*;

    #[test]
    fn dismissing_a_blocked_sender_gives_it_a_connection_error() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("loopback is available");
        let mut sender = TcpStream::connect(listener.local_addr().expect("the socket is bound"))
            .expect("the port is open");
        let receiver: Socket = listener.accept().expect("a peer has connected").0.into();
        sender.set_write_timeout(Some(Duration::from_millis(300))).expect("the time-out is valid");
        let data = vec![0; 1 << 20];
        // Send until both socket buffers are full.
        while sender.write(&data).is_ok() {}
        sender.set_write_timeout(Some(Duration::from_secs(20))).expect("the time-out is valid");
        dismiss(&receiver, &mut vec![0; BUFFER]);
        let error = loop {
            if let Err(error) = sender.write(&data) {
                break error;
            }
        };
        assert!(matches!(error.kind(), ErrorKind::ConnectionReset | ErrorKind::BrokenPipe), "{error}");
    }
}
