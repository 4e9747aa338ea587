//! Random networks of frame links and of circuits that begin or end at routers: paths use both in series.
//!
//! Two or three routers are attached to a row of ATM switches, or joined by ATM links. Hosts are at routers, on Ethernet, and at switches or routers, on ATM.
//! Circuits join the routers in a row; others may run in parallel, or reach a host on ATM. The first two routers may also be joined by frame links with as many
//! hops as their circuit, so that a policy chooses between both.

use engpass_model::circuit::Circuit;
use engpass_model::link::{LineRate, Link};
use engpass_model::router::Router;
use engpass_model::source::Traffic;
use engpass_model::switch::EthernetSwitch;
use engpass_model::unit::Rate;
use engpass_model::wire::Medium;
use engpass_testbed::Run;
use proptest::collection::vec;
use proptest::option::weighted;
use proptest::prelude::*;
use proptest::sample::select;

use super::mesh::{EcmpDraw, policy, policy_of};
use super::{
    Drawn, Duration, IndexMap, LinkDraw, NodeDraw, Parts, SECOND, Switch, Testbed, assemble, frame_link,
    link, node, turn, uneven, way,
};
use crate::networks::{CircuitDraw, GeneratorDraw, SwitchDraw, UdpDraw, tcp, udp};

/// Maximum number of cells per run on all lines on which circuits begin.
const AFFORDABLE_CELLS: u64 = 7_000;
/// Maximum number of bytes per run on the frame lines of all hosts.
const AFFORDABLE_BYTES: u64 = 350_000;

/// The drawn values of a network, without those of the traffic.
#[derive(Clone, Debug)]
struct Joined {
    /// ATM switches in a row.
    switches: Vec<SwitchDraw>,
    routers: Vec<(NodeDraw, EcmpDraw)>,
    /// The routers of hosts on Ethernet, modulo their number.
    on_frames: Vec<usize>,
    /// The switches, or routers without switches, of hosts on ATM, modulo their number.
    on_cells: Vec<usize>,
    /// Frame links join the first two routers, as many as their circuit has.
    beside: bool,
    cell_links: Vec<crate::networks::LinkDraw>,
    frame_links: Vec<LinkDraw>,
    /// Circuits of the row of routers and of hosts on ATM, followed by others.
    circuits: Vec<CircuitDraw>,
    /// Number of the others.
    others: usize,
    generators: Vec<GeneratorDraw>,
    /// Links of one kind are identical; those of cells have a slot of whole picoseconds.
    alike: (bool, bool),
    /// Rotation of links and circuits in the file.
    turned: (usize, usize),
}

impl Joined {
    fn router(&self, index: usize) -> String {
        format!("r{}", index % self.routers.len())
    }

    /// Returns the name of a host on ATM; their numbers follow those of the others.
    fn cell_host(&self, index: usize) -> String {
        format!("h{}", self.on_frames.len() + index)
    }

    fn hosts(&self) -> usize {
        self.on_frames.len() + self.on_cells.len()
    }

    /// Returns the switch of a router or of a host on ATM.
    fn switch(&self, at: usize) -> Option<String> {
        (!self.switches.is_empty()).then(|| format!("s{}", at % self.switches.len()))
    }

    /// Returns the ends of the ATM links.
    fn cell_ends(&self) -> Vec<[String; 2]> {
        let mut ends: Vec<[String; 2]> =
            (1..self.switches.len()).map(|s| [format!("s{}", s - 1), format!("s{s}")]).collect();
        for router in 0..self.routers.len() {
            match self.switch(router) {
                Some(switch) => ends.push([self.router(router), switch]),
                None if router > 0 => ends.push([self.router(router - 1), self.router(router)]),
                None => {}
            }
        }
        for (host, at) in self.on_cells.iter().enumerate() {
            ends.push([self.cell_host(host), self.switch(*at).unwrap_or_else(|| self.router(*at))]);
        }
        ends
    }

    /// Returns the ends of the frame links.
    fn frame_ends(&self) -> Vec<[String; 2]> {
        let at_routers = self.on_frames.iter().enumerate();
        let mut ends: Vec<[String; 2]> =
            at_routers.map(|(host, at)| [format!("h{host}"), self.router(*at)]).collect();
        if self.beside {
            let between = self.between();
            let nodes: Vec<String> = [vec![self.router(0)], between, vec![self.router(1)]].concat();
            ends.extend(nodes.windows(2).map(|pair| [pair[0].clone(), pair[1].clone()]));
        }
        ends
    }

