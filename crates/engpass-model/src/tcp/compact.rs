//! One endpoint of a connection in little memory: a receive-only endpoint keeps no sending state.

use super::ack_output::EstablishedTerms;
use super::connection::{Connection, Effects, NegotiatedOptions, State};
use super::limited_by::LimitedBy;
use super::parameters::{Role, Shared};
use super::rare::ConnectionCold;
use super::receive::Receiver;
use super::recovery::Phase;
use super::segment::Segment;
use super::stats::{Counts, Snapshot, Stats};
use crate::time::Time;

/// One endpoint of a connection: a [`Connection`], or only its receiving half once it is open and only reads.
#[derive(Debug)]
pub struct CompactConnection(Kind);

#[derive(Debug)]
enum Kind {
    Whole(Box<Connection>),
    Reader(Box<ReceiverOnly>),
}

/// A receive-only endpoint: open, has sent no data and will not. It receives and acknowledges data; any other segment makes it a full connection
/// again.
///
/// Fields that nearly all segments leave unchanged come first, so that the others take fewer cache lines.
#[derive(Debug)]
#[repr(C)]
pub(super) struct ReceiverOnly {
    pub(super) rare: Option<Box<ConnectionCold>>,
    pub(super) counts: Counts,
    pub(super) p: Shared,
    pub(super) rx: Receiver,
    pub(super) mss: u32,
    pub(super) agreed: NegotiatedOptions,
}

// Half of all endpoints are receive-only.
const _: () = assert!(size_of::<ReceiverOnly>() <= 120);

/// Sequence number of every segment that a receive-only endpoint sends: the one after its SYN.
const SEQ: u64 = 1;

impl CompactConnection {
    /// See [`Connection::new`].
    pub fn new(parameters: impl Into<Shared>, role: Role) -> Self {
        Self(Kind::Whole(Box::new(Connection::new(parameters, role))))
    }

    /// Returns the full connection, for example to write. A receive-only endpoint becomes one.
    #[inline]
    pub fn whole(&mut self) -> &mut Connection {
        if let Kind::Reader(_) = self.0 {
            self.expand_slow_path();
        }
        let Kind::Whole(connection) = &mut self.0 else { unreachable!("the connection was expanded") };
        connection
    }

    #[cold]
    #[inline(never)]
    fn expand_slow_path(&mut self) {
        if let Kind::Reader(reader) = &mut self.0 {
            let ReceiverOnly { p, rx, counts, rare, mss, agreed } = &mut **reader;
            let rx = std::mem::replace(rx, Receiver::new());
            let (p, counts, rare) = (p.clone(), counts.clone(), rare.take());
            let reader = ReceiverOnly { p, rx, counts, rare, mss: *mss, agreed: *agreed };
            self.0 = Kind::Whole(Box::new(Connection::of_reader(reader)));
        }
    }

    /// Frees memory that is not needed now; see [`Connection::release_unused_memory`]. `only_reads` is true if the application never writes and never
    /// closes. The endpoint then keeps only its receiving half, if it can, and loses the peer's window and the round-trip estimate.
    pub fn release_unused_memory(&mut self, now: Time, only_reads: bool) {
        let Kind::Whole(connection) = &mut self.0 else { return };
        if only_reads && let Some(reader) = connection.try_into_receiver() {
            self.0 = Kind::Reader(Box::new(reader));
        } else {
            connection.release_unused_memory(now);
        }
    }

    /// Fast path of a receive-only endpoint: processes the next segment of data in order, for which [`on_segment`](Self::on_segment) would report
    /// only the delivered bytes. Returns false, without any effect, for other segments.
    #[inline(always)]
    pub fn take_next(&mut self, now: Time, segment: &Segment) -> bool {
        match &mut self.0 {
            Kind::Reader(reader) => reader.take_next(now, segment),
            Kind::Whole(_) => false,
        }
    }

    /// See [`Connection::on_segment`].
    #[inline]
    pub fn on_segment(&mut self, now: Time, segment: &Segment, out: &mut Effects) {
        if let Kind::Reader(reader) = &mut self.0
            && reader.receive_segment(now, segment, out)
        {
            return;
        }
        self.whole().on_segment(now, segment, out);
    }

    /// See [`Connection::on_timer`].
    pub fn on_timer(&mut self, now: Time, out: &mut Effects) {
        match &mut self.0 {
            Kind::Whole(connection) => connection.on_timer(now, out),
            Kind::Reader(reader) => reader.rx.on_timer(now),
        }
    }

