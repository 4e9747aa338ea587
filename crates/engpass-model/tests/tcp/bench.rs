//! Two TCP connections over two pipes with rate, delay, queue and loss.

use std::collections::VecDeque;

use engpass_model::random::Stream;
use engpass_model::tcp::parameters::Role;
use engpass_model::tcp::{Connection, Effects, Flags, Segment, SegmentBurst, State, TcpParameters};
use engpass_model::time::{SECOND, Time};

pub(crate) const fn ms(milliseconds: u64) -> Time {
    Time(milliseconds * (SECOND / 1000))
}

pub(crate) const fn us(microseconds: u64) -> Time {
    Time(microseconds * (SECOND / 1_000_000))
}

/// Loss pattern of a pipe.
#[derive(Clone, Debug)]
pub(crate) enum Loss {
    None,
    /// The listed segments, counted from 0 among segments with data or FIN.
    Listed(Vec<u64>),
    /// Segment number `first`, counted from 0, and then every n-th.
    EveryFrom {
        n: u64,
        first: u64,
    },
    /// Every n-th segment with data.
    Every(u64),
    /// Each segment with this probability in millionths.
    Random {
        millionths: u64,
        stream: Stream,
    },
}

/// The MTU of a pipe, and how its router signals that it dropped a longer packet.
#[derive(Clone, Debug)]
pub(crate) struct Mtu {
    /// MTU in bytes from each of these times on.
    pub(crate) changes: Vec<(Time, u64)>,
    /// A signal arrives after `delay` plus a random time of up to `late`.
    pub(crate) delay: Time,
    pub(crate) late: Time,
    /// Signals per thousand that are lost, are duplicated, or quote an older sequence number.
    pub(crate) lost: u64,
    pub(crate) twice: u64,
    pub(crate) older: u64,
    pub(crate) stream: Stream,
    /// Signals on their way: arrival time, sequence number, MTU.
    pub(crate) signals: Vec<(Time, u64, u64)>,
}

impl Mtu {
    /// A router that signals every drop, after `delay`.
    pub(crate) fn new(changes: Vec<(Time, u64)>, delay: Time) -> Self {
        let stream = Stream::new(1, "signals");
        Self { changes, delay, late: Time(1), lost: 0, twice: 0, older: 0, stream, signals: vec![] }
    }

    /// Whether the packet is dropped because it is too long.
    fn drops(&mut self, now: Time, seq: u64, bytes: u64) -> bool {
        let mtu =
            self.changes.iter().rev().find(|(from, _)| *from <= now).map_or(u64::MAX, |change| change.1);
        if bytes <= mtu {
            return false;
        }
        let chance = |stream: &mut Stream, share| stream.below(1000) < share;
        if !chance(&mut self.stream, self.lost) {
            for _ in 0..1 + u64::from(chance(&mut self.stream, self.twice)) {
                let older = chance(&mut self.stream, self.older);
                let seq = if older { seq.saturating_sub(self.stream.below(200_000)) } else { seq };
                let at = now + self.delay + Time(self.stream.below(self.late.ps()));
                self.signals.push((at, seq, mtu));
            }
        }
        true
    }

    fn next(&self) -> Option<Time> {
        self.signals.iter().map(|signal| signal.0).min()
    }

