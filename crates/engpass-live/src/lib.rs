//! What touches the world: sockets, clocks and threads. The *agent* runs on each host of a testbed, makes traffic and measures it; `docs/agent.md` is its
//! contract with the controller. The *probe* ([`probe`]) measures what a host can give.
//!
//! `unsafe` stands only in [`sys`], one system call each, each with its reason, and in the probe's own `sys`, its loops over memory and its calls of a
//! GPU's driver.

mod agent;
mod capture;
mod emulate;
mod flow;
mod head;
mod limits;
mod lines;
pub mod probe;
mod problem;
mod readings;
mod statistic;
mod sys;
mod time;

pub use agent::{Ended, PROTOCOL, parse, run};
pub use capture::CaptureFile;
pub use emulate::{Cut, EmulateError, cut, emulate, replay, replay_log};
pub use head::{DatagramHeader, HEAD, HandshakeMessage, HandshakeServer, Kind, Reply, Token};
pub use limits::Limits;
pub use time::nanoseconds;
