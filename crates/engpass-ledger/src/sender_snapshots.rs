//! Sender snapshots: the state times of senders when packets were emitted. A packet has one; a usage record that of the last packet that left its line.

use super::sender_states::{ColdTimes, CommonTimes, StateTimes, parts_of, sums_of};

/// Marks a packet or usage record without a snapshot.
pub(super) const NO_STAMP: u32 = u32::MAX;

/// The common states of a snapshot. It fills one cache line, because hardly any snapshot is still in the cache when it is read.
#[derive(Clone, Copy, Debug, Default)]
#[repr(align(64))]
struct SenderSnapshot(CommonTimes);

/// Snapshots of packets in flight and of usage records. A usage record can take over the snapshot of a packet that no longer needs it, without a copy.
#[derive(Debug, Default)]
pub(super) struct SenderSnapshots {
    /// Times in the common states, by index of the snapshot; and times in the rare states, empty until a sender that has been
    /// in one of them emits a packet.
    usual: Vec<SenderSnapshot>,
    others: Vec<ColdTimes>,
    /// By packet: index of its snapshot.
    places: Vec<u32>,
}

impl SenderSnapshots {
    /// Adds an empty snapshot and returns its index.
    pub(super) fn begin(&mut self) -> u32 {
        if !self.others.is_empty() {
            self.others.push(ColdTimes::default());
        }
        self.usual.push(SenderSnapshot::default());
        self.usual.len() as u32 - 1
    }

    fn at(&self, place: u32) -> Option<StateTimes> {
        let usual = self.usual.get(place as usize)?;
        Some(sums_of(&usual.0, self.others.get(place as usize)))
    }

    /// Returns the snapshot with index `place`, that of a usage record; zeros if it has none.
    pub(super) fn of_usage(&self, place: u32) -> StateTimes {
        self.at(place).unwrap_or_default()
    }

    /// Returns the snapshot of a packet, which must have one.
    pub(super) fn of_packet(&self, packet: u32) -> StateTimes {
        self.known(packet).expect("the packet has a sender snapshot since its emission")
    }

    /// Returns the common states in the snapshots of a packet and of a usage record; `None` if any snapshot has rare states.
    #[inline(always)]
    pub(super) fn usual(&self, packet: u32, usage: u32) -> Option<(&CommonTimes, &CommonTimes)> {
        if !self.others.is_empty() {
            return None;
        }
        let place = *self.places.get(packet as usize)? as usize;
        Some((&self.usual.get(place)?.0, &self.usual.get(usage as usize)?.0))
    }

    /// Returns the snapshot of a packet, if it has one.
    pub(super) fn known(&self, packet: u32) -> Option<StateTimes> {
        self.at(*self.places.get(packet as usize)?)
    }

    /// Stores the state times of the sender as the snapshot of an emitted packet.
    #[inline(always)]
    pub(super) fn put(&mut self, packet: u32, (usual, others): (&CommonTimes, Option<&ColdTimes>)) {
        let place = self.places.get(packet as usize).copied().unwrap_or(NO_STAMP);
        match self.usual.get_mut(place as usize) {
            Some(own) => {
                own.0 = *usual;
                if others.is_some() || !self.others.is_empty() {
                    self.put_others(place, others);
                }
            }
            None => self.put_first(packet as usize, usual, others),
        }
    }

    #[inline(never)]
    fn put_others(&mut self, place: u32, others: Option<&ColdTimes>) {
        if self.others.is_empty() {
            self.others.resize(self.usual.len(), ColdTimes::default());
        }
        self.others[place as usize] = others.copied().unwrap_or_default();
    }

    /// Like [`Self::put`], for a packet number that has no snapshot yet.
    #[cold]
    #[inline(never)]
    fn put_first(&mut self, packet: usize, usual: &CommonTimes, others: Option<&ColdTimes>) {
        if self.places.len() <= packet {
            self.places.resize(packet + 1, NO_STAMP);
        }
        if self.usual.len() == self.usual.capacity() {
            // Snapshots are large; therefore the capacity is not doubled.
            self.usual.reserve_exact((self.usual.len() / 32).max(128));
        }
        let place = self.begin();
        self.places[packet] = place;
        self.usual[place as usize] = SenderSnapshot(*usual);
        if others.is_some() {
            self.put_others(place, others);
        }
    }

    /// Stores `sums` as the snapshot with index `usage`, that of a usage record.
    pub(super) fn take(&mut self, usage: u32, sums: &StateTimes) {
        if let Some(own) = self.usual.get_mut(usage as usize) {
            let (usual, others) = parts_of(sums);
            own.0 = *usual;
            if others.is_some() || !self.others.is_empty() {
                self.put_others(usage, others);
            }
        }
    }

    /// Copies the snapshot of a packet to the one with index `usage`, that of a usage record.
    #[inline(always)]
    pub(super) fn copy(&mut self, usage: u32, packet: u32) {
        let place = self.places[packet as usize] as usize;
        let stamp = self.usual[place];
        if let Some(own) = self.usual.get_mut(usage as usize) {
            *own = stamp;
            if !self.others.is_empty() {
                self.others[usage as usize] = self.others[place];
            }
        }
    }

    /// Exchanges the snapshots of a usage record and of a packet that no longer needs its snapshot.
    #[inline(always)]
    pub(super) fn swap(&mut self, usage: &mut u32, packet: u32) {
        std::mem::swap(usage, &mut self.places[packet as usize]);
    }

    /// Drops the snapshots of all packets, none of which may be in flight, and keeps those of usage records. Usage records that share a snapshot go on sharing it.
    pub(super) fn forget_packets<'a>(&mut self, usages: impl Iterator<Item = &'a mut u32>) {
        let mut kept = Self::default();
        let mut moved = vec![NO_STAMP; self.usual.len()];
        for place in usages.filter(|place| **place != NO_STAMP) {
            let to = &mut moved[*place as usize];
            if *to == NO_STAMP {
                *to = kept.usual.len() as u32;
                kept.usual.push(self.usual[*place as usize]);
                kept.others.extend(self.others.get(*place as usize));
            }
            *place = *to;
        }
        *self = kept;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sender_states::SenderState;

    /// Two usage records share a snapshot, one has its own, and one has none.
    #[test]
    fn usage_records_share_a_snapshot_after_packets_are_forgotten() {
        // Rare states are kept apart, and only if there are any.
        for states in [1, SenderState::COUNT] {
            let sums = |value: u64| -> [u64; SenderState::COUNT] {
                std::array::from_fn(|state| if state < states { value } else { 0 })
            };
            let mut stamps = SenderSnapshots::default();
            stamps.put(0, parts_of(&sums(1)));
            let shared = stamps.begin();
            let mut usages = [shared, NO_STAMP, stamps.begin(), shared];
            stamps.take(usages[0], &sums(2));
            stamps.take(usages[2], &sums(3));
            stamps.forget_packets(usages.iter_mut());
            let seen = |stamps: &SenderSnapshots| usages.map(|usage| stamps.of_usage(usage));
            assert_eq!(seen(&stamps), [2, 0, 3, 2].map(sums));
            assert_eq!(stamps.known(0), None);
            stamps.put(0, parts_of(&sums(4)));
            stamps.copy(usages[3], 0);
            assert_eq!(seen(&stamps), [4, 0, 3, 4].map(sums));
        }
    }
}
