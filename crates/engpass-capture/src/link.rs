//! Makes the bytes of captured packets and cells, in the form of the capture.

use std::collections::BTreeMap;
use std::net::IpAddr;

use engpass_model::wire::Encapsulation;
use engpass_model::wire::aal5::{self, CELL_HEADER_BYTES, CELL_PAYLOAD_BYTES, TRAILER_BYTES};
use engpass_model::wire::arp::{Operation, write_arp};
use engpass_model::wire::cell::{CellHeader, FIRST_VCI};
use engpass_model::wire::frame::{Macs, Tag, write_ethernet};
use engpass_model::wire::igmp;
use engpass_simulate::{CaptureRecord, Cell, Content, Igmp, Packet, Pdu, Unit};
use engpass_testbed::topology::{Hop, NodeKind};
use engpass_testbed::{Topology, node_address};

use super::packet_bytes::{self, Packets, SyntheticPackets};
use super::pcapng::LinkType;
use super::point::Form;

/// Result of writing a capture record.
pub(super) enum Written {
    /// A packet was written, for an interface of this link type.
    Packet(LinkType),
    /// The record is no packet of its own, for example a cell within a PDU.
    Nothing,
}

/// Makes the bytes of captured packets and cells.
pub(super) struct LinkBytes {
    form: Form,
    topology: Topology,
    packets: Box<dyn Packets>,
    made_up: SyntheticPackets,
    /// Addresses of frames that were looked up before.
    macs: BTreeMap<MacKey, Macs>,
    /// By output port, circuit and direction.
    circuits: BTreeMap<(usize, usize, bool), Circuit>,
    pub(super) bad_pdus: u64,
    ip: Vec<u8>,
}

/// Key of a frame's addresses: its output port, that of the host or router before it, the flow and its direction, and the tunnel with its direction.
type MacKey = (usize, usize, usize, bool, Option<(usize, bool)>);

/// One circuit direction at a link point.
#[derive(Default)]
struct Circuit {
    /// Number of cells since the last end of a PDU; `good` if they are the first cells of one PDU, in order.
    cells: u32,
    good: bool,
    /// The PDU of these cells, and its bytes if they are needed.
    pdu: Option<Pdu>,
    bytes: Vec<u8>,
}

/// Size of the SDU in a generator's cell: the payload of the cell without the AAL5 trailer.
const GENERATED_SDU: u64 = CELL_PAYLOAD_BYTES - TRAILER_BYTES;

impl LinkBytes {
    pub(super) fn new(topology: &Topology, form: Form, packets: Box<dyn Packets>) -> Self {
        Self {
            form,
            made_up: SyntheticPackets::new(topology),
            topology: topology.clone(),
            packets,
            macs: BTreeMap::new(),
            circuits: BTreeMap::new(),
            bad_pdus: 0,
            ip: Vec::new(),
        }
    }

    /// Returns the link type that nearly all packets have.
    pub(super) fn link_type(&self) -> LinkType {
        match self.form {
            Form::Frames => LinkType::Ethernet,
            Form::Ip => LinkType::Raw,
            Form::Pdus | Form::Cells => LinkType::Erf,
            Form::RawCells => LinkType::User0,
        }
    }

