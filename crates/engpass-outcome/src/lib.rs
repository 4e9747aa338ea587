//! The outcome of a point of a campaign: one definition for all engines, the store and Python.
//!
//! The types are plain data. The engines fill them, `engpass run --json` prints them, and the store keeps them as JSON. The schema
//! (`schema/outcome.schema.json`) and the Python classes (`python/engpass/types/outcome.py`) are generated from them; see [`schema`] and
//! [`python::classes`]. Rates are in bit/s, times in seconds, shares between 0 and 1; other units are part of the field names.

mod flow;
mod limit;
mod link;
mod node;
mod place;
pub mod python;
mod real;
mod receiver;
pub mod signal;
mod timeline;

use indexmap::IndexMap;
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use flow::{Datagrams, Delays, FlowOutcome, Outage, Quantiles, Tcp, Transfer};
pub use limit::{Bound, Candidate, FlowLimit, SetBy, Stage, WindowLimit};
pub use link::{CellCounts, DirectionOutcome, FrameCounts, Ledger, LinkOutcome, QueueOutcome, Share};
pub use node::{EngineOutcome, NodeOutcome};
pub use place::{Bottleneck, BottleneckKind, MOST_PATHS, Path, Place, Step};
pub use real::{
    Emulated, Finding, GapDeviation, Gaps, Latency, MeasuredPoint, PointPrecision, Precision, RealFlow,
    Requests,
};
pub use receiver::Receiver;
pub use timeline::{DatagramLine, EngineLine, FlowLine, NodeLine, QueueLine, TcpLine, Timeline};

/// The version of this format. Outcomes of the first version have no `version`.
pub const VERSION: u32 = 3;

/// The outcome of one point with one engine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Outcome {
    /// Version of this format.
    pub version: u32,
    /// Name of the variant.
    pub variant: String,
    /// Engine that produced this outcome.
    pub engine: Engine,
    /// Number of the repeat, from 0.
    pub repeat: u32,
    /// Seed of the random streams.
    pub seed: u64,
    /// Swept values, by the path of their key.
    pub sweep: IndexMap<String, SweptValue>,
    /// Flows by the name of their traffic table, in the order of the file.
    pub flows: IndexMap<String, FlowOutcome>,
    /// Links by name, in the order of the file.
    pub links: IndexMap<String, LinkOutcome>,
    /// Nodes whose engines take time, by name: hosts with CPU costs and routers with a processing time, in the order of the file.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub nodes: IndexMap<String, NodeOutcome>,
    /// Losses by location, cause and flow.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub drops: Vec<Drop>,
    /// Number of events that the simulation processed: a measure of its work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub events: Option<u64>,
    /// Traffic that the engine does not support and left out, with the reason.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub without: IndexMap<String, String>,
    /// Reports of the agents, by host: system, settings, timer, and increase of counters during the run.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub hosts: IndexMap<String, Value>,
    /// Details of a point with real hosts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub measured: Option<MeasuredPoint>,
    /// Details of an emulated point.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub emulated: Option<Emulated>,
    /// False if the point is invalid, for example because the emulated network was late.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub valid: Option<bool>,
    /// Reason why the point is invalid.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub invalid: Option<String>,
}

/// The part of an outcome that `limit` and `simulate` compute.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Results {
    /// Flows by the name of their traffic table, in the order of the file.
    pub flows: IndexMap<String, FlowOutcome>,
    /// Links by name, in the order of the file.
    pub links: IndexMap<String, LinkOutcome>,
    /// Nodes whose engines take time, by name: hosts with CPU costs and routers with a processing time, in the order of the file.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub nodes: IndexMap<String, NodeOutcome>,
    /// Losses by location, cause and flow.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub drops: Vec<Drop>,
    /// Number of events that the simulation processed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub events: Option<u64>,
}

/// An engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Engine {
    /// Computes bounds and fair shares in closed form.
    Limit,
    /// Simulates the network in virtual time.
    Simulate,
    /// Carries the packets of real hosts through the simulated network.
    Emulate,
    /// Measures real hosts and links.
    Measure,
}

/// The value of a swept key: either `number` or `text`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SweptValue {
    /// A quantity or number in base units: bit/s, bytes, seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub number: Option<f64>,
    /// Text as written in the file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

/// Losses of one flow at one location with one cause.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Drop {
    /// Output port or node where the loss happened.
    pub place: Place,
    /// Cause of the loss, such as `buffer full`.
    pub cause: String,
    /// Name of the traffic.
    pub flow: String,
    /// Number of lost cells, or of lost packets on other links. It includes those of datagrams that had already lost a cell or fragment.
    pub cells: u64,
    /// Number of datagrams (for generators: cells) that lost their first cell or fragment here.
    pub datagrams: u64,
}

/// JSON Schema of [`Outcome`]. Its `$defs` also define [`Results`] and [`Timeline`].
pub fn schema() -> Value {
    let mut schema = declared();
    remove_declarations(&mut schema);
    schema
}

/// Returns the schema with the declarations of signals.
fn declared() -> Value {
    let mut generator = SchemaSettings::draft2020_12().into_generator();
    let others = [generator.subschema_for::<Results>(), generator.subschema_for::<Timeline>()];
    debug_assert!(others.iter().all(|one| one.get("$ref").is_some()));
    let mut schema = generator.into_root_schema_for::<Outcome>();
    schema.insert("title".to_owned(), "Outcome of a point of Engpass".into());
    schema.to_value()
}

fn remove_declarations(schema: &mut Value) {
    match schema {
        Value::Object(keys) => {
            keys.shift_remove(signal::KEYWORD);
            keys.values_mut().for_each(remove_declarations);
        }
        Value::Array(values) => values.iter_mut().for_each(remove_declarations),
        _ => {}
    }
}
