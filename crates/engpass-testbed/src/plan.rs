//! A point in whole numbers and base units, for namespaces and real hosts.
//!
//! This module only converts. The documentation of each key defines its meaning.

use std::collections::BTreeSet;

use engpass_model::forward::Ecmp;
use engpass_model::queue::Queue;
use engpass_model::source::{Frames, Traffic};
use engpass_model::switch::Switch;
use engpass_model::tcp::TcpConfig;
use engpass_model::tcp::parameters::Nagle;
use engpass_model::unit::{Duration, Share, Size};
use engpass_model::wire::aal5::{CELL_BITS, TRAILER_BYTES};
use engpass_model::wire::{Framing, ethernet};
use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::Serialize;

use crate::campaign::Point;
use crate::route::NextHop;
use crate::topology::{BondPath, FlowPath, LinkEnds, NodeId, NodeKind, Topology};

const PS_PER_NS: u64 = 1000;

/// A point for real hosts and namespaces. Keys name their unit.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct PointPlan {
    /// Times and seed of the run.
    pub run: RunPlan,
    /// Hosts by name.
    pub hosts: IndexMap<String, HostPlan>,
    /// Switches and routers by name.
    pub between: IndexMap<String, NodePlan>,
    /// Links, in the order of the file.
    pub links: Vec<LinkPlan>,
    /// Paths from each host to every host that it can reach.
    pub ways: Vec<WayPlan>,
    /// Next hops at hosts and routers.
    pub gateways: Vec<GatewayPlan>,
    /// Traffic, in the order of the file.
    pub flows: Vec<FlowPlan>,
    /// Names of the tunnels that are up.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tunnels: Vec<String>,
    /// Bonds that are up.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub bonds: Vec<BondPlan>,
    /// Names of the events that change links.
    #[serde(default)]
    pub events: Vec<String>,
}

/// Links of a node that form one interface.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct BondPlan {
    /// Name of the bond.
    pub name: String,
    /// The node that has the bond as an interface.
    pub node: String,
    /// Names of the links of the bond.
    pub links: Vec<String>,
    /// Largest total rate of these links in the direction from this node.
    pub rate_bit_per_s: u64,
}

/// Times and seed of a run.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct RunPlan {
    /// Length of a run, warm-up included.
    pub duration_ns: u64,
    /// Warm-up.
    pub warmup_ns: u64,
    /// Seed of the first repeat.
    pub seed: u64,
}

/// A host.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct HostPlan {
    /// How the controller reaches the host's agent.
    pub reach: Option<String>,
    /// Address of the host.
    pub address: Option<String>,
    /// Receive buffer of the host's sockets.
    pub receive_buffer_bytes: u64,
}

/// A switch or router.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct NodePlan {
    /// Kind of the node: `router`, `atm switch` or `ethernet switch`.
    pub kind: String,
    /// Time for each packet.
    pub delay_ns: u64,
    /// Kind of the node's ECMP policy, if it has a choice on the path between any two hosts.
    pub ecmp: Option<String>,
    /// Header fields that the policy hashes: `layer-3` or `layer-4`; none unless the policy is a hash.
    #[serde(default)]
    pub hash: Option<String>,
    /// Of an ATM switch: true if its discard policy draws random numbers.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub draws: bool,
    /// Of a router: true if it asks for hardware addresses (ARP).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub arp: bool,
}

/// A link.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct LinkPlan {
    /// Name of the link.
    pub name: String,
    /// The two nodes that the link connects.
    pub ends: [String; 2],
    /// Medium of the link, as in the file.
    pub medium: String,
    /// How packets are framed: `cells`, `ethernet` or `packets`.
    pub framing: String,
    /// Line rate at each end.
    pub rates_bit_per_s: [u64; 2],
    /// Largest IP packet (MTU).
    pub mtu_bytes: u64,
    /// Bytes that framing adds to an IP packet on the line; 0 with `cells` framing.
    pub overhead_bytes: u64,
    /// Fewest bytes that a packet takes on the line; 0 if short packets are not padded.
    pub least_bytes: u64,
    /// Propagation delay.
    pub delay_ns: u64,
    /// Largest random extra delay.
    pub jitter_ns: u64,
    /// True if the link loses packets at random.
    pub loses: bool,
    /// True if packets may overtake others.
    pub reorders: bool,
    /// Queue discipline of the transmitter at each end.
    pub queues: [Option<QueuePlan>; 2],
}

