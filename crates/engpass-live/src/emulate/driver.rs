//! One turn after the other: wait, let the network run up to now, write what has arrived, read what is sent.

use std::io::{self, IoSlice};
use std::ops::Range;

use serde_json::Value;

use super::counts::{Counts, Discard};
use super::directory::{Directory, Found};
use super::ethernet::{self, Station, Taken};
use super::late::Lateness;
use super::log::{Log, Record};
use super::network::{Fate, Input, Network, Output, Said, Way};
use super::pace::Pace;
use super::packet::offload::{self, Offload};
use super::packet::{Change, HEAD, Packet, forward};
use super::routers::Routers;
use super::run::{MOST, Run};
use super::store::{Store, Token};
use super::world::World;
use crate::problem::{Code, Problem};
use crate::time::{MICROSECOND, MILLISECOND};

/// The most packets, super-packets among them, that are read from one device in a turn, and how long that may take, in nanoseconds: others wait,
/// and so do instants.
const BATCH: usize = 64;
const READING: u64 = 50 * MICROSECOND;
/// How long the beginning of a super-packet waits for the rest of it, in picoseconds: each write costs as much as some of its packets.
const HOLD: u64 = 8_000_000;
/// The longest wait, so that whoever asks is heard, and the network does not fall far behind, in nanoseconds.
const LONGEST: u64 = 20 * MILLISECOND;

/// Time of the network against that of the world.
#[derive(Clone, Copy, Debug)]
pub(super) struct Virtual {
    /// When the network began, in nanoseconds of the world's clock.
    pub(super) start: u64,
    /// Nanoseconds of the world in a nanosecond of the network.
    pub(super) slow: u64,
}

impl Virtual {
    /// The network's picoseconds.
    #[inline]
    fn at(self, now: u64) -> u64 {
        (u128::from(now.saturating_sub(self.start)) * 1000 / u128::from(self.slow)) as u64
    }

    /// The world's nanoseconds at which the network's instant has come.
    #[inline]
    fn due(self, at: u64) -> u64 {
        let ns = (u128::from(at) * u128::from(self.slow)).div_ceil(1000);
        self.start.saturating_add(u64::try_from(ns).unwrap_or(u64::MAX))
    }
}

/// A host as the driver sees it.
pub(super) struct Host {
    /// Its place among the hosts of the testbed.
    pub(super) index: usize,
    /// It sends Ethernet frames.
    pub(super) station: Option<Station>,
    /// Its device takes super-packets of UDP.
    joins: bool,
    /// Its device can no longer be read: its namespace may be gone.
    gone: bool,
}

impl Host {
    pub(super) fn new(index: usize, station: Option<Station>, joins: bool) -> Self {
        Self { index, station, joins, gone: false }
    }
}

/// The driver.
pub(super) struct Driver<N, W> {
    pub(super) network: N,
    pub(super) world: W,
    clock: Virtual,
    hosts: Vec<Host>,
    /// Places in `hosts` by place in the testbed.
    places: Vec<Option<usize>>,
    ways: Vec<Way>,
    directory: Directory,
    store: Store,
    outputs: Vec<Output>,
    /// By host.
    runs: Vec<Run>,
    head: Vec<u8>,
    /// Handled by the network.
    reached: u64,
    /// The events of the testbed have begun.
    has_events: bool,
    pub(super) counts: Counts,
    pub(super) late: Lateness,
    pub(super) log: Option<Log>,
    pub(super) routers: Routers,
}

