//! Strict priority (docs/queues.md, `priority`).

use std::collections::VecDeque;

use engpass_model::queue::Priority as Config;

use super::{Dropped, Packet, Scheduler, put_last};

/// Eight queues, by priority code point.
#[derive(Debug)]
pub(super) struct Priority {
    config: Config,
    classes: [VecDeque<Packet>; 8],
}

impl Priority {
    pub(super) fn new(config: Config) -> Self {
        Self { config, classes: Default::default() }
    }
}

impl Scheduler for Priority {
    fn put(&mut self, _: u64, packet: Packet, dropped: &mut Dropped) {
        let class = &mut self.classes[usize::from(packet.priority)];
        put_last(class, self.config.limit, packet, dropped);
    }

    fn take(&mut self, _: u64, _: &mut Dropped) -> Option<Packet> {
        self.classes.iter_mut().rev().find_map(VecDeque::pop_front)
    }

    fn waiting(&self) -> Vec<Packet> {
        self.classes.iter().flatten().copied().collect()
    }
}
