//! Counters of the driver: packets read, written and not carried.

use std::io;

use serde_json::{Map, Value, json};

use super::packet::Packet;

/// Reason why the driver does not carry a packet from or to a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Discard {
    /// The driver cannot parse the packet.
    Malformed,
    /// Broadcast or an unused multicast group; also a frame without an IP packet that needs no answer.
    Group,
    /// No host has its destination address.
    Unknown,
    /// No path leads from the sender to the destination host.
    NotJoined,
    /// The packet is longer than the MTU of the path.
    TooLong,
    /// The packet has arrived at a host whose device is down, as devices are while `engpass up` sets up the hosts one by one.
    Down,
}

const NAMES: [&str; 6] = ["malformed", "group", "unknown", "not-joined", "too-long", "down"];

/// Counters of one host. Each segment of a GSO packet counts as a packet.
#[derive(Clone, Debug, Default)]
pub(super) struct HostCounts {
    sent_packets: u64,
    sent_bytes: u64,
    reads: u64,
    received_packets: u64,
    received_bytes: u64,
    writes: u64,
    discarded: [u64; 6],
    failures: u64,
    last_failure: Option<String>,
}

impl HostCounts {
    #[inline]
    pub(super) fn read(&mut self, packet: &Packet) {
        self.reads += 1;
        self.sent_packets += u64::from(packet.segments());
        self.sent_bytes += packet.bytes_of(0..packet.segments());
    }

    #[inline]
    pub(super) fn wrote(&mut self, packets: u32, packet: &Packet, first: u32) {
        self.writes += 1;
        self.received_packets += u64::from(packets);
        self.received_bytes += packet.bytes_of(first..first + packets);
    }

    /// Counts an ICMP message of `bytes` bytes that was written.
    pub(super) fn wrote_message(&mut self, bytes: usize) {
        self.writes += 1;
        self.received_packets += 1;
        self.received_bytes += bytes as u64;
    }

    #[cold]
    pub(super) fn discard(&mut self, why: Discard, packets: u32) {
        self.discarded[why as usize] += u64::from(packets);
    }

    pub(super) fn to_json(&self) -> Value {
        let discarded: Map<String, Value> = NAMES
            .iter()
            .zip(self.discarded)
            .map(|(name, count)| ((*name).to_owned(), json!(count)))
            .collect();
        json!({
            "sent_packets": self.sent_packets,
            "sent_bytes": self.sent_bytes,
            "reads": self.reads,
            "received_packets": self.received_packets,
            "received_bytes": self.received_bytes,
            "writes": self.writes,
            "discarded": discarded,
            "failures": self.failures,
            "last_failure": self.last_failure,
        })
    }
}

/// Counters of all hosts and paths.
pub(super) struct Counts {
    pub(super) hosts: Vec<HostCounts>,
    /// Packets dropped in the network, by path.
    pub(super) lost: Vec<u64>,
}

impl Counts {
    pub(super) fn new(hosts: usize, ways: usize) -> Self {
        Self { hosts: vec![HostCounts::default(); hosts], lost: vec![0; ways] }
    }

    /// Counts a failed write of packets to a device. For a device that is down Linux returns `EIO`, which counts as a discard, not as a failure.
    #[cold]
    pub(super) fn failed_write(&mut self, host: usize, packets: u32, error: &io::Error) {
        if error.raw_os_error() == Some(libc::EIO) {
            self.hosts[host].discard(Discard::Down, packets);
        } else {
            self.failed(host, error);
        }
    }

    /// Counts a failed read or write of a device.
    #[cold]
    pub(super) fn failed(&mut self, host: usize, error: &io::Error) {
        let count = &mut self.hosts[host];
        count.failures += 1;
        count.last_failure = Some(error.to_string());
    }
}
