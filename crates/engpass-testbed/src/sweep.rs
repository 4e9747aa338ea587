//! Sweeps: paths with several values.

use std::sync::Arc;

use crate::amount::{Amount, decimal};
use crate::diagnostic::Diagnostic;
use crate::origin::{Giver, Origin};
use crate::overrides::{Flat, Override, refuse_campaign_keys};
use crate::read::{locate, wrong_type};
use crate::tree::{Node, Table, Value};

/// No axis has more values, whatever the caller allows.
pub const MAX_VALUES: i128 = 1_000_000;

/// One axis of a sweep.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    /// Dotted key of what is swept.
    pub path: String,
    /// Its values, in their order.
    pub values: Vec<AxisValue>,
}

/// One value of an axis.
#[derive(Clone, Debug, PartialEq)]
pub struct AxisValue {
    /// As a file writes it, without quotes: `9 kB`.
    pub text: String,
    /// In base units: bytes, bit/s, seconds, counts; shares as fractions. `None` for what is no quantity.
    pub number: Option<f64>,
    /// The base unit: `B`, `bit/s`, `s`, `cells`, `packets`, `cells/s`; empty for shares and counts.
    pub unit: Option<String>,
}

/// An axis with its values as they stand in the tree.
#[derive(Clone, Debug)]
pub(crate) struct Swept {
    pub(crate) axis: Axis,
    pub(crate) path: Vec<String>,
    pub(crate) key: Origin,
    pub(crate) nodes: Vec<Node>,
}

impl Swept {
    /// The value with this text, as an override.
    pub(crate) fn value(&self, text: &str) -> Option<Override> {
        let index = self.axis.values.iter().position(|value| value.text == text)?;
        Some(self.nth(index))
    }

    /// The value at `index`, as an override.
    pub(crate) fn nth(&self, index: usize) -> Override {
        let mut node = self.nodes[index].clone();
        let giver = Giver::Sweep { axis: self.axis.path.as_str().into(), index: index + 1 };
        node.stamp(&giver);
        Override { path: self.path.clone(), key: self.key.clone(), node }
    }
}

