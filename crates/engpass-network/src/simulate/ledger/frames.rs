//! Lines that carry frames: each transmission is known when it begins, or before.

use super::{Ledger, Line, User, put};
use crate::simulate::frames::{FramePort, Told};
use crate::simulate::tally::Window;
use engpass_model::element::Doing;

/// A frame on a line.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::simulate) struct Transmission {
    /// How long the line was idle before it, in picoseconds.
    pub(in crate::simulate) idle: u64,
    /// For how long of that a discipline held it back.
    pub(in crate::simulate) held: u64,
    /// When it began: whole picoseconds, and ticks.
    pub(in crate::simulate) begin: (u64, u64),
    /// Its own bytes, those around the frame included, and how many these are.
    pub(in crate::simulate) bytes: u64,
    pub(in crate::simulate) physical: u64,
    /// When all of them have left, in picoseconds.
    pub(in crate::simulate) end: u64,
    /// It lies in the window, as far as whole picoseconds say.
    pub(in crate::simulate) whole: bool,
}

impl Ledger {
    /// The line of `port`, hop `hop` of its way, sends a packet of a datagram last of all that it knows of.
    #[inline(always)]
    pub(in crate::simulate) fn transmits(
        &mut self,
        port: usize,
        hop: u16,
        (datagram, packet): (u32, u32),
        from: &FramePort,
    ) {
        if !self.on {
            return;
        }
        if self.later.is_some() {
            self.transmits_later(port, hop, (datagram, packet), from);
            return;
        }
        let Transmission { idle, held, bytes, physical, whole, .. } = from.last;
        if !whole {
            self.lines[port].cut_off(&from.last, self.window);
        } else {
            self.carried[datagram as usize * self.stride + usize::from(hop)] += (bytes - physical) as u32;
        }
        let line = &mut self.lines[port];
        if line.user == User::Shared {
            line.idle = from.told.idle;
            if held > 0 {
                line.held(held.min(idle));
            }
            let way = self.ways[datagram as usize];
            if way.elastic {
                line.elastic += bytes;
                let book = way.book + u32::from(hop);
                line.frame_left(&mut self.books[book as usize], book, &self.packet_stamps[packet as usize]);
            }
        } else if held > 0 {
            line.idle = from.told.idle;
            line.held(held.min(idle));
        }
    }

    /// The window begins on the line of `port`, which carries frames, at `from`: what the edge cuts has told itself.
    pub(in crate::simulate) fn opens_frames(&mut self, port: usize, from: &FramePort, at: u64) {
        let line = &mut self.lines[port];
        line.learn(from.told);
        let begun = line.edges[0].begun;
        line.open(Doing { begun, ..from.doing(at) });
    }

    /// The window ends at `at` on the line of `port`, which carries frames.
    pub(in crate::simulate) fn closes_frames(&mut self, port: usize, from: &FramePort, at: u64) {
        let line = &mut self.lines[port];
        line.learn(from.told);
        let begun = line.edges[1].begun;
        self.closes(port, Doing { begun, ..from.doing(at) });
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
    /// Take over what the line has told.
    fn learn(&mut self, told: Told) {
        (self.idle, self.rounding) = (told.idle, told.rounding);
        (self.frames, self.bytes) = (told.frames, told.bytes);
    }

    /// A transmission does not lie in the window: note what an edge cuts of it.
    #[cold]
    pub(super) fn cut_off(&mut self, sent: &Transmission, window: Window) {
        let (ticks, per_ps) = (u128::from(self.ticks), u128::from(self.ticks_per_ps));
        let begin = u128::from(sent.begin.0) * per_ps + u128::from(sent.begin.1);
        let since = |at: u64| (u128::from(at) * per_ps).checked_sub(begin).filter(|since| *since > 0);
        let whole = sent.end <= window.end;
        if !whole && let Some(begun) = since(window.end) {
            self.edges[1].begun = begun;
        }
        if let Some(from) = window.from
            && sent.end > from
            && let Some(begun) = since(from)
        {
            self.edges[0].begun = begun;
            self.cut = whole.then_some(u128::from(sent.bytes) * ticks);
        }
    }
}