    /// Returns the Ethernet switches parallel to the circuit of the first two routers: as many as the circuit has ATM switches.
    fn between(&self) -> Vec<String> {
        let switches = self.switches.len();
        let on_the_way = if switches == 0 { 0 } else { (1 % switches) + 1 };
        (0..if self.beside { on_the_way } else { 0 }).map(|node| format!("se{node}")).collect()
    }

    fn links(&self) -> IndexMap<String, Link> {
        let (same, round) = self.alike;
        let cells = self.cell_ends().into_iter().enumerate().map(|(i, mut ends)| {
            let own = &self.cell_links[i];
            let draw = if same { &self.cell_links[0] } else { own };
            if own.turned {
                ends.reverse();
            }
            let (medium, rate) = match round {
                true => (Medium::Atm, LineRate::Both(Rate(assemble::ROUND_RATE))),
                false => (draw.medium, assemble::rate(draw.rate.0, draw.rate.1)),
            };
            (format!("a{i}"), assemble::cell_link(ends, medium, rate, draw.delay))
        });
        let frames = self.frame_ends().into_iter().enumerate().map(|(i, ends)| {
            let own = &self.frame_links[i];
            let draw = if same { &self.frame_links[0] } else { own };
            (format!("l{i}"), frame_link(draw, own, self.frame_links[0].mtu, ends))
        });
        turn(cells.chain(frames).collect(), self.turned.0)
    }

