//! Datagrams on their way, each in one place with its packet and its segment.

use std::mem::offset_of;
use std::ops::{Index, IndexMut};

use engpass_ledger::{DatagramClass, Load, Trail, Whose};
use engpass_model::queue::Ecn;
use engpass_model::tcp::Segment;

use super::arena::Slab;
use super::frames::Packet;

/// A datagram on its way.
#[derive(Clone, Debug, Default)]
#[repr(C)]
pub(super) struct Datagram {
    pub(super) flow: u32,
    pub(super) to: Destination,
    pub(super) bytes: u32,
    /// Bytes of the transport's header.
    pub(super) header: u32,
    /// Packets that it is cut into, and those of them that have arrived.
    pub(super) fragments: u16,
    pub(super) arrived: u16,
    /// Frames on the way, plus one while its process works on it or its receiver holds it.
    pub(super) holds: u32,
    /// Bytes of it that the receiver had already, or did not want.
    pub(super) refused: u32,
    /// The lines that have carried all of it, once it has arrived or is lost; unless the ledger has written down what each line carried.
    pub(super) trail: Trail,
    pub(super) written: bool,
    /// It has lost something: when and where stands in [`SharedState::losses`](super::fabric::Fabric::losses).
    pub(super) lost: bool,
    /// Whether it counts as one of its flow's: it carries data of the sender.
    pub(super) counted: bool,
    pub(super) sent: bool,
    /// The fragments are datagrams alike, each of so many bytes: the next one that arrives has the index.
    pub(super) train: bool,
    pub(super) index: u64,
    /// When its sender began with it.
    pub(super) begun: u64,
}

/// The endpoint that a datagram goes to, if it carries a TCP segment.
#[derive(Clone, Copy, Debug)]
pub(super) struct Destination(u32);

impl Destination {
    /// It carries no segment.
    pub(super) const SOCKET: Self = Self(u32::MAX);

    #[inline(always)]
    pub(super) fn endpoint(endpoint: usize) -> Self {
        Self(endpoint as u32)
    }

    #[inline(always)]
    pub(super) fn get(self) -> Option<u32> {
        (self.0 != Self::SOCKET.0).then_some(self.0)
    }
}

impl Default for Destination {
    fn default() -> Self {
        Self::SOCKET
    }
}

impl Datagram {
    /// Whether it is one packet, which nobody else holds.
    #[inline(always)]
    pub(super) fn is_one(&self) -> bool {
        self.fragments == 1 && self.holds == 1 && !self.written && !self.lost
    }

    /// The same, and nothing is to be noted of it that comes with this mark.
    #[inline(always)]
    pub(super) fn is_whole(&self, ecn: Ecn) -> bool {
        self.is_one() && ecn != Ecn::Marked
    }

    /// Whose it is.
    #[inline(always)]
    pub(super) fn whose(&self) -> Whose {
        Whose { flow: self.flow, to: self.to.get(), counted: self.counted }
    }

    /// What it is to the books, if it is a segment.
    #[inline(always)]
    pub(super) fn load(&self) -> Load {
        let cargo = if self.counted { DatagramClass::AnyLength } else { DatagramClass::Control };
        Load { cargo, header: self.header, bytes: self.bytes }
    }
}

/// What is kept in one place.
///
/// All that is on the way does not stay in the caches: what lines ask of a packet is one line of them, what its host reads besides is the next one,
/// and only the blocks of a SACK option are in a third.
#[derive(Debug, Default)]
#[repr(C, align(64))]
struct PacketSlot {
    packet: Packet,
    datagram: Datagram,
    segment: Segment,
}

const _: () = assert!(offset_of!(PacketSlot, datagram) + offset_of!(Datagram, index) == 64);
const _: () = assert!(offset_of!(PacketSlot, segment) + offset_of!(Segment, blocks) == 128);

/// All datagrams on their way, and their packets.
///
/// A packet has the place of its datagram, if no other packet has it: a fragment or not. Else it has a place of its own, where no datagram is.
#[derive(Debug, Default)]
pub(super) struct PacketStore(Slab<PacketSlot>);

