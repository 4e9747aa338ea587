//! The log of a run: injected packets and delivery reports, for the replay. `docs/driver.md` has the format.
//!
//! The driver fills blocks, and a thread writes them to the file. If a write fails or the disk is too slow, the log ends, the status says why, and the run goes
//! on.

use std::hash::Hasher;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use engpass_model::wire::icmp::{Error, Errors};
use serde_json::{Value, json};
use siphasher::sip::SipHasher13;

use super::network::{DeliveryStatus, Input, MessageContent, Output, Transport};
use crate::sys::signal;
use crate::time::MILLISECOND;

/// Size of a record in bytes.
const RECORD: usize = 48;
/// Records per block.
const BLOCK: usize = 4096;
/// Largest number of blocks that wait for the disk: 48 MiB.
const BLOCKS: usize = 256;
/// Age in ns, by the driver's clock, at which a block is written even if it is not full.
const OLD: u64 = 100 * MILLISECOND;
/// Longest header of a file, in bytes.
const LONGEST_HEADER: u64 = 1 << 26;

/// One record of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Record {
    /// A packet was injected; `hash` is that of its payload.
    Input { input: Input, hash: u64 },
    /// A delivery report of the network; `hash` is that of the packet's payload.
    Output { output: Output, hash: u64 },
    /// The events of the testbed began.
    Events { at: u64 },
    /// The run ended.
    End { at: u64 },
}

fn hash(bytes: &[u8]) -> u64 {
    let mut hasher = SipHasher13::new();
    hasher.write(bytes);
    hasher.finish()
}

const INPUT: u8 = 1;
const DELIVERED: u8 = 2;
const DELIVERED_CE: u8 = 3;
const LOST: u8 = 4;
const END: u8 = 5;
const EVENTS: u8 = 6;
const MESSAGE: u8 = 7;
const MESSAGE_LOST: u8 = 8;

/// Flag of an input record: routers must not fragment the packet.
const WHOLE: u8 = 1;
/// Flag of an input record: routers may send ICMP errors about the packet.
const TOLD_V4: u8 = 2;
/// Flag of an input record: routers may send ICMPv6 errors about the packet.
const TOLD_V6: u8 = 4;

impl Record {
    pub(super) fn input(input: &Input, payload: &[u8]) -> Self {
        Self::Input { input: *input, hash: hash(payload) }
    }

    pub(super) fn output(output: &Output, payload: &[u8]) -> Self {
        Self::Output { output: *output, hash: hash(payload) }
    }

    pub(super) fn events(at: u64) -> Self {
        Self::Events { at }
    }

    pub(super) fn end(at: u64) -> Self {
        Self::End { at }
    }

    /// Encodes the record: little-endian numbers at fixed offsets, unused bytes zero.
    fn write(&self) -> [u8; RECORD] {
        let mut bytes = [0; RECORD];
        let mut long = |at: usize, number: u64| bytes[at..at + 8].copy_from_slice(&number.to_le_bytes());
        match *self {
            Self::Input { input, hash } => {
                long(0, input.at);
                long(8, input.token);
                long(16, hash);
                let Transport { protocol, ports: [from, to] } = input.transport;
                long(24, u64::from(input.way) | u64::from(from) << 32 | u64::from(to) << 48);
                long(32, u64::from(input.bytes) | u64::from(input.header) << 32);
                let told = match input.errors {
                    Errors::None => 0,
                    Errors::V4 => TOLD_V4,
                    Errors::V6 => TOLD_V6,
                };
                let flags = told | if input.whole { WHOLE } else { 0 };
                bytes[40..45].copy_from_slice(&[INPUT, input.class, input.ttl, flags, protocol]);
            }
            Self::Output { output, hash } => {
                long(0, output.at);
                long(8, output.token);
                long(16, hash);
                let (kind, byte, upper, last) = match output.fate {
                    DeliveryStatus::Delivered { ce: false, hops } => (DELIVERED, hops, 0, 0),
                    DeliveryStatus::Delivered { ce: true, hops } => (DELIVERED_CE, hops, 0, 0),
                    DeliveryStatus::Lost { lost_at, place, message } => {
                        (LOST, message.into(), place, lost_at)
                    }
                    DeliveryStatus::Message {
                        said: MessageContent { router, error, passed, bytes, more, marked },
                        hops,
                    } => {
                        let mtu = match error {
                            Error::TimeExceeded => 0,
                            Error::TooBig { mtu } => mtu,
                        };
                        let flags = u32::from(more) | u32::from(marked) << 1;
                        let upper = u32::from(router) | u32::from(passed) << 16 | flags << 24;
                        (MESSAGE, hops, upper, u64::from(mtu) | u64::from(bytes) << 32)
                    }
                    DeliveryStatus::MessageLost => (MESSAGE_LOST, 0, 0, 0),
                };
                long(24, u64::from(output.way) | u64::from(upper) << 32);
                long(32, last);
                bytes[40..42].copy_from_slice(&[kind, byte]);
            }
            Self::Events { at } => {
                long(0, at);
                bytes[40] = EVENTS;
            }
            Self::End { at } => {
                long(0, at);
                bytes[40] = END;
            }
        }
        bytes
    }

