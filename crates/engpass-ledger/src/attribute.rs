//! Idle time by reason: whose sender could have used a line, and what it did instead.

use super::accounts::{HOST, IDLE};
use super::waits::{Sums, USUAL, Usual, Wait};
use super::{Book, HeldBack, Ledger, Line, NO_SENDER, Stamps, User};

/// Picoseconds by reason: the waits of a sender in the order of their accounts, and behind them what is not its own doing.
pub(super) type Reasons = [u64; REASONS];

pub(super) const REASONS: usize = Wait::COUNT + 4;

/// The waits in the order of their accounts.
const WAITS: [Wait; Wait::COUNT] = [
    Wait::Application,
    Wait::Cpu,
    Wait::Nic,
    Wait::SendBuffer,
    Wait::ReceiveWindow,
    Wait::CongestionWindow,
    Wait::RetransmissionTimer,
    Wait::Nagle,
    Wait::SillyWindow,
    Wait::Handshake,
    Wait::Pacing,
    Wait::Sending,
];

/// The accounts of all of them, and of what most senders do.
const ALL: [usize; Wait::COUNT] = accounts();
const USUALLY: [usize; USUAL] = accounts();

/// The accounts of the first waits, in their order.
const fn accounts<const N: usize>() -> [usize; N] {
    let (mut accounts, mut found, mut account) = ([0; N], 0, 0);
    while account < Wait::COUNT {
        if (WAITS[account] as usize) < N {
            // They stand in the order of their accounts.
            assert!(N == Wait::COUNT || WAITS[account] as usize == found);
            accounts[found] = account;
            found += 1;
        }
        account += 1;
    }
    accounts
}

const APPLICATION: usize = 0;
const SENDING: usize = Wait::COUNT - 1;
/// The circuit is shaped below the line. Takes the place of a sender that sends, which leaves no line idle by itself.
const SHAPER: usize = SENDING;
/// The sender was sending, and something before this line holds it back.
const UPSTREAM: usize = Wait::COUNT;
/// The sender was sending, and a node before this line chose other ways.
const OTHER_WAY: usize = Wait::COUNT + 1;
/// The line was down.
const DOWN: usize = Wait::COUNT + 2;
/// No flow could send this way.
const NOBODY: usize = Wait::COUNT + 3;

/// The account of a reason, on a line that packets from outside can use or not.
pub(super) fn account(reason: usize, outside: bool) -> usize {
    if outside && reason == APPLICATION { HOST } else { IDLE + reason }
}

impl Ledger {
    /// The idle time of a line by reason, at the end of the window.
    pub(super) fn reasons(&self, port: usize) -> Reasons {
        let end = self.window.end;
        let line = &self.lines[port];
        let idle = line.edges[1].idle - line.booked;
        let mut reasons = line.reasons.as_deref().copied().unwrap_or_default();
        match line.user {
            User::Nobody => reasons[NOBODY] += idle,
            User::Elsewhere => reasons[OTHER_WAY] += idle,
            User::Application => reasons[APPLICATION] += idle,
            User::Sole(book) => {
                let book = &self.books[book as usize];
                let sender = book.sender().expect("the sole user of a line is a sender");
                let place = self.place_of(sender).expect("who sends data has states");
                let before = self.before.get(place).copied().unwrap_or_default();
                let sums = since(&self.senders[place].sums_at(end), &before);
                let measured = end - self.window.from.unwrap_or(0);
                // All that it sent is its own.
                share(&mut reasons, idle, (sums, &ALL), measured - idle.min(measured), book.held_back);
            }
            User::Shared => {
                let place = line.last.or_else(|| self.first_sender(line));
                let place = place.expect("a shared line has a sender") as usize;
                let first = self.first_on_line.get(place).map_or(place, |first| *first as usize);
                let (book, cells) = (&self.books[place], self.cells_since.get(first).copied());
                let sender = book.sender().expect("who has used a line is a sender");
                let place = self.place_of(sender).expect("who sends data has states");
                let sums = since(&self.senders[place].sums_at(end), &self.packet_stamps.of_book(book.stamp));
                share(
                    &mut reasons,
                    idle,
                    (sums, &ALL),
                    line.ps_of(cells.unwrap_or(0).into()),
                    book.held_back,
                );
            }
        }
        reasons
    }

