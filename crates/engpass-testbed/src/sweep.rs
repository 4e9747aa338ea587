//! Sweeps: paths with several values.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::amount::{Amount, decimal};
use crate::diagnostic::Diagnostic;
use crate::findings::Findings;
use crate::overrides::{self, Flat, Override, refuse_campaign_keys};
use crate::provenance::{Origin, ValueSource};
use crate::read::wrong_type;
use crate::tree::{Node, Table, Value};

/// Largest number of values of an axis, independent of the limit of the caller.
pub const MAX_VALUES: i128 = 1_000_000;

/// One axis of a sweep.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    /// Dotted key that is swept.
    pub path: String,
    /// The values of the swept key, in order.
    pub values: Vec<AxisValue>,
}

/// One value of an axis.
#[derive(Clone, Debug, PartialEq)]
pub struct AxisValue {
    /// Text as in the file, without quotes: `9 kB`.
    pub text: String,
    /// Value in base units: bytes, bit/s, seconds or a count; shares as fractions. `None` if it is not a quantity.
    pub number: Option<f64>,
    /// The base unit: `B`, `bit/s`, `s`, `cells`, `packets`, `cells/s`; empty for shares and counts.
    pub unit: Option<String>,
}

/// An axis, with its values as nodes of the tree.
#[derive(Clone, Debug)]
pub(crate) struct Swept {
    pub(crate) axis: Axis,
    pub(crate) path: Vec<String>,
    pub(crate) key: Origin,
    pub(crate) nodes: Vec<Node>,
    /// True if no value of the axis is missing, which would be due to a fault.
    complete: bool,
}

impl Swept {
    /// Returns the value with this text as an override; `None` if the axis has no such value.
    pub(crate) fn value(&self, text: &str) -> Option<Override> {
        let index = self.axis.values.iter().position(|value| value.text == text)?;
        Some(self.nth(index))
    }

    /// Returns the value at `index` as an override.
    pub(crate) fn nth(&self, index: usize) -> Override {
        let mut node = self.nodes[index].clone();
        let giver = ValueSource::Sweep {
            axis: self.axis.path.as_str().into(),
            index: self.complete.then_some(index + 1),
        };
        node.stamp(&giver);
        Override { path: self.path.clone(), key: self.key.clone(), node }
    }
}

/// The content of `[sweep]`.
#[derive(Default)]
pub(crate) struct Sweep {
    pub(crate) axes: Vec<Swept>,
    /// Paths of axes without any valid value, which were reported.
    pub(crate) impossible: Vec<Vec<String>>,
}

/// Reads `[sweep]` and reports invalid axes. An invalid axis keeps the values valid by themselves. If it has none, its path is checked against the tree.
pub(crate) fn axes(tree: &Node, found: &mut Findings) -> Sweep {
    let Some(entry) = tree.table().and_then(|top| top.get("sweep")) else { return Sweep::default() };
    let Some(table) = entry.node.table() else {
        found.push(wrong_type(&["sweep"], &entry.node, "a table: `[sweep]`"));
        return Sweep::default();
    };
    let mut given = Vec::new();
    // A key `from` directly in a component names a host and does not begin a range.
    let leaf = |path: &[String], table: &Table| {
        path.len() > 2 - usize::from(path[0] == "run") && RANGE.iter().any(|key| table.contains_key(*key))
    };
    Flat { leaf: &leaf, found }.table(&[], table, &mut given);
    let mut axes: Vec<Swept> = Vec::new();
    let mut impossible: Vec<Vec<String>> = Vec::new();
    let mut known = BTreeSet::new();
    for Override { path, key, node } in given {
        if found.is_full() {
            found.stop();
            break;
        }
        let name = crate::path::join(&path);
        if !known.insert(path.clone()) {
            let message = format!("`{name}` is swept twice");
            found.push(
                Diagnostic::error("duplicate-key", message).path(&path).at(&key).help("keep one of them"),
            );
            continue;
        }
        let before = found.len();
        refuse_campaign_keys(&path, &key, "a sweep", found);
        if found.len() > before {
            continue;
        }
        let mut faults = Findings::default();
        let nodes = values(&node, &mut faults);
        let complete = faults.is_empty();
        faults.iter_mut().for_each(|fault| fault.path = Some(crate::path::join(&["sweep", &name])));
        found.append(faults);
        if nodes.is_empty() {
            let change = Override { path, key, node };
            found.extend(overrides::leads_nowhere(tree, &change));
            impossible.push(change.path);
        } else {
            let values = nodes.iter().map(axis_value).collect();
            axes.push(Swept { axis: Axis { path: name, values }, path, key, nodes, complete });
        }
    }
    Sweep { axes, impossible }
}

