//! The books of every line: where each bit-time of it went. `docs/ledger.md` is their contract.
//!
//! A `Line` is one direction of a link and measures its own idle time; a `Book` is what one flow, in one of its
//! directions, has carried over one line. Cells are booked when a datagram's fate is known ([`Ledger::settle`]), idle time
//! when a frame shows whose it was (`attribute.rs`); [`Ledger::close`] sums up, and refuses books that do not balance.

mod accounts;
mod attribute;
mod close;
mod frames;
mod later;
mod lines;
mod load;
mod open;
mod parted;
mod senders;
mod spoil;
mod stamps;
mod told;
mod trains;
mod waits;

use std::collections::BTreeMap;

use engpass_cells::{Cells, Window};
use engpass_model::wire::ip::IP_HEADER_BYTES;
use engpass_model::wire::layers::{Change, Layer, Layers, Sum, Wire};

pub use accounts::Accounts;
use attribute::Reasons;
pub use close::{BookSeen, Closed, Unbalanced};
pub use later::{Arrivals, Later};
pub use load::{Cargo, Load};
pub use open::{Lane, LaneLine, Opening};
use parted::Parted;
pub use parted::{Piece, Trail};
use senders::put;
pub use spoil::Fault;
use stamps::{NO_STAMP, Stamps};
pub use told::{Teller, Whose};
use waits::Waits;
pub use waits::{Sums, Wait};

/// All books of a run.
#[derive(Debug)]
pub struct Ledger {
    /// Whether anything is booked: not when a benchmark asks what booking costs.
    pub on: bool,
    window: Window,
    /// One for every port.
    lines: Vec<Line>,
    /// For every lane and direction the books of its lines, in the order of the hops.
    books: Vec<Book>,
    /// How packets come onto the lines of their books.
    entries: Vec<Entry>,
    /// Place of the first book of every lane, and the number of all books behind them. The first lanes are the flows', as far as the last of
    /// them that has books of its own, and behind them every TCP connection has two: that of its flow's data, and the one against it.
    first: Vec<u32>,
    flows: u32,
    /// Most hops of a way.
    stride: usize,
    /// What of a datagram has been carried, by hop: `stride` places for each that is written down.
    carried: Vec<u32>,
    /// By lane: datagrams of one kind that were carried in one way, not yet booked. Behind them, how those were carried that are
    /// written down, once there are any.
    runs: Vec<Run>,
    alike: Vec<u32>,
    /// By TCP connection: the run before that of the lane against its flow. Acknowledgments alternate between lengths while losses are repaired.
    earlier: Vec<Run>,
    /// Processes, endpoints: the senders are these and who sends from outside, in this order.
    processes: usize,
    endpoints: usize,
    /// One for every sender but the endpoints that only read.
    senders: Vec<Waits>,
    /// Their sums when the window began, if it did not at the beginning.
    before: Vec<Sums>,
    /// By frame of cells and by packet: the sender's sums when it had been emitted.
    stamps: Vec<Sums>,
    packet_stamps: Stamps,
    /// By book: cells of the sender that have left since its last frame, once any have left a line that others use, too.
    cells_since: Vec<u32>,
    /// By book the first one of its lane on its line; empty if no lane has several books on a shared line.
    first_on_line: Vec<u32>,
    /// Ways that part.
    parted: Parted,
    /// Lines that are down, by port: what their idle time was when they went down, or up to where it is booked.
    down: BTreeMap<usize, u64>,
    /// Where windows begin and end at any time: what is not booked yet.
    pub later: Option<Box<Later>>,
}

