//! The datagrams and packets in the network. One slot holds a datagram, its packet and its TCP segment; further packets of the datagram have their own slots.

use std::mem::offset_of;
use std::ops::{Index, IndexMut};

use engpass_frames::Packet;
use engpass_ledger::{DatagramClass, DatagramOwner, Load, Trail};
use engpass_model::queue::Ecn;
use engpass_model::tcp::Segment;

use super::slab::Slab;

/// A datagram in the network.
#[derive(Clone, Debug, Default)]
#[repr(C)]
pub(super) struct Datagram {
    pub(super) flow: u32,
    pub(super) to: Destination,
    pub(super) bytes: u32,
    /// Bytes of the transport header.
    pub(super) header: u32,
    /// Number of packets of the datagram, and of those that have arrived.
    pub(super) fragments: u16,
    pub(super) arrived: u16,
    /// Reference count: packets or PDUs in the network, plus one while its sender or its receiver uses it.
    pub(super) refs: u32,
    /// Payload bytes that the receiver had already, or did not accept.
    pub(super) refused: u32,
    /// Lines that carried all of the datagram, valid once it has arrived or is lost, unless `tracked_per_hop` is set.
    pub(super) trail: Trail,
    /// True if the ledger has a per-hop record of the datagram, because its lines may have carried different parts of it.
    pub(super) tracked_per_hop: bool,
    /// True if the datagram has lost a packet or cell; time and place are in [`SharedState::losses`](super::shared_state::SharedState::losses).
    pub(super) lost: bool,
    /// True if the datagram carries data of the sender, so that it counts in the results of its flow.
    pub(super) counted: bool,
    pub(super) sent: bool,
    /// True for a packet train: the `fragments` are identical datagrams of `bytes` each, and `index` is that of the next one to arrive.
    pub(super) train: bool,
    /// True for a segment whose data was sent before.
    pub(super) resent: bool,
    /// True if packets of the datagram, or outer packets in a tunnel, have taken different paths.
    pub(super) paths_differ: bool,
    pub(super) index: u64,
    /// Instant at which the sender began to work on the datagram; delays are measured from it.
    pub(super) begun: u64,
}

/// Destination of a datagram: the TCP endpoint of a segment, the number of a flow direction such as ICMP, or the socket of the flow.
#[derive(Clone, Copy, Debug)]
pub(super) struct Destination(u32);

impl Destination {
    /// The UDP socket of the datagram's flow.
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
    /// Returns true for an unfragmented datagram with a single reference, without a loss and without a per-hop record.
    #[inline(always)]
    pub(super) fn is_sole_packet(&self) -> bool {
        self.fragments == 1 && self.refs == 1 && !self.tracked_per_hop && !self.lost
    }

    /// Returns true if [`Self::is_sole_packet`] holds and the packet carries no congestion mark to be noted.
    #[inline(always)]
    pub(super) fn is_sole_unmarked(&self, ecn: Ecn) -> bool {
        self.is_sole_packet() && ecn != Ecn::Marked
    }

    /// Returns flow, receiver and whether the datagram counts, in the form that the ledger takes.
    #[inline(always)]
    pub(super) fn owner(&self) -> DatagramOwner {
        DatagramOwner { flow: self.flow, to: self.to.get(), counted: self.counted }
    }

    /// Returns true if the delay of this segment, with which its application got `delivered` bytes, is a message delay: its data was sent once, and the
    /// application has it, and no other, on arrival.
    #[inline(always)]
    pub(super) fn ends_message(&self, delivered: u64) -> bool {
        !self.resent && self.refused == 0 && delivered == u64::from(self.bytes)
    }

    /// Returns its load for the ledger, if it is a segment.
    #[inline(always)]
    pub(super) fn load(&self) -> Load {
        let class = if self.counted { DatagramClass::AnyLength } else { DatagramClass::Control };
        Load { class, header: self.header, bytes: self.bytes }
    }
}

/// A slot of the store.
///
/// Large numbers of packets do not fit into the CPU caches. Therefore what lines need of a packet is in one cache line, what its host needs in the next, and
/// only the blocks of a SACK option are in a third.
#[derive(Debug, Default)]
#[repr(C, align(64))]
struct PacketSlot {
    packet: Packet,
    datagram: Datagram,
    segment: Segment,
}

const _: () = assert!(offset_of!(PacketSlot, datagram) + offset_of!(Datagram, index) == 64);
const _: () = assert!(offset_of!(PacketSlot, segment) + offset_of!(Segment, blocks) == 128);

/// All datagrams and packets in the network, by index.
///
/// A packet has the index of its datagram if no other packet has it. Otherwise it has an index of its own, without a datagram.
#[derive(Debug, Default)]
pub(super) struct PacketStore(Slab<PacketSlot>);

impl PacketStore {
    /// Returns the index that the next datagram will get.
    #[inline(always)]
    pub(super) fn next(&mut self) -> u32 {
        self.0.next()
    }

    /// Adds a datagram without a packet, and returns its index.
    #[inline(always)]
    pub(super) fn insert(&mut self, datagram: Datagram) -> u32 {
        let next = self.next();
        self.insert_next(next, datagram, Packet::NONE);
        next
    }

    /// Adds a datagram at the index that `next` returned, with its packet if there is one. The caller has already written its segment there.
    #[inline(always)]
    pub(super) fn insert_next(&mut self, next: u32, datagram: Datagram, packet: Packet) {
        let kept = self.0.take(next);
        (kept.datagram, kept.packet) = (datagram, packet);
    }

    /// Adds a packet of a datagram, and returns the packet's index.
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

    /// Frees the slot of a datagram that has no references and no packets.
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

    /// Returns true if the slot with this index exists and has a packet.
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

    /// Returns a packet and its datagram.
    #[inline(always)]
    pub(super) fn packet_of(&mut self, packet: u32) -> (&mut Packet, &Datagram) {
        let datagram = self.0[packet].packet.datagram;
        if datagram == packet {
            let PacketSlot { packet, datagram, .. } = &mut self.0[packet];
            return (packet, datagram);
        }
        // The packet is a further fragment, in a slot of its own.
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

    /// Returns a datagram and its segment.
    #[inline(always)]
    pub(super) fn with_segment(&mut self, datagram: u32) -> (&mut Datagram, &Segment) {
        let PacketSlot { datagram, segment, .. } = &mut self.0[datagram];
        (datagram, segment)
    }

    /// Returns an upper bound of all indices in use: one more than the largest so far.
    pub(super) fn len(&self) -> u32 {
        self.0.len()
    }

    /// Clears all slots that are free.
    pub(super) fn forget_free(&mut self) {
        self.0.forget_free(|kept| (kept.packet, kept.datagram.refs) = (Packet::NONE, 0));
    }

    /// Releases the memory if the store was large and is empty: see [`Slab::release_unused_memory`].
    pub(super) fn release_unused_memory(&mut self) -> bool {
        self.0.release_unused_memory()
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
