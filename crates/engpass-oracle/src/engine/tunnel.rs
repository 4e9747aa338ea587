//! Tunnels in operation: outer packets, and their reassembly at the ends (docs/model.md, "Tunnels").
//!
//! The state is in `../tunnel.rs`.

use engpass_model::forward::Headers;
use engpass_model::wire::ip::IP_HEADER_BYTES;

use super::Engine;
use crate::acted::Mechanism;
use crate::event_queue::{Event, Group};
use crate::idle::Crossing;
use crate::ledger::Fate;
use crate::outcome::Place;
use crate::packet::{Out, Packet};
use crate::tunnel::{Carries, Contents, Counts, Tunnel};

impl Engine<'_> {
    /// Returns true if a path segment is a tunnel that drops packets that are too long for it.
    pub(crate) fn refuses(&self, out: Out) -> bool {
        matches!(out, Out::Tunnel(tunnel) if self.tunnels[tunnel].refuses)
    }

    /// Returns the bytes of IP payload of an outer packet before fragmentation.
    fn outer_bytes(&self, of: Carries) -> u64 {
        self.tunnels[of.tunnel].header + self.packets[of.packet].ip()
    }

    /// Returns true if a packet is a fragment: of an outer packet if it is in a tunnel, else of a datagram.
    pub(crate) fn is_fragment(&self, packet: usize) -> bool {
        let Packet { bytes, carries, datagram, .. } = self.packets[packet];
        bytes < carries.map_or(self.ledger.datagram(datagram).bytes(), |of| self.outer_bytes(of))
    }

    pub(crate) fn contents(&self, packet: usize) -> Contents {
        let Packet { offset, bytes, carries, .. } = self.packets[packet];
        let Some(of) = carries else { return Contents { tunnels: 0, offset, bytes } };
        let inner = self.contents(of.packet);
        // The tunnel header and the inner headers come before the bytes of the datagram.
        let before = self.tunnels[of.tunnel].header + IP_HEADER_BYTES + inner.tunnels;
        let tunnels = before.min(offset + bytes) - before.min(offset);
        Contents { tunnels, offset: inner.offset + offset.saturating_sub(before), bytes: bytes - tunnels }
    }

    /// Returns the outer headers of packets in a tunnel.
    pub(crate) fn outer_heads(&self, tunnel: usize) -> Headers {
        let Tunnel { from, to, protocol, .. } = self.tunnels[tunnel];
        let [source, destination] = [from, to].map(|router| self.router_address(router));
        Headers { source, destination, protocol, ports: [0, 0] }
    }

    /// Adds the headers of a tunnel to a packet and returns the outer packet.
    pub(crate) fn enters_tunnel(&mut self, tunnel: usize, packet: usize) -> usize {
        let inner = self.packets[packet].clone();
        if inner.carries.is_some() {
            self.acted.note(Mechanism::NestedTunnel);
        }
        let carries = Carries { tunnel, packet };
        let Tunnel { way, ttl, .. } = self.tunnels[tunnel];
        if let Some(numbers) = &mut self.tunnels[tunnel].numbers {
            let number = u32::try_from(numbers.len()).expect("a run has fewer than 2^32 packets");
            numbers.insert(packet, number);
        }
        let bytes = self.outer_bytes(carries);
        self.packets.push(Packet { offset: 0, bytes, way, ttl, carries: Some(carries), ..inner });
        let outer = self.packets.len() - 1;
        self.packets[outer].crosses(Crossing::Enters(tunnel));
        outer
    }

    /// Unwraps a packet at a router for all tunnels that end there. Returns the inner packet; `None` if the packet waits for reassembly or is lost.
    pub(crate) fn leaves_tunnels(&mut self, now: u64, router: usize, packet: usize) -> Option<usize> {
        let mut packet = packet;
        while let Some(of) = self.packets[packet].carries
            && self.tunnels[of.tunnel].to == self.router_node(router)
        {
            let Packet { mut ce, came_by, ref path, .. } = self.packets[packet];
            let mut path = path.clone();
            if self.is_fragment(packet) {
                (ce, path) = self.puts_together(now, router, packet)?;
            }
            self.in_sequence(now, packet)?;
            let inner = &mut self.packets[of.packet];
            inner.ce = ce;
            inner.came_by = came_by;
            inner.path = path;
            inner.crosses(Crossing::Leaves);
            packet = of.packet;
        }
        Some(packet)
    }

    /// Checks the sequence number of an outer packet at the end of its tunnel (RFC 2890 section 2.2). Returns `None` if the packet is lost.
    fn in_sequence(&mut self, now: u64, packet: usize) -> Option<()> {
        let Packet { datagram, carries, .. } = self.packets[packet];
        let of = carries.expect("the packet is in a tunnel");
        let Tunnel { to: node, numbers, end, .. } = &mut self.tunnels[of.tunnel];
        let Some(numbers) = numbers else { return Some(()) };
        let number = numbers[&of.packet];
        // Numbers of a run do not wrap.
        if end.last.is_some_and(|last| number <= last) {
            self.acted.note(Mechanism::OutOfSequence);
            self.ledger.lose_carrier(now, Place::OutOfSequence { node: *node }, datagram);
            return None;
        }
        end.last = Some(number);
        Some(())
    }

    /// Handles a fragment of an outer packet at the end of its tunnel. If the outer packet is complete now, returns whether it was marked, and its path
    /// if all fragments took the same.
    fn puts_together(
        &mut self,
        now: u64,
        router: usize,
        fragment: usize,
    ) -> Option<(bool, Option<Vec<Crossing>>)> {
        let node = self.router_node(router);
        let Packet { datagram, carries, .. } = self.packets[fragment];
        let of = carries.expect("the fragment is in a tunnel");
        let (ip, held) = (self.packets[fragment].ip(), self.held_at(of.tunnel));
        let all = self.outer_bytes(of);
        let Tunnel { timeout, memory, end, .. } = &mut self.tunnels[of.tunnel];
        end.counts.came += 1;
        if end.given_up.contains(&of.packet) {
            end.counts.timed_out += 1;
            self.ledger.lose_carrier(now, Place::ReassemblyTimeout { node }, datagram);
            return None;
        }
        if held + ip > *memory {
            end.counts.refused += 1;
            self.acted.note(Mechanism::ReassemblyMemory);
            self.ledger.lose_carrier(now, Place::ReassemblyMemory { node }, datagram);
            return None;
        }
        let waiting = end.waiting.entry(of.packet).or_default();
        waiting.push(fragment);
        if waiting.len() == 1 {
            let gives_up = Event::TunnelGivesUp { of };
            self.agenda.put(now + *timeout, Group::TunnelGivesUp, (router, of.tunnel), gives_up);
        }
        let came: u64 = waiting.iter().map(|fragment| self.packets[*fragment].bytes).sum();
        assert!(came <= all, "fragments do not exceed the outer packet");
        if came < all {
            return None;
        }
        let fragments = end.waiting.remove(&of.packet).expect("the outer packet has waiting fragments");
        end.counts.joined += fragments.len() as u64;
        assert!(end.whole.insert(of.packet), "an outer packet is reassembled once");
        let path = self.packets[fragment].path.clone();
        let together = fragments.iter().all(|fragment| self.packets[*fragment].path == path);
        let marked = fragments.into_iter().any(|fragment| self.packets[fragment].ce);
        Some((marked, path.filter(|_| together)))
    }

    /// Returns the bytes of the fragments that wait at the end of a tunnel.
    fn held_at(&self, tunnel: usize) -> u64 {
        let waiting = self.tunnels[tunnel].end.waiting.values().flatten();
        waiting.map(|fragment| self.packets[*fragment].ip()).sum()
    }

    /// Handles the reassembly timeout of an outer packet: if fragments are still missing, the packet is given up.
    pub(crate) fn tunnel_gives_up(&mut self, now: u64, of: Carries) {
        let Tunnel { to: node, end, .. } = &mut self.tunnels[of.tunnel];
        let Some(fragments) = end.waiting.remove(&of.packet) else { return };
        end.given_up.insert(of.packet);
        end.counts.timed_out += fragments.len() as u64;
        self.acted.note(Mechanism::ReassemblyTimeout);
        for fragment in fragments {
            let datagram = self.packets[fragment].datagram;
            self.ledger.lose_carrier(now, Place::ReassemblyTimeout { node: *node }, datagram);
        }
    }

    /// Checks that every fragment that reached the end of a tunnel was reassembled, was lost there, or waits, and that the waiting ones fit the
    /// memory. Checks that no fragmented outer packet is in two of the states reassembled, given up, and waiting for fragments; that those of
    /// received datagrams were reassembled; and that the datagrams of those given up are lost.
    ///
    /// # Errors
    /// The first end or outer packet that violates this.
    pub(crate) fn tunnels_balance(&self) -> Result<(), String> {
        for (tunnel, Tunnel { memory, end, .. }) in self.tunnels.iter().enumerate() {
            let Counts { came, joined, refused, timed_out } = end.counts;
            let waiting = end.waiting.values().map(|fragments| fragments.len() as u64).sum::<u64>();
            if came != joined + refused + timed_out + waiting {
                return Err(format!(
                    "end of tunnel {tunnel}: {came} fragments came, {joined} were put together, {refused} found no memory, {timed_out} were late, {waiting} wait"
                ));
            }
            let held = self.held_at(tunnel);
            if held > *memory {
                return Err(format!(
                    "end of tunnel {tunnel}: {held} bytes wait, and there is room for {memory}"
                ));
            }
        }
        for &of in &self.cut {
            let end = &self.tunnels[of.tunnel].end;
            let (whole, given_up) = (end.whole.contains(&of.packet), end.given_up.contains(&of.packet));
            let waits = end.waiting.contains_key(&of.packet);
            let fate = self.ledger.fate(self.packets[of.packet].datagram);
            let once = u8::from(whole) + u8::from(given_up) + u8::from(waits) <= 1;
            let right = once && (whole || fate != Fate::Received) && (!given_up || fate == Fate::Lost);
            if !right {
                return Err(format!(
                    "{of:?}: whole {whole}, given up {given_up}, waits {waits}, and the datagram is {fate:?}"
                ));
            }
        }
        Ok(())
    }
}
