//! Hosts: the costs of sending and receiving.

mod data_path;
mod memory;

pub use data_path::{DataPath, Side, Uses};
pub use memory::{ByteTime, Cache, IoBus, Memory, Transfer};
mod agent_access;

pub use agent_access::{Address, Reach};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::range_errors::{LONGEST, RangeErrors};
use crate::tcp::TcpConfig;
use crate::unit::{Duration, Share, Size};

/// A host: CPU costs per datagram, sockets, and a NIC buffer that blocks the sender when it is full.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Host {
    /// CPU time for sending.
    pub cost: Cost,
    /// CPU time for receiving. If not given, the host receives as fast as the link delivers.
    pub receive_cost: Cost,
    /// Pauses during which the sending process does not run.
    pub pauses: Option<Pauses>,
    /// Receive buffer of a UDP socket, in payload bytes. A datagram that does not fit is dropped.
    pub receive_buffer: Size,
    /// NIC buffer for outgoing frames. When it is full, the sending process waits; nothing is dropped.
    pub nic_buffer: Size,
    /// Memory, shared by copies and DMA. If not given, memory is no limit.
    pub memory: Option<Memory>,
    /// The bus to the network device. If not given, it is no limit.
    pub io_bus: Option<IoBus>,
    /// Data path for sending, if the traffic does not define its own. Effective only with a `memory` or an `io_bus`.
    pub send_path: DataPath,
    /// Data path for receiving; otherwise as `send_path`.
    pub receive_path: DataPath,
    /// TCP of this host: the profile of a real stack, and deviations from it.
    pub tcp: TcpConfig,
    /// How a measurement reaches this host: `local`, `netns NAME` or `ssh USER@HOST`. If no host has a `reach`, the measurement creates the
    /// hosts as network namespaces on this machine. Only for `measure`.
    pub reach: Option<Reach>,
    /// Address to which other hosts send in a measurement. By default the first address that the host's agent lists, without loopback and link-local addresses;
    /// 127.0.0.1 between two `local` hosts. Only for `measure`.
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

/// CPU time of the steps of sending or receiving. Steps that are not given take no time.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Cost {
    /// Per UDP datagram: the system call and UDP.
    pub per_datagram: Option<Duration>,
    /// Per IP packet of a datagram: IP and the driver.
    pub per_fragment: Option<Duration>,
    /// Per byte of payload: copy and checksum. It replaces the work computed from the host's `memory`.
    pub per_byte: Option<Duration>,
    /// Per write of a TCP application: the system call.
    pub per_write: Option<Duration>,
    /// Per TCP segment with data.
    pub per_segment: Option<Duration>,
    /// Per TCP segment without data, usually an acknowledgment.
    pub per_ack: Option<Duration>,
}

impl Cost {
    fn takes_time(&self) -> bool {
        let Self { per_datagram, per_fragment, per_byte, per_write, per_segment, per_ack } = *self;
        let steps = [per_datagram, per_fragment, per_byte, per_write, per_segment, per_ack];
        steps.into_iter().any(|step| ps(step) > 0)
    }
}

/// A [`Cost`] with its resolved time per byte, which the host's memory may determine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CpuCost {
    cost: Cost,
    byte: ByteTime,
}

impl CpuCost {
    /// CPU time in picoseconds for a UDP datagram with `bytes` bytes of payload in `fragments` IP packets.
    pub fn datagram(&self, bytes: u64, fragments: u64) -> u64 {
        self.datagram_start() + fragments * ps(self.cost.per_fragment) + self.bytes(bytes)
    }

    /// CPU time in picoseconds for handing over an IP packet with `bytes` bytes of UDP payload.
    pub fn fragment(&self, bytes: u64) -> u64 {
        ps(self.cost.per_fragment) + self.bytes(bytes)
    }

    /// CPU time in picoseconds before the first IP packet of a datagram.
    pub fn datagram_start(&self) -> u64 {
        ps(self.cost.per_datagram)
    }

    /// CPU time in picoseconds for `bytes` bytes of payload.
    pub fn bytes(&self, bytes: u64) -> u64 {
        self.byte.bytes(bytes)
    }

    /// CPU time per byte of payload.
    pub fn byte(&self) -> ByteTime {
        self.byte
    }

    /// CPU time in picoseconds for a write of a TCP application, without its bytes.
    pub fn write(&self) -> u64 {
        ps(self.cost.per_write)
    }

    /// CPU time in picoseconds for a TCP segment with data, without its bytes.
    pub fn segment(&self) -> u64 {
        ps(self.cost.per_segment)
    }

    /// CPU time in picoseconds for a TCP segment without data.
    pub fn ack(&self) -> u64 {
        ps(self.cost.per_ack)
    }
}

/// Picoseconds of a cost; 0 if it is not given.
pub fn ps(cost: Option<Duration>) -> u64 {
    cost.map_or(0, |cost| cost.0)
}

/// Pauses of the sending process: before a share of the messages, the process does not run for a while.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Pauses {
    /// Share of the messages that follow a pause.
    pub share: Share,
    /// Mean length of a pause; lengths are exponentially distributed.
    pub mean: Duration,
}