    /// Decodes a record. Returns `None` if the bytes are not the encoding of a record.
    fn read(bytes: &[u8; RECORD]) -> Option<Self> {
        Self::parse(bytes).filter(|record| record.write() == *bytes)
    }

    fn parse(bytes: &[u8; RECORD]) -> Option<Self> {
        let long = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"));
        let (at, token, hash) = (long(0), long(8), long(16));
        let (way, upper) = (long(24) as u32, (long(24) >> 32) as u32);
        let output = |fate| Some(Self::Output { output: Output { at, way, token, fate }, hash });
        match bytes[40] {
            INPUT => {
                let (class, ttl, flags, protocol) = (bytes[41], bytes[42], bytes[43], bytes[44]);
                let transport = Transport { protocol, ports: [upper as u16, (upper >> 16) as u16] };
                let whole = flags & WHOLE != 0;
                let errors = match flags & !WHOLE {
                    TOLD_V4 => Errors::V4,
                    TOLD_V6 => Errors::V6,
                    _ => Errors::None,
                };
                let (bytes, header) = (long(32) as u32, (long(32) >> 32) as u16);
                let input = Input { at, way, bytes, header, class, ttl, transport, whole, errors, token };
                Some(Self::Input { input, hash })
            }
            DELIVERED => output(DeliveryStatus::Delivered { ce: false, hops: bytes[41] }),
            DELIVERED_CE => output(DeliveryStatus::Delivered { ce: true, hops: bytes[41] }),
            LOST => output(DeliveryStatus::Lost { lost_at: long(32), place: upper, message: bytes[41] != 0 }),
            MESSAGE => {
                let error = match long(32) as u32 {
                    0 => Error::TimeExceeded,
                    mtu => Error::TooBig { mtu },
                };
                let (flags, length) = (upper >> 24, (long(32) >> 32) as u16);
                let (more, marked) = (flags & 1 != 0, flags & 2 != 0);
                let (router, passed) = (upper as u16, (upper >> 16) as u8);
                let said = MessageContent { router, error, passed, bytes: length, more, marked };
                output(DeliveryStatus::Message { said, hops: bytes[41] })
            }
            MESSAGE_LOST => output(DeliveryStatus::MessageLost),
            EVENTS => Some(Self::Events { at }),
            END => Some(Self::End { at }),
            _ => None,
        }
    }
}

/// The first error of the log, shared with the thread that writes.
type Failure = Arc<Mutex<Option<String>>>;

/// A log that is being written.
pub(super) struct Log {
    block: Vec<u8>,
    blocks: Option<SyncSender<Vec<u8>>>,
    empty: Receiver<Vec<u8>>,
    failure: Failure,
    writing: Option<JoinHandle<()>>,
    records: u64,
    /// Latest instant at which the current block is written; `None` if the block is empty or its age is not known yet.
    due: Option<u64>,
}

impl Log {
    /// Creates a file that only its owner may open, and writes the header line.
    pub(super) fn create(path: &Path, header: &Value) -> io::Result<Self> {
        let mut options = std::fs::OpenOptions::new();
        let mut file = options.write(true).create(true).truncate(true).mode(0o600).open(path)?;
        file.write_all(format!("{header}\n").as_bytes())?;
        Ok(Self::writing(file))
    }

