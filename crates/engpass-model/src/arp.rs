//! ARP at routers (RFC 826, RFC 1122 section 2.3.2): what a router knows of a neighbour, and the packets that it holds while it asks for its address.

use std::collections::VecDeque;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::complaint::{Complaints, LONGEST};
use crate::unit::Duration;

/// How a router finds the hardware addresses of its neighbours on Ethernet. Packets to a neighbour are held until it has answered.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Arp {
    /// How long an address is known after an ARP packet of the neighbour (RFC 1122 section 2.3.2.1: about a minute). Traffic does not extend it: then packets are
    /// held again. Linux and others ask in time and go on meanwhile; a long lifetime stands for them.
    #[serde(default = "lifetime")]
    pub lifetime: Duration,
    /// Most packets that are held for one neighbour; one more pushes out the oldest. If not given, as many full-sized packets as Linux holds. With 0 all are
    /// lost until the answer.
    #[serde(default = "hold")]
    pub hold: u64,
    /// Time between two requests for one address (RFC 1122 section 2.3.2.1: at most one in a second).
    #[serde(default = "retry")]
    pub retry: Duration,
    /// Requests without an answer until the packets that are held are dropped. The next packet begins anew. As in Linux if not given.
    #[serde(default = "attempts")]
    pub attempts: u64,
}

fn lifetime() -> Duration {
    Duration(60_000_000_000_000)
}

fn hold() -> u64 {
    101
}

fn retry() -> Duration {
    Duration(1_000_000_000_000)
}

fn attempts() -> u64 {
    3
}

/// Most packets that a router may hold for a neighbour.
const MOST_HELD: u64 = 1_000_000;

impl Arp {
    /// What is wrong with the values.
    pub fn check(&self, complaints: &mut Complaints) {
        complaints.positive(&["lifetime"], self.lifetime, LONGEST);
        complaints.between(&["hold"], self.hold, (0, MOST_HELD), "packets", "a router has no such memory");
        complaints.positive(&["retry"], self.retry, LONGEST);
        let cause = if self.attempts == 0 { "it asks once at least" } else { "nobody asks so often" };
        complaints.between(&["attempts"], self.attempts, (1, 1000), "requests", cause);
    }
}

/// What a router knows of the address of one neighbour, for packets `P`. Times are in picoseconds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Neighbour<P> {
    /// Nothing.
    #[default]
    Unknown,
    /// It was asked for.
    Asked {
        /// Packets that wait for the answer, the oldest first.
        held: VecDeque<P>,
        /// When the next request is due, or the packets are given up.
        due: u64,
        /// Requests that are left.
        left: u64,
    },
    /// The address.
    Known {
        /// When it is known no more.
        until: u64,
    },
}

/// What becomes of a packet for a neighbour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Met<P> {
    /// It goes on.
    GoesOn,
    /// It is held, or lost if the hold has no place.
    Held {
        /// The packet that the hold has no place for.
        lost: Option<P>,
        /// A request is to be sent.
        asks: bool,
    },
}

/// What a router does at the time at which a request should have been answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Overdue<P> {
    /// Nothing: it was answered, or is not due.
    Nothing,
    /// Another request is to be sent.
    Asks,
    /// These packets are lost.
    GivesUp(Vec<P>),
}

impl<P> Neighbour<P> {
    /// Whether its address is known at `now`.
    pub fn is_known(&self, now: u64) -> bool {
        matches!(self, Self::Known { until } if now < *until)
    }

    /// A packet for the neighbour has come at `now`.
    pub fn meets(&mut self, config: &Arp, now: u64, packet: P) -> Met<P> {
        if self.is_known(now) {
            return Met::GoesOn;
        }
        let asks = match self {
            Self::Asked { .. } => false,
            Self::Known { .. } | Self::Unknown => {
                let due = now.saturating_add(config.retry.0);
                *self = Self::Asked { held: VecDeque::new(), due, left: config.attempts - 1 };
                true
            }
        };
        let Self::Asked { held, .. } = self else { unreachable!("it is asked for now") };
        held.push_back(packet);
        let lost = if held.len() as u64 > config.hold { held.pop_front() } else { None };
        Met::Held { lost, asks }
    }