/// A queue discipline.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct QueuePlan {
    /// Kind of the discipline, as in the file.
    pub kind: String,
    /// Largest number of packets in a drop-tail queue; none if unlimited.
    pub packets: Option<u64>,
    /// Largest number of bytes in a drop-tail queue; none if unlimited.
    pub bytes: Option<u64>,
    /// True if the discipline marks packets (ECN).
    pub marks: bool,
    /// True if packets leave in the order of their arrival, one whenever the line is free.
    pub keeps_order: bool,
    /// True if the discipline draws random numbers.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub draws: bool,
}

/// The path from one host to another.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct WayPlan {
    /// Sending host.
    pub from: String,
    /// Receiving host.
    pub to: String,
    /// Link over which the receiver receives.
    pub last_link: String,
    /// Other links over which packets may arrive, if policies choose among them.
    #[serde(default)]
    pub other_last_links: Vec<String>,
    /// Smallest MTU on the path.
    pub mtu_bytes: u64,
    /// MTU of the first link of the path.
    pub first_mtu_bytes: u64,
    /// True if the sender discovers the smallest MTU, in some traffic on this path or in all that the host sends. Otherwise it knows that MTU from the start.
    pub discovers_mtu: bool,
    /// The circuit, if one leads from host to host.
    pub circuit: Option<CircuitPlan>,
}

/// Limits of a sending NIC on a circuit.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct CircuitPlan {
    /// Rate of whole cells, without the framing of the medium.
    pub rate_bit_per_s: u64,
    /// Bytes added to an IP packet before it is segmented into cells, without the padding of short bridged frames.
    pub overhead_bytes: u64,
}

/// The next hops towards one end of a link. An end is a link and the node at that end.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct GatewayPlan {
    /// Sending node.
    pub at: String,
    /// End to reach.
    pub to: [String; 2],
    /// Next hops, in the order of the file; several if a policy chooses.
    pub hops: Vec<HopPlan>,
}

/// A next hop.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct HopPlan {
    /// Link over which packets leave.
    pub over: String,
    /// Link end at the next router on the path, or at the receiver.
    pub via: [String; 2],
    /// Weight of the next hop in the policy.
    pub weight: u32,
}

/// A traffic table.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct FlowPlan {
    /// Name of the table.
    pub name: String,
    /// Kind of traffic.
    pub kind: String,
    /// Sending host.
    pub from: String,
    /// Receiving hosts.
    pub to: Vec<String>,
    /// Start time.
    pub start_ns: u64,
    /// Stop time; none if the traffic lasts until the end of the run.
    pub stop_ns: Option<u64>,
    /// TCP of the sending host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tcp: Option<SocketPlan>,
    /// Payload of a message, datagram or request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message_bytes: Option<u64>,
    /// Payload rate; none means as fast as possible.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_bit_per_s: Option<u64>,
    /// Mean length of a burst.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_ns: Option<u64>,
    /// Mean length of a pause between bursts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub off_ns: Option<u64>,
    /// Distribution of the lengths of bursts and pauses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lengths: Option<String>,
    /// Frame rate of a video, in millionths of a frame per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub micro_frames_per_s: Option<u64>,
    /// Frames in a group of pictures.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group_of_pictures: Option<u32>,
    /// Size of an intra frame in 10^-9 of any other frame.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub intra_size_ppb: Option<u64>,
    /// Address of a multicast group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// True for a generator of cells.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cells: bool,
}

/// TCP options for a real socket.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct SocketPlan {
    /// Maximum segment size.
    pub mss_bytes: Option<u64>,
    /// True if Nagle's algorithm is off.
    pub nodelay: Option<bool>,
    /// Congestion control.
    pub congestion: Option<String>,
}

