//! Requests and outcomes of recorded points, field by field.
//!
//! `recorded/` has a file for each point: its testbed, the answers of real agents, the requests and the outcome. Changes of the answers follow, each with what
//! they change in the outcome. `UPDATE=1 cargo test -p engpass-measured --test recorded` writes the obtained requests and outcomes; read the diff.

use std::path::{Path, PathBuf};
use std::{env, fs};

use engpass_measured::{Answers, Asked, Failure, measured, requests};
use engpass_outcome::FlowOutcome;
use engpass_testbed::{Point, Source, load};
use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// A recorded point: the contents of a file.
#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Recorded {
    /// The testbed file.
    testbed: String,
    asked: Asked,
    requests: Value,
    /// Fair shares and bottlenecks of the flows, by the engine `limit`.
    limits: IndexMap<String, FlowOutcome>,
    answers: Value,
    outcome: Value,
    changes: Vec<Change>,
}

/// A change of the answers, and the outcome or error that follows from it.
#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Change {
    name: String,
    /// Edits of the recorded answers.
    answers: Vec<Edit>,
    /// Edits of the recorded outcome; absent if the changed answers give an error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    outcome: Option<Vec<Edit>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    error: Option<(String, Option<String>)>,
}

/// A new value at a path of keys and indices joined by `/`. The value is removed if `to` is absent.
#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Edit {
    at: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    to: Option<(Value,)>,
}

/// Keys of an outcome under which it repeats the answers. Changes do not compare them, because the unchanged outcome does.
const AS_TOLD: [&str; 2] = ["hosts", "ends"];

/// Returns a value after edits.
fn edited(value: &Value, edits: &[Edit]) -> Value {
    let mut value = value.clone();
    for Edit { at, to } in edits {
        let mut place = &mut value;
        let (path, last) = at.rsplit_once('/').map_or(("", at.as_str()), |(path, last)| (path, last));
        for key in path.split('/').filter(|key| !key.is_empty()) {
            place = match place {
                Value::Array(values) => &mut values[key.parse::<usize>().unwrap()],
                other => &mut other[key],
            };
        }
        match (place, to) {
            (Value::Array(values), Some((new,))) => values[last.parse::<usize>().unwrap()] = new.clone(),
            (Value::Object(fields), Some((new,))) => {
                fields.insert(last.to_owned(), new.clone());
            }
            (Value::Object(fields), None) => {
                fields.shift_remove(last);
            }
            _ => panic!("no value at `{at}`"),
        }
    }
    value
}

/// Returns the edits that turn one value into another, without those of [`AS_TOLD`].
fn edits(one: &Value, other: &Value, path: &str, found: &mut Vec<Edit>) {
    let under = |key: &str| if path.is_empty() { key.to_owned() } else { format!("{path}/{key}") };
    match (one, other) {
        (Value::Object(fields), Value::Object(others)) => {
            for (key, value) in fields.iter().filter(|(key, _)| !AS_TOLD.contains(&key.as_str())) {
                match others.get(key) {
                    Some(new) => edits(value, new, &under(key), found),
                    None => found.push(Edit { at: under(key), to: None }),
                }
            }
            let new = others.iter().filter(|(key, _)| !fields.contains_key(*key));
            found.extend(new.map(|(key, value)| Edit { at: under(key), to: Some((value.clone(),)) }));
        }
        (Value::Array(values), Value::Array(others)) if values.len() == others.len() => {
            for (index, (value, new)) in values.iter().zip(others).enumerate() {
                edits(value, new, &under(&index.to_string()), found);
            }
        }
        _ if one == other => {}
        _ => found.push(Edit { at: path.to_owned(), to: Some((other.clone(),)) }),
    }
}

/// Collects the differences between two values. Integers must be equal, floats may differ by 1e-12 of the larger one.
fn compare(wanted: &Value, got: &Value, path: &str, found: &mut Vec<String>) {
    match (wanted, got) {
        (Value::Object(fields), Value::Object(others)) => {
            for (key, value) in fields {
                match others.get(key) {
                    Some(other) => compare(value, other, &format!("{path}/{key}"), found),
                    None => found.push(format!("{path}/{key} is missing: {value}")),
                }
            }
            let more = others.iter().filter(|(key, _)| !fields.contains_key(*key));
            found.extend(more.map(|(key, value)| format!("{path}/{key} is new: {value}")));
        }
        (Value::Array(values), Value::Array(others)) if values.len() == others.len() => {
            for (index, (value, other)) in values.iter().zip(others).enumerate() {
                compare(value, other, &format!("{path}/{index}"), found);
            }
        }
        (Value::Number(one), Value::Number(other)) if one.is_f64() || other.is_f64() => {
            let [one, other] = [one, other].map(|number| number.as_f64().unwrap());
            if (one - other).abs() > 1e-12 * one.abs().max(other.abs()) {
                found.push(format!("{path}: {one} became {other}"));
            }
        }
        _ if wanted == got => {}
        _ => found.push(format!("{path}: {wanted} became {got}")),
    }
}

