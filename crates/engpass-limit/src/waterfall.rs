//! The waterfall: from the line rate to the goodput, with one step for each layer and each limit that lowers the rate.

use engpass_model::source::Traffic;
use engpass_model::wire::Framing;
use engpass_model::wire::layers::Layer;
use engpass_outcome::{BottleneckKind, Stage};
use engpass_testbed::topology::LinkEnds;

use super::flow::Flow;
use super::need::Demand;
use super::piece::LineLayers;
use super::{CandidateDetail, Named, fraction};

/// Relative differences smaller than this come from rounding of shares.
const ROUNDING: f64 = 1e-9;

/// Returns the steps on the most limiting link and on the links parallel to it, then a step for each lower limit.
pub(super) fn stages(
    named: &Named<'_, '_>,
    flow: &Flow<'_, '_>,
    answers: &[CandidateDetail<'_>],
) -> Vec<Stage> {
    let link = answers
        .iter()
        .filter(|answer| answer.limiter.kind() == BottleneckKind::Link)
        .min_by(|one, other| one.goodput.total_cmp(&other.goodput))
        .expect("every flow crosses a link");
    let layers = link.limiter.line.expect("a link limiter has a line");
    let lines = beside(named, flow, layers.level, link.goodput);
    let line_rate: f64 = lines.iter().map(|line| line.rate).sum();

    let mut stages = Waterfall(vec![Stage { name: "line rate".to_owned(), rate_bit_per_s: line_rate }]);
    let own = match &lines[..] {
        [_] if flow.lanes.len() == 1 => line_rate * link.own,
        _ => lines.iter().map(|line| line.own).sum(),
    };
    match lines.iter().filter(|line| line.rate > 0.0).count() {
        1 => stages.step("other traffic", own),
        _ => {
            // Lines do not become full if round-robin or hashing brings them less traffic than another line.
            let left: f64 = lines.iter().map(|line| line.rate - line.others).sum();
            stages.step("other traffic", left.max(own));
            stages.step("uneven spread", own);
        }
    }
    let mut names: Vec<&str> = Vec::new();
    for line in &lines {
        let new = steps(&named.topology.links[line.layers.hop.link], flow.first());
        // Media differ in the outer layers. All of them carry IP inside.
        for (place, (name, _)) in new.iter().enumerate() {
            if !names.contains(name) {
                let before =
                    new[place + 1..].iter().find_map(|(next, _)| names.iter().position(|one| one == next));
                names.insert(before.unwrap_or(names.len()), name);
            }
        }
    }
    let mut left: Vec<f64> = lines.iter().map(|line| line.layers.line()).collect();
    for name in names {
        let mut inside = true;
        for (line, left) in lines.iter().zip(&mut left) {
            let own = steps(&named.topology.links[line.layers.hop.link], flow.first());
            let group = own.iter().find(|(known, _)| *known == name).map_or(&[][..], |(_, group)| group);
            *left -= group.iter().map(|layer| line.layers.parts(*layer)).sum::<f64>();
            inside &= *left <= line.layers.parts(Layer::Payload) * (1.0 + ROUNDING);
        }
        let of = |(line, left): (&Line, &f64)| left / line.layers.line();
        let rate = match &lines[..] {
            // After the last layer the rate is exactly the link's goodput.
            _ if inside => link.goodput,
            [line] => own * of((line, &left[0])),
            _ => lines.iter().zip(&left).map(|(line, left)| line.own * of((line, left))).sum(),
        };
        stages.step(name, rate);
    }
    for answer in answers {
        let name = match answer.limiter.kind() {
            BottleneckKind::Link => continue,
            BottleneckKind::Shaper => "shaper",
            BottleneckKind::Policer => "policer",
            BottleneckKind::TokenBucket => "token bucket",
            BottleneckKind::Buffer => "buffer",
            BottleneckKind::TimeToLive => "TTL",
            BottleneckKind::Tunnel => "tunnel",
            BottleneckKind::Router => "router",
            BottleneckKind::SendingPath => "copies, then DMA",
            BottleneckKind::SendingMemory => "memory of the sender",
            BottleneckKind::SendingBus => "I/O bus of the sender",
            BottleneckKind::SendingHost => "sending host",
            BottleneckKind::ReceivingPath => "DMA, then copies",
            BottleneckKind::ReceivingMemory => "memory of the receiver",
            BottleneckKind::ReceivingBus => "I/O bus of the receiver",
            BottleneckKind::ReceivingHost => "receiving host",
            BottleneckKind::SocketBuffers => "socket buffers: window per round trip",
            BottleneckKind::Application => "application",
            BottleneckKind::Acknowledgements => "acknowledgements",
            other => unreachable!("`limit` has no candidate of kind {other:?}"),
        };
        if answer.goodput < stages.last() {
            stages.step(name, answer.goodput);
        }
    }
    let goodput = answers.iter().map(|answer| answer.goodput).fold(f64::INFINITY, f64::min);
    stages.step("goodput", goodput);
    stages.0
}

/// A line, and the flow's use of it in packets of one length.
struct Line {
    layers: LineLayers,
    /// Line rate, and its use by other flows, in bit/s; both are 0 if the line is listed already. Then the use by this flow if it gets the link's goodput.
    rate: f64,
    others: f64,
    own: f64,
}

/// Returns all lines that the flow crosses on a level, with its use of each if the flow gets `goodput` on this level.
fn beside(named: &Named<'_, '_>, flow: &Flow<'_, '_>, level: usize, goodput: f64) -> Vec<Line> {
    let Named { topology, resources, demands, all, .. } = *named;
    let fair = flow.fair(all);
    let mut lines: Vec<Line> = Vec::new();
    for lane in flow.lanes {
        for limiter in
            lane.limiters.iter().filter(|limiter| limiter.line.is_some_and(|one| one.level == level))
        {
            let layers = limiter.line.expect("the limiter is a line");
            let share = if fair > 0.0 { goodput / fair } else { 0.0 };
            let own = all.rates[lane.index] * share * layers.line() / layers.parts_per_bit();
            // Segments of different connections may differ in length if the MTUs of their paths do.
            let alike = |one: &LineLayers| {
                one.line() == layers.line() && one.parts(Layer::Payload) == layers.parts(Layer::Payload)
            };
            let same = |line: &&mut Line| line.layers.hop == layers.hop && alike(&line.layers);
            if let Some(known) = lines.iter_mut().find(same) {
                known.own += own;
                continue;
            }
            if lines.iter().any(|line| line.layers.hop == layers.hop) {
                lines.push(Line { layers, rate: 0.0, others: 0.0, own });
                continue;
            }
            let line = limiter.resources[0];
            let rate = topology.links[layers.hop.link].line_from(layers.hop.from).rate as f64;
            let others = resources.users[line].iter().filter(|user| demands[**user].flow != flow.index);
            let others: f64 = others.map(|user| all.of(*user, line)).sum();
            lines.push(Line {
                layers,
                rate,
                others: rate * fraction(others, resources.capacities[line]),
                own,
            });
        }
    }
    lines
}

/// Returns the layers of a link's medium, as steps from the outside to the inside.
fn steps(link: &LinkEnds, demand: &Demand<'_>) -> Vec<(&'static str, &'static [Layer])> {
    let mut steps: Vec<(&'static str, &'static [Layer])> = match link.lines[0].framing {
        Framing::Cells { .. } => {
            vec![("physical framing", &[Layer::Physical]), ("cell headers", &[Layer::CellHeader])]
        }
        Framing::Ethernet => vec![
            ("preamble and gap", &[Layer::Physical]),
            (
                if link.vlan { "Ethernet header, tag and FCS" } else { "Ethernet header and FCS" },
                &[Layer::FrameHeader],
            ),
            ("Ethernet padding", &[Layer::Padding]),
        ],
        Framing::Packets => vec![("link overhead", &[Layer::FrameHeader])],
    };
    if demand.generator {
        return steps;
    }
    if link.medium.is_atm() {
        steps.push(("AAL5 padding and trailer", &[Layer::Padding, Layer::Trailer]));
        steps.push(("encapsulation", &[Layer::Encapsulation]));
    }
    steps.push(("IP headers", &[Layer::IpHeader]));
    if demand.lane.there.stops.iter().any(|stop| !stop.tunnels.is_empty()) {
        steps.push(("tunnel headers", &[Layer::TunnelHeader]));
    }
    let transport =
        if matches!(demand.traffic, Traffic::TcpStream(_)) { "TCP headers" } else { "UDP headers" };
    steps.push((transport, &[Layer::TransportHeader]));
    steps
}

struct Waterfall(Vec<Stage>);

impl Waterfall {
    fn last(&self) -> f64 {
        self.0.last().expect("the stages begin with the line rate").rate_bit_per_s
    }

    /// Adds a step whose rate is not above that of the step before, not even by rounding.
    fn step(&mut self, name: &str, rate: f64) {
        self.0.push(Stage { name: name.to_owned(), rate_bit_per_s: rate.min(self.last()) });
    }
}
