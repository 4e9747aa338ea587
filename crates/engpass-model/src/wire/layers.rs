//! Apportions the bits of a line to protocol layers, exactly.
//!
//! A cell rarely takes a whole number of line bits: 424 · 27/26 on an OC-3c. Lengths are therefore counted in *parts*. Every [`Wire`] has
//! its number of parts per bit, the smallest for which a cell is a whole number of parts (13 on an OC-3c, 7 on an STS-1, 1 on Ethernet). A
//! length in parts is an integer, and the layers of a packet add up to its time on the line without rounding. All ledger postings use this
//! module.

use std::ops::AddAssign;

use super::aal5::{CELL_BITS, CELL_HEADER_BYTES, CELL_PAYLOAD_BYTES, TRAILER_BYTES, cells, padding};
use super::ip::{Fragments, IP_HEADER_BYTES, UDP_HEADER_BYTES};
use super::{Encapsulation, Framing, ethernet};
use crate::time::SECOND;

/// A protocol layer to which bits of the line are posted, ordered from the outermost to the innermost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Layer {
    /// Framing of the medium: SDH columns, PLCP, line codes; preamble and gap of Ethernet.
    Physical,
    /// Headers of ATM cells.
    CellHeader,
    /// Header, VLAN tag and FCS of an Ethernet frame; the `overhead` of a point-to-point link.
    FrameHeader,
    /// AAL5 padding to whole cells, or padding of an Ethernet frame to the minimum length.
    Padding,
    /// AAL5 trailer.
    Trailer,
    /// Everything between AAL5 and IP, its padding included: LLC/SNAP, PPP, PPPoE, a bridged Ethernet header, LANE.
    Encapsulation,
    /// IP headers, one per packet on the line. For packets in a tunnel, the outermost header.
    IpHeader,
    /// Bytes that tunnels add behind the outermost IP header: tunnel headers and the IP headers of the packets that they carry.
    TunnelHeader,
    /// UDP or TCP header.
    TransportHeader,
    /// Bytes of the application.
    Payload,
}

impl Layer {
    /// All layers, from the outermost to the innermost.
    pub const ALL: [Self; 10] = [
        Self::Physical,
        Self::CellHeader,
        Self::FrameHeader,
        Self::Padding,
        Self::Trailer,
        Self::Encapsulation,
        Self::IpHeader,
        Self::TunnelHeader,
        Self::TransportHeader,
        Self::Payload,
    ];
}

/// The time that one or more packets take on a line, by layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layers {
    parts_per_bit: u64,
    parts: [u64; Layer::ALL.len()],
}

impl Layers {
    /// Number of parts per bit: the unit of [`Layers::parts`] and [`Layers::line`].
    pub const fn parts_per_bit(&self) -> u64 {
        self.parts_per_bit
    }

    /// Parts of one layer.
    pub const fn parts(&self, layer: Layer) -> u64 {
        self.parts[layer as usize]
    }

    /// Sum of the parts of all layers: the time on the line.
    pub fn line(&self) -> u64 {
        self.parts.iter().sum()
    }

    /// Number of cells; 0 on a medium without cells.
    pub const fn cells(&self) -> u64 {
        self.parts(Layer::CellHeader) / (CELL_HEADER_BYTES * 8 * self.parts_per_bit)
    }

    /// Adds the layers of `count` packets. `other`, the layers of one packet, must belong to the same line.
    fn add_times(&mut self, other: &Self, count: u64) {
        for (mine, more) in self.parts.iter_mut().zip(other.parts) {
            *mine += more * count;
        }
    }

    /// Moves `bytes` bytes from [`Layer::Payload`] to `layer`.
    fn names(&mut self, layer: Layer, bytes: u64) {
        let parts = bytes * 8 * self.parts_per_bit;
        self.parts[layer as usize] += parts;
        self.parts[Layer::Payload as usize] -= parts;
    }

    fn put(&mut self, layer: Layer, bytes: u64) {
        self.parts[layer as usize] += bytes * 8 * self.parts_per_bit;
    }
}

/// Sum of packets on one line. It stores only the layers whose length varies from packet to packet.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sum([u64; Sum::KEPT.len()]);

impl Sum {
    /// Layers that are summed. The others are the same for every packet.
    const KEPT: [Layer; 6] = [
        Layer::IpHeader,
        Layer::Padding,
        Layer::Encapsulation,
        Layer::TunnelHeader,
        Layer::TransportHeader,
        Layer::Payload,
    ];

    /// Adds `count` packets with these `layers`.
    pub fn add(&mut self, layers: &Layers, count: u64) {
        for (sum, layer) in self.0.iter_mut().zip(Self::KEPT) {
            *sum += layers.parts(layer) * count;
        }
    }

