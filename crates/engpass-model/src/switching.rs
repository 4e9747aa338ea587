//! Which engine of a router forwards a packet.
//!
//! A router has a route processor, and may have line cards. The decision follows from the card by which a packet comes, the cards by which it leaves, and the
//! kinds of traffic that each card and the route processor switch.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::router::{Card, Router};

/// Kinds of packets that routers may switch in different ways. A packet may be of several kinds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PacketKind {
    /// Packets to one receiver, in no tunnel at this router.
    Unicast,
    /// Packets to a multicast group that are not inside a tunnel when the router forwards them.
    Multicast,
    /// Packets that enter or leave a tunnel at this router.
    Tunnels,
}

/// A packet as a router sees it when it arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Passage<'a> {
    /// The link by which it came; `None` for a packet that the router made.
    pub from: Option<&'a str>,
    /// The links by which it may leave: the first link behind the router, for a multicast packet one for each branch; none for a packet to the router itself.
    pub to: &'a [&'a str],
    /// It is a multicast packet, and not in a tunnel once the outer headers of the tunnels that end at this router are removed.
    pub multicast: bool,
    /// It enters a tunnel here.
    pub enters: bool,
    /// It leaves a tunnel here.
    pub leaves: bool,
}

/// Work of one engine on one packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// 0 for the route processor, else the number of the card, from 1.
    pub engine: usize,
    /// Time in picoseconds, without copies, fragments and interrupts.
    pub time: u64,
    /// Time of each copy beyond the first.
    pub per_copy: u64,
    /// Time of each fragment beyond the first.
    pub per_fragment: u64,
    /// Time of an interrupt, if the packet finds the engine without work.
    pub interrupt: u64,
}

impl Passage<'_> {
    fn is(&self, kind: PacketKind) -> bool {
        let in_tunnel = self.enters || self.leaves;
        match kind {
            PacketKind::Unicast => !self.multicast && !in_tunnel,
            PacketKind::Multicast => self.multicast,
            PacketKind::Tunnels => in_tunnel,
        }
    }

    /// Returns true if the kinds include all kinds of this packet.
    fn is_all_of(&self, kinds: &[PacketKind]) -> bool {
        let all = [PacketKind::Unicast, PacketKind::Multicast, PacketKind::Tunnels];
        all.into_iter().all(|kind| !self.is(kind) || kinds.contains(&kind))
    }
}

impl Router {
    /// Returns the work on a packet, in order. The first rule that applies decides:
    ///
    /// 1. If the incoming card has an engine, and it and all outgoing cards switch all kinds of the packet (`distributed`), the incoming card forwards it.
    /// 2. If not, the incoming card takes `punt` if that is more than zero, and then the route processor works on it: with `control` if that is given and the
    ///    packet begins or ends at the router, with `process` if one of its kinds is in `process_switched`, else with `per_packet`.
    pub fn work(&self, passage: &Passage<'_>) -> (Option<Work>, Work) {
        let incoming = passage.from.and_then(|link| self.card_at(link));
        let engine = incoming.and_then(|(number, card)| Some((number, card, card.engine.as_ref()?.times())));
        let leave = || passage.to.iter().filter_map(|link| self.card_at(link));
        let work = |engine: usize, times: crate::engine::EngineTimes, time: u64| Work {
            engine,
            time: time
                .saturating_add(if passage.enters { times.encapsulate } else { 0 })
                .saturating_add(if passage.leaves { times.decapsulate } else { 0 }),
            per_copy: times.per_copy,
            per_fragment: match passage.multicast || passage.leaves || passage.to.is_empty() {
                true => 0,
                false => times.per_fragment,
            },
            interrupt: times.interrupt,
        };
        if let Some((number, card, times)) = engine
            && !passage.to.is_empty()
            && passage.is_all_of(&card.distributed)
            && leave().all(|(_, card)| passage.is_all_of(&card.distributed))
        {
            return (None, work(number, times, times.per_packet));
        }
        let punt = engine.filter(|(.., times)| times.punt > 0).map(|(engine, _, times)| Work {
            engine,
            time: times.punt,
            interrupt: times.interrupt,
            ..Work::default()
        });
        let times = self.processor();
        let is_process = self.process_switched.iter().any(|kind| passage.is(*kind));
        let time = match times.control {
            Some(control) if passage.from.is_none() || passage.to.is_empty() => control,
            _ if is_process => times.process,
            _ => times.per_packet,
        };
        (punt, work(0, times, time))
    }

