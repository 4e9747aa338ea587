//! Flows with several paths: trails as lists of lines, and datagrams of which a line has carried only some packets.

use std::collections::{BTreeMap, BTreeSet};

use engpass_model::wire::layers::Piece;

use super::{DatagramClass, DeliveryStatus, Ledger, Load, Run, post_identical};

/// The lines that have carried a packet, as slots: indices into the usage records of the flow direction.
///
/// The value is the number of lines from the sender on for packets with a single path, and otherwise an index in the list of trails, plus `LISTED`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Trail(u32);

/// Value of the first trail in the list. A flow direction with a single path has fewer lines than this.
const LISTED: u32 = 1 << 16;

/// Ledger data for flows with several paths.
#[derive(Debug, Default)]
pub(super) struct Parted {
    /// The slots of each trail in the list.
    trails: Vec<Box<[u16]>>,
    /// By trail: the flow direction and the run of identical datagrams that its lines carried last, not yet posted.
    runs: Vec<(u32, Run)>,
    /// By datagram and slot, if datagrams are tracked per packet: the packets that the line has carried, inside or outside of the window.
    pieces: BTreeMap<(u32, u16), Vec<Piece>>,
}

impl Trail {
    /// Returns the trail of the first `lines` lines of a flow direction with a single path.
    #[inline(always)]
    pub const fn along(lines: u16) -> Self {
        Self(lines as u32)
    }

    /// Returns the trail with this index in the list.
    #[inline(always)]
    pub const fn listed(place: u32) -> Self {
        Self(LISTED + place)
    }

    /// Returns the index of the trail in the list, if it is in the list.
    #[inline(always)]
    pub const fn index(self) -> Option<u32> {
        self.0.checked_sub(LISTED)
    }

    /// Returns the index of a trail that is in the list.
    fn place(self) -> usize {
        (self.0 - LISTED) as usize
    }

    /// Returns the number of lines that the trail has from the sender on, if it is not in the list.
    #[inline(always)]
    pub(super) const fn lines(self) -> Option<usize> {
        if self.0 < LISTED { Some(self.0 as usize) } else { None }
    }
}

impl Ledger {
    /// Sets the list of trails: the slots of each.
    pub(super) fn list_trails(&mut self, trails: &[Box<[u16]>]) {
        self.parted.trails = trails.to_vec();
        let none = Load { class: DatagramClass::Control, header: 0, bytes: 0 };
        self.parted.runs = vec![(0, Run::of(none)); trails.len()];
    }

    /// Posts `count` identical datagrams that all lines of a listed trail have carried completely.
    pub(super) fn post_along_trail(
        &mut self,
        direction: usize,
        trail: Trail,
        count: u64,
        status: DeliveryStatus,
        load: Load,
        refused: u32,
    ) {
        let usages = &mut self.usages[self.first[direction] as usize..self.first[direction + 1] as usize];
        for line_index in &self.parted.trails[trail.place()] {
            let usage = &mut usages[usize::from(*line_index)..][..1];
            post_identical(usage, (&self.lines, &self.entries), None, count, status, load, refused);
        }
    }

    /// Posts a delivered datagram that all lines of a listed trail have carried completely. Identical datagrams are gathered in a run and posted together.
    pub(super) fn try_extend_trail_run(&mut self, direction: usize, trail: Trail, load: Load) {
        let (whose, run) = &mut self.parted.runs[trail.place()];
        if *whose == direction as u32 && run.load() == load && run.goes_on() {
            run.count += 1;
            return;
        }
        self.post_trail_run(trail);
        if load.header > u16::MAX.into() {
            self.post_along_trail(direction, trail, 1, DeliveryStatus::Delivered, load, 0);
        } else {
            self.parted.runs[trail.place()] = (direction as u32, Run { count: 1, ..Run::of(load) });
        }
    }

    /// Posts the run of identical datagrams of a trail.
    fn post_trail_run(&mut self, trail: Trail) {
        let (direction, run) = &mut self.parted.runs[trail.place()];
        let (direction, count) = (*direction as usize, std::mem::take(&mut run.count));
        if count > 0 {
            let load = run.load();
            self.post_along_trail(direction, trail, count.into(), DeliveryStatus::Delivered, load, 0);
        }
    }

