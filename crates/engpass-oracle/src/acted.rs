//! Forwarding mechanisms that were active in a run, so that tests of random networks can report how often each one was covered.

use std::collections::{BTreeMap, BTreeSet};

use engpass_testbed::topology::NodeId;

use crate::cell::LineId;
use crate::packet::Out;

/// A mechanism of the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mechanism {
    /// A hash sent packets of one group on different path segments.
    Hash,
    /// Round robin sent packets of one group on different path segments.
    RoundRobin,
    /// Weights sent a packet on a path segment that equal weights would not have chosen.
    Weights,
    /// An event on a link, seen at both ends, lost a packet or excluded a path segment from a choice.
    LinkEvent,
    /// An event on an interface lost a packet or excluded a path segment from a choice.
    InterfaceEvent,
    /// An event at random times lost a packet or excluded a path segment from a choice.
    RandomFailure,
    /// Fragments of one datagram left a router on different path segments.
    FragmentsApart,
    /// A router sent packets into a circuit that begins at it.
    IntoCircuit,
    /// A router received packets from a circuit that ends at it.
    OutOfCircuit,
    /// The shaper of a circuit that begins at a router emitted a frame after feedback, or missing feedback, had changed its rate.
    AdaptiveAtRouter,
    /// A flow lost datagrams in an outage, and its receiver had a time without receptions.
    Outage,
    /// A router sent an ICMP message about a packet that was too long.
    Signalled,
    /// An ICMP message of a router was lost.
    MessageLost,
    /// A router copied a multicast packet.
    CopiesAtRouter,
    /// A switch copied a multicast packet.
    CopiesAtSwitch,
    /// A fragment of a multicast datagram was copied.
    FragmentsCopied,
    /// One receiver got a multicast datagram that another one lost.
    PartLost,
    /// A report made nodes begin to forward to a receiver.
    Grafted,
    /// Nodes stopped forwarding to a receiver that had left.
    Pruned,
    /// A receiver had joined again before nodes stopped forwarding to it.
    AnswersQuery,
    /// A node made no copy for a branch without members.
    NotCopied,
    /// A datagram came to a host that had not been a member when it was sent.
    Unwanted,
    /// A router fragmented an ICMP message.
    MessageCut,
    /// A router dropped a packet that was too long without an ICMP message.
    BlackHole,
    /// The segments of a connection became shorter more than once.
    ShrankTwice,
    /// A router fragmented an outer packet.
    OuterFragmented,
    /// A router fragmented a packet before it entered a tunnel.
    InnerFragmented,
    /// A router dropped a packet that was too long for the tunnel.
    TunnelRefused,
    /// The end of a tunnel gave up the reassembly of an outer packet.
    ReassemblyTimeout,
    /// The end of a tunnel had no memory for a fragment.
    ReassemblyMemory,
    /// A router took a tunnel for down because its keepalives did not come back.
    TunnelDown,
    /// A keepalive came back through a tunnel that its router had taken for down.
    TunnelUpAgain,
    /// A router chose among path segments without a tunnel that it took for down.
    AroundTunnel,
    /// A router dropped a packet in front of a tunnel that it took for down.
    LostBeforeTunnel,
    /// The end of a tunnel dropped a packet that arrived after a later one.
    OutOfSequence,
    /// A packet entered a tunnel inside another tunnel.
    NestedTunnel,
    /// A policy or bond chose the path segment of an outer packet.
    TunnelChoice,
    /// The hash of a bond sent packets on different members.
    BondHash,
    /// A bond sent packets on its members in turns.
    BondTurns,
    /// Another member of a bond became active and carried packets.
    Failover,
    /// A bond of a switch sent packets on different members.
    SwitchBond,
    /// The other end of a bond followed it to another member.
    FollowsBond,
    /// A bond detected that a member went down or came up.
    BondMonitor,
    /// A host discarded a frame from an inactive member of its bond.
    InactiveMember,
    /// An ARP reply released packets that a router held.
    Resolved,
    /// A router dropped a packet because its hold queue for address resolution was full.
    HoldFull,
    /// The input queue of a router was full.
    InputFull,
    /// The input queue of a line card was full.
    CardFull,
    /// A line card forwarded a packet.
    ForwardedByCard,
    /// A line card handed a packet to the route processor.
    Punted,
    /// An engine took time for a control packet that had come to its router.
    ControlTakesTime,
    /// An engine took time for fragments.
    FragmentsTakeTime,
    /// A router gave up an address resolution without a reply.
    NoReply,
    /// A router repeated an ARP request.
    AskedAgain,
    /// A router sent a request because the entry of a neighbour had expired.
    Expired,
    /// A request made its sender known to a router.
    LearnedFromRequest,
    /// A switch flooded a request on several links.
    RequestCopied,
    /// An event made a router delete neighbours.
    ForgottenOnDown,
}

