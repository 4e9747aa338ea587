//! Books that are written when the time of what they book has come.
//!
//! Lines know ahead of the clock what they will send. Where the window is known from the beginning it is booked at once; where it may begin
//! and end at any instant, as with packets from outside, it stands here until everything up to its end has happened, and holds
//! its datagram as long.

mod write;

use std::collections::VecDeque;

use engpass_cells::{CellTrain, LineStatus, PduId, Window};
use engpass_model::line::Transmission;
use engpass_model::wire::ethernet::GAP_BYTES;

use super::waits::StateTimes;
use super::{Ledger, Line, LineSenders, LineUsage, Run, Teller, Whose};

/// What is to be booked.
#[derive(Debug)]
pub struct DeferredPostings {
    lines: Vec<DeferredLine>,
    /// By datagram: entries that it is held for.
    holds: Vec<u32>,
    /// Frames that are not booked, and at how many it is looked which of them can be.
    frames: usize,
    look: usize,
}

/// So many frames wait before it is looked which of them can be booked: few enough that all of them are in the CPU's first cache.
const FEW: usize = 64;

/// What a line has sent since the beginning, as far as it is booked.
#[derive(Clone, Copy, Debug, Default)]
pub struct PostedTotals {
    /// Cells or frames.
    pub sent: u64,
    /// Bits of the line, physical framing of cells apart.
    pub bits: u64,
    /// Cells or frames lost in front of it or on it.
    pub lost: u64,
}

#[derive(Clone, Debug, Default)]
struct DeferredLine {
    frames: VecDeque<SentFrame>,
    /// Of those of them that show whose the idle time of the line was: their books, and what their senders had done when they were emitted.
    shown: VecDeque<(u32, StateTimes)>,
    cells: VecDeque<SentCells>,
    arrivals: VecDeque<Arrivals>,
    totals: PostedTotals,
    /// Frames that left in the window, and their bytes.
    left: (u64, u64),
    /// Idle time and rounding before the last frame that is booked, when that ended, and by how much this is rounded up.
    idle: u64,
    rounding: u64,
    end: u64,
    end_rounding: u64,
}

/// A frame on a line; or a train of frames alike, each of which begins where the one before it has ended.
#[derive(Clone, Copy, Debug)]
struct SentFrame {
    /// The first of them, and how many there are.
    sent: Transmission,
    count: u32,
    /// When the last of them has ended.
    end: u64,
    datagram: u32,
    slot: u16,
    /// The line's idle time up to its beginning, with what ends were rounded up by, and by how much that of the last one is.
    idle: u64,
    rounding: u64,
    end_rounding: u64,
    /// It has an entry in [`DeferredLine::shown`].
    shows: bool,
}

/// Cells that leave a line.
#[derive(Clone, Copy, Debug)]
struct SentCells {
    cells: CellTrain,
    counter: usize,
    hop: u16,
    /// Of frames.
    datagram: Option<u32>,
    /// Where they carry data of a sender that shares the line: their book, and at the end of a frame what the sender had done when that was emitted.
    shows: Option<(u32, Option<StateTimes>)>,
}

/// Cells of a generator that arrive at a host.
#[derive(Clone, Copy, Debug)]
pub struct Arrivals {
    /// The cells.
    pub cells: CellTrain,
    /// Index of the generator's traffic.
    pub flow: usize,
    /// The first of them ends a PDU that is not its own.
    pub bad: bool,
    /// The frame that it cuts off, and how many cells of it.
    pub cut: Option<(PduId, u32)>,
}

/// The first of these cells, those that stand at or before `until`, and the others.
fn split(cells: &CellTrain, until: u64) -> (Option<CellTrain>, Option<CellTrain>) {
    if cells.last <= until {
        return (Some(*cells), None);
    }
    let count = cells.count_until(until);
    if count == 0 {
        return (None, Some(*cells));
    }
    let last = cells.base + cells.pace.after(cells.n + count - 1);
    let mut rest = CellTrain { n: cells.n + count, count: cells.count - count, ..*cells };
    rest.take(count);
    (Some(CellTrain { count, last, ..*cells }), Some(rest))
}

impl DeferredPostings {
    fn hold(&mut self, datagram: u32, entries: u32) {
        let index = datagram as usize;
        if self.holds.len() <= index {
            self.holds.resize(index + 1, 0);
        }
        self.holds[index] += entries;
    }

    /// Whether something of the datagram is not booked.
    pub fn holds(&self, datagram: u32) -> bool {
        self.holds.get(datagram as usize).is_some_and(|holds| *holds > 0)
    }

    /// Frames of the datagram on a line that are not booked.
    pub(super) fn waiting_on(&self, port: usize, datagram: u32) -> u32 {
        if !self.holds(datagram) {
            return 0;
        }
        let frames = self.lines[port].frames.iter().filter(|frame| frame.datagram == datagram);
        frames.map(|frame| frame.count).sum()
    }

