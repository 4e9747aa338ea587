//! The states of senders over time (docs/ledger.md, "Sender states").
//!
//! A state is a question to the network: it is asked at the end of every instant at which anything happens, and holds until the next one.

use engpass_model::tcp::LimitedBy;
use engpass_model::time::Time;

use crate::agenda::Sender;
use crate::cpu::Item;
use crate::engine::{Engine, Source};
use crate::packet::way_index;

/// What a sender does, in the order of the accounts of idle time. Its data keeps a line idle while it does anything but send.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum SenderState {
    Application,
    Cpu,
    NicBuffer,
    SendBuffer,
    ReceiveWindow,
    CongestionWindow,
    RetransmissionTimer,
    Nagle,
    SillyWindow,
    Handshake,
    Pacing,
    Sending,
}

impl SenderState {
    pub(crate) const COUNT: usize = Self::Sending as usize + 1;

    /// The state of a connection that sends nothing for this reason, its copies and the rest of its write apart.
    fn of(limited: LimitedBy) -> Self {
        match limited {
            // A segment is ready for the host.
            LimitedBy::Nothing => Self::Cpu,
            LimitedBy::Handshake => Self::Handshake,
            LimitedBy::Application | LimitedBy::SendBuffer | LimitedBy::Closed => Self::Application,
            LimitedBy::ReceiveWindow => Self::ReceiveWindow,
            LimitedBy::CongestionWindow => Self::CongestionWindow,
            LimitedBy::Nagle => Self::Nagle,
            LimitedBy::SillyWindow => Self::SillyWindow,
            LimitedBy::RetransmissionTimer => Self::RetransmissionTimer,
            LimitedBy::Pacing => Self::Pacing,
        }
    }
}

/// Picoseconds by state.
pub(crate) type StateSums = [u64; SenderState::COUNT];

/// A state that lasted from one instant to another.
#[derive(Clone, Copy, Debug)]
struct Stay {
    from: u64,
    to: u64,
    state: SenderState,
}

/// All that one sender did since the beginning.
#[derive(Clone, Debug)]
pub(crate) struct History {
    stays: Vec<Stay>,
    /// The state behind the last of them.
    state: SenderState,
    /// Packets of it in its NIC that are not wholly emitted.
    in_nic: u64,
    /// When a packet of it last entered the NIC, or a segment came to it.
    stirred: u64,
    /// The sums at the beginning of the counted time, as they were then.
    pub(crate) before: StateSums,
}

impl Default for History {
    fn default() -> Self {
        Self {
            stays: Vec::new(),
            state: SenderState::Application,
            in_nic: 0,
            stirred: 0,
            before: [0; SenderState::COUNT],
        }
    }
}

impl History {
    /// The instant up to which all is known: in the future while the last cell of a frame is emitted.
    fn until(&self) -> u64 {
        self.stays.last().map_or(0, |stay| stay.to)
    }

    /// It has done the same since the last change.
    fn pass(&mut self, now: u64) {
        self.stay(now, self.state);
    }

    fn stay(&mut self, to: u64, state: SenderState) {
        let from = self.until();
        match self.stays.last_mut() {
            _ if to <= from => {}
            Some(last) if last.state == state => last.to = to,
            _ => self.stays.push(Stay { from, to, state }),
        }
    }

    /// It does this from `now` on.
    fn change(&mut self, now: u64, state: SenderState) {
        self.pass(now);
        self.state = state;
    }

    /// A packet enters the NIC.
    pub(crate) fn enters_nic(&mut self) {
        self.in_nic += 1;
    }

    /// A packet is emitted, and its last cell is being emitted until an instant that may be in the future.
    pub(crate) fn emitted(&mut self, now: u64, until: u64) {
        self.pass(now);
        self.stay(until, SenderState::Sending);
        self.in_nic -= 1;
    }

    /// A segment goes out or comes in.
    pub(crate) fn stirs(&mut self, now: u64) {
        self.stirred = now;
    }

    /// The retransmission timer expires: since something last stirred, whatever was no sending was a wait for it.
    pub(crate) fn times_out(&mut self, now: u64) {
        self.pass(now);
        let stays = std::mem::take(&mut self.stays);
        for Stay { from, to, state } in stays {
            let waited = if state == SenderState::Sending { state } else { SenderState::RetransmissionTimer };
            self.stay(to.min(self.stirred.max(from)), state);
            self.stay(to, waited);
        }
    }

    /// How long it was in each state up to `at`, everything up to which has happened.
    pub(crate) fn sums(&self, at: u64) -> StateSums {
        let mut sums = [0; SenderState::COUNT];
        for stay in &self.stays {
            sums[stay.state as usize] += stay.to.min(at).saturating_sub(stay.from);
        }
        sums[self.state as usize] += at.saturating_sub(self.until());
        sums
    }
}

impl Engine<'_> {
    /// The number of a sender: processes come first, then the ends of connections, as disciplines count their flows.
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

    /// Everything at `now` has happened: note what every sender does from here on.
    pub(crate) fn note_states(&mut self, now: u64) {
        for sender in self.senders() {
            let state = self.state_of(now, sender);
            let number = self.sender_number(sender);
            self.histories[number].change(now, state);
        }
    }

    /// All processes and ends of connections, by number.
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
