//! A flow at a line at which one of its hosts counts.

use crate::answer::{End, Host};
use crate::flow::Flow;
use crate::idle_reasons::Waits;
use crate::line::Packets;

/// A flow at the first or the last line of its path.
pub(crate) struct Crossing<'a> {
    pub(crate) flow: &'a Flow<'a>,
    /// The results of the sender and of the receiver at the end of this path.
    pub(crate) sent: &'a End,
    pub(crate) got: &'a End,
    /// The host at this line, and its interface there.
    pub(crate) near: &'a Host,
    pub(crate) device: String,
    /// Whether the line is the first, and the last, of the path.
    pub(crate) first: bool,
    pub(crate) last: bool,
    pub(crate) packets: Packets,
    /// Why the sender was idle.
    pub(crate) waits: Waits,
}
