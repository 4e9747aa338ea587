//! Random networks of Ethernet and point-to-point links, Ethernet switches and routers.

mod asking;
mod bonded;
mod engines;
mod grouped;
mod joined;
mod mesh;
mod narrow;
mod port;
mod queues;
mod segment;
mod tunnelled;

use engpass_model::forward::Ecmp;
use engpass_model::link::{Link, Reorder};
use engpass_model::queue::Queue;
use engpass_model::router::Router;
use engpass_model::source::on_off::Lengths;
use engpass_model::source::poisson::Sizes;
use engpass_model::source::{Live, Poisson, TcpStream, Traffic, UdpOnOff, UdpStream, Video};
use engpass_model::switch::{EthernetSwitch, Switch};
use engpass_model::time::{Pace, SECOND};
use engpass_model::unit::{Duration, FrameRate, QueueLimit, Rate, Share, Size};
use engpass_model::wire::Medium;
use engpass_testbed::{Run, Testbed};
use indexmap::IndexMap;
use proptest::collection::vec;
use proptest::option::weighted;
use proptest::prelude::*;
use proptest::sample::select;

use super::assemble::{self, turn, two};
use super::{Drawn, HostDraw, TcpDraw, TimesDraw, UdpDraw, tcp, udp};
pub(crate) use asking::asking;
pub(crate) use bonded::bonds;
pub(crate) use engines::engines;
pub(crate) use grouped::groups;
pub(crate) use narrow::narrow;
pub(crate) use port::port;
pub(crate) use tunnelled::tunnels;

/// Maximum number of bytes per run on all lines of hosts.
const AFFORDABLE: u64 = 300_000;

/// A switch or a router.
#[derive(Clone, Debug)]
struct NodeDraw {
    /// True for a switch, false for a router.
    switch: bool,
    /// Latency of a switch, or time per packet of a router, in picoseconds.
    time: u64,
    /// Input queue of a router.
    input: Option<QueueLimit>,
    queue: Queue,
}

#[derive(Clone, Debug)]
struct LinkDraw {
    /// Point-to-point, between hosts and routers only; otherwise Ethernet.
    point_to_point: bool,
    medium: Medium,
    /// Line rates in bit/s of both directions of a point-to-point link, or of each.
    rate: (u64, Option<u64>),
    /// Overhead of a packet on a point-to-point link, in bytes.
    overhead: u64,
    delay: u64,
    /// Swaps the ends.
    turned: bool,
    mtu: Option<u64>,
    vlan: bool,
    /// Loss in parts per 10 000, jitter in picoseconds, and reordering in both.
    loss: Option<u64>,
    jitter: Option<u64>,
    reorder: Option<(u64, u64)>,
    queue: Option<Queue>,
}

/// Path of a traffic: ends, priority, TTL.
type WayDraw = ((usize, usize), u8, u8);

/// Returns a random frame network.
pub(crate) fn frames() -> impl Strategy<Value = Drawn> {
    tunnelled::at_times(narrow::at_times(plain()))
}

/// Returns a random frame network with equal-cost paths.
pub(crate) fn mesh() -> impl Strategy<Value = Drawn> {
    tunnelled::at_times(narrow::at_times(mesh::mesh()))
}

/// Returns a random network of frame links and circuits.
pub(crate) fn joined() -> impl Strategy<Value = Drawn> {
    tunnelled::at_times(narrow::at_times(joined::joined()))
}

/// Returns a random frame network whose TCP knows the path MTU.
fn plain() -> impl Strategy<Value = Drawn> {
    let graph = (prop::bool::weighted(0.3), vec(node(), 0..=3), vec(0usize..4, 2..=4), vec(link(), 8));
    // Rotation of links and of traffic in the file; all links with the medium, delay and rate of the first.
    let order = (0usize..8, 0usize..5, prop::bool::weighted(0.3));
    let sent =
        (vec((udp(), way()), 0..=3), vec((uneven(), way()), 0..=2), vec((tcp::stream(), way()), 0..=3));
    let sent =
        sent.prop_filter("something is sent", |(udp, uneven, tcp)| udp.len() + uneven.len() + tcp.len() > 0);
    let run = (200u64..=1000, weighted(0.25, 0u64..=900));
    (graph, order, vec(super::host(), 4), sent, run).prop_map(|(graph, order, hosts, sent, run)| {
        let (ring, nodes, at, links) = graph;
        let (udp, uneven, tcp) = sent;
        let mesh = None;
        Drawn(Parts { ring, nodes, at, links, order, hosts, udp, uneven, tcp, run, mesh }.testbed())
    })
}

