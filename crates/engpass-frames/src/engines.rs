//! Routers with several engines, or with several kinds of work: which engine works on a packet, and how long.
//!
//! The rules are in [`engpass_model::switching`]. They need the links and tunnels of a packet, which are the same for all packets at a step. The work is
//! therefore found once for each step, and separately for multicast packets.

use std::collections::BTreeMap;

use engpass_model::idle::{self, LonePacket};
use engpass_model::router::Router;
use engpass_model::source::Traffic;
use engpass_model::switching::{Passage, Work};
use engpass_model::wire::ip::{Fragments, IP_HEADER_BYTES};
use engpass_testbed::topology::{NodeId, NodeKind};
use engpass_testbed::{Testbed, Topology};

use super::{EngineResult, ForwardingEngine, Frames, LookaheadRule, Step, Verdict};

/// Routers whose work depends on the packet.
#[derive(Debug, Default)]
pub struct Switching {
    /// By router; `None` for a router with one engine that takes the same time for every packet.
    routers: Vec<Option<Engines>>,
    /// Names of all links, if there is such a router.
    links: Vec<String>,
    /// By traffic, true if it goes to a multicast group.
    multicast: Vec<bool>,
    /// Work on packets at a step, by step and whether they are multicast packets.
    known: BTreeMap<(u32, bool), StepWork>,
    /// Packets on their way from a card to the route processor, with the number of copies that leave.
    punted: BTreeMap<u32, u64>,
}

/// The engines of a router.
#[derive(Debug)]
struct Engines {
    config: Router,
    /// Index of the engine of its first card in [`Frames::engines`].
    first_card: usize,
}

/// A packet that has come to a router whose work depends on the packet.
#[derive(Clone, Copy, Debug)]
pub struct Arrival {
    /// Index of the router.
    pub router: u32,
    /// Number of the packet.
    pub packet: u32,
    /// Length of the packet in bytes, IP header included.
    pub ip: u32,
    /// The step to which it has come.
    pub place: u32,
    /// True for a multicast packet.
    pub is_multicast: bool,
    /// True if routers must not fragment the packet.
    pub never_fragmented: bool,
}

/// Work on the packets at a step.
#[derive(Debug)]
struct StepWork {
    /// Work of the incoming card, if it hands packets to the route processor.
    punt: Option<Work>,
    work: Work,
    /// The tunnels that they enter here, from the inside, then the line by which they leave.
    segments: Vec<Segment>,
}

/// A tunnel that packets enter, or the line by which they leave.
#[derive(Clone, Copy, Debug)]
struct Segment {
    mtu: u64,
    /// Bytes that a tunnel adds to each packet.
    added: u64,
    /// Packets that are too long are dropped.
    refuses: bool,
}

/// Links and tunnels that packets take at the router behind a step.
#[derive(Default)]
struct Onward {
    /// Links by which they leave.
    links: Vec<usize>,
    /// True if they enter a tunnel.
    enters: bool,
    /// True if they leave a tunnel.
    leaves: bool,
    /// The tunnels that they enter, then the line by which they leave.
    segments: Vec<Segment>,
}

impl Arrival {
    fn key(&self) -> (u32, bool) {
        (self.place, self.is_multicast)
    }
}

impl Switching {
    /// Returns true if the work of this router depends on the packet.
    #[inline]
    pub fn depends_on_packet(&self, router: u32) -> bool {
        self.routers.get(router as usize).is_some_and(Option::is_some)
    }

    /// Returns true if a traffic goes to a multicast group.
    pub fn is_multicast(&self, flow: u32) -> bool {
        self.multicast.get(flow as usize) == Some(&true)
    }

    /// Returns true if the work on packets of this kind at a step is known.
    pub fn knows(&self, arrival: &Arrival) -> bool {
        self.known.contains_key(&arrival.key())
    }

    /// Removes a packet from those on their way from a card to the route processor. Returns the number of its copies that leave; `None` if it is none of them.
    pub fn take_punted(&mut self, packet: u32) -> Option<u64> {
        self.punted.remove(&packet)
    }

    /// Returns the engines of a router: the indices of its route processor and cards in [`Frames::engines`], with their names.
    pub fn engines_of(&self, router: usize) -> Vec<(usize, &str)> {
        let cards = self.routers[router]
            .iter()
            .flat_map(|engines| (engines.first_card..).zip(engines.config.cards.keys().map(String::as_str)));
        [(router, "forwarding")].into_iter().chain(cards).collect()
    }

    /// Returns the card with this engine; `None` for a route processor.
    pub fn card(&self, engine: usize) -> Option<&str> {
        let routers = 0..self.routers.len();
        let mut all = routers.flat_map(|router| self.engines_of(router).into_iter().skip(1));
        all.find(|(index, _)| *index == engine).map(|(_, name)| name)
    }
}

