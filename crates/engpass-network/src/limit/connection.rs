//! The terms of a TCP connection, and the rate that its window allows.

use engpass_model::host::{Host, Side};
use engpass_model::source::TcpStream;
use engpass_model::switch::Switch;
use engpass_model::tcp::parameters::{AckCounting, Nagle, SendBufferRule, TcpParameters};
use engpass_model::time::Pace;
use engpass_model::wire::ip::{IP_HEADER_BYTES, TCP_HEADER_BYTES};
use engpass_model::wire::{Framing, aal5, ethernet};
use engpass_testbed::topology::{FlowPath, Hop, Leg, NodeId, NodeKind};
use engpass_testbed::{Testbed, Topology};

use super::outcome::SetBy;

/// Bytes of the timestamps option with its padding (RFC 7323 appendix A).
const TIMESTAMPS_BYTES: u64 = 12;

/// A connection that is open.
#[derive(Clone, Copy, Debug)]
pub(super) struct Connection {
    /// Payload of a full segment, in bytes.
    pub(super) segment: u64,
    /// Header of every segment, options included, in bytes.
    pub(super) header: u64,
    /// Full segments that one acknowledgement acknowledges.
    pub(super) segments_per_ack: f64,
    /// Least number of acknowledgements per bit of payload.
    pub(super) least_acks: f64,
    /// True if more than one acknowledgement per window certainly arrives.
    pub(super) certain: bool,
    /// True if all segments are full, except one at a time.
    pub(super) full_segments: bool,
    pub(super) window: Window,
}

/// The payload that may be in flight, and its shortest round trip.
#[derive(Clone, Copy, Debug)]
pub(super) struct Window {
    /// Most payload bytes that are sent and not acknowledged.
    pub(super) bytes: u64,
    pub(super) set_by: SetBy,
    /// Picoseconds from sending a full segment to handling its acknowledgement on an idle path.
    pub(super) round_trip: f64,
    /// Most payload bytes in flight in short segments, and the round trip of the shortest segment in picoseconds.
    pub(super) shorter: (u64, f64),
}

impl Window {
    /// Most payload bytes that successive windows let through in `time` picoseconds.
    pub(super) fn bytes_within(&self, time: f64) -> f64 {
        let (shorter, trip) = self.shorter;
        (self.bytes - shorter) as f64 * time / self.round_trip + shorter as f64 * time / trip
    }
}

/// The connections of a `tcp-stream`.
pub(super) fn connection(
    testbed: &Testbed,
    topology: &Topology,
    path: &FlowPath,
    config: &TcpStream,
) -> Connection {
    // TCP finds the path MTU (RFC 1191).
    let of = |host: NodeId| config.tcp.over(&testbed.hosts[host].tcp).resolve(path.path_mtu);
    let (sender, receiver) = (of(path.from), of(path.to));
    let message = config.message.bytes();
    // Timestamps if both hosts have them (RFC 7323 section 3.2).
    let options = if sender.timestamps && receiver.timestamps { TIMESTAMPS_BYTES } else { 0 };
    // The smaller segment size; it counts the options of a segment (RFC 6691).
    let segment = sender.mss.min(receiver.mss) - options;
    // A receiver that counts bytes waits for `ack_every` full segments. If segments end with writes, the last of them may
    // bring nearly one segment more.
    let tails = sender.write_boundaries
        && !message.is_multiple_of(segment)
        && receiver.ack_counting != AckCounting::Segments;
    let header = TCP_HEADER_BYTES + options;
    let (bytes, set_by) = in_flight(&sender, &receiver, segment, message);
    let way = Way { testbed, topology, path };
    let round_trip = |payload: u64| way.round_trip(header, payload, config);
    // Nagle's rule lets one short segment be in flight (RFC 896, and Minshall's modification).
    let nagles = matches!(sender.nagle, Nagle::Rfc896 | Nagle::Minshall) && !sender.write_boundaries;
    let full_segments = nagles && message >= segment && bytes >= 2 * segment;
    let shorter = if full_segments { segment } else { bytes };
    Connection {
        segment,
        header,
        segments_per_ack: f64::from(receiver.ack_every + u32::from(tails)),
        // One per window is enough.
        least_acks: 1.0 / (8 * bytes) as f64,
        certain: false,
        full_segments,
        window: Window {
            bytes,
            set_by,
            round_trip: round_trip(segment.min(message).min(bytes)),
            shorter: (shorter, round_trip(1)),
        },
    }
}

