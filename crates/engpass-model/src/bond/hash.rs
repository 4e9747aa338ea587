//! Per-flow load balancing over bond members: a hash of the headers chooses, with the arithmetic of Linux (`bond_xmit_hash`).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{BondModeConfig, Preference, SkipUpDelay};
use crate::forward::{Answer, Forward, Keep, Member, PacketView};

/// A hash of the headers chooses the member, so all packets of a flow take the same one (in Linux `balance-xor`, or `802.3ad` without its
/// protocol).
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct BondHash {
    /// The hashed headers (in Linux `xmit_hash_policy`).
    pub layers: HashLayers,
}

/// Headers that the hash of a bond covers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub enum HashLayers {
    /// Ethernet addresses. All packets to the same next hop take the same member.
    #[serde(rename = "layer-2")]
    #[default]
    Layer2,
    /// Ethernet and IP addresses.
    #[serde(rename = "layer-2+3")]
    Layer23,
    /// IP addresses and ports. Fragments have no ports.
    #[serde(rename = "layer-3+4")]
    Layer34,
}

/// EtherType of IPv4.
const IPV4: u32 = 0x0800;

impl HashLayers {
    /// Hash of a packet's headers. Linux reads addresses and ports in network byte order as numbers of a little-endian machine, hence the
    /// byte swaps.
    pub fn hash(self, view: &PacketView<'_>) -> u32 {
        let [source, destination] = view.macs.map(u32::from);
        let frame = source ^ destination ^ IPV4;
        let ports = match view.heads.ports {
            [source, destination] if !view.fragment => u32::from(source) << 16 | u32::from(destination),
            _ => 0,
        };
        let addresses = (view.heads.source ^ view.heads.destination).swap_bytes();
        let fold = |hash: u32| {
            let hash = hash ^ addresses;
            let hash = hash ^ (hash >> 16);
            hash ^ (hash >> 8)
        };
        match self {
            Self::Layer2 => frame,
            Self::Layer23 => fold(frame),
            // Linux drops the last bit, because ports of clients are often even.
            Self::Layer34 => fold(ports.swap_bytes()) >> 1,
        }
    }
}

impl BondModeConfig for BondHash {
    fn preference(&self, _: &[String]) -> Preference {
        Preference { primary: None, always: true, hurry: SkipUpDelay::NoneUsable }
    }

    fn build(&self, _: &[String]) -> Box<dyn Forward> {
        Box::new(State { layers: self.layers })
    }
}

#[derive(Debug)]
struct State {
    layers: HashLayers,
}

impl Forward for State {
    fn decide(&mut self, view: &PacketView<'_>, members: &[Member]) -> Answer {
        let up: Vec<usize> = (0..members.len()).filter(|member| members[*member].carries()).collect();
        let hash = self.layers.hash(view) as usize;
        // If no member is up, the line that is down drops the packet.
        let member = if up.is_empty() { hash % members.len() } else { up[hash % up.len()] };
        Answer { member, keep: Keep::Flow }
    }

