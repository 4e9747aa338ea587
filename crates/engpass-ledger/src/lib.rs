//! The ledger of every line: an account of each bit-time. `docs/ledger.md` is its specification.
//!
//! A `Line` is one direction of a link and measures its idle time. A `LineUsage` counts what one flow direction has carried over one line. Cells and bytes
//! are posted when the delivery status of their datagram is known ([`Ledger::post_datagram`]). Idle time is posted when a packet leaves and shows which
//! sender could have used it (`idle_reasons.rs`). [`Ledger::close`] sums up the accounts of a line and fails if they do not balance.

mod accounts;
mod balance;
mod build;
mod datagram_owner;
mod deferred;
mod frame_lines;
mod idle_reasons;
mod injected_faults;
mod lines;
mod load;
mod packet_trains;
mod sender_snapshots;
mod sender_states;
mod senders;
mod trails;

use std::collections::BTreeMap;

use engpass_model::cell_train::CellTrain;
use engpass_model::window::Window;
use engpass_model::wire::ip::IP_HEADER_BYTES;
use engpass_model::wire::layers::{Change, Layer, Layers, Sum, Wire};

pub use accounts::{Account, Accounts, FAMILIES, Family};
pub use balance::{LineLedger, LineUsageStats, Unbalanced};
pub use build::{FlowDirection, FlowDirectionLine, LedgerInputs};
pub use datagram_owner::DatagramOwner;
pub use deferred::{Arrivals, DeferredPostings};
use idle_reasons::Reasons;
pub use injected_faults::Fault;
pub use load::{DatagramClass, Load};
use sender_snapshots::{NO_STAMP, SenderSnapshots};
use sender_states::SenderStates;
pub use sender_states::{SenderState, StateTimes};
use senders::put;
use trails::Parted;
pub use trails::Trail;

/// The ledgers of all lines in one run.
#[derive(Debug)]
pub struct Ledger {
    /// False disables all postings, so that a benchmark can measure their cost.
    pub on: bool,
    window: Window,
    /// The lines, by output port.
    lines: Vec<Line>,
    /// Line usage of every flow direction, one after the other, each in the order of its hops.
    usages: Vec<LineUsage>,
    /// Formats of packets on the lines. Usage records with equal formats share one.
    entries: Vec<Entry>,
    /// By flow direction: index of its first usage record; the last entry is the number of usage records. Flow directions below `flows` belong to flows. Behind
    /// them every TCP connection has two: the data of its flow, then the acknowledgments.
    first: Vec<u32>,
    flows: u32,
    /// Largest number of usage records that a flow direction has.
    stride: usize,
    /// Units carried in the window, by hop, of the datagrams that are tracked per hop: `stride` numbers for each datagram.
    carried: Vec<u32>,
    /// By flow direction: its current run of identical delivered datagrams, not yet posted. `alike` holds the per-hop records of these runs, `stride` numbers
    /// for each; it is empty while no run has one.
    runs: Vec<Run>,
    alike: Vec<u32>,
    /// By TCP connection: the run before the current one of its acknowledgments, whose length alternates while losses are repaired.
    earlier: Vec<Run>,
    /// Number of processes and of TCP endpoints. Senders are numbered in this order: processes, endpoints, sources of injected packets.
    processes: usize,
    endpoints: usize,
    /// State times of all senders except receive-only endpoints.
    senders: Vec<SenderStates>,
    /// State times at the begin of the window; empty if the window begins with the run.
    before: Vec<StateTimes>,
    /// Sender snapshots by AAL5 PDU and by packet: the sender's state times when it emitted the PDU or packet.
    stamps: Vec<StateTimes>,
    packet_stamps: SenderSnapshots,
    /// By usage record: cells of the sender that have left since its last complete PDU; this gives its own time on the line. Empty until cells leave a shared
    /// line.
    cells_since: Vec<u32>,
    /// By usage record: the first usage record of its flow direction on the same line. Empty if no flow direction has several on a shared line.
    first_on_line: Vec<u32>,
    /// State for flows with several paths.
    parted: Parted,
    /// By port, for lines that are down: the line's idle time when it went down, or up to which its idle time is already posted as "line down".
    down: BTreeMap<usize, u64>,
    /// Deferred postings; `None` if the window is known from the start.
    pub deferred: Option<Box<DeferredPostings>>,
}

