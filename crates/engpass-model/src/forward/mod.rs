//! Forwarding policies: which of several equal-cost paths a packet takes at a router (equal-cost multipath, RFC 2991).
//!
//! A *group* is the list of shortest paths from one router to one destination, in the order of the file; each begins on another interface.
//! The router knows which of its interfaces are up, and the policy chooses among these. If none is up, the policy chooses among all, and
//! the line that is down drops the packet.

pub mod first;
pub mod hash;
pub mod round_robin;

pub use first::First;
pub use hash::{Hash, HashFields, hash32};
pub use round_robin::RoundRobin;

use indexmap::IndexMap;

use crate::component_family::family;
use crate::range_errors::RangeErrors;

family! {
    /// An ECMP policy, by its kind.
    Ecmp, "ECMP policy": EcmpConfig {
        "first" => First(First),
        "hash" => Hash(Hash),
        "round-robin" => RoundRobin(RoundRobin),
    }
}

/// Header fields of a packet that a policy may read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Headers {
    /// IPv4 address of the sender.
    pub source: u32,
    /// IPv4 address of the receiver.
    pub destination: u32,
    /// IP protocol number: 6 for TCP, 17 for UDP.
    pub protocol: u8,
    /// Source port and destination port.
    pub ports: [u16; 2],
}

/// Transport headers of a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Transport {
    /// IP protocol number.
    pub protocol: u8,
    /// Source port and destination port; zero if the protocol has no ports, and in fragments.
    pub ports: [u16; 2],
}

impl Headers {
    /// The transport headers.
    pub fn transport(&self) -> Transport {
        Transport { protocol: self.protocol, ports: self.ports }
    }

    /// Headers of the packets in the opposite direction.
    pub fn reversed(self) -> Self {
        let [source, destination] = self.ports;
        Self {
            source: self.destination,
            destination: self.source,
            protocol: self.protocol,
            ports: [destination, source],
        }
    }
}

/// A packet as a policy sees it.
#[derive(Clone, Copy, Debug)]
pub struct PacketView<'a> {
    /// Headers of the packet.
    pub heads: &'a Headers,
    /// Whether the packet is a fragment; true also for the first fragment.
    pub fragment: bool,
    /// Last bytes of the source and destination MAC address of the frame. Used only by bonds.
    pub macs: [u8; 2],
}

/// One path of an equal-cost group at a node, or one link of a bond.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Member {
    /// Weight from the configuration, at least 1.
    pub weight: u32,
    /// Whether the node considers the interface up: in a router immediately, in a bond when its monitor says so.
    pub up: bool,
    /// Whether the interface has a carrier at this node.
    pub carrier: bool,
    /// Whether the member is the active one of a bond.
    pub active: bool,
}

impl Member {
    /// A member that is up.
    pub fn of_weight(weight: u32) -> Self {
        Self { weight, up: true, carrier: true, active: false }
    }

    /// Whether the member is considered up and has a carrier.
    pub fn carries(&self) -> bool {
        self.up && self.carrier
    }
}

/// How long a choice is valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    /// Only for this packet.
    Packet,
    /// For all packets of the flow of the same kind (fragments or unfragmented), until the node's tables change.
    Flow,
}

/// The choice of a policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Index of the chosen member.
    pub member: usize,
    /// How long the choice is valid.
    pub keep: Keep,
}

/// State of a policy for one group at one router.
pub trait Forward: Send {
    /// Chooses one of `members`. Every call passes the same members in the same order, at least one.
    fn decide(&mut self, view: &PacketView<'_>, members: &[Member]) -> Answer;

    /// Informs the policy that a member changed. `members` is the current state of all members, valid until the next call.
    fn see(&mut self, _members: &[Member]) {}

    /// Whether the choice depends on earlier packets.
    fn is_per_packet(&self) -> bool;

    /// Share of all packets that each member gets in the long run. `None` if the headers of a packet decide.
    fn shares(&self, _members: &[Member]) -> Option<Vec<f64>> {
        None
    }
}

/// The settings of an ECMP policy.
pub trait EcmpConfig {
    /// Adds an error for every invalid value. Paths begin in the kind's own table.
    fn check(&self, _complaints: &mut RangeErrors) {}

    /// Whether the policy may use more than one path of a group.
    fn chooses(&self) -> bool {
        true
    }

    /// Weights that the file gives to links of the router, by link name. `None` if the kind has no weights.
    fn weights(&self) -> Option<&IndexMap<String, u32>> {
        None
    }

    /// Creates the state of the policy at one router for one group of equal-cost paths.
    fn build(&self) -> Box<dyn Forward>;
}

impl Ecmp {
    /// Adds an error for every invalid value. Paths begin with the key `ecmp` of the enclosing table.
    pub fn check_below(&self, errors: &mut RangeErrors) {
        let mut inner = RangeErrors::default();
        self.config().check(&mut inner);
        errors.under(&["ecmp", self.kind()], inner);
    }

