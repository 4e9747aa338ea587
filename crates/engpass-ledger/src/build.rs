//! Builds the empty ledger of a run.

use std::collections::{BTreeMap, BTreeSet};

use engpass_model::source::Traffic;
use engpass_model::time::Pace;
use engpass_model::window::Window;
use engpass_model::wire::Framing;
use engpass_model::wire::ip::UDP_HEADER_BYTES;
use engpass_model::wire::layers::{Change, Layer, Wire};
use engpass_testbed::Topology;
use engpass_testbed::topology::LinkEnds;

use super::sender_states::{SenderState, SenderStates};
use super::{
    DataUsage, DatagramClass, Datagrams, Edge, Entry, HeldBack, Ledger, Line, LineSenders, LineUsage, Load,
    NO_SENDER, NO_STAMP, Parted, Run, SenderSnapshots, booked,
};

/// The data of a network from which its ledger is built.
pub struct LedgerInputs<'a> {
    /// The network's graph.
    pub topology: &'a Topology,
    /// The measurement window.
    pub window: Window,
    /// Number of processes, the first senders.
    pub processes: usize,
    /// Number of TCP endpoints. The first one of each pair writes data and is a sender.
    pub endpoints: usize,
    /// Number of sources of injected packets, which are senders too.
    pub outside: usize,
    /// Number of flow directions that belong to flows. They come first in every list of flow directions.
    pub flows: usize,
    /// Largest number of lines that a flow direction crosses.
    pub stride: usize,
    /// The flow directions of each multicast tree.
    pub trees: Vec<Vec<usize>>,
    /// By line: true if policies could choose this line for data of some flow.
    pub usable_for_data: &'a [bool],
    /// Lines of each trail, for flows with several paths.
    pub trails: &'a [Box<[u16]>],
}

/// A flow direction.
pub struct FlowDirection<'a> {
    /// Index of the traffic.
    pub flow: usize,
    /// True if the packets flow against the flow's data, as acknowledgments do.
    pub against: bool,
    /// Traffic whose data the flow direction carries; `None` for acknowledgments and messages.
    pub traffic: Option<&'a Traffic>,
    /// Index of the process or endpoint that sends the data.
    pub sender: Option<usize>,
    /// True if packets are rare, as those of ARP are. The flow direction is then no user of its lines (docs/ledger.md).
    pub rare: bool,
    /// The MTU to which the sender fragments its packets.
    pub mtu: u64,
    /// The lines that the flow direction crosses, in the order of its hops.
    pub lines: Vec<FlowDirectionLine>,
}

/// A line that a flow direction crosses.
pub struct FlowDirectionLine {
    /// Index of the line's output port.
    pub number: usize,
    /// Format of the flow direction's packets on the line.
    pub wire: Wire,
    /// Changes to packets between sender and line: fragmentation and encapsulation.
    pub changes: Vec<Change>,
    /// Cause to which idle time of the line is posted while the sender is sending.
    pub held_back: HeldBack,
}

