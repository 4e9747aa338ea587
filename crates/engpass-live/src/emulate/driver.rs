//! The main loop of the driver: wait, advance the network to now, write packets that have arrived, read packets that hosts send.

use std::io::{self, IoSlice};
use std::ops::Range;

use serde_json::Value;

use super::address_table::{AddressTable, Found};
use super::counts::{Counts, Discard};
use super::ethernet::{self, Station, Taken};
use super::host_io::HostIo;
use super::lateness::Lateness;
use super::log::{Log, Record};
use super::network::{DeliveryStatus, Input, MessageContent, Network, Output, Way};
use super::packet::offload::{self, Offload};
use super::packet::{Change, HEAD, Packet, forward};
use super::packet_pool::{PacketPool, Token};
use super::routers::Routers;
use super::wait_strategy::WaitStrategy;
use super::write_batch::{MOST, WriteBatch};
use crate::protocol_error::{Code, ProtocolError};
use crate::time::{MICROSECOND, MILLISECOND};

/// Maximum number of packets read from one device per turn, so that other devices and due packets do not wait long. A GSO packet counts once.
const BATCH: usize = 64;
/// Longest time for reading one device in a turn, in ns.
const READING: u64 = 50 * MICROSECOND;
/// Time for which the first segments of a GSO packet wait for the rest, in ps of virtual time: one write costs as much as several packets.
const HOLD: u64 = 8_000_000;
/// Longest wait in ns, so that requests are answered and the network does not fall far behind.
const LONGEST: u64 = 20 * MILLISECOND;

/// Maps the host's clock to virtual time.
#[derive(Clone, Copy, Debug)]
pub(super) struct VirtualClock {
    /// Instant at which the network began, in ns of the host's clock.
    pub(super) start: u64,
    /// Time dilation: host time per virtual time.
    pub(super) slow: u64,
}

impl VirtualClock {
    /// Returns the virtual time, in ps, for a reading of the host's clock.
    #[inline]
    fn at(self, now: u64) -> u64 {
        (u128::from(now.saturating_sub(self.start)) * 1000 / u128::from(self.slow)) as u64
    }

    /// Returns the first nanosecond of the host's clock at which the virtual time `at` has come.
    #[inline]
    fn due(self, at: u64) -> u64 {
        let ns = (u128::from(at) * u128::from(self.slow)).div_ceil(1000);
        self.start.saturating_add(u64::try_from(ns).unwrap_or(u64::MAX))
    }
}

/// State of one host in the driver.
pub(super) struct Host {
    /// Index of the host in the testbed.
    pub(super) index: usize,
    /// Ethernet of the host; present if its device carries frames (TAP).
    pub(super) station: Option<Station>,
    /// True if the device accepts UDP GSO packets, so that datagrams can be joined for one write.
    joins: bool,
    /// True if reading the device has failed; its namespace may be gone.
    gone: bool,
}

impl Host {
    pub(super) fn new(index: usize, station: Option<Station>, joins: bool) -> Self {
        Self { index, station, joins, gone: false }
    }
}

/// The driver: connects the hosts' devices (`W`) with the network (`N`).
pub(super) struct Driver<N, W> {
    pub(super) network: N,
    pub(super) world: W,
    clock: VirtualClock,
    hosts: Vec<Host>,
    /// By index of a host in the testbed: its index in `hosts`.
    places: Vec<Option<usize>>,
    ways: Vec<Way>,
    directory: AddressTable,
    store: PacketPool,
    outputs: Vec<Output>,
    /// By host: the packets that wait to be written together.
    runs: Vec<WriteBatch>,
    head: Vec<u8>,
    /// Virtual time up to which the network has been advanced, in ps.
    reached: u64,
    /// True if the events of the testbed have begun.
    has_events: bool,
    pub(super) counts: Counts,
    pub(super) late: Lateness,
    pub(super) log: Option<Log>,
    pub(super) routers: Routers,
}

