//! Ledgers of a measured point: the use of every link that has an agent at one of its ends.
//!
//! Agents count messages, and TCP counts segments. With the headers of the path these counts give parts of the line. Counters of interfaces reveal
//! undeclared traffic. A link without an agent at either end has no ledger, because nothing counted its traffic.

use engpass_ledger::Account;
use engpass_model::wire::Encapsulation;
use engpass_model::wire::layers::Wire;
use engpass_outcome::{BottleneckKind, Drop, FlowOutcome, LinkOutcome};
use engpass_testbed::Topology;
use engpass_testbed::topology::Hop;
use indexmap::IndexMap;

use crate::answer::{End, Hosts};
use crate::crossing::Crossing;
use crate::failure::Failure;
use crate::flow::Flow;
use crate::line::{ClosedLine, Line, Packets};
use crate::tcp::{Connections, post_segments};

/// Uncounted bytes per run that ARP and handshakes of data connections explain; more is undeclared traffic.
const QUIET_BYTES: u64 = 16_384;

/// The ledgers of a point while flows are posted.
pub(crate) struct Ledgers<'a> {
    topology: &'a Topology,
    hosts: &'a Hosts,
    /// The line of each transmitter, at twice the index of its link plus the index of its end; `None` without an agent at the link.
    lines: Vec<Option<Line>>,
}

/// The closed ledgers of a point, and the losses that an emulated network counted.
#[derive(Default)]
pub(crate) struct Kept {
    /// The line of each transmitter, in the order of [`Ledgers`].
    lines: Vec<Option<ClosedLine>>,
    /// Sentences about links without agents and lines above their rates.
    pub(crate) notes: Vec<String>,
    /// Length of the window in seconds; 0 if an emulated network keeps the ledgers.
    seconds: f64,
    /// Losses of the flows in an emulated network.
    pub(crate) drops: Vec<Drop>,
}

/// The use of a line on the path of a flow.
pub(crate) struct Usage<'a> {
    /// Name of the link.
    pub(crate) link: &'a str,
    /// Share of the capacity that is not idle.
    pub(crate) busy: f64,
    /// Share of the capacity that is payload delivered to all flows.
    pub(crate) delivered: f64,
    /// Rate of the line in bit/s; 0 if the length of the window is unknown.
    pub(crate) rate: f64,
}

