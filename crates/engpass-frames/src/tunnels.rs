//! Tunnels: packets get outer headers at one end and lose them at the other (RFC 1853, RFC 4459).
//!
//! The step table has a mark where packets enter a tunnel ([`Verdict::Wrap`]) and one where they leave it ([`Verdict::Unwrap`]); between them are the steps
//! of the outer packets. Therefore the step index of a packet determines its headers. A router may fragment an outer packet, and the end of the tunnel
//! reassembles the fragments.

use std::collections::BTreeMap;

use engpass_model::forward::Headers;
use engpass_model::queue::Ecn;
use engpass_model::tunnel::Fragment;
use engpass_model::wire::ip::IP_HEADER_BYTES;
use engpass_model::wire::layers::Piece;
use engpass_testbed::topology::{NodeId, TunnelPath};
use engpass_testbed::{Topology, tunnel_heads};

use super::{Frames, Packet, Step, Verdict};

mod reassembly;

pub use reassembly::{EndedReassembly, Gathered, OuterCut, TunnelArrival};

/// Largest number of tunnels that a packet is in at a time.
const MOST: usize = engpass_testbed::topology::MOST_TUNNELS;

/// The tunnels of a network and the state of packets in them.
#[derive(Default)]
pub struct Tunnels {
    /// Both directions of every tunnel: from its first end to its second, and back.
    pub(crate) directions: Vec<Direction>,
    /// Distinct stacks of tunnels that packets are in, each in the order of entry. Stack 0 is empty.
    stacks: Vec<Vec<u32>>,
    /// By step, the number of its stack; empty if no route has a tunnel.
    stack_of: Vec<u16>,
    /// By packet number, the values that outer headers hide.
    hidden: Vec<Encapsulation>,
    /// Fragmented outer packets, by the number that each got when it was fragmented.
    cut: BTreeMap<u32, FragmentedOuter>,
    /// Number of outer packets fragmented so far.
    cuts: u32,
    /// Number of fragmented outer packets above which those that are lost are removed from the list.
    room: usize,
}

/// One direction of a tunnel.
pub(crate) struct Direction {
    pub(crate) added: u32,
    ttl: u8,
    /// True if the tunnel drops packets that are too long instead of fragmenting outer packets.
    pub(crate) refuses: bool,
    pub(crate) heads: Headers,
    /// The router at which packets leave the tunnel.
    end: NodeId,
    timeout: u64,
    memory: u64,
    /// True if the tunnel header has a sequence number.
    is_sequenced: bool,
    /// Sequence number of the next packet that enters.
    next: u32,
    /// Sequence number of the packet that left last; `None` before the first one.
    last: Option<u32>,
    /// Bytes of fragments that wait for reassembly.
    bytes: u64,
    /// Numbers of outer packets in reassembly, by the instant of the timeout and the order in which their first fragments arrived.
    waiting: BTreeMap<(u64, u32), u32>,
    /// Number of reassemblies begun so far.
    waited: u32,
    /// True while a timeout event is pending.
    is_awaited: bool,
}

/// The values of a packet that its outer headers hide.
#[derive(Clone, Copy, Debug, Default)]
struct Encapsulation {
    /// TTL of the inner packet, by tunnel depth.
    ttl: [u8; MOST],
    /// Sequence number in the tunnel header, by tunnel depth.
    sequence: [u32; MOST],
    /// Number of the outer packet of which this is a fragment, from 1; 0 if it is none. `depth` is the number of outer headers of that packet.
    cut: u32,
    depth: u8,
}

/// A fragmented outer packet.
struct FragmentedOuter {
    whole: Packet,
    hidden: Encapsulation,
    /// Number of outer headers of the packet.
    depth: usize,
    /// Packet numbers of the fragments. A fragment that is fragmented again is replaced by its own fragments.
    packets: Vec<u32>,
    /// Bytes of the IP payload that have come to the end of the tunnel, and the number of fragments that brought them.
    come: (u32, u32),
    /// The step at which the last of these fragments left the tunnel.
    place: u32,
    ecn: Ecn,
    /// Instant of the reassembly timeout, and the order among packets that wait.
    until: (u64, u32),
}

