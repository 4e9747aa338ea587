//! ARP at routers (RFC 826, RFC 1122 section 2.3.2): the ARP table entry of a neighbour, and the packets held during address resolution.

use std::collections::VecDeque;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::range_errors::{LONGEST, RangeErrors};
use crate::unit::Duration;

/// Address resolution of a router on Ethernet. Packets to a neighbour are held until the neighbour has replied.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Arp {
    /// Lifetime of an ARP table entry after an ARP packet of the neighbour (RFC 1122 section 2.3.2.1: about a minute). Traffic does not
    /// extend it; after it, packets are held again. Linux and other systems renew an entry in time and keep forwarding; a long lifetime
    /// models that.
    #[serde(default = "lifetime")]
    pub lifetime: Duration,
    /// Maximum number of packets held per neighbour; when it is exceeded, the oldest packet is dropped. If not given, the number of
    /// full-sized packets that Linux holds. With 0, all packets until the reply are lost.
    #[serde(default = "hold")]
    pub hold: u64,
    /// Interval between requests for the same address (RFC 1122 section 2.3.2.1: at most one per second).
    #[serde(default = "retry")]
    pub retry: Duration,
    /// Number of unanswered requests after which the held packets are dropped. The next packet starts a new resolution. If not given, as in
    /// Linux.
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

/// Maximum of `hold`, in packets.
const MOST_HELD: u64 = 1_000_000;

impl Arp {
    /// Adds an error for every invalid value.
    pub fn check(&self, errors: &mut RangeErrors) {
        errors.positive(&["lifetime"], self.lifetime, LONGEST);
        errors.between(
            &["hold"],
            self.hold,
            (0, MOST_HELD),
            "packets",
            "more packets than a router can hold",
        );
        errors.positive(&["retry"], self.retry, LONGEST);
        let cause = if self.attempts == 0 {
            "a router sends at least one request"
        } else {
            "too many requests for one address"
        };
        errors.between(&["attempts"], self.attempts, (1, 1000), "requests", cause);
    }
}

/// ARP table entry of one neighbour, which holds packets of type `P`. Times are in picoseconds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Neighbour<P> {
    /// The address is unknown.
    #[default]
    Unknown,
    /// A request was sent and not yet answered.
    Asked {
        /// Packets that wait for the reply, oldest first.
        held: VecDeque<P>,
        /// Time at which the next request is sent or, if `left` is 0, the held packets are dropped.
        due: u64,
        /// Number of further requests.
        left: u64,
    },
    /// The address is known.
    Known {
        /// Expiry time of the entry.
        until: u64,
    },
}

/// Outcome for a packet to a neighbour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HoldResult<P> {
    /// The packet is forwarded.
    GoesOn,
    /// The packet is held, or dropped if `hold` is 0.
    Held {
        /// Packet dropped because the hold queue was full.
        lost: Option<P>,
        /// Whether the router must send a request.
        asks: bool,
    },
}

/// Action of a router when a request was not answered in time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TimeoutAction<P> {
    /// Nothing, because the request was answered or is not due.
    Nothing,
    /// The router sends another request.
    Asks,
    /// The router drops these held packets.
    GivesUp(Vec<P>),
}

impl<P> Neighbour<P> {
    /// Whether the neighbour's address is known at `now`.
    pub fn is_known(&self, now: u64) -> bool {
        matches!(self, Self::Known { until } if now < *until)
    }

    /// Handles a packet to the neighbour at `now`: forwards it, or holds it and starts a resolution if none is running.
    pub fn on_packet(&mut self, config: &Arp, now: u64, packet: P) -> HoldResult<P> {
        if self.is_known(now) {
            return HoldResult::GoesOn;
        }
        let asks = match self {
            Self::Asked { .. } => false,
            Self::Known { .. } | Self::Unknown => {
                let due = now.saturating_add(config.retry.0);
                *self = Self::Asked { held: VecDeque::new(), due, left: config.attempts - 1 };
                true
            }
        };
        let Self::Asked { held, .. } = self else { unreachable!("the neighbour is being resolved") };
        held.push_back(packet);
        let lost = if held.len() as u64 > config.hold { held.pop_front() } else { None };
        HoldResult::Held { lost, asks }
    }