    /// Weight of the path that begins on this link; 1 if the file gives none.
    pub fn weight(&self, link: &str) -> u32 {
        self.config().weights().and_then(|weights| weights.get(link)).copied().unwrap_or(1)
    }
}

impl Default for Ecmp {
    fn default() -> Self {
        Self::Hash(Hash::default())
    }
}

/// Maximum weight of a path: Linux stores the weight of a next hop in 16 bits.
const MAX_WEIGHT: u32 = 65_535;

/// Adds an error for weights that are out of range.
fn check_weights(weights: &IndexMap<String, u32>, errors: &mut RangeErrors) {
    for (link, weight) in weights {
        if *weight == 0 || *weight > MAX_WEIGHT {
            let help = format!("give 1 to {MAX_WEIGHT}");
            errors.add_named(&["weights"], link, "the weight is out of range", help);
        }
    }
}

/// Total weight of the members that are up, or of all members if none is up.
fn total_weight(members: &[Member]) -> u64 {
    eligible(members).map(|(_, weight)| weight).sum()
}

/// Index of the first eligible member for which `is_in` accepts the total weight of the eligible members up to and including it.
fn choose(members: &[Member], is_in: impl Fn(u64) -> bool) -> usize {
    let mut cumulative = 0;
    let mut eligible = eligible(members);
    let chosen = eligible.find(|(_, weight)| {
        cumulative += weight;
        is_in(cumulative)
    });
    chosen.expect("the weights of the members add up to the total weight").0
}

/// Indices and weights of the members that are up, or of all members if none is up.
fn eligible(members: &[Member]) -> impl Iterator<Item = (usize, u64)> {
    let all = !members.iter().any(|member| member.up);
    let indexed = members.iter().enumerate().filter(move |(_, member)| all || member.up);
    indexed.map(|(index, member)| (index, u64::from(member.weight)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Members of these weights, all up except those in `down`.
    pub(super) fn members(weights: &[u32], down: &[usize]) -> Vec<Member> {
        let member = |(index, weight): (usize, &u32)| Member {
            up: !down.contains(&index),
            ..Member::of_weight(*weight)
        };
        weights.iter().enumerate().map(member).collect()
    }

    pub(super) const HEADS: Headers =
        Headers { source: 0x0a00_0001, destination: 0x0a00_0002, protocol: 17, ports: [49_152, 5001] };

    #[test]
    fn reversed_headers_swap_addresses_and_ports() {
        let back = HEADS.reversed();
        assert_eq!((back.source, back.destination), (0x0a00_0002, 0x0a00_0001));
        assert_eq!((back.protocol, back.ports), (17, [5001, 49_152]));
        assert_eq!(back.reversed(), HEADS);
    }

    #[test]
    fn ecmp_weights_are_checked_and_default_to_one() {
        let read = |json| serde_json::from_value::<Ecmp>(json).expect("the test's JSON is valid");
        let policy =
            read(serde_json::json!({ "hash": { "weights": { "upper": 2, "lower": 0, "big": 65_536 } } }));
        assert_eq!([policy.weight("upper"), policy.weight("other")], [2, 1]);
        let mut errors = RangeErrors::default();
        policy.check_below(&mut errors);
        let paths: Vec<String> = errors.into_iter().map(|complaint| complaint.path.join(".")).collect();
        assert_eq!(paths, ["ecmp.hash.weights.lower", "ecmp.hash.weights.big"]);
        let edges = read(serde_json::json!({ "round-robin": { "weights": { "a": 1, "b": 65_535 } } }));
        let mut errors = RangeErrors::default();
        edges.check_below(&mut errors);
        assert_eq!(errors, RangeErrors::default());
        assert_eq!(read(serde_json::json!("first")).weight("upper"), 1);
        assert_eq!(read(serde_json::json!({ "hash": { "seed": 0 } })), Ecmp::default());
        assert_eq!(
            read(serde_json::json!("hash")),
            read(serde_json::json!({ "hash": { "fields": "layer-4" } }))
        );
    }

    #[test]
    fn ecmp_selects_down_members_only_if_all_are_down() {
        for kind in ["hash", "round-robin"] {
            let policy: Ecmp =
                serde_json::from_value(serde_json::json!(kind)).expect("the test's JSON is valid");
            let mut state = policy.config().build();
            let mut chosen = |down: &[usize]| {
                let members = members(&[1, 1, 1], down);
                let mut met: Vec<usize> = (0..100)
                    .map(|port| {
                        let heads = Headers { ports: [port, 5001], ..HEADS };
                        state
                            .decide(&PacketView { heads: &heads, fragment: false, macs: [0; 2] }, &members)
                            .member
                    })
                    .collect();
                met.sort_unstable();
                met.dedup();
                met
            };
            assert_eq!(chosen(&[1]), [0, 2], "{kind}");
            assert_eq!(chosen(&[0, 1]), [2], "{kind}");
            assert_eq!(chosen(&[0, 1, 2]), [0, 1, 2], "{kind}");
        }
    }
}