/// One direction of a link.
#[derive(Debug)]
struct Line {
    /// True for cells, false for frames.
    cells: bool,
    /// Line rate in parts per second, and the number of parts per bit.
    rate: u128,
    parts_per_bit: u64,
    /// A grain is one cell or one byte: its size in parts, its time in ticks, and the number of ticks per picosecond.
    grain: u64,
    ticks: u64,
    ticks_per_ps: u64,
    /// Overhead of each cell or frame in parts: physical framing, and cell header.
    physical: u64,
    header: u64,
    /// Parts per unit, in which usage is counted. A unit is the payload of a cell, or a byte of a frame without its physical framing.
    unit: u64,
    /// True if the physical framing also covers idle time (SDH, SONET, PDH).
    framed: bool,
    /// Frames, and their bytes, that lie completely in the window. Cells are counted by the ports instead.
    frames: u64,
    bytes: u64,
    /// Reported idle time since the start of the run: picoseconds, and the ticks by which ends of busy periods were rounded up.
    idle: u64,
    rounding: u64,
    /// State at the begin and at the end of the window.
    edges: [Edge; 2],
    /// True once the line has reported its first transmission of the window.
    started: bool,
    /// Ticks of the transmission that began before the window and ended in it. It is not counted as a cell or frame.
    cut: Option<u128>,
    user: LineSenders,
    /// Idle time in the window that was posted to a reason, in picoseconds by reason.
    reasons: Option<Box<Reasons>>,
    /// Idle time since the start of the run up to which a reason was posted, in picoseconds.
    booked: u64,
    /// Index of the usage record whose packet left last.
    last: Option<u32>,
    /// Indices of the line's usage records.
    usages: Vec<u32>,
}

/// State of a line at a window edge: its idle time up to the edge, and the ticks for which the transmission that crosses the edge has lasted by then.
#[derive(Clone, Copy, Debug, Default)]
struct Edge {
    idle: u64,
    rounding: u64,
    begun: u128,
}

/// The senders that could have used a line while it was idle. They decide how its idle time is divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LineSenders {
    /// No flow sends data over this line.
    Nobody,
    /// As `Nobody`, but some flow could send data over this line if nodes chose other paths for it.
    Elsewhere,
    /// Only generators, or streams of rate zero, send data over this line.
    Application,
    /// A single sender, that of the usage record with this index. The line is idle exactly when this sender does something else.
    Sole(u32),
    /// Several users. Each departing packet divides the idle time before it by the states of its sender.
    Shared,
}

/// Format in which packets of a flow arrive at a line. Most formats belong to several usage records.
#[derive(Debug, PartialEq, Eq)]
struct Entry {
    wire: Wire,
    /// Changes at the sender and on the way to this line. The first is the fragmentation by the sender.
    changes: Box<[Change]>,
}

/// Usage record: what one flow direction has carried over one line.
#[derive(Debug)]
struct LineUsage {
    flow: u32,
    line: u32,
    /// Index of the [`Entry`].
    entry: u32,
    /// Index of the sender, if it is a process or an endpoint with data; otherwise [`NO_SENDER`].
    sender: u32,
    /// True if the packets flow against the flow's data, as acknowledgments do.
    against: bool,
    /// Why this line is idle while its sender is sending.
    held_back: HeldBack,
    /// True if the flow is a cell generator.
    generates: bool,
    /// Units of datagrams without data, or cells of a generator.
    plain: u64,
    /// Datagrams with data; allocated with the first posting.
    data: Option<Box<DataUsage>>,
    /// True if this is the last shared line on the path of the flow direction's packets.
    last_shared: bool,
    /// On a shared line: index of the sender snapshot of the last packet that left this line. Otherwise [`NO_STAMP`].
    stamp: u32,
}

/// Cause to which a line's idle time is posted while its sender is sending.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeldBack {
    /// Something before this line holds the packets back, such as a slower line.
    Upstream,
    /// The shaper of the circuit holds the packets back.
    Shaper,
    /// A node sends some packets over other paths.
    OtherWay,
}

/// Datagrams with data that one flow direction has carried over one line.
#[derive(Debug, Default)]
struct DataUsage {
    /// Delivered segments that the line carried completely in the window. `duplicate` is the payload in parts that the receiver already had or did not want.
    segments: Sum,
    duplicate: u64,
    /// Units of lost datagrams; and units of datagrams that were neither delivered nor lost, or that lay partly outside of the window.
    dead: u64,
    in_flight: u64,
    /// Datagrams of a `udp-stream`.
    stream: Option<Box<Datagrams>>,
}