    fn is_per_packet(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bond::tests::members;
    use crate::forward::Headers;

    /// Members that Linux 6.1 chose for UDP and TCP packets, observed on the member interfaces. Columns: last bytes of the MAC addresses,
    /// IP addresses, ports, and whether the packet was a fragment.
    #[test]
    fn bond_hash_selects_the_members_of_linux_6_1() {
        use HashLayers::{Layer2, Layer23, Layer34};
        type Row = (HashLayers, usize, [u8; 2], [u32; 2], [u16; 2], bool, usize);
        #[rustfmt::skip]
        let rows: [Row; 42] = [
            (Layer2, 2, [1, 9], [0x0a00_0011, 0x0a00_01c8], [49157, 80], false, 0),
            (Layer2, 2, [255, 3], [0x0a00_0001, 0x0a00_0003], [49154, 5001], false, 0),
            (Layer2, 2, [1, 3], [0x0a00_0011, 0x0a00_0003], [49159, 5001], false, 0),
            (Layer2, 2, [1, 2], [0x0a00_0011, 0x0a00_0002], [50001, 80], false, 1),
            (Layer2, 2, [255, 254], [0x0a00_0001, 0x0a00_0082], [49153, 5001], false, 1),
            (Layer2, 2, [1, 2], [0x0a00_0001, 0x0a00_0002], [49157, 80], false, 1),
            (Layer2, 2, [255, 2], [0x0a00_0001, 0x0a00_0002], [49153, 5001], false, 1),
            (Layer2, 3, [1, 9], [0x0a00_0011, 0x0a00_01c8], [50001, 80], false, 1),
            (Layer2, 3, [1, 254], [0x0a00_0001, 0x0a00_0082], [50001, 80], false, 2),
            (Layer2, 3, [16, 9], [0x0a00_0011, 0x0a00_01c8], [50001, 80], false, 0),
            (Layer2, 3, [255, 2], [0x0a00_0011, 0x0a00_0002], [50001, 5001], false, 0),
            (Layer2, 3, [16, 3], [0x0a00_0011, 0x0a00_0003], [49155, 5001], false, 0),
            (Layer2, 3, [16, 3], [0x0a00_0001, 0x0a00_0003], [49160, 5001], false, 0),
            (Layer2, 3, [16, 2], [0x0a00_0011, 0x0a00_0002], [49159, 5001], false, 2),
            (Layer23, 2, [255, 9], [0x0a00_0001, 0x0a00_01c8], [49152, 5001], false, 0),
            (Layer23, 2, [255, 2], [0x0a00_0011, 0x0a00_0002], [49159, 80], false, 0),
            (Layer23, 2, [255, 2], [0x0a00_0011, 0x0a00_0002], [49157, 5001], false, 0),
            (Layer23, 2, [255, 3], [0x0a00_0001, 0x0a00_0003], [49159, 5001], false, 0),
            (Layer23, 2, [255, 3], [0x0a00_0001, 0x0a00_0003], [49153, 80], false, 0),
            (Layer23, 2, [1, 3], [0x0a00_0011, 0x0a00_0003], [49157, 80], false, 0),
            (Layer23, 2, [16, 9], [0x0a00_0011, 0x0a00_01c8], [49152, 80], false, 1),
            (Layer23, 3, [1, 2], [0x0a00_0011, 0x0a00_0002], [49153, 5001], false, 2),
            (Layer23, 3, [16, 3], [0x0a00_0011, 0x0a00_0003], [49152, 80], false, 2),
            (Layer23, 3, [16, 254], [0x0a00_0011, 0x0a00_0082], [49152, 80], false, 2),
            (Layer23, 3, [16, 3], [0x0a00_0001, 0x0a00_0003], [49158, 5001], false, 0),
            (Layer23, 3, [255, 3], [0x0a00_0011, 0x0a00_0003], [49153, 5001], false, 1),
            (Layer23, 3, [16, 9], [0x0a00_0001, 0x0a00_01c8], [49153, 80], false, 0),
            (Layer23, 3, [255, 2], [0x0a00_0001, 0x0a00_0002], [49156, 5001], false, 2),
            (Layer34, 2, [16, 2], [0x0a00_0011, 0x0a00_0002], [49157, 80], false, 1),
            (Layer34, 2, [1, 254], [0x0a00_0001, 0x0a00_0082], [50001, 80], false, 0),
            (Layer34, 2, [255, 254], [0x0a00_0011, 0x0a00_0082], [49160, 5001], false, 0),
            (Layer34, 2, [1, 3], [0x0a00_0011, 0x0a00_0003], [49158, 5001], false, 1),
            (Layer34, 2, [1, 254], [0x0a00_0011, 0x0a00_0082], [49159, 5001], false, 1),
            (Layer34, 2, [255, 3], [0x0a00_0011, 0x0a00_0003], [49156, 80], false, 1),
            (Layer34, 2, [1, 2], [0x0a00_0011, 0x0a00_0002], [50001, 5001], false, 1),
            (Layer34, 3, [1, 3], [0x0a00_0011, 0x0a00_0003], [49160, 5001], false, 0),
            (Layer34, 3, [16, 254], [0x0a00_0001, 0x0a00_0082], [49158, 5001], false, 0),
            (Layer34, 3, [255, 3], [0x0a00_0001, 0x0a00_0003], [49152, 80], false, 1),
            (Layer34, 3, [255, 2], [0x0a00_0011, 0x0a00_0002], [49153, 80], false, 0),
            (Layer34, 3, [255, 3], [0x0a00_0011, 0x0a00_0003], [49152, 5001], false, 2),
            (Layer34, 3, [255, 2], [0x0a00_0001, 0x0a00_0002], [49155, 80], false, 0),
            (Layer34, 3, [16, 2], [0x0a00_0001, 0x0a00_0002], [49156, 80], false, 2),
        ];
        for row in rows {
            let (layers, count, macs, [source, destination], ports, fragment, member) = row;
            let heads = Headers { source, destination, protocol: 17, ports };
            let view = PacketView { heads: &heads, fragment, macs };
            let answer = BondHash { layers }.build(&[]).decide(&view, &members(count, &[]));
            assert_eq!(answer, Answer { member, keep: Keep::Flow }, "{row:?}");
        }
    }

    #[test]
    fn bond_hash_skips_members_that_are_down() {
        let heads = Headers { source: 0x0a00_0001, destination: 0x0a00_0002, protocol: 6, ports: [0; 2] };
        let taken = |down: &[usize]| -> Vec<usize> {
            let mut state = BondHash { layers: HashLayers::Layer34 }.build(&[]);
            let mut member = |port| {
                let heads = Headers { ports: [port, 5001], ..heads };
                let view = PacketView { heads: &heads, fragment: false, macs: [1, 2] };
                state.decide(&view, &members(3, down)).member
            };
            (50_000..50_008).map(&mut member).collect()
        };
        // Observed on Linux 6.1.
        assert_eq!(taken(&[]), [2, 0, 2, 0, 0, 1, 0, 1]);
        assert_eq!(taken(&[1]), [2, 2, 0, 0, 2, 2, 0, 0]);
        // If no member is up, the line that is down drops the packet.
        assert_eq!(taken(&[0, 1, 2]), taken(&[]));
    }
}
