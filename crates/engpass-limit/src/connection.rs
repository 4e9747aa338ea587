//! Parameters of a TCP connection, and the rate that its windows allow.

use engpass_model::host::Side;
use engpass_model::idle::LonePacket;
use engpass_model::source::TcpStream;
use engpass_model::tcp::parameters::{AckCounting, Nagle, SendBufferRule, TcpParameters};
use engpass_model::wire::ip::{IP_HEADER_BYTES, TCP_HEADER_BYTES};
use engpass_outcome::SetBy;
use engpass_testbed::topology::{FlowPath, NodeId};
use engpass_testbed::{Lane, Spread, Topology};

use super::engine_work::EngineWork;
use super::idle::{Pick, Travel};

/// Bytes of the timestamps option with its padding (RFC 7323 appendix A).
const TIMESTAMPS_BYTES: u64 = 12;

/// Parameters of an open TCP connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct Connection {
    /// Payload of a full segment, in bytes.
    pub(super) segment: u64,
    /// Header of every segment, options included, in bytes.
    pub(super) header: u64,
    /// Number of full segments per acknowledgement.
    pub(super) segments_per_ack: f64,
    /// Least number of acknowledgements per bit of payload that arrive at the sender.
    pub(super) least_acks: f64,
    /// True if more than one acknowledgement per window certainly arrives.
    pub(super) certain: bool,
    /// True if at most one segment in flight is shorter than a full one, because the sender uses Nagle's rule.
    pub(super) full_segments: bool,
    pub(super) window: Window,
}

/// The payload that may be in flight, and the round-trip time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Window {
    /// Largest number of payload bytes that are sent and not acknowledged.
    pub(super) bytes: u64,
    pub(super) set_by: SetBy,
    /// Time from sending a full segment to handling its acknowledgement on an idle path, in picoseconds: over the slowest path to the receiver, because data is
    /// delivered in order, and over the fastest path back, because acknowledgements are cumulative.
    pub(super) round_trip: f64,
    /// Like `round_trip`, but over the fastest of all possible paths to the receiver.
    shortest: f64,
    /// Largest number of payload bytes in flight if segments are short, and the round trip of the shortest segment in picoseconds.
    pub(super) shorter: (u64, f64),
}

impl Window {
    /// Returns the largest number of payload bytes that successive windows let through in `time` picoseconds.
    pub(super) fn bytes_within(&self, time: f64) -> f64 {
        let (shorter, trip) = self.shorter;
        (self.bytes - shorter) as f64 * time / self.shortest + shorter as f64 * time / trip
    }
}

