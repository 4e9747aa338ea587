//! The simulated network as the driver's [`Network`].

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use engpass_model::queue::Ecn;
use engpass_model::source::Traffic;
use engpass_model::wire::Framing;
use engpass_simulate::SimError;
use engpass_simulate::injection::{DeliveryReport, InjectedNetwork, Packet};
use engpass_testbed::topology::{Line, NodeKind};
use engpass_testbed::{Point, Topology};
use serde_json::{Value, json};

use super::capture::{CaptureConfig, Capturing};
use super::error::EmulateError;
use super::network::{DeliveryStatus, Group, Input, Network, Output, Way};
use super::routers::Routers;

/// The simulated network of a point of a testbed.
pub(super) struct Model {
    network: InjectedNetwork,
    /// Paths to one host each, followed by the paths to groups.
    ways: Vec<Way>,
    single: u32,
    /// Capacity of each line in bit/s, as its counters count bits, by the names of link and transmitter.
    rates: BTreeMap<(String, String), u64>,
    /// Drop locations and causes as text, by their number.
    places: BTreeMap<u32, String>,
    /// Scratch buffer: delivery reports of the current call.
    reports: Vec<DeliveryReport>,
    capturing: Option<Capturing>,
    /// True if anything begins with the events of the testbed: the events themselves, or the expiry of routers' ARP entries.
    has_events: bool,
}

impl Model {
    /// Builds the network. Hosts in `segments` also get a path to all hosts on their segment.
    pub(super) fn new(point: &Point, seed: u64, segments: &[usize]) -> Result<Self, EmulateError> {
        let mut network =
            InjectedNetwork::new(&point.testbed, &point.topology, seed).map_err(|error| match error {
                SimError::Unsupported(what) => EmulateError::Unsupported(what),
                SimError::Interrupted => EmulateError::Interrupted,
                SimError::Ledger(what) => EmulateError::Unsupported(what),
            })?;
        let hops: BTreeMap<(usize, usize), u8> = (point.topology.between_hosts(&point.testbed).iter())
            .map(|flow| {
                // Routers inside a tunnel do not decrement the packet's TTL. Therefore only the node at the end of each path segment counts.
                let nodes = flow.legs.iter().map(|leg| point.topology.last_hop(*leg).to);
                ((flow.from, flow.to), routers(&point.topology, nodes))
            })
            .collect();
        let ways = network.ways().iter().map(|way| Way {
            from: way.from,
            to: way.to,
            name: way.name.clone(),
            mtu: u32::try_from(way.mtu).unwrap_or(u32::MAX),
            longest: u32::try_from(way.first_mtu).unwrap_or(u32::MAX),
            hops: hops.get(&(way.from, way.to)).copied().unwrap_or(0),
            group: None,
        });
        let mut ways: Vec<Way> = ways.collect();
        let single = ways.len() as u32;
        ways.extend(groups(point, &mut network, &ways, segments));
        let mut rates = BTreeMap::new();
        for link in &point.topology.links {
            for (line, from) in link.lines.iter().zip(link.ends) {
                rates.insert((link.name.clone(), point.topology.nodes[from].clone()), most(line));
            }
        }
        let (places, reports) = (BTreeMap::new(), Vec::new());
        let has_events = !point.testbed.events.is_empty() || !point.topology.arp.is_empty();
        Ok(Self { network, ways, single, rates, places, reports, capturing: None, has_events })
    }
}

/// Returns the capacity of a line in bit/s, counted as in [`LineStats::bits`](engpass_simulate::injection::LineStats::bits): 424 bits
/// per cell, without the line's framing.
fn most(line: &Line) -> u64 {
    match line.framing {
        Framing::Cells { slot } => {
            let (ps, cells) = slot.ratio();
            (424 * 1_000_000_000_000 * u128::from(cells) / u128::from(ps)) as u64
        }
        Framing::Ethernet | Framing::Packets => line.rate,
    }
}

