//! The replay: injects the packets of a log in virtual time and compares the delivery reports with the log.

use std::collections::VecDeque;
use std::io::{self, Read, Seek};

use engpass_simulate::injection::FOREVER;
use serde_json::{Value, json};

use super::log::{Reading, Record};
use super::network::{DeliveryStatus, Input, Network, Output, Way};

/// Result of a replay.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Replayed {
    pub(super) inputs: u64,
    pub(super) outputs: u64,
    /// Virtual time up to which replay and log were compared, in picoseconds.
    pub(super) until: u64,
    /// True if the log contains the end of the run.
    pub(super) whole: bool,
    pub(super) difference: Option<Difference>,
    /// Number of packets whose payload changed between injection and delivery.
    pub(super) changed: u64,
    /// The damaged record at which the replay stopped, if any.
    pub(super) damage: Option<Damage>,
}

/// A record that no driver can have written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Damage {
    /// Index of the record, from zero.
    pub(super) record: u64,
    /// Reason why no driver can have written the record, as a sentence.
    pub(super) why: String,
}

/// The first difference between replay and log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Difference {
    /// Index of the first delivery report that differs, from zero.
    pub(super) output: u64,
    /// The report in the log; `None` if the log has no more reports.
    pub(super) logged: Option<Output>,
    /// The report of the replay; `None` if the replay has no more reports.
    pub(super) replayed: Option<Output>,
}

/// Number of records between two checks for an interrupt.
const QUESTION: u64 = 4096;
/// Longest virtual time between two such checks, in picoseconds.
const STEP: u64 = 1_000_000_000_000;
/// Length of an IP header without options, which is the shortest packet (RFC 791 section 3.1), in bytes.
const IP_HEADER_BYTES: u32 = 20;

/// Reason for damage: a record follows the record of the end.
const BEHIND: &str = "it comes after the end of the run";

struct Replay<'a, N> {
    network: &'a mut N,
    interrupted: &'a dyn Fn() -> bool,
    /// True if the replay was interrupted.
    stopped: bool,
    pending: VecDeque<Output>,
    reached: u64,
    /// Injected packets that have not been reported yet: payload hash by token.
    inside: std::collections::BTreeMap<u64, u64>,
    found: Replayed,
}

impl<N: Network> Replay<'_, N> {
    fn advance(&mut self, at: u64) {
        while at > self.reached + STEP {
            if (self.interrupted)() {
                self.stopped = true;
                return;
            }
            self.run_until(self.reached + STEP);
        }
        self.run_until(at);
    }

    fn run_until(&mut self, at: u64) {
        let pending = &mut self.pending;
        self.network.run_until(at, &mut |output| pending.push_back(output));
        self.reached = self.reached.max(at);
    }

    /// Replays one record. Returns whether it agrees with the log.
    fn take(&mut self, record: &Record, next: Option<&Record>) -> bool {
        match *record {
            Record::Input { input, hash } => {
                self.found.inputs += 1;
                self.inside.insert(input.token, hash);
                self.network.inject(input);
                // Packets of one instant were injected together. Therefore all of them are injected before the network advances.
                if !matches!(next, Some(Record::Input { input: next, .. }) if next.at == input.at) {
                    self.advance(input.at);
                }
                true
            }
            Record::Output { output, hash } => {
                if self.pending.is_empty() {
                    self.advance(output.at.max(self.reached));
                }
                if self.inside.remove(&output.token).is_some_and(|entered| entered != hash) {
                    self.found.changed += 1;
                }
                self.compare(Some(output))
            }
            Record::Events { at } => {
                self.network.begin_events(at);
                true
            }
            Record::End { at } => {
                self.advance(at);
                self.found.until = at;
                self.pending.is_empty() || self.compare(None)
            }
        }
    }

    fn compare(&mut self, logged: Option<Output>) -> bool {
        let replayed = self.pending.pop_front();
        if logged == replayed {
            self.found.outputs += 1;
            self.found.until = logged.map_or(self.found.until, |output| output.at);
            return true;
        }
        self.found.difference = Some(Difference { output: self.found.outputs, logged, replayed });
        false
    }
}

/// Replays a log on a fresh network, up to the first damaged record. Returns `None` if `interrupted` returns true.
///
/// # Errors
/// Fails when the log cannot be read.
pub(super) fn replay(
    network: &mut impl Network,
    log: &mut Reading<impl Read + Seek>,
    interrupted: &dyn Fn() -> bool,
) -> io::Result<Option<Replayed>> {
    let Some(CheckedLog { records, whole, damage }) = sound(network.ways(), log, interrupted)? else {
        return Ok(None);
    };
    log.rewind()?;
    let found = Replayed { inputs: 0, outputs: 0, until: 0, whole, difference: None, changed: 0, damage };
    let inside = std::collections::BTreeMap::new();
    let pending = VecDeque::new();
    let mut replay = Replay { network, interrupted, stopped: false, pending, reached: 0, inside, found };
    let mut record = if records > 0 { log.next()?.flatten() } else { None };
    for count in 1..=records {
        let Some(this) = record else { break };
        let next = if count < records { log.next()?.flatten() } else { None };
        let same = replay.take(&this, next.as_ref());
        if replay.stopped || count.is_multiple_of(QUESTION) && interrupted() {
            return Ok(None);
        }
        if !same {
            // Records after the difference were not compared, so damage there does not count.
            replay.found.damage = None;
            break;
        }
        record = next;
    }
    Ok(Some(replay.found))
}

