//! Opening and closing (RFC 9293 sections 3.5 and 3.6).

use super::connection::{Connection, Effects, NegotiatedOptions, State};
use super::rare::SlowPathFlags;
use super::segment::{Flags, Segment};
use super::timers::Timer;
use crate::time::Time;

impl Connection {
    /// Returns whether data may be sent: the handshake is done and the connection has not ended.
    pub(super) fn is_open(&self) -> bool {
        !matches!(
            self.state,
            State::Listen | State::SynSent | State::SynReceived | State::Closed | State::TimeWait
        )
    }

    /// Processes a segment for a connection that is not open yet.
    pub(super) fn receive_opening(&mut self, now: Time, segment: &Segment, out: &mut Effects) {
        let (syn, ack, rst) =
            (segment.flags.has(Flags::SYN), segment.flags.has(Flags::ACK), segment.flags.has(Flags::RST));
        match self.state {
            State::Listen if syn && !rst => {
                self.agree(segment);
                self.state = State::SynReceived;
                self.special.set(SlowPathFlags::SYN_DUE, true);
            }
            State::SynSent if rst && ack => self.reset(out),
            State::SynSent if syn => {
                self.agree(segment);
                if ack && segment.ack == 1 {
                    self.take_syn_sample(now);
                    self.establish(segment, out);
                    self.rx.acks.at_once();
                } else {
                    // Simultaneous open (figure 7).
                    self.state = State::SynReceived;
                    self.special.set(SlowPathFlags::SYN_DUE, true);
                }
            }
            State::SynReceived if rst => self.reset(out),
            State::SynReceived if syn && !ack => self.special.set(SlowPathFlags::SYN_DUE, true),
            State::SynReceived if ack && segment.ack == 1 => {
                self.take_syn_sample(now);
                self.establish(segment, out);
                self.receive_open(now, segment, out);
            }
            // No data can overtake the handshake. Therefore a segment with another acknowledgment number is old.
            _ => self.refuse(segment.payload(), out),
        }
    }

    /// Negotiates the options, given the peer's SYN.
    fn agree(&mut self, syn: &Segment) {
        // RFC 9293 section 3.7.1: without the option the segment size is 536.
        let offered = if syn.mss > 0 { u64::from(syn.mss) } else { 536 };
        let flags = syn.flags;
        // RFC 3168 section 6.1.1: a SYN asks with ECE and CWR, a SYN-ACK answers with ECE alone. A SYN with ECT asks for exact marks (RFC 8257); as in Linux
        // (`tcp_ecn_create_request`), only an end with such a congestion control agrees.
        let willing = if syn.ect && !flags.has(Flags::ACK) {
            self.p.ecn && self.p.derived().exact_marks
        } else {
            self.p.ecn || self.p.accepts_ecn && !flags.has(Flags::ACK)
        };
        let ecn = willing && flags.has(Flags::ECE) && flags.has(Flags::CWR) != flags.has(Flags::ACK);
        self.agreed = NegotiatedOptions::default()
            .with_if(self.p.timestamps && syn.timestamps.is_some(), NegotiatedOptions::TIMESTAMPS)
            .with_if(syn.sack_permitted && self.p.derived().sack, NegotiatedOptions::SACK)
            .with_if(ecn, NegotiatedOptions::ECN)
            .with_if(self.p.window_scaling && syn.window_scale.is_some(), NegotiatedOptions::SCALING);
        let mss = self.p.mss.min(offered);
        let before = self.window.mss();
        // RFC 6691: the option does not account for TCP options. They reduce the room for data in each segment.
        let mss = mss - if self.agreed.timestamps() { 12 } else { 0 };
        self.window.set_mss(mss);
        let scale = self.agreed.scaling().then(|| self.rx.wanted_scale(&self.p, before));
        self.rx.synchronize(&self.p, mss, scale);
        if let Some(stamp) = syn.timestamps.filter(|_| self.agreed.timestamps()) {
            self.rx.note_syn_timestamp(stamp.value());
        }
    }

    fn establish(&mut self, segment: &Segment, out: &mut Effects) {
        self.state = State::Established;
        self.special.set(SlowPathFlags::SYN_DUE, false);
        self.timers.stop(Timer::Retransmission);
        self.expired = false;
        self.tx.take_window(segment);
        // RFC 5681 section 3.1: "if the SYN or SYN/ACK is lost, the initial window used […] MUST be one segment".
        let segments = if self.syn_resent { 1 } else { self.p.initial_window };
        self.window.size = segments * self.window.mss();
        if self.syn_resent {
            self.backoff.after_lost_syn();
        }
        out.established = true;
    }

    fn take_syn_sample(&mut self, now: Time) {
        // Nothing but the SYN was sent, so that `sent_at` is its time.
        if self.has_sent_syn() && !self.syn_resent {
            self.rtt.sample(&self.p, &mut self.backoff, self.sent_at, now);
        }
    }

    pub(super) fn reset(&mut self, out: &mut Effects) {
        out.reset = true;
        self.set_closed(out);
    }

    /// Changes the state after the FIN was sent.
    pub(super) fn after_fin_sent(&mut self) {
        self.state = match self.state {
            State::Established => State::FinWait1,
            State::CloseWait => State::LastAck,
            other => other,
        };
    }

    /// Changes the state after the FIN was acknowledged.
    pub(super) fn after_fin_acknowledged(&mut self, now: Time, out: &mut Effects) {
        match self.state {
            State::FinWait1 => self.state = State::FinWait2,
            State::Closing => self.wait(now),
            State::LastAck => self.set_closed(out),
            _ => {}
        }
    }

    /// Changes the state after the peer's FIN arrived in order.
    pub(super) fn after_fin_received(&mut self, now: Time, out: &mut Effects) {
        out.finished = true;
        match self.state {
            State::Established => self.state = State::CloseWait,
            State::FinWait1 => self.state = State::Closing,
            State::FinWait2 => self.wait(now),
            _ => {}
        }
    }

    /// Starts or restarts TIME-WAIT.
    pub(super) fn wait(&mut self, now: Time) {
        self.state = State::TimeWait;
        self.timers.stop_all();
        self.timers.set(Timer::TimeWait, now + self.p.time_wait);
    }
}
