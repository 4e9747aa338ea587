//! IP packets, and what nodes know of their ways.
//!
//! What happens; the state stands in `packet.rs` beside the engine.

use engpass_testbed::topology::NodeId;

use super::Engine;
use crate::cell::LineId;
use crate::packet::Out;

impl Engine<'_> {
    /// The lines of a leg in their order; of a tunnel all those that outer packets may take.
    pub(crate) fn lines_of(&self, out: Out) -> Vec<LineId> {
        match out {
            Out::Line(line) => vec![line],
            Out::Circuit(vc) => self.vcs[vc].lines.clone(),
            Out::Tunnel(tunnel) => {
                let within = self.ways[self.tunnels[tunnel].way].at.values().flatten();
                within.flat_map(|out| self.lines_of(*out)).collect()
            }
        }
    }

    /// The line on which a leg begins, of a tunnel the first of its ways.
    pub(crate) fn first_line(&self, out: Out) -> LineId {
        match out {
            Out::Line(line) => line,
            Out::Circuit(vc) => self.vcs[vc].lines[0],
            Out::Tunnel(tunnel) => self.tunnels[tunnel].first,
        }
    }

    /// Whether the node at which a leg begins sees it up. A tunnel is up whatever becomes of the links on its way.
    pub(crate) fn is_seen_up(&self, out: Out) -> bool {
        matches!(out, Out::Tunnel(_)) || self.outages.is_seen_up(self.first_line(out))
    }

    /// Whether an event may change what the node at which a leg begins sees of it.
    pub(crate) fn event_may_change(&self, out: Out) -> bool {
        !matches!(out, Out::Tunnel(_)) && self.event_may_change_line(self.seen_line(out))
    }

    /// The node to which a leg leads.
    pub(crate) fn end_of(&self, out: Out) -> NodeId {
        match out {
            Out::Line(line) => self.topology.links[line.link].ends[1 - line.end],
            Out::Circuit(vc) => self.vcs[vc].to,
            Out::Tunnel(tunnel) => self.tunnels[tunnel].to,
        }
    }

    /// Bytes of the largest IP packet that a leg takes.
    pub(crate) fn mtu_of(&self, out: Out) -> u64 {
        match out {
            Out::Line(line) => self.topology.links[line.link].mtu,
            Out::Circuit(vc) => self.topology.circuits[self.vcs[vc].circuit].mtu,
            Out::Tunnel(tunnel) => self.tunnels[tunnel].mtu,
        }
    }

    /// Bytes of an AAL5 SDU with an IP packet of so many bytes.
    pub(crate) fn sdu(&self, vc: usize, ip: u64) -> u64 {
        self.topology.circuits[self.vcs[vc].circuit].encapsulation.sdu(ip)
    }

    /// The line of the NIC on which a way begins.
    pub(crate) fn nic_of(&self, way: usize) -> LineId {
        self.first_line(self.ways[way].first)
    }
}
