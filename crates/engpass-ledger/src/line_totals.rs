//! The ledger's view of frame lines and datagrams; it knows neither of their types.

use engpass_cells::LineStatus;

use engpass_model::line::LineTotals;

/// A line that carries frames.
pub trait FrameLine {
    /// Returns the number of its output port.
    fn number(&self) -> usize;
    /// Returns its totals so far.
    fn told(&self) -> LineTotals;
    /// Returns what the line does at `at`, once everything that began before has been reported. A transmission in progress is reported separately.
    fn line_status(&self, at: u64) -> LineStatus;
    /// Returns the bytes that a packet of `ip` bytes takes on the line.
    fn line_bytes(&self, ip: u32) -> u64;
}

/// The flow and the direction that a datagram belongs to.
#[derive(Clone, Copy, Debug)]
pub struct DatagramOwner {
    /// Index of the traffic.
    pub flow: u32,
    /// The TCP endpoint that it is sent to; `None` for other traffic.
    pub to: Option<u32>,
    /// It carries data of its sender, and therefore shows whose idle time it was.
    pub counted: bool,
}
