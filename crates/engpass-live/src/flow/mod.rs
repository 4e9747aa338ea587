//! One end of one flow: its sockets, its threads, what it brings home.

mod answer;
mod ask;
mod connect;
mod control;
mod door;
mod membership;
mod monitor;
mod pacer;
mod punctual;
mod result;
mod schedule;
mod socket;
mod spec;
mod stream;
mod subflow;
mod tally;
mod tcp_info;
mod tcp_receive;
mod tcp_send;
mod udp_receive;
mod udp_send;
mod worker;
mod writer;

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use serde_json::{Value, json};
use socket2::Socket;

pub(crate) use control::Ended;
use control::{Control, Meter};
use door::Door;
use membership::Membership;
pub(crate) use monitor::Tell;
use monitor::{Monitor, Watched};
pub(crate) use pacer::Timer;
pub(crate) use spec::{Prepare, Spec};
use stream::Running;
use worker::Worker;

use crate::problem::{Code, Doing, Problem, Result};
use crate::sys::{clock, device};
use crate::time::{MILLISECOND, SECOND};

/// Streams by their index; those of a listening end come when their peers do.
type Streams = Arc<Mutex<Vec<Option<Running>>>>;

/// One end of one flow, prepared.
pub(crate) struct Flow {
    pub(crate) spec: Arc<Spec>,
    control: Arc<Control>,
    streams: Streams,
    door: Option<Door>,
    monitor: Option<JoinHandle<Watched>>,
    /// Of a multicast receiver.
    membership: Option<Arc<Membership>>,
    /// Of a multicast sender: the connections over which the receivers have shown the token.
    guests: Vec<Socket>,
    /// What could not be done behind the controller's back.
    trouble: Arc<Mutex<Option<Problem>>>,
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Connect streams to their peers, all at once: each takes two round trips.
fn connect_all(spec: &Spec, peers: impl Iterator<Item = (u16, SocketAddr)>) -> Result<Vec<Socket>> {
    let sockets: Vec<Result<Socket>> = std::thread::scope(|scope| {
        let connect = |(stream, to)| scope.spawn(move || connect::connect(spec, stream, to));
        let threads: Vec<_> = peers.map(connect).collect();
        threads.into_iter().map(|thread| thread.join().expect("connecting does not panic")).collect()
    });
    sockets.into_iter().collect()
}

impl Flow {
    /// Open the door, or connect to the peer, and start the threads: receivers listen from now on, senders wait for the start.
    pub(crate) fn prepare(spec: Spec, timer: &Arc<Timer>) -> Result<Self> {
        let count = usize::from(spec.asked.streams);
        let mut flow = Self {
            spec: Arc::new(spec),
            control: Arc::default(),
            streams: Arc::new(Mutex::new((0..count).map(|_| None).collect())),
            door: None,
            monitor: None,
            membership: None,
            guests: Vec::new(),
            trouble: Arc::default(),
        };
        if flow.spec.listens() {
            flow.listen(timer)?
        } else {
            flow.connect(timer)?
        }
        Ok(flow)
    }

    fn worker(&self, timer: &Arc<Timer>, stream: u16, socket: Socket) -> Worker {
        Worker {
            spec: Arc::clone(&self.spec),
            control: Arc::clone(&self.control),
            meter: Arc::new(Meter::default()),
            socket: Arc::new(socket),
            timer: Arc::clone(timer),
            stream,
            greeting: None,
            membership: None,
        }
    }