    /// Appends the bytes of a capture record to `out`.
    pub(super) fn write(&mut self, passing: &CaptureRecord, out: &mut Vec<u8>) -> Written {
        match (&passing.unit, self.form) {
            (Unit::Packet(packet), Form::Frames) => {
                let macs = self.macs(passing.port, packet);
                let link = &self.topology.links[passing.port / 2];
                let tag = link.vlan.then_some(Tag { priority: packet.head.priority, vlan: VLAN });
                self.write_ip(packet);
                write_ethernet(macs, tag, &self.ip, out);
                Written::Packet(LinkType::Ethernet)
            }
            (Unit::Arp(seen), Form::Frames) => {
                let link = &self.topology.links[passing.port / 2];
                let tag = link.vlan.then_some(Tag { priority: 0, vlan: VLAN });
                let [router, station] = [seen.router, seen.station].map(|(node, port)| {
                    (self.topology.hardware_address(port), node_address(&self.topology, node))
                });
                let ends = match seen.operation {
                    Operation::Request => (router, station),
                    Operation::Reply => (station, router),
                };
                write_arp(seen.operation, ends, tag, out);
                Written::Packet(LinkType::Ethernet)
            }
            (Unit::Igmp(seen), Form::Frames) => {
                let link = &self.topology.links[passing.port / 2];
                let tag = link.vlan.then_some(Tag { priority: igmp::PRIORITY, vlan: VLAN });
                self.write_igmp(seen);
                let source = self.topology.hardware_address(seen.host.1);
                let to = seen.message.destination(packet_bytes::group_of_flow(&self.topology, seen.flow));
                let macs = Macs { source, destination: packet_bytes::group_mac(to.into()) };
                write_ethernet(macs, tag, &self.ip, out);
                Written::Packet(LinkType::Ethernet)
            }
            (Unit::Igmp(seen), _) => {
                self.write_igmp(seen);
                out.extend_from_slice(&self.ip);
                Written::Packet(LinkType::Raw)
            }
            // ARP is no IP packet.
            (Unit::Arp(_), _) => Written::Nothing,
            (Unit::Packet(packet), _) => {
                self.write_ip(packet);
                out.extend_from_slice(&self.ip);
                Written::Packet(LinkType::Raw)
            }
            (Unit::Cell(cell), Form::Cells | Form::RawCells) => self.write_cell(passing, cell, out),
            (Unit::Cell(cell), _) => self.write_pdu(passing, cell, out),
        }
    }

    /// Writes a packet with its outer headers to `ip`.
    fn write_ip(&mut self, packet: &Packet) {
        self.ip.clear();
        match packet.content {
            Content::Keepalive { tunnel, forward } => {
                packet_bytes::write_keepalive(&self.topology, (tunnel, forward), &packet.head, &mut self.ip);
            }
            _ => self.packets.write(packet, &mut self.ip),
        }
        for outer in &packet.outer {
            self.ip = packet_bytes::encapsulate(&self.topology, outer, &self.ip);
        }
    }

    /// Writes the packet of an IGMP message to `ip`.
    fn write_igmp(&mut self, seen: &Igmp) {
        let source = node_address(&self.topology, seen.host.0);
        self.ip = seen.message.packet(source, packet_bytes::group_of_flow(&self.topology, seen.flow));
    }

    fn write_cell(&mut self, passing: &CaptureRecord, cell: &Cell, out: &mut Vec<u8>) -> Written {
        let key = (passing.port, cell.circuit, cell.forward);
        let known = self.circuits.get(&key).is_some_and(|circuit| circuit.pdu.as_ref() == Some(&cell.pdu));
        if !known {
            let mut sdu = Vec::new();
            self.write_sdu(cell, &mut sdu);
            let circuit = self.circuits.entry(key).or_default();
            circuit.bytes.clear();
            aal5::write_pdu(&sdu, &mut circuit.bytes);
            circuit.pdu = Some(cell.pdu.clone());
        }
        let (from, header) = ((u64::from(cell.place) * CELL_PAYLOAD_BYTES) as usize, header(cell).bytes());
        let payload = &self.circuits[&key].bytes[from..from + CELL_PAYLOAD_BYTES as usize];
        if self.form == Form::RawCells {
            out.extend(header);
            out.extend_from_slice(payload);
            return Written::Packet(LinkType::User0);
        }
        // ERF stores the header of a cell without its error control.
        let header = &header[..CELL_HEADER_BYTES as usize - 1];
        write_erf(ERF_ATM, passing, (header, payload), out);
        Written::Packet(LinkType::Erf)
    }

