//! Flights: full segments of new data that go out one after the other at one instant, where nothing special goes on. What lets them
//! out is asked for once.

use super::connection::{Connection, State};
use super::limited::LimitedBy;
use super::segment::{Flags, Segment};
use super::timers::Timer;
use crate::time::Time;

/// What may go out as full segments, in bytes. Good as long as nothing else happens to the connection.
#[derive(Clone, Copy, Debug, Default)]
pub struct Flight {
    /// By what is written, and by the other side's window.
    sendable: u64,
    /// By the congestion window.
    open: u64,
}

impl Connection {
    /// What may go out now as full segments; nothing where more than the windows is to be looked at.
    #[inline(never)]
    pub fn flight(&self) -> Flight {
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
            return Flight::default();
        }
        let calm = self.recovery.is_calm();
        let window = if calm { self.window.size.max(self.window.mss()) } else { self.odd_window() };
        Flight {
            sendable: self.tx.unsent().min(self.tx.usable_window(self.board.una())),
            open: window.saturating_sub(self.in_flight()),
        }
    }

    /// The congestion window where a loss is likely.
    #[inline(never)]
    fn odd_window(&self) -> u64 {
        self.window_size() + self.limited_transmit()
    }

    /// As [`next_segment`](Self::next_segment), of which a flight goes on.
    #[inline(always)]
    pub fn next_of(
        &mut self,
        flight: &mut Flight,
        now: Time,
        segment: &mut Segment,
    ) -> Result<(), LimitedBy> {
        let mss = self.window.mss();
        if flight.sendable < mss {
            return self.next_segment(now, segment);
        }
        if flight.open >= mss {
            flight.sendable -= mss;
            flight.open -= mss;
            self.send_full(now, segment);
            return Ok(());
        }
        if self.rx.acks.is_due() {
            return self.next_segment(now, segment);
        }
        Err(self.name(LimitedBy::CongestionWindow))
    }

    /// What [`send_new`](Self::send_new) comes to for a segment of a flight.
    #[inline(always)]
    fn send_full(&mut self, now: Time, segment: &mut Segment) {
        let (seq, mss) = (self.tx.next, self.window.mss());
        self.recovery.sent(mss);
        let pushes = self.tx.sent_full(mss);
        self.board.push(self.tx.next, now, false, None);
        self.arm_tail_probe(now);
        self.counts.segments_sent += 1;
        self.sent_at = now;
        *segment = self.outgoing(now, seq, mss as u32, Flags::default().and_if(pushes, Flags::PSH));
        segment.ect = self.agreed.ecn();
        self.rx.acknowledged(false);
    }
}
