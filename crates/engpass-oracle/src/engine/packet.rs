//! IP packets and their paths.
//!
//! The state is in `../packet.rs`.

use engpass_testbed::topology::NodeId;

use super::Engine;
use crate::cell::LineId;
use crate::packet::Out;

impl Engine<'_> {
    /// Returns the lines of a path segment in order; for a tunnel, all those that outer packets may take.
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

    /// Returns the line on which a path segment begins; for a tunnel, that of its first path.
    pub(crate) fn first_line(&self, out: Out) -> LineId {
        match out {
            Out::Line(line) => line,
            Out::Circuit(vc) => self.vcs[vc].lines[0],
            Out::Tunnel(tunnel) => self.tunnels[tunnel].first,
        }
    }

    /// Returns true if the node at which a path segment begins sees it up. A tunnel without keepalives stays up when links on its path fail.
    pub(crate) fn is_seen_up(&self, out: Out) -> bool {
        match out {
            Out::Tunnel(tunnel) => self.is_tunnel_up(tunnel),
            _ => self.outages.is_seen_up(self.first_line(out)),
        }
    }

    /// Returns true if an event or keepalives may change the state that the node at the beginning of a path segment sees.
    pub(crate) fn event_may_change(&self, out: Out) -> bool {
        match out {
            Out::Tunnel(tunnel) => self.keepalives.iter().any(|end| end.tunnel == tunnel),
            _ => self.event_may_change_line(self.seen_line(out)),
        }
    }

    /// Returns the node at the end of a path segment.
    pub(crate) fn end_of(&self, out: Out) -> NodeId {
        match out {
            Out::Line(line) => self.topology.links[line.link].ends[1 - line.end],
            Out::Circuit(vc) => self.vcs[vc].to,
            Out::Tunnel(tunnel) => self.tunnels[tunnel].to,
        }
    }

    /// Returns the MTU of a path segment in bytes.
    pub(crate) fn mtu_of(&self, out: Out) -> u64 {
        match out {
            Out::Line(line) => self.topology.links[line.link].mtu,
            Out::Circuit(vc) => self.topology.circuits[self.vcs[vc].circuit].mtu,
            Out::Tunnel(tunnel) => self.tunnels[tunnel].mtu,
        }
    }

    /// Returns the bytes of an AAL5 SDU with an IP packet of `ip` bytes.
    pub(crate) fn sdu(&self, vc: usize, ip: u64) -> u64 {
        self.topology.circuits[self.vcs[vc].circuit].encapsulation.sdu(ip)
    }

    /// Returns the line of the NIC at which a path begins.
    pub(crate) fn nic_of(&self, way: usize) -> LineId {
        self.first_line(self.ways[way].first)
    }
}