    fn listen(&mut self, timer: &Arc<Timer>) -> Result<()> {
        if let Some(group) = self.spec.asked.group {
            self.membership = Some(Arc::new(Membership::new(&self.spec, group)?));
        }
        let membership = self.membership.clone();
        let (spec, control, timer) = (Arc::clone(&self.spec), Arc::clone(&self.control), Arc::clone(timer));
        let (streams, trouble) = (Arc::clone(&self.streams), Arc::clone(&self.trouble));
        let door = Door::open(&self.spec, |greeting| {
            let greeting = spec.udp.then(|| greeting.clone());
            Box::new(move |stream, socket| {
                let worker = Worker {
                    spec: Arc::clone(&spec),
                    control: Arc::clone(&control),
                    meter: Arc::new(Meter::default()),
                    // A multicast receiver hears the group; its door stays for heads alone.
                    socket: membership
                        .as_ref()
                        .map_or_else(|| Arc::new(socket), |member| Arc::clone(&member.socket)),
                    timer: Arc::clone(&timer),
                    stream,
                    greeting: greeting.clone(),
                    membership: membership.clone(),
                };
                match stream::spawn(worker) {
                    Ok(running) => lock(&streams)[usize::from(stream)] = Some(running),
                    Err(problem) => *lock(&trouble) = Some(problem),
                }
                control.wake();
            })
        })?;
        self.door = Some(door);
        Ok(())
    }

    fn connect(&mut self, timer: &Arc<Timer>) -> Result<()> {
        let spec = &self.spec;
        let mut sockets: Vec<Socket> = if spec.asked.group.is_some() {
            connect_all(spec, spec.asked.to.iter().map(|to| (0, *to)))?
        } else {
            let to = spec.asked.to[0];
            // A peer that does not answer hears from the first stream alone.
            let first = connect::connect(spec, 0, to)?;
            let others = connect_all(spec, (1..spec.asked.streams).map(|stream| (stream, to)))?;
            std::iter::once(first).chain(others).collect()
        };
        if let Some(group) = spec.asked.group {
            let own = connect::to_group(spec, group)?;
            self.guests = std::mem::replace(&mut sockets, vec![own]);
        }
        for (stream, socket) in (0..).zip(sockets) {
            let running = stream::spawn(self.worker(timer, stream, socket))?;
            lock(&self.streams)[usize::from(stream)] = Some(running);
        }
        Ok(())
    }

    /// The answer to `prepare`.
    pub(crate) fn prepared(&self) -> Value {
        match &self.door {
            Some(door) => {
                let all = device::addresses().into_iter().map(|own| own.address);
                let addresses: Vec<_> = match self.spec.asked.address.filter(|given| !given.is_unspecified())
                {
                    Some(given) => vec![given],
                    None => all.filter(|own| !own.is_loopback()).collect(),
                };
                let group = self.membership.as_ref().map(|member| member.group.to_string());
                json!({ "port": door.port, "addresses": addresses, "group": group })
            }
            None => json!({ "streams": self.granted() }),
        }
    }

    /// What the kernel granted each stream.
    fn granted(&self) -> Vec<Value> {
        let streams = lock(&self.streams);
        streams.iter().flatten().map(|running| socket::granted(&running.socket, &self.spec)).collect()
    }

    /// Whether all its peers are there; waits a little for them.
    pub(crate) fn is_complete(&self) -> Result<()> {
        let complete = || lock(&self.streams).iter().all(Option::is_some);
        let waited =
            self.control.wait_until(clock::now() + SECOND, || complete() || lock(&self.trouble).is_some());
        if let Some(problem) = lock(&self.trouble).take() {
            return Err(problem);
        }
        if waited {
            return Ok(());
        }
        let there = lock(&self.streams).iter().flatten().count();
        let (flow, streams) = (&self.spec.asked.flow, self.spec.asked.streams);
        Err(Problem::new(
            Code::WrongOrder,
            format!("flow `{flow}` has {there} of {streams} streams connected"),
            "its peer has not come through: look at the way between the two hosts (a controller of its own prepares both ends before `start`)",
        ))
    }

    /// Let it begin at this instant; `tell` writes events.
    pub(crate) fn start(&mut self, at: u64, tell: &Tell) -> Result<Value> {
        let streams = lock(&self.streams);
        let watched = streams.iter().flatten();
        let watched = watched.map(|running| (Arc::clone(&running.socket), Arc::clone(&running.meter)));
        let monitor = Monitor {
            spec: Arc::clone(&self.spec),
            control: Arc::clone(&self.control),
            streams: watched.collect(),
            tell: Arc::clone(tell),
        };
        drop(streams);
        let granted = self.granted();
        let thread = std::thread::Builder::new().name("engpass-monitor".into()).spawn(move || monitor.run());
        self.monitor = Some(thread.doing("start a thread")?);
        self.control.start(at);
        Ok(json!({ "flow": self.spec.asked.flow, "streams": granted }))
    }

