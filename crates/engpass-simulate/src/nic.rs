//! NICs: the buffer for packets to be sent, and the senders that wait for room in it.

use std::collections::VecDeque;

use engpass_cells::PduId;
use engpass_frames::{Frames, Verdict};
use engpass_model::wire::aal5;

use super::cell_ports::{CellNetwork, PduBuffer};
use super::host::Hosts;
use super::injection::InjectedSenders;
use super::ready_packet::{ONWARD, ReadyPacket};
use super::shared_state::{Aal5Pdu, SharedState};
use super::tap::Carrier;

/// The buffer of one NIC, and the senders that wait for room in it. A NIC has the index of its line's port. The port knows what the buffer holds.
#[derive(Debug)]
pub(super) struct Nic {
    pub(super) capacity: u64,
    /// Index of the NIC's host.
    pub(super) host: u32,
    pub(super) waiting: VecDeque<usize>,
}

impl Nic {
    pub(super) fn new(capacity: u64, host: u32) -> Self {
        Self { capacity, host, waiting: VecDeque::new() }
    }

    /// Returns true if a sender waits for room in the buffer.
    #[inline]
    pub(super) fn has_waiters(&self) -> bool {
        !self.waiting.is_empty()
    }
}

impl CellNetwork {
    pub(super) fn nic_buffer(&mut self, nic: usize) -> &mut PduBuffer {
        self.ports[nic].buffer.as_mut().expect("a NIC has a buffer")
    }

    /// Returns true if the buffer of a NIC, of `capacity` bytes, has room for the packet now.
    pub(super) fn nic_has_room(
        &mut self,
        ready: &ReadyPacket,
        (now, capacity): (u64, u64),
        shared: &mut SharedState,
    ) -> bool {
        let (nic, bytes) = (ready.nic, ready.memory());
        if self.nic_buffer(nic).has_room(now, bytes, capacity) {
            return true;
        }
        // A cell emitted now may still meet others at this instant. Therefore the port advances only to the instant before.
        if let Some(before) = now.checked_sub(1) {
            self.advance(nic, before, shared);
        }
        self.nic_buffer(nic).has_room(now, bytes, capacity)
    }
}

impl SharedState {
    /// Creates the PDU of a host's packet on the circuit direction `vc`. From [`ONWARD`] on, `vc` is a route that begins with a circuit and goes on behind it.
    pub(super) fn pdu_of(
        &mut self,
        sender: usize,
        ready_packet: &ReadyPacket,
        vc: u32,
        (frames, hosts, injected): (&Frames, &Hosts, &InjectedSenders),
    ) -> PduId {
        let Some(route) = vc.checked_sub(ONWARD) else {
            let (datagram, sdu) = (ready_packet.datagram, ready_packet.memory());
            let cells = aal5::cells(sdu) as u32;
            let pdu = self.pdus.insert(Aal5Pdu::new(vc, datagram, sdu as u32, cells + 1));
            if self.trace.is_some() {
                self.tap_emitted(Carrier::Pdu(pdu), sender, ready_packet, hosts, injected);
            }
            self.datagrams[datagram].refs += 1;
            return pdu;
        };
        let id = self.packet_of(frames, sender, ready_packet, route);
        self.tap_emitted(Carrier::Packet(id), sender, ready_packet, hosts, injected);
        let first = frames.routes[route as usize].first;
        let Verdict::Circuit(number) = frames.steps[first as usize].verdict else {
            unreachable!("the route begins with a circuit")
        };
        self.create_pdu(frames, id, number)
    }
}