impl Ledger {
    /// Creates a ledger with a usage record for every line of every flow direction. The directions of flows come first. Two directions follow for each pair of
    /// endpoints: data and acknowledgments of a TCP connection; for other traffic the second one may be unused.
    pub fn open<'l>(
        opening: LedgerInputs<'_>,
        directions: impl Iterator<Item = Option<FlowDirection<'l>>>,
    ) -> Self {
        let LedgerInputs { topology, window, processes, endpoints, flows, stride, .. } = opening;
        let senders = processes + endpoints / 2 + opening.outside;
        let mut ledger = Self {
            on: true,
            window,
            lines: Vec::new(),
            usages: Vec::new(),
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
            deferred: None,
        };
        ledger.lines.reserve_exact(topology.links.len() * 2);
        for port in 0..topology.links.len() * 2 {
            ledger.lines.push(Line::new(&topology.links[port / 2], port % 2, window));
        }
        ledger.first.reserve_exact(flows + endpoints + 1);
        let mut rare = BTreeSet::new();
        for direction in directions {
            ledger.first.push(ledger.usages.len() as u32);
            for line in direction.iter().flat_map(|direction| &direction.lines) {
                let direction = direction.as_ref().expect("the line belongs to an existing flow direction");
                if direction.rare {
                    rare.insert(ledger.usages.len() as u32);
                }
                ledger.add_usage(direction, line);
            }
        }
        let directions = ledger.first.len();
        ledger.usages.shrink_to_fit();
        ledger.first.push(ledger.usages.len() as u32);
        ledger.find_users(topology, opening.trees, &rare);
        let usable_for_data = ledger.lines.iter_mut().zip(opening.usable_for_data);
        for (line, _) in usable_for_data.filter(|(_, usable_for_data)| **usable_for_data) {
            line.user = if line.user == LineSenders::Nobody { LineSenders::Elsewhere } else { line.user };
        }
        ledger.list_trails(opening.trails);
        let none = Load { class: DatagramClass::Control, header: 0, bytes: 0 };
        ledger.runs = vec![Run::of(none); directions];
        ledger.earlier = vec![Run::of(none); (directions - flows) / 2];
        ledger
    }

    /// Adds the usage record of a flow direction on one line.
    fn add_usage(&mut self, direction: &FlowDirection<'_>, on: &FlowDirectionLine) {
        let FlowDirectionLine { number: port, wire, ref changes, held_back } = *on;
        let before = changes;
        let changes = || [Change::Cut(direction.mtu)].into_iter().chain(before.iter().copied());
        // Most lines have the same packet format as a recent one.
        let alike = |known: &Entry| known.wire == wire && known.changes.iter().copied().eq(changes());
        let known = self.entries.iter().rev().take(2 * self.stride).position(alike);
        let place = known.map_or(self.entries.len(), |back| self.entries.len() - 1 - back);
        if known.is_none() {
            self.entries.push(Entry { wire, changes: changes().collect() });
        }
        let entry = &self.entries[place];
        let line = &mut self.lines[port];
        let stream = match direction.traffic {
            Some(Traffic::UdpStream(config)) => {
                let layers = entry.layers(UDP_HEADER_BYTES, config.message.bytes());
                let units = (booked(&layers) / line.unit) as u32;
                Some(Box::new(Datagrams { layers, units, whole: 0, parted: 0 }))
            }
            _ => None,
        };
        let data = direction.sender.map(|_| Box::new(DataUsage { stream, ..DataUsage::default() }));
        line.usages.push(self.usages.len() as u32);
        self.usages.push(LineUsage {
            flow: direction.flow as u32,
            line: port as u32,
            entry: place as u32,
            sender: direction.sender.map_or(NO_SENDER, |sender| sender as u32),
            against: direction.against,
            held_back,
            generates: matches!(direction.traffic, Some(Traffic::Cbr(_) | Traffic::OnOff(_))),
            plain: 0,
            data,
            last_shared: false,
            stamp: NO_STAMP,
        });
    }

    /// Finds the users of each line. Usage records in `rare` are no users. All flow directions of a multicast tree belong to one sender.
    fn find_users(&mut self, topology: &Topology, trees: Vec<Vec<usize>>, rare: &BTreeSet<u32>) {
        for line in &mut self.lines {
            let common = line.usages.iter().filter(|usage| !rare.contains(usage));
            let usages = || common.clone().map(|usage| (*usage, &self.usages[*usage as usize]));
            let mut senders = usages().filter(|(_, usage)| usage.sender().is_some()).map(|(place, _)| place);
            // A flow direction has one usage record on a line for every way in which its packets may be fragmented before it.
            let direction = |usage: &LineUsage| (usage.flow, usage.against, usage.sender);
            let silent = |usage: &LineUsage| {
                let cells = topology.flows[usage.flow as usize].cells.is_some();
                usage.sender().is_none() && !usage.against && !cells
            };
            let mut users: Vec<_> =
                usages().filter(|(_, usage)| !silent(usage)).map(|(_, usage)| direction(usage)).collect();
            users.dedup();
            line.user = match senders.next() {
                Some(only) if users.len() == 1 => LineSenders::Sole(only),
                Some(_) => LineSenders::Shared,
                None if usages().any(|(_, usage)| !usage.against) => LineSenders::Application,
                None => LineSenders::Nobody,
            };
            line.reasons = (line.user == LineSenders::Shared).then(Box::default);
        }
        let alone = (0..self.first.len() - 1)
            .filter(|direction| !trees.iter().flatten().any(|of_tree| of_tree == direction));
        let alone: Vec<usize> = alone.collect();
        for direction in alone {
            self.prepare_snapshots(&self.usage_indices_of(direction).collect::<Vec<_>>(), true);
        }
        for directions in trees {
            // Copies of a multicast packet share its snapshot.
            let own: Vec<usize> =
                directions.into_iter().flat_map(|direction| self.usage_indices_of(direction)).collect();
            self.prepare_snapshots(&own, false);
        }
    }

    /// Returns the indices of the usage records of a flow direction.
    fn usage_indices_of(&self, direction: usize) -> std::ops::Range<usize> {
        self.first[direction] as usize..self.first[direction + 1] as usize
    }

    /// Prepares the sender snapshots for the usage records `own` of one sender, if any of their lines is shared. If `takes` is set, the usage record of the
    /// last shared line takes over the snapshot of a departing packet instead of copying it.
    fn prepare_snapshots(&mut self, own: &[usize], takes: bool) {
        let shared =
            |usage: &usize| self.lines[self.usages[*usage].line as usize].user == LineSenders::Shared;
        if !own.iter().any(shared) {
            return;
        }
        let parts = own.iter().any(|usage| self.usages[*usage].held_back == HeldBack::OtherWay);
        // With several paths, the last shared line differs from packet to packet.
        let (mut last, mut doubled) = (takes && !parts, false);
        for (place, usage) in own.iter().copied().enumerate().rev() {
            let Some(sender) = self.usages[usage].sender() else { continue };
            let states = self.place_of(sender).expect("a data sender has sender states");
            self.senders[states].stamped = true;
            let line = self.usages[usage].line;
            if self.lines[line as usize].user == LineSenders::Shared {
                let same = own[place + 1..].iter().find(|other| self.usages[**other].line == line);
                doubled |= same.is_some();
                self.usages[usage].stamp = match same {
                    Some(same) => self.usages[*same].stamp,
                    None => self.packet_stamps.begin(),
                };
                self.usages[usage].last_shared = std::mem::take(&mut last);
            }
        }
        if doubled {
            // Usage records on one line share a snapshot. Therefore none of them may take over that of a packet.
            own.iter().for_each(|usage| self.usages[*usage].last_shared = false);
            if self.first_on_line.is_empty() {
                self.first_on_line = (0..self.usages.len() as u32).collect();
            }
            for usage in own {
                let line = self.usages[*usage].line;
                let first = own.iter().find(|other| self.usages[**other].line == line);
                self.first_on_line[*usage] = first.map_or(*usage as u32, |first| *first as u32);
            }
        }
    }
}

impl Line {
    /// Returns the empty line of the output port at end `end` (0 or 1) of a link.
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
            usages: Vec::new(),
        }
    }
}
