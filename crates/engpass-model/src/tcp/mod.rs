//! TCP as a state machine without sockets, clocks or bytes.
//!
//! A [`Connection`] is one endpoint. The host passes it every input (a segment, a write, an expired timer) and *pulls* the segments to be sent, one
//! by one, when its CPU and NIC have room:
//!
//! 1. inputs: [`on_segment`](Connection::on_segment), [`on_timer`](Connection::on_timer), [`on_too_big`](Connection::on_too_big),
//!    [`write`](Connection::write), [`read`](Connection::read), [`close`](Connection::close);
//! 2. after each input, pull [`transmit`](Connection::transmit) as long as [`wants_to_transmit`](Connection::wants_to_transmit) and the host has
//!    room. Pull acknowledgments before the next segment is passed in: if they are pulled late, one acknowledges all, as on a host that is too busy;
//! 3. call [`on_timer`](Connection::on_timer) at [`next_wake`](Connection::next_wake). An early call has no effect.
//!
//! [`limited_by`](Connection::limited_by) returns why nothing is sent at an instant.
//!
//! Segments carry lengths, not bytes. Sequence numbers are absolute 64-bit offsets (the SYN is 0, the first byte 1). The 32-bit wrap, checksums,
//! urgent data and keep-alives are not modelled. Times are integers, windows are bytes, and no value is a float.
//!
//! A [`CompactConnection`] is an endpoint that shrinks to its receiving half while it only reads.
//!
//! Each file holds one part: [`segment`], `handshake`, `send`, `burst` (segment bursts), `receive`, `delayed_ack`, `ack_output`, `rtt` (timeouts),
//! `persist_timer`, `path_mtu`, `scoreboard` (segments in the network), `ack_sample` (the effect of an acknowledgment), `sack_fast_path` (fast path while losses are
//! repaired with SACK), `recovery/` (loss detection and recovery), [`congestion`] (the congestion window).

mod ack_output;
mod ack_sample;
mod burst;
mod compact;
pub mod config;
pub mod congestion;
mod connection;
mod delayed_ack;
mod handshake;
mod input;
pub mod limited_by;
mod out_of_order;
pub mod parameters;
mod path_mtu;
mod persist_timer;
pub mod profile;
mod prr;
mod rare;
mod receive;
mod recovery;
mod ring;
mod rtt;
mod sack_fast_path;
mod scoreboard;
pub mod segment;
mod send;
pub mod stats;
mod tail_probe;
mod timers;
mod transmit;

pub use burst::SegmentBurst;
pub use compact::CompactConnection;
pub use config::TcpConfig;
pub use connection::{Connection, Effects, State};
pub use limited_by::LimitedBy;
pub use parameters::{Role, Shared, TcpParameters};
pub use profile::Profile;
pub use segment::{Flags, SackBlocks, Segment, Timestamps};
pub use stats::{Snapshot, Stats};

/// Allocates cold state at its first use. Out of line, because few calls need it.
#[cold]
#[inline(never)]
fn first_needed<T: Default>() -> Box<T> {
    Box::default()
}
