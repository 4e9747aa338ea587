//! Assembles drawn numbers into a valid testbed.

use engpass_model::circuit::Circuit;
use engpass_model::discard::Discard;
use engpass_model::host::{Cost, Host, Pauses};
use engpass_model::link::{DirectedRates, LineRate, Link};
use engpass_model::range_errors::RangeErrors;
use engpass_model::schedule::Schedule;
use engpass_model::shape::{Policing, PolicingAction};
use engpass_model::source::{Cbr, Live, OnOff, TcpStream, Traffic, UdpStream};
use engpass_model::switch::{AtmSwitch, Switch};
use engpass_model::time::SECOND;
use engpass_model::unit::{Basis, CellCount, Duration, FillLevel, FramedRate, Rate, Share, Size};
use engpass_model::wire::{Framing, Medium};
use engpass_testbed::{Run, Testbed};
use indexmap::IndexMap;
use serde_json::json;

use super::of_kind::of_kind;
use super::{
    CircuitDraw, GeneratorDraw, Graph, HostDraw, LevelDraw, LinkDraw, RateDraw, Shape, SwitchDraw, TcpDraw,
    TimesDraw, UdpDraw, tcp,
};

/// Maximum number of cells per run, over all hops.
const AFFORDABLE: u64 = 7_500;

/// A rate in bit/s with a slot of whole picoseconds.
pub(super) const ROUND_RATE: u64 = 42_400_000;
const ROUND_SLOT: u64 = 10_000_000;

/// Switches of a cycle.
const CYCLE: usize = 5;

/// All drawn values.
pub(super) struct Parts {
    pub(super) graph: Graph,
    pub(super) hosts: Vec<HostDraw>,
    pub(super) switches: Vec<SwitchDraw>,
    pub(super) circuits: Vec<CircuitDraw>,
    pub(super) udp: Vec<UdpDraw>,
    pub(super) tcp: Vec<TcpDraw>,
    pub(super) generators: Vec<GeneratorDraw>,
    pub(super) run: (usize, u64, Option<u64>),
}

/// Returns the names of two different hosts.
pub(super) fn two(ends: (usize, usize), hosts: usize) -> [String; 2] {
    let from = ends.0 % hosts;
    let to = (from + 1 + ends.1 % (hosts - 1)) % hosts;
    [format!("h{from}"), format!("h{to}")]
}

/// Returns the bits of cells per second on a line of this rate.
pub(super) fn cell_bits(link: &Link, line_rate: u64) -> u64 {
    let Framing::Cells { slot } = link.medium.framing(line_rate) else { unreachable!("all links are ATM") };
    let (num, den) = slot.ratio();
    u64::try_from(424 * u128::from(SECOND) * u128::from(den) / u128::from(num))
        .expect("the rate fits in 64 bits")
}

/// Returns a rate for both directions, or one for each.
pub(super) fn rate(both: u64, backward: Option<u64>) -> LineRate {
    match backward {
        None => LineRate::Both(Rate(both)),
        Some(backward) => LineRate::Each(DirectedRates { forward: Rate(both), backward: Rate(backward) }),
    }
}

/// Returns the mean of the line rates of a link, in bit/s.
pub(super) fn mean_rate(link: &Link) -> u64 {
    link.line_rates().expect("the link has a rate").iter().sum::<u64>() / 2
}

/// Returns one draw for every host of a cycle: the draws in turn, combined with the host.
fn all_round<T: Clone>(draws: &[T], with_host: impl Fn(T, usize) -> T) -> Vec<T> {
    draws.iter().cycle().take(CYCLE).cloned().enumerate().map(|(host, draw)| with_host(draw, host)).collect()
}

impl Parts {
    /// Removes all causes of irregular spacing, so that cells on identical links arrive at the same instants.
    pub(super) fn in_step(mut self) -> Self {
        self.graph.alike = true;
        for host in &mut self.hosts {
            host.send = [None; 3];
            host.segments = [[None; 3]; 2];
            host.pauses = None;
            (host.data.memory, host.data.io_bus) = (None, None);
        }
        let shaping = self.circuits[0].shaping;
        for circuit in &mut self.circuits {
            circuit.shaping = shaping;
        }
        if self.graph.links[0].delay.is_multiple_of(3) {
            self.round();
        }
        let rate = self.udp.first().and_then(|stream| stream.rate);
        for stream in &mut self.udp {
            stream.rate = rate;
            stream.times.0 = None;
        }
        self
    }

