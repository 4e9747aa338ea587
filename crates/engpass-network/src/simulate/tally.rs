//! What is counted: for every flow what became of it, within the part of a run that counts.

use engpass_cells::{CellDropCause, VcId};
use engpass_model::queue::Cause;

use super::sketch::Histogram;

/// What became of a flow.
#[derive(Clone, Debug, Default)]
pub(super) struct FlowCounters {
    pub(super) sent: u64,
    pub(super) sent_bytes: u64,
    pub(super) received: u64,
    pub(super) received_bytes: u64,
    /// Sent and neither received nor lost; for generators computed at the end.
    pub(super) in_flight: u64,
    /// Of receptions, see [`Receptions`]: one more than the time of the last one, and the two sums.
    last: u64,
    times: u64,
    weighted: u64,
    /// From the beginning of a datagram to its reception.
    pub(super) delays: Histogram,
    /// Round trips that TCP measured at the writing ends.
    pub(super) round_trips: Histogram,
    rare: Option<Box<ColdCounters>>,
}

/// What few flows are, and what is counted once something was lost or marked, or cells of a generator have come.
#[derive(Clone, Debug, Default)]
pub(super) struct ColdCounters {
    /// Its datagrams are of different lengths.
    varied: bool,
    pub(super) lost: u64,
    /// PDUs that arrived good and with EFCI in their last cell; cells of a generator.
    pub(super) marked: u64,
    /// Lost and received so far, the warm-up included; for generators.
    pub(super) lost_ever: u64,
    pub(super) received_ever: u64,
    /// Bytes of datagrams received in the warm-up.
    pub(super) bytes_before: u64,
    pub(super) places: Vec<Losses>,
    /// Where events may take lines down: times without receptions.
    gaps: Option<Gaps>,
}

/// Times between the receptions of a flow, in picoseconds.
#[derive(Clone, Copy, Debug)]
struct Gaps {
    /// When the time without receptions began: with the last one, or where counting begins.
    since: u64,
    longest: u64,
}

impl Gaps {
    fn receive(&mut self, at: u64) {
        if at > self.since {
            (self.since, self.longest) = (at, self.longest.max(at - self.since));
        }
    }
}

/// What a flow lost at one place.
#[derive(Clone, Copy, Debug)]
pub(super) struct Losses {
    pub(super) place: DropLocation,
    /// Cells, or frames.
    pub(super) cells: u64,
    /// Datagrams whose first loss it was.
    pub(super) datagrams: u64,
}

/// When datagrams were received, the warm-up included: equal runs have equal sums.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Receptions {
    /// Time of the last one in ps.
    pub last: Option<u64>,
    /// Sum of the times, modulo 2^64; zero for generators.
    pub times: u64,
    /// Sum of time * (number of the datagram + 1), modulo 2^64; zero for generators.
    pub weighted: u64,
}

/// Where something can be lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum DropLocation {
    /// The queue of this port.
    Port(usize, CellDropCause),
    /// The policer in front of this port.
    Policer(usize),
    /// The queue discipline of this port of frames.
    Queue(usize, Cause),
    /// The line behind this port of frames.
    Line(usize),
    /// The line behind this port of frames, or the queue in front of it: it was down.
    Down(usize),
    /// The host behind this port of frames: it hears another member of its bond.
    Inactive(usize),
    /// This router, with a time to live that had run out.
    Ttl(usize),
    /// This router: the packet has the DF bit and is longer than the MTU of its next hop.
    TooBig(usize),
    /// This router, which has not heard the address of the next node.
    NoReply(usize),
    /// The same, before it could have: it holds no more packets for that.
    HoldFull(usize),
    /// The queue of this router in front of its engine.
    InputFull(usize),
    /// The reassembly of a host, or of this router.
    Reassembly(Option<u32>),
    /// This router, the end of a tunnel: the rest of the packet did not come in time.
    Timeout(usize),
    /// The same: there was no memory for the fragment.
    Memory(usize),
    ReceiveBuffer,
}

impl DropLocation {
    /// Whether it is the host that receives a flow, one of several perhaps.
    pub(super) fn is_at_receiver(self) -> bool {
        matches!(self, Self::Reassembly(None) | Self::ReceiveBuffer)
    }
}

