//! What a point of a campaign came to: one definition for all engines, for the store and for Python.
//!
//! These types are plain data. The engines fill them in, `engpass run --json` prints them, and the store keeps them as JSON. The schema
//! (`schema/outcome.schema.json`) and the Python classes (`python/engpass/types/outcome.py`) are generated from them; see [`schema`] and
//! [`python::classes`]. Rates are in bit/s, times in seconds, shares between 0 and 1; other units stand in the names.

mod flow;
mod limit;
mod link;
mod place;
pub mod python;
mod real;
mod receiver;
mod timeline;

use indexmap::IndexMap;
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::Serialize;
use serde_json::Value;

pub use flow::{Datagrams, Delays, FlowOutcome, Outage, Quantiles, Tcp};
pub use limit::{Bound, Candidate, FlowLimit, SetBy, Stage, WindowLimit};
pub use link::{CellCounts, DirectionOutcome, FrameCounts, Ledger, LinkOutcome, Share};
pub use place::{Bottleneck, BottleneckKind, MOST_PATHS, Path, Place, Step};
pub use real::{
    Emulated, Finding, GapDeviation, Gaps, Latency, MeasuredPoint, PointPrecision, Precision, RealFlow,
    Requests,
};
pub use receiver::Receiver;
pub use timeline::{FlowLine, QueueLine, TcpLine, Timeline};

/// The version of this format. Outcomes of the first version have no `version`.
pub const VERSION: u32 = 3;

/// The outcome of one point by one engine.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Outcome {
    /// Version of this format.
    pub version: u32,
    /// Name of the variant.
    pub variant: String,
    /// Engine that gave this outcome.
    pub engine: Engine,
    /// Number of the repeat, from 0.
    pub repeat: u32,
    /// Seed of the random streams.
    pub seed: u64,
    /// Swept values by path.
    pub sweep: IndexMap<String, SweptValue>,
    /// Flows by the name of their traffic table, in the order of the file.
    pub flows: IndexMap<String, FlowOutcome>,
    /// Links by name, in the order of the file.
    pub links: IndexMap<String, LinkOutcome>,
    /// Losses by place, cause and flow.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub drops: Vec<Drop>,
    /// Events that the simulation handled: a measure of its work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub events: Option<u64>,
    /// Traffic that the engine left out, and why.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub without: IndexMap<String, String>,
    /// Hosts by name, as their agents describe them: system, settings, timer, growth of their counters.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub hosts: IndexMap<String, Value>,
    /// Circumstances of a point with real hosts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub measured: Option<MeasuredPoint>,
    /// Circumstances of an emulated point.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub emulated: Option<Emulated>,
    /// False if the point does not count: an emulated network was late.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub valid: Option<bool>,
    /// Why it does not count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub invalid: Option<String>,
}

/// The part of an outcome that an engine of the model gives.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Results {
    /// Flows by the name of their traffic table, in the order of the file.
    pub flows: IndexMap<String, FlowOutcome>,
    /// Links by name, in the order of the file.
    pub links: IndexMap<String, LinkOutcome>,
    /// Losses by place, cause and flow.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub drops: Vec<Drop>,
    /// Events that the simulation handled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub events: Option<u64>,
}

/// An engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Engine {
    /// Closed forms.
    Limit,
    /// Virtual time.
    Simulate,
    /// Real stacks across the simulated network.
    Emulate,
    /// Real hosts and links.
    Measure,
}

/// A value of a swept key: one of the two.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct SweptValue {
    /// A quantity or number, in base units: bit/s, bytes, seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub number: Option<f64>,
    /// Text, as it stands in the file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

/// Losses of one flow at one place, for one cause.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Drop {
    /// A transmitter, or a node.
    pub place: Place,
    /// Cause of the loss, like `buffer full`.
    pub cause: String,
    /// Name of the traffic.
    pub flow: String,
    /// Cells, and packets on links of frames, lost here, those of a datagram that had lost one before included.
    pub cells: u64,
    /// Datagrams (for generators cells) that lost their first cell or fragment here.
    pub datagrams: u64,
}

/// JSON Schema of [`Outcome`], and under `$defs` of [`Results`] and [`Timeline`].
pub fn schema() -> Value {
    let mut generator = SchemaSettings::draft2020_12().into_generator();
    let others = [generator.subschema_for::<Results>(), generator.subschema_for::<Timeline>()];
    debug_assert!(others.iter().all(|one| one.get("$ref").is_some()));
    let mut schema = generator.into_root_schema_for::<Outcome>();
    schema.insert("title".to_owned(), "Outcome of a point of Engpass".into());
    schema.to_value()
}