/// The part of a log that can be replayed.
struct CheckedLog {
    /// Number of undamaged records at the start.
    records: u64,
    /// True if the undamaged records include the end of the run.
    whole: bool,
    damage: Option<Damage>,
}

/// Checks all records once for content that no driver can have written.
fn sound(
    ways: &[Way],
    log: &mut Reading<impl Read + Seek>,
    interrupted: &dyn Fn() -> bool,
) -> io::Result<Option<CheckedLog>> {
    let damaged = |record, why| {
        Some(CheckedLog { records: record, whole: false, damage: Some(Damage { record, why }) })
    };
    // The latest instant so far, and the index of its record.
    let mut latest = (0, 0);
    let mut whole = false;
    for record in 0.. {
        let Some(this) = log.next()? else {
            if whole && log.cut {
                return Ok(damaged(record, BEHIND.to_owned()));
            }
            return Ok(Some(CheckedLog { records: record, whole, damage: None }));
        };
        if record.is_multiple_of(QUESTION) && interrupted() {
            return Ok(None);
        }
        let Some(this) = this else {
            return Ok(damaged(record, "its format is invalid".to_owned()));
        };
        if whole {
            return Ok(damaged(record, BEHIND.to_owned()));
        }
        if let Some(why) = impossible(ways, &this) {
            return Ok(damaged(record, why));
        }
        let (at, is_output) = match this {
            Record::Input { input, .. } => (input.at, false),
            Record::Output { output, .. } => (output.at, true),
            Record::Events { at } | Record::End { at } => (at, false),
        };
        // A driver logs all reports up to an instant before the next injection, so injections never go back in time.
        if !is_output && at < latest.0 {
            let why = format!(
                "its time is {} ps, but record {record} after it has the earlier time {at} ps",
                latest.0
            );
            return Ok(damaged(latest.1, why));
        }
        if at > latest.0 {
            latest = (at, record);
        }
        whole = matches!(this, Record::End { .. });
    }
    unreachable!("a log has fewer than 2^64 records")
}

/// Returns the reason why no driver of this network can have written the record; `None` if it is possible.
fn impossible(ways: &[Way], record: &Record) -> Option<String> {
    let (at, way) = match *record {
        Record::Input { input, .. } => (input.at, Some(input.way)),
        Record::Output { output, .. } => (output.at, Some(output.way)),
        Record::Events { at } | Record::End { at } => (at, None),
    };
    if at > FOREVER {
        return Some("its time is out of range".to_owned());
    }
    let way = match way.map(|way| (way, ways.get(way as usize))) {
        Some((way, None)) => {
            return Some(format!("it refers to path {way}, but the number of paths is {}", ways.len()));
        }
        Some((_, way)) => way,
        None => None,
    };
    let (Record::Input { input, .. }, Some(way)) = (record, way) else { return None };
    let Input { bytes, header, .. } = *input;
    if bytes > way.longest || bytes < IP_HEADER_BYTES + u32::from(header) {
        let mtu = way.longest;
        return Some(format!(
            "its packet has {bytes} B, with {header} B of headers after the first, on a path with an MTU of {mtu} B"
        ));
    }
    None
}

impl Replayed {
    /// Returns the result as `docs/driver.md` describes it, with drop locations as text.
    pub(super) fn to_json(&self, network: &impl Network) -> Value {
        let ways = network.ways();
        let words = |output: &Output| {
            let way = ways.get(output.way as usize).map_or("?", |way| &way.name);
            let fate = match output.fate {
                DeliveryStatus::Delivered { ce: false, .. } => json!("delivered"),
                DeliveryStatus::Delivered { ce: true, .. } => json!("delivered, marked CE"),
                DeliveryStatus::Lost { place, message, .. } => {
                    let told = if message { ", and a router informs its sender" } else { "" };
                    json!(format!("lost: {}{told}", network.place(place)))
                }
                DeliveryStatus::Message { said, .. } => {
                    json!(format!("its sender gets the message: {}", network.reason(said)))
                }
                DeliveryStatus::MessageLost => json!("the message about it is lost"),
            };
            let mut words = json!({ "at_ps": output.at, "way": way, "token": output.token, "fate": fate });
            if let DeliveryStatus::Delivered { hops, .. } | DeliveryStatus::Message { hops, .. } = output.fate
            {
                words["routers"] = json!(hops);
            }
            words
        };
        let difference = self.difference.as_ref().map(|difference| {
            json!({
                "output": difference.output,
                "logged": difference.logged.as_ref().map(words),
                "replayed": difference.replayed.as_ref().map(words),
            })
        });
        json!({
            "identical": self.difference.is_none() && self.changed == 0,
            "whole": self.whole,
            "inputs": self.inputs,
            "outputs": self.outputs,
            "until_ps": self.until,
            "changed_payloads": self.changed,
            "difference": difference,
        })
    }
}
