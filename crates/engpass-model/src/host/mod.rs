//! Hosts: what sending and receiving costs them.

mod reach;

pub use reach::{Address, Reach};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::complaint::{Complaints, LONGEST};
use crate::tcp::TcpConfig;
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
    /// TCP of this host: the profile of a real stack, and what differs from it.
    pub tcp: TcpConfig,
    /// How a measurement reaches this host: `local`, `netns NAME` or `ssh USER@HOST`. Where no host says it, the hosts are
    /// made as network namespaces of this machine. Only for `measure`.
    pub reach: Option<Reach>,
    /// Where the other hosts send to this one in a measurement; its agent's first address if not given. Only for `measure`.
    pub address: Option<Address>,
}

impl Default for Host {
    fn default() -> Self {
        Self {
            cost: Cost::default(),
            receive_cost: Cost::default(),
            pauses: None,
            receive_buffer: Size(64 << 10),
            nic_buffer: Size(512 << 10),
            tcp: TcpConfig::default(),
            reach: None,
            address: None,
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
    /// For every write of a TCP application: the system call.
    pub per_write: Option<Duration>,
    /// For every TCP segment with data.
    pub per_segment: Option<Duration>,
    /// For every TCP segment without data: an acknowledgment, mostly.
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

/// No part of a host's cost is longer: times 65 507 bytes it stays far below 2^64 ps.
const MAX_COST: Duration = Duration(60_000_000_000_000);

impl Host {
    /// What is wrong with the values.
    pub fn check(&self, complaints: &mut Complaints) {
        for (key, cost) in [("cost", &self.cost), ("receive_cost", &self.receive_cost)] {
            complaints.at_most(&[key, "per_datagram"], cost.per_datagram, MAX_COST);
            complaints.at_most(&[key, "per_fragment"], cost.per_fragment, MAX_COST);
            complaints.at_most(&[key, "per_byte"], cost.per_byte, MAX_COST);
            complaints.at_most(&[key, "per_write"], cost.per_write, MAX_COST);
            complaints.at_most(&[key, "per_segment"], cost.per_segment, MAX_COST);
            complaints.at_most(&[key, "per_ack"], cost.per_ack, MAX_COST);
        }
        if let Some(pauses) = &self.pauses {
            if pauses.share.0 > Share::WHOLE {
                let cause = "no more than all messages can wait";
                complaints.add(&["pauses", "share"], cause, "give `0 %` to `100 %`");
            }
            complaints.at_most(&["pauses", "mean"], Some(pauses.mean), LONGEST);
        }
        let mut tcp = Complaints::default();
        self.tcp.check(&mut tcp);
        complaints.under(&["tcp"], tcp);
        if self.receive_buffer.bytes() == 0 {
            let cause = "a socket that holds nothing receives nothing";
            complaints.add(&["receive_buffer"], cause, "give at least `1 B`");
        }
    }
}
