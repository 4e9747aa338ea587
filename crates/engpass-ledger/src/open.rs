//! Books before anything is written in them.

use std::collections::{BTreeMap, BTreeSet};

use engpass_cells::Window;
use engpass_model::source::Traffic;
use engpass_model::time::Pace;
use engpass_model::wire::Framing;
use engpass_model::wire::ip::UDP_HEADER_BYTES;
use engpass_model::wire::layers::{Change, Layer, Wire};
use engpass_testbed::Topology;
use engpass_testbed::topology::LinkEnds;

use super::waits::{SenderState, SenderStates};
use super::{
    DataUsage, DatagramClass, Datagrams, Edge, Entry, HeldBack, Ledger, Line, LineSenders, LineUsage, Load,
    NO_SENDER, NO_STAMP, Parted, Run, SenderSnapshots, booked,
};

/// What the books must know of a network that is put together.
pub struct LedgerInputs<'a> {
    /// The network's graph.
    pub topology: &'a Topology,
    /// The counted time.
    pub window: Window,
    /// Number of processes, the first senders.
    pub processes: usize,
    /// Number of endpoints: of each pair the first one writes and is a sender.
    pub endpoints: usize,
    /// Number of senders outside.
    pub outside: usize,
    /// Number of the lanes that are flows': the first ones.
    pub flows: usize,
    /// Most lines of a lane.
    pub stride: usize,
    /// The lanes of each tree.
    pub trees: Vec<Vec<usize>>,
    /// By line: data of some flow could go this way, if nodes chose so.
    pub spared: &'a [bool],
    /// Lists of the lines behind places of ways that part.
    pub trails: &'a [Box<[u16]>],
}

/// What a lane of books is for.
pub struct FlowDirection<'a> {
    /// Index of the traffic.
    pub flow: usize,
    /// It carries what goes against the flow's data.
    pub against: bool,
    /// Traffic whose data it carries; `None` of acknowledgements and messages.
    pub traffic: Option<&'a Traffic>,
    /// The process or endpoint that sends its data.
    pub sender: Option<usize>,
    /// Its packets are rare. The lane does not count among the users of its lines (docs/ledger.md).
    pub rare: bool,
    /// The MTU for which the sender has cut its packets.
    pub mtu: u64,
    /// The lines that it crosses, in the order of its hops.
    pub lines: Vec<LaneLine>,
}

/// A line of a lane.
pub struct LaneLine {
    /// Number of its transmitter.
    pub number: usize,
    /// How packets stand on it.
    pub wire: Wire,
    /// What happens to packets on the way to it.
    pub changes: Vec<Change>,
    /// What keeps its sender from filling the line.
    pub held_back: HeldBack,
}

