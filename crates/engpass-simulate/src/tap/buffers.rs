//! Buffers of a capture: records, and the state needed to describe captured packets.

mod recording;

use std::collections::BTreeMap;

use engpass_cells::{CellTrain, Generator, PduId};
use engpass_model::queue::Ecn;
use engpass_model::tcp::{Flags, Segment};
use engpass_model::time::Time;

use super::{Arp, Content, Head, HiddenHeaders, Igmp, Packet};
use crate::injection::DeliveryReports;
use crate::packet_store::{Datagram, PacketStore};
use crate::ready_packet::ReadyPacket;
use crate::trace::Trace;

/// Records of a capture, and the state needed to describe packets.
#[derive(Debug, Default)]
pub(crate) struct TapBuffers {
    /// Records by port; `None` for a port that is not captured.
    pub(super) ports: Vec<Option<Vec<Record>>>,
    /// Captured lines that are bypassed: port, generator, and the cells of its last train that are still to be recorded.
    pub(super) bypassed: Vec<(usize, Generator, Option<CellTrain>)>,
    /// Headers of packets, by PDU and by packet number.
    pub(super) pdu_heads: Vec<Head>,
    pub(super) packet_heads: Vec<Head>,
    /// Inner headers of packets in tunnels, which outer headers hide, by PDU and by packet number.
    pub(super) hidden_of_pdus: BTreeMap<PduId, HiddenHeaders>,
    pub(super) hidden: BTreeMap<u32, HiddenHeaders>,
    /// By packet: the last transmitter of a host or router that it left.
    pub(super) framed_at: Vec<usize>,
    /// By transmitter: true if it belongs to a switch.
    pub(super) of_switches: Vec<bool>,
    /// By datagram: its IP identification.
    pub(super) ids: Vec<u16>,
    /// By host: its next IP identification.
    pub(super) next_id: Vec<u16>,
    /// By router: its next IP identification.
    pub(super) next_of_routers: Vec<u16>,
    /// By datagram of an ICMP message: the router that sent it, and the segment that it quotes.
    pub(super) quoted: BTreeMap<u32, (usize, Quoted)>,
    /// Properties of flows, by traffic table, followed by those of multicast receivers.
    pub(super) flows: Vec<FlowInfo>,
    /// Lowest destination numbers of ARP packets (after endpoints and messages of routers), of IGMP messages, of keepalives, and of multicast copies.
    pub(super) first_arp: u32,
    pub(super) first_igmp: u32,
    pub(super) first_keepalive: u32,
    pub(super) first_copy: u32,
    /// Content of ARP packets, and of IGMP messages, by datagram.
    pub(super) arp: BTreeMap<u32, Arp>,
    pub(super) igmp: BTreeMap<u32, Igmp>,
    /// By end that sends keepalives: its tunnel, and the direction in which they enter.
    pub(super) keepalives: Vec<(usize, bool)>,
    /// By TCP endpoint: the window scale in the SYN that it sent, and the tick of its timestamp clock.
    pub(super) scales: Vec<Option<u8>>,
    pub(super) ticks: Vec<Time>,
}

/// Properties of a flow that its captured packets show.
#[derive(Clone, Copy, Debug)]
pub(super) struct FlowInfo {
    /// Index of the flow's traffic table.
    pub(super) table: usize,
    pub(super) ends: [usize; 2],
    /// Numbers of the flow's first source or connection, and of its first endpoint.
    pub(super) source: u32,
    pub(super) endpoint: u32,
    pub(super) ttl: u8,
    pub(super) priority: u8,
}

/// Header fields of a packet that enters its NIC: ECN; `own` has TTL and priority of an injected packet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Marks {
    pub(super) ecn: Ecn,
    pub(super) own: Option<(u8, u8)>,
}

/// A packet, ARP packet, IGMP message or cell train that has left a transmitter. Packets and messages come with the instant of departure.
#[derive(Debug)]
pub(super) enum Record {
    Packet(u64, Packet),
    Arp(u64, Arp),
    Igmp(u64, Igmp),
    /// Cells of one PDU with its packet, or of a generator without.
    Cells(CellTrain, Option<Packet>),
}

/// The packet that an ICMP message is about.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Quoted {
    pub(crate) mtu: u32,
    pub(crate) head: Head,
    /// Endpoint that sent the packet.
    pub(crate) endpoint: u32,
}

impl TapBuffers {
    fn wants(&self, port: usize) -> bool {
        self.ports[port].is_some()
    }

