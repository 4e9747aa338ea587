//! Random small networks, for property tests of the oracle and for comparing another engine with it.
//!
//! [`network`] draws a testbed. Its numbers are drawn first and combined afterwards, so that a failing case shrinks part by part. `resolve` returns the
//! topology, `text::text` the file.

mod assemble;
mod frames;
mod memory;
mod of_kind;
mod tcp;
pub(crate) mod text;

use engpass_model::circuit::Category;
use engpass_model::discard::Discard;
use engpass_model::shape::Adaptive;
use engpass_model::source::on_off::Lengths;
use engpass_model::tcp::TcpConfig;
use engpass_model::unit::Share;
use engpass_model::wire::{Encapsulation, Medium};
use engpass_testbed::Testbed;
use proptest::collection::vec;
use proptest::option::weighted;
use proptest::prelude::*;
use proptest::sample::select;

pub(crate) use frames::{asking, bonds, engines, frames, groups, joined, mesh, narrow, port, tunnels};
use memory::DataDraw;

/// Shape of the graph.
#[derive(Clone, Copy, Debug)]
enum Shape {
    /// Two hosts and nothing between them.
    Wire,
    Line,
    Star,
    Ring,
    /// Five switches in a ring with a host each. Every host has a circuit to the host two switches further on, so each port of the ring waits for the one
    /// before it, all the way round. The delays are at most this many picoseconds.
    Cycle(u64),
}

/// Drawn values of the graph.
#[derive(Clone, Debug)]
struct Graph {
    shape: Shape,
    switches: usize,
    /// By host: its switch, modulo their number.
    hosts: Vec<usize>,
    /// A second link of a host: the host and the switch to which it leads, each modulo the number of hosts or switches.
    second: Option<(usize, usize)>,
    /// All links have the medium and delay of the first, so that cells of several links arrive at one instant.
    alike: bool,
    links: Vec<LinkDraw>,
    /// Rotation of the links in the file.
    turned: usize,
    /// ATM links with an explicit rate have a slot of whole picoseconds.
    round: bool,
}

/// A link of an ATM network.
#[derive(Clone, Copy, Debug)]
struct LinkDraw {
    medium: Medium,
    /// Propagation delay in picoseconds.
    delay: u64,
    /// Swaps the ends.
    turned: bool,
    /// Line rate in bit/s of both directions, or one for each, if the medium is `atm`.
    rate: (u64, Option<u64>),
}

/// Costs of a host in picoseconds, and its buffers in bytes.
#[derive(Clone, Debug)]
struct HostDraw {
    /// Per datagram, per fragment, per byte.
    send: [Option<u64>; 3],
    receive: [Option<u64>; 3],
    /// Parts per 10^9, mean in picoseconds.
    pauses: Option<(u64, u64)>,
    nic_buffer: u64,
    receive_buffer: u64,
    tcp: TcpConfig,
    /// Per write, per segment, per acknowledgment, sending and receiving.
    segments: [[Option<u64>; 3]; 2],
    data: DataDraw,
}

/// A share of the cell rate of the first link in parts per 10 000, and how the file expresses it.
type RateDraw = (u64, u8);

#[derive(Clone, Debug)]
struct CircuitDraw {
    /// Two hosts, modulo their number.
    ends: (usize, usize),
    encapsulation: Encapsulation,
    mtu: Option<u64>,
    category: Category,
    shaping: Option<RateDraw>,
    /// Replaces `shaping`.
    adaptive: Option<Adaptive>,
    clp: u8,
    /// Rate, tolerance in picoseconds, and whether it tags.
    policing: Option<(RateDraw, u64, bool)>,
}

#[derive(Clone, Debug)]
struct UdpDraw {
    /// A circuit, modulo their number, and whether its forward direction is used.
    circuit: (usize, bool),
    /// The file names the circuit even if it need not.
    named: bool,
    message: u64,
    rate: Option<u64>,
    /// Number of messages of a transfer, and whether sentinels mark it.
    count: Option<(u64, bool)>,
    times: TimesDraw,
}

impl UdpDraw {
    /// Returns the number of messages, and whether sentinels mark begin and end. They are shorter than messages.
    fn transfer(&self) -> (Option<u64>, bool) {
        (self.count.map(|(count, _)| count), self.count.is_some_and(|(_, marked)| marked && self.message > 4))
    }
}

#[derive(Clone, Debug)]
struct TcpDraw {
    /// As in [`UdpDraw`].
    circuit: (usize, bool),
    message: u64,
    rate: Option<u64>,
    /// Number of writes of a transfer.
    count: Option<u64>,
    streams: u32,
    times: TimesDraw,
}

#[derive(Clone, Debug)]
struct GeneratorDraw {
    /// On a circuit of the file (as in [`UdpDraw`]), otherwise on an implicit one between these hosts.
    circuit: Option<(usize, bool)>,
    ends: (usize, usize),
    rate: RateDraw,
    /// Means in picoseconds; `None` for `cbr`.
    on_off: Option<(u64, u64, Lengths)>,
    times: TimesDraw,
}

/// Start and stop, in parts per 1000 of the duration.
type TimesDraw = (Option<u64>, Option<u64>);