/// Count of the datagrams of a `udp-stream`, which all have one length.
#[derive(Debug)]
struct Datagrams {
    /// Layers and units of one datagram.
    layers: Layers,
    units: u32,
    /// Delivered datagrams that the line carried completely in the window.
    whole: u64,
    /// Delivered datagrams of which this line may have carried only some packets. Their parts are in `DataUsage::segments`.
    parted: u64,
}

/// Marks a usage record without a sender.
const NO_SENDER: u32 = u32::MAX;

/// A run: consecutive delivered datagrams with equal load. Each line carried the same units of each: all or, if `written`, those that `alike` holds for this
/// line.
#[derive(Clone, Copy, Debug)]
struct Run {
    bytes: u32,
    count: u32,
    header: u16,
    class: DatagramClass,
    written: bool,
}

// A TCP connection has three runs; therefore the size counts.
const _: () = assert!(size_of::<Run>() == 12);

/// What became of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeliveryStatus {
    /// The receiver, or one of several receivers, has received the datagram.
    Delivered,
    /// At least one part of the datagram was lost.
    Lost,
    /// Neither delivered nor lost at the end of the run.
    InFlight,
}

/// How much of a datagram the lines on its path have carried.
#[derive(Clone, Copy, Debug)]
pub enum Carried {
    /// The lines of this trail have carried all of it: the datagram is one packet, or all its packets have arrived.
    Whole(Trail),
    /// The per-hop record of the datagram with this number says how much.
    Written(u32),
}

impl Ledger {
    /// Starts the per-hop record of `datagram`, with zero at every hop. `places` is the number of datagrams to make room for.
    pub fn track_per_hop(&mut self, datagram: u32, places: u32) {
        if !self.on {
            return;
        }
        let (from, needed) = (datagram as usize * self.stride, places as usize * self.stride);
        if self.carried.len() < needed {
            self.carried.resize(needed, 0);
        }
        self.carried[from..][..self.stride].fill(0);
    }

    /// Returns the index of the flow direction that carries datagrams of `flow`, or TCP segments sent to endpoint `to`.
    #[inline]
    fn direction_of(&self, flow: u32, to: Option<u32>) -> usize {
        // Even endpoints write the data. Segments to them are acknowledgments and use the second direction.
        to.map_or(flow, |to| self.flows + (to ^ 1)) as usize
    }

    /// Returns how many of the `count` cells that have left `port` in the window also began in it. At most one did not: the first.
    #[inline]
    pub fn begun(&mut self, port: usize, cells: &CellTrain, count: u64) -> u64 {
        if self.lines[port].started || count == 0 {
            return count;
        }
        self.exclude_transmission_across_edge(port, cells, count)
    }

    /// Returns whether the line of `port` has reported its first transmission of the window.
    #[inline]
    pub fn has_started(&self, port: usize) -> bool {
        self.lines[port].started || !self.on
    }

    fn exclude_transmission_across_edge(&mut self, port: usize, cells: &CellTrain, count: u64) -> u64 {
        let line = &mut self.lines[port];
        line.started = true;
        let Some(from) = self.window.from else { return count };
        // The first cell that ends after `from`.
        let earlier = cells.count_until(from);
        let end = cells.base + cells.pace.after(cells.n + earlier);
        let (num, den) = cells.pace.ratio();
        let cut = if (num, den) == (line.ticks, line.ticks_per_ps) {
            let begin = u128::from(cells.base) * u128::from(den)
                + u128::from(cells.n + earlier).saturating_sub(1) * u128::from(num);
            begin < u128::from(from) * u128::from(den)
        } else {
            // Cells at another pace than the line's are not back to back: each found the line free.
            end - line.ticks.div_ceil(line.ticks_per_ps) < from
        };
        line.cut = cut.then_some(u128::from(line.ticks));
        count - u64::from(cut)
    }

    /// Posts `count` cells of a generator that have left hop `hop` of its circuit.
    #[inline]
    pub fn generated(&mut self, flow: usize, hop: u16, count: u64) {
        let usage = self.first[flow] as usize + usize::from(hop);
        self.usages[usage].plain += count;
    }

