//! Deferred postings: transmissions that wait until virtual time has reached them.
//!
//! With lookahead, a line reports transmissions before virtual time reaches them. If the window is known from the start, they are posted at once. If windows
//! may begin and end at any time, as with injected packets, each transmission waits here until virtual time has reached its end. Its datagram is kept.

mod write;

use std::collections::VecDeque;

use engpass_model::cell_train::{CellTrain, PduId};
use engpass_model::line::{FrameLine, LineStatus, Transmission};
use engpass_model::window::Window;
use engpass_model::wire::ethernet::GAP_BYTES;

use super::sender_states::StateTimes;
use super::{DatagramOwner, Ledger, Line, LineSenders, LineUsage, Run};

/// The deferred postings of all lines.
#[derive(Debug)]
pub struct DeferredPostings {
    lines: Vec<DeferredLine>,
    /// By datagram: number of its deferred entries, which keep its number from being reused.
    holds: Vec<u32>,
    /// Number of deferred frames, and the number at which to look for frames that can be posted.
    frames: usize,
    look: usize,
}

/// Number of deferred frames that triggers such a look; data of so few frames is still in the CPU's first-level cache.
const FEW: usize = 64;

/// Posted totals of a line since the start of the run.
#[derive(Clone, Copy, Debug, Default)]
pub struct PostedTotals {
    /// Cells or frames.
    pub sent: u64,
    /// Bits on the line, without the physical framing of cells.
    pub bits: u64,
    /// Cells or frames lost in the line's queue or on the line.
    pub lost: u64,
}

#[derive(Clone, Debug, Default)]
struct DeferredLine {
    frames: VecDeque<SentFrame>,
    /// For frames that divide idle time, in their order: usage record and sender snapshot.
    shown: VecDeque<(u32, StateTimes)>,
    cells: VecDeque<SentCells>,
    arrivals: VecDeque<Arrivals>,
    totals: PostedTotals,
    /// Frames that left in the window, and the sum of their bytes.
    left: (u64, u64),
    /// State after the last posted frame: idle time and rounding before it, its end, and the ticks by which this end is rounded up.
    idle: u64,
    rounding: u64,
    end: u64,
    end_rounding: u64,
}

/// A frame on a line, or a train of identical frames sent back to back.
#[derive(Clone, Copy, Debug)]
struct SentFrame {
    /// The first frame, and the number of frames.
    sent: Transmission,
    count: u32,
    /// End of the last frame, in picoseconds.
    end: u64,
    datagram: u32,
    line_index: u16,
    /// Line's idle time and sum of roundings up to the begin of the first frame; and the ticks by which the end of the last frame is rounded up.
    idle: u64,
    rounding: u64,
    end_rounding: u64,
    /// True if the frame divides idle time; it then has an entry in [`DeferredLine::shown`].
    shows: bool,
}

/// Cells that have left a line.
#[derive(Clone, Copy, Debug)]
struct SentCells {
    cells: CellTrain,
    counter: usize,
    hop: u16,
    /// Index of the datagram; `None` for cells of a generator.
    datagram: Option<u32>,
    /// For data on a shared line: the usage record, and at the end of a PDU the sender snapshot that divides the idle time.
    shows: Option<(u32, Option<StateTimes>)>,
}

/// Cells of a generator that arrive at a host.
#[derive(Clone, Copy, Debug)]
pub struct Arrivals {
    /// The cells.
    pub cells: CellTrain,
    /// Index of the generator's traffic.
    pub flow: usize,
    /// True if the first cell ends a PDU that contains cells of a truncated one, and is therefore bad.
    pub bad: bool,
    /// The truncated PDU before the cells, and the number of its cells.
    pub cut: Option<(PduId, u32)>,
}

