//! Tunnels: packets get outer headers at one end and lose them at the other (RFC 1853, RFC 4459).
//!
//! The step table has a mark where packets enter a tunnel ([`Verdict::Wrap`]) and one where they leave it ([`Verdict::Unwrap`]); between them are the steps
//! of the outer packets. Therefore the step index of a packet determines its headers. A router may fragment an outer packet, and the end of the tunnel
//! reassembles the fragments.

use std::collections::{BTreeMap, BTreeSet};

use engpass_ledger::StateTimes;
use engpass_model::forward::Headers;
use engpass_model::queue::Ecn;
use engpass_model::tunnel::Fragment;
use engpass_model::wire::ip::{Fragments, IP_HEADER_BYTES};
use engpass_model::wire::layers::Piece;
use engpass_testbed::topology::{NodeId, TunnelPath};
use engpass_testbed::{Topology, tunnel_heads};

use super::{Frames, NONE, Packet, Step, Verdict};
use crate::simulate::Network;
use crate::simulate::event_queue::Event;
use crate::simulate::flow_counters::DropLocation;

/// Largest number of tunnels that a packet is in at a time.
const MOST: usize = engpass_testbed::topology::MOST_TUNNELS;

/// The tunnels of a network and the state of packets in them.
#[derive(Default)]
pub(in crate::simulate) struct Tunnels {
    /// Both directions of every tunnel: from its first end to its second, and back.
    pub(super) directions: Vec<Direction>,
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
pub(super) struct Direction {
    pub(super) added: u32,
    ttl: u8,
    /// True if the tunnel drops packets that are too long instead of fragmenting outer packets.
    pub(super) refuses: bool,
    pub(super) heads: Headers,
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
    stamp: Option<StateTimes>,
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
    pub(super) fn new(topology: &Topology) -> Self {
        let tunnels = topology.tunnels.iter().enumerate();
        let directions = tunnels.flat_map(|(tunnel, path)| {
            [true, false].map(|forward| Direction::new(topology, tunnel, path, forward))
        });
        Self { directions: directions.collect(), stacks: vec![Vec::new()], room: 64, ..Self::default() }
    }

    /// Returns the number of this stack of tunnels; adds the stack if it is new.
    pub(super) fn stack(&mut self, tunnels: &[u32]) -> u16 {
        let known = self.stacks.iter().position(|known| known == tunnels).unwrap_or_else(|| {
            self.stacks.push(tunnels.to_vec());
            self.stacks.len() - 1
        });
        u16::try_from(known).expect("there are fewer than 65 536 tunnel stacks")
    }

    /// Assigns the stack of outer headers with number `stack` to the steps before `steps` that have no stack yet.
    pub(super) fn in_stack(&mut self, steps: usize, stack: u16) {
        if !self.directions.is_empty() {
            self.stack_of.resize(steps, stack);
        }
    }

    /// Removes the stacks of the steps from number `steps` on.
    pub(super) fn forget_steps(&mut self, steps: usize) {
        self.stack_of.truncate(steps);
    }

    /// Returns the tunnel directions that packets are in at a step, in the order of entry.
    #[inline]
    pub(in crate::simulate) fn at(&self, place: u32) -> &[u32] {
        self.stack_of.get(place as usize).map_or(&[], |stack| &self.stacks[usize::from(*stack)])
    }

    /// Returns the sum of the outer headers of packets at a step, in bytes.
    fn headers(&self, place: u32) -> u32 {
        self.at(place).iter().map(|tunnel| self.directions[*tunnel as usize].added).sum()
    }

    fn hide(&mut self, packet: u32) -> &mut Encapsulation {
        let place = packet as usize;
        if self.hidden.len() <= place {
            self.hidden.resize(place + 1, Encapsulation::default());
        }
        &mut self.hidden[place]
    }

    /// Returns the fragmented outer packet with `depth` outer headers of which this packet is a fragment, if it is one and that is still known.
    fn cut_of(&self, packet: u32, depth: usize) -> Option<&FragmentedOuter> {
        let cut = self.hidden[packet as usize].cut;
        self.cut.get(&cut).filter(|cut| cut.depth == depth)
    }
}

impl Frames {
    /// Returns the length, on the line of step `there`, of a packet that has `ip` bytes at step `here`.
    #[inline]
    pub(super) fn length_at(&self, ip: u32, here: u32, there: u32) -> u32 {
        if self.tunnels.stack_of.is_empty() {
            return ip;
        }
        ip + self.tunnels.headers(there) - self.tunnels.headers(here)
    }