    /// Counts `count` cells of datagram `id` that have left `port`, hop `hop` of its circuit, in the window, and divides the idle time before them.
    #[inline]
    pub fn carried(
        &mut self,
        port: usize,
        hop: u16,
        (id, whose): (u32, DatagramOwner),
        cells: &CellTrain,
        count: u64,
    ) {
        self.carried[id as usize * self.stride + usize::from(hop)] += count as u32;
        if self.lines[port].user == LineSenders::Shared && whose.counted {
            // With lookahead a queue also reports cells that leave after the end of the window. They divide no idle time.
            let inside = cells.last <= self.window.end;
            let left = if inside { cells.count } else { cells.count_within(self.window.with_warmup(), 0) };
            let stamp = (inside && cells.ends_pdu()).then(|| self.stamps[cells.pdu as usize]);
            self.cells_left(port, self.usage_of(whose, hop), left, stamp.as_ref());
        }
    }

    /// Adds a delivered and completely carried segment to the current run of identical datagrams, if it continues that run. Returns whether it did.
    #[inline]
    pub fn try_extend_run(&mut self, (flow, to): (u32, Option<u32>), load: Load) -> bool {
        if !self.on {
            return true;
        }
        let direction = self.direction_of(flow, to);
        let run = &mut self.runs[direction];
        let alike = run.load() == load && !run.written && run.goes_on();
        run.count += u32::from(alike);
        alike
    }

    /// Adds a datagram to the run before the current one, if it continues that, and makes it the current run. Returns whether it did.
    #[inline]
    fn try_extend_previous_run(&mut self, direction: usize, load: Load) -> bool {
        let Some(place) = self.earlier_of(direction) else { return false };
        let (run, earlier) = (&mut self.runs[direction], &mut self.earlier[place]);
        if run.written || earlier.load() != load || !earlier.goes_on() {
            return false;
        }
        earlier.count += 1;
        std::mem::swap(run, earlier);
        true
    }

    /// Returns the index in `earlier` for a flow direction, if its previous run is kept. A previous run never has a per-hop record.
    #[inline]
    fn earlier_of(&self, direction: usize) -> Option<usize> {
        let place = direction.checked_sub(self.flows as usize)?;
        (place % 2 == 1).then_some(place / 2)
    }

    /// Posts a datagram whose delivery status is known. `refused` is the number of payload bytes that the receiver already had or did not want.
    #[inline(never)]
    pub fn post_datagram(
        &mut self,
        (flow, to): (u32, Option<u32>),
        status: DeliveryStatus,
        load: Load,
        carried: Carried,
        refused: u32,
    ) {
        if !self.on {
            return;
        }
        let direction = self.direction_of(flow, to);
        match carried {
            Carried::Whole(trail) if trail.lines().is_none() => {
                if status == DeliveryStatus::Delivered && refused == 0 {
                    self.try_extend_trail_run(direction, trail, load);
                } else {
                    self.post_along_trail(direction, trail, 1, status, load, refused);
                }
                return;
            }
            Carried::Written(datagram) if self.has_pieces(datagram) => {
                self.post_pieces(direction, status, load, datagram, refused);
                return;
            }
            _ => {}
        }
        if status != DeliveryStatus::Delivered || refused > 0 {
            self.post(direction, status, load, carried, refused);
            return;
        }
        let run = &mut self.runs[direction];
        let alike = run.load() == load
            && match carried {
                Carried::Whole(_) => !run.written,
                Carried::Written(datagram) => {
                    let carried = &self.carried[datagram as usize * self.stride..][..self.stride];
                    run.written && *carried == self.alike[direction * self.stride..][..self.stride]
                }
            };
        if alike && run.goes_on() {
            run.count += 1;
            return;
        }
        let settled = match carried {
            Carried::Whole(_) => self.try_extend_previous_run(direction, load),
            Carried::Written(datagram) => self.is_nothing(datagram),
        };
        if !settled {
            self.begin_run(direction, load, carried);
        }
    }

    /// Returns whether the per-hop record of `datagram` is zero at every hop: nothing of it was carried in the window.
    fn is_nothing(&self, datagram: u32) -> bool {
        self.carried[datagram as usize * self.stride..][..self.stride].iter().all(|units| *units == 0)
    }

    /// Ends the current run of a flow direction and begins a new one with this datagram.
    #[inline(never)]
    fn begin_run(&mut self, direction: usize, load: Load, carried: Carried) {
        if !self.runs[direction].written
            && let Some(place) = self.earlier_of(direction)
        {
            std::mem::swap(&mut self.runs[direction], &mut self.earlier[place]);
        }
        self.end_run(direction);
        if load.header > u16::MAX.into() {
            self.post(direction, DeliveryStatus::Delivered, load, carried, 0);
            return;
        }
        let mut written = false;
        if let Carried::Written(datagram) = carried {
            written = true;
            let places = self.stride;
            self.alike.resize(self.runs.len() * places, 0);
            let carried = &self.carried[datagram as usize * places..][..places];
            self.alike[direction * places..][..places].copy_from_slice(carried);
        }
        self.runs[direction] = Run { written, count: 1, ..Run::of(load) };
    }

