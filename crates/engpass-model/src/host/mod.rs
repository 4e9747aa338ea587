//! Hosts: what sending and receiving costs them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::unit::{Duration, Share, Size};

/// A host: a CPU that pays for every datagram, sockets, and a NIC whose full queue holds the sender back.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Host {
    /// CPU time of sending.
    pub cost: Cost,
    /// CPU time of receiving. Without it the host receives as fast as the link delivers.
    pub receive_cost: Cost,
    /// Times when the sending process does not run.
    pub pauses: Option<Pauses>,
    /// Receive buffer of a UDP socket, counted in payload bytes. A datagram that does not fit is lost.
    pub receive_buffer: Size,
    /// Memory of the NIC for frames on their way out. When it is full the sending process waits: nothing is lost.
    pub nic_buffer: Size,
}

impl Default for Host {
    fn default() -> Self {
        Self {
            cost: Cost::default(),
            receive_cost: Cost::default(),
            pauses: None,
            receive_buffer: Size(64 << 10),
            nic_buffer: Size(512 << 10),
        }
    }
}

/// CPU time of the parts of sending or receiving. What is not named costs nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Cost {
    /// For every UDP datagram: the system call and UDP.
    pub per_datagram: Option<Duration>,
    /// For every IP packet of a datagram: IP and the driver.
    pub per_fragment: Option<Duration>,
    /// For every byte of payload: copy and checksum.
    pub per_byte: Option<Duration>,
    /// For every write of a TCP application.
    pub per_write: Option<Duration>,
    /// For every TCP segment.
    pub per_segment: Option<Duration>,
    /// For every TCP acknowledgement.
    pub per_ack: Option<Duration>,
}

impl Cost {
    /// CPU time in picoseconds of one UDP datagram with `bytes` of payload in `fragments` IP packets.
    pub fn datagram(&self, bytes: u64, fragments: u64) -> u64 {
        ps(self.per_datagram) + fragments * ps(self.per_fragment) + bytes * ps(self.per_byte)
    }

    /// CPU time in picoseconds of handing over one IP packet with `bytes` of UDP payload.
    pub fn fragment(&self, bytes: u64) -> u64 {
        ps(self.per_fragment) + bytes * ps(self.per_byte)
    }

    /// CPU time in picoseconds before the first IP packet of a datagram.
    pub fn datagram_start(&self) -> u64 {
        ps(self.per_datagram)
    }
}

/// Picoseconds of a cost that may not be named.
pub fn ps(cost: Option<Duration>) -> u64 {
    cost.map_or(0, |cost| cost.0)
}

/// Pauses of the sending process: before a share of the messages it does not run for a while.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Pauses {
    /// Share of the messages that a pause precedes.
    pub share: Share,
    /// Mean length; lengths are exponentially distributed.
    pub mean: Duration,
}
