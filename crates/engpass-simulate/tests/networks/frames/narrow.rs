//! Senders that discover the path MTU, in networks whose inner links and circuits have smaller MTUs than the outer ones.

use engpass_model::host::Host;
use engpass_model::link::{DirectedRates, LineRate, Link};
use engpass_model::queue::{DropTail, Queue};
use engpass_model::source::Traffic;
use engpass_model::tcp::parameters::PathMtu;
use engpass_model::unit::{Duration, QueueLimit, Rate, Size};
use engpass_model::wire::Medium;
use engpass_testbed::Testbed;
use proptest::collection::vec;
use proptest::option::weighted;
use proptest::prelude::*;

use super::{Drawn, joined, mesh, plain};

/// Smallest MTU, in bytes.
const SMALLEST: u64 = 68;
/// Rate of slow datagrams, in bit/s.
const SLOW: u64 = 3_000_000;

/// Changes to a network. Lists are by link, circuit, router, host or stream, and repeat.
#[derive(Clone, Debug)]
pub(super) struct Narrowing {
    /// MTU at hosts.
    wide: u64,
    /// MTUs between routers, in parts per 1000 of the range from the smallest MTU to that at hosts.
    inner: Vec<Option<u64>>,
    /// MTUs at hosts, in bytes above `wide`.
    outer: Vec<u64>,
    /// Routers that send no messages.
    silent: Vec<bool>,
    /// Time per packet of a router in picoseconds, if it differs.
    per_packet: Vec<Option<u64>>,
    /// Slow lines towards hosts, and between routers.
    thin: Vec<Option<Thin>>,
    thin_inside: Vec<Option<Thin>>,
    /// Hosts that discover the path MTU, and streams with a setting of their own.
    hosts: Vec<bool>,
    streams: Vec<Option<bool>>,
    /// Segments of a sender's initial window, and the minimum size of its messages in bytes.
    bursts: Vec<Option<(u64, u64)>>,
    /// Streams between the first two hosts, usually far apart; `true` if they go from the second one.
    apart: Vec<Option<bool>>,
    /// Delays are short enough for many round trips.
    near: bool,
    /// Connections start before datagrams, and lines corrupt nothing, so most connections send.
    calm: bool,
    /// Hosts cost nothing and are identical, and so are slow lines, so packets of several lines coincide.
    in_step: bool,
}

/// A line that is slower than its opposite direction by a factor, and has room for few packets.
#[derive(Clone, Copy, Debug)]
struct Thin {
    /// Rate of the opposite direction, in bit/s.
    rate: u64,
    factor: u64,
    packets: u64,
}

fn thin() -> impl Strategy<Value = Thin> {
    (1_000_000u64..=50_000_000, 5u64..=150, 1u64..=3).prop_map(|(rate, factor, packets)| Thin {
        rate,
        factor,
        packets,
    })
}

pub(super) fn narrowing() -> impl Strategy<Value = Narrowing> {
    let wide = prop_oneof![4 => Just(1500u64), 1 => 1_500u64..=9_180, 3 => 200u64..=600];
    let per_packet = prop_oneof![1 => Just(0u64), 1 => 1_000_000u64..=200_000_000];
    let mtus = (
        wide,
        vec(weighted(0.8, prop_oneof![1 => 0u64..=50, 4 => 50u64..=990]), 6),
        vec(prop_oneof![4 => Just(0u64), 1 => 0u64..=1_000], 4),
    );
    let routers = (vec(prop::bool::weighted(0.12), 4), vec(weighted(0.3, per_packet), 4));
    let lines = (vec(weighted(0.6, thin()), 4), vec(weighted(0.15, thin()), 5));
    let senders = (
        vec(prop::bool::weighted(0.85), 3),
        vec(weighted(0.3, prop::bool::weighted(0.85)), 3),
        vec(weighted(0.85, (4u64..=40, 4_000u64..=60_000)), 3),
        vec(weighted(0.7, prop::bool::weighted(0.3)), 3),
    );
    let quiet = (prop::bool::weighted(0.85), prop::bool::weighted(0.75), prop::bool::weighted(0.3));
    (mtus, routers, lines, senders, quiet).prop_map(
        |(
            (wide, inner, outer),
            (silent, per_packet),
            (thin, thin_inside),
            senders,
            (near, calm, in_step),
        )| {
            let (hosts, streams, bursts, apart) = senders;
            Narrowing {
                wide,
                inner,
                outer,
                silent,
                per_packet,
                thin,
                thin_inside,
                hosts,
                streams,
                bursts,
                apart,
                near,
                calm,
                in_step,
            }
        },
    )
}

