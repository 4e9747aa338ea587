//! Generates Python classes from the schema: a `msgspec.Struct` per object and a `Literal` per enumeration.

use std::fmt::Write;

use serde_json::{Map, Value};

/// Maximum line length of the generated text.
const WIDTH: usize = 110;

const IMPORTS: &str = "
from __future__ import annotations

from typing import Any, Literal, TypeAlias

import msgspec
";

/// Returns the text of the Python module for outcomes.
pub fn classes() -> String {
    let about = "The types of outcomes: generated from `crates/engpass-outcome` by `make gen`.";
    let version = format!("\nVERSION = {}\n\"\"\"The version of this format.\"\"\"\n", crate::VERSION);
    module(about, &version, &crate::schema(), "Outcome", &[])
}

/// Returns the text of a Python module with all definitions of a schema. `about` is the module's docstring, `constants` follows the
/// imports, and `root` names the class of the schema's root. Definitions in `others` are omitted because another module has them.
///
/// # Panics
/// If the schema uses anything but objects, lists, maps, string enumerations and optional values.
pub fn module(about: &str, constants: &str, schema: &Value, root: &str, others: &[&str]) -> String {
    let mut text = format!("\"\"\"{about}\"\"\"\n{IMPORTS}{constants}");
    let definitions = schema["$defs"].as_object().expect("the schema has definitions");
    let definitions = || definitions.iter().filter(|(name, _)| !others.contains(&name.as_str()));
    for (name, definition) in definitions().filter(|(_, definition)| !is_object(definition)) {
        alias(&mut text, name, definition);
    }
    for (name, definition) in definitions().filter(|(_, definition)| is_object(definition)) {
        class(&mut text, name, definition);
    }
    class(&mut text, root, schema);
    text
}

fn is_object(definition: &Value) -> bool {
    definition["type"] == "object"
}

/// Writes an enumeration of strings, with the description of its values after it.
fn alias(text: &mut String, name: &str, definition: &Value) {
    let variants = definition["oneOf"].as_array().expect("an enumeration has values");
    write!(text, "\n{name}: TypeAlias = Literal[\n").expect("writing to a string cannot fail");
    for variant in variants {
        for word in variant["enum"].as_array().into_iter().flatten().chain(variant.get("const")) {
            writeln!(text, "    {word},").expect("writing to a string cannot fail");
        }
    }
    text.push_str("]\n");
    docstring(text, "", described(definition));
}

fn class(text: &mut String, name: &str, definition: &Value) {
    let strict =
        if definition["additionalProperties"] == false { ", forbid_unknown_fields=True" } else { "" };
    write!(
        text,
        "\n\nclass {name}(msgspec.Struct, frozen=True, kw_only=True{strict}, omit_defaults=True):\n"
    )
    .expect("writing to a string cannot fail");
    docstring(text, "    ", described(definition));
    let required: Vec<&str> =
        definition["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let properties = definition["properties"].as_object().expect("an object has properties");
    text.push('\n');
    for (key, property) in properties {
        field(text, key, property, required.contains(&key.as_str()));
    }
}

fn field(text: &mut String, key: &str, property: &Value, required: bool) {
    let kind = python_type(property);
    let default = match kind.as_str() {
        _ if required => None,
        kind if kind.ends_with("| None") => Some("None"),
        kind if kind.starts_with("list[") => Some("[]"),
        kind if kind.starts_with("dict[") => Some("{}"),
        "bool" => Some("False"),
        "str" => Some("\"\""),
        _ => Some("None"),
    };
    // A Python keyword as a key gets a trailing underscore.
    let line = match (key, default) {
        ("from", None) => format!("from_: {kind} = msgspec.field(name=\"from\")"),
        (_, None) => format!("{key}: {kind}"),
        (_, Some(default)) => format!("{key}: {kind} = {default}"),
    };
    writeln!(text, "    {line}").expect("writing to a string cannot fail");
    docstring(text, "    ", described(property));
}

fn described(definition: &Value) -> &str {
    definition["description"].as_str().unwrap_or_default()
}

/// Writes a docstring, wrapped at [`WIDTH`].
fn docstring(text: &mut String, indent: &str, description: &str) {
    let words = description.split_whitespace();
    let mut line = format!("{indent}\"\"\"");
    for word in words {
        if line.len() + word.len() + 4 > WIDTH {
            writeln!(text, "{}", line.trim_end()).expect("writing to a string cannot fail");
            indent.clone_into(&mut line);
        }
        line.push_str(word);
        line.push(' ');
    }
    writeln!(text, "{}\"\"\"", line.trim_end()).expect("writing to a string cannot fail");
}

fn python_type(schema: &Value) -> String {
    // A schema without constraints: any JSON, kept unchanged.
    let Some(schema) = schema.as_object().filter(|schema| !only_describes(schema)) else {
        return "Any".to_owned();
    };
    if let Some(reference) = schema.get("$ref") {
        return named(reference);
    }
    if let Some(choices) = schema.get("anyOf").and_then(Value::as_array) {
        let types: Vec<String> = choices.iter().map(python_type).collect();
        return types.join(" | ");
    }
    let kinds = match &schema["type"] {
        Value::Array(kinds) => kinds.iter().collect(),
        kind => vec![kind],
    };
    let types: Vec<String> = kinds
        .into_iter()
        .map(|kind| match kind.as_str() {
            Some("array") => format!("list[{}]", python_type(&schema["items"])),
            Some("object") => format!("dict[str, {}]", python_type(&schema["additionalProperties"])),
            _ => scalar(kind).to_owned(),
        })
        .collect();
    types.join(" | ")
}

fn only_describes(schema: &Map<String, Value>) -> bool {
    schema.keys().all(|key| key == "description" || key == "default")
}

fn named(reference: &Value) -> String {
    let path = reference.as_str().expect("a reference is a string");
    path.rsplit('/').next().expect("a path has an end").to_owned()
}

fn scalar(kind: &Value) -> &'static str {
    match kind.as_str() {
        Some("string") => "str",
        Some("integer") => "int",
        Some("number") => "float",
        Some("boolean") => "bool",
        Some("null") => "None",
        other => panic!("no Python type for {other:?}"),
    }
}
