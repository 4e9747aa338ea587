//! Writes a testbed as a file.

use std::fmt::Write;

use engpass_testbed::{Source, Testbed, load};
use indexmap::IndexMap;
use serde::Serialize;
use serde_json::Value;

/// Returns the text of the file.
pub(crate) fn text(testbed: &Testbed) -> String {
    let mut file = format!("name = {:?}\n", testbed.name);
    tables(&mut file, "host", &testbed.hosts, false);
    tables(&mut file, "switch", &testbed.switches, true);
    tables(&mut file, "router", &testbed.routers, false);
    tables(&mut file, "link", &testbed.links, false);
    tables(&mut file, "circuit", &testbed.circuits, false);
    tables(&mut file, "tunnel", &testbed.tunnels, false);
    tables(&mut file, "bond", &testbed.bonds, false);
    tables(&mut file, "traffic", &testbed.traffic, true);
    tables(&mut file, "event", &testbed.events, false);
    file += "[run]\n";
    keys(&mut file, &json(&testbed.run));
    file
}

fn json(value: &impl Serialize) -> Value {
    serde_json::to_value(value).expect("a testbed serializes to JSON")
}

/// Writes the tables of one sort. With `kinds`, the kind is a key like the others.
fn tables<T: Serialize>(file: &mut String, sort: &str, all: &IndexMap<String, T>, kinds: bool) {
    for (name, table) in all {
        writeln!(file, "[{sort}.{name}]").expect("writing to a string cannot fail");
        match json(table) {
            Value::Object(of_kind) if kinds => {
                let (kind, table) = of_kind.into_iter().next().expect("the component has a kind");
                writeln!(file, "kind = {kind:?}").expect("writing to a string cannot fail");
                keys(file, &table);
            }
            table => keys(file, &table),
        }
    }
}

/// Writes a line for each key that is set.
fn keys(file: &mut String, table: &Value) {
    for (key, value) in table.as_object().into_iter().flatten().filter(|(_, value)| !is_empty(value)) {
        writeln!(file, "{key} = {}", inline(value)).expect("writing to a string cannot fail");
    }
}

fn is_empty(value: &Value) -> bool {
    let nothing = |table: &serde_json::Map<_, _>| !table.is_empty() && table.values().all(Value::is_null);
    value.is_null() || value.as_object().is_some_and(nothing)
}

fn inline(value: &Value) -> String {
    match value {
        Value::Object(table) => {
            let given = table.iter().filter(|(_, value)| !value.is_null());
            let pairs: Vec<_> = given.map(|(key, value)| format!("{key} = {}", inline(value))).collect();
            format!("{{ {} }}", pairs.join(", "))
        }
        Value::Array(items) => format!("[{}]", items.iter().map(inline).collect::<Vec<_>>().join(", ")),
        plain => plain.to_string(),
    }
}

/// Returns true if a testbed is valid, for instance if a path leads from end to end of a tunnel and has room for its headers.
pub(crate) fn fits(testbed: &Testbed) -> bool {
    let source = Source { name: "random.toml".into(), text: text(testbed) };
    load(&source, &[], None).is_ok_and(|campaign| campaign.point("base", &[]).is_ok())
}