/// Returns the parameters of the connections of a `tcp-stream` lane.
pub(super) fn connection(
    work: EngineWork<'_>,
    path: &FlowPath,
    lane: &Lane,
    config: &TcpStream,
) -> Connection {
    let EngineWork { testbed, topology, .. } = work;
    let [sending, reading] = topology.segment_mtus(path);
    let of = |host: NodeId, mtu: u64| config.tcp.over(&testbed.hosts[host].tcp).resolve(mtu);
    let (sender, receiver) = (of(path.from, sending), of(path.to, reading));
    let message = config.message.bytes();
    // Timestamps if both hosts have them (RFC 7323 section 3.2).
    let options = if sender.timestamps && receiver.timestamps { TIMESTAMPS_BYTES } else { 0 };
    // The smaller segment size of the two ends; it includes the options of a segment (RFC 6691).
    let agreed = sender.mss.min(receiver.mss) - options;
    // Every path drops longer segments, and the sender learns the path MTU (RFC 1191).
    let segment = agreed.min(widest(topology, path, lane) - IP_HEADER_BYTES - TCP_HEADER_BYTES - options);
    // A receiver that counts bytes waits for `ack_every` segments of the negotiated size. If segments end with writes, the last may add nearly a segment.
    let tails = sender.write_boundaries
        && !message.is_multiple_of(segment)
        && receiver.ack_counting != AckCounting::Segments;
    let header = TCP_HEADER_BYTES + options;
    let counts_bytes = receiver.ack_counting != AckCounting::Segments;
    let waits_for = if counts_bytes {
        (u64::from(receiver.ack_every) * agreed).div_ceil(segment)
    } else {
        receiver.ack_every.into()
    };
    let (bytes, set_by) = in_flight(&sender, &receiver, agreed, message);
    let (sends, reads) = (&testbed.hosts[path.from], &testbed.hosts[path.to]);
    let writes = sends.occupation(Side::Send, config.send_path);
    let reads = reads.occupation(Side::Receive, config.receive_path);
    let crossing = |spread: &Spread, pick: Pick, payload: u64| {
        Travel::new(work, spread, pick).of(vec![LonePacket::new(payload, 0)]).last
    };
    let back = crossing(&lane.back, Pick::Shortest, header);
    let round_trip = |payload: u64, pick: Pick| {
        let hosts = writes.segment() + reads.segment() + reads.bytes(payload) + reads.ack() + writes.ack();
        (hosts + crossing(&lane.there, pick, header + payload) + back) as f64
    };
    // Nagle's rule lets one short segment be in flight (RFC 896, and Minshall's modification).
    let nagles = matches!(sender.nagle, Nagle::Rfc896 | Nagle::Minshall) && !sender.write_boundaries;
    // If segments that are too long for the path are split, the last part is short.
    let full_segments = nagles && message >= segment && bytes >= 2 * segment && !path.discovers_mtu;
    let shorter = if full_segments { segment } else { bytes };
    let full = segment.min(message).min(bytes);
    Connection {
        segment,
        header,
        segments_per_ack: (waits_for + u64::from(tails)) as f64,
        // One acknowledgement per window is enough.
        least_acks: 1.0 / (8 * bytes) as f64,
        certain: false,
        full_segments,
        window: Window {
            bytes,
            set_by,
            round_trip: round_trip(full, Pick::Longest),
            shortest: round_trip(full, Pick::Shortest),
            shorter: (shorter, round_trip(1, Pick::Shortest)),
        },
    }
}

/// Returns the length in bytes of the largest packet with data that some path of a lane takes unfragmented; that all paths take, if the sender does not
/// discover the path MTU.
fn widest(topology: &Topology, path: &FlowPath, lane: &Lane) -> u64 {
    if !path.discovers_mtu {
        return path.path_mtu;
    }
    let stops = &lane.there.stops;
    let mut widest = vec![0; stops.len()];
    widest[0] = u64::MAX;
    // Stops are in order: every move leads to a later stop.
    for (place, stop) in stops.iter().enumerate() {
        for onward in &stop.onward {
            // Routers may fragment packets in a tunnel.
            let leg = onward.by.leg().filter(|_| stop.tunnels.is_empty());
            let mtu = leg.map_or(u64::MAX, |leg| topology.mtu(leg)).min(widest[place]);
            widest[onward.to] = mtu.max(widest[onward.to]);
        }
    }
    widest[stops.len() - 1]
}

/// Returns the largest number of payload bytes that are sent and not acknowledged, and the buffer or rule that sets it.
fn in_flight(sender: &TcpParameters, receiver: &TcpParameters, segment: u64, message: u64) -> (u64, SetBy) {
    let scales = sender.window_scaling && receiver.window_scaling;
    let field = 65_535;
    // The smallest scale that can announce the receive buffer (RFC 7323 section 2.2). Windows are rounded up to its unit.
    let scale = (0..14).find(|scale| receiver.receive_buffer >> scale <= field).unwrap_or(14);
    let scale = if scales { scale } else { 0 };
    let buffer = receiver.receive_buffer.max(receiver.receive_minimum_segments * segment);
    let most = field << scale;
    let announced = buffer.min(most).next_multiple_of(1 << scale).min(most);
    let kept = match sender.send_buffer_rule {
        SendBufferRule::Bytes => sender.send_buffer,
        // With this rule, bytes that were sent do not count in the send buffer.
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
