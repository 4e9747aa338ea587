//! Outages: lines that go down and come up.

use engpass_frames::{ALL_NEIGHBOURS, Frames};
use engpass_testbed::Change;

use super::hop::Links;
use super::keepalive::begin_keepalives;
use crate::clock::{Clock, NewEvent};
use crate::event_queue::Event;
use crate::flow_counters::DropLocation;
use crate::shared_state::SharedState;

/// Starts the events of the testbed file, with time 0 at `from`. With packet injection, routers also forget the hardware addresses that they know.
pub(crate) fn begin_events(from: u64, frames: &mut Frames, shared: &SharedState, clock: &mut Clock) {
    frames.begin_bonds(from);
    for event in 0..frames.changes.len() {
        frames.changes[event].count_from(from);
        clock.schedule(next_change(event, frames, clock));
    }
    begin_keepalives(from, frames, clock);
    if shared.reports.is_some() && !frames.arp.is_idle() {
        clock.events.push(from, 0, Event::ArpTimeout(ALL_NEIGHBOURS));
    }
}

/// Returns the next change that an event of the file makes.
fn next_change(event: usize, frames: &mut Frames, clock: &Clock) -> Option<NewEvent> {
    let at = frames.changes[event].advance().filter(|at| *at <= clock.end)?;
    Some((at, 0, Event::LineChange(event as u32)))
}

impl Links<'_> {
    /// Applies a due change of an event: both directions of a link go down or come up, and the nodes that notice it choose other paths. Returns the next
    /// change, and the instants at which monitors of bonds are to look at their carriers.
    pub(crate) fn change_line(&mut self, event: u32) -> Vec<NewEvent> {
        let now = self.clock.now;
        let Change { link, seen_by, down, .. } = self.frames.changes[event as usize].due();
        let mut events = Vec::new();
        if let Some(trace) = &mut self.shared.trace {
            trace.changed(now, link, down);
        }
        for (end, seen) in seen_by.into_iter().enumerate() {
            let port = self.frames.port_index(2 * link + end);
            let line = &mut self.frames.ports[port as usize];
            self.shared.catch_up_before(line, now);
            if self.shared.ledger.deferred.is_some() {
                // Transmissions before the change are posted before it.
                self.shared.write_frames(2 * link + end, now);
            }
            let line = &mut self.frames.ports[port as usize];
            self.shared.ledger.line_changes(line, now, down);
            for packet in line.change(now, down) {
                self.drop_on_line(port, packet.id, DropLocation::Down, now);
            }
            if seen {
                let monitors = self.frames.notice_link_change((link, end), down, now);
                events.extend(monitors.into_iter().map(|(bond, at)| (at, 0, Event::BondMonitor(bond))));
                for packet in self.frames.forget_neighbours_behind((link, end), down) {
                    self.drop_on_line(port, packet, DropLocation::Down, now);
                }
            }
        }
        events.extend(next_change(event as usize, self.frames, self.clock));
        events
    }
}
