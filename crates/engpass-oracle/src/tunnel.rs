//! Tunnels while packets are in them: outer packets, and the ends that put fragments of them together (docs/model.md, "Tunnels").

use std::collections::{BTreeMap, BTreeSet};

use engpass_model::tunnel::{Fragment, TunnelHeader};
use engpass_testbed::Topology;
use engpass_testbed::topology::NodeId;

use crate::cell::LineId;
use crate::outer_ways::header_bytes;

/// What an outer packet carries, and so does a fragment of one. A packet enters a tunnel once, so this tells outer packets apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Carries {
    /// The direction of a tunnel that it is in.
    pub(crate) tunnel: usize,
    /// The packet that entered.
    pub(crate) packet: usize,
}

/// One direction of a tunnel: two for each tunnel, the forward one first.
#[derive(Debug)]
pub(crate) struct Tunnel {
    /// The routers at which packets enter and leave.
    pub(crate) from: NodeId,
    pub(crate) to: NodeId,
    /// The way of outer packets.
    pub(crate) way: usize,
    /// The line on which the first of their ways begins.
    pub(crate) first: LineId,
    /// Bytes of the largest packet that enters.
    pub(crate) mtu: u64,
    /// It loses packets that are too long.
    pub(crate) refuses: bool,
    /// Bytes of its own header, and the protocol that the outer header names.
    pub(crate) header: u64,
    pub(crate) protocol: u8,
    pub(crate) ttl: u8,
    /// How long fragments wait, in picoseconds, and bytes that there are for them.
    pub(crate) timeout: u64,
    pub(crate) memory: u64,
    pub(crate) end: End,
}

/// Where packets leave a direction of a tunnel.
#[derive(Debug, Default)]
pub(crate) struct End {
    /// By packet that entered, the fragments of its outer packet that wait.
    pub(crate) waiting: BTreeMap<usize, Vec<usize>>,
    /// Those whose outer packet became whole here, and those whose was given up.
    pub(crate) whole: BTreeSet<usize>,
    pub(crate) given_up: BTreeSet<usize>,
    pub(crate) counts: Counts,
}

/// What has become of the fragments of outer packets that came to an end.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    pub(crate) came: u64,
    pub(crate) joined: u64,
    pub(crate) refused: u64,
    pub(crate) timed_out: u64,
}

/// Both directions of every tunnel; the way of the first of them is `way`, and the others' follow.
pub(crate) fn tunnels(topology: &Topology, way: usize) -> Vec<Tunnel> {
    let mut tunnels = Vec::new();
    for path in &topology.tunnels {
        // RFC 2784 section 4, RFC 2003 section 3.1.
        let protocol = if matches!(path.config.header, TunnelHeader::Gre(_)) { 47 } else { 4 };
        for end in [0, 1] {
            tunnels.push(Tunnel {
                from: path.ends[end],
                to: path.ends[1 - end],
                way: way + tunnels.len(),
                first: LineId::of(topology, path.ways[end].route[0]),
                mtu: path.mtu,
                refuses: path.config.fragment == Fragment::None,
                header: header_bytes(&path.config.header),
                protocol,
                ttl: path.config.ttl,
                timeout: path.config.reassembly.timeout.0,
                memory: path.config.reassembly.memory.bytes(),
                end: End::default(),
            });
        }
    }
    tunnels
}

/// What is behind the outermost IP header of a packet: headers of tunnels first, then bytes of the datagram's IP payload.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Contents {
    /// Bytes of tunnels' headers, IP headers among them.
    pub(crate) tunnels: u64,
    /// Bytes of the datagram's IP payload that come before those in the packet.
    pub(crate) offset: u64,
    /// Bytes of the datagram's IP payload in the packet.
    pub(crate) bytes: u64,
}
