//! Values that replace those of the file: `--set`, variants, sweep values.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::diagnostic::Diagnostic;
use crate::findings::Findings;
use crate::path::{self, suggestion};
use crate::provenance::{Origin, ValueSource};
use crate::read::{FAMILIES, TOP};
use crate::required_keys::{Audit, SHAPES};
use crate::tree::{self, Entry, Node, Table, Value};

/// A value that replaces or adds the value at a path.
#[derive(Clone, Debug)]
pub(crate) struct Override {
    pub(crate) path: Vec<String>,
    pub(crate) key: Origin,
    pub(crate) node: Node,
}

/// Parses the `--set PATH=VALUE` options of a command line, in order.
pub(crate) fn from_command_line(pairs: &[(String, String)], found: &mut Findings) -> Vec<Override> {
    let mut overrides = Vec::new();
    for (path, text) in pairs {
        let giver = |key| ValueSource::Set { path: path.as_str().into(), text: text.as_str().into(), key };
        let key = Origin { giver: giver(true), span: None };
        match path::parse(path) {
            Ok(path) => {
                let mut node = tree::parse_value(text);
                node.stamp(&giver(false));
                overrides.push(Override { path, key, node });
            }
            Err(cause) => found.push(bad_path(path, &cause, &key)),
        }
    }
    overrides
}

/// Returns the error for a path that is no dotted key.
pub(crate) fn bad_path(path: &str, cause: &str, key: &Origin) -> Diagnostic {
    let message = format!("`{}` is not a valid path: {cause}", tree::shortened(path));
    let help = match path::with_quotes(path) {
        Some(quoted) => format!("put names with spaces or signs in quotes: `{}`", tree::shortened(&quoted)),
        None => "a path is a dotted key: `traffic.stream.message`".into(),
    };
    Diagnostic::error("bad-path", message).at(key).help(help)
}

/// Returns the values in the table of a variant: `"a.b.c" = value`, or `a.b.c = value`, which TOML reads as nested tables.
pub(crate) fn of_variant(name: &str, table: &Table, found: &mut Findings) -> Vec<Override> {
    let giver = ValueSource::Variant(name.into());
    let mut overrides = Vec::new();
    let mut flat = Flat { leaf: &|_, _| false, found };
    flat.table(&[], table, &mut overrides);
    for change in &mut overrides {
        change.node.stamp(&giver);
        if change.key.giver == ValueSource::File {
            change.key.giver = giver.clone();
        }
    }
    for change in &overrides {
        refuse_campaign_keys(&change.path, &change.key, "a variant", found);
    }
    overrides
}

/// Reports a change of `run.repeats` or `run.seed`, which apply to all points.
pub(crate) fn refuse_campaign_keys(path: &[String], key: &Origin, who: &str, found: &mut Findings) {
    if path.len() == 2 && path[0] == "run" && (path[1] == "repeats" || path[1] == "seed") {
        let message = format!("{who} cannot change `run.{}`: it is the same for all points", path[1]);
        let help = format!("set it in `[run]` or with `--set run.{}=…`", path[1]);
        found.push(Diagnostic::error("not-allowed", message).path(path).at(key).help(help));
    }
}

/// Collects the values below tables whose keys are paths or parts of paths.
pub(crate) struct Flat<'a> {
    /// Returns true if a table at this path is a value, false if its keys continue the path.
    pub(crate) leaf: &'a dyn Fn(&[String], &Table) -> bool,
    pub(crate) found: &'a mut Findings,
}

impl Flat<'_> {
    pub(crate) fn table(&mut self, at: &[String], table: &Table, out: &mut Vec<Override>) {
        for (key, entry) in table {
            // A quoted key with dots is a path; any other key is one part of it.
            let parts = if key.contains('.') { path::parse(key) } else { Ok(vec![key.clone()]) };
            let parts = match parts {
                Ok(parts) => parts,
                Err(cause) => {
                    self.found.push(bad_path(key, &cause, &entry.key));
                    continue;
                }
            };
            let whole = parts.len() > 1;
            let path: Vec<String> = at.iter().cloned().chain(parts).collect();
            match entry.node.table() {
                Some(inner) if !whole && !inner.is_empty() && !(self.leaf)(&path, inner) => {
                    self.table(&path, inner, out)
                }
                _ => out.push(Override { path, key: entry.key.clone(), node: entry.node.clone() }),
            }
        }
    }
}

