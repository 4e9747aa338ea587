//! The context of a stream's thread, and decisions that all traffic loops share.

use std::sync::Arc;

use socket2::Socket;

use super::control::{Control, EndReason, Meter};
use super::membership::Membership;
use super::pacing::{Pacing, Timer, Waiter};
use super::schedule::{Plan, Schedule};
use super::spec::{Kind, Spec};
use super::stream_result::{StreamResult, Window};
use crate::handshake::HandshakeServer;
use crate::protocol_error::ProtocolError;
use crate::time::SECOND;

/// Time in ns after which a receiver gives up if no data arrives, before the first data or after it.
pub(crate) const SILENCE: u64 = 60 * SECOND;

/// Time in ns for which a receiver listens beyond the sender's longest duration, to receive packets still queued on the path.
const IN_FLIGHT_TIME: u64 = SECOND;

/// Context of a stream's thread.
#[derive(Clone)]
pub(crate) struct Worker {
    pub(crate) spec: Arc<Spec>,
    pub(crate) control: Arc<Control>,
    pub(crate) meter: Arc<Meter>,
    pub(crate) socket: Arc<Socket>,
    pub(crate) timer: Arc<Timer>,
    /// Index of the stream in its flow.
    pub(crate) stream: u16,
    /// Repeats a lost `ready`; for listening UDP ends only.
    pub(crate) greeting: Option<HandshakeServer>,
    /// Membership in the group; for multicast receivers only.
    pub(crate) membership: Option<Arc<Membership>>,
}

impl Worker {
    /// Returns the result of a stream that failed.
    pub(crate) fn failed(&self, problem: ProtocolError) -> StreamResult {
        let mut tally = StreamResult::new(EndReason::Failed, &Window::new(u64::MAX, None), &self.meter);
        tally.error = Some(problem);
        tally
    }

    /// Returns the schedule, the waiter, and the chosen pacing with its reason; `None` if the stream sends as fast as possible.
    pub(crate) fn pacing(&self) -> Option<(Plan, Waiter, (Pacing, String))> {
        let asked = &self.spec.asked;
        let schedule = self.schedule()?;
        let (chosen, reason) = match asked.pacing {
            Pacing::Auto => {
                let exact = asked.kind == Kind::UdpStream;
                self.timer.choose(schedule.gap(asked.message_bytes), exact, asked.segmentation)
            }
            given => (given, "as requested".to_owned()),
        };
        let plan = schedule.plan(asked.message_bytes, self.stream);
        let waiter = self.timer.waiter(chosen, schedule.gap(asked.message_bytes));
        Some((plan, waiter, (chosen, reason)))
    }

    /// Returns the requested schedule. A UDP stream without one gets an even schedule at its share of the rate limit, if there is one.
    fn schedule(&self) -> Option<Schedule> {
        let allowed = self.spec.limits.rate_bit_per_s.filter(|_| self.spec.udp);
        let share = |rate: u64| (rate / u64::from(self.spec.asked.streams)).max(1);
        let cap = allowed.map(|rate| Schedule::Cbr { rate_bit_per_s: share(rate) });
        self.spec.asked.schedule.clone().or(cap)
    }

    /// Returns the reason given to `Control::stop`, or `otherwise` if there is none.
    pub(crate) fn why(&self, otherwise: EndReason) -> EndReason {
        self.control.reason().unwrap_or(otherwise)
    }

    /// Returns the instant at which a receiver gives up, if its traffic began at `first`: one second after the sender must have ended.
    pub(crate) fn deadline(&self, first: u64) -> u64 {
        let longest = self.spec.limits.duration_ns.unwrap_or(u64::MAX);
        first.saturating_add(longest).saturating_add(IN_FLIGHT_TIME)
    }
}