impl<N: Network, W: HostIo> Driver<N, W> {
    pub(super) fn new(
        network: N,
        mut world: W,
        slow: u64,
        hosts: Vec<Host>,
        directory: AddressTable,
        late: Lateness,
        log: Option<Log>,
    ) -> Self {
        let ways = network.ways().to_vec();
        let last = hosts.iter().map(|host| host.index + 1).max().unwrap_or(0);
        let mut places = vec![None; last];
        for (place, host) in hosts.iter().enumerate() {
            places[host.index] = Some(place);
        }
        let start = world.now();
        Self {
            network,
            world,
            clock: VirtualClock { start, slow },
            places,
            counts: Counts::new(hosts.len(), ways.len()),
            runs: hosts.iter().map(|_| WriteBatch::default()).collect(),
            hosts,
            ways,
            directory,
            store: PacketPool::new(),
            outputs: Vec::new(),
            head: vec![0; offload::LENGTH + ethernet::LENGTH + HEAD],
            reached: 0,
            has_events: false,
            late,
            log,
            routers: Routers::default(),
        }
    }

    /// Runs one turn of the driver's loop: waits for a packet or for the next event of the network, at most `LONGEST`, and handles what is due.
    pub(super) fn turn(&mut self) {
        for (place, host) in self.hosts.iter().enumerate() {
            // While packets wait for the host's NIC, its device is not read; further packets of the host wait in the kernel.
            self.world.listen(place, !host.gone && self.network.backlog(host.index) == 0);
        }
        let now = self.world.now();
        let held = self.runs.iter().filter_map(|run| run.ats.first()).map(|at| at + HOLD);
        let next = self.network.next_wake().into_iter().chain(held).min();
        let due = next.map_or(u64::MAX, |at| self.clock.due(at));
        let slept = self.world.wait(due.min(now + LONGEST));
        if WaitStrategy::is_near(self.world.now(), due) {
            // No device is read before `due`. Therefore the deliveries at that instant are already determined: they are computed now and written on time.
            self.catch_up_to(next.unwrap_or(0));
            self.world.until(due);
        } else if !slept {
            // After a sleep, a packet has usually woken the driver, and the network has nothing else to do yet.
            self.catch_up();
        }
        // After a sleep, only one packet is read from each device, so that it enters the network before the driver looks for more.
        let most = if slept { 1 } else { BATCH };
        for place in 0..self.hosts.len() {
            if self.world.is_ready(place) {
                self.read(place, most);
            }
        }
        self.catch_up();
    }

    /// Returns the current virtual time in ps. It is later than everything that the network has handled, so injected packets are ordered by time alone.
    fn now(&mut self) -> u64 {
        let now = self.world.now();
        self.at(now)
    }

    /// Returns the virtual time in ps at a given reading of the host's clock. Like [`Self::now`], it is later than everything that the network has handled.
    fn at(&self, now: u64) -> u64 {
        self.clock.at(now).max(self.reached + 1)
    }

    /// Advances the network to `at` and collects its delivery reports.
    fn advance(&mut self, at: u64) {
        let first = self.outputs.len();
        let outputs = &mut self.outputs;
        self.network.run_until(at, &mut |output| outputs.push(output));
        self.reached = at;
        self.note(first);
    }

    /// Logs the delivery reports from index `first` on.
    fn note(&mut self, first: usize) {
        if let Some(log) = &mut self.log {
            for output in &self.outputs[first..] {
                let token = self.store.token(output.token);
                let (packet, bytes) = self.store.get(token.slot);
                let payload = &bytes[packet.payload_of(token.segment..token.segment + 1)];
                log.put(&Record::output(output, payload));
            }
        }
    }

    /// Advances the network to now and writes the packets that have arrived. Returns the virtual time in picoseconds.
    pub(super) fn catch_up(&mut self) -> u64 {
        self.catch_up_to(0)
    }

    /// Like [`Self::catch_up`], but advances the network to `soon` if that is later than now; each packet is still written only when it is due.
    fn catch_up_to(&mut self, soon: u64) -> u64 {
        let now = self.world.now();
        let at = self.at(now).max(soon);
        self.advance(at);
        self.flush();
        if let Some(log) = &mut self.log {
            log.look(now);
        }
        at
    }

    /// Begins the events of the testbed at time 0 of the network.
    pub(super) fn begin_events_at_once(&mut self) {
        self.begin_events_at(0);
    }