    /// Makes the slot of all links a whole number of picoseconds, and rates and tolerances of policers multiples of it: cells then arrive exactly at the limit
    /// of a policer.
    fn round(&mut self) {
        self.graph.links[0].medium = Medium::Atm;
        self.graph.round = true;
        for ((parts, way), tolerance, _) in
            self.circuits.iter_mut().filter_map(|circuit| circuit.policing.as_mut())
        {
            // A share: one cell every one, two or four slots.
            (*parts, *way) = (10_000 >> (*parts % 3), 7);
            *tolerance = *tolerance % 7 * ROUND_SLOT;
        }
    }

    /// Gives a cycle a circuit with a stream from every host to the host two switches further on.
    fn close_cycle(&mut self) {
        if !matches!(self.graph.shape, Shape::Cycle(_)) {
            return;
        }
        self.circuits = all_round(&self.circuits, |draw, host| CircuitDraw { ends: (host, 1), ..draw });
        if self.udp.is_empty() {
            self.tcp = all_round(&self.tcp, |draw, host| TcpDraw { circuit: (host, true), ..draw });
        } else {
            self.udp = all_round(&self.udp, |draw, host| UdpDraw { circuit: (host, true), ..draw });
        }
    }

    pub(super) fn testbed(mut self) -> Testbed {
        self.close_cycle();
        let hosts = self.graph.hosts();
        let links = self.links(hosts);
        // The two links of a host are identical.
        let first = |host: &str| links.values().find(|link| link.ends.iter().any(|end| end == host));
        let first = |host: &str| first(host).expect("the host has a link");
        let circuits = self.circuits(hosts, &first);
        let rates: u64 = (0..hosts)
            .map(|host| first(&format!("h{host}")))
            .map(|link| cell_bits(link, mean_rate(link)) / 424)
            .sum();
        let (turned, duration, warmup) = self.run;
        let affordable = AFFORDABLE * (SECOND / 1000) / (rates / 1000 + 1);
        let duration = (affordable.min(SECOND / 20) / 1000 * duration).max(SECOND / 5_000);
        let traffic = self.traffic(hosts, &circuits, &first, duration);
        let warmup = warmup.map(|part| Duration(duration / 1000 * part));
        let switches = self.switches.iter().take(self.graph.switches()).enumerate();
        Testbed {
            name: "random".into(),
            description: None,
            hosts: self
                .hosts
                .iter()
                .take(hosts)
                .enumerate()
                .map(|(i, draw)| (format!("h{i}"), host(draw)))
                .collect(),
            switches: switches.map(|(i, draw)| (format!("s{i}"), switch(draw))).collect(),
            routers: Default::default(),
            circuits,
            tunnels: Default::default(),
            bonds: Default::default(),
            traffic: turn(traffic, turned),
            events: Default::default(),
            run: Run { duration: Duration(duration), warmup, ..Run::default() },
            links,
        }
    }

