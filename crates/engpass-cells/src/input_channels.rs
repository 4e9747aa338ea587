//! The channels of a queue, and the choice of the next cell.

use super::Channel;

/// The channels of one queue. Of cells that arrive at the same instant, that of the first channel goes first.
#[derive(Debug)]
pub struct Inputs<'a>(&'a mut [Channel]);

impl<'a> Inputs<'a> {
    /// Returns `channels` as the inputs of a queue.
    pub fn new(channels: &'a mut [Channel]) -> Self {
        Self(channels)
    }

    /// Returns the channel with this index.
    pub(super) fn channel(&mut self, index: usize) -> &mut Channel {
        &mut self.0[index]
    }

    /// Returns the channel with the earliest next cell (the first of several), and an instant up to which its cells surely come before those of the other
    /// channels.
    #[inline]
    pub fn earliest(&mut self) -> Option<(&mut Channel, u64)> {
        self.earliest_but(usize::MAX)
    }

    /// Like [`Self::earliest`], but ignores the channel with index `but`.
    #[inline]
    pub(super) fn earliest_but(&mut self, but: usize) -> Option<(&mut Channel, u64)> {
        let mut best = usize::MAX;
        let mut head = u64::MAX;
        let mut until = u64::MAX;
        for (index, channel) in self.0.iter().enumerate() {
            let next = channel.head();
            if index == but {
                continue;
            }
            if next < head {
                // An earlier channel wins a tie against this one; therefore this one stays earliest only up to the instant before.
                until = head.saturating_sub(1);
                (best, head) = (index, next);
            } else if next <= until {
                until = next;
            }
        }
        (best != usize::MAX).then(|| (&mut self.0[best], until))
    }

    /// Returns the two channels with the earliest next cells, in this order, and an instant up to which no other channel has a cell.
    #[inline]
    pub(super) fn earliest_two(&mut self) -> Option<Two<'_>> {
        let (mut first, mut second) = ((u64::MAX, usize::MAX), (u64::MAX, usize::MAX));
        let mut third = u64::MAX;
        for (index, channel) in self.0.iter().enumerate() {
            let next = (channel.head(), index);
            if next < first {
                third = second.0;
                (first, second) = (next, first);
            } else if next < second {
                third = second.0;
                second = next;
            } else {
                third = third.min(next.0);
            }
        }
        if second.0 == u64::MAX {
            return None;
        }
        let second_wins = second.1 < first.1;
        let [first, second] =
            self.0.get_disjoint_mut([first.1, second.1]).expect("the two channel indices differ");
        // Stops before the next cell of a third channel, even if one of these two channels would win the tie.
        Some(Two { first, second, until: third.saturating_sub(1), second_wins })
    }
}

/// The two channels with the earliest next cells: see [`Inputs::earliest_two`].
pub(super) struct Two<'a> {
    pub(super) first: &'a mut Channel,
    pub(super) second: &'a mut Channel,
    pub(super) until: u64,
    /// True if the second channel's cell goes first when both arrive at the same instant.
    pub(super) second_wins: bool,
}
