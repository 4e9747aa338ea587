//! Tunnels in operation: outer packets, and their reassembly at the ends (docs/model.md, "Tunnels").

use std::collections::{BTreeMap, BTreeSet};

use engpass_model::tunnel::{Fragment, TunnelHeader};
use engpass_testbed::Topology;
use engpass_testbed::topology::NodeId;

use crate::cell::LineId;
use crate::outer_ways::header_bytes;

/// Identifies an outer packet and its fragments by the inner packet. A packet enters a tunnel once, so this is unique.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Carries {
    /// The tunnel direction that it is in.
    pub(crate) tunnel: usize,
    /// The packet that entered.
    pub(crate) packet: usize,
}

/// One direction of a tunnel. Each tunnel has two, the forward one first.
#[derive(Debug)]
pub(crate) struct Tunnel {
    /// The routers at which packets enter and leave.
    pub(crate) from: NodeId,
    pub(crate) to: NodeId,
    /// Index of the path of outer packets.
    pub(crate) way: usize,
    /// The first line of their first path.
    pub(crate) first: LineId,
    /// MTU in bytes: the largest packet that enters.
    pub(crate) mtu: u64,
    /// True if it drops packets that are too long.
    pub(crate) refuses: bool,
    /// Bytes of the tunnel header, and protocol number in the outer IP header.
    pub(crate) header: u64,
    pub(crate) protocol: u8,
    pub(crate) ttl: u8,
    /// Reassembly timeout in picoseconds, and reassembly memory in bytes.
    pub(crate) timeout: u64,
    pub(crate) memory: u64,
    /// Numbers of the packets inside that entered so far, if the header has sequence numbers.
    pub(crate) numbers: Option<BTreeMap<usize, u32>>,
    pub(crate) end: End,
}

/// The end of a tunnel direction, where packets leave it.
#[derive(Debug, Default)]
pub(crate) struct End {
    /// Fragments that wait for the others, by inner packet.
    pub(crate) waiting: BTreeMap<usize, Vec<usize>>,
    /// Inner packets whose outer packets were reassembled here, and those whose were given up.
    pub(crate) whole: BTreeSet<usize>,
    pub(crate) given_up: BTreeSet<usize>,
    /// Sequence number of the last packet that left.
    pub(crate) last: Option<u32>,
    pub(crate) counts: Counts,
}

/// Counts of fragments of outer packets at an end: arrived, reassembled, dropped for lack of memory, and dropped on timeout.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    pub(crate) came: u64,
    pub(crate) joined: u64,
    pub(crate) refused: u64,
    pub(crate) timed_out: u64,
}

/// Builds both directions of every tunnel. `way` is the index of the path of the first one; the others follow.
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
                numbers: matches!(&path.config.header, TunnelHeader::Gre(gre) if gre.sequence)
                    .then(BTreeMap::new),
                end: End::default(),
            });
        }
    }
    tunnels
}

/// Content of a packet after its outermost IP header: first tunnel headers, then bytes of the IP payload of the datagram.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Contents {
    /// Bytes of tunnel headers, inner IP headers included.
    pub(crate) tunnels: u64,
    /// Offset of its payload in the IP payload of the datagram, in bytes.
    pub(crate) offset: u64,
    /// Bytes of the datagram's IP payload in the packet.
    pub(crate) bytes: u64,
}