/// One direction of a link.
#[derive(Debug)]
struct Line {
    /// It carries cells, not frames.
    cells: bool,
    /// Parts of the line per second, and how many make a bit.
    rate: u128,
    parts_per_bit: u64,
    /// What a grain, a cell or a byte, takes: parts, and the time in ticks, of which so many make a picosecond.
    grain: u64,
    ticks: u64,
    ticks_per_ps: u64,
    /// Parts of a carrier, a cell or a frame: physical framing and header of a cell.
    physical: u64,
    header: u64,
    /// Parts of a unit of the books: the payload of a cell, or a byte of a frame, physical framing apart.
    unit: u64,
    /// The medium frames idle time, too.
    framed: bool,
    /// Frames, and their bytes, that were begun and ended in the window; cells are counted where they leave.
    frames: u64,
    bytes: u64,
    /// Idle time since the beginning as it was told, in picoseconds and the ticks that ends were rounded up by.
    idle: u64,
    rounding: u64,
    /// What it was when the window began and when it ended.
    edges: [Edge; 2],
    /// The first transmission of the window was seen.
    started: bool,
    /// Ticks of the transmission that ended in the window and had begun before: it is not counted.
    cut: Option<u128>,
    user: User,
    /// Idle time of the window by reason, as far as it had one.
    reasons: Option<Box<Reasons>>,
    /// Idle time that has a reason, since the beginning.
    booked: u64,
    /// The book whose sender used the line last.
    last: Option<u32>,
    /// Its books.
    books: Vec<u32>,
}

/// A line's idle time up to an instant, and for how long the transmission has lasted that goes on at it.
#[derive(Clone, Copy, Debug, Default)]
struct Edge {
    idle: u64,
    rounding: u64,
    begun: u128,
}

/// Who could have used a line when it was idle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum User {
    /// No flow sends its data this way.
    Nobody,
    /// The same, but some flow could have: nodes chose other ways for it.
    Elsewhere,
    /// Only generators do, or streams of rate zero.
    Application,
    /// Only the sender of this book's flow, and nobody else uses it: its states are the line's, sum for sum.
    Sole(u32),
    /// A sender among others: frame by frame.
    Shared,
}

/// How packets of a flow come onto a line: most books have one that others have, too.
#[derive(Debug, PartialEq, Eq)]
struct Entry {
    wire: Wire,
    /// What happens to packets at the sender and on their way to this line: first, the sender cuts them.
    changes: Box<[Change]>,
}

/// What a flow has carried over a line in one direction.
#[derive(Debug)]
struct Book {
    flow: u32,
    line: u32,
    /// Place among the [`Entry`]s.
    entry: u32,
    /// Who sends, if it is a process or endpoint with data; else [`NO_SENDER`].
    sender: u32,
    /// The other way than the flow's data.
    against: bool,
    /// What keeps a sender that sends from filling this line.
    held_back: HeldBack,
    /// It is a generator's.
    generates: bool,
    /// Units of datagrams without data; cells of a generator.
    plain: u64,
    /// What else it has carried, once there is anything.
    freight: Option<Box<Freight>>,
    /// It is the last line on the way of its packets that others use, too.
    last_shared: bool,
    /// Place of the sender's sums when the last frame here had been emitted, where others use the line, too; else [`NO_STAMP`].
    stamp: u32,
}

/// What keeps a sender that sends from filling a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeldBack {
    /// Something before the line.
    Upstream,
    /// The shaper of its circuit.
    Shaper,
    /// A node that chooses other ways for some of its packets.
    OtherWay,
}

/// What a book has of data: those that go against a flow have none.
#[derive(Debug, Default)]
struct Freight {
    /// All segments that were delivered and carried wholly, and what of their payload the receiver did not want, in parts.
    segments: Sum,
    duplicate: u64,
    /// Units of datagrams that were not delivered, or not wholly in the window.
    dead: u64,
    in_flight: u64,
    /// Of a `udp-stream`.
    stream: Option<Box<Datagrams>>,
}

/// The datagrams of a `udp-stream`, which are alike.
#[derive(Debug)]
struct Datagrams {
    /// One of them, and its units.
    layers: Layers,
    units: u32,
    /// How many were delivered and carried wholly in the window.
    whole: u64,
    /// The same of which the line may have carried only some packets: these stand among the segments.
    parted: u64,
}

/// No sender.
const NO_SENDER: u32 = u32::MAX;