impl Frames {
    /// Adds the engines of all routers: first the route processors, then the line cards.
    pub(crate) fn add_engines(&mut self, testbed: &Testbed, topology: &Topology) {
        let first = topology.hosts + topology.switches;
        for (node, router) in (first..).zip(testbed.routers.values()) {
            let mut engine = ForwardingEngine::new(node, router.processor());
            engine.takes_time = router.takes_time();
            engine.never_ahead =
                engine.input_limit.is_some() || engine.per_copy > 0 || router.has_kinds_of_work();
            self.engines.push(engine);
        }
        let is_multicast = |traffic: &Traffic| matches!(traffic, Traffic::Multicast(_));
        self.switching.multicast = testbed.traffic.values().map(is_multicast).collect();
        for (node, router) in (first..).zip(testbed.routers.values()) {
            if !router.has_kinds_of_work() {
                self.switching.routers.push(None);
                continue;
            }
            let first_card = self.engines.len();
            self.engines
                .extend(router.engines().skip(1).map(|(_, times)| ForwardingEngine::new(node, times)));
            self.switching.routers.push(Some(Engines { config: router.clone(), first_card }));
            if self.switching.links.is_empty() {
                self.switching.links = topology.links.iter().map(|link| link.name.clone()).collect();
            }
        }
    }

    /// Makes control packets that come to an end among the steps from `first` on pass the engines of the router `node` there, if that takes time.
    pub(crate) fn work_at_ends(
        &mut self,
        testbed: &Testbed,
        topology: &Topology,
        node: NodeId,
        first: usize,
    ) {
        let NodeKind::Router(router) = topology.kind(node) else { return };
        if testbed.routers[router].works_on_control() {
            for end in self.steps[first..].iter_mut().filter(|step| step.is_end()) {
                (end.router, end.takes_time) = (router as u32, true);
            }
        }
    }

    /// Finds the work on packets of this kind at their step, unless it is known. `branches` are the routes behind the end of a branch of a multicast tree.
    pub fn find_work(&mut self, arrival: &Arrival, branches: &[u32]) {
        let Arrival { router, place, is_multicast, .. } = *arrival;
        let mut onward = Onward::default();
        let after = self.look_onward(place, branches, &mut onward);
        let came_by = self.carried(place, 0).next().is_some().then(|| self.last_line(place) / 2);
        let link = |link: &usize| self.switching.links[*link].as_str();
        let to: Vec<&str> = onward.links.iter().map(link).collect();
        let passage = Passage {
            from: came_by.as_ref().map(link),
            to: &to,
            multicast: is_multicast && self.tunnels.at(after).is_empty(),
            enters: onward.enters,
            leaves: onward.leaves,
        };
        let engines = self.switching.routers[router as usize].as_ref().expect("the router has kinds of work");
        let (punt, work) = engines.config.work(&passage);
        self.switching
            .known
            .insert((place, is_multicast), StepWork { punt, work, segments: onward.segments });
    }

    /// Follows a route from step `place` to the line by which packets leave the router, and records links and tunnels in `onward`. At a decision step it follows
    /// the first result. Returns the step behind the tunnels that end here.
    fn look_onward(&self, place: u32, branches: &[u32], onward: &mut Onward) -> u32 {
        let mut at = place;
        let mut after = place;
        loop {
            let step = self.steps[at as usize];
            let port = match step.verdict {
                Verdict::Out(port) => self.ports[port as usize].port as usize,
                Verdict::Circuit(entry) => self.entries[entry as usize].ports[0],
                Verdict::Up => {
                    for branch in branches {
                        self.look_onward(self.routes[*branch as usize].first, &[], onward);
                    }
                    return after;
                }
                Verdict::Choose(decision) => {
                    at = self.choices.first_result(decision);
                    continue;
                }
                Verdict::Unwrap(_) => {
                    onward.leaves = true;
                    (at, after) = (at + 1, at + 1);
                    continue;
                }
                Verdict::Wrap(direction) => {
                    onward.enters = true;
                    let added = self.tunnels.directions[direction as usize].added.into();
                    let refuses = self.refuses(step);
                    onward.segments.push(Segment { mtu: step.mtu.into(), added, refuses });
                    at += 1;
                    continue;
                }
                Verdict::Hold(_) | Verdict::Result(_) => {
                    at += 1;
                    continue;
                }
            };
            onward.links.push(port / 2);
            onward.segments.push(Segment { mtu: step.mtu.into(), added: 0, refuses: false });
            return after;
        }
    }

    /// Takes lone packets through the engines of a router, given the step to which packets like them have come before, and whether they are multicast packets.
    pub(crate) fn pass_engines(&self, router: u32, step: (u32, bool), packets: &mut [LonePacket]) {
        if !self.switching.depends_on_packet(router) {
            return idle::pass_engine(packets, self.engines[router as usize].per_packet);
        }
        let StepWork { punt, work, .. } =
            self.switching.known.get(&step).expect("packets have come here before");
        for work in punt.iter().chain([work]) {
            idle::pass_engine(packets, work.time);
        }
    }
}

