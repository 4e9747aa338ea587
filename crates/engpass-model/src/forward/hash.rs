//! Per-flow load balancing: a hash of the headers chooses the path.
//!
//! The choice follows `fib_select_multipath` of Linux (hash thresholds, RFC 2992 section 2, with weights). The hash function is [`hash32`].

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    Answer, EcmpConfig, Forward, Headers, Keep, Member, PacketView, check_weights, choose, total_weight,
};
use crate::range_errors::RangeErrors;

/// A hash of the headers chooses the path, so all packets of a flow take the same one (hash threshold, RFC 2992; in Linux
/// `net.ipv4.fib_multipath_hash_policy`).
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Hash {
    /// The hashed headers. Fragments have no ports: with `layer-4`, their ports count as 0.
    pub fields: HashFields,
    /// Seed of the hash. Routers with the same seed make the same choice for a flow.
    pub seed: u64,
    /// Weight of the paths that begin on a link of this router, 1 to 65535, by link name; 1 for links that are not listed. A path with
    /// weight 2 gets twice as many flows as one with weight 1.
    pub weights: IndexMap<String, u32>,
}

/// Headers that a hash covers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub enum HashFields {
    /// IP addresses and the protocol.
    #[serde(rename = "layer-3")]
    Layer3,
    /// IP addresses, the protocol and the ports.
    #[serde(rename = "layer-4")]
    #[default]
    Layer4,
}

impl EcmpConfig for Hash {
    fn check(&self, errors: &mut RangeErrors) {
        check_weights(&self.weights, errors);
    }

    fn weights(&self) -> Option<&IndexMap<String, u32>> {
        Some(&self.weights)
    }

    fn build(&self) -> Box<dyn Forward> {
        Box::new(State { seed: self.seed, ports: self.fields == HashFields::Layer4 })
    }
}

#[derive(Debug)]
struct State {
    seed: u64,
    ports: bool,
}

impl Forward for State {
    fn decide(&mut self, view: &PacketView<'_>, members: &[Member]) -> Answer {
        let hash = hash32(self.seed, view.heads, self.ports && !view.fragment);
        Answer { member: threshold(hash, members), keep: Keep::Flow }
    }

    fn is_per_packet(&self) -> bool {
        false
    }
}

/// Index of the member whose region of the hash space contains `hash`, as in `fib_rebalance` and `fib_select_multipath` of Linux. Linux
/// compares with the last value of each region; this code compares with the first value after it.
fn threshold(hash: u32, members: &[Member]) -> usize {
    let total = total_weight(members);
    // A region ends at `((cumulative << 32) + total) / (2 * total)`, in 31 bits and rounded half up. The products fit, because a node has
    // fewer than 2^15 links with weights below 2^16.
    let before_end = 2 * total * (u64::from(hash >> 1) + 1);
    choose(members, |cumulative| before_end <= (cumulative << 32) + total)
}

/// Hash of a packet's headers: the finalizer of SplitMix64 (Steele, Lea and Flood 2014) over two words. Ports count as 0 unless `ports`.
pub fn hash32(seed: u64, heads: &Headers, ports: bool) -> u32 {
    let [source, destination] = if ports { heads.ports } else { [0, 0] };
    let addresses = (u64::from(heads.source) << 32) | u64::from(heads.destination);
    let transport = (u64::from(heads.protocol) << 32) | (u64::from(source) << 16) | u64::from(destination);
    let hash = [addresses, transport].into_iter().fold(seed, |hash, word| mix(hash ^ word));
    (hash >> 32) as u32
}