/// Returns an element of a list that repeats.
fn nth<T: Copy>(list: &[T], place: usize) -> T {
    list[place % list.len()]
}

fn path_mtu(discovers: bool) -> PathMtu {
    if discovers { PathMtu::Discovered } else { PathMtu::Known }
}

/// Makes the line from this end of a link slow, and its queue short.
fn make_thin(link: &mut Link, end: usize, Thin { rate, factor, packets }: Thin) {
    let (fast, slow) = (Rate(rate), Rate(rate / factor));
    let (forward, backward) = if end == 0 { (slow, fast) } else { (fast, slow) };
    link.medium = Medium::PointToPoint;
    link.rate = Some(LineRate::Each(DirectedRates { forward, backward }));
    link.overhead = Some(Size(0));
    link.vlan = false;
    let limit = QueueLimit::packets(packets);
    link.queue = Some(Queue::DropTail(DropTail { limit, ecn_threshold: None }));
}

/// Makes hosts identical, without random delays, so that packets stay synchronized.
fn keep_step(testbed: &mut Testbed) {
    let first = testbed.hosts[0].tcp.clone();
    for host in testbed.hosts.values_mut() {
        let buffers = (host.nic_buffer, host.receive_buffer);
        *host = Host { tcp: first.clone(), ..Host::default() };
        (host.nic_buffer, host.receive_buffer) = buffers;
    }
    for link in testbed.links.values_mut() {
        link.jitter = None;
    }
}

/// Makes the run longer, so that connections start first, and datagrams come later and more slowly.
fn calm_down(testbed: &mut Testbed) {
    let longer = |time: Option<Duration>| time.map(|time| Duration(time.0 * 4));
    testbed.run.duration.0 *= 4;
    testbed.run.warmup = testbed.run.warmup.map(|warmup| Duration(warmup.0 * 2));
    for event in testbed.events.values_mut() {
        (event.at, event.every) = (longer(event.at), longer(event.every));
        event.mean_time_between_failures = longer(event.mean_time_between_failures);
        event.mean_time_to_repair = longer(event.mean_time_to_repair);
    }
    let later = Some(Duration(testbed.run.duration.0 / 4));
    for link in testbed.links.values_mut() {
        (link.loss, link.reorder) = (None, None);
    }
    for traffic in testbed.traffic.values_mut() {
        match traffic {
            Traffic::TcpStream(config) => (config.start, config.stop, config.ttl) = (None, None, 64),
            Traffic::UdpStream(config) => {
                let rate = config.rate.map_or(SLOW, |rate| rate.0.min(SLOW));
                (config.start, config.stop, config.rate) = (later, None, Some(Rate(rate)));
            }
            Traffic::Poisson(config) => (config.start, config.stop) = (later, None),
            Traffic::UdpOnOff(config) => (config.start, config.stop) = (later, None),
            Traffic::Video(config) => (config.start, config.stop) = (later, None),
            _ => {}
        }
    }
}

impl Narrowing {
    /// Returns the MTU of a link or circuit between routers.
    fn inner(&self, place: usize) -> Option<Size> {
        nth(&self.inner, place).map(|parts| Size(SMALLEST + (self.wide - SMALLEST) * parts / 1000))
    }

    fn outer(&self, place: usize) -> Size {
        Size(self.wide + nth(&self.outer, place))
    }

