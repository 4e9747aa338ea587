//! Signals: the numbers of an outcome that tables, files, figures, claims, comparisons and advice show.
//!
//! A field of an outcome declares its signal beside its documentation, for example
//! `#[schemars(extend("x-signal" = count("Timeouts", "timeouts")))]`. [`of`] collects the declarations from the schema, and `make gen` writes
//! them to `python/engpass/types/signals.py`. Its unit, the fold of repeats and the better direction are known nowhere else.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Keyword of a declaration in the schema.
pub(crate) const KEYWORD: &str = "x-signal";

/// How the values of repeats become one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fold {
    /// Arithmetic mean.
    Mean,
    /// Sum.
    Sum,
    /// Minimum.
    Min,
    /// Maximum.
    Max,
}

/// The direction in which a signal improves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Better {
    /// More is better.
    Higher,
    /// Less is better.
    Lower,
}

/// The declaration of a signal at a field. For a field with several numbers (quantiles), `{}` in the texts stands for the name of each.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Declaration {
    title: String,
    unit: String,
    column: Option<String>,
    fold: Fold,
    better: Option<Better>,
    ratio: Option<[String; 2]>,
    always: bool,
    summary: Vec<String>,
}

fn declare(title: &str, unit: &str, fold: Fold) -> Declaration {
    Declaration {
        title: title.to_owned(),
        unit: unit.to_owned(),
        column: None,
        fold,
        better: None,
        ratio: None,
        always: false,
        summary: Vec::new(),
    }
}

/// Declares a rate in bit/s.
pub fn rate(title: &str) -> Declaration {
    declare(title, "bit/s", Fold::Mean)
}

/// Declares a time in seconds.
pub fn time(title: &str) -> Declaration {
    declare(title, "s", Fold::Mean)
}

/// Declares a share between 0 and 1.
pub fn share(title: &str) -> Declaration {
    declare(title, "", Fold::Mean)
}

/// Declares a number per another unit, such as `s/GB`.
pub fn number(title: &str, unit: &str) -> Declaration {
    declare(title, unit, Fold::Mean)
}

/// Declares a count, which repeats sum up, with the plural of what it counts.
pub fn count(title: &str, unit: &str) -> Declaration {
    declare(title, unit, Fold::Sum)
}

/// Declares the share of `part` in `whole`, two counts below the field. The share of several repeats is that of the sums, not a mean of
/// shares.
pub fn ratio(title: &str, part: &str, whole: &str) -> Declaration {
    Declaration { ratio: Some([part.to_owned(), whole.to_owned()]), ..declare(title, "", Fold::Mean) }
}

impl Declaration {
    /// Names the column of files; without it, the column has the name of the field.
    #[must_use]
    pub fn column(self, name: &str) -> Self {
        Self { column: Some(name.to_owned()), ..self }
    }

    /// Takes the maximum of repeats.
    #[must_use]
    pub fn maximum(self) -> Self {
        Self { fold: Fold::Max, ..self }
    }

    /// More is better.
    #[must_use]
    pub fn higher(self) -> Self {
        Self { better: Some(Better::Higher), ..self }
    }

    /// Less is better.
    #[must_use]
    pub fn lower(self) -> Self {
        Self { better: Some(Better::Lower), ..self }
    }

    /// Every file has the column, even if no outcome has a value.
    #[must_use]
    pub fn always(self) -> Self {
        Self { always: true, ..self }
    }

    /// Summaries show the signal; of several numbers, those with the given names.
    #[must_use]
    pub fn summary(self, names: &[&str]) -> Self {
        let names = if names.is_empty() { &[""] } else { names };
        Self { summary: names.iter().map(|&name| name.to_owned()).collect(), ..self }
    }
}

/// A number of a flow, of a direction of a link, or of an engine of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signal {
    /// Name of the column in files.
    pub name: String,
    /// Title of columns and axes. In lower case, claims name the signal so.
    pub title: String,
    /// Signals with a common title, such as the quantiles of a delay: that title, and the part that differs.
    pub family: Option<[String; 2]>,
    /// Base unit: `bit/s`, `s`, `B`, the plural of what is counted; empty for a share.
    pub unit: String,
    /// Path of the field in the outcome of the flow, direction or engine; for a ratio, of the field above both counts.
    pub path: String,
    /// For a ratio: the paths of part and whole.
    pub ratio: Option<[String; 2]>,
    /// Whether the number is a whole one.
    pub whole: bool,
    /// How repeats become one number.
    pub fold: Fold,
    /// The better direction.
    pub better: Option<Better>,
    /// Whether every file has the column.
    pub always: bool,
    /// Whether summaries show it.
    pub summary: bool,
    /// Description of the field.
    pub help: String,
}

/// Returns the signals of the class `root` of a schema, in the order of the fields.
///
/// # Panics
/// If a declaration stands at a field that is no number and has none.
pub fn of(schema: &Value, root: &str) -> Vec<Signal> {
    let mut found = Vec::new();
    walk(schema, &schema["$defs"][root], "", &mut found);
    found
}

fn walk(schema: &Value, class: &Value, above: &str, found: &mut Vec<Signal>) {
    for (key, field) in class["properties"].as_object().into_iter().flatten() {
        let path = if above.is_empty() { key.clone() } else { format!("{above}.{key}") };
        let below = object_of(schema, field);
        if let Some(declared) = field.get(KEYWORD) {
            let declared = Declaration::deserialize(declared).expect("a declaration was written as such");
            add(&declared, field, &path, below.filter(|_| declared.ratio.is_none()), found);
            if declared.ratio.is_none() {
                continue;
            }
        }
        if let Some(below) = below {
            walk(schema, below, &path, found);
        }
    }
}