/// A drawn testbed, which is printed as a file.
#[derive(Clone)]
pub(crate) struct Drawn(pub(crate) Testbed);

impl std::fmt::Debug for Drawn {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "\n{}", text::text(&self.0))
    }
}

/// Returns a random network of circuits with datagrams and cells, with at most some ten thousand events.
pub(crate) fn network() -> impl Strategy<Value = Drawn> {
    of_circuits(vec(udp(), 1..=4), vec(tcp::stream(), 0))
}

/// Returns a random network of circuits with TCP.
pub(crate) fn network_with_tcp() -> impl Strategy<Value = Drawn> {
    of_circuits(vec(udp(), 0..=2), vec(tcp::stream(), 1..=3))
}

fn of_circuits(
    udp: impl Strategy<Value = Vec<UdpDraw>>,
    tcp: impl Strategy<Value = Vec<TcpDraw>>,
) -> impl Strategy<Value = Drawn> {
    let parts = (
        graph(),
        vec(host(), 5),
        vec(switch(), 5),
        vec(circuit(), 1..=5),
        (udp, tcp),
        vec(generator(), 0..=3),
        // Rotation of the traffic tables; duration in parts per 1000 of the affordable one; warm-up in parts per 1000 of the duration.
        (0usize..7, 200u64..=1000, weighted(0.25, 0u64..=900)),
        prop::bool::weighted(0.3),
    );
    parts.prop_map(|(graph, hosts, switches, circuits, (udp, tcp), generators, run, in_step)| {
        let parts = assemble::Parts { graph, hosts, switches, circuits, udp, tcp, generators, run };
        Drawn(if in_step { parts.in_step().testbed() } else { parts.testbed() })
    })
}

/// A fill level of a buffer: parts per 10 000 of it, and whether the file gives a share or cells.
type LevelDraw = (u64, bool);

#[derive(Clone, Debug)]
struct SwitchDraw {
    /// In cells.
    buffer: u64,
    priority: bool,
    /// Index of the kind, a level, and a share in parts per 10 000.
    discard: (usize, LevelDraw, u64),
    clp: Option<LevelDraw>,
    efci: Option<LevelDraw>,
}

fn switch() -> impl Strategy<Value = SwitchDraw> {
    let buffer = prop_oneof![2 => 1u64..=4, 3 => 1u64..=40, 1 => 40u64..=400];
    let kind = prop_oneof![1 => Just(0), 4 => 0..Discard::KINDS.len()];
    let discard = (kind, level(), prop_oneof![Just(8_000u64), 1u64..=30_000]);
    (buffer, any::<bool>(), discard, weighted(0.35, level()), weighted(0.3, level())).prop_map(
        |(buffer, priority, discard, clp, efci)| SwitchDraw { buffer, priority, discard, clp, efci },
    )
}

fn level() -> impl Strategy<Value = LevelDraw> {
    (prop_oneof![Just(9_000u64), 0u64..=3_000, 0u64..=9_999], any::<bool>())
}

fn graph() -> impl Strategy<Value = Graph> {
    use Shape::{Cycle, Line, Ring, Star, Wire};
    let longest = prop_oneof![Just(1u64), 1u64..=10_000, 10_000u64..=20_000_000];
    let shape =
        prop_oneof![6 => select(vec![Line, Line, Star, Ring, Ring, Wire]), 1 => longest.prop_map(Cycle)];
    let rate = || (1_000u64..=100_000).prop_map(|kbit_s| kbit_s * 1_000);
    let link = (medium(), delay(), any::<bool>(), (rate(), weighted(0.6, rate())))
        .prop_map(|(medium, delay, turned, rate)| LinkDraw { medium, delay, turned, rate });
    let second = weighted(0.2, (0usize..5, 0usize..4));
    (shape, 1usize..=3, vec(0usize..4, 2..=5), second, any::<bool>(), vec(link, 10), 0usize..10).prop_map(
        |(shape, switches, hosts, second, alike, links, turned)| Graph {
            shape,
            switches,
            hosts,
            second,
            alike,
            links,
            turned,
            round: false,
        },
    )
}

/// Returns an ATM medium.
fn medium() -> impl Strategy<Value = Medium> {
    use Medium::{Atm, Ds1, Ds3Direct, Ds3Plcp, E1, E3, E3G751, Oc3c, Oc12c, Sts1, Taxi100, Utp25};
    prop_oneof![
        4 => Just(Oc3c),
        6 => select(vec![Sts1, Ds3Plcp, Ds3Direct, E3, E3G751, Taxi100, Utp25, Atm]),
        1 => select(vec![E1, Ds1, Oc12c]),
    ]
}

fn delay() -> impl Strategy<Value = u64> {
    prop_oneof![
        3 => 1_000u64..=1_000_000,
        5 => 1_000_000u64..=20_000_000,
        1 => 20_000_000u64..=2_000_000_000,
    ]
}

