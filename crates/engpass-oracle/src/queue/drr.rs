//! Deficit round robin (docs/queues.md, `drr`; Shreedhar and Varghese 1996).

use std::collections::{BTreeMap, VecDeque};

use engpass_model::queue::Drr as Config;

use super::{Cause, Dropped, Length, Packet, Scheduler};

/// The queues of all flows and the state of the round.
#[derive(Debug)]
pub(super) struct Drr {
    config: Config,
    queues: BTreeMap<u32, VecDeque<Packet>>,
    /// DC in the paper: deficit counters in bytes.
    deficits: BTreeMap<u32, u64>,
    /// ActiveList in the paper: flows with packets; the one at the front has its turn.
    active: VecDeque<u32>,
    /// True if the flow at the front has received its quantum in this round.
    served: bool,
}

impl Drr {
    pub(super) fn new(config: Config) -> Self {
        let (queues, deficits) = (BTreeMap::new(), BTreeMap::new());
        Self { config, queues, deficits, active: VecDeque::new(), served: false }
    }

    fn length(&self) -> Length {
        Length::of(self.queues.values().flatten())
    }

    /// Removes a flow without packets from the round and clears its deficit.
    fn leave_if_empty(&mut self, flow: u32) {
        if self.queues[&flow].is_empty() {
            if self.active.front() == Some(&flow) {
                self.served = false;
            }
            self.active.retain(|active| *active != flow);
            self.deficits.insert(flow, 0);
        }
    }
}

impl Scheduler for Drr {
    fn put(&mut self, _: u64, packet: Packet, dropped: &mut Dropped) {
        let queue = self.queues.entry(packet.flow).or_default();
        queue.push_back(packet);
        if !self.active.contains(&packet.flow) {
            self.active.push_back(packet.flow);
        }
        while !self.length().is_within(self.config.limit) {
            let bytes = |queue: &VecDeque<Packet>| Length::of(queue).bytes;
            let most = self.queues.values().map(bytes).max();
            let (flow, queue) = self
                .queues
                .iter_mut()
                .find(|(_, queue)| Some(bytes(queue)) == most)
                .expect("a queue over its limit holds packets");
            let (flow, last) = (*flow, queue.pop_back().expect("the longest queue is not empty"));
            dropped.push((last, Cause::Full));
            self.leave_if_empty(flow);
        }
    }

    fn take(&mut self, _: u64, _: &mut Dropped) -> Option<Packet> {
        loop {
            let flow = *self.active.front()?;
            let deficit = self.deficits.entry(flow).or_default();
            if !self.served {
                self.served = true;
                *deficit += self.config.quantum.bytes();
            }
            let queue = self.queues.get_mut(&flow).expect("an active flow has a queue");
            if queue[0].bytes <= *deficit {
                *deficit -= queue[0].bytes;
                let packet = queue.pop_front();
                self.leave_if_empty(flow);
                return packet;
            }
            self.served = false;
            self.active.rotate_left(1);
        }
    }

    fn waiting(&self) -> Vec<Packet> {
        self.queues.values().flatten().copied().collect()
    }
}
