//! Counts of datagrams sent, received and lost, and of departures from each transmitter.

use std::collections::BTreeMap;

use engpass_model::tcp::Segment;
use engpass_model::wire::arp::BYTES;
use engpass_model::wire::icmp::HEADER_BYTES;
use engpass_model::wire::igmp::MESSAGE_BYTES;

use crate::cell::{Cell, LineId, Vc};
use crate::engine::keepalive::GRE_BYTES;
use crate::icmp::Message;
use crate::idle::Crossing;
use crate::outcome::{
    Departed, Departing, FlowSeen, FramesSeen, Losing, Lost, Observed, OutageSeen, Place, Times,
};

/// A UDP datagram, a TCP segment, an ICMP message of a router, a cell of a generator, or an ARP packet on one line.
#[derive(Clone, Debug)]
pub(crate) struct Datagram {
    /// Traffic it belongs to.
    pub(crate) flow: usize,
    /// True if the datagram goes against the direction of the flow's data.
    pub(crate) back: bool,
    /// Its number, if it is counted; segments without data and ICMP messages are not. Datagrams of a flow are numbered from 0, segments of an
    /// endpoint from 1.
    pub(crate) number: Option<u64>,
    /// Bytes of the transport header.
    pub(crate) header: u64,
    pub(crate) payload: u64,
    /// Bytes of the payload that the receiver already had or did not want.
    pub(crate) refused: u64,
    /// True for a cell of a generator.
    pub(crate) generated: bool,
    /// The segment and its destination endpoint.
    pub(crate) segment: Option<(Segment, usize)>,
    /// The content of an ICMP message.
    pub(crate) message: Option<Message>,
    /// True for an ARP packet or IGMP message, which belongs to no traffic.
    pub(crate) is_unlisted: bool,
    /// For a multicast datagram, the indices of its parts, one per receiver, that travel together.
    pub(crate) parts: Vec<usize>,
    pub(crate) receiver: Option<usize>,
    /// False if it does not count for its receiver, which was no member when the sender began with it.
    pub(crate) is_counted: bool,
    /// True if one of its packets was marked (ECN).
    pub(crate) ce: bool,
    /// Time at which its sender began it, in picoseconds.
    begun: u64,
    /// Arrived bytes of IP payload, and number of packets in which they came.
    arrived: (u64, u64),
    /// The path of these packets; `None` if they took different ones.
    pub(crate) path: Option<Vec<Crossing>>,
    sent: bool,
    received: bool,
    /// Time and location of its first loss.
    lost: Option<(u64, Place)>,
}

impl Datagram {
    /// Creates a UDP datagram.
    pub(crate) fn udp(flow: usize, header: u64, payload: u64) -> Self {
        Self {
            flow,
            back: false,
            number: Some(0),
            header,
            payload,
            refused: 0,
            generated: false,
            segment: None,
            message: None,
            is_unlisted: false,
            parts: Vec::new(),
            receiver: None,
            is_counted: true,
            ce: false,
            begun: 0,
            arrived: (0, 0),
            path: None,
            sent: false,
            received: false,
            lost: None,
        }
    }

    /// Creates a cell of a generator.
    pub(crate) fn cell(flow: usize) -> Self {
        Self { generated: true, ..Self::udp(flow, 0, 48) }
    }

    /// Creates a segment to the endpoint `to`, number `number` of its sender. `back` is true for segments from the reading end.
    pub(crate) fn segment(flow: usize, back: bool, segment: Segment, number: u64, to: usize) -> Self {
        Self {
            back,
            number: (segment.len > 0 && !back).then_some(number),
            segment: Some((segment, to)),
            ..Self::udp(flow, segment.header_len(), u64::from(segment.len))
        }
    }

    /// Creates an ICMP message of a router about a traffic, which quotes `quoted` bytes of the packet.
    pub(crate) fn message(flow: usize, message: Message, quoted: u64) -> Self {
        let message = Some(message);
        Self { back: true, number: None, message, ..Self::udp(flow, HEADER_BYTES, quoted) }
    }

    /// Creates an ARP packet, which is posted to the flow number `flow`.
    pub(crate) fn arp(flow: usize) -> Self {
        Self { back: true, number: None, is_unlisted: true, ..Self::udp(flow, 0, BYTES) }
    }

