//! What the driver counts: what was read and written, and what it does not carry.

use std::io;

use serde_json::{Map, Value, json};

use super::packet::Packet;

/// Why a packet of a device is not carried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Discard {
    /// It is no packet that the driver can read.
    Malformed,
    /// To all or to a group.
    Group,
    /// To an address that no host has.
    Unknown,
    /// To a host that is not joined with the sender.
    NotJoined,
    /// Longer than the way's MTU.
    TooLong,
}

const NAMES: [&str; 5] = ["malformed", "group", "unknown", "not-joined", "too-long"];

/// Of one host. Packets are those into which super-packets are cut.
#[derive(Clone, Debug, Default)]
pub(super) struct HostCounts {
    sent_packets: u64,
    sent_bytes: u64,
    reads: u64,
    received_packets: u64,
    received_bytes: u64,
    writes: u64,
    discarded: [u64; 5],
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

    /// A router's message of so many bytes was written.
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

/// Of all.
pub(super) struct Counts {
    pub(super) hosts: Vec<HostCounts>,
    /// Packets that the network lost, by way.
    pub(super) lost: Vec<u64>,
}

impl Counts {
    pub(super) fn new(hosts: usize, ways: usize) -> Self {
        Self { hosts: vec![HostCounts::default(); hosts], lost: vec![0; ways] }
    }

    /// A device did not take or give a packet.
    #[cold]
    pub(super) fn failed(&mut self, host: usize, error: &io::Error) {
        let count = &mut self.hosts[host];
        count.failures += 1;
        count.last_failure = Some(error.to_string());
    }
}
