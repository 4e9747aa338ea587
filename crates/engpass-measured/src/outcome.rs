//! The outcome of a point, from the agents' answers.

use engpass_outcome::{
    Emulated, FlowOutcome, LinkOutcome, MeasuredPoint, NodeOutcome, Outcome, PointPrecision, RealFlow,
    VERSION,
};
use engpass_testbed::{Point, Topology};
use indexmap::IndexMap;
use serde_json::{Value, json};

use crate::answer::{Answers, End, Host, Hosts};
use crate::bottleneck::{Seen, explain};
use crate::counters::{changes, thinned};
use crate::dilation::{back, slower};
use crate::failure::Failure;
use crate::figures::{Ends, Figures};
use crate::flow::Flow;
use crate::ledgers::{Kept, ledgers};
use crate::membership::{delays, unknown_joins};
use crate::model::Model;
use crate::pacing::gap_deviation;
use crate::plan::{Run, flows, notes, unnamed_congestion};
use crate::request::Asked;

/// Returns the outcome of a point. `limits` are the outcomes of its flows in the engine `limit`; empty if that engine does not support the testbed. The
/// caller fills in variant, repeat and swept values.
///
/// # Errors
/// If an end of a flow failed, or an agent sent an unknown answer.
pub fn measured(
    point: &Point,
    asked: &Asked,
    limits: &IndexMap<String, FlowOutcome>,
    answers: Answers,
) -> Result<Outcome, Failure> {
    let hosts = outcome_hosts(&answers);
    let known = known_hosts(&answers, &hosts)?;
    let mut planned = flows(point, asked)?;
    let run = Run::of(point, asked);
    let mut end_ns = run.duration_ns;
    if run.precision.is_some() {
        shorten(&mut planned, &known);
        end_ns = planned.iter().map(Flow::end_ns).max().unwrap_or(0);
    }
    let mut notes = notes(&planned, point, asked);
    let made = if let Some(told) = answers.emulation {
        let model = Model::read(point, asked, &planned, told)?;
        let kept = Kept::of_model(model.drops());
        let limits = limits.iter().map(|(name, limit)| (name.clone(), slower(limit.clone(), asked.slow)));
        let found = outcome_flows(&point.topology, &planned, &known, &limits.collect(), &kept)?;
        let found = found.into_iter().map(|(name, flow)| (name, back(flow, asked.slow)));
        model.complete(found.collect(), kept.drops)
    } else {
        let kept = ledgers(&point.topology, &planned, &known, limits, end_ns - run.warmup_ns)?;
        notes.extend(foreign_congestion(point, &planned, &known)?);
        notes.extend(kept.notes.iter().cloned());
        let flows = outcome_flows(&point.topology, &planned, &known, limits, &kept)?;
        Made { flows, links: kept.links(&point.topology), ..Made::default() }
    };
    let Made { mut flows, links, nodes, drops, events, emulated, valid, invalid } = made;
    notes.extend(answers.notes);
    if answers.carrier == "model" && point.testbed.run.precision.is_some() {
        notes.push("`run.precision` is ignored: the model runs for exactly `duration`".to_owned());
    }
    for (name, trial) in &answers.memberships {
        let delays = delays(trial)?;
        notes.extend(unknown_joins(name, &delays));
        let receivers = &mut flows.get_mut(name).expect("the trial is of a flow").receivers;
        for (host, found) in delays {
            found.put(&mut receivers[host]);
        }
    }
    let precision = answers.precision.as_ref().zip(run.precision).map(|(each, asked)| {
        for (name, precision) in each {
            flows[name].real.get_or_insert_default().precision = Some(*precision);
        }
        PointPrecision { asked, reached: each.values().all(|precision| precision.reached) }
    });
    Ok(Outcome {
        version: VERSION,
        variant: String::new(),
        engine: if emulated.is_some() {
            engpass_outcome::Engine::Emulate
        } else {
            engpass_outcome::Engine::Measure
        },
        repeat: 0,
        seed: asked.seed,
        sweep: IndexMap::new(),
        flows,
        links,
        nodes,
        drops,
        events,
        without: IndexMap::new(),
        hosts,
        measured: Some(MeasuredPoint {
            at: answers.at,
            took_s: answers.took_s,
            carrier: answers.carrier,
            notes,
            precision,
        }),
        emulated,
        valid,
        invalid,
    })
}

/// The parts of an outcome that depend on what carried the packets.
#[derive(Default)]
pub(crate) struct Made {
    pub(crate) flows: IndexMap<String, FlowOutcome>,
    pub(crate) links: IndexMap<String, LinkOutcome>,
    pub(crate) nodes: IndexMap<String, NodeOutcome>,
    pub(crate) drops: Vec<engpass_outcome::Drop>,
    pub(crate) events: Option<u64>,
    pub(crate) emulated: Option<Emulated>,
    pub(crate) valid: Option<bool>,
    pub(crate) invalid: Option<String>,
}

