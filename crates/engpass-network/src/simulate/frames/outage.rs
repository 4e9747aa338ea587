//! Lines that go down and come back.
//!
//! A line that an event of the file may touch takes no part in lookahead, and its port is *served*: what waits is chosen when the line is free, so
//! that it is still there when the line goes down.

use std::collections::VecDeque;

use engpass_model::queue::{
    Admission, Backlog, Cause, Discipline, Ecn, Packet, PortView, Scheduler, Verdict,
};
use engpass_model::time::Time;
use engpass_testbed::topology::{Leg, NodeId};
use engpass_testbed::{Change, EventChanges};

use super::Frames;
use super::arp::FORGET;
use super::choices::Choices;
use super::port::AdmitResult;
use super::sent::TransmitRing;
use crate::simulate::Network;
use crate::simulate::event::Event;
use crate::simulate::tally::Place;

/// When a line was down, as far as frames on their way need to know.
#[derive(Debug, Default)]
pub(super) struct Outages {
    /// Since when it is down.
    since: Option<u64>,
    /// From when to when it was.
    past: Vec<(u64, u64)>,
}

impl Outages {
    /// It goes down or comes up. No frame is on its way that began before `earliest`.
    pub(super) fn change(&mut self, now: u64, down: bool, earliest: u64) {
        match (self.since, down) {
            (None, true) => self.since = Some(now),
            (Some(since), false) => {
                self.past.retain(|(_, until)| *until > earliest);
                self.past.push((since, now));
                self.since = None;
            }
            _ => {}
        }
    }

    /// Whether it is down.
    pub(super) fn is_down(&self) -> bool {
        self.since.is_some()
    }

    /// Whether a frame was cut whose transmission began at `begin`, and whose last bit has left at `left`.
    pub(super) fn cuts(&self, (begin, left): (u64, u64)) -> bool {
        self.since.is_some_and(|since| left > since)
            || self.past.iter().any(|(since, until)| left > *since && begin < *until)
    }
}

/// What an event of the file changes.
#[derive(Debug)]
pub(in crate::simulate) struct Upcoming {
    next: Option<Change>,
    rest: EventChanges,
    /// When the events of the file begin.
    from: u64,
}

impl Upcoming {
    /// Nothing, before the events of the file begin.
    pub(in crate::simulate) fn new(rest: EventChanges) -> Self {
        Self { next: None, rest, from: 0 }
    }
}

/// A port whose packets are chosen when the line is free, so that those that wait can be lost with it.
pub(super) struct Served {
    /// Asked when a packet comes, where a first in, first out discipline decides then.
    admission: Option<Box<dyn Admission>>,
    /// Since when nothing waits, if an outage emptied the queue.
    emptied: u64,
    is_down: bool,
    /// Outages so far.
    count: u32,
    /// Makes the discipline anew, after so many outages.
    anew: Box<dyn Fn(u32) -> Discipline + Send>,
}

impl Served {
    /// That of a new port, and its scheduler.
    pub(super) fn new(anew: Box<dyn Fn(u32) -> Discipline + Send>) -> (Self, Box<dyn Scheduler>) {
        let (admission, scheduler) = apart(anew(0));
        (Self { admission, emptied: 0, is_down: false, count: 0, anew }, scheduler)
    }

    /// Whether it decides about packets when they come.
    pub(super) fn decides_on_arrival(&self) -> bool {
        self.admission.is_some()
    }

    /// Whether a packet may join what waits, and what was sent and has not left.
    pub(super) fn admits(
        &mut self,
        now: u64,
        sent: &TransmitRing,
        waits: Backlog,
        packet: &mut Packet,
    ) -> Result<(), AdmitResult> {
        if self.is_down {
            return Err(AdmitResult::LineDown);
        }
        let Some(admission) = &mut self.admission else { return Ok(()) };
        let sending = sent.queue();
        let backlog =
            Backlog { bytes: sending.bytes + waits.bytes, packets: sending.packets + waits.packets };
        let since = sent.idle_since().filter(|_| waits.packets == 0);
        let idle_since = since.map(|since| Time(since.max(self.emptied)));
        match admission.admit(Time(now), PortView { backlog, idle_since }, packet) {
            Verdict::Drop(cause) => Err(AdmitResult::Dropped(cause)),
            Verdict::Accept { mark } => {
                packet.ecn = if mark { Ecn::Marked } else { packet.ecn };
                Ok(())
            }
        }
    }

    /// The line goes down or comes up. Whether what waits is lost.
    pub(super) fn change(&mut self, down: bool) -> bool {
        !std::mem::replace(&mut self.is_down, down) && down
    }

    /// The line goes down: the discipline begins anew, without what waited. Returns its new scheduler.
    pub(super) fn begin_anew(&mut self, now: u64) -> Box<dyn Scheduler> {
        self.count += 1;
        let (admission, scheduler) = apart((self.anew)(self.count));
        (self.admission, self.emptied) = (admission, now);
        scheduler
    }
}