    /// The last cell of an elastic frame, emitted when its sender had come to `stamp`, leaves a line that its sender shares with
    /// others: what the line was idle since the last one goes by what the sender did since its own last one here. Since then so many grains of it have left.
    pub(super) fn frame_left(&mut self, port: usize, place: u32, stamp: &Sums, own: u64) {
        self.book_outage(port);
        let (line, book) = (&mut self.lines[port], &self.books[place as usize]);
        line.user_left(book, place, (stamp, own), &self.packet_stamps);
        self.packet_stamps.take(book.stamp, stamp);
    }

    /// Cells of a sender leave a line that it shares with others: the last ones of a frame, if there is a `stamp`.
    pub(super) fn cells_left(&mut self, port: usize, place: u32, count: u64, stamp: Option<&Sums>) {
        if self.cells_since.is_empty() {
            self.cells_since.resize(self.books.len(), 0);
        }
        let first = self.first_on_line.get(place as usize).copied().unwrap_or(place);
        let since = &mut self.cells_since[first as usize];
        let own = u64::from(*since) + count;
        *since = if stamp.is_some() { 0 } else { own.min(u32::MAX.into()) as u32 };
        if let Some(stamp) = stamp {
            self.frame_left(port, place, stamp, own);
        }
    }

    /// The same of a packet.
    #[inline(always)]
    pub(super) fn packet_left(&mut self, port: usize, place: u32, packet: u32, bytes: u64) {
        let (line, book) = (&mut self.lines[port], &mut self.books[place as usize]);
        let stamps = &mut self.packet_stamps;
        if line.idle > line.booked {
            line.user_left_by(book, place, (packet, bytes), stamps);
        }
        line.left_by(book, place, packet, stamps);
    }

    fn first_sender(&self, line: &Line) -> Option<u32> {
        let with_sender =
            line.books.iter().filter_map(|book| Some((self.books[*book as usize].sender()?, *book)));
        with_sender.min_by_key(|(sender, _)| *sender).map(|(_, book)| book)
    }
}

impl HeldBack {
    /// The reason why a line is idle although its sender sends.
    #[inline(always)]
    const fn reason(self) -> usize {
        match self {
            Self::Upstream => UPSTREAM,
            Self::Shaper => SHAPER,
            Self::OtherWay => OTHER_WAY,
        }
    }
}

impl Book {
    /// Who sends, if it is a process or endpoint with data.
    pub(super) fn sender(&self) -> Option<usize> {
        (self.sender != NO_SENDER).then_some(self.sender as usize)
    }
}

impl Line {
    /// An elastic packet of this book has left. A line that was busy before only notes who has used it.
    #[inline(always)]
    pub(super) fn left_by(&mut self, book: &mut Book, place: u32, packet: u32, stamps: &mut Stamps) {
        self.last = Some(place);
        if book.last_shared {
            stamps.swap(&mut book.stamp, packet);
        } else {
            stamps.copy(book.stamp, packet);
        }
    }

    /// An elastic frame of this book leaves, emitted when its sender had come to `stamp`.
    #[inline(never)]
    fn user_left(&mut self, book: &Book, place: u32, (stamp, own): (&Sums, u64), stamps: &Stamps) {
        let idle = self.idle - self.booked;
        if idle > 0 {
            let own = self.ps_of(own);
            let sums = since(stamp, &stamps.of_book(book.stamp));
            share(self.reasons.get_or_insert_default(), idle, (sums, &ALL), own, book.held_back);
        }
        (self.booked, self.last) = (self.idle, Some(place));
    }

    /// The same of a packet that takes so many bytes of the line, where that was idle before.
    #[inline(never)]
    pub(super) fn user_left_by(
        &mut self,
        book: &Book,
        place: u32,
        (packet, bytes): (u32, u64),
        stamps: &Stamps,
    ) {
        let Some((now, then)) = stamps.usual(packet, book.stamp) else {
            self.user_left_oddly(book, place, (packet, bytes), stamps);
            return;
        };
        let (idle, own) = (self.idle - self.booked, self.ps_of(bytes));
        (self.booked, self.last) = (self.idle, Some(place));
        let reasons = self.reasons.get_or_insert_default();
        let ([application, others @ .., sending], [from, as_before @ .., sent]) = (now, then);
        if others.iter().zip(as_before).fold(0, |changed, (now, then)| changed | now ^ then) == 0 {
            // It had nothing to send, or sent: all that a process does mostly.
            let (application, sending) = (application.saturating_sub(*from), sending.saturating_sub(*sent));
            share_simply(reasons, idle, application, sending.saturating_sub(own), book.held_back);
        } else {
            share_usually(reasons, idle, (now, then), own, book.held_back);
        }
    }