    /// Adds `count` frames with these totals in bytes: padding, transport headers and payload.
    #[inline]
    pub fn add_bytes(&mut self, wire: &Wire, count: u64, padding: u64, (transport, payload): (u64, u64)) {
        // In the order of `KEPT`. A frame has no encapsulation, and these packets are not in a tunnel.
        let bytes = [count * IP_HEADER_BYTES, padding, 0, 0, transport, payload];
        for (sum, bytes) in self.0.iter_mut().zip(bytes) {
            *sum += bytes * 8 * wire.parts_per_bit;
        }
    }

    /// Parts of one layer, summed over all packets, which are on this `wire`. Panics in debug builds for `Physical` and `CellHeader`, which
    /// are accounted per cell or frame.
    pub fn parts(&self, wire: &Wire, layer: Layer) -> u64 {
        debug_assert!(
            !matches!(layer, Layer::Physical | Layer::CellHeader),
            "these layers are accounted per frame or cell"
        );
        if let Some(place) = Self::KEPT.iter().position(|kept| *kept == layer) {
            return self.0[place];
        }
        let packet = wire.packet(0, 0);
        // All IP headers have the same length, so their sum gives the number of packets.
        self.0[0] / packet.parts(Layer::IpHeader) * packet.parts(layer)
    }
}

/// A packet of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Offset in the datagram's IP payload, in bytes.
    pub offset: u16,
    /// Bytes of the IP payload in this packet.
    pub bytes: u16,
    /// Bytes of tunnel headers behind the packet's IP header.
    pub added: u16,
}

/// A change of a packet's length along its route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// Fragmentation of packets longer than this MTU, in bytes.
    Cut(u64),
    /// Entry into a tunnel that adds this many bytes.
    Wrap(u64),
}

/// Applies `changes` in order to `count` packets with `length` bytes behind the IP header. Calls `tell` with the length and the number of
/// the resulting packets, and returns the total bytes that tunnels added.
fn for_each_changed(changes: &[Change], (length, count): (u64, u64), tell: &mut dyn FnMut(u64, u64)) -> u64 {
    let Some((change, behind)) = changes.split_first() else {
        tell(length, count);
        return 0;
    };
    match *change {
        Change::Cut(mtu) => {
            let cut = Fragments::of(length, mtu);
            let first = if cut.count > 1 {
                for_each_changed(behind, (cut.full, (cut.count - 1) * count), tell)
            } else {
                0
            };
            first + for_each_changed(behind, (cut.last, count), tell)
        }
        Change::Wrap(added) => count * added + for_each_changed(behind, (length + added, count), tell),
    }
}

impl AddAssign for Layers {
    /// # Panics
    /// If the two belong to lines with different numbers of parts per bit.
    fn add_assign(&mut self, other: Self) {
        assert_eq!(self.parts_per_bit, other.parts_per_bit, "both sums have the same unit");
        self.add_times(&other, 1);
    }
}

/// How one line frames the packets of one flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wire {
    line_rate: u64,
    parts_per_bit: u64,
    carrier: Carrier,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Carrier {
    /// `cell` is the number of parts of the line per cell, physical framing included.
    Cells { cell: u64, encapsulation: Encapsulation },
    Ethernet {
        /// Whether frames carry a VLAN tag.
        tagged: bool,
    },
    /// `overhead` is the number of bytes around every packet.
    Packets { overhead: u64 },
}

impl Wire {
    /// Creates a wire for a line rate in bit/s and a framing. `encapsulation` applies to media with cells, `tagged` (VLAN tag) to Ethernet,
    /// and `overhead` (bytes around every packet) to point-to-point links.
    pub fn new(
        (line_rate, framing): (u64, Framing),
        tagged: bool,
        overhead: u64,
        encapsulation: Encapsulation,
    ) -> Self {
        let (parts_per_bit, carrier) = match framing {
            Framing::Cells { slot } => {
                // Slot time times line rate: bits of the line per slot, in lowest terms.
                let (cell, parts_per_bit) = slot.stretched(line_rate, SECOND).ratio();
                (parts_per_bit, Carrier::Cells { cell, encapsulation })
            }
            Framing::Ethernet => (1, Carrier::Ethernet { tagged }),
            Framing::Packets => (1, Carrier::Packets { overhead }),
        };
        Self { line_rate, parts_per_bit, carrier }
    }

    /// Capacity of the line in parts per second.
    pub const fn capacity(&self) -> u128 {
        self.line_rate as u128 * self.parts_per_bit as u128
    }