    /// A line has lost so much.
    pub fn lost(&mut self, port: usize, count: u64) {
        self.lines[port].totals.lost += count;
    }

    /// What a line has sent.
    pub fn totals(&self, port: usize) -> PostedTotals {
        self.lines[port].totals
    }

    /// Frames that left a line in the window, and their bytes.
    pub fn left(&self, port: usize) -> (u64, u64) {
        self.lines[port].left
    }

    /// Cells of a generator will arrive at the host behind a port.
    pub fn arrive(&mut self, port: usize, arrivals: Arrivals) {
        self.lines[port].arrivals.push_back(arrivals);
    }
}

impl Ledger {
    /// From now on everything is booked when its time has come.
    pub fn book_later(&mut self) {
        let lines = vec![DeferredLine::default(); self.lines.len()];
        self.later = Some(Box::new(DeferredPostings { lines, holds: Vec::new(), frames: 0, look: FEW }));
    }

    /// A line has put a frame behind what it sends.
    pub(super) fn transmits_later(
        &mut self,
        slot: u16,
        (id, whose): (u32, Whose),
        packet: u32,
        sent: &Transmission,
        from: &impl Teller,
    ) {
        let port = from.number();
        let shows = self
            .is_attributed(port, whose)
            .then(|| (self.book_of(whose, slot), self.packet_stamps.of_packet(packet)));
        self.put_later(id, (slot, 1), sent, (sent.end, from), shows.is_some());
        if let (Some(later), Some(shows)) = (&mut self.later, shows) {
            later.lines[port].shown.push_back(shows);
        }
    }

    /// A line has put so many frames alike behind what it sends, one right behind the other, of which this is the first: packets of one
    /// datagram, or of datagrams that share one. The last one ends then, and nobody else sends data on it.
    pub fn transmits_train(
        &mut self,
        datagram: u32,
        count: u32,
        first: &Transmission,
        (end, from): (u64, &impl Teller),
    ) {
        self.put_later(datagram, (0, count), first, (end, from), false);
    }

    #[inline]
    fn put_later(
        &mut self,
        datagram: u32,
        (slot, count): (u16, u32),
        sent: &Transmission,
        (end, from): (u64, &impl Teller),
        shows: bool,
    ) {
        let Some(later) = &mut self.later else { return };
        later.hold(datagram, count);
        later.frames += count as usize;
        let told = from.told();
        later.lines[from.number()].frames.push_back(SentFrame {
            sent: *sent,
            count,
            end,
            datagram,
            slot,
            idle: told.idle,
            rounding: told.rounding,
            end_rounding: from.doing(end).rounding,
            shows,
        });
    }

    /// A line sends cells: of a datagram, or of a generator.
    pub fn sends_later(
        &mut self,
        port: usize,
        (counter, hop): (usize, u16),
        cells: CellTrain,
        datagram: Option<(u32, Whose)>,
    ) {
        let attributed = datagram.filter(|(_, whose)| self.is_attributed(port, *whose));
        let stamp = || cells.ends_frame().then(|| self.stamps[cells.frame as usize]);
        let shows = attributed.map(|(_, whose)| (self.book_of(whose, hop), stamp()));
        let datagram = datagram.map(|(id, _)| id);
        let Some(later) = &mut self.later else { return };
        datagram.into_iter().for_each(|datagram| later.hold(datagram, 1));
        later.lines[port].cells.push_back(SentCells { cells, counter, hop, datagram, shows });
    }

    /// Whether what is sent of a datagram shows whose the idle time of the line was.
    fn is_attributed(&self, port: usize, whose: Whose) -> bool {
        self.lines[port].user == LineSenders::Shared && whose.counted
    }

    /// Book a frame whose end has come, or a train that lies in the window, or before it, as a whole.
    #[inline]
    fn book_frame(&mut self, port: usize, frame: &SentFrame) {
        let SentFrame { sent, count, end, datagram, slot, idle, rounding, shows, .. } = *frame;
        let window = self.window;
        let line = &mut self.lines[port];
        (line.idle, line.rounding) = (idle, rounding);
        if window.holds_all(sent.begin.0, end) {
            line.frames += u64::from(count);
            line.bytes += u64::from(count) * sent.bytes;
            let place = datagram as usize * self.stride + usize::from(slot);
            self.carried[place] += count * (sent.bytes - sent.physical) as u32;
            if let Some(later) = &mut self.later {
                let left = &mut later.lines[port].left;
                *left = (left.0 + u64::from(count), left.1 + u64::from(count) * sent.bytes);
            }
        } else if window.from.is_none_or(|from| end > from) {
            line.cut_off(&sent, window);
            self.count_at_edge(port, &sent);
        }
        self.attribute_held(port, &sent);
        if shows
            && let Some(later) = &mut self.later
            && let Some((book, stamp)) = later.lines[port].shown.pop_front()
        {
            self.frame_left(port, book, &stamp, sent.bytes);
        }
    }

