//! What chance and outages do to the packets of a line.

use std::collections::VecDeque;

use engpass_model::random::Stream;
use engpass_model::unit::Share;
use engpass_testbed::topology::LinkEnds;

use super::outage::Outages;

/// A frame behind the transmitter.
#[derive(Clone, Copy, Debug)]
pub(super) struct Flying {
    pub(super) at: u64,
    pub(super) packet: u32,
    /// It arrives damaged: whoever gets it throws it away.
    pub(super) damaged: bool,
    /// When its transmission began, and when its last bit has left.
    pub(super) sent: (u64, u64),
}

/// What chance and outages do to the packets of a line.
pub(super) struct Lottery {
    /// Of a line that events may take down.
    outages: Option<Outages>,
    random: Stream,
    loss: Share,
    jitter: u64,
    reorder: Option<(Share, u64)>,
    /// Latest arrival of a packet that keeps its order.
    last: u64,
    /// What is on its way, in the order of arrival.
    flight: VecDeque<Flying>,
}

impl Lottery {
    /// That of a line, if chance does anything there, or if it `changes`.
    pub(super) fn of(link: &LinkEnds, changes: bool, random: Stream) -> Option<Self> {
        let chance = link.loss.0 > 0 || link.jitter.ps() > 0 || link.reorder.is_some();
        (chance || changes).then(|| Self {
            outages: changes.then(Outages::default),
            random,
            loss: link.loss,
            jitter: link.jitter.ps(),
            reorder: link.reorder.map(|(share, delay)| (share, delay.ps())),
            last: 0,
            flight: VecDeque::new(),
        })
    }

    /// What becomes of a packet that would arrive then. Returns when it does.
    pub(super) fn draw(&mut self, mut flying: Flying) -> u64 {
        flying.damaged = self.loss.0 > 0 && self.random.below(Share::WHOLE) < self.loss.0;
        if self.jitter > 0 {
            flying.at += self.random.below(self.jitter.saturating_add(1));
        }
        let late = self.reorder.filter(|(share, _)| self.random.below(Share::WHOLE) < share.0);
        if let Some((_, delay)) = late {
            flying.at += delay;
        } else {
            flying.at = flying.at.max(self.last);
            self.last = flying.at;
        }
        let place = self.flight.partition_point(|other| other.at <= flying.at);
        self.flight.insert(place, flying);
        flying.at
    }

    /// The line goes down or comes up.
    pub(super) fn change(&mut self, now: u64, down: bool) {
        let earliest = self.flight.iter().map(|flying| flying.sent.0).min().unwrap_or(now);
        if let Some(outages) = &mut self.outages {
            outages.change(now, down, earliest);
        }
    }

    /// Whether an event has taken it down.
    pub(super) fn is_down(&self) -> bool {
        self.outages.as_ref().is_some_and(Outages::is_down)
    }

    pub(super) fn may_change(&self) -> bool {
        self.outages.is_some()
    }

    /// Whether an outage has cut a packet.
    pub(super) fn cuts(&self, flying: &Flying) -> bool {
        self.outages.as_ref().is_some_and(|outages| outages.cuts(flying.sent))
    }

    /// The packet that arrives now, and when to look for the next one, `u64::MAX` if there is none.
    pub(super) fn land(&mut self, now: u64) -> (Option<Flying>, u64) {
        let landed = self.flight.pop_front().filter(|flying| flying.at == now);
        (landed, self.flight.front().map_or(u64::MAX, |flying| flying.at))
    }
}
