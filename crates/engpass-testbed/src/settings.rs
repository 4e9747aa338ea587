//! The settings of a point: values as written, after variant, swept values and `--set`, and the defaults of all other keys.

use indexmap::IndexMap;
use serde::Serialize;
use serde_json::{Value as Json, json};

use crate::catalogue::{choices, written};
use crate::read::FAMILIES;
use crate::required_keys::{SHAPES, table_forms};
use crate::tree::{Node, Table, Value};

/// A key of a testbed, or a table with its keys.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Setting {
    /// The value as a file writes it: the given one, or else the default. `None` for a table, and for a key without both.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<Json>,
    /// True if the file, the variant, the sweep or `--set` gives it; false for a default.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub given: bool,
    /// The kind of a component, or the kind that a key of a family has, such as `hash` for `ecmp`; empty otherwise.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub kind: String,
    /// The values that the key may have, if they are a closed set; for a key of a family, its kinds.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub choices: Vec<String>,
    /// The keys of a table, in the order of the reference; names in the order of the file.
    #[serde(skip_serializing_if = "IndexMap::is_empty")]
    pub keys: IndexMap<String, Setting>,
}

impl Setting {
    /// Returns the setting at a path below this one; `None` if there is no such key.
    pub fn at(&self, path: &[&str]) -> Option<&Self> {
        path.iter().try_fold(self, |table, part| table.keys.get(*part))
    }
}

/// Returns the settings of these families in a tree to which variant, swept values and `--set` are applied. An empty list asks for all.
pub(crate) fn settings(tree: &Node, families: &[String]) -> Setting {
    let is_asked = |family: &str| families.is_empty() || families.iter().any(|one| one == family);
    let top = tree.table();
    let mut all = Setting::default();
    for family in FAMILIES.iter().filter(|family| is_asked(family)) {
        let named = top.and_then(|top| top.get(*family)?.node.table()).into_iter().flatten();
        let each = named.filter_map(|(name, entry)| {
            let table = entry.node.table()?;
            let (schema, kind) = SHAPES.of(family, table)?;
            let keys = keys(schema, Some(table));
            Some((
                name.clone(),
                Setting { given: true, kind: kind.unwrap_or_default().into(), keys, ..Setting::default() },
            ))
        });
        all.keys.insert((*family).into(), Setting { keys: each.collect(), ..Setting::default() });
    }
    if is_asked("run") {
        let run = top.and_then(|top| top.get("run"));
        let table = run.and_then(|entry| entry.node.table());
        let run = Setting { given: run.is_some(), keys: keys(&SHAPES.run, table), ..Setting::default() };
        all.keys.insert("run".into(), run);
    }
    all
}

/// Returns the settings of all keys of a table, and of the names in it.
fn keys(schema: &Json, table: Option<&Table>) -> IndexMap<String, Setting> {
    let node = |key: &str| table.and_then(|table| table.get(key)).map(|entry| &entry.node);
    let known = schema["properties"].as_object().into_iter().flatten();
    let mut keys: IndexMap<String, Setting> =
        known.map(|(key, schema)| (key.clone(), setting(schema, node(key)))).collect();
    let each = &schema["additionalProperties"];
    if each.is_object() {
        keys.extend(
            table.into_iter().flatten().map(|(name, entry)| (name.clone(), setting(each, Some(&entry.node)))),
        );
    }
    keys
}

/// Returns the setting of a key with this schema and this value in the file.
fn setting(schema: &Json, node: Option<&Node>) -> Setting {
    let table = node.and_then(Node::table);
    let value = match node {
        Some(node) => Some(node).filter(|_| table.is_none()).map(json_of),
        None => Some(written(&schema["default"])).filter(|value| !value.is_null()),
    };
    let text = match &value {
        Some(Json::String(text)) => Some(text.clone()),
        Some(Json::Number(number)) => Some(number.to_string()),
        _ => None,
    };
    let mut made = Setting {
        given: node.is_some(),
        choices: choices(schema).into_iter().map(String::from).collect(),
        ..Setting::default()
    };
    let forms = table_forms(schema);
    if let [only] = forms[..] {
        made.keys = keys(only, table);
    } else if forms.is_empty() {
        made.keys = keys(schema, table);
    } else {
        // A word names a kind, and so does the only key of a table.
        let of_default = || schema["default"].as_object().and_then(|default| default.keys().next().cloned());
        let of_table = || table.and_then(|table| table.keys().next().cloned());
        made.kind =
            text.or_else(of_table).or_else(|| of_default().filter(|_| node.is_none())).unwrap_or_default();
        let kind = made.kind.as_str();
        let form = forms.iter().map(|form| &form["properties"][kind]).find(|config| config.is_object());
        if let Some(config) = form {
            let inner = table.and_then(|table| table.get(kind)).map(|entry| &entry.node);
            let keys = keys(config, inner.and_then(Node::table));
            made.keys.insert(kind.into(), Setting { given: inner.is_some(), keys, ..Setting::default() });
        }
    }
    made.value = value;
    made
}

