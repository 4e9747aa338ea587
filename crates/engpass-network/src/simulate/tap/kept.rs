//! What passes a transmitter is kept, with what must be known to say what it is.

mod passing;

use std::collections::BTreeMap;

use engpass_cells::{CellTrain, Generator, PduId};
use engpass_model::queue::Ecn;
use engpass_model::tcp::{Flags, Segment};
use engpass_model::time::Time;
use engpass_model::wire::icmp;

use super::{Arp, Content, Head, Hidden, Packet};
use crate::simulate::datagrams::{Datagram, PacketStore};
use crate::simulate::outside::DeliveryReports;
use crate::simulate::sending::ReadyPacket;
use crate::simulate::timeline::Trace;

/// What is kept of what passes, and what must be known to say what it is.
#[derive(Debug, Default)]
pub(in crate::simulate) struct TapBuffers {
    /// By port; `None` where nobody captures.
    pub(super) ports: Vec<Option<Vec<Record>>>,
    /// Lines that generators alone feed, and which the next port passes over: what they make, and what is left of their last train.
    pub(super) passed: Vec<(usize, Generator, Option<CellTrain>)>,
    /// Where a packet stands in its datagram, by frame of cells and by packet.
    pub(super) frames: Vec<Head>,
    pub(super) packets: Vec<Head>,
    /// What the headers of tunnels hide of these, the header of the packet that entered first in front.
    pub(super) hidden_of_frames: BTreeMap<PduId, Hidden>,
    pub(super) hidden: BTreeMap<u32, Hidden>,
    /// By packet, the transmitter of the host or router that it has left last; and the transmitters of switches.
    pub(super) framed_at: Vec<usize>,
    pub(super) of_switches: Vec<bool>,
    /// Identification by datagram, and by host the next one.
    pub(super) ids: Vec<u16>,
    pub(super) next_id: Vec<u16>,
    /// By router the identification of its next message; and by datagram of a message the router and the segment that it quotes.
    pub(super) next_of_routers: Vec<u16>,
    pub(super) quoted: BTreeMap<u32, (usize, Quoted)>,
    /// By traffic table, and behind these by receiver of a group.
    pub(super) flows: Vec<FlowInfo>,
    /// The destinations of ARP packets begin behind those of endpoints and messages of routers, and those of copies to receivers behind them.
    pub(super) first_arp: u32,
    pub(super) first_copy: u32,
    /// What ARP packets say, by datagram.
    pub(super) arp: BTreeMap<u32, Arp>,
    /// By TCP endpoint: what it announced in its SYN, and its clock.
    pub(super) scales: Vec<Option<u8>>,
    pub(super) ticks: Vec<Time>,
}

/// What is known of a flow.
#[derive(Clone, Copy, Debug)]
pub(super) struct FlowInfo {
    /// Its traffic table.
    pub(super) table: usize,
    pub(super) ends: [usize; 2],
    /// Number of its first source or connection, and of its first endpoint.
    pub(super) source: u32,
    pub(super) endpoint: u32,
    pub(super) ttl: u8,
    pub(super) priority: u8,
}

/// What a packet's header says when it enters its NIC: of congestion, and, if it comes from outside, its own time to live and priority.
#[derive(Clone, Copy, Debug)]
pub(super) struct Marks {
    pub(super) ecn: Ecn,
    pub(super) own: Option<(u8, u8)>,
}

/// Something that has passed.
#[derive(Debug)]
pub(super) enum Record {
    Packet(u64, Packet),
    Arp(u64, Arp),
    /// Cells of one PDU, or of a generator.
    Cells(CellTrain, Option<Packet>),
}

/// The packet that a message of a router is about.
#[derive(Clone, Copy, Debug)]
pub(in crate::simulate) struct Quoted {
    pub(in crate::simulate) mtu: u32,
    pub(in crate::simulate) head: Head,
    /// Its sender.
    pub(in crate::simulate) endpoint: u32,
}

impl TapBuffers {
    fn wants(&self, port: usize) -> bool {
        self.ports[port].is_some()
    }

    /// A packet with this header has come into being, in no tunnel.
    fn begins(&mut self, packet: u32, head: Head) {
        put(&mut self.packets, packet, head);
        self.hidden.remove(&packet);
    }

    /// A packet has left this port.
    fn leaves(&mut self, packet: u32, port: usize) {
        if !self.of_switches[port] {
            put(&mut self.framed_at, packet, port);
        }
    }

    /// What a datagram says, if it is an ARP packet.
    pub(super) fn arp_in(&self, id: u32, datagram: &Datagram) -> Option<Arp> {
        let is_arp = datagram.to.get().is_some_and(|to| (self.first_arp..self.first_copy).contains(&to));
        is_arp.then(|| self.arp[&id])
    }

    /// The window scale of an endpoint, if both ends of its connection have offered one.
    fn scale_of(&self, endpoint: usize) -> u8 {
        self.scales[endpoint].filter(|_| self.scales[endpoint ^ 1].is_some()).unwrap_or(0)
    }