    /// See [`Connection::on_too_big`]. A receive-only endpoint has nothing outstanding and ignores the signal, as a full connection would.
    pub fn on_too_big(&mut self, now: Time, seq: u64, mtu: u64) -> bool {
        match &mut self.0 {
            Kind::Whole(connection) => connection.on_too_big(now, seq, mtu),
            Kind::Reader(_) => false,
        }
    }

    /// See [`Connection::next_wake`].
    #[inline]
    pub fn next_wake(&self) -> Option<Time> {
        match &self.0 {
            Kind::Whole(connection) => connection.next_wake(),
            Kind::Reader(reader) => Some(reader.rx.acks.deadline()).filter(|at| *at != Time::MAX),
        }
    }

    /// See [`Connection::is_quiescent`].
    #[inline]
    pub fn is_quiescent(&self) -> bool {
        match &self.0 {
            Kind::Whole(connection) => connection.is_quiescent(),
            Kind::Reader(reader) => reader.is_quiescent(),
        }
    }

    /// See [`Connection::next_segment`].
    #[inline(always)]
    pub fn next_segment(&mut self, now: Time, segment: &mut Segment) -> Result<(), LimitedBy> {
        match &mut self.0 {
            Kind::Whole(connection) => connection.next_segment(now, segment),
            Kind::Reader(reader) => reader.next_segment(now, segment),
        }
    }

    /// See [`Connection::limited_by`].
    pub fn limited_by(&self, now: Time) -> LimitedBy {
        match &self.0 {
            Kind::Whole(connection) => connection.limited_by(now),
            Kind::Reader(reader) if reader.is_quiescent() => LimitedBy::Application,
            Kind::Reader(_) => LimitedBy::Nothing,
        }
    }

    /// See [`Connection::has_room_for_segment`]; true for a receive-only endpoint, which sends no data.
    #[inline]
    pub fn has_room_for_segment(&self) -> bool {
        match &self.0 {
            Kind::Whole(connection) => connection.has_room_for_segment(),
            Kind::Reader(_) => true,
        }
    }

    /// See [`Connection::stats`].
    pub fn stats(&self) -> Stats {
        match &self.0 {
            Kind::Whole(connection) => connection.stats(),
            Kind::Reader(reader) => {
                let rare = reader.rare.as_ref().map(|rare| rare.stats);
                Stats::of(&reader.counts, &reader.rx, rare)
            }
        }
    }

    /// See [`Connection::snapshot`]; `None` for a receive-only endpoint.
    pub fn snapshot(&self) -> Option<Snapshot> {
        match &self.0 {
            Kind::Whole(connection) => Some(connection.snapshot()),
            Kind::Reader(_) => None,
        }
    }

    /// See [`Connection::segments_sent`].
    #[inline]
    pub fn segments_sent(&self) -> u64 {
        match &self.0 {
            Kind::Whole(connection) => connection.segments_sent(),
            Kind::Reader(reader) => reader.counts.segments_sent,
        }
    }

    /// See [`Connection::next_sequence`].
    #[inline]
    pub fn next_sequence(&self) -> u64 {
        match &self.0 {
            Kind::Whole(connection) => connection.next_sequence(),
            Kind::Reader(_) => SEQ,
        }
    }

    /// Returns the next sequence number expected from the peer (RCV.NXT): the application has all data before it.
    pub fn received_to(&self) -> u64 {
        match &self.0 {
            Kind::Whole(connection) => connection.rx.next(),
            Kind::Reader(reader) => reader.rx.next(),
        }
    }

    /// See [`Connection::timestamp_tick`].
    pub fn timestamp_tick(&self) -> Time {
        match &self.0 {
            Kind::Whole(connection) => connection.timestamp_tick(),
            Kind::Reader(reader) => reader.p.timestamp_tick,
        }
    }
}

impl ReceiverOnly {
    /// See [`CompactConnection::take_next`].
    #[inline(always)]
    fn take_next(&mut self, now: Time, segment: &Segment) -> bool {
        let next =
            self.is_for_it(segment) && segment.len > 0 && !segment.ce && self.rx.is_next_in_order(segment);
        if next {
            self.counts.segments_received += 1;
            self.rx.on_segment_fast_path(&self.p, self.mss.into(), segment, now);
        }
        next
    }

    /// Returns whether a receive-only endpoint can process the segment: it brings only data, or no news.
    #[inline(always)]
    fn is_for_it(&self, segment: &Segment) -> bool {
        segment.flags.is_data_or_ack() && segment.ack == SEQ
    }

