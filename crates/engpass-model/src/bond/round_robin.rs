//! Per-packet round robin over bond members.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{BondModeConfig, Preference, SkipUpDelay};
use crate::forward::{Answer, Forward, Keep, Member, PacketView};

/// Packets take the members in turn, regardless of their flow (in Linux `balance-rr`). One flow gets the rate of all members together, but
/// its packets may overtake each other.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct BondRoundRobin {}

impl BondModeConfig for BondRoundRobin {
    /// Every member gets the same number of packets, so the slowest one limits all.
    fn rate(&self, members: &[u64]) -> u64 {
        members.iter().min().map_or(0, |slowest| slowest * members.len() as u64)
    }

    fn preference(&self, _: &[String]) -> Preference {
        Preference { primary: None, always: true, hurry: SkipUpDelay::Never }
    }

    fn build(&self, _: &[String]) -> Box<dyn Forward> {
        Box::new(State { turn: FIRST })
    }
}

/// The turn of the first packet. Linux increments the turn before it chooses, so the second member comes first.
const FIRST: usize = 1;

#[derive(Debug)]
struct State {
    /// The turn of the next packet.
    turn: usize,
}

impl Forward for State {
    fn decide(&mut self, _: &PacketView<'_>, members: &[Member]) -> Answer {
        let first = self.turn % members.len();
        self.turn = self.turn.wrapping_add(1);
        // The next member takes the turn of a member that is down (`bond_get_slave_by_id` of Linux).
        let from_there = (0..members.len()).map(|place| (first + place) % members.len());
        let member = from_there.clone().find(|member| members[*member].carries());
        Answer { member: member.unwrap_or(first), keep: Keep::Packet }
    }

    fn is_per_packet(&self) -> bool {
        true
    }

    fn shares(&self, members: &[Member]) -> Option<Vec<f64>> {
        // Shares over one round.
        let mut shares = vec![0.0; members.len()];
        let mut turns = State { turn: FIRST };
        let heads = crate::forward::Headers { source: 0, destination: 0, protocol: 0, ports: [0; 2] };
        for _ in 0..members.len() {
            let view = PacketView { heads: &heads, fragment: false, macs: [0; 2] };
            shares[turns.decide(&view, members).member] += 1.0 / members.len() as f64;
        }
        Some(shares)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bond::tests::{VIEW, members};

    #[test]
    fn bond_round_robin_gives_turn_of_down_member_to_the_next() {
        let mut state = BondRoundRobin {}.build(&[]);
        let mut turns = |count: usize, members: &[Member]| -> Vec<usize> {
            (0..count).map(|_| state.decide(&VIEW, members).member).collect()
        };
        // Observed on Linux 6.1.
        assert_eq!(turns(9, &members(3, &[])), [1, 2, 0, 1, 2, 0, 1, 2, 0]);
        assert_eq!(turns(8, &members(3, &[1])), [2, 2, 0, 2, 2, 0, 2, 2]);
        // The turn advances even if no member carries packets; the lines drop the packets.
        assert_eq!(turns(3, &members(3, &[0, 1, 2])), [0, 1, 2]);
    }

    #[test]
    fn bond_round_robin_skips_lost_carrier_without_monitor() {
        let mut state = BondRoundRobin {}.build(&[]);
        let mut members = members(2, &[]);
        members[0].carrier = false;
        assert_eq!([0; 2].map(|_| state.decide(&VIEW, &members).member), [1, 1]);
        (members[0].carrier, members[0].up) = (true, false);
        assert_eq!([0; 2].map(|_| state.decide(&VIEW, &members).member), [1, 1]);
    }

    #[test]
    fn bond_round_robin_shares_match_its_turns() {
        let state = BondRoundRobin {}.build(&[]);
        assert_eq!(state.shares(&members(2, &[])), Some(vec![0.5, 0.5]));
        assert_eq!(state.shares(&members(4, &[1])), Some(vec![0.25, 0.0, 0.5, 0.25]));
    }
}