/// Returns a discipline whose amounts are often multiples of the shortest frame.
fn queue() -> impl Strategy<Value = Queue> {
    let amount = prop_oneof![2 => 64u64..=3000, 1 => (1u64..=8).prop_map(|frames| 64 * frames)];
    queues::queue(amount.boxed(), 60, queues::target().boxed())
}

fn node() -> impl Strategy<Value = NodeDraw> {
    let time = prop_oneof![2 => Just(0u64), 1 => 1u64..=1_000_000, 2 => 1_000_000u64..=500_000_000];
    let limit = prop_oneof![
        3 => (1u64..=6).prop_map(QueueLimit::packets),
        1 => (65_535u64..=70_000).prop_map(QueueLimit::bytes),
    ];
    (any::<bool>(), time, weighted(0.3, limit), queue()).prop_map(|(switch, time, input, queue)| NodeDraw {
        switch,
        time,
        input,
        queue,
    })
}

fn link() -> impl Strategy<Value = LinkDraw> {
    use Medium::{Ethernet1g, Ethernet10, Ethernet100};
    let mtu = prop_oneof![68u64..=300, 300u64..=1500, 1500u64..=9000];
    let rate = || prop_oneof![64_000u64..=2_000_000, 2_000_000u64..=50_000_000];
    let rate = ((rate(), weighted(0.5, rate())), 0u64..=12);
    let late = || prop_oneof![1u64..=1_000, 1_000u64..=10_000_000, 10_000_000u64..=2_000_000_000];
    let chance =
        (weighted(0.15, 1u64..=3_000), weighted(0.2, late()), weighted(0.15, (1u64..=5_000, late())));
    (
        (any::<bool>(), select(vec![Ethernet10, Ethernet10, Ethernet100, Ethernet1g]), rate),
        super::delay(),
        any::<bool>(),
        weighted(0.4, mtu),
        prop::bool::weighted(0.2),
        chance,
        weighted(0.3, queue()),
    )
        .prop_map(|((point_to_point, medium, rate), delay, turned, mtu, vlan, chance, queue)| {
            let ((rate, overhead), (loss, jitter, reorder)) = (rate, chance);
            LinkDraw {
                point_to_point,
                medium,
                rate,
                overhead,
                delay,
                turned,
                mtu,
                vlan,
                loss,
                jitter,
                reorder,
                queue,
            }
        })
}

fn way() -> impl Strategy<Value = WayDraw> {
    ((0usize..4, 0usize..4), 0u8..=7, prop_oneof![5 => Just(64u8), 1 => 1u8..=4])
}

/// Arrivals of datagrams that are not evenly spaced.
#[derive(Clone, Copy, Debug)]
enum Uneven {
    Poisson(Sizes),
    Bursts(Lengths),
    /// A video with this number of frames in a group of pictures.
    Video(u32),
}

fn uneven() -> impl Strategy<Value = (u64, u64, Uneven, TimesDraw)> {
    let rate = prop_oneof![100_000u64..=1_000_000, 1_000_000u64..=50_000_000];
    let how = select(vec![
        Uneven::Poisson(Sizes::Fixed),
        Uneven::Poisson(Sizes::Exponential),
        Uneven::Bursts(Lengths::Fixed),
        Uneven::Bursts(Lengths::Exponential),
        Uneven::Video(1),
        Uneven::Video(4),
    ]);
    (prop_oneof![1u64..=200, 200u64..=4_000], rate, how, super::times())
}

struct Parts {
    ring: bool,
    nodes: Vec<NodeDraw>,
    at: Vec<usize>,
    links: Vec<LinkDraw>,
    order: (usize, usize, bool),
    hosts: Vec<HostDraw>,
    udp: Vec<(UdpDraw, WayDraw)>,
    uneven: Vec<((u64, u64, Uneven, TimesDraw), WayDraw)>,
    tcp: Vec<(TcpDraw, WayDraw)>,
    run: (u64, Option<u64>),
    /// Equal-cost paths, policies and events, in place of a line or a ring.
    mesh: Option<mesh::Mesh>,
}