/// Returns the plan of a point.
pub fn plan(point: &Point) -> PointPlan {
    let (testbed, topology) = (&point.testbed, &point.topology);
    let hosts = testbed.hosts.iter().map(|(name, host)| {
        let host = HostPlan {
            reach: host.reach.as_ref().map(word),
            address: host.address.as_ref().map(word),
            receive_buffer_bytes: host.receive_buffer.bytes(),
        };
        (name.clone(), host)
    });
    let ways = topology.between_hosts(testbed);
    let fans = ways.iter().filter_map(|way| way.fans.as_deref()).flatten();
    let chosen = fans.flat_map(|fan| &fan.at).filter(|(_, legs)| legs.len() > 1).map(|(node, _)| *node);
    let choices: BTreeSet<NodeId> = chosen.collect();
    let between = topology.nodes.iter().enumerate().filter_map(|(node, name)| {
        let (mut ecmp, mut hash) = (None, None);
        let (mut arp, mut draws) = (false, false);
        let (kind, delay) = match topology.kind(node) {
            NodeKind::Host(_) => return None,
            NodeKind::Router(index) => {
                let router = &testbed.routers[index];
                arp = router.arp.is_some();
                ecmp = choices.contains(&node).then(|| router.ecmp.kind().to_owned());
                if let Ecmp::Hash(config) = &router.ecmp {
                    hash = Some(word(config.fields));
                }
                ("router", Duration(router.longest_work()))
            }
            NodeKind::Switch(index) => match &testbed.switches[index] {
                Switch::Atm(config) => {
                    draws = config.discard.config().draws();
                    ("atm switch", Duration(0))
                }
                Switch::Ethernet(config) => ("ethernet switch", config.latency),
            },
        };
        Some((name.clone(), NodePlan { kind: kind.to_owned(), delay_ns: ns(delay), ecmp, hash, draws, arp }))
    });
    let flows = testbed.traffic.iter().map(|(name, traffic)| flow(point, name, traffic));
    let end =
        |(link, node): (usize, NodeId)| [topology.links[link].name.clone(), topology.nodes[node].clone()];
    let hop = |hop: NextHop| HopPlan {
        over: topology.links[hop.over].name.clone(),
        via: end(hop.via),
        weight: hop.weight,
    };
    let gateways = topology.gateways(testbed).into_iter().map(|gateway| GatewayPlan {
        at: topology.nodes[gateway.at].clone(),
        to: end(gateway.to),
        hops: gateway.hops.into_iter().map(hop).collect(),
    });
    let up = topology.tunnels.iter().filter(|tunnel| tunnel.is_up);
    PointPlan {
        run: RunPlan {
            duration_ns: ns(testbed.run.duration),
            warmup_ns: testbed.run.warmup.map_or(0, ns),
            seed: testbed.run.seed,
        },
        hosts: hosts.collect(),
        between: between.collect(),
        links: topology.links.iter().map(|ends| link(point, ends)).collect(),
        ways: ways.iter().map(|path| way(point, path)).collect(),
        gateways: gateways.collect(),
        flows: flows.collect(),
        tunnels: up.map(|tunnel| tunnel.name.clone()).collect(),
        bonds: topology.bonds.iter().map(|path| bond(topology, path)).collect(),
        events: topology.events.iter().map(|event| event.name.clone()).collect(),
    }
}

fn ns(time: Duration) -> u64 {
    time.0 / PS_PER_NS
}

/// Returns the word by which a file writes this value.
pub(crate) fn word(value: impl Serialize) -> String {
    let value = serde_json::to_value(value).expect("a config serializes to JSON");
    value.as_str().expect("the config value is a string").to_owned()
}

fn way(point: &Point, path: &FlowPath) -> WayPlan {
    let topology = &point.topology;
    let circuit = path.circuit.map(|index| {
        let circuit = &topology.circuits[index];
        let first = path.route[0];
        let Framing::Cells { slot } = topology.links[first.link].line_from(first.from).framing else {
            unreachable!("a circuit crosses ATM links")
        };
        let pace = circuit.shaping.filter(|_| path.forward).unwrap_or(slot);
        CircuitPlan {
            rate_bit_per_s: (pace.per_second() * CELL_BITS as f64) as u64,
            overhead_bytes: circuit.encapsulation.sdu(path.mtu) - path.mtu + TRAILER_BYTES,
        }
    });
    let last_link = &topology.links[path.route[path.route.len() - 1].link].name;
    let chosen = path.fans.iter().flat_map(|fans| fans[0].legs()).map(|leg| topology.last_hop(leg));
    let arriving = chosen.filter(|hop| hop.to == path.to);
    let others: BTreeSet<String> = arriving.map(|hop| topology.links[hop.link].name.clone()).collect();
    WayPlan {
        from: topology.nodes[path.from].clone(),
        to: topology.nodes[path.to].clone(),
        last_link: last_link.clone(),
        other_last_links: others.into_iter().filter(|link| link != last_link).collect(),
        mtu_bytes: path.path_mtu,
        first_mtu_bytes: path.mtu,
        discovers_mtu: point.testbed.hosts[path.from].tcp.discovers_path_mtu()
            || topology
                .flows
                .iter()
                .any(|flow| (flow.from, flow.to, flow.discovers_mtu) == (path.from, path.to, true)),
        circuit,
    }
}

fn bond(topology: &Topology, path: &BondPath) -> BondPlan {
    let rate = |link: &usize| topology.links[*link].lines[topology.links[*link].end_of(path.node)].rate;
    let rates: Vec<u64> = path.links.iter().map(rate).collect();
    BondPlan {
        name: path.name.clone(),
        node: topology.nodes[path.node].clone(),
        links: path.config.links.clone(),
        rate_bit_per_s: path.config.mode.config().rate(&rates),
    }
}