    /// Starts the thread that writes blocks to `file`.
    fn writing(mut file: impl Write + Send + 'static) -> Self {
        let (blocks, full) = sync_channel::<Vec<u8>>(BLOCKS);
        let (give_back, empty) = sync_channel(BLOCKS);
        let failure = Failure::default();
        let failed = Arc::clone(&failure);
        let writing = std::thread::spawn(move || {
            signal::block_all();
            while let Ok(mut block) = full.recv() {
                if let Err(error) = file.write_all(&block) {
                    tell(&failed, format!("the log ends early: {error}"));
                    return;
                }
                block.clear();
                // If the queue of free blocks is full, this block is simply freed.
                let _ = give_back.try_send(block);
            }
            if let Err(error) = file.flush() {
                tell(&failed, format!("the log ends early: {error}"));
            }
        });
        Self {
            block: Vec::with_capacity(BLOCK * RECORD),
            blocks: Some(blocks),
            empty,
            failure,
            writing: Some(writing),
            records: 0,
            due: None,
        }
    }

    /// Appends a record. Never blocks.
    #[inline]
    pub(super) fn put(&mut self, record: &Record) {
        if self.blocks.is_none() {
            return;
        }
        self.records += 1;
        self.block.extend_from_slice(&record.write());
        if self.block.len() == BLOCK * RECORD {
            self.hand_over();
        }
    }

    /// Writes the current block if it has waited longer than `OLD`. `now` is the driver's clock in ns.
    #[inline]
    pub(super) fn look(&mut self, now: u64) {
        if self.block.is_empty() {
            self.due = None;
            return;
        }
        match self.due {
            None => self.due = Some(now + OLD),
            Some(due) if due <= now => {
                self.due = None;
                self.hand_over();
            }
            Some(_) => {}
        }
    }

    #[cold]
    fn hand_over(&mut self) {
        let full = self.block.len() == BLOCK * RECORD;
        let next = self.empty.try_recv().unwrap_or_else(|_| Vec::with_capacity(BLOCK * RECORD));
        let block = std::mem::replace(&mut self.block, next);
        let Some(blocks) = &self.blocks else { return };
        match blocks.try_send(block) {
            Ok(()) => {}
            // The thread has recorded its error.
            Err(TrySendError::Disconnected(_)) => self.blocks = None,
            // A block that is not full can wait.
            Err(TrySendError::Full(block)) if !full => self.block = block,
            Err(TrySendError::Full(_)) => {
                tell(&self.failure, "the log ends early: the disk is too slow for it".to_owned());
                self.blocks = None;
            }
        }
    }

    /// Writes the remaining records and waits until the thread has finished.
    pub(super) fn close(&mut self) {
        if self.blocks.is_some() {
            let block = std::mem::take(&mut self.block);
            if let Some(blocks) = self.blocks.take() {
                // If the thread has ended, it has recorded its error.
                let _ = blocks.send(block);
            }
        }
        if let Some(writing) = self.writing.take() {
            writing.join().expect("the log thread does not panic");
        }
    }

    pub(super) fn to_json(&self) -> Value {
        let failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner).clone();
        json!({ "records": self.records, "error": failure })
    }
}

fn tell(failure: &Failure, why: String) {
    failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(why);
}

/// A log that is being read.
pub(super) struct Reading<R> {
    pub(super) header: Value,
    input: BufReader<R>,
    /// Offset of the first record in the file, in bytes.
    begin: u64,
    /// True if the last record was truncated.
    pub(super) cut: bool,
}

impl<R: Read + Seek> Reading<R> {
    pub(super) fn new(input: R) -> io::Result<Self> {
        let mut input = BufReader::with_capacity(1 << 16, input);
        let mut line = Vec::new();
        (&mut input).take(LONGEST_HEADER).read_until(b'\n', &mut line)?;
        let header = serde_json::from_slice(&line).map_err(|_| {
            io::Error::new(io::ErrorKind::InvalidData, "it does not start like a log of `emulate`")
        })?;
        Ok(Self { header, input, begin: line.len() as u64, cut: false })
    }

    /// Returns the offset of a record in the file, in bytes.
    pub(super) fn offset(&self, record: u64) -> u64 {
        self.begin + record * RECORD as u64
    }

    /// Goes back to the first record.
    pub(super) fn rewind(&mut self) -> io::Result<()> {
        self.input.seek(SeekFrom::Start(self.begin)).map(|_| ())
    }

