//! Routers that choose among equally short ways, and bonds: the table of steps has a question where they do.
//!
//! A choice that is the same for all packets of a lane is made when the network is built, and the lane's route is a run of steps like any
//! other. Elsewhere the run ends with a question ([`ASK`]), asked when a packet has come to the router and its engine has finished it; every
//! answer leads to a run of its own behind a mark ([`BRANCH`]) that names the question.

use engpass_model::forward::{Forward, Heads, Member, Transport, View};
use engpass_testbed::topology::{Leg, NodeId};

use super::{END, Frames, Packet, Step};
use crate::simulate::Network;

/// The port of a step that is a question: its `mtu` is the place among the questions.
pub(super) const ASK: u32 = u32::MAX - 1;
/// The port of a step in front of an answer's run: its `mtu` is the place of the question.
pub(super) const BRANCH: u32 = u32::MAX - 2;

/// What routers and bonds choose from, and how.
#[derive(Default)]
pub(in crate::simulate) struct Choices {
    pub(super) groups: Vec<Group>,
    pub(super) asks: Vec<Ask>,
    /// By question the places of its answers' runs, one for every member of its group.
    pub(super) answers: Vec<u32>,
    /// Headers by sender: processes, then endpoints, then messages of routers. For packets from outside, by way, those of which they do not show their own.
    pub(in crate::simulate) heads: Vec<Heads>,
    /// Decisions so far, for tests that ask whether any were made.
    pub(in crate::simulate) decided: u64,
}

/// Equally short ways at a node, and its policy for them.
pub(super) struct Group {
    pub(super) node: NodeId,
    pub(super) legs: Vec<Leg>,
    pub(super) members: Vec<Member>,
    pub(super) policy: Box<dyn Forward>,
    /// The bond of which these are the members, if they are.
    pub(super) bond: Option<usize>,
}

/// A question.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ask {
    pub(super) group: u32,
    /// Place of its first answer.
    pub(super) first: u32,
    /// The direction of the tunnel whose outer packets come to it, if they do.
    pub(super) tunnel: Option<u32>,
    /// The last bytes of the addresses of frames there.
    pub(super) macs: [u8; 2],
}

impl Choices {
    /// Whether packets meet questions.
    pub(in crate::simulate) fn is_asked(&self) -> bool {
        !self.asks.is_empty()
    }

    /// The member that a packet takes at a question.
    pub(super) fn member(&mut self, ask: u32, view: &View<'_>) -> usize {
        let Group { members, policy, .. } = &mut self.groups[self.asks[ask as usize].group as usize];
        self.decided += 1;
        policy.decide(view, members).member
    }

    /// The place to which a packet goes on from a question.
    fn decide(&mut self, ask: u32, heads: &Heads, fragment: bool) -> u32 {
        let Ask { first, macs, .. } = self.asks[ask as usize];
        let member = self.member(ask, &View { heads, fragment, macs });
        self.answers[first as usize + member]
    }

    /// What a packet from outside shows of its headers, by its way and its transport.
    pub(in crate::simulate) fn heads_outside(&self, way: usize, transport: Transport) -> Heads {
        Heads { protocol: transport.protocol, ports: transport.ports, ..self.heads[way] }
    }

    /// The places of the answers to a question.
    pub(super) fn answers_to(&self, ask: u32) -> &[u32] {
        let Ask { group, first, .. } = self.asks[ask as usize];
        &self.answers[first as usize..][..self.groups[group as usize].legs.len()]
    }

    /// The last bytes of the addresses of frames at a question.
    pub(super) fn macs_at(&self, ask: u32) -> [u8; 2] {
        self.asks[ask as usize].macs
    }

    /// Whether a bond answers a question: all answers lead to the same node.
    fn is_of_bond(&self, ask: u32) -> bool {
        self.groups[self.asks[ask as usize].group as usize].bond.is_some()
    }

    /// The place of the first answer to a question.
    fn first_answer(&self, ask: u32) -> u32 {
        self.answers[self.asks[ask as usize].first as usize]
    }
}

impl Frames {
    /// Whether the steps from this place on belong to ways with questions.
    #[inline(always)]
    pub(super) fn is_branched(&self, place: u32) -> bool {
        place >= self.branched
    }

    /// Whether packets of a route meet questions.
    pub(in crate::simulate) fn has_choices(&self, route: u32) -> bool {
        self.is_branched(self.routes[route as usize].first)
    }

    /// The places on a route's first way up to its end or its first circuit: the first answer to every question stands right behind it.
    fn first_places(&self, route: u32) -> impl Iterator<Item = u32> {
        let step = |place: &u32| self.steps[*place as usize];
        let ends = move |place: &u32| step(place).port == END || self.entry(step(place)).is_some();
        (self.routes[route as usize].first..).take_while(move |place| !ends(place))
    }

    /// The ports of a route's first way, and whether each is a line or the beginning of a tunnel, up to its end or its first circuit.
    pub(in crate::simulate) fn first_way(&self, route: u32) -> Vec<(u32, bool)> {
        let steps = self.first_places(route).map(|place| self.steps[place as usize]);
        let carries = steps.filter(|step| step.is_line() || step.is_wrap());
        carries.map(|step| (step.port, step.is_line())).collect()
    }

    /// The place to which a packet has come on the first way of a route that has so many lines behind it, one at least, and has left all
    /// tunnels that end there.
    pub(super) fn first_place(&self, route: u32, lines: u16) -> u32 {
        let mut crossed = self.first_places(route).filter(|place| self.steps[*place as usize].is_line());
        let line = crossed.nth(usize::from(lines) - 1).expect("a way has as many lines as it shares");
        let behind = |place: &u32| !self.steps[*place as usize].is_unwrap();
        (line + 1..).find(behind).expect("a way has an end")
    }
}

impl Network {
    /// What a packet shows of its headers.
    fn heads_of(&self, packet: &Packet) -> Heads {
        let heads = &self.frames.choices.heads;
        let Some(fates) = &self.fabric.fates else { return heads[packet.sender as usize] };
        let this = &self.fabric.datagrams[packet.datagram];
        match this.to.get() {
            // Messages of routers stand at the end.
            Some(lane) => heads[heads.len() - self.frames.icmp.ways.len() + lane as usize / 2],
            None => {
                let transport = fates.head(packet.datagram).transport;
                self.frames.choices.heads_outside(this.flow as usize, transport)
            }
        }
    }

    /// The engine of a router has finished a packet, or a switch has it, and it has come to a question: decide where it goes on. One whose time to live runs out
    /// here takes no turn.
    #[inline(never)]
    pub(super) fn ask_way(&mut self, id: u32, step: Step) {
        let packet = self.fabric.datagrams.packet_mut(id);
        if packet.ttl <= 1 && step.is_routed() {
            packet.ttl = 0;
            self.stop(id, step, self.now);
            return;
        }
        let packet = *packet;
        let takes_first = self.fabric.fates.as_ref().is_some_and(|fates| fates.takes_first(packet.datagram));
        let place = if takes_first && !self.frames.choices.is_of_bond(step.mtu) {
            self.frames.choices.first_answer(step.mtu)
        } else {
            let fragment = self.fabric.datagrams[packet.datagram].fragments > 1;
            let heads = match self.frames.choices.asks[step.mtu as usize].tunnel {
                Some(tunnel) => self.frames.tunnels.directions[tunnel as usize].heads,
                None => self.heads_of(&packet),
            };
            self.frames.choices.decide(step.mtu, &heads, fragment)
        };
        self.fabric.datagrams.packet_mut(id).place = place;
        self.go(id, place, self.now, true);
    }
}
