//! Generators: sources of cells without hosts (docs/model.md, "Generators").
//!
//! The state is in `../generator.rs`.

use super::{Engine, Source};
use crate::cell::Cell;
use crate::event_queue::{Event, Group};
use crate::generator::Generator;
use crate::ledger::Datagram;
use crate::packet::{Packet, way_index};

impl Engine<'_> {
    /// Starts a generator. One with a rate of zero does nothing.
    pub(crate) fn generator_begins(&mut self, flow: usize) {
        let generator = self.generator(flow);
        let (begun, on_off) = (generator.begun, generator.means.is_some());
        if generator.pace.is_some() && on_off {
            self.agenda.put(begun, Group::CellReachesNic, self.place(flow), Event::OnTimeBegins { flow });
        } else {
            self.schedule_cell(flow);
        }
    }

    /// Returns the position of its cells: after the shaper of the same circuit direction, in the order of the traffic tables.
    fn place(&self, flow: usize) -> (usize, usize) {
        (self.vc_of(flow), 1 + flow)
    }

    fn generator(&mut self, flow: usize) -> &mut Generator {
        match &mut self.sources[flow] {
            Source::Generator(generator) => generator,
            _ => unreachable!("the flow is a generator"),
        }
    }

    /// Schedules the next cell of the generator, if there is one in this on-time.
    fn schedule_cell(&mut self, flow: usize) {
        let end = self.end();
        if let Some(at) = self.generator(flow).next(end) {
            self.agenda.put(at, Group::CellReachesNic, self.place(flow), Event::GeneratorEmits { flow });
        }
    }

    /// Begins an on-time of an `on-off` source.
    pub(crate) fn on_time_begins(&mut self, now: u64, flow: usize) {
        let end = self.end();
        let generator = self.generator(flow);
        if now > end || generator.stop.is_some_and(|stop| now >= stop) {
            return;
        }
        let (on, off, lengths) = generator.means.expect("only an `on-off` source turns on");
        let length = generator.draw(on, lengths);
        let silence = generator.draw(off, lengths);
        generator.begun = now;
        generator.length = Some(length);
        generator.cells = 0;
        let next = now + length + silence;
        self.agenda.put(next, Group::CellReachesNic, self.place(flow), Event::OnTimeBegins { flow });
        self.schedule_cell(flow);
    }

    /// Emits a cell of a generator, which is a PDU by itself and reaches the line.
    pub(crate) fn generator_emits(&mut self, now: u64, flow: usize) {
        let datagram = self.ledger.begin(now, Datagram::cell(flow));
        self.ledger.sent(now, datagram);
        let packet = self.packets.len();
        self.packets.push(Packet {
            way: way_index(flow, false),
            path: Some(Vec::new()),
            cells: 1,
            ..Packet::of_sender(flow, datagram, 0)
        });
        let vc = self.vc_of(flow);
        let clp = self.topology.circuits[self.vcs[vc].circuit].clp;
        let cell = Cell { packet, number: 0, last: true, vc, hop: 0, clp, efci: false, order: 0 };
        self.reaches_nic_line(now, cell);
        self.generator(flow).cells += 1;
        self.schedule_cell(flow);
    }
}
