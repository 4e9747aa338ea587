//! An artificial clock and devices for tests, and a minimal network.

use std::collections::VecDeque;
use std::io::{self, IoSlice};

use serde_json::Value;

use super::super::host_io::HostIo;
use super::super::network::{DeliveryStatus, Input, Network, Output, Way};
use super::super::packet::offload::Offload;

/// A packet that was written to a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Written {
    pub(super) at: u64,
    pub(super) host: usize,
    pub(super) offload: Offload,
    /// The packet from its IP or Ethernet header on, without the virtio header.
    pub(super) bytes: Vec<u8>,
}

/// An artificial host. Its time passes only by operations and by waiting.
pub(super) struct Fake {
    pub(super) now: u64,
    /// Packets that each host sends, in order of time: the instant in ns, and the bytes with their virtio header.
    pub(super) scripts: Vec<VecDeque<(u64, Vec<u8>)>>,
    pub(super) listens: Vec<bool>,
    pub(super) written: Vec<Written>,
    /// GSO packets of at least this many bytes are refused by the devices.
    pub(super) longest: usize,
    /// A host whose device is gone: it is always readable, and reading fails.
    pub(super) gone: Option<usize>,
    /// A host whose device is down: writing to it fails.
    pub(super) down: Option<usize>,
    /// Waits for a due instant end this much earlier, in ns.
    pub(super) early: Option<u64>,
    random: u64,
}

impl Fake {
    pub(super) fn new(hosts: usize, seed: u64) -> Self {
        Self {
            now: 1_000_000,
            scripts: vec![VecDeque::new(); hosts],
            listens: vec![true; hosts],
            written: Vec::new(),
            longest: usize::MAX,
            gone: None,
            down: None,
            early: None,
            random: seed,
        }
    }

    /// Returns a random number below `below`.
    pub(super) fn random(&mut self, below: u64) -> u64 {
        self.random =
            self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.random >> 33) % below
    }

    /// Returns whether all packets have been sent.
    pub(super) fn is_over(&self) -> bool {
        self.scripts.iter().all(VecDeque::is_empty)
    }
}

impl HostIo for Fake {
    fn now(&mut self) -> u64 {
        self.now += 20 + self.random(80);
        self.now
    }

    fn listen(&mut self, host: usize, on: bool) {
        self.listens[host] = on;
    }

    fn wait(&mut self, due: u64) -> bool {
        if self.gone.is_some_and(|host| self.listens[host]) {
            return false;
        }
        let heard = self.scripts.iter().zip(&self.listens).filter(|(_, on)| **on);
        let next = heard.filter_map(|(script, _)| script.front()).map(|(at, _)| *at).min();
        let wake = due.min(next.unwrap_or(u64::MAX));
        if let Some(early) = self.early.filter(|_| wake == due) {
            self.now = self.now.max(due.saturating_sub(early));
            return false;
        }
        let sleeps = wake > self.now;
        if sleeps {
            // The host wakes late.
            self.now = wake + self.random(60_000);
        }
        sleeps
    }

    fn until(&mut self, due: u64) -> u64 {
        self.now = self.now.max(due);
        self.now
    }

    fn is_ready(&self, host: usize) -> bool {
        self.listens[host]
            && (self.gone == Some(host) || self.scripts[host].front().is_some_and(|(at, _)| *at <= self.now))
    }

    fn read(&mut self, host: usize, buffer: &mut [u8]) -> io::Result<usize> {
        self.now += 1000;
        if self.gone == Some(host) {
            return Err(io::Error::from_raw_os_error(libc::EBADFD));
        }
        match self.scripts[host].front() {
            Some((at, _)) if *at <= self.now => {
                let (_, bytes) = self.scripts[host].pop_front().expect("the script has a packet");
                buffer[..bytes.len()].copy_from_slice(&bytes);
                Ok(bytes.len())
            }
            _ => Err(io::ErrorKind::WouldBlock.into()),
        }
    }

