//! IPv4 routers (RFC 1812).

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::arp::Arp;
use crate::engine::{Engine, EngineTimes, check_input_queue};
use crate::forward::Ecmp;
use crate::queue::Queue;
use crate::range_errors::{LONGEST, RangeErrors};
use crate::switching::PacketKind;
use crate::unit::{Duration, QueueLimit};

/// A router. It joins links of any medium and ends of circuits, decrements the TTL of every packet (RFC 1812 section 5.3.1) and fragments
/// packets that are larger than the MTU of the outgoing link (RFC 791 section 3.2).
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Router {
    /// Time that the forwarding engine needs for every incoming packet. Packets are forwarded one after the other, first come first served.
    /// Zero if not given: the router forwards as fast as its links.
    #[serde(default = "none")]
    pub per_packet: Duration,
    /// Time that the forwarding engine needs, in addition to `per_packet`, for each copy of a multicast packet beyond the first. Zero if not given.
    #[serde(default = "none")]
    pub per_copy: Duration,
    /// Limit of the input queue in front of the forwarding engine, the packet in service included: packets, bytes of IP packets, or both. A
    /// packet that finds the queue full is dropped. Unlimited if not given. (Linux: `net.core.netdev_max_backlog`, 1000 packets; a Cisco
    /// interface: `hold-queue in`, 75 packets.)
    #[serde(default)]
    pub input_queue: Option<QueueLimit>,
    /// The route processor, or the core of a software router, with a time for each kind of work. It replaces `per_packet`, `per_copy` and `input_queue`,
    /// the short form for a router whose only engine needs the same time for every packet.
    #[serde(default)]
    pub processor: Option<Engine>,
    /// Kinds of packets that a process of the route processor forwards: they take its `process` time instead of `per_packet`.
    #[serde(default)]
    pub process_switched: Vec<PacketKind>,
    /// Line cards, by name. The card by which a packet comes forwards it if it can; otherwise the route processor does.
    #[serde(default)]
    pub cards: IndexMap<String, Card>,
    /// Queue discipline of every output port. A link's own `queue` takes precedence.
    #[serde(default)]
    pub queue: Queue,
    /// Which of several equal-cost paths a packet takes. By default a hash of addresses, protocol and ports chooses, so flows are spread
    /// over the paths and each flow keeps its path.
    #[serde(default)]
    pub ecmp: Ecmp,
    /// Whether the router sends "fragmentation needed" (RFC 1191 section 4) when it drops a packet that must not be fragmented and exceeds
    /// the MTU of the outgoing link. Without these messages, path MTU discovery meets a black hole. In `emulate`, this also applies to
    /// "time exceeded" messages to hosts.
    #[serde(default = "sends")]
    pub icmp: bool,
    /// How the router finds the hardware addresses of its neighbours on Ethernet links. If not given, it knows them and sends no ARP
    /// packets.
    #[serde(default)]
    pub arp: Option<Arp>,
}

/// A line card of a router.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Card {
    /// Links of the router that end at this card.
    pub links: Vec<String>,
    /// Its engine. A card without one forwards nothing itself: packets that come by it go to the route processor. (The ATM Interface Processor, AIP, of the
    /// Cisco 7000 and 7500 has none; a port adapter such as the PA-A1 uses that of its VIP2.)
    #[serde(default)]
    pub engine: Option<Engine>,
    /// Kinds of packets that come and leave by this card in distributed switching. The card by which a packet comes forwards it if both cards list all its
    /// kinds; for a multicast packet, all outgoing cards. All kinds if not given.
    #[serde(default = "all_kinds")]
    pub distributed: Vec<PacketKind>,
}

fn all_kinds() -> Vec<PacketKind> {
    vec![PacketKind::Unicast, PacketKind::Multicast, PacketKind::Tunnels]
}

fn none() -> Duration {
    Duration(0)
}

fn sends() -> bool {
    true
}

impl Default for Router {
    fn default() -> Self {
        Self {
            per_packet: none(),
            per_copy: none(),
            input_queue: None,
            processor: None,
            process_switched: Vec::new(),
            cards: IndexMap::new(),
            queue: Queue::default(),
            ecmp: Ecmp::default(),
            icmp: sends(),
            arp: None,
        }
    }
}

impl Router {
    /// Returns the times of the route processor, which is the only engine of a router without line cards.
    pub fn processor(&self) -> EngineTimes {
        match &self.processor {
            Some(processor) => processor.times(),
            None => EngineTimes {
                per_packet: self.per_packet.0,
                process: self.per_packet.0,
                per_copy: self.per_copy.0,
                input_queue: self.input_queue,
                ..EngineTimes::default()
            },
        }
    }

    /// Returns the name and times of every engine: first the route processor, `forwarding`, then one for each card.
    pub fn engines(&self) -> impl Iterator<Item = (&str, EngineTimes)> {
        let cards = self
            .cards
            .iter()
            .map(|(name, card)| (name.as_str(), card.engine.as_ref().map(Engine::times).unwrap_or_default()));
        [("forwarding", self.processor())].into_iter().chain(cards)
    }

    /// Returns true if its work on a packet depends on where the packet comes from and goes to.
    pub fn has_kinds_of_work(&self) -> bool {
        self.processor.is_some() || !self.cards.is_empty()
    }

    /// Returns the longest time that an engine works on a packet for one kind of work, in picoseconds. Process switching counts if some kind of packet takes it.
    pub fn longest_work(&self) -> u64 {
        let of = |times: EngineTimes| {
            let process = if self.process_switched.is_empty() { 0 } else { times.process };
            let EngineTimes { per_packet, per_copy, per_fragment, encapsulate, decapsulate, punt, .. } =
                times;
            let control = times.control.unwrap_or(0);
            [per_packet, process, per_copy, per_fragment, encapsulate, decapsulate, punt, control]
                .into_iter()
                .max()
        };
        self.engines().filter_map(|(_, times)| of(times)).max().unwrap_or(0)
    }

    /// Returns true if control packets that come to the router take time.
    pub fn works_on_control(&self) -> bool {
        self.processor().control.is_some_and(|time| time > 0)
    }

    /// Returns true if packets may wait for one of its engines.
    pub fn takes_time(&self) -> bool {
        self.engines().any(|(_, times)| !times.takes_no_time())
    }

    /// Adds an error for every invalid value.
    pub fn check(&self, errors: &mut RangeErrors) {
        errors.at_most(&["per_packet"], Some(self.per_packet), LONGEST);
        errors.at_most(&["per_copy"], Some(self.per_copy), LONGEST);
        check_input_queue(self.input_queue, errors);
        if let Some(processor) = &self.processor {
            let mut own = RangeErrors::default();
            processor.check(&mut own);
            errors.under(&["processor"], own);
        }
        for (name, card) in &self.cards {
            if name == "forwarding" {
                let cause = "results call the route processor `forwarding`";
                errors.add_named(&["cards"], name, cause, "give the card another name".to_owned());
            }
            if let Some(engine) = &card.engine {
                let mut own = RangeErrors::default();
                engine.check(&mut own);
                errors.under_named(&["cards"], name, &["engine"], own);
            }
        }
        self.queue.check_below(errors);
        self.ecmp.check_below(errors);
        if let Some(arp) = &self.arp {
            let mut own = RangeErrors::default();
            arp.check(&mut own);
            errors.under(&["arp"], own);
        }
    }
}
