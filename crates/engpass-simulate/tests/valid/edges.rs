//! Files with extreme values that `check` accepts: every one must be simulated, with a ledger that balances and plausible figures.
//!
//! The oracle's random networks have moderate values, because every cell is an event there. Here all keys of the schema are drawn, including new ones.

use std::cell::Cell;
use std::sync::LazyLock;

use engpass_limit::limit;
use engpass_model::random::Stream;
use engpass_simulate::{SimError, simulate};
use engpass_testbed::{Source, load, schema};
use proptest::prelude::*;
use serde_json::Value;

const CELLS: &str = r#"
    [host.a]
    [host.b]
    [switch.s]
    kind = "atm"
    [link.l]
    ends = ["a", "s"]
    medium = "oc-3c"
    [link.m]
    ends = ["s", "b"]
    medium = "ds3"
    [circuit.c]
    from = "a"
    to = "b"
    mtu = "1500 B"
    [traffic.u]
    kind = "udp-stream"
    from = "a"
    to = "b"
    message = "3 kB"
    [traffic.g]
    kind = "on-off"
    from = "b"
    to = "a"
    rate = "30 %"
    on = "1 ms"
    off = "1 ms"
    [traffic.i]
    kind = "cbr"
    from = "a"
    to = "b"
    rate = "10 Mbit/s line"
"#;

const FRAMES: &str = r#"
    [host.a]
    [host.b]
    [switch.s]
    kind = "ethernet"
    [router.r]
    [link.l]
    ends = ["a", "s"]
    medium = "ethernet-100"
    [link.n]
    ends = ["s", "r"]
    medium = "ethernet-10"
    [link.m]
    ends = ["r", "b"]
    medium = "point-to-point"
    rate = "5 Mbit/s"
    [traffic.u]
    kind = "udp-stream"
    from = "b"
    to = "a"
    message = "3 kB"
    rate = "1 Mbit/s"
    [traffic.p]
    kind = "poisson"
    from = "a"
    to = "b"
    message = "500 B"
    rate = "1 Mbit/s"
    [traffic.o]
    kind = "udp-on-off"
    from = "a"
    to = "b"
    message = "500 B"
    rate = "4 Mbit/s"
    on = "1 ms"
    off = "1 ms"
    [traffic.v]
    kind = "video"
    from = "a"
    to = "b"
    message = "500 B"
    rate = "1 Mbit/s"
    frame_rate = "200 fps"
    group_of_pictures = 3
    intra_size = "200 %"
    [traffic.m]
    kind = "multicast"
    from = "a"
    to = ["b"]
    message = "500 B"
    rate = "1 Mbit/s"
    [event.e]
    target = "n"
    at = "25 ms"
    change = "down"
    [event.j]
    target = "b"
    traffic = "m"
    at = "5 ms"
    change = "join"
    [event.k]
    target = "b"
    traffic = "m"
    at = "20 ms"
    change = "leave"
"#;

/// Common part of both files.
const REST: &str = r#"
    [traffic.t]
    kind = "tcp-stream"
    from = "a"
    to = "b"
    message = "4 kB"
    [run]
    duration = "30 ms"
"#;

/// Values of the quantities of the schema.
const QUANTITIES: &[(&str, &[&str])] = &[
    ("BufferSize", &["0 packets", "1 packets", "0 B", "1 GiB"]),
    ("ByteRate", &["1 kB/s", "3333 kB/s", "100000 GB/s"]),
    ("CellCount", &["1 cells", "2 cells", "10000000 cells"]),
    ("Duration", &["0 s", "1 ps", "1 us", "1 s", "1 min", "1440 min"]),
    ("FillLevel", &["0 cells", "1 cells", "0 %", "99.9999999 %"]),
    ("FrameRate", &["0.1 fps", "29.97 fps", "1000 fps"]),
    ("FramedRate", &["3 cells/s", "1 bit/s line", "0.0000001 %", "33 Mbit/s payload", "100 %"]),
    ("QueueLimit", &["1 packets", "10000000 packets", "1 B", "1 GiB", "3 packets, 2 kB"]),
    ("Rate", &["1 bit/s", "1 kbit/s", "1 Gbit/s", "1000 Gbit/s"]),
    ("Share", &["0 %", "0.0000001 %", "0.01 %", "50 %", "100 %"]),
    ("Size", &["0 B", "1 B", "68 B", "1500 B", "40 kB", "1 MB"]),
];