/// Builds the ledgers of a point. `limits` are the outcomes of its flows in the engine `limit`, `window_ns` is the length of the window in nanoseconds.
pub(crate) fn ledgers(
    topology: &Topology,
    flows: &[Flow<'_>],
    hosts: &Hosts,
    limits: &IndexMap<String, FlowOutcome>,
    window_ns: u64,
) -> Result<Kept, Failure> {
    let line = |port: usize| {
        let link = &topology.links[port / 2];
        let seen = link.ends.iter().any(|end| hosts.contains_key(&topology.nodes[*end]));
        seen.then(|| Line::new(&wire(topology, port)))
    };
    let mut ledgers = Ledgers { topology, hosts, lines: (0..2 * topology.links.len()).map(line).collect() };
    for flow in flows {
        for receiver in 0..flow.receivers.len() {
            ledgers.post_way(flow, receiver, limits.get(flow.name))?;
        }
    }
    Ok(ledgers.close(window_ns))
}

/// Returns the format of the line of a transmitter. The encapsulation of packets in cells does not change its capacity and cells.
fn wire(topology: &Topology, port: usize) -> Wire {
    topology.links[port / 2].wire(port % 2, Encapsulation::default())
}

impl Ledgers<'_> {
    /// Posts a flow along its path to one receiver. Only the first and the last link get postings: hosts count there.
    fn post_way(
        &mut self,
        flow: &Flow<'_>,
        receiver: usize,
        limit: Option<&FlowOutcome>,
    ) -> Result<(), Failure> {
        let (topology, hosts) = (self.topology, self.hosts);
        let (way, host) = (&flow.ways[receiver], flow.receivers[receiver]);
        let (sent, got) = (flow.sent(hosts)?, flow.received(hosts, host)?);
        let bottleneck = limit.and_then(|limit| limit.bottleneck.as_ref());
        let limiting = bottleneck.filter(|limiting| limiting.kind == BottleneckKind::Link);
        let is_it = |hop: &Hop| {
            limiting.is_some_and(|limiting| limiting.name.as_ref() == Some(&topology.links[hop.link].name))
        };
        let last = way.hops.len() - 1;
        let bound = way.hops.iter().position(is_it).unwrap_or(way.hops.len());
        if !flow.kind.is_udp() && !sent.subflows().is_empty() && !got.subflows().is_empty() {
            self.post_subflows(flow, host, (sent, got), bound == 0, way.mtu(last));
            return Ok(());
        }
        for index in if last == 0 { vec![0] } else { vec![0, last] } {
            let hop = way.hops[index];
            let name = if index == 0 { flow.sender } else { host };
            let end = if index == 0 { sent } else { got };
            let near = hosts.get(name).expect("an end of the flow has an answer");
            let device = near.interface_at(end.local(), &topology.links[hop.link].name);
            let port = topology.port_of(&hop);
            let format = topology.links[hop.link].wire(port % 2, way.encapsulation(index));
            let [there, back] = self.both(port, &device);
            if flow.kind.is_udp() && index == 0 && last > 0 && receiver > 0 {
                continue; // Multicast datagrams leave the sender once: the first receiver posts them.
            }
            let at = Crossing {
                flow,
                sent,
                got,
                near,
                device,
                first: index == 0,
                last: index == last,
                packets: Packets { wire: format, mtu: way.mtu(index), six: is_six(sent.local()) },
                waits: flow.kind.waits(flow, sent, index > bound),
            };
            there.senders.push(at.waits.clone());
            flow.kind.post(&at, there, back);
        }
        Ok(())
    }

    /// Posts MPTCP subflows, each on the link whose interface has the address of the subflow.
    fn post_subflows(
        &mut self,
        flow: &Flow<'_>,
        receiver: &str,
        (sent, got): (&End, &End),
        first_limits: bool,
        mtu: u64,
    ) {
        let (topology, both) = (self.topology, flow.kind.is_answered());
        let mut posted = Vec::new();
        let sides = [
            (true, flow.sender, sent.subflows(), got.subflows()),
            (false, receiver, got.subflows(), sent.subflows()),
        ];
        for (first, host, near, far) in sides {
            let answer = &self.hosts[host];
            for (index, link) in topology.links.iter().enumerate() {
                let here: Vec<_> = near
                    .iter()
                    .copied()
                    .filter(|one| answer.interface_at(&one.local, "") == link.name)
                    .collect();
                let at = link.ends.iter().position(|end| topology.nodes[*end] == host);
                let (Some(end), false) = (at, here.is_empty() || posted.contains(&index)) else { continue };
                posted.push(index);
                let port = 2 * index + if first { end } else { 1 - end };
                let across: Vec<_> = far
                    .iter()
                    .copied()
                    .filter(|one| here.iter().any(|near| near.local == one.remote))
                    .collect();
                let pair = if first { [&here, &across] } else { [&across, &here] };
                let packets = Packets {
                    wire: wire(topology, port),
                    mtu: mtu.min(link.mtu),
                    six: is_six(&here[0].local),
                };
                let waits = flow.kind.waits(flow, sent, !first && first_limits);
                let [there, back] = self.both(port, &link.name);
                there.senders.push(waits);
                post_segments(&packets, pair.map(|one| Connections::over(one)), first, [there, back], both);
            }
        }
    }

    /// Returns the line of a transmitter, and the line in the opposite direction. Counters of this interface count both.
    fn both(&mut self, port: usize, device: &str) -> [&mut Line; 2] {
        let lines = self.lines.get_disjoint_mut([port, port ^ 1]).expect("a link has two lines");
        lines.map(|line| {
            let line = line.as_mut().expect("an agent is at an end of the link");
            line.device = Some(device.to_owned());
            line
        })
    }

    /// Closes all ledgers.
    fn close(self, window_ns: u64) -> Kept {
        let Self { topology, hosts, lines } = self;
        let mut notes = Vec::new();
        let close = |(port, line): (usize, Option<Line>)| {
            let link = &topology.links[port / 2];
            let [from, to] = [port % 2, 1 - port % 2].map(|end| topology.nodes[link.ends[end]].as_str());
            let mut line = line?;
            post_undeclared(&mut line, hosts, [from, to], window_ns);
            let framed = link.medium.frames_idle_time();
            Some(line.close([&link.name, from, to], (&wire(topology, port), framed), window_ns, &mut notes))
        };
        let lines: Vec<_> = lines.into_iter().enumerate().map(close).collect();
        let unseen = topology.links.iter().enumerate().filter(|(index, _)| lines[2 * index].is_none());
        let unseen: Vec<String> = unseen.map(|(_, link)| format!("`{}`", link.name)).collect();
        if !unseen.is_empty() {
            let links = if unseen.len() == 1 { "link" } else { "links" };
            notes.push(format!(
                "no agent runs at the ends of {links} {}: packets on it were not counted",
                unseen.join(", ")
            ));
        }
        Kept { lines, notes, seconds: window_ns as f64 / 1e9, drops: Vec::new() }
    }
}

