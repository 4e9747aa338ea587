//! Counters of flows and circuits in the measurement window.

use engpass_cells::{CellDropCause, VcId};
use engpass_model::queue::Cause;
use engpass_model::source::Transfer;
use engpass_model::source::transfer::SENTINEL_BYTES;

use super::histogram::Histogram;
use super::queueing::{IdleKey, Queueing};

/// Counters of a flow, or of one receiver of it.
#[derive(Clone, Debug, Default)]
pub(super) struct FlowCounters {
    pub(super) sent: u64,
    pub(super) sent_bytes: u64,
    pub(super) received: u64,
    pub(super) received_bytes: u64,
    /// Sent and neither received nor lost; for generators computed at the end.
    pub(super) in_flight: u64,
    /// See [`Receptions`]: one more than the time of the last reception, and the two sums.
    last: u64,
    times: u64,
    weighted: u64,
    /// Delays that are message delays, too: from the start of sending a datagram to its reception by the application.
    delays: Histogram,
    /// The part of each delay that an idle network would not cause.
    queueing: Queueing,
    /// Round-trip times that TCP measured at the writing ends.
    pub(super) round_trips: Histogram,
    rare: Option<Box<ColdCounters>>,
}

/// Cold state: properties of few flows, and counters needed only after losses or marks, or for generators.
#[derive(Clone, Debug, Default)]
pub(super) struct ColdCounters {
    /// Its datagrams differ in length.
    varied: bool,
    pub(super) lost: u64,
    /// Good PDUs with EFCI in their last cell; marked cells of a generator.
    pub(super) marked: u64,
    /// Cells of a generator lost and received so far, warm-up included.
    pub(super) lost_ever: u64,
    pub(super) received_ever: u64,
    /// Bytes of datagrams received in the warm-up.
    pub(super) bytes_before: u64,
    pub(super) places: Vec<Losses>,
    /// Gaps between receptions; kept only if events may take lines down.
    gaps: Option<Gaps>,
    /// A transfer of a given number of messages.
    transfer: Option<TransferCounter>,
    /// Delays of segments that are no message delays: the application had the data before, or got it later.
    segments: Histogram,
    /// Message delays of the data that other segments than its own brought to the application.
    late: Histogram,
    /// A datagram has no idle delay, because its packets took different paths.
    no_queueing: bool,
}

/// A transfer as its receiver measures it, warm-up included.
#[derive(Clone, Copy, Debug)]
struct TransferCounter {
    /// Payload of all its messages.
    all: u64,
    sentinels: bool,
    /// Payload received so far.
    bytes: u64,
    /// Beginning and end of the time that counts: of the payload so far, or of the first two sentinels.
    begin: Option<u64>,
    end: Option<u64>,
}

impl TransferCounter {
    fn receive(&mut self, bytes: u64, at: u64) {
        let is_sentinel = self.sentinels && bytes <= SENTINEL_BYTES;
        match (self.sentinels, self.end) {
            // The receiver has ended.
            (true, Some(_)) => return,
            (true, None) if is_sentinel => {
                if self.begin.is_some() {
                    self.end = Some(at);
                }
                self.begin.get_or_insert(at);
                return;
            }
            (true, None) => {}
            (false, _) => {
                self.begin.get_or_insert(at);
                self.end = Some(at);
            }
        }
        self.bytes += bytes;
    }
}

/// Times between the receptions of a flow, in picoseconds.
#[derive(Clone, Copy, Debug)]
struct Gaps {
    /// Start of the current gap: the last reception, or the start of counting.
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

/// Losses of a flow at one place.
#[derive(Clone, Copy, Debug)]
pub(super) struct Losses {
    pub(super) place: DropLocation,
    /// Cells, or frames.
    pub(super) cells: u64,
    /// Datagrams whose first loss was here.
    pub(super) datagrams: u64,
}

/// Fingerprint of all receptions, warm-up included: equal runs have equal values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Receptions {
    /// Time of the last reception, in ps.
    pub last: Option<u64>,
    /// Sum of the reception times, modulo 2^64; zero for generators.
    pub times: u64,
    /// Sum of reception time * (datagram index + 1), modulo 2^64; zero for generators.
    pub weighted: u64,
}

