//! Counting: what was sent, received, lost and what left where.

use std::collections::BTreeMap;

use engpass_model::tcp::Segment;
use engpass_model::wire::arp::BYTES;
use engpass_model::wire::icmp::HEADER_BYTES;

use crate::cell::{Cell, LineId, Vc};
use crate::icmp::Message;
use crate::outcome::{
    Departed, Departing, FlowSeen, FramesSeen, Losing, Lost, Observed, OutageSeen, Place, Times,
};

/// A datagram, a TCP segment, a message of a router, a cell of a generator, or an ARP packet on one line.
#[derive(Clone, Debug)]
pub(crate) struct Datagram {
    /// Traffic it belongs to.
    pub(crate) flow: usize,
    /// It goes against the direction of the flow's data.
    pub(crate) back: bool,
    /// Its number, if it counts: segments without data and messages do not. Of a datagram among the flow's from 0, of a segment among all
    /// that its endpoint has sent from 1.
    pub(crate) number: Option<u64>,
    /// Bytes of the transport header.
    pub(crate) header: u64,
    /// Bytes of payload.
    pub(crate) payload: u64,
    /// Of the payload, bytes that the receiver had or did not want.
    pub(crate) refused: u64,
    /// Whether it is a generator's cell.
    pub(crate) generated: bool,
    /// The segment, and the endpoint that it goes to.
    pub(crate) segment: Option<(Segment, usize)>,
    /// What a router says with it.
    pub(crate) message: Option<Message>,
    /// It is an ARP packet, and nobody's traffic.
    pub(crate) is_arp: bool,
    /// The datagrams for the receivers of a group that go together as this one, each with the receiver's number.
    pub(crate) parts: Vec<usize>,
    pub(crate) receiver: Option<usize>,
    /// A packet of it was marked on its way.
    pub(crate) ce: bool,
    /// When its sender began with it.
    begun: u64,
    /// Bytes of IP payload that have arrived, in so many packets.
    arrived: (u64, u64),
    sent: bool,
    received: bool,
    /// When and where it lost something first.
    lost: Option<(u64, Place)>,
}

impl Datagram {
    /// A UDP datagram.
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
            is_arp: false,
            parts: Vec::new(),
            receiver: None,
            ce: false,
            begun: 0,
            arrived: (0, 0),
            sent: false,
            received: false,
            lost: None,
        }
    }

    /// A generator's cell.
    pub(crate) fn cell(flow: usize) -> Self {
        Self { generated: true, ..Self::udp(flow, 0, 48) }
    }

    /// A segment to an endpoint, the so-manieth of the one that sends it; `back` from the reading end.
    pub(crate) fn segment(flow: usize, back: bool, segment: Segment, number: u64, to: usize) -> Self {
        Self {
            back,
            number: (segment.len > 0 && !back).then_some(number),
            segment: Some((segment, to)),
            ..Self::udp(flow, segment.header_len(), u64::from(segment.len))
        }
    }

    /// A message of a router about a traffic, with so many bytes of the packet that it is about.
    pub(crate) fn message(flow: usize, message: Message, quoted: u64) -> Self {
        let message = Some(message);
        Self { back: true, number: None, message, ..Self::udp(flow, HEADER_BYTES, quoted) }
    }

    /// An ARP packet, which is booked as this flow's.
    pub(crate) fn arp(flow: usize) -> Self {
        Self { back: true, number: None, is_arp: true, ..Self::udp(flow, 0, BYTES) }
    }

    /// Where it is counted: at its receiver if that is one of a group, else at its flow.
    fn counted_at(&self) -> usize {
        self.receiver.unwrap_or(self.flow)
    }

    /// Bytes of IP payload.
    pub(crate) fn bytes(&self) -> u64 {
        self.header + self.payload
    }

    /// A TCP segment without data, a message of a router, or an ARP packet.
    pub(crate) fn controls(&self) -> bool {
        self.segment.is_some() && self.payload == 0 || self.message.is_some() || self.is_arp
    }
}

/// What has become of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    Received,
    Lost,
    Open,
}

/// All counts of a run.
#[derive(Debug)]
pub(crate) struct Ledger {
    /// What happens at or before it is not counted; `None`: everything is.
    warmup: Option<u64>,
    flows: Vec<FlowSeen>,
    /// By flow, the delays of its datagrams, and the round trips of its writing ends.
    delays: Vec<Vec<u64>>,
    round_trips: Vec<Vec<u64>>,
    /// By flow, when datagrams were received, at any time.
    receptions: Vec<Vec<u64>>,
    /// How many datagrams of each flow were begun.
    numbers: Vec<u64>,
    datagrams: Vec<Datagram>,
    departures: BTreeMap<Departing, Departed>,
    frames: BTreeMap<(usize, usize), FramesSeen>,
    losses: BTreeMap<Losing, Lost>,
    /// ARP packets that were lost, which no table of drops has.
    unlisted: BTreeMap<Place, u64>,
}

