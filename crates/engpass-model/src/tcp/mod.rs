//! TCP as a state machine without sockets, clocks or bytes.
//!
//! A [`Connection`] is one endpoint. The host passes it every input (a segment, a write, an expired timer) and *pulls* the segments to be sent, one
//! by one, when its CPU and NIC have room:
//!
//! 1. inputs: [`on_segment`](Connection::on_segment), [`on_timer`](Connection::on_timer), [`on_too_big`](Connection::on_too_big),
//!    [`write`](Connection::write), [`read`](Connection::read), [`close`](Connection::close);
//! 2. after each input, pull segments with [`next_segment`](Connection::next_segment) until it returns the reason why there is none, or the host has no
//!    room. Pull acknowledgments before the next segment is passed in: if they are pulled late, one acknowledges all, as on a host that is too busy;
//! 3. call [`on_timer`](Connection::on_timer) at [`next_wake`](Connection::next_wake). An early call has no effect.
//!
//! `simulate` does so, and takes segments of one burst faster with [`start_burst`](Connection::start_burst) and
//! [`next_in_burst`](Connection::next_in_burst). The oracle and most tests ask [`wants_to_transmit`](Connection::wants_to_transmit) and call
//! [`transmit`](Connection::transmit), which returns the segment. [`limited_by`](Connection::limited_by) returns why nothing is sent at an instant.
//!
//! Segments carry lengths, not bytes. Sequence numbers are absolute 64-bit offsets (the SYN is 0, the first byte 1). The 32-bit wrap, checksums,
//! urgent data and keep-alives are not modelled. Times are integers, windows are bytes, and no value is a float.
//!
//! A [`CompactConnection`] is an endpoint that shrinks to its receiving half while it only reads.
//!
//! Each file holds one part.
//!
//! - An endpoint: `connection` (parts and interface), `compact` (see above), `rare` (its cold state), [`parameters`], [`config`] and [`profile`] (where the
//!   parameters come from), [`stats`], `handshake` (opening and closing).
//! - Input: `input` (segments and expired timers), `sack_fast_path` (fast path while losses are repaired with SACK), `receive` and `out_of_order` (data).
//! - Output: `transmit` (which segment is sent next, or why none is), `burst` (segment bursts), `send` (buffer and segmentation), `delayed_ack` (when to
//!   acknowledge), `ack_output` (the acknowledgment), [`segment`], [`limited_by`] (the reasons).
//! - Loss: `scoreboard` and `ring` (segments in the network), `ack_sample` (the effect of an acknowledgment), `recovery/` (which segments are lost, when a
//!   recovery ends), `prr` (proportional rate reduction), [`congestion`] (the congestion window), `path_mtu`.
//! - Time: `timers`, `rtt` (the timeout), `tail_probe`, `persist_timer`.

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