impl Direction {
    fn new(topology: &Topology, tunnel: usize, path: &TunnelPath, forward: bool) -> Self {
        let config = &path.config;
        Self {
            added: path.added as u32,
            ttl: config.ttl,
            refuses: config.fragment == Fragment::None,
            heads: tunnel_heads(topology, tunnel, forward),
            end: path.from_to(forward)[1],
            timeout: config.reassembly.timeout.0,
            memory: config.reassembly.memory.bytes(),
            is_sequenced: config.header.config().is_sequenced(),
            next: 0,
            last: None,
            bytes: 0,
            waiting: BTreeMap::new(),
            waited: 0,
            is_awaited: false,
        }
    }

    /// Returns true if the packet with this sequence number may leave the tunnel, and notes that it does. A packet is out of sequence if the last one to
    /// leave has its number or one of the 2^31 - 1 numbers behind it (RFC 2890 section 2.2).
    fn accepts(&mut self, sequence: u32) -> bool {
        const OLD: u32 = 1 << 31;
        let is_old = self.last.is_some_and(|last| last.wrapping_sub(sequence) < OLD);
        if self.is_sequenced && is_old {
            return false;
        }
        self.last = Some(sequence);
        true
    }
}

impl Tunnels {
    pub(crate) fn new(topology: &Topology) -> Self {
        let tunnels = topology.tunnels.iter().enumerate();
        let directions = tunnels.flat_map(|(tunnel, path)| {
            [true, false].map(|forward| Direction::new(topology, tunnel, path, forward))
        });
        Self { directions: directions.collect(), stacks: vec![Vec::new()], room: 64, ..Self::default() }
    }

    /// Returns the number of this stack of tunnels; adds the stack if it is new.
    pub(crate) fn stack(&mut self, tunnels: &[u32]) -> u16 {
        let known = self.stacks.iter().position(|known| known == tunnels).unwrap_or_else(|| {
            self.stacks.push(tunnels.to_vec());
            self.stacks.len() - 1
        });
        u16::try_from(known).expect("there are fewer than 65 536 tunnel stacks")
    }

    /// Assigns the stack of outer headers with number `stack` to the steps before `steps` that have no stack yet.
    pub(crate) fn in_stack(&mut self, steps: usize, stack: u16) {
        if !self.directions.is_empty() {
            self.stack_of.resize(steps, stack);
        }
    }

    /// Removes the stacks of the steps from number `steps` on.
    pub(crate) fn forget_steps(&mut self, steps: usize) {
        self.stack_of.truncate(steps);
    }

    /// Returns the tunnel directions that packets are in at a step, in the order of entry.
    #[inline]
    pub fn at(&self, place: u32) -> &[u32] {
        self.stack_of.get(place as usize).map_or(&[], |stack| &self.stacks[usize::from(*stack)])
    }

    /// Returns the sum of the outer headers of packets at a step, in bytes.
    fn headers(&self, place: u32) -> u32 {
        self.at(place).iter().map(|tunnel| self.directions[*tunnel as usize].added).sum()
    }

    /// Returns the router at the end of the tunnel that packets entered last at a step.
    pub fn end_at(&self, place: u32) -> NodeId {
        let stack = self.at(place);
        self.directions[stack[stack.len() - 1] as usize].end
    }

    /// Encapsulates a packet at the entry of a tunnel, and moves it on to the first step in the tunnel. Returns the sequence number of the tunnel header, and
    /// the TTL of the outer packet.
    pub fn enter(&mut self, id: u32, packet: &mut Packet, direction: u32) -> (u32, u8) {
        let depth = self.at(packet.place).len();
        let this = &mut self.directions[direction as usize];
        let (added, ttl, sequence) = (this.added, this.ttl, this.next);
        this.next = sequence.wrapping_add(1);
        let hidden = self.hide(id);
        if depth == 0 {
            *hidden = Encapsulation::default();
        }
        (hidden.ttl[depth], hidden.sequence[depth]) = (packet.ttl, sequence);
        packet.ip += added;
        // The next step decrements the TTL, although the router does not forward the outer packet.
        packet.ttl = ttl + 1;
        packet.place += 1;
        (sequence, ttl)
    }

