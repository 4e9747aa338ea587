//! Routers with several engines, or with several kinds of work: which engine works on a packet, and how long.
//!
//! [`engpass_model::switching`] decides. What a route says about a packet is the same for all packets at one step, so it is found once for each step.

use std::collections::BTreeMap;

use engpass_model::idle::{self, LonePacket};
use engpass_model::router::Router;
use engpass_model::source::Traffic;
use engpass_model::switching::{Passage, Work};
use engpass_model::wire::ip::{Fragments, IP_HEADER_BYTES};
use engpass_testbed::topology::{NodeId, NodeKind};
use engpass_testbed::{Testbed, Topology};

use super::{ForwardingEngine, Frames, Packet, Verdict};
use crate::simulate::Network;
use crate::simulate::event_queue::Event;
use crate::simulate::flow_counters::DropLocation;

/// Routers whose work depends on the packet.
#[derive(Debug, Default)]
pub(in crate::simulate) struct Switching {
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

/// What lies behind a step.
#[derive(Default)]
struct Onward {
    links: Vec<usize>,
    enters: bool,
    leaves: bool,
    segments: Vec<Segment>,
}

impl Switching {
    /// Returns true if the work of this router depends on the packet.
    #[inline]
    pub(super) fn depends_on_packet(&self, router: u32) -> bool {
        self.routers.get(router as usize).is_some_and(Option::is_some)
    }

    /// Returns true if a traffic goes to a multicast group.
    pub(in crate::simulate) fn is_multicast(&self, flow: u32) -> bool {
        self.multicast.get(flow as usize) == Some(&true)
    }

    /// Returns the engines of a router: the indices of its route processor and cards in [`Frames::engines`], with their names.
    pub(in crate::simulate) fn engines_of(&self, router: usize) -> Vec<(usize, &str)> {
        let cards = self.routers[router]
            .iter()
            .flat_map(|engines| (engines.first_card..).zip(engines.config.cards.keys().map(String::as_str)));
        [(router, "forwarding")].into_iter().chain(cards).collect()
    }

    /// Returns the card with this engine; `None` for a route processor.
    pub(in crate::simulate) fn card(&self, engine: usize) -> Option<&str> {
        let routers = 0..self.routers.len();
        let mut all = routers.flat_map(|router| self.engines_of(router).into_iter().skip(1));
        all.find(|(index, _)| *index == engine).map(|(_, name)| name)
    }
}

impl Frames {
    /// Adds the engines of all routers: first the route processors, then the line cards.
    pub(super) fn add_engines(&mut self, testbed: &Testbed, topology: &Topology) {
        let first = topology.hosts + topology.switches;
        let engine = |node, times: engpass_model::engine::EngineTimes| ForwardingEngine {
            node,
            per_packet: times.per_packet,
            per_copy: times.per_copy,
            input_limit: times.input_queue,
            ..ForwardingEngine::default()
        };
        for (node, router) in (first..).zip(testbed.routers.values()) {
            let mut engine = engine(node, router.processor());
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
            self.engines.extend(router.engines().skip(1).map(|(_, times)| engine(node, times)));
            self.switching.routers.push(Some(Engines { config: router.clone(), first_card }));
            if self.switching.links.is_empty() {
                self.switching.links = topology.links.iter().map(|link| link.name.clone()).collect();
            }
        }
    }

