//! Reads components from a tree and collects all errors.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use engpass_model::bond::Bond;
use engpass_model::circuit::Circuit;
use engpass_model::event::Event;
use engpass_model::host::Host;
use engpass_model::link::Link;
use engpass_model::router::Router;
use engpass_model::source::Traffic;
use engpass_model::switch::Switch;
use engpass_model::text::is_hidden;
use engpass_model::tunnel::Tunnel;
use indexmap::IndexMap;
use serde::Deserialize;
use serde_json::Value as Json;

use crate::deserialize::{Fault, TableReader};
use crate::diagnostic::{Diagnostic, visible};
use crate::findings::{Findings, MOST};
use crate::path::{nearest, suggestion};
use crate::provenance::Origin;
use crate::required_keys::{Audit, SHAPES};
use crate::testbed::Run;
use crate::tree::{Entry, Node, Table, Value};

/// Keys allowed at the top of a file.
pub(crate) const TOP: &[&str] = &[
    "name",
    "description",
    "host",
    "switch",
    "router",
    "link",
    "circuit",
    "tunnel",
    "bond",
    "traffic",
    "event",
    "run",
    "sweep",
    "variant",
];
/// Tables of named components.
pub(crate) const FAMILIES: &[&str] =
    &["host", "switch", "router", "link", "circuit", "tunnel", "bond", "traffic", "event"];

/// A testbed as far as it could be read. A component that could not be read at all is `None`. A single wrong value in a component is left out, or replaced by
/// an example, and listed in [`ReportedValues`](crate::reported::ReportedValues).
#[derive(Default)]
pub(crate) struct Draft {
    pub(crate) name: Option<String>,
    pub(crate) description: Option<String>,
    pub(crate) hosts: IndexMap<String, Option<Host>>,
    pub(crate) switches: IndexMap<String, Option<Switch>>,
    pub(crate) routers: IndexMap<String, Option<Router>>,
    pub(crate) links: IndexMap<String, Option<Link>>,
    pub(crate) circuits: IndexMap<String, Option<Circuit>>,
    pub(crate) tunnels: IndexMap<String, Option<Tunnel>>,
    pub(crate) bonds: IndexMap<String, Option<Bond>>,
    pub(crate) traffic: IndexMap<String, Option<Traffic>>,
    pub(crate) events: IndexMap<String, Option<Event>>,
    pub(crate) run: Option<Run>,
    /// Families whose table could not be read. If only its key is misspelt, with the names in the table.
    pub(crate) elsewhere: BTreeMap<&'static str, Option<BTreeSet<String>>>,
    /// Family and name of components with an invalid reference.
    pub(crate) astray: BTreeSet<(&'static str, String)>,
}

impl Draft {
    /// Returns true if a component with this name may be in a family whose table could not be read.
    pub(crate) fn may_be(&self, family: &str, name: &str) -> bool {
        self.elsewhere
            .get(family)
            .is_some_and(|names| names.as_ref().is_none_or(|names| names.contains(name)))
    }