    /// Returns the ATM link of a node; only routers joined by ATM links have several.
    fn first<'a>(links: &'a IndexMap<String, Link>, [from, to]: &[String; 2]) -> &'a Link {
        let of_cells = || links.values().filter(|link| link.medium.is_atm() && link.ends.contains(from));
        let direct = of_cells().find(|link| link.ends.contains(to));
        direct.or_else(|| of_cells().next()).expect("a circuit begins on an ATM link")
    }

    fn circuits(&self, links: &IndexMap<String, Link>) -> IndexMap<String, Circuit> {
        let switched = !self.switches.is_empty();
        let row = (1..self.routers.len()).map(|router| [self.router(router - 1), self.router(router)]);
        let hosts = self.on_cells.iter().enumerate().map(|(host, at)| {
            // With switches, any router is possible.
            [self.cell_host(host), self.router(*at)]
        });
        let mut ends: Vec<[String; 2]> = row.chain(hosts).collect();
        let first = ends.len();
        for draw in self.circuits[first..].iter().take(self.others) {
            let (one, other) = draw.ends;
            // In parallel to an existing circuit; with switches, between any two routers, or a host and a router.
            let any = || {
                let to = self.router(one + 1 + other % (self.routers.len() - 1));
                match self.on_cells.len() {
                    0 => [self.router(one), to],
                    hosts if other % 3 == 0 => [self.cell_host(one % hosts), to],
                    _ => [self.router(one), to],
                }
            };
            let beside = ends[one % ends.len()].clone();
            ends.push(if switched && other % 2 == 1 { any() } else { beside });
        }
        let circuit = |(i, mut ends): (usize, [String; 2])| {
            let draw = &self.circuits[i];
            if draw.ends.1 % 2 == 1 {
                ends.reverse();
            }
            (format!("c{i}"), assemble::circuit(draw, ends.clone(), Self::first(links, &ends), switched))
        };
        turn(ends.into_iter().enumerate().map(circuit).collect(), self.turned.1)
    }

    /// Returns generators between hosts on ATM, if switches join these.
    fn generators(&self, links: &IndexMap<String, Link>, run: u64) -> IndexMap<String, Traffic> {
        if self.switches.is_empty() || self.on_cells.len() < 2 {
            return IndexMap::new();
        }
        let generator = |(i, draw): (usize, &GeneratorDraw)| {
            let hosts = self.on_cells.len();
            let [from, to] = [draw.ends.0 % hosts, (draw.ends.0 + 1 + draw.ends.1 % (hosts - 1)) % hosts];
            let ends = [self.cell_host(from), self.cell_host(to)];
            let first = Self::first(links, &ends);
            let times = assemble::instants(draw.times, run);
            (format!("g{i}"), assemble::generator(draw, (ends, None), first, times))
        };
        self.generators.iter().enumerate().map(generator).collect()
    }

    /// Names a circuit between the first two routers in some traffic between the first two hosts, if these are at those routers.
    fn name_circuits(
        &self,
        parts: &Parts,
        circuits: &IndexMap<String, Circuit>,
        traffic: &mut IndexMap<String, Traffic>,
    ) {
        let mut at: Vec<_> = self.on_frames.iter().take(2).map(|at| at % self.routers.len()).collect();
        at.sort_unstable();
        if at != [0, 1] {
            return;
        }
        let first = |end: &String| *end == self.router(0) || *end == self.router(1);
        let joins = |(_, circuit): &(&String, &Circuit)| first(&circuit.from) && first(&circuit.to);
        let between: Vec<&String> = circuits.iter().filter(joins).map(|(name, _)| name).collect();
        let first_two = |(from, to): (&str, &str)| from < "h2" && to < "h2";
        let udp = parts.udp.iter().enumerate().filter(|(_, (draw, _))| draw.named && draw.times.0.is_some());
        let udp = udp.map(|(i, (draw, _))| (format!("u{i}"), draw.circuit.0));
        let tcp = parts.tcp.iter().enumerate().filter(|(_, (draw, _))| !draw.circuit.1);
        let tcp = tcp.map(|(i, (draw, _))| (format!("t{i}"), draw.circuit.0));
        for (name, place) in udp.chain(tcp) {
            let of_first = first_two(traffic[&name].ends());
            let named = Some(between[place % between.len()].clone()).filter(|_| of_first);
            match &mut traffic[&name] {
                Traffic::UdpStream(config) => config.circuit = named,
                Traffic::TcpStream(config) => config.circuit = named,
                _ => unreachable!("only streams have these names"),
            }
        }
    }

    /// Returns the longest affordable duration of a run, in picoseconds.
    fn affordable(&self, links: &IndexMap<String, Link>) -> u64 {
        let (mut cells, mut bits) = (0, 0);
        for link in links.values() {
            let starts = |end: &&String| end.starts_with('r') || end.starts_with('h');
            match link.medium.is_atm() {
                true => {
                    let here = link.ends.iter().filter(starts).count() as u64;
                    cells += here * assemble::cell_bits(link, assemble::mean_rate(link)) / 424;
                }
                false if link.ends.iter().any(|end| end.starts_with('h')) => {
                    bits += assemble::mean_rate(link);
                }
                false => {}
            }
        }
        let by_cells = AFFORDABLE_CELLS * (SECOND / 1000) / (cells / 1000 + 1);
        let by_bits = u128::from(AFFORDABLE_BYTES) * 8 * u128::from(SECOND) / u128::from(bits.max(1));
        by_cells.min(by_bits as u64).min(SECOND / 2)
    }

    fn testbed(self, parts: Parts) -> Testbed {
        let links = self.links();
        let circuits = self.circuits(&links);
        let (share, warmup) = parts.run;
        let duration = self.affordable(&links) / 1000 * share;
        let atm = self.switches.iter().enumerate().map(|(i, draw)| (format!("s{i}"), assemble::switch(draw)));
        let ethernet = self.between().into_iter().map(|name| {
            let NodeDraw { time, queue, .. } = self.routers[0].0.clone();
            (name, Switch::Ethernet(EthernetSwitch { latency: Duration(time), queue }))
        });
        let routers = self.routers.iter().enumerate().map(|(i, (node, ecmp))| {
            let name = self.router(i);
            let own = links.iter().filter(|(_, link)| link.ends.contains(&name)).map(|(name, _)| name);
            let ecmp = policy_of(ecmp, &own.collect::<Vec<_>>());
            (
                name,
                Router {
                    per_packet: Duration(node.time),
                    input_queue: node.input,
                    queue: node.queue.clone(),
                    ecmp,
                    ..Router::default()
                },
            )
        });
        let routers = routers.collect();
        let mut packets = parts.traffic(self.hosts(), duration);
        self.name_circuits(&parts, &circuits, &mut packets);
        let traffic = packets.into_iter().chain(self.generators(&links, duration)).collect();
        let hosts = parts.hosts.iter().take(self.hosts()).enumerate();
        Testbed {
            name: "random".into(),
            description: None,
            hosts: hosts.map(|(i, draw)| (format!("h{i}"), assemble::host(draw))).collect(),
            switches: atm.chain(ethernet).collect(),
            routers,
            traffic: turn(traffic, parts.order.1),
            events: IndexMap::new(),
            run: Run {
                duration: Duration(duration),
                warmup: warmup.map(|part| Duration(duration / 1000 * part)),
                ..Run::default()
            },
            links,
            circuits,
            tunnels: IndexMap::new(),
            bonds: IndexMap::new(),
        }
    }
}

/// Returns an ATM link with a rate at which a run has some hundred cells.
fn cell_link() -> impl Strategy<Value = crate::networks::LinkDraw> {
    use Medium::{Atm, E1, E3, Oc3c, Sts1, Taxi100, Utp25};
    let rate = || (1_000u64..=60_000).prop_map(|kbit_s| kbit_s * 1_000);
    let medium =
        prop_oneof![4 => Just(Atm), 4 => select(vec![E3, Utp25, Sts1]), 1 => select(vec![E1, Taxi100, Oc3c])];
    let link = (medium, crate::networks::delay(), any::<bool>(), (rate(), weighted(0.4, rate())));
    link.prop_map(|(medium, delay, turned, rate)| {
        let delay = delay.min(200_000_000);
        crate::networks::LinkDraw { medium, delay, turned, rate }
    })
}

