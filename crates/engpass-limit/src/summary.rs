//! Summaries: the bottleneck in words.

use std::collections::BTreeSet;

use engpass_model::host::{DataPath, Transfer};
use engpass_model::queue::Queue;
use engpass_model::source::Traffic;
use engpass_model::unit::wording::duration;
use engpass_model::wire::Framing;
use engpass_model::wire::layers::Layer;
use engpass_outcome::{Bottleneck, BottleneckKind, SetBy};
use engpass_testbed::Topology;

use super::flow::Flow;
use super::need::{Demand, Limiter};
use super::{CandidateDetail, Named, Others, Part};

/// Returns the summary of a flow's fair share: "link `receiver` limits `stream` to 22.10 Mbit/s: `interference` takes 83.6 % of the line; next is host `ss2` at
/// 33.57 Mbit/s".
pub(super) fn sentence(
    named: &Named<'_, '_>,
    flow: &Flow<'_, '_>,
    bottleneck: &CandidateDetail<'_>,
    next: Option<&CandidateDetail<'_>>,
) -> String {
    let demand = flow.first();
    let limiter = bottleneck.limiter;
    let verb = if plural(limiter.kind()) { "limit" } else { "limits" };
    let goodput = rate(bottleneck.goodput);
    // The lanes of a flow are consecutive.
    let mut users: Vec<usize> =
        named.resources.users[limiter.resources[0]].iter().map(|lane| named.demands[*lane].flow).collect();
    users.dedup();
    let shared = match users.len() - 1 {
        0 => String::new(),
        count => {
            let others = users.iter().copied().filter(|other| *other != flow.index);
            format!(", shared with {}", list(&names(named.topology, others), count))
        }
    };
    let reason = reason(named, flow, bottleneck, &shared);
    let reason = match limiter.kind() {
        BottleneckKind::Acknowledgements if bottleneck.others.count == 0 => {
            let connection = demand.connection.expect("only a TCP connection has acknowledgements");
            match connection.segments_per_ack.round() as u64 {
                0 | 1 => "one ACK for every segment fills the line".to_owned(),
                2 => "one ACK for every second segment fills the line".to_owned(),
                count => format!("one ACK for every {count} segments fills the line"),
            }
        }
        _ => reason,
    };
    let part = part(limiter, bottleneck.part);
    let next = next.map_or(String::new(), |next| {
        let is = if plural(next.limiter.kind()) { "are" } else { "is" };
        format!("; next {is} {} at {}", next.limiter.bottleneck.title, rate(next.goodput))
    });
    let left_out = left_out(named, flow);
    let title = &limiter.bottleneck.title;
    format!("{title} {verb} `{}` to {goodput}: {part}{reason}{next}{left_out}", demand.name)
}

/// Returns which part of a flow needs the limiter: "9 of its 16 connections take it, and ", "50.0 % of its packets take it, and "; empty if all of the flow
/// does.
fn part(limiter: &Limiter, Part { connections, packets, all }: Part) -> String {
    // A difference within rounding is ignored.
    if packets > 1.0 - super::ROUNDING || limiter.place.is_none() {
        String::new()
    } else if (packets * all - connections).abs() < super::ROUNDING {
        let verb = if connections > 1.0 { "take" } else { "takes" };
        format!("{connections:.0} of its {all:.0} connections {verb} it, and ")
    } else {
        let back = limiter.place.is_some_and(|place| place.back);
        let what = if back { "acknowledgements" } else { "packets" };
        format!("{} of its {what} take it, and ", per_cent(packets))
    }
}

/// Returns the summary of a bound: "link `down` bounds `t` to 94.93 Mbit/s: framing and headers take at least 5.1 % of the line".
pub(super) fn bound(
    named: &Named<'_, '_>,
    flow: &Flow<'_, '_>,
    tightest: &CandidateDetail<'_>,
    bound: f64,
    together: Option<&Bottleneck>,
) -> String {
    let demand = flow.first();
    let late = match demand.span.late() {
        late if late > 0.0 => format!("; it starts after {} of the measured time", per_cent(late)),
        _ => String::new(),
    };
    let to = rate(bound);
    if let Some(Bottleneck { title, .. }) = together {
        // Several circuits may begin on one link.
        let verb = if title.contains("` and `") { "together bound" } else { "bounds" };
        return format!("{title} {verb} `{}` to {to}{late}", demand.name);
    }
    let limiter = tightest.limiter;
    let (others, share) = &limiter.certain;
    let first = others.iter().copied().take(NAMED).collect();
    let others = Others { count: others.len(), share: *share, first };
    let answer = CandidateDetail { limiter, goodput: bound, own: 0.0, others, part: tightest.part };
    let verb = if plural(limiter.kind()) { "bound" } else { "bounds" };
    let name = &limiter.bottleneck.title;
    let whole = tightest.part.packets > 1.0 - super::ROUNDING && late.is_empty() && answer.others.count == 0;
    let reason = match limiter.line.filter(|_| whole) {
        Some(layers) if limiter.kind() == BottleneckKind::Link => {
            let Named { topology, .. } = *named;
            // The fair share counts the packets that the sender makes, and the bound those that carry most.
            let rate = topology.links[layers.hop.link].line_from(layers.hop.from).rate as f64;
            format!(
                "framing and headers take at least {} of the line",
                per_cent((1.0 - bound / rate).max(0.0))
            )
        }
        _ => reason(named, flow, &answer, ""),
    };
    format!("{name} {verb} `{}` to {to}: {reason}{late}", demand.name)
}