    fn arrive(&mut self, now: Time) -> Option<(u64, u64)> {
        let index = self.signals.iter().position(|signal| signal.0 <= now)?;
        let (_, seq, mtu) = self.signals.remove(index);
        Some((seq, mtu))
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Pipe {
    /// Line rate in bit/s; `None` for no serialization.
    pub(crate) rate: Option<u64>,
    pub(crate) delay: Time,
    /// Capacity of the queue in bytes, the segment in transmission included.
    pub(crate) queue: u64,
    /// Segments that find more than this number of bytes are marked.
    pub(crate) mark_above: Option<u64>,
    pub(crate) loss: Loss,
    /// Share of the segments, in millionths, that arrive up to `late` later, as (share, late, random stream).
    pub(crate) late: Option<(u64, Time, Stream)>,
    /// Sets ECN-Echo on all segments.
    pub(crate) echoes: bool,
    /// Drops and signals packets that are too long. The MTU may change over time.
    pub(crate) mtu: Option<Mtu>,
    busy_until: Time,
    /// Segments on their way, by arrival time.
    way: VecDeque<(Time, u64, Segment)>,
    pub(crate) seen: u64,
    pub(crate) seen_data: u64,
    pub(crate) dropped: u64,
    pub(crate) carried_bytes: u64,
    pub(crate) dropped_payload: u64,
}

impl Pipe {
    pub(crate) fn new(rate: Option<u64>, delay: Time) -> Self {
        Self {
            rate,
            delay,
            queue: u64::MAX,
            mark_above: None,
            loss: Loss::None,
            late: None,
            echoes: false,
            mtu: None,
            busy_until: Time::ZERO,
            way: VecDeque::new(),
            seen: 0,
            seen_data: 0,
            dropped: 0,
            carried_bytes: 0,
            dropped_payload: 0,
        }
    }

    /// Bytes that wait for the line.
    fn backlog(&self, now: Time) -> u64 {
        match self.rate {
            None => 0,
            Some(rate) => {
                let wait = u128::from(self.busy_until.saturating_sub(now).ps());
                (wait * u128::from(rate) / 8 / u128::from(SECOND)) as u64
            }
        }
    }

    fn loses(&mut self, data: bool) -> bool {
        let with_data = self.seen_data;
        match &mut self.loss {
            Loss::None => false,
            Loss::Listed(list) => data && list.contains(&with_data),
            Loss::EveryFrom { n, first } => data && with_data % *n == *first,
            Loss::Every(n) => data && with_data % *n == *n - 1,
            Loss::Random { millionths, stream } => stream.below(1_000_000) < *millionths,
        }
    }

    fn send(&mut self, now: Time, mut segment: Segment) {
        let data = segment.len > 0 || segment.flags.has(Flags::FIN);
        let lost = self.loses(data);
        self.seen += 1;
        self.seen_data += u64::from(data);
        let bytes = segment.wire_len() + 20;
        let backlog = self.backlog(now);
        let too_big = self.mtu.as_mut().is_some_and(|mtu| mtu.drops(now, segment.seq, bytes));
        if lost || too_big || backlog + bytes > self.queue {
            self.dropped += 1;
            self.dropped_payload += segment.payload();
            return;
        }
        if segment.ect && self.mark_above.is_some_and(|mark| backlog > mark) {
            segment.ce = true;
        }
        if self.echoes {
            segment.flags |= Flags::ECE;
        }
        self.carried_bytes += bytes;
        let start = self.busy_until.max(now);
        let end = match self.rate {
            None => now,
            Some(rate) => {
                start + Time((u128::from(bytes) * 8 * u128::from(SECOND) / u128::from(rate)) as u64)
            }
        };
        self.busy_until = end;
        let mut at = end + self.delay;
        if let Some((share, late, stream)) = &mut self.late
            && stream.below(1_000_000) < *share
        {
            at += Time(stream.below(late.ps()));
        }
        let entry = (at, self.seen, segment);
        if self.way.back().is_none_or(|last| last.0 <= at) {
            self.way.push_back(entry);
        } else {
            let place = self.way.partition_point(|(time, order, _)| (*time, *order) <= (at, self.seen));
            self.way.insert(place, entry);
        }
    }

    fn next(&self) -> Option<Time> {
        self.way.front().map(|first| first.0)
    }

    fn arrive(&mut self, now: Time) -> Option<Segment> {
        (self.next()? <= now).then(|| self.way.pop_front().expect("the peeked segment exists").2)
    }
}

/// How the receiving application reads.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Reading {
    AsItComes,
    /// This number of bytes at every multiple of an interval.
    Slowly(u64, Time),
}

/// A sender `a` that writes `total` bytes in messages, and a receiver `b`.
pub(crate) struct Bench {
    pub(crate) a: Connection,
    pub(crate) b: Connection,
    pub(crate) forward: Pipe,
    pub(crate) back: Pipe,
    pub(crate) now: Time,
    pub(crate) total: u64,
    pub(crate) message: u64,
    pub(crate) close_at_end: bool,
    pub(crate) reading: Reading,
    next_read: Option<Time>,
    pub(crate) written: u64,
    /// Remaining bytes of the current write that the socket has not accepted.
    pending: u64,
    pub(crate) out_a: Effects,
    pub(crate) out_b: Effects,
    pub(crate) read: u64,
    pub(crate) steps: u64,
    same_instant: u64,
    /// Segments that `a` sent, if recorded.
    pub(crate) log: Option<Vec<(Time, Segment)>>,
    /// Whether segments are taken in bursts.
    pub(crate) in_bursts: bool,
    /// Bytes that may be retransmitted: those outstanding when a signal of a smaller MTU was accepted, or when a timer or recovery caused a
    /// retransmission.
    pub(crate) may_repeat: u64,
}

impl Bench {
    pub(crate) fn new(a: &TcpParameters, b: &TcpParameters, forward: Pipe, back: Pipe) -> Self {
        Self {
            a: Connection::new(a, Role::Active),
            b: Connection::new(b, Role::Passive),
            forward,
            back,
            now: Time::ZERO,
            total: 0,
            message: 1 << 16,
            close_at_end: true,
            reading: Reading::AsItComes,
            next_read: None,
            written: 0,
            pending: 0,
            out_a: Effects::default(),
            out_b: Effects::default(),
            read: 0,
            steps: 0,
            same_instant: 0,
            log: None,
            in_bursts: false,
            may_repeat: 0,
        }
    }