impl Ledger {
    /// Books for every lane on every line that it crosses. The first lanes are those of flows. Behind them stand pairs: of a connection one for each
    /// direction, of anything else one that is used and perhaps one that is not.
    pub fn open<'l>(
        opening: LedgerInputs<'_>,
        lanes: impl Iterator<Item = Option<FlowDirection<'l>>>,
    ) -> Self {
        let LedgerInputs { topology, window, processes, endpoints, flows, stride, .. } = opening;
        let senders = processes + endpoints / 2 + opening.outside;
        let mut ledger = Self {
            on: true,
            window,
            lines: Vec::new(),
            books: Vec::new(),
            entries: Vec::new(),
            first: Vec::new(),
            flows: flows as u32,
            stride,
            carried: Vec::new(),
            runs: Vec::new(),
            alike: Vec::new(),
            earlier: Vec::new(),
            processes,
            endpoints,
            senders: (0..senders)
                .map(
                    |place| {
                        if place < processes { SenderStates::of_process() } else { SenderStates::default() }
                    },
                )
                .collect(),
            before: vec![[0; SenderState::COUNT]; if window.from.is_some() { senders } else { 0 }],
            stamps: Vec::new(),
            packet_stamps: SenderSnapshots::default(),
            cells_since: Vec::new(),
            first_on_line: Vec::new(),
            parted: Parted::default(),
            down: BTreeMap::new(),
            later: None,
        };
        ledger.lines.reserve_exact(topology.links.len() * 2);
        for port in 0..topology.links.len() * 2 {
            ledger.lines.push(Line::new(&topology.links[port / 2], port % 2, window));
        }
        ledger.first.reserve_exact(flows + endpoints + 1);
        let mut rare = BTreeSet::new();
        for lane in lanes {
            ledger.first.push(ledger.books.len() as u32);
            for line in lane.iter().flat_map(|lane| &lane.lines) {
                let lane = lane.as_ref().expect("the line is its own");
                if lane.rare {
                    rare.insert(ledger.books.len() as u32);
                }
                ledger.add_book(lane, line);
            }
        }
        let lanes = ledger.first.len();
        ledger.books.shrink_to_fit();
        ledger.first.push(ledger.books.len() as u32);
        ledger.find_users(topology, opening.trees, &rare);
        let spared = ledger.lines.iter_mut().zip(opening.spared);
        for (line, _) in spared.filter(|(_, spared)| **spared) {
            line.user = if line.user == LineSenders::Nobody { LineSenders::Elsewhere } else { line.user };
        }
        ledger.list_trails(opening.trails);
        let none = Load { cargo: DatagramClass::Control, header: 0, bytes: 0 };
        ledger.runs = vec![Run::of(none); lanes];
        ledger.earlier = vec![Run::of(none); (lanes - flows) / 2];
        ledger
    }

    /// The book of a lane on one line.
    fn add_book(&mut self, lane: &FlowDirection<'_>, on: &LaneLine) {
        let LaneLine { number: port, wire, ref changes, held_back } = *on;
        let before = changes;
        let changes = || [Change::Cut(lane.mtu)].into_iter().chain(before.iter().copied());
        // Most lines come after one like them.
        let alike = |known: &Entry| known.wire == wire && known.changes.iter().copied().eq(changes());
        let known = self.entries.iter().rev().take(2 * self.stride).position(alike);
        let place = known.map_or(self.entries.len(), |back| self.entries.len() - 1 - back);
        if known.is_none() {
            self.entries.push(Entry { wire, changes: changes().collect() });
        }
        let entry = &self.entries[place];
        let line = &mut self.lines[port];
        let stream = match lane.traffic {
            Some(Traffic::UdpStream(config)) => {
                let layers = entry.layers(UDP_HEADER_BYTES, config.message.bytes());
                let units = (booked(&layers) / line.unit) as u32;
                Some(Box::new(Datagrams { layers, units, whole: 0, parted: 0 }))
            }
            _ => None,
        };
        let freight = lane.sender.map(|_| Box::new(DataUsage { stream, ..DataUsage::default() }));
        line.books.push(self.books.len() as u32);
        self.books.push(LineUsage {
            flow: lane.flow as u32,
            line: port as u32,
            entry: place as u32,
            sender: lane.sender.map_or(NO_SENDER, |sender| sender as u32),
            against: lane.against,
            held_back,
            generates: matches!(lane.traffic, Some(Traffic::Cbr(_) | Traffic::OnOff(_))),
            plain: 0,
            freight,
            last_shared: false,
            stamp: NO_STAMP,
        });
    }

    /// Find the users of each line, whose reasons its idle time has. Books in `rare` are no users. The lanes of a tree are those of one sender.
    fn find_users(&mut self, topology: &Topology, trees: Vec<Vec<usize>>, rare: &BTreeSet<u32>) {
        for line in &mut self.lines {
            let common = line.books.iter().filter(|book| !rare.contains(book));
            let books = || common.clone().map(|book| (*book, &self.books[*book as usize]));
            let mut senders = books().filter(|(_, book)| book.sender().is_some()).map(|(place, _)| place);
            // A lane has a book for every way in which its packets may have been cut before the line.
            let lane = |book: &LineUsage| (book.flow, book.against, book.sender);
            let silent = |book: &LineUsage| {
                let cells = topology.flows[book.flow as usize].cells.is_some();
                book.sender().is_none() && !book.against && !cells
            };
            let mut users: Vec<_> =
                books().filter(|(_, book)| !silent(book)).map(|(_, book)| lane(book)).collect();
            users.dedup();
            line.user = match senders.next() {
                Some(only) if users.len() == 1 => LineSenders::Sole(only),
                Some(_) => LineSenders::Shared,
                None if books().any(|(_, book)| !book.against) => LineSenders::Application,
                None => LineSenders::Nobody,
            };
            line.reasons = (line.user == LineSenders::Shared).then(Box::default);
        }
        let alone =
            (0..self.first.len() - 1).filter(|lane| !trees.iter().flatten().any(|of_tree| of_tree == lane));
        let alone: Vec<usize> = alone.collect();
        for lane in alone {
            self.find_stamps(&self.books_of(lane).collect::<Vec<_>>(), true);
        }
        for lanes in trees {
            // Copies go on with the stamp of the packet.
            let own: Vec<usize> = lanes.into_iter().flat_map(|lane| self.books_of(lane)).collect();
            self.find_stamps(&own, false);
        }
    }

    /// Places of the books of a lane.
    fn books_of(&self, lane: usize) -> std::ops::Range<usize> {
        self.first[lane] as usize..self.first[lane + 1] as usize
    }

    /// Find out what is to be known of the packets of a sender on lines that others use, too: these are its books. The last such line on the way of its packets
    /// takes their stamp, if it `takes` any.
    fn find_stamps(&mut self, own: &[usize], takes: bool) {
        let shared = |book: &usize| self.lines[self.books[*book].line as usize].user == LineSenders::Shared;
        if !own.iter().any(shared) {
            return;
        }
        let parts = own.iter().any(|book| self.books[*book].held_back == HeldBack::OtherWay);
        // Where ways part, which line is the last differs from packet to packet.
        let (mut last, mut doubled) = (takes && !parts, false);
        for (place, book) in own.iter().copied().enumerate().rev() {
            let Some(sender) = self.books[book].sender() else { continue };
            let states = self.place_of(sender).expect("who sends data has states");
            self.senders[states].stamped = true;
            let line = self.books[book].line;
            if self.lines[line as usize].user == LineSenders::Shared {
                let same = own[place + 1..].iter().find(|other| self.books[**other].line == line);
                doubled |= same.is_some();
                self.books[book].stamp = match same {
                    Some(same) => self.books[*same].stamp,
                    None => self.packet_stamps.begin(),
                };
                self.books[book].last_shared = std::mem::take(&mut last);
            }
        }
        if doubled {
            // Books of one line share a stamp: none of them takes that of a packet.
            own.iter().for_each(|book| self.books[*book].last_shared = false);
            if self.first_on_line.is_empty() {
                self.first_on_line = (0..self.books.len() as u32).collect();
            }
            for book in own {
                let line = self.books[*book].line;
                let first = own.iter().find(|other| self.books[**other].line == line);
                self.first_on_line[*book] = first.map_or(*book as u32, |first| *first as u32);
            }
        }
    }
}

