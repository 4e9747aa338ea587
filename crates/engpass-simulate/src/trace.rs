//! The recording of a run, for a timeline or a capture.

use engpass_frames::FramePort;

use super::tap::TapBuffers;

/// Longest list of events. A longer list is truncated and marked as truncated.
pub const MOST_EVENTS: usize = 10_000;

/// Instants of events, in picoseconds.
#[derive(Clone, Debug, Default)]
pub(super) struct Instants {
    at: Vec<u64>,
    pub(super) truncated: bool,
}

impl Instants {
    fn push(&mut self, at: u64) {
        if self.at.len() < MOST_EVENTS {
            self.at.push(at);
        } else {
            self.truncated = true;
        }
    }

    pub(super) fn seconds(&mut self) -> Vec<f64> {
        self.at.sort_unstable();
        self.at.iter().map(|at| seconds(*at)).collect()
    }
}

/// Recording of a run, for a timeline or a capture.
#[derive(Debug, Default)]
pub(super) struct Trace {
    /// Drops by port.
    pub(super) drops: Vec<Instants>,
    /// Retransmissions by flow.
    pub(super) retransmissions: Vec<Instants>,
    /// Expiries of the retransmission timer by flow.
    pub(super) timeouts: Vec<Instants>,
    /// Datagrams by the counters of their flow or receiver: the number received, and one more than the highest index among them.
    pub(super) receptions: Vec<(u64, u64)>,
    /// Changes of links: time, link, and true if it went down.
    pub(super) changes: Vec<(u64, usize, bool)>,
    /// Changes of tunnels with keepalives: time, index of the end, and true if the end takes the tunnel for down.
    pub(super) tunnel_changes: Vec<(u64, usize, bool)>,
    /// Sampling instants of cell queues, each one picosecond earlier than asked for, because events at the instant itself may still follow.
    pub(super) looks: Vec<u64>,
    /// Sampling instants of frame queues.
    pub(super) instants: Vec<u64>,
    /// Queue lengths by port, as sampled so far.
    pub(super) lengths: Vec<Vec<u64>>,
    /// Present if packets are captured.
    pub(super) taps: Option<Box<TapBuffers>>,
}

impl Trace {
    /// Creates a recording for these numbers of ports, flows, and counters of flows and receivers, with queues sampled at these instants.
    pub(super) fn new(ports: usize, flows: usize, counters: usize, instants: &[u64]) -> Self {
        Self {
            drops: vec![Instants::default(); ports],
            retransmissions: vec![Instants::default(); flows],
            timeouts: vec![Instants::default(); flows],
            receptions: vec![(0, 0); counters],
            changes: Vec::new(),
            tunnel_changes: Vec::new(),
            looks: instants.iter().map(|at| at.saturating_sub(1)).collect(),
            instants: instants.to_vec(),
            // All queues are empty at the beginning.
            lengths: vec![vec![0]; ports],
            taps: None,
        }
    }

    /// Returns the next sampling instant of the cell queue of `port`.
    pub(super) fn next_check(&self, port: usize) -> Option<u64> {
        self.looks.get(self.lengths[port].len()).copied()
    }

    /// Adds a sample of the length of the queue of `port`.
    pub(super) fn record_queue_sample(&mut self, port: usize, length: u64) {
        self.lengths[port].push(length);
    }

    /// Sets the sample number `index` of a router's packet queue, in place of that of the cells behind it.
    pub(super) fn set_queue_sample(&mut self, port: usize, index: usize, bytes: u64) {
        let lengths = &mut self.lengths[port];
        lengths.resize(lengths.len().max(index + 1), 0);
        lengths[index] = bytes;
    }

    /// Samples the queue of a frame port at all sampling instants before `at`. Must be called before a packet arrives at `at`.
    pub(super) fn sample_queue_before(&mut self, port: usize, at: u64, line: &FramePort) {
        while let Some(&instant) = self.instants.get(self.lengths[port].len())
            && instant < at
        {
            self.lengths[port].push(line.backlog(instant).bytes);
        }
    }

    /// Records a drop at `port`.
    pub(super) fn dropped(&mut self, port: usize, at: u64) {
        self.drops[port].push(at);
    }

    /// Records that a link goes down or comes up.
    pub(super) fn changed(&mut self, at: u64, link: usize, down: bool) {
        // A capture needs no changes of links, and may last long.
        if self.taps.is_none() {
            self.changes.push((at, link, down));
        }
    }

    /// Records that an end with keepalives takes its tunnel for down or up.
    pub(super) fn tunnel_changed(&mut self, at: u64, end: usize, down: bool) {
        if self.taps.is_none() {
            self.tunnel_changes.push((at, end, down));
        }
    }

    /// Records the reception of datagram `index` of a flow or receiver.
    pub(super) fn received(&mut self, counters: usize, index: u64) {
        let (count, newest) = &mut self.receptions[counters];
        (*count, *newest) = (*count + 1, (*newest).max(index + 1));
    }

    /// Records a retransmission of a connection of `flow`.
    pub(super) fn on_retransmit(&mut self, flow: usize, at: u64) {
        self.retransmissions[flow].push(at);
    }

    /// Records an expiry of the retransmission timer of a connection of `flow`.
    pub(super) fn record_timeout(&mut self, flow: usize, at: u64) {
        self.timeouts[flow].push(at);
    }
}

/// Returns an instant in seconds.
pub(super) fn seconds(at: u64) -> f64 {
    at as f64 / 1e12
}