    pub(super) fn narrow(&self, mut testbed: Testbed) -> Testbed {
        if self.calm {
            calm_down(&mut testbed);
        }
        if self.in_step {
            keep_step(&mut testbed);
        }
        self.narrow_links(&mut testbed);
        let is_host = |end: &String| end.starts_with('h');
        for (place, circuit) in testbed.circuits.values_mut().enumerate() {
            let outer = is_host(&circuit.from) || is_host(&circuit.to);
            circuit.mtu = if outer { Some(self.outer(place)) } else { self.inner(place + 1).or(circuit.mtu) };
        }
        for (place, router) in testbed.routers.values_mut().enumerate() {
            router.icmp = !nth(&self.silent, place);
            router.per_packet = nth(&self.per_packet, place).map_or(router.per_packet, Duration);
        }
        for (place, host) in testbed.hosts.values_mut().enumerate() {
            host.tcp.path_mtu = Some(path_mtu(nth(&self.hosts, place)));
            if let Some((segments, _)) = nth(&self.bursts, place) {
                (host.tcp.initial_window, host.tcp.mss) = (Some(segments), None);
            }
        }
        for (place, traffic) in testbed.traffic.values_mut().enumerate() {
            let Traffic::TcpStream(config) = traffic else { continue };
            config.tcp.path_mtu = nth(&self.streams, place).map(path_mtu);
            if let Some((_, bytes)) = nth(&self.bursts, place) {
                config.message = Size(config.message.bytes().max(bytes));
            }
            if let Some(turned) = nth(&self.apart, place) {
                let [from, to] = if turned { ["h1", "h0"] } else { ["h0", "h1"] };
                (config.from, config.to) = (from.into(), to.into());
            }
        }
        testbed
    }

    /// Returns the slow line at this position of a list.
    fn thin(&self, list: &[Option<Thin>], place: usize) -> Option<Thin> {
        nth(list, if self.in_step { 0 } else { place })
    }

    fn narrow_links(&self, testbed: &mut Testbed) {
        let longest = testbed.run.duration.0 / 60;
        for (place, link) in testbed.links.values_mut().enumerate() {
            if self.near {
                link.delay.0 = link.delay.0.min(longest).max(1);
            }
            let at_switch = link.ends.iter().any(|end| end.starts_with('s'));
            if link.medium.is_atm() || at_switch {
                // Links at Ethernet switches have one MTU.
                link.mtu = None;
                continue;
            }
            let hosts: Vec<usize> = (0..2).filter(|end| link.ends[*end].starts_with('h')).collect();
            link.mtu = if hosts.is_empty() { self.inner(place) } else { Some(self.outer(place)) };
            match hosts[..] {
                [] => {
                    if let Some(thin) = self.thin(&self.thin_inside, place) {
                        make_thin(link, place % 2, thin);
                    }
                }
                [host] => {
                    if let Some(thin) = self.thin(&self.thin, place) {
                        make_thin(link, 1 - host, thin);
                    }
                }
                _ => {}
            }
        }
    }
}

/// Returns a network that is sometimes changed.
pub(super) fn at_times(networks: impl Strategy<Value = Drawn>) -> impl Strategy<Value = Drawn> {
    (networks, weighted(0.2, narrowing())).prop_map(|(Drawn(testbed), narrowing)| {
        Drawn(match narrowing {
            Some(narrowing) => narrowing.narrow(testbed),
            None => testbed,
        })
    })
}

/// Returns a random network with connections, of frames or of links and circuits, whose senders usually discover the path MTU.
pub(crate) fn narrow() -> impl Strategy<Value = Drawn> {
    let networks = prop_oneof![
        1 => plain().boxed(),
        3 => mesh::mesh().boxed(),
        3 => joined::joined().boxed(),
    ];
    let connected = networks.prop_filter("a connection sends", |Drawn(testbed)| {
        testbed.traffic.values().any(|traffic| matches!(traffic, Traffic::TcpStream(_)))
    });
    (connected, narrowing()).prop_map(|(Drawn(testbed), narrowing)| Drawn(narrowing.narrow(testbed)))
}