/// Values of keys that would otherwise make a run take hours.
const SHORT: &[(&str, &[&str])] = &[
    ("duration", &["1 ps", "2 ps", "1 us", "3 ms"]),
    ("warmup", &["0 s", "1 ps", "1 us", "29.999999999 ms"]),
    ("on", &["1 us", "1 s", "1440 min"]),
    ("off", &["1 us", "1 s", "1440 min"]),
];

const COUNTS: &[&str] = &["0", "1", "2", "40", "4294967295"];

/// Keys that refer to other tables, and keys for real hosts only.
const APART: &[&str] = &[
    "from",
    "to",
    "ends",
    "target",
    "circuit",
    "kind",
    "live",
    "reach",
    "address",
    "precision",
    "longest",
    "repeats",
];

static SCHEMA: LazyLock<Value> = LazyLock::new(schema);

/// Draws values for the keys of a schema.
struct Edges {
    schema: &'static Value,
    random: Stream,
}

impl Edges {
    fn one_of<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.random.below(of.len() as u64) as usize]
    }

    fn resolved<'a>(schema: &'a Value, node: &'a Value) -> &'a Value {
        match node["$ref"].as_str() {
            Some(path) => schema.pointer(path.trim_start_matches('#')).expect("a schema reference is valid"),
            None => node,
        }
    }

    /// Returns a value for a key, as written in a file.
    fn value(&mut self, key: &str, node: &Value) -> Option<String> {
        let name = node["$ref"].as_str().and_then(|path| path.rsplit('/').next()).unwrap_or_default();
        let short = SHORT.iter().find(|(short, _)| *short == key);
        if let Some((_, values)) = short.or(QUANTITIES.iter().find(|(quantity, _)| *quantity == name)) {
            return Some(format!("{:?}", self.one_of(values)));
        }
        let schema = self.schema;
        let node = Self::resolved(schema, node);
        if let Some(ways) = node["oneOf"].as_array().or(node["anyOf"].as_array()) {
            let way = self.one_of(&ways.iter().collect::<Vec<_>>());
            return self.value(key, way);
        }
        if let Some(words) = node["enum"].as_array() {
            return Some(self.one_of(&words.iter().collect::<Vec<_>>()).to_string());
        }
        match node["type"].as_str() {
            _ if node["const"].is_string() => Some(node["const"].to_string()),
            Some("boolean") => Some(self.one_of(&["true", "false"]).to_owned()),
            Some("integer") => Some(self.one_of(COUNTS).to_owned()),
            // The only such tables are by link name, at router `r`.
            Some("object") if node["additionalProperties"].is_object() => {
                Some(format!("{{ m = {} }}", self.value(key, &node["additionalProperties"])?))
            }
            Some("object") => {
                let required = node["required"].as_array().cloned().unwrap_or_default();
                let mut pairs = Vec::new();
                for (key, node) in node["properties"].as_object()? {
                    if required.iter().any(|one| one == key) || self.random.below(4) == 0 {
                        pairs.push(format!("{key} = {}", self.value(key, node)?));
                    }
                }
                Some(format!("{{ {} }}", pairs.join(", ")))
            }
            _ => None,
        }
    }

    /// Returns a key of some table of the file, and a value for it.
    fn change(&mut self, tables: &[Table]) -> Option<(String, String)> {
        let (path, kind) = self.one_of(tables);
        let schema = self.schema;
        let mut node = &schema["properties"][path.split('.').next().unwrap_or_default()];
        if path.contains('.') {
            node = Self::resolved(schema, &node["additionalProperties"]);
        }
        if let Some(kinds) = node["oneOf"].as_array() {
            node = kinds.iter().find(|node| node["properties"]["kind"]["const"] == kind)?;
        }
        let keys = Self::resolved(schema, node)["properties"].as_object().expect("a table has keys");
        let (key, node) = self.one_of(&keys.iter().collect::<Vec<_>>());
        let value = self.value(key, node).filter(|_| !APART.contains(&key.as_str()))?;
        Some((format!("{path}.{key}"), value))
    }
}

