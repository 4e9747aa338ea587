//! The thread of one stream: what it is given, and which loop it runs.

use std::sync::Arc;
use std::thread::JoinHandle;

use socket2::Socket;

use super::control::{Control, Ended, Meter};
use super::membership::Membership;
use super::pacer::{Pacing, Timer, Waiter};
use super::schedule::{Plan, Schedule};
use super::spec::{Kind, Role, Spec};
use super::tally::{Tally, Window};
use super::{answer, ask, tcp_receive, tcp_send, udp_receive, udp_send};
use crate::head::Greeting;
use crate::problem::{Doing, Problem, Result};
use crate::sys::thread;
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

/// A stream's thread, and what others may look at while it runs.
#[derive(Debug)]
pub(crate) struct Running {
    pub(crate) socket: Arc<Socket>,
    pub(crate) meter: Arc<Meter>,
    pub(crate) thread: JoinHandle<Tally>,
}

/// Wakes whoever waits for a thread, however it ends.
struct Bell {
    meter: Arc<Meter>,
    control: Arc<Control>,
}

impl Drop for Bell {
    fn drop(&mut self) {
        self.meter.finish();
        self.control.wake();
    }
}

impl Worker {
    /// Start the thread.
    pub(crate) fn spawn(self) -> Result<Running> {
        let (socket, meter) = (Arc::clone(&self.socket), Arc::clone(&self.meter));
        let thread = std::thread::Builder::new().name(format!("engpass-{}", self.stream));
        let thread = thread.spawn(move || {
            let _bell = Bell { meter: Arc::clone(&self.meter), control: Arc::clone(&self.control) };
            self.run()
        });
        Ok(Running { socket, meter, thread: thread.doing("start a thread")? })
    }

    fn run(self) -> Tally {
        thread::exact_timers();
        let cores = &self.spec.asked.cores;
        if !cores.is_empty() {
            let core = cores[usize::from(self.stream) % cores.len()];
            if let Err(error) = thread::pin(core) {
                return self.failed(Problem::system(&format!("pin a thread to core {core}"), &error));
            }
        }
        match (self.spec.asked.kind, self.spec.role) {
            (Kind::TcpStream, Role::Send) => tcp_send::run(self),
            (Kind::TcpStream, Role::Receive) => tcp_receive::run(&self),
            (Kind::UdpStream, Role::Send) => udp_send::run(&self),
            (Kind::UdpStream, Role::Receive) => udp_receive::run(&self),
            (Kind::RequestResponse, Role::Send) => ask::run(&self),
            (Kind::RequestResponse, Role::Receive) => answer::run(&self),
        }
    }

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