    /// Creates an IGMP message, which is posted to the flow number `flow`.
    pub(crate) fn igmp(flow: usize) -> Self {
        Self { back: true, number: None, is_unlisted: true, ..Self::udp(flow, 0, MESSAGE_BYTES) }
    }

    /// Creates a keepalive of a tunnel, which is posted to the flow number `flow`.
    pub(crate) fn keepalive(flow: usize) -> Self {
        Self { back: true, number: None, is_unlisted: true, ..Self::udp(flow, 0, GRE_BYTES) }
    }

    /// Returns the index at which it is counted: that of its receiver in a group, else of its flow.
    fn counted_at(&self) -> usize {
        self.receiver.unwrap_or(self.flow)
    }

    /// Returns its bytes of IP payload.
    pub(crate) fn bytes(&self) -> u64 {
        self.header + self.payload
    }

    /// Returns true for a TCP segment without data, an ICMP message, an ARP packet or an IGMP message.
    pub(crate) fn controls(&self) -> bool {
        self.segment.is_some() && self.payload == 0 || self.message.is_some() || self.is_unlisted
    }
}

/// Delivery status of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    Received,
    Lost,
    Open,
}

/// All counts of a run.
#[derive(Debug)]
pub(crate) struct Ledger {
    /// End of the warm-up in picoseconds; nothing up to it is counted. `None`: no warm-up.
    warmup: Option<u64>,
    flows: Vec<FlowSeen>,
    /// By flow: delays of its datagrams in picoseconds.
    delays: Vec<Vec<u64>>,
    /// By flow: delays less idle delays, and idle delays; `None` once a datagram has no idle delay.
    queueing: Vec<Option<Vec<(u64, u64)>>>,
    /// By flow: delays from the first transmission until the application has the data in order, in picoseconds.
    message_delays: Vec<Vec<u64>>,
    /// By flow: round trips that its writing ends measured, in picoseconds.
    round_trips: Vec<Vec<u64>>,
    /// By flow: times at which datagrams were received, during the warm-up as well.
    receptions: Vec<Vec<u64>>,
    /// By flow: payload that the application got, and when, in order, during the warm-up as well.
    payloads: Vec<Vec<(u64, u64)>>,
    /// Number of datagrams begun, by flow.
    numbers: Vec<u64>,
    datagrams: Vec<Datagram>,
    departures: BTreeMap<Departing, Departed>,
    frames: BTreeMap<(usize, usize), FramesSeen>,
    losses: BTreeMap<Losing, Lost>,
    /// Dropped ARP packets and IGMP messages, which are in no table of drops.
    unlisted: BTreeMap<Place, u64>,
}

impl Ledger {
    /// Creates an empty ledger for `flows` flows and multicast receivers. The receivers come after the flows.
    pub(crate) fn new(flows: usize, warmup: u64) -> Self {
        Self {
            warmup: (warmup > 0).then_some(warmup),
            flows: vec![FlowSeen::default(); flows],
            delays: vec![Vec::new(); flows],
            queueing: vec![Some(Vec::new()); flows],
            message_delays: vec![Vec::new(); flows],
            round_trips: vec![Vec::new(); flows],
            receptions: vec![Vec::new(); flows],
            payloads: vec![Vec::new(); flows],
            numbers: vec![0; flows],
            datagrams: Vec::new(),
            departures: BTreeMap::new(),
            frames: BTreeMap::new(),
            losses: BTreeMap::new(),
            unlisted: BTreeMap::new(),
        }
    }

    /// Returns 1 if `now` is in the measurement window, else 0: the amount that an event adds to a counter.
    fn unit(&self, now: u64) -> u64 {
        u64::from(self.warmup.is_none_or(|warmup| now > warmup))
    }

    /// Records a new datagram and returns its index.
    pub(crate) fn begin(&mut self, now: u64, mut datagram: Datagram) -> usize {
        datagram.begun = now;
        if datagram.segment.is_none() && datagram.message.is_none() && !datagram.is_unlisted {
            datagram.number = Some(self.numbers[datagram.flow]);
            self.numbers[datagram.flow] += 1;
        }
        self.datagrams.push(datagram);
        self.datagrams.len() - 1
    }

