//! The queue in front of a circuit that begins at a router (docs/model.md, "Circuits that end at routers").
//!
//! The state is in `../entrance.rs`.

use super::Engine;
use crate::acted::Mechanism;
use crate::cell::LineId;
use crate::entrance::Entrance;
use crate::event_queue::{Event, Group};
use crate::outcome::Place;
use crate::queue::{self, Discipline, Dropped, Length};

impl Engine<'_> {
    fn entrance(&mut self, vc: usize) -> &mut Entrance {
        self.entrances.get_mut(&vc).expect("the circuit begins at a router")
    }

    /// Handles the arrival of a packet at the queue of a circuit.
    pub(crate) fn joins_entrance(&mut self, now: u64, vc: usize, packet: usize) {
        let this = &self.packets[packet];
        let mut view = queue::Packet {
            index: packet,
            bytes: self.sdu(vc, this.ip()),
            flow: this.discipline_flow,
            priority: this.priority,
            markable: this.ect,
            marked: this.ce,
            came: now,
        };
        let line = self.vcs[vc].lines[0];
        let this = self.entrances.get_mut(&vc).expect("the circuit begins at a router");
        this.came += 1;
        let mut dropped = Dropped::new();
        let found = Length::of(&this.held);
        let verdict = match &mut this.discipline {
            Discipline::DropTail(config) => Some(queue::admits(config, found, &mut view)),
            Discipline::Red(red) => Some(red.admits(now, found, this.idle_since, &mut view)),
            Discipline::Scheduler(scheduler) => {
                scheduler.put(now, view, &mut dropped);
                None
            }
        };
        match verdict {
            Some(Ok(())) => {
                this.held.push_back(view);
                if view.marked && !self.packets[packet].ce {
                    self.longest.marked(now, line);
                }
                self.packets[packet].ce = view.marked;
            }
            Some(Err(cause)) => dropped.push((view, cause)),
            None => {}
        }
        self.longest.packets(now, line, this.discipline.length(&this.held));
        self.lose_at_entrance(now, vc, &dropped);
        self.asks_at(now, vc);
    }

    fn lose_at_entrance(&mut self, now: u64, vc: usize, dropped: &Dropped) {
        let LineId { link, end } = self.vcs[vc].lines[0];
        self.entrance(vc).lost += dropped.len() as u64;
        for (packet, cause) in dropped {
            let place = Place::Queue { link, end, cause: *cause };
            self.ledger.lose_carrier(now, place, self.packets[packet.index].datagram);
        }
    }

    /// Schedules a request to the queue for its next packet, if none is in work; once per instant, after all arrivals.
    fn asks_at(&mut self, at: u64, vc: usize) {
        let position = self.vcs[vc].lines[0].position();
        let this = self.entrance(vc);
        if !this.works && this.asked != Some(at) {
            this.asked = Some(at);
            self.agenda.put(at, Group::PortTakes, position, Event::AsksForPacket { vc });
        }
    }

    /// Takes the next packet from the queue if none is in work.
    pub(crate) fn asks_for_packet(&mut self, now: u64, vc: usize) {
        let this = self.entrance(vc);
        if this.works {
            return;
        }
        this.asked = None;
        let mut dropped = Dropped::new();
        let (next, ready) = match &mut this.discipline {
            Discipline::Scheduler(scheduler) => {
                let taken = scheduler.take(now, &mut dropped);
                let ready = scheduler.ready(now);
                this.held.extend(taken);
                (taken, ready.filter(|_| taken.is_none()))
            }
            _ => (this.held.front().copied(), None),
        };
        self.lose_at_entrance(now, vc, &dropped);
        if let Some(ready) = ready {
            self.asks_at(ready, vc);
        }
        let Some(next) = next else { return };
        let this = self.entrance(vc);
        this.works = true;
        this.handed += 1;
        if next.marked && !self.packets[next.index].ce {
            self.longest.marked(now, self.vcs[vc].lines[0]);
        }
        self.packets[next.index].ce = next.marked;
        self.acted.note(Mechanism::IntoCircuit);
        // Update the rate now, not when the first cell is emitted: feedback may arrive in between.
        self.shapers[vc].begins_frame(now);
        if self.shapers[vc].has_adapted() {
            self.acted.note(Mechanism::AdaptiveAtRouter);
        }
        self.hand_to_shaper(now, vc, next.index);
    }

    /// Schedules the end of the packet in work, whose last cell has reached the line: the start of that cell, or the shaper's next instant. The time is known now.
    pub(crate) fn last_cell_waits(&mut self, now: u64, vc: usize) {
        let line = self.vcs[vc].lines[0];
        let begins = self.line(line).all_left() - self.unit(line).time(1);
        let (next, paced) = (self.shapers[vc].next(), self.entrances[&vc].paced);
        let at = match self.shapers[vc].adapts() {
            _ if paced => next,
            true => begins.max(now + 1).max(next),
            false => begins.max(now + 1),
        };
        self.agenda.put(at, Group::TransmissionEnds, line.position(), Event::LastCellBegins { vc });
    }

    /// Removes the packet in work from the queue and schedules a request for the next one.
    pub(crate) fn last_cell_begins(&mut self, now: u64, vc: usize) {
        let this = self.entrance(vc);
        this.works = false;
        this.held.pop_front();
        if this.held.is_empty() {
            this.idle_since = now;
        }
        self.asks_at(now, vc);
    }
}
