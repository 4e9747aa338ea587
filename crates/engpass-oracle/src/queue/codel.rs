//! CoDel (docs/queues.md, `codel`; RFC 8289 section 5).

use std::collections::VecDeque;

use engpass_model::queue::CoDel as Config;

use super::{Cause, Dropped, Length, Packet, Scheduler, put_last};

/// TARGET and INTERVAL of the pseudocode in picoseconds. `ecn` is true if packets are marked.
#[derive(Clone, Copy, Debug)]
pub(super) struct Law {
    pub(super) target: u64,
    pub(super) interval: u64,
    pub(super) ecn: bool,
}

/// The variables of the pseudocode under their names there.
#[derive(Debug, Default)]
pub(super) struct State {
    /// `None` stands for 0.
    first_above_time: Option<u64>,
    drop_next: u64,
    count: u64,
    lastcount: u64,
    dropping: bool,
}

impl State {
    /// `deque` of the pseudocode: returns the next packet to send. `longest` is MAXPACKET.
    pub(super) fn deque(
        &mut self,
        now: u64,
        (law, longest): (Law, u64),
        list: &mut VecDeque<Packet>,
        dropped: &mut Dropped,
    ) -> Option<Packet> {
        let (mut packet, mut ok_to_drop) = self.dodequeue(now, (law, longest), list);
        if self.dropping {
            if !ok_to_drop {
                self.dropping = false;
            }
            while self.dropping && now >= self.drop_next {
                let mut this = packet.expect("CoDel drops only from a non-empty queue");
                self.count += 1;
                if law.ecn && this.mark() {
                    self.drop_next = control_law(law, self.drop_next, self.count);
                    return Some(this);
                }
                dropped.push((this, Cause::CoDel));
                (packet, ok_to_drop) = self.dodequeue(now, (law, longest), list);
                if ok_to_drop {
                    self.drop_next = control_law(law, self.drop_next, self.count);
                } else {
                    self.dropping = false;
                }
            }
        } else if ok_to_drop {
            let mut this = packet.expect("CoDel drops only from a non-empty queue");
            if law.ecn && this.mark() {
                packet = Some(this);
            } else {
                dropped.push((this, Cause::CoDel));
                (packet, _) = self.dodequeue(now, (law, longest), list);
            }
            self.dropping = true;
            let delta = self.count - self.lastcount;
            self.count = 1;
            if delta > 1 && i128::from(now) - i128::from(self.drop_next) < 16 * i128::from(law.interval) {
                self.count = delta;
            }
            self.drop_next = control_law(law, now, self.count);
            self.lastcount = self.count;
        }
        packet
    }

    fn dodequeue(
        &mut self,
        now: u64,
        (law, longest): (Law, u64),
        list: &mut VecDeque<Packet>,
    ) -> (Option<Packet>, bool) {
        let Some(packet) = list.pop_front() else {
            self.first_above_time = None;
            return (None, false);
        };
        if now - packet.came < law.target || Length::of(&*list).bytes <= longest {
            self.first_above_time = None;
            return (Some(packet), false);
        }
        let ok_to_drop = match self.first_above_time {
            None => {
                self.first_above_time = Some(now + law.interval);
                false
            }
            Some(time) => now >= time,
        };
        (Some(packet), ok_to_drop)
    }
}

/// `t + INTERVAL / sqrt(count)`, rounded down.
fn control_law(law: Law, t: u64, count: u64) -> u64 {
    let interval = u128::from(law.interval);
    t + (interval * interval / u128::from(count)).isqrt() as u64
}

/// One queue.
#[derive(Debug)]
pub(super) struct CoDel {
    config: Config,
    law: Law,
    list: VecDeque<Packet>,
    state: State,
    longest: u64,
}

impl CoDel {
    pub(super) fn new(config: Config) -> Self {
        let law = Law { target: config.target.0, interval: config.interval.0, ecn: config.ecn };
        Self { config, law, list: VecDeque::new(), state: State::default(), longest: 0 }
    }
}

impl Scheduler for CoDel {
    fn put(&mut self, _: u64, packet: Packet, dropped: &mut Dropped) {
        if put_last(&mut self.list, self.config.limit, packet, dropped) {
            self.longest = self.longest.max(packet.bytes);
        }
    }

    fn take(&mut self, now: u64, dropped: &mut Dropped) -> Option<Packet> {
        self.state.deque(now, (self.law, self.longest), &mut self.list, dropped)
    }

    fn waiting(&self) -> Vec<Packet> {
        self.list.iter().copied().collect()
    }
}
