//! Per-packet round robin.

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    Answer, EcmpConfig, Forward, Keep, Member, PacketView, check_weights, choose, eligible, total_weight,
};
use crate::range_errors::RangeErrors;

/// Packets take the paths in turn, regardless of their flow. The load is balanced, but packets of one flow may overtake each other.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RoundRobin {
    /// Weight of the paths that begin on a link of this router, 1 to 65535, by link name: the number of consecutive packets per round. 1
    /// for links that are not listed.
    pub weights: IndexMap<String, u32>,
}

impl EcmpConfig for RoundRobin {
    fn check(&self, errors: &mut RangeErrors) {
        check_weights(&self.weights, errors);
    }

    fn weights(&self) -> Option<&IndexMap<String, u32>> {
        Some(&self.weights)
    }

    fn build(&self) -> Box<dyn Forward> {
        Box::new(State { turn: 0 })
    }
}

#[derive(Debug)]
struct State {
    /// Number of packets so far.
    turn: u64,
}

impl Forward for State {
    fn decide(&mut self, _: &PacketView<'_>, members: &[Member]) -> Answer {
        let place = self.turn % total_weight(members);
        self.turn += 1;
        Answer { member: choose(members, |cumulative| place < cumulative), keep: Keep::Packet }
    }

    fn is_per_packet(&self) -> bool {
        true
    }

    fn shares(&self, members: &[Member]) -> Option<Vec<f64>> {
        let mut shares = vec![0.0; members.len()];
        for (member, weight) in eligible(members) {
            shares[member] = weight as f64 / total_weight(members) as f64;
        }
        Some(shares)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::forward::tests::{HEADS, members};

    #[test]
    fn ecmp_round_robin_turns_match_hand_calculation() {
        let mut state = RoundRobin::default().build();
        let view = PacketView { heads: &HEADS, fragment: false, macs: [0; 2] };
        let mut turns = |count: usize, members: &[Member]| -> Vec<usize> {
            (0..count).map(|_| state.decide(&view, members).member).collect()
        };
        // Turns 0 to 5 for weights 3, 1 and 2.
        assert_eq!(turns(6, &members(&[3, 1, 2], &[])), [0, 0, 0, 1, 2, 2]);
        // Turns 6 to 10 modulo 3: the first member is down, and weights 1 and 2 remain.
        assert_eq!(turns(5, &members(&[3, 1, 2], &[0])), [1, 2, 2, 1, 2]);
        // Turns 11 to 13 modulo 6 are 5, 0 and 1: the turn advanced while the member was down.
        assert_eq!(turns(3, &members(&[3, 1, 2], &[])), [2, 0, 0]);
    }

    #[test]
    fn ecmp_round_robin_shares_match_its_turns() {
        let mut state = RoundRobin::default().build();
        let view = PacketView { heads: &HEADS, fragment: false, macs: [0; 2] };
        for (weights, down) in [(vec![1, 1], vec![]), (vec![3, 1, 2], vec![]), (vec![3, 1, 2], vec![0])] {
            let members = members(&weights, &down);
            let mut taken = vec![0.0; members.len()];
            for _ in 0..600 {
                taken[state.decide(&view, &members).member] += 1.0 / 600.0;
            }
            let shares = state.shares(&members).expect("round-robin shares do not depend on headers");
            let close = |(one, other): (&f64, &f64)| (one - other).abs() < 1e-9;
            assert!(shares.iter().zip(&taken).all(close), "{shares:?} {taken:?}");
        }
    }
}
