//! Idle time of lines by reason (docs/ledger.md, "Idle by reason").

use std::collections::BTreeMap;

use crate::accounts::Unit;
use crate::agenda::Sender;
use crate::cell::LineId;
use crate::engine::Engine;
use crate::packet::Out;
use crate::sender_state::{SenderState, StateSums};

/// Why a line was idle, in the order of the accounts: states of a sender that could have used it, and reasons that are none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum IdleReason {
    /// A sender was in this state. It is never [`SenderState::Sending`].
    Sender(SenderState),
    Shaper,
    Upstream,
    OtherWay,
    LineDown,
    NoSender,
}

impl IdleReason {
    /// The account of the reason.
    pub(crate) fn account(self) -> &'static str {
        use SenderState::{
            Application, CongestionWindow, Cpu, Handshake, Nagle, NicBuffer, Pacing, ReceiveWindow,
            RetransmissionTimer, SendBuffer, Sending, SillyWindow,
        };
        match self {
            Self::Sender(Application) => "idle: application",
            Self::Sender(Cpu) => "idle: CPU",
            Self::Sender(NicBuffer) => "idle: NIC buffer",
            Self::Sender(SendBuffer) => "idle: send buffer",
            Self::Sender(ReceiveWindow) => "idle: receive window",
            Self::Sender(CongestionWindow) => "idle: congestion window",
            Self::Sender(RetransmissionTimer) => "idle: retransmission timer",
            Self::Sender(Nagle) => "idle: Nagle",
            Self::Sender(SillyWindow) => "idle: silly window avoidance",
            Self::Sender(Handshake) => "idle: handshake",
            Self::Sender(Pacing) => "idle: pacing",
            Self::Sender(Sending) => unreachable!("a sender that sends is held back by something else"),
            Self::Shaper => "idle: shaper",
            Self::Upstream => "idle: upstream",
            Self::OtherWay => "idle: other way",
            Self::LineDown => "idle: line down",
            Self::NoSender => "idle: no sender",
        }
    }
}

/// Picoseconds by reason.
pub(crate) type Reasons = BTreeMap<IdleReason, u64>;

/// The idle time of a line that has a reason so far, and what is needed to find one for the rest.
#[derive(Clone, Debug, Default)]
pub(crate) struct LineReasons {
    reasons: Reasons,
    /// Idle time of outages that are over, and what the line's idle time was when the one began that goes on.
    down: u64,
    went_down: Option<u64>,
    /// The sender whose packet left last.
    last: Option<usize>,
    /// By sender, what its last packet here left behind.
    senders: BTreeMap<usize, LastPacket>,
}

/// The last packet of a sender that left a line.
#[derive(Clone, Copy, Debug, Default)]
struct LastPacket {
    /// The sums of the sender when the packet was emitted.
    sums: Option<StateSums>,
    /// Cells or bytes of the sender that have left the line since then.
    since: u64,
    /// The direction of a circuit on which it came, if it did.
    vc: Option<usize>,
}

/// Who could have used a line when it was idle.
enum User {
    Nobody,
    /// Nobody, because policies choose other lines.
    Elsewhere,
    Application,
    /// This sender, and nobody else uses the line.
    Sole(usize),
    /// Several, of which this one is the first.
    Shared(usize),
}

impl LineReasons {
    /// How long the line was down and idle, if it was idle for `idle` picoseconds so far.
    fn down(&self, idle: u64) -> u64 {
        self.down + self.went_down.map_or(0, |then| idle - then)
    }

    /// How much of its idle time has no reason.
    fn open(&self, idle: u64) -> u64 {
        idle - self.down(idle) - self.reasons.values().sum::<u64>()
    }

    /// The line goes down, and was idle for `idle` picoseconds so far.
    pub(crate) fn goes_down(&mut self, idle: u64) {
        self.went_down = Some(idle);
    }

    /// The line comes up.
    pub(crate) fn comes_up(&mut self, idle: u64) {
        (self.down, self.went_down) = (self.down(idle), None);
    }

    /// A discipline held back for `held` picoseconds what it sends now. The line was idle for `idle` picoseconds so far.
    pub(crate) fn held_back(&mut self, held: u64, idle: u64) {
        let held = held.min(self.open(idle));
        *self.reasons.entry(IdleReason::Shaper).or_default() += held;
    }
}