    /// Posts the current run of a flow direction.
    fn end_run(&mut self, direction: usize) {
        let Run { written, count, .. } = self.runs[direction];
        if count == 0 {
            return;
        }
        let load = self.runs[direction].load();
        let alike = written.then(|| &self.alike[direction * self.stride..][..self.stride]);
        let usages = &mut self.usages[self.first[direction] as usize..self.first[direction + 1] as usize];
        let how = (&self.lines[..], &self.entries[..]);
        post_identical(usages, how, alike, count.into(), DeliveryStatus::Delivered, load, 0);
        self.runs[direction].count = 0;
    }

    /// Posts all open runs of identical datagrams, at the end of a window or of the simulation.
    pub fn end_runs(&mut self) {
        for direction in 0..self.runs.len() {
            self.end_run(direction);
            if let Some(place) = self.earlier_of(direction) {
                self.runs[direction] = self.earlier[place];
                self.earlier[place].count = 0;
                self.end_run(direction);
            }
        }
        self.post_trail_runs();
    }

    /// Posts a lost datagram of one packet that the lines of `trail` have carried.
    #[inline(always)]
    pub fn lose(&mut self, (flow, to): (u32, Option<u32>), load: Load, trail: Trail) {
        if !self.on {
            return;
        }
        let direction = self.direction_of(flow, to);
        let Some(lines) = trail.lines() else {
            self.post_along_trail(direction, trail, 1, DeliveryStatus::Lost, load, 0);
            return;
        };
        let first = self.first[direction] as usize;
        for usage in &mut self.usages[first..][..lines] {
            let units = self.entries[usage.entry as usize].units(load);
            usage.lose(units, load.class);
        }
    }

    /// Posts one datagram: what its lines have carried of it, by delivery status.
    #[inline(never)]
    fn post(&mut self, direction: usize, status: DeliveryStatus, load: Load, carried: Carried, refused: u32) {
        let usages = &mut self.usages[self.first[direction] as usize..self.first[direction + 1] as usize];
        let how = (&self.lines[..], &self.entries[..]);
        match carried {
            Carried::Whole(trail) => {
                let lines = if status == DeliveryStatus::Delivered { None } else { trail.lines() };
                let lines = lines.unwrap_or(usages.len());
                post_identical(&mut usages[..lines], how, None, 1, status, load, refused);
            }
            Carried::Written(datagram) => {
                let carried = &self.carried[datagram as usize * self.stride..][..self.stride];
                post_identical(usages, how, Some(carried), 1, status, load, refused);
            }
        }
    }

    /// Ends the warm-up: saves the state times of all senders at `now`.
    pub fn end_warmup(&mut self, now: u64) {
        for (before, sender) in self.before.iter_mut().zip(&self.senders) {
            *before = sender.sums_at(now);
        }
    }
}

impl Run {
    /// Returns an empty run of datagrams with this load.
    fn of(load: Load) -> Self {
        let Load { class, header, bytes } = load;
        let header = u16::try_from(header).expect("the header of a datagram run fits in 16 bits");
        Self { header, bytes, count: 0, class, written: false }
    }

    #[inline(always)]
    fn load(&self) -> Load {
        Load { class: self.class, header: self.header.into(), bytes: self.bytes }
    }

    /// Returns whether the run is not empty and its counter can still grow.
    #[inline(always)]
    fn goes_on(&self) -> bool {
        // False for 0 and for `u32::MAX`.
        self.count.wrapping_sub(1) < u32::MAX - 1
    }
}