    /// Learns the neighbour's address from an ARP packet at `now` and returns the held packets, which can now be forwarded. An ARP packet
    /// that is not `addressed` to the router only updates an existing entry or one being resolved (RFC 826, "Packet Reception").
    pub fn on_arp(&mut self, config: &Arp, now: u64, addressed: bool) -> Vec<P> {
        let is_in_table = self.is_known(now) || matches!(self, Self::Asked { .. });
        if !addressed && !is_in_table {
            return Vec::new();
        }
        let held = self.forget();
        *self = Self::Known { until: now.saturating_add(config.lifetime.0) };
        held
    }

    /// Time at which the outstanding request counts as unanswered, or `None` without one.
    pub fn due(&self) -> Option<u64> {
        match self {
            Self::Asked { due, .. } => Some(*due),
            Self::Unknown | Self::Known { .. } => None,
        }
    }

    /// Handles the timeout of a request at `now`. Does nothing unless the request is due exactly at `now`.
    pub fn on_timeout(&mut self, config: &Arp, now: u64) -> TimeoutAction<P> {
        match self {
            Self::Asked { due, left, .. } if *due == now && *left > 0 => {
                (*due, *left) = (now.saturating_add(config.retry.0), *left - 1);
                TimeoutAction::Asks
            }
            Self::Asked { due, .. } if *due == now => TimeoutAction::GivesUp(self.forget()),
            _ => TimeoutAction::Nothing,
        }
    }

    /// Clears the entry and returns the held packets.
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

    fn held(lost: Option<u32>, asks: bool) -> HoldResult<u32> {
        HoldResult::Held { lost, asks }
    }

    #[test]
    fn arp_reply_releases_the_newest_held_packets_in_order() {
        let (mut neighbour, config) = (Neighbour::default(), config());
        assert_eq!(neighbour.on_packet(&config, 0, 1), held(None, true));
        assert_eq!(neighbour.on_packet(&config, 1, 2), held(None, false));
        assert_eq!(neighbour.on_packet(&config, 2, 3), held(Some(1), false));
        assert_eq!(neighbour.on_arp(&config, 3, true), [2, 3]);
        assert_eq!(neighbour.on_packet(&config, 102, 4), HoldResult::GoesOn);
        // The entry has expired.
        assert_eq!(neighbour.on_packet(&config, 103, 5), held(None, true));
    }

    #[test]
    fn arp_with_hold_zero_drops_the_packet_that_triggers_a_request() {
        let (mut neighbour, config) = (Neighbour::default(), Arp { hold: 0, ..config() });
        assert_eq!(neighbour.on_packet(&config, 0, 1), held(Some(1), true));
        assert_eq!(neighbour.on_arp(&config, 5, true), [] as [u32; 0]);
        assert_eq!(neighbour.on_packet(&config, 6, 2), HoldResult::GoesOn);
    }

    #[test]
    fn arp_repeats_a_request_and_then_gives_up() {
        let (mut neighbour, config) = (Neighbour::default(), config());
        neighbour.on_packet(&config, 0, 1);
        assert_eq!((neighbour.due(), neighbour.on_timeout(&config, 9)), (Some(10), TimeoutAction::Nothing));
        assert_eq!(neighbour.on_timeout(&config, 10), TimeoutAction::Asks);
        assert_eq!(neighbour.due(), Some(20));
        assert_eq!(neighbour.on_timeout(&config, 20), TimeoutAction::GivesUp(vec![1]));
        assert_eq!(neighbour, Neighbour::Unknown);
        assert_eq!(neighbour.on_packet(&config, 20, 2), held(None, true));
    }

    #[test]
    fn arp_packets_for_others_update_but_never_create_entries() {
        let (mut neighbour, config) = (Neighbour::<u32>::default(), config());
        neighbour.on_arp(&config, 0, false);
        assert_eq!(neighbour, Neighbour::Unknown);
        neighbour.on_arp(&config, 0, true);
        neighbour.on_arp(&config, 99, false);
        assert_eq!(neighbour, Neighbour::Known { until: 199 });
        neighbour.on_arp(&config, 199, false);
        assert_eq!(neighbour, Neighbour::Known { until: 199 });
        assert_eq!(neighbour.on_packet(&config, 200, 1), held(None, true));
        assert_eq!(neighbour.on_arp(&config, 201, false), [1]);
    }
}
