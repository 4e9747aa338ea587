//! Reassembly and reception at the host (docs/model.md, "Reassembly and reception").

use engpass_model::host::Side;
use engpass_model::source::Traffic;

use crate::agenda::{Event, Group};
use crate::cell::Cell;
use crate::engine::{Engine, Source};
use crate::host::Item;
use crate::outcome::Place;

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
        let (ends_pdu, efci, frame) = (cell.last, cell.efci, cell.frame);
        let vc = cell.vc;
        reassembly.cells.push(cell);
        if !ends_pdu {
            return;
        }
        // Generators do not pass the shaper.
        if matches!(self.sources[self.frames[frame].flow], Source::Process(_)) {
            self.answer_pdu(now, vc, efci);
        }
        let pdu = std::mem::take(&mut self.reassembly[vc].cells);
        let first = pdu[0].frame;
        let whole =
            pdu.iter().enumerate().all(|(place, cell)| cell.frame == first && cell.number == place as u64);
        if whole && pdu.len() as u64 == self.frames[first].cells {
            let position = (self.frames[first].flow, 0);
            if efci {
                self.ledger.marked(now, position.0);
            }
            self.agenda.put(now, Group::PduComplete, position, Event::PduComplete { frame: first });
            return;
        }
        let place = Place::Reassembly { circuit: self.vcs[vc].circuit };
        for cell in pdu {
            let frame = &self.frames[cell.frame];
            self.ledger.lose(now, place, frame.flow, frame.datagram);
        }
    }

    /// A good PDU is complete, and with its last fragment a datagram.
    pub(crate) fn pdu_complete(&mut self, now: u64, frame: usize) {
        let frame = self.frames[frame].clone();
        let (flow, datagram) = (frame.flow, frame.datagram);
        if !self.ledger.good(flow, datagram) {
            return;
        }
        let Traffic::UdpStream(config) = &self.testbed.traffic[flow] else {
            return self.ledger.received(now, flow, datagram, true);
        };
        let host = self.topology.flows[flow].to;
        let receiver = &self.testbed.hosts[host];
        let bytes = config.message.bytes();
        let cost = receiver
            .occupation(Side::Receive, config.receive_path)
            .datagram(bytes, self.ledger.fragments(flow, datagram));
        if cost == 0 {
            self.ledger.received(now, flow, datagram, false);
        } else if self.receive_buffers[flow] + bytes
            > config.receive_buffer.unwrap_or(receiver.receive_buffer).bytes()
        {
            self.ledger.lose(now, Place::ReceiveBuffer, flow, datagram);
        } else {
            self.receive_buffers[flow] += bytes;
            self.ask_cpu(now, host, cost, Item::Receive { flow, datagram });
        }
    }
}
