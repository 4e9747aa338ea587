//! The context of a stream's thread, and the decisions that all loops share.

use std::sync::Arc;

use socket2::Socket;

use super::control::{Control, Ended, Meter};
use super::membership::Membership;
use super::pacer::{Pacing, Timer, Waiter};
use super::schedule::{Plan, Schedule};
use super::spec::{Kind, Spec};
use super::tally::{Tally, Window};
use crate::head::Greeting;
use crate::problem::Problem;
use crate::time::SECOND;

/// How long a receiver waits for its first data, and goes on waiting after a sender of unknown length fell silent.
pub(crate) const SILENCE: u64 = 60 * SECOND;

/// How much longer than its sender may send a receiver listens: what fills a queue on the way comes after the sender's end.
const ON_ITS_WAY: u64 = SECOND;

/// What a stream's thread works with.
#[derive(Clone)]
pub(crate) struct Worker {
    pub(crate) spec: Arc<Spec>,
    pub(crate) control: Arc<Control>,
    pub(crate) meter: Arc<Meter>,
    pub(crate) socket: Arc<Socket>,
    pub(crate) timer: Arc<Timer>,
    /// Index of the stream in its flow.
    pub(crate) stream: u16,
    /// Of a listening end of datagrams: how to repeat a `ready` that was lost.
    pub(crate) greeting: Option<Greeting>,
    /// Of a multicast receiver.
    pub(crate) membership: Option<Arc<Membership>>,
}

impl Worker {
    /// A stream that could not go on.
    pub(crate) fn failed(&self, problem: Problem) -> Tally {
        let mut tally = Tally::new(Ended::Failed, &Window::new(u64::MAX, None), &self.meter);
        tally.error = Some(problem);
        tally
    }

    /// How the stream's messages are held back, if they are: its plan, how to wait, and what was chosen why.
    pub(crate) fn pacing(&self) -> Option<(Plan, Waiter, (Pacing, String))> {
        let asked = &self.spec.asked;
        let schedule = self.schedule()?;
        let (chosen, reason) = match asked.pacing {
            Pacing::Auto => {
                let exact = asked.kind == Kind::UdpStream;
                self.timer.choose(schedule.gap(asked.message_bytes), exact, asked.segmentation)
            }
            given => (given, "as asked".to_owned()),
        };
        let plan = schedule.plan(asked.message_bytes, self.stream);
        let waiter = self.timer.waiter(chosen, schedule.gap(asked.message_bytes));
        Some((plan, waiter, (chosen, reason)))
    }

    /// The schedule that was asked for, or, of datagrams, the one that keeps to the rate that is allowed.
    fn schedule(&self) -> Option<Schedule> {
        let allowed = self.spec.limits.rate_bit_per_s.filter(|_| self.spec.udp);
        let share = |rate: u64| (rate / u64::from(self.spec.asked.streams)).max(1);
        let cap = allowed.map(|rate| Schedule::Cbr { rate_bit_per_s: share(rate) });
        self.spec.asked.schedule.clone().or(cap)
    }

    /// Why the stream ended, if it was stopped from outside.
    pub(crate) fn why(&self, otherwise: Ended) -> Ended {
        self.control.reason().unwrap_or(otherwise)
    }

    /// When this end gives up, if its traffic began at `first`: a second after the sender must have ended, for what is still on its way then.
    pub(crate) fn deadline(&self, first: u64) -> u64 {
        let longest = self.spec.limits.duration_ns.unwrap_or(u64::MAX);
        first.saturating_add(longest).saturating_add(ON_ITS_WAY)
    }
}
