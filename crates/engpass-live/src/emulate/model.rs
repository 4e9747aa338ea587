//! The network of the model behind the driver's [`Network`].

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use engpass_model::queue::Ecn;
use engpass_model::source::Traffic;
use engpass_model::wire::Framing;
use engpass_network::simulate::SimError;
use engpass_network::simulate::outside::{InjectedNetwork, Output as Told, Packet};
use engpass_testbed::topology::{Line, NodeKind};
use engpass_testbed::{Point, Topology};
use serde_json::{Value, json};

use super::capture::{CaptureConfig, Capturing};
use super::error::EmulateError;
use super::network::{DeliveryStatus, Group, Input, Network, Output, Way};
use super::routers::Routers;

/// The network of a point of a testbed.
pub(super) struct Model {
    network: InjectedNetwork,
    /// Those to one host each, and behind them those to groups.
    ways: Vec<Way>,
    single: u32,
    /// The most that lines carry of what their books count, by the names of link and transmitter, in bit/s.
    rates: BTreeMap<(String, String), u64>,
    /// Words for places of losses, by the number that stands for them.
    places: BTreeMap<u32, String>,
    /// What was just told, kept for its memory.
    told: Vec<Told>,
    capturing: Option<Capturing>,
    /// Something begins with the events of the testbed: these, or what routers forget.
    has_events: bool,
}

impl Model {
    /// With ways to all on their segment for these hosts.
    pub(super) fn new(point: &Point, seed: u64, segments: &[usize]) -> Result<Self, EmulateError> {
        let mut network =
            InjectedNetwork::new(&point.testbed, &point.topology, seed).map_err(|error| match error {
                SimError::Unsupported(what) => EmulateError::Unsupported(what),
                SimError::Interrupted => EmulateError::Interrupted,
                SimError::Ledger(what) => EmulateError::Unsupported(what),
            })?;
        let hops: BTreeMap<(usize, usize), u8> = (point.topology.between_hosts(&point.testbed).iter())
            .map(|flow| {
                // In a tunnel routers take nothing of the time to live.
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
        let (places, told) = (BTreeMap::new(), Vec::new());
        let has_events = !point.testbed.events.is_empty() || !point.topology.arp.is_empty();
        Ok(Self { network, ways, single, rates, places, told, capturing: None, has_events })
    }
}

/// The most bits that a line carries in a second, counted as in [`LineStats::bits`](engpass_network::simulate::outside::LineSeen::bits): of
/// cells 424 each, without the framing of a line that has one.
fn most(line: &Line) -> u64 {
    match line.framing {
        Framing::Cells { slot } => {
            let (ps, cells) = slot.ratio();
            (424 * 1_000_000_000_000 * u128::from(cells) / u128::from(ps)) as u64
        }
        Framing::Ethernet | Framing::Packets => line.rate,
    }
}

/// Ways to the groups of declared traffic, from every host that has a way to a member, and from the hosts of `segments` to all that no router
/// parts from them.
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
            // Nobody is there who could hear it.
            continue;
        }
        let group = network.group(from, &members);
        assert_eq!(group as usize, found.len(), "groups are numbered as they come");
        let reached = network.members(group);
        let mtu = reached.iter().map(|way| ways[*way as usize].mtu).min().unwrap_or(0);
        let to = address.map_or_else(|| "its segment".to_owned(), |address| address.to_string());
        let name = format!("{} to {to}", hosts[from]);
        let group = Group { address, members: reached.len() as u32 };
        // No router cuts a packet to a group.
        found.push(Way { from, to: from, name, mtu, longest: mtu, hops: 0, group: Some(group) });
    }
    found
}

impl Model {
    /// Begin to capture, before anything is put in.
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

    /// Where and why packets were lost so far, in words.
    #[cfg(test)]
    pub(super) fn words(&self) -> impl Iterator<Item = String> {
        self.places.values().cloned()
    }

    /// Nothing more is put in: what was captured.
    pub(super) fn end_capture(&mut self) -> Option<Value> {
        let capturing = self.capturing.take()?;
        Some(capturing.end(&mut self.network))
    }
}

fn routers(topology: &Topology, nodes: impl Iterator<Item = usize>) -> u8 {
    let count = nodes.filter(|node| matches!(topology.kind(*node), NodeKind::Router(_))).count();
    u8::try_from(count).unwrap_or(u8::MAX)
}

/// A number for words that is the same everywhere: FNV-1a.
fn number(words: &str) -> u32 {
    words.bytes().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

impl Network for Model {
    fn ways(&self) -> &[Way] {
        &self.ways
    }

    #[inline]
    fn inject(&mut self, input: Input) {
        self.inject_alike(input, 1);
    }

    #[inline]
    fn inject_alike(&mut self, input: Input, count: u32) {
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
            None => self.network.inject_alike(input.at, input.way, packet, count),
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
        let told = &mut self.told;
        let captures = self.capturing.is_some();
        self.network.run_until(at, &mut |output| match output {
            // Places of losses have words, which only the network knows: from the first on all wait for those.
            Told::Delivered { at, way, token, ce, routers: hops } if told.is_empty() && !captures => {
                out(Output { at, way, token, fate: DeliveryStatus::Delivered { ce, hops } });
            }
            _ => told.push(output),
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
        // A log may name any.
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
        let told = &mut self.told;
        self.network.begin_window(at, &mut |output| told.push(output));
        self.hand_out(out);
    }

    fn end_window(&mut self, at: u64, out: &mut impl FnMut(Output)) -> Result<Value, String> {
        let told = &mut self.told;
        let outcome = self.network.end_window(at, &mut |output| told.push(output));
        self.hand_out(out);
        match outcome {
            Ok(outcome) => Ok(serde_json::to_value(outcome.stored()).expect("an outcome is plain data")),
            Err(SimError::Ledger(what) | SimError::Unsupported(what)) => Err(what),
            Err(SimError::Interrupted) => Err("it was interrupted".to_owned()),
        }
    }
}

impl Model {
    /// Hand on what was told, with places as numbers.
    #[inline]
    fn hand_out(&mut self, out: &mut impl FnMut(Output)) {
        let Self { network, told, places, capturing, .. } = self;
        if let Some(capturing) = capturing {
            told.iter().for_each(|output| capturing.ended(output));
        }
        for output in told.drain(..) {
            out(match output {
                Told::Delivered { at, way, token, ce, routers: hops } => {
                    Output { at, way, token, fate: DeliveryStatus::Delivered { ce, hops } }
                }
                Told::Lost { at, lost_at, way, token, place, message } => {
                    let (place, cause) = network.place(place);
                    let words = format!("{place}, {cause}");
                    let place = number(&words);
                    places.entry(place).or_insert(words);
                    Output { at, way, token, fate: DeliveryStatus::Lost { lost_at, place, message } }
                }
                Told::Message { at, way, token, said, routers: hops } => {
                    Output { at, way, token, fate: DeliveryStatus::Message { said, hops } }
                }
                Told::MessageLost { at, way, token } => {
                    Output { at, way, token, fate: DeliveryStatus::MessageLost }
                }
            });
        }
    }
}