    /// Posts the runs of identical datagrams of all trails.
    pub(super) fn post_trail_runs(&mut self) {
        for place in 0..self.parted.runs.len() {
            self.post_trail_run(Trail::listed(place as u32));
        }
    }

    /// Drops the runs of all trails without posting them.
    pub(super) fn clear_trail_runs(&mut self) {
        self.parted.runs.iter_mut().for_each(|(_, run)| run.count = 0);
    }

    /// Returns whether datagrams are tracked packet by packet: postings are deferred and some flows have several paths.
    pub fn tracks_packets(&self) -> bool {
        self.deferred.is_some() && !self.parted.trails.is_empty()
    }

    /// Records that the line with usage record `line_index` has carried one packet of a datagram.
    pub fn track_packet(&mut self, datagram: u32, line_index: u16, piece: Piece) {
        if self.on {
            self.parted.pieces.entry((datagram, line_index)).or_default().push(piece);
        }
    }

    /// Returns whether a datagram is tracked packet by packet.
    pub(super) fn has_pieces(&self, datagram: u32) -> bool {
        !self.parted.pieces.is_empty()
            && self.parted.pieces.range((datagram, 0)..=(datagram, u16::MAX)).next().is_some()
    }

    /// Drops the packet records of a datagram, once none of it is in flight.
    pub fn forget_pieces(&mut self, datagram: u32) {
        while let Some((key, _)) = self.parted.pieces.range((datagram, 0)..=(datagram, u16::MAX)).next() {
            let key = *key;
            self.parted.pieces.remove(&key);
        }
    }

    /// Posts each packet of a datagram on each line that carried it, when the delivery status is known or a window ends. If a window edge cuts the datagram on
    /// a line, all that this line carried of it is in flight.
    pub(super) fn post_pieces(
        &mut self,
        direction: usize,
        status: DeliveryStatus,
        load: Load,
        datagram: u32,
        refused: u32,
    ) {
        let pieces = || self.parted.pieces.range((datagram, 0)..=(datagram, u16::MAX));
        let first = self.first[direction] as usize;
        let units_of =
            |line_index: u16| self.carried[datagram as usize * self.stride + usize::from(line_index)];
        // If a datagram was fragmented in several ways before a line, the line has several usage records for it.
        let mut whole: BTreeMap<u32, bool> = BTreeMap::new();
        for ((_, line_index), pieces) in pieces() {
            let usage = &self.usages[first + usize::from(*line_index)];
            let wire = self.entries[usage.entry as usize].wire;
            let sent: u64 =
                pieces.iter().map(|piece| wire.units(u64::from(piece.bytes) + u64::from(piece.added))).sum();
            *whole.entry(usage.line).or_insert(true) &= sent == u64::from(units_of(*line_index));
        }
        let mut counted = BTreeSet::new();
        for ((_, line_index), pieces) in pieces() {
            let line_index = *line_index;
            let units = u64::from(self.carried[datagram as usize * self.stride + usize::from(line_index)]);
            if units == 0 {
                continue;
            }
            let usage = &mut self.usages[first + usize::from(line_index)];
            if status == DeliveryStatus::Lost || load.class == DatagramClass::Control {
                usage.lose(units, load.class);
                continue;
            }
            let wire = self.entries[usage.entry as usize].wire;
            let data = usage.data.get_or_insert_default();
            if status != DeliveryStatus::Delivered || !whole[&usage.line] {
                data.in_flight += units;
                continue;
            }
            if let (Some(stream), DatagramClass::FixedLength) = (&mut data.stream, load.class) {
                stream.parted += u64::from(counted.insert(usage.line));
            }
            let end = u64::from(load.header) + u64::from(load.bytes);
            for piece in pieces {
                let (offset, bytes) = (u64::from(piece.offset), u64::from(piece.bytes));
                let header = u64::from(load.header).saturating_sub(offset).min(bytes);
                let layers = wire.in_tunnel(piece.added.into(), header, bytes - header);
                data.segments.add(&layers, 1);
                // The receiver refused the last `refused` bytes of the payload.
                let wanted = (end - u64::from(refused)).max(offset + header);
                let refused_here = (offset + bytes).saturating_sub(wanted);
                data.duplicate += refused_here * 8 * layers.parts_per_bit();
            }
        }
    }
}