    /// Layers of one IP packet with a transport header of `transport` bytes (0 in all fragments but the first) and `payload` bytes of the
    /// application.
    pub fn packet(&self, transport: u64, payload: u64) -> Layers {
        let mut layers = self.nothing();
        layers.put(Layer::IpHeader, IP_HEADER_BYTES);
        layers.put(Layer::TransportHeader, transport);
        layers.put(Layer::Payload, payload);
        let ip = IP_HEADER_BYTES + transport + payload;
        match self.carrier {
            Carrier::Cells { encapsulation, .. } => {
                let sdu = encapsulation.sdu(ip);
                layers.put(Layer::Encapsulation, sdu - ip);
                layers.put(Layer::Padding, padding(sdu));
                layers.put(Layer::Trailer, TRAILER_BYTES);
                self.put_cells(&mut layers, cells(sdu));
            }
            Carrier::Ethernet { tagged } => {
                layers.put(Layer::Physical, ethernet::PREAMBLE_BYTES + ethernet::GAP_BYTES);
                layers.put(Layer::FrameHeader, ethernet::header(tagged));
                layers.put(Layer::Padding, ethernet::padding(ip, tagged));
            }
            Carrier::Packets { overhead } => layers.put(Layer::FrameHeader, overhead),
        }
        layers
    }

    /// Layers of all packets that result when `changes` apply in order to an IP packet with a `transport` header and `payload`, in bytes.
    pub fn changed(&self, transport: u64, payload: u64, changes: &[Change]) -> Layers {
        let mut layers = self.nothing();
        let added = for_each_changed(changes, (transport + payload, 1), &mut |length, count| {
            layers.add_times(&self.packet(0, length), count);
        });
        // The transport header is in the first fragment or, if it is longer, in the first few.
        layers.names(Layer::TransportHeader, transport);
        layers.names(Layer::TunnelHeader, added);
        layers
    }

    /// Sum of the [`units`](Self::units) of all packets that result when `changes` apply to a packet with `bytes` bytes behind its IP
    /// header.
    pub fn units_changed(&self, bytes: u64, changes: &[Change]) -> u64 {
        let mut units = 0;
        for_each_changed(changes, (bytes, 1), &mut |length, count| units += self.units(length) * count);
        units
    }

    /// Layers of an IP packet with `added` bytes of tunnel headers behind its outermost IP header.
    pub fn in_tunnel(&self, added: u64, transport: u64, payload: u64) -> Layers {
        let mut layers = self.packet(transport, added + payload);
        layers.names(Layer::TunnelHeader, added);
        layers
    }

    /// Number of cells, or bytes of the frame without physical framing, of an IP packet with `bytes` bytes behind its header.
    pub const fn units(&self, bytes: u64) -> u64 {
        let ip = IP_HEADER_BYTES + bytes;
        match self.carrier {
            Carrier::Cells { encapsulation, .. } => cells(encapsulation.sdu(ip)),
            Carrier::Ethernet { tagged } => ethernet::header(tagged) + ip + ethernet::padding(ip, tagged),
            Carrier::Packets { overhead } => overhead + ip,
        }
    }

    /// Padding in bytes of a frame with `bytes` bytes behind its IP header. `None` on a medium with cells.
    pub const fn padding(&self, bytes: u64) -> Option<u64> {
        match self.carrier {
            Carrier::Cells { .. } => None,
            Carrier::Ethernet { tagged } => Some(ethernet::padding(IP_HEADER_BYTES + bytes, tagged)),
            Carrier::Packets { .. } => Some(0),
        }
    }

    /// Length of the gap after a frame, in parts.
    pub const fn gap(&self) -> u64 {
        match self.carrier {
            Carrier::Ethernet { .. } => 8 * ethernet::GAP_BYTES * self.parts_per_bit,
            Carrier::Cells { .. } | Carrier::Packets { .. } => 0,
        }
    }

    /// Returns the minimum of an amount per bit of payload, over packets with a `transport` header and at most `most` bytes of payload.
    /// `of` gives the amount of one packet.
    pub fn least(&self, transport: u64, most: u64, of: impl Fn(&Layers) -> f64) -> f64 {
        let packet = self.packet(transport, most);
        let padding = packet.parts(Layer::Padding) / (8 * self.parts_per_bit);
        // Slightly less payload in full cells may cost less per bit than `most` bytes with a padded last cell.
        let full = match self.carrier {
            Carrier::Cells { .. } => most.saturating_sub(CELL_PAYLOAD_BYTES - padding),
            Carrier::Ethernet { .. } | Carrier::Packets { .. } => 0,
        };
        let of_a_bit = |payload: u64| of(&self.packet(transport, payload)) / (8 * payload) as f64;
        of_a_bit(most).min(of_a_bit(full.max(1).min(most)))
    }