/// Splits cells into those at or before `until` and those after it.
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
    rest.skip_cells(count);
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

    /// Returns whether the datagram has deferred entries, so that its number must not be reused.
    pub fn holds(&self, datagram: u32) -> bool {
        self.holds.get(datagram as usize).is_some_and(|holds| *holds > 0)
    }

    /// Returns how many frames of the datagram on a line are not posted yet.
    pub(super) fn unposted_frames(&self, port: usize, datagram: u32) -> u32 {
        if !self.holds(datagram) {
            return 0;
        }
        let frames = self.lines[port].frames.iter().filter(|frame| frame.datagram == datagram);
        frames.map(|frame| frame.count).sum()
    }

    /// Counts `count` cells or frames that the line of `port` has lost.
    pub fn lost(&mut self, port: usize, count: u64) {
        self.lines[port].totals.lost += count;
    }

    /// Returns the posted totals of a line.
    pub fn totals(&self, port: usize) -> PostedTotals {
        self.lines[port].totals
    }

    /// Returns the number of frames that left the line of `port` in the window, and the sum of their bytes.
    pub fn left(&self, port: usize) -> (u64, u64) {
        self.lines[port].left
    }

    /// Defers the arrival of a generator's cells at the host behind a port.
    pub fn arrive(&mut self, port: usize, arrivals: Arrivals) {
        self.lines[port].arrivals.push_back(arrivals);
    }
}

impl Ledger {
    /// Defers all postings from now on, until virtual time has reached them.
    pub fn enable_deferral(&mut self) {
        let lines = vec![DeferredLine::default(); self.lines.len()];
        self.deferred = Some(Box::new(DeferredPostings { lines, holds: Vec::new(), frames: 0, look: FEW }));
    }

    /// Defers a frame whose transmission a line reports.
    pub(super) fn defer_transmission(
        &mut self,
        line_index: u16,
        (id, whose): (u32, DatagramOwner),
        packet: u32,
        sent: &Transmission,
        from: &impl FrameLine,
    ) {
        let port = from.number();
        let shows = self
            .is_attributed(port, whose)
            .then(|| (self.usage_of(whose, line_index), self.packet_stamps.of_packet(packet)));
        self.put_later(id, (line_index, 1), sent, (sent.end, from), shows.is_some());
        if let (Some(deferred), Some(shows)) = (&mut self.deferred, shows) {
            deferred.lines[port].shown.push_back(shows);
        }
    }

    /// Defers a train of `count` identical frames that are sent back to back: packets of one datagram, or of datagrams that share one record. `first` is the
    /// first frame; `end` is the end of the last one. The line must not be shared.
    pub fn defer_train(
        &mut self,
        datagram: u32,
        count: u32,
        first: &Transmission,
        (end, from): (u64, &impl FrameLine),
    ) {
        self.put_later(datagram, (0, count), first, (end, from), false);
    }

    #[inline]
    fn put_later(
        &mut self,
        datagram: u32,
        (line_index, count): (u16, u32),
        sent: &Transmission,
        (end, from): (u64, &impl FrameLine),
        shows: bool,
    ) {
        let Some(deferred) = &mut self.deferred else { return };
        deferred.hold(datagram, count);
        deferred.frames += count as usize;
        let totals = from.totals();
        deferred.lines[from.number()].frames.push_back(SentFrame {
            sent: *sent,
            count,
            end,
            datagram,
            line_index,
            idle: totals.idle,
            rounding: totals.rounding,
            end_rounding: from.line_status(end).rounding,
            shows,
        });
    }

    /// Defers cells that a line sends, of a datagram or of a generator.
    pub fn defer_cells(
        &mut self,
        port: usize,
        (counter, hop): (usize, u16),
        cells: CellTrain,
        datagram: Option<(u32, DatagramOwner)>,
    ) {
        let attributed = datagram.filter(|(_, whose)| self.is_attributed(port, *whose));
        let stamp = || cells.ends_pdu().then(|| self.stamps[cells.pdu as usize]);
        let shows = attributed.map(|(_, whose)| (self.usage_of(whose, hop), stamp()));
        let datagram = datagram.map(|(id, _)| id);
        let Some(deferred) = &mut self.deferred else { return };
        datagram.into_iter().for_each(|datagram| deferred.hold(datagram, 1));
        deferred.lines[port].cells.push_back(SentCells { cells, counter, hop, datagram, shows });
    }

    /// Returns whether transmissions of a datagram divide idle time: the line is shared, and the datagram carries data.
    fn is_attributed(&self, port: usize, whose: DatagramOwner) -> bool {
        self.lines[port].user == LineSenders::Shared && whose.counted
    }

