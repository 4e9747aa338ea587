//! Decision steps: nodes that choose among equal-cost paths, and bonds.
//!
//! If all packets of a flow direction take the same choice, it is made when the network is built, and the route is an ordinary run of steps. Otherwise the run
//! ends with a decision step ([`Verdict::Choose`]); it is evaluated when the router's forwarding engine has finished the packet. Each possible result is a separate run
//! behind a mark ([`Verdict::Result`]) that names the decision step.

use engpass_model::forward::{Forward, Headers, Member, PacketView, Transport};
use engpass_testbed::topology::{NodeId, PathSegment};

use super::{Frames, Packet, Step, Verdict};
use crate::simulate::Network;

/// All decision steps, with the path segments and policies of each.
#[derive(Default)]
pub(in crate::simulate) struct Choices {
    pub(super) groups: Vec<Group>,
    pub(super) decisions: Vec<DecisionStep>,
    /// For each decision step, the first step of every possible result, one for each member of its group.
    pub(super) results: Vec<u32>,
    /// Headers of packets by sender: processes, then endpoints, then messages of routers. With packet injection by path: header fields that injected packets
    /// lack.
    pub(in crate::simulate) heads: Vec<Headers>,
    /// Number of decisions so far, for tests.
    pub(in crate::simulate) decided: u64,
}

/// Equal-cost path segments at a node, or the members of a bond, with the policy that chooses among them.
pub(super) struct Group {
    pub(super) node: NodeId,
    pub(super) legs: Vec<PathSegment>,
    pub(super) members: Vec<Member>,
    pub(super) policy: Box<dyn Forward>,
    /// Index of the bond, if the group consists of its members.
    pub(super) bond: Option<usize>,
}

/// A decision step.
#[derive(Clone, Copy, Debug)]
pub(super) struct DecisionStep {
    pub(super) group: u32,
    /// Index of the step's first result in [`Choices::results`].
    pub(super) first: u32,
    /// The tunnel direction whose outer packets the step decides about, if any.
    pub(super) tunnel: Option<u32>,
    /// Last bytes of the source and destination MAC addresses of frames at the step.
    pub(super) macs: [u8; 2],
}

impl Choices {
    /// Returns true if the network has decision steps.
    pub(in crate::simulate) fn has_decisions(&self) -> bool {
        !self.decisions.is_empty()
    }

    /// Returns the index of the group member that a packet takes at a decision step.
    pub(super) fn member(&mut self, decision: u32, view: &PacketView<'_>) -> usize {
        let Group { members, policy, .. } =
            &mut self.groups[self.decisions[decision as usize].group as usize];
        self.decided += 1;
        policy.decide(view, members).member
    }

    /// Returns the step at which a packet continues after a decision step.
    fn decide(&mut self, decision: u32, heads: &Headers, fragment: bool) -> u32 {
        let DecisionStep { first, macs, .. } = self.decisions[decision as usize];
        let member = self.member(decision, &PacketView { heads, fragment, macs });
        self.results[first as usize + member]
    }

    /// Returns the headers of an injected packet, from its path and its transport.
    pub(in crate::simulate) fn injected_heads(&self, way: usize, transport: Transport) -> Headers {
        Headers { protocol: transport.protocol, ports: transport.ports, ..self.heads[way] }
    }

    /// Returns the first steps of all results of a decision step.
    pub(super) fn first_steps_of_decision(&self, decision: u32) -> &[u32] {
        let DecisionStep { group, first, .. } = self.decisions[decision as usize];
        &self.results[first as usize..][..self.groups[group as usize].legs.len()]
    }

    /// Returns the last bytes of the MAC addresses of frames at a decision step.
    pub(super) fn macs_at(&self, decision: u32) -> [u8; 2] {
        self.decisions[decision as usize].macs
    }

    /// Returns true if a bond makes the decision, so that all results lead to the same node.
    fn is_of_bond(&self, decision: u32) -> bool {
        self.groups[self.decisions[decision as usize].group as usize].bond.is_some()
    }

