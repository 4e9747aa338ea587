//! Known and required keys of components, taken from their schemas as the only source.

use std::cell::LazyCell;
use std::collections::BTreeSet;
use std::sync::LazyLock;

use engpass_model::bond::Bond;
use engpass_model::circuit::Circuit;
use engpass_model::component_family::Listing;
use engpass_model::event::Event;
use engpass_model::host::Host;
use engpass_model::link::Link;
use engpass_model::router::Router;
use engpass_model::source::Traffic;
use engpass_model::switch::Switch;
use engpass_model::tunnel::Tunnel;
use indexmap::IndexMap;
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, SchemaGenerator};
use serde_json::Value as Json;

use crate::diagnostic::Diagnostic;
use crate::findings::{Findings, MOST};
use crate::path::{nearest, suggestion};
use crate::testbed::Run;
use crate::tree::Table;

/// The schemas of all components, each self-contained.
pub(crate) struct Shapes {
    pub(crate) host: Json,
    pub(crate) router: Json,
    pub(crate) link: Json,
    pub(crate) circuit: Json,
    pub(crate) tunnel: Json,
    pub(crate) bond: Json,
    pub(crate) event: Json,
    pub(crate) run: Json,
    pub(crate) switch: IndexMap<&'static str, Json>,
    pub(crate) traffic: IndexMap<&'static str, Json>,
}

impl Shapes {
    /// Returns the schema of the table of a component, and its kind if the family has kinds; `None` for an unknown family or kind.
    pub(crate) fn of(&self, family: &str, table: &Table) -> Option<(&Json, Option<&'static str>)> {
        let of_kind = |kinds: &'_ IndexMap<&'static str, Json>| {
            let kind = table.get("kind")?.node.name()?;
            kinds.get_index_of(kind.as_str())
        };
        let (kinds, index) = match family {
            "host" => return Some((&self.host, None)),
            "router" => return Some((&self.router, None)),
            "link" => return Some((&self.link, None)),
            "circuit" => return Some((&self.circuit, None)),
            "tunnel" => return Some((&self.tunnel, None)),
            "bond" => return Some((&self.bond, None)),
            "event" => return Some((&self.event, None)),
            "run" => return Some((&self.run, None)),
            "switch" => (&self.switch, of_kind(&self.switch)?),
            "traffic" => (&self.traffic, of_kind(&self.traffic)?),
            _ => return None,
        };
        kinds.get_index(index).map(|(kind, schema)| (schema, Some(*kind)))
    }
}

/// Returns a generator that inlines all subschemas.
pub(crate) fn generator() -> SchemaGenerator {
    SchemaSettings::draft2020_12().with(|settings| settings.inline_subschemas = true).into_generator()
}

fn clean(mut schema: Json) -> Json {
    without_null(&mut schema);
    schema
}

fn of<T: JsonSchema>() -> Json {
    clean(T::json_schema(&mut generator()).to_value())
}

fn kinds(listing: Listing) -> IndexMap<&'static str, Json> {
    listing.kinds.into_iter().map(|(kind, schema)| (kind, clean(schema.to_value()))).collect()
}

pub(crate) static SHAPES: LazyLock<Shapes> = LazyLock::new(|| Shapes {
    host: of::<Host>(),
    router: of::<Router>(),
    link: of::<Link>(),
    circuit: of::<Circuit>(),
    tunnel: of::<Tunnel>(),
    bond: of::<Bond>(),
    event: of::<Event>(),
    run: of::<Run>(),
    switch: kinds(Switch::listing(&mut generator())),
    traffic: kinds(Traffic::listing(&mut generator())),
});

/// Checks a table for missing and unknown keys.
pub(crate) struct Audit<'a> {
    /// Path of the component's table.
    pub(crate) base: &'a [String],
    /// The component's kind, if its table has the key `kind`, which is not part of the schema.
    pub(crate) kind: Option<&'a str>,
    pub(crate) found: &'a mut Findings,
    /// Unknown keys found, as paths below the component; at most one more than are reported.
    pub(crate) unknown: BTreeSet<Vec<String>>,
}

