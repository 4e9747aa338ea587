//! TCP as a state machine without sockets, clocks or bytes.
//!
//! A [`Connection`] is one endpoint. It is told what happens (a segment came, the application writes, a wake is due)
//! and the host *pulls* what it sends, segment by segment, when its CPU and NIC have room:
//!
//! 1. inputs: [`on_segment`](Connection::on_segment), [`on_timer`](Connection::on_timer), [`on_too_big`](Connection::on_too_big),
//!    [`write`](Connection::write), [`read`](Connection::read), [`close`](Connection::close);
//! 2. after each of them, pull [`transmit`](Connection::transmit) as long as
//!    [`wants_to_transmit`](Connection::wants_to_transmit) and the host has room. Pull acknowledgments before the next
//!    segment is handed in: what is pulled late is acknowledged once, as on a host that is too busy;
//! 3. call [`on_timer`](Connection::on_timer) at [`next_wake`](Connection::next_wake). A call too early does nothing.
//!
//! [`limited_by`](Connection::limited_by) says at any instant why nothing is sent.
//!
//! Only counts travel: sequence numbers are absolute 64-bit offsets (the SYN is 0, the first byte 1), the 32-bit wrap,
//! checksums, urgent data and keep-alives are not modelled. Times are integers, windows are bytes, nothing is a float.
//!
//! An [`End`] is a connection that keeps only what reading needs while it does no more.
//!
//! One file is one part: [`segment`], `handshake`, `send`, `flight`, `receive`, `delayed_ack`, `acknowledge`, `rtt` (timeouts), `persist`, `path_mtu`,
//! `scoreboard` (what is in the network), `progress` (what an acknowledgment says of it), `sacked` (what most
//! of them are while something is lost), `recovery/` (which of it is lost), [`congestion`] (how much it may be).

mod acknowledge;
pub mod config;
pub mod congestion;
mod connection;
mod delayed_ack;
mod end;
mod flight;
mod handshake;
mod input;
pub mod limited;
pub mod parameters;
mod path_mtu;
mod persist;
pub mod profile;
mod progress;
mod ranges;
mod rare;
mod receive;
mod recovery;
mod reduction;
mod ring;
mod rtt;
mod sacked;
mod scoreboard;
pub mod segment;
mod send;
pub mod stats;
mod tail_probe;
mod timers;
mod transmit;

pub use config::TcpConfig;
pub use connection::{Connection, Out, State};
pub use end::End;
pub use flight::Flight;
pub use limited::LimitedBy;
pub use parameters::{Role, Shared, TcpParameters};
pub use profile::Profile;
pub use segment::{Flags, SackBlocks, Segment, Timestamps};
pub use stats::{Snapshot, Stats};

/// What few connections need, when one does for the first time: out of the way of those that have it.
#[cold]
#[inline(never)]
fn first_needed<T: Default>() -> Box<T> {
    Box::default()
}
