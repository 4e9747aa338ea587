//! Records that a capture delivers.

use std::ops::ControlFlow;

use engpass_model::queue::Ecn;
use engpass_model::tcp::Segment;
use engpass_model::time::Time;
use engpass_model::wire::arp::Operation;
use engpass_model::wire::icmp::MessageContent;
use engpass_model::wire::igmp::Message;
use engpass_testbed::topology::NodeId;

/// A capture record: a packet or cell whose last bit has left its transmitter.
#[derive(Clone, Debug, PartialEq)]
pub struct CaptureRecord {
    /// Instant at which the last bit left, in picoseconds.
    pub at: u64,
    /// Number of the transmitter: `2 * link + end`.
    pub port: usize,
    /// The packet or cell.
    pub unit: Unit,
}

/// Content of a capture record.
#[derive(Clone, Debug, PartialEq)]
pub enum Unit {
    /// A packet in its frame.
    Packet(Packet),
    /// A cell.
    Cell(Cell),
    /// An ARP packet in its frame.
    Arp(Arp),
    /// An IGMP message in its frame.
    Igmp(Igmp),
}

/// An IGMP message of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Igmp {
    /// Index of the multicast traffic table, in the order of the file.
    pub flow: usize,
    /// Report or leave message.
    pub message: Message,
    /// The host, and its transmitter.
    pub host: (NodeId, usize),
}

/// An ARP packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arp {
    /// Request or reply.
    pub operation: Operation,
    /// The router that resolves the address, and its transmitter.
    pub router: (NodeId, usize),
    /// The station whose address is requested, and its transmitter.
    pub station: (NodeId, usize),
}

/// An IP packet.
#[derive(Clone, Debug, PartialEq)]
pub struct Packet {
    /// Index of the packet's traffic table, in the order of the file; `usize::MAX` for a keepalive.
    pub flow: usize,
    /// True if the packet travels from the flow's receiver to its sender.
    pub back: bool,
    /// Number of the packet's source or connection, counted over all traffic tables in the order of the file.
    pub source: u32,
    /// IP header of the packet; in a tunnel the innermost one.
    pub head: Head,
    /// Outer headers of the tunnels that the packet is in, in the order of entry.
    pub outer: Vec<Outer>,
    /// The transmitter of the host or router that sent the frame, switches disregarded; zero if cells carry the packet.
    pub framed_at: usize,
    /// The datagram that the packet carries, completely or as a fragment.
    pub content: Content,
}

/// An outer header around a packet, or around a part of it if the outer packet was fragmented.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outer {
    /// Index of the tunnel, in the order of the file.
    pub tunnel: usize,
    /// True for the direction from the first end of the tunnel to the second.
    pub forward: bool,
    /// Number of the packet in its direction, for headers with sequence numbers.
    pub sequence: u32,
    /// The outer IP header.
    pub head: Head,
}

/// Fields of an IP header that the network knows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Head {
    /// Identification: a counter of the sending host.
    pub id: u16,
    /// Length of the packet in bytes, header included.
    pub bytes: u32,
    /// Fragment offset, in bytes.
    pub offset: u32,
    /// True if more fragments follow.
    pub more: bool,
    /// Time to live.
    pub ttl: u8,
    /// Priority code point.
    pub priority: u8,
    /// ECN field.
    pub ecn: Ecn,
}

/// Content of a datagram.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Content {
    /// A UDP datagram.
    Datagram {
        /// Index in its flow, from 0.
        index: u64,
        /// Payload in bytes.
        bytes: u64,
    },
    /// A TCP segment.
    Segment {
        /// The segment.
        segment: Segment,
        /// The sender's window scale; 0 if the ends have not agreed on one.
        scale: u8,
        /// Tick of the sender's timestamp clock.
        tick: Time,
    },
    /// An ICMP message: a router has dropped a packet with the DF bit that exceeds the MTU of the next hop.
    TooBig {
        /// Index of the router, in the order of the file.
        router: usize,
        /// The MTU of the next hop, in bytes.
        mtu: u32,
        /// Header of the dropped packet when it arrived at the router.
        head: Head,
        /// The segment in the dropped packet.
        segment: Segment,
        /// Window scale of the segment's sender.
        scale: u8,
        /// Tick of the timestamp clock of the segment's sender.
        tick: Time,
    },
    /// A keepalive that an end of a tunnel sends to itself by way of the other end.
    Keepalive {
        /// Index of the tunnel, in the order of the file.
        tunnel: usize,
        /// True if it enters the tunnel at the first of the tunnel's ends.
        forward: bool,
    },
    /// An injected packet, or an ICMP message about one. The caller that injected the packet has its bytes.
    Outside {
        /// The token of the packet.
        token: u64,
        /// Content of the ICMP message, if it is one.
        said: Option<MessageContent>,
    },
}

/// A cell of a PDU.
#[derive(Clone, Debug, PartialEq)]
pub struct Cell {
    /// Index of the circuit, in the order of the topology.
    pub circuit: usize,
    /// True for the direction from the circuit's `from` to its `to`.
    pub forward: bool,
    /// CLP bit: low priority.
    pub clp: bool,
    /// EFCI mark: the cell met a queue above the EFCI threshold.
    pub efci: bool,
    /// Index of the cell in its PDU.
    pub place: u32,
    /// Number of cells of the PDU.
    pub of: u32,
    /// Content of the PDU.
    pub pdu: Pdu,
}

/// Content of a PDU.
#[derive(Clone, Debug, PartialEq)]
pub enum Pdu {
    /// An IP packet.
    Packet(Packet),
    /// A cell of the generator with this traffic index.
    Generated(usize),
}

/// A receiver of capture records.
pub trait CaptureSink {
    /// Takes a record. Records come in order of time, and at one instant in the order of the ports. `Break` ends the run with
    /// [`SimError::Interrupted`](crate::SimError::Interrupted).
    fn passed(&mut self, passing: &CaptureRecord) -> ControlFlow<()>;

    /// Returns false when no more records are wanted; the run then continues without capture.
    fn wants_more(&self) -> bool;
}
