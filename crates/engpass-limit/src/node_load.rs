//! Loads of hosts and routers with all flows at their fair shares.

use engpass_outcome::{EngineOutcome, NodeOutcome};
use indexmap::IndexMap;

use super::need::Resource;
use super::{Named, fraction};

/// Returns the nodes whose engine (CPU or forwarding) takes time, with its load, in the order of the file.
pub(super) fn nodes(named: &Named<'_, '_>) -> IndexMap<String, NodeOutcome> {
    let Named { testbed, topology, .. } = *named;
    let first = topology.hosts + topology.switches;
    let hosts = testbed.hosts.iter().enumerate().filter(|(_, (_, host))| host.takes_time());
    let hosts = hosts.map(|(node, (name, _))| (name, vec![("cpu", Resource::Cpu(node))]));
    let routers = (first..).zip(&testbed.routers).map(|(node, (name, router))| {
        let engines = router.engines().enumerate().filter(|(_, (_, times))| !times.takes_no_time());
        let engines = engines.map(|(number, (engine, _))| match number {
            0 => (engine, Resource::Cpu(node)),
            card => (engine, Resource::Card(node, card)),
        });
        (name, engines.collect::<Vec<_>>())
    });
    let outcome = |(name, engines): (&String, Vec<(&str, Resource)>)| {
        let engines = engines
            .into_iter()
            .map(|(engine, resource)| (engine.to_owned(), EngineOutcome { load: load(named, resource) }));
        (name.clone(), NodeOutcome { engines: engines.collect() })
    };
    let nodes = hosts.chain(routers.filter(|(_, engines)| !engines.is_empty()));
    nodes.map(outcome).collect()
}

/// Returns the share of the time that all flows need of an engine.
fn load(named: &Named<'_, '_>, engine: Resource) -> f64 {
    let Named { resources, all, .. } = *named;
    let Some(cpu) = resources.find(engine) else { return 0.0 };
    let used = resources.users[cpu].iter().map(|lane| all.of(*lane, cpu));
    // An empty sum of floats is -0.0.
    fraction(used.fold(0.0, |sum, one| sum + one), resources.capacities[cpu])
}
