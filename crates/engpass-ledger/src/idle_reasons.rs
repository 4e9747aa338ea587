//! Idle time by reason: which senders could have used a line, and what they did instead.

use super::accounts::{HOST, IDLE};
use super::sender_states::{CommonTimes, SenderState, StateTimes, USUAL};
use super::{HeldBack, Ledger, Line, LineSenders, LineUsage, NO_SENDER, SenderSnapshots};

/// Picoseconds by idle reason: the sender states in the order of their accounts, then the causes outside of the sender.
pub(super) type Reasons = [u64; REASONS];

pub(super) const REASONS: usize = SenderState::COUNT + 4;

/// The sender states in the order of their accounts.
const WAITS: [SenderState; SenderState::COUNT] = [
    SenderState::Application,
    SenderState::Cpu,
    SenderState::Nic,
    SenderState::SendBuffer,
    SenderState::ReceiveWindow,
    SenderState::CongestionWindow,
    SenderState::RetransmissionTimer,
    SenderState::Nagle,
    SenderState::SillyWindow,
    SenderState::Handshake,
    SenderState::Pacing,
    SenderState::Sending,
];

/// Positions in `WAITS` of all sender states, and of the common ones only.
const ALL: [usize; SenderState::COUNT] = accounts();
const USUALLY: [usize; USUAL] = accounts();

/// Returns the positions in `WAITS` of the first `N` sender states, in ascending order.
const fn accounts<const N: usize>() -> [usize; N] {
    let (mut accounts, mut found, mut account) = ([0; N], 0, 0);
    while account < SenderState::COUNT {
        if (WAITS[account] as usize) < N {
            // The common states are declared in the order of their accounts.
            assert!(N == SenderState::COUNT || WAITS[account] as usize == found);
            accounts[found] = account;
            found += 1;
        }
        account += 1;
    }
    accounts
}

const APPLICATION: usize = 0;
const SENDING: usize = SenderState::COUNT - 1;
/// The circuit's shaper is slower than the line. Has the index of the state "sending", because sending by itself leaves no line idle.
const SHAPER: usize = SENDING;
/// The sender was sending, and a bottleneck before this line held its packets back.
const UPSTREAM: usize = SenderState::COUNT;
/// The sender was sending, and a node before this line chose other paths.
const OTHER_WAY: usize = SenderState::COUNT + 1;
/// The line was down.
const DOWN: usize = SenderState::COUNT + 2;
/// No flow could send over this line.
const NOBODY: usize = SenderState::COUNT + 3;

/// Returns the account of an idle reason. `outside` is true if injected packets can use the line.
pub(super) fn account(reason: usize, outside: bool) -> usize {
    if outside && reason == APPLICATION { HOST } else { IDLE + reason }
}

impl Ledger {
    /// Returns the idle time of a line by reason, at the end of the window.
    pub(super) fn idle_by_reason(&self, port: usize) -> Reasons {
        let end = self.window.end;
        let line = &self.lines[port];
        let idle = line.edges[1].idle - line.booked;
        let mut reasons = line.reasons.as_deref().copied().unwrap_or_default();
        match line.user {
            LineSenders::Nobody => reasons[NOBODY] += idle,
            LineSenders::Elsewhere => reasons[OTHER_WAY] += idle,
            LineSenders::Application => reasons[APPLICATION] += idle,
            LineSenders::Sole(usage) => {
                let usage = &self.usages[usage as usize];
                let sender = usage.sender().expect("the sole user of a line is a sender of data");
                let place = self.place_of(sender).expect("a data sender has sender states");
                let before = self.before.get(place).copied().unwrap_or_default();
                let sums = since(&self.senders[place].sums_at(end), &before);
                let measured = end - self.window.from.unwrap_or(0);
                // The line has sent for this sender only; therefore its own time is the time in which the line was not idle.
                apportion(&mut reasons, idle, (sums, &ALL), measured - idle.min(measured), usage.held_back);
            }
            LineSenders::Shared => {
                let place = line.last.or_else(|| self.first_sender(line));
                let place = place.expect("a shared line has a sender") as usize;
                let first = self.first_on_line.get(place).map_or(place, |first| *first as usize);
                let (usage, cells) = (&self.usages[place], self.cells_since.get(first).copied());
                let sender = usage.sender().expect("the last user of a shared line is a sender of data");
                let place = self.place_of(sender).expect("a data sender has sender states");
                let sums =
                    since(&self.senders[place].sums_at(end), &self.packet_stamps.of_usage(usage.stamp));
                apportion(
                    &mut reasons,
                    idle,
                    (sums, &ALL),
                    line.ps_of(cells.unwrap_or(0).into()),
                    usage.held_back,
                );
            }
        }
        reasons
    }

