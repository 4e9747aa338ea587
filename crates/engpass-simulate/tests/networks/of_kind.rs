//! Components of any kind of a family, built from the schema, so that a new kind is tested as soon as it is listed.

use std::sync::LazyLock;

use engpass_testbed::schema;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

/// Returns a component of a kind. Each of its keys gets the value that `value` returns for its name and schema type, or its default.
pub(super) fn of_kind<T: DeserializeOwned>(
    family: &str,
    kind: &str,
    mut value: impl FnMut(&str, &str) -> Option<Value>,
) -> T {
    static SCHEMA: LazyLock<Value> = LazyLock::new(schema);
    let kinds = SCHEMA["$defs"][family]["anyOf"].as_array().expect("a family has kinds");
    let config = kinds.iter().find_map(|table| table["properties"].get(kind));
    let keys = config.expect("the kind is in the schema")["properties"].as_object();
    let given = keys.into_iter().flatten().filter_map(|(key, schema)| {
        let name = schema["$ref"].as_str().unwrap_or_default().trim_start_matches("#/$defs/");
        Some((key.clone(), value(key, name)?))
    });
    let table: Map<String, Value> = given.collect();
    serde_json::from_value(json!({ kind: table })).expect("values of the right types are readable")
}
