//! Books before anything is written in them.

use std::collections::BTreeMap;
use std::iter::successors;

use engpass_model::source::Traffic;
use engpass_model::time::Pace;
use engpass_model::wire::Framing;
use engpass_model::wire::icmp;
use engpass_model::wire::ip::UDP_HEADER_BYTES;
use engpass_model::wire::layers::{Change, Layer, Wire};
use engpass_testbed::topology::LinkEnds;
use engpass_testbed::{Testbed, Topology};

use super::waits::{Wait, Waits};
use super::{
    Book, Cargo, Datagrams, Edge, Entry, Freight, HeldBack, Ledger, Line, Load, NO_SENDER, NO_STAMP, Parted,
    Run, Stamps, User, booked,
};
use crate::simulate::fabric::Vc;
use crate::simulate::frames::{Frames, WayLine};
use crate::simulate::host::Process;
use crate::simulate::outside::Sender;
use crate::simulate::tally::Window;
use crate::simulate::tcp::Endpoint;

/// What the books must know of a network that is put together.
pub(in crate::simulate) struct Opening<'a> {
    pub(in crate::simulate) testbed: &'a Testbed,
    pub(in crate::simulate) topology: &'a Topology,
    pub(in crate::simulate) window: Window,
    pub(in crate::simulate) vcs: &'a [Vc],
    pub(in crate::simulate) frames: &'a Frames,
    pub(in crate::simulate) processes: &'a [Process],
    pub(in crate::simulate) endpoints: &'a [Endpoint],
    pub(in crate::simulate) outside: &'a [Sender],
}

/// What a lane of books is for.
struct Lane<'a> {
    flow: usize,
    against: bool,
    /// What it sends, if that is its own.
    traffic: Option<&'a Traffic>,
    /// The process or endpoint that sends its data.
    sender: Option<usize>,
    /// The route of its packets, where they are carried in frames, and the MTU for which their sender has cut them.
    route: u32,
    /// Those of the branches before it, of a branch of a tree.
    before: Vec<u32>,
    mtu: u64,
}

