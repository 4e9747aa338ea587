//! The inputs of a log in virtual time: the outputs are the log's, or there is a first difference.

use std::collections::VecDeque;
use std::io::{self, Read};

use serde_json::{Value, json};

use super::log::{Reading, Record};
use super::network::{Fate, Network, Output};

/// What a replay found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Replayed {
    pub(super) inputs: u64,
    pub(super) outputs: u64,
    /// Up to where both were compared, in picoseconds.
    pub(super) until: u64,
    /// The log ends with the run.
    pub(super) whole: bool,
    pub(super) difference: Option<Difference>,
    /// Packets that came out with another payload than they had.
    pub(super) changed: u64,
}

/// Where a replay parts from its log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Difference {
    /// The output that differs first, counted from zero.
    pub(super) output: u64,
    /// As the log has it; `None`: the log has none more.
    pub(super) logged: Option<Output>,
    /// As the replay has it.
    pub(super) replayed: Option<Output>,
}

/// Records between two questions whether to go on.
const QUESTION: u64 = 4096;

struct Replay<'a, N> {
    network: &'a mut N,
    pending: VecDeque<Output>,
    reached: u64,
    /// Tokens that are inside, with the hashes of their payloads.
    inside: std::collections::BTreeMap<u64, u64>,
    found: Replayed,
}

impl<N: Network> Replay<'_, N> {
    fn advance(&mut self, at: u64) {
        let pending = &mut self.pending;
        self.network.run_until(at, &mut |output| pending.push_back(output));
        self.reached = self.reached.max(at);
    }

    /// Whether all is as it was so far.
    fn take(&mut self, record: &Record, next: Option<&Record>) -> bool {
        match *record {
            Record::Input { input, hash } => {
                self.found.inputs += 1;
                self.inside.insert(input.token, hash);
                self.network.inject(input);
                // Inputs of one instant were put in together.
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
            Record::End { at } => {
                self.advance(at);
                self.found.whole = true;
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

/// Replay a log on a fresh network. `None` when `interrupted` says so.
///
/// # Errors
/// When the log cannot be read.
pub(super) fn replay(
    network: &mut impl Network,
    log: &mut Reading<impl Read>,
    interrupted: &dyn Fn() -> bool,
) -> io::Result<Option<Replayed>> {
    let found = Replayed { inputs: 0, outputs: 0, until: 0, whole: false, difference: None, changed: 0 };
    let inside = std::collections::BTreeMap::new();
    let mut replay = Replay { network, pending: VecDeque::new(), reached: 0, inside, found };
    let mut record = log.next()?;
    let mut count = 0_u64;
    while let Some(this) = record {
        let next = log.next()?;
        if !replay.take(&this, next.as_ref()) {
            break;
        }
        count += 1;
        if count.is_multiple_of(QUESTION) && interrupted() {
            return Ok(None);
        }
        record = next;
    }
    Ok(Some(replay.found))
}

impl Replayed {
    /// As `docs/driver.md` says, with the words of places from the network.
    pub(super) fn to_json(&self, network: &impl Network) -> Value {
        let ways = network.ways();
        let words = |output: &Output| {
            let way = ways.get(output.way as usize).map_or("?", |way| &way.name);
            let fate = match output.fate {
                Fate::Delivered { ce: false } => json!("delivered"),
                Fate::Delivered { ce: true } => json!("delivered, marked CE"),
                Fate::Lost { place, .. } => json!(format!("lost: {}", network.place(place))),
            };
            json!({ "at_ps": output.at, "way": way, "token": output.token, "fate": fate })
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
