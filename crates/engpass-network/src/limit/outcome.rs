//! What the `limit` engine answers. Rates are in bit/s; none is ever infinite or not a number.

use engpass_testbed::topology::Path;
use indexmap::IndexMap;
use serde::Serialize;

/// The limits of a testbed.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LimitOutcome {
    /// Every flow by name, in the order of the file.
    pub flows: IndexMap<String, FlowLimit>,
    /// Every link by name, in the order of the file.
    pub links: IndexMap<String, LinkLimit>,
}

/// What one flow can get, and why no more.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FlowLimit {
    /// Kind of traffic, as in the file.
    pub kind: &'static str,
    /// Paths of its packets.
    pub paths: Vec<Path>,
    /// Payload that can arrive: of messages, or the 48 bytes of a generator's cells.
    pub goodput_bit_per_s: f64,
    /// Payload to offer for that: the same.
    pub offered_bit_per_s: f64,
    /// One-way delay of a message, or of a full segment of TCP, that meets nothing else on its way, in seconds; `None` for generators.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle_delay_s: Option<f64>,
    /// Name of the smallest candidate.
    pub bottleneck: String,
    /// Name of the second smallest candidate, which limits once the bottleneck is gone; `None` if there is only one.
    pub next: Option<String>,
    /// Bottleneck, reason and next in words.
    pub sentence: String,
    /// From the line rate of the link that limits most to the goodput: the rate left after each step.
    pub stages: Vec<Stage>,
    /// Everything that could limit the flow: links along its route, shaper, policer, token buckets, routers, hosts with their memories and buses, application, and
    /// for TCP the acknowledgements.
    pub candidates: Vec<Candidate>,
}

/// One step of the waterfall.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Stage {
    /// What takes its part in this step.
    pub name: String,
    /// What is left after it.
    pub rate_bit_per_s: f64,
}

/// Something that limits a flow.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Candidate {
    /// Its name: "link `receiver`".
    pub name: String,
    /// What it is.
    pub kind: CandidateKind,
    /// Goodput if nothing else limited this flow.
    pub goodput_bit_per_s: f64,
}

/// What limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum CandidateKind {
    /// A link, in the direction of the flow.
    Link,
    /// The shaper of the circuit.
    Shaper,
    /// The policer of the circuit.
    Policer,
    /// A queue discipline that sends at a rate of its own.
    TokenBucket,
    /// The forwarding engine of a router on the way.
    Router,
    /// Copies and DMA of the sending host, one after the other.
    SendingPath,
    /// Memory of the sending host.
    SendingMemory,
    /// I/O bus of the sending host.
    SendingBus,
    /// CPU of the sending host.
    SendingHost,
    /// DMA and copies of the receiving host, one after the other.
    ReceivingPath,
    /// Memory of the receiving host.
    ReceivingMemory,
    /// I/O bus of the receiving host.
    ReceivingBus,
    /// CPU of the receiving host.
    ReceivingHost,
    /// The rate that the application offers.
    Application,
    /// A link in the other direction, which carries a TCP connection's acknowledgements.
    Acknowledgements,
}

/// A link with all flows at their limits.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LinkLimit {
    /// Line rate, each way.
    pub line_rate_bit_per_s: f64,
    /// The two directions, that from the link's first end first.
    pub directions: Vec<DirectionLimit>,
}

/// One direction of a link.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DirectionLimit {
    /// Node that sends.
    pub from: String,
    /// Node that receives.
    pub to: String,
    /// Share of the line that is taken, physical framing included, 0 to 1.
    pub utilisation: f64,
    /// By whom, in the order of the file.
    pub taken: Vec<Taken>,
}

/// What one flow takes of a line.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Taken {
    /// Name of the flow.
    pub flow: String,
    /// Kind of traffic; `acknowledgements` for those of a `tcp-stream`.
    pub kind: &'static str,
    /// Share of the line, 0 to 1.
    pub share: f64,
}