impl Mechanism {
    /// Returns its description for tables.
    pub const fn text(self) -> &'static str {
        match self {
            Self::Hash => "choice by hash",
            Self::RoundRobin => "choice in turns",
            Self::Weights => "weights",
            Self::LinkEvent => "event on a link",
            Self::InterfaceEvent => "event on an interface",
            Self::RandomFailure => "random failures",
            Self::FragmentsApart => "fragments on different ways",
            Self::IntoCircuit => "circuit that begins at a router",
            Self::OutOfCircuit => "circuit that ends at a router",
            Self::AdaptiveAtRouter => "adaptive shaper at a router",
            Self::Outage => "outage of a flow",
            Self::Signalled => "a router signalled",
            Self::MessageLost => "a message was lost",
            Self::CopiesAtRouter => "a router made copies",
            Self::CopiesAtSwitch => "a switch made copies",
            Self::FragmentsCopied => "fragments were copied",
            Self::PartLost => "a receiver got what another one lost",
            Self::Grafted => "a report took effect",
            Self::Pruned => "a branch was pruned",
            Self::AnswersQuery => "a host answered a query",
            Self::NotCopied => "a branch got no copy",
            Self::Unwanted => "a host discarded a datagram",
            Self::MessageCut => "a message was cut",
            Self::BlackHole => "black hole",
            Self::ShrankTwice => "segments shrank twice",
            Self::OuterFragmented => "an outer packet was cut",
            Self::InnerFragmented => "a packet was cut for a tunnel",
            Self::TunnelRefused => "a tunnel refused a packet",
            Self::ReassemblyTimeout => "reassembly timeout",
            Self::ReassemblyMemory => "reassembly memory",
            Self::TunnelDown => "keepalives took a tunnel down",
            Self::TunnelUpAgain => "a keepalive took a tunnel up",
            Self::AroundTunnel => "a choice without a tunnel that is down",
            Self::LostBeforeTunnel => "lost before a tunnel that is down",
            Self::OutOfSequence => "out of sequence",
            Self::NestedTunnel => "tunnel in a tunnel",
            Self::TunnelChoice => "choice for an outer packet",
            Self::BondHash => "bond by hash",
            Self::BondTurns => "bond in turns",
            Self::Failover => "failover of a bond",
            Self::SwitchBond => "bond of a switch",
            Self::FollowsBond => "a switch followed a bond",
            Self::BondMonitor => "a bond saw a member change",
            Self::InactiveMember => "a frame came by an inactive member",
            Self::Resolved => "a reply let packets go",
            Self::HoldFull => "ARP hold full",
            Self::InputFull => "input queue full",
            Self::CardFull => "input queue of a card full",
            Self::ForwardedByCard => "a card forwarded",
            Self::Punted => "a card punted",
            Self::ControlTakesTime => "a control packet took time",
            Self::FragmentsTakeTime => "fragments took time",
            Self::NoReply => "no ARP reply",
            Self::AskedAgain => "a request was sent again",
            Self::Expired => "a neighbour was asked for again",
            Self::LearnedFromRequest => "a request made a neighbour known",
            Self::RequestCopied => "a switch copied a request",
            Self::ForgottenOnDown => "an event made neighbours unknown",
        }
    }
}

/// The mechanisms that were active so far.
#[derive(Debug, Default)]
pub(crate) struct Acted {
    pub(crate) mechanisms: BTreeSet<Mechanism>,
    /// Members chosen so far, by router and group.
    pub(crate) chosen: BTreeMap<(NodeId, Vec<Out>), BTreeSet<usize>>,
    /// Path segments on which fragments left, by router and datagram.
    fragments: BTreeMap<(NodeId, usize), BTreeSet<Out>>,
    /// The event that last took down each link, and each interface (`unseen`).
    pub(crate) downed: BTreeMap<usize, usize>,
    pub(crate) unseen: BTreeMap<LineId, usize>,
}

impl Acted {
    /// Records that a mechanism was active.
    pub(crate) fn note(&mut self, mechanism: Mechanism) {
        self.mechanisms.insert(mechanism);
    }

    pub(crate) fn takes_down(&mut self, link: usize, event: usize) {
        self.downed.insert(link, event);
    }

    /// Records that a node sees a line down because of an event.
    pub(crate) fn hides(&mut self, line: LineId, event: usize) {
        self.unseen.insert(line, event);
    }

    pub(crate) fn chooses(&mut self, node: NodeId, group: &[Out], member: usize) {
        self.chosen.entry((node, group.to_vec())).or_default().insert(member);
    }

    /// Records that a fragment of a datagram leaves a node on a path segment.
    pub(crate) fn fragment_leaves(&mut self, node: NodeId, datagram: usize, out: Out) {
        let legs = self.fragments.entry((node, datagram)).or_default();
        legs.insert(out);
        if legs.len() > 1 {
            self.note(Mechanism::FragmentsApart);
        }
    }
}