    /// Returns the part of its datagram that a packet carries on the line of step `there`. The packet must cross that line as it is now.
    pub(super) fn piece(&self, packet: u32, this: &Packet, there: u32) -> Piece {
        let ip = self.length_at(this.ip, this.place, there);
        self.tunnels.piece_on(packet, &Packet { ip, ..*this }, there)
    }

    /// Returns true if a step is the entry of a tunnel that drops packets which are too long, whatever their DF bit.
    pub(super) fn refuses(&self, step: Step) -> bool {
        match step.verdict {
            Verdict::Wrap(direction) => self.tunnels.directions[direction as usize].refuses,
            _ => false,
        }
    }
}

impl Tunnels {
    /// Returns the part of its datagram that a packet carries on the line of step `place`.
    pub(super) fn piece_on(&self, packet: u32, this: &Packet, place: u32) -> Piece {
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

impl Network {
    /// Encapsulates a packet at the entry of a tunnel, and forwards it.
    pub(super) fn enter_tunnel(&mut self, id: u32, place: u32, direction: u32) {
        let step = self.frames.steps[place as usize];
        self.shared.datagrams.packet_mut(id).place = place;
        if !self.passes_router(id, step, self.now) || !self.may_enter_tunnel(id, direction) {
            return;
        }
        let packet = self.shared.datagrams.packet_mut(id);
        let tunnels = &mut self.frames.tunnels;
        let depth = tunnels.at(place).len();
        let this = &mut tunnels.directions[direction as usize];
        let (added, ttl, sequence) = (this.added, this.ttl, this.next);
        this.next = sequence.wrapping_add(1);
        let hidden = tunnels.hide(id);
        if depth == 0 {
            *hidden = Encapsulation::default();
        }
        (hidden.ttl[depth], hidden.sequence[depth]) = (packet.ttl, sequence);
        packet.ip += added;
        if let Some(trace) = &mut self.shared.trace {
            let inner = (packet.ttl, packet.ecn);
            trace.enters(id, (direction, sequence), step.router as usize, (packet.ip, ttl), inner);
        }
        // The next step decrements the TTL, although the router does not forward the outer packet.
        packet.ttl = ttl + 1;
        packet.place = place + 1;
        self.leave_engine(id, place + 1);
    }

    /// Decapsulates a packet at the end of a tunnel, and forwards it. A fragment of an outer packet is reassembled first.
    pub(super) fn leave_tunnel(&mut self, id: u32, place: u32) {
        let depth = self.frames.tunnels.at(place).len();
        let whole = match self.frames.tunnels.cut_of(id, depth) {
            Some(_) => self.gather(id, place),
            None if self.frames.tunnels.is_fragment(id, depth) => {
                let end = self.frames.tunnels.end_at(place);
                self.drop_packet(id, DropLocation::Timeout(end), self.now);
                None
            }
            None => Some(id),
        };
        let Some(id) = whole else { return };
        let tunnels = &mut self.frames.tunnels;
        let tunnel = tunnels.at(place)[depth - 1];
        let hidden = &tunnels.hidden[id as usize];
        let (sequence, ttl) = (hidden.sequence[depth - 1], hidden.ttl[depth - 1]);
        let direction = &mut tunnels.directions[tunnel as usize];
        let added = direction.added;
        if !direction.accepts(sequence) {
            let end = direction.end;
            self.drop_packet(id, DropLocation::OutOfSequence(end), self.now);
            return;
        }
        let packet = self.shared.datagrams.packet_mut(id);
        packet.ip -= added;
        (packet.ttl, packet.place) = (ttl, place + 1);
        if let Some(trace) = &mut self.shared.trace {
            trace.leaves_tunnel(id);
        }
        let parts = !self.groups.is_idle() && self.frames.tunnels.at(place + 1).is_empty();
        let copies = if parts { self.copy(id) } else { Vec::new() };
        self.leave_engine(id, place + 1);
        copies.into_iter().for_each(|copy| self.receive_or_forward(copy));
    }

    /// Fragments the outer packet of a tunnel for the MTU of the next hop.
    pub(super) fn fragment_outer(&mut self, id: u32, step: Step, at: u64) {
        let whole = *self.shared.datagrams.packet(id);
        let cut = Fragments::of(u64::from(whole.ip) - IP_HEADER_BYTES, step.mtu.into());
        let stamp = self.shared.ledger.snapshot_of(id);
        // The first fragment may reuse the packet's index.
        let head =
            self.shared.trace.as_ref().and_then(|trace| Some((trace.head_of(id)?, trace.hidden_of(id))));
        self.shared.track_per_hop(whole.datagram);
        self.record_hops_carried(id);
        self.shared.datagrams.release_packet(id);
        self.shared.datagrams[whole.datagram].refs += (cut.count - 1) as u32;
        let depth = self.frames.tunnels.at(whole.place).len();
        let hidden = self.frames.tunnels.hidden[id as usize];
        // The packet may be a fragment of an outer packet whose reassembly has timed out.
        let number = if self.frames.tunnels.is_fragment(id, depth) {
            hidden.cut
        } else {
            self.frames.tunnels.begin_cut(whole, hidden, stamp, depth)
        };
        // The `offset` of a packet that is no fragment is that of the inner packet.
        let begin = if number == hidden.cut { whole.offset } else { 0 };
        let since = self.frames.lines_before(whole.place);
        let mut fragments = Vec::new();
        for index in 0..cut.count {
            let ip = (cut.payload(index) + IP_HEADER_BYTES) as u32;
            let offset = begin + (index * cut.full / 8) as u16;
            // The TTL was decremented here for the whole packet, and is again when the fragment continues.
            let ttl = whole.ttl + 1;
            let fragment = self.shared.datagrams.insert_packet(Packet { ip, ttl, since, offset, ..whole });
            *self.frames.tunnels.hide(fragment) = Encapsulation { cut: number, depth: depth as u8, ..hidden };
            self.shared.ledger.set_snapshot(fragment, stamp.as_ref());
            if let (Some(trace), Some((head, hidden))) = (&mut self.shared.trace, &head) {
                trace.fragment(*head, fragment, (ip, (index * cut.full) as u32), index + 1 == cut.count);
                trace.hides(fragment, hidden.clone());
            }
            fragments.push(fragment);
        }
        if let Some(known) = self.frames.tunnels.cut.get_mut(&number) {
            known.packets.retain(|packet| *packet != id);
            known.packets.extend(&fragments);
        }
        self.forget_lost_cuts();
        for fragment in fragments {
            self.forward(fragment, whole.place, at, false);
        }
    }

    /// Removes fragmented outer packets whose fragments are all lost from the list, if this has at least `room` entries.
    fn forget_lost_cuts(&mut self) {
        let Tunnels { cut, hidden, room, .. } = &mut self.frames.tunnels;
        if cut.len() < *room {
            return;
        }
        let datagrams = &self.shared.datagrams;
        // Newest first: a fragmented packet inside another one was fragmented before that.
        let numbers: Vec<u32> = cut.keys().rev().copied().collect();
        let mut needed = BTreeSet::new();
        for number in numbers {
            let this = &cut[&number];
            let is_fragment =
                |packet: &u32| hidden[*packet as usize].cut == number && datagrams.has_packet(*packet);
            if this.come.1 > 0 || needed.contains(&number) || this.packets.iter().any(is_fragment) {
                needed.insert(this.hidden.cut);
            } else {
                cut.remove(&number);
            }
        }
        *room = 64.max(2 * cut.len());
    }

    /// Takes a fragment at the end of a tunnel into reassembly. Returns the outer packet if it is now complete.
    fn gather(&mut self, id: u32, place: u32) -> Option<u32> {
        let Packet { datagram, ip, ecn, .. } = *self.shared.datagrams.packet(id);
        let tunnels = &mut self.frames.tunnels;
        let number = tunnels.hidden[id as usize].cut;
        let stack = tunnels.at(place);
        let tunnel = stack[stack.len() - 1];
        let direction = &mut tunnels.directions[tunnel as usize];
        if direction.bytes + u64::from(ip) > direction.memory {
            let end = direction.end;
            self.drop_packet(id, DropLocation::Memory(end), self.now);
            return None;
        }
        direction.bytes += u64::from(ip);
        let cut = tunnels.cut.get_mut(&number).expect("the fragment's outer packet is known");
        if cut.come.1 == 0 {
            cut.until = (self.now.saturating_add(direction.timeout), direction.waited);
            direction.waited += 1;
            direction.waiting.insert(cut.until, number);
        }
        let payload = ip - IP_HEADER_BYTES as u32;
        let apart = cut.come.1 > 0 && cut.place != place;
        (cut.come, cut.place) = ((cut.come.0 + payload, cut.come.1 + 1), place);
        self.shared.datagrams[datagram].paths_differ |= apart;
        cut.ecn = if ecn == Ecn::Marked { ecn } else { cut.ecn };
        let is_whole = cut.come.0 + IP_HEADER_BYTES as u32 == cut.whole.ip;
        let head =
            self.shared.trace.as_ref().and_then(|trace| Some((trace.head_of(id)?, trace.hidden_of(id))));
        self.record_hops_carried(id);
        self.shared.datagrams.release_packet(id);
        if !is_whole {
            self.await_timeout(tunnel);
            return None;
        }
        let tunnels = &mut self.frames.tunnels;
        let cut = tunnels.cut.remove(&number).expect("the fragment's outer packet is known");
        let direction = &mut tunnels.directions[tunnel as usize];
        direction.waiting.remove(&cut.until);
        direction.bytes -= u64::from(cut.come.0) + u64::from(cut.come.1) * IP_HEADER_BYTES;
        self.shared.datagrams[datagram].refs -= cut.come.1 - 1;
        let since = self.frames.lines_before(place);
        let whole = Packet { place, since, ecn: cut.ecn, ..cut.whole };
        let whole = self.shared.datagrams.insert_packet(whole);
        *self.frames.tunnels.hide(whole) = cut.hidden;
        self.shared.ledger.set_snapshot(whole, cut.stamp.as_ref());
        if let (Some(trace), Some((head, hidden))) = (&mut self.shared.trace, head) {
            trace.fragment(head, whole, (cut.whole.ip, 0), true);
            trace.hides(whole, hidden);
        }
        Some(whole)
    }

    /// Schedules an event for the earliest reassembly timeout at the end of a tunnel, if none is pending.
    fn await_timeout(&mut self, tunnel: u32) {
        let direction = &mut self.frames.tunnels.directions[tunnel as usize];
        if let Some(((until, _), _)) = direction.waiting.first_key_value()
            && !std::mem::replace(&mut direction.is_awaited, true)
        {
            self.events.push(*until, direction.end, Event::ReassemblyTimeout(tunnel));
        }
    }

    /// Drops the outer packets of a tunnel whose reassembly has timed out.
    pub(in crate::simulate) fn on_reassembly_timeout(&mut self, tunnel: u32) {
        let direction = &mut self.frames.tunnels.directions[tunnel as usize];
        direction.is_awaited = false;
        while let Some(entry) = self.frames.tunnels.directions[tunnel as usize].waiting.first_entry()
            && entry.key().0 <= self.now
        {
            let number = entry.remove();
            let cut = self.frames.tunnels.cut.remove(&number).expect("a timed-out packet is in reassembly");
            let direction = &mut self.frames.tunnels.directions[tunnel as usize];
            direction.bytes -= u64::from(cut.come.0) + u64::from(cut.come.1) * IP_HEADER_BYTES;
            let (datagram, place) = (cut.whole.datagram, DropLocation::Timeout(direction.end));
            self.shared.lose_datagram(datagram, place, self.now);
            if self.shared.window.holds(self.now) {
                let flow = self.shared.datagrams[datagram].flow as usize;
                self.shared.flows[flow].losses(place).cells += u64::from(cut.come.1);
            }
            for _ in 0..cut.come.1 {
                self.shared.release_datagram(datagram);
            }
        }
        self.await_timeout(tunnel);
    }
}

impl Tunnels {
    /// Returns true if a packet is a fragment of an outer packet with `depth` outer headers, even if the outer packet is no longer known.
    fn is_fragment(&self, packet: u32, depth: usize) -> bool {
        let Encapsulation { cut, depth: of, .. } = self.hidden[packet as usize];
        cut > 0 && usize::from(of) == depth
    }

    /// Returns the router at the end of the tunnel that packets entered last at a step.
    fn end_at(&self, place: u32) -> NodeId {
        let stack = self.at(place);
        self.directions[stack[stack.len() - 1] as usize].end
    }

    /// Adds an outer packet that is fragmented to the list. Returns its number.
    fn begin_cut(
        &mut self,
        whole: Packet,
        hidden: Encapsulation,
        stamp: Option<StateTimes>,
        depth: usize,
    ) -> u32 {
        self.cuts += 1;
        let cut = FragmentedOuter {
            whole,
            hidden,
            stamp,
            depth,
            packets: Vec::new(),
            come: (0, 0),
            place: NONE,
            ecn: whole.ecn,
            until: (0, 0),
        };
        self.cut.insert(self.cuts, cut);
        self.cuts
    }
}