/// Removes the parts of [`AS_TOLD`] at every depth.
fn without_told(value: &mut Value) {
    if let Value::Object(fields) = value {
        fields.retain(|key, _| !AS_TOLD.contains(&key.as_str()));
        fields.values_mut().for_each(without_told);
    }
}

fn outcome(point: &Point, recorded: &Recorded, answers: &Value) -> Result<Value, Failure> {
    let answers: Answers = serde_json::from_value(answers.clone()).unwrap();
    let mut outcome =
        serde_json::to_value(measured(point, &recorded.asked, &recorded.limits, answers)?).unwrap();
    // The caller of `measured` fills in variant and repeat.
    outcome.as_object_mut().unwrap().retain(|key, _| !["variant", "repeat"].contains(&key.as_str()));
    Ok(outcome)
}

fn point(name: &str, text: &str) -> Point {
    let source = Source { name: name.into(), text: text.into() };
    let campaign = load(&source, &[], None).unwrap_or_else(|found| panic!("{found}"));
    campaign.point(&campaign.variants()[0].clone(), &[]).unwrap_or_else(|found| panic!("{found}"))
}

fn files() -> Vec<PathBuf> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/recorded");
    let mut files: Vec<PathBuf> = fs::read_dir(directory).unwrap().map(|file| file.unwrap().path()).collect();
    files.sort();
    files
}

#[test]
fn recorded_points_have_their_requests_and_outcomes() {
    let update = env::var_os("UPDATE").is_some();
    let (mut found, mut cases) = (Vec::new(), 0);
    for file in files() {
        let name = file.file_stem().unwrap().to_str().unwrap().to_owned();
        let mut recorded: Recorded = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
        let point = point(&name, &recorded.testbed);
        let got = serde_json::to_value(requests(&point, &recorded.asked).unwrap()).unwrap();
        compare(&recorded.requests, &got, &format!("{name}: requests"), &mut found);
        recorded.requests = got;
        let base = outcome(&point, &recorded, &recorded.answers).unwrap();
        compare(&recorded.outcome, &base, &name, &mut found);
        let mut changes = std::mem::take(&mut recorded.changes);
        for change in &mut changes {
            let place = format!("{name}, {}", change.name);
            let got = outcome(&point, &recorded, &edited(&recorded.answers, &change.answers));
            match (&got, &change.outcome) {
                (Ok(got), Some(changed)) => {
                    let [mut wanted, mut got] = [edited(&recorded.outcome, changed), got.clone()];
                    without_told(&mut wanted);
                    without_told(&mut got);
                    compare(&wanted, &got, &place, &mut found);
                }
                (Err(got), None) => {
                    let wanted = json!(change.error);
                    compare(&wanted, &json!((&got.cause, &got.help)), &place, &mut found);
                }
                (got, _) => found.push(format!("{place}: {got:?}")),
            }
            change.error = got.as_ref().err().map(|error| (error.cause.clone(), error.help.clone()));
            change.outcome = got.ok().map(|got| {
                let mut changed = Vec::new();
                edits(&base, &got, "", &mut changed);
                changed
            });
            cases += 1;
        }
        recorded.changes = changes;
        recorded.outcome = base;
        if update {
            fs::write(&file, serde_json::to_string(&recorded).unwrap() + "\n").unwrap();
        }
        cases += 1;
    }
    assert!(cases > 100, "{cases} cases");
    assert!(
        update || found.is_empty(),
        "{} differences:\n{}",
        found.len(),
        found[..found.len().min(60)].join("\n")
    );
}

/// The accounts of every line add up to its capacity for all recorded changes of the answers.
#[test]
fn ledgers_of_recorded_points_balance() {
    let mut ledgers = 0;
    for file in files() {
        let recorded: Recorded = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
        let point = point("recorded", &recorded.testbed);
        for change in &recorded.changes {
            let answers = edited(&recorded.answers, &change.answers);
            let Ok(outcome) = outcome(&point, &recorded, &answers) else { continue };
            for direction in outcome["links"]
                .as_object()
                .unwrap()
                .values()
                .flat_map(|link| link["directions"].as_array().unwrap())
            {
                let Some(accounts) = direction["ledger"]["accounts"].as_object() else { continue };
                let sum: u64 = accounts.values().map(|parts| parts.as_u64().unwrap()).sum();
                assert_eq!(direction["ledger"]["capacity"], sum, "{}: {direction}", change.name);
                ledgers += 1;
            }
        }
    }
    assert!(ledgers > 100);
}
