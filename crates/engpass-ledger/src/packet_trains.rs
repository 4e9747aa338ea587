//! Postings of packet trains: identical injected datagrams of one packet each that share one per-hop record.

use super::{DeliveryStatus, Ledger, LineSenders, LineUsage, Load, booked, post_identical};

impl Ledger {
    /// Returns whether several senders use the line of a port.
    pub fn is_shared(&self, port: usize) -> bool {
        self.lines[port].user == LineSenders::Shared
    }

    /// Posts a train of `packets` datagrams whose delivery status is known: the first `arrived` of them have arrived. The packets that have left a line are the
    /// first ones of the train; of these, the line carried the last ones in the window.
    pub fn post_train(&mut self, flow: u32, load: Load, datagram: u32, packets: u32, arrived: u32) {
        if !self.on {
            return;
        }
        let direction = self.direction_of(flow, None);
        let place = datagram as usize * self.stride;
        for (hop, usage) in (self.first[direction] as usize..self.first[direction + 1] as usize).enumerate() {
            let sum = self.carried[place + hop];
            if sum == 0 {
                continue;
            }
            let LineUsage { entry, line, .. } = self.usages[usage];
            let entry = &self.entries[entry as usize];
            let whole = booked(&entry.layers(load.header.into(), load.bytes.into()));
            let each = (whole / self.lines[line as usize].unit) as u32;
            let waiting = self
                .deferred
                .as_ref()
                .map_or(0, |deferred| deferred.unposted_frames(line as usize, datagram));
            let left = packets - waiting;
            // The other packets left the line before the window began.
            let counted = sum / each;
            let delivered = arrived.min(left).saturating_sub(left - counted);
            for (count, status) in
                [(delivered, DeliveryStatus::Delivered), (counted - delivered, DeliveryStatus::InFlight)]
            {
                let usages = &mut self.usages[usage..=usage];
                post_identical(
                    usages,
                    (&self.lines, &self.entries),
                    Some(&[each]),
                    count.into(),
                    status,
                    load,
                    0,
                );
            }
        }
    }
}