/// Posts undeclared traffic: bytes that the interface counted beyond the declared ones, for the window.
fn post_undeclared(line: &mut Line, hosts: &Hosts, [from, to]: [&str; 2], window_ns: u64) {
    let Some(device) = &line.device else { return };
    let sends = hosts.contains_key(from);
    let host = &hosts[if sends { from } else { to }];
    let counted = host.grown.interface(device);
    let beyond = (if sends { counted.tx_bytes } else { counted.rx_bytes }) - line.own_bytes as i64;
    if host.lasted_ns > 0 && beyond > QUIET_BYTES.max(line.own_bytes / 200) as i64 {
        let share = (window_ns as f64 / host.lasted_ns as f64).min(1.0);
        line.post_bits(Account::UNDECLARED, ((beyond * 8) as f64 * share).round_ties_even() as u64);
    }
}

/// Returns true for the address and port of an IPv6 socket.
fn is_six(local: &str) -> bool {
    local.starts_with('[')
}

impl Kept {
    /// Returns the losses of an emulated network, which keeps its ledgers itself.
    pub(crate) fn of_model(drops: Vec<Drop>) -> Self {
        Self { drops, ..Self::default() }
    }

    /// Returns the lines with ledgers on the path of a flow to its first receiver, in order.
    pub(crate) fn usage<'t>(&self, topology: &'t Topology, flow: &Flow<'_>) -> Vec<Usage<'t>> {
        let of = |hop: &Hop| {
            let line = self.lines.get(topology.port_of(hop))?.as_ref()?;
            let (busy, delivered) = line.busy_and_delivered()?;
            Some(Usage {
                link: &topology.links[hop.link].name,
                busy,
                delivered,
                rate: line.rate(self.seconds),
            })
        };
        flow.ways[0].hops.iter().filter_map(of).collect()
    }

    /// Returns the place and cause that account for most losses of a flow; `None` without losses.
    pub(crate) fn worst_drop(&self, flow: &str) -> Option<&Drop> {
        let own = self.drops.iter().filter(|drop| drop.flow == flow && drop.datagrams > 0);
        own.reduce(|worst, drop| if drop.datagrams > worst.datagrams { drop } else { worst })
    }

    /// Returns the ledgers by link, as outcomes have them.
    pub(crate) fn links(self, topology: &Topology) -> IndexMap<String, LinkOutcome> {
        let mut lines = self.lines.into_iter();
        let mut found = IndexMap::new();
        for link in &topology.links {
            let pair = [lines.next().flatten(), lines.next().flatten()];
            if let [Some(one), Some(other)] = pair {
                found.insert(
                    link.name.clone(),
                    LinkOutcome { directions: vec![one.stored(), other.stored()] },
                );
            }
        }
        found
    }
}
