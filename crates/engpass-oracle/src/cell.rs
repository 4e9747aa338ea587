//! Cells, lines and circuit directions.

use engpass_model::time::Pace;
use engpass_testbed::Topology;
use engpass_testbed::topology::{Hop, NodeId};

/// Identifies a transmitter by its link and the end of the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct LineId {
    /// Index of the link.
    pub(crate) link: usize,
    /// 0 or 1: index into the link's `ends`.
    pub(crate) end: usize,
}

impl LineId {
    /// Returns the transmitter at which a hop begins.
    pub(crate) fn of(topology: &Topology, hop: Hop) -> Self {
        Self { link: hop.link, end: usize::from(topology.links[hop.link].ends[0] != hop.from) }
    }

    pub(crate) fn position(self) -> (usize, usize) {
        (self.link, self.end)
    }
}

/// One direction of a circuit. Each circuit has two, the forward one first.
#[derive(Clone, Debug)]
pub(crate) struct Vc {
    /// Index of the circuit.
    pub(crate) circuit: usize,
    /// True from the circuit's `from` to its `to`.
    pub(crate) forward: bool,
    /// The lines it crosses.
    pub(crate) lines: Vec<LineId>,
    /// The hosts or routers where packets become cells, and where cells become packets again.
    pub(crate) from: NodeId,
    pub(crate) to: NodeId,
}

/// Returns the index of a circuit direction.
pub fn vc_index(circuit: usize, forward: bool) -> usize {
    2 * circuit + usize::from(!forward)
}

/// Returns both directions of every circuit.
pub(crate) fn vcs(topology: &Topology) -> Vec<Vc> {
    let mut vcs = Vec::new();
    for (circuit, path) in topology.circuits.iter().enumerate() {
        let there = path.route.iter().map(|hop| LineId::of(topology, *hop)).collect();
        let back = path.route.iter().rev().map(|hop| LineId::of(topology, turned(*hop))).collect();
        let (from, to) = (path.route[0].from, path.route[path.route.len() - 1].to);
        vcs.push(Vc { circuit, forward: true, lines: there, from, to });
        vcs.push(Vc { circuit, forward: false, lines: back, from: to, to: from });
    }
    vcs
}

/// Returns the hop in the other direction.
pub(crate) fn turned(hop: Hop) -> Hop {
    Hop { link: hop.link, from: hop.to, to: hop.from }
}

#[derive(Clone, Debug)]
pub(crate) struct Cell {
    /// Index of the packet that it belongs to.
    pub(crate) packet: usize,
    /// Its number in the packet's PDU, from 0.
    pub(crate) number: u64,
    /// True for the last cell of a PDU.
    pub(crate) last: bool,
    /// Index of its circuit direction.
    pub(crate) vc: usize,
    /// Index of the current line in the lines of the circuit direction.
    pub(crate) hop: usize,
    /// CLP bit (low priority).
    pub(crate) clp: bool,
    /// EFCI bit (congestion experienced).
    pub(crate) efci: bool,
    /// Number of cells that reached the first line on this circuit direction before it.
    pub(crate) order: u64,
}

/// Returns the picoseconds from the start to the end of unit `k`: the exact rational `k * num / den`, rounded up once.
///
/// It computes the result that [`Pace::after`] specifies, without its shortcuts.
pub(crate) fn after(pace: Pace, k: u64) -> u64 {
    let (num, den) = pace.ratio();
    let exact = u128::from(k) * u128::from(num);
    let whole = exact / u128::from(den) + u128::from(exact % u128::from(den) != 0);
    u64::try_from(whole).expect("the time fits in 64 bits (213 days)")
}