    /// Begins the events of the testbed now. Returns the virtual time in picoseconds, or an error if they have begun before.
    pub(super) fn begin_events(&mut self) -> Result<u64, ProtocolError> {
        if self.has_events {
            let help = "send `events` only once, and only if `events` of the configuration is `when-asked`";
            return Err(ProtocolError::new(
                Code::WrongOrder,
                "the events of the testbed have already started",
                help,
            ));
        }
        let at = self.now();
        self.begin_events_at(at);
        Ok(at)
    }

    fn begin_events_at(&mut self, at: u64) {
        self.has_events = true;
        if self.network.begin_events(at)
            && let Some(log) = &mut self.log
        {
            log.put(&Record::events(at));
        }
    }

    /// Begins a measurement window. Returns the virtual time in ps.
    pub(super) fn begin_window(&mut self) -> u64 {
        let at = self.catch_up();
        let outputs = &mut self.outputs;
        self.network.begin_window(at, &mut |output| outputs.push(output));
        self.note(0);
        self.flush();
        self.late.begin_window();
        at
    }

    /// Ends the measurement window. Returns the virtual time (ps), the outcome of the window and its lateness.
    pub(super) fn end_window(&mut self) -> Result<(u64, Value, Value), ProtocolError> {
        let at = self.catch_up();
        let Some(late) = self.late.end_window() else {
            return Err(ProtocolError::new(
                Code::WrongOrder,
                "no measurement window is open",
                "open one with `window`",
            ));
        };
        let outputs = &mut self.outputs;
        let outcome = self.network.end_window(at, &mut |output| outputs.push(output));
        self.note(0);
        self.flush();
        match outcome {
            Ok(outcome) => Ok((at, outcome, late)),
            Err(cause) => {
                Err(ProtocolError::new(Code::System, cause, "report this: it is a bug of the model"))
            }
        }
    }