    /// Records a new multicast datagram to the receivers with these numbers, each with true if it counts for the receiver. Returns its index.
    pub(crate) fn begin_for_group(
        &mut self,
        now: u64,
        datagram: &Datagram,
        receivers: impl Iterator<Item = (usize, bool)>,
    ) -> usize {
        let begun = Datagram { number: Some(self.numbers[datagram.flow]), begun: now, ..datagram.clone() };
        let mut parts = Vec::new();
        for (receiver, is_counted) in receivers {
            parts.push(self.datagrams.len());
            self.datagrams.push(Datagram { receiver: Some(receiver), is_counted, ..begun.clone() });
        }
        self.begin(now, Datagram { parts, ..datagram.clone() })
    }

    /// Splits off some parts of a multicast datagram that continue without the others. Returns the index of the new datagram.
    pub(crate) fn goes_apart(&mut self, datagram: usize, parts: &[usize]) -> usize {
        if let [only] = parts {
            return *only;
        }
        let apart = Datagram { parts: parts.to_vec(), ..self.datagrams[datagram].clone() };
        self.datagrams.push(apart);
        self.datagrams.len() - 1
    }

    pub(crate) fn datagram(&self, datagram: usize) -> &Datagram {
        &self.datagrams[datagram]
    }

    /// Records that the last fragment of a datagram was handed over.
    pub(crate) fn sent(&mut self, now: u64, datagram: usize) {
        let unit = self.unit(now);
        for part in self.datagrams[datagram].parts.clone() {
            self.sent(now, part);
        }
        let this = &mut self.datagrams[datagram];
        this.sent = this.parts.is_empty();
        if this.number.is_some() && this.is_counted {
            self.flows[this.counted_at()].sent += unit;
            self.flows[this.counted_at()].sent_bytes += unit * this.payload;
        }
    }

    /// Records that a packet reached its host. Returns the number of packets of the datagram if it is complete now.
    pub(crate) fn arrives(
        &mut self,
        datagram: usize,
        bytes: u64,
        ce: bool,
        path: Option<Vec<Crossing>>,
    ) -> Option<u64> {
        let this = &mut self.datagrams[datagram];
        if this.arrived.1 == 0 {
            this.path = path;
        } else if this.path != path {
            this.path = None;
        }
        this.arrived.0 += bytes;
        this.arrived.1 += 1;
        this.ce |= ce;
        let complete = this.arrived.0 == this.bytes();
        assert!(!complete || this.lost.is_none(), "a complete datagram is not lost");
        complete.then_some(this.arrived.1)
    }

    /// Records that the application of a flow got `bytes` bytes of a stream.
    pub(crate) fn reads(&mut self, now: u64, flow: usize, bytes: u64) {
        if bytes > 0 {
            self.payloads[flow].push((now, bytes));
        }
    }

    /// Returns the payload that the application of a flow got, and when.
    pub(crate) fn payloads(&self, flow: usize) -> &[(u64, u64)] {
        &self.payloads[flow]
    }

    /// Records a complete PDU that arrived with the EFCI mark.
    pub(crate) fn marked(&mut self, now: u64, flow: usize) {
        self.flows[flow].marked += self.unit(now);
    }

    /// Records that a datagram is received. `refused` bytes of its payload the receiver already had or did not want. Generators' cells do not enter
    /// the sums of times. `idle` is its idle delay in picoseconds if its packets took one path, and how often instants are rounded up on that path.
    pub(crate) fn received(&mut self, now: u64, datagram: usize, refused: u64, idle: Option<(u64, u64)>) {
        let unit = self.unit(now);
        let this = &mut self.datagrams[datagram];
        assert!(!this.received && this.lost.is_none(), "a datagram is received or lost only once");
        this.received = true;
        this.refused = refused;
        if let Some(number) = this.number {
            let flow = &mut self.flows[this.counted_at()];
            flow.received += unit;
            flow.received_bytes += unit * (this.payload - refused);
            flow.receptions.add((!this.generated).then_some(number), now);
            self.receptions[this.counted_at()].push(now);
            if this.segment.is_none() {
                self.payloads[this.counted_at()].push((now, this.payload));
            }
            if unit == 1 && !this.generated {
                self.delays[this.counted_at()].push(now - this.begun);
                match (&mut self.queueing[this.counted_at()], idle) {
                    (Some(all), Some((idle, roundings))) => {
                        let delay = now - this.begun;
                        // A busy line rounds up once for a busy period, and a line in an idle network for each packet.
                        assert!(
                            delay + roundings >= idle,
                            "a datagram is not faster than in an idle network"
                        );
                        all.push((delay.saturating_sub(idle), idle));
                    }
                    (all, _) => *all = None,
                }
                if this.segment.is_none() {
                    self.message_delays[this.counted_at()].push(now - this.begun);
                }
            }
        }
    }

