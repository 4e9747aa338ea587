//! Ports whose discipline chooses a packet when the line is free.

use engpass_model::queue::{self, Cause, Ecn, PortView, Scheduler, Verdict};
use engpass_model::time::Time;
use engpass_model::window::Window;

use super::{AdmitResult, Departure, FramePort, PortQueue};
use crate::outage::{Served, drain};

/// A queue discipline that chooses a packet when the line is free.
pub(crate) struct ScheduledQueue {
    pub(crate) scheduler: Box<dyn Scheduler>,
    /// Instant of the pending `Dequeue` event; `u64::MAX` if there is none.
    pub(crate) serve_at: u64,
    /// Instant since which the discipline has held packets back although the line is free, in picoseconds; `None` if it does not.
    pub(crate) held_since: Option<u64>,
    /// State of a served port; present if events may take the line down.
    pub(crate) served: Option<Served>,
}

impl ScheduledQueue {
    pub(crate) fn new(scheduler: Box<dyn Scheduler>, served: Option<Served>) -> Box<Self> {
        Box::new(Self { scheduler, serve_at: u64::MAX, held_since: None, served })
    }

    /// Returns true if the discipline admits or drops packets on arrival; each packet then counts in the queue until it has left.
    pub(crate) fn decides_on_arrival(&self) -> bool {
        self.served.as_ref().is_some_and(Served::decides_on_arrival)
    }
}

impl FramePort {
    /// Lets the discipline decide about a packet that arrives. Returns `Ok` with the congestion mark if the packet leaves in the order of arrival; otherwise
    /// `Err` with the result.
    #[inline(never)]
    pub(crate) fn ask(
        &mut self,
        now: u64,
        mut packet: queue::Packet,
        lost: &mut Vec<(queue::Packet, Cause)>,
    ) -> Result<bool, AdmitResult> {
        let end = self.clock.end;
        match &mut self.queue {
            PortQueue::Unlimited | PortQueue::TailDrop(_) => {
                unreachable!("these queues have no discipline to ask")
            }
            PortQueue::Admission(admission) => {
                // For disciplines that check more than room, `lone_bytes` is always 0.
                self.ring.release(now);
                let view =
                    PortView { backlog: self.ring.queue(), idle_since: self.ring.idle_since().map(Time) };
                match admission.admit(Time(now), view, &packet) {
                    Verdict::Drop(cause) => Err(AdmitResult::Dropped(cause)),
                    Verdict::Accept { mark } => Ok(mark),
                }
            }
            PortQueue::Scheduler(service) => {
                let came_marked = packet.ecn == Ecn::Marked;
                if let Some(served) = &mut service.served {
                    self.ring.release(now);
                    served.admits(now, &self.ring, service.scheduler.backlog(), &mut packet)?;
                }
                let marks = packet.ecn == Ecn::Marked && !came_marked;
                let ScheduledQueue { scheduler, serve_at, .. } = &mut **service;
                if *serve_at == u64::MAX && end < now && scheduler.backlog().packets == 0 {
                    // A scheduler expects a `dequeue` whenever the line becomes free. With an empty queue that call was skipped; this call makes up for it.
                    scheduler.dequeue(Time(now), lost);
                }
                scheduler.enqueue(Time(now), packet, lost);
                let due = now.max(end);
                let sooner = due < *serve_at;
                if sooner {
                    *serve_at = due;
                }
                let mut queue = scheduler.backlog();
                if service.decides_on_arrival() {
                    queue = queue.and(self.ring.queue());
                }
                self.longest.note(queue);
                Err(AdmitResult::Queued(sooner.then_some(due), marks))
            }
        }
    }

    /// Handles a `Dequeue` event: the line may be free. Returns the packet that is sent now, if any, and the instant of the next `Dequeue` event, if any.
    pub fn serve(
        &mut self,
        now: u64,
        lost: &mut Vec<(queue::Packet, Cause)>,
        window: &Window,
    ) -> (Option<(queue::Packet, Departure)>, Option<u64>) {
        let PortQueue::Scheduler(service) = &mut self.queue else {
            unreachable!("only a port with a scheduler is served");
        };
        if service.serve_at != now {
            // Outdated event: another one was scheduled since.
            return (None, None);
        }
        service.serve_at = u64::MAX;
        let next = service.scheduler.dequeue(Time(now), lost);
        let Some(packet) = next else {
            let ready = service.scheduler.next_ready(Time(now)).map(|ready| ready.ps().max(now + 1));
            service.serve_at = ready.unwrap_or(u64::MAX);
            service.held_since = ready.and(service.held_since.or(Some(now)));
            return (None, ready);
        };
        let more = service.scheduler.backlog().packets > 0;
        let held = service.held_since.take().map_or(0, |since| now - since);
        let mut sent = self.send(now, packet.bytes, window);
        sent.transmission.held = held;
        let again = more.then_some(self.clock.end);
        if let (PortQueue::Scheduler(service), Some(again)) = (&mut self.queue, again) {
            service.serve_at = again;
        }
        (Some((packet, sent)), again)
    }

    /// Records that an event takes the line down or brings it up. Returns the packets that the outage drops from the queue.
    pub fn change(&mut self, now: u64, down: bool) -> Vec<queue::Packet> {
        let Some(impairments) = &mut self.impairments else {
            unreachable!("a line that changes has link impairments")
        };
        impairments.change(now, down);
        let PortQueue::Scheduler(service) = &mut self.queue else { return Vec::new() };
        let Some(served) = &mut service.served else { return Vec::new() };
        if !served.change(down) {
            return Vec::new();
        }
        let scheduler = std::mem::replace(&mut service.scheduler, served.restart_after_outage(now));
        (service.serve_at, service.held_since) = (u64::MAX, None);
        drain(scheduler, Time(now))
    }
}
