//! Time dilation: a network that is too fast for the machine runs N times slower than wall-clock time. Results are in the model's time, but agents work in
//! wall-clock time. Their work is therefore stretched before a run, and their results are scaled back after it.

use engpass_outcome::{Delays, FlowOutcome, Gaps, Latency, Outage, Quantiles, RealFlow, Receiver, Tcp};

/// Returns a limit as the agents' flows reach it.
pub(crate) fn slower(limit: FlowOutcome, slow: u32) -> FlowOutcome {
    FlowOutcome { goodput_bit_per_s: limit.goodput_bit_per_s / f64::from(slow), ..limit }
}

/// Converts a flow between real hosts from wall-clock time to the model's time. Times are divided: delays, gaps, latencies, outages, transfers, round trips and
/// the intervals of the precision. Rates are multiplied: payload, requests, and the mean of the precision.
///
/// The rest is unchanged: counts and shares; CPU time of the hosts for each GB; datagrams within a millisecond of wall-clock time; sentences; and the agents'
/// results. A measured flow has no `limit`.
pub(crate) fn back(mut flow: FlowOutcome, slow: u32) -> FlowOutcome {
    if slow == 1 {
        return flow;
    }
    let slow = Slow(f64::from(slow));
    slow.rate(&mut flow.goodput_bit_per_s);
    slow.rate(&mut flow.offered_bit_per_s);
    slow.delays(flow.delay_s.as_mut());
    slow.tcp(flow.tcp.as_mut());
    slow.outage(flow.outage.as_mut());
    if let Some(transfer) = &mut flow.transfer {
        slow.times([&mut transfer.duration_s]);
        slow.rates(&mut transfer.goodput_bit_per_s);
    }
    flow.receivers.values_mut().for_each(|receiver| slow.receiver(receiver));
    if let Some(real) = &mut flow.real {
        slow.real(real);
    }
    flow
}

/// The factor of time dilation.
struct Slow(f64);

impl Slow {
    fn rate(&self, rate: &mut f64) {
        *rate *= self.0;
    }

    fn rates(&self, rate: &mut Option<f64>) {
        rate.iter_mut().for_each(|rate| self.rate(rate));
    }

    fn time(&self, time: &mut f64) {
        *time /= self.0;
    }

    fn times<const N: usize>(&self, times: [&mut Option<f64>; N]) {
        times.into_iter().flatten().for_each(|time| self.time(time));
    }

    fn quantiles(&self, of: Option<&mut Quantiles>) {
        let Some(Quantiles { min, mean, p50, p90, p99, p99_9, max }) = of else { return };
        [min, p50, p90, p99, p99_9, max].into_iter().chain(mean).for_each(|time| self.time(time));
    }

    fn delays(&self, of: Option<&mut Delays>) {
        let Some(Delays { network, queueing, message }) = of else { return };
        self.quantiles(Some(network));
        self.quantiles(queueing.as_mut());
        self.quantiles(message.as_mut());
    }

    fn outage(&self, of: Option<&mut Outage>) {
        of.into_iter().for_each(|outage| self.time(&mut outage.longest_s));
    }

    fn tcp(&self, of: Option<&mut Tcp>) {
        let Some(tcp) = of else { return };
        self.times([&mut tcp.smoothed_rtt_s, &mut tcp.min_rtt_s]);
        self.quantiles(tcp.rtt_s.as_mut());
    }

    fn gaps(&self, of: Option<&mut Gaps>) {
        let Some(Gaps { mean, sd, mad, p99, p99_9 }) = of else { return };
        self.times([mean, sd, mad, p99, p99_9]);
    }

    fn real(&self, real: &mut RealFlow) {
        self.gaps(real.gap_s.as_mut());
        if let Some(requests) = &mut real.requests {
            self.rate(&mut requests.per_s);
            if let Some(Latency { min, mean, p50, p90, p99, p99_9, max }) = &mut requests.latency_s {
                self.times([min, mean, p50, p90, p99, p99_9, max]);
            }
        }
        if let Some(precision) = &mut real.precision {
            self.time(&mut precision.interval_s);
            self.rates(&mut precision.mean_bit_per_s);
            self.rates(&mut precision.half_width_bit_per_s);
        }
    }