    fn write_pdu(&mut self, passing: &CaptureRecord, cell: &Cell, out: &mut Vec<u8>) -> Written {
        let circuit = self.circuits.entry((passing.port, cell.circuit, cell.forward)).or_default();
        // Reassembles as a receiver at this point would: a PDU ends where its last cell says so.
        let same = circuit.pdu.as_ref() == Some(&cell.pdu);
        circuit.good = cell.place == circuit.cells && (circuit.cells == 0 || circuit.good && same);
        circuit.cells += 1;
        if !same {
            circuit.pdu = Some(cell.pdu.clone());
        }
        if cell.place + 1 < cell.of {
            return Written::Nothing;
        }
        circuit.cells = 0;
        if !circuit.good {
            self.bad_pdus += 1;
            return Written::Nothing;
        }
        if self.form == Form::Ip {
            return match &cell.pdu {
                Pdu::Packet(packet) => {
                    self.write_ip(packet);
                    out.extend_from_slice(&self.ip);
                    Written::Packet(LinkType::Raw)
                }
                Pdu::Generated(_) => Written::Nothing,
            };
        }
        let mut sdu = Vec::new();
        self.write_sdu(cell, &mut sdu);
        let header = header(cell);
        if let Some(kind) = sun_kind(self.encapsulation(cell)) {
            out.extend([kind, header.vpi]);
            out.extend(header.vci.to_be_bytes());
            out.extend(sdu);
            return Written::Packet(LinkType::SunAtm);
        }
        let mut pdu = Vec::with_capacity(sdu.len() + 64);
        aal5::write_pdu(&sdu, &mut pdu);
        write_erf(ERF_AAL5, passing, (&header.bytes()[..4], &pdu), out);
        Written::Packet(LinkType::Erf)
    }

    fn encapsulation(&self, cell: &Cell) -> Encapsulation {
        self.topology.circuits[cell.circuit].encapsulation
    }

    fn write_sdu(&mut self, cell: &Cell, out: &mut Vec<u8>) {
        let encapsulation = self.encapsulation(cell);
        let route = &self.topology.circuits[cell.circuit].route;
        let (first, last) = (route[0], route[route.len() - 1]);
        let mac = |hop: &Hop| self.topology.hardware_address(self.topology.port_of(hop));
        let ends = [mac(&first), mac(&last.back())];
        let [source, destination] = if cell.forward { ends } else { [ends[1], ends[0]] };
        let group = match &cell.pdu {
            Pdu::Packet(packet) => group_of(&self.topology, packet).map(packet_bytes::group_mac),
            Pdu::Generated(_) => None,
        };
        let macs = Macs { source, destination: group.unwrap_or(destination) };
        match &cell.pdu {
            Pdu::Packet(packet) => {
                self.write_ip(packet);
                encapsulation.write_sdu(macs, &self.ip, out);
            }
            // A PDU of one cell, whose content the model does not define.
            Pdu::Generated(flow) => {
                if encapsulation.write_opaque_sdu(macs, GENERATED_SDU as usize, out) {
                    return;
                }
                self.ip.clear();
                let around = encapsulation.sdu(0);
                self.made_up.generated(*flow, (GENERATED_SDU - around) as usize, &mut self.ip);
                encapsulation.write_sdu(macs, &self.ip, out);
            }
        }
    }

    /// Returns the addresses of a packet's frame. Hosts and routers set them, switches leave them unchanged.
    fn macs(&mut self, port: usize, packet: &Packet) -> Macs {
        let topology = &self.topology;
        if let Some(group) = group_of(topology, packet) {
            let source = topology.hardware_address(packet.framed_at);
            return Macs { source, destination: packet_bytes::group_mac(group) };
        }
        let tunnel = tunnel_around(packet);
        let key = (port, packet.framed_at, packet.flow, packet.back, tunnel);
        *self.macs.entry(key).or_insert_with(|| {
            let ends = |port: usize| (topology.links[port / 2].ends[1 - port % 2], port ^ 1);
            let (mut node, mut at) = ends(port);
            while let NodeKind::Switch(_) = topology.kind(node) {
                let hop = next_hop(topology, packet, node).expect("a switch on the path has a next hop");
                (node, at) = ends(topology.port_of(&hop));
            }
            Macs {
                source: topology.hardware_address(packet.framed_at),
                destination: topology.hardware_address(at),
            }
        })
    }
}

