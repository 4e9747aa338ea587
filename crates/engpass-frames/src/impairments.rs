//! Impairments and outages of a line: loss, jitter, reordering.

use std::collections::VecDeque;

use engpass_model::random::Stream;
use engpass_model::unit::Share;
use engpass_testbed::topology::LinkEnds;

use super::outage::Outages;

/// A frame on a line with impairments or outages.
#[derive(Clone, Copy, Debug)]
pub struct InFlightFrame {
    /// Instant of the arrival.
    pub at: u64,
    /// Packet number.
    pub packet: u32,
    /// True if the frame arrives corrupted, so that the receiver drops it.
    pub damaged: bool,
    /// Instants at which the transmission began and at which the last bit left.
    pub sent: (u64, u64),
}

/// Impairments and outages of a line, with the frames on it.
pub(crate) struct LinkImpairments {
    /// Outages of the line; `None` if no event may take it down.
    outages: Option<Outages>,
    random: Stream,
    loss: Share,
    jitter: u64,
    reorder: Option<(Share, u64)>,
    /// Latest arrival so far of a packet that is not reordered: no such packet may arrive earlier.
    last: u64,
    /// Frames on the line, in the order of arrival.
    in_flight: VecDeque<InFlightFrame>,
}

impl LinkImpairments {
    /// Returns the impairments of a link's line; `None` if it has none and no event `changes` it.
    pub(crate) fn of(link: &LinkEnds, changes: bool, random: Stream) -> Option<Self> {
        let chance = link.loss.0 > 0 || link.jitter.ps() > 0 || link.reorder.is_some();
        (chance || changes).then(|| Self {
            outages: changes.then(Outages::default),
            random,
            loss: link.loss,
            jitter: link.jitter.ps(),
            reorder: link.reorder.map(|(share, delay)| (share, delay.ps())),
            last: 0,
            in_flight: VecDeque::new(),
        })
    }

    /// Draws loss, jitter and reordering for a frame that would arrive at `flying.at`. Returns the instant at which it arrives.
    pub(crate) fn draw(&mut self, mut flying: InFlightFrame) -> u64 {
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
        let place = self.in_flight.partition_point(|other| other.at <= flying.at);
        self.in_flight.insert(place, flying);
        flying.at
    }

    /// Records that an event takes the line down or brings it up.
    pub(crate) fn change(&mut self, now: u64, down: bool) {
        let earliest = self.in_flight.iter().map(|flying| flying.sent.0).min().unwrap_or(now);
        if let Some(outages) = &mut self.outages {
            outages.change(now, down, earliest);
        }
    }

    /// Returns true while an event has taken the line down.
    pub(crate) fn is_down(&self) -> bool {
        self.outages.as_ref().is_some_and(Outages::is_down)
    }

    pub(crate) fn may_change(&self) -> bool {
        self.outages.is_some()
    }

    /// Returns true if an outage destroyed this frame.
    pub(crate) fn destroys(&self, flying: &InFlightFrame) -> bool {
        self.outages.as_ref().is_some_and(|outages| outages.destroys(flying.sent))
    }

    /// Removes and returns the packet that arrives now, and the instant of the next arrival (`u64::MAX` if there is none).
    pub(crate) fn pop_arrival(&mut self, now: u64) -> (Option<InFlightFrame>, u64) {
        let landed = self.in_flight.pop_front().filter(|flying| flying.at == now);
        (landed, self.in_flight.front().map_or(u64::MAX, |flying| flying.at))
    }
}
