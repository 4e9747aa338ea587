//! What is known in advance: which ports can be asked for instants that lie ahead, and whose cells can be drawn.

use engpass_model::switch::Switch;

use super::Builder;
use crate::simulate::advance::Queue;

impl Builder<'_> {
    /// Find out which ports can be asked for instants that lie ahead.
    pub(super) fn look_ahead(&mut self) {
        let mut changed = true;
        while std::mem::take(&mut changed) {
            for port in 0..self.ports.len() {
                if !self.ports[port].foreseeable && self.open_channels(port).next().is_none() {
                    self.ports[port].foreseeable = true;
                    changed = true;
                }
            }
        }
        for port in 0..self.ports.len() {
            let mut open = self.open_channels(port);
            let sole = open.next().filter(|_| open.next().is_none());
            drop(open);
            self.ports[port].sole = sole;
            let overtaking = self.overtaking(port);
            self.ports[port].overtaking = overtaking;
            if let (Some(channel), Queue::Classes(queue)) = (overtaking, &mut self.ports[port].queue) {
                queue.overtaken_by(channel);
            }
        }
    }

    /// Channels of a port whose cells are not known in advance.
    fn open_channels(&self, port: usize) -> impl Iterator<Item = usize> {
        self.channels[port].iter().enumerate().filter_map(move |(index, channel)| {
            let known = channel.is_generated()
                || self.origins[port][index].is_some_and(|before| self.ports[before].foreseeable);
            (!known).then_some(index)
        })
    }

    /// The generator's channel that alone has priority at a port, spaced so that none of its cells is ever lost.
    fn overtaking(&self, port: usize) -> Option<usize> {
        let first_class: Vec<_> = self.onward[port]
            .iter()
            .filter(|onward| self.ports[port].rules[onward.vc as usize].class == 0)
            .collect();
        let [only] = first_class.as_slice() else { return None };
        let switch = self.node_of(port).checked_sub(self.topology.hosts)?;
        let Some((_, Switch::Atm(switch))) = self.testbed.switches.get_index(switch) else { return None };
        if self.ports[port].rules[only.vc as usize].policer.is_some() {
            return None;
        }
        let slot = self.slots[port / 2].after(1);
        let mut channels = self.channels[port].iter();
        let place = channels.position(|channel| {
            channel.is_even()
                && channel.generated_pace() > slot
                && channel.head() != u64::MAX
                && channel.front().vc == only.vc
        })?;
        // Cells that are drawn and never queued are not shown to a policy or a threshold: they must not matter to them.
        let unseen = switch.gate().may_overlook(&self.channels[port][place].front());
        (unseen && self.flows_on(only.vc).count() == 1).then_some(place)
    }
}
