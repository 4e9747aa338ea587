//! The workloads whose costs are counted.

use engpass_simulate::Network;

use crate::dumbbell::{NEW_RENO, OC3, SACK, dumbbell, idle};
use crate::line::{frames, line};
use crate::phones::phones;
use crate::table::Row;
use crate::{heap, point, run};

const KYOTO: &str = include_str!("../../../../benches/testbeds/kyoto.toml");
const LENGTHS: &str = include_str!("../../../../benches/testbeds/lengths.toml");

/// A testbed, and the interval of its run that is measured.
struct Workload {
    name: String,
    text: String,
    variant: &'static str,
    overrides: Vec<(&'static str, &'static str)>,
    /// The interval is late in the run, in the steady state.
    window: [&'static str; 2],
}

fn kyoto(name: &str, variant: &'static str, overrides: &[(&'static str, &'static str)]) -> Workload {
    let name = format!("Kyoto, {variant}, {name}");
    Workload { name, text: KYOTO.into(), variant, overrides: overrides.to_vec(), window: ["2 s", "4 s"] }
}

fn plain(name: &str, text: String, window: [&'static str; 2]) -> Workload {
    Workload { name: name.into(), text, variant: "base", overrides: Vec::new(), window }
}

/// Datagrams of random lengths.
fn lengths(name: &str, overrides: &[(&'static str, &'static str)]) -> Workload {
    let overrides = overrides.to_vec();
    Workload {
        overrides,
        ..plain(&format!("datagrams of random lengths, {name}"), LENGTHS.into(), ["1 s", "2 s"])
    }
}

/// A datagram of one PDU has four events, whatever happens to its 190 cells: the message, the CPU item, the handing to the NIC, and the arrival of the PDU.
/// Every further PDU has three, and waiting for room is one more. Generators have none, however many of their cells contend for a port.
fn workloads() -> Vec<Workload> {
    const MESSAGE: &str = "traffic.stream.message";
    const SCHEDULE: &str = "switch.atomis5.schedule";
    const KIND: (&str, &str) = ("traffic.stream.kind", "tcp-stream");
    const LINUX: (&str, &str) = ("host.ss2.tcp", "{ profile = \"linux-6\" }");
    vec![
        kyoto("9 kB", "free", &[(MESSAGE, "9 kB")]),
        kyoto("9 kB", "congested", &[(MESSAGE, "9 kB")]),
        kyoto("9 kB, fifo", "congested", &[(MESSAGE, "9 kB"), (SCHEDULE, "fifo")]),
        kyoto("9 kB", "shaped-16", &[(MESSAGE, "9 kB")]),
        kyoto("64 kB", "congested", &[(MESSAGE, "64 kB")]),
        kyoto("TCP, 9 kB", "free", &[(MESSAGE, "9 kB"), KIND, LINUX]),
        kyoto("TCP, 9 kB", "congested", &[(MESSAGE, "9 kB"), KIND, LINUX]),
        plain("contended cells, 3 hops", line(3), ["1 s", "2 s"]),
        plain("UDP over routers, 3 hops", frames(3), ["1 s", "2 s"]),
        plain("100 phones in step", phones(100), ["1 s", "2 s"]),
        lengths("whole", &[]),
        lengths("cut by the sender", &[(MESSAGE, "3 kB")]),
        lengths("cut by routers", &[(MESSAGE, "3 kB"), ("link.in.mtu", "9000 B"), ("link.out.mtu", "576 B")]),
        plain("TCP dumbbell, 10 flows, new-reno", dumbbell(10, OC3, NEW_RENO), ["3 s", "4 s"]),
        plain("TCP dumbbell, 10 flows, sack", dumbbell(10, OC3, SACK), ["3 s", "4 s"]),
        plain("TCP dumbbell, 100 flows, sack", dumbbell(100, OC3, SACK), ["3 s", "4 s"]),
    ]
}

/// Returns packets sent, hops, events and heap allocations up to this duration.
fn until(workload: &Workload, duration: &'static str) -> [u64; 4] {
    let overrides = [&workload.overrides[..], &[("run.duration", duration)]].concat();
    let (outcome, blocks) = run(&point(&workload.text, workload.variant, &overrides));
    let directions = outcome.links.iter().flat_map(|(_, link)| &link.directions);
    let hops = directions.map(|direction| direction.carried.sent() + direction.carried.lost()).sum();
    let packets = outcome.flows.iter().map(|(_, flow)| flow.datagrams.unwrap().sent).sum();
    [packets, hops, outcome.events, blocks]
}

/// Returns the counts of the steady state of every workload.
pub(crate) fn counts() -> Vec<Row> {
    let row = |workload: &Workload| {
        let [first, whole] = workload.window.map(|duration| until(workload, duration));
        let [packets, hops, events, blocks] = [0, 1, 2, 3].map(|count| whole[count] - first[count]);
        Row { name: workload.name.clone(), packets, hops, counts: vec![events, blocks] }
    };
    workloads().iter().map(row).collect()
}

/// Returns the heap bytes of an additional flow: the difference between networks of 512 and 256 flows (powers of two, because memory grows by doubling).
fn bytes_per_flow(text: impl Fn(usize) -> String, duration: Option<&str>) -> u64 {
    let bytes = |flows| {
        let length = ("run.duration", duration.unwrap_or("1 s"));
        let point = point(&text(flows), "base", &[length]);
        let before = heap::live();
        let mut network =
            Network::new(&point.testbed, &point.topology, 1).expect("the model supports the workload");
        if duration.is_some() {
            network.run(&|| false).expect("no interrupt is requested");
        }
        heap::live() - before
    };
    u64::try_from((bytes(512) - bytes(256)) / 256).expect("more flows take more memory")
}

/// Returns the heap bytes per flow.
pub(crate) fn memory() -> Vec<Row> {
    let row = |name: &str, bytes| Row { name: name.into(), packets: 0, hops: 0, counts: vec![bytes] };
    let idle = |flows| idle(flows, "10 ms");
    let own = |flows| dumbbell(flows, 1550, SACK);
    vec![
        row("flow between two hosts, not yet open", bytes_per_flow(idle, None)),
        row("flow between two hosts, idle after a transfer", bytes_per_flow(idle, Some("1500 ms"))),
        row("flow with two hosts and two links of its own, not yet open", bytes_per_flow(own, None)),
        row("flow with two hosts and two links of its own, sending", bytes_per_flow(own, Some("500 ms"))),
    ]
}