    /// The router has heard the neighbour's address at `now`, in a packet that was `addressed` to it or not: the packets that go on. One that is not
    /// addressed to it only refreshes what it knows or has asked for (RFC 826, "Packet Reception").
    pub fn learns(&mut self, config: &Arp, now: u64, addressed: bool) -> Vec<P> {
        let is_in_table = self.is_known(now) || matches!(self, Self::Asked { .. });
        if !addressed && !is_in_table {
            return Vec::new();
        }
        let held = self.forget();
        *self = Self::Known { until: now.saturating_add(config.lifetime.0) };
        held
    }

    /// When the request that is out should have been answered. Nothing if none is.
    pub fn due(&self) -> Option<u64> {
        match self {
            Self::Asked { due, .. } => Some(*due),
            Self::Unknown | Self::Known { .. } => None,
        }
    }

    /// The time of an event for a request has come: what is due at `now`.
    pub fn times_out(&mut self, config: &Arp, now: u64) -> Overdue<P> {
        match self {
            Self::Asked { due, left, .. } if *due == now && *left > 0 => {
                (*due, *left) = (now.saturating_add(config.retry.0), *left - 1);
                Overdue::Asks
            }
            Self::Asked { due, .. } if *due == now => Overdue::GivesUp(self.forget()),
            _ => Overdue::Nothing,
        }
    }

    /// Nothing is known any more: the packets that were held.
    pub fn forget(&mut self) -> Vec<P> {
        match std::mem::take(self) {
            Self::Asked { held, .. } => held.into(),
            Self::Unknown | Self::Known { .. } => Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config() -> Arp {
        Arp { lifetime: Duration(100), hold: 2, retry: Duration(10), attempts: 2 }
    }

    fn held(lost: Option<u32>, asks: bool) -> Met<u32> {
        Met::Held { lost, asks }
    }

    #[test]
    fn the_first_packet_asks_and_the_answer_releases_the_newest_in_order() {
        let (mut neighbour, config) = (Neighbour::default(), config());
        assert_eq!(neighbour.meets(&config, 0, 1), held(None, true));
        assert_eq!(neighbour.meets(&config, 1, 2), held(None, false));
        assert_eq!(neighbour.meets(&config, 2, 3), held(Some(1), false));
        assert_eq!(neighbour.learns(&config, 3, true), [2, 3]);
        assert_eq!(neighbour.meets(&config, 102, 4), Met::GoesOn);
        // Its lifetime is over.
        assert_eq!(neighbour.meets(&config, 103, 5), held(None, true));
    }

    #[test]
    fn a_hold_without_places_loses_the_packet_that_asks() {
        let (mut neighbour, config) = (Neighbour::default(), Arp { hold: 0, ..config() });
        assert_eq!(neighbour.meets(&config, 0, 1), held(Some(1), true));
        assert_eq!(neighbour.learns(&config, 5, true), [] as [u32; 0]);
        assert_eq!(neighbour.meets(&config, 6, 2), Met::GoesOn);
    }

    #[test]
    fn requests_are_repeated_and_given_up() {
        let (mut neighbour, config) = (Neighbour::default(), config());
        neighbour.meets(&config, 0, 1);
        assert_eq!((neighbour.due(), neighbour.times_out(&config, 9)), (Some(10), Overdue::Nothing));
        assert_eq!(neighbour.times_out(&config, 10), Overdue::Asks);
        assert_eq!(neighbour.due(), Some(20));
        assert_eq!(neighbour.times_out(&config, 20), Overdue::GivesUp(vec![1]));
        assert_eq!(neighbour, Neighbour::Unknown);
        assert_eq!(neighbour.meets(&config, 20, 2), held(None, true));
    }

    #[test]
    fn what_is_addressed_to_others_only_refreshes() {
        let (mut neighbour, config) = (Neighbour::<u32>::default(), config());
        neighbour.learns(&config, 0, false);
        assert_eq!(neighbour, Neighbour::Unknown);
        neighbour.learns(&config, 0, true);
        neighbour.learns(&config, 99, false);
        assert_eq!(neighbour, Neighbour::Known { until: 199 });
        neighbour.learns(&config, 199, false);
        assert_eq!(neighbour, Neighbour::Known { until: 199 });
        assert_eq!(neighbour.meets(&config, 200, 1), held(None, true));
        assert_eq!(neighbour.learns(&config, 201, false), [1]);
    }
}