/// Datagrams one after the other that were delivered, with the same load, and of which each line carried the same: all of it, or
/// what is written down.
#[derive(Clone, Copy, Debug)]
struct Run {
    bytes: u32,
    count: u32,
    header: u16,
    cargo: Cargo,
    written: bool,
}

// Every connection has three.
const _: () = assert!(size_of::<Run>() == 12);

/// What became of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// A receiver has got it.
    Delivered,
    /// A part of it was lost.
    Dead,
    /// Neither, when the run ended.
    InFlight,
}

/// What of a datagram the lines on its way have carried.
#[derive(Clone, Copy, Debug)]
pub enum Carried {
    /// All of it, by the lines of this trail: it is one packet, or all its packets have arrived.
    Whole(Trail),
    /// What is written down for this datagram.
    Written(u32),
}

impl Ledger {
    /// Write down from here on what is carried of a datagram, one of `places`: nothing of it stands there so far.
    pub fn write_down(&mut self, datagram: u32, places: u32) {
        if !self.on {
            return;
        }
        let (from, needed) = (datagram as usize * self.stride, places as usize * self.stride);
        if self.carried.len() < needed {
            self.carried.resize(needed, 0);
        }
        self.carried[from..][..self.stride].fill(0);
    }

    /// The lane of datagrams of `flow`, if they carry segments of those to this endpoint: its place in `first`.
    #[inline]
    fn lane(&self, flow: u32, to: Option<u32>) -> usize {
        // Segments for the end that writes, an even one, go against their flow, in the second lane.
        to.map_or(flow, |to| self.flows + (to ^ 1)) as usize
    }

    /// Of the `count` cells that have left `port` in the window, those that began in it.
    #[inline]
    pub fn begun(&mut self, port: usize, cells: &Cells, count: u64) -> u64 {
        if self.lines[port].started || count == 0 {
            return count;
        }
        self.first_of_window(port, cells, count)
    }

    /// Whether the first transmission of the window on the line of `port` was seen.
    #[inline]
    pub fn has_started(&self, port: usize) -> bool {
        self.lines[port].started || !self.on
    }

    fn first_of_window(&mut self, port: usize, cells: &Cells, count: u64) -> u64 {
        let line = &mut self.lines[port];
        line.started = true;
        let Some(from) = self.window.from else { return count };
        // The first of them to end after `from`.
        let earlier = cells.count_until(from);
        let end = cells.base + cells.pace.after(cells.n + earlier);
        let (num, den) = cells.pace.ratio();
        let cut = if (num, den) == (line.ticks, line.ticks_per_ps) {
            let begin = u128::from(cells.base) * u128::from(den)
                + u128::from(cells.n + earlier).saturating_sub(1) * u128::from(num);
            begin < u128::from(from) * u128::from(den)
        } else {
            // Each found the line free.
            end - line.ticks.div_ceil(line.ticks_per_ps) < from
        };
        line.cut = cut.then_some(u128::from(line.ticks));
        count - u64::from(cut)
    }

    /// Cells of a generator have left hop `hop` of its circuit.
    #[inline]
    pub fn generated(&mut self, flow: usize, hop: u16, count: u64) {
        let book = self.first[flow] as usize + usize::from(hop);
        self.books[book].plain += count;
    }

    /// `count` cells of datagram `id` have left `port`, hop `hop` of its circuit, in the window.
    #[inline]
    pub fn carried(&mut self, port: usize, hop: u16, (id, whose): (u32, Whose), cells: &Cells, count: u64) {
        self.carried[id as usize * self.stride + usize::from(hop)] += count as u32;
        if self.lines[port].user == User::Shared && whose.counted {
            // A line knows ahead of the clock what it will send: what leaves after the end says nothing.
            let inside = cells.last <= self.window.end;
            let left = if inside { cells.count } else { self.window.with_warmup().count(cells, 0) };
            let stamp = (inside && cells.ends_frame()).then(|| self.stamps[cells.frame as usize]);
            self.cells_left(port, self.book_of(whose, hop), left, stamp.as_ref());
        }
    }