/// Returns the paths to the groups of multicast traffic, from every host with a path to a member; and the paths from each host in `segments` to all hosts that
/// no router separates from it.
fn groups(point: &Point, network: &mut InjectedNetwork, ways: &[Way], segments: &[usize]) -> Vec<Way> {
    let hosts: Vec<&String> = point.testbed.hosts.keys().collect();
    let place = |name: &String| hosts.iter().position(|host| *host == name);
    let mut members: BTreeMap<IpAddr, BTreeSet<usize>> = BTreeMap::new();
    for traffic in point.testbed.traffic.values() {
        if let Traffic::Multicast(traffic) = traffic {
            members.entry(traffic.group.0).or_default().extend(traffic.to.iter().filter_map(place));
        }
    }
    let mut wanted: Vec<(usize, Option<IpAddr>, Vec<usize>)> = Vec::new();
    for from in 0..hosts.len() {
        for (address, members) in &members {
            wanted.push((from, Some(*address), members.iter().copied().collect()));
        }
        if segments.contains(&from) {
            let near = ways.iter().filter(|way| way.from == from && way.hops == 0).map(|way| way.to);
            wanted.push((from, None, near.collect()));
        }
    }
    let mut found = Vec::new();
    for (from, address, members) in wanted {
        if !ways.iter().any(|way| way.from == from && members.contains(&way.to)) {
            // No member can be reached from this host.
            continue;
        }
        let group = network.group(from, &members);
        assert_eq!(group as usize, found.len(), "groups are numbered in order of creation");
        let reached = network.members(group);
        let mtu = reached.iter().map(|way| ways[*way as usize].mtu).min().unwrap_or(0);
        let to = address.map_or_else(|| "its segment".to_owned(), |address| address.to_string());
        let name = format!("{} to {to}", hosts[from]);
        let group = Group { address, members: reached.len() as u32 };
        // Routers do not fragment packets to a group.
        found.push(Way { from, to: from, name, mtu, longest: mtu, hops: 0, group: Some(group) });
    }
    found
}

impl Model {
    /// Starts the captures, before any packet is injected.
    ///
    /// # Errors
    /// Those of [`Capturing::begin`].
    pub(super) fn capture(
        &mut self,
        config: &CaptureConfig,
        about: &str,
        routers: &Routers,
    ) -> Result<(), EmulateError> {
        self.capturing = Capturing::begin(config, &mut self.network, about, routers)?;
        Ok(())
    }

    /// Returns the drop locations and causes that were reported so far, as text.
    #[cfg(test)]
    pub(super) fn words(&self) -> impl Iterator<Item = String> {
        self.places.values().cloned()
    }

    /// Ends the captures and returns their counts. No packet may be injected afterwards.
    pub(super) fn end_capture(&mut self) -> Option<Value> {
        let capturing = self.capturing.take()?;
        Some(capturing.end(&mut self.network))
    }
}

fn routers(topology: &Topology, nodes: impl Iterator<Item = usize>) -> u8 {
    let count = nodes.filter(|node| matches!(topology.kind(*node), NodeKind::Router(_))).count();
    u8::try_from(count).unwrap_or(u8::MAX)
}