    /// Sets the header of a new packet, which is in no tunnel.
    fn begins(&mut self, packet: u32, head: Head) {
        put(&mut self.packet_heads, packet, head);
        self.hidden.remove(&packet);
    }

    /// Records that a packet has left this port.
    fn leaves(&mut self, packet: u32, port: usize) {
        if !self.of_switches[port] {
            put(&mut self.framed_at, packet, port);
        }
    }

    /// Returns the content of a datagram that is an ARP packet; `None` for other datagrams.
    pub(super) fn arp_in(&self, id: u32, datagram: &Datagram) -> Option<Arp> {
        let is_arp = datagram.to.get().is_some_and(|to| (self.first_arp..self.first_igmp).contains(&to));
        is_arp.then(|| self.arp[&id])
    }

    /// Returns the content of a datagram that is an IGMP message; `None` for other datagrams.
    pub(super) fn igmp_in(&self, id: u32, datagram: &Datagram) -> Option<Igmp> {
        let is_igmp =
            datagram.to.get().is_some_and(|to| (self.first_igmp..self.first_keepalive).contains(&to));
        is_igmp.then(|| self.igmp[&id])
    }

    /// Returns the window scale of an endpoint; 0 unless both ends of its connection have offered one.
    fn scale_of(&self, endpoint: usize) -> u8 {
        self.scales[endpoint].filter(|_| self.scales[endpoint ^ 1].is_some()).unwrap_or(0)
    }

    fn packet(
        &self,
        id: u32,
        shared: (&PacketStore, Option<&DeliveryReports>),
        (head, framed_at): (Head, usize),
        hidden: Option<&HiddenHeaders>,
    ) -> Packet {
        let (datagrams, reports) = shared;
        let datagram = &datagrams[id];
        let keepalive = datagram.to.get().filter(|to| (self.first_keepalive..self.first_copy).contains(to));
        if let Some(to) = keepalive {
            let (tunnel, forward) = self.keepalives[(to - self.first_keepalive) as usize / 2];
            let (head, outer) = hidden.map_or((head, Vec::new()), |hidden| hidden.around(head));
            let content = Content::Keepalive { tunnel, forward };
            return Packet { flow: usize::MAX, back: false, source: 0, head, outer, framed_at, content };
        }
        let seen = &self.flows[datagram.flow as usize];
        let (back, number, content) = match (datagram.to.get(), reports) {
            (to, Some(reports)) => {
                (to.is_some(), 0, Content::Outside { token: reports.head(id).token, said: reports.said(id) })
            }
            (to, None) if to.is_none_or(|to| to >= self.first_copy) => {
                (false, 0, Content::Datagram { index: datagram.index, bytes: datagram.bytes.into() })
            }
            (Some(to), None) if to as usize >= self.scales.len() => {
                let (router, Quoted { mtu, head, endpoint }) = self.quoted[&id];
                let content = Content::TooBig {
                    router,
                    mtu,
                    head,
                    segment: *datagrams.segment(id),
                    scale: self.scale_of(endpoint as usize),
                    tick: self.ticks[endpoint as usize],
                };
                (true, (endpoint - seen.endpoint) / 2, content)
            }
            (to, None) => {
                let to = to.expect("a segment is addressed to an endpoint");
                // Endpoint `2k` writes to `2k + 1`.
                let from = (to ^ 1) as usize;
                let content = Content::Segment {
                    segment: *datagrams.segment(id),
                    scale: self.scale_of(from),
                    tick: self.ticks[from],
                };
                (to % 2 == 0, (to - seen.endpoint) / 2, content)
            }
        };
        let (head, outer) = hidden.map_or((head, Vec::new()), |hidden| hidden.around(head));
        Packet { flow: seen.table, back, source: seen.source + number, head, outer, framed_at, content }
    }
}

impl Trace {
    /// Returns true if a port is captured.
    #[inline]
    pub(crate) fn taps(&self, port: usize) -> bool {
        self.taps.as_ref().is_some_and(|taps| taps.wants(port))
    }