fn costs() -> impl Strategy<Value = [Option<u64>; 3]> {
    let some =
        (weighted(0.5, 0u64..=200_000_000), weighted(0.5, 0u64..=100_000_000), weighted(0.5, 0u64..=100_000));
    prop_oneof![2 => Just([None; 3]), 3 => some.prop_map(|(datagram, fragment, byte)| [datagram, fragment, byte])]
}

fn host() -> impl Strategy<Value = HostDraw> {
    (
        costs(),
        costs(),
        weighted(0.3, (10_000_000u64..=1_000_000_000, 1_000_000u64..=500_000_000)),
        prop_oneof![1u64..=400, 400u64..=20_000],
        prop_oneof![1u64..=2000, 2000u64..=70_000],
        tcp::config(),
        tcp::costs(),
        memory::data(),
    )
        .prop_map(|(send, receive, pauses, nic_buffer, receive_buffer, tcp, segments, data)| HostDraw {
            send,
            receive,
            pauses,
            nic_buffer,
            receive_buffer,
            tcp,
            segments,
            data,
        })
}

fn rate() -> impl Strategy<Value = RateDraw> {
    (prop_oneof![Just(1641u64), 1u64..=10_000, 1000u64..=10_000], 0u8..8)
}

fn circuit() -> impl Strategy<Value = CircuitDraw> {
    use Encapsulation::{
        BridgedLlc, BridgedVcMux, Lane, LlcSnap, PppoaLlc, PppoaVcMux, PppoeLlc, PppoeVcMux, VcMux,
    };
    let encapsulation = prop_oneof![
        1 => Just(LlcSnap),
        1 => select(vec![VcMux, BridgedLlc, BridgedVcMux, PppoaVcMux, PppoaLlc, PppoeLlc, PppoeVcMux, Lane]),
    ];
    (
        (0usize..5, 0usize..5),
        encapsulation,
        // Without an MTU, packets are so long that a run has few of them.
        weighted(0.85, prop_oneof![68u64..=300, 300u64..=1400, Just(1492)]),
        select(vec![Category::Ubr, Category::Ubr, Category::Cbr]),
        weighted(0.4, rate()),
        weighted(0.25, adaptive()),
        prop_oneof![3 => Just(0u8), 1 => Just(1)],
        weighted(0.3, (rate(), prop_oneof![Just(0u64), Just(1), 1u64..=50_000_000], any::<bool>())),
    )
        .prop_map(|(ends, encapsulation, mtu, category, shaping, adaptive, clp, policing)| CircuitDraw {
            ends,
            encapsulation,
            mtu,
            category,
            shaping,
            adaptive,
            clp,
            policing,
        })
}

fn adaptive() -> impl Strategy<Value = Adaptive> {
    let least = prop_oneof![1 => 1u64..=300, 2 => 300u64..=10_000];
    let start = weighted(0.5, 0u64..=10_000);
    (least, 0u64..=10_000, start, 1u64..=3_000, 1u64..=9_999, 1u32..=9).prop_map(
        |(least, more, start, increase, decrease, patience)| {
            let share = |parts: u64| Share(parts * (Share::WHOLE / 10_000));
            let most = (least + more).min(10_000);
            let start = start.map(|parts| share(least + parts % (most - least + 1)));
            let (min, max, increase, decrease) =
                (share(least), share(most), share(increase), share(decrease));
            Adaptive { min, max, start, increase, decrease, patience }
        },
    )
}

fn times() -> impl Strategy<Value = TimesDraw> {
    (weighted(0.3, 0u64..=500), weighted(0.2, 300u64..=1200))
}

fn udp() -> impl Strategy<Value = UdpDraw> {
    let message =
        prop_oneof![2 => 1u64..=100, 4 => 100u64..=2000, 2 => 2000u64..=10_000, 1 => 10_000u64..=65_507];
    let rate = prop_oneof![10_000u64..=1_000_000, 1_000_000u64..=200_000_000, Just(8_000_000)];
    ((0usize..5, prop::bool::weighted(0.7)), any::<bool>(), message, weighted(0.4, rate), (count(), times()))
        .prop_map(|(circuit, named, message, rate, (count, times))| UdpDraw {
            circuit,
            named,
            message,
            rate,
            count,
            times,
        })
}

/// Returns the number of messages of a transfer, which few streams are, and whether sentinels mark it.
fn count() -> impl Strategy<Value = Option<(u64, bool)>> {
    weighted(0.15, (1u64..=40, any::<bool>()))
}

fn generator() -> impl Strategy<Value = GeneratorDraw> {
    let lengths = select(vec![Lengths::Fixed, Lengths::Exponential]);
    let mean = || prop_oneof![1_000_000u64..=50_000_000, 50_000_000u64..=500_000_000];
    (
        weighted(0.3, (0usize..5, prop::bool::weighted(0.7))),
        (0usize..5, 0usize..5),
        prop_oneof![9 => rate(), 1 => Just((0, 0))],
        weighted(0.5, (mean(), mean(), lengths)),
        times(),
    )
        .prop_map(|(circuit, ends, rate, on_off, times)| {
            // Only a `cbr` source may have a rate of zero.
            let on_off = on_off.filter(|_| rate.0 > 0);
            GeneratorDraw { circuit, ends, rate, on_off, times }
        })
}
