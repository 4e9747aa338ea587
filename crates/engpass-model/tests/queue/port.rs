//! An output port with a line, driven by a list of arrivals. It checks the contract of the discipline's trait.

use std::collections::{BTreeMap, VecDeque};

use engpass_model::queue::{Backlog, Cause, Discipline, Ecn, Packet, PortView, Queue, Scheduler, Verdict};
use engpass_model::random::Stream;
use engpass_model::time::{Pace, Time};

/// Record of a run: what happened to each packet.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Record {
    /// Sent packets with the begin of their transmission.
    pub(crate) sent: Vec<(Time, Packet)>,
    /// Dropped packets with time and cause.
    pub(crate) lost: Vec<(Time, Packet, Cause)>,
}

impl Record {
    /// Begin of the packet's transmission.
    pub(crate) fn start(&self, id: u32) -> Option<Time> {
        self.sent.iter().find(|(_, packet)| packet.id == id).map(|(at, _)| *at)
    }
}

/// Transmission time of the packet.
pub(crate) fn on_the_line(line_rate: u64, packet: &Packet) -> Time {
    Time(Pace::of_bits(8, line_rate).after(packet.bytes.into()))
}

/// The queue that this JSON describes.
pub(crate) fn queue(text: serde_json::Value) -> Queue {
    serde_json::from_value(text).expect("the test's JSON is valid")
}

/// Runs the port with these arrivals, in this order, until it is empty.
pub(crate) fn run(queue: &Queue, line_rate: u64, arrivals: &[(Time, Packet)]) -> Record {
    run_with(queue, Stream::new(1, "queue"), line_rate, arrivals)
}

/// `run` with a discipline that draws from `random`.
pub(crate) fn run_with(queue: &Queue, random: Stream, line_rate: u64, arrivals: &[(Time, Packet)]) -> Record {
    match queue.build(random, line_rate) {
        Discipline::Arrival(mut admission) => {
            let mut record = Record::default();
            // Packets that have not left completely: time at which the last bit leaves, and bytes.
            let mut leaving: VecDeque<(Time, u32)> = VecDeque::new();
            let mut free = Time::ZERO;
            for (now, packet) in arrivals {
                while leaving.front().is_some_and(|(end, _)| end <= now) {
                    leaving.pop_front();
                }
                let bytes = leaving.iter().map(|(_, bytes)| u64::from(*bytes)).sum();
                let backlog = Backlog { bytes, packets: leaving.len() as u64 };
                let view = PortView { backlog, idle_since: leaving.is_empty().then_some(free) };
                match admission.admit(*now, view, packet) {
                    Verdict::Drop(cause) => record.lost.push((*now, *packet, cause)),
                    Verdict::Accept { mark } => {
                        let start = free.max(*now);
                        let ecn = if mark { Ecn::Marked } else { packet.ecn };
                        record.sent.push((start, Packet { ecn, ..*packet }));
                        free = start + on_the_line(line_rate, packet);
                        leaving.push_back((free, packet.bytes));
                    }
                }
            }
            record
        }
        Discipline::Service(scheduler) => Line::new(scheduler, line_rate).run(arrivals),
    }
}

/// An output port with a scheduler.
struct Line {
    scheduler: Box<dyn Scheduler>,
    line_rate: u64,
    /// Length in bytes, by id, of the packets that the scheduler should hold.
    held: BTreeMap<u32, u32>,
    lost: Vec<(Packet, Cause)>,
    free: Time,
    record: Record,
}

impl Line {
    fn new(scheduler: Box<dyn Scheduler>, line_rate: u64) -> Self {
        let (held, lost, record) = (BTreeMap::new(), Vec::new(), Record::default());
        Self { scheduler, line_rate, held, lost, free: Time::ZERO, record }
    }

    fn run(mut self, arrivals: &[(Time, Packet)]) -> Record {
        let mut arrivals = arrivals.iter().peekable();
        loop {
            let ready = self.scheduler.next_ready(self.free);
            assert_eq!(
                ready.is_some(),
                !self.held.is_empty(),
                "a scheduler has a ready time exactly if it holds packets"
            );
            // If the line becomes free at the time of an arrival, it takes the next packet before the arrival.
            match (ready, arrivals.peek()) {
                (Some(ready), next) if next.is_none_or(|(at, _)| ready <= *at) => self.send(ready),
                (_, Some(_)) => {
                    let (now, packet) = arrivals.next().expect("the peeked arrival exists");
                    self.held.insert(packet.id, packet.bytes);
                    self.scheduler.enqueue(*now, *packet, &mut self.lost);
                    self.free = self.free.max(*now);
                    self.book(*now);
                }
                (None, None) => return self.record,
                (Some(_), None) => unreachable!("the first arm handles a ready scheduler"),
            }
        }
    }

    fn send(&mut self, now: Time) {
        if now > self.free {
            // The packet was not ready a picosecond earlier.
            assert_eq!(self.scheduler.dequeue(Time(now.0 - 1), &mut self.lost), None);
        }
        let packet = self.scheduler.dequeue(now, &mut self.lost).expect("a ready scheduler returns a packet");
        assert!(self.held.remove(&packet.id).is_some(), "the scheduler sends only packets that it holds");
        self.record.sent.push((now, packet));
        self.free = now + on_the_line(self.line_rate, &packet);
        self.book(now);
    }

    fn book(&mut self, now: Time) {
        for (packet, cause) in self.lost.drain(..) {
            assert!(self.held.remove(&packet.id).is_some(), "the scheduler drops only packets that it holds");
            self.record.lost.push((now, packet, cause));
        }
        let backlog = self.scheduler.backlog();
        let bytes = self.held.values().map(|bytes| u64::from(*bytes)).sum();
        assert_eq!(
            backlog,
            Backlog { bytes, packets: self.held.len() as u64 },
            "the backlog equals the packets held"
        );
    }
}