    /// Processes such a segment. Returns false, without any effect, for any other.
    #[inline(never)]
    fn receive_segment(&mut self, now: Time, segment: &Segment, out: &mut Effects) -> bool {
        if !self.is_for_it(segment) {
            return false;
        }
        self.counts.segments_received += 1;
        if self.rx.try_extend_newest(segment) {
            return true;
        }
        let received = self.rx.receive_segment(&self.p, self.mss.into(), segment, now);
        debug_assert!(!received.finished, "a compact endpoint receives no FIN");
        out.delivered += received.in_order;
        out.refused += received.refused;
        if segment.ce || received.refused > 0 {
            let stats = &mut self.rare.get_or_insert_default().stats;
            stats.ce_received += u64::from(segment.ce);
            stats.bytes_refused += received.refused;
        }
        true
    }

    #[inline]
    fn is_quiescent(&self) -> bool {
        !self.rx.acks.is_due() && !self.rx.has_early()
    }

    #[inline(always)]
    fn next_segment(&mut self, now: Time, segment: &mut Segment) -> Result<(), LimitedBy> {
        let mss = self.mss.into();
        let terms = EstablishedTerms { p: &self.p, agreed: self.agreed, mss, path: mss };
        if self.rx.has_early() {
            *segment = self.rx.acknowledge_early(terms, now, SEQ);
        } else if self.rx.acks.is_due() {
            self.rx.acknowledge(terms, now, SEQ, segment);
        } else {
            return Err(LimitedBy::Application);
        }
        self.counts.segments_sent += 1;
        self.counts.acks_sent += 1;
        Ok(())
    }
}

impl Connection {
    /// Returns the receive-only endpoint that is left of this connection, if it is open, has sent no data and is in no special condition.
    fn try_into_receiver(&mut self) -> Option<ReceiverOnly> {
        let silent = self.state == State::Established
            && self.special.is_empty()
            && self.board.is_empty()
            && self.tx.is_unused()
            && self.timers.next() == Time::MAX
            && self.recovery.phase == Phase::Open
            && !self.rx.has_fin();
        silent.then(|| ReceiverOnly {
            p: self.p.clone(),
            rx: std::mem::replace(&mut self.rx, Receiver::new()),
            counts: self.counts.clone(),
            rare: self.rare.take(),
            mss: self.window.mss() as u32,
            agreed: self.agreed,
        })
    }

