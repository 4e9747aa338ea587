//! The result of one end of a flow, as `collect` returns it.

use std::thread;

use serde_json::{Map, Value, json};

use super::control::EndReason;
use super::monitor::Watched;
use super::spec::Spec;
use super::stream_result::{RejectedInput, StreamResult};
use super::subflow;
use crate::protocol_error::{Code, ProtocolError};
use crate::statistics::Distribution;
use crate::sys::thread::Cpu;

/// Merges the distributions of all streams that have one.
fn merged<'a>(all: impl Iterator<Item = &'a Option<Distribution>>) -> Value {
    let mut sum: Option<Distribution> = None;
    for one in all.flatten() {
        match &mut sum {
            Some(sum) => sum.add(one),
            None => sum = Some(one.clone()),
        }
    }
    sum.map_or(Value::Null, |sum| sum.to_json())
}

fn put(fields: &mut Map<String, Value>, name: &str, value: Value) {
    if !value.is_null() {
        fields.insert(name.to_owned(), value);
    }
}

/// Builds the flow's result from the results of its streams.
pub(super) fn of(
    spec: &Spec,
    joined: Vec<thread::Result<StreamResult>>,
    granted: Vec<Value>,
    door: RejectedInput,
    watched: Option<Watched>,
) -> Value {
    let lost_thread = joined.iter().any(Result::is_err);
    let all: Vec<StreamResult> = joined.into_iter().filter_map(Result::ok).collect();
    let sum = |of: fn(&StreamResult) -> u64| all.iter().map(of).sum::<u64>();
    let mut fields = Map::new();
    let mut set = |name: &str, value: Value| put(&mut fields, name, value);
    let asked = &spec.asked;
    set("flow", json!(asked.flow));
    set("kind", json!(asked.kind.name()));
    set("role", json!(spec.role.name()));
    set("side", json!(if spec.listens() { "listen" } else { "connect" }));
    // The worst reason among the streams is that of the flow; the variants of `EndReason` are in ascending order.
    let ended = all.iter().map(|tally| tally.ended as u8).max();
    let ended = all
        .iter()
        .find(|tally| Some(tally.ended as u8) == ended)
        .map_or(EndReason::Failed, |tally| tally.ended);
    let panicked = || {
        ProtocolError::new(Code::System, "a thread of the agent has died", "report this as a bug of Engpass")
    };
    let error = all.iter().find_map(|tally| tally.error.clone()).or_else(|| lost_thread.then(panicked));
    set("ended", json!(if error.is_some() { EndReason::Failed } else { ended }));
    set("error", json!(error));
    set("bytes", json!(sum(|tally| tally.bytes)));
    set("messages", json!(sum(|tally| tally.messages)));
    set("elapsed_ns", json!(all.iter().map(|tally| tally.elapsed).max()));
    set("total_bytes", json!(sum(|tally| tally.total_bytes)));
    set("total_messages", json!(sum(|tally| tally.total_messages)));
    set("cpu", json!(all.iter().fold(Cpu::default(), |cpu, tally| cpu.plus(tally.cpu))));
    let unfit = all.iter().fold(door, |unfit, tally| unfit.plus(tally.unfit));
    set("unfit", json!(unfit));
    set("late", merged(all.iter().map(|tally| &tally.late)));
    set("latency", merged(all.iter().map(|tally| &tally.latency)));
    set("delay", merged(all.iter().map(|tally| &tally.delay)));
    if all.iter().any(|tally| tally.latency.is_some()) {
        set("unanswered", json!(sum(|tally| tally.unanswered)));
    }
    // Gaps are reported for a single stream only, because the time between datagrams of different streams means nothing.
    if let [one] = &all[..] {
        set("gaps", one.gaps.as_ref().map_or(Value::Null, |gaps| gaps.to_json()));
        set("sequence", one.sequence.as_ref().map_or(Value::Null, |sequence| sequence.to_json()));
    }
    set("pacing", all.iter().find_map(pacing).unwrap_or(Value::Null));
    let copied = all.iter().filter_map(|tally| tally.copied).reduce(|a, b| (a.0 + b.0, a.1 + b.1));
    set(
        "copied",
        copied.map_or(Value::Null, |(all, copied)| json!({ "completions": all, "copied": copied })),
    );
    if let Some(watched) = watched {
        set("cores", watched.cores);
        set("series", json!(watched.series));
    }
    let alone = all.len() == 1;
    let streams = all.iter().enumerate().map(|(index, tally)| stream(tally, granted.get(index), alone));
    set("streams", streams.collect());
    Value::Object(fields)
}

/// Returns how a stream was paced. The flow's result takes the first stream that was paced for all.
fn pacing(tally: &StreamResult) -> Option<Value> {
    let (method, reason) = tally.pacing.as_ref()?;
    let mut told = json!({ "method": method, "reason": reason });
    if let (Value::Object(told), Some(Value::Object(more))) = (&mut told, &tally.punctual) {
        told.extend(
            more.iter()
                .filter(|(_, value)| !value.is_null())
                .map(|(name, value)| (name.clone(), value.clone())),
        );
    }
    Some(told)
}

fn stream(tally: &StreamResult, granted: Option<&Value>, alone: bool) -> Value {
    let mut fields = Map::new();
    let mut set = |name: &str, value: Value| put(&mut fields, name, value);
    set("ended", json!(tally.ended));
    set("error", json!(tally.error));
    set("bytes", json!(tally.bytes));
    set("messages", json!(tally.messages));
    set("elapsed_ns", json!(tally.elapsed));
    set("cpu", json!(tally.cpu));
    set("core", json!(tally.core));
    set("granted", json!(granted));
    set("tcp", tally.tcp_json());
    set("subflows", subflow::to_json(&tally.subflows));
    if tally.sequence.is_some() {
        set("dropped", json!(tally.dropped));
    }
    if !alone {
        set("gaps", tally.gaps.as_ref().map_or(Value::Null, |gaps| gaps.to_json()));
        set("sequence", tally.sequence.as_ref().map_or(Value::Null, |sequence| sequence.to_json()));
    }
    Value::Object(fields)
}