    /// A copy of all sums is out of the way of those who need none.
    #[inline(never)]
    fn user_left_oddly(&mut self, book: &Book, place: u32, (packet, bytes): (u32, u64), stamps: &Stamps) {
        self.user_left(book, place, (&stamps.of_packet(packet), bytes), stamps);
    }

    /// It was idle for so long just now because its discipline held back what waited: it shapes.
    pub(super) fn held(&mut self, ps: u64) {
        // Not what lies before the window.
        let held = ps.min(self.idle - self.booked);
        self.reasons.get_or_insert_default()[SHAPER] += held;
        self.booked += held;
    }

    /// It was down from when its idle time was `since` to when it was `until`: book that as far as it lies in the window.
    pub(super) fn was_down(&mut self, since: u64, until: u64) {
        let ps = until.saturating_sub(since.max(self.edges[0].idle));
        self.reasons.get_or_insert_default()[DOWN] += ps;
        self.booked += ps;
    }

    /// Time that so many grains take, rounded down.
    fn ps_of(&self, grains: u64) -> u64 {
        if self.ticks_per_ps == 1 {
            // No longer than the line has been there.
            return grains * self.ticks;
        }
        part_of(grains, self.ticks, self.ticks_per_ps).0
    }
}

/// What sums have grown by, in the order of the accounts.
fn since(now: &Sums, then: &Sums) -> [u64; Wait::COUNT] {
    WAITS.map(|wait| now[wait as usize].saturating_sub(then[wait as usize]))
}

/// As [`share`] of what most senders do, between two stamps.
#[inline(never)]
fn share_usually(
    reasons: &mut Reasons,
    idle: u64,
    (now, then): (&Usual, &Usual),
    own: u64,
    held_back: HeldBack,
) {
    let sums = std::array::from_fn(|wait| now[wait].saturating_sub(then[wait]));
    share(reasons, idle, (sums, &USUALLY), own, held_back);
}

/// The part of `idle` that is to it as `sum` to `total`, rounded down, and whether it is rounded.
#[inline(always)]
fn part_of(idle: u64, sum: u64, total: u64) -> (u64, bool) {
    match idle.checked_mul(sum) {
        Some(product) => (product / total, product % total > 0),
        None => long_part_of(idle.into(), sum.into(), total.into()),
    }
}

/// The same of hours.
#[cold]
#[inline(never)]
fn long_part_of(idle: u128, sum: u128, total: u128) -> (u64, bool) {
    let product = idle * sum;
    ((product / total) as u64, !product.is_multiple_of(total))
}

/// As [`share`] of a sender that only waited for its application and sent, for so long besides its own cells: with one division, which leaves one picosecond or
/// none.
#[inline(always)]
fn share_simply(reasons: &mut Reasons, idle: u64, application: u64, sending: u64, held_back: HeldBack) {
    let total = application + sending;
    let part = if sending == 0 {
        if application > 0 { idle } else { 0 }
    } else {
        let (part, rounded) = part_of(idle, application, total);
        part + u64::from(rounded && application > sending)
    };
    reasons[APPLICATION] += part;
    reasons[held_back.reason()] += idle - part;
}

/// Divide `idle` among the reasons in proportion to `sums`, those of these accounts in their order, exactly. The sender's own cells took `own` of the time
/// it was sending, which is the last of them; what is left of that is time in which it was held back.
#[inline(always)]
fn share<const N: usize>(
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
        let part = if sum == total { idle } else { part_of(idle, sum, total).0 };
        reasons[place(wait)] += part;
        rest -= part;
        if sum > sums[largest] {
            largest = wait;
        }
    }
    // What the divisions left, a few picoseconds; or all, where nothing is known.
    reasons[place(largest)] += rest;
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two states are divided in one step as they are among all.
    #[test]
    fn what_is_shared_simply_is_shared() {
        let times = [0, 1, 2, 3, 7, 1000, 999_999_937, 12_000_000_000_001, u64::MAX >> 2];
        for (idle, application, sending) in
            times.iter().flat_map(|idle| times.iter().flat_map(move |a| times.map(move |s| (*idle, *a, s))))
        {
            for held_back in [HeldBack::Upstream, HeldBack::Shaper, HeldBack::OtherWay] {
                let mut sums = [0; Wait::COUNT];
                (sums[APPLICATION], sums[SENDING]) = (application, sending);
                let [mut one, mut other] = [Reasons::default(); 2];
                share(&mut one, idle, (sums, &ALL), 0, held_back);
                share_simply(&mut other, idle, application, sending, held_back);
                assert_eq!(one, other, "{idle} ps among {application} and {sending}");
            }
        }
    }
}