    fn receiver(&self, receiver: &mut Receiver) {
        self.rate(&mut receiver.goodput_bit_per_s);
        self.rate(&mut receiver.offered_bit_per_s);
        self.delays(receiver.delay_s.as_mut());
        self.outage(receiver.outage.as_mut());
        self.gaps(receiver.gap_s.as_mut());
        self.times([&mut receiver.join_delay_s, &mut receiver.leave_delay_s]);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Map, Value, json};

    use super::*;

    /// Returns a value of a schema with all fields set and every number 1.
    fn filled(schema: &Value, definitions: &Value) -> Value {
        if let Some(name) = schema["$ref"].as_str() {
            return filled(&definitions[name.rsplit('/').next().unwrap()], definitions);
        }
        if let Some(options) = schema["anyOf"].as_array() {
            return filled(options.iter().find(|one| one["type"] != "null").unwrap(), definitions);
        }
        if let Some(options) = schema["oneOf"].as_array() {
            return options[0].get("const").unwrap_or(&options[0]["enum"][0]).clone();
        }
        let kind = schema["type"].as_str().or_else(|| schema["type"][0].as_str());
        match kind {
            Some("object") if schema.get("properties").is_some() => {
                let fields = schema["properties"].as_object().unwrap().iter();
                fields
                    .map(|(key, field)| (key.clone(), filled(field, definitions)))
                    .collect::<Map<_, _>>()
                    .into()
            }
            Some("object") => json!({ "one": filled(&schema["additionalProperties"], definitions) }),
            Some("array") => json!([filled(&schema["items"], definitions)]),
            Some("boolean") => json!(true),
            Some("string") => json!("text"),
            Some("integer") => json!(1),
            Some("number") => json!(1.0),
            _ => json!({ "elapsed_ns": 1.0 }),
        }
    }

    /// Collects the factor by which each number of a value has changed, by its path.
    fn factors(before: &Value, after: &Value, path: &str, found: &mut Vec<(String, f64)>) {
        match before {
            Value::Object(fields) => {
                fields
                    .iter()
                    .for_each(|(key, value)| factors(value, &after[key], &format!("{path}.{key}"), found));
            }
            Value::Array(values) => {
                values
                    .iter()
                    .zip(after.as_array().unwrap())
                    .for_each(|(one, other)| factors(one, other, path, found));
            }
            Value::Number(number) if number.is_f64() => {
                found.push((path.to_owned(), after.as_f64().unwrap() / number.as_f64().unwrap()));
            }
            _ => assert_eq!(before, after, "{path}"),
        }
    }

    /// Names show which fields are times and rates, so fields of later versions are checked, too.
    #[test]
    fn all_times_and_rates_of_a_flow_are_scaled_back() {
        let schema = engpass_outcome::schema();
        let whole = filled(&schema["$defs"]["FlowOutcome"], &schema["$defs"]);
        let mut whole: FlowOutcome = serde_json::from_value(whole).unwrap();
        // Figures of `limit` do not come from real hosts and are therefore not scaled.
        whole.limit = None;
        whole.receivers.values_mut().for_each(|receiver| receiver.limit = None);
        let mut found = Vec::new();
        let json = |flow: &FlowOutcome| serde_json::to_value(flow).unwrap();
        factors(&json(&whole), &json(&back(whole.clone(), 10)), "", &mut found);
        let mut kinds = [0; 3];
        for (name, factor) in found {
            let words: Vec<&str> = name.split('.').collect();
            let last = words[words.len() - 1];
            let expected =
                if words.contains(&"ends") || words.contains(&"stalls") || last.ends_with("_per_gb") {
                    1.0
                } else if last == "per_s" || last.ends_with("_per_s") {
                    10.0
                } else if words.iter().any(|word| word.ends_with("_s")) {
                    0.1
                } else {
                    1.0
                };
            assert!((factor - expected).abs() < 1e-12, "{name}: {factor}");
            kinds[if expected == 1.0 {
                0
            } else if expected > 1.0 {
                1
            } else {
                2
            }] += 1;
        }
        assert!(kinds.iter().all(|count| *count > 5), "{kinds:?}");
        assert_eq!(back(whole.clone(), 1), whole);
    }
}
