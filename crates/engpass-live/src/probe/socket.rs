//! TCP over loopback: the cost of copies at sender and receiver, measured against methods that avoid them.
//!
//! There is no device on the path, so nothing here is DMA. The receiver's protocol work runs inside the sender's calls, so the sender's CPU time includes it.

use std::io;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use schemars::JsonSchema;
use serde::Serialize;
use socket2::{Domain, Socket, Type};

use super::sample_stats::{Spread, spread};
use super::sys;

/// How the sender passes its data to the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Sending {
    /// `send`: the kernel copies the data.
    Copy,
    /// `sendfile` from a file in memory: the kernel passes pages on without a copy.
    Sendfile,
    /// `send` with `MSG_ZEROCOPY`: the kernel pins the program's pages and passes them on, or copies them after all.
    Zerocopy,
}

/// How the receiver takes the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Receiving {
    /// `recv`: the kernel copies the data.
    Copy,
    /// `recv` with `MSG_TRUNC`: the kernel discards the data without a copy.
    Discard,
}

/// Measurement of one combination of sending and receiving.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Stream {
    /// How the data is sent.
    pub sending: Sending,
    /// How the data is received.
    pub receiving: Receiving,
    /// Bytes per call of the sender.
    pub message: u64,
    /// Throughput in bytes per second.
    pub rate: Spread,
    /// CPU seconds of the sending thread per 10^9 bytes, including the protocol work of both ends.
    pub send_cpu: f64,
    /// CPU seconds of the receiving thread per 10^9 bytes.
    pub receive_cpu: f64,
    /// `send_cpu` and `receive_cpu` of each round, to compare streams round by round.
    pub cpus: Vec<[f64; 2]>,
    /// Fraction of zero-copy sends that the kernel copied after all; `None` for other methods.
    pub copied: Option<f64>,
    /// Congestion control of the sender.
    pub congestion: String,
}

/// The combinations of sending and receiving that are measured, the usual one first.
pub(super) const WAYS: [(Sending, Receiving); 6] = [
    (Sending::Copy, Receiving::Copy),
    (Sending::Copy, Receiving::Discard),
    (Sending::Sendfile, Receiving::Copy),
    (Sending::Sendfile, Receiving::Discard),
    (Sending::Zerocopy, Receiving::Copy),
    (Sending::Zerocopy, Receiving::Discard),
];

/// Bytes per call.
pub(super) const MESSAGE: usize = 128 << 10;
/// Size in bytes of the file or buffer that the data comes from. It is sent again and again, so it stays in the caches, as do its copies.
const SOURCE: usize = 1 << 20;

struct Sample {
    rate: f64,
    send_cpu: f64,
    receive_cpu: f64,
    copied: Option<f64>,
    congestion: String,
}

/// Measures all combinations in turn, `rounds` times, forwards and backwards alternately; each measurement lasts `each`.
///
/// # Errors
/// Fails when the loopback interface cannot be used.
pub(super) fn streams(rounds: usize, each: Duration) -> io::Result<Vec<Stream>> {
    let mut samples: Vec<Vec<Sample>> = WAYS.iter().map(|_| Vec::new()).collect();
    for round in 0..rounds {
        for turn in 0..WAYS.len() {
            let way = if round % 2 == 0 { turn } else { WAYS.len() - 1 - turn };
            samples[way].push(stream(WAYS[way].0, WAYS[way].1, each)?);
        }
    }
    let all = WAYS.iter().zip(samples).map(|((sending, receiving), samples)| {
        let middle = |value: fn(&Sample) -> f64| spread(&samples.iter().map(value).collect::<Vec<_>>());
        let copied: Option<Vec<f64>> = samples.iter().map(|sample| sample.copied).collect();
        Stream {
            sending: *sending,
            receiving: *receiving,
            message: MESSAGE as u64,
            rate: middle(|sample| sample.rate),
            send_cpu: middle(|sample| sample.send_cpu).median,
            receive_cpu: middle(|sample| sample.receive_cpu).median,
            cpus: samples.iter().map(|sample| [sample.send_cpu, sample.receive_cpu]).collect(),
            copied: copied.map(|shares| spread(&shares).median),
            congestion: samples[0].congestion.clone(),
        }
    });
    Ok(all.collect())
}

/// Runs one connection for `each`.
fn stream(sending: Sending, receiving: Receiving, each: Duration) -> io::Result<Sample> {
    // A call that blocks for this long is broken and ends with an error.
    const PATIENCE: Duration = Duration::from_secs(5);
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let sender = Socket::new(Domain::IPV4, Type::STREAM, None)?;
    // BBR paces and would measure its own pacing. The change must come before the connect, because a socket that paces when it connects goes on pacing.
    let congestion = sys::congestion(&sender, "cubic");
    sender.connect(&listener.local_addr()?.into())?;
    let sender = TcpStream::from(sender);
    let (receiver, _) = listener.accept()?;
    drop(listener);
    sender.set_write_timeout(Some(PATIENCE))?;
    receiver.set_read_timeout(Some(PATIENCE))?;
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let taking =
            std::thread::Builder::new().spawn_scoped(scope, || receive(&receiver, receiving, &over))?;
        let sent = send(&sender, sending, each);
        over.store(true, Ordering::Relaxed);
        drop(sender);
        let (received, receive_cpu) = taking.join().expect("the receiving thread does not panic")?;
        let sent = sent?;
        let billion = received as f64 / 1e9;
        Ok(Sample {
            rate: received as f64 * 1e9 / sent.time.max(1) as f64,
            send_cpu: sent.cpu as f64 / 1e9 / billion,
            receive_cpu: receive_cpu as f64 / 1e9 / billion,
            copied: sent.copied,
            congestion,
        })
    })
}