    fn links(&self, hosts: usize) -> IndexMap<String, Link> {
        let graph = &self.graph;
        let switches = graph.switches();
        let mut ends: Vec<[String; 2]> = match graph.shape {
            Shape::Wire => vec![["h0".into(), "h1".into()]],
            Shape::Line => (1..switches).map(|s| [format!("s{}", s - 1), format!("s{s}")]).collect(),
            Shape::Star => (1..switches).map(|s| ["s0".into(), format!("s{s}")]).collect(),
            Shape::Ring | Shape::Cycle(_) => {
                (0..switches).map(|s| [format!("s{s}"), format!("s{}", (s + 1) % switches)]).collect()
            }
        };
        if switches > 0 {
            ends.extend((0..hosts).map(|h| [format!("h{h}"), format!("s{}", graph.switch_of(h))]));
        }
        let mut draws = graph.links.clone();
        // There are as many drawn links as a cycle with its hosts needs.
        let more = switches > 0 && !matches!(graph.shape, Shape::Cycle(_));
        if let (Some((host, switch)), true) = (graph.second, more) {
            // Medium and rate of the host's first link, so that a share means the same on both.
            let host = host % hosts;
            draws[ends.len()] = draws[ends.len() - hosts + host];
            ends.push([format!("h{host}"), format!("s{}", switch % switches)]);
        }
        let link = |(i, mut ends): (usize, [String; 2])| {
            let LinkDraw { medium, delay, rate, .. } = if graph.alike { draws[0] } else { draws[i] };
            let delay = if let Shape::Cycle(longest) = graph.shape { 1 + delay % longest } else { delay };
            if draws[i].turned {
                ends.reverse();
            }
            let rate =
                if graph.round { LineRate::Both(Rate(ROUND_RATE)) } else { self::rate(rate.0, rate.1) };
            (format!("l{i}"), cell_link(ends, medium, rate, delay))
        };
        turn(ends.into_iter().enumerate().map(link).collect(), graph.turned)
    }

    fn circuits<'a>(&self, hosts: usize, first: &impl Fn(&str) -> &'a Link) -> IndexMap<String, Circuit> {
        let circuit = |(i, draw): (usize, &CircuitDraw)| {
            let ends = two(draw.ends, hosts);
            let first = first(&ends[0]);
            (format!("c{i}"), self::circuit(draw, ends, first, self.graph.switches() > 0))
        };
        self.circuits.iter().enumerate().map(circuit).collect()
    }

    fn traffic<'a>(
        &self,
        hosts: usize,
        circuits: &IndexMap<String, Circuit>,
        first: &impl Fn(&str) -> &'a Link,
        duration: u64,
    ) -> IndexMap<String, Traffic> {
        // Returns ends and name of a circuit in one of its directions.
        let on = |(circuit, forward): (usize, bool)| {
            let (name, circuit) =
                circuits.get_index(circuit % circuits.len()).expect("the testbed has a circuit");
            let ends = [circuit.from.clone(), circuit.to.clone()];
            let [from, to] = ends;
            if forward { (from, to, name.clone()) } else { (to, from, name.clone()) }
        };
        let instants = |times: TimesDraw| instants(times, duration);
        let udp = self.udp.iter().enumerate().map(|(i, draw)| {
            let (from, to, name) = on(draw.circuit);
            let between = circuits.values().filter(|circuit| {
                let ends = (&circuit.from, &circuit.to);
                ends == (&from, &to) || ends == (&to, &from)
            });
            let circuit = (draw.named || between.count() > 1).then_some(name);
            let (start, stop) = instants(draw.times);
            let (message, rate) = (Size(draw.message), draw.rate.map(Rate));
            let (count, sentinels) = draw.transfer();
            let stream = UdpStream {
                from,
                to,
                message,
                rate,
                count,
                sentinels,
                circuit,
                send_path: None,
                receive_path: None,
                receive_buffer: None,
                live: Live::default(),
                priority: 0,
                ttl: 64,
                start,
                stop,
            };
            (format!("u{i}"), Traffic::UdpStream(stream))
        });
        let tcp = self.tcp.iter().enumerate().map(|(i, draw)| {
            let (from, to, name) = on(draw.circuit);
            let (start, stop) = instants(draw.times);
            let sizes = (Size(draw.message), draw.rate.map(Rate), draw.streams, Some(name));
            let stream =
                TcpStream { count: draw.count, ..tcp::table((from, to), sizes, (0, 64), (start, stop)) };
            (format!("t{i}"), Traffic::TcpStream(stream))
        });
        let generators = self.generators.iter().enumerate().map(|(i, draw)| {
            let (from, to, circuit) = match draw.circuit {
                Some(circuit) => {
                    let (from, to, name) = on(circuit);
                    (from, to, Some(name))
                }
                None => {
                    let [from, to] = two(draw.ends, hosts);
                    (from, to, None)
                }
            };
            let first = first(&from);
            (format!("g{i}"), generator(draw, ([from, to], circuit), first, instants(draw.times)))
        });
        udp.chain(tcp).chain(generators).collect()
    }
}