impl PacketStore {
    /// The place of the next datagram.
    #[inline(always)]
    pub(super) fn next(&mut self) -> u32 {
        self.0.next()
    }

    /// A datagram comes into being.
    #[inline(always)]
    pub(super) fn insert(&mut self, datagram: Datagram) -> u32 {
        let next = self.next();
        self.insert_next(next, datagram, Packet::NONE);
        next
    }

    /// The datagram whose place was the next one comes into being, and its packet if it is one already. Its segment was there before.
    #[inline(always)]
    pub(super) fn insert_next(&mut self, next: u32, datagram: Datagram, packet: Packet) {
        let kept = self.0.take(next);
        (kept.datagram, kept.packet) = (datagram, packet);
    }

    /// A packet of a datagram comes into being.
    #[inline(always)]
    pub(super) fn insert_packet(&mut self, packet: Packet) -> u32 {
        let own = &mut self.0[packet.datagram].packet;
        if own.is_none() {
            *own = packet;
            return packet.datagram;
        }
        let next = self.next();
        self.insert_next(next, Datagram::default(), packet);
        next
    }

    /// Nobody holds a datagram, nor is a packet of it on its way.
    pub(super) fn release(&mut self, datagram: u32) {
        self.0.release(datagram);
    }

    #[inline(always)]
    pub(super) fn release_packet(&mut self, packet: u32) {
        let gone = std::mem::replace(&mut self.0[packet].packet, Packet::NONE);
        if gone.datagram != packet {
            self.0.release(packet);
        }
    }

    /// Whether there is a packet in this place: the place may be gone, too.
    pub(super) fn has_packet(&self, packet: u32) -> bool {
        packet < self.0.len() && !self.packet(packet).is_none()
    }

    #[inline(always)]
    pub(super) fn packet(&self, packet: u32) -> &Packet {
        &self.0[packet].packet
    }

    #[inline(always)]
    pub(super) fn packet_mut(&mut self, packet: u32) -> &mut Packet {
        &mut self.0[packet].packet
    }

    /// A packet, and its datagram.
    #[inline(always)]
    pub(super) fn packet_of(&mut self, packet: u32) -> (&mut Packet, &Datagram) {
        let datagram = self.0[packet].packet.datagram;
        if datagram == packet {
            let PacketSlot { packet, datagram, .. } = &mut self.0[packet];
            return (packet, datagram);
        }
        // A fragment.
        let [own, whole] = self.0.both(packet, datagram);
        (&mut own.packet, &whole.datagram)
    }

    #[inline(always)]
    pub(super) fn segment(&self, datagram: u32) -> &Segment {
        &self.0[datagram].segment
    }

    #[inline(always)]
    pub(super) fn segment_mut(&mut self, datagram: u32) -> &mut Segment {
        &mut self.0[datagram].segment
    }

    /// A datagram, and its segment.
    #[inline(always)]
    pub(super) fn with_segment(&mut self, datagram: u32) -> (&mut Datagram, &Segment) {
        let PacketSlot { datagram, segment, .. } = &mut self.0[datagram];
        (datagram, segment)
    }

    /// One more than the last place that was ever taken.
    pub(super) fn len(&self) -> u32 {
        self.0.len()
    }

    /// Let there be nothing in places that are free.
    pub(super) fn forget_free(&mut self) {
        self.0.forget_free(|kept| (kept.packet, kept.datagram.holds) = (Packet::NONE, 0));
    }

    /// See [`Slab::rest`].
    pub(super) fn rest(&mut self) -> bool {
        self.0.rest()
    }
}

impl Index<u32> for PacketStore {
    type Output = Datagram;
    #[inline]
    fn index(&self, index: u32) -> &Datagram {
        &self.0[index].datagram
    }
}

impl IndexMut<u32> for PacketStore {
    #[inline]
    fn index_mut(&mut self, index: u32) -> &mut Datagram {
        &mut self.0[index].datagram
    }
}