/// Hashes a text with FNV-1a. The number of a drop location is therefore the same in every run.
fn number(words: &str) -> u32 {
    words.bytes().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

impl Network for Model {
    fn ways(&self) -> &[Way] {
        &self.ways
    }

    #[inline]
    fn inject(&mut self, input: Input) {
        self.inject_identical(input, 1);
    }

    #[inline]
    fn inject_identical(&mut self, input: Input, count: u32) {
        let ecn = match input.class & 0b11 {
            0 => Ecn::NotCapable,
            0b11 => Ecn::Marked,
            _ => Ecn::Capable,
        };
        let packet = Packet {
            bytes: input.bytes,
            header: input.header.into(),
            ecn,
            priority: input.class >> 5,
            ttl: input.ttl,
            transport: input.transport,
            whole: input.whole,
            errors: input.errors,
            token: input.token,
        };
        let at = match input.way.checked_sub(self.single) {
            None => self.network.inject_identical(input.at, input.way, packet, count),
            Some(group) => {
                let members = self.network.members(group).len();
                let mut one =
                    |token| self.network.inject_group(input.at, group, packet, &vec![token; members]);
                let tokens = (0..u64::from(count)).map(|place| input.token.wrapping_add(place));
                tokens.map(&mut one).fold(input.at, u64::max)
            }
        };
        assert_eq!(at, input.at, "the driver is never behind the network");
    }

    fn begin_events(&mut self, at: u64) -> bool {
        if self.has_events {
            let begun = self.network.begin_events(at);
            assert_eq!(begun, at, "the driver is never behind the network");
        }
        self.has_events
    }

    fn captures(&self) -> bool {
        self.capturing.as_ref().is_some_and(Capturing::goes_on)
    }

    fn keep(&mut self, token: u64, bytes: Vec<u8>, fates: u32) {
        if let Some(capturing) = &mut self.capturing {
            capturing.keep(token, bytes, fates);
        }
    }

    #[inline]
    fn backlog(&self, host: usize) -> usize {
        self.network.backlog(host)
    }

    #[inline]
    fn run_until(&mut self, at: u64, out: &mut impl FnMut(Output)) {
        let reports = &mut self.reports;
        let captures = self.capturing.is_some();
        self.network.run_until(at, &mut |output| match output {
            // A drop location must be looked up in the network, which is not possible within this callback. From the first such report on, all reports wait, so
            // that their order stays.
            DeliveryReport::Delivered { at, way, token, ce, routers: hops }
                if reports.is_empty() && !captures =>
            {
                out(Output { at, way, token, fate: DeliveryStatus::Delivered { ce, hops } });
            }
            _ => reports.push(output),
        });
        self.hand_out(out);
        if let Some(capturing) = &mut self.capturing {
            capturing.reached(at, &mut self.network);
        }
    }

    #[inline]
    fn next_wake(&mut self) -> Option<u64> {
        self.network.next_wake()
    }

    fn place(&self, place: u32) -> String {
        let known = self.places.get(&place).cloned();
        known.unwrap_or_else(|| format!("place {place:08x}"))
    }

    fn router(&self, place: u16) -> String {
        let topology = self.network.topology();
        let node = topology.hosts + topology.switches + usize::from(place);
        // A log may name any router.
        topology.nodes.get(node).cloned().unwrap_or_else(|| format!("router {place}"))
    }

    fn seen(&mut self) -> Value {
        let lines = self.network.seen().into_iter().map(|line| {
            let key = (line.link, line.from);
            let rate = self.rates.get(&key).copied();
            json!({
                "link": key.0,
                "from": key.1,
                "to": line.to,
                "rate_bit_per_s": rate,
                "bits": line.bits,
                "sent": line.sent,
                "lost": line.lost,
                "down": line.down,
                "queue": line.queue,
                "queue_unit": line.unit,
            })
        });
        lines.collect()
    }

    fn begin_window(&mut self, at: u64, out: &mut impl FnMut(Output)) {
        let reports = &mut self.reports;
        self.network.begin_window(at, &mut |output| reports.push(output));
        self.hand_out(out);
    }

    fn end_window(&mut self, at: u64, out: &mut impl FnMut(Output)) -> Result<Value, String> {
        let reports = &mut self.reports;
        let outcome = self.network.end_window(at, &mut |output| reports.push(output));
        self.hand_out(out);
        match outcome {
            Ok(outcome) => Ok(serde_json::to_value(outcome.stored()).expect("an outcome serializes to JSON")),
            Err(SimError::Ledger(what) | SimError::Unsupported(what)) => Err(what),
            Err(SimError::Interrupted) => Err("it was interrupted".to_owned()),
        }
    }
}

impl Model {
    /// Passes on the delivery reports that were collected, with drop locations as numbers.
    #[inline]
    fn hand_out(&mut self, out: &mut impl FnMut(Output)) {
        let Self { network, reports, places, capturing, .. } = self;
        if let Some(capturing) = capturing {
            reports.iter().for_each(|output| capturing.ended(output));
        }
        for output in reports.drain(..) {
            out(match output {
                DeliveryReport::Delivered { at, way, token, ce, routers: hops } => {
                    Output { at, way, token, fate: DeliveryStatus::Delivered { ce, hops } }
                }
                DeliveryReport::Lost { at, lost_at, way, token, place, message } => {
                    let (place, cause) = network.place(place);
                    let words = format!("{place}, {cause}");
                    let place = number(&words);
                    places.entry(place).or_insert(words);
                    Output { at, way, token, fate: DeliveryStatus::Lost { lost_at, place, message } }
                }
                DeliveryReport::Message { at, way, token, said, routers: hops } => {
                    Output { at, way, token, fate: DeliveryStatus::Message { said, hops } }
                }
                DeliveryReport::MessageLost { at, way, token } => {
                    Output { at, way, token, fate: DeliveryStatus::MessageLost }
                }
            });
        }
    }
}