    pub(crate) fn transfer(mut self, total: u64, message: u64) -> Self {
        (self.total, self.message) = (total, message);
        self
    }

    pub(crate) fn reading(mut self, bytes: u64, every: Time) -> Self {
        self.reading = Reading::Slowly(bytes, every);
        self.next_read = Some(every);
        self.b.read_automatically(false);
        self
    }

    fn application(&mut self) {
        if self.a.state() == State::Listen || self.a.state() == State::SynSent {
            return;
        }
        loop {
            if self.pending == 0 {
                self.pending = self.message.min(self.total - self.written);
            }
            if self.pending == 0 {
                break;
            }
            let taken = self.a.write(self.now, self.pending);
            self.written += taken;
            self.pending -= taken;
            self.pull();
            if taken == 0 {
                break;
            }
        }
        if self.written == self.total && self.close_at_end {
            self.close_at_end = false;
            self.a.close(self.now, &mut self.out_a);
        }
    }

    /// Adds `bytes` to the bytes that the application writes.
    pub(crate) fn write_more(&mut self, bytes: u64) {
        self.total += bytes;
        self.application();
        self.pull();
    }

    fn pull(&mut self) {
        for (end, pipe) in [(&mut self.a, &mut self.forward), (&mut self.b, &mut self.back)] {
            let mut burst: Option<SegmentBurst> = None;
            loop {
                let wanted = end.wants_to_transmit(self.now);
                let limited = end.limited_by(self.now);
                let mut segment = Segment::default();
                let mut shut = None;
                if self.in_bursts && burst.is_none() {
                    burst = end.start_burst(self.now).map_err(|limited| shut = limited).ok();
                }
                let formed = match &mut burst {
                    Some(burst) if burst.goes_on() => {
                        end.next_in_burst(burst, self.now, &mut segment);
                        Ok(())
                    }
                    over => match over.take().map_or(shut, |burst| end.limited_by_after(&burst)) {
                        None => end.next_segment(self.now, &mut segment),
                        Some(limited) => Err(limited),
                    },
                };
                assert_eq!(
                    formed.err(),
                    Some(limited).filter(|_| !wanted),
                    "the connection names what limits it"
                );
                let segment = formed.ok().map(|()| segment);
                assert_eq!(wanted, segment.is_some(), "an announced segment is sent");
                let Some(segment) = segment else { break };
                assert!(
                    u64::from(segment.len) <= end.segment_size(),
                    "{} B: longer than a segment",
                    segment.len
                );
                if let Some(log) =
                    self.log.as_mut().filter(|_| segment.len > 0 || segment.flags.has(Flags::FIN))
                {
                    log.push((self.now, segment));
                }
                pipe.send(self.now, segment);
            }
        }
    }

