//! Lines that carry frames: queues, transmitters and impairments (docs/model.md, "Frames").
//!
//! The state is in `../frame_line.rs`.

use engpass_model::random::Stream;
use engpass_testbed::topology::NodeKind;

use super::Engine;
use crate::acted::Mechanism;
use crate::cell::{LineId, after};
use crate::event_queue::{Event, Flying, Group};
use crate::frame_line::{FrameLine, Sending};
use crate::idle::Crossing;
use crate::outcome::Place;
use crate::packet::Out;
use crate::queue::{self, Discipline, Dropped, Length};
use crate::resolve::kind;
use crate::wire::line_bytes;

impl Engine<'_> {
    pub(crate) fn frame_line(&mut self, line: LineId) -> &mut FrameLine {
        self.frame_lines.get_mut(&line).expect("the line carries frames")
    }

    fn line_bytes(&self, line: LineId, packet: usize) -> u64 {
        line_bytes(&self.topology.links[line.link], self.packets[packet].ip())
    }

    /// Returns a packet as the queue discipline sees it on arrival at the port.
    fn view(&self, now: u64, line: LineId, packet: usize) -> queue::Packet {
        let this = &self.packets[packet];
        queue::Packet {
            index: packet,
            bytes: self.line_bytes(line, packet) - self.frame_lines[&line].around,
            flow: this.discipline_flow,
            priority: this.priority,
            markable: this.ect,
            marked: this.ce,
            came: now,
        }
    }

    /// Handles the arrival of a packet at a transmitter.
    pub(crate) fn joins_queue(&mut self, now: u64, line: LineId, packet: usize) {
        if self.outages.is_down(line) && self.frame_line(line).discipline.is_some() {
            return self.lose_to_outage(now, line, packet);
        }
        self.packets[packet].crosses(Crossing::Line(line));
        let mut view = self.view(now, line, packet);
        *self.entered.entry(line).or_default() += 1;
        if !matches!(kind(&self.topology, self.topology.links[line.link].ends[line.end]), NodeKind::Switch(_))
        {
            self.packets[packet].framed_at = Some(line);
        }
        let this = self.frame_lines.get_mut(&line).expect("the line carries frames");
        let mut dropped = Dropped::new();
        let found = Length::of(&this.held);
        let verdict = match &mut this.discipline {
            None => Ok(()),
            Some(Discipline::DropTail(config)) => queue::admits(config, found, &mut view),
            Some(Discipline::Red(red)) => red.admits(now, found, this.idle_since, &mut view),
            Some(Discipline::Scheduler(scheduler)) => {
                scheduler.put(now, view, &mut dropped);
                self.longest.packets(now, line, Length::of(&scheduler.waiting()));
                self.lose_packets(now, line, &dropped);
                return self.looks_for_next(now, line);
            }
        };
        match verdict {
            Ok(()) => {
                if view.marked && !self.packets[packet].ce {
                    self.longest.marked(now, line);
                }
                self.packets[packet].ce = view.marked;
                this.held.push_back(view);
                if let Some(discipline) = &this.discipline {
                    self.longest.packets(now, line, discipline.length(&this.held));
                }
            }
            Err(cause) => dropped.push((view, cause)),
        }
        self.lose_packets(now, line, &dropped);
        self.looks_for_next(now, line);
    }

    fn lose_packets(&mut self, now: u64, line: LineId, dropped: &Dropped) {
        for (packet, cause) in dropped {
            let place = Place::Queue { link: line.link, end: line.end, cause: *cause };
            self.ledger.lose_carrier(now, place, self.packets[packet.index].datagram);
        }
    }

    /// Schedules a check of a free transmitter for its next packet; once per instant, after all arrivals.
    fn looks_for_next(&mut self, at: u64, line: LineId) {
        let this = self.frame_line(line);
        if this.sending.is_none() && this.asked != Some(at) {
            this.asked = Some(at);
            self.may_take(at, line);
        }
    }

    /// Takes the next packet if the transmitter is free and there is one.
    pub(crate) fn takes_packet(&mut self, now: u64, line: LineId) {
        let this = self.frame_lines.get_mut(&line).expect("the line carries frames");
        if this.sending.is_some() {
            return;
        }
        this.asked = None;
        let (mut dropped, mut held) = (Dropped::new(), 0);
        let packet = match &mut this.discipline {
            Some(Discipline::Scheduler(scheduler)) => {
                let taken = scheduler.take(now, &mut dropped);
                let ready = scheduler.ready(now);
                let since = this.held_since.take();
                if taken.is_some() {
                    held = since.map_or(0, |since| now - since);
                } else if ready.is_some() {
                    this.held_since = since.or(Some(now));
                }
                if let Some(view) = taken {
                    this.held.push_back(view);
                    if view.marked && !self.packets[view.index].ce {
                        self.longest.marked(now, line);
                    }
                    self.packets[view.index].ce = view.marked;
                } else if let Some(ready) = ready {
                    self.looks_for_next(ready, line);
                }
                taken.map(|view| view.index)
            }
            _ => this.held.front().map(|view| view.index),
        };
        self.lose_packets(now, line, &dropped);
        if let Some(packet) = packet {
            self.sends(now, line, packet);
            let idle = self.books.idle_of(line);
            self.reasons.entry(line).or_default().held_back(held, idle);
        }
    }

    /// Begins a transmission.
    fn sends(&mut self, now: u64, line: LineId, packet: usize) {
        self.book_idle(now, line);
        let bytes = self.line_bytes(line, packet);
        let this = self.frame_line(line);
        if this.ended.is_none_or(|ended| now > ended) {
            this.base = now;
            this.sum = 0;
        }
        this.sum += bytes;
        this.sending = Some(Sending { packet, bytes, begun: now });
        let last_bit = this.base + after(this.byte, this.sum - this.gap);
        let end = this.base + after(this.byte, this.sum);
        let place = line.position();
        self.agenda.put(last_bit, Group::TransmissionEnds, place, Event::LastBitLeaves(line));
        self.agenda.put(end, Group::TransmissionEnds, place, Event::FrameEnds(line));
    }

    /// Handles the departure of the last bit of a packet: its place in the queue becomes free, and it propagates.
    pub(crate) fn last_bit_leaves(&mut self, now: u64, line: LineId) {
        let this = self.frame_line(line);
        let Sending { packet, bytes, begun } = this.sending.expect("a departing packet is being sent");
        let end = this.base + after(this.byte, this.sum);
        this.held.pop_front();
        if this.held.is_empty() {
            this.idle_since = now;
        }
        let (damaged, arrival) = this.chances.draw(now + this.delay);
        self.ledger.frame_left(now, line, bytes);
        if self.at_host(line) {
            self.packet_emitted(now, packet, end);
            self.frees_room(now, line, packet);
        }
        let arrives = Event::FrameArrives { line, flying: Flying { packet, damaged, begun, left: now } };
        self.agenda.put(arrival, Group::Arrives, line.position(), arrives);
    }

    /// Handles the end of the gap after a packet: the transmitter is free.
    pub(crate) fn frame_ends(&mut self, now: u64, line: LineId) {
        self.book_frame(now, line);
        let this = self.frame_line(line);
        this.sending = None;
        this.ended = Some(now);
        self.looks_for_next(now, line);
    }

    /// Handles the arrival of a packet at the far end of a line.
    pub(crate) fn frame_arrives(&mut self, now: u64, line: LineId, flying: Flying) {
        let Flying { packet, damaged, begun, left } = flying;
        if damaged {
            let place = Place::Line { link: line.link, end: line.end };
            return self.ledger.lose_carrier(now, place, self.packets[packet].datagram);
        }
        if self.outages.cuts(line, begun, left) {
            return self.lose_to_outage(now, line, packet);
        }
        let node = self.topology.links[line.link].ends[1 - line.end];
        if (self.packets[packet].arp.is_some() || self.packets[packet].igmp.is_some())
            && !self.works_on_control(node)
        {
            return self.control_arrives(now, line, packet);
        }
        match kind(&self.topology, node) {
            NodeKind::Host(_) if self.is_unheard(node, line.link) => {
                let place = Place::Inactive { link: line.link, end: line.end };
                self.acted.note(Mechanism::InactiveMember);
                self.ledger.lose_carrier(now, place, self.packets[packet].datagram);
            }
            NodeKind::Host(_) => self.packet_complete(now, packet),
            NodeKind::Switch(_) => {
                for packet in self.parted(now, node, packet) {
                    let Out::Line(next) = self.way_out(node, packet) else {
                        unreachable!("a switch forwards only to a line")
                    };
                    self.joins_queue(now, next, packet);
                }
            }
            NodeKind::Router(router) => self.arrives_at_router(now, router, packet, line),
        }
    }

    /// Resets the queue discipline of a port because its line goes down, for the `times`th time. Returns the packets that waited.
    pub(crate) fn begins_anew(&mut self, now: u64, line: LineId, times: u64) -> Vec<usize> {
        let link = &self.topology.links[line.link];
        let Some(config) = &link.queues[line.end] else { return Vec::new() };
        let name = format!("queue.{}.{}.{times}", link.name, self.topology.nodes[link.ends[line.end]]);
        let anew = Discipline::new(config, link.lines[line.end].rate, Stream::new(self.seed, name));
        let this = self.frame_line(line);
        let sent =
            this.held.front().zip(this.sending).is_some_and(|(first, sending)| first.index == sending.packet);
        let mut waiting: Vec<_> = this.held.drain(usize::from(sent)..).collect();
        if let Some(Discipline::Scheduler(scheduler)) = &this.discipline {
            waiting.extend(scheduler.waiting());
        }
        if this.held.is_empty() {
            this.idle_since = this.idle_since.max(now);
        }
        (this.discipline, this.asked, this.held_since) = (Some(anew), None, None);
        waiting.into_iter().map(|packet| packet.index).collect()
    }
}
