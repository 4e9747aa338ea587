//! Hosts: what sending and receiving costs them.

mod data_path;
mod memory;

pub use data_path::{DataPath, Side, Uses};
pub use memory::{ByteTime, Cache, IoBus, Memory, Transfer};
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
    /// Memory, which copies and DMA share. Without it, it bounds nothing.
    pub memory: Option<Memory>,
    /// The bus to the network device. Without it, it bounds nothing.
    pub io_bus: Option<IoBus>,
    /// Way of the data that this host sends, where it has a `memory` or an `io_bus`, and the traffic does not say its own.
    pub send_path: DataPath,
    /// Way of the data that this host receives; as `send_path`.
    pub receive_path: DataPath,
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
            memory: None,
            io_bus: None,
            send_path: DataPath::OneCopyPipelined,
            receive_path: DataPath::OneCopyPipelined,
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
    /// For every byte of payload: copy and checksum. It stands in the place of what the host's `memory` says of them.
    pub per_byte: Option<Duration>,
    /// For every write of a TCP application: the system call.
    pub per_write: Option<Duration>,
    /// For every TCP segment with data.
    pub per_segment: Option<Duration>,
    /// For every TCP segment without data: an acknowledgment, mostly.
    pub per_ack: Option<Duration>,
}

/// A [`Cost`] with the time of a byte, in which the host's memory may have a say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CpuCost {
    cost: Cost,
    byte: ByteTime,
}

impl CpuCost {
    /// CPU time in picoseconds of one UDP datagram with `bytes` of payload in `fragments` IP packets.
    pub fn datagram(&self, bytes: u64, fragments: u64) -> u64 {
        self.datagram_start() + fragments * ps(self.cost.per_fragment) + self.bytes(bytes)
    }

    /// CPU time in picoseconds of handing over one IP packet with `bytes` of UDP payload.
    pub fn fragment(&self, bytes: u64) -> u64 {
        ps(self.cost.per_fragment) + self.bytes(bytes)
    }

    /// CPU time in picoseconds before the first IP packet of a datagram.
    pub fn datagram_start(&self) -> u64 {
        ps(self.cost.per_datagram)
    }

    /// CPU time in picoseconds of so much payload.
    pub fn bytes(&self, bytes: u64) -> u64 {
        self.byte.bytes(bytes)
    }

    /// CPU time of one byte of payload.
    pub fn byte(&self) -> ByteTime {
        self.byte
    }

    /// CPU time in picoseconds of a write of a TCP application, its bytes apart.
    pub fn write(&self) -> u64 {
        ps(self.cost.per_write)
    }

    /// CPU time in picoseconds of a TCP segment with data, its bytes apart.
    pub fn segment(&self) -> u64 {
        ps(self.cost.per_segment)
    }

    /// CPU time in picoseconds of a TCP segment without data.
    pub fn ack(&self) -> u64 {
        ps(self.cost.per_ack)
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
/// The largest memory of a NIC, in bytes: a sender that nothing slows down fills it at one instant.
const MAX_NIC_BUFFER: u64 = 1 << 30;

impl Host {
    /// The cost of one side, and the way of its data: that of the traffic, or the host's.
    fn side(&self, side: Side, own: Option<DataPath>) -> (&Cost, DataPath) {
        match side {
            Side::Send => (&self.cost, own.unwrap_or(self.send_path)),
            Side::Receive => (&self.receive_cost, own.unwrap_or(self.receive_path)),
        }
    }

    /// What a byte needs of memory and I/O bus, and on which way; `None` for a host that has neither. `own` is the way that the traffic
    /// names.
    pub fn transfer(&self, side: Side, own: Option<DataPath>) -> Option<(DataPath, Transfer)> {
        if self.memory.is_none() && self.io_bus.is_none() {
            return None;
        }
        let (cost, path) = self.side(side, own);
        let explicit = cost.per_byte.map(|time| ByteTime::of_ps(time.0));
        Some((path, Transfer::new(path, side, self.memory.as_ref(), self.io_bus.as_ref(), explicit)))
    }

    /// What the CPU itself does: the costs of the host, and the work of the data path where they do not say what a byte costs.
    pub fn work(&self, side: Side, own: Option<DataPath>) -> CpuCost {
        self.costs(side, own, |transfer| transfer.cpu)
    }

    /// The same for `simulate`, whose CPU stands for the whole way of the data: it is busy with a byte as long as the slowest of CPU, memory and
    /// I/O bus, or, where they take turns, as long as all of them.
    pub fn occupation(&self, side: Side, own: Option<DataPath>) -> CpuCost {
        self.costs(side, own, |transfer| transfer.whole)
    }

    fn costs(&self, side: Side, own: Option<DataPath>, byte: impl Fn(Transfer) -> ByteTime) -> CpuCost {
        let (cost, _) = self.side(side, own);
        let byte = match self.transfer(side, own) {
            Some((_, transfer)) => byte(transfer),
            None => ByteTime::of_ps(ps(cost.per_byte)),
        };
        CpuCost { cost: cost.clone(), byte }
    }

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
        for (side, key, path) in
            [(Side::Send, "send_path", self.send_path), (Side::Receive, "receive_path", self.receive_path)]
        {
            self.check_path(side, key, Some(path), complaints);
        }
        if let Some(memory) = &self.memory {
            let mut found = Complaints::default();
            memory.check(&mut found);
            complaints.under(&["memory"], found);
        }
        if let Some(bus) = &self.io_bus {
            let mut found = Complaints::default();
            bus.check(&mut found);
            complaints.under(&["io_bus"], found);
        }
        let mut tcp = Complaints::default();
        self.tcp.check(&mut tcp);
        complaints.under(&["tcp"], tcp);
        if self.nic_buffer.bytes() > MAX_NIC_BUFFER {
            let help = format!("give at most {}", Size(MAX_NIC_BUFFER));
            complaints.add(&["nic_buffer"], "no NIC has that", help);
        }
        if self.receive_buffer.bytes() == 0 {
            let cause = "a socket that holds nothing receives nothing";
            complaints.add(&["receive_buffer"], cause, "give at least `1 B`");
        }
    }

    /// What is wrong with a data path at one side of this host, named by this key.
    pub fn check_path(
        &self,
        side: Side,
        key: &'static str,
        path: Option<DataPath>,
        complaints: &mut Complaints,
    ) {
        let Some(path) = path else { return };
        if !path.serves(side) {
            let (wrong, right) = match side {
                Side::Send => ("sends nothing: it is for what is received", "zero-copy"),
                Side::Receive => ("receives nothing: it is for what is sent", "tcp-zerocopy-receive"),
            };
            complaints.add(&[key], format!("that way {wrong}"), format!("take another, such as `{right}`"));
        }
        let encrypts = path.uses().encryptions > 0;
        if encrypts && self.memory.as_ref().is_some_and(|memory| memory.encryption.is_none()) {
            let cause = "nothing says how fast the CPU encrypts";
            complaints.add(&[key], cause, "give the host's `memory` an `encryption = \"4 GB/s\"`");
        }
    }
}