    /// Divides a shared line's idle time that has no reason yet, when the last cell of a PDU with data leaves. The sender's states since its last PDU left here
    /// divide it; `stamp` is the PDU's snapshot. `own` is the number of the sender's grains that have left since then.
    pub(super) fn attribute_on_pdu(&mut self, port: usize, place: u32, stamp: &StateTimes, own: u64) {
        self.assign_outage(port);
        let (line, usage) = (&mut self.lines[port], &self.usages[place as usize]);
        line.attribute_idle(usage, place, (stamp, own), &self.packet_stamps);
        self.packet_stamps.take(usage.stamp, stamp);
    }

    /// Counts `count` cells of a sender that leave a shared line. `stamp` is the snapshot of the PDU that they end, if they end one; it divides the idle time.
    pub(super) fn cells_left(&mut self, port: usize, place: u32, count: u64, stamp: Option<&StateTimes>) {
        if self.cells_since.is_empty() {
            self.cells_since.resize(self.usages.len(), 0);
        }
        let first = self.first_on_line.get(place as usize).copied().unwrap_or(place);
        let since = &mut self.cells_since[first as usize];
        let own = u64::from(*since) + count;
        *since = if stamp.is_some() { 0 } else { own.min(u32::MAX.into()) as u32 };
        if let Some(stamp) = stamp {
            self.attribute_on_pdu(port, place, stamp, own);
        }
    }

    /// Like [`Self::attribute_on_pdu`], for a packet that takes `bytes` bytes on the line.
    #[inline(always)]
    pub(super) fn attribute_on_packet(&mut self, port: usize, place: u32, packet: u32, bytes: u64) {
        let (line, usage) = (&mut self.lines[port], &mut self.usages[place as usize]);
        let stamps = &mut self.packet_stamps;
        if line.idle > line.booked {
            line.attribute_idle_of_packet(usage, place, (packet, bytes), stamps);
        }
        line.note_departure(usage, place, packet, stamps);
    }

    fn first_sender(&self, line: &Line) -> Option<u32> {
        let with_sender =
            line.usages.iter().filter_map(|usage| Some((self.usages[*usage as usize].sender()?, *usage)));
        with_sender.min_by_key(|(sender, _)| *sender).map(|(_, usage)| usage)
    }
}

impl HeldBack {
    /// Returns the idle reason for time in which the line's sender is sending.
    #[inline(always)]
    const fn reason(self) -> usize {
        match self {
            Self::Upstream => UPSTREAM,
            Self::Shaper => SHAPER,
            Self::OtherWay => OTHER_WAY,
        }
    }
}

impl LineUsage {
    /// Returns the index of the sender, if it is a process or an endpoint with data.
    pub(super) fn sender(&self) -> Option<usize> {
        (self.sender != NO_SENDER).then_some(self.sender as usize)
    }
}

impl Line {
    /// Records the snapshot of a packet with data that leaves, for the next packet of its sender.
    #[inline(always)]
    pub(super) fn note_departure(
        &mut self,
        usage: &mut LineUsage,
        place: u32,
        packet: u32,
        stamps: &mut SenderSnapshots,
    ) {
        self.last = Some(place);
        if usage.last_shared {
            stamps.swap(&mut usage.stamp, packet);
        } else {
            stamps.copy(usage.stamp, packet);
        }
    }

