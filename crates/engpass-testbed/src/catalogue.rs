//! The catalogue: every kind of component with its keys, for the reference and for `engpass catalogue`.

use engpass_model::bond::BondMode;
use engpass_model::discard::Discard;
use engpass_model::forward::Ecmp;
use engpass_model::queue::Queue;
use engpass_model::schedule::Schedule;
use engpass_model::source::Traffic;
use engpass_model::switch::Switch;
use engpass_model::tcp::congestion::Congestion;
use engpass_model::tunnel::TunnelHeader;
use engpass_model::wire::{Encapsulation, Medium};
use schemars::JsonSchema;
use serde_json::{Value, json};

use crate::codes::CODES;
use crate::required_keys::{SHAPES, generator, table_forms, without_null};

/// Returns the families with their kinds, and the keys of each kind with type, help and default; the words for a medium or an encapsulation; and the
/// codes of diagnostics.
pub fn catalogue() -> Value {
    let single = |name: &str, schema: &Value| family(name, &format!("[{name}.NAME]"), [(name, schema)]);
    let tables = |map: &'static indexmap::IndexMap<&'static str, Value>| {
        map.iter().map(|(kind, schema)| (*kind, schema))
    };
    let nested = |family_name: &str, key: &str, listing: engpass_model::component_family::Listing| {
        let kinds: Vec<(&str, Value)> =
            listing.kinds.into_iter().map(|(kind, schema)| (kind, clean(schema.to_value()))).collect();
        family(family_name, key, kinds.iter().map(|(kind, schema)| (*kind, schema)))
    };
    json!({
        "families": [
            single("host", &SHAPES.host),
            family(Switch::FAMILY, "[switch.NAME]", tables(&SHAPES.switch)),
            single("router", &SHAPES.router),
            single("link", &SHAPES.link),
            single("circuit", &SHAPES.circuit),
            single("tunnel", &SHAPES.tunnel),
            single("bond", &SHAPES.bond),
            family(Traffic::FAMILY, "[traffic.NAME]", tables(&SHAPES.traffic)),
            single("event", &SHAPES.event),
            nested(Discard::FAMILY, "`discard` of a switch", Discard::listing(&mut generator())),
            nested(Schedule::FAMILY, "`schedule` of a switch", Schedule::listing(&mut generator())),
            nested(Queue::FAMILY, "`queue` of a switch, router or link", Queue::listing(&mut generator())),
            nested(Ecmp::FAMILY, "`ecmp` of a router", Ecmp::listing(&mut generator())),
            nested(BondMode::FAMILY, "`mode` of a bond", BondMode::listing(&mut generator())),
            nested(TunnelHeader::FAMILY, "`header` of a tunnel", TunnelHeader::listing(&mut generator())),
            nested(
                Congestion::FAMILY,
                "`congestion` in `tcp` of a host or traffic",
                Congestion::listing(&mut generator()),
            ),
            family("run", "[run]", [("run", &SHAPES.run)]),
        ],
        "words": [
            words::<Medium>("medium"),
            words::<Encapsulation>("encapsulation"),
        ],
        "codes": CODES.iter().map(|(code, help)| json!({ "code": code, "help": help })).collect::<Vec<_>>(),
    })
}

fn clean(mut schema: Value) -> Value {
    without_null(&mut schema);
    schema
}

fn family<'a>(name: &str, place: &str, kinds: impl IntoIterator<Item = (&'a str, &'a Value)>) -> Value {
    let kinds = kinds
        .into_iter()
        .map(|(kind, schema)| json!({ "kind": kind, "help": schema["description"], "keys": keys(schema) }));
    json!({ "family": name, "place": place, "kinds": kinds.collect::<Vec<_>>() })
}

/// Returns the keys of a table. Keys of nested tables follow under their dotted names; in tables by name, `NAME` stands for the name.
fn keys(schema: &Value) -> Vec<Value> {
    let required =
        |key: &str| schema["required"].as_array().is_some_and(|keys| keys.iter().any(|name| name == key));
    let mut all = Vec::new();
    for (key, inner) in schema["properties"].as_object().into_iter().flatten() {
        all.push(json!({
            "key": key,
            "type": type_of(inner),
            "choices": choices(inner),
            "help": inner["description"],
            "required": required(key),
            "default": written(&inner["default"]),
            "example": inner["examples"][0],
        }));
        let forms = table_forms(inner);
        let table = if let [only] = forms[..] { only } else { inner };
        for (table, under) in [(table, key.clone()), (&table["additionalProperties"], format!("{key}.NAME"))]
        {
            if !table["properties"].is_object() {
                continue;
            }
            for mut below in keys(table) {
                below["key"] = format!("{under}.{}", below["key"].as_str().unwrap_or_default()).into();
                all.push(below);
            }
        }
    }
    all
}

/// Returns a default as a file would write it; null for a table, whose keys have their own defaults.
pub(crate) fn written(default: &Value) -> Value {
    match default {
        Value::Object(map) => match map.iter().next() {
            // A kind without keys, `{ kind = {} }`, is written as its name alone.
            Some((kind, Value::Object(config))) if map.len() == 1 && config.is_empty() => json!(kind),
            _ => Value::Null,
        },
        other => other.clone(),
    }
}

/// Returns the values that a key, or each item of its list, may have if they are a closed set, or the kinds if it names a family.
pub(crate) fn choices(schema: &Value) -> Vec<&str> {
    let schema = schema.get("items").unwrap_or(schema);
    if let Some(words) = schema["oneOf"].as_array() {
        return words.iter().filter_map(|word| word["const"].as_str()).collect();
    }
    let forms = schema["anyOf"].as_array().into_iter().flatten();
    let words = std::iter::once(schema).chain(forms).find_map(|form| form["enum"].as_array());
    words.into_iter().flatten().filter_map(Value::as_str).collect()
}

fn type_of(schema: &Value) -> String {
    if schema["oneOf"].is_null()
        && let Some(title) = schema["title"].as_str()
    {
        return title.into();
    }
    let words: Vec<String> = choices(schema).into_iter().map(|word| format!("`{word}`")).collect();
    if !words.is_empty() {
        let which = if schema["type"] == "array" { "a list of" } else { "one of" };
        return format!("{which} {}", words.join(", "));
    }
    match schema["type"].as_str() {
        Some("string") => "text".into(),
        Some("integer") => "a whole number".into(),
        Some("array") if schema["maxItems"] == 2 => "a list of two names".into(),
        Some("array") => "a list".into(),
        Some("object") => "a table".into(),
        Some(other) => other.into(),
        None => "anything".into(),
    }
}

fn words<T: JsonSchema>(name: &str) -> Value {
    let schema = T::json_schema(&mut generator()).to_value();
    let words = schema["oneOf"].as_array().into_iter().flatten();
    let words: Vec<Value> =
        words.map(|word| json!({ "word": word["const"], "help": word["description"] })).collect();
    json!({ "name": name, "words": words })
}