impl<N: Network, W: World> Driver<N, W> {
    pub(super) fn new(
        network: N,
        mut world: W,
        slow: u64,
        hosts: Vec<Host>,
        directory: Directory,
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
            clock: Virtual { start, slow },
            places,
            counts: Counts::new(hosts.len(), ways.len()),
            runs: hosts.iter().map(|_| Run::default()).collect(),
            hosts,
            ways,
            directory,
            store: Store::new(),
            outputs: Vec::new(),
            head: vec![0; offload::LENGTH + ethernet::LENGTH + HEAD],
            reached: 0,
            has_events: false,
            late,
            log,
            routers: Routers::default(),
        }
    }

    /// Wait for something to do, and do it.
    pub(super) fn turn(&mut self) {
        for (place, host) in self.hosts.iter().enumerate() {
            // Its interface has no room: what it sends waits in the kernel.
            self.world.listen(place, !host.gone && self.network.backlog(host.index) == 0);
        }
        let now = self.world.now();
        let held = self.runs.iter().filter_map(|run| run.ats.first()).map(|at| at + HOLD);
        let next = self.network.next_wake().into_iter().chain(held).min();
        let due = next.map_or(u64::MAX, |at| self.clock.due(at));
        let slept = self.world.wait(due.min(now + LONGEST));
        if Pace::is_near(self.world.now(), due) {
            // Nothing is read before then, so what happens then is known: it is worked out now, and is on time.
            self.catch_up_to(next.unwrap_or(0));
            self.world.until(due);
        } else if !slept {
            // Whoever is woken by a packet has nothing else to do, most of the time.
            self.catch_up();
        }
        // Nor does another packet follow at once: the first one goes on before anybody looks.
        let most = if slept { 1 } else { BATCH };
        for place in 0..self.hosts.len() {
            if self.world.is_ready(place) {
                self.read(place, most);
            }
        }
        self.catch_up();
    }

    /// The network's time now: later than all that it has handled, so that what is handed to it is ordered by its instant alone.
    fn now(&mut self) -> u64 {
        let now = self.world.now();
        self.at(now)
    }

    /// As [`Self::now`], when the world's clock says so.
    fn at(&self, now: u64) -> u64 {
        self.clock.at(now).max(self.reached + 1)
    }

    /// Let the network go on up to `at`, and gather what comes out.
    fn advance(&mut self, at: u64) {
        let first = self.outputs.len();
        let outputs = &mut self.outputs;
        self.network.run_until(at, &mut |output| outputs.push(output));
        self.reached = at;
        self.note(first);
    }

    /// Log the outputs from the `first` on.
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

    /// Let the network go on up to now, and write what has arrived. When that was, in the network's time.
    pub(super) fn catch_up(&mut self) -> u64 {
        self.catch_up_to(0)
    }

    /// As [`Self::catch_up`], up to `soon` where that is later: each packet is written when it is due.
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

    /// Let the events of the testbed begin at the beginning of the network.
    pub(super) fn begin_events_at_once(&mut self) {
        self.begin_events_at(0);
    }

    /// Let the events of the testbed begin now; when that is, in the network's time.
    pub(super) fn begin_events(&mut self) -> Result<u64, Problem> {
        if self.has_events {
            let help = "ask once, of a driver whose `events` are `when-asked`";
            return Err(Problem::new(Code::WrongOrder, "the events of the testbed have begun", help));
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

    /// Count from now on; when that is, in the network's time.
    pub(super) fn begin_window(&mut self) -> u64 {
        let at = self.catch_up();
        let outputs = &mut self.outputs;
        self.network.begin_window(at, &mut |output| outputs.push(output));
        self.note(0);
        self.flush();
        self.late.begin_window();
        at
    }

    /// What was counted since the window began, and how late packets were; until when, in the network's time.
    pub(super) fn end_window(&mut self) -> Result<(u64, Value, Value), Problem> {
        let at = self.catch_up();
        let Some(late) = self.late.end_window() else {
            return Err(Problem::new(Code::WrongOrder, "there is no window", "begin one with `window`"));
        };
        let outputs = &mut self.outputs;
        let outcome = self.network.end_window(at, &mut |output| outputs.push(output));
        self.note(0);
        self.flush();
        match outcome {
            Ok(outcome) => Ok((at, outcome, late)),
            Err(cause) => Err(Problem::new(Code::System, cause, "report it: it is an error of the model")),
        }
    }

    /// Read what a device has, up to bounds: so many packets, and a time.
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
                        // It would be ready to fail again at once.
                        self.hosts[place].gone = true;
                    }
                    return;
                }
            }
        }
    }

    /// A packet of so many bytes, virtio header included, lies in the store's room.
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
            // Whoever asks whether its own address is taken is not told that it is.
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
                        self.counts.failed(place, &error);
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

    /// Hand the packets of what lies in the store's room to the network.
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
        // The last one may be shorter.
        let last = packet.segments() - 1;
        if last > 0 {
            self.network.inject_alike(input(0), last);
        }
        self.network.inject(input(last));
        self.advance(at);
    }

    /// Write what has arrived, packets that follow each other in a super-packet as one.
    fn flush(&mut self) {
        let outputs = std::mem::take(&mut self.outputs);
        for output in &outputs {
            let Token { slot, segment } = self.store.token(output.token);
            let &Way { from, to, .. } = &self.ways[output.way as usize];
            let place = self.places.get(to).copied().flatten();
            match (output.fate, place) {
                (Fate::Delivered { ce, hops }, Some(place)) => {
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
                        Fate::Lost { .. } => self.counts.lost[output.way as usize] += 1,
                        Fate::Message { said, hops } => {
                            self.tell(from, output, &said, hops);
                        }
                        Fate::MessageLost | Fate::Delivered { .. } => {}
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

    /// Write a router's message to the sender of the packet that was dropped. `hops` is the number of routers that the message has passed.
    fn tell(&mut self, from: usize, output: &Output, said: &Said, hops: u8) {
        let Some(place) = self.places.get(from).copied().flatten() else { return };
        // Packets that arrived before the message are written before it.
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
            Err(error) => self.counts.failed(place, &error),
        }
    }

    /// Whether the run of a host waits for the rest of its super-packet, of which more may come in time.
    fn is_held(&mut self, place: usize) -> bool {
        let run = &self.runs[place];
        let Some(first) = run.ats.first() else { return false };
        let until = first + HOLD;
        let (packet, _) = self.store.get(run.slot);
        let is_whole = run.first + run.ats.len() as u32 == packet.segments();
        !is_whole && self.reached < until && self.network.next_wake().is_some_and(|next| next <= until)
    }

    /// Write the run of a host, if there is one.
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
            // This kernel may not take such super-packets.
            let mut one = |index| {
                let (slot, segment) = run.part(index);
                write_part(world, place, store.get(slot), segment..segment + 1, run.change, front, buffer)
            };
            written = (0..count).map(&mut one).fold(Ok(()), io::Result::and);
        }
        match written {
            Ok(()) => self.counts.hosts[place].wrote(count, &whole, begin),
            Err(error) => self.counts.failed(place, &error),
        }
        for index in 0..count {
            store.release(run.part(index).0, 1);
        }
    }

    /// As if the hosts had TAP devices.
    #[cfg(test)]
    pub(super) fn stations(&mut self, stations: impl IntoIterator<Item = Option<Station>>) {
        for (host, station) in self.hosts.iter_mut().zip(stations) {
            host.station = station;
        }
    }

    /// What the network has come to, in picoseconds.
    pub(super) fn reached(&self) -> u64 {
        self.reached
    }

    /// Packets of a host that wait for its interface.
    pub(super) fn backlog(&self, place: usize) -> usize {
        self.network.backlog(self.hosts[place].index)
    }

    /// Super-packets that are on their way.
    pub(super) fn kept(&self) -> usize {
        self.store.kept()
    }

    /// Nothing is read or written any more: end the log.
    pub(super) fn end(&mut self) {
        if let Some(log) = &mut self.log {
            log.put(&Record::end(self.reached));
            log.close();
        }
    }
}

/// Write a run of segments of one packet.
fn write_part<W: World>(
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