impl Ledger {
    /// Books for every flow on every line that it crosses.
    pub(in crate::simulate) fn open(opening: &Opening<'_>) -> Self {
        let (topology, window) = (opening.topology, opening.window);
        let (processes, endpoints) = (opening.processes.len(), opening.endpoints.len());
        let inside = processes + endpoints;
        let senders = processes + endpoints / 2 + opening.outside.len();
        // Connections have lanes of their own.
        let has_own = |traffic: &Traffic| !matches!(traffic, Traffic::TcpStream(_));
        let flows = opening.testbed.traffic.values().rposition(has_own).map_or(0, |last| last + 1);
        let hops = opening.vcs.iter().map(|vc| vc.hops.len());
        let mut ledger = Self {
            on: true,
            window,
            lines: Vec::new(),
            books: Vec::new(),
            entries: Vec::new(),
            first: Vec::new(),
            flows: flows as u32,
            stride: hops.max().unwrap_or(0).max(opening.frames.most_lines()),
            carried: Vec::new(),
            runs: Vec::new(),
            alike: Vec::new(),
            earlier: Vec::new(),
            processes,
            endpoints,
            senders: (0..senders)
                .map(|place| if place < processes { Waits::of_process() } else { Waits::default() })
                .collect(),
            before: vec![[0; Wait::COUNT]; if window.from.is_some() { senders } else { 0 }],
            stamps: Vec::new(),
            packet_stamps: Stamps::default(),
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
        for (flow, traffic) in opening.testbed.traffic.values().enumerate().take(flows) {
            let own = has_own(traffic);
            let process = opening.processes.binary_search_by_key(&flow, |process| process.flow);
            let outside = opening.outside.binary_search_by_key(&flow, |sender| sender.flow);
            let sender = process.or(outside.map(|place| inside + place)).ok();
            let route = opening.frames.route_of(flow, 0, false);
            let mtu = topology.flows[flow].mtu;
            let lane =
                Lane { flow, against: false, traffic: Some(traffic), sender, route, before: Vec::new(), mtu };
            ledger.add_lane(opening, own.then_some(lane));
        }
        for (pair, ends) in opening.endpoints.chunks(2).enumerate() {
            let flow = ends[0].flow as usize;
            let traffic = &opening.testbed.traffic[flow];
            let sender = opening.processes.len() + 2 * pair;
            let (route, mtu) = (ends[0].route(), topology.flows[flow].mtu);
            let lane = Lane {
                flow,
                against: false,
                traffic: Some(traffic),
                sender: Some(sender),
                route,
                before: Vec::new(),
                mtu,
            };
            let back = Lane {
                flow,
                against: true,
                traffic: None,
                sender: None,
                route: ends[1].route(),
                before: Vec::new(),
                mtu,
            };
            ledger.add_lane(opening, Some(lane));
            ledger.add_lane(opening, Some(back));
        }
        let messages = &opening.frames.icmp.ways;
        for way in messages {
            let (flow, route, mtu) = (way.flow as usize, way.route, icmp::LONGEST);
            let lane =
                Lane { flow, against: true, traffic: None, sender: None, route, before: Vec::new(), mtu };
            ledger.add_lane(opening, Some(lane));
            // Connections have two lanes.
            ledger.add_lane(opening, None);
        }
        // The lanes of each tree, and the branches so far.
        let (mut trees, mut number) = (Vec::new(), 0);
        for (flow, path) in topology.flows.iter().enumerate() {
            let routes = &opening.frames.branches[number..][..path.branches.len()];
            number += path.branches.len();
            let mut lanes = vec![flow];
            for (branch, route) in path.branches.iter().zip(routes) {
                // The first branch has the books of its flow.
                let lane = branch.of.map(|_| {
                    let traffic = Some(&opening.testbed.traffic[flow]);
                    let sender = opening.processes.binary_search_by_key(&flow, |process| process.flow).ok();
                    let mut before: Vec<u32> = successors(branch.of, |place| path.branches[*place].of)
                        .map(|place| routes[place])
                        .collect();
                    before.reverse();
                    Lane { flow, against: false, traffic, sender, route: *route, before, mtu: path.mtu }
                });
                lanes.push(ledger.first.len());
                ledger.add_lane(opening, lane);
                ledger.add_lane(opening, None);
            }
            if lanes.len() > 1 {
                trees.push(lanes);
            }
        }
        ledger.books.shrink_to_fit();
        ledger.first.push(ledger.books.len() as u32);
        ledger.find_users(topology, trees);
        let spared = ledger.lines.iter_mut().zip(&opening.frames.spared);
        for (line, _) in spared.filter(|(_, spared)| **spared) {
            line.user = if line.user == User::Nobody { User::Elsewhere } else { line.user };
        }
        ledger.list_trails(&opening.frames.trails);
        let none = Load { cargo: Cargo::Control, header: 0, bytes: 0 };
        ledger.runs = vec![Run::of(none); ledger.first.len() - 1];
        ledger.earlier = vec![Run::of(none); endpoints / 2 + messages.len() + number];
        ledger
    }

    /// The books of a lane, which has none if it is nobody's.
    fn add_lane(&mut self, opening: &Opening<'_>, lane: Option<Lane<'_>>) {
        self.first.push(self.books.len() as u32);
        let Some(lane) = lane else { return };
        let flow = &opening.topology.flows[lane.flow];
        let lines = match flow.circuit {
            Some(circuit) => {
                let vc = 2 * circuit as u32 + u32::from(flow.forward == lane.against);
                let line = |number: &usize| WayLine {
                    number: *number,
                    vc: Some(vc),
                    changes: Vec::new(),
                    avoidable: false,
                };
                opening.vcs[vc as usize].hops.iter().map(line).collect()
            }
            None => opening.frames.lines_of(&lane.before, lane.route, lane.mtu),
        };
        for WayLine { number, vc, changes, avoidable } in lines {
            let circuit = vc.map(|vc| &opening.topology.circuits[vc as usize / 2]);
            let encapsulation = circuit.map(|circuit| circuit.encapsulation).unwrap_or_default();
            let wire = opening.topology.links[number / 2].wire(number % 2, encapsulation);
            let shaped = vc.is_some_and(|vc| self.is_shaped(&opening.vcs[vc as usize], number));
            let held_back = match (avoidable, shaped) {
                (true, _) => HeldBack::OtherWay,
                (false, true) => HeldBack::Shaper,
                (false, false) => HeldBack::Upstream,
            };
            self.add_book(&lane, number, wire, (lane.mtu, &changes), held_back);
        }
    }

    /// Whether a circuit is shaped below the line of this port.
    fn is_shaped(&self, vc: &Vc, port: usize) -> bool {
        let slower = |line: &Line| {
            let (num, den) = vc.shaper.pace().ratio();
            u128::from(num) * u128::from(line.ticks_per_ps) > u128::from(line.ticks) * u128::from(den)
        };
        // A NIC that sends at the pace of its own line has no shaper, however fast the next lines are.
        let shapes = vc.hops.first().is_some_and(|&port| slower(&self.lines[port]));
        vc.adapting.is_some() || (shapes && slower(&self.lines[port]))
    }

    /// The book of a lane on one line, before which its sender has cut its packets for its MTU, and these changes have happened to them.
    fn add_book(
        &mut self,
        lane: &Lane<'_>,
        port: usize,
        wire: Wire,
        before: (u64, &[Change]),
        held_back: HeldBack,
    ) {
        let changes = || [Change::Cut(before.0)].into_iter().chain(before.1.iter().copied());
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
        let freight = lane.sender.map(|_| Box::new(Freight { stream, ..Freight::default() }));
        line.books.push(self.books.len() as u32);
        self.books.push(Book {
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

    /// Find out whose reasons the idle time of each line has. The lanes of a tree are those of one sender.
    fn find_users(&mut self, topology: &Topology, trees: Vec<Vec<usize>>) {
        for line in &mut self.lines {
            let books = || line.books.iter().map(|book| (*book, &self.books[*book as usize]));
            let mut senders = books().filter(|(_, book)| book.sender().is_some()).map(|(place, _)| place);
            // A lane has a book for every way in which its packets may have been cut before the line.
            let lane = |book: &Book| (book.flow, book.against, book.sender);
            let silent = |book: &Book| {
                let cells = topology.flows[book.flow as usize].cells.is_some();
                book.sender().is_none() && !book.against && !cells
            };
            let mut users: Vec<_> =
                books().filter(|(_, book)| !silent(book)).map(|(_, book)| lane(book)).collect();
            users.dedup();
            line.user = match senders.next() {
                Some(only) if users.len() == 1 => User::Sole(only),
                Some(_) => User::Shared,
                None if books().any(|(_, book)| !book.against) => User::Application,
                None => User::Nobody,
            };
            line.reasons = (line.user == User::Shared).then(Box::default);
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
        let shared = |book: &usize| self.lines[self.books[*book].line as usize].user == User::Shared;
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
            if self.lines[line as usize].user == User::Shared {
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
            user: User::Nobody,
            reasons: None,
            booked: 0,
            last: None,
            books: Vec::new(),
        }
    }
}
