//! Datagrams per second through this host's network stack, over loopback.

use std::io;
use std::net::{Ipv4Addr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use schemars::JsonSchema;
use serde::Serialize;

use super::sample_stats::spread;
use super::sys;

/// How datagrams are passed to the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Calls {
    /// One call per datagram.
    Send,
    /// 64 datagrams per `sendmmsg` call.
    Batch,
    /// 64 datagrams per call with `UDP_SEGMENT`: one trip through the stack.
    Segmented,
}

/// Throughput of datagrams with one kind of call.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Packets {
    /// How the datagrams are passed to the kernel.
    pub calls: Calls,
    /// Payload of each datagram in bytes.
    pub payload: u64,
    /// Datagrams sent per second: the median of the rounds.
    pub sent: f64,
    /// Datagrams received per second: the median of the rounds.
    pub received: f64,
    /// CPU time of the sending thread per datagram in microseconds, including the receiver's protocol work: the least of the rounds.
    pub cpu_us: f64,
}

/// Payload of a short datagram in bytes.
pub(super) const SHORT: usize = 64;
const BATCH: usize = 64;

/// Measures each kind of call in turn, `rounds` times, for `each`.
///
/// # Errors
/// Fails when the loopback interface cannot be used.
pub(super) fn packets(rounds: usize, each: Duration) -> io::Result<Vec<Packets>> {
    const WAYS: [Calls; 3] = [Calls::Send, Calls::Batch, Calls::Segmented];
    let mut found: [Vec<Packets>; WAYS.len()] = Default::default();
    for _ in 0..rounds {
        for (calls, found) in WAYS.into_iter().zip(&mut found) {
            found.push(one(calls, each)?);
        }
    }
    let all = WAYS.into_iter().zip(&found).map(|(calls, found)| {
        let of = |value: fn(&Packets) -> f64| spread(&found.iter().map(value).collect::<Vec<_>>());
        Packets {
            calls,
            payload: SHORT as u64,
            sent: of(|one| one.sent).median,
            received: of(|one| one.received).median,
            cpu_us: of(|one| one.cpu_us).least,
        }
    });
    Ok(all.collect())
}

fn one(calls: Calls, each: Duration) -> io::Result<Packets> {
    let receiver = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
    let sender = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
    sender.connect(receiver.local_addr()?)?;
    receiver.set_read_timeout(Some(Duration::from_millis(100)))?;
    // Ask for a large buffer. A smaller one only loses datagrams.
    let _ = sys::option(&receiver, libc::SOL_SOCKET, libc::SO_RCVBUF, 8 << 20);
    let many = vec![0; SHORT * BATCH];
    if calls == Calls::Segmented {
        const UDP_SEGMENT: i32 = 103;
        sys::option(&sender, libc::SOL_UDP, UDP_SEGMENT, SHORT as i32)?;
    }
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let taking = std::thread::Builder::new().spawn_scoped(scope, || {
            let mut buffer = vec![0; SHORT * BATCH];
            let mut count = 0_u64;
            while !over.load(Ordering::Relaxed) {
                if sys::receive(&receiver, &mut buffer, 0).is_ok() {
                    count += 1;
                }
            }
            // Datagrams that are still in the socket count as received.
            while sys::receive(&receiver, &mut buffer, libc::MSG_DONTWAIT).is_ok() {
                count += 1;
            }
            count
        })?;
        let (begin, begin_cpu) = (sys::now(), sys::thread_cpu());
        let end = begin + each.as_nanos() as u64;
        let mut sent = 0_u64;
        let mut failed = None;
        while failed.is_none() && sys::now() < end {
            let taken = match calls {
                Calls::Send => sys::send(&sender, &many[..SHORT], 0).map(|_| 1),
                Calls::Batch => sys::send_many(&sender, &many[..SHORT], BATCH),
                Calls::Segmented => sys::send(&sender, &many, 0).map(|_| BATCH),
            };
            match taken {
                Ok(count) => sent += count as u64,
                Err(error) if error.raw_os_error() == Some(libc::ENOBUFS) => {}
                Err(error) => failed = Some(error),
            }
        }
        let (time, cpu) = (sys::now() - begin, sys::thread_cpu() - begin_cpu);
        over.store(true, Ordering::Relaxed);
        let received = taking.join().expect("the receiving thread does not panic");
        match failed {
            Some(error) => Err(error),
            None => Ok(Packets {
                calls,
                payload: SHORT as u64,
                sent: sent as f64 * 1e9 / time as f64,
                received: received as f64 * 1e9 / time as f64,
                cpu_us: cpu as f64 / 1e3 / (sent.max(1)) as f64,
            }),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_packet_rates_are_measured() {
        for found in packets(2, Duration::from_millis(30)).unwrap() {
            assert!(
                found.sent > 100.0 && found.received <= found.sent * 1.01 && found.cpu_us > 0.0,
                "{found:?}"
            );
        }
    }
}
