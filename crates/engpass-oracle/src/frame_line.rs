//! Lines that carry frames: queues, transmitters and impairments (docs/model.md, "Frames").

use std::collections::VecDeque;

use engpass_model::queue::Queue;
use engpass_model::random::Stream;
use engpass_model::switch::Switch;
use engpass_model::time::Pace;
use engpass_model::unit::Share;
use engpass_model::wire::Framing;
use engpass_testbed::topology::{LinkEnds, NodeKind};
use engpass_testbed::{Testbed, Topology};

use crate::queue::{self, Discipline};
use crate::resolve::kind;
use crate::wire::{GAP, PREAMBLE};

/// The transmitter of one direction of an Ethernet or point-to-point link, with its queue.
pub(crate) struct FrameLine {
    /// Pace of a byte.
    pub(crate) byte: Pace,
    /// Bytes of the gap, which is part of the transmission after the last bit of a frame.
    pub(crate) gap: u64,
    /// Bytes of a frame that queues do not count: preamble and gap.
    pub(crate) around: u64,
    /// Time from the departure of the last bit to its arrival, in picoseconds, latency of the receiving switch included.
    pub(crate) delay: u64,
    /// Queue discipline; `None` at a host.
    pub(crate) discipline: Option<Discipline>,
    /// Accepted packets that have not left, the one in transmission included. With a scheduler, only the one in transmission.
    pub(crate) held: VecDeque<queue::Packet>,
    /// Time since which it holds nothing.
    pub(crate) idle_since: u64,
    /// The current transmission, until its gap is over.
    pub(crate) sending: Option<Sending>,
    /// Begin of the busy period.
    pub(crate) base: u64,
    /// Bytes whose transmission began in the busy period.
    pub(crate) sum: u64,
    /// End of the last transmission; `None` before the first.
    pub(crate) ended: Option<u64>,
    /// Time of the last scheduled check for a next packet.
    pub(crate) asked: Option<u64>,
    /// Time since which the discipline holds packets back although the line is free.
    pub(crate) held_since: Option<u64>,
    pub(crate) chances: Impairments,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Sending {
    pub(crate) packet: usize,
    pub(crate) bytes: u64,
    /// Begin in picoseconds, rounded up.
    pub(crate) begun: u64,
}

/// Random impairments of a line.
pub(crate) struct Impairments {
    random: Stream,
    loss: Share,
    jitter: u64,
    reorder: Option<(Share, u64)>,
    /// The latest arrival among the frames that keep the order.
    last: u64,
}

impl Impairments {
    /// Returns true if a frame is corrupted, and its arrival time. `at` is the arrival without impairments.
    pub(crate) fn draw(&mut self, at: u64) -> (bool, u64) {
        let damaged = self.loss.0 > 0 && self.random.below(Share::WHOLE) < self.loss.0;
        let late = if self.jitter > 0 { self.random.below(self.jitter + 1) } else { 0 };
        let in_order = self.last.max(at + late);
        match self.reorder {
            Some((share, delay)) if self.random.below(Share::WHOLE) < share.0 => (damaged, at + late + delay),
            _ => {
                self.last = in_order;
                (damaged, in_order)
            }
        }
    }
}

impl FrameLine {
    pub(crate) fn new(testbed: &Testbed, topology: &Topology, link: usize, end: usize, seed: u64) -> Self {
        let ends: &LinkEnds = &topology.links[link];
        let name = format!("{}.{}", ends.name, topology.nodes[ends.ends[end]]);
        let line = ends.lines[end];
        let (gap, around) = if line.framing == Framing::Ethernet { (GAP, PREAMBLE + GAP) } else { (0, 0) };
        let latency = match kind(topology, ends.ends[1 - end]) {
            NodeKind::Switch(switch) => match &testbed.switches[switch] {
                Switch::Ethernet(config) => config.latency.0,
                Switch::Atm(_) => panic!("an ATM switch has ATM links"),
            },
            _ => 0,
        };
        let discipline = |config: &Queue| {
            Discipline::new(config, line.rate, Stream::new(seed, format_args!("queue.{name}")))
        };
        Self {
            byte: Pace::of_bits(8, line.rate),
            gap,
            around,
            delay: ends.delay.ps() + latency,
            discipline: ends.queues[end].as_ref().map(discipline),
            held: VecDeque::new(),
            idle_since: 0,
            sending: None,
            base: 0,
            sum: 0,
            ended: None,
            asked: None,
            held_since: None,
            chances: Impairments {
                random: Stream::new(seed, format_args!("line.{name}")),
                loss: ends.loss,
                jitter: ends.jitter.ps(),
                reorder: ends.reorder.map(|(share, delay)| (share, delay.ps())),
                last: 0,
            },
        }
    }

    pub(crate) fn pace(&self) -> Pace {
        self.byte
    }

    /// Returns the bytes of a frame that are physical framing.
    pub(crate) fn physical(&self) -> u64 {
        self.around
    }

    /// Returns the time since which it is idle; `None` during a transmission.
    pub(crate) fn idle_since(&self) -> Option<u64> {
        self.sending.is_none().then(|| self.ended.unwrap_or(0))
    }

    /// Returns the begin of the busy period and the bytes sent in it before the current transmission.
    pub(crate) fn begun(&self) -> Option<(u64, u64)> {
        self.sending.map(|sending| (self.base, self.sum - sending.bytes))
    }

    /// Returns the number of packets in the queue and in transmission.
    pub(crate) fn holds(&self) -> u64 {
        let waiting = match &self.discipline {
            Some(Discipline::Scheduler(scheduler)) => scheduler.waiting().len() as u64,
            _ => 0,
        };
        self.held.len() as u64 + waiting
    }
}

impl std::fmt::Debug for FrameLine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FrameLine").field("held", &self.held).field("sending", &self.sending).finish()
    }
}