    /// Whether it was started.
    pub(crate) fn is_started(&self) -> bool {
        self.control.started().is_some()
    }

    fn membership(&self) -> Result<&Membership> {
        self.membership.as_deref().ok_or_else(|| {
            let cause = format!("flow `{}` receives no multicast here", self.spec.asked.flow);
            Problem::new(Code::WrongOrder, cause, "prepare the receiver with a `group`")
        })
    }

    /// Join the group.
    pub(crate) fn join(&self) -> Result<Value> {
        self.membership()?.join()
    }

    /// Leave the group.
    pub(crate) fn leave(&self) -> Result<Value> {
        self.membership()?.leave()
    }

    /// Ask its threads to end. Who waits for datagrams or requests is woken: nothing else would tell it before its patience ends.
    pub(crate) fn stop(&self) {
        self.control.stop(Ended::Stopped);
        let asked = &self.spec.asked;
        if self.spec.role == spec::Role::Receive
            && (self.spec.udp || asked.kind == spec::Kind::RequestResponse)
        {
            for running in lock(&self.streams).iter().flatten() {
                // What is in the socket can still be received, and after it the call returns at once. A socket of a group has no peer: the kernel
                // says so, and wakes the thread all the same.
                let _ = running.socket.shutdown(std::net::Shutdown::Read);
            }
        }
    }

    /// Wait until its threads have ended, or `due`, or `gone`.
    pub(crate) fn wait(&self, due: u64, gone: &dyn Fn() -> bool) -> bool {
        let done = || lock(&self.streams).iter().flatten().all(|running| running.meter.is_done());
        loop {
            let look = due.min(clock::now() + 50 * MILLISECOND);
            if self.control.wait_until(look, done) {
                return true;
            }
            if gone() || clock::now() >= due {
                return false;
            }
        }
    }

    /// Wait until its threads have ended by themselves: until `beyond` after its time, or, where its time is not known, until nothing has come for so long.
    pub(crate) fn wait_end(&self, beyond: u64, gone: &dyn Fn() -> bool) {
        let bytes =
            || lock(&self.streams).iter().flatten().map(|running| running.meter.read().bytes).sum::<u64>();
        let start = self.control.started().unwrap_or_else(clock::now);
        let mut due = self.spec.ends_after.map(|time| start.saturating_add(time).saturating_add(beyond));
        let mut seen = bytes();
        while !self.wait(due.unwrap_or_else(|| clock::now() + beyond), gone) && !gone() {
            let now = bytes();
            if due.is_some() || now == seen {
                break;
            }
            (seen, due) = (now, None);
        }
    }

    /// Whether it ends by itself: a sender with its time, a receiver of a byte stream with its peer.
    pub(crate) fn ends_alone(&self) -> bool {
        let sends = self.spec.role == spec::Role::Send;
        sends || !self.spec.udp
    }

    /// The result, when all threads have ended.
    pub(crate) fn finish(self) -> Value {
        let granted = self.granted();
        self.stop();
        let running: Vec<Running> = lock(&self.streams).iter_mut().filter_map(Option::take).collect();
        let tallies = running.into_iter().map(|running| {
            let Running { socket, thread, .. } = running;
            thread.join().map(|tally| tally.over(&socket))
        });
        let tallies = tallies.collect::<Vec<_>>();
        let unfit = self.door.map(Door::close).unwrap_or_default();
        let watched = self.monitor.and_then(|monitor| monitor.join().ok());
        let mut result = result::of(&self.spec, tallies, granted, unfit, watched);
        if let Some(membership) = &self.membership {
            result["membership"] = membership.finish();
        }
        result
    }
}
