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
    /// What may go out now as full segments. Or else why nothing does; `None` where more than the windows is to be looked at, and
    /// [`next_segment`](Self::next_segment) says it, or has one.
    #[inline(always)]
    pub fn flight(&mut self, now: Time) -> Result<Flight, Option<LimitedBy>> {
        let (begins, calm) = (self.board.is_empty(), self.recovery.is_calm());
        let plain = self.state == State::Established
            && self.special.is_empty()
            && self.board.waiting() == 0
            && !self.rx.has_early()
            && !self.cwr_due
            && self.tx.cuts_full()
            && (if begins { calm } else { self.timers.is_set(Timer::Retransmission) })
            && self.p.derived().plain_flights;
        if !plain {
            return Err(None);
        }
        let mss = self.window.mss();
        let sendable = self.tx.unsent().min(self.tx.usable_window(self.board.una()));
        if begins && sendable >= mss {
            self.begin_flight(now);
        }
        let window = if calm { self.window.size.max(mss) } else { self.odd_window() };
        let open = window.saturating_sub(self.in_flight());
        if sendable.min(open) < mss {
            return Err(self.limited_with(sendable));
        }
        self.sent_at = now;
        let mut pattern = Segment::default();
        self.outgoing(now, (0, mss as u32), Flags::default(), &mut pattern);
        pattern.ect = self.agreed.ecn();
        self.rx.acknowledged(false);
        Ok(Flight { sendable, open, pattern })
    }

    /// A flight begins with nothing in the network, so that the congestion window surely lets a segment out.
    #[inline(never)]
    fn begin_flight(&mut self, now: Time) {
        self.restart_after_idle(now);
        if !self.timers.is_set(Timer::Retransmission) {
            self.start_timer(now);
        }
    }

    /// The congestion window where a loss is likely.
    #[inline(never)]
    fn odd_window(&self) -> u64 {
        self.window_size() + self.limited_transmit()
    }

    /// Put the next segment of a flight into `segment`: what `send_new` comes to for it.
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
        self.limited_with(flight.sendable)
    }

    /// The same, where no full segment more goes out and so much would, if the congestion window let it.
    #[inline(always)]
    fn limited_with(&self, sendable: u64) -> Option<LimitedBy> {
        let shut = sendable >= self.window.mss() && !self.rx.acks.is_due();
        shut.then(|| self.name(LimitedBy::CongestionWindow))
    }
}