fn axis_value(node: &Node) -> AxisValue {
    let text = node.text();
    let amount = Amount::parse(&text);
    AxisValue {
        number: amount.as_ref().map(Amount::number),
        unit: amount.map(|amount| amount.base().into()),
        text,
    }
}

fn impossible(place: &Origin, message: impl Into<String>, help: impl Into<String>) -> Diagnostic {
    Diagnostic::error("impossible-sweep", message).at(place).help(help)
}

const RANGE: &[&str] = &["from", "to", "step", "factor"];
const FORMS: &str = "a sweep is a list, `[\"1 kB\", \"2 kB\"]`, or a range: `{ from = \"1 kB\", to = \"64 kB\", step = \"1 kB\" }`, \
                     or with `factor = 2` in place of `step`";

/// Returns the values of an axis. If there are faults, some values are missing, but each returned value is valid by itself.
fn values(node: &Node, faults: &mut Findings) -> Vec<Node> {
    match &node.value {
        Value::List(nodes) => list(node, nodes, faults),
        Value::Table(table) => range(node, table, faults),
        _ => {
            faults.push(impossible(&node.origin, format!("{} is not a sweep", node.what()), FORMS));
            Vec::new()
        }
    }
}

fn list(node: &Node, nodes: &[Node], faults: &mut Findings) -> Vec<Node> {
    if nodes.is_empty() {
        faults.push(impossible(&node.origin, "the list of values is empty", FORMS));
    }
    let mut seen = BTreeSet::new();
    let mut values: Vec<(&Node, Option<Amount>)> = Vec::new();
    for item in nodes {
        let text = item.text();
        if matches!(item.value, Value::List(_) | Value::Table(_)) {
            let message =
                format!("{} cannot be swept: every point of a sweep has a single value", item.what());
            let help = "give each of them in a variant: `[variant.NAME]` with `\"PATH\" = VALUE`";
            faults.push(impossible(&item.origin, message, help));
        } else if !seen.insert(text.clone()) {
            let message = format!("`{}` is in the list twice", crate::tree::shortened(&text));
            faults.push(impossible(
                &item.origin,
                message,
                "keep one of them; to repeat points, use `run.repeats`",
            ));
        } else {
            values.push((item, Amount::parse(&text)));
        }
    }
    // Rates may count different things (`line`, `cells`, `payload`) from value to value. The unit of the axis is still bit/s.
    let unit = |amount: &Amount| amount.dimension().split(' ').next().unwrap_or("").to_string();
    let first = values.iter().find_map(|(_, amount)| amount.as_ref()).map(unit).unwrap_or_default();
    let before = faults.len();
    for (item, amount) in &values {
        if let Some(other) = amount.as_ref().map(unit).filter(|other| *other != first) {
            faults.push(mixed(item, &first, &other));
        }
    }
    // All quantities are dropped, because it is unknown which of the units is wrong.
    values.retain(|(_, amount)| amount.is_none() || faults.len() == before);
    values.into_iter().map(|(item, _)| item.clone()).collect()
}

fn mixed(place: &Node, one: &str, other: &str) -> Diagnostic {
    let name = |unit: &str| if unit.is_empty() { "no unit".to_string() } else { format!("`{unit}`") };
    let message = format!("one sweep cannot mix values in {} and in {}", name(one), name(other));
    impossible(&place.origin, message, "use one kind of unit for all values of a sweep")
}

/// A quantity of a range and its node.
struct Bound<'a> {
    amount: Amount,
    node: &'a Node,
}