/// Most payload bytes that are sent and not acknowledged, and the reason.
fn in_flight(sender: &TcpParameters, receiver: &TcpParameters, segment: u64, message: u64) -> (u64, SetBy) {
    let scales = sender.window_scaling && receiver.window_scaling;
    let field = 65_535;
    // The least scale that announces the buffer (RFC 7323 section 2.2), and windows in its units, rounded up.
    let scale = (0..14).find(|scale| receiver.receive_buffer >> scale <= field).unwrap_or(14);
    let scale = if scales { scale } else { 0 };
    let buffer = receiver.receive_buffer.max(receiver.receive_minimum_segments * segment);
    let most = field << scale;
    let announced = buffer.min(most).next_multiple_of(1 << scale).min(most);
    let kept = match sender.send_buffer_rule {
        SendBufferRule::Bytes => sender.send_buffer,
        // Sent bytes do not count.
        SendBufferRule::HighWater => u64::MAX,
        // An empty buffer takes a whole write.
        SendBufferRule::WholeWrites => sender.send_buffer.max(message),
    };
    if kept < announced {
        (kept, SetBy::SendBuffer)
    } else {
        (announced, if buffer > most && !scales { SetBy::WindowField } else { SetBy::ReceiveBuffer })
    }
}

/// The idle path of a flow.
struct Way<'a> {
    testbed: &'a Testbed,
    topology: &'a Topology,
    path: &'a FlowPath,
}

impl Way<'_> {
    /// Picoseconds from sending a segment of `payload` bytes to handling its acknowledgement.
    fn round_trip(&self, header: u64, payload: u64, config: &TcpStream) -> f64 {
        let host = |node: NodeId| -> &Host { &self.testbed.hosts[node] };
        let writes = host(self.path.from).occupation(Side::Send, config.send_path);
        let reads = host(self.path.to).occupation(Side::Receive, config.receive_path);
        let hosts = writes.segment() + reads.segment() + reads.bytes(payload) + reads.ack() + writes.ack();
        let there = self.path.legs.iter().map(|leg| self.leg(*leg, IP_HEADER_BYTES + header + payload));
        let back = self.path.legs.iter().map(|leg| self.leg(leg.back(), IP_HEADER_BYTES + header));
        hosts as f64 + there.chain(back).sum::<f64>()
    }

    /// Picoseconds that a packet of `ip` bytes needs to cross a leg, with the handling by the node at its end.
    fn leg(&self, leg: Leg, ip: u64) -> f64 {
        let hops = self.topology.hops(leg);
        let time = match leg {
            Leg::Link(hop) => {
                let link = &self.topology.links[hop.link];
                let gap = if link.lines[0].framing == Framing::Ethernet { ethernet::GAP_BYTES } else { 0 };
                let line = Pace::of_bits(8, link.line_from(hop.from).rate);
                (link.line_bytes(ip) - gap) as f64 * picoseconds(line) + link.delay.ps() as f64
            }
            Leg::Circuit { circuit, forward } => {
                let circuit = &self.topology.circuits[circuit];
                let slots: Vec<f64> = hops.iter().map(|hop| self.slot(hop)).collect();
                let shaper = circuit.shaping.filter(|_| forward).map_or(0.0, picoseconds);
                // The cells follow each other at the slowest pace, and the last one crosses every line by itself.
                let slowest = slots.iter().fold(shaper, |slowest, slot| slot.max(slowest));
                let cells = aal5::cells(circuit.encapsulation.sdu(ip));
                let delays: u64 = hops.iter().map(|hop| self.topology.links[hop.link].delay.ps()).sum();
                (cells - 1) as f64 * slowest + slots.iter().sum::<f64>() + delays as f64
            }
        };
        let end = hops.last().expect("a leg has a hop").to;
        let node = match self.topology.kind(end) {
            NodeKind::Host(_) => 0,
            NodeKind::Router(router) => self.testbed.routers[router].per_packet.0,
            NodeKind::Switch(switch) => match &self.testbed.switches[switch] {
                Switch::Ethernet(switch) => switch.latency.0,
                Switch::Atm(_) => 0,
            },
        };
        time + node as f64
    }

    fn slot(&self, hop: &Hop) -> f64 {
        match self.topology.links[hop.link].line_from(hop.from).framing {
            Framing::Cells { slot } => picoseconds(slot),
            Framing::Ethernet | Framing::Packets => unreachable!("a circuit crosses ATM links"),
        }
    }
}

/// Picoseconds of one unit.
fn picoseconds(pace: Pace) -> f64 {
    let (ps, units) = pace.ratio();
    ps as f64 / units as f64
}
