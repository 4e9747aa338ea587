//! The paths that packets of a sender may take (docs/ledger.md, "Who could have used a line").

use std::collections::BTreeSet;

use engpass_model::forward::Headers;
use engpass_testbed::topology::NodeId;

use crate::cell::LineId;
use crate::packet::Out;

/// Upper bound of the length of a segment without data, in bytes.
pub(crate) const LONGEST_ACKNOWLEDGMENT: u64 = 120;

/// The packets of one sender to one receiver, or the ICMP messages of one router about a traffic.
pub(crate) struct Stream {
    pub(crate) heads: Headers,
    pub(crate) way: usize,
    pub(crate) from: NodeId,
    pub(crate) to: NodeId,
    /// The length of all packets before fragmentation, in bytes, if it is the same.
    pub(crate) length: Option<u64>,
    /// True if the sender fragments them.
    pub(crate) cut: bool,
    /// True if it is known in advance where they are fragments.
    pub(crate) known: bool,
}

/// The lines that packets of a sender may take.
#[derive(Clone, Debug, Default)]
pub(crate) struct Possible {
    pub(crate) lines: BTreeSet<LineId>,
    /// The path segments of these lines, with those of outer packets in place of tunnels. They are in the order of a depth-first walk that takes the
    /// first of several segments first.
    pub(crate) outs: Vec<Out>,
    /// The lines that packets may avoid: another possible path leads to the destination without them.
    pub(crate) avoidable: BTreeSet<LineId>,
}

/// A position that a packet of a sender may reach.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    pub(crate) node: NodeId,
    /// True if it is a fragment of its datagram there.
    pub(crate) fragment: bool,
    /// The tunnel directions that it is in, in the order in which it entered them.
    pub(crate) tunnels: Vec<usize>,
    /// At a switch, the line on which the last host or router sent it.
    pub(crate) framed_at: Option<LineId>,
}
