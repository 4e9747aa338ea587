//! Why a line is idle, by the behaviour of its senders. The evidence is TCP's own time counters, the CPU time of a sender's threads, and its schedule. The
//! rest of the time is unknown.

use engpass_ledger::{Account, Accounts};

use crate::answer::End;

/// From this share of its time on, a thread that runs or waits for a core is busy.
const BUSY: f64 = 0.9;
/// From this share on, a sender has met its schedule.
const KEPT: f64 = 0.98;
/// From this mean load on, in millionths, the cores of a host are full.
const FULL_PPM: u64 = 970_000;

/// Idle accounts with their shares of the time.
pub(crate) type Shares = Vec<(Account, f64)>;

/// The reasons why a sender did not send.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Waits {
    /// Idle accounts with their shares of the idle time.
    pub(crate) shares: Shares,
    /// True if the sender would use all that the line has left; false for a sender with a schedule.
    pub(crate) elastic: bool,
}

impl Waits {
    /// Returns the reasons of a sender that had sent everything after this share of the time.
    pub(crate) fn until(mut self, share: f64) -> Self {
        let share = share.clamp(0.0, 1.0);
        self.shares.iter_mut().for_each(|(_, part)| *part *= share);
        self.shares.push((Account::APPLICATION, 1.0 - share));
        self
    }
}

/// Returns the reasons of a sender. `own` are those by its own counters, `kept` is the share of its schedule that it met.
pub(crate) fn of_sender(own: Shares, kept: Option<f64>, end: &End) -> Waits {
    if let Some(kept) = kept {
        let missed = if kept >= KEPT { 0.0 } else { 1.0 - kept };
        let shares = vec![(Account::APPLICATION, 1.0 - missed), (Account::CPU, missed)];
        return Waits { shares, elastic: false };
    }
    let busy = end.cpu_shares().map_or(0.0, |(used, waited)| used + waited);
    if busy >= BUSY {
        return Waits { shares: vec![(Account::CPU, 1.0)], elastic: true };
    }
    let mut shares = own;
    if is_full(end)
        && let Some(place) = shares.iter().position(|(account, _)| *account == Account::UNKNOWN)
    {
        // Many threads that each run a little, or other programs, can also use all cores.
        let (_, share) = shares.remove(place);
        shares.push((Account::CPU, share));
    }
    Waits { shares, elastic: true }
}

/// Returns true if the cores of the end's host were full, on average.
fn is_full(end: &End) -> bool {
    let load: u64 = end.cores.iter().map(|core| core.busy_ppm + core.steal_ppm).sum();
    !end.cores.is_empty() && load >= FULL_PPM * end.cores.len() as u64
}

/// Divides idle parts among accounts by the reasons of the elastic senders, or of all if none is elastic. Every sender has the same weight.
pub(crate) fn post_idle(accounts: &mut Accounts, idle: u128, senders: &[Waits]) {
    if senders.is_empty() {
        accounts.post(Account::NO_SENDER, idle);
        return;
    }
    let elastic = senders.iter().any(|sender| sender.elastic);
    let mut total: Shares = Vec::new();
    for (account, share) in
        senders.iter().filter(|sender| sender.elastic || !elastic).flat_map(|sender| &sender.shares)
    {
        match total.iter_mut().find(|(known, _)| known == account) {
            Some((_, sum)) => *sum += share,
            None => total.push((*account, *share)),
        }
    }
    let whole: f64 = total.iter().map(|(_, share)| share).sum();
    if whole <= 0.0 {
        accounts.post(Account::UNKNOWN, idle);
        return;
    }
    let parts = total.iter().map(|(account, share)| (*account, (idle as f64 * share / whole) as u128));
    let mut parts: Vec<(Account, u128)> = parts.collect();
    // The first of the accounts with most parts also takes the parts that rounding leaves.
    let posted: u128 = parts.iter().map(|(_, parts)| parts).sum();
    let most = parts.iter().map(|(_, parts)| *parts).max().unwrap_or(0);
    let largest = parts.iter_mut().find(|(_, parts)| *parts == most).expect("there is a reason");
    largest.1 = largest.1 + idle - posted;
    for (account, parts) in parts {
        accounts.post(account, parts);
    }
}
