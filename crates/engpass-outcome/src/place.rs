//! Paths, places and bottlenecks, by the names of the file.

use std::fmt;

use schemars::JsonSchema;
use serde::Serialize;

/// Most paths that an outcome lists for a flow.
pub const MOST_PATHS: usize = 64;

/// A path that packets of a flow take.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Path {
    /// Share of the flow's packets that take it while all links are up, 0 to 1. Each member of a multicast group gets all of them. Where the
    /// policy of a router chooses by a hash, it is the share of the flow's connections. Where it chooses by a hash and lengths vary, half of the
    /// packets count as fragments, whose ports the hash does not see.
    pub share: f64,
    /// Links from the sender to the receiver.
    pub steps: Vec<Step>,
}

/// A link of a path, in the direction in which it is taken.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Step {
    /// Name of the link.
    pub link: String,
    /// Node that sends.
    pub from: String,
    /// Node that receives.
    pub to: String,
}

/// A node, or a transmitter of a node.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Place {
    /// Name of the node.
    pub node: String,
    /// Link of the transmitter; none for a loss inside the node. Outcomes of the first version have none where it is not certain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link: Option<String>,
    /// Node at the other end of that link.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
}

impl fmt::Display for Place {
    /// `switch -> host` for a transmitter, else the node.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.to {
            Some(to) => write!(f, "{} -> {to}", self.node),
            None => f.write_str(&self.node),
        }
    }
}

/// What limits a flow.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Bottleneck {
    /// What it is.
    pub kind: BottleneckKind,
    /// Name of the link, circuit, host, router or traffic; none for what has no name in the file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Title in tables and sentences, like "link `receiver`".
    pub title: String,
}

/// What limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum BottleneckKind {
    /// A link, in the direction of the flow.
    Link,
    /// The shaper of the circuit.
    Shaper,
    /// The policer of the circuit.
    Policer,
    /// A queue discipline that sends at a rate of its own; `name` is its link.
    TokenBucket,
    /// A tunnel that drops packets which are too long for it.
    Tunnel,
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
    /// Each request waits for the answer before it.
    RoundTrip,
    /// A sender that does not keep its schedule.
    Sender,
    /// Large packets do not pass.
    LargePackets,
    /// The receive window, by the kernel's own clock.
    ReceiveWindow,
    /// The send buffer, by the kernel's own clock.
    SendBuffer,
    /// The retransmission timer.
    RetransmissionTimer,
    /// The congestion window.
    CongestionWindow,
    /// Datagrams are lost, and no counter of the receiver saw them.
    LossOnTheWay,
    /// Fragments are lost.
    LossOfFragments,
    /// The receiver's socket buffer overflowed.
    ReceiverSocketBuffer,
    /// The receiver's packet backlog overflowed.
    ReceiverBacklog,
    /// Other load of a host has the cores.
    OtherLoad,
    /// The hypervisor of a host has the cores.
    Hypervisor,
    /// Nothing that was seen was near its bound.
    Unknown,
}