fn add(declared: &Declaration, field: &Value, path: &str, below: Option<&Value>, found: &mut Vec<Signal>) {
    let key = path.rsplit('.').next().unwrap_or(path);
    let column = declared.column.clone().unwrap_or_else(|| key.to_owned());
    let described = |field: &Value| {
        field["description"].as_str().unwrap_or_default().split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let help = match &declared.ratio {
        Some([part, whole]) => format!("`{path}.{part}` as a share of `{path}.{whole}`."),
        None => described(field),
    };
    let signal = |name: String, title: String, path: String| Signal {
        name,
        title,
        family: None,
        unit: declared.unit.clone(),
        ratio: declared.ratio.clone().map(|parts| parts.map(|part| format!("{path}.{part}"))),
        path,
        whole: has_type(field, "integer"),
        fold: declared.fold,
        better: declared.better,
        always: declared.always,
        summary: !declared.summary.is_empty(),
        help: help.clone(),
    };
    let Some(below) = below else {
        assert!(
            declared.ratio.is_some() || has_type(field, "integer") || has_type(field, "number"),
            "`{path}` is declared as a signal, but it is no number"
        );
        found.push(signal(column, declared.title.clone(), path.to_owned()));
        return;
    };
    let common = declared.title.replace("{}", "");
    for (name, number) in below["properties"].as_object().into_iter().flatten() {
        let label = name.replace('_', ".");
        let fill = |text: &str, word: &str| text.replace("{}", word);
        let fold = match name.as_str() {
            "min" => Fold::Min,
            "max" => Fold::Max,
            _ => declared.fold,
        };
        found.push(Signal {
            family: Some([common.trim().to_owned(), label.clone()]),
            fold,
            summary: declared.summary.contains(name),
            help: format!("{} {help}", described(number)),
            ..signal(
                fill(&column, &name.replace('_', "")),
                fill(&declared.title, &label),
                format!("{path}.{name}"),
            )
        });
    }
}

/// Returns the class of a field, if it is one object or none.
fn object_of<'a>(schema: &'a Value, field: &'a Value) -> Option<&'a Value> {
    let choices = field.get("anyOf").and_then(Value::as_array);
    let references = choices.into_iter().flatten().chain([field]);
    let name = references.filter_map(|one| one["$ref"].as_str()).next()?.rsplit('/').next()?;
    Some(&schema["$defs"][name]).filter(|class| class["type"] == "object")
}

fn has_type(field: &Value, wanted: &str) -> bool {
    let kind = &field["type"];
    kind == wanted || kind.as_array().is_some_and(|kinds| kinds.iter().any(|one| one == wanted))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn titles_and_columns_are_unique_within_a_scope() {
        let schema = crate::declared();
        for root in ["FlowOutcome", "DirectionOutcome", "EngineOutcome"] {
            let signals = of(&schema, root);
            let titles: BTreeSet<_> = signals.iter().map(|one| one.title.to_lowercase()).collect();
            let names: BTreeSet<_> = signals.iter().map(|one| &one.name).collect();
            assert_eq!((titles.len(), names.len()), (signals.len(), signals.len()), "{root}");
        }
    }

    #[test]
    fn a_family_has_one_signal_for_each_of_its_numbers() {
        let signals = of(&crate::declared(), "FlowOutcome");
        let delays: Vec<_> = signals
            .iter()
            .filter(|one| one.path.starts_with("delay_s.network."))
            .map(|one| (one.name.as_str(), one.title.as_str(), one.fold))
            .collect();
        assert_eq!(
            delays,
            [
                ("delay_min_s", "Delay min", Fold::Min),
                ("delay_mean_s", "Delay mean", Fold::Mean),
                ("delay_p50_s", "Delay p50", Fold::Mean),
                ("delay_p90_s", "Delay p90", Fold::Mean),
                ("delay_p99_s", "Delay p99", Fold::Mean),
                ("delay_p999_s", "Delay p99.9", Fold::Mean),
                ("delay_max_s", "Delay max", Fold::Max),
            ]
        );
    }

    #[test]
    fn every_number_of_a_flow_is_a_signal() {
        let schema = crate::declared();
        let known: BTreeSet<_> = of(&schema, "FlowOutcome").into_iter().map(|one| one.path).collect();
        // Parameters of a method, and details of one sentence: no results of their own.
        let others = [
            "limit.window.bytes",
            "limit.window.round_trip_s",
            "limit.window.bandwidth_delay_product_bytes",
            "limit.window.filling_bytes",
            "real.pacing.explained_share",
            "real.precision.asked",
            "real.precision.confidence",
            "real.precision.intervals",
            "real.precision.interval_s",
            "real.precision.mean_bit_per_s",
            "real.precision.half_width_bit_per_s",
            "real.precision.effective_samples",
        ];
        let mut numbers = Vec::new();
        leaves(&schema, &schema["$defs"]["FlowOutcome"], "", &mut numbers);
        let missing: Vec<_> = numbers
            .into_iter()
            .filter(|path| !known.contains(path) && !others.contains(&path.as_str()))
            .collect();
        assert_eq!(missing, [""; 0]);
    }

    /// Collects the paths of all numbers below a class.
    fn leaves(schema: &Value, class: &Value, above: &str, found: &mut Vec<String>) {
        for (key, field) in class["properties"].as_object().into_iter().flatten() {
            let path = if above.is_empty() { key.clone() } else { format!("{above}.{key}") };
            if has_type(field, "integer") || has_type(field, "number") {
                found.push(path);
            } else if let Some(below) = object_of(schema, field) {
                leaves(schema, below, &path, found);
            }
        }
    }
}