    /// Reads the next record. Returns `None` at the end or at a truncated record, and `Some(None)` if the bytes are no valid record.
    pub(super) fn next(&mut self) -> io::Result<Option<Option<Record>>> {
        let mut bytes = [0; RECORD];
        let mut there = 0;
        while there < RECORD {
            match self.input.read(&mut bytes[there..]) {
                Ok(0) => break,
                Ok(more) => there += more,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        self.cut = (1..RECORD).contains(&there);
        Ok((there == RECORD).then(|| Record::read(&bytes)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A disk that accepts `room` bytes and is then full, for tests.
    struct Disk {
        room: usize,
    }

    impl Write for Disk {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            if self.room < bytes.len() {
                return Err(io::Error::from_raw_os_error(libc::ENOSPC));
            }
            self.room -= bytes.len();
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn log_records_round_trip() {
        let (at, way, token) = (u64::MAX - 1, 70_000, 0x0123_4567_89ab_cdef);
        let input = Input {
            at,
            way,
            bytes: 65_535,
            header: 40,
            class: 0xb9,
            ttl: 3,
            transport: Transport { protocol: 17, ports: [u16::MAX, 1] },
            whole: true,
            errors: Errors::V6,
            token,
        };
        let said = |error| MessageContent {
            router: u16::MAX,
            error,
            passed: 200,
            bytes: 1500,
            more: true,
            marked: false,
        };
        let fates = [
            DeliveryStatus::Delivered { ce: false, hops: 0 },
            DeliveryStatus::Delivered { ce: true, hops: 255 },
            DeliveryStatus::Lost { lost_at: 12, place: 0xdead_beef, message: false },
            DeliveryStatus::Lost { lost_at: 12, place: 0xdead_beef, message: true },
            DeliveryStatus::Message { said: said(Error::TimeExceeded), hops: 3 },
            DeliveryStatus::Message { said: said(Error::TooBig { mtu: 1400 }), hops: 0 },
            DeliveryStatus::MessageLost,
        ];
        let outputs = fates.map(|fate| Record::output(&Output { at, way, token, fate }, b"abc"));
        let plain = Input { whole: false, errors: Errors::V4, ..input };
        let silent = Input { errors: Errors::None, ..input };
        let inputs = [input, plain, silent].map(|input| Record::input(&input, b"abc"));
        let others = [Record::events(4), Record::end(5)].into_iter().chain(inputs);
        for record in others.chain(outputs) {
            assert_eq!(Record::read(&record.write()), Some(record));
        }
        assert_eq!(Record::read(&[0; RECORD]), None);
        // Unused bytes must be zero.
        let mut delivered = Record::output(&Output { at, way, token, fate: fates[0] }, b"abc").write();
        for place in (28..40).chain(42..RECORD) {
            delivered[place] ^= 1;
            assert_eq!(Record::read(&delivered), None, "byte {place} was changed");
            delivered[place] ^= 1;
        }
    }

    #[test]
    fn log_reports_a_full_disk() {
        let mut log = Log::writing(Disk { room: 3 * BLOCK * RECORD });
        for number in 1..=20 * BLOCK {
            log.put(&Record::end(1));
            if number.is_multiple_of(BLOCK) {
                std::thread::sleep(std::time::Duration::from_millis(1));
            }
        }
        log.close();
        let told = log.to_json()["error"].as_str().expect("the log has an error").to_owned();
        assert!(told.contains("No space left"), "{told}");
    }

    #[test]
    fn truncated_log_ends_before_the_cut() {
        let mut bytes = b"{\"engpass-log\":1}\n".to_vec();
        bytes.extend(Record::end(1).write());
        bytes.extend(&Record::end(2).write()[..20]);
        let mut reading = Reading::new(io::Cursor::new(bytes)).expect("the log has a header");
        assert_eq!(reading.header["engpass-log"], 1);
        for _ in 0..2 {
            assert_eq!(reading.next().expect("the record is complete"), Some(Some(Record::end(1))));
            assert_eq!(reading.next().expect("a truncated record ends the log"), None);
            reading.rewind().expect("an in-memory log is seekable");
        }
        assert_eq!(reading.offset(1), 18 + 48);
        assert!(Reading::new(io::Cursor::new(b"no JSON\n")).is_err());
    }
}
