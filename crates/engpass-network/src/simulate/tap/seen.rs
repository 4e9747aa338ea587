//! What somebody who captures is told.

use std::ops::ControlFlow;

use engpass_model::queue::Ecn;
use engpass_model::tcp::Segment;
use engpass_model::time::Time;
use engpass_model::wire::arp::Operation;
use engpass_model::wire::icmp::Said;
use engpass_testbed::topology::NodeId;

/// What passed a link point: the last bit of it left its transmitter.
#[derive(Clone, Debug, PartialEq)]
pub struct CaptureRecord {
    /// When, in picoseconds.
    pub at: u64,
    /// The transmitter: `2 * link + end`.
    pub port: usize,
    /// What.
    pub unit: Unit,
}

/// What moves on a line.
#[derive(Clone, Debug, PartialEq)]
pub enum Unit {
    /// A packet in its frame.
    Packet(Packet),
    /// A cell.
    Cell(Cell),
    /// An ARP packet in its frame.
    Arp(Arp),
}

/// An ARP packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arp {
    /// It asks, or answers.
    pub operation: Operation,
    /// The router that asks, and its transmitter.
    pub router: (NodeId, usize),
    /// The station that is asked, and its transmitter.
    pub station: (NodeId, usize),
}

/// An IP packet.
#[derive(Clone, Debug, PartialEq)]
pub struct Packet {
    /// Its traffic table, in the order of the file.
    pub flow: usize,
    /// It goes from the flow's receiver to its sender.
    pub back: bool,
    /// Number of its source, or of its connection, among all of them in the order of the file.
    pub source: u32,
    /// What stands in its header.
    pub head: Head,
    /// What stands in the headers of the tunnels that it is in, the last one it entered behind the others.
    pub outer: Vec<Outer>,
    /// The transmitter of the host or router that its frame is from, switches apart; zero where cells carry it.
    pub framed_at: usize,
    /// Of what it is the whole, or a fragment.
    pub content: Content,
}

/// The header of a tunnel around a packet, or around a part of it that is a fragment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outer {
    /// The tunnel, in the order of the file.
    pub tunnel: usize,
    /// Whether it goes from the first end of the tunnel to the second.
    pub forward: bool,
    /// What stands in the outer IP header.
    pub head: Head,
}

/// What the network knows of a packet's IP header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Head {
    /// Identification: hosts count the datagrams that they send.
    pub id: u16,
    /// Bytes of the packet, header included.
    pub bytes: u32,
    /// Bytes of its datagram before it.
    pub offset: u32,
    /// Fragments follow.
    pub more: bool,
    /// Time to live.
    pub ttl: u8,
    /// Priority code point.
    pub priority: u8,
    /// What is said of congestion.
    pub ecn: Ecn,
}

/// What a datagram carries.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Content {
    /// A UDP datagram: its number in its flow, and its payload in bytes.
    Datagram {
        /// Number, from 0.
        index: u64,
        /// Payload in bytes.
        bytes: u64,
    },
    /// A TCP segment.
    Segment {
        /// The segment.
        segment: Segment,
        /// The sender's window scale, 0 where the ends have not agreed on one.
        scale: u8,
        /// The sender's timestamp clock.
        tick: Time,
    },
    /// A message of a router: it has dropped a packet that may not be cut and is longer than the MTU of the way out.
    TooBig {
        /// The router, by its place among the routers of the file.
        router: usize,
        /// That MTU, in bytes.
        mtu: u32,
        /// What the header of the packet said when it came to the router.
        head: Head,
        /// The segment in it.
        segment: Segment,
        /// Its sender's window scale.
        scale: u8,
        /// Its sender's timestamp clock.
        tick: Time,
    },
    /// A packet from outside, or a message of a router about one: whoever has put it in has its bytes.
    Outside {
        /// The number that the packet was given.
        token: u64,
        /// What the message says.
        said: Option<Said>,
    },
}

/// A cell of a PDU.
#[derive(Clone, Debug, PartialEq)]
pub struct Cell {
    /// The circuit, in the order of the topology.
    pub circuit: usize,
    /// Whether it goes from the circuit's `from` to its `to`.
    pub forward: bool,
    /// Low priority.
    pub clp: bool,
    /// It met a long queue.
    pub efci: bool,
    /// Its place in its PDU.
    pub place: u32,
    /// Cells of the PDU.
    pub of: u32,
    /// What the PDU is.
    pub pdu: Pdu,
}

/// What a PDU carries.
#[derive(Clone, Debug, PartialEq)]
pub enum Pdu {
    /// An IP packet.
    Packet(Packet),
    /// What this traffic table generates, one cell each.
    Generated(usize),
}

/// Who captures.
pub trait CaptureSink {
    /// This has passed: in order of time, and of one instant in the order of the ports. `Break` ends the run as an interruption does.
    fn passed(&mut self, passing: &CaptureRecord) -> ControlFlow<()>;

    /// Whether more is wanted. When nothing is, the run goes on alone.
    fn wants_more(&self) -> bool;
}
