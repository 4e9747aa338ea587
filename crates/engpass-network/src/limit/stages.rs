//! The waterfall: from the line rate to the goodput, one step for each layer and each limit that bites.

use engpass_model::source::Traffic;
use engpass_model::wire::Framing;
use engpass_outcome::{BottleneckKind, Stage};
use engpass_testbed::Topology;
use engpass_testbed::topology::LinkEnds;

use super::Answer;
use super::demand::Demand;
use super::layers::Layer;

/// Steps on the link that limits most, then what limits more than it.
pub(super) fn stages(topology: &Topology, demand: &Demand<'_>, answers: &[Answer<'_>]) -> Vec<Stage> {
    let link = answers
        .iter()
        .filter(|answer| answer.limiter.kind() == BottleneckKind::Link)
        .min_by(|one, other| one.goodput.total_cmp(&other.goodput))
        .expect("every flow crosses a link");
    let (hop, layers) = link.limiter.line.expect("a link has layers");
    let ends = &topology.links[hop.link];
    let line_rate = ends.line_from(hop.from).rate as f64;

    let mut stages = Waterfall(vec![Stage { name: "line rate".to_owned(), rate_bit_per_s: line_rate }]);
    let own = line_rate * link.own;
    stages.step("other traffic", own);
    let mut left = layers.line();
    for (name, group) in steps(ends, demand) {
        left -= group.iter().map(|layer| layers.parts(*layer)).sum::<u64>();
        // Below the last layer is what the link gives, to the last bit of the float.
        let inside = left == layers.parts(Layer::Payload);
        stages.step(name, if inside { link.goodput } else { own * (left as f64 / layers.line() as f64) });
    }
    for answer in answers {
        let name = match answer.limiter.kind() {
            BottleneckKind::Link => continue,
            BottleneckKind::Shaper => "shaper",
            BottleneckKind::Policer => "policer",
            BottleneckKind::TokenBucket => "token bucket",
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

/// Layers that a medium takes, in steps from the outside to the inside.
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
    let transport =
        if matches!(demand.traffic, Traffic::TcpStream(_)) { "TCP headers" } else { "UDP headers" };
    steps.push((transport, &[Layer::TransportHeader]));
    steps
}

struct Waterfall(Vec<Stage>);

impl Waterfall {
    fn last(&self) -> f64 {
        self.0.last().expect("it begins with the line rate").rate_bit_per_s
    }

    /// Water does not flow upwards, not even by the last bit of a float.
    fn step(&mut self, name: &str, rate: f64) {
        self.0.push(Stage { name: name.to_owned(), rate_bit_per_s: rate.min(self.last()) });
    }
}
