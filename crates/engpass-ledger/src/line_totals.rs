//! The ledger's view of frame lines and datagrams: the ledger knows neither type of the network.

use engpass_cells::LineStatus;

use engpass_model::line::LineTotals;

/// A line that carries frames.
pub trait FrameLine {
    /// Returns the index of the line's output port.
    fn number(&self) -> usize;
    /// Returns the line's totals so far.
    fn totals(&self) -> LineTotals;
    /// Returns what the line does at the instant `at`, after everything that began before. A transmission in progress at a window edge is reported separately.
    fn line_status(&self, at: u64) -> LineStatus;
    /// Returns the bytes that a packet with `ip` bytes takes on the line, framing included.
    fn line_bytes(&self, ip: u32) -> u64;
}

/// The flow and the direction that a datagram belongs to.
#[derive(Clone, Copy, Debug)]
pub struct DatagramOwner {
    /// Index of the traffic.
    pub flow: u32,
    /// TCP endpoint that the datagram is sent to; `None` for other traffic.
    pub to: Option<u32>,
    /// True if the datagram carries data of its sender. Only such datagrams divide idle time by the sender's states.
    pub counted: bool,
}