impl ColdCounters {
    pub(super) fn losses(&mut self, place: DropLocation) -> &mut Losses {
        let places = &mut self.places;
        let index = places.iter().position(|losses| losses.place == place).unwrap_or_else(|| {
            places.push(Losses { place, cells: 0, datagrams: 0 });
            places.len() - 1
        });
        &mut places[index]
    }
}

impl FlowCounters {
    /// Of a flow whose datagrams are of different lengths, or not.
    pub(super) fn new(varied: bool) -> Self {
        let rare = varied.then(|| Box::new(ColdCounters { varied, ..ColdCounters::default() }));
        Self { rare, ..Self::default() }
    }

    /// Whether its datagrams are of different lengths.
    pub(super) fn is_varied(&self) -> bool {
        self.rare.as_ref().is_some_and(|rare| rare.varied)
    }

    #[inline]
    pub(super) fn rare(&mut self) -> &mut ColdCounters {
        self.rare.get_or_insert_default()
    }

    /// Bytes of datagrams received, the warm-up included: of a flow that does not count anew.
    pub(super) fn ever_bytes(&self) -> u64 {
        self.received_bytes + self.rare.as_ref().map_or(0, |rare| rare.bytes_before)
    }

    /// Datagrams of so many bytes each were sent, in the window or not.
    pub(super) fn count_sent(&mut self, count: u64, bytes: u64, counts: bool) {
        self.in_flight += count;
        if counts {
            self.sent += count;
            self.sent_bytes += count * bytes;
        }
    }

    /// Note the times without receptions from `begin` on.
    pub(super) fn note_gaps(&mut self, begin: u64) {
        self.rare().gaps = Some(Gaps { since: begin, longest: 0 });
    }

    /// The longest time without a reception, of a flow that sends until then; `None` if it was not noted.
    pub(super) fn longest_gap(&self, until: u64) -> Option<u64> {
        let gaps = self.rare.as_ref()?.gaps?;
        Some(gaps.longest.max(until.saturating_sub(gaps.since)))
    }

    /// What of rare things was counted.
    pub(super) fn seen_rarely(&self) -> ColdCounters {
        self.rare.as_deref().cloned().unwrap_or_default()
    }

    pub(super) fn losses(&mut self, place: DropLocation) -> &mut Losses {
        self.rare().losses(place)
    }

    /// A datagram was received at `at`.
    #[inline]
    pub(super) fn receive(&mut self, index: u64, at: u64) {
        self.received_last(at);
        if let Some(ColdCounters { gaps: Some(gaps), .. }) = self.rare.as_deref_mut() {
            gaps.receive(at);
        }
        self.times = self.times.wrapping_add(at);
        self.weighted = self.weighted.wrapping_add(at.wrapping_mul(index + 1));
    }

    /// The last that was received came at `at`.
    #[inline]
    pub(super) fn received_last(&mut self, at: u64) {
        self.last = at + 1;
    }

    /// When datagrams were received.
    pub(super) fn receptions(&self) -> Receptions {
        Receptions { last: self.last.checked_sub(1), times: self.times, weighted: self.weighted }
    }

    /// Count anew from here on, but for what counts the warm-up, too.
    pub(super) fn count_anew(&mut self) {
        let before = std::mem::take(self);
        let Self { in_flight, last, times, weighted, .. } = before;
        *self = Self { in_flight, last, times, weighted, ..Self::default() };
        if let Some(ColdCounters { varied, lost_ever, received_ever, .. }) = before.rare.as_deref() {
            let (varied, lost_ever, received_ever) = (*varied, *lost_ever, *received_ever);
            *self.rare() = ColdCounters { varied, lost_ever, received_ever, ..ColdCounters::default() };
        }
    }
}

/// What went through a port on one direction of a circuit.
#[derive(Clone, Debug, Default)]
pub(super) struct VcCounters {
    pub(super) vc: VcId,
    pub(super) sent: u64,
    /// Those of them with CLP = 1.
    pub(super) sent_clp: u64,
    /// Those of them with EFCI.
    pub(super) sent_efci: u64,
    pub(super) last_sent: Option<u64>,
    pub(super) lost: u64,
    pub(super) policed: u64,
}
