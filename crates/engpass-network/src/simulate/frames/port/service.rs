//! Ports whose discipline decides when the line is free.

use engpass_cells::Window;
use engpass_model::queue::{self, Cause, PortView, Scheduler, Verdict};
use engpass_model::time::Time;

use super::{Admitted, FramePort, OnLine, Waiting};
use crate::simulate::frames::outage::{Served, drain};

/// A discipline that decides when the line is free.
pub(super) struct Service {
    pub(super) scheduler: Box<dyn Scheduler>,
    /// When it is asked next; `u64::MAX` when it need not be.
    pub(super) asked: u64,
    /// Since when it has held packets back although the line is free.
    pub(super) held_since: Option<u64>,
    /// Of a line that changes.
    pub(super) served: Option<Served>,
}

impl Service {
    pub(super) fn new(scheduler: Box<dyn Scheduler>, served: Option<Served>) -> Box<Self> {
        Box::new(Self { scheduler, asked: u64::MAX, held_since: None, served })
    }

    /// Whether it decides about packets when they come, and they have their places until they have left.
    pub(super) fn decides_on_arrival(&self) -> bool {
        self.served.as_ref().is_some_and(Served::decides_on_arrival)
    }
}

impl FramePort {
    /// Ask the discipline about a packet that comes. Returns whether the packet gets the mark of congestion, or why it does not leave now.
    #[inline(never)]
    pub(super) fn ask(
        &mut self,
        now: u64,
        mut packet: queue::Packet,
        lost: &mut Vec<(queue::Packet, Cause)>,
    ) -> Result<bool, Admitted> {
        let end = self.clock.end;
        match &mut self.waiting {
            Waiting::All | Waiting::Room(_) => unreachable!("they have no discipline"),
            Waiting::Arrival(admission) => {
                // Nothing is alone where more than room is asked for.
                self.sent.release(now);
                let view =
                    PortView { backlog: self.sent.queue(), idle_since: self.sent.idle_since().map(Time) };
                match admission.admit(Time(now), view, &packet) {
                    Verdict::Drop(cause) => Err(Admitted::Lost(cause)),
                    Verdict::Accept { mark } => Ok(mark),
                }
            }
            Waiting::Service(service) => {
                if let Some(served) = &mut service.served {
                    self.sent.release(now);
                    served.admits(now, &self.sent, service.scheduler.backlog(), &mut packet)?;
                }
                let Service { scheduler, asked, .. } = &mut **service;
                if *asked == u64::MAX && end < now && scheduler.backlog().packets == 0 {
                    // It is asked whenever the line becomes free. It had nothing then, but it may note that, whenever it is told.
                    scheduler.dequeue(Time(now), lost);
                }
                scheduler.enqueue(Time(now), packet, lost);
                let due = now.max(end);
                let sooner = due < *asked;
                if sooner {
                    *asked = due;
                }
                Err(Admitted::Waits(sooner.then_some(due)))
            }
        }
    }

    /// The line may be free: the packet that is sent now, and when to ask again.
    pub(in crate::simulate::frames) fn serve(
        &mut self,
        now: u64,
        lost: &mut Vec<(queue::Packet, Cause)>,
        window: &Window,
    ) -> (Option<(queue::Packet, OnLine)>, Option<u64>) {
        let Waiting::Service(service) = &mut self.waiting else {
            unreachable!("only a discipline that serves is asked to");
        };
        if service.asked != now {
            // An earlier question was put since; this one is void.
            return (None, None);
        }
        service.asked = u64::MAX;
        let next = service.scheduler.dequeue(Time(now), lost);
        let Some(packet) = next else {
            let ready = service.scheduler.next_ready(Time(now)).map(|ready| ready.ps().max(now + 1));
            service.asked = ready.unwrap_or(u64::MAX);
            service.held_since = ready.and(service.held_since.or(Some(now)));
            return (None, ready);
        };
        let more = service.scheduler.backlog().packets > 0;
        let held = service.held_since.take().map_or(0, |since| now - since);
        let mut sent = self.send(now, packet.bytes, window);
        sent.transmission.held = held;
        let again = more.then_some(self.clock.end);
        if let (Waiting::Service(service), Some(again)) = (&mut self.waiting, again) {
            service.asked = again;
        }
        (Some((packet, sent)), again)
    }

    /// The line goes down or comes up. Returns the packets that waited for it, if it loses them.
    pub(in crate::simulate::frames) fn change(&mut self, now: u64, down: bool) -> Vec<queue::Packet> {
        let Some(lottery) = &mut self.lottery else { unreachable!("only lines that may change do") };
        lottery.change(now, down);
        let Waiting::Service(service) = &mut self.waiting else { return Vec::new() };
        let Some(served) = &mut service.served else { return Vec::new() };
        if !served.change(down) {
            return Vec::new();
        }
        let scheduler = std::mem::replace(&mut service.scheduler, served.begin_anew(now));
        (service.asked, service.held_since) = (u64::MAX, None);
        drain(scheduler, Time(now))
    }
}