/// A table of a file, and its kind if it has one.
type Table = (&'static str, &'static str);

const ALL: &[Table] = &[
    ("host.a", ""),
    ("host.b", ""),
    ("link.l", ""),
    ("link.m", ""),
    ("run", ""),
    ("traffic.t", "tcp-stream"),
    ("traffic.u", "udp-stream"),
];
const OF_CELLS: &[Table] =
    &[("switch.s", "atm"), ("circuit.c", ""), ("traffic.i", "cbr"), ("traffic.g", "on-off")];
const OF_FRAMES: &[Table] = &[
    ("switch.s", "ethernet"),
    ("router.r", ""),
    ("link.n", ""),
    ("traffic.p", "poisson"),
    ("traffic.o", "udp-on-off"),
    ("traffic.v", "video"),
    ("traffic.m", "multicast"),
    ("event.e", ""),
    ("event.j", ""),
    ("event.k", ""),
];

/// Checks that shares and rates of an outcome are plausible.
fn in_order(path: &str, value: &Value) -> Result<(), TestCaseError> {
    match value {
        Value::Object(fields) => {
            for (key, value) in fields {
                // JSON has no infinity: it would be null.
                prop_assert!(!(key.ends_with("bit_per_s") && value.is_null()), "{path}.{key}");
                let most =
                    if ["utilisation", "share"].contains(&key.as_str()) { 1.0 + 1e-9 } else { f64::MAX };
                if let Some(number) = value.as_f64() {
                    prop_assert!((0.0..=most).contains(&number), "{path}.{key} is {number}");
                }
                in_order(&format!("{path}.{key}"), value)?;
            }
        }
        Value::Array(values) => values.iter().try_for_each(|value| in_order(path, value))?,
        _ => {}
    }
    Ok(())
}

/// Simulates a file. Returns false if it is rejected.
fn is_simulated(text: &str, changes: &[(String, String)]) -> Result<bool, TestCaseError> {
    let source = Source { name: "edges.toml".into(), text: text.into() };
    let Ok(campaign) = load(&source, changes, None) else { return Ok(false) };
    let point = campaign.point("base", &[]).expect("an accepted file has a base point");
    let (testbed, topology) = (&point.testbed, &point.topology);
    let most = limit(testbed, topology);
    in_order("limit", &serde_json::to_value(most.stored()).expect("an outcome serializes to JSON"))?;
    // Timers of a picosecond take too long: stop after a while.
    let asked = Cell::new(0);
    let enough = || asked.replace(asked.get() + 1) > 20;
    match simulate(testbed, topology, testbed.run.seed, &enough) {
        Ok(outcome) => in_order(
            "simulate",
            &serde_json::to_value(outcome.stored()).expect("an outcome serializes to JSON"),
        )?,
        Err(SimError::Interrupted) => {}
        Err(other) => return Err(TestCaseError::fail(format!("{other:?}"))),
    }
    Ok(true)
}

fn draw(seed: u64, changes: usize) -> (String, Vec<(String, String)>) {
    let mut edges = Edges { schema: &SCHEMA, random: Stream::new(seed, "edges") };
    let (text, own) = if edges.random.below(2) == 0 { (CELLS, OF_CELLS) } else { (FRAMES, OF_FRAMES) };
    let tables = [ALL, own].concat();
    let changes = (0..changes).filter_map(|_| edges.change(&tables)).collect();
    (format!("{text}{REST}"), changes)
}

proptest! {
    #![proptest_config(engpass_cases::cases(4000))]

    #[test]
    fn accepted_file_is_simulated_with_balanced_ledger(seed in any::<u64>(), changes in 1usize..=6) {
        let (text, changes) = draw(seed, changes);
        is_simulated(&text, &changes).map_err(|error| TestCaseError::fail(format!("{error}\n{changes:#?}")))?;
    }
}

/// A rejected file tests nothing, so most must be accepted.
#[test]
fn most_drawn_files_are_accepted() {
    let drawn: Vec<_> = (0..1000).map(|seed| draw(seed, 1)).collect();
    let accepted = drawn.iter().filter(|(text, changes)| is_simulated(text, changes).unwrap_or(true)).count();
    assert!(accepted > 500, "{accepted} of 1000");
}
