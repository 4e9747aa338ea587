//! Makes the bytes of packets from the model's data.

use std::net::{IpAddr, Ipv4Addr};

use engpass_model::queue::Ecn;
use engpass_model::tunnel::gre;
use engpass_model::wire::icmp;
use engpass_model::wire::ip::IP_HEADER_BYTES;
use engpass_model::wire::packet::{Ends, Ipv4, Protocol, checksum, tcp, udp};
use engpass_testbed::topology::FlowPath;
use engpass_testbed::{Topology, node_address, source_ports};

use engpass_simulate::{Content, Head, Outer, Packet};

/// Source of the bytes of packets, which the model does not have.
pub trait Packets {
    /// Appends the IP packet, with its header.
    fn write(&mut self, packet: &Packet, out: &mut Vec<u8>);
}

/// Synthetic packets: addresses by host, ports by flow, a repeating payload.
#[derive(Clone, Debug)]
pub struct SyntheticPackets {
    /// By traffic table: address of its sender, and of its receiver or group.
    hosts: Vec<(Ipv4Addr, Ipv4Addr)>,
    /// Addresses of the routers.
    routers: Vec<Ipv4Addr>,
    /// The last datagram, because its fragments follow each other.
    datagram: Option<(u32, u64, Vec<u8>)>,
}

/// The discard service (RFC 863).
pub(super) const DISCARD: u16 = 9;
/// Period of the payload in bytes. It is prime so that consecutive segments of one size carry different payloads.
const PERIOD: u64 = 251;

/// Returns the IPv4 address of a group. An IPv6 group gets an IPv4 address instead.
fn group_address(group: IpAddr) -> Ipv4Addr {
    match group {
        IpAddr::V4(address) => address,
        IpAddr::V6(address) => {
            let [.., a, b, c] = address.octets();
            Ipv4Addr::new(239, a, b, c)
        }
    }
}

/// Returns the IPv4 address of the group of a traffic.
///
/// # Panics
/// If the traffic has no group.
pub(super) fn group_of_flow(topology: &Topology, flow: usize) -> Ipv4Addr {
    group_address(topology.flows[flow].group.expect("multicast traffic has a group"))
}

/// Returns the hardware address for packets to a group (RFC 1112 section 6.4).
pub(super) fn group_mac(group: IpAddr) -> [u8; 6] {
    let [_, a, b, c] = group_address(group).octets();
    [0x01, 0x00, 0x5e, a & 0x7f, b, c]
}

impl SyntheticPackets {
    /// Returns the packets of a testbed's flows.
    pub fn new(topology: &Topology) -> Self {
        let address = |node| node_address(topology, node);
        let to = |flow: &FlowPath| flow.group.map_or_else(|| address(flow.to), group_address);
        let routers = topology.hosts + topology.switches..topology.nodes.len();
        Self {
            hosts: topology.flows.iter().map(|flow| (address(flow.from), to(flow))).collect(),
            routers: routers.map(address).collect(),
            datagram: None,
        }
    }

    /// Returns addresses and ports of a packet, as its sender sees them.
    fn ends(&self, packet: &Packet) -> Ends {
        let (from, to) = self.hosts[packet.flow];
        let [source, receiver] = source_ports(u64::from(packet.source));
        if packet.back {
            Ends { addresses: (to, from), ports: (receiver, source) }
        } else {
            Ends { addresses: (from, to), ports: (source, receiver) }
        }
    }

    /// Returns an IP packet with a router's message about a segment.
    fn message(&mut self, router: usize, mtu: u32, about: &Packet) -> Vec<u8> {
        let mut dropped = Vec::new();
        self.write(about, &mut dropped);
        let own = IpAddr::V4(self.routers[router]);
        icmp::message(&[own], &dropped, icmp::Error::TooBig { mtu })
            .expect("a TCP segment is not an ICMP error")
    }

    /// Writes the payload of a generator's cell: a UDP datagram in an IP packet of `bytes` bytes.
    pub(super) fn generated(&self, flow: usize, bytes: usize, out: &mut Vec<u8>) {
        let ends = Ends { addresses: self.hosts[flow], ports: (DISCARD, DISCARD) };
        let payload = vec![0; bytes.saturating_sub(28)];
        let head = Ipv4 {
            addresses: ends.addresses,
            id: 0,
            offset: 0,
            more: false,
            // With an ID of 0 it must not be fragmented (RFC 6864 section 4.1).
            dont_fragment: true,
            ttl: 64,
            dscp: 0,
            ecn: Ecn::NotCapable,
            protocol: Protocol::Udp,
        };
        head.write(&udp(&ends, &payload), out);
    }
}

