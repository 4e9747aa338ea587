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
    /// The most goodput that this flow can reach over the counted time. No engine of the model exceeds it, apart from the backlog at the end of
    /// the warm-up.
    pub bound_bit_per_s: f64,
    /// Name of the candidate with the smallest bound.
    pub bound_bottleneck: String,
    /// The bound and its bottleneck in words.
    pub bound_sentence: String,
    /// The window of each connection; only of a `tcp-stream`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window: Option<WindowLimit>,
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

/// The window that socket buffers give a TCP connection, and the window that would fill the line.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WindowLimit {
    /// Most payload in flight, in bytes.
    pub bytes: u64,
    /// The reason for this size.
    pub set_by: SetBy,
    /// The shortest round trip of a full segment and its acknowledgement, hosts included, in seconds.
    pub round_trip_s: f64,
    /// Line rate of the narrowest line on the path, times the round trip.
    pub bandwidth_delay_product_bytes: f64,
    /// Payload in flight that fills this line: the size that both socket buffers of each connection need.
    pub filling_bytes: f64,
}

/// The reason for the size of a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum SetBy {
    /// The receive buffer is the window.
    ReceiveBuffer,
    /// The window field has no scale (RFC 7323 section 2).
    WindowField,
    /// The send buffer is smaller than the announced window.
    SendBuffer,
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
    /// Goodput if nothing else limited this flow and the others had their fair shares.
    pub goodput_bit_per_s: f64,
    /// The bound if nothing else limited this flow; infinite, and left out of JSON, where a random source has no bound.
    #[serde(skip_serializing_if = "is_infinite")]
    pub bound_bit_per_s: f64,
}

fn is_infinite(rate: &f64) -> bool {
    rate.is_infinite()
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
    /// Socket buffers: a window in each round trip.
    SocketBuffers,
    /// The rate that the application offers.
    Application,
    /// A link in the other direction, which carries a TCP connection's acknowledgements.
    Acknowledgements,
}

/// A link with all flows at their limits.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LinkLimit {
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
    /// Line rate.
    pub line_rate_bit_per_s: f64,
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