    /// Records that the application has all data of a segment that was sent first at `first`, and all data before it.
    pub(crate) fn delivered(&mut self, now: u64, flow: usize, first: u64) {
        if self.unit(now) == 1 {
            self.message_delays[flow].push(now - first);
        }
    }

    /// Records a round trip that a writing end measured.
    pub(crate) fn round_trip(&mut self, now: u64, flow: usize, time: u64) {
        if self.unit(now) == 1 {
            self.round_trips[flow].push(time);
        }
    }

    /// Records that a cell or packet is lost, and with it its datagram.
    pub(crate) fn lose_carrier(&mut self, now: u64, place: Place, datagram: usize) {
        let unit = self.unit(now);
        let Datagram { flow, is_unlisted, .. } = self.datagrams[datagram];
        if is_unlisted {
            *self.unlisted.entry(place).or_default() += unit;
            self.datagrams[datagram].lost = Some((now, place));
            return;
        }
        self.losses.entry(Losing { place, flow }).or_default().cells += unit;
        self.lose(now, place, datagram);
    }

    /// Records that a datagram is lost, unless it already is. Of two locations at one instant the first in the table of drops counts.
    pub(crate) fn lose(&mut self, now: u64, place: Place, datagram: usize) {
        let unit = self.unit(now);
        for part in self.datagrams[datagram].parts.clone() {
            self.lose(now, place, part);
        }
        let this = &mut self.datagrams[datagram];
        if !this.parts.is_empty() {
            return;
        }
        assert!(!this.received, "a datagram is received or lost only once");
        let flow = this.flow;
        if !this.is_counted || this.is_unlisted {
            this.lost = this.lost.min(Some((now, place))).or(Some((now, place)));
            return;
        }
        match this.lost {
            None if this.number.is_some() => self.flows[this.counted_at()].lost += unit,
            None => {}
            Some((at, other)) if at == now && place < other => {
                self.losses.entry(Losing { place: other, flow }).or_default().datagrams -= unit;
            }
            Some(_) => return,
        }
        this.lost = Some((now, place));
        self.losses.entry(Losing { place, flow }).or_default().datagrams += unit;
    }

    /// Returns the number of ARP packets, IGMP messages and keepalives, or cells of them, lost at locations for which `is_such` is true.
    pub(crate) fn unlisted(&self, is_such: impl Fn(&Place) -> bool) -> u64 {
        self.unlisted.iter().filter(|(place, _)| is_such(place)).map(|(_, lost)| lost).sum()
    }

    /// Returns true if an ICMP message of a router was lost.
    pub(crate) fn has_lost_a_message(&self) -> bool {
        self.datagrams.iter().any(|datagram| datagram.message.is_some() && datagram.lost.is_some())
    }

    /// Returns the effects of outages on a flow that sends from `start` to `until`; to its last reception without `until`.
    pub(crate) fn outage(&self, flow: usize, start: u64, until: Option<u64>) -> OutageSeen {
        let begin = self.warmup.unwrap_or(0).max(start);
        let (mut longest, mut since) = (0, begin);
        for &at in self.receptions[flow].iter().filter(|at| **at > begin) {
            longest = longest.max(at - since);
            since = at;
        }
        let last = until.map_or(0, |until| until.saturating_sub(since));
        let down = |losing: &Losing| losing.flow == flow && matches!(losing.place, Place::Down { .. });
        let lost = self.losses.iter().filter(|(losing, _)| down(losing));
        OutageSeen { longest: longest.max(last), lost: lost.map(|(_, lost)| lost.datagrams).sum() }
    }