impl Line {
    /// Empty books of the transmitter at end `end` of a link.
    fn new(link: &LinkEnds, end: usize, window: Window) -> Self {
        let line = link.lines[end];
        let wire = link.wire(end, Default::default());
        let byte = 8 * wire.nothing().parts_per_bit();
        let (slot, grain, physical, header, unit) = match (line.framing, wire.cell()) {
            (Framing::Cells { slot }, Some(cell)) => {
                let parts = |layer| cell.parts(layer);
                let around = (parts(Layer::Physical), parts(Layer::CellHeader));
                (slot, cell.line(), around.0, around.1, parts(Layer::Payload))
            }
            _ => {
                let physical = wire.packet(0, 0).parts(Layer::Physical);
                (Pace::of_bits(8, line.rate), byte, physical, 0, byte)
            }
        };
        let (ticks, ticks_per_ps) = slot.ratio();
        Self {
            cells: wire.cell().is_some(),
            rate: wire.capacity(),
            parts_per_bit: wire.nothing().parts_per_bit(),
            grain,
            ticks,
            ticks_per_ps,
            physical,
            header,
            unit,
            framed: link.medium.frames_idle_time(),
            frames: 0,
            bytes: 0,
            idle: 0,
            rounding: 0,
            edges: [Edge::default(); 2],
            started: window.from.is_none(),
            cut: None,
            user: LineSenders::Nobody,
            reasons: None,
            booked: 0,
            last: None,
            books: Vec::new(),
        }
    }
}