/// Returns start and stop in a run of this duration.
pub(super) fn instants((start, stop): TimesDraw, duration: u64) -> (Option<Duration>, Option<Duration>) {
    let instant = |part: u64| Duration(duration / 1000 * part);
    // A `stop` must be after `start`.
    let stop = stop.filter(|stop| *stop > start.unwrap_or(0));
    (start.map(instant), stop.map(instant))
}

/// Returns a circuit between two nodes that begins on this link. It has a policer only if it is `switched`.
pub(super) fn circuit(draw: &CircuitDraw, [from, to]: [String; 2], first: &Link, switched: bool) -> Circuit {
    let shaping = draw.shaping.filter(|_| draw.adaptive.is_none()).map(|rate| framed(rate, first, &from));
    let policing = draw.policing.filter(|_| switched).map(|(rate, tolerance, tags)| {
        let (rate, counts) = framed(rate, first, &from);
        // Cells with CLP = 1 cannot be tagged.
        let action = match tags && draw.clp == 0 {
            true => PolicingAction::Tag,
            false => PolicingAction::Discard,
        };
        Policing { rate, counts, tolerance: Duration(tolerance), action }
    });
    Circuit {
        from,
        to,
        encapsulation: draw.encapsulation,
        mtu: draw.mtu.map(Size),
        category: draw.category,
        clp: draw.clp,
        adaptive: draw.adaptive.clone(),
        shaping: shaping.map(|(rate, _)| rate),
        counts: shaping.and_then(|(_, counts)| counts),
        policing,
    }
}

/// Returns a generator between two hosts whose cells begin on this link, on a circuit of the file or an implicit one.
pub(super) fn generator(
    draw: &GeneratorDraw,
    ([from, to], circuit): ([String; 2], Option<String>),
    first: &Link,
    (start, stop): (Option<Duration>, Option<Duration>),
) -> Traffic {
    let (rate, counts) = framed(draw.rate, first, &from);
    match draw.on_off {
        None => Traffic::Cbr(Cbr { from, to, rate, counts, circuit, start, stop }),
        Some((on, off, lengths)) => {
            let (on, off) = (Duration(on), Duration(off));
            Traffic::OnOff(OnOff { from, to, rate, counts, on, off, lengths, circuit, start, stop })
        }
    }
}

impl Graph {
    fn switches(&self) -> usize {
        match self.shape {
            Shape::Wire => 0,
            Shape::Line | Shape::Star => self.switches,
            // Three or four: a ring of two would be two parallel links.
            Shape::Ring => 3 + self.switches % 2,
            Shape::Cycle(_) => CYCLE,
        }
    }

    fn hosts(&self) -> usize {
        match self.shape {
            Shape::Wire => 2,
            Shape::Cycle(_) => CYCLE,
            _ => self.hosts.len(),
        }
    }

    /// Returns the switch of a host.
    fn switch_of(&self, host: usize) -> usize {
        if matches!(self.shape, Shape::Cycle(_)) { host } else { self.hosts[host] % self.switches() }
    }
}

pub(super) fn host(draw: &HostDraw) -> Host {
    let cost = |[datagram, fragment, byte]: [Option<u64>; 3], [write, segment, ack]: [Option<u64>; 3]| Cost {
        per_datagram: datagram.map(Duration),
        per_fragment: fragment.map(Duration),
        per_byte: byte.map(Duration),
        per_write: write.map(Duration),
        per_segment: segment.map(Duration),
        per_ack: ack.map(Duration),
    };
    Host {
        cost: cost(draw.send, draw.segments[0]),
        receive_cost: cost(draw.receive, draw.segments[1]),
        pauses: draw.pauses.map(|(share, mean)| Pauses { share: Share(share), mean: Duration(mean) }),
        receive_buffer: Size(draw.receive_buffer),
        nic_buffer: Size(draw.nic_buffer),
        memory: draw.data.memory.clone(),
        io_bus: draw.data.io_bus.clone(),
        send_path: draw.data.send_path,
        receive_path: draw.data.receive_path,
        tcp: draw.tcp.clone(),
        ..Host::default()
    }
}

