//! Changes of host counters during a point, and results short enough to store.

use serde_json::{Map, Value, json};

const MOST_BINS: usize = 48;

/// Returns the differences between two readings with the same keys, without zeros; `null` if nothing changed.
pub(crate) fn changes(before: &Value, after: &Value) -> Value {
    match after {
        Value::Object(fields) => {
            if fields.contains_key("core") && !before.is_object() {
                return Value::Null;
            }
            let named = ["core", "dev", "kind"]
                .into_iter()
                .filter_map(|key| Some((key.to_owned(), fields.get(key)?.clone())));
            let grown =
                fields.iter().filter(|(key, _)| !["core", "dev", "kind", "handle"].contains(&key.as_str()));
            let grown = grown.map(|(key, value)| (key.clone(), changes(&before[key.as_str()], value)));
            let grown: Vec<(String, Value)> = grown.filter(|(_, change)| !change.is_null()).collect();
            if grown.is_empty() { Value::Null } else { named.chain(grown).collect::<Map<_, _>>().into() }
        }
        Value::Array(values) => {
            let pairs = before.as_array().into_iter().flatten().zip(values);
            let found: Vec<Value> =
                pairs.map(|(old, new)| changes(old, new)).filter(|change| !change.is_null()).collect();
            if found.is_empty() { Value::Null } else { found.into() }
        }
        _ => match (whole(before), whole(after)) {
            (Some(old), Some(new)) if new != old => json!((new - old) as i64),
            _ => Value::Null,
        },
    }
}

fn whole(value: &Value) -> Option<i128> {
    value.as_i64().map(i128::from).or_else(|| value.as_u64().map(i128::from))
}

/// Shortens histograms and time series of an agent's result to at most [`MOST_BINS`] entries, for figures.
pub(crate) fn thinned(mut end: Value) -> Value {
    for (key, value) in end.as_object_mut().into_iter().flatten() {
        match value {
            Value::Object(fields) => {
                if let Some(Value::Array(bins)) = fields.get_mut("histogram") {
                    *bins = joined(std::mem::take(bins), merged_bin);
                }
            }
            Value::Array(records) if key == "series" => {
                *records = joined(std::mem::take(records), merged_record)
            }
            Value::Array(streams) if key == "streams" => {
                *streams = std::mem::take(streams).into_iter().map(thinned).collect();
            }
            _ => {}
        }
    }
    end
}

/// Joins groups of neighbours.
fn joined(entries: Vec<Value>, merged: fn(&[Value]) -> Value) -> Vec<Value> {
    if entries.len() <= MOST_BINS {
        return entries;
    }
    entries.chunks(entries.len().div_ceil(MOST_BINS)).map(merged).collect()
}

/// Joins bins of a histogram under their highest value; counts are added.
fn merged_bin(bins: &[Value]) -> Value {
    json!([bins[bins.len() - 1][0], bins.iter().filter_map(|bin| bin[1].as_u64()).sum::<u64>()])
}

/// Joins records of a time series: the last one, from the beginning of the first, with the sums of bytes, messages and losses.
fn merged_record(records: &[Value]) -> Value {
    let mut record = records[records.len() - 1].clone();
    record["from_ns"] = records[0]["from_ns"].clone();
    for key in ["bytes", "messages", "lost"] {
        if record.get(key).is_some() {
            record[key] = records.iter().filter_map(|one| one[key].as_u64()).sum::<u64>().into();
        }
    }
    record
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_counters_that_grew_remain() {
        let before = json!({ "at_ns": 1, "cores": [{ "core": 0, "dropped": 1 }, { "core": 1, "dropped": 2 }], "name": "x", "up": true });
        let after = json!({ "at_ns": 5, "cores": [{ "core": 0, "dropped": 1 }, { "core": 1, "dropped": 9 }], "name": "y", "up": false });
        assert_eq!(changes(&before, &after), json!({ "at_ns": 4, "cores": [{ "core": 1, "dropped": 7 }] }));
        assert_eq!(changes(&before, &before), Value::Null);
        // A core that was not there before has no growth.
        assert_eq!(changes(&Value::Null, &json!({ "core": 2, "dropped": 3 })), Value::Null);
    }

    #[test]
    fn shortened_results_keep_their_sums() {
        let bins: Vec<Value> = (0..100).map(|bin| json!([bin, 2])).collect();
        let series: Vec<Value> = (0..100)
            .map(|place| json!({ "from_ns": place, "to_ns": place + 1, "bytes": 3, "rtt": place }))
            .collect();
        let short = thinned(
            json!({ "gaps": { "histogram": bins, "count": 200 }, "series": series, "streams": [{ "late": { "histogram": bins } }] }),
        );
        let bins = short["gaps"]["histogram"].as_array().unwrap();
        assert_eq!((bins.len(), &bins[0], &bins[33]), (34, &json!([2, 6]), &json!([99, 2])));
        assert_eq!(short["series"][0], json!({ "from_ns": 0, "to_ns": 3, "bytes": 9, "rtt": 2 }));
        assert_eq!(short["streams"][0]["late"]["histogram"].as_array().unwrap().len(), 34);
    }
}
