//! Parts of a testbed that only real hosts support. An engine rejects a testbed if the answer would be wrong without them, and otherwise leaves them out and
//! names them.

use std::borrow::Cow;

use engpass_model::source::Traffic;
use engpass_model::time::SECOND;
use engpass_model::unit::Share;
use engpass_model::wire::ip::{IP_HEADER_BYTES, TCP_HEADER_BYTES};
use engpass_testbed::topology::PathSegment;
use engpass_testbed::{Testbed, Topology};
use indexmap::IndexMap;

/// An engine that computes with the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Engine {
    /// The closed forms. Traffic that they leave out could only lower the limits of other traffic, so the results remain upper bounds.
    Limit,
    /// The simulation. It may leave out only a probe with negligible load, because all other traffic would take its share.
    Simulate,
}

/// Load of a negligible probe: this share of the slowest line on its path, both directions together.
const NEGLIGIBLE: u64 = Share::WHOLE / 100;

/// A testbed without the traffic that an engine does not support.
#[derive(Clone, Debug)]
pub struct SupportedTestbed<'a> {
    /// The testbed without the unsupported traffic.
    pub testbed: Cow<'a, Testbed>,
    /// The topology of this testbed, without the paths of the unsupported traffic.
    pub topology: Cow<'a, Topology>,
    /// Unsupported traffic by name, with the reason.
    pub without: IndexMap<String, &'static str>,
}

/// Returns the part of a testbed that an engine supports. Other traffic is left out if the results of the rest stay right.
///
/// # Errors
/// A sentence with the reason and a help text, if the engine cannot run the testbed.
pub fn modelled<'a>(
    testbed: &'a Testbed,
    topology: &'a Topology,
    engine: Engine,
) -> Result<SupportedTestbed<'a>, String> {
    let mut without = IndexMap::new();
    for (flow, (name, traffic)) in testbed.traffic.iter().enumerate() {
        let Some(cause) = traffic.unmodelled() else { continue };
        if engine == Engine::Simulate && !is_negligible_load(traffic, topology, flow) {
            return Err(refused(name, traffic, cause));
        }
        without.insert(name.clone(), cause);
    }
    if without.len() == testbed.traffic.len()
        && let Some((name, traffic)) = testbed.traffic.first()
        && let Some(cause) = traffic.unmodelled()
    {
        return Err(refused(name, traffic, cause));
    }
    let (mut testbed, mut topology) = (Cow::Borrowed(testbed), Cow::Borrowed(topology));
    if !without.is_empty() {
        testbed.to_mut().traffic.retain(|name, _| !without.contains_key(name));
        topology.to_mut().flows.retain(|flow| !without.contains_key(&flow.name));
    }
    match unsupported_group(&testbed, &topology, engine) {
        Some(why) => Err(why),
        None => Ok(SupportedTestbed { testbed, topology, without }),
    }
}

fn refused(name: &str, traffic: &Traffic, cause: &str) -> String {
    format!(
        "traffic `{name}` is `{}`, which runs only on real hosts: {cause}\n\
         help: run it with `--engine measure` or `--engine emulate`, or remove it from the testbed",
        traffic.kind()
    )
}

/// Returns why a multicast traffic cannot be simulated, with a help text; `None` if it can.
pub(crate) fn unsupported_group(testbed: &Testbed, topology: &Topology, engine: Engine) -> Option<String> {
    let groups = topology.flows.iter().filter(|path| testbed.traffic.contains_key(&path.name));
    groups.filter(|path| path.group.is_some()).find_map(|path| {
        let (name, host) = (&path.name, &topology.nodes[path.from]);
        let from_host = path.branches.iter().filter(|branch| branch.of.is_none()).count();
        if from_host > 1 && engine == Engine::Simulate {
            return Some(format!(
                "traffic `{name}` reaches its receivers over several interfaces of `{host}`, but a host sends to a group on one interface\n\
                 help: connect `{host}` by one link to a switch or router that reaches all receivers, or run it with `--engine emulate`"
            ));
        }
        let ways: Vec<&[PathSegment]> = match &path.branches[..] {
            [] => vec![&path.legs],
            several => several.iter().map(|branch| &branch.legs[..]).collect(),
        };
        let legs: Vec<PathSegment> = ways.concat().into_iter().flat_map(|leg| topology.legs_within(leg)).collect();
        let bond = legs.iter().find_map(|leg| topology.bond_at(topology.first_hop(*leg).from, *leg));
        if let Some(bond) = bond {
            return Some(format!(
                "multicast traffic `{name}` crosses bond `{}`, which the model does not support\n\
                 help: set `up = false` for the bond in a variant, or run it with `--engine emulate`",
                topology.bonds[bond].name
            ));
        }
        let chooses = |leg: &&PathSegment| {
            matches!(leg, PathSegment::Tunnel { tunnel, forward } if topology.tunnels[*tunnel].way(*forward).fan.has_choice())
        };
        let Some(PathSegment::Tunnel { tunnel, .. }) = legs.iter().find(chooses) else { return None };
        Some(format!(
            "multicast traffic `{name}` crosses tunnel `{}`, whose routers choose among several paths, which the model does not support\n\
             help: give these routers `ecmp = \"first\"`, or run it with `--engine emulate`",
            topology.tunnels[*tunnel].name
        ))
    })
}

/// Returns true for scheduled requests whose load is negligible on the slowest line of their path.
fn is_negligible_load(traffic: &Traffic, topology: &Topology, flow: usize) -> bool {
    let Traffic::RequestResponse(config) = traffic else { return false };
    let Some(every) = config.every.filter(|every| every.0 > 0) else { return false };
    let lines =
        topology.flows[flow].route.iter().map(|hop| topology.links[hop.link].line_from(hop.from).rate);
    let Some(slowest) = lines.min() else { return false };
    // Counts the longer of the two transport headers for each message.
    let bytes = config.request.bytes() + config.response.bytes() + 2 * (IP_HEADER_BYTES + TCP_HEADER_BYTES);
    let bits = u128::from(bytes) * 8 * u128::from(config.streams);
    let rate = bits * u128::from(SECOND) / u128::from(every.0);
    rate * u128::from(Share::WHOLE) <= u128::from(slowest) * u128::from(NEGLIGIBLE)
}

/// Returns why the engines of the model cannot run a testbed as it is, in a sentence; `None` if they can. [`modelled`] leaves out what it may.
pub fn unmodelled(testbed: &Testbed) -> Option<String> {
    let mut traffic = testbed.traffic.iter();
    traffic.find_map(|(name, traffic)| Some(refused(name, traffic, traffic.unmodelled()?)))
}

/// Returns what these engines leave out, each with its path and the reason.
pub fn left_out(testbed: &Testbed) -> Vec<String> {
    let live =
        testbed.traffic.iter().filter(|(_, traffic)| traffic.live().is_some_and(|live| !live.is_default()));
    let live = live.map(|(name, _)| {
        format!("`traffic.{name}.live` is ignored: it applies only to traffic of real hosts")
    });
    // If nothing else is left, the engines refuse the testbed and say so themselves.
    let refused = testbed.traffic.values().all(|traffic| traffic.unmodelled().is_some());
    let traffic = testbed.traffic.iter().filter(|_| !refused).filter_map(|(name, traffic)| {
        let cause = traffic.unmodelled()?;
        Some(format!("traffic `{name}` has no result, and its load on the links is not counted: {cause}"))
    });
    let precision = testbed.run.precision.map(|_| {
        "`run.precision` is ignored: a run of the model lasts for `duration`, and repeats show the spread"
            .to_owned()
    });
    live.chain(traffic).chain(precision).collect()
}
