//! Lines that carry frames: each transmission is known when it begins, or before.

use super::{Ledger, Line, User, put};
use crate::simulate::tally::Window;

/// A frame on a line.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::simulate) struct Transmission {
    /// How long the line was idle before it, in picoseconds, and by how much the end before was rounded up, in ticks.
    pub(in crate::simulate) idle: u64,
    pub(in crate::simulate) rounding: u64,
    /// For how long of that a discipline held it back.
    pub(in crate::simulate) held: u64,
    /// When it began: whole picoseconds, and ticks.
    pub(in crate::simulate) begin: (u64, u64),
    /// Its own bytes, those around the frame included, and how many these are.
    pub(in crate::simulate) bytes: u64,
    pub(in crate::simulate) physical: u64,
    /// When all of them have left, in picoseconds.
    pub(in crate::simulate) end: u64,
}

impl Ledger {
    /// A packet of a datagram goes on the line of `port`, hop `hop` of its way.
    #[inline]
    pub(in crate::simulate) fn transmits(
        &mut self,
        port: usize,
        hop: u16,
        (datagram, packet): (u32, u32),
        sent: &Transmission,
    ) {
        if !self.on {
            return;
        }
        let &Transmission { idle, rounding, held, begin, bytes, physical, end } = sent;
        self.idle(port, idle, rounding);
        if held > 0 {
            self.held(port, held.min(idle));
        }
        let window = self.window;
        let line = &mut self.lines[port];
        let whole = end <= window.end && window.from.is_none_or(|from| begin.0 >= from)
            || line.is_whole(sent, window);
        if whole {
            line.frames += 1;
            line.bytes += bytes;
            self.carried[datagram as usize * self.stride + usize::from(hop)] += (bytes - physical) as u32;
        }
        if line.user == User::Shared {
            let way = self.ways[datagram as usize];
            if way.elastic {
                line.elastic += bytes;
                let book = &mut self.books[(way.book + u32::from(hop)) as usize];
                line.frame_left(book, way.book + u32::from(hop), &self.packet_stamps[packet as usize]);
            }
        }
    }

    /// A packet enters the NIC of a line that carries frames, and has left at `until` with all that is around it.
    #[inline]
    pub(in crate::simulate) fn emitted_packet(
        &mut self,
        sender: usize,
        (datagram, packet): (u32, u32),
        now: u64,
        until: u64,
    ) {
        if let Some(&stamp) = self.emit(sender, datagram, now, until) {
            put(&mut self.packet_stamps, packet, stamp);
        }
    }

    /// A fragment of a packet has come into being.
    pub(in crate::simulate) fn cut(&mut self, packet: u32, fragment: u32) {
        if let Some(&stamp) = self.packet_stamps.get(packet as usize) {
            put(&mut self.packet_stamps, fragment, stamp);
        }
    }
}

impl Line {
    /// Whether a transmission lies in the window; what an edge cuts of it is noted.
    #[cold]
    fn is_whole(&mut self, sent: &Transmission, window: Window) -> bool {
        let (ticks, per_ps) = (u128::from(self.ticks), u128::from(self.ticks_per_ps));
        let begin = u128::from(sent.begin.0) * per_ps + u128::from(sent.begin.1);
        let since = |at: u64| (u128::from(at) * per_ps).checked_sub(begin).filter(|since| *since > 0);
        let whole = sent.end <= window.end;
        if !whole && let Some(begun) = since(window.end) {
            self.edges[1].begun = begun;
        }
        let Some(from) = window.from else { return whole };
        if sent.end <= from {
            return false;
        }
        if let Some(begun) = since(from) {
            self.edges[0].begun = begun;
            self.cut = whole.then_some(u128::from(sent.bytes) * ticks);
            return false;
        }
        whole
    }
}