    /// Divides the idle time before a PDU or packet with data, which was emitted with the snapshot `stamp`, by the sender's states since the packet of this
    /// usage record that left before. `own` is the number of the sender's grains that have left since then.
    #[inline(never)]
    fn attribute_idle(
        &mut self,
        usage: &LineUsage,
        place: u32,
        (stamp, own): (&StateTimes, u64),
        stamps: &SenderSnapshots,
    ) {
        let idle = self.idle - self.booked;
        if idle > 0 {
            let own = self.ps_of(own);
            let sums = since(stamp, &stamps.of_usage(usage.stamp));
            apportion(self.reasons.get_or_insert_default(), idle, (sums, &ALL), own, usage.held_back);
        }
        (self.booked, self.last) = (self.idle, Some(place));
    }

    /// Like [`Self::attribute_idle`], for a packet that takes `bytes` bytes of a line that was idle before it.
    #[inline(never)]
    pub(super) fn attribute_idle_of_packet(
        &mut self,
        usage: &LineUsage,
        place: u32,
        (packet, bytes): (u32, u64),
        stamps: &SenderSnapshots,
    ) {
        let Some((now, then)) = stamps.usual(packet, usage.stamp) else {
            self.attribute_slow_path(usage, place, (packet, bytes), stamps);
            return;
        };
        let (idle, own) = (self.idle - self.booked, self.ps_of(bytes));
        (self.booked, self.last) = (self.idle, Some(place));
        let reasons = self.reasons.get_or_insert_default();
        let ([application, others @ .., sending], [from, as_before @ .., sent]) = (now, then);
        if others.iter().zip(as_before).fold(0, |changed, (now, then)| changed | now ^ then) == 0 {
            // The sender only had nothing to send, or was sending. A process is hardly ever in another state.
            let (application, sending) = (application.saturating_sub(*from), sending.saturating_sub(*sent));
            apportion_two_states(reasons, idle, application, sending.saturating_sub(own), usage.held_back);
        } else {
            apportion_common(reasons, idle, (now, then), own, usage.held_back);
        }
    }

    /// Like `attribute_idle`, for any states; not inlined, so that the common case needs no copy of all state times.
    #[inline(never)]
    fn attribute_slow_path(
        &mut self,
        usage: &LineUsage,
        place: u32,
        (packet, bytes): (u32, u64),
        stamps: &SenderSnapshots,
    ) {
        self.attribute_idle(usage, place, (&stamps.of_packet(packet), bytes), stamps);
    }

    /// Posts the last `ps` picoseconds of idle time to the shaper, because the queue discipline held packets back.
    pub(super) fn held(&mut self, ps: u64) {
        // Time before the window does not count.
        let held = ps.min(self.idle - self.booked);
        self.reasons.get_or_insert_default()[SHAPER] += held;
        self.booked += held;
    }

    /// Posts the idle time between `since` and `until` to "line down", as far as it lies in the window. Both are values of the line's idle time, not instants.
    pub(super) fn assign_to_line_down(&mut self, since: u64, until: u64) {
        let ps = until.saturating_sub(since.max(self.edges[0].idle));
        self.reasons.get_or_insert_default()[DOWN] += ps;
        self.booked += ps;
    }

    /// Returns the time that `grains` grains take on the line, in picoseconds, rounded down.
    fn ps_of(&self, grains: u64) -> u64 {
        if self.ticks_per_ps == 1 {
            // The product cannot overflow: it is a time in picoseconds within the run.
            return grains * self.ticks;
        }
        proportional_part(grains, self.ticks, self.ticks_per_ps).0
    }
}

/// Returns the growth of each state time between two snapshots, in the order of the accounts.
fn since(now: &StateTimes, then: &StateTimes) -> [u64; SenderState::COUNT] {
    WAITS.map(|wait| now[wait as usize].saturating_sub(then[wait as usize]))
}