    fn packet(
        &self,
        id: u32,
        fabric: (&PacketStore, Option<&DeliveryReports>),
        (head, framed_at): (Head, usize),
        hidden: Option<&Hidden>,
    ) -> Packet {
        let (datagrams, fates) = fabric;
        let datagram = &datagrams[id];
        let seen = &self.flows[datagram.flow as usize];
        let flow = seen.table;
        let (back, number, content) = match (datagram.to.get(), fates) {
            (to, Some(fates)) => {
                (to.is_some(), 0, Content::Outside { token: fates.head(id).token, said: fates.said(id) })
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
                let to = to.expect("a segment goes to an endpoint");
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
        Packet { flow, back, source: seen.source + number, head, outer, framed_at, content }
    }
}

impl Trace {
    /// Whether somebody captures at a port.
    #[inline]
    pub(in crate::simulate) fn taps(&self, port: usize) -> bool {
        self.taps.as_ref().is_some_and(|taps| taps.wants(port))
    }

    /// A packet enters its NIC: the first of its datagram, or a fragment of it that begins at `offset`.
    pub(super) fn emitted(
        &mut self,
        carrier: Carrier,
        sending: &ReadyPacket,
        datagram: &Datagram,
        (offset, more): (u64, bool),
        marks: Marks,
    ) {
        let Some(taps) = &mut self.taps else { return };
        let flow = taps.flows[datagram.flow as usize];
        let (ids, id) = (&mut taps.ids, sending.datagram as usize);
        ids.resize(ids.len().max(id + 1), 0);
        if offset == 0 {
            let back = datagram.to.get().is_some_and(|to| to % 2 == 0);
            let next = &mut taps.next_id[flow.ends[usize::from(back)]];
            ids[id] = *next;
            *next = next.wrapping_add(1);
        }
        let (bytes, offset) = (sending.ip as u32, offset as u32);
        let (ttl, priority) = marks.own.unwrap_or((flow.ttl, flow.priority));
        let head = Head { id: ids[id], bytes, offset, more, ttl, priority, ecn: marks.ecn };
        match carrier {
            Carrier::Frame(frame) => {
                put(&mut taps.frames, frame, head);
                taps.hidden_of_frames.remove(&frame);
            }
            Carrier::Packet(packet) => taps.begins(packet, head),
        }
    }

    /// An endpoint has formed a segment.
    pub(in crate::simulate) fn formed(&mut self, endpoint: usize, segment: &Segment) {
        if let Some(taps) = &mut self.taps
            && segment.flags.has(Flags::SYN)
        {
            taps.scales[endpoint] = segment.window_scale;
        }
    }

    /// A frame of cells carries a packet whose time to live is this now.
    pub(in crate::simulate) fn carries(&mut self, frame: PduId, packet: u32, ttl: u8) {
        if let Some(taps) = &mut self.taps {
            let head = taps.packets[packet as usize];
            put(&mut taps.frames, frame, Head { ttl, ..head });
            match taps.hidden.get(&packet) {
                Some(hidden) => taps.hidden_of_frames.insert(frame, hidden.clone()),
                None => taps.hidden_of_frames.remove(&frame),
            };
        }
    }

    /// What the header of a packet says, if somebody captures.
    pub(in crate::simulate) fn head_of(&self, packet: u32) -> Option<Head> {
        self.taps.as_ref().map(|taps| taps.packets[packet as usize])
    }

    /// A copy of a packet has come into being.
    pub(in crate::simulate) fn copied(&mut self, packet: u32, copy: u32) {
        let Some(taps) = &mut self.taps else { return };
        let head = taps.packets[packet as usize];
        taps.begins(copy, head);
        if let Some(port) = taps.framed_at.get(packet as usize).copied() {
            put(&mut taps.framed_at, copy, port);
        }
    }

    /// A router has made a message, in this packet; of one to an endpoint the segment that it quotes is kept.
    pub(in crate::simulate) fn made(
        &mut self,
        message: u32,
        bytes: u32,
        router: usize,
        quoted: Option<Quoted>,
    ) {
        let Some(taps) = &mut self.taps else { return };
        let next = &mut taps.next_of_routers[router];
        let id = std::mem::replace(next, next.wrapping_add(1));
        let head = Head { id, bytes, ttl: icmp::TTL, priority: icmp::PRIORITY, ..Head::default() };
        taps.begins(message, head);
        if let Some(quoted) = quoted {
            taps.quoted.insert(message, (router, quoted));
        }
    }

    /// An ARP packet has come into being, as this datagram.
    pub(in crate::simulate) fn asks(&mut self, datagram: u32, arp: Arp) {
        if let Some(taps) = &mut self.taps {
            taps.arp.insert(datagram, arp);
        }
    }

    /// A router has cut a packet with this header: the fragment `part` has these bytes, from this place of it on.
    pub(in crate::simulate) fn cut(
        &mut self,
        head: Head,
        part: u32,
        (bytes, offset): (u32, u32),
        last: bool,
    ) {
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

/// What carries a packet: a frame of cells, or a packet of a line of frames.
#[derive(Clone, Copy, Debug)]
pub(in crate::simulate) enum Carrier {
    Frame(PduId),
    Packet(u32),
}
