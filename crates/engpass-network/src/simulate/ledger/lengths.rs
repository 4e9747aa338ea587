//! Datagrams of any length, of which a line has to know no more than sums: one by one they would cost more than their way does.

use engpass_model::wire::ip::{Fragments, IP_HEADER_BYTES};

use super::{Book, Cargo, Carried, Entry, Ledger, Load};

/// Datagrams of a flow that were delivered, all of each carried.
#[derive(Debug)]
pub(super) struct Lengths {
    /// Bytes behind the IP header of a packet: the least to which no line adds padding, and the most that are not cut.
    fitting: (u64, u64),
    /// Those that were not cut.
    count: u64,
    /// Bytes of all their transport headers, and behind these.
    header: u64,
    bytes: u64,
    /// What MTUs make of the others, one after the other: the sender's, and those of routers.
    cuts: Box<[Cut]>,
    /// By line. Where lines carry cells there are none, and no sums.
    padding: Box<[Padding]>,
}

/// What one line pads packets with.
#[derive(Debug)]
struct Padding {
    /// Bytes behind the IP header to which it adds nothing.
    from: u64,
    bytes: u64,
}

/// What one MTU makes of datagrams.
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
        let from = |entry: &Entry| Some(Padding { from: entry.wire.unpadded_from()?, bytes: 0 });
        let padding: Box<[_]> = entries.clone().map(from).collect::<Option<_>>().unwrap_or_default();
        let least = padding.iter().map(|line| line.from).max();
        // Every line has the MTUs of the one before it, and those between.
        let mtus = entries.last().filter(|_| least.is_some()).map_or(&[][..], |last| &last.cuts);
        let most = mtus.last().map_or(0, |mtu| mtu - IP_HEADER_BYTES);
        let cuts = mtus.iter().map(|mtu| Cut { mtu: *mtu, packets: 0, own: 0 }).collect();
        Self { fitting: (least.unwrap_or(0), most), count: 0, header: 0, bytes: 0, cuts, padding }
    }

    /// Cut a datagram with so many bytes behind its IP header. Returns whether a line pads any of its packets.
    fn cut(&mut self, bytes: u64) -> bool {
        self.cuts.iter_mut().for_each(|cut| cut.own = 0);
        cut(&mut self.cuts, (bytes, 1)) < self.fitting.0
    }

    fn add(&mut self, load: Load) {
        self.header += u64::from(load.header);
        self.bytes += u64::from(load.bytes);
    }
}

/// Cut so many packets of this length behind their IP headers for one MTU after the other. Returns the least length.
fn cut(mtus: &mut [Cut], (length, count): (u64, u64)) -> u64 {
    let Some((first, behind)) = mtus.split_first_mut() else { return length };
    let Fragments { count: of_each, full, last } = Fragments::of(length, first.mtu);
    first.own += of_each * count;
    let least = last.min(cut(behind, (last, count)));
    if of_each == 1 { least } else { least.min(cut(behind, (full, (of_each - 1) * count))) }
}

impl Ledger {
    /// A datagram with this load was delivered, and so much of it carried. Returns whether sums say all of it.
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
        if bytes > most || !matches!(carried, Carried::Whole(_)) {
            return self.sums_up_oddly(lane, load, carried);
        }
        sums.count += 1;
        sums.add(load);
        if bytes < least {
            sums.padding.iter_mut().for_each(|line| line.bytes += line.from.saturating_sub(bytes));
        }
        true
    }

    /// The same of one that is cut, or of which is written down what was carried.
    #[inline(never)]
    fn sums_up_oddly(&mut self, lane: usize, load: Load, carried: Carried) -> bool {
        let sums = &mut self.lengths[lane];
        if sums.padding.is_empty() {
            return false;
        }
        let bytes = u64::from(load.header) + u64::from(load.bytes);
        let padded = sums.cut(bytes);
        let padding = |entry: &Entry| if padded { entry.padding(bytes) } else { 0 };
        let books = &self.books[self.first[lane] as usize..self.first[lane + 1] as usize];
        let entries = books.iter().map(|book| &self.entries[book.entry as usize]);
        if let Carried::Written(datagram) = carried {
            let carried = &self.carried[datagram as usize * self.stride..];
            let is_whole = |(entry, carried): (&Entry, &u32)| {
                let around = sums.cuts[entry.cuts.len() - 1].own * entry.wire.around().unwrap_or(0);
                u64::from(*carried) == bytes + around + padding(entry)
            };
            if !entries.clone().zip(carried).all(is_whole) {
                return false;
            }
        }
        if padded {
            sums.padding.iter_mut().zip(entries).for_each(|(line, entry)| line.bytes += padding(entry));
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
            let books = &mut self.books[self.first[lane] as usize..self.first[lane + 1] as usize];
            for (book, padding) in books.iter_mut().zip(&sums.padding) {
                let entry = &self.entries[book.entry as usize];
                let packets = sums.count + sums.cuts[entry.cuts.len() - 1].packets;
                let segments = &mut book.freight.get_or_insert_default().segments;
                segments.add_bytes(&entry.wire, packets, padding.bytes, (sums.header, sums.bytes));
            }
        }
        self.forget_lengths();
    }

    /// Nothing was summed up so far.
    pub(super) fn forget_lengths(&mut self) {
        for sums in &mut self.lengths {
            (sums.count, sums.header, sums.bytes) = (0, 0, 0);
            sums.cuts.iter_mut().for_each(|cut| cut.packets = 0);
            sums.padding.iter_mut().for_each(|line| line.bytes = 0);
        }
    }
}