fn plural(kind: BottleneckKind) -> bool {
    use BottleneckKind::{Acknowledgements, ReceivingPath, SendingPath, SocketBuffers};
    matches!(kind, Acknowledgements | ReceivingPath | SendingPath | SocketBuffers)
}

/// Returns the links before which a strict priority queue has packets of this flow and of flows in other classes.
fn with_priority(named: &Named<'_, '_>, flow: &Flow<'_, '_>) -> Vec<String> {
    let class = |flow: usize| named.testbed.traffic[flow].priority();
    let lines = flow.lanes.iter().flat_map(|lane| &lane.limiters).filter_map(|limiter| {
        let hop = limiter.line?.hop;
        let link = &named.topology.links[hop.link];
        let users = &named.resources.users[limiter.resources[0]];
        let differs = users.iter().any(|lane| class(named.demands[*lane].flow) != class(flow.index));
        (differs && matches!(link.queues[link.end_of(hop.from)], Some(Queue::Priority(_))))
            .then_some(hop.link)
    });
    let links: BTreeSet<usize> = lines.collect();
    links.into_iter().map(|link| format!("link `{}`", named.topology.links[link].name)).collect()
}

/// Names the facts that the closed forms ignore: priorities, random loss on the paths, events, and packets that are too long for some of the paths.
fn left_out(named: &Named<'_, '_>, flow: &Flow<'_, '_>) -> String {
    let (testbed, topology) = (named.testbed, named.topology);
    let mut crossed: Vec<usize> = (flow.lanes.iter().flat_map(|lane| &lane.limiters))
        .filter_map(|limiter| limiter.line)
        .map(|layers| layers.hop.link)
        .collect();
    if flow.lanes.len() > 1 {
        let mut known = BTreeSet::new();
        crossed.retain(|link| known.insert(*link));
    }
    let links = crossed.iter().map(|link| &topology.links[*link]);
    let losing = links.filter(|link| link.loss.0 > 0);
    let losing: Vec<_> = losing.map(|link| format!("{} on link `{}`", link.loss, link.name)).collect();
    let events: Vec<_> = testbed.events.keys().map(|event| format!("`{event}`")).collect();
    let mut refused: Vec<usize> = flow.lanes.iter().flat_map(|lane| lane.refused.iter().copied()).collect();
    refused.sort_unstable();
    refused.dedup();
    let refused: Vec<_> =
        refused.iter().map(|tunnel| format!("tunnel `{}`", topology.tunnels[*tunnel].name)).collect();
    let mut all = Vec::new();
    if !refused.is_empty() {
        all.push(format!("packets that are too long for {}", list(&refused, refused.len())));
    }
    let preferred = with_priority(named, flow);
    if !preferred.is_empty() {
        let first = &preferred[..preferred.len().min(NAMED)];
        all.push(format!("priority on {}", list(first, preferred.len())));
    }
    if !losing.is_empty() {
        all.push(format!("random loss of {}", list(&losing, losing.len())));
    }
    if !events.is_empty() {
        let what = if events.len() == 1 { "event" } else { "events" };
        let first = &events[..events.len().min(NAMED)];
        all.push(format!("{what} {}", list(first, events.len())));
    }
    if all.is_empty() { String::new() } else { format!("; not counted: {}", all.join(", and ")) }
}

