//! CPU time at hosts (docs/model.md, "Hosts that send UDP"; docs/copies.md).

use engpass_model::host::{Cost, DataPath, Host, IoBus, Memory, Side};
use engpass_model::unit::{ByteRate, Duration};

const SECOND: u128 = 1_000_000_000_000_000_000;
const PICOSECOND: u128 = 1_000_000;

/// The CPU time that one side of a flow costs its host, in picoseconds.
#[derive(Clone, Debug)]
pub(crate) struct Costs {
    table: Cost,
    /// Attoseconds per byte.
    byte: u128,
}

impl Costs {
    /// Returns the costs of a flow at its host. `own` is the data path that the flow sets, if any.
    pub(crate) fn of(host: &Host, side: Side, own: Option<DataPath>) -> Self {
        let (table, path) = match side {
            Side::Send => (&host.cost, host.send_path),
            Side::Receive => (&host.receive_cost, host.receive_path),
        };
        let measured = table.per_byte.map(|byte| u128::from(byte.0) * PICOSECOND);
        let byte = if host.memory.is_some() || host.io_bus.is_some() {
            byte_time(host, side, own.unwrap_or(path), measured)
        } else {
            measured.unwrap_or(0)
        };
        Self { table: table.clone(), byte }
    }

    /// Returns the CPU time of payload bytes, rounded up once.
    pub(crate) fn bytes(&self, bytes: u64) -> u64 {
        (u128::from(bytes) * self.byte).div_ceil(PICOSECOND) as u64
    }

    /// Returns the CPU time of a fragment with this payload in bytes.
    pub(crate) fn fragment(&self, bytes: u64) -> u64 {
        ps(self.table.per_fragment) + self.bytes(bytes)
    }

    /// Returns the CPU time of a datagram without its fragments.
    pub(crate) fn datagram_start(&self) -> u64 {
        ps(self.table.per_datagram)
    }

    /// Returns the CPU time of a datagram, given its payload in bytes and its number of fragments.
    pub(crate) fn datagram(&self, bytes: u64, fragments: u64) -> u64 {
        self.datagram_start() + fragments * ps(self.table.per_fragment) + self.bytes(bytes)
    }

    /// Returns the CPU time of a write of a TCP application, without its bytes.
    pub(crate) fn write(&self) -> u64 {
        ps(self.table.per_write)
    }

    /// Returns the CPU time of a segment with data, without its bytes.
    pub(crate) fn segment(&self) -> u64 {
        ps(self.table.per_segment)
    }

    /// Returns the CPU time of a segment without data.
    pub(crate) fn ack(&self) -> u64 {
        ps(self.table.per_ack)
    }
}

/// Returns the duration in picoseconds, 0 if not given.
pub(crate) fn ps(duration: Option<Duration>) -> u64 {
    duration.map_or(0, |duration| duration.0)
}

/// A row of the table of data paths in docs/copies.md.
struct Row {
    copies: u128,
    checksums: u128,
    encryptions: u128,
    dma: u128,
    bus: u128,
    in_turns: bool,
}

fn row(path: DataPath) -> Row {
    use DataPath::{
        CopyAndChecksum, GpuPageable, GpuPinned, IoUringZeroCopy, Ktls, KtlsSendfile, MsgTrunc, MsgZerocopy,
        OneCopy, OneCopyAsPrinted, OneCopyPipelined, PeerToPeer, Rdma, ReadWrite, Sendfile,
        TcpZerocopyReceive, ZeroCopy,
    };
    let (copies, checksums, encryptions, dma, bus, in_turns) = match path {
        OneCopy => (1, 0, 0, 1, 1, true),
        OneCopyAsPrinted => (1, 0, 0, 0, 1, true),
        OneCopyPipelined | GpuPageable => (1, 0, 0, 1, 1, false),
        CopyAndChecksum => (1, 1, 0, 1, 1, false),
        ReadWrite => (2, 0, 0, 1, 1, false),
        ZeroCopy | Sendfile | MsgZerocopy | TcpZerocopyReceive | MsgTrunc | IoUringZeroCopy | Rdma
        | GpuPinned => (0, 0, 0, 1, 1, false),
        Ktls => (1, 0, 1, 1, 1, false),
        KtlsSendfile => (0, 0, 1, 1, 1, false),
        PeerToPeer => (0, 0, 0, 0, 1, false),
    };
    Row { copies, checksums, encryptions, dma, bus, in_turns }
}

/// Returns the attoseconds to move a byte `times` times at a rate, rounded up.
fn at(times: u128, rate: ByteRate) -> u128 {
    (times * SECOND).div_ceil(u128::from(rate.0))
}

/// Returns the attoseconds per byte for which a data path occupies the CPU: the time of its work, or of the transfers over the memory bus and the I/O bus where
/// these take longer. `measured` is the work per byte in the cost table; if given, it replaces the computed work.
fn byte_time(host: &Host, side: Side, path: DataPath, measured: Option<u128>) -> u128 {
    let row = row(path);
    let (work, cpu, dma) = match &host.memory {
        None => (0, 0, 0),
        Some(memory) => in_memory(memory, &row),
    };
    let bandwidth = host.memory.as_ref().map(|memory| memory.bandwidth);
    let moved = |times: u128| bandwidth.map_or(0, |bandwidth| at(times, bandwidth));
    let bus = host.io_bus.as_ref().map_or(0, |bus| at(row.bus, reached(bus, side)));
    let work = measured.unwrap_or(work);
    if row.in_turns {
        work.max(moved(cpu)) + bus.max(moved(dma))
    } else {
        work.max(moved(cpu + dma)).max(bus)
    }
}

/// Returns the rate of a bus in the direction of the data, at most its bandwidth.
fn reached(bus: &IoBus, side: Side) -> ByteRate {
    let of_direction = match side {
        Side::Send => bus.to_device,
        Side::Receive => bus.from_device,
    };
    ByteRate(of_direction.map_or(bus.bandwidth.0, |rate| rate.0.min(bus.bandwidth.0)))
}

/// Returns the attoseconds of CPU work per byte, and the transfers over the memory bus by the CPU and by DMA.
fn in_memory(memory: &Memory, row: &Row) -> (u128, u128, u128) {
    // A pass takes the time of its rate, but at least the time of its transfers.
    let pass = |times: u128, rate: Option<ByteRate>, transfers: u128| {
        let least = at(times * transfers, memory.bandwidth);
        rate.map_or(least, |rate| at(times, rate).max(least))
    };
    let of_a_copy = if memory.write_allocate { 3 } else { 2 };
    let fits = |size: u64| memory.working_set.is_some_and(|set| set.bytes() <= size);
    match memory.cache.as_ref().filter(|cache| fits(cache.size.bytes())) {
        Some(cache) => {
            let checksums = match cache.checksum {
                Some(rate) => at(row.checksums, rate),
                None => pass(row.checksums, memory.checksum, 1),
            };
            let encryptions = memory.encryption.map_or(0, |rate| at(row.encryptions, rate));
            let work = at(row.copies, cache.copy) + checksums + encryptions;
            (work, 0, if cache.dma { 0 } else { row.dma })
        }
        None => {
            let copies = pass(row.copies, memory.copy, of_a_copy);
            let checksums = pass(row.checksums, memory.checksum, 1);
            let encryptions = pass(row.encryptions, memory.encryption, 2);
            let transfers = of_a_copy * row.copies + row.checksums + 2 * row.encryptions;
            (copies + checksums + encryptions, transfers, row.dma)
        }
    }
}