impl LineUsage {
    /// Posts `count` datagrams to this usage record; the line has carried `units` of each.
    fn post_datagram(
        &mut self,
        (units, count): (u64, u64),
        (unit, entry): (u64, &Entry),
        status: DeliveryStatus,
        load: Load,
        refused: u64,
    ) {
        if status == DeliveryStatus::Lost || load.class == DatagramClass::Control {
            self.lose(units * count, load.class);
            return;
        }
        let (header, bytes) = (u64::from(load.header), u64::from(load.bytes));
        let data = self.data.get_or_insert_default();
        match (status, load.class, &mut data.stream) {
            (DeliveryStatus::Delivered, DatagramClass::FixedLength, Some(stream))
                if units == u64::from(stream.units) =>
            {
                stream.whole += count;
            }
            (DeliveryStatus::Delivered, DatagramClass::AnyLength, _) => {
                let layers = entry.layers(header, bytes);
                if units * unit != booked(&layers) {
                    data.in_flight += units * count;
                    return;
                }
                data.segments.add(&layers, count);
                let payload = layers.parts(Layer::Payload);
                data.duplicate += payload / bytes.max(1) * refused.min(bytes) * count;
            }
            _ => data.in_flight += units * count,
        }
    }

    /// Posts `units` of a lost datagram, or of one without data, whatever became of it.
    #[inline(always)]
    fn lose(&mut self, units: u64, class: DatagramClass) {
        match class {
            DatagramClass::Control => self.plain += units,
            _ => self.data.get_or_insert_default().dead += units,
        }
    }

    /// Sets all counts of the usage record to zero.
    fn clear(&mut self) {
        self.plain = 0;
        if let Some(data) = &mut self.data {
            (data.dead, data.in_flight, data.duplicate) = (0, 0, 0);
            data.segments = Sum::default();
            data.stream.iter_mut().for_each(|stream| (stream.whole, stream.parted) = (0, 0));
        }
    }
}

/// Posts `count` identical datagrams to the usage records `usages`: at each hop the units in `written`, or whole datagrams if that is `None`.
fn post_identical(
    usages: &mut [LineUsage],
    (lines, entries): (&[Line], &[Entry]),
    written: Option<&[u32]>,
    count: u64,
    status: DeliveryStatus,
    load: Load,
    refused: u32,
) {
    let plain = written.is_none()
        && status == DeliveryStatus::Delivered
        && load.class == DatagramClass::AnyLength
        && refused == 0;
    let (header, bytes) = (u64::from(load.header), u64::from(load.bytes));
    for (hop, usage) in usages.iter_mut().enumerate() {
        let (unit, entry) = (lines[usage.line as usize].unit, &entries[usage.entry as usize]);
        if plain
            && !entry.is_changed(header + bytes)
            && let Some(padding) = entry.wire.padding(header + bytes)
        {
            let segments = &mut usage.data.get_or_insert_default().segments;
            segments.add_bytes(&entry.wire, count, padding * count, (header * count, bytes * count));
            continue;
        }
        let units = match written {
            Some(written) => u64::from(written[hop]),
            None => entry.units(load),
        };
        let all = || booked(&entry.layers(load.header.into(), load.bytes.into()));
        debug_assert!(written.is_some() || units * unit == all(), "the units equal the sum of the layers");
        if units > 0 {
            usage.post_datagram((units, count), (unit, entry), status, load, refused.into());
        }
    }
}

impl Entry {
    /// Returns the layers on the line of a packet with `transport` header bytes and `payload` bytes.
    fn layers(&self, transport: u64, payload: u64) -> Layers {
        if self.is_changed(transport + payload) {
            self.wire.changed(transport, payload, &self.changes)
        } else {
            self.wire.packet(transport, payload)
        }
    }

    /// Returns the units that a datagram with this load takes on the line.
    #[inline]
    fn units(&self, load: Load) -> u64 {
        let bytes = u64::from(load.header) + u64::from(load.bytes);
        if self.is_changed(bytes) {
            self.wire.units_changed(bytes, &self.changes)
        } else {
            self.wire.units(bytes)
        }
    }

    /// Returns whether a packet with `bytes` bytes behind its IP header is fragmented or encapsulated before this line.
    #[inline]
    fn is_changed(&self, bytes: u64) -> bool {
        self.changes.iter().any(|change| match change {
            Change::Cut(mtu) => IP_HEADER_BYTES + bytes > *mtu,
            Change::Wrap(_) => true,
        })
    }

    /// Returns the bytes that tunnels add, up to this line, to a packet that is not fragmented on the way.
    fn added(&self) -> u64 {
        let added = self.changes.iter().map(|change| match change {
            Change::Cut(_) => 0,
            Change::Wrap(added) => *added,
        });
        added.sum()
    }
}

/// Returns the parts of a packet that are posted by delivery status: all except the physical framing and the cell headers.
fn booked(layers: &Layers) -> u64 {
    layers.line() - layers.parts(Layer::Physical) - layers.parts(Layer::CellHeader)
}
