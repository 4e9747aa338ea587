//! Decision steps: nodes that choose among equal-cost paths, and bonds.
//!
//! If all packets of a flow direction take the same choice, it is made when the network is built, and the route is an ordinary run of steps. Otherwise the run
//! ends with a decision step ([`Verdict::Choose`]); it is evaluated when the router's forwarding engine has finished the packet. Each possible result is a separate run
//! behind a mark ([`Verdict::Result`]) that names the decision step.

use engpass_model::forward::{Forward, Headers, Member, PacketView, Transport};
use engpass_testbed::topology::{NodeId, PathSegment};

use super::{Frames, Verdict};

/// All decision steps, with the path segments and policies of each.
#[derive(Default)]
pub struct Choices {
    pub(crate) groups: Vec<Group>,
    pub(crate) decisions: Vec<DecisionStep>,
    /// For each decision step, the first step of every possible result, one for each member of its group.
    pub(crate) results: Vec<u32>,
    /// Headers of packets by sender: processes, then endpoints, then messages of routers. With packet injection by path: header fields that injected packets
    /// lack.
    pub heads: Vec<Headers>,
    /// Number of decisions so far, for tests.
    pub decided: u64,
}

/// Equal-cost path segments at a node, or the members of a bond, with the policy that chooses among them.
pub(crate) struct Group {
    pub(crate) node: NodeId,
    pub(crate) legs: Vec<PathSegment>,
    pub(crate) members: Vec<Member>,
    pub(crate) policy: Box<dyn Forward>,
    /// Index of the bond, if the group consists of its members.
    pub(crate) bond: Option<usize>,
}

/// A decision step.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DecisionStep {
    pub(crate) group: u32,
    /// Index of the step's first result in [`Choices::results`].
    pub(crate) first: u32,
    /// The tunnel direction whose outer packets the step decides about, if any.
    pub(crate) tunnel: Option<u32>,
    /// Last bytes of the source and destination MAC addresses of frames at the step.
    pub(crate) macs: [u8; 2],
}

impl Choices {
    /// Records in the policies of a node that the members on these path segments are up or down. Policies of bonds are updated elsewhere.
    pub(crate) fn set_members(&mut self, node: NodeId, up: bool, is_here: impl Fn(&PathSegment) -> bool) {
        for group in self.groups.iter_mut().filter(|group| group.node == node && group.bond.is_none()) {
            let here = group.legs.iter().zip(&mut group.members).filter(|(leg, _)| is_here(leg));
            here.for_each(|(_, member)| (member.up, member.carrier) = (up, up));
        }
    }

    /// Returns true if the network has decision steps.
    pub fn has_decisions(&self) -> bool {
        !self.decisions.is_empty()
    }

    /// Returns the index of the group member that a packet takes at a decision step.
    pub(crate) fn member(&mut self, decision: u32, view: &PacketView<'_>) -> usize {
        let Group { members, policy, .. } =
            &mut self.groups[self.decisions[decision as usize].group as usize];
        self.decided += 1;
        policy.decide(view, members).member
    }

    /// Returns the step at which a packet continues after a decision step.
    pub fn decide(&mut self, decision: u32, heads: &Headers, fragment: bool) -> u32 {
        let DecisionStep { first, macs, .. } = self.decisions[decision as usize];
        let member = self.member(decision, &PacketView { heads, fragment, macs });
        self.results[first as usize + member]
    }

    /// Returns the headers of an injected packet, from its path and its transport.
    pub fn injected_heads(&self, way: usize, transport: Transport) -> Headers {
        Headers { protocol: transport.protocol, ports: transport.ports, ..self.heads[way] }
    }

    /// Returns the step at which a packet continues that takes the first path segment of a decision step; `None` if a bond decides.
    pub fn first_of_equal(&self, decision: u32) -> Option<u32> {
        (!self.is_of_bond(decision)).then(|| self.first_result(decision))
    }

    /// Returns the first steps of all results of a decision step.
    pub(crate) fn first_steps_of_decision(&self, decision: u32) -> &[u32] {
        let DecisionStep { group, first, .. } = self.decisions[decision as usize];
        &self.results[first as usize..][..self.groups[group as usize].legs.len()]
    }

    /// Returns the last bytes of the MAC addresses of frames at a decision step.
    pub(crate) fn macs_at(&self, decision: u32) -> [u8; 2] {
        self.decisions[decision as usize].macs
    }

    /// Returns true if a bond makes the decision, so that all results lead to the same node.
    fn is_of_bond(&self, decision: u32) -> bool {
        self.groups[self.decisions[decision as usize].group as usize].bond.is_some()
    }

    /// Returns the first step of the first result of a decision step.
    pub(crate) fn first_result(&self, decision: u32) -> u32 {
        self.results[self.decisions[decision as usize].first as usize]
    }
}

impl Frames {
    /// Returns true if this step belongs to a route with decision steps.
    #[inline(always)]
    pub fn is_branched(&self, place: u32) -> bool {
        place >= self.branched
    }

    /// Returns the headers that the policy of a decision step sees in outer packets; `None` if the step decides about packets outside tunnels.
    pub fn outer_heads(&self, decision: u32) -> Option<Headers> {
        let tunnel = self.choices.decisions[decision as usize].tunnel;
        tunnel.map(|tunnel| self.tunnels.directions[tunnel as usize].heads)
    }

    /// Returns true if a route has decision steps.
    #[inline]
    pub fn has_choices(&self, route: u32) -> bool {
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
    pub fn first_path(&self, route: u32) -> impl Iterator<Item = Verdict> {
        let steps = self.first_places(route).map(|place| self.steps[place as usize].verdict);
        steps.filter(|verdict| matches!(verdict, Verdict::Out(_) | Verdict::Wrap(_)))
    }

    /// Returns the step on a route's first path that follows its first `lines` lines (at least one) and the ends of tunnels behind them.
    pub fn first_place(&self, route: u32, lines: u16) -> u32 {
        let mut crossed = self.first_places(route).filter(|place| self.steps[*place as usize].is_line());
        let line = crossed.nth(usize::from(lines) - 1).expect("a route has at least its shared lines");
        let behind = |place: &u32| !matches!(self.steps[*place as usize].verdict, Verdict::Unwrap(_));
        (line + 1..).find(behind).expect("a route has an end")
    }
}
