//! Outages: lines that go down and come up.

use engpass_frames::ALL_NEIGHBOURS;
use engpass_testbed::Change;

use crate::Network;
use crate::event_queue::Event;
use crate::flow_counters::DropLocation;

impl Network {
    /// Starts the events of the testbed file, with time 0 at `from`. With packet injection, routers also forget the hardware addresses that they know.
    pub(crate) fn begin_events(&mut self, from: u64) {
        self.frames.begin_bonds(from);
        for event in 0..self.frames.changes.len() {
            self.frames.changes[event].count_from(from);
            self.await_change(event);
        }
        self.begin_keepalives(from);
        if self.shared.reports.is_some() && !self.frames.arp.is_idle() {
            self.clock.events.push(from, 0, Event::ArpTimeout(ALL_NEIGHBOURS));
        }
    }

    /// Schedules the next change that an event of the file makes.
    fn await_change(&mut self, event: usize) {
        if let Some(at) = self.frames.changes[event].advance().filter(|at| *at <= self.clock.end) {
            self.clock.events.push(at, 0, Event::LineChange(event as u32));
        }
    }

    /// Applies a due change of an event: both directions of a link go down or come up, and the nodes that notice it choose other paths.
    pub(crate) fn change_line(&mut self, event: u32) {
        let Change { link, seen_by, down, .. } = self.frames.changes[event as usize].due();
        self.await_change(event as usize);
        if let Some(trace) = &mut self.shared.trace {
            trace.changed(self.clock.now, link, down);
        }
        for (end, seen) in seen_by.into_iter().enumerate() {
            let port = self.frames.port_index(2 * link + end);
            let line = &mut self.frames.ports[port as usize];
            self.shared.catch_up_before(line, self.clock.now);
            if self.shared.ledger.deferred.is_some() {
                // Transmissions before the change are posted before it.
                self.shared.write_frames(2 * link + end, self.clock.now);
            }
            let line = &mut self.frames.ports[port as usize];
            self.shared.ledger.line_changes(line, self.clock.now, down);
            for packet in line.change(self.clock.now, down) {
                self.shared.drop_on_line(
                    &mut self.frames,
                    port,
                    packet.id,
                    DropLocation::Down,
                    self.clock.now,
                );
            }
            if seen {
                if let Some((bond, at)) = self.frames.notice_link_change((link, end), down, self.clock.now) {
                    self.clock.events.push(at, 0, Event::BondMonitor(bond));
                }
                for packet in self.frames.forget_neighbours_behind((link, end), down) {
                    self.shared.drop_on_line(
                        &mut self.frames,
                        port,
                        packet,
                        DropLocation::Down,
                        self.clock.now,
                    );
                }
            }
        }
    }
}
