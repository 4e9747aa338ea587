//! Inputs of cell ports: shapers and generators at NICs, lines at switches. Finds the ports whose arrivals are known in advance.

use engpass_cells::{Channel, Generator, VcId};
use engpass_model::host::ps;
use engpass_model::random::{Label, Stream};
use engpass_model::source::Traffic;
use engpass_model::switch::Switch;
use engpass_testbed::topology::PathSegment;

use super::{Builder, Source};
use crate::cell_ports::Queue;
use crate::pull::find_rings;
use crate::shared_state::{MIXED, NextHop};

impl Builder<'_> {
    /// Returns the flows whose cells use the circuit direction `vc`; a TCP flow uses both directions of its circuit.
    pub(super) fn flows_on(&self, vc: VcId) -> impl Iterator<Item = (usize, &Traffic)> {
        self.testbed
            .traffic
            .values()
            .enumerate()
            .filter(move |(flow, _)| self.vcs_of(*flow).any(|own| own == vc))
    }

    /// Returns true if keepalives of a tunnel may use the circuit direction `vc`.
    fn carries_keepalives(&self, vc: VcId) -> bool {
        let tunnels = self.topology.tunnels.iter().filter(|tunnel| tunnel.has_keepalives());
        let legs = tunnels.flat_map(|tunnel| &tunnel.ways).flat_map(|way| way.fan.legs());
        let (circuit, forward) = (vc as usize / 2, vc.is_multiple_of(2));
        legs.flat_map(|leg| self.topology.legs_within(leg))
            .any(|leg| leg == PathSegment::Circuit { circuit, forward })
    }

    /// Returns true if packets use the circuit direction `vc`: of a flow, or keepalives.
    fn carries_packets(&self, vc: VcId) -> bool {
        self.carries_keepalives(vc) || self.flows_on(vc).any(|(_, traffic)| traffic.cells().is_none())
    }

    /// Adds the inputs of NIC lines: for each circuit direction the shaper, then the generators.
    pub(super) fn add_line_inputs(&mut self) {
        for vc in 0..self.vcs.len() as VcId {
            let port = self.vcs[vc as usize].hops[0];
            if self.carries_packets(vc) {
                self.vcs[vc as usize].entry = self.channels[port].len();
                let pace = self.vcs[vc as usize].shaper.pace();
                self.channels[port].push(Channel::new(pace));
                self.origins[port].push(None);
            }
            let generators: Vec<_> =
                self.flows_on(vc).filter_map(|(flow, traffic)| self.generator(flow, vc, traffic)).collect();
            for mut source in generators {
                source.feeds = (port, self.channels[port].len());
                self.channels[port].push(Channel::generated(source.generator.clone()));
                self.origins[port].push(None);
                self.sources.push(source);
            }
        }
    }

    fn generator(&self, flow: usize, vc: VcId, traffic: &Traffic) -> Option<Source> {
        let pace = self.topology.flows[flow].cells?;
        let mut random = Stream::new(self.seed, Label::Traffic(&self.topology.flows[flow].name));
        let last = |stop: Option<u64>| {
            stop.map_or(Some(self.window.end), |stop| Some(stop.checked_sub(1)?.min(self.window.end)))
        };
        let generator = match traffic {
            Traffic::Cbr(config) => {
                let first = ps(config.start) + random.below(pace.after(1));
                Generator::constant((flow, vc), pace, first, last(config.stop.map(|stop| stop.0))?)
            }
            Traffic::OnOff(config) => {
                let lengths = (config.on.0, config.off.0);
                let first = ps(config.start) + random.below(lengths.0 + lengths.1);
                let last = last(config.stop.map(|stop| stop.0))?;
                Generator::bursts((flow, vc), pace, (first, last), lengths, config.lengths, random)
            }
            _ => return None,
        };
        let generator = generator.with_clp(self.topology.circuits[vc as usize / 2].clp);
        Some(Source { flow, generator, feeds: (0, 0), bypassed: None, before: 0 })
    }

    /// Adds the inputs of switch ports: the lines that lead to the switch, in the order of the links.
    pub(super) fn add_switch_inputs(&mut self) {
        for vc in 0..self.vcs.len() as VcId {
            if self.flows_on(vc).next().is_none() && !self.carries_keepalives(vc) {
                continue;
            }
            let hops = self.vcs[vc as usize].hops.clone();
            for (hop, &port) in hops.iter().enumerate() {
                let next = hops.get(hop + 1).copied();
                let counter = self.next_hops[port].len();
                let delay = self.delay_of(port);
                self.next_hops[port].push(NextHop {
                    vc,
                    delay,
                    channel: next.map(|next| (next, 0)),
                    path_number: 0,
                    counter,
                    hop: hop as u16,
                });
                if let Some(next) = next
                    && !self.origins[next].contains(&Some(port))
                {
                    let place = self.origins[next].iter().filter(|origin| **origin < Some(port)).count();
                    self.origins[next].insert(place, Some(port));
                }
            }
        }
        for port in 0..self.ports.len() {
            if !self.is_switch(port) {
                continue;
            }
            for index in 0..self.origins[port].len() {
                let before = self.origins[port][index].expect("a switch input comes from a line");
                let channel = self.try_bypass_line(before, port).unwrap_or_else(|| {
                    self.ports[port].upstream.push(before);
                    Channel::new(self.slots[before])
                });
                self.channels[port].push(channel);
            }
        }
        for port in 0..self.ports.len() {
            for index in 0..self.next_hops[port].len() {
                if let Some((next, _)) = self.next_hops[port][index].channel {
                    let place = self.origins[next].iter().position(|origin| *origin == Some(port));
                    self.next_hops[port][index].channel =
                        Some((next, place.expect("every hop of a circuit has an input channel")));
                }
            }
            self.number_ways(port);
        }
    }

    /// Numbers the paths after a port: cells for one queue have one number. If PDUs of several circuits share the line, all cells have the same number
    /// ([`MIXED`]).
    fn number_ways(&mut self, port: usize) {
        let frames = |next_hop: &&NextHop| self.carries_packets(next_hop.vc);
        // At a NIC that leads directly to a host, cells of a shaper and of generators on one circuit may interleave.
        let mixed = self.next_hops[port].iter().filter(frames).nth(1).is_some();
        // A generator's cell that arrives between the cells of a PDU ends this PDU, and the PDU is lost.
        let cut = |next_hop: &NextHop| {
            frames(&next_hop) && self.flows_on(next_hop.vc).any(|(_, traffic)| traffic.cells().is_some())
        };
        self.may_coalesce[port] =
            self.next_hops[port].iter().all(|next_hop| next_hop.channel.is_none() && !cut(next_hop));
        let nic = !self.is_switch(port);
        let mut next: Vec<_> = Vec::new();
        for next_hop in &mut self.next_hops[port] {
            let behind = next_hop.channel.map(|(port, _)| port);
            next_hop.path_number = match behind {
                _ if mixed => MIXED,
                None if nic => MIXED,
                None => 0,
                Some(behind) => {
                    let place = next.iter().position(|known| *known == behind).unwrap_or_else(|| {
                        next.push(behind);
                        next.len() - 1
                    });
                    MIXED + 1 + place
                }
            };
        }
    }

    /// Bypasses a line that one generator uses alone, with more than a slot between its cells: the switch reads the generator directly, because the line only
    /// delays the cells. Returns the channel; `None` if it is not possible. Cells of bursts may wait for each other, so their generator computes their
    /// departures and counts the line's use; that count needs a run without warm-up.
    fn try_bypass_line(&mut self, line: usize, next: usize) -> Option<Channel> {
        let [channel] = self.channels[line].as_slice() else { return None };
        let slot = self.slots[line].after(1);
        if self.outside
            || channel.generated_pace() <= slot
            || !channel.is_even() && self.window.from.is_some()
            || self.node_of(line) >= self.topology.hosts
        {
            return None;
        }
        let (delay, even, place) = (self.delay_of(line), channel.is_even(), self.channels[next].len());
        let vcs = &self.vcs;
        let hops = |source: &Source| &vcs[source.generator.vc() as usize].hops;
        let source = self
            .sources
            .iter_mut()
            .find(|source| hops(source)[0] == line && hops(source).get(1) == Some(&next))?;
        source.feeds = (next, place);
        let later = if even { slot } else { 0 };
        source.bypassed = Some((line, later));
        if !even {
            source.generator = source.generator.clone().through(self.slots[line], self.window.end);
        }
        let channel = Channel::generated(source.generator.clone().shifted(later + delay));
        self.channels[line].clear();
        self.origins[line].clear();
        Some(channel)
    }

    /// Finds the ports whose arrivals all come from generators, directly or through such ports: they can be computed for any instant at any time.
    pub(super) fn find_foreseeable_ports(&mut self) {
        let mut changed = true;
        while std::mem::take(&mut changed) {
            for port in 0..self.ports.len() {
                if !self.ports[port].foreseeable && self.open_channels(port).next().is_none() {
                    self.ports[port].foreseeable = true;
                    changed = true;
                }
            }
        }
        for port in 0..self.ports.len() {
            let mut open = self.open_channels(port);
            let sole = open.next().filter(|_| open.next().is_none());
            drop(open);
            self.ports[port].sole = sole;
            let periodic_channel = self.find_periodic_channel(port);
            self.ports[port].periodic_channel = periodic_channel;
            if let (Some(channel), Queue::Classes(queue)) = (periodic_channel, &mut self.ports[port].queue) {
                let pace = self.channels[port][channel].front().pace;
                queue.set_periodic_class(channel, pace);
            }
        }
    }

    /// Finds the ports that wait for each other in a cycle.
    pub(super) fn find_rings(&mut self) {
        let upstream: Vec<&[usize]> = self.ports.iter().map(|port| port.upstream.as_slice()).collect();
        self.rings = find_rings(&upstream);
        for (index, ring) in self.rings.iter().enumerate() {
            ring.ports().for_each(|port| self.ports[port].ring = Some(index));
        }
    }

    /// Returns the channels of a port whose cells do not all come from generators, and so are not known in advance.
    fn open_channels(&self, port: usize) -> impl Iterator<Item = usize> {
        self.channels[port].iter().enumerate().filter_map(move |(index, channel)| {
            let known = channel.is_generated()
                || self.origins[port][index].is_some_and(|before| self.ports[before].foreseeable);
            (!known).then_some(index)
        })
    }

    /// Returns the channel of the generator that alone has priority class 0 at a port, if its spacing is so wide that none of its cells is ever lost.
    fn find_periodic_channel(&self, port: usize) -> Option<usize> {
        let first_class: Vec<_> = self.next_hops[port]
            .iter()
            .filter(|next_hop| self.ports[port].rules[next_hop.vc as usize].class == 0)
            .collect();
        let [only] = first_class.as_slice() else { return None };
        let switch = self.node_of(port).checked_sub(self.topology.hosts)?;
        let Some((_, Switch::Atm(switch))) = self.testbed.switches.get_index(switch) else { return None };
        if self.ports[port].rules[only.vc as usize].policer.is_some() {
            return None;
        }
        let slot = self.slots[port].after(1);
        let mut channels = self.channels[port].iter();
        let place = channels.position(|channel| {
            channel.is_even()
                && channel.generated_pace() > slot
                && channel.head() != u64::MAX
                && channel.front().vc == only.vc
        })?;
        // Cells that are drawn but never queued bypass discard policy and thresholds; therefore neither may have an effect on them, nor they on it.
        let unseen =
            self.cell_admission(port, switch, 0).can_skip_admission(&self.channels[port][place].front());
        (unseen && self.flows_on(only.vc).count() == 1 && !self.carries_keepalives(only.vc)).then_some(place)
    }
}
