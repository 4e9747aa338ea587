//! Which mechanisms of forwarding have acted in a run, so that tests of random networks can say how often each has.

use std::collections::{BTreeMap, BTreeSet};

use engpass_testbed::topology::NodeId;

use crate::cell::LineId;
use crate::packet::Out;

/// Something that a network may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mechanism {
    /// A hash has sent packets of one group on different legs.
    Hash,
    /// Turns have done so.
    RoundRobin,
    /// Weights have sent a packet on a leg that equal weights would not have chosen.
    Weights,
    /// An event on a link, seen at both ends, has lost a packet or taken a leg out of a choice.
    LinkEvent,
    /// An event on an interface has done so.
    InterfaceEvent,
    /// An event at random times has done so.
    RandomFailure,
    /// Fragments of one datagram have left a router on different legs.
    FragmentsApart,
    /// A router has handed packets to a circuit.
    IntoCircuit,
    /// Packets have come out of a circuit at a router.
    OutOfCircuit,
    /// A shaper at a router has emitted a frame at a rate that answers, or the lack of them, have changed.
    AdaptiveAtRouter,
    /// A flow has lost datagrams to an outage, and waited for a reception.
    Outage,
    /// A router has told a sender of a packet that is too long.
    Signalled,
    /// Such a message has been lost.
    MessageLost,
    /// A router has made copies of a packet to a group.
    CopiesAtRouter,
    /// A switch has.
    CopiesAtSwitch,
    /// These were of a fragment.
    FragmentsCopied,
    /// A receiver got a datagram that another one has lost.
    PartLost,
    /// A router has cut such a message.
    MessageCut,
    /// A router has lost a packet that is too long, and told nobody.
    BlackHole,
    /// The segments of a connection have become shorter more than once.
    ShrankTwice,
    /// A router has cut an outer packet.
    OuterFragmented,
    /// A router has cut a packet for the tunnel that it enters.
    InnerFragmented,
    /// A router has lost a packet that is too long for the tunnel.
    TunnelRefused,
    /// The end of a tunnel has given an outer packet up.
    ReassemblyTimeout,
    /// The end of a tunnel has had no memory for a fragment.
    ReassemblyMemory,
    /// A packet has entered a tunnel within another one.
    NestedTunnel,
    /// A policy has chosen for an outer packet.
    TunnelChoice,
    /// The hash of a bond has sent packets on different members.
    BondHash,
    /// A bond has sent packets on its members in turns.
    BondTurns,
    /// Another member of a bond has taken the place of the active one, and carried packets.
    Failover,
    /// A bond of a switch has sent packets on different members.
    SwitchBond,
    /// The other end of a bond has followed it to another member.
    FollowsBond,
    /// A bond has found that a member is down or up.
    BondMonitor,
    /// A host throws away a frame from a member of its bond that is not active.
    InactiveMember,
    /// A reply has let packets go that a router held.
    Resolved,
    /// A router has lost a packet that it had no place to hold.
    HoldFull,
    /// The queue in front of a router's engine has had no room for a packet.
    InputFull,
    /// A router has given up because nobody answered.
    NoReply,
    /// A router has sent a request again.
    AskedAgain,
    /// A router has asked again for a neighbour that it had known.
    Expired,
    /// A request has made a neighbour known that was not.
    LearnedFromRequest,
    /// A switch has sent several copies of a request.
    RequestCopied,
    /// An event has made a router forget neighbours.
    ForgottenOnDown,
}

impl Mechanism {
    /// In words, for a table.
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
            Self::MessageCut => "a message was cut",
            Self::BlackHole => "black hole",
            Self::ShrankTwice => "segments shrank twice",
            Self::OuterFragmented => "an outer packet was cut",
            Self::InnerFragmented => "a packet was cut for a tunnel",
            Self::TunnelRefused => "a tunnel refused a packet",
            Self::ReassemblyTimeout => "reassembly timeout",
            Self::ReassemblyMemory => "reassembly memory",
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
            Self::NoReply => "no ARP reply",
            Self::AskedAgain => "a request was sent again",
            Self::Expired => "a neighbour was asked for again",
            Self::LearnedFromRequest => "a request made a neighbour known",
            Self::RequestCopied => "a switch copied a request",
            Self::ForgottenOnDown => "an event made neighbours unknown",
        }
    }
}

/// What has acted so far.
#[derive(Debug, Default)]
pub(crate) struct Acted {
    pub(crate) mechanisms: BTreeSet<Mechanism>,
    /// By router and group, the members that were chosen.
    pub(crate) chosen: BTreeMap<(NodeId, Vec<Out>), BTreeSet<usize>>,
    /// By router and datagram, the legs on which fragments have left.
    fragments: BTreeMap<(NodeId, usize), BTreeSet<Out>>,
    /// The event that has taken down each link last, and each interface.
    pub(crate) downed: BTreeMap<usize, usize>,
    pub(crate) unseen: BTreeMap<LineId, usize>,
}

impl Acted {
    /// A mechanism has acted.
    pub(crate) fn note(&mut self, mechanism: Mechanism) {
        self.mechanisms.insert(mechanism);
    }

    /// An event has taken down a link.
    pub(crate) fn takes_down(&mut self, link: usize, event: usize) {
        self.downed.insert(link, event);
    }

    /// A node sees a line down because of an event.
    pub(crate) fn hides(&mut self, line: LineId, event: usize) {
        self.unseen.insert(line, event);
    }

    /// A member of a group is chosen at a node.
    pub(crate) fn chooses(&mut self, node: NodeId, group: &[Out], member: usize) {
        self.chosen.entry((node, group.to_vec())).or_default().insert(member);
    }

    /// A fragment of a datagram leaves a node.
    pub(crate) fn fragment_leaves(&mut self, node: NodeId, datagram: usize, out: Out) {
        let legs = self.fragments.entry((node, datagram)).or_default();
        legs.insert(out);
        if legs.len() > 1 {
            self.note(Mechanism::FragmentsApart);
        }
    }
}