/// Returns the group that a packet goes to, unless it is in a tunnel.
fn group_of(topology: &Topology, packet: &Packet) -> Option<IpAddr> {
    topology.flows.get(packet.flow)?.group.filter(|_| packet.outer.is_empty())
}

/// Returns the tunnel and direction on whose path a packet is. A keepalive outside its tunnel goes back on the path of the other direction.
fn tunnel_around(packet: &Packet) -> Option<(usize, bool)> {
    let outside = match packet.content {
        Content::Keepalive { tunnel, forward } => Some((tunnel, !forward)),
        _ => None,
    };
    packet.outer.last().map(|outer| (outer.tunnel, outer.forward)).or(outside)
}

/// Returns the hop that packets of a flow take from a switch, which has no choice.
fn next_hop(topology: &Topology, packet: &Packet, node: usize) -> Option<Hop> {
    if let Some((tunnel, forward)) = tunnel_around(packet) {
        let legs = topology.tunnels[tunnel].way(forward).fan.legs_at(node);
        return legs.first().map(|leg| topology.first_hop(*leg));
    }
    let flow = &topology.flows[packet.flow];
    match &flow.fans {
        Some(fans) => {
            let legs = fans[usize::from(packet.back)].legs_at(node);
            legs.first().map(|leg| topology.first_hop(*leg))
        }
        None if packet.back => flow.route.iter().find(|hop| hop.to == node).map(|hop| hop.back()),
        None => flow.route.iter().find(|hop| hop.from == node).copied(),
    }
}

/// The VLAN of tagged links.
const VLAN: u16 = 1;

/// Returns the header of a cell. Circuits have the channels behind the reserved ones, equal on every link.
fn header(cell: &Cell) -> CellHeader {
    let channels = usize::from(u16::MAX - FIRST_VCI) + 1;
    CellHeader {
        vpi: (cell.circuit / channels) as u8,
        vci: FIRST_VCI + (cell.circuit % channels) as u16,
        efci: cell.efci,
        end: cell.place + 1 == cell.of,
        clp: cell.clp,
    }
}

/// Types of ERF records: an ATM cell, an AAL5 PDU (Endace, ERF types; wiki.wireshark.org/ERF).
const ERF_ATM: u8 = 3;
const ERF_AAL5: u8 = 4;
/// Flag: records vary in length.
const ERF_VARYING: u8 = 0x04;
/// Size of a record header.
const ERF_HEADER: usize = 16;

/// Appends a record of the Extensible Record Format: time, type, flags, lengths, content.
fn write_erf(kind: u8, passing: &CaptureRecord, (header, payload): (&[u8], &[u8]), out: &mut Vec<u8>) {
    let length = header.len() + payload.len();
    // Seconds in units of 2^-32, little endian.
    let stamp = (u128::from(passing.at) << 32) / 1_000_000_000_000;
    out.extend((stamp as u64).to_le_bytes());
    out.extend([kind, ERF_VARYING | (passing.port % 2) as u8]);
    // Only the largest PDUs exceed the field. Readers use the length of the block instead.
    let whole = u16::try_from(ERF_HEADER + length).unwrap_or(u16::MAX);
    out.extend(whole.to_be_bytes());
    // Nothing was lost between records.
    out.extend([0, 0]);
    out.extend(u16::try_from(length).unwrap_or(u16::MAX).to_be_bytes());
    out.extend_from_slice(header);
    out.extend_from_slice(payload);
}

/// Returns SunATM's traffic type (LINKTYPE_SUNATM) for encapsulations that a reader cannot recognize from the PDU. Returns `None` for the others, which are
/// written as complete PDUs.
fn sun_kind(encapsulation: Encapsulation) -> Option<u8> {
    match encapsulation {
        Encapsulation::LlcSnap
        | Encapsulation::BridgedLlc
        | Encapsulation::PppoeLlc
        | Encapsulation::Lane => None,
        Encapsulation::PppoaLlc => Some(2),
        Encapsulation::VcMux
        | Encapsulation::BridgedVcMux
        | Encapsulation::PppoaVcMux
        | Encapsulation::PppoeVcMux => Some(0),
    }
}
