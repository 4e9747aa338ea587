//! The parts of Engpass that use sockets, clocks and threads. The *agent* runs on each host of a testbed, makes traffic and measures it; `docs/agent.md` is
//! its contract with the controller. The *probe* ([`probe`]) measures what a host can deliver. The emulation carries real packets across the simulated
//! network (`docs/driver.md`).
//!
//! `unsafe` is limited to [`sys`], where each system call states its reason, and to the probe's own `sys`, its memory loops and its calls of the GPU driver.

mod agent;
mod capture;
mod emulate;
mod flow;
mod handshake;
mod kernel_counters;
mod limits;
mod lines;
pub mod probe;
mod protocol_error;
mod statistics;
mod sys;
mod time;

pub use agent::{Ended, PROTOCOL, parse, run};
pub use capture::CaptureFile;
pub use emulate::{Cut, EmulateError, cut, emulate, replay, replay_log};
pub use handshake::{DatagramHeader, HEAD, HandshakeMessage, HandshakeServer, Kind, Reply, Token};
pub use limits::Limits;
pub use time::nanoseconds;