    /// Returns the first step of the first result of a decision step.
    pub(super) fn first_result(&self, decision: u32) -> u32 {
        self.results[self.decisions[decision as usize].first as usize]
    }
}

impl Frames {
    /// Returns true if this step belongs to a route with decision steps.
    #[inline(always)]
    pub(super) fn is_branched(&self, place: u32) -> bool {
        place >= self.branched
    }

    /// Returns true if a route has decision steps.
    pub(in crate::simulate) fn has_choices(&self, route: u32) -> bool {
        self.is_branched(self.routes[route as usize].first)
    }

    /// Iterates over the steps of a route's first path, up to its end or its first circuit. The first path takes the first result of each decision step, which
    /// directly follows it.
    fn first_places(&self, route: u32) -> impl Iterator<Item = u32> {
        let step = |place: &u32| self.steps[*place as usize];
        let ends = move |place: &u32| matches!(step(place).verdict, Verdict::Up | Verdict::Circuit(_));
        (self.routes[route as usize].first..).take_while(move |place| !ends(place))
    }

    /// Returns the lines and the entries of tunnels on a route's first path, up to its end or its first circuit.
    pub(in crate::simulate) fn first_path(&self, route: u32) -> impl Iterator<Item = Verdict> {
        let steps = self.first_places(route).map(|place| self.steps[place as usize].verdict);
        steps.filter(|verdict| matches!(verdict, Verdict::Out(_) | Verdict::Wrap(_)))
    }

    /// Returns the step on a route's first path that follows its first `lines` lines (at least one) and the ends of tunnels behind them.
    pub(super) fn first_place(&self, route: u32, lines: u16) -> u32 {
        let mut crossed = self.first_places(route).filter(|place| self.steps[*place as usize].is_line());
        let line = crossed.nth(usize::from(lines) - 1).expect("a route has at least its shared lines");
        let behind = |place: &u32| !matches!(self.steps[*place as usize].verdict, Verdict::Unwrap(_));
        (line + 1..).find(behind).expect("a route has an end")
    }
}

impl Network {
    /// Returns the headers of a packet, as policies see them.
    fn heads_of(&self, packet: &Packet) -> Headers {
        if let Some(end) = self.keepalive_end(packet.datagram) {
            return self.frames.keepalive_heads(end);
        }
        let heads = &self.frames.choices.heads;
        let Some(reports) = &self.shared.reports else { return heads[packet.sender as usize] };
        let this = &self.shared.datagrams[packet.datagram];
        match this.to.get() {
            // Headers of routers' messages are at the end of the list.
            Some(direction) => heads[heads.len() - self.frames.icmp.ways.len() + direction as usize / 2],
            None => {
                let transport = reports.head(packet.datagram).transport;
                self.frames.choices.injected_heads(this.flow as usize, transport)
            }
        }
    }

    /// Decides at a decision step where a packet continues: a router's forwarding engine has finished it, or it has arrived at a switch. A packet whose TTL
    /// expires here does not reach the policy.
    #[inline(never)]
    pub(super) fn choose_path(&mut self, id: u32, step: Step, decision: u32) {
        let packet = self.shared.datagrams.packet_mut(id);
        if packet.ttl <= 1 && step.is_routed() {
            packet.ttl = 0;
            self.drop_or_fragment(id, step, self.now);
            return;
        }
        let packet = *packet;
        let takes_first =
            self.shared.reports.as_ref().is_some_and(|reports| reports.takes_first(packet.datagram));
        let place = if takes_first && !self.frames.choices.is_of_bond(decision) {
            self.frames.choices.first_result(decision)
        } else {
            let fragment = self.shared.datagrams[packet.datagram].fragments > 1;
            let heads = match self.frames.choices.decisions[decision as usize].tunnel {
                Some(tunnel) => self.frames.tunnels.directions[tunnel as usize].heads,
                None => self.heads_of(&packet),
            };
            self.frames.choices.decide(decision, &heads, fragment)
        };
        self.shared.datagrams.packet_mut(id).place = place;
        self.forward(id, place, self.now, true);
    }
}