    /// Reads packets from a device, at most `most` of them and for at most `READING`.
    fn read(&mut self, place: usize, most: usize) {
        let end = self.world.now() + READING;
        for count in 0..most {
            if count > 0 && self.world.now() >= end {
                return;
            }
            if self.network.backlog(self.hosts[place].index) > 0 {
                return;
            }
            match self.world.read(place, self.store.room()) {
                Ok(length) => self.take(place, length),
                Err(error) => {
                    if !matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) {
                        self.counts.failed(place, &error);
                        // Without this mark the device would be readable again at once, and fail again.
                        self.hosts[place].gone = true;
                    }
                    return;
                }
            }
        }
    }

    /// Handles a packet of `length` bytes, virtio header included, that was read into the packet pool.
    fn take(&mut self, place: usize, length: usize) {
        let count = &mut self.counts.hosts[place];
        let Some((header, rest)) = self.store.read()[..length].split_first_chunk() else {
            return count.discard(Discard::Malformed, 1);
        };
        let Some(mut offload) = Offload::read(header) else {
            return count.discard(Discard::Malformed, 1);
        };
        let mut begin = offload::LENGTH;
        let mut rest = rest;
        if let Some(station) = &self.hosts[place].station {
            // A host that looks for duplicates of its own address must get no answer, so its own addresses are left out.
            let own = self.hosts[place].index;
            let find = |address| self.directory.host(address).filter(|host| *host != own);
            match station.take(rest, &mut offload, find) {
                Taken::Packet(packet) => {
                    begin += rest.len() - packet.len();
                    rest = packet;
                }
                Taken::Answer(frame) => {
                    let header = Offload::default().write();
                    let written = self.world.write(place, &[IoSlice::new(&header), IoSlice::new(&frame)]);
                    if let Err(error) = written {
                        self.counts.failed_write(place, 1, &error);
                    }
                    return;
                }
                Taken::Nothing => return count.discard(Discard::Group, 1),
            }
        }
        let Ok(packet) = Packet::read(offload, rest) else {
            return count.discard(Discard::Malformed, 1);
        };
        let segments = packet.segments();
        count.read(&packet);
        let way = match self.directory.find(self.hosts[place].index, packet.to) {
            Found::Way(way) => way,
            Found::Group => return count.discard(Discard::Group, segments),
            Found::Unknown => return count.discard(Discard::Unknown, segments),
            Found::NotJoined => return count.discard(Discard::NotJoined, segments),
        };
        let seen = &self.ways[way as usize];
        if packet.largest() > seen.longest {
            return count.discard(Discard::TooLong, segments);
        }
        self.send(way, packet, begin);
    }

    /// Injects the packet that was read into the packet pool: one packet for each segment.
    fn send(&mut self, way: u32, packet: Packet, begin: usize) {
        let fates = self.ways[way as usize].group.map_or(1, |group| group.members);
        let slot = self.store.keep(packet, begin..begin + packet.length as usize, fates);
        let at = self.now();
        let Packet { class, ttl, transport, headers, whole, errors, .. } = packet;
        let header = headers.saturating_sub(20);
        let first = self.store.number(Token { slot, segment: 0 });
        let input = |segment: u32| {
            let (bytes, token) = (packet.segment(segment), first + u64::from(segment));
            Input { at, way, bytes, header, class, ttl, transport, whole, errors, token }
        };
        let (_, bytes) = self.store.get(slot);
        if let Some(log) = &mut self.log {
            for segment in 0..packet.segments() {
                log.put(&Record::input(&input(segment), &bytes[packet.payload_of(segment..segment + 1)]));
            }
        }
        if self.network.captures() {
            for segment in 0..packet.segments() {
                self.network.keep(input(segment).token, packet.alone(bytes, segment), fates);
            }
        }
        // The last segment may be shorter.
        let last = packet.segments() - 1;
        if last > 0 {
            self.network.inject_identical(input(0), last);
        }
        self.network.inject(input(last));
        self.advance(at);
    }

    /// Writes the packets that have arrived. Consecutive segments of a GSO packet go out as one GSO packet.
    fn flush(&mut self) {
        let outputs = std::mem::take(&mut self.outputs);
        for output in &outputs {
            let Token { slot, segment } = self.store.token(output.token);
            let &Way { from, to, .. } = &self.ways[output.way as usize];
            let place = self.places.get(to).copied().flatten();
            match (output.fate, place) {
                (DeliveryStatus::Delivered { ce, hops }, Some(place)) => {
                    let change = Change { ce, hops };
                    let run = &mut self.runs[place];
                    let follows = run.goes_on(slot, segment, change)
                        || self.hosts[place].joins && run.join(&self.store, slot, from, change);
                    if !follows {
                        self.write(place);
                        self.runs[place].begin((slot, segment), from, change);
                    }
                    self.runs[place].ats.push(output.at);
                }
                (fate, _) => {
                    match fate {
                        DeliveryStatus::Lost { .. } => self.counts.lost[output.way as usize] += 1,
                        DeliveryStatus::Message { said, hops } => {
                            self.tell(from, output, &said, hops);
                        }
                        DeliveryStatus::MessageLost | DeliveryStatus::Delivered { .. } => {}
                    }
                    if fate.is_last() {
                        self.store.release(slot, 1);
                    }
                }
            }
        }
        for place in 0..self.hosts.len() {
            if !self.is_held(place) {
                self.write(place);
            }
        }
        self.outputs = outputs;
        self.outputs.clear();
    }

    /// Writes a router's ICMP message to the sender of the dropped packet. `hops` is the number of routers that the message has passed.
    fn tell(&mut self, from: usize, output: &Output, said: &MessageContent, hops: u8) {
        let Some(place) = self.places.get(from).copied().flatten() else { return };
        // Packets that arrived before the message are written first.
        self.write(place);
        let Token { slot, segment } = self.store.token(output.token);
        let (packet, bytes) = self.store.get(slot);
        let alone = packet.alone(bytes, segment);
        let Some(mut message) = self.routers.message(said, &alone, output.token) else { return };
        forward(&mut message, Change { ce: false, hops });
        let now = self.clock.at(self.world.until(self.clock.due(output.at)));
        self.late.record(now.saturating_sub(output.at) / 1000);
        let front = self.hosts[place].station.as_ref().map(|station| station.head(from, &message));
        let front = front.as_ref().map_or(&[][..], |front| &front[..]);
        let head = [&Offload::default().write()[..], front].concat();
        match self.world.write(place, &[IoSlice::new(&head), IoSlice::new(&message)]) {
            Ok(()) => self.counts.hosts[place].wrote_message(message.len()),
            Err(error) => self.counts.failed_write(place, 1, &error),
        }
    }

    /// Returns whether the write of a host's batch waits: it is incomplete, and more segments of its GSO packet may arrive within `HOLD`.
    fn is_held(&mut self, place: usize) -> bool {
        let run = &self.runs[place];
        let Some(first) = run.ats.first() else { return false };
        let until = first + HOLD;
        let (packet, _) = self.store.get(run.slot);
        let is_whole = run.first + run.ats.len() as u32 == packet.segments();
        !is_whole && self.reached < until && self.network.next_wake().is_some_and(|next| next <= until)
    }

    /// Writes the batch of a host, if it has packets.
    fn write(&mut self, place: usize) {
        let Self { world, store, head: buffer, .. } = self;
        let run = &mut self.runs[place];
        let count = run.ats.len() as u32;
        let Some(last) = run.ats.last() else { return };
        let now = self.clock.at(world.until(self.clock.due(*last)));
        for at in run.ats.drain(..) {
            self.late.record(now.saturating_sub(at) / 1000);
        }
        let first = store.get(run.slot);
        let station = self.hosts[place].station.as_ref();
        let front = station.map(|station| station.head(run.from, first.1));
        let front = front.as_ref().map_or(&[][..], |front| &front[..]);
        let (whole, begin, mut written) = if run.is_joined() {
            let whole = run.whole(store);
            let length = whole.write(first.1, 0..count, run.change, front, buffer);
            let mut pieces = [IoSlice::new(&[]); MOST + 1];
            pieces[0] = IoSlice::new(&buffer[..length]);
            for (index, piece) in (0..count).zip(&mut pieces[1..]) {
                let (packet, bytes) = store.get(run.part(index).0);
                *piece = IoSlice::new(packet.datagram(bytes));
            }
            (whole, 0, world.write(place, &pieces[..=count as usize]))
        } else {
            let all = run.first..run.first + count;
            (*first.0, run.first, write_part(world, place, first, all, run.change, front, buffer))
        };
        if written.is_err() && count > 1 {
            // The kernel may not support such GSO packets; then the segments are written one by one.
            let mut one = |index| {
                let (slot, segment) = run.part(index);
                write_part(world, place, store.get(slot), segment..segment + 1, run.change, front, buffer)
            };
            written = (0..count).map(&mut one).fold(Ok(()), io::Result::and);
        }
        match written {
            Ok(()) => self.counts.hosts[place].wrote(count, &whole, begin),
            Err(error) => self.counts.failed_write(place, count, &error),
        }
        for index in 0..count {
            store.release(run.part(index).0, 1);
        }
    }

    /// Replaces the Ethernet state of the hosts, as if they had TAP devices.
    #[cfg(test)]
    pub(super) fn stations(&mut self, stations: impl IntoIterator<Item = Option<Station>>) {
        for (host, station) in self.hosts.iter_mut().zip(stations) {
            host.station = station;
        }
    }

    /// Returns the virtual time up to which the network has been advanced, in ps.
    pub(super) fn reached(&self) -> u64 {
        self.reached
    }

    /// Returns the number of a host's packets that wait for its NIC.
    pub(super) fn backlog(&self, place: usize) -> usize {
        self.network.backlog(self.hosts[place].index)
    }

    /// Returns the number of packets in the pool; a GSO packet counts once.
    pub(super) fn kept(&self) -> usize {
        self.store.kept()
    }

    /// Ends the log. Call it when nothing is read or written any more.
    pub(super) fn end(&mut self) {
        if let Some(log) = &mut self.log {
            log.put(&Record::end(self.reached));
            log.close();
        }
    }
}

/// Writes a run of segments of one packet.
fn write_part<W: HostIo>(
    world: &mut W,
    place: usize,
    (packet, bytes): (&Packet, &[u8]),
    run: Range<u32>,
    change: Change,
    front: &[u8],
    buffer: &mut [u8],
) -> io::Result<()> {
    let length = packet.write(bytes, run.clone(), change, front, buffer);
    let payload = &bytes[packet.payload_of(run)];
    world.write(place, &[IoSlice::new(&buffer[..length]), IoSlice::new(payload)])
}