/// Location and cause of a loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum DropLocation {
    /// The cell queue of this port.
    Port(usize, CellDropCause),
    /// The policer in front of this port.
    Policer(usize),
    /// The queue of this frame port.
    Queue(usize, Cause),
    /// The line of this frame port: corrupted.
    Line(usize),
    /// The line of this frame port, or the queue in front of it, during an outage.
    Down(usize),
    /// The host at the far end of this frame port's line, because another member of its bond is active.
    Inactive(usize),
    /// This router: the TTL has expired.
    Ttl(usize),
    /// This router: the packet has the DF bit and exceeds the MTU of the next hop.
    TooBig(usize),
    /// This router: the next node has not answered its ARP requests.
    NoReply(usize),
    /// This router: its hold queue for a neighbour without a known address is full.
    HoldFull(usize),
    /// This engine of a router: its input queue is full.
    InputFull(usize),
    /// This node, which copies multicast packets: it knows no member behind the branch. Or this host, which is no member.
    NoMember(usize),
    /// AAL5 reassembly at the receiving host, or at this router.
    Reassembly(Option<u32>),
    /// This router at the end of a tunnel: reassembly of an outer packet has timed out.
    Timeout(usize),
    /// This router at the end of a tunnel: no reassembly memory for a fragment.
    Memory(usize),
    /// This router at the end of a tunnel with sequence numbers: a later packet has arrived before.
    OutOfSequence(usize),
    /// This router at the entry of a tunnel whose keepalives do not come back.
    TunnelDown(usize),
    ReceiveBuffer,
}

impl DropLocation {
    /// Returns true if the loss is at the receiving host.
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
    /// Creates the counters of a flow; `varied` if its datagrams differ in length.
    pub(super) fn new(varied: bool) -> Self {
        let rare = varied.then(|| Box::new(ColdCounters { varied, ..ColdCounters::default() }));
        Self { rare, ..Self::default() }
    }

    /// Returns true if its datagrams differ in length.
    pub(super) fn is_varied(&self) -> bool {
        self.rare.as_ref().is_some_and(|rare| rare.varied)
    }

    #[inline]
    pub(super) fn rare(&mut self) -> &mut ColdCounters {
        self.rare.get_or_insert_default()
    }

    /// Returns the bytes of datagrams received, warm-up included. Not valid after [`Self::reset_counters`].
    pub(super) fn ever_bytes(&self) -> u64 {
        self.received_bytes + self.rare.as_ref().map_or(0, |rare| rare.bytes_before)
    }

    /// Counts `count` datagrams sent, of `bytes` each; `counts` if in the measurement window.
    pub(super) fn count_sent(&mut self, count: u64, bytes: u64, counts: bool) {
        self.in_flight += count;
        if counts {
            self.sent += count;
            self.sent_bytes += count * bytes;
        }
    }

    /// Starts to measure a transfer.
    pub(super) fn note_transfer(&mut self, transfer: Transfer) {
        let Transfer { bytes: all, sentinels } = transfer;
        self.rare().transfer = Some(TransferCounter { all, sentinels, bytes: 0, begin: None, end: None });
    }

    /// Counts payload that its application gets at `at`, if it is part of a transfer.
    #[inline]
    pub(super) fn receive_payload(&mut self, bytes: u64, at: u64) {
        if let Some(ColdCounters { transfer: Some(transfer), .. }) = self.rare.as_deref_mut()
            && bytes > 0
        {
            transfer.receive(bytes, at);
        }
    }

    /// Returns the payload of a transfer received so far, and begin and end of the time that its receiver measures; `None` without a transfer. A stream
    /// of bytes (`is_stream`) has no end before all have arrived.
    pub(super) fn transfer(&self, is_stream: bool) -> Option<(u64, Option<[u64; 2]>)> {
        let TransferCounter { all, bytes, begin, end, .. } = self.rare.as_ref()?.transfer?;
        let times = begin.zip(end).map(|(begin, end)| [begin, end]);
        Some((bytes, times.filter(|_| !is_stream || bytes == all)))
    }

    /// Starts to record gaps between receptions at `begin`.
    pub(super) fn note_gaps(&mut self, begin: u64) {
        self.rare().gaps = Some(Gaps { since: begin, longest: 0 });
    }

    /// Returns the longest gap between receptions, for a flow that sends until `until`, or until its transfer has arrived; `None` if gaps are not
    /// recorded.
    pub(super) fn longest_gap(&self, until: u64) -> Option<u64> {
        let rare = self.rare.as_ref()?;
        let gaps = rare.gaps?;
        // A receiver that waits for sentinels knows the end also if datagrams were lost.
        let arrived = rare.transfer.is_some_and(|transfer| {
            transfer.end.is_some() && (transfer.sentinels || transfer.bytes == transfer.all)
        });
        Some(if arrived { gaps.longest } else { gaps.longest.max(until.saturating_sub(gaps.since)) })
    }

