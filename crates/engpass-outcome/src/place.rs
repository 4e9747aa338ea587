//! Paths, locations and bottlenecks, with names from the testbed file.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Maximum number of paths that an outcome lists per flow.
pub const MOST_PATHS: usize = 64;

/// A path of a flow's packets.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Path {
    /// Share of the flow's packets on this path while all links are up, 0 to 1. In a multicast group, every member's path has share 1. If a
    /// router chooses by a hash, it is the share of the flow's connections. If lengths vary as well, half of the packets count as
    /// fragments, whose ports the hash does not see.
    pub share: f64,
    /// Links from the sender to the receiver.
    pub steps: Vec<Step>,
}

/// A link of a path, in the direction of travel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Step {
    /// Name of the link.
    pub link: String,
    /// Sending node.
    pub from: String,
    /// Receiving node.
    pub to: String,
}

/// A node, or an output port of a node.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Place {
    /// Name of the node.
    pub node: String,
    /// Link of the output port; absent for a loss inside the node. In outcomes of format version 1 also absent if it is not certain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link: Option<String>,
    /// Node at the other end of the link.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// Line card of a router, for a loss in front of its engine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub card: Option<String>,
}

impl fmt::Display for Place {
    /// Formats an output port as `switch -> host`, a line card as `router (card)` and a node as its name.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.to, &self.card) {
            (Some(to), _) => write!(f, "{} -> {to}", self.node),
            (None, Some(card)) => write!(f, "{} ({card})", self.node),
            (None, None) => f.write_str(&self.node),
        }
    }
}

/// A bottleneck of a flow.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Bottleneck {
    /// Kind of the bottleneck.
    pub kind: BottleneckKind,
    /// Name of the link, circuit, host, router or traffic; absent if the bottleneck has no name in the file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Title of the bottleneck for tables and sentences, such as "link `receiver`".
    pub title: String,
}

/// Kind of a bottleneck.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum BottleneckKind {
    /// A link, in the direction of the flow.
    Link,
    /// The shaper of the circuit.
    Shaper,
    /// The policer of the circuit.
    Policer,
    /// A queue discipline with a rate limit of its own; `name` is its link.
    TokenBucket,
    /// A buffer that is shorter than a packet; `name` is its link.
    Buffer,
    /// A tunnel that drops packets because they are too long.
    Tunnel,
    /// A router at which the time to live of all packets ends.
    TimeToLive,
    /// The forwarding engine of a router on the path.
    Router,
    /// Copies and DMA of the sending host, which take turns.
    SendingPath,
    /// Memory of the sending host.
    SendingMemory,
    /// I/O bus of the sending host.
    SendingBus,
    /// CPU of the sending host.
    SendingHost,
    /// DMA and copies of the receiving host, which take turns.
    ReceivingPath,
    /// Memory of the receiving host.
    ReceivingMemory,
    /// I/O bus of the receiving host.
    ReceivingBus,
    /// CPU of the receiving host.
    ReceivingHost,
    /// Socket buffers: one window per round trip.
    SocketBuffers,
    /// The rate that the application offers.
    Application,
    /// A link in the opposite direction, which carries the acknowledgements of a TCP connection.
    Acknowledgements,
    /// Round-trip time: every request waits for the previous response.
    RoundTrip,
    /// The sender did not keep its schedule.
    Sender,
    /// Large packets are lost on the path.
    LargePackets,
    /// The receive window, by the kernel's time counters.
    ReceiveWindow,
    /// The send buffer, by the kernel's time counters.
    SendBuffer,
    /// The retransmission timer.
    RetransmissionTimer,
    /// The congestion window.
    CongestionWindow,
    /// Datagrams are lost on the path, and no counter of the receiver accounts for them.
    LossOnTheWay,
    /// Fragments are lost.
    LossOfFragments,
    /// The receiver's socket buffer overflowed.
    ReceiverSocketBuffer,
    /// The receiver's packet backlog overflowed.
    ReceiverBacklog,
    /// Other processes on a host use the CPU.
    OtherLoad,
    /// The hypervisor of a host withholds the CPU.
    Hypervisor,
    /// No observed resource was near its limit.
    Unknown,
}