    /// A segment was delivered, and all of it carried: book it if it is like those before, and say whether that is so.
    #[inline]
    pub fn settle_alike(&mut self, (flow, to): (u32, Option<u32>), load: Load) -> bool {
        if !self.on {
            return true;
        }
        let lane = self.lane(flow, to);
        let run = &mut self.runs[lane];
        let alike = run.load() == load && !run.written && run.goes_on();
        run.count += u32::from(alike);
        alike
    }

    /// The same, if it is like those of the run before: that goes on.
    #[inline]
    fn settle_as_earlier(&mut self, lane: usize, load: Load) -> bool {
        let Some(place) = self.earlier_of(lane) else { return false };
        let (run, earlier) = (&mut self.runs[lane], &mut self.earlier[place]);
        if run.written || earlier.load() != load || !earlier.goes_on() {
            return false;
        }
        earlier.count += 1;
        std::mem::swap(run, earlier);
        true
    }

    /// Place of the run before that of a lane, if it is kept. What is written down is never in it.
    #[inline]
    fn earlier_of(&self, lane: usize) -> Option<usize> {
        let place = lane.checked_sub(self.flows as usize)?;
        (place % 2 == 1).then_some(place / 2)
    }

    /// The fate of a datagram is known: book what of it was carried. The receiver did not want so many bytes of it.
    #[inline(never)]
    pub fn settle(
        &mut self,
        (flow, to): (u32, Option<u32>),
        fate: Fate,
        load: Load,
        carried: Carried,
        refused: u32,
    ) {
        if !self.on {
            return;
        }
        let lane = self.lane(flow, to);
        match carried {
            Carried::Whole(trail) if trail.lines().is_none() => {
                if fate == Fate::Delivered && refused == 0 {
                    self.settle_listed(lane, trail, load);
                } else {
                    self.book_listed(lane, trail, 1, fate, load, refused);
                }
                return;
            }
            Carried::Written(datagram) if self.has_pieces(datagram) => {
                self.book_pieces(lane, fate, load, datagram, refused);
                return;
            }
            _ => {}
        }
        if fate != Fate::Delivered || refused > 0 {
            self.book(lane, fate, load, carried, refused);
            return;
        }
        let run = &mut self.runs[lane];
        let alike = run.load() == load
            && match carried {
                Carried::Whole(_) => !run.written,
                Carried::Written(datagram) => {
                    let carried = &self.carried[datagram as usize * self.stride..][..self.stride];
                    run.written && *carried == self.alike[lane * self.stride..][..self.stride]
                }
            };
        if alike && run.goes_on() {
            run.count += 1;
            return;
        }
        let settled = match carried {
            Carried::Whole(_) => self.settle_as_earlier(lane, load),
            Carried::Written(datagram) => self.is_nothing(datagram),
        };
        if !settled {
            self.begin_run(lane, load, carried);
        }
    }

    /// Whether nothing of a datagram was carried in the window, of those that are written down.
    fn is_nothing(&self, datagram: u32) -> bool {
        self.carried[datagram as usize * self.stride..][..self.stride].iter().all(|units| *units == 0)
    }

    /// What is delivered now is not like what was delivered before.
    #[inline(never)]
    fn begin_run(&mut self, lane: usize, load: Load, carried: Carried) {
        if !self.runs[lane].written
            && let Some(place) = self.earlier_of(lane)
        {
            std::mem::swap(&mut self.runs[lane], &mut self.earlier[place]);
        }
        self.end_run(lane);
        if load.header > u16::MAX.into() {
            self.book(lane, Fate::Delivered, load, carried, 0);
            return;
        }
        let mut written = false;
        if let Carried::Written(datagram) = carried {
            written = true;
            let places = self.stride;
            self.alike.resize(self.runs.len() * places, 0);
            let carried = &self.carried[datagram as usize * places..][..places];
            self.alike[lane * places..][..places].copy_from_slice(carried);
        }
        self.runs[lane] = Run { written, count: 1, ..Run::of(load) };
    }

