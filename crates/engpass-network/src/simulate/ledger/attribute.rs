//! Idle time by reason: whose sender could have used a line, and what it did instead.

use super::accounts::{HOST, IDLE};
use super::waits::{Sums, Wait};
use super::{Book, Ledger, Line, NO_SENDER, Stamps, User};

/// Picoseconds by reason: the waits of a sender in the order of their accounts, and behind them what is not its own doing.
pub(super) type Reasons = [u64; REASONS];

pub(super) const REASONS: usize = Wait::COUNT + 2;

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

const APPLICATION: usize = 0;
const SENDING: usize = Wait::COUNT - 1;
/// The circuit is shaped below the line. Takes the place of a sender that sends, which leaves no line idle by itself.
const SHAPER: usize = SENDING;
/// The sender was sending, and something before this line holds it back.
const UPSTREAM: usize = Wait::COUNT;
/// No flow could send this way.
const NOBODY: usize = Wait::COUNT + 1;

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
            User::Application => reasons[APPLICATION] += idle,
            User::Sole(book) => {
                let book = &self.books[book as usize];
                let sender = book.sender().expect("the sole user of a line is a sender");
                let place = self.place_of(sender).expect("who sends data has states");
                let before = self.before.get(place).copied().unwrap_or_default();
                let sums = since(&self.senders[place].sums_at(end), &before);
                let measured = end - self.window.from.unwrap_or(0);
                // All that it sent is its own.
                share(&mut reasons, idle, sums, measured - idle.min(measured), book.shaped);
            }
            User::Shared => {
                let book = line.last.or_else(|| self.first_sender(line));
                let book = &self.books[book.expect("a shared line has a sender") as usize];
                let sender = book.sender().expect("who has used a line is a sender");
                let place = self.place_of(sender).expect("who sends data has states");
                let sums = since(&self.senders[place].sums_at(end), &self.packet_stamps.of_book(book.stamp));
                share(&mut reasons, idle, sums, line.ps_of(line.elastic), book.shaped);
            }
        }
        reasons
    }

    /// The last cell of an elastic frame, emitted when its sender had come to `stamp`, leaves a line that its sender shares with
    /// others: what the line was idle since the last one goes by what the sender did since its own last one here.
    pub(super) fn frame_left(&mut self, port: usize, place: u32, stamp: &Sums) {
        let (line, book) = (&mut self.lines[port], &self.books[place as usize]);
        line.user_left(book, place, stamp, &self.packet_stamps);
        self.packet_stamps.take(book.stamp, stamp);
    }

    /// The same of a packet.
    #[inline(always)]
    pub(super) fn packet_left(&mut self, port: usize, place: u32, packet: u32) {
        let (line, book) = (&mut self.lines[port], &mut self.books[place as usize]);
        let stamps = &mut self.packet_stamps;
        if line.idle > line.booked {
            line.user_left(book, place, &stamps.of_packet(packet), stamps);
        }
        line.elastic = 0;
        line.left_by(book, place, packet, stamps);
    }

    fn first_sender(&self, line: &Line) -> Option<u32> {
        line.books.iter().copied().find(|book| self.books[*book as usize].sender().is_some())
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
    pub(super) fn user_left(&mut self, book: &Book, place: u32, stamp: &Sums, stamps: &Stamps) {
        let idle = self.idle - self.booked;
        if idle > 0 {
            let own = self.ps_of(self.elastic);
            let sums = since(stamp, &stamps.of_book(book.stamp));
            share(self.reasons.get_or_insert_default(), idle, sums, own, book.shaped);
        }
        (self.booked, self.elastic, self.last) = (self.idle, 0, Some(place));
    }

    /// It was idle for so long just now because its discipline held back what waited: it shapes.
    pub(super) fn held(&mut self, ps: u64) {
        // Not what lies before the window.
        let held = ps.min(self.idle - self.booked);
        self.reasons.get_or_insert_default()[SHAPER] += held;
        self.booked += held;
    }

    /// Time that so many grains take, rounded down.
    fn ps_of(&self, grains: u64) -> u64 {
        (u128::from(grains) * u128::from(self.ticks) / u128::from(self.ticks_per_ps)) as u64
    }
}

/// What sums have grown by, in the order of the accounts.
fn since(now: &Sums, then: &Sums) -> [u64; Wait::COUNT] {
    WAITS.map(|wait| now[wait as usize].saturating_sub(then[wait as usize]))
}

/// Divide `idle` among the reasons in proportion to `sums`, in the order of the accounts, exactly. The sender's own cells took `own` of the time it was
/// sending; what is left of that is time in which it was held back.
fn share(reasons: &mut Reasons, idle: u64, mut sums: [u64; Wait::COUNT], own: u64, shaped: bool) {
    let sending = &mut sums[SENDING];
    *sending = sending.saturating_sub(own);
    let held_back = if shaped { SHAPER } else { UPSTREAM };
    let place = |wait: usize| if wait == SENDING { held_back } else { wait };
    let total: u64 = sums.iter().sum();
    let (mut rest, mut largest) = (idle, SENDING);
    for (wait, &sum) in sums.iter().enumerate().filter(|(_, sum)| **sum > 0) {
        let part = (u128::from(idle) * u128::from(sum) / u128::from(total)) as u64;
        reasons[place(wait)] += part;
        rest -= part;
        if sum > sums[largest] {
            largest = wait;
        }
    }
    // What the divisions left, a few picoseconds; or all, where nothing is known.
    reasons[place(largest)] += rest;
}