    /// Posts a frame that has ended, or a train that lies completely in the window or completely before it.
    #[inline]
    fn post_frame(&mut self, port: usize, frame: &SentFrame) {
        let SentFrame { sent, count, end, datagram, line_index, idle, rounding, shows, .. } = *frame;
        let window = self.window;
        let line = &mut self.lines[port];
        (line.idle, line.rounding) = (idle, rounding);
        if window.holds_all(sent.begin.0, end) {
            line.frames += u64::from(count);
            line.bytes += u64::from(count) * sent.bytes;
            let place = datagram as usize * self.stride + usize::from(line_index);
            self.carried[place] += count * (sent.bytes - sent.physical) as u32;
            if let Some(deferred) = &mut self.deferred {
                let left = &mut deferred.lines[port].left;
                *left = (left.0 + u64::from(count), left.1 + u64::from(count) * sent.bytes);
            }
        } else if window.from.is_none_or(|from| end > from) {
            line.clip_to_window(&sent, window);
            self.count_at_edge(port, &sent);
        }
        self.attribute_held(port, &sent);
        if shows
            && let Some(deferred) = &mut self.deferred
            && let Some((usage, stamp)) = deferred.lines[port].shown.pop_front()
        {
            self.attribute_on_pdu(port, usage, &stamp, sent.bytes);
        }
    }

    /// Posts the time for which a queue discipline held the frame back.
    fn attribute_held(&mut self, port: usize, sent: &Transmission) {
        if sent.held > 0 {
            self.lines[port].held(sent.held.min(sent.idle));
        }
    }

    /// Returns the instant at which the last bit of a frame has left, without the interframe gap.
    fn left_at(&self, port: usize, sent: &Transmission) -> u64 {
        let line = &self.lines[port];
        let gap = if sent.physical > 0 { GAP_BYTES } else { 0 };
        let begin = u128::from(sent.begin.0) * u128::from(line.ticks_per_ps) + u128::from(sent.begin.1);
        let ticks = begin + u128::from(sent.bytes - gap) * u128::from(line.ticks);
        ticks.div_ceil(u128::from(line.ticks_per_ps)) as u64
    }

    /// Counts a frame that crosses a window edge, if its last bit left in the window.
    #[cold]
    fn count_at_edge(&mut self, port: usize, sent: &Transmission) {
        if self.window.holds(self.left_at(port, sent))
            && let Some(deferred) = &mut self.deferred
        {
            let left = &mut deferred.lines[port].left;
            *left = (left.0 + 1, left.1 + sent.bytes);
        }
    }

    /// Removes the first frame from a train and returns it, because the train crosses a window edge or the instant up to which entries are posted.
    fn split_off(line: &Line, train: &mut SentFrame) -> SentFrame {
        let per_ps = u128::from(line.ticks_per_ps);
        // Returns the end of a frame that begins at an instant: exactly, and rounded up.
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

    /// Returns what a frame line does at the instant `at`. Everything up to `at` must be posted.
    fn line_at(&mut self, port: usize, at: u64) -> LineStatus {
        let Some(deferred) = &self.deferred else { return LineStatus::default() };
        let this = &deferred.lines[port];
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

    /// Begins a window at `from`, with all counts at zero.
    pub fn begin_window(&mut self, from: u64) {
        self.set_window(Window { from: Some(from), end: self.window.end });
        self.end_warmup(from);
        self.carried.fill(0);
        self.runs.iter_mut().chain(&mut self.earlier).for_each(|run| *run = Run { count: 0, ..*run });
        self.clear_trail_runs();
        self.usages.iter_mut().for_each(LineUsage::clear);
        for port in 0..self.lines.len() {
            let line = &mut self.lines[port];
            (line.frames, line.bytes, line.started, line.cut) = (0, 0, false, None);
            line.edges[1].begun = 0;
            if let Some(deferred) = &mut self.deferred {
                deferred.lines[port].left = (0, 0);
            }
            if !self.lines[port].cells {
                let doing = self.line_at(port, from);
                self.lines[port].open(doing);
            }
        }
    }

    /// Ends the window at `end` on a frame line. Everything up to `end` must be posted.
    pub fn close_deferred_line(&mut self, port: usize, end: u64) {
        let next = self.deferred.as_ref().and_then(|deferred| deferred.lines[port].frames.front().copied());
        let doing = self.line_at(port, end);
        if let Some(next) = next.filter(|next| next.sent.begin.0 <= end) {
            self.lines[port].clip_to_window(&next.sent, self.window);
            self.attribute_held(port, &next.sent);
            self.count_at_edge(port, &next.sent);
        }
        let begun = self.lines[port].edges[1].begun;
        self.end_window_on(port, LineStatus { begun, ..doing });
    }

    /// Sets the window for all later postings.
    pub fn set_window(&mut self, window: Window) {
        self.window = window;
    }
}