fn link(point: &Point, link: &LinkEnds) -> LinkPlan {
    let (framing, overhead, least) = match link.lines[0].framing {
        Framing::Cells { .. } => ("cells", 0, 0),
        Framing::Ethernet => {
            let around = ethernet::PREAMBLE_BYTES + ethernet::header(link.vlan) + ethernet::GAP_BYTES;
            ("ethernet", around, ethernet::line_bytes(0, link.vlan))
        }
        Framing::Packets => ("packets", link.overhead, 0),
    };
    LinkPlan {
        name: link.name.clone(),
        ends: link.ends.map(|end| point.topology.nodes[end].clone()),
        medium: word(link.medium),
        framing: framing.to_owned(),
        rates_bit_per_s: link.lines.map(|line| line.rate),
        mtu_bytes: link.mtu,
        overhead_bytes: overhead,
        least_bytes: least,
        delay_ns: link.delay.0 / PS_PER_NS,
        jitter_ns: link.jitter.0 / PS_PER_NS,
        loses: link.loss > Share(0),
        reorders: link.reorder.is_some(),
        queues: link.queues.each_ref().map(|queue| queue.as_ref().map(self::queue)),
    }
}

fn queue(queue: &Queue) -> QueuePlan {
    let limit = match queue {
        Queue::DropTail(config) => Some(config.limit),
        _ => None,
    };
    QueuePlan {
        kind: queue.kind().to_owned(),
        // The largest integer stands for "unlimited".
        packets: limit.map(|limit| limit.packets).filter(|packets| *packets < u64::MAX),
        bytes: limit.map(|limit| limit.bytes).filter(|bytes| *bytes < u64::MAX),
        marks: queue.config().marks(),
        keeps_order: queue.config().keeps_order(),
        draws: queue.config().draws(),
    }
}

/// Adds the frames of a video to the plan of its flow.
fn video(frames: Option<Frames>, plan: FlowPlan) -> FlowPlan {
    FlowPlan {
        micro_frames_per_s: frames.map(|frames| frames.frame_rate.0),
        group_of_pictures: frames.map(|frames| frames.group_of_pictures),
        intra_size_ppb: frames.map(|frames| frames.intra_size.0),
        ..plan
    }
}

fn flow(point: &Point, name: &str, traffic: &Traffic) -> FlowPlan {
    let (from, to) = traffic.ends();
    let (start, stop) = traffic.window();
    let tcp = traffic.tcp().map(|own| socket(&own.over(&point.testbed.hosts[from].tcp)));
    let plan = FlowPlan {
        name: name.to_owned(),
        kind: traffic.kind().to_owned(),
        from: from.to_owned(),
        to: vec![to.to_owned()],
        start_ns: start.map_or(0, ns),
        stop_ns: stop.map(ns),
        tcp,
        ..FlowPlan::default()
    };
    match traffic {
        Traffic::TcpStream(config) => FlowPlan {
            message_bytes: Some(config.message.bytes()),
            rate_bit_per_s: config.rate.map(|rate| rate.0),
            ..plan
        },
        Traffic::UdpOnOff(config) => FlowPlan {
            message_bytes: Some(config.message.bytes()),
            rate_bit_per_s: Some(config.rate.0),
            on_ns: Some(ns(config.on)),
            off_ns: Some(ns(config.off)),
            lengths: Some(word(config.lengths)),
            ..plan
        },
        Traffic::RequestResponse(config) => FlowPlan { message_bytes: Some(config.request.bytes()), ..plan },
        Traffic::Multicast(config) => FlowPlan {
            message_bytes: Some(config.message.bytes()),
            rate_bit_per_s: Some(config.rate.0),
            group: Some(word(config.group)),
            to: config.to.clone(),
            ..video(config.video, plan)
        },
        _ => {
            let (bytes, rate) = traffic.datagrams().unzip();
            let plan = FlowPlan {
                message_bytes: bytes,
                rate_bit_per_s: rate.flatten().map(|rate| rate.0),
                cells: traffic.cells().is_some(),
                ..plan
            };
            match traffic {
                Traffic::Video(config) => video(Some(config.frames()), plan),
                _ => plan,
            }
        }
    }
}

fn socket(tcp: &TcpConfig) -> SocketPlan {
    SocketPlan {
        mss_bytes: tcp.mss.map(Size::bytes),
        nodelay: tcp.nagle.map(|nagle| nagle == Nagle::Off),
        congestion: tcp.congestion.as_ref().map(|congestion| congestion.kind().to_owned()),
    }
}