    /// Returns a copy of the cold counters; all are zero if nothing has allocated them.
    pub(super) fn cold_counters(&self) -> ColdCounters {
        self.rare.as_deref().cloned().unwrap_or_default()
    }

    pub(super) fn losses(&mut self, place: DropLocation) -> &mut Losses {
        self.rare().losses(place)
    }

    /// Records that the datagram with this index was received at `at`, in picoseconds.
    #[inline]
    pub(super) fn receive(&mut self, index: u64, at: u64) {
        self.note_last_reception(at);
        if let Some(ColdCounters { gaps: Some(gaps), .. }) = self.rare.as_deref_mut() {
            gaps.receive(at);
        }
        self.times = self.times.wrapping_add(at);
        self.weighted = self.weighted.wrapping_add(at.wrapping_mul(index + 1));
    }

    /// Counts the delay and the queueing delay of a datagram that its application has on arrival, and never had before. Returns false, without effect, if
    /// its idle delay is not the one used last.
    #[inline(always)]
    pub(super) fn add_delays(&mut self, key: IdleKey, delay: u64) -> bool {
        let known = self.queueing.add(key, delay);
        if known {
            self.delays.add(delay);
        }
        known
    }

    /// Counts the delay of a datagram that its application has on arrival, and never had before.
    pub(super) fn add_delay(&mut self, delay: u64) {
        self.delays.add(delay);
    }

    /// Returns the queueing delays, to change their idle delay.
    pub(super) fn queueing_mut(&mut self) -> &mut Queueing {
        &mut self.queueing
    }

    /// Notes that a datagram has no idle delay.
    pub(super) fn lose_queueing(&mut self) {
        self.rare().no_queueing = true;
    }

    /// Returns the queueing delays; `None` if a datagram has none.
    pub(super) fn queueing(&self) -> Option<&Queueing> {
        let lost = self.rare.as_ref().is_some_and(|rare| rare.no_queueing);
        (!lost).then_some(&self.queueing)
    }

    /// Counts the delay of any other segment.
    pub(super) fn add_segment_delay(&mut self, delay: u64) {
        self.rare().segments.add(delay);
    }

    /// Counts the message delay of data that another segment than its own has brought to the application.
    pub(super) fn add_late_delay(&mut self, delay: u64) {
        self.rare().late.add(delay);
    }

    /// Returns the delays of datagrams.
    pub(super) fn network_delays(&self) -> Histogram {
        self.delays_and(|rare| &rare.segments)
    }

    /// Returns the message delays.
    pub(super) fn message_delays(&self) -> Histogram {
        self.delays_and(|rare| &rare.late)
    }

    fn delays_and(&self, others: fn(&ColdCounters) -> &Histogram) -> Histogram {
        self.rare.as_deref().map_or_else(|| self.delays.clone(), |rare| self.delays.merged(others(rare)))
    }

    /// Notes the time of the last reception.
    #[inline]
    pub(super) fn note_last_reception(&mut self, at: u64) {
        self.last = at + 1;
    }

    /// Returns the fingerprint of all receptions.
    pub(super) fn receptions(&self) -> Receptions {
        Receptions { last: self.last.checked_sub(1), times: self.times, weighted: self.weighted }
    }

    /// Restarts counting, except for values that include the warm-up.
    pub(super) fn reset_counters(&mut self) {
        let before = std::mem::take(self);
        let Self { in_flight, last, times, weighted, queueing, rare, .. } = before;
        *self = Self { in_flight, last, times, weighted, queueing: queueing.reset(), ..Self::default() };
        if let Some(ColdCounters { varied, lost_ever, received_ever, transfer, .. }) = rare.as_deref() {
            let (varied, lost_ever, received_ever) = (*varied, *lost_ever, *received_ever);
            let transfer = *transfer;
            *self.rare() =
                ColdCounters { varied, lost_ever, received_ever, transfer, ..ColdCounters::default() };
        }
    }
}

/// Counters of one circuit direction at one port.
#[derive(Clone, Debug, Default)]
pub(super) struct VcCounters {
    pub(super) vc: VcId,
    pub(super) sent: u64,
    /// Cells sent with CLP = 1.
    pub(super) sent_clp: u64,
    /// Cells sent with EFCI.
    pub(super) sent_efci: u64,
    pub(super) last_sent: Option<u64>,
    pub(super) lost: u64,
    pub(super) policed: u64,
}