impl Ledger {
    /// Nothing happened yet.
    /// Of so many flows and receivers of groups, which are counted behind these.
    pub(crate) fn new(flows: usize, warmup: u64) -> Self {
        Self {
            warmup: (warmup > 0).then_some(warmup),
            flows: vec![FlowSeen::default(); flows],
            delays: vec![Vec::new(); flows],
            round_trips: vec![Vec::new(); flows],
            receptions: vec![Vec::new(); flows],
            numbers: vec![0; flows],
            datagrams: Vec::new(),
            departures: BTreeMap::new(),
            frames: BTreeMap::new(),
            losses: BTreeMap::new(),
            unlisted: BTreeMap::new(),
        }
    }

    /// 1 if what happens at `now` is counted, else 0.
    fn unit(&self, now: u64) -> u64 {
        u64::from(self.warmup.is_none_or(|warmup| now > warmup))
    }

    /// A datagram begins; its place here.
    pub(crate) fn begin(&mut self, now: u64, mut datagram: Datagram) -> usize {
        datagram.begun = now;
        if datagram.segment.is_none() && datagram.message.is_none() && !datagram.is_arp {
            datagram.number = Some(self.numbers[datagram.flow]);
            self.numbers[datagram.flow] += 1;
        }
        self.datagrams.push(datagram);
        self.datagrams.len() - 1
    }

    /// A datagram to a group begins, whose receivers have these numbers; its place here.
    pub(crate) fn begin_for_group(
        &mut self,
        now: u64,
        datagram: &Datagram,
        receivers: impl Iterator<Item = usize>,
    ) -> usize {
        let begun = Datagram { number: Some(self.numbers[datagram.flow]), begun: now, ..datagram.clone() };
        let mut parts = Vec::new();
        for receiver in receivers {
            parts.push(self.datagrams.len());
            self.datagrams.push(Datagram { receiver: Some(receiver), ..begun.clone() });
        }
        self.begin(now, Datagram { parts, ..datagram.clone() })
    }

    /// Some parts of a datagram to a group go on without the others; their place here.
    pub(crate) fn goes_apart(&mut self, datagram: usize, parts: &[usize]) -> usize {
        if let [only] = parts {
            return *only;
        }
        let apart = Datagram { parts: parts.to_vec(), ..self.datagrams[datagram].clone() };
        self.datagrams.push(apart);
        self.datagrams.len() - 1
    }

    /// A datagram.
    pub(crate) fn datagram(&self, datagram: usize) -> &Datagram {
        &self.datagrams[datagram]
    }

    /// The last fragment of a datagram was handed over.
    pub(crate) fn sent(&mut self, now: u64, datagram: usize) {
        let unit = self.unit(now);
        for part in self.datagrams[datagram].parts.clone() {
            self.sent(now, part);
        }
        let this = &mut self.datagrams[datagram];
        this.sent = this.parts.is_empty();
        if this.number.is_some() {
            self.flows[this.counted_at()].sent += unit;
            self.flows[this.counted_at()].sent_bytes += unit * this.payload;
        }
    }

    /// A packet is at its host; in how many packets its datagram came if it is complete now, that is, if none is missing.
    pub(crate) fn arrives(&mut self, datagram: usize, bytes: u64, ce: bool) -> Option<u64> {
        let this = &mut self.datagrams[datagram];
        this.arrived.0 += bytes;
        this.arrived.1 += 1;
        this.ce |= ce;
        let complete = this.arrived.0 == this.bytes();
        assert!(!complete || this.lost.is_none(), "a datagram whose packets are all good has lost nothing");
        complete.then_some(this.arrived.1)
    }

    /// A good PDU with the EFCI mark arrived.
    pub(crate) fn marked(&mut self, now: u64, flow: usize) {
        self.flows[flow].marked += self.unit(now);
    }

    /// A datagram is received; the receiver had, or did not want, so much of its payload. Generators' cells have no place
    /// in the sums of times.
    pub(crate) fn received(&mut self, now: u64, datagram: usize, refused: u64) {
        let unit = self.unit(now);
        let this = &mut self.datagrams[datagram];
        assert!(!this.received && this.lost.is_none(), "a datagram has one fate");
        this.received = true;
        this.refused = refused;
        if let Some(number) = this.number {
            let flow = &mut self.flows[this.counted_at()];
            flow.received += unit;
            flow.received_bytes += unit * (this.payload - refused);
            flow.receptions.add((!this.generated).then_some(number), now);
            self.receptions[this.counted_at()].push(now);
            if unit == 1 && !this.generated {
                self.delays[this.counted_at()].push(now - this.begun);
            }
        }
    }

    /// A writing end measures a round trip.
    pub(crate) fn round_trip(&mut self, now: u64, flow: usize, time: u64) {
        if self.unit(now) == 1 {
            self.round_trips[flow].push(time);
        }
    }

