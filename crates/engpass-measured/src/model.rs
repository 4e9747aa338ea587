//! The parts of an outcome that an emulated network knows itself.

use engpass_model::unit::wording::duration;
use engpass_outcome::{Datagrams, Drop, Emulated, FlowOutcome};
use engpass_testbed::Point;
use indexmap::IndexMap;

use crate::answer::{Closed, Emulation, Lateness, without_nulls};
use crate::counters::thinned;
use crate::failure::Failure;
use crate::flow::Flow;
use crate::outcome::Made;
use crate::request::Asked;

/// The results of an emulated network.
pub(crate) struct Model {
    told: Emulation,
    closed: Closed,
    lateness: Lateness,
    slow: u32,
    /// Counts of the network by path, named `A to B`.
    host_pairs: IndexMap<String, FlowOutcome>,
    /// Traffic of cell generators, which the model makes.
    generators: IndexMap<String, FlowOutcome>,
    /// The flow on each path that only one flow takes.
    alone: IndexMap<String, String>,
}

impl Model {
    /// Parses the driver's answer.
    pub(crate) fn read(
        point: &Point,
        asked: &Asked,
        flows: &[Flow<'_>],
        mut told: Emulation,
    ) -> Result<Self, Failure> {
        let mut closed: Closed =
            serde_json::from_value(told.closed.take()).map_err(|error| unknown(&error))?;
        // The model does not know the CPUs of real hosts.
        closed.outcome.nodes.retain(|name, _| !point.testbed.hosts.contains_key(name));
        let lateness = without_nulls(closed.lateness.clone());
        let lateness = serde_json::from_value(lateness).map_err(|error| unknown(&error))?;
        let mut users: IndexMap<String, Vec<&str>> = IndexMap::new();
        for flow in flows {
            for receiver in &flow.receivers {
                users.entry(format!("{} to {receiver}", flow.sender)).or_default().push(flow.name);
            }
        }
        let alone = users.into_iter().filter(|(_, flows)| flows.len() == 1);
        let is_generator =
            |name: &String| point.testbed.traffic.get(name).is_some_and(|one| one.cells().is_some());
        let all = std::mem::take(&mut closed.outcome.flows);
        let (generators, host_pairs) = all.into_iter().partition(|(name, _)| is_generator(name));
        Ok(Self {
            slow: asked.slow,
            host_pairs,
            generators,
            alone: alone.map(|(way, flows)| (way, flows[0].to_owned())).collect(),
            told,
            closed,
            lateness,
        })
    }

    /// Returns the losses, with the flow in place of the path if only this flow takes the path.
    pub(crate) fn drops(&self) -> Vec<Drop> {
        let renamed = |drop: &Drop| {
            let flow = self.alone.get(&drop.flow).unwrap_or(&drop.flow).clone();
            Drop { flow, ..drop.clone() }
        };
        self.closed.outcome.drops.iter().map(renamed).collect()
    }

    /// Adds what the network knows to the outcomes of the flows: the effect of outages on each flow that takes its path alone and has one receiver, and counts
    /// of TCP's packets, because a socket does not report lost segments.
    pub(crate) fn complete(self, mut flows: IndexMap<String, FlowOutcome>, drops: Vec<Drop>) -> Made {
        for (way, flow) in &self.alone {
            let Some(seen) = self.host_pairs.get(way) else { continue };
            let paths = self.alone.values().filter(|other| *other == flow).count();
            let found = flows.get_mut(flow).expect("the flow has an outcome");
            if paths == 1 && seen.outage.is_some() {
                found.outage = seen.outage;
            }
            if found.kind == "tcp-stream"
                && let Some(Datagrams { sent, received, lost, .. }) = seen.datagrams
            {
                let rest =
                    Datagrams { sent, received, lost, in_flight: None, duplicate: None, reordered: None };
                found.datagrams = Some(rest);
            }
        }
        flows.extend(self.generators);
        let Self { told, closed, lateness, .. } = self;
        let Emulation { clock, no_offload, max_lateness, tap, .. } = told;
        Made {
            flows,
            links: closed.outcome.links,
            nodes: closed.outcome.nodes,
            drops,
            events: closed.outcome.events,
            emulated: Some(Emulated {
                clock,
                slow: self.slow,
                no_offload,
                max_lateness,
                tap,
                lateness: thinned(closed.lateness),
                host_pairs: self.host_pairs,
            }),
            valid: Some(lateness.valid),
            invalid: (!lateness.valid).then(|| too_late(&lateness)),
        }
    }
}

/// The error for an answer of another version of the driver.
fn unknown(error: &serde_json::Error) -> Failure {
    Failure::new(format!("the driver sent an unknown answer: {error}"), "install only one version of engpass")
}

/// Returns a sentence that says why a point is invalid: packets left the emulated network too late.
fn too_late(lateness: &Lateness) -> String {
    let told = [("0.1 %", lateness.p999_ns), ("1 %", lateness.p99_ns), ("the last", lateness.max_ns)];
    let known = told.into_iter().find_map(|(share, late)| Some((share, late?)));
    let (share, late) = known.unwrap_or(("some", 0));
    format!(
        "{share} of the packets were {} late or more, but the limit is {}: this machine was too slow or too busy",
        duration(late as f64 * 1e3),
        duration(lateness.limit_ns as f64 * 1e3)
    )
}
