//! One end of one flow: its sockets, its threads and its result.

mod connect;
mod control;
mod listener;
mod membership;
mod monitor;
mod paced_sender;
mod pacing;
mod requester;
mod responder;
mod result;
mod schedule;
mod socket;
mod spec;
mod stream;
mod stream_result;
mod subflow;
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

pub(crate) use control::EndReason;
use control::{Control, Meter};
use listener::DataListener;
use membership::Membership;
pub(crate) use monitor::Tell;
use monitor::{Monitor, Watched};
pub(crate) use pacing::Timer;
pub(crate) use spec::{Prepare, Spec};
use stream::Running;
use worker::Worker;

use crate::protocol_error::{Code, ErrorContext, ProtocolError, Result};
use crate::sys::{clock, device};
use crate::time::{MILLISECOND, SECOND};

/// Streams of a flow by index. At a listening end, an entry is filled when its peer connects.
type Streams = Arc<Mutex<Vec<Option<Running>>>>;

/// One end of one flow, after `prepare`.
pub(crate) struct Flow {
    pub(crate) spec: Arc<Spec>,
    control: Arc<Control>,
    streams: Streams,
    door: Option<DataListener>,
    monitor: Option<JoinHandle<Watched>>,
    /// Membership in the group; for multicast receivers only.
    membership: Option<Arc<Membership>>,
    /// Connections over which the receivers have proved the token; for multicast senders only.
    guests: Vec<Socket>,
    /// Error of a stream's thread that could not be started when its peer connected; `is_complete` reports it.
    trouble: Arc<Mutex<Option<ProtocolError>>>,
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Connects all streams in parallel, because each handshake takes two round trips.
fn connect_all(spec: &Spec, peers: impl Iterator<Item = (u16, SocketAddr)>) -> Result<Vec<Socket>> {
    let sockets: Vec<Result<Socket>> = std::thread::scope(|scope| {
        let connect = |(stream, to)| scope.spawn(move || connect::connect(spec, stream, to));
        let threads: Vec<_> = peers.map(connect).collect();
        threads
            .into_iter()
            .map(|thread| thread.join().expect("the connecting thread does not panic"))
            .collect()
    });
    sockets.into_iter().collect()
}

impl Flow {
    /// Opens the data port or connects to the peer, and starts the threads. Receivers receive from now on; senders wait for `start`.
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
        let door = DataListener::open(&self.spec, |greeting| {
            let greeting = spec.udp.then(|| greeting.clone());
            Box::new(move |stream, socket| {
                let worker = Worker {
                    spec: Arc::clone(&spec),
                    control: Arc::clone(&control),
                    meter: Arc::new(Meter::default()),
                    // A multicast receiver reads from the group's socket; its data port only serves handshakes.
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
            // Until a peer has answered, only the first stream contacts it.
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

    /// Returns the answer to `prepare`.
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

    /// Returns the socket options that the kernel granted, for each stream.
    fn granted(&self) -> Vec<Value> {
        let streams = lock(&self.streams);
        streams.iter().flatten().map(|running| socket::granted(&running.socket, &self.spec)).collect()
    }

    /// Waits up to one second for all peers to connect. Fails if a stream is missing or a background thread has failed.
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
        Err(ProtocolError::new(
            Code::WrongOrder,
            format!("flow `{flow}` has {there} of {streams} streams connected"),
            "the peer did not connect: check the path between the two hosts (a custom controller must prepare both ends before `start`)",
        ))
    }

    /// Starts traffic at the instant `at`, and starts the monitor thread. `tell` sends its events to the controller.
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

    /// Returns whether the flow was started.
    pub(crate) fn is_started(&self) -> bool {
        self.control.started().is_some()
    }

    fn membership(&self) -> Result<&Membership> {
        self.membership.as_deref().ok_or_else(|| {
            let cause = format!("flow `{}` has no multicast receiver at this host", self.spec.asked.flow);
            ProtocolError::new(Code::WrongOrder, cause, "prepare the receiver with a `group`")
        })
    }

    /// Joins the multicast group.
    pub(crate) fn join(&self) -> Result<Value> {
        self.membership()?.join()
    }

    /// Leaves the multicast group.
    pub(crate) fn leave(&self) -> Result<Value> {
        self.membership()?.leave()
    }

    /// Stops the flow's threads. Receivers that block on datagrams or requests are woken by shutting their sockets down, before their time-out.
    pub(crate) fn stop(&self) {
        self.control.stop(EndReason::Stopped);
        let asked = &self.spec.asked;
        if self.spec.role == spec::Role::Receive
            && (self.spec.udp || asked.kind == spec::Kind::RequestResponse)
        {
            for running in lock(&self.streams).iter().flatten() {
                // Data already in the socket can still be received; afterwards the call returns at once. A multicast socket has no peer, so this call fails,
                // but it still wakes the thread.
                let _ = running.socket.shutdown(std::net::Shutdown::Read);
            }
        }
    }

    /// Waits until the threads have ended. Returns `false` if `due` comes, or `gone()` returns true, before that.
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

    /// Waits until the threads have ended by themselves, at most until `beyond` ns after the flow's end; if that end is not known, until nothing has arrived
    /// for `beyond` ns.
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

    /// Returns whether the flow ends by itself: a sender when its time is over, a receiver of a byte stream when the peer closes.
    pub(crate) fn ends_alone(&self) -> bool {
        let sends = self.spec.role == spec::Role::Send;
        sends || !self.spec.udp
    }

    /// Waits for all threads and returns the result of the flow.
    pub(crate) fn finish(self) -> Value {
        let granted = self.granted();
        self.stop();
        let running: Vec<Running> = lock(&self.streams).iter_mut().filter_map(Option::take).collect();
        let tallies = running.into_iter().map(|running| {
            let Running { socket, thread, .. } = running;
            thread.join().map(|tally| tally.over(&socket))
        });
        let tallies = tallies.collect::<Vec<_>>();
        let unfit = self.door.map(DataListener::close).unwrap_or_default();
        let watched = self.monitor.and_then(|monitor| monitor.join().ok());
        let mut result = result::of(&self.spec, tallies, granted, unfit, watched);
        if let Some(membership) = &self.membership {
            result["membership"] = membership.finish();
        }
        result
    }
}