    /// Decapsulates a packet at the end of a tunnel, step `place`, and moves it on to the step behind the tunnel. Returns false if the packet is out of
    /// sequence and must be dropped.
    pub fn leave(&mut self, id: u32, packet: &mut Packet, place: u32) -> bool {
        let stack = self.at(place);
        let depth = stack.len();
        let tunnel = stack[depth - 1];
        let hidden = &self.hidden[id as usize];
        let (sequence, ttl) = (hidden.sequence[depth - 1], hidden.ttl[depth - 1]);
        let direction = &mut self.directions[tunnel as usize];
        if !direction.accepts(sequence) {
            return false;
        }
        packet.ip -= direction.added;
        (packet.ttl, packet.place) = (ttl, place + 1);
        true
    }

    fn hide(&mut self, packet: u32) -> &mut Encapsulation {
        let place = packet as usize;
        if self.hidden.len() <= place {
            self.hidden.resize(place + 1, Encapsulation::default());
        }
        &mut self.hidden[place]
    }
}

impl Frames {
    /// Returns the length, on the line of step `there`, of a packet that has `ip` bytes at step `here`.
    #[inline]
    pub fn length_at(&self, ip: u32, here: u32, there: u32) -> u32 {
        if self.tunnels.stack_of.is_empty() {
            return ip;
        }
        ip + self.tunnels.headers(there) - self.tunnels.headers(here)
    }

    /// Returns the part of its datagram that a packet carries on the line of step `there`. The packet must cross that line as it is now.
    #[inline]
    pub fn piece(&self, packet: u32, this: &Packet, there: u32) -> Piece {
        let ip = self.length_at(this.ip, this.place, there);
        self.tunnels.piece_on(packet, &Packet { ip, ..*this }, there)
    }

    /// Returns true if a step is the entry of a tunnel that drops packets which are too long, whatever their DF bit.
    #[inline]
    pub(crate) fn refuses(&self, step: Step) -> bool {
        match step.verdict {
            Verdict::Wrap(direction) => self.tunnels.directions[direction as usize].refuses,
            _ => false,
        }
    }
}

impl Tunnels {
    /// Returns the part of its datagram that a packet carries on the line of step `place`.
    #[inline]
    pub fn piece_on(&self, packet: u32, this: &Packet, place: u32) -> Piece {
        self.piece(packet, this.offset, this.ip - IP_HEADER_BYTES as u32, self.at(place))
    }

    /// Returns the part of its datagram in a packet with these outer headers and `bytes` bytes behind the first IP header.
    fn piece(&self, packet: u32, mut offset: u16, mut bytes: u32, stack: &[u32]) -> Piece {
        let mut cut = self.hidden.get(packet as usize).map_or(0, |hidden| hidden.cut);
        // Start of the part within the packet at the current depth.
        let (mut from, mut headers) = (0, 0);
        for (below, tunnel) in stack.iter().enumerate().rev() {
            if let Some(fragmented) = self.cut.get(&cut).filter(|fragmented| fragmented.depth == below + 1) {
                from += 8 * u32::from(offset);
                (offset, cut) = (fragmented.whole.offset, fragmented.hidden.cut);
            }
            let added = self.directions[*tunnel as usize].added;
            let here = added.min(from + bytes).saturating_sub(from);
            (headers, bytes, from) = (headers + here, bytes - here, from.saturating_sub(added));
        }
        // An IP packet has fewer than 65 536 bytes.
        Piece { offset: (8 * u32::from(offset) + from) as u16, bytes: bytes as u16, added: headers as u16 }
    }
}