    /// Returns true if a component has an invalid reference.
    pub(crate) fn has_invalid_reference(&self, family: &'static str, name: &str) -> bool {
        !self.astray.is_empty() && self.astray.contains(&(family, name.to_string()))
    }
}

/// Reads everything except the sweep and the variants.
pub(crate) fn read(tree: &Node, found: &mut Findings) -> Draft {
    let mut draft = Draft { run: Some(Run::default()), ..Draft::default() };
    let Some(top) = tree.table() else { return draft };
    for (key, entry) in top {
        if let Some(family) = FAMILIES.iter().find(|family| *family == key)
            && entry.node.table().is_none()
        {
            draft.elsewhere.insert(family, None);
        }
        match key.as_str() {
            "name" => {
                draft.name = text(key, entry, found);
                let problem = draft.name.as_deref().and_then(|name| bad_name("testbed", name));
                found.extend(problem.map(|problem| problem.path(&[key]).at(&entry.node.origin)));
            }
            "description" => draft.description = text(key, entry, found),
            "host" => {
                draft.hosts = family(key, entry, found, &mut |path, entry, found| {
                    component(path, entry, found, &SHAPES.host, None, &|table| Host::deserialize(table))
                })
            }
            "router" => {
                draft.routers = family(key, entry, found, &mut |path, entry, found| {
                    component(path, entry, found, &SHAPES.router, None, &|table| Router::deserialize(table))
                })
            }
            "link" => {
                draft.links = family(key, entry, found, &mut |path, entry, found| {
                    component(path, entry, found, &SHAPES.link, None, &|table| Link::deserialize(table))
                })
            }
            "circuit" => {
                draft.circuits = family(key, entry, found, &mut |path, entry, found| {
                    component(path, entry, found, &SHAPES.circuit, None, &|table| Circuit::deserialize(table))
                })
            }
            "tunnel" => {
                draft.tunnels = family(key, entry, found, &mut |path, entry, found| {
                    component(path, entry, found, &SHAPES.tunnel, None, &|table| Tunnel::deserialize(table))
                })
            }
            "bond" => {
                draft.bonds = family(key, entry, found, &mut |path, entry, found| {
                    component(path, entry, found, &SHAPES.bond, None, &|table| Bond::deserialize(table))
                })
            }
            "switch" => {
                draft.switches = family(key, entry, found, &mut |path, entry, found| {
                    let kind = kind(path, entry, found, Switch::FAMILY, &SHAPES.switch)?;
                    component(path, entry, found, &SHAPES.switch[kind], Some(kind), &|table| {
                        Switch::read(kind, table).expect("a listed kind is readable")
                    })
                })
            }
            "traffic" => {
                draft.traffic = family(key, entry, found, &mut |path, entry, found| {
                    let kind = kind(path, entry, found, Traffic::FAMILY, &SHAPES.traffic)?;
                    component(path, entry, found, &SHAPES.traffic[kind], Some(kind), &|table| {
                        Traffic::read(kind, table).expect("a listed kind is readable")
                    })
                })
            }
            "event" => {
                draft.events = family(key, entry, found, &mut |path, entry, found| {
                    component(path, entry, found, &SHAPES.event, None, &|table| Event::deserialize(table))
                })
            }
            "run" => {
                let path = ["run".to_string()];
                draft.run =
                    component(&path, entry, found, &SHAPES.run, None, &|table| Run::deserialize(table));
            }
            "sweep" | "variant" => {}
            _ => {
                if let Some(table) = entry.node.table().filter(|_| !found.is_full())
                    && let Some(family) = meant(key)
                {
                    draft.elsewhere.insert(family, Some(table.keys().cloned().collect()));
                }
                found.push_error("unknown-key", || {
                    let message = format!("unknown key `{}`", crate::tree::shortened(key));
                    let help = top_help(key, &entry.node);
                    Diagnostic::error("unknown-key", message).path(&[key]).at(&entry.key).maybe_help(help)
                });
            }
        }
    }
    draft
}

/// Returns the family that a misspelt top-level key probably means.
fn meant(key: &str) -> Option<&'static str> {
    let near = nearest(key, FAMILIES.iter().copied());
    plural(key).or(near).and_then(|near| FAMILIES.iter().copied().find(|family| *family == near))
}

fn plural(key: &str) -> Option<&str> {
    key.strip_suffix("es").or(key.strip_suffix('s')).filter(|stem| FAMILIES.contains(stem))
}

/// Returns help for an unknown top-level key. The plural of a family is a common mistake there.
fn top_help(key: &str, node: &Node) -> Option<String> {
    match plural(key) {
        Some(family) if node.table().is_some() => {
            Some(format!("a component has a table of its own: `[{family}.NAME]`"))
        }
        _ => suggestion(key, "a file holds", TOP),
    }
}

/// Returns the error for a value of the wrong type.
pub(crate) fn wrong_type(path: &[impl AsRef<str>], node: &Node, needed: &str) -> Diagnostic {
    let message = format!("{} is not allowed here", node.what());
    Diagnostic::error("wrong-type", message).path(path).at(&node.origin).help(format!("write {needed}"))
}

/// Returns an error if a name is blank or contains hidden characters.
pub(crate) fn bad_name(what: &str, name: &str) -> Option<Diagnostic> {
    if name.trim().is_empty() {
        return Some(Diagnostic::error("bad-value", format!("a {what} needs a name that can be printed")));
    }
    let hidden = name.chars().find(|c| is_hidden(*c))?;
    let message = format!(
        "the name `{}` of a {what} contains U+{:04X}, an invisible character that can change how text is displayed",
        visible(name),
        u32::from(hidden)
    );
    Some(Diagnostic::error("bad-value", message).help("remove that character"))
}

fn text(key: &str, entry: &Entry, found: &mut Findings) -> Option<String> {
    match (&entry.node.value, &entry.node.origin.giver) {
        (Value::Text(text), _) => Some(text.clone()),
        (_, crate::provenance::ValueSource::Set { text, .. }) => Some(text.to_string()),
        _ => {
            found.push(wrong_type(&[key], &entry.node, "text in quotes"));
            None
        }
    }
}

type Reader<'a, T> = &'a mut dyn FnMut(&[String], &Entry, &mut Findings) -> Option<T>;

fn family<T>(
    family: &str,
    entry: &Entry,
    found: &mut Findings,
    read: Reader<'_, T>,
) -> IndexMap<String, Option<T>> {
    let Some(table) = entry.node.table() else {
        found.push(wrong_type(&[family], &entry.node, &format!("a table for each: `[{family}.NAME]`")));
        return IndexMap::new();
    };
    let mut components = IndexMap::new();
    for (name, entry) in table {
        let path = [family.to_string(), name.clone()];
        let component = match bad_name(family, name) {
            Some(problem) => {
                found.push(problem.path(&path).at(&entry.key));
                None
            }
            None => read(&path, entry, found),
        };
        components.insert(name.clone(), component);
    }
    components
}