/// Read `[sweep]`; axes that are impossible are reported and left out.
pub(crate) fn axes(tree: &Node, found: &mut Vec<Diagnostic>) -> Vec<Swept> {
    let Some(entry) = tree.table().and_then(|top| top.get("sweep")) else { return Vec::new() };
    let Some(table) = entry.node.table() else {
        found.push(wrong_type(&["sweep"], &entry.node, "a table: `[sweep]`"));
        return Vec::new();
    };
    let mut given = Vec::new();
    // A `from` directly in a component is a host, and not the beginning of a range.
    let leaf = |path: &[String], table: &Table| {
        path.len() > 2 - usize::from(path[0] == "run") && RANGE.iter().any(|key| table.contains_key(*key))
    };
    Flat { leaf: &leaf, found }.table(&[], table, &mut given);
    let mut axes: Vec<Swept> = Vec::new();
    for Override { path, key, node } in given {
        let name = crate::path::join(&path);
        if axes.iter().any(|axis| axis.path == path) {
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
        match values(&node) {
            Ok(nodes) => {
                let values = nodes.iter().map(axis_value).collect();
                axes.push(Swept { axis: Axis { path: name, values }, path, key, nodes });
            }
            Err(problem) => found.push(problem.path(&["sweep", &name])),
        }
    }
    axes
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

fn impossible(place: &Origin, message: impl Into<String>, help: impl Into<String>) -> Box<Diagnostic> {
    Box::new(Diagnostic::error("impossible-sweep", message).at(place).help(help))
}

/// Keys of a range.
const RANGE: &[&str] = &["from", "to", "step", "factor"];
const FORMS: &str = "a sweep is a list, `[\"1 kB\", \"2 kB\"]`, or a range: `{ from = \"1 kB\", to = \"64 kB\", step = \"1 kB\" }`, \
                     or with `factor = 2` in place of `step`";

fn values(node: &Node) -> Result<Vec<Node>, Box<Diagnostic>> {
    match &node.value {
        Value::List(nodes) => list(node, nodes),
        Value::Table(table) => range(node, table),
        _ => Err(impossible(&node.origin, format!("{} is no sweep", node.what()), FORMS)),
    }
}

fn list(node: &Node, nodes: &[Node]) -> Result<Vec<Node>, Box<Diagnostic>> {
    if nodes.is_empty() {
        return Err(impossible(&node.origin, "an empty list sweeps over nothing", FORMS));
    }
    let mut seen = std::collections::BTreeSet::new();
    for item in nodes {
        if matches!(item.value, Value::List(_) | Value::Table(_)) {
            let message = format!("{} is no single value", item.what());
            return Err(impossible(&item.origin, message, FORMS));
        }
        if !seen.insert(item.text()) {
            let message = format!("`{}` stands in the list twice", crate::tree::shortened(&item.text()));
            return Err(impossible(&item.origin, message, "keep one of them; `run.repeats` repeats points"));
        }
    }
    let amounts: Vec<Option<Amount>> = nodes.iter().map(|item| Amount::parse(&item.text())).collect();
    let first = amounts[0].as_ref().map(Amount::dimension);
    for (item, amount) in nodes.iter().zip(&amounts) {
        let dimension = amount.as_ref().map(Amount::dimension);
        // Rates may change what they count from value to value; the axis stays one of bit/s.
        let of = |dimension: &Option<String>| {
            dimension.as_ref().map(|text| text.split(' ').next().unwrap_or("").to_string())
        };
        if let (Some(one), Some(other)) = (of(&first), of(&dimension))
            && one != other
        {
            return Err(mixed(item, &one, &other));
        }
    }
    Ok(nodes.to_vec())
}

fn mixed(place: &Node, one: &str, other: &str) -> Box<Diagnostic> {
    let name = |unit: &str| if unit.is_empty() { "no unit".to_string() } else { format!("`{unit}`") };
    let message = format!("one sweep cannot mix values in {} and in {}", name(one), name(other));
    impossible(&place.origin, message, "give all its values one kind of unit")
}

fn range(node: &Node, table: &Table) -> Result<Vec<Node>, Box<Diagnostic>> {
    let at = |key: &str| locate(node, &[key]).unwrap_or(&node.origin);
    for (key, entry) in table {
        if !RANGE.contains(&key.as_str()) {
            let message = format!("unknown key `{}`", crate::tree::shortened(key));
            let help = crate::path::suggestion(key, "a range has", RANGE);
            return Err(Box::new(Diagnostic::error("unknown-key", message).at(&entry.key).maybe_help(help)));
        }
    }
    let amount = |key: &str| -> Result<Option<(Amount, &Node)>, Box<Diagnostic>> {
        let Some(entry) = table.get(key) else { return Ok(None) };
        match Amount::parse(&entry.node.text()) {
            Some(amount) => Ok(Some((amount, &entry.node))),
            None => {
                let message = format!("{} is no quantity that can be counted", entry.node.what());
                Err(impossible(&entry.node.origin, message, FORMS))
            }
        }
    };
    let need = |key: &str| impossible(&node.origin, format!("the range has no `{key}`"), FORMS);
    let (from, first) = amount("from")?.ok_or_else(|| need("from"))?;
    let (to, last) = amount("to")?.ok_or_else(|| need("to"))?;
    if from.dimension() != to.dimension() {
        return Err(mixed(last, &from.dimension(), &to.dimension()));
    }
    if from.steps > to.steps {
        let message = format!("the range begins at `{}`, after its end `{}`", first.text(), last.text());
        return Err(impossible(
            at("from"),
            message,
            "exchange `from` and `to`; the order of points changes no result",
        ));
    }
    let steps = match (amount("step")?, table.get("factor")) {
        (Some(_), Some(_)) => {
            return Err(impossible(at("factor"), "a range has a `step` or a `factor`", "keep one of them"));
        }
        (None, None) => return Err(need("step")),
        (Some((step, step_node)), None) => {
            if step.dimension() != from.dimension() {
                return Err(mixed(step_node, &from.dimension(), &step.dimension()));
            }
            linear(&from, &to, &step, step_node)?
        }
        (None, Some(factor)) => geometric(&from, &to, &factor.node)?,
    };
    let whole = matches!(first.value, Value::Integer(_));
    let node_of = |steps: i128| {
        let value = if whole { Value::Integer(steps) } else { Value::Text(from.with(steps)) };
        Node { origin: node.origin.clone(), value }
    };
    Ok(steps.into_iter().map(node_of).collect())
}

fn linear(from: &Amount, to: &Amount, step: &Amount, place: &Node) -> Result<Vec<i128>, Box<Diagnostic>> {
    if step.steps == 0 {
        return Err(impossible(&place.origin, "a step of zero never ends", "give a step above zero"));
    }
    let count = (to.steps - from.steps) / step.steps + 1;
    if count > MAX_VALUES {
        let message = format!("the range has {count} values, and an axis at most {MAX_VALUES}");
        return Err(impossible(&place.origin, message, "take a larger step"));
    }
    Ok((0..count).map(|index| from.steps + index * step.steps).collect())
}

fn geometric(from: &Amount, to: &Amount, factor: &Node) -> Result<Vec<i128>, Box<Diagnostic>> {
    let wrong = |message: &str| impossible(&factor.origin, message, "give a factor above one: `factor = 2`");
    let (digits, scale) = decimal(&factor.text()).ok_or_else(|| wrong("the factor is no plain number"))?;
    let one = 10i128.checked_pow(scale as u32).ok_or_else(|| wrong("the factor has too many decimals"))?;
    if digits <= one {
        return Err(wrong("a factor of one or less never gets to the end"));
    }
    if from.steps == 0 {
        return Err(wrong("a range with a factor cannot begin at zero"));
    }
    let mut values = vec![from.steps];
    loop {
        let last = *values.last().expect("the list begins with `from`");
        // Rounded to the smallest step: half a byte cannot be sent.
        let Some(next) = last.checked_mul(digits).map(|product| (product + one / 2) / one) else {
            return Ok(values);
        };
        if next > to.steps {
            return Ok(values);
        }
        if next == last || values.len() as i128 >= MAX_VALUES {
            return Err(wrong("the factor is so close to one that the values do not grow"));
        }
        values.push(next);
    }
}

/// How many points there are, and the complaint if that is more than was allowed.
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
    let message = format!("{points}, and without `--yes` at most {allowed}: {}", factors.join(" × "));
    let help = "take fewer values or repeats, or allow it with `--yes`";
    let found = Diagnostic::error("too-many-points", message).help(help);
    Some(match place {
        Some(place) => found.at(place),
        None => found,
    })
}

fn counted(count: u64, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

/// A variant sets what the sweep replaces.
pub(crate) fn overruled(axes: &[Swept], variant: &str, changes: &[Override]) -> Vec<Diagnostic> {
    let swept = |change: &&Override| axes.iter().any(|axis| axis.path == change.path);
    let warn = |change: &Override| {
        let path: Arc<str> = crate::path::join(&change.path).into();
        let message = format!("variant `{variant}` sets `{path}`, and the sweep replaces it at every point");
        Diagnostic::warning("overruled", message)
            .path(&change.path)
            .at(&change.key)
            .help("take it out of the variant or out of the sweep")
    };
    changes.iter().filter(swept).map(warn).collect()
}
