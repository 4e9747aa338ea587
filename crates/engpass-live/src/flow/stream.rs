//! The thread of a stream: it runs the loop for the kind of traffic and the role of this end.

use std::sync::Arc;
use std::thread::JoinHandle;

use socket2::Socket;

use super::control::{Control, Meter};
use super::spec::{Kind, Role};
use super::tally::Tally;
use super::worker::Worker;
use super::{answer, ask, tcp_receive, tcp_send, udp_receive, udp_send};
use crate::problem::{Doing, Problem, Result};
use crate::sys::thread;

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

/// Start the thread of a stream.
pub(crate) fn spawn(worker: Worker) -> Result<Running> {
    let (socket, meter) = (Arc::clone(&worker.socket), Arc::clone(&worker.meter));
    let thread = std::thread::Builder::new().name(format!("engpass-{}", worker.stream));
    let thread = thread.spawn(move || {
        let _bell = Bell { meter: Arc::clone(&worker.meter), control: Arc::clone(&worker.control) };
        run(worker)
    });
    Ok(Running { socket, meter, thread: thread.doing("start a thread")? })
}

/// Pin this thread to its core and run the loop until the stream ends.
fn run(worker: Worker) -> Tally {
    thread::exact_timers();
    let cores = &worker.spec.asked.cores;
    if !cores.is_empty() {
        let core = cores[usize::from(worker.stream) % cores.len()];
        if let Err(error) = thread::pin(core) {
            return worker.failed(Problem::system(&format!("pin a thread to core {core}"), &error));
        }
    }
    match (worker.spec.asked.kind, worker.spec.role) {
        (Kind::TcpStream, Role::Send) => tcp_send::run(worker),
        (Kind::TcpStream, Role::Receive) => tcp_receive::run(&worker),
        (Kind::UdpStream, Role::Send) => udp_send::run(&worker),
        (Kind::UdpStream, Role::Receive) => udp_receive::run(&worker),
        (Kind::RequestResponse, Role::Send) => ask::run(&worker),
        (Kind::RequestResponse, Role::Receive) => answer::run(&worker),
    }
}