struct Sent {
    /// Wall-clock time in nanoseconds.
    time: u64,
    /// CPU time of the thread in nanoseconds.
    cpu: u64,
    copied: Option<f64>,
}

fn send(socket: &TcpStream, sending: Sending, each: Duration) -> io::Result<Sent> {
    let source = sys::Region::new(SOURCE)?;
    let file = sys::memory_file(SOURCE as u64)?;
    if sending == Sending::Zerocopy {
        sys::option(socket, libc::SOL_SOCKET, libc::SO_ZEROCOPY, 1)?;
    }
    let (begin, begin_cpu) = (sys::now(), sys::thread_cpu());
    let end = begin + each.as_nanos() as u64;
    let (mut at, mut outstanding, mut done) = (0, 0_u64, sys::Completed::default());
    // At least one call, so that a thread that gets no CPU until the end still has a CPU time per byte.
    loop {
        let part = &source.bytes()[at..at + MESSAGE];
        match sending {
            Sending::Copy => sys::send(socket, part, 0)?,
            Sending::Sendfile => sys::send_file(socket, &file, at as u64, MESSAGE)?,
            Sending::Zerocopy => match sys::send(socket, part, libc::MSG_ZEROCOPY) {
                Ok(sent) => {
                    outstanding += 1;
                    sent
                }
                // Too many sends wait for their completion.
                Err(error) if error.raw_os_error() == Some(libc::ENOBUFS) => 0,
                Err(error) => return Err(error),
            },
        };
        at = (at + MESSAGE) % SOURCE;
        if sending == Sending::Zerocopy {
            complete(socket, &mut outstanding, &mut done);
        }
        if sys::now() >= end {
            break;
        }
    }
    let sent = Sent { time: sys::now() - begin, cpu: sys::thread_cpu() - begin_cpu, copied: None };
    // The source must stay until the kernel has finished reading it.
    let patience = sys::now() + 2_000_000_000;
    while outstanding > 0 && sys::now() < patience {
        sys::wait_for_errors(socket, 50);
        complete(socket, &mut outstanding, &mut done);
    }
    let copied = (done.sends > 0).then(|| done.copied as f64 / done.sends as f64);
    Ok(Sent { copied, ..sent })
}

fn complete(socket: &TcpStream, outstanding: &mut u64, done: &mut sys::Completed) {
    let now = sys::completions(socket);
    *outstanding = outstanding.saturating_sub(now.sends);
    done.sends += now.sends;
    done.copied += now.copied;
}

/// Receives until the sender closes or is done. Returns the bytes received and the CPU time of this thread in nanoseconds.
fn receive(socket: &TcpStream, receiving: Receiving, over: &AtomicBool) -> io::Result<(u64, u64)> {
    let mut buffer = sys::Region::new(256 << 10)?;
    let flags = match receiving {
        Receiving::Copy => 0,
        Receiving::Discard => libc::MSG_TRUNC,
    };
    let begin = sys::thread_cpu();
    let mut bytes = 0;
    loop {
        match sys::receive(socket, buffer.bytes_mut(), flags) {
            Ok(0) => return Ok((bytes, sys::thread_cpu() - begin)),
            Ok(more) => bytes += more as u64,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock && over.load(Ordering::Relaxed) => {
                return Ok((bytes, sys::thread_cpu() - begin));
            }
            Err(error) => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stream_of_zero_duration_sends_once() {
        for stream in streams(1, Duration::ZERO).unwrap() {
            assert!(stream.rate.best > 0.0 && stream.send_cpu.is_finite(), "{stream:?}");
            assert!(stream.receive_cpu.is_finite(), "{stream:?}");
        }
    }

    #[test]
    fn every_stream_method_moves_data_and_reports_copies() {
        let found = streams(2, Duration::from_millis(30)).unwrap();
        assert_eq!(found.len(), WAYS.len());
        for stream in &found {
            assert!(stream.rate.best > 1e6 && stream.send_cpu > 0.0, "{stream:?}");
            assert_eq!(stream.cpus.len(), 2);
            assert_eq!(stream.copied.is_some(), stream.sending == Sending::Zerocopy, "{stream:?}");
        }
        // The kernel's documentation of MSG_ZEROCOPY says that loopback always copies, because there is no device to fetch the pages.
        for stream in found.iter().filter(|stream| stream.sending == Sending::Zerocopy) {
            assert_eq!(stream.copied, Some(1.0));
        }
    }
}
