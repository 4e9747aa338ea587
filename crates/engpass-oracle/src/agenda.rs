//! What is due, in the order of docs/model.md, "Ties".

use std::collections::BTreeMap;

use crate::arp::Key;
use crate::cell::{Cell, LineId};
use crate::tunnel::Carries;

/// What comes first among all that happens at one instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Group {
    /// Transmissions end; places in ports and NIC memory become free.
    TransmissionEnds,
    /// Links go down and come up, in the order of the events in the file.
    LinkChanges,
    /// Bonds look at the carriers of their members, in the order of the file.
    BondLooks,
    /// Cells and frames arrive at switches, routers and hosts, in the order of the links.
    Arrives,
    /// Routers are done with packets.
    RouterDone,
    /// Messages that routers have made come to their engines, in the order of the lines that brought what they are about.
    MessageBegins,
    /// Ends of tunnels give packets up, in the order of the routers, then of the directions of tunnels.
    TunnelGivesUp,
    /// Requests of routers have not been answered in time, in the order of the routers' interfaces, then of the stations.
    ArpRetry,
    /// Ports of switches and routers that are free take their next cell or packet.
    PortTakes,
    /// Answers reach shapers that adapt.
    Answer,
    /// Hosts, first: complete PDUs are received, in the order of the traffic tables.
    PacketComplete,
    /// Hosts, second: CPU items end.
    CpuEnds,
    /// Hosts, third: processes become ready and TCP endpoints wake (start, pace, end of a pause, timers).
    ProcessReady,
    /// Hosts, last: fragments are handed to NICs, and who waits for room there is served.
    PacketHanded,
    /// Cells reach the lines of NICs, in the order of the circuits, forward before reverse; in one direction of a
    /// circuit the shaper's before generators', those in the order of the traffic tables.
    CellReachesNic,
    /// Lines of NICs that are free take their next cell or packet.
    NicTakes,
}

/// Something that happens.
#[derive(Clone, Debug)]
pub(crate) enum Event {
    /// The cell being sent has left the transmitter.
    TransmissionEnds(LineId),
    /// The last bit of the packet being sent has left the transmitter.
    LastBitLeaves(LineId),
    /// What a frame takes of its line is over, gap included.
    FrameEnds(LineId),
    /// An event of the file happens.
    LinkChanges { event: usize, down: bool },
    /// A bond looks at the carriers of its members.
    BondLooks { bond: usize },
    /// A cell is, whole, at the far end of a line.
    CellArrives(LineId, Cell),
    /// A packet is, whole, at the far end of a line.
    FrameArrives { line: LineId, flying: Flying },
    /// A router has processed its packet.
    RouterDone { router: usize },
    /// A message that a router has made comes to its engine.
    MessageBegins { router: usize, packet: usize },
    /// The end of a tunnel gives a packet up, unless it has become whole.
    TunnelGivesUp { of: Carries },
    /// A request for a neighbour is due again, or the router gives up, unless it has been answered.
    ArpRetry { of: Key },
    /// A transmitter may take its next cell or packet.
    Takes(LineId),
    /// At a router the line on which a circuit begins starts the last cell of the packet in work.
    LastCellBegins { vc: usize },
    /// The queue in front of a circuit may hand over its next packet.
    AsksForPacket { vc: usize },
    /// A shaper hears of a PDU, and whether it had the EFCI mark.
    Answer { vc: usize, marked: bool },
    /// All cells of a good PDU are at the host.
    PacketComplete { packet: usize },
    /// The item on a host's CPU is done, if it was not interrupted: items are numbered.
    CpuEnds { host: usize, item: u64 },
    /// A process begins its next message, unless it ends.
    ProcessReady { flow: usize },
    /// A process goes on after a pause.
    PauseEnds { flow: usize },
    /// An endpoint begins.
    EndpointStarts { endpoint: usize },
    /// The application of an endpoint goes on after a pause.
    EndpointAwakes { endpoint: usize },
    /// The application of an endpoint writes by its schedule.
    WriteIsDue { endpoint: usize },
    /// The time of an endpoint's timer, unless it has another by now.
    TimerExpires { endpoint: usize },
    /// A process has a fragment that the CPU has paid for.
    PacketHanded { flow: usize },
    /// A NIC looks at those who wait for room.
    RoomFreed(LineId),
    /// A shaper lets its first cell go.
    ShaperEmits { vc: usize },
    /// A generator's next cell.
    GeneratorEmits { flow: usize },
    /// A generator's next on-time begins.
    OnTimeBegins { flow: usize },
}

/// A packet on a line behind its transmitter.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Flying {
    pub(crate) packet: usize,
    /// It is thrown away where it arrives.
    pub(crate) damaged: bool,
    /// When its transmission began, and when its last bit has left.
    pub(crate) begun: u64,
    pub(crate) left: u64,
}

/// Who hands packets to a NIC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sender {
    /// The process of a flow.
    Process(usize),
    /// An endpoint of a connection, by its index.
    Endpoint(usize),
}

/// Position in the file, as far as it orders events of one group.
pub(crate) type Position = (usize, usize);

/// All that is due: the first is done next, and what it causes at the same instant takes its place in the order.
#[derive(Debug, Default)]
pub(crate) struct EventQueue {
    due: BTreeMap<(u64, Group, Position, u64), Event>,
    count: u64,
}

impl EventQueue {
    /// Put an event on the agenda. Equal in everything, the one put first happens first.
    pub(crate) fn put(&mut self, at: u64, group: Group, position: Position, event: Event) {
        self.due.insert((at, group, position, self.count), event);
        self.count += 1;
    }

    /// The next event at or before `until`, in picoseconds.
    pub(crate) fn next(&mut self, until: u64) -> Option<(u64, Event)> {
        let first = self.due.first_entry()?;
        let at = first.key().0;
        (at <= until).then(|| (at, first.remove()))
    }

    /// Cells on the wire of each line, by direction of circuit.
    pub(crate) fn cells_on_the_way(&self) -> impl Iterator<Item = (LineId, &Cell)> {
        self.due.values().filter_map(|event| match event {
            Event::CellArrives(line, cell) => Some((*line, cell)),
            _ => None,
        })
    }

    /// Packets on the wire of each line.
    pub(crate) fn frames_on_the_way(&self) -> impl Iterator<Item = LineId> {
        self.due.values().filter_map(|event| match event {
            Event::FrameArrives { line, .. } => Some(*line),
            _ => None,
        })
    }
}
