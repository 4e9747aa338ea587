//! Forwarding policies: which of several equally short ways a packet takes at a router (equal-cost multipath, RFC 2991).
//!
//! A *group* is the list of the ways that begin a shortest path to one destination at one router, in the order of the file. The
//! router knows which of its interfaces are up, the policy chooses among these. If none is up it chooses among all of them, and the
//! line that is down drops the packet.

pub mod first;
pub mod hash;
pub mod round_robin;

pub use first::First;
pub use hash::{Hash, HashFields, hash32};
pub use round_robin::RoundRobin;

use indexmap::IndexMap;

use crate::complaint::Complaints;
use crate::family::family;

family! {
    /// An ECMP policy, by its kind.
    Ecmp, "ECMP policy": EcmpConfig {
        "first" => First(First),
        "hash" => Hash(Hash),
        "round-robin" => RoundRobin(RoundRobin),
    }
}

/// The fields of a packet's headers that a policy may read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Heads {
    /// IPv4 address of the sender.
    pub source: u32,
    /// IPv4 address of the receiver.
    pub destination: u32,
    /// IP protocol number: 6 for TCP, 17 for UDP.
    pub protocol: u8,
    /// Source port and destination port.
    pub ports: [u16; 2],
}

/// What the headers of a packet show of its transport.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Transport {
    /// Its IP protocol number.
    pub protocol: u8,
    /// Source port and destination port; zero where there are none, and in a fragment.
    pub ports: [u16; 2],
}

impl Heads {
    /// What they show of the transport.
    pub fn transport(&self) -> Transport {
        Transport { protocol: self.protocol, ports: self.ports }
    }

    /// The headers of the packets that go the other way.
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

/// What a packet shows to a policy.
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    /// Its headers.
    pub heads: &'a Heads,
    /// Whether it is a piece of a datagram that was cut, the first piece included.
    pub fragment: bool,
    /// The last bytes of the addresses of the frame that carries it: of the source and the destination. Only bonds look at them.
    pub macs: [u8; 2],
}

/// One member of a group of equally short ways at a node, or of a bond.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Member {
    /// Weight from the configuration, at least 1.
    pub weight: u32,
    /// Whether the node counts its interface as up: a router at once, a bond when its monitor says so.
    pub up: bool,
    /// Whether the node sees the carrier of its interface.
    pub carrier: bool,
    /// Whether it is the active member of a bond.
    pub active: bool,
}

impl Member {
    /// One that is up.
    pub fn of_weight(weight: u32) -> Self {
        Self { weight, up: true, carrier: true, active: false }
    }

    /// Whether it counts as up and has its carrier.
    pub fn carries(&self) -> bool {
        self.up && self.carrier
    }
}

/// How long an answer holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    /// For this packet.
    Packet,
    /// For all packets of the flow that are alike (fragments or not), until the node's tables change.
    Flow,
}

/// The choice of a policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Index of the chosen member.
    pub member: usize,
    /// How long the choice holds.
    pub keep: Keep,
}

/// The state of a policy for one group at one router.
pub trait Forward: Send {
    /// Choose one of `members`, which are never empty and always the same ways in the same order.
    fn decide(&mut self, view: &View<'_>, members: &[Member]) -> Answer;

    /// A member has changed. All of them are as they are told here until they change again.
    fn see(&mut self, _members: &[Member]) {}

    /// Whether an answer depends on the packets that came before.
    fn is_per_packet(&self) -> bool;

    /// The share of all packets that each member gets in the long run; `None` where the headers of a packet decide.
    fn shares(&self, _members: &[Member]) -> Option<Vec<f64>> {
        None
    }
}

/// The settings of an ECMP policy.
pub trait EcmpConfig {
    /// What is wrong with the values; paths begin in the kind's own table.
    fn check(&self, _complaints: &mut Complaints) {}

    /// Whether it may use more than one way of a group.
    fn chooses(&self) -> bool {
        true
    }

    /// The weights that the file gives to links of the router, by their names; `None` where the kind has no weights.
    fn weights(&self) -> Option<&IndexMap<String, u32>> {
        None
    }

    /// The state of one group at one router.
    fn build(&self) -> Box<dyn Forward>;
}

impl Ecmp {
    /// What is wrong with the values; paths begin with the `ecmp` of the table at hand.
    pub fn check_below(&self, complaints: &mut Complaints) {
        let mut inner = Complaints::default();
        self.config().check(&mut inner);
        complaints.under(&["ecmp", self.kind()], inner);
    }

