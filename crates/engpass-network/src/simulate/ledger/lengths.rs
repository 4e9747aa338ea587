//! Datagrams of any length, of which a line has to know no more than sums: one by one they would cost more than their way does.

use engpass_model::wire::ip::{Fragments, IP_HEADER_BYTES};

use super::{Book, Cargo, Carried, Entry, Ledger, Load};

/// Datagrams of a flow that were delivered, all of each carried, and no packet of them padded on any line.
#[derive(Debug)]
pub(super) struct Lengths {
    /// Bytes behind the IP header of a packet: the least that are not padded, and the most that are not cut.
    fitting: (u64, u64),
    count: u64,
    /// Bytes of all their transport headers, and behind these.
    header: u64,
    bytes: u64,
    /// Those that MTUs cut, one after the other: the sender's, and those of routers.
    cuts: Box<[Cut]>,
}

/// What one MTU makes of datagrams that it or those before it cut.
#[derive(Debug)]
struct Cut {
    mtu: u64,
    /// Packets behind it: of all of them, and of the one at hand.
    packets: u64,
    own: u64,
}

impl Lengths {
    /// None so far, of a flow whose packets come over lines like these.
    fn over<'a>(entries: impl Iterator<Item = &'a Entry> + Clone) -> Self {
        let least = entries.clone().map(|entry| entry.wire.unpadded_from().unwrap_or(u64::MAX)).max();
        // Every line has the MTUs of the one before it, and those between.
        let mtus = entries.last().map_or(&[][..], |last| &last.cuts);
        let most = mtus.last().map_or(u64::MAX, |mtu| mtu - IP_HEADER_BYTES);
        let cuts = mtus.iter().map(|mtu| Cut { mtu: *mtu, packets: 0, own: 0 }).collect();
        Self { fitting: (least.unwrap_or(0), most), count: 0, header: 0, bytes: 0, cuts }
    }

    /// Cut a datagram with so many bytes behind its IP header. Returns whether none of its packets is padded.
    fn cut(&mut self, bytes: u64) -> bool {
        self.cuts.iter_mut().for_each(|cut| cut.own = 0);
        cut(&mut self.cuts, self.fitting.0, (bytes, 1))
    }

    fn add(&mut self, load: Load) {
        self.header += u64::from(load.header);
        self.bytes += u64::from(load.bytes);
    }
}

/// Cut so many packets of this length behind their IP headers for one MTU after the other. Returns whether each has the `least` bytes.
fn cut(mtus: &mut [Cut], least: u64, (length, count): (u64, u64)) -> bool {
    let Some((first, behind)) = mtus.split_first_mut() else { return true };
    let Fragments { count: of_each, full, last } = Fragments::of(length, first.mtu);
    first.own += of_each * count;
    last.min(full) >= least
        && (of_each == 1 || cut(behind, least, (full, (of_each - 1) * count)))
        && cut(behind, least, (last, count))
}

impl Ledger {
    /// A datagram with this load was delivered, and all of it carried if it is so `written` or not written. Returns whether sums say all of it.
    #[inline]
    pub(in crate::simulate) fn sums_up(&mut self, lane: usize, load: Load, carried: Carried) -> bool {
        // Those of TCP are alike nearly always.
        if load.cargo != Cargo::Segment || lane >= self.flows as usize || !self.on {
            return false;
        }
        if self.lengths.is_empty() {
            self.begin_lengths();
        }
        let sums = &mut self.lengths[lane];
        let bytes = u64::from(load.header) + u64::from(load.bytes);
        let (least, most) = sums.fitting;
        if bytes < least {
            return false;
        }
        if bytes > most {
            return self.sums_up_cut(lane, load, carried);
        }
        let whole = matches!(carried, Carried::Whole(_));
        if whole {
            sums.count += 1;
            sums.add(load);
        }
        whole
    }

    /// The same of one that is cut.
    #[inline(never)]
    fn sums_up_cut(&mut self, lane: usize, load: Load, carried: Carried) -> bool {
        let sums = &mut self.lengths[lane];
        let bytes = u64::from(load.header) + u64::from(load.bytes);
        if !sums.cut(bytes) {
            return false;
        }
        if let Carried::Written(datagram) = carried {
            let books = &self.books[self.first[lane] as usize..self.first[lane + 1] as usize];
            let carried = &self.carried[datagram as usize * self.stride..];
            let is_whole = |(book, carried): (&Book, &u32)| {
                let entry = &self.entries[book.entry as usize];
                let packets = sums.cuts[entry.cuts.len() - 1].own;
                u64::from(*carried) == bytes + packets * entry.wire.around()
            };
            if !books.iter().zip(carried).all(is_whole) {
                return false;
            }
        }
        sums.cuts.iter_mut().for_each(|cut| cut.packets += cut.own);
        sums.add(load);
        true
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
        for (lane, sums) in self.lengths.iter().enumerate().filter(|(_, sums)| sums.header + sums.bytes > 0) {
            for book in &mut self.books[self.first[lane] as usize..self.first[lane + 1] as usize] {
                let entry = &self.entries[book.entry as usize];
                let packets = sums.count + sums.cuts[entry.cuts.len() - 1].packets;
                let segments = &mut book.freight.get_or_insert_default().segments;
                segments.add_unpadded(&entry.wire, packets, (sums.header, sums.bytes));
            }
        }
        self.forget_lengths();
    }

    /// Nothing was summed up so far.
    pub(super) fn forget_lengths(&mut self) {
        for sums in &mut self.lengths {
            (sums.count, sums.header, sums.bytes) = (0, 0, 0);
            sums.cuts.iter_mut().for_each(|cut| cut.packets = 0);
        }
    }
}