fn range(node: &Node, table: &Table, faults: &mut Findings) -> Vec<Node> {
    let before = faults.len();
    let mut missing: Vec<&str> = ["from", "to"].into_iter().filter(|key| !table.contains_key(*key)).collect();
    if !table.contains_key("step") && !table.contains_key("factor") {
        missing.push("step");
    }
    for (key, entry) in table.iter().filter(|(key, _)| !RANGE.contains(&key.as_str())) {
        let message = format!("unknown key `{}`", crate::tree::shortened(key));
        let help = crate::path::suggestion(key, "a range has", RANGE);
        faults.push(Diagnostic::error("unknown-key", message).at(&entry.key).maybe_help(help));
        // The unknown key is probably a misspelt required one, which is then not reported as missing. If it resembles none, it may stand for any of them.
        match crate::path::nearest(key, RANGE.iter().copied()) {
            Some(near) => missing.retain(|key| *key != near && !(*key == "step" && near == "factor")),
            None => missing.clear(),
        }
    }
    if !missing.is_empty() {
        let keys = missing.iter().map(|key| format!("`{key}`")).collect::<Vec<_>>().join(" and no ");
        faults.push(impossible(&node.origin, format!("the range has no {keys}"), FORMS));
    }
    let mut bound = |key: &str| -> Option<Bound<'_>> {
        let node = &table.get(key)?.node;
        let amount = Amount::parse(&node.text());
        if amount.is_none() {
            let message = format!("{} is not a quantity", node.what());
            faults.push(impossible(&node.origin, message, FORMS));
        }
        Some(Bound { amount: amount?, node })
    };
    let (from, to, step) = (bound("from"), bound("to"), bound("step"));
    let factor = table.get("factor").map(|entry| &entry.node);
    let ends = ends(from.as_ref(), to.as_ref(), step.as_ref(), faults);
    let sound = ends.filter(|(from, to)| from.amount.steps <= to.amount.steps);
    let amounts = sound.map(|(from, to)| (&from.amount, &to.amount));
    let steps = match (&step, factor) {
        _ if table.contains_key("step") && factor.is_some() => {
            let place = factor.map_or(&node.origin, |factor| &factor.origin);
            faults.push(impossible(place, "a range has a `step` or a `factor`", "keep one of them"));
            None
        }
        (Some(step), _) => linear(amounts, step, faults),
        (None, Some(factor)) => geometric(from.as_ref().map(|from| &from.amount), amounts, factor, faults),
        (None, None) => None,
    };
    match (ends, steps) {
        (Some((from, _)), Some(steps)) if faults.len() == before => {
            let whole = matches!(from.node.value, Value::Integer(_));
            let node_of = |steps: i128| {
                let value = if whole { Value::Integer(steps) } else { Value::Text(from.amount.with(steps)) };
                Node { origin: node.origin.clone(), value }
            };
            steps.into_iter().map(node_of).collect()
        }
        // Whatever the step is, both ends are values of the range.
        (Some((from, to)), _) => vec![from.node.clone(), to.node.clone()],
        (None, _) => Vec::new(),
    }
}

/// Returns both ends of a range, if their units agree with each other and with that of the step.
fn ends<'a>(
    from: Option<&'a Bound<'a>>,
    to: Option<&'a Bound<'a>>,
    step: Option<&Bound<'_>>,
    faults: &mut Findings,
) -> Option<(&'a Bound<'a>, &'a Bound<'a>)> {
    let unit = |bound: &Bound<'_>| bound.amount.dimension();
    let mut known: Vec<String> = Vec::new();
    for bound in [from, to, step].into_iter().flatten() {
        let unit = unit(bound);
        if let Some(first) = known.first().filter(|_| !known.contains(&unit)) {
            faults.push(mixed(bound.node, first, &unit));
        }
        known.push(unit);
    }
    let (from, to) = (from?, to?);
    if known.iter().any(|unit| *unit != known[0]) {
        return None;
    }
    if from.amount.steps > to.amount.steps {
        let (first, last) = (from.node.text(), to.node.text());
        let message = format!("the range begins at `{first}`, after its end `{last}`");
        let help = "swap `from` and `to`; the order of points does not affect the results";
        faults.push(impossible(&from.node.origin, message, help));
    }
    Some((from, to))
}

