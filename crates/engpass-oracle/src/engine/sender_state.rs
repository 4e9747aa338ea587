//! The states of senders over time (docs/ledger.md, "Sender states").
//!
//! The state is determined at the end of every instant with an event, and holds until the next such instant.
//!
//! The recorded states are in `../sender_state.rs`.

use engpass_model::tcp::LimitedBy;
use engpass_model::time::Time;

use super::{Engine, Source};
use crate::cpu::Item;
use crate::event_queue::Sender;
use crate::packet::way_index;
use crate::sender_state::{History, SenderState};

impl Engine<'_> {
    /// Returns the number of a sender: processes first, then endpoints, as queue disciplines number flows.
    pub(crate) fn sender_number(&self, sender: Sender) -> usize {
        let processes =
            |sources: &[Source]| sources.iter().filter(|source| matches!(source, Source::Process(_))).count();
        match sender {
            Sender::Process(flow) => processes(&self.sources[..flow]),
            Sender::Endpoint(endpoint) => processes(&self.sources) + endpoint,
        }
    }

    pub(crate) fn history(&mut self, sender: Sender) -> &mut History {
        let number = self.sender_number(sender);
        &mut self.histories[number]
    }

    /// Records the state of every sender from `now` on. All events at `now` must have been handled.
    pub(crate) fn note_states(&mut self, now: u64) {
        for sender in self.senders() {
            let state = self.state_of(now, sender);
            let number = self.sender_number(sender);
            self.histories[number].change(now, state);
        }
    }

    /// Returns all processes and endpoints, by number.
    pub(crate) fn senders(&self) -> Vec<Sender> {
        let flows = 0..self.sources.len();
        let processes = flows.filter(|flow| matches!(self.sources[*flow], Source::Process(_)));
        processes.map(Sender::Process).chain((0..self.endpoints.len()).map(Sender::Endpoint)).collect()
    }

    fn state_of(&self, now: u64, sender: Sender) -> SenderState {
        if self.histories[self.sender_number(sender)].in_nic > 0 {
            return SenderState::Sending;
        }
        let way = match sender {
            Sender::Process(flow) => way_index(flow, false),
            Sender::Endpoint(endpoint) => self.endpoints[endpoint].way(),
        };
        let chosen = self.chosen.get(&self.sender_number(sender));
        if self.waits_for_nic(chosen.map_or_else(|| self.nic_of(way), |out| self.first_line(*out)), sender) {
            return SenderState::NicBuffer;
        }
        match sender {
            Sender::Process(flow) => {
                let host = self.topology.flows[flow].from;
                let asked = |item| matches!(item, Item::Send { flow: of } if of == flow);
                if self.is_asked(host, asked) { SenderState::Cpu } else { SenderState::Application }
            }
            Sender::Endpoint(endpoint) => self.state_of_endpoint(now, endpoint),
        }
    }

    fn state_of_endpoint(&self, now: u64, endpoint: usize) -> SenderState {
        let this = &self.endpoints[endpoint];
        let segments = |item| match item {
            Item::Output { endpoint: of } => of == endpoint,
            Item::Input { datagram } => self.receiver_of(datagram) == Some(endpoint),
            _ => false,
        };
        if self.is_asked(this.host, segments) {
            return SenderState::Cpu;
        }
        let Some(limited) = this.limited_by(Time(now)) else { return SenderState::Application };
        let copies = |item| matches!(item, Item::Write { endpoint: of } if of == endpoint);
        match limited {
            LimitedBy::Application | LimitedBy::SendBuffer if self.is_asked(this.host, copies) => {
                SenderState::Cpu
            }
            LimitedBy::Application | LimitedBy::SendBuffer if this.has_more_to_write() => {
                SenderState::SendBuffer
            }
            limited => SenderState::of(limited),
        }
    }
}
