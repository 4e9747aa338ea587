//! A point in whole numbers and base units, for what carries it outside the model: namespaces, real hosts.
//!
//! Nothing is decided here: what a key means is said at the key.

use engpass_model::queue::Queue;
use engpass_model::source::{Live, Traffic, Transport};
use engpass_model::switch::Switch;
use engpass_model::tcp::TcpConfig;
use engpass_model::tcp::parameters::Nagle;
use engpass_model::unit::{Duration, Share, Size};
use engpass_model::wire::Framing;
use engpass_model::wire::aal5::{CELL_BITS, TRAILER_BYTES};
use serde_json::{Map, Value, json};

use crate::campaign::Point;
use crate::topology::{FlowPath, LinkEnds, NodeId, NodeKind, Path};

const PS_PER_NS: u64 = 1000;
/// Congestion control does not depend on it.
const ANY_MTU: u64 = 1500;

/// Hosts, nodes between them, links and traffic of a point; keys carry their unit.
pub fn numbers(point: &Point) -> Value {
    let (testbed, topology) = (&point.testbed, &point.topology);
    let hosts = testbed.hosts.iter().map(|(name, host)| {
        let host = json!({
            "reach": host.reach,
            "address": host.address,
            "receive_buffer_bytes": host.receive_buffer.bytes(),
        });
        (name.clone(), host)
    });
    let between = topology.nodes.iter().enumerate().filter_map(|(node, name)| {
        let (kind, delay) = match topology.kind(node) {
            NodeKind::Host(_) => return None,
            NodeKind::Router(index) => ("router", testbed.routers[index].per_packet),
            NodeKind::Switch(index) => match &testbed.switches[index] {
                Switch::Atm(_) => ("atm switch", Duration(0)),
                Switch::Ethernet(config) => ("ethernet switch", config.latency),
            },
        };
        Some((name.clone(), json!({ "kind": kind, "delay_ns": ns(delay) })))
    });
    let ways = topology.between_hosts(testbed);
    let flows = testbed.traffic.iter().zip(&topology.flows);
    let flows =
        flows.map(|((name, traffic), path)| flow(point, name, traffic, &paths(point, traffic, path, &ways)));
    let end = |(link, node): (usize, NodeId)| json!([topology.links[link].name, topology.nodes[node]]);
    let gateways = topology.gateways().into_iter().map(
        |gateway| json!({ "at": topology.nodes[gateway.at], "to": end(gateway.to), "via": end(gateway.via) }),
    );
    json!({
        "run": {
            "duration_ns": ns(testbed.run.duration),
            "warmup_ns": testbed.run.warmup.map_or(0, ns),
            "precision": testbed.run.precision.map(Share::fraction),
            "most_ns": ns(testbed.run.most()),
            "seed": testbed.run.seed,
        },
        "hosts": hosts.collect::<Map<String, Value>>(),
        "between": between.collect::<Map<String, Value>>(),
        "links": topology.links.iter().map(|ends| link(point, ends)).collect::<Vec<_>>(),
        "ways": ways.iter().map(|path| way(point, path)).collect::<Vec<_>>(),
        "gateways": gateways.collect::<Vec<_>>(),
        "flows": flows.collect::<Vec<_>>(),
    })
}

/// The paths of a traffic: one to each receiver.
fn paths(point: &Point, traffic: &Traffic, first: &FlowPath, ways: &[FlowPath]) -> Vec<Path> {
    let topology = &point.topology;
    let Traffic::Multicast(config) = traffic else { return vec![topology.path(&first.route)] };
    let to = |name: &String| {
        let way = ways.iter().find(|way| way.from == first.from && topology.nodes[way.to] == *name);
        topology.path(&way.expect("every member of a group can be reached").route)
    };
    config.to.iter().map(to).collect()
}

fn ns(time: Duration) -> u64 {
    time.0 / PS_PER_NS
}

fn bytes(size: Option<Size>) -> Option<u64> {
    size.map(Size::bytes)
}

/// A way from a host to another; with a circuit, what of it the sending NIC keeps to.
fn way(point: &Point, path: &FlowPath) -> Value {
    let topology = &point.topology;
    let circuit = path.circuit.map(|index| {
        let circuit = &topology.circuits[index];
        let first = path.route[0];
        let Framing::Cells { slot } = topology.links[first.link].line_from(first.from).framing else {
            unreachable!("a circuit crosses ATM links")
        };
        let pace = circuit.shaping.filter(|_| path.forward).unwrap_or(slot);
        json!({
            // Of whole cells; the framing of the medium is not counted.
            "rate_bit_per_s": (pace.per_second() * CELL_BITS as f64) as u64,
            // Beside the packet, before cells are filled; the padding of short bridged frames is not counted.
            "overhead_bytes": circuit.encapsulation.sdu(path.mtu) - path.mtu + TRAILER_BYTES,
        })
    });
    json!({
        "from": topology.nodes[path.from],
        "to": topology.nodes[path.to],
        // The end of a link at which the receiver is reached.
        "last_link": topology.links[path.route[path.route.len() - 1].link].name,
        "mtu_bytes": path.path_mtu,
        "circuit": circuit,
    })
}