    /// The weight of the way that begins on this link: 1 where the file gives none.
    pub fn weight(&self, link: &str) -> u32 {
        self.config().weights().and_then(|weights| weights.get(link)).copied().unwrap_or(1)
    }
}

impl Default for Ecmp {
    fn default() -> Self {
        Self::Hash(Hash::default())
    }
}

/// The largest weight of a way: a next hop of Linux has 16 bits for it.
const MAX_WEIGHT: u32 = 65_535;

/// Complain about weights that are out of range.
fn check_weights(weights: &IndexMap<String, u32>, complaints: &mut Complaints) {
    for (link, weight) in weights {
        if *weight == 0 || *weight > MAX_WEIGHT {
            let help = format!("give 1 to {MAX_WEIGHT}");
            complaints.add_named(&["weights"], link, "no way can have that weight", help);
        }
    }
}

/// The total weight of the members that are up; of all of them where none is.
fn total_weight(members: &[Member]) -> u64 {
    eligible(members).map(|(_, weight)| weight).sum()
}

/// The member whose share of the cumulative weights is the first to satisfy `is_in`.
fn choose(members: &[Member], is_in: impl Fn(u64) -> bool) -> usize {
    let mut cumulative = 0;
    let mut eligible = eligible(members);
    let chosen = eligible.find(|(_, weight)| {
        cumulative += weight;
        is_in(cumulative)
    });
    chosen.expect("the shares of all members together are the whole").0
}

/// Indices and weights of the members that are up; of all of them where none is.
fn eligible(members: &[Member]) -> impl Iterator<Item = (usize, u64)> {
    let all = !members.iter().any(|member| member.up);
    let indexed = members.iter().enumerate().filter(move |(_, member)| all || member.up);
    indexed.map(|(index, member)| (index, u64::from(member.weight)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Members of these weights, all up but those at `down`.
    pub(super) fn members(weights: &[u32], down: &[usize]) -> Vec<Member> {
        let member = |(index, weight): (usize, &u32)| Member {
            up: !down.contains(&index),
            ..Member::of_weight(*weight)
        };
        weights.iter().enumerate().map(member).collect()
    }

    pub(super) const HEADS: Heads =
        Heads { source: 0x0a00_0001, destination: 0x0a00_0002, protocol: 17, ports: [49_152, 5001] };

    #[test]
    fn reversed_heads_exchange_both_ends() {
        let back = HEADS.reversed();
        assert_eq!((back.source, back.destination), (0x0a00_0002, 0x0a00_0001));
        assert_eq!((back.protocol, back.ports), (17, [5001, 49_152]));
        assert_eq!(back.reversed(), HEADS);
    }

    #[test]
    fn weights_are_read_checked_and_default_to_one() {
        let read = |json| serde_json::from_value::<Ecmp>(json).expect("it can be read");
        let policy =
            read(serde_json::json!({ "hash": { "weights": { "upper": 2, "lower": 0, "big": 65_536 } } }));
        assert_eq!([policy.weight("upper"), policy.weight("other")], [2, 1]);
        let mut complaints = Complaints::default();
        policy.check_below(&mut complaints);
        let paths: Vec<String> = complaints.into_iter().map(|complaint| complaint.path.join(".")).collect();
        assert_eq!(paths, ["ecmp.hash.weights.lower", "ecmp.hash.weights.big"]);
        let edges = read(serde_json::json!({ "round-robin": { "weights": { "a": 1, "b": 65_535 } } }));
        let mut complaints = Complaints::default();
        edges.check_below(&mut complaints);
        assert_eq!(complaints, Complaints::default());
        assert_eq!(read(serde_json::json!("first")).weight("upper"), 1);
        assert_eq!(read(serde_json::json!({ "hash": { "seed": 0 } })), Ecmp::default());
        assert_eq!(
            read(serde_json::json!("hash")),
            read(serde_json::json!({ "hash": { "fields": "layer-4" } }))
        );
    }

    #[test]
    fn members_that_are_down_are_chosen_only_if_all_are() {
        for kind in ["hash", "round-robin"] {
            let policy: Ecmp = serde_json::from_value(serde_json::json!(kind)).expect("it can be read");
            let mut state = policy.config().build();
            let mut chosen = |down: &[usize]| {
                let members = members(&[1, 1, 1], down);
                let mut met: Vec<usize> = (0..100)
                    .map(|port| {
                        let heads = Heads { ports: [port, 5001], ..HEADS };
                        state.decide(&View { heads: &heads, fragment: false, macs: [0; 2] }, &members).member
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