fn kind(
    path: &[String],
    entry: &Entry,
    found: &mut Findings,
    family: &str,
    kinds: &IndexMap<&'static str, Json>,
) -> Option<&'static str> {
    let table = as_table(path, entry, found)?;
    let known: Vec<&str> = kinds.keys().copied().collect();
    let at: Vec<String> = path.iter().cloned().chain(["kind".into()]).collect();
    let Some(kind) = table.get("kind") else {
        let message = format!("`kind` is missing in `{}`", crate::path::join(path));
        let words = known.iter().map(|kind| format!("`kind = \"{kind}\"`")).collect::<Vec<_>>().join(", ");
        let help = format!("say which {family} it is: {words}");
        found.push(Diagnostic::error("missing-key", message).path(&at).at(&entry.key).help(help));
        return None;
    };
    let Value::Text(word) = &kind.node.value else {
        found.push(wrong_type(&at, &kind.node, &format!("the {family} in quotes: `\"{}\"`", known[0])));
        return None;
    };
    let kind_of = kinds.keys().find(|known| **known == word.as_str()).copied();
    if kind_of.is_none() {
        let message = format!("unknown {family} `{}`", crate::tree::shortened(word));
        let diagnostic = Diagnostic::error("unknown-kind", message).path(&at).at(&kind.node.origin);
        found.push(diagnostic.maybe_help(suggestion(word, "known", &known)));
    }
    kind_of
}

fn as_table<'a>(path: &[String], entry: &'a Entry, found: &mut Findings) -> Option<&'a Table> {
    let table = entry.node.table();
    if table.is_none() {
        found.push(wrong_type(path, &entry.node, &format!("a table: `[{}]`", crate::path::join(path))));
    }
    table
}

type ReadTable<'a, T> = &'a dyn Fn(TableReader<'_>) -> Result<T, Fault>;

/// Reads one component; `None` if it cannot be read at all.
///
/// An invalid value is reported and left out, then the rest is read again, until no fault is left. An example replaces a required value that is
/// missing or wrong.
fn component<T>(
    path: &[String],
    entry: &Entry,
    found: &mut Findings,
    schema: &Json,
    kind: Option<&str>,
    read: ReadTable<'_, T>,
) -> Option<T> {
    let mut table = Cow::Borrowed(as_table(path, entry, found)?);
    let mut audit = Audit { base: path, kind, found, unknown: BTreeSet::new() };
    audit.table(&table, &entry.key, schema, &[]);
    let mut without = audit.unknown;
    if without.len() > MOST {
        return None;
    }
    without.extend(kind.map(|_| vec!["kind".to_string()]));
    let needed: Vec<&str> =
        schema["required"].as_array().into_iter().flatten().filter_map(Json::as_str).collect();
    let stand_in = |key: &str| Entry { key: entry.key.clone(), node: example_of(&schema["properties"][key]) };
    let mut examples: Vec<String> = Vec::new();
    for key in &needed {
        if !table.contains_key(*key) {
            table.to_mut().insert(key.to_string(), stand_in(key));
            examples.push(key.to_string());
        }
    }
    loop {
        let mut fault = match read(TableReader { table: &table, without: &without, at: Vec::new() }) {
            Ok(component) => return Some(component),
            Err(fault) => fault,
        };
        fault.path.reverse();
        let first = fault.path.first()?.clone();
        if examples.contains(&first) {
            return None;
        }
        // The check of the schema has reported keys that the file lacks. Any other missing key was left out by this loop.
        let lacking = fault.code == "missing-key";
        if !lacking {
            let place: Vec<String> = path.iter().chain(&fault.path).cloned().collect();
            let origin = locate(&entry.node, &fault.path).unwrap_or(&entry.key);
            let diagnostic = Diagnostic::error(fault.code, fault.message).path(&place).at(origin);
            found.push(diagnostic.maybe_help(fault.help));
        }
        // An invalid item removes its whole list; a table without a required key is removed as a whole.
        let key: Vec<String> = match lacking {
            true => vec![first.clone()],
            false => fault.path.into_iter().take_while(|part| part.parse::<usize>().is_err()).collect(),
        };
        if key.len() == 1 && needed.contains(&first.as_str()) {
            table.to_mut().insert(first.clone(), stand_in(&first));
            examples.push(first);
        } else if key.is_empty() || !without.insert(key) {
            return None;
        }
    }
}

/// Returns an example value of this schema, as a replacement for a missing or wrong one.
fn example_of(schema: &Json) -> Node {
    let text = crate::required_keys::example(schema);
    crate::tree::parse_value(&text)
}

/// Returns the origin of the value at a path below `node`.
pub(crate) fn locate<'a>(node: &'a Node, path: &[impl AsRef<str>]) -> Option<&'a Origin> {
    let mut node = node;
    for part in path {
        node = match &node.value {
            Value::Table(table) => &table.get(part.as_ref())?.node,
            Value::List(nodes) => nodes.get(part.as_ref().parse::<usize>().ok()?)?,
            _ => return None,
        };
    }
    Some(&node.origin)
}
