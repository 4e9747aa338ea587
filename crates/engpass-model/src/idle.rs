//! Packets of one datagram or segment that are alone in a network: when each reaches the next node. docs/model.md describes each step.
//!
//! The caller walks the path and applies one function per step.

use crate::host::CpuCost;
use crate::time::Pace;
use crate::wire::ip::{Fragments, IP_HEADER_BYTES, UDP_HEADER_BYTES};

/// A packet alone in a network.
#[derive(Clone, Debug)]
pub struct LonePacket {
    /// Bytes of IP payload.
    pub payload: u64,
    /// Arrival of the complete packet at the current step, in picoseconds.
    pub at: u64,
    /// For each tunnel around it: number of the packet that entered, and its bytes of IP payload.
    entered: Vec<(usize, u64)>,
}

impl LonePacket {
    /// Returns a packet with `payload` bytes of IP payload that its sender hands to its NIC at `at`.
    pub fn new(payload: u64, at: u64) -> Self {
        Self { payload, at, entered: Vec::new() }
    }

    /// Returns, for each tunnel around it, the number of the packet that entered and its bytes of IP payload.
    pub fn entered(&self) -> &[(usize, u64)] {
        &self.entered
    }
}

/// Returns the packets of a UDP message with `bytes` of payload. Its sender begins it at 0 and cuts it for an MTU.
pub fn message(send: &CpuCost, bytes: u64, mtu: u64) -> impl Iterator<Item = LonePacket> {
    let cut = Fragments::of(bytes + UDP_HEADER_BYTES, mtu);
    let mut at = send.datagram_start();
    (0..cut.count).map(move |index| {
        let payload = cut.payload(index);
        let data = payload - if index == 0 { UDP_HEADER_BYTES } else { 0 };
        at = at.saturating_add(send.fragment(data));
        LonePacket::new(payload, at)
    })
}

/// A line that carries frames.
#[derive(Clone, Copy, Debug)]
pub struct LoneLine {
    /// Time of a byte.
    pub byte: Pace,
    /// Bytes of the gap after a frame.
    pub gap: u64,
    /// Propagation delay in picoseconds.
    pub delay: u64,
}

/// A server of bytes or cells, one after the other: a line or a shaper.
struct Server {
    pace: Pace,
    base: u64,
    units: u64,
}

impl Server {
    fn new(pace: Pace) -> Self {
        Self { pace, base: 0, units: 0 }
    }

    /// Serves `units` that arrive at `at`. Returns the begin of the service, and the instant at which all but the last `gap` units have left.
    fn serve(&mut self, at: u64, units: u64, gap: u64) -> (u64, u64) {
        if at > self.base.saturating_add(self.pace.after(self.units)) {
            (self.base, self.units) = (at, 0);
        }
        let begins = self.base.saturating_add(self.pace.after(self.units));
        self.units += units;
        (begins, self.base.saturating_add(self.pace.after(self.units - gap)))
    }
}

/// Takes packets over a line that carries frames. `bytes` returns the bytes of an IP packet on the line, those of the gap included.
pub fn cross_line(packets: &mut [LonePacket], line: LoneLine, bytes: impl Fn(u64) -> u64) {
    let mut server = Server::new(line.byte);
    for packet in packets {
        let (_, left) = server.serve(packet.at, bytes(packet.payload + IP_HEADER_BYTES), line.gap);
        packet.at = left.saturating_add(line.delay);
    }
}

/// Takes packets over a circuit, cell by cell: through its shaper and over lines, given by the time of a cell and the propagation delay in picoseconds.
/// `cells` returns the number of cells of an IP packet.
pub fn cross_circuit(
    packets: &mut [LonePacket],
    shaper: Pace,
    lines: &[(Pace, u64)],
    cells: impl Fn(u64) -> u64,
) {
    let mut shaper = Server::new(shaper);
    let mut lines: Vec<_> = lines.iter().map(|(slot, delay)| (Server::new(*slot), *delay)).collect();
    for packet in packets {
        let handed = packet.at;
        for _ in 0..cells(packet.payload + IP_HEADER_BYTES) {
            let (mut at, _) = shaper.serve(handed, 1, 0);
            for (line, delay) in &mut lines {
                at = line.serve(at, 1, 0).1.saturating_add(*delay);
            }
            packet.at = at;
        }
    }
}

/// Takes packets through an engine of a router, which takes `time` picoseconds for each. Interrupts do not count: a packet behind another may take none, and
/// must not be faster than a lone one.
pub fn pass_engine(packets: &mut [LonePacket], time: u64) {
    let mut free = 0;
    for packet in packets {
        free = packet.at.max(free).saturating_add(time);
        packet.at = free;
    }
}

/// Cuts packets that are too long for an MTU.
pub fn cut(packets: &mut Vec<LonePacket>, mtu: u64) {
    for index in (0..packets.len()).rev() {
        let packet = &packets[index];
        let cut = Fragments::of(packet.payload, mtu);
        if cut.count > 1 {
            let whole = packet.clone();
            let fragments =
                (0..cut.count).map(|index| LonePacket { payload: cut.payload(index), ..whole.clone() });
            packets.splice(index..=index, fragments);
        }
    }
}

/// Lets packets enter a tunnel that adds `added` bytes behind their outer IP headers: cuts them for its MTU and adds its headers.
pub fn enter_tunnel(packets: &mut Vec<LonePacket>, mtu: u64, added: u64) {
    cut(packets, mtu);
    for (number, packet) in packets.iter_mut().enumerate() {
        packet.entered.push((number, packet.payload));
        packet.payload += added;
    }
}

/// Lets packets leave a tunnel. Packets that were cut in it are complete when their last fragment arrives.
///
/// # Panics
/// If a packet is in no tunnel.
pub fn leave_tunnel(packets: &mut Vec<LonePacket>) {
    let mut whole: Vec<LonePacket> = Vec::new();
    for packet in packets.drain(..) {
        match whole.iter_mut().find(|known| known.entered == packet.entered) {
            Some(known) => known.at = known.at.max(packet.at),
            None => whole.push(packet),
        }
    }
    for packet in &mut whole {
        (_, packet.payload) = packet.entered.pop().expect("the packet is in a tunnel");
    }
    // They go on in the order in which they are complete.
    whole.sort_by_key(|packet| packet.at);
    *packets = whole;
}
