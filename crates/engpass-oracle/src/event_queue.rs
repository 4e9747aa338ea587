//! The event queue, in the order of docs/model.md, "Ties".

use std::collections::BTreeMap;

use engpass_model::wire::igmp::Message;

use crate::arp::Key;
use crate::cell::{Cell, LineId};
use crate::tunnel::Carries;

/// Order of events at one instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Group {
    /// Transmissions end; space in ports and NIC buffers becomes free.
    TransmissionEnds,
    /// Links go down and come up, in the order of the events in the file.
    LinkChanges,
    /// Bonds check the carriers of their members, in the order of the file.
    BondLooks,
    /// Cells and frames arrive at switches, routers and hosts, in the order of the links.
    Arrives,
    /// Routers finish processing packets.
    RouterDone,
    /// ICMP messages that routers created reach their engines, in the order of the lines that brought the packets that caused them.
    MessageBegins,
    /// Ends of tunnels give up reassembly, in the order of the routers, then of the directions of tunnels.
    TunnelGivesUp,
    /// ARP requests of routers time out, in the order of the routers' interfaces, then of the stations.
    ArpRetry,
    /// Hosts send IGMP messages, and nodes stop forwarding to members that have left, in the order of the members; of one member, first the message.
    Igmp,
    /// Ends of tunnels send keepalives, in the order of the tunnels, the first end before the second.
    Keepalive,
    /// Free ports of switches and routers take their next cell or packet.
    PortTakes,
    /// Feedback reaches adaptive shapers.
    Answer,
    /// Hosts, first: complete PDUs are received, in the order of the traffic tables.
    PacketComplete,
    /// Hosts, second: CPU items end.
    CpuEnds,
    /// Hosts, third: processes become ready and TCP endpoints wake (start, pace, end of a pause, timers).
    ProcessReady,
    /// Hosts, last: fragments are handed to NICs, and senders that wait for room there are served.
    PacketHanded,
    /// Cells reach the lines of NICs, in the order of the circuits, forward before reverse. Within one direction of a circuit, cells of the shaper
    /// come before cells of generators; generators are in the order of the traffic tables.
    CellReachesNic,
    /// Free lines of NICs take their next cell or packet.
    NicTakes,
}

#[derive(Clone, Debug)]
pub(crate) enum Event {
    /// The cell in transmission has left the transmitter.
    TransmissionEnds(LineId),
    /// The last bit of the packet in transmission has left the transmitter.
    LastBitLeaves(LineId),
    /// The transmission of a frame is over, gap included.
    FrameEnds(LineId),
    /// An event of the file changes a link.
    LinkChanges {
        event: usize,
        down: bool,
    },
    /// A bond checks the carriers of its members.
    BondLooks {
        bond: usize,
    },
    /// The last bit of a cell arrives at the far end of a line.
    CellArrives(LineId, Cell),
    /// The last bit of a packet arrives at the far end of a line.
    FrameArrives {
        line: LineId,
        flying: Flying,
    },
    /// A router has processed a packet.
    RouterDone {
        router: usize,
        engine: usize,
    },
    /// An ICMP message that a router created reaches its engine.
    MessageBegins {
        router: usize,
        packet: usize,
    },
    /// The end of a tunnel gives up an outer packet, unless its reassembly is complete.
    TunnelGivesUp {
        of: Carries,
    },
    /// An ARP request times out and is repeated or given up, unless it was answered.
    ArpRetry {
        of: Key,
    },
    /// The host of a receiver that joins or leaves sends a message.
    IgmpIsDue {
        member: usize,
        message: Message,
    },
    /// Nodes stop forwarding to a receiver, unless its host is a member.
    MembershipEnds {
        member: usize,
    },
    /// An end of a tunnel sends its next keepalive.
    KeepaliveIsDue {
        end: usize,
    },
    /// A transmitter may take its next cell or packet.
    Takes(LineId),
    /// The first line of a circuit at a router starts the last cell of the packet in work.
    LastCellBegins {
        vc: usize,
    },
    /// The queue in front of a circuit at a router may hand over its next packet.
    AsksForPacket {
        vc: usize,
    },
    /// Feedback about a PDU reaches its shaper; `marked` if it had the EFCI mark.
    Answer {
        vc: usize,
        marked: bool,
    },
    /// All cells of a complete PDU are at the host.
    PacketComplete {
        packet: usize,
    },
    /// The item on a host's CPU is done, unless it was interrupted. The number of the item tells.
    CpuEnds {
        host: usize,
        item: u64,
    },
    /// A process begins its next message, unless it ends.
    ProcessReady {
        flow: usize,
    },
    /// A process continues after a pause.
    PauseEnds {
        flow: usize,
    },
    EndpointStarts {
        endpoint: usize,
    },
    /// The application of an endpoint continues after a pause.
    EndpointAwakes {
        endpoint: usize,
    },
    /// The next scheduled write of the application of an endpoint is due.
    WriteIsDue {
        endpoint: usize,
    },
    /// The timer of an endpoint expires, unless it was moved.
    TimerExpires {
        endpoint: usize,
    },
    /// A process hands a fragment to its NIC after the CPU has processed it.
    PacketHanded {
        flow: usize,
    },
    /// A NIC checks whether a waiting sender has room now.
    RoomFreed(LineId),
    /// A shaper emits its first cell.
    ShaperEmits {
        vc: usize,
    },
    /// A generator emits its next cell.
    GeneratorEmits {
        flow: usize,
    },
    /// The next on-time of a generator begins.
    OnTimeBegins {
        flow: usize,
    },
}

/// A packet that propagates on a line.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Flying {
    pub(crate) packet: usize,
    /// The frame is corrupted and will be dropped on arrival.
    pub(crate) damaged: bool,
    /// Instants at which its transmission began and its last bit left, in picoseconds.
    pub(crate) begun: u64,
    pub(crate) left: u64,
}

/// A sender that hands packets to a NIC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sender {
    /// The process of a flow.
    Process(usize),
    /// An endpoint of a connection, by index.
    Endpoint(usize),
}

/// Position in the file, which orders events of one group.
pub(crate) type Position = (usize, usize);

/// All pending events in total order. The first is handled next, and its consequences at the same instant take their places in the order.
#[derive(Debug, Default)]
pub(crate) struct EventQueue {
    due: BTreeMap<(u64, Group, Position, u64), Event>,
    count: u64,
}

impl EventQueue {
    /// Schedules an event. Among events that are equal in time, group and position, the one scheduled first happens first.
    pub(crate) fn put(&mut self, at: u64, group: Group, position: Position, event: Event) {
        self.due.insert((at, group, position, self.count), event);
        self.count += 1;
    }

    /// Removes and returns the next event at or before `until`, with its time in picoseconds.
    pub(crate) fn next(&mut self, until: u64) -> Option<(u64, Event)> {
        let first = self.due.first_entry()?;
        let at = first.key().0;
        (at <= until).then(|| (at, first.remove()))
    }

    /// Returns the cells that propagate on lines.
    pub(crate) fn cells_on_the_way(&self) -> impl Iterator<Item = (LineId, &Cell)> {
        self.due.values().filter_map(|event| match event {
            Event::CellArrives(line, cell) => Some((*line, cell)),
            _ => None,
        })
    }

    /// Returns the line of each packet that propagates.
    pub(crate) fn frames_on_the_way(&self) -> impl Iterator<Item = LineId> {
        self.due.values().filter_map(|event| match event {
            Event::FrameArrives { line, .. } => Some(*line),
            _ => None,
        })
    }
}