pub(super) fn switch(draw: &SwitchDraw) -> Switch {
    let buffer = draw.buffer;
    let level = |(parts, share): LevelDraw| match share {
        true => FillLevel::Share(Share(parts * (Share::WHOLE / 10_000))),
        false => FillLevel::Cells(buffer * parts / 10_000),
    };
    let (kind, threshold, share) = draw.discard;
    let levels = [threshold, (share % 10_000, threshold.1)].map(level);
    let discard = discard(Discard::KINDS[kind], levels, Share(share * (Share::WHOLE / 10_000)), buffer);
    Switch::Atm(AtmSwitch {
        output_buffer: CellCount(buffer),
        discard,
        clp_threshold: draw.clp.map(level),
        efci_threshold: draw.efci.map(level),
        schedule: match draw.priority {
            true => Schedule::Priority(Default::default()),
            false => Schedule::Fifo(Default::default()),
        },
    })
}

/// Returns a discard policy with drawn levels and shares. The levels are in the order that its `check` accepts; if it accepts none, all keys have their
/// defaults.
fn discard(kind: &str, [one, other]: [FillLevel; 2], share: Share, buffer: u64) -> Discard {
    let policy = |levels: &[FillLevel]| -> Discard {
        let mut levels = levels.iter().cycle();
        of_kind("Discard", kind, |_, name| match name {
            "FillLevel" => Some(json!(levels.next())),
            "Share" => Some(json!(share)),
            _ => None,
        })
    };
    let is_right = |policy: &Discard| {
        let mut errors = RangeErrors::default();
        policy.check(buffer, &mut errors);
        errors == RangeErrors::default()
    };
    let found = [[one, other], [other, one]].iter().map(|levels| policy(levels)).find(is_right);
    found.unwrap_or_else(|| of_kind("Discard", kind, |_, _| None))
}

/// Returns a share of the cells that a link carries from a node, expressed in one of eight ways, and the `counts` that goes with it.
fn framed((parts, way): RateDraw, link: &Link, from: &str) -> (FramedRate, Option<Basis>) {
    let line_rate = link.line_rates().expect("the link has a rate")[usize::from(link.ends[0] != from)];
    let of = |rate: u64| {
        Rate(u64::try_from(u128::from(rate) * u128::from(parts) / 10_000).expect("the rate fits in 64 bits"))
    };
    let line = of(line_rate);
    let cells = of(cell_bits(link, line_rate));
    let payload = of(cell_bits(link, line_rate) / 424 * 384);
    match way {
        0 if parts == 0 => (FramedRate::Share(Share(0)), None),
        0 => (FramedRate::CellsPerSecond((cells.0 / 424).max(1)), None),
        1 => (FramedRate::Bits(line, Some(Basis::Line)), None),
        2 => (FramedRate::Bits(cells, Some(Basis::Cells)), None),
        3 => (FramedRate::Bits(payload, None), Some(Basis::Payload)),
        4 => (FramedRate::Bits(line, None), Some(Basis::Line)),
        _ => (FramedRate::Share(Share(parts * (Share::WHOLE / 10_000))), None),
    }
}

/// Returns an ATM link; `rate` applies to the medium `atm` only.
pub(super) fn cell_link(ends: [String; 2], medium: Medium, rate: LineRate, delay: u64) -> Link {
    Link {
        ends,
        medium,
        rate: (medium == Medium::Atm).then_some(rate),
        delay: Duration(delay),
        mtu: None,
        overhead: None,
        vlan: false,
        jitter: None,
        loss: None,
        reorder: None,
        queue: None,
    }
}

/// Returns the table with its first entries moved to the end.
pub(super) fn turn<T>(table: IndexMap<String, T>, places: usize) -> IndexMap<String, T> {
    let mut entries: Vec<(String, T)> = table.into_iter().collect();
    let places = places % entries.len().max(1);
    entries.rotate_left(places);
    entries.into_iter().collect()
}
