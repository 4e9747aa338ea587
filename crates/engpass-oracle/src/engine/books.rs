//! The oracle's line ledger (docs/ledger.md): idle time, and the cells or bytes of each flow by delivery status.
//!
//! The state is in `../books.rs`.

use std::collections::BTreeMap;

use engpass_model::source::Traffic;

use super::Engine;
use crate::cell::LineId;
use crate::ledger::Fate;
use crate::line_usage::{Carried, CarriedPacket, Cut};
use crate::outcome::{Booked, Booking};
use crate::tunnel::Contents;

impl Engine<'_> {
    fn idle_since(&self, line: LineId) -> Option<u64> {
        match self.lines.get(&line) {
            Some(cells) => cells.idle_since(),
            None => self.frame_lines[&line].idle_since(),
        }
    }

    /// Posts the idle time of a line up to now, just before a cell joins it or a frame begins.
    pub(crate) fn book_idle(&mut self, now: u64, line: LineId) {
        if let Some(since) = self.idle_since(line) {
            self.books.idle[line.link][line.end] += self.books.counted(since, now);
        }
    }

    /// Posts a cell that is about to leave a line.
    pub(crate) fn book_cell(&mut self, now: u64, line: LineId) {
        let (num, den) = self.line(line).pace().ratio();
        let (base, before) = self.line(line).begun().expect("a departing cell is being sent");
        let cell = self.line(line).cells().next().expect("the line has a cell in transmission").clone();
        let whole = self.is_whole(now, line, (num, den), Cut { base, units: (before, before + 1) });
        if whole {
            let sent = self.books.sent.entry(line).or_default();
            *sent = (sent.0 + 1, sent.1 + 1);
        }
        let datagram = self.packets[cell.packet].datagram;
        let Contents { tunnels, offset, bytes } = self.contents(cell.packet);
        let carried = self.books.carried.entry((line, datagram)).or_default();
        carried.units += u64::from(whole);
        carried.partly |= !whole;
        if cell.last {
            carried.packets.push(CarriedPacket { tunnels, offset, bytes, vc: Some(cell.vc) });
        }
        self.data_leaves(line, (cell.packet, Some(cell.vc)), 1, cell.last);
    }

    /// Posts a frame whose transmission is about to end.
    pub(crate) fn book_frame(&mut self, now: u64, line: LineId) {
        let this = &self.frame_lines[&line];
        let sending = this.sending.expect("a departing frame is being sent");
        let (base, before) = this.begun().expect("a departing frame is being sent");
        let pace = this.pace().ratio();
        let physical = this.physical();
        let whole = self.is_whole(now, line, pace, Cut { base, units: (before, before + sending.bytes) });
        if whole {
            let sent = self.books.sent.entry(line).or_default();
            *sent = (sent.0 + 1, sent.1 + sending.bytes);
        }
        let datagram = self.packets[sending.packet].datagram;
        let Contents { tunnels, offset, bytes } = self.contents(sending.packet);
        let carried = self.books.carried.entry((line, datagram)).or_default();
        carried.units += if whole { sending.bytes - physical } else { 0 };
        carried.partly |= !whole;
        carried.packets.push(CarriedPacket { tunnels, offset, bytes, vc: None });
        self.data_leaves(line, (sending.packet, None), sending.bytes, true);
    }

    /// Returns true if a transmission that ends now began in the measurement window. Records one that began earlier and ends inside as clipped.
    fn is_whole(&mut self, now: u64, line: LineId, (num, den): (u64, u64), cut: Cut) -> bool {
        let Some(warmup) = self.books.warmup else { return true };
        if now <= warmup {
            return false;
        }
        // Use its exact begin, not the rounded one.
        let begun = u128::from(cut.base) * u128::from(den) + u128::from(cut.units.0) * u128::from(num);
        if begun < u128::from(warmup) * u128::from(den) {
            self.books.cut.insert(line, cut);
            return false;
        }
        true
    }

    /// Returns the idle time of every line in picoseconds, up to `at`.
    pub(crate) fn idle(&self, at: u64) -> Vec<[u64; 2]> {
        let mut idle = self.books.idle.clone();
        for (link, sums) in idle.iter_mut().enumerate() {
            for (end, sum) in sums.iter_mut().enumerate() {
                let since = self.idle_since(LineId { link, end });
                *sum += since.map_or(0, |since| self.books.counted(since, at));
            }
        }
        idle
    }

    /// Returns true if some of a datagram was not counted on a line. Its last frame may have arrived while the gap is still in transmission.
    pub(crate) fn is_partly(&self, line: LineId, datagram: usize, carried: &Carried) -> bool {
        let sending = self.frame_lines.get(&line).and_then(|line| line.sending);
        carried.partly || sending.is_some_and(|sending| self.packets[sending.packet].datagram == datagram)
    }

    /// Returns cells, or bytes of frames, by the delivery status of their datagrams so far.
    pub(crate) fn booked(&self) -> BTreeMap<Booking, Booked> {
        let mut booked: BTreeMap<Booking, Booked> = BTreeMap::new();
        for (&(line, datagram), carried) in &self.books.carried {
            let this = self.ledger.datagram(datagram);
            let key = Booking { link: line.link, end: line.end, flow: this.flow, back: this.back };
            let entry = booked.entry(key).or_default();
            match self.ledger.fate(datagram) {
                _ if this.generated => entry.generated += carried.units,
                _ if this.controls() => entry.control += carried.units,
                Fate::Received if !self.is_partly(line, datagram, carried) => {
                    let traffic = &self.testbed.traffic[this.flow];
                    let stream = matches!(traffic, Traffic::UdpStream(config) if config.count.is_none());
                    entry.whole += u64::from(stream);
                }
                Fate::Lost => entry.dead += carried.units,
                _ => entry.in_flight += carried.units,
            }
        }
        booked.retain(|_, booked| *booked != Booked::default());
        booked
    }
}
