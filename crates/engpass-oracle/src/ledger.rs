//! Counting: what was sent, received, lost and what left where.

use std::collections::BTreeMap;

use crate::cell::{Cell, LineId, Vc};
use crate::outcome::{Departed, Departing, FlowSeen, Losing, Lost, Observed, Place};

/// A datagram, or a cell of a generator.
#[derive(Clone, Debug)]
struct Datagram {
    /// Fragments it is cut into.
    fragments: u64,
    /// Fragments that arrived in good PDUs.
    good: u64,
    sent: bool,
    received: bool,
    lost: bool,
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
    datagrams: Vec<Vec<Datagram>>,
    departures: BTreeMap<Departing, Departed>,
    losses: BTreeMap<Losing, Lost>,
}

impl Ledger {
    /// Nothing happened yet.
    pub(crate) fn new(flows: usize, warmup: u64) -> Self {
        Self {
            warmup: (warmup > 0).then_some(warmup),
            flows: vec![FlowSeen::default(); flows],
            datagrams: vec![Vec::new(); flows],
            departures: BTreeMap::new(),
            losses: BTreeMap::new(),
        }
    }

    /// 1 if what happens at `now` is counted, else 0.
    fn unit(&self, now: u64) -> u64 {
        u64::from(self.warmup.is_none_or(|warmup| now > warmup))
    }

    /// A flow begins its next datagram; its number.
    pub(crate) fn begin(&mut self, flow: usize, fragments: u64) -> usize {
        let datagram = Datagram { fragments, good: 0, sent: false, received: false, lost: false };
        self.datagrams[flow].push(datagram);
        self.datagrams[flow].len() - 1
    }

    /// The last fragment of a datagram was handed over.
    pub(crate) fn sent(&mut self, now: u64, flow: usize, datagram: usize) {
        self.datagrams[flow][datagram].sent = true;
        self.flows[flow].sent += self.unit(now);
    }

    /// A fragment arrived in a good PDU; whether its datagram is complete now, that is, whether none is missing.
    pub(crate) fn good(&mut self, flow: usize, datagram: usize) -> bool {
        let datagram = &mut self.datagrams[flow][datagram];
        datagram.good += 1;
        let complete = datagram.good == datagram.fragments;
        assert!(!complete || !datagram.lost, "a datagram whose fragments are all good has lost nothing");
        complete
    }

    /// A good PDU with the EFCI mark arrived.
    pub(crate) fn marked(&mut self, now: u64, flow: usize) {
        self.flows[flow].marked += self.unit(now);
    }

    /// Fragments of a datagram.
    pub(crate) fn fragments(&self, flow: usize, datagram: usize) -> u64 {
        self.datagrams[flow][datagram].fragments
    }

    /// A datagram is received. Generators' cells have no place in the sums of times.
    pub(crate) fn received(&mut self, now: u64, flow: usize, datagram: usize, generated: bool) {
        let entry = &mut self.datagrams[flow][datagram];
        assert!(!entry.received && !entry.lost, "a datagram has one fate");
        entry.received = true;
        self.flows[flow].received += self.unit(now);
        self.flows[flow].receptions.add((!generated).then_some(datagram as u64), now);
    }

    /// A cell is lost, and with it its datagram.
    pub(crate) fn lose_cell(&mut self, now: u64, place: Place, flow: usize, datagram: usize) {
        let unit = self.unit(now);
        self.losses.entry(Losing { place, flow }).or_default().cells += unit;
        self.lose(now, place, flow, datagram);
    }

    /// A datagram is lost, unless it is already.
    pub(crate) fn lose(&mut self, now: u64, place: Place, flow: usize, datagram: usize) {
        let unit = self.unit(now);
        let entry = &mut self.datagrams[flow][datagram];
        assert!(!entry.received, "a datagram has one fate");
        if !entry.lost {
            entry.lost = true;
            self.flows[flow].lost += unit;
            self.losses.entry(Losing { place, flow }).or_default().datagrams += unit;
        }
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

    /// What has become of a datagram so far.
    pub(crate) fn fate(&self, flow: usize, datagram: usize) -> Fate {
        match &self.datagrams[flow][datagram] {
            Datagram { received: true, .. } => Fate::Received,
            Datagram { lost: true, .. } => Fate::Lost,
            _ => Fate::Open,
        }
    }

    /// What was seen until `at`, the books of lines apart.
    pub(crate) fn snapshot(&self, at: u64) -> Observed {
        let mut flows = self.flows.clone();
        for (flow, datagrams) in flows.iter_mut().zip(&self.datagrams) {
            let in_flight = datagrams.iter().filter(|d| d.sent && !d.received && !d.lost);
            flow.in_flight = in_flight.count() as u64;
        }
        let mut losses = self.losses.clone();
        losses.retain(|_, lost| *lost != Lost::default());
        let departures = self.departures.clone();
        Observed { at, flows, departures, losses, idle: Vec::new(), books: BTreeMap::new() }
    }
}