    /// Processes one instant: arrivals, timers, applications, transmissions. Returns false if no event is left.
    pub(crate) fn step(&mut self, until: Time) -> bool {
        let signal = self.forward.mtu.as_ref().and_then(Mtu::next);
        let wakes = [
            self.forward.next(),
            self.back.next(),
            self.a.next_wake(),
            self.b.next_wake(),
            self.next_read,
            signal,
        ];
        let started = self.steps > 0;
        self.steps += 1;
        if started {
            let Some(next) = wakes.into_iter().flatten().min() else { return false };
            assert!(next >= self.now, "the next event is not in the past");
            if next > until {
                self.now = until;
                return false;
            }
            self.same_instant = if next == self.now { self.same_instant + 1 } else { 0 };
            assert!(self.same_instant < 10_000, "time stands still at {:?}", self.now);
            self.now = next;
        }
        let causes = |end: &Connection| {
            let stats = end.stats();
            stats.path_mtu_signals + stats.timeouts + stats.fast_recoveries
        };
        let (outstanding, before) = (self.a.snapshot().unacknowledged, causes(&self.a));
        while let Some((seq, mtu)) = self.forward.mtu.as_mut().and_then(|mtu| mtu.arrive(self.now)) {
            self.a.on_too_big(self.now, seq, mtu);
            self.pull();
        }
        while let Some(segment) = self.forward.arrive(self.now) {
            self.b.on_segment(self.now, &segment, &mut self.out_b);
            self.pull();
        }
        while let Some(segment) = self.back.arrive(self.now) {
            self.a.on_segment(self.now, &segment, &mut self.out_a);
            self.application();
            self.pull();
        }
        for (end, out) in [(&mut self.a, &mut self.out_a), (&mut self.b, &mut self.out_b)] {
            if end.next_wake().is_some_and(|at| at <= self.now) {
                end.on_timer(self.now, out);
                assert!(
                    end.next_wake().is_none_or(|at| at > self.now),
                    "the next timer is later than now: {:?}",
                    end.state()
                );
            }
        }
        if let (Some(at), Reading::Slowly(bytes, every)) = (self.next_read, self.reading) {
            if at <= self.now {
                self.next_read = (self.b.state() != State::Closed).then(|| at + every);
                self.read += self.b.read(self.now, bytes);
                if self.b.readable() == 0 && self.b.state() == State::CloseWait {
                    self.b.close(self.now, &mut self.out_b);
                }
            }
        } else if self.out_b.finished && self.b.state() == State::CloseWait {
            self.b.close(self.now, &mut self.out_b);
        }
        self.application();
        self.pull();
        let outstanding = outstanding.max(self.a.snapshot().unacknowledged);
        self.may_repeat += (causes(&self.a) - before) * outstanding;
        true
    }

    /// Runs until `until`, or until no event is left.
    pub(crate) fn run(&mut self, until: Time) {
        while self.step(until) {}
    }

    /// Runs until all written bytes have arrived, and returns that time.
    pub(crate) fn run_to_end(&mut self, until: Time) -> Time {
        while self.out_b.delivered < self.total {
            assert!(
                self.step(until),
                "stuck at {:?} with {} of {} bytes: {:?} {:?} limited by {:?}, {:?} | {:?}",
                self.now,
                self.out_b.delivered,
                self.total,
                self.a.state(),
                self.a.snapshot(),
                self.a.limited_by(self.now),
                self.a.stats(),
                self.b.stats()
            );
        }
        self.now
    }

    /// Goodput between `from` and `until`, in bit/s.
    pub(crate) fn goodput(&mut self, from: Time, until: Time) -> f64 {
        self.run(from);
        let before = self.out_b.delivered;
        self.run(until);
        (self.out_b.delivered - before) as f64 * 8.0 / (until - from).as_secs_f64()
    }
}
