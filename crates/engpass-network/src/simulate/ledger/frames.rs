//! Lines that carry frames: each transmission is known when it begins, or before.

use super::{Ledger, User, put};

/// A frame on a line.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::simulate) struct Transmission {
    /// How long the line was idle before it, in picoseconds, and by how much the end before was rounded up, in ticks.
    pub(in crate::simulate) idle: u64,
    pub(in crate::simulate) rounding: u64,
    /// For how long of that a discipline held it back.
    pub(in crate::simulate) held: u64,
    /// Start of the busy period in picoseconds, and bytes sent in it before.
    pub(in crate::simulate) base: u64,
    pub(in crate::simulate) before: u64,
    /// Its own bytes, those around the frame included, and how many these are.
    pub(in crate::simulate) bytes: u64,
    pub(in crate::simulate) physical: u64,
    /// When all of them have left, in picoseconds.
    pub(in crate::simulate) end: u64,
}

impl Ledger {
    /// A packet of a datagram goes on the line of `port`, hop `hop` of its way.
    pub(in crate::simulate) fn transmits(
        &mut self,
        port: usize,
        hop: u16,
        (datagram, packet): (u32, u32),
        sent: Transmission,
    ) {
        if !self.on {
            return;
        }
        let Transmission { idle, rounding, held, base, before, bytes, physical, end } = sent;
        self.idle(port, idle, rounding);
        self.held(port, held.min(idle));
        let window = self.window;
        let line = &mut self.lines[port];
        let (ticks, per_ps) = (u128::from(line.ticks), u128::from(line.ticks_per_ps));
        let begin = u128::from(base) * per_ps + u128::from(before) * ticks;
        let since = |at: u64| (u128::from(at) * per_ps).checked_sub(begin).filter(|since| *since > 0);
        let mut whole = end <= window.end;
        if !whole && let Some(begun) = since(window.end) {
            line.edges[1].begun = begun;
        }
        if let Some(from) = window.from {
            whole &= end > from;
            if end > from
                && let Some(begun) = since(from)
            {
                line.edges[0].begun = begun;
                line.cut = whole.then_some(u128::from(bytes) * ticks);
                whole = false;
            }
        }
        if whole {
            line.frames += 1;
            line.bytes += bytes;
            self.carried[datagram as usize * self.stride + usize::from(hop)] += (bytes - physical) as u32;
        }
        if line.user == User::Shared {
            let way = self.ways[datagram as usize];
            if way.elastic {
                line.elastic += bytes;
                let stamp = self.packet_stamps[packet as usize];
                self.frame_left(port, way.book + u32::from(hop), &stamp);
            }
        }
    }

    /// A packet enters the NIC of a line that carries frames, and has left at `until` with all that is around it.
    pub(in crate::simulate) fn emitted_packet(
        &mut self,
        sender: usize,
        (datagram, packet): (u32, u32),
        now: u64,
        until: u64,
    ) {
        if let Some(stamp) = self.emit(sender, datagram, now, until) {
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
