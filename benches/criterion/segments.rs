//! A pair of TCP endpoints without a network: the cost of a segment at both ends.

use std::collections::VecDeque;

use criterion::{Criterion, Throughput};
use engpass_model::tcp::parameters::{RecoveryKind, Role};
use engpass_model::tcp::{Connection, Effects, Profile, Segment, Shared, TcpParameters};
use engpass_model::time::{SECOND, Time};

use crate::processor::ProcessorTime;

/// Data segments of a run.
const SEGMENTS: u64 = 10_000;
/// Time between two segments, and delay from end to end.
const PACE: Time = Time(SECOND / 12_000);
const DELAY: Time = Time(SECOND / 200);

/// A sender, a receiver, and the segments in flight between them.
struct Pair {
    ends: [Connection; 2],
    ways: [VecDeque<(Time, Segment)>; 2],
    now: Time,
    free: Time,
    out: Effects,
}

impl Pair {
    fn new(p: &Shared) -> Self {
        Self {
            ends: [Connection::new(p, Role::Active), Connection::new(p, Role::Passive)],
            ways: [VecDeque::new(), VecDeque::new()],
            now: Time::ZERO,
            free: Time::ZERO,
            out: Effects::default(),
        }
    }

    /// Sends everything that an end may send. Like a simulation, it asks first whether the end wants to transmit.
    fn pull(&mut self, end: usize) {
        let this = &mut self.ends[end];
        while this.wants_to_transmit(self.now) {
            let Some(segment) = this.transmit(self.now) else { break };
            let start = self.free.max(self.now);
            if end == 0 && segment.len > 0 {
                self.free = start + PACE;
            }
            self.ways[end].push_back((start + DELAY, segment));
        }
    }

    fn run(&mut self, segments: u64) -> u64 {
        self.pull(0);
        let until = self.ends[0].segments_sent() + segments;
        while self.ends[0].segments_sent() < until {
            let arrivals = [1, 0].map(|way| self.ways[way].front().map_or(Time::MAX, |first| first.0));
            let end = usize::from(arrivals[1] < arrivals[0]);
            let wakes = [0, 1].map(|end| self.ends[end].next_wake().unwrap_or(Time::MAX));
            let next = arrivals[end].min(wakes[0]).min(wakes[1]);
            self.now = next;
            if arrivals[end] == next {
                let (_, segment) = self.ways[1 - end].pop_front().expect("the path has a segment in flight");
                self.ends[end].on_segment(next, &segment, &mut self.out);
            } else {
                let woken = usize::from(wakes[1] <= next);
                self.ends[woken].on_timer(next, &mut self.out);
            }
            // The application writes one segment at a time, as the send buffer allows.
            while end == 0 && self.out.established {
                let bytes = self.ends[0].next_copy(1 << 16);
                if bytes == 0 || self.ends[0].stats().bytes_sent > self.out.acked + (1 << 17) {
                    break;
                }
                self.ends[0].put(next, bytes, false);
                self.pull(0);
            }
            self.pull(0);
            self.pull(1);
        }
        self.out.acked
    }
}

/// Endpoints with the parameters of the dumbbell, and with the defaults.
pub(crate) fn endpoints(c: &mut Criterion<ProcessorTime>) {
    let linux = Profile::Linux6.parameters(1500);
    let plain = TcpParameters {
        recovery: RecoveryKind::NewReno,
        congestion: serde_json::from_str("\"reno\"").expect("the family has this kind"),
        send_buffer: 1 << 17,
        ..linux.clone()
    };
    let kinds = [("new-reno", plain), ("linux-6", TcpParameters { send_buffer: 1 << 17, ..linux })];
    let mut group = c.benchmark_group("segments");
    group.throughput(Throughput::Elements(SEGMENTS));
    for (name, p) in kinds {
        let mut pair = Pair::new(&p.into());
        pair.run(SEGMENTS);
        group.bench_function(name, |bencher| bencher.iter(|| pair.run(SEGMENTS)));
    }
    group.finish();
}
