//! The thread of a stream, which runs the loop for this kind of traffic and role.

use std::sync::Arc;
use std::thread::JoinHandle;

use socket2::Socket;

use super::control::{Control, Meter};
use super::spec::{Kind, Role};
use super::stream_result::StreamResult;
use super::worker::Worker;
use super::{requester, responder, tcp_receive, tcp_send, udp_receive, udp_send};
use crate::protocol_error::{ErrorContext, ProtocolError, Result};
use crate::sys::thread;

/// A stream's thread, with the socket and meter that other threads may read while it runs.
#[derive(Debug)]
pub(crate) struct Running {
    pub(crate) socket: Arc<Socket>,
    pub(crate) meter: Arc<Meter>,
    pub(crate) thread: JoinHandle<StreamResult>,
}

/// Marks a thread as done and wakes all threads that wait for it, however the thread ends.
struct DoneGuard {
    meter: Arc<Meter>,
    control: Arc<Control>,
}

impl Drop for DoneGuard {
    fn drop(&mut self) {
        self.meter.finish();
        self.control.wake();
    }
}

/// Starts the thread of a stream.
pub(crate) fn spawn(worker: Worker) -> Result<Running> {
    let (socket, meter) = (Arc::clone(&worker.socket), Arc::clone(&worker.meter));
    let thread = std::thread::Builder::new().name(format!("engpass-{}", worker.stream));
    let thread = thread.spawn(move || {
        let _bell = DoneGuard { meter: Arc::clone(&worker.meter), control: Arc::clone(&worker.control) };
        run(worker)
    });
    Ok(Running { socket, meter, thread: thread.doing("start a thread")? })
}

/// Pins this thread to its core, if cores are given, and runs the stream's loop.
fn run(worker: Worker) -> StreamResult {
    thread::exact_timers();
    let cores = &worker.spec.asked.cores;
    if !cores.is_empty() {
        let core = cores[usize::from(worker.stream) % cores.len()];
        if let Err(error) = thread::pin(core) {
            return worker.failed(ProtocolError::system(&format!("pin a thread to core {core}"), &error));
        }
    }
    match (worker.spec.asked.kind, worker.spec.role) {
        (Kind::TcpStream, Role::Send) => tcp_send::run(worker),
        (Kind::TcpStream, Role::Receive) => tcp_receive::run(&worker),
        (Kind::UdpStream, Role::Send) => udp_send::run(&worker),
        (Kind::UdpStream, Role::Receive) => udp_receive::run(&worker),
        (Kind::RequestResponse, Role::Send) => requester::run(&worker),
        (Kind::RequestResponse, Role::Receive) => responder::run(&worker),
    }
}
