//! Loads of the engines of nodes: the CPU of a host, the forwarding engine of a router.

use engpass_model::engine::BusyTime;
use engpass_outcome::{EngineLine, NodeLine};
use engpass_testbed::Testbed;
use indexmap::IndexMap;

use super::Network;

/// The engines of a node.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeUse {
    /// Name of the node.
    pub node: String,
    /// The node's engines whose work takes time.
    pub engines: Vec<EngineUse>,
}

/// Work of one engine in the measurement window.
#[derive(Clone, Debug, PartialEq)]
pub struct EngineUse {
    /// `cpu` at a host; at a router `forwarding`, or the name of a line card.
    pub name: String,
    /// Time in which it was busy, in ps.
    pub busy: u64,
    /// Share of the window in which the engine was busy, from 0 to 1.
    pub load: f64,
}

/// The engines of a node that take time, with their names.
type Engines<'a> = (&'a String, Vec<(&'a str, &'a BusyTime)>);

/// Returns the nodes that have engines whose work takes time, hosts before routers, each in the order of the file.
fn engines<'a>(network: &'a Network, testbed: &'a Testbed) -> impl Iterator<Item = Engines<'a>> {
    // Injected packets take no time of hosts.
    let outside = network.shared.reports.is_some();
    let hosts = testbed.hosts.iter().zip(&network.hosts.cpus);
    let hosts = hosts.filter(move |((_, host), _)| host.takes_time() && !outside);
    let hosts = hosts.map(|((name, _), cpu)| (name, vec![("cpu", &cpu.busy)]));
    let routers = testbed.routers.iter().enumerate().map(|(router, (name, config))| {
        let engines = config.engines().zip(network.frames.switching.engines_of(router));
        let engines = engines.filter(|((_, times), _)| !times.takes_no_time());
        let busy = engines.map(|((name, _), (index, _))| (name, &network.frames.engines[index].busy));
        (name, busy.collect::<Vec<_>>())
    });
    hosts.chain(routers.filter(|(_, engines)| !engines.is_empty()))
}

/// Returns how busy the engines were in the measurement window.
pub(super) fn node_uses(network: &Network, testbed: &Testbed) -> Vec<NodeUse> {
    let window = network.shared.window;
    let measured = window.end - window.from.unwrap_or(0);
    let engine = |(name, time): (&str, &BusyTime)| {
        let busy = time.in_window(window.end);
        EngineUse { name: name.to_owned(), busy, load: busy as f64 / measured as f64 }
    };
    let nodes = engines(network, testbed).map(|(node, engines)| NodeUse {
        node: node.clone(),
        engines: engines.into_iter().map(engine).collect(),
    });
    nodes.collect()
}

/// Returns the busy time of each engine up to `at`, in picoseconds. Everything at `at` must have happened.
pub(super) fn busy_times(network: &Network, testbed: &Testbed, at: u64) -> Vec<u64> {
    engines(network, testbed).flat_map(|(_, engines)| engines).map(|(_, time)| time.up_to(at)).collect()
}

/// Returns the load of every engine over time. `samples` holds [`busy_times`] at sampling instants, the first one 0.
pub(super) fn node_lines(
    network: &Network,
    testbed: &Testbed,
    samples: &[(u64, Vec<u64>)],
) -> IndexMap<String, NodeLine> {
    let mut number = 0..;
    let mut line = |_: &BusyTime| {
        let index = number.next().expect("engines are numbered without end");
        let interval = |pair: &[(u64, Vec<u64>)]| {
            let (from, until) = (&pair[0], &pair[1]);
            let busy = until.1[index] - from.1[index];
            (until.0 as f64 / 1e12, busy as f64 / (until.0 - from.0) as f64)
        };
        // In a run of a few picoseconds, an interval may be empty.
        let intervals = samples.windows(2).filter(|pair| pair[0].0 < pair[1].0);
        let (time_s, load) = intervals.map(interval).unzip();
        EngineLine { time_s, load }
    };
    let nodes = engines(network, testbed).map(|(node, engines)| {
        let engines = engines.into_iter().map(|(name, time)| (name.to_owned(), line(time))).collect();
        (node.clone(), NodeLine { engines })
    });
    nodes.collect()
}
