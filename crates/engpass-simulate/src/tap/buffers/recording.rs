//! Recording of packets and cells at captured ports.

use engpass_cells::{CellTrain, TrainPiece, one_by_one};
use engpass_model::queue::Ecn;

use super::{Head, Record};
use crate::shared_state::SharedState;

impl SharedState {
    /// Records a packet that leaves a port at `left`, if the port is captured.
    #[cold]
    pub(crate) fn tap_packet(
        &mut self,
        port: usize,
        left: u64,
        id: u32,
        datagram: u32,
        (ttl, ecn): (u8, Ecn),
    ) {
        let Some(taps) = self.trace.as_mut().and_then(|trace| trace.taps.as_mut()) else { return };
        taps.leaves(id, port);
        if !taps.wants(port) {
            return;
        }
        if let Some(arp) = taps.arp_in(datagram, &self.datagrams[datagram]) {
            taps.ports[port].as_mut().expect("the port is captured").push(Record::Arp(left, arp));
            return;
        }
        if let Some(igmp) = taps.igmp_in(datagram, &self.datagrams[datagram]) {
            taps.ports[port].as_mut().expect("the port is captured").push(Record::Igmp(left, igmp));
            return;
        }
        let head = Head { ttl, ecn, ..taps.packet_heads[id as usize] };
        let this = (&self.datagrams, self.reports.as_deref());
        let packet = taps.packet(datagram, this, (head, taps.framed_at[id as usize]), taps.hidden.get(&id));
        if let Some(records) = &mut taps.ports[port] {
            records.push(Record::Packet(left, packet));
        }
    }

    /// Records cells that leave a port now or later, if the port is captured.
    #[cold]
    pub(crate) fn tap_cells(&mut self, port: usize, cells: &CellTrain) {
        let Some(taps) = self.trace.as_mut().and_then(|trace| trace.taps.as_mut()) else { return };
        if !taps.wants(port) || cells.count == 0 {
            return;
        }
        let packet = (!cells.are_generated()).then(|| {
            let datagram = self.pdus[cells.pdu].datagram;
            let this = (&self.datagrams, self.reports.as_deref());
            let hidden = taps.hidden_of_pdus.get(&cells.pdu);
            taps.packet(datagram, this, (taps.pdu_heads[cells.pdu as usize], 0), hidden)
        });
        if let Some(records) = &mut taps.ports[port] {
            records.push(Record::Cells(*cells, packet));
        }
    }

    /// Records interleaved trains that leave a port, run by run.
    #[cold]
    pub(crate) fn tap_pieces(&mut self, port: usize, trains: &[CellTrain], pieces: &[TrainPiece]) {
        let mut trains: Vec<CellTrain> = trains.to_vec();
        one_by_one(&mut trains, pieces).for_each(|cells| self.tap_cells(port, &cells));
    }
}
