//! Loads of hosts and routers with all flows at their fair shares.

use engpass_outcome::{EngineOutcome, NodeOutcome};
use engpass_testbed::topology::NodeId;
use indexmap::IndexMap;

use super::need::Resource;
use super::{Named, fraction};

/// Returns the nodes whose engine takes time, in the order of the file.
pub(super) fn nodes(named: &Named<'_, '_>) -> IndexMap<String, NodeOutcome> {
    let Named { testbed, topology, .. } = *named;
    let first = topology.hosts + topology.switches;
    let hosts = testbed.hosts.iter().enumerate().filter(|(_, (_, host))| host.takes_time());
    let hosts = hosts.map(|(node, (name, _))| (node, name, "cpu"));
    let routers = (first..)
        .zip(&testbed.routers)
        .filter(|(_, (_, router))| router.per_packet.0 > 0 || router.per_copy.0 > 0);
    let routers = routers.map(|(node, (name, _))| (node, name, "forwarding"));
    let outcome = |(node, name, engine): (NodeId, &String, &str)| {
        let engine = (engine.to_owned(), EngineOutcome { load: load(named, node) });
        (name.clone(), NodeOutcome { engines: IndexMap::from([engine]) })
    };
    hosts.chain(routers).map(outcome).collect()
}

/// Returns the share of the time that all flows need of a node's engine.
fn load(named: &Named<'_, '_>, node: NodeId) -> f64 {
    let Named { resources, all, .. } = *named;
    let Some(cpu) = resources.find(Resource::Cpu(node)) else { return 0.0 };
    let used = resources.users[cpu].iter().map(|lane| all.of(*lane, cpu));
    // An empty sum of floats is -0.0.
    fraction(used.fold(0.0, |sum, one| sum + one), resources.capacities[cpu])
}