    /// A cell or a packet is lost, and with it its datagram.
    pub(crate) fn lose_carrier(&mut self, now: u64, place: Place, datagram: usize) {
        let unit = self.unit(now);
        let Datagram { flow, is_arp, .. } = self.datagrams[datagram];
        if is_arp {
            *self.unlisted.entry(place).or_default() += unit;
            self.datagrams[datagram].lost = Some((now, place));
            return;
        }
        self.losses.entry(Losing { place, flow }).or_default().cells += unit;
        self.lose(now, place, datagram);
    }

    /// A datagram is lost, unless it is already. Of two places at one instant the first in the table of drops counts.
    pub(crate) fn lose(&mut self, now: u64, place: Place, datagram: usize) {
        let unit = self.unit(now);
        for part in self.datagrams[datagram].parts.clone() {
            self.lose(now, place, part);
        }
        let this = &mut self.datagrams[datagram];
        if !this.parts.is_empty() {
            return;
        }
        assert!(!this.received, "a datagram has one fate");
        let flow = this.flow;
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

    /// ARP packets that were lost at such places.
    pub(crate) fn unlisted(&self, is_such: impl Fn(&Place) -> bool) -> u64 {
        self.unlisted.iter().filter(|(place, _)| is_such(place)).map(|(_, lost)| lost).sum()
    }

    /// Whether a message of a router was lost.
    pub(crate) fn has_lost_a_message(&self) -> bool {
        self.datagrams.iter().any(|datagram| datagram.message.is_some() && datagram.lost.is_some())
    }

    /// What outages did to a flow that sends from `start` to `until`.
    pub(crate) fn outage(&self, flow: usize, start: u64, until: u64) -> OutageSeen {
        let begin = self.warmup.unwrap_or(0).max(start);
        let (mut longest, mut since) = (0, begin);
        for &at in self.receptions[flow].iter().filter(|at| **at > begin) {
            longest = longest.max(at - since);
            since = at;
        }
        let last = until.saturating_sub(since);
        let down = |losing: &Losing| losing.flow == flow && matches!(losing.place, Place::Down { .. });
        let lost = self.losses.iter().filter(|(losing, _)| down(losing));
        OutageSeen { longest: longest.max(last), lost: lost.map(|(_, lost)| lost.datagrams).sum() }
    }

    /// The same of what goes to a receiver of a group.
    pub(crate) fn outage_at(&self, receiver: usize, start: u64, until: u64) -> OutageSeen {
        let own = self.datagrams.iter().filter(|datagram| datagram.receiver == Some(receiver));
        let lost = own
            .filter(|datagram| matches!(datagram.lost, Some((at, Place::Down { .. })) if self.unit(at) == 1));
        OutageSeen { lost: lost.count() as u64, ..self.outage(receiver, start, until) }
    }

    /// Whether a receiver of a group got a datagram that another one has lost.
    pub(crate) fn some_got_what_others_lost(&self) -> bool {
        let whole = self.datagrams.iter().filter(|datagram| !datagram.parts.is_empty());
        let mut fates =
            whole.map(|datagram| datagram.parts.iter().map(|part| self.fate(*part)).collect::<Vec<_>>());
        fates.any(|fates| fates.contains(&Fate::Received) && fates.contains(&Fate::Lost))
    }

    /// A cell has left a transmitter.
    pub(crate) fn departed(&mut self, now: u64, line: LineId, vc: &Vc, cell: &Cell) {
        let key = Departing { link: line.link, end: line.end, circuit: vc.circuit, forward: vc.forward };
        let unit = self.unit(now);
        let entry = self.departures.entry(key).or_default();
        entry.cells += unit;
        entry.clp += if cell.clp { unit } else { 0 };
        entry.efci += if cell.efci { unit } else { 0 };
        entry.last = now;
    }

    /// The last bit of a packet has left a transmitter, of whose line it takes so many bytes.
    pub(crate) fn frame_left(&mut self, now: u64, line: LineId, bytes: u64) {
        let unit = self.unit(now);
        let entry = self.frames.entry((line.link, line.end)).or_default();
        entry.frames += unit;
        entry.bytes += unit * bytes;
    }

    /// What has become of a datagram so far.
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

    /// What was seen until `at`, the books of lines and the counts of connections apart.
    pub(crate) fn snapshot(&self, at: u64) -> Observed {
        let mut flows = self.flows.clone();
        for datagram in self.datagrams.iter().filter(|datagram| !datagram.is_arp) {
            let open = datagram.sent && !datagram.received && datagram.lost.is_none();
            flows[datagram.counted_at()].in_flight += u64::from(open && datagram.number.is_some());
        }
        let mut losses = self.losses.clone();
        losses.retain(|_, lost| *lost != Lost::default());
        Observed {
            at,
            flows,
            delays: self.delays.iter().map(|all| Times::of(all)).collect(),
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
        }
    }
}
