//! Generates Python classes from the schema: a `msgspec.Struct` per object and a `Literal` per enumeration.

use std::fmt::Write;

use serde_json::{Map, Value};

use crate::signal::{self, Signal};

/// Maximum line length of the generated text.
const WIDTH: usize = 110;

/// Names of `typing` that the classes may use.
const TYPING: [&str; 3] = ["Any", "Literal", "TypeAlias"];

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
    let mut text = String::new();
    let definitions = schema["$defs"].as_object().expect("the schema has definitions");
    let definitions = || definitions.iter().filter(|(name, _)| !others.contains(&name.as_str()));
    for (name, definition) in definitions().filter(|(_, definition)| !is_object(definition)) {
        alias(&mut text, name, definition);
    }
    for (name, definition) in definitions().filter(|(_, definition)| is_object(definition)) {
        class(&mut text, name, definition);
    }
    class(&mut text, root, schema);
    let words: Vec<&str> = text.split(|letter: char| !letter.is_alphanumeric()).collect();
    let typing: Vec<&str> = TYPING.into_iter().filter(|name| words.contains(name)).collect();
    let typing = match &typing[..] {
        [] => String::new(),
        names => format!("from typing import {}\n\n", names.join(", ")),
    };
    format!(
        "\"\"\"{about}\"\"\"\n\nfrom __future__ import annotations\n\n{typing}import msgspec\n{constants}{text}"
    )
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

const SIGNAL: &str = r#"
from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Signal:
    """A number of a flow, of a direction of a link, or of an engine of a node."""

    name: str
    """Name of the column in files."""
    title: str
    """Title of columns and axes. In lower case, claims name the signal so."""
    family: tuple[str, str] | None = None
    """For signals with a common title, such as the quantiles of a delay: that title, and the part that differs."""
    unit: str = ""
    """Base unit: `bit/s`, `s`, `B`, or the plural of what is counted; empty for a share."""
    path: str
    """Path of the field in the outcome; for a ratio, of the field above both counts."""
    ratio: tuple[str, str] | None = None
    """For a ratio: the paths of part and whole."""
    whole: bool = False
    """Whether it is a whole number."""
    fold: Literal["mean", "sum", "min", "max"] = "mean"
    """How repeats become one number. A ratio is that of the sums."""
    better: Literal["higher", "lower"] | None = None
    """The better direction."""
    always: bool = False
    """Whether every file has the column."""
    summary: bool = False
    """Whether summaries show it."""
    help: str = ""
    """What it is, in a sentence."""
"#;

/// Returns the text of the Python module with the signals of flows, lines and engines.
pub fn signals() -> String {
    let schema = crate::declared();
    let about = "Signals, the numbers of an outcome: generated from `crates/engpass-outcome` by `make gen`.";
    let mut text = format!("\"\"\"{about}\"\"\"\n{SIGNAL}");
    for (name, root, title) in SCOPES {
        write!(text, "\n{name}: tuple[Signal, ...] = (\n").expect("writing to a string cannot fail");
        for one in signal::of(&schema, root) {
            write_signal(&mut text, &one);
        }
        writeln!(text, ")\n\"\"\"{title}.\"\"\"").expect("writing to a string cannot fail");
    }
    text
}

/// Returns the page with all signals, in Markdown.
pub fn signals_page() -> String {
    let mut text = String::from(
        "# Signals\n\nGenerated from `crates/engpass-outcome` by `make gen`.\n\n\
         A signal is a number of an outcome. Its title heads columns and axes; in lower case, claims name it so (`quantity = \"delay p99\"`). Its\n\
         column is its name in `engpass export` and in downloaded files, its path that in `--json`. The fold says how repeats become one number.\n",
    );
    let schema = crate::declared();
    for (title, root) in SCOPES.map(|(_, root, title)| (title, root)) {
        write!(text, "\n## {title}\n\n| title | unit | column | path | fold | better | meaning |\n|---|---|---|---|---|---|---|\n")
            .expect("writing to a string cannot fail");
        for one in signal::of(&schema, root) {
            let unit = if one.unit.is_empty() { "share" } else { &one.unit };
            let path =
                one.ratio.as_ref().map_or(one.path.clone(), |[part, whole]| format!("{part} / {whole}"));
            let fold = if one.ratio.is_some() { "ratio of sums".to_owned() } else { word(one.fold) };
            let better = one.better.map_or(String::new(), word);
            let help = one.help.replace('|', "\\|");
            writeln!(
                text,
                "| {} | {unit} | `{}` | `{path}` | {fold} | {better} | {help} |",
                one.title, one.name
            )
            .expect("writing to a string cannot fail");
        }
    }
    text
}

/// The lists of signals: their name in Python, the class with the fields, and their title.
const SCOPES: [(&str, &str, &str); 3] = [
    ("FLOW", "FlowOutcome", "Signals of a flow"),
    ("LINE", "DirectionOutcome", "Signals of a direction of a link"),
    ("ENGINE", "EngineOutcome", "Signals of an engine of a node"),
];

/// Returns the word that stands for a variant in JSON.
fn word(value: impl serde::Serialize) -> String {
    let value = serde_json::to_value(value).expect("an enumeration of words");
    value.as_str().unwrap_or_default().to_owned()
}

fn write_signal(text: &mut String, one: &Signal) {
    let pair = |pair: &[String; 2]| format!("({:?}, {:?})", pair[0], pair[1]);
    let fold = word(one.fold);
    let better = one.better.map(word);
    let mut keys = vec![
        format!("name={:?}", one.name),
        format!("title={:?}", one.title),
        one.family.as_ref().map_or(String::new(), |family| format!("family={}", pair(family))),
        if one.unit.is_empty() { String::new() } else { format!("unit={:?}", one.unit) },
        format!("path={:?}", one.path),
        one.ratio.as_ref().map_or(String::new(), |ratio| format!("ratio={}", pair(ratio))),
        if one.whole { "whole=True".to_owned() } else { String::new() },
        if fold == "mean" { String::new() } else { format!("fold={fold:?}") },
        better.map_or(String::new(), |better| format!("better={better:?}")),
        if one.always { "always=True".to_owned() } else { String::new() },
        if one.summary { "summary=True".to_owned() } else { String::new() },
    ];
    keys.retain(|key| !key.is_empty());
    writeln!(text, "    Signal(\n        {},", keys.join(", ")).expect("writing to a string cannot fail");
    writeln!(text, "        help={:?},\n    ),", one.help).expect("writing to a string cannot fail");
}
