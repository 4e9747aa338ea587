//! Flights: full segments of new data that go out one after the other at one instant, where nothing special goes on. What lets them
//! out is asked for once, and what all of them say is found once.

use super::connection::{Connection, State};
use super::limited::LimitedBy;
use super::segment::{Flags, Segment};
use super::timers::Timer;
use crate::time::Time;

/// Full segments that go out now, one at least. Good as long as nothing else happens to the connection.
#[derive(Clone, Copy, Debug)]
pub struct Flight {
    /// Bytes that what is written, and the other side's window, let out.
    sendable: u64,
    /// Bytes that the congestion window lets out.
    open: u64,
    /// What all of them say.
    pattern: Segment,
}

impl Flight {
    /// What all of its segments say, but for their sequence numbers and whether they push.
    #[inline]
    pub fn pattern(&self) -> &Segment {
        &self.pattern
    }

    /// Whether there is one more.
    #[inline]
    pub fn goes_on(&self) -> bool {
        self.sendable.min(self.open) >= self.pattern.payload()
    }
}

impl Connection {
    /// What may go out now as full segments; nothing where more than the windows is to be looked at.
    #[inline(always)]
    pub fn flight(&mut self, now: Time) -> Option<Flight> {
        // Who has nothing in the network begins it in the way of all segments.
        let plain = !self.board.is_empty()
            && self.state == State::Established
            && self.special.is_empty()
            && self.board.waiting() == 0
            && !self.rx.has_early()
            && !self.cwr_due
            && self.tx.cuts_full()
            && self.timers.is_set(Timer::Retransmission)
            && self.p.derived().plain_flights;
        if !plain {
            return None;
        }
        let mss = self.window.mss();
        let calm = self.recovery.is_calm();
        let window = if calm { self.window.size.max(mss) } else { self.odd_window() };
        let sendable = self.tx.unsent().min(self.tx.usable_window(self.board.una()));
        let open = window.saturating_sub(self.in_flight());
        if sendable.min(open) < mss {
            return None;
        }
        self.sent_at = now;
        let mut pattern = Segment::default();
        self.outgoing(now, (0, mss as u32), Flags::default(), &mut pattern);
        pattern.ect = self.agreed.ecn();
        self.rx.acknowledged(false);
        Some(Flight { sendable, open, pattern })
    }

    /// The congestion window where a loss is likely.
    #[inline(never)]
    fn odd_window(&self) -> u64 {
        self.window_size() + self.limited_transmit()
    }

    /// Put the next segment of a flight into `segment`: what [`send_new`](Self::send_new) comes to for it.
    #[inline(always)]
    pub fn next_of(&mut self, flight: &mut Flight, now: Time, segment: &mut Segment) {
        let (seq, mss) = (self.tx.next, flight.pattern.payload());
        flight.sendable -= mss;
        flight.open -= mss;
        self.recovery.sent(mss);
        let pushes = self.tx.sent_full(mss);
        self.board.push(self.tx.next, now, false, None);
        self.arm_tail_probe(now);
        self.counts.segments_sent += 1;
        segment.say(&flight.pattern);
        segment.seq = seq;
        segment.flags = segment.flags.and_if(pushes, Flags::PSH);
    }

    /// Why nothing goes out behind a flight that is over; `None` where [`next_segment`](Self::next_segment) says it, or has more.
    #[inline(always)]
    pub fn limited_after(&self, flight: &Flight) -> Option<LimitedBy> {
        let shut = flight.sendable >= flight.pattern.payload() && !self.rx.acks.is_due();
        shut.then(|| self.name(LimitedBy::CongestionWindow))
    }
}