    /// Makes control packets that come to an end among the steps from `first` on pass the engines of the router `node` there, if that takes time.
    pub(super) fn work_at_ends(
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

    /// Finds the work on packets that have come to step `place`. `branches` are the routes behind the end of a branch of a multicast tree.
    fn find_work(&mut self, router: u32, (place, is_multicast): (u32, bool), branches: &[u32]) {
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

    /// Follows a route from step `place` up to the line by which packets leave: where a policy chooses, its first path segment. Returns the step behind
    /// the tunnels that end here.
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
    pub(super) fn pass_engines(&self, router: u32, step: (u32, bool), packets: &mut [LonePacket]) {
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

impl Network {
    /// Returns the index of the first engine that works on a packet at a router.
    pub(super) fn first_engine(&mut self, router: usize, packet: u32) -> usize {
        if !self.frames.switching.depends_on_packet(router as u32) {
            return router;
        }
        let &StepWork { punt, work, .. } = self.work_on(router as u32, packet);
        self.frames.engine_index(router as u32, punt.unwrap_or(work))
    }

    /// Gives a packet to the first engine that works on it; `copies` of it will leave.
    pub(super) fn begin_work(&mut self, router: u32, packet: u32, copies: u64) {
        match self.work_on(router, packet).punt {
            Some(punt) => {
                if self.enter_engine(router, packet, punt, 0) {
                    self.frames.switching.punted.insert(packet, copies);
                }
            }
            None => self.forward_with_engine(router, packet, copies),
        }
    }

    /// Continues with a packet that an engine has finished: a card may hand it to the route processor. Returns false if no engine works on it any more.
    pub(super) fn continues_work(&mut self, router: u32, packet: u32) -> bool {
        let Some(copies) = self.frames.switching.punted.remove(&packet) else { return false };
        self.forward_with_engine(router, packet, copies);
        true
    }

    /// Returns the work on a packet at the router to which it has come.
    fn work_on(&mut self, router: u32, packet: u32) -> &StepWork {
        let Packet { datagram, place, .. } = *self.shared.datagrams.packet(packet);
        let is_of_tree = self.shared.is_of_tree(datagram);
        let is_multicast = is_of_tree
            || self.frames.switching.is_multicast(self.shared.datagrams[datagram].flow)
            // Only injected packets to a group take the first of equal-cost paths.
            || self.shared.reports.as_ref().is_some_and(|reports| reports.takes_first(datagram));
        let step = (place, is_multicast);
        if !self.frames.switching.known.contains_key(&step) {
            let branches = if is_of_tree { self.shared.branches_behind(datagram) } else { Vec::new() };
            self.frames.find_work(router, step, &branches);
        }
        &self.frames.switching.known[&step]
    }

    /// Gives a packet to the engine that forwards it; `copies` of it will leave.
    fn forward_with_engine(&mut self, router: u32, packet: u32, copies: u64) {
        let Packet { ip, datagram, place, .. } = *self.shared.datagrams.packet(packet);
        // The headers of a tunnel let routers fragment the packets in it.
        let is_whole = self.frames.tunnels.at(place).is_empty() && self.has_df_bit(datagram);
        let StepWork { work, segments, .. } = self.work_on(router, packet);
        let work = *work;
        let mut more = work.per_copy.saturating_mul(copies.saturating_sub(1));
        if work.per_fragment > 0 && !(is_whole && u64::from(ip) > segments[0].mtu) {
            let fragments = fragments_beyond_the_first(ip, segments);
            more = more.saturating_add(work.per_fragment.saturating_mul(fragments));
        }
        self.enter_engine(router, packet, work, more);
    }

    /// Adds a packet to the queue of an engine, which needs `more` in addition to the time of this work. Drops it if there is no room, and returns false.
    fn enter_engine(&mut self, router: u32, packet: u32, work: Work, more: u64) -> bool {
        let ip = self.shared.datagrams.packet(packet).ip;
        let index = self.frames.engine_index(router, work);
        let engine = &mut self.frames.engines[index];
        if !engine.has_room(ip) {
            self.drop_packet(packet, DropLocation::InputFull(index), self.now);
            return false;
        }
        let interrupt = if engine.packets.is_empty() { work.interrupt } else { 0 };
        let begins = engine.busy.until().max(self.now);
        let done = begins.saturating_add(work.time).saturating_add(more).saturating_add(interrupt);
        engine.busy.add(begins, done);
        engine.hold(done, packet, ip);
        if engine.packets.len() == 1 {
            self.events.push(done, engine.node, Event::EngineDone(index as u32));
        }
        true
    }
}

impl Frames {
    fn engine_index(&self, router: u32, work: Work) -> usize {
        match &self.switching.routers[router as usize] {
            Some(engines) if work.engine > 0 => engines.first_card + work.engine - 1,
            _ => router as usize,
        }
    }
}
