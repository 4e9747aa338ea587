//! Warnings about values that are too small for the packets of the traffic: segment sizes above the path MTU, and discard thresholds that leave too little room
//! for a packet.

use std::collections::{BTreeMap, BTreeSet};

use engpass_model::source::Traffic;
use engpass_model::switch::Switch;
use engpass_model::tcp::TcpConfig;
use engpass_model::unit::{CellCount, Size};
use engpass_model::wire::aal5;
use engpass_model::wire::ip::{IP_HEADER_BYTES, UDP_HEADER_BYTES};

use crate::diagnostic::Diagnostic;
use crate::links;
use crate::path_mtu::HEADERS;
use crate::resolve::Resolver;
use crate::topology::{FlowPath, Hop, NodeId, PathSegment};

/// An `mss` of the file, and the flow whose path carries the longest segments.
struct GivenMss<'a> {
    mss: Size,
    flow: &'a FlowPath,
}

/// The PDUs that cross an output port of an ATM switch.
#[derive(Default)]
struct PortLoad<'a> {
    /// The lines on which their cells arrive.
    inputs: BTreeSet<Hop>,
    /// Length of the longest PDU in cells, and its flow.
    longest: (u64, &'a str),
}

impl Resolver<'_> {
    /// Warns about values that are too small or too large for the packets of these flows.
    pub(crate) fn warn_of_packets_that_do_not_fit(&mut self, flows: &[FlowPath]) {
        self.segments_above_the_path_mtu(flows);
        self.exact_marks_without_ecn(flows);
        self.thresholds_without_room(flows);
    }

    /// Warns about each `mss` above the segment size that the paths of all its connections carry.
    fn segments_above_the_path_mtu(&mut self, flows: &[FlowPath]) {
        let mut given: BTreeMap<Vec<&str>, GivenMss> = BTreeMap::new();
        for ((name, traffic), flow) in self.draft.traffic.iter().zip(flows) {
            let Some(own) = traffic.as_ref().and_then(Traffic::tcp) else { continue };
            let hosts = [flow.from, flow.to].map(|node| self.draft.hosts.get_index(node));
            let tables = match own.mss {
                Some(mss) => vec![(vec!["traffic", name, "tcp", "mss"], mss)],
                None => hosts
                    .into_iter()
                    .flatten()
                    .filter_map(|(host, config)| {
                        Some((vec!["host", host, "tcp", "mss"], config.as_ref()?.tcp.mss?))
                    })
                    .collect(),
            };
            for (path, mss) in tables {
                let known = given.entry(path).or_insert(GivenMss { mss, flow });
                if known.flow.path_mtu < flow.path_mtu {
                    known.flow = flow;
                }
            }
        }
        for (path, GivenMss { mss, flow }) in given {
            let most = flow.path_mtu.saturating_sub(HEADERS).max(1);
            if mss.bytes() <= most {
                continue;
            }
            let (effect, remove) = if flow.discovers_mtu {
                ("the first longer segments are lost, and path MTU discovery then shortens them", "")
            } else {
                ("segments are shortened to that", ", remove it,")
            };
            let message = format!(
                "`mss` is {} B, but packets on the path of traffic `{}` have at most {} B, so segments have at most {most} B: {effect}",
                mss.bytes(),
                flow.name,
                flow.path_mtu
            );
            let help = format!("set `mss` to at most `{most} B`{remove} or raise the MTU of the path");
            let warning = Diagnostic::warning("large-mss", message).help(help).only_if_at_every_point("");
            self.checker.report(&path, warning);
        }
    }

    /// Warns about each connection whose congestion control lives on exact marks while an end does not agree to ECN, or no queue marks.
    fn exact_marks_without_ecn(&mut self, flows: &[FlowPath]) {
        let marked = self
            .links
            .iter()
            .flat_map(|link| link.queues.iter().flatten())
            .any(|queue| queue.config().marks());
        let mut found: BTreeMap<Vec<&str>, (Vec<String>, &str, &'static str)> = BTreeMap::new();
        let mut unmarked: BTreeMap<Vec<&str>, (&str, &'static str)> = BTreeMap::new();
        for ((name, traffic), flow) in self.draft.traffic.iter().zip(flows) {
            let Some(own) = traffic.as_ref().and_then(Traffic::tcp) else { continue };
            let end = |node: NodeId| {
                let (host, config) = self.draft.hosts.get_index(node)?;
                Some((host, own.over(&config.as_ref()?.tcp)))
            };
            let (Some(sender), Some(receiver)) = (end(flow.from), end(flow.to)) else { continue };
            let congestion = sender.1.resolve(flow.path_mtu).congestion;
            if !congestion.config().wants_exact_marks() {
                continue;
            }
            // The handshake asks for exact marks: an end without them does not agree.
            let agrees = |tcp: &TcpConfig| {
                let end = tcp.resolve(flow.path_mtu);
                end.ecn && end.congestion.config().wants_exact_marks()
            };
            if !marked && agrees(&sender.1) && agrees(&receiver.1) {
                let path = match own.congestion.is_some() {
                    true => vec!["traffic", name, "tcp", "congestion"],
                    false => vec!["host", sender.0, "tcp", "congestion"],
                };
                unmarked.entry(path).or_insert((name, congestion.kind()));
            }
            let sender_name = sender.0;
            for (host, tcp) in [sender, receiver].into_iter().filter(|(_, tcp)| !agrees(tcp)) {
                let path = match (tcp.ecn, own.ecn, own.congestion.is_some()) {
                    (Some(_), Some(_), _) => vec!["traffic", name, "tcp", "ecn"],
                    (Some(_), None, _) => vec!["host", host, "tcp", "ecn"],
                    (None, _, true) => vec!["traffic", name, "tcp", "congestion"],
                    (None, _, false) => vec!["host", sender_name, "tcp", "congestion"],
                };
                let (hosts, ..) = found.entry(path).or_insert_with(|| (Vec::new(), name, congestion.kind()));
                let host = format!("`{host}`");
                if !hosts.contains(&host) {
                    hosts.push(host);
                }
            }
        }
        for (path, (hosts, name, congestion)) in found {
            let (who, verb) = (hosts.join(" and "), if hosts.len() == 1 { "does" } else { "do" });
            let message = format!(
                "traffic `{name}` has `{congestion}`, but {who} {verb} not agree to ECN: nothing is marked, and losses halve the window as with Reno"
            );
            let help = format!(
                "set `tcp.congestion = \"{congestion}\"` and `tcp.ecn = true` at {who}, or choose another congestion control"
            );
            self.checker.report(&path, Diagnostic::warning("no-marks", message).help(help));
        }
        for (path, (name, congestion)) in unmarked {
            let message = format!(
                "traffic `{name}` has `{congestion}`, but no queue marks packets: losses halve the window as with Reno"
            );
            let help = "set `ecn_threshold` of a drop-tail queue, or `ecn = true` of another, at the switches and routers on its path";
            self.checker.report(&path, Diagnostic::warning("no-marks", message).help(help));
        }
    }

    /// Warns about switches that accept new PDUs up to a threshold, above which the longest PDU of the traffic does not fit.
    fn thresholds_without_room(&mut self, flows: &[FlowPath]) {
        let mut ports: BTreeMap<Hop, PortLoad> = BTreeMap::new();
        for (traffic, flow) in self.draft.traffic.values().zip(flows) {
            let packet = traffic.as_ref().and_then(|traffic| self.longest_packet(traffic, flow));
            let legs: Vec<PathSegment> = match &flow.fans {
                Some(fans) => fans[0].legs().collect(),
                None => flow.legs.clone(),
            };
            for leg in legs {
                let PathSegment::Circuit { circuit, .. } = leg else { continue };
                let (Some(route), Some(circuit)) = (self.route(&[leg]), &self.circuits[circuit]) else {
                    continue;
                };
                // A generator sends no PDUs, but its cells fill queues.
                let cells = packet
                    .map_or(0, |packet| aal5::cells(circuit.encapsulation.sdu(packet.min(circuit.mtu))));
                for pair in route.windows(2) {
                    let load = ports.entry(pair[1]).or_default();
                    load.inputs.insert(pair[0]);
                    load.longest = load.longest.max((cells, &flow.name));
                }
            }
        }
        // By switch: the port with the longest PDU.
        let mut worst: BTreeMap<NodeId, (u64, &str)> = BTreeMap::new();
        for (hop, load) in &ports {
            if self.can_fill(*hop, &load.inputs) {
                let known = worst.entry(hop.from).or_default();
                *known = load.longest.max(*known);
            }
        }
        for (node, (cells, flow)) in worst {
            self.threshold_without_room(node, cells, flow);
        }
    }

    fn threshold_without_room(&mut self, node: NodeId, cells: u64, flow: &str) {
        let Some(Switch::Atm(switch)) = links::switch(self.draft, node) else { return };
        let (capacity, discard) = (switch.output_buffer.0, &switch.discard);
        let Some((key, threshold)) = discard.config().refuses_above(capacity) else { return };
        let room = capacity.saturating_sub(threshold);
        if room >= cells {
            return;
        }
        let (kind, name) = (discard.kind(), &self.nodes[node]);
        // The size of the packet is in the help, not in the message, so that a sweep over sizes gives one warning.
        let message = format!(
            "`{kind}` of switch `{name}` has room for {} above its `{key}`, less than a packet of traffic `{flow}` needs: packets that it accepts lose cells when the queue is full",
            CellCount(room)
        );
        let packet = CellCount(cells);
        let help = match capacity.checked_sub(cells) {
            Some(fits) if fits > 0 => {
                format!(
                    "a packet has {packet}: set `{key}` to at most `{}`, or enlarge `output_buffer`",
                    CellCount(fits)
                )
            }
            _ => format!("a packet has {packet}: set `output_buffer` to more"),
        };
        let warning = Diagnostic::warning("late-discard", message).help(help);
        self.checker.report(&["switch", name, "discard", kind, key], warning);
    }

    /// Returns true if cells may arrive at a port faster than they leave.
    fn can_fill(&self, port: Hop, inputs: &BTreeSet<Hop>) -> bool {
        let rate = |hop: &Hop| self.links[hop.link].line_from(hop.from).rate;
        inputs.len() > 1 || inputs.iter().any(|input| rate(input) > rate(&port))
    }

    /// Returns the length of the longest packets that the sender of a traffic makes for its path, in bytes; with random lengths the length for the
    /// mean message. `None` if it sends cells, or packets that only real hosts send.
    fn longest_packet(&self, traffic: &Traffic, flow: &FlowPath) -> Option<u64> {
        match traffic.datagrams() {
            Some((message, _)) => Some((message + UDP_HEADER_BYTES + IP_HEADER_BYTES).min(flow.mtu)),
            None => traffic.tcp().map(|_| flow.path_mtu.min(self.segment_limit(traffic, flow.from))),
        }
    }
}
