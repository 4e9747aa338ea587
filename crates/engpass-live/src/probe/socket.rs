//! TCP over loopback: what copies cost a sender and a receiver, against ways that leave them out.
//!
//! No device is on the way, so nothing here is DMA, and the receiver's protocol work runs in the sender's calls: what can be compared is the CPU
//! time of both ends together.

use std::io;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use schemars::JsonSchema;
use serde::Serialize;
use socket2::{Domain, Socket, Type};

use super::statistic::{Spread, spread};
use super::sys;

/// How the sender hands its data over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Sending {
    /// `send`: the kernel copies.
    Copy,
    /// `sendfile` from a file in memory: the kernel passes pages on.
    Sendfile,
    /// `send` with `MSG_ZEROCOPY`: pages of the program are pinned and passed on, or copied after all.
    Zerocopy,
}

/// How the receiver takes them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Receiving {
    /// `recv`: the kernel copies.
    Copy,
    /// `recv` with `MSG_TRUNC`: thrown away without a copy.
    Discard,
}

/// One way of sending and receiving.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Stream {
    /// How data are sent.
    pub sending: Sending,
    /// How they are received.
    pub receiving: Receiving,
    /// Bytes of one call of the sender.
    pub message: u64,
    /// Bytes per second.
    pub rate: Spread,
    /// Seconds of the sender's thread for 10^9 bytes, the work of both protocol ends included.
    pub send_cpu: f64,
    /// Seconds of the receiver's thread for 10^9 bytes.
    pub receive_cpu: f64,
    /// Both in each round, the sender's first, to compare ways round by round.
    pub cpus: Vec<[f64; 2]>,
    /// Of zero-copy sends, the share that the kernel copied all the same; `None` for other ways.
    pub copied: Option<f64>,
    /// Congestion control that was in force.
    pub congestion: String,
}

/// The ways that are measured, the usual one first.
pub(super) const WAYS: [(Sending, Receiving); 6] = [
    (Sending::Copy, Receiving::Copy),
    (Sending::Copy, Receiving::Discard),
    (Sending::Sendfile, Receiving::Copy),
    (Sending::Sendfile, Receiving::Discard),
    (Sending::Zerocopy, Receiving::Copy),
    (Sending::Zerocopy, Receiving::Discard),
];

/// Bytes of a call.
pub(super) const MESSAGE: usize = 128 << 10;
/// Bytes of the file that `sendfile` and of the buffer that the others send from, again and again: they stay in the caches, as the copies do.
const SOURCE: usize = 1 << 20;

struct Sample {
    rate: f64,
    send_cpu: f64,
    receive_cpu: f64,
    copied: Option<f64>,
    congestion: String,
}

/// Measure all ways, `rounds` times in turn, forwards and then backwards, each for so long.
///
/// # Errors
/// When the loopback interface cannot be used.
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

/// One connection for so long.
fn stream(sending: Sending, receiving: Receiving, each: Duration) -> io::Result<Sample> {
    // What stands still for so long is broken, and ends with an error.
    const PATIENCE: Duration = Duration::from_secs(5);
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let sender = Socket::new(Domain::IPV4, Type::STREAM, None)?;
    // One that paces (BBR) would measure its own pacing; and what paces when it connects goes on to do so.
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
        let (received, receive_cpu) = taking.join().expect("it only receives")?;
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
    /// Wall clock and CPU time in nanoseconds.
    time: u64,
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
    // One call at least: a thread that has no CPU until the end has a time per byte all the same.
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
    // The pages may go only when the kernel has done with them.
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

/// Bytes until the sender is done, and the CPU time of this thread in nanoseconds.
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
    fn a_sender_that_comes_too_late_sends_once() {
        for stream in streams(1, Duration::ZERO).unwrap() {
            assert!(stream.rate.best > 0.0 && stream.send_cpu.is_finite(), "{stream:?}");
            assert!(stream.receive_cpu.is_finite(), "{stream:?}");
        }
    }

    #[test]
    fn every_way_moves_data_and_says_whether_it_copied() {
        let found = streams(2, Duration::from_millis(30)).unwrap();
        assert_eq!(found.len(), WAYS.len());
        for stream in &found {
            assert!(stream.rate.best > 1e6 && stream.send_cpu > 0.0, "{stream:?}");
            assert_eq!(stream.cpus.len(), 2);
            assert_eq!(stream.copied.is_some(), stream.sending == Sending::Zerocopy, "{stream:?}");
        }
        // There is no device behind loopback that could fetch the pages (the kernel's own document on MSG_ZEROCOPY says so).
        for stream in found.iter().filter(|stream| stream.sending == Sending::Zerocopy) {
            assert_eq!(stream.copied, Some(1.0));
        }
    }
}
