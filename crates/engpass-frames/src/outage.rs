//! Outages: lines that go down and come up.
//!
//! A line that events may take down takes no part in lookahead, and its port is *served*: packets wait in its queue until the line is free, so that an outage
//! still finds them there.

use std::collections::VecDeque;

use engpass_model::queue::{
    Admission, Backlog, Cause, Discipline, Ecn, Packet, PortView, Scheduler, Verdict,
};
use engpass_model::time::Time;
use engpass_testbed::topology::PathSegment;
use engpass_testbed::{Change, EventChanges};

use super::Frames;
use super::port::AdmitResult;
use super::transmit_ring::TransmitRing;

/// Outages of a line, as far as frames that are on the line may have met them.
#[derive(Debug, Default)]
pub(crate) struct Outages {
    /// Start of the current outage; `None` while the line is up.
    since: Option<u64>,
    /// Start and end of past outages that may concern frames on the line.
    past: Vec<(u64, u64)>,
}

impl Outages {
    /// Records that the line goes down or comes up. No frame on the line began before `earliest`.
    pub(crate) fn change(&mut self, now: u64, down: bool, earliest: u64) {
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

    /// Returns true while the line is down.
    pub(crate) fn is_down(&self) -> bool {
        self.since.is_some()
    }

    /// Returns true if an outage hit the transmission of a frame, which began at `begin` and whose last bit left at `left`.
    pub(crate) fn destroys(&self, (begin, left): (u64, u64)) -> bool {
        self.since.is_some_and(|since| left > since)
            || self.past.iter().any(|(since, until)| left > *since && begin < *until)
    }
}

/// The changes of links that one event of the testbed file makes, in order of time.
#[derive(Debug)]
pub struct NextChange {
    next: Option<Change>,
    rest: EventChanges,
    /// Instant that counts as time 0 of the file's events.
    from: u64,
}

impl NextChange {
    /// Returns the changes of an event that has not been started.
    pub fn new(rest: EventChanges) -> Self {
        Self { next: None, rest, from: 0 }
    }

    /// Sets the instant that counts as time 0 of the file's events.
    pub fn count_from(&mut self, from: u64) {
        self.from = from;
    }

    /// Advances to the next change. Returns the instant at which it is due, if there is one.
    pub fn advance(&mut self) -> Option<u64> {
        self.next = self.rest.next();
        self.next.map(|change| self.from.saturating_add(change.at))
    }

    /// Returns the change to which [`Self::advance`] has come.
    ///
    /// # Panics
    /// If there is none.
    pub fn due(&self) -> Change {
        self.next.expect("a due event has a change")
    }
}

/// State of a served port: packets wait until the line is free, so that an outage can drop them.
pub(crate) struct Served {
    /// The admission policy, if the discipline decides on arrival.
    admission: Option<Box<dyn Admission>>,
    /// Instant at which an outage last emptied the queue.
    emptied: u64,
    is_down: bool,
    /// Number of outages so far.
    count: u32,
    /// Creates the discipline anew; the argument is the number of outages so far.
    anew: Box<dyn Fn(u32) -> Discipline + Send>,
}

impl Served {
    /// Creates the state and the scheduler of a port whose line events may take down.
    pub(crate) fn new(anew: Box<dyn Fn(u32) -> Discipline + Send>) -> (Self, Box<dyn Scheduler>) {
        let (admission, scheduler) = apart(anew(0));
        (Self { admission, emptied: 0, is_down: false, count: 0, anew }, scheduler)
    }

    /// Returns true if the discipline decides on arrival whether a packet is dropped.
    pub(crate) fn decides_on_arrival(&self) -> bool {
        self.admission.is_some()
    }

    /// Decides whether a packet may join the queue, given the packets that wait (`waits`) and those being sent, and sets its congestion mark.
    pub(crate) fn admits(
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

    /// Records that the line goes down or comes up. Returns true if the waiting packets are lost: the line has just gone down.
    pub(crate) fn change(&mut self, down: bool) -> bool {
        !std::mem::replace(&mut self.is_down, down) && down
    }

    /// Restarts the discipline after an outage has emptied the queue. Returns its new scheduler.
    pub(crate) fn restart_after_outage(&mut self, now: u64) -> Box<dyn Scheduler> {
        self.count += 1;
        let (admission, scheduler) = apart((self.anew)(self.count));
        (self.admission, self.emptied) = (admission, now);
        scheduler
    }
}

/// Splits a discipline into the policy that decides on arrival, if it has one, and the scheduler that holds packets.
pub(crate) fn apart(discipline: Discipline) -> (Option<Box<dyn Admission>>, Box<dyn Scheduler>) {
    match discipline {
        Discipline::Arrival(admission) => (Some(admission), Box::new(InOrder::default())),
        Discipline::Service(scheduler) => (None, scheduler),
    }
}

/// Empties a discipline that is no longer used, and returns all its packets.
pub(crate) fn drain(mut scheduler: Box<dyn Scheduler>, mut now: Time) -> Vec<Packet> {
    let (mut all, mut lost) = (Vec::new(), Vec::new());
    while scheduler.backlog().packets > 0 {
        all.extend(scheduler.dequeue(now, &mut lost));
        now = scheduler.next_ready(now).unwrap_or(now);
    }
    all.extend(lost.into_iter().map(|(packet, _)| packet));
    all
}

impl Frames {
    /// Records that the node at an end of a link notices that the link goes down or comes up: its policies choose accordingly. If the link belongs to a bond
    /// whose monitor has now to look at it, returns the bond and the instant.
    pub fn notice_link_change(
        &mut self,
        (link, end): (usize, usize),
        down: bool,
        now: u64,
    ) -> Option<(u32, u64)> {
        let node = self.link_ends[link][end];
        self.choices.set_members(
            node,
            !down,
            |leg| matches!(leg, PathSegment::Link(hop) if hop.link == link),
        );
        let (bond, looks) = self.bonds.see(node, link, !down, now)?;
        self.choices.update_bond_policies(bond, &self.bonds);
        looks.map(|at| (bond as u32, at))
    }
}

/// A FIFO scheduler, for disciplines that decide on arrival.
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