impl Frames {
    /// Gives a packet of `ip` bytes, for the line of `step`, to the engine of a router whose work does not depend on the packet; `copies` of it will leave.
    /// The packet may continue ahead of virtual time until `end`.
    #[inline]
    pub fn process(
        &mut self,
        step: Step,
        (packet, ip): (u32, u32),
        copies: u64,
        (now, end): (u64, u64),
    ) -> EngineResult {
        let decides_on_arrival =
            |step: Step| step.is_line() && self.ports[step.port() as usize].decides_on_arrival();
        let engine = &mut self.engines[step.router as usize];
        if !engine.has_room(ip) {
            return EngineResult::Full;
        }
        let copying = engine.per_copy.saturating_mul(copies.saturating_sub(1));
        let done = engine.add_work(now, engine.per_packet.saturating_add(copying));
        // Everything that leaves by the port comes from this engine, in order.
        let ahead = !engine.never_ahead || self.disabled_rule == Some(LookaheadRule::DecidingEngine);
        if ahead && done <= end && !self.lookahead_disabled && decides_on_arrival(step) {
            return EngineResult::ContinuesAt(done);
        }
        engine.hold(done, packet, ip)
    }

    /// Returns the index of the first engine that works on a packet; its work must be known.
    pub fn first_engine(&self, arrival: &Arrival) -> usize {
        let &StepWork { punt, work, .. } = &self.switching.known[&arrival.key()];
        self.engine_index(arrival.router, punt.unwrap_or(work))
    }

    /// Gives a packet to the first engine that works on it; its work must be known. `copies` of it will leave. Returns the index of the
    /// engine, and what it does.
    pub fn begin_work(&mut self, arrival: &Arrival, copies: u64, now: u64) -> (usize, EngineResult) {
        match self.switching.known[&arrival.key()].punt {
            Some(punt) => {
                let (engine, result) = self.enter_engine(arrival, punt, 0, now);
                if result != EngineResult::Full {
                    self.switching.punted.insert(arrival.packet, copies);
                }
                (engine, result)
            }
            None => self.forward_with_engine(arrival, copies, now),
        }
    }

    /// Like [`Self::begin_work`], for the engine that forwards the packet.
    pub fn forward_with_engine(&mut self, arrival: &Arrival, copies: u64, now: u64) -> (usize, EngineResult) {
        let StepWork { work, segments, .. } = &self.switching.known[&arrival.key()];
        let work = *work;
        let mut more = work.per_copy.saturating_mul(copies.saturating_sub(1));
        if work.per_fragment > 0 && !(arrival.never_fragmented && u64::from(arrival.ip) > segments[0].mtu) {
            let fragments = fragments_beyond_the_first(arrival.ip, segments);
            more = more.saturating_add(work.per_fragment.saturating_mul(fragments));
        }
        self.enter_engine(arrival, work, more, now)
    }

    /// Adds a packet to the queue of an engine, which needs `more` in addition to the time of this work.
    fn enter_engine(&mut self, arrival: &Arrival, work: Work, more: u64, now: u64) -> (usize, EngineResult) {
        let index = self.engine_index(arrival.router, work);
        let engine = &mut self.engines[index];
        if !engine.has_room(arrival.ip) {
            return (index, EngineResult::Full);
        }
        let interrupt = if engine.is_idle() { work.interrupt } else { 0 };
        let done = engine.add_work(now, work.time.saturating_add(more).saturating_add(interrupt));
        (index, engine.hold(done, arrival.packet, arrival.ip))
    }

    /// Returns the index of the router to which an engine belongs.
    #[inline]
    pub fn router_of_engine(&self, engine: u32) -> u32 {
        (self.engines[engine as usize].node - self.engines[0].node) as u32
    }

    fn engine_index(&self, router: u32, work: Work) -> usize {
        match &self.switching.routers[router as usize] {
            Some(engines) if work.engine > 0 => engines.first_card + work.engine - 1,
            _ => router as usize,
        }
    }
}

/// Returns how many fragments beyond the first a packet of `ip` bytes becomes on the way through these segments; 0 if it is dropped.
fn fragments_beyond_the_first(ip: u32, segments: &[Segment]) -> u64 {
    let mut packets = vec![u64::from(ip)];
    for Segment { mtu, added, refuses } in segments {
        if *refuses && packets.iter().any(|ip| ip > mtu) {
            return 0;
        }
        let cut = |ip: u64| {
            let cut = Fragments::of(ip - IP_HEADER_BYTES, *mtu);
            (0..cut.count).map(move |index| cut.payload(index) + IP_HEADER_BYTES + added)
        };
        packets = packets.into_iter().flat_map(cut).collect();
    }
    packets.len() as u64 - 1
}