    /// Layers of a UDP datagram of `message` bytes, fragmented for `mtu`.
    pub fn datagram(&self, message: u64, mtu: u64) -> Layers {
        self.packets(UDP_HEADER_BYTES, &Fragments::cut(&[message + UDP_HEADER_BYTES], mtu))
    }

    /// Layers of IP packets with these `lengths` of IP payload in bytes. The payload begins with a transport header of `transport` bytes,
    /// which may be longer than the first packet.
    pub fn packets(&self, transport: u64, lengths: &[u64]) -> Layers {
        let mut layers = self.nothing();
        let mut header = transport;
        for length in lengths {
            let here = header.min(*length);
            layers += self.packet(here, length - here);
            header -= here;
        }
        layers
    }

    /// Layers of one generator cell, whose 48 bytes count as payload. `None` on a medium without cells.
    pub fn cell(&self) -> Option<Layers> {
        matches!(self.carrier, Carrier::Cells { .. }).then(|| {
            let mut layers = self.nothing();
            layers.put(Layer::Payload, CELL_PAYLOAD_BYTES);
            self.put_cells(&mut layers, 1);
            layers
        })
    }

    /// Adds the headers and the physical framing of `count` cells.
    fn put_cells(&self, layers: &mut Layers, count: u64) {
        let Carrier::Cells { cell, .. } = self.carrier else { return };
        layers.put(Layer::CellHeader, count * CELL_HEADER_BYTES);
        layers.parts[Layer::Physical as usize] += count * (cell - CELL_BITS * self.parts_per_bit);
    }

    /// Layers with zero parts.
    pub const fn nothing(&self) -> Layers {
        Layers { parts_per_bit: self.parts_per_bit, parts: [0; Layer::ALL.len()] }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A tunnel adds 24 bytes (GRE) to a packet of 1500 bytes. Fragmenting the outer packet for 1500 gives 1500 and 44 (RFC 4459 section
    /// 3.1); fragmenting the inner packet for 1476 gives outer packets of 1500 and 68.
    #[test]
    fn tunnel_headers_are_added_once_per_packet() {
        let wire = Wire { line_rate: 1, parts_per_bit: 1, carrier: Carrier::Packets { overhead: 0 } };
        let bytes = |layers: &Layers| {
            Layer::ALL
                .map(|layer| layers.parts(layer) / 8)
                .into_iter()
                .filter(|bytes| *bytes > 0)
                .collect::<Vec<_>>()
        };
        let outer = wire.changed(8, 1472, &[Change::Wrap(24), Change::Cut(1500)]);
        assert_eq!(bytes(&outer), [40, 24, 8, 1472]);
        let inner = wire.changed(8, 1472, &[Change::Cut(1476), Change::Wrap(24), Change::Cut(1500)]);
        assert_eq!(bytes(&inner), [40, 48, 8, 1472]);
        assert_eq!([outer.line() / 8, inner.line() / 8], [1544, 1568]);
        assert_eq!(wire.units_changed(1480, &[Change::Wrap(24), Change::Cut(1500)]), 1544);
    }

    /// Fragmenting in one pass equals fragmenting packet by packet, also if a fragment is fragmented again or a header is longer than a
    /// fragment.
    #[test]
    fn fragmenting_at_once_equals_packet_by_packet() {
        let carriers = [
            Carrier::Packets { overhead: 2 },
            Carrier::Ethernet { tagged: false },
            Carrier::Ethernet { tagged: true },
            Carrier::Cells { cell: 424, encapsulation: Encapsulation::default() },
        ];
        for carrier in carriers {
            let wire = Wire { line_rate: 1, parts_per_bit: 1, carrier };
            for mtus in [&[1500][..], &[9000, 1500, 576], &[1500, 68], &[576, 572, 68]] {
                for (transport, payload) in [(8, 0), (8, 1472), (8, 1473), (60, 5000), (60, 1), (8, 65_000)] {
                    let cut = |all: Vec<u64>, mtu: &u64| Fragments::cut(&all, *mtu);
                    let packets = mtus.iter().fold(vec![transport + payload], cut);
                    let changes: Vec<Change> = mtus.iter().map(|mtu| Change::Cut(*mtu)).collect();
                    assert_eq!(wire.changed(transport, payload, &changes), wire.packets(transport, &packets));
                    let units: u64 = packets.iter().map(|length| wire.units(*length)).sum();
                    assert_eq!(wire.units_changed(transport + payload, &changes), units);
                }
            }
        }
    }
}
