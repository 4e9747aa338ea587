//! Tunnels between the routers of a network.

use engpass_model::tunnel::{Fragment, Gre, IpIp, Keepalive, Reassembly, Tunnel, TunnelHeader};
use engpass_model::unit::{Duration, Size};
use engpass_testbed::Testbed;
use proptest::collection::vec;
use proptest::option::weighted;
use proptest::prelude::*;
use proptest::sample::select;

use super::{Drawn, joined, mesh, narrow, plain};
use crate::networks::text::fits;

/// A tunnel between two routers, given by index.
#[derive(Clone, Debug)]
struct TunnelDraw {
    ends: (usize, usize),
    header: TunnelHeader,
    mtu: Option<u64>,
    fragment: Fragment,
    ttl: u8,
    /// It may run through the tunnel before it.
    over: bool,
    up: bool,
    /// Timeout in parts per 1000 of the run, and memory.
    timeout: Option<u64>,
    memory: u64,
    /// Period in parts per 1000 of the run, and retries.
    keepalive: Option<(u64, u64)>,
}

fn tunnel() -> impl Strategy<Value = TunnelDraw> {
    let header = select(vec![
        TunnelHeader::Gre(Gre::default()),
        TunnelHeader::Gre(Gre::default()),
        TunnelHeader::Gre(Gre { checksum: true, ..Gre::default() }),
        TunnelHeader::Gre(Gre { checksum: true, key: Some(7), sequence: false }),
        TunnelHeader::Gre(Gre { sequence: true, ..Gre::default() }),
        TunnelHeader::Gre(Gre { sequence: true, ..Gre::default() }),
        TunnelHeader::Gre(Gre { checksum: false, key: Some(7), sequence: true }),
        TunnelHeader::IpIp(IpIp {}),
    ]);
    let fragment =
        prop_oneof![1 => Just(Fragment::Inner), 3 => Just(Fragment::Outer), 1 => Just(Fragment::None)];
    let mtu = weighted(0.3, prop_oneof![68u64..=200, 200u64..=1_600]);
    let ttl = prop_oneof![9 => Just(64u8), 1 => 1u8..=3];
    let timeout = weighted(0.8, prop_oneof![1u64..=20, 20u64..=300]);
    let memory = prop_oneof![1 => Just(4u64 << 20), 9 => 576u64..=600];
    let over = (prop::bool::weighted(0.4), prop::bool::weighted(0.95));
    let keepalive = weighted(0.4, (prop_oneof![2u64..=20, 20u64..=300], 1u64..=3));
    ((0usize..4, 0usize..4), header, mtu, (fragment, ttl), over, (timeout, memory, keepalive)).prop_map(
        |(ends, header, mtu, (fragment, ttl), (over, up), (timeout, memory, keepalive))| TunnelDraw {
            ends,
            header,
            mtu,
            fragment,
            ttl,
            over,
            up,
            timeout,
            memory,
            keepalive,
        },
    )
}

/// Adds those of these tunnels that fit into the network.
fn tunnelled(mut testbed: Testbed, draws: &[TunnelDraw]) -> Testbed {
    let routers: Vec<String> = testbed.routers.keys().cloned().collect();
    if routers.len() < 2 {
        return testbed;
    }
    let duration = testbed.run.duration.0;
    let mut last: Option<String> = None;
    for (number, draw) in draws.iter().enumerate() {
        let first = draw.ends.0 % routers.len();
        let second = (first + 1 + draw.ends.1 % (routers.len() - 1)) % routers.len();
        let timeout = draw
            .timeout
            .map_or(Reassembly::default().timeout, |parts| Duration((duration / 1000 * parts).max(1)));
        let mut tunnel = Tunnel {
            ends: [routers[first].clone(), routers[second].clone()],
            header: draw.header.clone(),
            mtu: draw.mtu.map(Size),
            fragment: draw.fragment,
            ttl: draw.ttl,
            over: last.clone().filter(|_| draw.over),
            up: draw.up,
            reassembly: Reassembly { timeout, memory: Size(draw.memory) },
            keepalive: draw.keepalive.filter(|_| matches!(draw.header, TunnelHeader::Gre(_))).map(
                |(parts, retries)| Keepalive { period: Duration((duration / 1000 * parts).max(1)), retries },
            ),
        };
        if let Some(over) = &tunnel.over {
            // The carrying tunnel must be on its path.
            tunnel.ends = testbed.tunnels[over].ends.clone();
        }
        let name = format!("v{number}");
        testbed.tunnels.insert(name.clone(), tunnel);
        if fits(&testbed) {
            last = Some(name);
        } else {
            testbed.tunnels.shift_remove(&name);
        }
    }
    testbed
}

/// Returns a network that sometimes has tunnels.
pub(super) fn at_times(networks: impl Strategy<Value = Drawn>) -> impl Strategy<Value = Drawn> {
    (networks, weighted(0.15, vec(tunnel(), 1..=2))).prop_map(|(Drawn(testbed), draws)| {
        Drawn(match draws {
            Some(draws) => tunnelled(testbed, &draws),
            None => testbed,
        })
    })
}

/// Returns a random network with tunnels, of frames or of links and circuits.
pub(crate) fn tunnels() -> impl Strategy<Value = Drawn> {
    let networks = prop_oneof![
        1 => plain().boxed(),
        3 => mesh::mesh().boxed(),
        2 => joined::joined().boxed(),
        2 => narrow::narrow().boxed(),
    ];
    let routed = networks.prop_filter("it has routers", |Drawn(testbed)| testbed.routers.len() > 1);
    (routed, vec(tunnel(), 1..=3)).prop_map(|(Drawn(testbed), draws)| Drawn(tunnelled(testbed, &draws)))
}