impl Packets for SyntheticPackets {
    fn write(&mut self, packet: &Packet, out: &mut Vec<u8>) {
        if let Content::TooBig { router, mtu, head, segment, scale, tick } = packet.content {
            let content = Content::Segment { segment, scale, tick };
            let about = Packet { back: false, head, content, ..packet.clone() };
            let mut whole = self.message(router, mtu, &about);
            whole[4..6].copy_from_slice(&packet.head.id.to_be_bytes());
            passing(&whole, &packet.head, out);
            return;
        }
        let ends = self.ends(packet);
        let head = &packet.head;
        let ip = Ipv4 {
            addresses: ends.addresses,
            id: head.id,
            offset: head.offset,
            more: head.more,
            // TCP uses path MTU discovery (RFC 1191).
            dont_fragment: matches!(packet.content, Content::Segment { .. }),
            ttl: head.ttl,
            // The class selector for the priority (RFC 2474 section 4.2.2.1).
            dscp: head.priority << 3,
            ecn: head.ecn,
            protocol: match packet.content {
                Content::Datagram { .. } => Protocol::Udp,
                Content::Segment { .. }
                | Content::TooBig { .. }
                | Content::Outside { .. }
                | Content::Keepalive { .. } => Protocol::Tcp,
            },
        };
        let whole = match packet.content {
            Content::Datagram { index, bytes } => {
                let known = matches!(&self.datagram, Some((source, last, _)) if (*source, *last) == (packet.source, index));
                if !known {
                    let datagram = udp(&ends, &payload(packet.source, index, bytes));
                    self.datagram = Some((packet.source, index, datagram));
                }
                &self.datagram.as_ref().expect("the datagram was just created").2
            }
            Content::TooBig { .. } => unreachable!("ICMP messages are handled above"),
            Content::Outside { .. } => unreachable!("injected packets bring their own bytes"),
            Content::Keepalive { .. } => unreachable!("keepalives are written with the tunnels"),
            Content::Segment { segment, scale, tick } => {
                let data = payload(packet.source, segment.seq, segment.payload());
                &tcp(&ends, &segment, scale, tick, &data)
            }
        };
        let from = head.offset as usize;
        let to = from + (u64::from(head.bytes) - IP_HEADER_BYTES) as usize;
        ip.write(&whole[from..to], out);
    }
}

/// Appends a keepalive that enters a tunnel in one direction: from the other end of the tunnel to the router that sends it, with a GRE header of type 0.
pub(super) fn write_keepalive(
    topology: &Topology,
    (tunnel, forward): (usize, bool),
    head: &Head,
    out: &mut Vec<u8>,
) {
    let [sender, other] =
        topology.tunnels[tunnel].from_to(forward).map(|router| node_address(topology, router));
    let mut header = Vec::new();
    gre::write_keepalive(&mut header);
    let protocol = topology.tunnels[tunnel].config.header.config().protocol();
    ip_of_routers(head, (other, sender), protocol).write(&header, out);
}

/// Returns the IP header of a packet between the routers at the ends of a tunnel.
fn ip_of_routers(head: &Head, addresses: (Ipv4Addr, Ipv4Addr), protocol: u8) -> Ipv4 {
    Ipv4 {
        addresses,
        id: head.id,
        offset: head.offset,
        more: head.more,
        dont_fragment: false,
        ttl: head.ttl,
        // The class selector for the priority (RFC 2474 section 4.2.2.1).
        dscp: head.priority << 3,
        ecn: head.ecn,
        protocol: Protocol::Tunnel(protocol),
    }
}

/// Returns a packet as it is in a tunnel, with its outer headers; or the fragment of it that the outer header describes.
pub(super) fn encapsulate(topology: &Topology, outer: &Outer, packet: &[u8]) -> Vec<u8> {
    let path = &topology.tunnels[outer.tunnel];
    let header = path.config.header.config();
    let mut payload = Vec::with_capacity(packet.len() + header.bytes() as usize);
    header.write(packet, outer.sequence, &mut payload);
    payload.extend_from_slice(packet);
    let [from, to] = path.from_to(outer.forward).map(|router| node_address(topology, router));
    // IPv6 in IPv4 has protocol number 41 (RFC 4213 section 3.5).
    let is_v6 = packet.first().is_some_and(|first| first >> 4 == 6);
    let protocol = if is_v6 && header.bytes() == 0 { 41 } else { header.protocol() };
    let head = &outer.head;
    let begin = (head.offset as usize).min(payload.len());
    let end = begin + (u64::from(head.bytes) - IP_HEADER_BYTES) as usize;
    let mut whole = Vec::new();
    ip_of_routers(head, (from, to), protocol).write(&payload[begin..end.min(payload.len())], &mut whole);
    whole
}

/// Appends a packet as it passes a link point, made from the bytes with which it entered the network: sets TTL and ECN mark, or takes the fragment that
/// `head` describes.
///
/// # Panics
/// If the bytes are no IP packet, or fewer than `head` says.
pub fn passing(whole: &[u8], head: &Head, out: &mut Vec<u8>) {
    let begin = out.len();
    if whole[0] >> 4 == 6 {
        out.extend_from_slice(whole);
        let header = &mut out[begin..];
        header[7] = head.ttl;
        if head.ecn == Ecn::Marked {
            header[1] |= 0b11 << 4;
        }
        return;
    }
    let length = usize::from(whole[0] & 0xf) * 4;
    // The model assumes headers of 20 bytes. If the header is longer, the last fragment is shorter by the difference.
    let payload = (u64::from(head.bytes) - IP_HEADER_BYTES) as usize;
    let from = (length + head.offset as usize).min(whole.len());
    let to = if head.more { (from + payload).min(whole.len()) } else { whole.len() };
    out.extend_from_slice(&whole[..length]);
    out.extend_from_slice(&whole[from..to]);
    let header = &mut out[begin..];
    let total = header.len() as u16;
    header[2..4].copy_from_slice(&total.to_be_bytes());
    if head.more || head.offset > 0 {
        let word = (head.offset / 8) as u16 | u16::from(head.more) << 13;
        header[6..8].copy_from_slice(&word.to_be_bytes());
    }
    header[8] = head.ttl;
    if head.ecn == Ecn::Marked {
        header[1] |= 0b11;
    }
    header[10..12].fill(0);
    let sum = checksum(&header[..length]);
    header[10..12].copy_from_slice(&sum.to_be_bytes());
}

/// Returns `bytes` bytes of a stream from offset `from` on. A retransmission gets the same bytes.
fn payload(source: u32, from: u64, bytes: u64) -> Vec<u8> {
    let first = from + u64::from(source) * 31;
    (first..first + bytes).map(|place| (place % PERIOD) as u8).collect()
}