/// What decides when a packet comes, if anything does, and what holds packets.
pub(super) fn apart(discipline: Discipline) -> (Option<Box<dyn Admission>>, Box<dyn Scheduler>) {
    match discipline {
        Discipline::Arrival(admission) => (Some(admission), Box::new(InOrder::default())),
        Discipline::Service(scheduler) => (None, scheduler),
    }
}

/// All packets that a discipline holds, which is not used any more.
pub(super) fn drain(mut scheduler: Box<dyn Scheduler>, mut now: Time) -> Vec<Packet> {
    let (mut all, mut lost) = (Vec::new(), Vec::new());
    while scheduler.backlog().packets > 0 {
        all.extend(scheduler.dequeue(now, &mut lost));
        now = scheduler.next_ready(now).unwrap_or(now);
    }
    all.extend(lost.into_iter().map(|(packet, _)| packet));
    all
}

impl Choices {
    /// A router sees the interface on this link as up or down from now on.
    fn see(&mut self, router: NodeId, link: usize, up: bool) {
        for group in self.groups.iter_mut().filter(|group| group.node == router && group.bond.is_none()) {
            for (leg, member) in group.legs.iter().zip(&mut group.members) {
                if matches!(leg, Leg::Link(hop) if hop.link == link) {
                    (member.up, member.carrier) = (up, up);
                }
            }
        }
    }
}

impl Network {
    /// The events of the file begin at `from`. Where packets come from outside, routers forget then what they have heard.
    pub(in crate::simulate) fn begin_events(&mut self, from: u64) {
        self.frames.bonds.from = from;
        for event in 0..self.changes.len() {
            self.changes[event].from = from;
            self.await_change(event);
        }
        if self.fabric.fates.is_some() && !self.frames.arp.is_idle() {
            self.events.push(from, 0, Event::Arp(FORGET));
        }
    }

    /// Look for what an event changes next.
    fn await_change(&mut self, event: usize) {
        let Upcoming { next, rest, from } = &mut self.changes[event];
        *next = rest.next();
        let at = next.map(|change| from.saturating_add(change.at)).filter(|at| *at <= self.end);
        if let Some(at) = at {
            self.events.push(at, 0, Event::Change(event as u32));
        }
    }

    /// An event of the file happens: both directions of a link go down or come up, and the routers that see it choose otherwise.
    pub(in crate::simulate) fn change_line(&mut self, event: u32) {
        let change = self.changes[event as usize].next;
        let Change { link, seen_by, down, .. } = change.expect("an event that happens changes something");
        self.await_change(event as usize);
        if let Some(trace) = &mut self.fabric.trace {
            trace.changed(self.now, link, down);
        }
        for (end, seen) in seen_by.into_iter().enumerate() {
            let port = self.frames.places[2 * link + end];
            let line = &mut self.frames.ports[port as usize];
            self.fabric.see_before(line, self.now);
            if self.fabric.ledger.later.is_some() {
                // What was sent before is booked first.
                self.fabric.write_frames(2 * link + end, self.now);
            }
            let line = &mut self.frames.ports[port as usize];
            self.fabric.ledger.line_changes(line, self.now, down);
            for packet in line.change(self.now, down) {
                self.lose_to_outage(port, packet.id, self.now);
            }
            if seen {
                let Frames { choices, bonds, ends, .. } = &mut self.frames;
                let node = ends[link][end];
                choices.see(node, link, !down);
                if let Some((bond, looks)) = bonds.see(node, link, !down, self.now) {
                    choices.tell_bond(bond, bonds);
                    if let Some(at) = looks {
                        self.events.push(at, 0, Event::Look(bond as u32));
                    }
                }
                self.arp_sees(node, link, down);
            }
        }
    }

    /// A line that is down, or was, loses a packet: in front of it, or on it.
    #[inline(never)]
    pub(super) fn lose_to_outage(&mut self, port: u32, packet: u32, at: u64) {
        let line = &mut self.frames.ports[port as usize];
        let number = line.port as usize;
        if let Some(later) = &mut self.fabric.ledger.later {
            later.lost(number, 1);
        }
        if self.fabric.window.holds(at) {
            line.count_lost();
        }
        if let Some(trace) = &mut self.fabric.trace {
            trace.dropped(number, at);
        }
        self.lose_packet(packet, Place::Down(number), at);
    }
}

/// First in, first out.
#[derive(Debug, Default)]
struct InOrder {
    held: VecDeque<Packet>,
    bytes: u64,
}

impl Scheduler for InOrder {
    fn enqueue(&mut self, _now: Time, packet: Packet, _lost: &mut Vec<(Packet, Cause)>) {
        self.bytes += u64::from(packet.bytes);
        self.held.push_back(packet);
    }

    fn dequeue(&mut self, _now: Time, _lost: &mut Vec<(Packet, Cause)>) -> Option<Packet> {
        let packet = self.held.pop_front()?;
        self.bytes -= u64::from(packet.bytes);
        Some(packet)
    }

    fn backlog(&self) -> Backlog {
        Backlog { bytes: self.bytes, packets: self.held.len() as u64 }
    }
}