/// Returns a value of the file as JSON. A number beyond 64 bits is its text.
fn json_of(node: &Node) -> Json {
    match &node.value {
        Value::Text(text) | Value::Date(text) => json!(text),
        Value::Integer(number) => {
            i64::try_from(*number).map_or_else(|_| json!(number.to_string()), Json::from)
        }
        Value::Float(text) => text.replace('_', "").parse::<f64>().map_or_else(|_| json!(text), Json::from),
        Value::Boolean(flag) => json!(flag),
        Value::List(nodes) => nodes.iter().map(json_of).collect(),
        Value::Table(table) => table.iter().map(|(key, entry)| (key.clone(), json_of(&entry.node))).collect(),
    }
}

#[cfg(test)]
mod tests {
    use engpass_model::forward::Ecmp;

    use super::*;
    use crate::source::Source;

    const TEXT: &str = r#"
        [host.a]
        nic_buffer = "1 MiB"
        [host."b.c"]
        [router.r]
        ecmp = "hash"
        queue = { codel = { target = "2 ms" } }
        [link.l]
        ends = ["a", "r"]
        medium = "point-to-point"
        rate = "10 Mbit/s"
        [link.m]
        ends = ["r", "b.c"]
        medium = "ethernet-100"
        [traffic.t]
        kind = "udp-stream"
        from = "a"
        to = "b.c"
        message = "1 kB"
        rate = "1 Mbit/s"
        [run]
        duration = "1 s"
        [sweep]
        "traffic.t.message" = ["2 kB", "3 kB"]
        [variant.plain]
        [variant.dotted]
        "host.\"b.c\".nic_buffer" = "2 MiB"
        "traffic.t.message" = "4 kB"
        [variant.nested]
        host.a.nic_buffer = "3 MiB"
    "#;

    fn at(variant: Option<&str>, sweep: &[(&str, &str)], set: &[(&str, &str)]) -> Setting {
        let pairs = |given: &[(&str, &str)]| -> Vec<(String, String)> {
            given.iter().map(|(path, value)| (path.to_string(), value.to_string())).collect()
        };
        let source = Source::from_bytes("t.toml", TEXT.as_bytes()).unwrap();
        let campaign =
            crate::load(&source, &pairs(set), None).unwrap_or_else(|found| panic!("{}", found.render(false)));
        campaign.settings(variant, &pairs(sweep), &[]).unwrap()
    }

    fn value(settings: &Setting, path: &[&str]) -> Json {
        settings.at(path).and_then(|setting| setting.value.clone()).unwrap_or_default()
    }

    #[test]
    fn later_sources_of_a_value_replace_earlier_ones() {
        let message =
            |variant, sweep: &[_], set: &[_]| value(&at(variant, sweep, set), &["traffic", "t", "message"]);
        const PATH: &str = "traffic.t.message";
        assert_eq!(message(None, &[], &[]), "1 kB");
        assert_eq!(message(Some("plain"), &[], &[]), "1 kB");
        assert_eq!(message(Some("dotted"), &[], &[]), "4 kB");
        assert_eq!(message(Some("dotted"), &[(PATH, "3 kB")], &[]), "3 kB");
        assert_eq!(message(Some("dotted"), &[(PATH, "3 kB")], &[(PATH, "5 kB")]), "5 kB");
    }