impl Engine<'_> {
    /// Cells or bytes of a packet leave a line, its last ones perhaps.
    pub(crate) fn data_leaves(
        &mut self,
        line: LineId,
        (packet, vc): (usize, Option<usize>),
        units: u64,
        last: bool,
    ) {
        let this = &self.packets[packet];
        let datagram = self.ledger.datagram(this.datagram);
        if datagram.generated || datagram.number.is_none() {
            return;
        }
        let sender = this.discipline_flow as usize;
        let emitted = this.emitted;
        let reasons = self.reasons.entry(line).or_default();
        reasons.senders.entry(sender).or_default().since += units;
        if !last {
            return;
        }
        let LastPacket { sums: then, since, .. } = reasons.senders[&sender];
        let sums = self.histories[sender].sums(emitted.expect("what leaves a line was emitted"));
        let idle = reasons.open(self.books.idle_of(line));
        if let User::Shared(_) = self.user_of(line) {
            let own = self.unit(line).time(since);
            let held_back = self.held_back_by(line, sender, vc);
            let reasons = self.reasons.entry(line).or_default();
            apportion(&mut reasons.reasons, idle, difference(sums, then), own, held_back);
        }
        let reasons = self.reasons.entry(line).or_default();
        reasons.last = Some(sender);
        reasons.senders.insert(sender, LastPacket { sums: Some(sums), since: 0, vc });
    }

    /// The idle time of a line in the counted time up to `at`, by reason.
    pub(crate) fn reasons_of(&self, at: u64, line: LineId) -> Reasons {
        let this = self.reasons.get(&line).cloned().unwrap_or_default();
        let idle = self.idle(at)[line.link][line.end];
        let rest = this.open(idle);
        let mut reasons = this.reasons.clone();
        reasons.insert(IdleReason::LineDown, this.down(idle));
        let mut put = |reason| *reasons.entry(reason).or_default() += rest;
        match self.user_of(line) {
            User::Nobody => put(IdleReason::NoSender),
            User::Elsewhere => put(IdleReason::OtherWay),
            User::Application => put(IdleReason::Sender(SenderState::Application)),
            User::Sole(sender) => {
                let history = &self.histories[sender];
                let own = at - self.books.from() - rest;
                let sums = difference(history.sums(at), Some(history.before));
                let vc = self.first_vc_over(sender, line);
                apportion(&mut reasons, rest, sums, own, self.held_back_by(line, sender, vc));
            }
            User::Shared(first) => {
                let sender = this.last.unwrap_or(first);
                let last = this.senders.get(&sender).copied().unwrap_or_default();
                let sums = difference(self.histories[sender].sums(at), last.sums);
                let vc = if last.sums.is_some() { last.vc } else { self.first_vc_over(sender, line) };
                let (own, held_back) =
                    (self.unit(line).time(last.since), self.held_back_by(line, sender, vc));
                apportion(&mut reasons, rest, sums, own, held_back);
            }
        }
        reasons
    }

    pub(crate) fn unit(&self, line: LineId) -> Unit {
        Unit::of(self.topology.links[line.link].lines[line.end])
    }

    /// Whether cells of a generator cross a line.
    fn generates_on(&self, flow: usize, line: LineId) -> bool {
        self.generates(flow) && self.vcs[self.vc_of(flow)].lines.contains(&line)
    }

    fn user_of(&self, line: LineId) -> User {
        let (mut senders, mut others, mut silent) = (Vec::new(), 0, false);
        for (number, sender) in self.senders().into_iter().enumerate() {
            let reads = matches!(sender, Sender::Endpoint(endpoint) if !self.endpoints[endpoint].writes());
            match self.possible[number].lines.contains(&line) {
                true if reads => others += 1,
                true => senders.push(number),
                false => {}
            }
        }
        let messages = &self.possible[self.senders().len()..];
        others += messages.iter().filter(|possible| possible.lines.contains(&line)).count();
        let mut generates = false;
        for flow in (0..self.sources.len()).filter(|flow| self.generates_on(*flow, line)) {
            match self.topology.flows[flow].cells {
                Some(_) => (generates, others) = (true, others + 1),
                None => silent = true,
            }
        }
        match (senders.first(), senders.len() + others) {
            (Some(&sender), 1) => User::Sole(sender),
            (Some(&sender), _) => User::Shared(sender),
            (None, _) if generates || silent => User::Application,
            (None, _) if self.is_on_a_fan(line) => User::Elsewhere,
            (None, _) => User::Nobody,
        }
    }

    /// The first circuit on which packets of a sender may come to a line.
    fn first_vc_over(&self, sender: usize, line: LineId) -> Option<usize> {
        let outs = self.possible[sender].outs.iter();
        let mut vcs = outs.filter_map(|out| match out {
            Out::Circuit(vc) => Some(*vc),
            Out::Line(_) | Out::Tunnel(_) => None,
        });
        vcs.find(|vc| self.vcs[*vc].lines.contains(&line))
    }

    /// Why a line was idle while a sender was sending, whose packet came on this circuit, if it did on any.
    fn held_back_by(&self, line: LineId, sender: usize, vc: Option<usize>) -> IdleReason {
        if self.possible[sender].avoidable.contains(&line) {
            return IdleReason::OtherWay;
        }
        let Some(vc) = vc else { return IdleReason::Upstream };
        let first = self.vcs[vc].lines[0];
        let shaped = self.shapers[vc].adapts()
            || [first, line].iter().all(|line| self.shapers[vc].is_slower_than(self.lines[line].pace()));
        if shaped { IdleReason::Shaper } else { IdleReason::Upstream }
    }
}