/// Returns the values of a range with a step, as numbers of smallest steps of the unit; `None` after a fault, or without valid ends.
fn linear(ends: Option<(&Amount, &Amount)>, step: &Bound<'_>, faults: &mut Findings) -> Option<Vec<i128>> {
    let place = &step.node.origin;
    let step = step.amount.steps;
    if step == 0 {
        faults.push(impossible(place, "with a step of zero, the range never ends", "give a step above zero"));
        return None;
    }
    let (from, to) = ends?;
    let count = (to.steps - from.steps) / step + 1;
    if count > MAX_VALUES {
        let message = format!("the range has {count} values, but an axis may have at most {MAX_VALUES}");
        faults.push(impossible(place, message, "use a larger step"));
        return None;
    }
    Some((0..count).map(|index| from.steps + index * step).collect())
}

/// Returns the values of a range with a factor, as numbers of smallest steps of the unit; `None` after a fault, or without valid ends.
fn geometric(
    from: Option<&Amount>,
    ends: Option<(&Amount, &Amount)>,
    factor: &Node,
    faults: &mut Findings,
) -> Option<Vec<i128>> {
    if from.is_some_and(|from| from.steps == 0) {
        let message = "a range with a factor cannot begin at zero, because every product would be zero";
        faults.push(impossible(
            &factor.origin,
            message,
            "set `from` above zero, or give a `step` in place of the factor",
        ));
    }
    let mut wrong = |message: &str| {
        faults.push(impossible(&factor.origin, message, "give a factor above one: `factor = 2`"));
    };
    let Some((digits, scale)) = decimal(&factor.text()) else {
        wrong("the factor is not a plain number");
        return None;
    };
    let Some(one) = 10i128.checked_pow(scale as u32) else {
        wrong("the factor has too many decimals");
        return None;
    };
    if digits <= one {
        wrong("with a factor of one or less, the range never ends");
        return None;
    }
    let (from, to) = ends.filter(|(from, _)| from.steps > 0)?;
    let mut values = vec![from.steps];
    loop {
        let last = *values.last().expect("the list begins with `from`");
        // Values are rounded to the smallest step, such as a whole byte.
        let Some(next) = last.checked_mul(digits).map(|product| (product + one / 2) / one) else {
            return Some(values);
        };
        if next > to.steps {
            return Some(values);
        }
        if next == last || values.len() as i128 >= MAX_VALUES {
            wrong("the factor is so close to one that the range has too many values");
            return None;
        }
        values.push(next);
    }
}

/// Returns an error if there are more points than allowed.
pub(crate) fn too_many(
    axes: &[Swept],
    variants: usize,
    repeats: u32,
    allowed: u64,
    place: Option<&Origin>,
) -> Option<Diagnostic> {
    let points = axes.iter().try_fold(variants as u64 * u64::from(repeats), |points, axis| {
        points.checked_mul(axis.nodes.len() as u64)
    });
    if points.is_some_and(|points| points <= allowed) {
        return None;
    }
    let mut factors: Vec<String> = vec![counted(variants as u64, "variant")];
    factors.extend(
        axes.iter()
            .map(|axis| format!("{} of `{}`", counted(axis.nodes.len() as u64, "value"), axis.axis.path)),
    );
    factors.push(counted(u64::from(repeats), "repeat"));
    let points =
        points.map_or_else(|| "too many points to count".into(), |points| format!("{points} points"));
    let message = format!(
        "{points}, more than the {allowed} that are allowed without `--yes`: {}",
        factors.join(" × ")
    );
    let help = "use fewer values or repeats, or allow it with `--yes`";
    let found = Diagnostic::error("too-many-points", message).help(help);
    Some(match place {
        Some(place) => found.at(place),
        None => found,
    })
}

fn counted(count: u64, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

/// Warns about values of a variant that the sweep replaces in every point.
pub(crate) fn overruled(axes: &[Swept], variant: &str, changes: &[Override]) -> Vec<Diagnostic> {
    let swept = |change: &&Override| axes.iter().any(|axis| axis.path == change.path);
    let warn = |change: &Override| {
        let path: Arc<str> = crate::path::join(&change.path).into();
        let message = format!("variant `{variant}` sets `{path}`, but the sweep replaces it at every point");
        Diagnostic::warning("overruled", message)
            .path(&change.path)
            .at(&change.key)
            .help("remove it from the variant or from the sweep")
    };
    changes.iter().filter(swept).map(warn).collect()
}