impl Audit<'_> {
    /// Compares a table with its schema. `owner` is the origin of the table itself.
    pub(crate) fn table(
        &mut self,
        table: &Table,
        owner: &crate::provenance::Origin,
        schema: &Json,
        at: &[String],
    ) {
        let Some(properties) = schema["properties"].as_object().or_else(|| {
            // The schema of a table without keys has no `properties`.
            static NONE: LazyLock<serde_json::Map<String, Json>> = LazyLock::new(serde_json::Map::new);
            (schema["type"] == "object").then_some(&*NONE)
        }) else {
            return;
        };
        let kind = self.kind.filter(|_| at.is_empty());
        // Computed only on an error, because nearly all tables are valid.
        let known: LazyCell<Vec<&str>, _> = LazyCell::new(|| {
            kind.map(|_| "kind").into_iter().chain(properties.keys().map(String::as_str)).collect()
        });
        let below = |key: &String| at.iter().chain([key]).cloned().collect::<Vec<String>>();
        for (key, entry) in table {
            if kind.is_some() && key == "kind" {
                continue;
            }
            match properties.get(key) {
                Some(inner) => {
                    if let Some(inside) = entry.node.table()
                        && let Some(inner) = table_schema(inner, &entry.node)
                    {
                        self.table(inside, &entry.key, inner, &below(key));
                    }
                }
                // The keys of this table are names. Whether they exist is checked elsewhere.
                None if schema["additionalProperties"].is_object() => {}
                None => {
                    let (base, known) = (self.base, &known);
                    self.found.push_error("unknown-key", || {
                        let path: Vec<String> = base.iter().cloned().chain(below(key)).collect();
                        let message = format!("unknown key `{}`", crate::tree::shortened(key));
                        let list =
                            kind.map_or_else(|| "known keys".into(), |kind| format!("keys of `{kind}`"));
                        let help = suggestion(key, &list, known);
                        let help = help.unwrap_or_else(|| "this table takes no keys".into());
                        Diagnostic::error("unknown-key", message).path(&path).at(&entry.key).help(help)
                    });
                    if self.unknown.len() <= MOST {
                        self.unknown.insert(below(key));
                    }
                }
            }
        }
        if self.unknown.len() > MOST {
            return;
        }
        for key in schema["required"].as_array().into_iter().flatten().filter_map(Json::as_str) {
            // A misspelt key was already reported; it may stand for the required one.
            let misspelt = || {
                let strange = table.keys().filter(|key| !known.contains(&key.as_str()));
                strange.into_iter().any(|word| nearest(word, known.iter().copied()) == Some(key))
            };
            if !table.contains_key(key) && !misspelt() {
                let path: Vec<&str> = self.base.iter().chain(at).map(String::as_str).chain([key]).collect();
                let message =
                    format!("`{key}` is missing in `{}`", crate::path::join(&path[..path.len() - 1]));
                let help =
                    format!("add `{key} = {}`{}", example(&properties[key]), meaning(&properties[key]));
                self.found.push(Diagnostic::error("missing-key", message).path(&path).at(owner).help(help));
            }
        }
    }
}

/// Returns the schema that a table at this position must satisfy; `None` if the value must not be a table.
fn table_schema<'a>(schema: &'a Json, node: &crate::tree::Node) -> Option<&'a Json> {
    if schema["type"] == "object" || schema["properties"].is_object() {
        return Some(schema);
    }
    let tables = table_forms(schema);
    if let [only] = tables[..] {
        return Some(only);
    }
    // A family: its kind is the only key. Deserialization reports a table with several keys.
    if node.table().is_none_or(|table| table.len() != 1) {
        return None;
    }
    let has = |key: &Json| {
        key.as_str().is_some_and(|key| node.table().is_some_and(|table| table.contains_key(key)))
    };
    tables.into_iter().find(|choice| choice["required"].as_array().is_some_and(|keys| keys.iter().all(has)))
}

/// Returns the forms of a table that this schema allows: one for each kind of a family, or one as an alternative to a plain value.
pub(crate) fn table_forms(schema: &Json) -> Vec<&Json> {
    let forms = schema["anyOf"].as_array().into_iter().flatten();
    forms.filter(|form| form["type"] == "object").collect()
}

/// Returns an example value of this schema as a file would write it.
pub(crate) fn example(schema: &Json) -> String {
    if let Some(example) = schema["examples"].get(0) {
        return example.to_string();
    }
    let words = schema["enum"].get(0).or_else(|| schema["oneOf"].get(0).map(|choice| &choice["const"]));
    if let Some(word) = words {
        return word.to_string();
    }
    match schema["type"].as_str() {
        Some("array") => "[\"a\", \"b\"]".into(),
        Some("integer") => "1".into(),
        Some("object") => "{ … }".into(),
        _ => "\"…\"".into(),
    }
}

fn meaning(schema: &Json) -> String {
    schema["description"]
        .as_str()
        .and_then(|text| text.lines().next())
        .map_or_else(String::new, |text| format!(": {}", text.trim_end_matches('.')))
}

/// Removes null from a schema, because TOML has no null: optional keys are just not required.
pub(crate) fn without_null(schema: &mut Json) {
    match schema {
        Json::Object(map) => {
            map.values_mut().for_each(without_null);
            if let Some(Json::Array(types)) = map.get_mut("type") {
                types.retain(|name| name != "null");
                if let [only] = &types[..] {
                    let only = only.clone();
                    map.insert("type".into(), only);
                }
            }
            if let Some(Json::Array(choices)) = map.get_mut("anyOf") {
                let before = choices.len();
                choices.retain(|choice| choice["type"] != "null");
                if choices.len() == 1 && before == 2 {
                    let only = choices.remove(0);
                    map.shift_remove("anyOf");
                    for (key, value) in only.as_object().cloned().unwrap_or_default() {
                        // The description of the key takes precedence over that of its type.
                        map.entry(key).or_insert(value);
                    }
                }
            }
            if let Some(Json::Object(keys)) = map.get_mut("default") {
                keys.retain(|_, value| !value.is_null());
            }
            if map
                .get("default")
                .is_some_and(|default| default.is_null() || *default == serde_json::json!({}))
            {
                map.shift_remove("default");
            }
        }
        Json::Array(items) => items.iter_mut().for_each(without_null),
        _ => {}
    }
}
