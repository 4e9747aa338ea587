//! A flow at a line where one of its hosts counts packets.

use crate::answer::{End, Host};
use crate::flow::Flow;
use crate::idle_reasons::Waits;
use crate::line::Packets;

/// A flow at the first or the last line of its path.
pub(crate) struct Crossing<'a> {
    pub(crate) flow: &'a Flow<'a>,
    /// The result of the sender.
    pub(crate) sent: &'a End,
    /// The result of the receiver at the end of this path.
    pub(crate) got: &'a End,
    /// The host at this line.
    pub(crate) near: &'a Host,
    /// The interface of the host at this line.
    pub(crate) device: String,
    /// True if the line is the first of the path.
    pub(crate) first: bool,
    /// True if the line is the last of the path.
    pub(crate) last: bool,
    /// The format of the flow's packets on the line.
    pub(crate) packets: Packets,
    /// Reasons why the sender was idle.
    pub(crate) waits: Waits,
}