    /// Book a run.
    fn end_run(&mut self, lane: usize) {
        let Run { written, count, .. } = self.runs[lane];
        if count == 0 {
            return;
        }
        let load = self.runs[lane].load();
        let alike = written.then(|| &self.alike[lane * self.stride..][..self.stride]);
        let books = &mut self.books[self.first[lane] as usize..self.first[lane + 1] as usize];
        let how = (&self.lines[..], &self.entries[..]);
        book_all(books, how, alike, count.into(), Fate::Delivered, load, 0);
        self.runs[lane].count = 0;
    }

    /// Book what was not booked: the run is over.
    pub fn end_runs(&mut self) {
        for lane in 0..self.runs.len() {
            self.end_run(lane);
            if let Some(place) = self.earlier_of(lane) {
                self.runs[lane] = self.earlier[place];
                self.earlier[place].count = 0;
                self.end_run(lane);
            }
        }
        self.end_listed_runs();
    }

    /// A datagram is lost that is one packet, and that the lines of this trail have carried: book it.
    #[inline(always)]
    pub fn lose(&mut self, (flow, to): (u32, Option<u32>), load: Load, trail: Trail) {
        if !self.on {
            return;
        }
        let lane = self.lane(flow, to);
        let Some(lines) = trail.lines() else {
            self.book_listed(lane, trail, 1, Fate::Dead, load, 0);
            return;
        };
        let first = self.first[lane] as usize;
        for book in &mut self.books[first..][..lines] {
            let units = self.entries[book.entry as usize].units(load);
            book.lose(units, load.cargo);
        }
    }

    /// Book what was carried of one datagram.
    #[inline(never)]
    fn book(&mut self, lane: usize, fate: Fate, load: Load, carried: Carried, refused: u32) {
        let books = &mut self.books[self.first[lane] as usize..self.first[lane + 1] as usize];
        let how = (&self.lines[..], &self.entries[..]);
        match carried {
            Carried::Whole(trail) => {
                let lines = if fate == Fate::Delivered { None } else { trail.lines() };
                let lines = lines.unwrap_or(books.len());
                book_all(&mut books[..lines], how, None, 1, fate, load, refused);
            }
            Carried::Written(datagram) => {
                let carried = &self.carried[datagram as usize * self.stride..][..self.stride];
                book_all(books, how, Some(carried), 1, fate, load, refused);
            }
        }
    }

    /// The warm-up is over.
    pub fn warm(&mut self, now: u64) {
        for (before, sender) in self.before.iter_mut().zip(&self.senders) {
            *before = sender.sums_at(now);
        }
    }
}

impl Run {
    /// None so far.
    fn of(load: Load) -> Self {
        let Load { cargo, header, bytes } = load;
        let header = u16::try_from(header).expect("what has a longer header makes no run");
        Self { header, bytes, count: 0, cargo, written: false }
    }

    #[inline(always)]
    fn load(&self) -> Load {
        Load { cargo: self.cargo, header: self.header.into(), bytes: self.bytes }
    }

    /// Whether there is one that has room for more.
    #[inline(always)]
    fn goes_on(&self) -> bool {
        // Neither 0 nor the greatest number.
        self.count.wrapping_sub(1) < u32::MAX - 1
    }
}

impl Book {
    /// `count` datagrams, of each of which `units` were carried.
    fn settle(
        &mut self,
        (units, count): (u64, u64),
        (unit, entry): (u64, &Entry),
        fate: Fate,
        load: Load,
        refused: u64,
    ) {
        if fate == Fate::Dead || load.cargo == Cargo::Control {
            self.lose(units * count, load.cargo);
            return;
        }
        let (header, bytes) = (u64::from(load.header), u64::from(load.bytes));
        let freight = self.freight.get_or_insert_default();
        match (fate, load.cargo, &mut freight.stream) {
            (Fate::Delivered, Cargo::Datagram, Some(stream)) if units == u64::from(stream.units) => {
                stream.whole += count;
            }
            (Fate::Delivered, Cargo::Segment, _) => {
                let layers = entry.layers(header, bytes);
                if units * unit != booked(&layers) {
                    freight.in_flight += units * count;
                    return;
                }
                freight.segments.add(&layers, count);
                let payload = layers.parts(Layer::Payload);
                freight.duplicate += payload / bytes.max(1) * refused.min(bytes) * count;
            }
            _ => freight.in_flight += units * count,
        }
    }