    fn write(&mut self, host: usize, pieces: &[IoSlice<'_>]) -> io::Result<()> {
        self.now += 2000;
        let all: Vec<u8> = pieces.iter().flat_map(|piece| piece.iter().copied()).collect();
        let (offload, bytes) = all.split_first_chunk().expect("the packet begins with a virtio header");
        let offload = Offload::read(offload).expect("the offload kind is known");
        let bytes = bytes.to_vec();
        if self.down == Some(host) {
            return Err(io::Error::from_raw_os_error(libc::EIO));
        }
        if bytes.len() >= self.longest && offload.size > 0 {
            return Err(io::Error::from_raw_os_error(libc::EINVAL));
        }
        self.written.push(Written { at: self.now, host, offload, bytes });
        Ok(())
    }
}

/// A minimal network with one line per sending host: fixed transmission time, delay and NIC buffer, and periodic losses and marks.
pub(super) struct Line {
    ways: Vec<Way>,
    /// Transmission time of a packet in ps.
    pace: u64,
    /// Propagation delay in ps.
    delay: u64,
    room: usize,
    every: u64,
    inputs: VecDeque<Input>,
    /// When the line of each host is idle again, in ps.
    free: Vec<u64>,
    count: u64,
    out: Vec<Output>,
    reached: u64,
}

impl Line {
    pub(super) fn new(hosts: usize, pace: u64, delay: u64, room: usize, every: u64) -> Self {
        let pairs = (0..hosts).flat_map(|from| (0..hosts).map(move |to| (from, to)));
        let way = |(from, to)| Way {
            from,
            to,
            name: format!("{from} to {to}"),
            mtu: 1500,
            longest: 1500,
            hops: 1,
            group: None,
        };
        Self {
            ways: pairs.filter(|(from, to)| from != to).map(way).collect(),
            pace,
            delay,
            room,
            every,
            inputs: VecDeque::new(),
            free: vec![0; hosts],
            count: 0,
            out: Vec::new(),
            reached: 0,
        }
    }

    fn waiting(&self, host: usize, at: u64) -> usize {
        (self.free[host].saturating_sub(at) / self.pace.max(1)) as usize
    }
}

impl Network for Line {
    fn ways(&self) -> &[Way] {
        &self.ways
    }

    fn inject(&mut self, input: Input) {
        assert!(
            input.at > self.reached || self.reached == 0,
            "an injection is later than the instant reached"
        );
        self.inputs.push_back(input);
    }

    fn backlog(&self, host: usize) -> usize {
        self.waiting(host, self.reached).saturating_sub(self.room)
    }

    fn run_until(&mut self, at: u64, out: &mut impl FnMut(Output)) {
        assert!(at >= self.reached);
        while let Some(&input) = self.inputs.front().filter(|input| input.at <= at) {
            self.inputs.pop_front();
            let free = &mut self.free[self.ways[input.way as usize].from];
            *free = (*free).max(input.at) + self.pace;
            self.count += 1;
            let (at, Input { way, token, .. }) = (*free + self.delay, input);
            let fate = match self.count % (2 * self.every) {
                0 => DeliveryStatus::Lost { lost_at: input.at, place: 7, message: false },
                rest => DeliveryStatus::Delivered { ce: rest == self.every, hops: 1 },
            };
            self.out.push(Output { at, way, token, fate });
        }
        self.out.sort_by_key(|output| output.at);
        let due = self.out.partition_point(|output| output.at <= at);
        self.out.drain(..due).for_each(out);
        self.reached = at;
    }

    fn next_wake(&mut self) -> Option<u64> {
        let input = self.inputs.front().map(|input| input.at);
        self.out.first().map(|output| output.at).into_iter().chain(input).min()
    }

    fn place(&self, place: u32) -> String {
        format!("line {place}")
    }

    fn seen(&mut self) -> Value {
        Value::Null
    }

    fn begin_window(&mut self, _at: u64, _out: &mut impl FnMut(Output)) {}

    fn end_window(&mut self, _at: u64, _out: &mut impl FnMut(Output)) -> Result<Value, String> {
        Ok(Value::Null)
    }
}
