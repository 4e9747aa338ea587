//! Reassembly and reception at the host (docs/model.md, "Reassembly and reception").

use crate::agenda::{Event, Group};
use crate::cell::Cell;
use crate::engine::Engine;
use crate::outcome::Place;
use crate::packet::Packet;

/// Cells of one direction of a circuit since the last end of a PDU.
#[derive(Debug, Default)]
pub(crate) struct Reassembly {
    cells: Vec<Cell>,
    /// Order of the last cell that arrived.
    last: Option<u64>,
    /// Cells that arrived.
    count: u64,
}

impl Engine<'_> {
    /// Cells of a direction of a circuit that arrived at its host.
    pub(crate) fn arrived(&self, vc: usize) -> u64 {
        self.reassembly[vc].count
    }

    /// A cell is at the host that its circuit leads to.
    pub(crate) fn arrives_at_host(&mut self, now: u64, cell: Cell) {
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
        // Generators do not pass the shaper.
        if !self.generates(self.packets[packet].flow) {
            self.answer_pdu(now, vc, efci);
        }
        let pdu = std::mem::take(&mut self.reassembly[vc].cells);
        let first = pdu[0].packet;
        let whole =
            pdu.iter().enumerate().all(|(place, cell)| cell.packet == first && cell.number == place as u64);
        if whole && pdu.len() as u64 == self.packets[first].cells {
            if efci {
                self.ledger.marked(now, self.packets[first].flow);
            }
            let position = (self.packets[first].flow, 0);
            return self.agenda.put(
                now,
                Group::PacketComplete,
                position,
                Event::PacketComplete { packet: first },
            );
        }
        let place = Place::Reassembly { circuit: self.vcs[vc].circuit };
        for cell in pdu {
            self.ledger.lose(now, place, self.packets[cell.packet].datagram);
        }
    }

    /// A packet is at its host, good and whole, and with its last one a datagram.
    pub(crate) fn packet_complete(&mut self, now: u64, packet: usize) {
        let Packet { flow, datagram, bytes, ce, .. } = self.packets[packet];
        if self.generates(flow) {
            return self.ledger.received(now, datagram, 0);
        }
        let Some(packets) = self.ledger.arrives(datagram, bytes, ce) else { return };
        match self.ledger.datagram(datagram).segment {
            Some(_) => self.segment_arrives(now, datagram),
            None => self.datagram_complete(now, datagram, packets),
        }
    }
}
