//! What the books ask of lines and of datagrams: they know neither.

use engpass_cells::Doing;

use engpass_model::line::Told;

/// A line that carries frames.
pub trait Teller {
    /// The number of its transmitter.
    fn number(&self) -> usize;
    /// What it has done so far.
    fn told(&self) -> Told;
    /// What it does at an instant, when all that began before has been told; a transmission that goes on tells itself.
    fn doing(&self, at: u64) -> Doing;
    /// Bytes that a packet of `ip` bytes takes of it.
    fn line_bytes(&self, ip: u32) -> u64;
}

/// Whose a datagram is.
#[derive(Clone, Copy, Debug)]
pub struct Whose {
    /// Index of the traffic.
    pub flow: u32,
    /// Its destination, if that is no socket of its flow.
    pub to: Option<u32>,
    /// It carries data of its sender.
    pub counted: bool,
}
