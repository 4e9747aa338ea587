//! Idle time of lines by reason (docs/ledger.md, "Idle by reason").

use std::collections::BTreeMap;

use crate::sender_state::{SenderState, StateSums};

/// Why a line was idle, in the order of the accounts: states of a sender that could have used it, then other reasons.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum IdleReason {
    /// A sender was in this state, which is never [`SenderState::Sending`].
    Sender(SenderState),
    Shaper,
    Upstream,
    OtherWay,
    LineDown,
    NoSender,
}

impl IdleReason {
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
            Self::Sender(Sending) => unreachable!("a sending sender is not an idle reason"),
            Self::Shaper => "idle: shaper",
            Self::Upstream => "idle: upstream",
            Self::OtherWay => "idle: other way",
            Self::LineDown => "idle: line down",
            Self::NoSender => "idle: no sender",
        }
    }
}

/// Idle time in picoseconds, by reason.
pub(crate) type Reasons = BTreeMap<IdleReason, u64>;

/// The idle time of a line that was assigned to reasons so far, and the state to assign the rest.
#[derive(Clone, Debug, Default)]
pub(crate) struct LineReasons {
    pub(crate) reasons: Reasons,
    /// Idle time during past outages. `went_down` is the idle time of the line at the beginning of the current outage.
    down: u64,
    went_down: Option<u64>,
    /// The sender of the last packet that left.
    pub(crate) last: Option<usize>,
    /// By sender, data about its last packet that left the line.
    pub(crate) senders: BTreeMap<usize, LastPacket>,
}

/// The last packet of a sender that left a line.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LastPacket {
    /// Time of the sender in each state when the packet was emitted.
    pub(crate) sums: Option<StateSums>,
    /// Cells or bytes of the sender that left the line since then.
    pub(crate) since: u64,
    /// The circuit direction that carried it; `None` for frames.
    pub(crate) vc: Option<usize>,
}

/// The user that could have used an idle line.
pub(crate) enum User {
    Nobody,
    /// No user, because policies choose other lines.
    Elsewhere,
    Application,
    /// This sender is the only user of the line.
    Sole(usize),
    /// Several users; this one is the first sender among them.
    Shared(usize),
}

impl LineReasons {
    /// Returns how long the line was down and idle, given its idle time so far in picoseconds.
    pub(crate) fn down(&self, idle: u64) -> u64 {
        self.down + self.went_down.map_or(0, |then| idle - then)
    }

    /// Returns how much of its idle time has no reason yet.
    pub(crate) fn open(&self, idle: u64) -> u64 {
        idle - self.down(idle) - self.reasons.values().sum::<u64>()
    }

    /// Records that the line goes down. `idle` is its idle time so far in picoseconds.
    pub(crate) fn goes_down(&mut self, idle: u64) {
        self.went_down = Some(idle);
    }

    pub(crate) fn comes_up(&mut self, idle: u64) {
        (self.down, self.went_down) = (self.down(idle), None);
    }

    /// Records that the discipline held back, for `held` picoseconds, the packet that it sends now. `idle` is the idle time of the line so far in
    /// picoseconds.
    pub(crate) fn held_back(&mut self, held: u64, idle: u64) {
        let held = held.min(self.open(idle));
        *self.reasons.entry(IdleReason::Shaper).or_default() += held;
    }
}

/// Returns the growth of the sums since `then`.
pub(crate) fn difference(now: StateSums, then: Option<StateSums>) -> StateSums {
    let then = then.unwrap_or_default();
    std::array::from_fn(|state| now[state].saturating_sub(then[state]))
}

/// Apportions idle time to the states of a sender. `own` is subtracted from the time of sending first; the rest of that time counts as `held_back`. Each
/// share is rounded down. The longest state gets the remainder; among equals that is sending, else the first. If all times are zero, sending gets everything.
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

/// Apportions parts of a line to the reasons by largest remainders. Among equal remainders, the first reason gets one more.
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