fn reason(
    named: &Named<'_, '_>,
    flow: &Flow<'_, '_>,
    bottleneck: &CandidateDetail<'_>,
    shared: &str,
) -> String {
    let Named { topology, resources, .. } = *named;
    let demand = flow.first();
    let limiter = bottleneck.limiter;
    let first = limiter.resources[0];
    match limiter.kind() {
        BottleneckKind::Link if bottleneck.others.count == 0 => {
            let layers = limiter.line.expect("a link limiter has a line");
            let overhead = layers.line() - layers.parts(Layer::Payload);
            format!("framing and headers take {} of the line", per_cent(overhead / layers.line()))
        }
        BottleneckKind::Link => format!("{} of the line", takers(topology, &bottleneck.others)),
        BottleneckKind::Acknowledgements if bottleneck.others.count == 0 => {
            let connection = demand.connection.expect("only a TCP connection has acknowledgements");
            let ahead = "; a window that is acknowledged after the end also counts";
            if connection.certain {
                // Acknowledgements that certainly arrive.
                let segments = 1.0 / (connection.least_acks * 8.0 * connection.segment as f64);
                format!(
                    "at least one ACK arrives for every {segments:.1} segments, and these fill the line{ahead}"
                )
            } else {
                format!(
                    "one ACK for every window fills the line{}",
                    if demand.span.warm { ahead } else { "" }
                )
            }
        }
        BottleneckKind::Acknowledgements => format!("{} of the line", takers(topology, &bottleneck.others)),
        BottleneckKind::Shaper | BottleneckKind::Policer => {
            let cells = resources.capacities[first];
            let circuit = &topology.circuits[limiter.circuit.expect("a shaper or policer has a circuit")];
            let first = circuit.route[0];
            let link = &topology.links[first.link];
            let share = match link.line_from(first.from).framing {
                Framing::Cells { slot } => {
                    format!(", {} of link `{}`", per_cent(cells / slot.per_second()), link.name)
                }
                Framing::Ethernet | Framing::Packets => String::new(),
            };
            format!("it passes {} cells/s{share}{shared}", cells.floor())
        }
        BottleneckKind::TokenBucket if resources.capacities[first] > 0.0 => {
            format!("its token rate is {}{shared}", rate(resources.capacities[first]))
        }
        BottleneckKind::TokenBucket => "frames longer than its burst are dropped".to_owned(),
        BottleneckKind::Buffer => "frames longer than its `limit` are dropped".to_owned(),
        BottleneckKind::TimeToLive => "all packets are dropped there, because their TTL ends".to_owned(),
        BottleneckKind::Tunnel => "packets longer than its MTU are dropped".to_owned(),
        BottleneckKind::SendingPath | BottleneckKind::ReceivingPath => {
            let (path, transfer) = data(bottleneck);
            let dma = transfer.then_dma.map_or(0.0, |dma| dma.ps() * demand.payload_bits / 8.0);
            let time = demand.uses.iter().find(|need| need.resource == first).map_or(0.0, |need| need.amount);
            let [first, second] = match limiter.kind() {
                BottleneckKind::SendingPath => [("CPU", time - dma), ("DMA", dma)],
                _ => [("DMA", dma), ("CPU", time - dma)],
            };
            let [one, other] = [first, second].map(|(who, time)| format!("{} of {who}", duration(time)));
            format!("on `{}` every {} takes {one}, then {other}", path.word(), unit(demand))
        }
        BottleneckKind::SendingMemory | BottleneckKind::ReceivingMemory => {
            let (path, transfer) = data(bottleneck);
            let times = match transfer.memory.0 + transfer.memory.1 {
                1 => "once".to_owned(),
                2 => "twice".to_owned(),
                times => format!("{times} times"),
            };
            let all = byte_rate(resources.capacities[first]);
            format!("`{}` moves every byte {times} through memory of {all}{shared}", path.word())
        }
        BottleneckKind::SendingBus | BottleneckKind::ReceivingBus => {
            format!("DMA reaches {}{shared}", byte_rate(resources.capacities[first]))
        }
        BottleneckKind::SendingHost | BottleneckKind::ReceivingHost | BottleneckKind::Router => {
            let cpu = *limiter.resources.first().expect("a candidate has a resource");
            let time = demand.uses.iter().find(|need| need.resource == cpu).map_or(0.0, |need| need.amount);
            let verb = match limiter.kind() {
                BottleneckKind::SendingHost => "sending",
                BottleneckKind::Router => "forwarding",
                _ => "receiving",
            };
            format!("{verb} a {} takes {}{shared}", unit(demand), duration(time))
        }
        BottleneckKind::SocketBuffers => in_flight(topology, flow),
        BottleneckKind::Application if bottleneck.goodput > 0.0 => "it offers no more".to_owned(),
        BottleneckKind::Application => "it is switched off".to_owned(),
        other => unreachable!("`limit` has no candidate of kind {other:?}"),
    }
}