/// Returns a switch, often with room for more than a packet.
fn switch() -> impl Strategy<Value = SwitchDraw> {
    let more = prop_oneof![1 => Just(0u64), 2 => 60u64..=600];
    // Congestion is usually signalled early.
    let efci = weighted(0.4, (0u64..=300, any::<bool>()));
    (crate::networks::switch(), more, efci).prop_map(|(draw, more, efci)| {
        let buffer = draw.buffer + more;
        SwitchDraw { buffer, efci: efci.or(draw.efci), ..draw }
    })
}

/// Returns a circuit. Most adaptive shapers are fast enough for feedback within the run.
fn circuit() -> impl Strategy<Value = CircuitDraw> {
    // A policer that drops a cell now and then, perhaps the last one of a packet.
    let lenient = ((3_000u64..=9_900, 0u8..8), 10_000_000u64..=1_000_000_000, Just(false));
    let more = (weighted(0.2, crate::networks::adaptive()), weighted(0.3, lenient));
    (crate::networks::circuit(), more).prop_map(|(draw, (adaptive, lenient))| {
        let policing = draw.policing.filter(|((parts, _), ..)| *parts > 500).or(lenient);
        let shaping = draw.shaping.map(|(parts, how)| (parts.max(300), how));
        CircuitDraw { adaptive: draw.adaptive.or(adaptive), policing, shaping, ..draw }
    })
}

/// Returns a random network whose TCP knows the path MTU.
pub(super) fn joined() -> impl Strategy<Value = Drawn> {
    let nodes = (
        prop_oneof![1 => vec(switch(), 0), 2 => vec(switch(), 1), 1 => vec(switch(), 2)],
        vec((node(), policy()), 2..=3),
        // The first two hosts are usually at different routers.
        (vec(0usize..3, 1..=3), prop::bool::weighted(0.7)).prop_map(|(mut at, apart)| {
            if apart {
                at = (0..2).chain(at.into_iter().skip(2)).collect();
            }
            at
        }),
        prop_oneof![2 => vec(0usize..3, 0), 3 => vec(0usize..3, 1..=2)],
        prop::bool::weighted(0.6),
    );
    let links = (
        vec(cell_link(), 8),
        vec(link(), 8),
        (prop::bool::weighted(0.4), prop::bool::weighted(0.3)),
        (0usize..12, 0usize..6),
    );
    let circuits = (
        vec(circuit(), 8),
        prop_oneof![1 => 0usize..=3, 1 => 2usize..=3],
        vec(crate::networks::generator(), 0..=2),
    );
    // Many datagrams are fragmented.
    let datagrams = (udp(), prop::bool::weighted(0.3)).prop_map(|(draw, longer)| UdpDraw {
        message: draw.message.max(if longer { 2_500 } else { 0 }),
        ..draw
    });
    let sent =
        (vec((datagrams, way()), 0..=3), vec((uneven(), way()), 0..=2), vec((tcp::stream(), way()), 0..=2));
    let sent =
        sent.prop_filter("something is sent", |(udp, uneven, tcp)| udp.len() + uneven.len() + tcp.len() > 0);
    let run = ((200u64..=1000, weighted(0.25, 0u64..=900)), 0usize..8);
    (nodes, links, circuits, vec(crate::networks::host(), 5), sent, run).prop_map(
        |(nodes, links, circuits, hosts, (udp, uneven, tcp), (run, order))| {
            let (switches, routers, mut on_frames, on_cells, beside) = nodes;
            let (cell_links, frame_links, alike, turned) = links;
            let (circuits, others, generators) = circuits;
            // There are at least two hosts.
            if on_frames.len() + on_cells.len() == 1 {
                on_frames.push(on_frames[0] + 1);
            }
            let drawn = Joined {
                switches,
                routers,
                on_frames,
                on_cells,
                beside,
                cell_links,
                frame_links,
                circuits,
                others,
                generators,
                alike: (alike.0, alike.0 && alike.1),
                turned,
            };
            let parts = Parts {
                ring: false,
                nodes: Vec::new(),
                at: Vec::new(),
                links: Vec::new(),
                order: (0, order, false),
                hosts,
                udp,
                uneven,
                tcp,
                run,
                mesh: None,
            };
            Drawn(drawn.testbed(parts))
        },
    )
}
