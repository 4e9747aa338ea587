//! Idle time of lines by reason (docs/ledger.md, "Idle by reason").

use std::collections::BTreeMap;

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
    pub(crate) reasons: Reasons,
    /// Idle time of outages that are over, and what the line's idle time was when the one began that goes on.
    down: u64,
    went_down: Option<u64>,
    /// The sender whose packet left last.
    pub(crate) last: Option<usize>,
    /// By sender, what its last packet here left behind.
    pub(crate) senders: BTreeMap<usize, LastPacket>,
}

/// The last packet of a sender that left a line.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LastPacket {
    /// The sums of the sender when the packet was emitted.
    pub(crate) sums: Option<StateSums>,
    /// Cells or bytes of the sender that have left the line since then.
    pub(crate) since: u64,
    /// The direction of a circuit on which it came, if it did.
    pub(crate) vc: Option<usize>,
}

/// Who could have used a line when it was idle.
pub(crate) enum User {
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
    pub(crate) fn down(&self, idle: u64) -> u64 {
        self.down + self.went_down.map_or(0, |then| idle - then)
    }

    /// How much of its idle time has no reason.
    pub(crate) fn open(&self, idle: u64) -> u64 {
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

/// What the sums have grown by.
pub(crate) fn difference(now: StateSums, then: Option<StateSums>) -> StateSums {
    let then = then.unwrap_or_default();
    std::array::from_fn(|state| now[state].saturating_sub(then[state]))
}

/// Divide idle time in proportion to what a sender did, of whose sending `own` is taken off first; what is left of that is `held_back`. Each part is rounded
/// down. The longest gets the rest: of equal ones sending, or else the first; and where nothing is known, sending.
pub(crate) fn apportion(
    reasons: &mut Reasons,
    idle: u64,
    mut sums: StateSums,
    own: u64,
    held_back: IdleReason,
) {
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