/// Maximum of each cost. Times 65 507 bytes, it is far below 2^64 ps.
const MAX_COST: Duration = Duration(60_000_000_000_000);
/// Maximum NIC buffer in bytes. A sender without other limits fills the buffer at one instant.
const MAX_NIC_BUFFER: u64 = 1 << 30;

impl Host {
    /// Returns true if sending or receiving may take time of the CPU of `simulate`.
    pub fn takes_time(&self) -> bool {
        let costs = [&self.cost, &self.receive_cost];
        self.memory.is_some() || self.io_bus.is_some() || costs.iter().any(|cost| cost.takes_time())
    }

    /// Cost and data path of one side. `own`, the data path of the traffic, takes precedence over the host's.
    fn side(&self, side: Side, own: Option<DataPath>) -> (&Cost, DataPath) {
        match side {
            Side::Send => (&self.cost, own.unwrap_or(self.send_path)),
            Side::Receive => (&self.receive_cost, own.unwrap_or(self.receive_path)),
        }
    }

    /// Data path and resource use per byte of one side; `None` for a host without `memory` and `io_bus`. `own` is the data path of the
    /// traffic.
    pub fn transfer(&self, side: Side, own: Option<DataPath>) -> Option<(DataPath, Transfer)> {
        if self.memory.is_none() && self.io_bus.is_none() {
            return None;
        }
        let (cost, path) = self.side(side, own);
        let explicit = cost.per_byte.map(|time| ByteTime::of_ps(time.0));
        Some((path, Transfer::new(path, side, self.memory.as_ref(), self.io_bus.as_ref(), explicit)))
    }

    /// CPU costs of one side without memory and bus: the host's costs and, unless they define the time per byte, the CPU's work on the data
    /// path.
    pub fn work(&self, side: Side, own: Option<DataPath>) -> CpuCost {
        self.costs(side, own, |transfer| transfer.cpu)
    }

    /// As [`work`](Self::work), for `simulate`, where the CPU stands for the whole data path: a byte occupies it as long as the slowest of
    /// CPU, memory and I/O bus or, without a pipeline, as long as all of them in turn.
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

    /// Adds an error for every invalid value.
    pub fn check(&self, errors: &mut RangeErrors) {
        for (key, cost) in [("cost", &self.cost), ("receive_cost", &self.receive_cost)] {
            errors.at_most(&[key, "per_datagram"], cost.per_datagram, MAX_COST);
            errors.at_most(&[key, "per_fragment"], cost.per_fragment, MAX_COST);
            errors.at_most(&[key, "per_byte"], cost.per_byte, MAX_COST);
            errors.at_most(&[key, "per_write"], cost.per_write, MAX_COST);
            errors.at_most(&[key, "per_segment"], cost.per_segment, MAX_COST);
            errors.at_most(&[key, "per_ack"], cost.per_ack, MAX_COST);
        }
        if let Some(pauses) = &self.pauses {
            if pauses.share.0 > Share::WHOLE {
                let cause = "a share of the messages cannot exceed 100 %";
                errors.add(&["pauses", "share"], cause, "give `0 %` to `100 %`");
            }
            errors.at_most(&["pauses", "mean"], Some(pauses.mean), LONGEST);
        }
        for (side, key, path) in
            [(Side::Send, "send_path", self.send_path), (Side::Receive, "receive_path", self.receive_path)]
        {
            self.check_path(side, key, Some(path), errors);
        }
        if let Some(memory) = &self.memory {
            let mut found = RangeErrors::default();
            memory.check(&mut found);
            errors.under(&["memory"], found);
        }
        if let Some(bus) = &self.io_bus {
            let mut found = RangeErrors::default();
            bus.check(&mut found);
            errors.under(&["io_bus"], found);
        }
        let mut tcp = RangeErrors::default();
        self.tcp.check(&mut tcp);
        errors.under(&["tcp"], tcp);
        if self.nic_buffer.bytes() > MAX_NIC_BUFFER {
            let help = format!("give at most {}", Size(MAX_NIC_BUFFER));
            errors.add(&["nic_buffer"], "too large for the buffer of a NIC", help);
        }
        if self.receive_buffer.bytes() == 0 {
            let cause = "a socket without a buffer receives nothing";
            errors.add(&["receive_buffer"], cause, "give at least `1 B`");
        }
    }

    /// Checks a data path at one side of this host; `key` names it in errors.
    pub fn check_path(
        &self,
        side: Side,
        key: &'static str,
        path: Option<DataPath>,
        errors: &mut RangeErrors,
    ) {
        let Some(path) = path else { return };
        if !path.serves(side) {
            let (wrong, right) = match side {
                Side::Send => ("is for receiving, not for sending", "zero-copy"),
                Side::Receive => ("is for sending, not for receiving", "tcp-zerocopy-receive"),
            };
            errors.add(
                &[key],
                format!("this data path {wrong}"),
                format!("use another one, such as `{right}`"),
            );
        }
        let encrypts = path.uses().encryptions > 0;
        if encrypts && self.memory.as_ref().is_some_and(|memory| memory.encryption.is_none()) {
            let cause = "the host's `memory` has no `encryption` rate";
            errors.add(&[key], cause, "add `encryption = \"4 GB/s\"` to the host's `memory`");
        }
    }
}