/// Returns a link between these nodes: values that all links may share from `draw`, the others from `own`. A link at an Ethernet switch has the MTU `switched`.
fn frame_link(draw: &LinkDraw, own: &LinkDraw, switched: Option<u64>, mut ends: [String; 2]) -> Link {
    let at_switch = ends.iter().any(|end| end.starts_with('s'));
    let point_to_point = draw.point_to_point && !at_switch;
    let mtu = if at_switch { switched } else { own.mtu };
    if own.turned {
        ends.reverse();
    }
    let share = |parts: u64| Share(parts * (Share::WHOLE / 10_000));
    Link {
        ends,
        medium: if point_to_point { Medium::PointToPoint } else { draw.medium },
        rate: point_to_point.then(|| assemble::rate(draw.rate.0, draw.rate.1)),
        delay: Duration(draw.delay),
        mtu: mtu.map(Size),
        overhead: point_to_point.then_some(Size(draw.overhead)),
        vlan: draw.vlan && !point_to_point,
        jitter: own.jitter.map(Duration),
        loss: own.loss.map(share),
        reorder: own.reorder.map(|(parts, delay)| Reorder { share: share(parts), delay: Duration(delay) }),
        queue: own.queue.clone(),
    }
}

impl Parts {
    fn testbed(self) -> Testbed {
        let hosts = if self.nodes.is_empty() { 2 } else { self.at.len() };
        let links = self.links(hosts);
        let at_hosts = links.values().filter(|link| link.ends.iter().any(|end| end.starts_with('h')));
        let rates: u64 = at_hosts.map(assemble::mean_rate).sum();
        let (parts, warmup) = self.run;
        let affordable = u128::from(AFFORDABLE) * 8 * u128::from(SECOND) / u128::from(rates);
        let duration = (affordable as u64).min(SECOND) / 1000 * parts;
        let nodes = || self.nodes.iter().enumerate();
        let switches = nodes().filter(|(_, draw)| draw.switch).map(|(i, draw)| {
            let config = EthernetSwitch { latency: Duration(draw.time), queue: draw.queue.clone() };
            (self.node(i), Switch::Ethernet(config))
        });
        let routers = nodes().filter(|(_, draw)| !draw.switch).map(|(i, draw)| {
            let per_packet = Duration(draw.time);
            let own =
                links.iter().filter(|(_, link)| link.ends.contains(&self.node(i))).map(|(name, _)| name);
            let own: Vec<_> = own.collect();
            let ecmp = self.mesh.as_ref().map_or(Ecmp::default(), |mesh| mesh.policy(i, &own));
            (
                self.node(i),
                Router {
                    per_packet,
                    input_queue: draw.input,
                    queue: draw.queue.clone(),
                    ecmp,
                    ..Router::default()
                },
            )
        });
        let all = self.hosts.iter().take(hosts).enumerate();
        let ends = links.iter().map(|(name, link)| (name.clone(), link.ends.clone())).collect();
        Testbed {
            name: "random".into(),
            description: None,
            hosts: all.map(|(i, draw)| (format!("h{i}"), assemble::host(draw))).collect(),
            switches: switches.collect(),
            routers: routers.collect(),
            traffic: self.traffic(hosts, duration),
            events: self.mesh.as_ref().map_or(IndexMap::new(), |mesh| mesh.events(&ends, duration)),
            run: Run {
                duration: Duration(duration),
                warmup: warmup.map(|part| Duration(duration / 1000 * part)),
                ..Run::default()
            },
            links,
            circuits: IndexMap::new(),
            tunnels: IndexMap::new(),
            bonds: IndexMap::new(),
        }
    }

    /// Returns the name of a switch or router.
    fn node(&self, node: usize) -> String {
        format!("{}{node}", if self.nodes[node].switch { 's' } else { 'r' })
    }

