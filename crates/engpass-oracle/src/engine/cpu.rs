//! A host's CPU (docs/model.md, "CPU" and "Interrupts").
//!
//! The state is in `../cpu.rs`.

use super::Engine;
use crate::cpu::{Busy, Item};
use crate::event_queue::{Event, Group};

impl Engine<'_> {
    /// Gives the CPU an item that takes `cost` picoseconds.
    pub(crate) fn ask_cpu(&mut self, now: u64, host: usize, cost: u64, item: Item) {
        let cpu = &mut self.cpus[host];
        if !item.goes_first() {
            cpu.waiting.push_back((cost, item));
        } else {
            if let Some(busy) = cpu.busy.take_if(|busy| busy.item.is_write() && busy.ends > now) {
                cpu.waiting.push_front((busy.ends - now, busy.item));
                cpu.worked += self.books.counted(busy.since, now);
            }
            let place = cpu.waiting.iter().position(|(_, item)| item.is_write());
            cpu.waiting.insert(place.unwrap_or(cpu.waiting.len()), (cost, item));
        }
        self.next_item(now, host);
    }

    /// Starts the next items of the CPU, up to the first that takes time or a turn.
    fn next_item(&mut self, now: u64, host: usize) {
        loop {
            let cpu = &mut self.cpus[host];
            if cpu.busy.is_some() || cpu.ending {
                return;
            }
            let Some((cost, item)) = cpu.waiting.pop_front() else { return };
            cpu.begun += 1;
            let number = cpu.begun;
            cpu.ending = true;
            let cost = match item {
                Item::Output { endpoint } => self.form_segment(now, endpoint),
                _ => cost,
            };
            if cost == 0 && item.may_take_no_turn() {
                self.do_item(now, item);
                self.cpus[host].ending = false;
                continue;
            }
            let cpu = &mut self.cpus[host];
            cpu.ending = false;
            cpu.busy = Some(Busy { item, number, since: now, ends: now + cost });
            let position = (self.flow_of(item), 0);
            self.agenda.put(now + cost, Group::CpuEnds, position, Event::CpuEnds { host, item: number });
        }
    }

    /// Returns true if the CPU has an item for which `is_such` is true, waiting or in work.
    pub(crate) fn is_asked(&self, host: usize, is_such: impl Fn(Item) -> bool) -> bool {
        let cpu = &self.cpus[host];
        let busy = cpu.busy.iter().map(|busy| busy.item);
        busy.chain(cpu.waiting.iter().map(|(_, item)| *item)).any(is_such)
    }

    /// Returns the endpoint that a datagram goes to.
    pub(crate) fn receiver_of(&self, datagram: usize) -> Option<usize> {
        self.ledger.datagram(datagram).segment.map(|(_, to)| to)
    }

    fn flow_of(&self, item: Item) -> usize {
        match item {
            Item::Send { flow } => flow,
            Item::Receive { datagram } | Item::Input { datagram } => self.ledger.datagram(datagram).flow,
            Item::Write { endpoint } | Item::Output { endpoint } => self.endpoints[endpoint].flow,
        }
    }

    /// Handles the end of an item on the CPU.
    pub(crate) fn cpu_ends(&mut self, now: u64, host: usize, item: u64) {
        let Some(done) = self.cpus[host].busy.take_if(|busy| busy.number == item) else {
            // The item was interrupted.
            return;
        };
        self.cpus[host].worked += self.books.counted(done.since, now);
        self.cpus[host].ending = true;
        self.do_item(now, done.item);
        self.cpus[host].ending = false;
        self.next_item(now, host);
    }

    /// Carries out the purpose of an item at its end.
    fn do_item(&mut self, now: u64, item: Item) {
        match item {
            Item::Send { flow } => {
                self.agenda.put(now, Group::PacketHanded, (flow, 0), Event::PacketHanded { flow });
            }
            Item::Receive { datagram } => {
                let this = self.ledger.datagram(datagram);
                self.receive_buffers[this.receiver.unwrap_or(this.flow)] -= this.payload;
                self.receives(now, datagram, 0);
            }
            Item::Write { endpoint } => self.piece_copied(now, endpoint),
            Item::Output { endpoint } => self.segment_formed(now, endpoint),
            Item::Input { datagram } => self.take_segment(now, datagram),
        }
    }
}
