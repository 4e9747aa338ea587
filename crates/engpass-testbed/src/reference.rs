//! The reference of testbed files as a page: every table with its keys, from the catalogue.

use std::fmt::Write;

use indexmap::IndexMap;
use serde_json::Value;

const HEAD: &str = "# Reference of testbed files

Generated from the doc comments of `engpass-model` by `make gen`: do not edit. `engpass catalogue` prints the same as JSON, and `engpass schema`
prints a schema for editors. [The README](../README.md) shows a whole file.

A value with a unit is text in quotes, such as `\"10 ms\"`. A key without a default may be left out, unless the table says *required*. A table that
selects one of several kinds is written as `key = { kind = { … } }`, or as `key = \"kind\"` if the kind needs no keys.

";

/// Keys of one table below the same first key, such as `tcp` and `tcp.mss`.
type Group<'c> = Vec<&'c Value>;

/// Returns the page, in Markdown. `catalogue` is that of [`catalogue`](crate::catalogue()).
pub fn reference(catalogue: &Value) -> String {
    let mut page = HEAD.to_owned();
    let families = list(&catalogue["families"]);
    for family in families {
        let (name, place) = (text(&family["family"]), text(&family["place"]));
        _ = writeln!(page, "- [{place}](#{}): {name}", anchor(&title(family)));
    }
    page.push_str(
        "- [Values](#values): how quantities are written\n- [Words](#words): media and encapsulations\n",
    );
    // Where each larger group of keys was listed first.
    let mut listed: IndexMap<String, String> = IndexMap::new();
    for family in families {
        let kinds = list(&family["kinds"]);
        _ = writeln!(page, "\n## {}", title(family));
        for kind in kinds {
            let heading = format!("{} `{}`", text(&family["family"]), text(&kind["kind"]));
            if kinds.len() > 1 {
                _ = writeln!(page, "\n### {heading}");
            }
            _ = writeln!(page, "\n{}", text(&kind["help"]));
            let here = if kinds.len() > 1 { heading } else { title(family) };
            table(&mut page, list(&kind["keys"]), &here, &mut listed);
        }
    }
    values(&mut page, families);
    page.push_str("\n## Words\n");
    for words in list(&catalogue["words"]) {
        _ = writeln!(page, "\n### `{}`\n\n| word | meaning |\n|---|---|", text(&words["name"]));
        for word in list(&words["words"]) {
            _ = writeln!(page, "| `{}` | {} |", text(&word["word"]), cell(&word["help"]));
        }
    }
    page
}

fn title(family: &Value) -> String {
    match text(&family["place"]) {
        place if place.starts_with('[') => format!("`{place}`"),
        place => place.into(),
    }
}

/// Adds the keys of a table. A larger group of keys that was listed before is a link to its first place.
fn table(page: &mut String, keys: &[Value], here: &str, listed: &mut IndexMap<String, String>) {
    const LARGE: usize = 4;
    if keys.is_empty() {
        return;
    }
    page.push_str("\n| key | value | default | meaning |\n|---|---|---|---|\n");
    let mut groups: IndexMap<&str, Group<'_>> = IndexMap::new();
    for key in keys {
        let name = text(&key["key"]);
        groups.entry(name.split('.').next().unwrap_or(name)).or_default().push(key);
    }
    for (name, group) in groups {
        let below = serde_json::to_string(&group[1..]).unwrap_or_default();
        let first = listed.get(&below).filter(|_| group.len() > LARGE);
        row(page, group[0]);
        match first {
            Some(first) => {
                _ = writeln!(
                    page,
                    "| `{name}.…` | | | the keys of `{name}` in [{first}](#{}) |",
                    anchor(first)
                );
            }
            None => {
                group[1..].iter().for_each(|key| row(page, key));
                listed.insert(below, here.to_owned());
            }
        }
    }
}

/// Adds a table of all types of values that have an example.
fn values(page: &mut String, families: &[Value]) {
    let kinds = families.iter().flat_map(|family| list(&family["kinds"]));
    let mut examples: IndexMap<&str, &str> = IndexMap::new();
    for key in kinds.flat_map(|kind| list(&kind["keys"])) {
        if let Some(example) = key["example"].as_str() {
            examples.insert(text(&key["type"]), example);
        }
    }
    examples.sort_unstable_keys();
    page.push_str("\n## Values\n\n| value | example |\n|---|---|\n");
    for (kind, example) in examples {
        _ = writeln!(page, "| {kind} | `{example}` |");
    }
}

fn row(page: &mut String, key: &Value) {
    let default = match &key["default"] {
        Value::Null if key["required"] == true => "*required*".into(),
        Value::Null => String::new(),
        Value::String(text) => format!("`{text}`"),
        other => format!("`{other}`"),
    };
    let kind = text(&key["type"]);
    _ = writeln!(page, "| `{}` | {kind} | {default} | {} |", text(&key["key"]), cell(&key["help"]));
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// Returns a text for a cell of a table: in one line, without bars.
fn cell(help: &Value) -> String {
    text(help).split_whitespace().collect::<Vec<_>>().join(" ").replace('|', "\\|")
}

/// Returns the anchor of a heading, as GitHub and GitLab make it.
fn anchor(heading: &str) -> String {
    let kept = heading.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.collect::<String>().to_lowercase().replace(' ', "-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_lists_every_key_or_links_to_it() {
        let catalogue = crate::catalogue();
        let page = reference(&catalogue);
        for family in list(&catalogue["families"]) {
            for kind in list(&family["kinds"]) {
                for key in list(&kind["keys"]) {
                    let name = text(&key["key"]);
                    assert!(page.contains(&format!("| `{name}` |")), "{name}");
                }
            }
        }
        for link in page.split("](#").skip(1) {
            let target = link.split(')').next().unwrap_or_default();
            let headings =
                page.lines().filter_map(|line| line.strip_prefix("## ").or(line.strip_prefix("### ")));
            assert!(headings.map(anchor).any(|anchor| anchor == target), "{target}");
        }
    }
}
