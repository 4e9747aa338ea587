//! Multicast traffic: nodes copy packets where the paths to the receivers diverge (docs/model.md, "Multicast").

use engpass_testbed::topology::{NodeId, NodeKind};

use super::Engine;
use crate::acted::Mechanism;
use crate::group::Receiver;
use crate::packet::{Out, Packet};
use crate::resolve::kind;

impl Engine<'_> {
    /// Returns the numbers of a traffic's receivers in the counters, where they follow the flows. A traffic has such receivers if they are
    /// several, or join or leave.
    pub(crate) fn receivers_of(&self, flow: usize) -> Vec<usize> {
        let all = self.receivers.iter().enumerate().filter(|(_, receiver)| receiver.flow == flow);
        all.map(|(place, _)| self.topology.flows.len() + place).collect()
    }

    pub(crate) fn receiver(&self, number: usize) -> Receiver {
        self.receivers[number - self.topology.flows.len()]
    }

    /// Returns the index of the path to the receiver with this number.
    pub(crate) fn way_to(&self, number: usize) -> usize {
        self.message_way(self.messages().len()) + number - self.topology.flows.len()
    }

    /// Copies a packet at a node if it goes to receivers on several path segments. Returns the packets that continue.
    pub(crate) fn parted(&mut self, now: u64, node: NodeId, packet: usize) -> Vec<usize> {
        let whole = self.packets[packet].clone();
        let parts = self.ledger.datagram(whole.datagram).parts.clone();
        if whole.carries.is_some() || parts.is_empty() {
            return vec![packet];
        }
        let pruned = self.pruned_at(now, node, packet);
        let mut legs = self.legs_of_parts(node, &parts);
        // A datagram with a single receiver, which joins or leaves, becomes the receiver's own at the first node.
        let divides = legs.len() > 1 || parts.len() == 1;
        legs.retain(|(_, parts)| !pruned.contains(&parts[0]));
        if !divides && !legs.is_empty() {
            return vec![packet];
        }
        if legs.len() > 1 {
            let at_switch = matches!(kind(&self.topology, node), NodeKind::Switch(_));
            self.acted.note(if at_switch { Mechanism::CopiesAtSwitch } else { Mechanism::CopiesAtRouter });
            if self.is_fragment(packet) {
                self.acted.note(Mechanism::FragmentsCopied);
            }
        }
        let copy = |(_, parts): (Out, Vec<usize>)| {
            let key = (whole.datagram, parts.clone());
            let datagram = match self.apart.get(&key) {
                Some(known) => *known,
                None => {
                    let datagram = self.ledger.goes_apart(whole.datagram, &parts);
                    self.apart.insert(key, datagram);
                    datagram
                }
            };
            let way = self.way_of_part(parts[0]);
            self.packets.push(Packet { datagram, way, ..whole.clone() });
            self.packets.len() - 1
        };
        legs.into_iter().map(copy).collect()
    }

    pub(crate) fn way_of_part(&self, part: usize) -> usize {
        self.way_to(self.ledger.datagram(part).receiver.expect("the datagram copy has a receiver"))
    }
}