/// Like [`apportion`], for the common states in two snapshots.
#[inline(never)]
fn apportion_common(
    reasons: &mut Reasons,
    idle: u64,
    (now, then): (&CommonTimes, &CommonTimes),
    own: u64,
    held_back: HeldBack,
) {
    let sums = std::array::from_fn(|wait| now[wait].saturating_sub(then[wait]));
    apportion(reasons, idle, (sums, &USUALLY), own, held_back);
}

/// Returns `idle * sum / total`, rounded down, and whether it was rounded.
#[inline(always)]
fn proportional_part(idle: u64, sum: u64, total: u64) -> (u64, bool) {
    match idle.checked_mul(sum) {
        Some(product) => (product / total, product % total > 0),
        None => long_part_of(idle.into(), sum.into(), total.into()),
    }
}

/// Like [`proportional_part`], for products of more than 64 bits (hours of idle time).
#[cold]
#[inline(never)]
fn long_part_of(idle: u128, sum: u128, total: u128) -> (u64, bool) {
    let product = idle * sum;
    ((product / total) as u64, !product.is_multiple_of(total))
}

/// Like [`apportion`], for a sender with two states only: application, and sending without its own transmissions. Needs one division; rounding leaves at most
/// one picosecond over.
#[inline(always)]
fn apportion_two_states(
    reasons: &mut Reasons,
    idle: u64,
    application: u64,
    sending: u64,
    held_back: HeldBack,
) {
    let total = application + sending;
    let part = if sending == 0 {
        if application > 0 { idle } else { 0 }
    } else {
        let (part, rounded) = proportional_part(idle, application, total);
        part + u64::from(rounded && application > sending)
    };
    reasons[APPLICATION] += part;
    reasons[held_back.reason()] += idle - part;
}

/// Divides `idle` exactly among the reasons, in proportion to the state times `sums`; `accounts` gives the reason of each. The last state is sending: the
/// sender's own transmissions, `own`, are subtracted from it, and the rest is time in which its packets were held back.
#[inline(always)]
fn apportion<const N: usize>(
    reasons: &mut Reasons,
    idle: u64,
    (mut sums, accounts): ([u64; N], &[usize; N]),
    own: u64,
    held_back: HeldBack,
) {
    sums[N - 1] = sums[N - 1].saturating_sub(own);
    let place = |wait: usize| if wait == N - 1 { held_back.reason() } else { accounts[wait] };
    let total: u64 = sums.iter().sum();
    let (mut rest, mut largest) = (idle, N - 1);
    for (wait, &sum) in sums.iter().enumerate().filter(|(_, sum)| **sum > 0) {
        let part = if sum == total { idle } else { proportional_part(idle, sum, total).0 };
        reasons[place(wait)] += part;
        rest -= part;
        if sum > sums[largest] {
            largest = wait;
        }
    }
    // The longest state gets the remainder: a few picoseconds, or all of `idle` if every state time is zero.
    reasons[place(largest)] += rest;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn apportion_two_states_equals_apportion() {
        let times = [0, 1, 2, 3, 7, 1000, 999_999_937, 12_000_000_000_001, u64::MAX >> 2];
        for (idle, application, sending) in
            times.iter().flat_map(|idle| times.iter().flat_map(move |a| times.map(move |s| (*idle, *a, s))))
        {
            for held_back in [HeldBack::Upstream, HeldBack::Shaper, HeldBack::OtherWay] {
                let mut sums = [0; SenderState::COUNT];
                (sums[APPLICATION], sums[SENDING]) = (application, sending);
                let [mut one, mut other] = [Reasons::default(); 2];
                apportion(&mut one, idle, (sums, &ALL), 0, held_back);
                apportion_two_states(&mut other, idle, application, sending, held_back);
                assert_eq!(one, other, "{idle} ps divided among {application} and {sending}");
            }
        }
    }
}