fn mix(word: u64) -> u64 {
    let word = word.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::forward::tests::{HEADS, members};

    #[test]
    fn hash_matches_an_independent_implementation() {
        // The first output of the SplitMix64 generator with seed 0.
        assert_eq!(mix(0), 0xe220_a839_7b1d_cdaf);
        // The other values come from a Python program with integers of arbitrary size.
        assert_eq!(hash32(0, &HEADS, true), 0xcb06_95e7);
        assert_eq!(hash32(0, &HEADS, false), 0x6c11_bca2);
        assert_eq!(hash32(0, &HEADS.reversed(), true), 0xfdbc_24e1);
        let tcp = Headers { protocol: 6, ..HEADS };
        assert_eq!(hash32(0, &tcp, true), 0x5650_68e3);
        assert_eq!(hash32(1, &tcp, true), 0xc1f8_c1f8);
        let ones = Headers { source: !0, destination: !0, protocol: !0, ports: [!0; 2] };
        assert_eq!(hash32(!0, &ones, true), 0x29c4_0954);
        let zeros = Headers { source: 0, destination: 0, protocol: 0, ports: [0; 2] };
        assert_eq!(hash32(0, &zeros, true), 0xa706_dd2f);
    }

    #[test]
    fn hash_thresholds_match_linux() {
        // Last values of the regions, as in `upper_bound` of Linux: round(cumulative * 2^31 / total) - 1.
        let cases: [(&[u32], &[u32]); 5] = [
            (&[1, 1], &[0x3fff_ffff, 0x7fff_ffff]),
            (&[1, 1, 1], &[0x2aaa_aaaa, 0x5555_5554, 0x7fff_ffff]),
            (&[2, 1], &[0x5555_5554, 0x7fff_ffff]),
            (&[3, 2, 2], &[0x36db_6db6, 0x5b6d_b6da, 0x7fff_ffff]),
            (&[65_535, 1], &[0x7fff_7fff, 0x7fff_ffff]),
        ];
        for (weights, last) in cases {
            let members = members(weights, &[]);
            for (index, last) in last.iter().enumerate() {
                assert_eq!(threshold(last << 1 | 1, &members), index, "{weights:?}");
                let next = last.wrapping_add(1) << 1;
                let other = (index + 1) % weights.len();
                assert_eq!(threshold(next, &members), other, "{weights:?}");
            }
        }
    }

    #[test]
    fn hash_threshold_skips_members_that_are_down() {
        let members = members(&[5, 1, 1], &[0]);
        assert_eq!([0, 0x7fff_ffff].map(|hash| threshold(hash, &members)), [1, 1]);
        assert_eq!([0x8000_0000, u32::MAX].map(|hash| threshold(hash, &members)), [2, 2]);
    }

    #[test]
    fn hashed_flows_match_an_independent_implementation() {
        let mut state = Hash { seed: 7, ..Hash::default() }.build();
        let members = members(&[3, 1, 2], &[]);
        let chosen = (49_152..49_164).map(|port| {
            let heads = Headers { protocol: 6, ports: [port, 5001], ..HEADS };
            let answer = state.decide(&PacketView { heads: &heads, fragment: false, macs: [0; 2] }, &members);
            assert_eq!(answer.keep, Keep::Flow);
            answer.member
        });
        assert_eq!(chosen.collect::<Vec<_>>(), [0, 1, 2, 0, 2, 0, 2, 1, 0, 2, 0, 0]);
    }

    #[test]
    fn hash_uses_ports_only_at_layer_4_and_without_fragments() {
        let members = members(&[1; 64], &[]);
        let chosen = |fields, port, fragment| {
            let heads = Headers { ports: [port, 5001], ..HEADS };
            Hash { fields, ..Hash::default() }
                .build()
                .decide(&PacketView { heads: &heads, fragment, macs: [0; 2] }, &members)
                .member
        };
        let differ = |fields, fragment| {
            let first = chosen(fields, 49_152, fragment);
            (49_153..49_160).any(|port| chosen(fields, port, fragment) != first)
        };
        assert!(differ(HashFields::Layer4, false));
        assert!(!differ(HashFields::Layer4, true) && !differ(HashFields::Layer3, false));
        assert_eq!(chosen(HashFields::Layer4, 49_152, true), chosen(HashFields::Layer3, 49_152, false));
    }
}