    /// Like `outage`, for the datagrams to one multicast receiver.
    pub(crate) fn outage_at(&self, receiver: usize, start: u64, until: Option<u64>) -> OutageSeen {
        let own = self
            .datagrams
            .iter()
            .filter(|datagram| datagram.receiver == Some(receiver) && datagram.is_counted);
        let lost = own
            .filter(|datagram| matches!(datagram.lost, Some((at, Place::Down { .. })) if self.unit(at) == 1));
        OutageSeen { lost: lost.count() as u64, ..self.outage(receiver, start, until) }
    }

    /// Returns true if one multicast receiver got a datagram that another one lost.
    pub(crate) fn some_got_what_others_lost(&self) -> bool {
        let whole = self.datagrams.iter().filter(|datagram| !datagram.parts.is_empty());
        let counted = |part: &&usize| self.datagrams[**part].is_counted;
        let mut fates = whole.map(|datagram| {
            datagram.parts.iter().filter(counted).map(|part| self.fate(*part)).collect::<Vec<_>>()
        });
        fates.any(|fates| fates.contains(&Fate::Received) && fates.contains(&Fate::Lost))
    }

    /// Records that a cell left a transmitter.
    pub(crate) fn departed(&mut self, now: u64, line: LineId, vc: &Vc, cell: &Cell) {
        let key = Departing { link: line.link, end: line.end, circuit: vc.circuit, forward: vc.forward };
        let unit = self.unit(now);
        let entry = self.departures.entry(key).or_default();
        entry.cells += unit;
        entry.clp += if cell.clp { unit } else { 0 };
        entry.efci += if cell.efci { unit } else { 0 };
        entry.last = now;
    }

    /// Records that the last bit of a packet left a transmitter. `bytes` is its length on the line.
    pub(crate) fn frame_left(&mut self, now: u64, line: LineId, bytes: u64) {
        let unit = self.unit(now);
        let entry = self.frames.entry((line.link, line.end)).or_default();
        entry.frames += unit;
        entry.bytes += unit * bytes;
    }

    /// Returns the delivery status of a datagram so far.
    pub(crate) fn fate(&self, datagram: usize) -> Fate {
        match &self.datagrams[datagram] {
            Datagram { parts, .. } if !parts.is_empty() => {
                let of = |fate: Fate| parts.iter().filter(|part| self.fate(**part) == fate).count();
                match (of(Fate::Received), of(Fate::Lost)) {
                    (0, lost) if lost == parts.len() => Fate::Lost,
                    (0, _) => Fate::Open,
                    _ => Fate::Received,
                }
            }
            Datagram { received: true, .. } => Fate::Received,
            Datagram { lost: Some(_), .. } => Fate::Lost,
            _ => Fate::Open,
        }
    }

    /// Returns the observations up to `at`, without the line ledger and the TCP counts.
    pub(crate) fn snapshot(&self, at: u64) -> Observed {
        let mut flows = self.flows.clone();
        for datagram in self.datagrams.iter().filter(|datagram| !datagram.is_unlisted) {
            let open = datagram.sent && !datagram.received && datagram.lost.is_none();
            flows[datagram.counted_at()].in_flight +=
                u64::from(open && datagram.number.is_some() && datagram.is_counted);
        }
        let mut losses = self.losses.clone();
        losses.retain(|_, lost| *lost != Lost::default());
        Observed {
            at,
            flows,
            delays: self.delays.iter().map(|all| Times::of(all)).collect(),
            queueing: self.queueing.iter().map(|all| Times::of_queueing(all.as_ref()?)).collect(),
            message_delays: (self.message_delays.iter().zip(&self.delays))
                .map(|(all, delays)| Times::of(all).filter(|_| !delays.is_empty()))
                .collect(),
            round_trips: self.round_trips.iter().map(|all| Times::of(all)).collect(),
            departures: self.departures.clone(),
            frames: self
                .frames
                .iter()
                .filter(|(_, seen)| seen.frames > 0)
                .map(|(at, seen)| (*at, seen.clone()))
                .collect(),
            losses,
            idle: Vec::new(),
            books: BTreeMap::new(),
            accounts: BTreeMap::new(),
            queues: BTreeMap::new(),
            busy: BTreeMap::new(),
        }
    }
}
