//! The ways that packets of a sender may take (docs/ledger.md, "Who could have used a line").

use std::collections::BTreeSet;

use engpass_model::forward::Heads;
use engpass_testbed::topology::NodeId;

use crate::cell::LineId;
use crate::packet::Out;

/// A segment without data is no longer than this, in bytes.
pub(crate) const LONGEST_ACKNOWLEDGMENT: u64 = 120;

/// Packets of one sender, or the messages of one router about a traffic.
pub(crate) struct Stream {
    pub(crate) heads: Heads,
    pub(crate) way: usize,
    pub(crate) from: NodeId,
    pub(crate) to: NodeId,
    /// The length of all packets before any is cut, if they have the same.
    pub(crate) length: Option<u64>,
    /// Whether they are cut where they begin.
    pub(crate) cut: bool,
    /// Whether it is known of all of them where they are fragments.
    pub(crate) known: bool,
}

/// The lines that packets of a sender may take.
#[derive(Clone, Debug, Default)]
pub(crate) struct Possible {
    pub(crate) lines: BTreeSet<LineId>,
    /// The legs that these belong to, those of outer packets in place of tunnels, in the order in which ways meet them that take the first of several first.
    pub(crate) outs: Vec<Out>,
    /// Those without which packets may come to their end, too.
    pub(crate) avoidable: BTreeSet<LineId>,
}

/// Where a packet of a sender may be.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    pub(crate) node: NodeId,
    /// Whether it is a fragment of its datagram there.
    pub(crate) fragment: bool,
    /// The directions of tunnels that it is in, in the order in which it entered them.
    pub(crate) tunnels: Vec<usize>,
    /// At a switch, the line on which the last host or router has sent it.
    pub(crate) framed_at: Option<LineId>,
}
