//! Reassembly where circuits end, and reception at the host (docs/model.md, "Reassembly and reception", "Circuits that end at routers").
//!
//! The state is in `../reassembly.rs`.

use engpass_testbed::topology::NodeKind;

use super::Engine;
use crate::acted::Mechanism;
use crate::cell::Cell;
use crate::event_queue::{Event, Group};
use crate::ledger::Datagram;
use crate::outcome::Place;
use crate::packet::Packet;
use crate::resolve::kind;

impl Engine<'_> {
    /// Returns the number of cells of a circuit direction that reached its end.
    pub(crate) fn arrived(&self, vc: usize) -> u64 {
        self.reassembly[vc].count
    }

    /// Handles a cell that reached the host or router at the end of its circuit.
    pub(crate) fn leaves_circuit(&mut self, now: u64, cell: Cell) {
        let reassembly = &mut self.reassembly[cell.vc];
        assert!(reassembly.last < Some(cell.order), "cells of a circuit arrive in order");
        reassembly.last = Some(cell.order);
        reassembly.count += 1;
        let (ends_pdu, efci, packet) = (cell.last, cell.efci, cell.packet);
        let vc = cell.vc;
        reassembly.cells.push(cell);
        if !ends_pdu {
            return;
        }
        // Generators bypass the shaper.
        if !self.generates(self.packets[packet].flow) {
            self.answer_pdu(now, vc, efci);
        }
        let pdu = std::mem::take(&mut self.reassembly[vc].cells);
        let first = pdu[0].packet;
        let whole =
            pdu.iter().enumerate().all(|(place, cell)| cell.packet == first && cell.number == place as u64);
        let router = match kind(&self.topology, self.vcs[vc].to) {
            NodeKind::Router(router) => Some(router),
            _ => None,
        };
        if whole && pdu.len() as u64 == self.packets[first].cells {
            if efci && self.packets[first].keepalive.is_none() {
                self.ledger.marked(now, self.packets[first].flow);
            }
            if let Some(router) = router {
                self.acted.note(Mechanism::OutOfCircuit);
                let last = self.vcs[vc].lines[self.vcs[vc].lines.len() - 1];
                return self.arrives_at_router(now, router, first, last);
            }
            let position = (self.packets[first].flow, 0);
            return self.agenda.put(
                now,
                Group::PacketComplete,
                position,
                Event::PacketComplete { packet: first },
            );
        }
        let place = Place::Reassembly { router: router.map(|_| self.vcs[vc].to) };
        for cell in pdu {
            self.ledger.lose(now, place, self.packets[cell.packet].datagram);
        }
    }

    /// Handles a complete packet at its host. With the last packet the datagram is complete.
    pub(crate) fn packet_complete(&mut self, now: u64, packet: usize) {
        let Packet { flow, datagram, bytes, ce, .. } = self.packets[packet];
        if self.generates(flow) {
            return self.ledger.received(now, datagram, 0, None);
        }
        let path = self.packets[packet].path.clone();
        let Some(packets) = self.ledger.arrives(datagram, bytes, ce, path) else { return };
        match self.ledger.datagram(datagram) {
            Datagram { message: Some(_), .. } => self.message_arrives(now, datagram),
            Datagram { segment: Some(_), .. } => self.segment_arrives(now, datagram),
            _ => self.datagram_complete(now, datagram, packets),
        }
    }
}