    #[test]
    fn names_with_dots_are_one_part_of_a_path() {
        let buffer = |variant, name| value(&at(Some(variant), &[], &[]), &["host", name, "nic_buffer"]);
        assert_eq!(["plain", "dotted"].map(|variant| buffer(variant, "b.c")), ["512 KiB", "2 MiB"]);
        assert_eq!(["plain", "nested"].map(|variant| buffer(variant, "a")), ["1 MiB", "3 MiB"]);
        let set = at(
            None,
            &[],
            &[("variant.plain.host.\"b.c\".nic_buffer", "9 kB"), ("host.'b.c'.nic_buffer", "8 kB")],
        );
        assert_eq!(value(&set, &["host", "b.c", "nic_buffer"]), "8 kB");
    }

    #[test]
    fn defaults_are_told_apart_from_given_values() {
        let settings = at(Some("plain"), &[], &[]);
        let (given, default) = (
            &settings.keys["host"].keys["a"].keys["nic_buffer"],
            &settings.keys["host"].keys["b.c"].keys["nic_buffer"],
        );
        assert!(given.given && !default.given);
        let hold = settings.at(&["router", "r", "arp", "hold"]).unwrap();
        assert_eq!((hold.given, hold.value.clone()), (false, Some(json!(101))));
        assert_eq!(settings.at(&["host", "a", "tcp", "mss"]).unwrap(), &Setting::default());
        assert_eq!(settings.at(&["host", "a", "no_such_key"]), None);
        assert_eq!(settings.keys["switch"].keys.len(), 0);
    }

    #[test]
    fn one_rate_becomes_two_if_a_path_changes_one_direction() {
        assert_eq!(value(&at(None, &[], &[]), &["link", "l", "rate"]), "10 Mbit/s");
        let settings = at(None, &[], &[("link.l.rate.backward", "1 Mbit/s")]);
        let rate = settings.at(&["link", "l", "rate"]).unwrap();
        assert_eq!((rate.value.clone(), rate.given), (None, true));
        assert_eq!(
            (value(rate, &["forward"]), value(rate, &["backward"])),
            (json!("10 Mbit/s"), json!("1 Mbit/s"))
        );
    }

    #[test]
    fn a_word_names_a_kind_as_a_table_does() {
        let settings = at(None, &[], &[]);
        let ecmp = settings.at(&["router", "r", "ecmp"]).unwrap();
        assert_eq!((ecmp.kind.as_str(), ecmp.value.clone()), ("hash", Some(json!("hash"))));
        assert!(ecmp.at(&["hash", "seed"]).is_some_and(|seed| !seed.given));
        let queue = settings.at(&["router", "r", "queue"]).unwrap();
        assert_eq!((queue.kind.as_str(), queue.value.clone()), ("codel", None));
        assert_eq!(
            (value(queue, &["codel", "target"]), value(queue, &["codel", "interval"])),
            (json!("2 ms"), json!("100 ms"))
        );
        let seeded = at(None, &[], &[("router.r.ecmp.hash.seed", "3")]);
        assert_eq!(value(&seeded, &["router", "r", "ecmp", "hash", "seed"]), 3);
        assert_eq!(settings.keys["traffic"].keys["t"].kind, "udp-stream");
    }

    #[test]
    fn only_the_families_that_are_asked_for_are_answered() {
        let source = Source::from_bytes("t.toml", TEXT.as_bytes()).unwrap();
        let campaign =
            crate::load(&source, &[], None).unwrap_or_else(|found| panic!("{}", found.render(false)));
        let some = campaign.settings(None, &[], &["run".into(), "host".into()]).unwrap();
        assert_eq!(some.keys.keys().collect::<Vec<_>>(), ["host", "run"]);
        let all = campaign.settings(None, &[], &[]).unwrap();
        assert_eq!((&some.keys["run"], &some.keys["host"]), (&all.keys["run"], &all.keys["host"]));
    }

    #[test]
    fn keys_with_a_closed_set_of_values_list_them() {
        let settings = at(None, &[], &[]);
        let choices = |path: &[&str]| settings.at(path).unwrap().choices.clone();
        assert_eq!(choices(&["router", "r", "ecmp"]), Ecmp::KINDS);
        assert_eq!(choices(&["host", "a", "tcp", "path_mtu"]), ["known", "discovered"]);
        assert!(choices(&["link", "l", "medium"]).contains(&"oc-3c".into()));
        assert_eq!(choices(&["router", "r", "process_switched"]), ["unicast", "multicast", "tunnels"]);
        assert!(choices(&["host", "a", "nic_buffer"]).is_empty());
    }
}
