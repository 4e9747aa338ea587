//! Links that go down and come back (docs/model.md, "Events").
//!
//! The state is in `../outages.rs`.

use engpass_model::event::EventChange;
use engpass_model::random::Stream;
use engpass_model::source::Traffic;
use engpass_testbed::Testbed;

use super::Engine;
use crate::cell::LineId;
use crate::event_queue::{Event, Group};
use crate::outages::changes;
use crate::outcome::{OutageSeen, Place};
use crate::transfer::has_arrived;

impl Engine<'_> {
    /// Schedules all link changes of a run.
    pub(crate) fn events_begin(&mut self, testbed: &Testbed, seed: u64) {
        let links_change = testbed.events.iter().filter(|(_, config)| config.traffic.is_none());
        for (event, (name, config)) in links_change.enumerate() {
            let random = Stream::new(seed, format_args!("event.{name}"));
            for (at, state) in changes(config, random, self.end()) {
                let change = Event::LinkChanges { event, down: state == EventChange::Down };
                self.agenda.put(at, Group::LinkChanges, (event, 0), change);
            }
        }
    }

    /// Returns true if an event may change the state that the node at the beginning of a line sees.
    pub(crate) fn event_may_change_line(&self, line: LineId) -> bool {
        self.topology.events.iter().any(|event| event.link == line.link && event.seen_by[line.end])
    }

    /// Handles an event that takes a link down or brings it up.
    pub(crate) fn link_changes(&mut self, now: u64, event: usize, down: bool) {
        let link = self.topology.events[event].link;
        let ends = [0, 1].map(|end| LineId { link, end });
        let seen_by = self.topology.events[event].seen_by;
        let mut unseen = Vec::new();
        for line in ends.into_iter().filter(|line| seen_by[line.end]) {
            if down {
                if self.outages.seen_down.insert(line) {
                    unseen.push(line);
                }
                self.acted.hides(line, event);
            } else {
                self.outages.seen_down.remove(&line);
            }
            self.bonds_see(now, line);
        }
        match (down, self.outages.down.get(&link).copied()) {
            (true, None) => {
                self.outages.down.insert(link, now);
                self.acted.takes_down(link, event);
                *self.outages.times.entry(link).or_default() += 1;
                ends.into_iter().for_each(|line| self.line_goes_down(now, line));
            }
            (false, Some(since)) => {
                self.outages.down.remove(&link);
                self.outages.past.push((link, since, now));
                ends.into_iter().for_each(|line| self.line_comes_up(now, line));
            }
            _ => {}
        }
        unseen.into_iter().for_each(|line| self.forgets_neighbours(now, line));
    }

    fn line_goes_down(&mut self, now: u64, line: LineId) {
        let idle = self.idle(now)[line.link][line.end];
        self.reasons.entry(line).or_default().goes_down(idle);
        let times = self.outages.times[&line.link];
        let waiting = self.begins_anew(now, line, times);
        for packet in waiting {
            *self.flushed.entry(line).or_default() += 1;
            self.lose_to_outage(now, line, packet);
        }
    }

    fn line_comes_up(&mut self, now: u64, line: LineId) {
        let idle = self.idle(now)[line.link][line.end];
        self.reasons.entry(line).or_default().comes_up(idle);
    }

    /// Returns the effects of outages on a flow or multicast receiver, in a run with events.
    pub(crate) fn outage_of(&self, counted_at: usize, at: u64) -> Option<OutageSeen> {
        let is_receiver = counted_at >= self.topology.flows.len();
        let flow = if is_receiver { self.receiver(counted_at).flow } else { counted_at };
        if !is_receiver && !self.receivers_of(flow).is_empty() {
            return None;
        }
        let (start, stop) = match &self.testbed.traffic[flow] {
            Traffic::UdpStream(config) => (config.start, config.stop),
            Traffic::Poisson(config) => (config.start, config.stop),
            Traffic::UdpOnOff(config) => (config.start, config.stop),
            Traffic::Video(config) => (config.start, config.stop),
            Traffic::TcpStream(config) => (config.start, config.stop),
            Traffic::Cbr(config) => (config.start, config.stop),
            Traffic::OnOff(config) => (config.start, config.stop),
            Traffic::Multicast(config) => (config.start, config.stop),
            Traffic::RequestResponse(_) => (None, None),
        };
        let start = start.map_or(0, |start| start.0);
        let traffic = &self.testbed.traffic[flow];
        let arrived = !is_receiver && has_arrived(traffic, self.ledger.payloads(flow));
        let until = (!arrived).then(|| stop.map_or(at, |stop| stop.0.min(at)));
        let noted = !self.topology.events.is_empty() && !self.generates(flow);
        noted.then(|| match is_receiver {
            true => self.ledger.outage_at(counted_at, start, until),
            false => self.ledger.outage(flow, start, until),
        })
    }

    pub(crate) fn lose_to_outage(&mut self, now: u64, line: LineId, packet: usize) {
        let place = Place::Down { link: line.link, end: line.end };
        self.note_loss_to_outage(line.link);
        self.ledger.lose_carrier(now, place, self.packets[packet].datagram);
    }
}