    /// The idle time for which a discipline held back what has begun.
    fn attribute_held(&mut self, port: usize, sent: &Transmission) {
        if sent.held > 0 {
            self.lines[port].held(sent.held.min(sent.idle));
        }
    }

    /// When a frame's last bit that is none of the gap has left.
    fn left_at(&self, port: usize, sent: &Transmission) -> u64 {
        let line = &self.lines[port];
        let gap = if sent.physical > 0 { GAP_BYTES } else { 0 };
        let begin = u128::from(sent.begin.0) * u128::from(line.ticks_per_ps) + u128::from(sent.begin.1);
        let ticks = begin + u128::from(sent.bytes - gap) * u128::from(line.ticks);
        ticks.div_ceil(u128::from(line.ticks_per_ps)) as u64
    }

    /// Count a frame that an edge of the window cuts, if it has left in it.
    #[cold]
    fn count_at_edge(&mut self, port: usize, sent: &Transmission) {
        if self.window.holds(self.left_at(port, sent))
            && let Some(later) = &mut self.later
        {
            let left = &mut later.lines[port].left;
            *left = (left.0 + 1, left.1 + sent.bytes);
        }
    }

    /// The first frame of a train that does not lie on one side of the edges of what is booked; it stays in the train no longer.
    fn split_off(line: &Line, train: &mut SentFrame) -> SentFrame {
        let per_ps = u128::from(line.ticks_per_ps);
        // When so many bytes have been sent from that instant on: exactly, and rounded up.
        let after = |(whole, ticks): (u64, u64)| {
            let sum = u128::from(ticks) + u128::from(train.sent.bytes) * u128::from(line.ticks);
            let exact = (whole + (sum / per_ps) as u64, (sum % per_ps) as u64);
            (exact, exact.0 + u64::from(exact.1 > 0))
        };
        let (begin, end) = after(train.sent.begin);
        let rounding = if begin.1 > 0 { line.ticks_per_ps - begin.1 } else { 0 };
        let first = SentFrame { count: 1, end, end_rounding: rounding, ..*train };
        train.sent = Transmission { idle: 0, held: 0, begin, end: after(begin).1, ..train.sent };
        train.count -= 1;
        first
    }

    /// What the line of frames does at `at`, up to which all is booked.
    fn line_at(&mut self, port: usize, at: u64) -> LineStatus {
        let Some(later) = &self.later else { return LineStatus::default() };
        let this = &later.lines[port];
        let line = &mut self.lines[port];
        match this.frames.front().filter(|next| next.sent.begin.0 <= at) {
            Some(next) => {
                (line.idle, line.rounding) = (next.idle, next.rounding);
                LineStatus::default()
            }
            None => {
                (line.idle, line.rounding) = (this.idle, this.rounding);
                LineStatus { idle: at - this.end, rounding: this.end_rounding, begun: 0 }
            }
        }
    }

    /// A window begins at `from`: nothing is in its books.
    pub fn begin_window(&mut self, from: u64) {
        self.set_window(Window { from: Some(from), end: self.window.end });
        self.warm(from);
        self.carried.fill(0);
        self.runs.iter_mut().chain(&mut self.earlier).for_each(|run| *run = Run { count: 0, ..*run });
        self.clear_listed_runs();
        self.books.iter_mut().for_each(LineUsage::clear);
        for port in 0..self.lines.len() {
            let line = &mut self.lines[port];
            (line.frames, line.bytes, line.started, line.cut) = (0, 0, false, None);
            line.edges[1].begun = 0;
            if let Some(later) = &mut self.later {
                later.lines[port].left = (0, 0);
            }
            if !self.lines[port].cells {
                let doing = self.line_at(port, from);
                self.lines[port].open(doing);
            }
        }
    }

    /// The window ends at `end`, up to which all is booked, on the line of a port of frames.
    pub fn closes_later(&mut self, port: usize, end: u64) {
        let next = self.later.as_ref().and_then(|later| later.lines[port].frames.front().copied());
        let doing = self.line_at(port, end);
        if let Some(next) = next.filter(|next| next.sent.begin.0 <= end) {
            self.lines[port].cut_off(&next.sent, self.window);
            self.attribute_held(port, &next.sent);
            self.count_at_edge(port, &next.sent);
        }
        let begun = self.lines[port].edges[1].begun;
        self.closes(port, LineStatus { begun, ..doing });
    }

    /// Take another window for all that is booked from here on.
    pub fn set_window(&mut self, window: Window) {
        self.window = window;
    }
}