    /// Creates a full connection from a receive-only endpoint.
    fn of_reader(reader: ReceiverOnly) -> Self {
        let ReceiverOnly { p, rx, counts, rare, mss, agreed } = reader;
        let state = State::Established;
        let mut this = Self { rx, counts, rare, agreed, state, ..Self::new(p, Role::Passive) };
        this.window.set_mss(mss.into());
        this.window.size = this.p.initial_window * this.window.mss();
        this
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Stream;
    use crate::tcp::{Flags, Profile, SackBlocks, TcpParameters, Timestamps};
    use crate::time::SECOND;

    /// The same endpoint twice: one that shrinks now and then, and one that does not.
    struct CompactAndFull {
        now: Time,
        end: CompactConnection,
        connection: Connection,
    }

    impl CompactAndFull {
        fn take(&mut self, segment: &Segment) {
            let mut outs = [Effects::default(); 2];
            self.end.on_segment(self.now, segment, &mut outs[0]);
            self.connection.on_segment(self.now, segment, &mut outs[1]);
            assert_eq!(outs[0], outs[1], "{segment:?}");
        }

        /// Both send the same segments now and have the same visible state.
        fn send(&mut self) {
            loop {
                assert_eq!(self.end.is_quiescent(), self.connection.is_quiescent());
                assert_eq!(self.end.limited_by(self.now), self.connection.limited_by(self.now));
                let mut segments = [Segment::default(); 2];
                let ends = self.end.next_segment(self.now, &mut segments[0]);
                assert_eq!(ends, self.connection.next_segment(self.now, &mut segments[1]));
                assert_eq!(segments[0], segments[1]);
                if ends.is_err() {
                    break;
                }
            }
            assert_eq!(self.end.next_wake(), self.connection.next_wake());
            assert_eq!(self.end.stats(), self.connection.stats());
            assert_eq!(self.end.segments_sent(), self.connection.segments_sent());
        }

        fn wait(&mut self, ps: u64) {
            self.now += Time(ps);
            let mut outs = [Effects::default(); 2];
            self.end.on_timer(self.now, &mut outs[0]);
            self.connection.on_timer(self.now, &mut outs[1]);
            assert_eq!(outs[0], outs[1]);
        }

        fn segment(&self, seq: u64, len: u32, flags: Flags) -> Segment {
            let timestamps = Some(Timestamps::new(self.now, Some(self.now)));
            Segment {
                seq,
                ack: SEQ,
                len,
                flags: Flags::ACK | flags,
                window: 65535,
                timestamps,
                ..Segment::default()
            }
        }
    }

    fn read(p: &TcpParameters, seed: u64) {
        let mut random = Stream::new(seed, "end");
        let end = CompactConnection::new(p, Role::Passive);
        let mut twins =
            CompactAndFull { now: Time(SECOND), end, connection: Connection::new(p, Role::Passive) };
        let mut syn = twins.segment(0, 0, Flags::SYN);
        (syn.flags, syn.ack) = (Flags::SYN.with_if(p.ecn, Flags::ECE | Flags::CWR), 0);
        (syn.mss, syn.window_scale, syn.sack_permitted) = (1460, Some(7), true);
        twins.take(&syn);
        twins.send();
        twins.take(&twins.segment(1, 0, Flags::default()));
        let (mut next, mut readers) = (1, 0);
        for _ in 0..2000 {
            // The next segment, an old one, or one after a hole, with or without marks.
            let seq = match random.below(8) {
                0 => next + 1000 * random.below(5),
                1 => next.saturating_sub(500 * random.below(5)).max(1),
                _ => next,
            };
            let flags = Flags::default()
                .with_if(random.below(3) == 0, Flags::PSH)
                .with_if(p.ecn && random.below(20) == 0, Flags::CWR);
            let mut segment = twins.segment(seq, 1000 * u32::from(random.below(9) > 0), flags);
            segment.ect = p.ecn;
            segment.ce = p.ecn && random.below(10) == 0;
            if random.below(300) == 0 {
                // A SACK option for data that was never sent.
                let mut blocks = SackBlocks::default();
                blocks.push(1, 2);
                segment.report(blocks);
            }
            twins.take(&segment);
            next = next.max(segment.end());
            if random.below(4) > 0 {
                twins.send();
            }
            twins.wait(random.below(SECOND / 10));
            if random.below(50) == 0 {
                twins.send();
                twins.end.release_unused_memory(twins.now, true);
            }
            readers += usize::from(matches!(twins.end.0, Kind::Reader(_)));
        }
        assert!((500..2000).contains(&readers), "{readers}");
        twins.take(&twins.segment(next, 0, Flags::FIN));
        twins.send();
        assert_eq!(twins.end.whole().state(), twins.connection.state());
        assert_ne!(twins.connection.state(), State::SynReceived);
    }

    /// A receive-only endpoint sends its acknowledgments at SND.NXT, so that no signal concerns an outstanding segment.
    #[test]
    fn receive_only_endpoint_ignores_path_mtu_signals() {
        let path_mtu = crate::tcp::parameters::PathMtu::Discovered;
        let p = TcpParameters { path_mtu, ..Profile::Linux6.parameters(1500) };
        let mut twins = CompactAndFull {
            now: Time(SECOND),
            end: CompactConnection::new(&p, Role::Passive),
            connection: Connection::new(&p, Role::Passive),
        };
        let mut syn = twins.segment(0, 0, Flags::SYN);
        (syn.flags, syn.ack, syn.mss, syn.sack_permitted) = (Flags::SYN, 0, 1460, true);
        twins.take(&syn);
        twins.send();
        twins.take(&twins.segment(1, 0, Flags::default()));
        for segment in 0..200 {
            twins.take(&twins.segment(1 + 1000 * segment, 1000, Flags::default()));
            twins.send();
            twins.wait(SECOND);
            twins.end.release_unused_memory(twins.now, true);
            for seq in [0, 1, 2] {
                assert!(!twins.end.on_too_big(twins.now, seq, 100));
                assert!(!twins.connection.on_too_big(twins.now, seq, 100));
            }
        }
        assert!(matches!(twins.end.0, Kind::Reader(_)));
        assert_eq!((twins.end.stats(), twins.end.stats().path_mtu_signals), (twins.connection.stats(), 0));
        // The endpoint that shrank has lost the peer's window. Only the one that stayed whole can write.
        let mut end = CompactConnection(Kind::Whole(Box::new(twins.connection)));
        end.whole().write(twins.now, 1000);
        assert_eq!(end.whole().transmit(twins.now).map(|segment| segment.len), Some(1000));
        assert!(end.on_too_big(twins.now, SEQ, 552));
        assert_eq!((end.whole().segment_size(), end.stats().path_mtu_signals), (500, 1));
    }

    #[test]
    fn receive_only_endpoint_equals_full_connection() {
        for (seed, profile) in Profile::ALL.into_iter().enumerate() {
            for ecn in [false, true] {
                read(&TcpParameters { ecn, ..profile.parameters(1500) }, seed as u64);
            }
        }
    }
}