/// What the sums have grown by.
fn difference(now: StateSums, then: Option<StateSums>) -> StateSums {
    let then = then.unwrap_or_default();
    std::array::from_fn(|state| now[state].saturating_sub(then[state]))
}

/// Divide idle time in proportion to what a sender did, of whose sending `own` is taken off first; what is left of that is `held_back`. Each part is rounded
/// down. The longest gets the rest: of equal ones sending, or else the first; and where nothing is known, sending.
fn apportion(reasons: &mut Reasons, idle: u64, mut sums: StateSums, own: u64, held_back: IdleReason) {
    const SENDING: usize = SenderState::Sending as usize;
    sums[SENDING] = sums[SENDING].saturating_sub(own);
    let total: u128 = sums.iter().map(|sum| u128::from(*sum)).sum();
    let mut parts =
        sums.map(|sum| (u128::from(idle) * u128::from(sum)).checked_div(total).unwrap_or(0) as u64);
    let longest = sums.iter().max().copied();
    let first = (0..sums.len()).find(|state| Some(sums[*state]) == longest);
    let takes_rest = if Some(sums[SENDING]) == longest { SENDING } else { first.unwrap_or(SENDING) };
    parts[takes_rest] += idle - parts.iter().sum::<u64>();
    const STATES: [SenderState; SENDING] = [
        SenderState::Application,
        SenderState::Cpu,
        SenderState::NicBuffer,
        SenderState::SendBuffer,
        SenderState::ReceiveWindow,
        SenderState::CongestionWindow,
        SenderState::RetransmissionTimer,
        SenderState::Nagle,
        SenderState::SillyWindow,
        SenderState::Handshake,
        SenderState::Pacing,
    ];
    for (state, part) in STATES.into_iter().zip(parts) {
        *reasons.entry(IdleReason::Sender(state)).or_default() += part;
    }
    *reasons.entry(held_back).or_default() += parts[SENDING];
}

/// Divide parts of a line in proportion to the picoseconds of reasons, by the largest remainders; of equal ones the first reason gets one more.
pub(crate) fn by_largest_remainders(parts: u128, reasons: &Reasons) -> BTreeMap<IdleReason, u128> {
    let total: u128 = reasons.values().map(|ps| u128::from(*ps)).sum();
    if total == 0 {
        return BTreeMap::from([(IdleReason::NoSender, parts)]);
    }
    let exact = reasons.iter().map(|(reason, ps)| (*reason, parts * u128::from(*ps)));
    let mut shares: Vec<_> = exact.map(|(reason, exact)| (exact % total, reason, exact / total)).collect();
    let rest = parts - shares.iter().map(|(_, _, share)| share).sum::<u128>();
    shares.sort_by_key(|(remainder, reason, _)| (std::cmp::Reverse(*remainder), *reason));
    for (_, _, share) in shares.iter_mut().take(rest as usize) {
        *share += 1;
    }
    shares.into_iter().map(|(_, reason, share)| (reason, share)).collect()
}
