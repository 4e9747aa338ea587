//! Forwarding mechanisms that were active in a run, so that tests of random networks can report how often each one was covered.
//!
//! The state is in `../acted.rs`.

use std::collections::BTreeSet;

use engpass_model::bond::BondMode;
use engpass_model::forward::Ecmp;
use engpass_testbed::topology::{NodeId, NodeKind};

use super::Engine;
use crate::acted::Mechanism;
use crate::packet::Out;
use crate::resolve::kind;

impl Engine<'_> {
    /// Returns the mechanisms that were active in the run so far.
    pub fn acted(&self) -> BTreeSet<Mechanism> {
        let mut mechanisms = self.acted.mechanisms.clone();
        for ((node, group), _) in self.acted.chosen.iter().filter(|(_, members)| members.len() > 1) {
            match (kind(&self.topology, *node), self.bond_on(group[0])) {
                (NodeKind::Router(router), None) => {
                    mechanisms.insert(match &self.testbed.routers[router].ecmp {
                        Ecmp::Hash(_) => Mechanism::Hash,
                        _ => Mechanism::RoundRobin,
                    });
                }
                (_, Some(bond)) => {
                    let path = &self.topology.bonds[bond];
                    mechanisms.insert(match path.config.mode {
                        _ if path.node != *node => Mechanism::FollowsBond,
                        BondMode::Hash(_) => Mechanism::BondHash,
                        BondMode::ActiveBackup(_) => Mechanism::Failover,
                        _ => Mechanism::BondTurns,
                    });
                    if matches!(kind(&self.topology, path.node), NodeKind::Switch(_)) {
                        mechanisms.insert(Mechanism::SwitchBond);
                    }
                }
                _ => {}
            }
        }
        let outages = (0..self.sources.len()).filter_map(|flow| self.outage_of(flow, self.end()));
        if outages.into_iter().any(|outage| outage.lost > 0 && outage.longest > 0) {
            mechanisms.insert(Mechanism::Outage);
        }
        if self.ledger.has_lost_a_message() {
            mechanisms.insert(Mechanism::MessageLost);
        }
        if self.ledger.some_got_what_others_lost() {
            mechanisms.insert(Mechanism::PartLost);
        }
        mechanisms
    }

    /// Records the choice of a policy among a group at a router. `by_equal_weights` is the member that equal weights would choose.
    pub(crate) fn note_choice(
        &mut self,
        router: NodeId,
        (group, up): (&[Out], &[bool]),
        member: usize,
        by_equal_weights: usize,
    ) {
        self.acted.chooses(router, group, member);
        if member != by_equal_weights {
            self.acted.note(Mechanism::Weights);
        }
        if up.contains(&true) {
            for (out, _) in group.iter().zip(up).filter(|(_, up)| !**up) {
                match out {
                    Out::Tunnel(_) => self.acted.note(Mechanism::AroundTunnel),
                    _ => self.event_acts(self.acted.unseen[&self.first_line(*out)]),
                }
            }
        }
    }

    /// Records that an outage lost a packet on a link.
    pub(crate) fn note_loss_to_outage(&mut self, link: usize) {
        self.event_acts(self.acted.downed[&link]);
    }

    fn event_acts(&mut self, event: usize) {
        let seen_by_both = self.topology.events[event].seen_by == [true; 2];
        self.acted.note(if seen_by_both { Mechanism::LinkEvent } else { Mechanism::InterfaceEvent });
        let name = &self.topology.events[event].name;
        if self.testbed.events[name].mean_time_between_failures.is_some() {
            self.acted.note(Mechanism::RandomFailure);
        }
    }
}
