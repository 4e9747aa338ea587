//! The receiving end of a TCP stream.

use super::control::Ended;
use super::socket::{NAP, is_patience};
use super::tally::{Tally, Window};
use super::worker::{SILENCE, Worker};
use crate::problem::Problem;
use crate::sys::{clock, send};

/// Room for one read: as much as fits into a core's second-level cache beside what else is there.
const BUFFER: usize = 128 << 10;

/// A read of so many bytes is one of many in a fast stream, and found less than a moment's worth.
const SMALL: std::ops::Range<usize> = 4096..65_536;

/// Receive until the peer ends, or somebody says stop.
pub(crate) fn run(worker: &Worker) -> Tally {
    let asked = &worker.spec.asked;
    let mut buffer = vec![0; BUFFER];
    // `tcp(7)`: the kernel throws the bytes away and says how many.
    let flags = if asked.truncate { libc::MSG_TRUNC } else { 0 };
    let allowed = worker.spec.limits.bytes.map_or(u64::MAX, |bytes| bytes / u64::from(asked.streams));
    let (mut bytes, mut messages) = (0_u64, 0_u64);
    let mut window = Window::new(u64::MAX, None);
    let mut heard = clock::now();
    let mut deadline = heard + SILENCE;
    let mut failure = None;
    let ended = loop {
        match send::receive(&*worker.socket, &mut buffer, flags) {
            Ok(0) => break Ended::Peer,
            Ok(count) => {
                let now = clock::now();
                if bytes == 0 {
                    worker.meter.began(now);
                    window = Window::new(now + asked.warmup_ns, asked.duration_ns);
                    deadline = worker.deadline(now);
                }
                if now >= window.next() {
                    // What has just come belongs to what follows.
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
                    break Ended::LimitBytes;
                }
                if now >= deadline {
                    break Ended::LimitTime;
                }
                if worker.control.stopped() {
                    break worker.why(Ended::Stopped);
                }
            }
            Err(error) if is_patience(&error) => {
                let now = clock::now();
                if now >= window.next() {
                    window.pass(now, &worker.meter, &worker.socket);
                }
                if worker.control.stopped() {
                    break worker.why(Ended::Stopped);
                }
                if now >= heard.saturating_add(SILENCE) {
                    break Ended::Silent;
                }
                if now >= deadline {
                    break Ended::LimitTime;
                }
            }
            Err(error) if error.raw_os_error() == Some(libc::ECONNRESET) => break Ended::Peer,
            Err(error) => {
                failure = Some(Problem::system("receive", &error));
                break Ended::Failed;
            }
        }
    };
    // A window that the traffic did not fill ends with the last byte, not with the silence after it.
    window.close(heard, &worker.meter, &worker.socket);
    // A sender that is over its limits is told so at once.
    let _ = worker.socket.shutdown(std::net::Shutdown::Both);
    let mut tally = Tally::new(ended, &window, &worker.meter);
    tally.error = failure;
    tally
}