/// Returns the reason for a limit by windows: "the receive buffer of `b` lets 3.15 MB be in flight for a round trip of 90 ms; the bandwidth-delay product of
/// link `wan` is 112.51 MB, and socket buffers of 105.92 MB would fill it".
fn in_flight(topology: &Topology, flow: &Flow<'_, '_>) -> String {
    let (demand, connection) = super::farthest(flow).expect("only a TCP flow has a window");
    let host = |node: usize| &topology.nodes[node];
    let held = match connection.window.set_by {
        SetBy::ReceiveBuffer => format!("the receive buffer of `{}` lets", host(demand.path.to)),
        SetBy::SendBuffer => format!("the send buffer of `{}` lets", host(demand.path.from)),
        SetBy::WindowField => "without window scaling the window lets".to_owned(),
    };
    let each = if flow.connections() > 1.0 { " on each connection" } else { "" };
    let (line, product, filling) = super::filling(topology, demand, &connection);
    format!(
        "{held} {} be in flight{each} for a round trip of {}; the bandwidth-delay product of link `{line}` is {}, and socket buffers of {}{each} \
         would fill it",
        bytes(connection.window.bytes as f64),
        duration(connection.window.round_trip),
        bytes(product),
        bytes(filling)
    )
}

/// Returns the unit of a flow in words: "message of 1024 B".
fn unit(demand: &Demand<'_>) -> String {
    let unit = if matches!(demand.traffic, Traffic::TcpStream(_)) { "segment" } else { "message" };
    format!("{unit} of {} B", (demand.payload_bits / 8.0).round())
}

fn data(bottleneck: &CandidateDetail<'_>) -> (DataPath, Transfer) {
    bottleneck.limiter.data.expect("memory and I/O bus limiters have a data path")
}

/// Returns other flows and their share in words: "`a` takes 83.6 %", "`a` and `b` take 90.0 %".
fn takers(topology: &Topology, others: &Others) -> String {
    let verb = if others.count == 1 { "takes" } else { "take" };
    let list = list(&names(topology, others.first.iter().copied()), others.count);
    format!("{list} {verb} {}", per_cent(others.share.min(1.0)))
}

/// Returns the names of flows, as many as a list shows.
fn names(topology: &Topology, flows: impl Iterator<Item = usize>) -> Vec<String> {
    flows.take(NAMED).map(|flow| format!("`{}`", topology.flows[flow].name)).collect()
}

/// Largest number of names in a list. A longer list names one less and counts the others.
pub(super) const NAMED: usize = 3;

/// Joins the names of `count` items: "`a`", "`a` and `b`", "`a`, `b` and 7 others". `names` has the first ones, at most [`NAMED`].
pub(super) fn list(names: &[String], count: usize) -> String {
    match names {
        [one, two, ..] if count > NAMED => format!("{one}, {two} and {} others", count - 2),
        [one, two, three] => format!("{one}, {two} and {three}"),
        [one, two] => format!("{one} and {two}"),
        _ => names.concat(),
    }
}

fn per_cent(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}

/// Formats a value with two decimals in the largest of its units that fits the rounded value: 999 999 bit/s are 1.00 Mbit/s, not 1000.00 kbit/s. `units` begins
/// with the largest prefix. Values below the last one have no decimals.
fn scaled(value: f64, units: &[&str], base: &str) -> String {
    let mut size = 1000f64.powi(units.len() as i32);
    for prefix in units {
        if value >= 0.999_995 * size {
            return format!("{:.2} {prefix}{base}", value / size);
        }
        size /= 1000.0;
    }
    format!("{value:.0} {base}")
}

fn rate(bit_per_s: f64) -> String {
    scaled(bit_per_s, &["T", "G", "M", "k"], "bit/s")
}

fn bytes(count: f64) -> String {
    scaled(count, &["G", "M", "k"], "B")
}

/// Formats a rate in bytes per second, as memories and buses are rated.
fn byte_rate(bytes_per_s: f64) -> String {
    scaled(bytes_per_s, &["G", "M", "k"], "B/s")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_fit_the_rounded_value() {
        let said = [999.0, 999.4, 999_994.0, 999_996.0, 1e6, 999_999_999.0, 2.5e12, 4e15].map(rate);
        let expected = [
            "999 bit/s",
            "999 bit/s",
            "999.99 kbit/s",
            "1.00 Mbit/s",
            "1.00 Mbit/s",
            "1.00 Gbit/s",
            "2.50 Tbit/s",
            "4000.00 Tbit/s",
        ];
        assert_eq!(said, expected);
        assert_eq!([0.0, 999_996.0].map(bytes), ["0 B", "1.00 MB"]);
    }
}