/// Returns the hosts of an outcome: the greeting of each agent, and the growth of the host's counters.
fn outcome_hosts(answers: &Answers) -> IndexMap<String, Value> {
    let host = |(name, told): (&String, &Value)| {
        let hello = answers.hellos.get(name).unwrap_or(&Value::Null);
        let seen = json!({
            "host": hello["host"],
            "settings": hello["settings"],
            "timer": hello["timer"],
            "changes": changes(&told["before"], &told["after"]),
        });
        (name.clone(), seen)
    };
    answers.results.iter().map(host).collect()
}

fn known_hosts(answers: &Answers, hosts: &IndexMap<String, Value>) -> Result<Hosts, Failure> {
    let read = |(name, told): (&String, &Value)| {
        Ok((name.clone(), Host::read(name, answers.hellos.get(name), told, &hosts[name]["changes"])?))
    };
    answers.results.iter().map(read).collect()
}

/// Gives the flows that a stop rule ended early the lengths of the windows that were measured.
fn shorten(planned: &mut [Flow<'_>], hosts: &Hosts) {
    for flow in planned {
        let end = hosts.get(flow.sender).and_then(|host| host.end(flow.name, "send"));
        if let Some(end) = end.filter(|end| end.ended.as_deref() == Some("stopped") && end.elapsed_ns > 0) {
            flow.duration_ns = end.elapsed_ns;
        }
    }
}

/// Returns a sentence for each flow whose TCP used another congestion control than the model does.
fn foreign_congestion(point: &Point, flows: &[Flow<'_>], hosts: &Hosts) -> Result<Vec<String>, Failure> {
    let mut notes = Vec::new();
    for flow in flows.iter().filter(|flow| flow.kind.message().kind == "tcp-stream") {
        let Some(wanted) = unnamed_congestion(flow, point) else { continue };
        let end = flow.sent(hosts)?;
        let granted = end.streams.first().and_then(|stream| stream.granted.congestion.as_ref());
        if let Some(granted) = granted.filter(|granted| **granted != wanted) {
            notes.push(format!(
                "TCP of `{}` uses the kernel's congestion control, `{granted}`, but the model uses `{wanted}`: `tcp = {{ congestion = \"{granted}\" }}` sets both",
                flow.name
            ));
        }
    }
    Ok(notes)
}

/// Returns the outcomes of the flows, in the order of the file.
fn outcome_flows(
    topology: &Topology,
    flows: &[Flow<'_>],
    hosts: &Hosts,
    limits: &IndexMap<String, FlowOutcome>,
    kept: &Kept,
) -> Result<IndexMap<String, FlowOutcome>, Failure> {
    let one =
        |flow: &Flow<'_>| Ok((flow.name.to_owned(), outcome_flow(topology, flow, hosts, limits, kept)?));
    flows.iter().map(one).collect()
}

fn outcome_flow(
    topology: &Topology,
    flow: &Flow<'_>,
    hosts: &Hosts,
    limits: &IndexMap<String, FlowOutcome>,
    kept: &Kept,
) -> Result<FlowOutcome, Failure> {
    let sender = flow.sent(hosts)?;
    let receivers = flow.receivers.iter().map(|host| Ok((*host, flow.received(hosts, host)?)));
    let receivers = receivers.collect::<Result<Vec<_>, Failure>>()?;
    let ends = Ends { sender, receivers };
    let (figures, real) = flow.kind.figures(flow, &ends);
    let carried = figures.goodput_bit_per_s * flow.seconds() / 8.0;
    let cpu = |end: &End| end.cpu.filter(|_| carried > 0.0).map(|cpu| cpu.used_ns() as f64 / carried);
    let real = RealFlow {
        sender_cpu_s_per_gb: cpu(sender),
        receiver_cpu_s_per_gb: cpu(ends.first()),
        schedule_kept: flow.kept(sender),
        pacing: gap_deviation(sender, ends.first()),
        ..real
    };
    let seen = Seen {
        ends: &ends,
        hosts,
        limit: limits.get(flow.name),
        lines: kept.usage(topology, flow),
        drop: kept.worst_drop(flow.name),
    };
    let why = explain(flow, &Figures { flow: &figures, real: &real }, &seen);
    // The results of agents keep the kernel's names; only histograms and time series are shortened.
    let told = |host: &str, role: &str| (host.to_owned(), thinned(hosts[host].told(flow.name, role)));
    let own = [told(flow.sender, "send")];
    let all = own.into_iter().chain(flow.receivers.iter().map(|host| told(host, "receive")));
    Ok(FlowOutcome {
        paths: flow.ways.iter().map(|way| topology.path(&way.hops)).collect(),
        bottleneck: Some(why.bottleneck),
        next_bottleneck: why.next,
        summary: Some(why.summary),
        transfer: flow.transfer(sender, ends.first()),
        real: Some(Box::new(RealFlow { findings: why.findings, ends: all.collect(), ..real })),
        ..figures
    })
}