    /// Returns the card of a link and its number, from 1.
    fn card_at(&self, link: &str) -> Option<(usize, &Card)> {
        let mut cards = (1..).zip(self.cards.values());
        cards.find(|(_, card)| card.links.iter().any(|own| own == link))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::{Engine, Preset};
    use crate::unit::Duration;

    fn router() -> Router {
        let engine = Engine { preset: Some(Preset::Vip240), punt: Some(Duration(5)), ..Engine::default() };
        let card = |links: &[&str], engine, distributed: &[PacketKind]| Card {
            links: links.iter().map(|link| (*link).to_owned()).collect(),
            engine,
            distributed: distributed.to_vec(),
        };
        let (unicast, multicast) = (PacketKind::Unicast, PacketKind::Multicast);
        Router {
            processor: Some(Engine { preset: Some(Preset::Rsp4), ..Engine::default() }),
            process_switched: vec![PacketKind::Tunnels],
            cards: [
                ("lan".to_owned(), card(&["lan"], Some(engine), &[unicast, multicast])),
                ("wan".to_owned(), card(&["wan"], None, &[unicast])),
            ]
            .into(),
            ..Router::default()
        }
    }

    fn engines(passage: &Passage<'_>) -> Vec<(usize, u64)> {
        let (first, then) = router().work(passage);
        first.into_iter().chain([then]).map(|work| (work.engine, work.time)).collect()
    }

    #[test]
    fn the_incoming_card_forwards_what_both_cards_distribute() {
        let unicast =
            Passage { from: Some("lan"), to: &["wan"], multicast: false, enters: false, leaves: false };
        assert_eq!(engines(&unicast), [(1, 12_000_000)]);
        // The outgoing card does not distribute multicast.
        let multicast = Passage { multicast: true, ..unicast };
        assert_eq!(engines(&multicast), [(1, 5), (0, 2_898_551)]);
        // A link without a card has no say.
        assert_eq!(engines(&Passage { to: &["other"], ..multicast }), [(1, 12_000_000)]);
        assert_eq!(engines(&Passage { to: &["other", "wan"], ..multicast }), [(1, 5), (0, 2_898_551)]);
    }

    #[test]
    fn the_route_processor_forwards_what_comes_by_a_card_without_an_engine() {
        let unicast =
            Passage { from: Some("wan"), to: &["lan"], multicast: false, enters: false, leaves: false };
        assert_eq!(engines(&unicast), [(0, 2_898_551)]);
        // Tunnels are process-switched, and decapsulation takes 15 us.
        assert_eq!(engines(&Passage { leaves: true, ..unicast }), [(0, 140_000_000)]);
    }

    #[test]
    fn the_route_processor_works_on_control_packets() {
        // 8000 packets/s. The card hands on what is for the router, whatever it distributes.
        let packet = Passage { from: Some("lan"), to: &[], multicast: false, enters: false, leaves: false };
        assert_eq!(engines(&packet), [(1, 5), (0, 125_000_000)]);
        assert_eq!(engines(&Passage { from: None, to: &["lan"], ..packet }), [(0, 125_000_000)]);
        // Without a time for control packets, those that the router sends take the time of others.
        let mut router = router();
        router.processor = Some(Engine { per_packet: Some(Duration(7)), ..Engine::default() });
        let (_, work) = router.work(&Passage { from: None, to: &["lan"], ..packet });
        assert_eq!((work.time, router.works_on_control()), (7, false));
    }
}