    /// So many units were carried of what is lost, or has no data.
    #[inline(always)]
    fn lose(&mut self, units: u64, cargo: Cargo) {
        match cargo {
            Cargo::Control => self.plain += units,
            _ => self.freight.get_or_insert_default().dead += units,
        }
    }

    /// Nothing was carried so far.
    fn clear(&mut self) {
        self.plain = 0;
        if let Some(freight) = &mut self.freight {
            (freight.dead, freight.in_flight, freight.duplicate) = (0, 0, 0);
            freight.segments = Sum::default();
            freight.stream.iter_mut().for_each(|stream| (stream.whole, stream.parted) = (0, 0));
        }
    }
}

/// Book `count` datagrams alike: on each line what is written down, or all.
fn book_all(
    books: &mut [Book],
    (lines, entries): (&[Line], &[Entry]),
    written: Option<&[u32]>,
    count: u64,
    fate: Fate,
    load: Load,
    refused: u32,
) {
    let plain = written.is_none() && fate == Fate::Delivered && load.cargo == Cargo::Segment && refused == 0;
    let (header, bytes) = (u64::from(load.header), u64::from(load.bytes));
    for (hop, book) in books.iter_mut().enumerate() {
        let (unit, entry) = (lines[book.line as usize].unit, &entries[book.entry as usize]);
        if plain
            && !entry.is_changed(header + bytes)
            && let Some(padding) = entry.wire.padding(header + bytes)
        {
            let segments = &mut book.freight.get_or_insert_default().segments;
            segments.add_bytes(&entry.wire, count, padding * count, (header * count, bytes * count));
            continue;
        }
        let units = match written {
            Some(written) => u64::from(written[hop]),
            None => entry.units(load),
        };
        let all = || booked(&entry.layers(load.header.into(), load.bytes.into()));
        debug_assert!(written.is_some() || units * unit == all(), "units are what layers come to");
        if units > 0 {
            book.settle((units, count), (unit, entry), fate, load, refused.into());
        }
    }
}

impl Entry {
    /// A packet of so many bytes on the line.
    fn layers(&self, transport: u64, payload: u64) -> Layers {
        if self.is_changed(transport + payload) {
            self.wire.changed(transport, payload, &self.changes)
        } else {
            self.wire.packet(transport, payload)
        }
    }

    /// Its units.
    #[inline]
    fn units(&self, load: Load) -> u64 {
        let bytes = u64::from(load.header) + u64::from(load.bytes);
        if self.is_changed(bytes) {
            self.wire.units_changed(bytes, &self.changes)
        } else {
            self.wire.units(bytes)
        }
    }

    /// Whether anything happens on the way to a packet with so many bytes behind its IP header.
    #[inline]
    fn is_changed(&self, bytes: u64) -> bool {
        self.changes.iter().any(|change| match change {
            Change::Cut(mtu) => IP_HEADER_BYTES + bytes > *mtu,
            Change::Wrap(_) => true,
        })
    }

    /// Bytes that tunnels add to a packet that is not cut on its way.
    fn added(&self) -> u64 {
        let added = self.changes.iter().map(|change| match change {
            Change::Cut(_) => 0,
            Change::Wrap(added) => *added,
        });
        added.sum()
    }
}

/// Parts that are booked by fate: all but what every carrier has around it.
fn booked(layers: &Layers) -> u64 {
    layers.line() - layers.parts(Layer::Physical) - layers.parts(Layer::CellHeader)
}