/// Applies an override to the tree.
///
/// A component must exist, unless the override gives a whole new one as a table. Missing tables on the way to a key are created.
pub(crate) fn apply(tree: &mut Node, change: &Override) -> Result<(), Box<Diagnostic>> {
    let path = &change.path;
    let unknown = |message: String, help: Option<String>| {
        Box::new(Diagnostic::error("unknown-path", message).path(path).at(&change.key).maybe_help(help))
    };
    let Value::Table(top) = &mut tree.value else { return Ok(()) };
    let first = path[0].as_str();
    if !TOP.contains(&first) {
        let message =
            format!("unknown path `{}`: there is no `{}`", path::join(path), tree::shortened(first));
        return Err(unknown(message, suggestion(first, "a path begins with", TOP)));
    }
    if FAMILIES.contains(&first) || first == "variant" {
        let members = top.get(first).and_then(|entry| entry.node.table());
        let Some(name) = path.get(1) else {
            let message = format!("`{first}` contains several components: a path must name one of them");
            return Err(unknown(message, Some(format!("write `{first}.NAME.KEY`"))));
        };
        let made_whole = path.len() == 2 && change.node.table().is_some();
        if !members.is_some_and(|table| table.contains_key(name)) && !made_whole {
            let known: Vec<&str> =
                members.into_iter().flat_map(|table| table.keys().map(String::as_str)).collect();
            let message = format!("there is no {first} `{}`", tree::shortened(name));
            let none = || Some(format!("the file has no `[{first}.NAME]` table"));
            return Err(unknown(message, suggestion(name, "known", &known).or_else(none)));
        }
    }
    let mut table = Arc::make_mut(top);
    for (depth, part) in path[..path.len() - 1].iter().enumerate() {
        let next = &path[depth + 1];
        let made = Node { origin: change.key.clone(), value: Value::Table(Arc::default()) };
        let entry =
            table.entry(part.clone()).or_insert_with(|| Entry { key: change.key.clone(), node: made });
        if path[0] == "link" && depth == 2 && part == "rate" {
            split_rate(&mut entry.node);
        }
        if depth + 2 < path.len() {
            open_kind(&mut entry.node, next);
        }
        let what = entry.node.what();
        match &mut entry.node.value {
            Value::Table(inner) => table = Arc::make_mut(inner),
            _ => {
                let message = format!(
                    "unknown path `{}`: `{}` is {what}",
                    path::join(path),
                    path::join(&path[..=depth])
                );
                return Err(unknown(message, Some("only a table has keys".into())));
            }
        }
    }
    let last = path.last().expect("a key path is not empty");
    table.insert(last.clone(), Entry { key: change.key.clone(), node: change.node.clone() });
    Ok(())
}

/// Turns the single rate of a link into one rate per direction, so that a path can change one of them.
fn split_rate(rate: &mut Node) {
    if let Value::Text(_) = rate.value {
        let each = || Entry { key: rate.origin.clone(), node: rate.clone() };
        let table = ["forward", "backward"].map(|key| (key.to_string(), each()));
        rate.value = Value::Table(Arc::new(Table::from_iter(table)));
    }
}

/// Turns a kind given as a word, as in `ecmp = "hash"`, into the table of this kind, so that an override can set one of its keys.
fn open_kind(node: &mut Node, kind: &str) {
    if matches!(&node.value, Value::Text(word) if word == kind) {
        let inner = Node { origin: node.origin.clone(), value: Value::Table(Arc::default()) };
        let entry = Entry { key: node.origin.clone(), node: inner };
        node.value = Value::Table(Arc::new(Table::from_iter([(kind.to_string(), entry)])));
    }
}

/// Returns the error if a path cannot exist in this tree, for an axis that has no valid value to try.
pub(crate) fn leads_nowhere(tree: &Node, change: &Override) -> Option<Diagnostic> {
    let mut changed = tree.clone();
    if let Err(problem) = apply(&mut changed, change) {
        return Some(*problem);
    }
    let (base, below) =
        change.path.split_at(change.path.len().min(if change.path[0] == "run" { 1 } else { 2 }));
    let (last, above) = below.split_last()?;
    let component = locate_table(tree, base)?;
    let (schema, kind) = SHAPES.of(&base[0], component)?;
    // Checks a table that has only this path against the schema of its component.
    let entry = |node| Entry { key: change.key.clone(), node };
    let leaf = Node { origin: change.key.clone(), value: Value::Text(String::new()) };
    let mut table = Table::from_iter([(last.clone(), entry(leaf))]);
    for part in above.iter().rev() {
        let inner = Node { origin: change.key.clone(), value: Value::Table(table.into()) };
        table = Table::from_iter([(part.clone(), entry(inner))]);
    }
    let mut found = Findings::default();
    Audit { base, kind, found: &mut found, unknown: BTreeSet::new() }.table(&table, &change.key, schema, &[]);
    found.into_iter().find(|problem| problem.code == "unknown-key")
}

fn locate_table<'a>(tree: &'a Node, path: &[String]) -> Option<&'a Table> {
    path.iter().try_fold(tree.table()?, |table, part| table.get(part)?.node.table())
}

/// Returns the override for a given value of an axis at one point.
pub(crate) fn of_point(axis: &str, path: &[String], text: &str) -> Override {
    let giver = ValueSource::Point { axis: axis.into(), text: Arc::from(text) };
    let mut node = tree::parse_value(text);
    node.stamp(&giver);
    Override { path: path.to_vec(), key: Origin { giver, span: None }, node }
}