    fn links(&self, hosts: usize) -> IndexMap<String, Link> {
        let nodes = self.nodes.len();
        let mut ends: Vec<[String; 2]> = match &self.mesh {
            Some(mesh) => mesh.edges(nodes).map(|(one, other)| [self.node(one), self.node(other)]).collect(),
            None => (1..nodes).map(|i| [self.node(i - 1), self.node(i)]).collect(),
        };
        if self.ring && nodes == 3 {
            ends.push([self.node(2), self.node(0)]);
        }
        match nodes {
            0 => ends.push(["h0".into(), "h1".into()]),
            _ => ends.extend((0..hosts).map(|host| [format!("h{host}"), self.node(self.at[host] % nodes)])),
        }
        let link = |(i, ends): (usize, [String; 2])| {
            // With identical links, frames of several links arrive at one instant.
            let draw = if self.order.2 { &self.links[0] } else { &self.links[i] };
            (format!("l{i}"), frame_link(draw, &self.links[i], self.links[0].mtu, ends))
        };
        turn(ends.into_iter().enumerate().map(link).collect(), self.order.0)
    }

    fn traffic(&self, hosts: usize, duration: u64) -> IndexMap<String, Traffic> {
        let instants = |times: TimesDraw| assemble::instants(times, duration);
        let udp = self.udp.iter().enumerate().map(|(i, (draw, (ends, priority, ttl)))| {
            let ([from, to], (start, stop)) = (two(*ends, hosts), instants(draw.times));
            let (message, rate, circuit) = (Size(draw.message), draw.rate.map(Rate), None);
            let (priority, ttl) = (*priority, *ttl);
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
                priority,
                ttl,
                start,
                stop,
            };
            (format!("u{i}"), Traffic::UdpStream(stream))
        });
        let uneven = self.uneven.iter().enumerate().map(|(i, (draw, (ends, priority, ttl)))| {
            let (message, rate, how, times) = *draw;
            let ([from, to], (start, stop)) = (two(*ends, hosts), instants(times));
            // On average three datagrams in an on-time, and an off-time of the same length.
            let cycle = Duration(Pace::of_bits(message * 8, rate).after(3));
            let (message, rate, circuit) = (Size(message), Rate(rate), None);
            let (priority, ttl) = (*priority, *ttl);
            let (send_path, receive_path, receive_buffer, live) = (None, None, None, Live::default());
            let source = match how {
                Uneven::Poisson(sizes) => Traffic::Poisson(Poisson {
                    from,
                    to,
                    message,
                    rate,
                    sizes,
                    circuit,
                    send_path,
                    receive_path,
                    receive_buffer,
                    live,
                    priority,
                    ttl,
                    start,
                    stop,
                }),
                Uneven::Bursts(lengths) => Traffic::UdpOnOff(UdpOnOff {
                    from,
                    to,
                    message,
                    rate,
                    on: cycle,
                    off: cycle,
                    lengths,
                    circuit,
                    send_path,
                    receive_path,
                    receive_buffer,
                    live,
                    priority,
                    ttl,
                    start,
                    stop,
                }),
                Uneven::Video(group_of_pictures) => Traffic::Video(Video {
                    from,
                    to,
                    message,
                    rate,
                    // On average three datagrams in a frame.
                    frame_rate: FrameRate((SECOND * FrameRate::ONE / cycle.0).clamp(100_000, 1_000_000_000)),
                    group_of_pictures,
                    intra_size: Share(Share::WHOLE * u64::from(group_of_pictures)),
                    circuit,
                    send_path,
                    receive_path,
                    receive_buffer,
                    live,
                    priority,
                    ttl,
                    start,
                    stop,
                }),
            };
            (format!("p{i}"), source)
        });
        let tcp = self.tcp.iter().enumerate().map(|(i, (draw, (ends, priority, ttl)))| {
            let ([from, to], (start, stop)) = (two(*ends, hosts), instants(draw.times));
            let sizes = (Size(draw.message), draw.rate.map(Rate), draw.streams, None);
            let stream = TcpStream {
                count: draw.count,
                ..tcp::table((from, to), sizes, (*priority, *ttl), (start, stop))
            };
            (format!("t{i}"), Traffic::TcpStream(stream))
        });
        turn(udp.chain(uneven).chain(tcp).collect(), self.order.1)
    }
}