    /// Records the header of a packet that enters its NIC: the first one of its datagram, or a fragment that begins at byte `offset`.
    pub(super) fn emitted(
        &mut self,
        carrier: Carrier,
        ready_packet: &ReadyPacket,
        datagram: &Datagram,
        (offset, more): (u64, bool),
        marks: Marks,
    ) {
        let Some(taps) = &mut self.taps else { return };
        let flow = taps.flows[datagram.flow as usize];
        let (ids, id) = (&mut taps.ids, ready_packet.datagram as usize);
        ids.resize(ids.len().max(id + 1), 0);
        if offset == 0 {
            let back = datagram.to.get().is_some_and(|to| to % 2 == 0);
            let next = &mut taps.next_id[flow.ends[usize::from(back)]];
            ids[id] = *next;
            *next = next.wrapping_add(1);
        }
        let (bytes, offset) = (ready_packet.ip as u32, offset as u32);
        let (ttl, priority) = marks.own.unwrap_or((flow.ttl, flow.priority));
        let head = Head { id: ids[id], bytes, offset, more, ttl, priority, ecn: marks.ecn };
        match carrier {
            Carrier::Pdu(pdu) => {
                put(&mut taps.pdu_heads, pdu, head);
                taps.hidden_of_pdus.remove(&pdu);
            }
            Carrier::Packet(packet) => taps.begins(packet, head),
        }
    }

    /// Records the window scale if an endpoint has formed a SYN.
    pub(crate) fn formed(&mut self, endpoint: usize, segment: &Segment) {
        if let Some(taps) = &mut self.taps
            && segment.flags.has(Flags::SYN)
        {
            taps.scales[endpoint] = segment.window_scale;
        }
    }

    /// Records that a PDU carries a packet, whose TTL is now `ttl`.
    pub(crate) fn carries(&mut self, pdu: PduId, packet: u32, ttl: u8) {
        if let Some(taps) = &mut self.taps {
            let head = taps.packet_heads[packet as usize];
            put(&mut taps.pdu_heads, pdu, Head { ttl, ..head });
            match taps.hidden.get(&packet) {
                Some(hidden) => taps.hidden_of_pdus.insert(pdu, hidden.clone()),
                None => taps.hidden_of_pdus.remove(&pdu),
            };
        }
    }

    /// Returns the header of a packet; `None` without a capture.
    pub(crate) fn head_of(&self, packet: u32) -> Option<Head> {
        self.taps.as_ref().map(|taps| taps.packet_heads[packet as usize])
    }

    /// Gives a multicast copy the header of its packet.
    pub(crate) fn copied(&mut self, packet: u32, copy: u32) {
        let Some(taps) = &mut self.taps else { return };
        let head = taps.packet_heads[packet as usize];
        taps.begins(copy, head);
        if let Some(port) = taps.framed_at.get(packet as usize).copied() {
            put(&mut taps.framed_at, copy, port);
        }
    }

    /// Records the header of a new ICMP message or keepalive, and the segment that a message quotes.
    pub(crate) fn made(
        &mut self,
        message: u32,
        router: usize,
        (bytes, ttl, priority): (u32, u8, u8),
        quoted: Option<Quoted>,
    ) {
        let Some(taps) = &mut self.taps else { return };
        let next = &mut taps.next_of_routers[router];
        let id = std::mem::replace(next, next.wrapping_add(1));
        let head = Head { id, bytes, ttl, priority, ..Head::default() };
        taps.begins(message, head);
        if let Some(quoted) = quoted {
            taps.quoted.insert(message, (router, quoted));
        }
    }

    /// Records the content of a new ARP packet.
    pub(crate) fn asks(&mut self, datagram: u32, arp: Arp) {
        if let Some(taps) = &mut self.taps {
            taps.arp.insert(datagram, arp);
        }
    }

    /// Records the content of a new IGMP message.
    pub(crate) fn says(&mut self, datagram: u32, igmp: Igmp) {
        if let Some(taps) = &mut self.taps {
            taps.igmp.insert(datagram, igmp);
        }
    }

    /// Records the header of a fragment `part` of a packet with header `head`; `bytes` is its length, and `offset` its offset in that packet in bytes.
    pub(crate) fn fragment(&mut self, head: Head, part: u32, (bytes, offset): (u32, u32), last: bool) {
        let Some(taps) = &mut self.taps else { return };
        let (offset, more) = (head.offset + offset, head.more || !last);
        taps.begins(part, Head { bytes, offset, more, ..head });
    }
}

fn put<T: Clone + Default>(all: &mut Vec<T>, place: u32, this: T) {
    let place = place as usize;
    all.resize(all.len().max(place + 1), T::default());
    all[place] = this;
}

/// The carrier of a packet: a PDU, or a packet number on frame links.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Carrier {
    Pdu(PduId),
    Packet(u32),
}
