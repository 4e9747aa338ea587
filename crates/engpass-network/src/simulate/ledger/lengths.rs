//! Datagrams of any length, of which a line has to know no more than sums: one by one they would cost more than their way does.

use engpass_model::wire::ip::IP_HEADER_BYTES;

use super::{Book, Cargo, Entry, Ledger, Load};

/// Datagrams of a flow that were delivered, all of each carried, neither cut nor padded on any line.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lengths {
    /// Bytes behind the IP header of such: from the first to the last.
    fitting: (u64, u64),
    count: u64,
    /// Bytes of all their transport headers, and behind these.
    header: u64,
    bytes: u64,
}

impl Lengths {
    /// None so far, of a flow whose packets come over lines like these.
    fn over<'a>(entries: impl Iterator<Item = &'a Entry>) -> Self {
        let fitting = entries.fold((0, u64::MAX), |(least, most), entry| {
            let most = entry.cuts.iter().map(|mtu| mtu.saturating_sub(IP_HEADER_BYTES)).fold(most, u64::min);
            (entry.wire.unpadded_from().map_or(u64::MAX, |from| from.max(least)), most)
        });
        Self { fitting, count: 0, header: 0, bytes: 0 }
    }
}

impl Ledger {
    /// A datagram with this load was delivered, and all of it carried. Returns whether sums say all of it.
    #[inline]
    pub(in crate::simulate) fn sums_up(&mut self, lane: usize, load: Load) -> bool {
        // Those of TCP are alike nearly always.
        if load.cargo != Cargo::Segment || lane >= self.flows as usize || !self.on {
            return false;
        }
        if self.lengths.is_empty() {
            self.begin_lengths();
        }
        let sums = &mut self.lengths[lane];
        let (header, bytes) = (u64::from(load.header), u64::from(load.bytes));
        let fits = (sums.fitting.0..=sums.fitting.1).contains(&(header + bytes));
        if fits {
            sums.count += 1;
            sums.header += header;
            sums.bytes += bytes;
        }
        fits
    }

    #[cold]
    fn begin_lengths(&mut self) {
        let ways = self.first[..=self.flows as usize].windows(2);
        let books = ways.map(|way| &self.books[way[0] as usize..way[1] as usize]);
        let entry = |book: &Book| &self.entries[book.entry as usize];
        self.lengths = books.map(|books| Lengths::over(books.iter().map(entry))).collect();
    }

    /// Book what was summed up.
    pub(super) fn book_lengths(&mut self) {
        for (lane, sums) in self.lengths.iter().enumerate().filter(|(_, sums)| sums.count > 0) {
            for book in &mut self.books[self.first[lane] as usize..self.first[lane + 1] as usize] {
                let wire = &self.entries[book.entry as usize].wire;
                let segments = &mut book.freight.get_or_insert_default().segments;
                segments.add_unpadded(wire, sums.count, (sums.header, sums.bytes));
            }
        }
        self.forget_lengths();
    }

    /// Nothing was summed up so far.
    pub(super) fn forget_lengths(&mut self) {
        for sums in &mut self.lengths {
            (sums.count, sums.header, sums.bytes) = (0, 0, 0);
        }
    }
}