fn link(point: &Point, link: &LinkEnds) -> Value {
    let framing = match link.lines[0].framing {
        Framing::Cells { .. } => "cells",
        Framing::Ethernet => "ethernet",
        Framing::Packets => "packets",
    };
    json!({
        "name": link.name,
        "ends": link.ends.map(|end| &point.topology.nodes[end]),
        "medium": link.medium,
        "framing": framing,
        // Of the transmitter at each end, as `queues`.
        "rates_bit_per_s": link.lines.map(|line| line.rate),
        "mtu_bytes": link.mtu,
        "overhead_bytes": link.overhead,
        "vlan": link.vlan,
        "delay_ns": link.delay.0 / PS_PER_NS,
        "jitter_ns": link.jitter.0 / PS_PER_NS,
        "loses": link.loss > Share(0),
        "reorders": link.reorder.is_some(),
        "queues": link.queues.each_ref().map(|queue| queue.as_ref().map(self::queue)),
    })
}

fn queue(queue: &Queue) -> Value {
    let (limit, marks) = match queue {
        Queue::DropTail(config) => (Some(config.limit), config.ecn_threshold.is_some()),
        _ => (None, false),
    };
    json!({
        "kind": queue.kind(),
        // No bound is the largest number there is.
        "packets": limit.map(|limit| limit.packets).filter(|packets| *packets < u64::MAX),
        "bytes": limit.map(|limit| limit.bytes).filter(|bytes| *bytes < u64::MAX),
        "marks": marks,
    })
}

fn flow(point: &Point, name: &str, traffic: &Traffic, paths: &[Path]) -> Value {
    let (from, to) = traffic.ends();
    let (start, stop) = traffic.window();
    let mut flow = json!({
        "name": name,
        "kind": traffic.kind(),
        "from": from,
        "to": [to],
        "paths": paths,
        "start_ns": start.map_or(0, ns),
        "stop_ns": stop.map(ns),
        "priority": traffic.priority(),
        "ttl": traffic.ttl(),
        "live": traffic.live().map(live),
        "receive_buffer_bytes": bytes(traffic.receive_buffer()),
    });
    if let Some(own) = traffic.tcp() {
        let of = |host: &str| socket(&own.over(&point.testbed.hosts[host].tcp));
        flow["tcp"] = json!([of(from), of(to)]);
    }
    let more = match traffic {
        Traffic::UdpStream(config) => json!({
            "message_bytes": config.message.bytes(),
            "rate_bit_per_s": config.rate.map(|rate| rate.0),
        }),
        Traffic::TcpStream(config) => json!({
            "message_bytes": config.message.bytes(),
            "rate_bit_per_s": config.rate.map(|rate| rate.0),
            "streams": config.streams,
        }),
        Traffic::Poisson(config) => json!({
            "message_bytes": config.message.bytes(),
            "rate_bit_per_s": config.rate.0,
            "sizes": config.sizes,
        }),
        Traffic::UdpOnOff(config) => json!({
            "message_bytes": config.message.bytes(),
            "rate_bit_per_s": config.rate.0,
            "on_ns": ns(config.on),
            "off_ns": ns(config.off),
            "lengths": config.lengths,
        }),
        Traffic::RequestResponse(config) => json!({
            "message_bytes": config.request.bytes(),
            "response_bytes": config.response.bytes(),
            "transport": match config.transport { Transport::Tcp => "tcp", Transport::Udp => "udp" },
            "every_ns": config.every.map(ns),
            "streams": config.streams,
        }),
        Traffic::Multicast(config) => json!({
            "message_bytes": config.message.bytes(),
            "rate_bit_per_s": config.rate.0,
            "group": config.group,
            "to": config.to,
        }),
        Traffic::Cbr(_) | Traffic::OnOff(_) => json!({ "cells": true }),
    };
    if let (Value::Object(flow), Value::Object(more)) = (&mut flow, more) {
        flow.extend(more);
    }
    flow
}

fn live(live: &Live) -> Value {
    json!({
        "dscp": live.dscp.map(|dscp| dscp.0),
        "pacing": live.pacing,
        "burst_messages": live.burst,
        "method": live.method,
        "segmentation": live.segmentation,
        "truncate": live.truncate,
        "dont_fragment": live.dont_fragment,
        "mptcp": live.mptcp,
        "send_buffer_bytes": bytes(live.send_buffer),
        "send_cores": live.send_cores,
        "receive_cores": live.receive_cores,
    })
}

/// What a real TCP socket can be told, and the keys that it cannot.
fn socket(tcp: &TcpConfig) -> Value {
    const TOLD: &[&str] = &["mss", "send_buffer", "receive_buffer", "nagle", "congestion"];
    let given = serde_json::to_value(tcp).expect("a config is plain data");
    let given = given.as_object().into_iter().flatten().filter(|(_, value)| !value.is_null());
    let rest: Vec<&String> = given.map(|(key, _)| key).filter(|key| !TOLD.contains(&key.as_str())).collect();
    json!({
        "mss_bytes": bytes(tcp.mss),
        "send_buffer_bytes": bytes(tcp.send_buffer),
        "receive_buffer_bytes": bytes(tcp.receive_buffer),
        "nodelay": tcp.nagle.map(|nagle| nagle == Nagle::Off),
        "congestion": tcp.congestion.as_ref().map(|congestion| congestion.kind()),
        // What the model has where none is given: the profile's.
        "model_congestion": tcp.resolve(ANY_MTU).congestion.kind(),
        "untold": rest,
    })
}
