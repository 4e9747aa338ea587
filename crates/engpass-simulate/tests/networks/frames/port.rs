//! Random frame ports with contention: hosts send to one host through a queue discipline, on lines of equal rate.
//!
//! Packets have one or two lengths. The amounts of a discipline are multiples of these, or one byte off, and its times are often multiples of their
//! transmission times: there an inequality that is off by one changes the outcome.

use engpass_model::source::on_off::Lengths;
use engpass_model::source::poisson::Sizes;
use engpass_model::tcp::TcpConfig;
use engpass_model::wire::Medium;
use proptest::collection::vec;
use proptest::option::weighted;
use proptest::prelude::*;
use proptest::sample::select;

use super::queues::{queue, target};
use super::{Drawn, LinkDraw, NodeDraw, Parts, TcpDraw, UdpDraw, Uneven};

/// Number of hosts, including the receiver.
const HOSTS: usize = 4;

/// Headers of a UDP datagram in an Ethernet frame, with IP and FCS, in bytes.
const HEADERS: u64 = 46;

/// Bytes around a frame on the line, and picoseconds per byte at 10 Mbit/s.
const AROUND: u64 = 20;
const BYTE: u64 = 800_000;

/// Returns a random network with a contended port.
pub(crate) fn port() -> impl Strategy<Value = Drawn> {
    // Frames of minimum and maximum length among others.
    let payload = || select(vec![1u64, 18, 82, 146, 210, 1000, 1472]);
    (payload(), payload()).prop_flat_map(|payloads| {
        let frames = [payloads.0, payloads.1].map(|payload| (payload + HEADERS).max(64));
        let near = (select(frames.to_vec()), 1u64..=4, 0u64..=2);
        let amount = near.prop_map(|(frame, times, off)| (frame * times + off - 1).max(64)).boxed();
        let on_line =
            (select(frames.to_vec()), 1u64..=8).prop_map(|(frame, times)| times * (frame + AROUND) * BYTE);
        let target = prop_oneof![target(), on_line].boxed();
        let node = (any::<bool>(), queue(amount, 400, target)).prop_map(|(switch, queue)| NodeDraw {
            switch,
            time: 0,
            input: None,
            queue,
        });
        let run = (500u64..=1000, weighted(0.2, 0u64..=900));
        (
            node,
            vec(super::super::host(), HOSTS),
            vec(any::<bool>(), HOSTS),
            sent([payloads.0, payloads.1]),
            run,
        )
            .prop_map(|(node, mut hosts, ecn, (udp, uneven, tcp), run)| {
                for (host, ecn) in hosts.iter_mut().zip(ecn) {
                    (host.send, host.receive, host.segments, host.pauses) =
                        ([None; 3], [None; 3], [[None; 3]; 2], None);
                    (host.data.memory, host.data.io_bus, host.nic_buffer) = (None, None, 100_000);
                    host.tcp = TcpConfig { ecn: ecn.then_some(true), ..host.tcp.clone() };
                }
                let links = (0..HOSTS).map(|_| link()).collect();
                let (ring, at, order) = (false, vec![0; HOSTS], (0, 0, true));
                Drawn(
                    Parts {
                        ring,
                        nodes: vec![node],
                        at,
                        links,
                        order,
                        hosts,
                        udp,
                        uneven,
                        tcp,
                        run,
                        mesh: None,
                    }
                    .testbed(),
                )
            })
    })
}

fn link() -> LinkDraw {
    LinkDraw {
        point_to_point: false,
        medium: Medium::Ethernet10,
        rate: (0, None),
        overhead: 0,
        delay: 1_000_000,
        turned: false,
        mtu: None,
        vlan: false,
        loss: None,
        jitter: None,
        reorder: None,
        queue: None,
    }
}

type Sent = (
    Vec<(UdpDraw, super::WayDraw)>,
    Vec<((u64, u64, Uneven, super::TimesDraw), super::WayDraw)>,
    Vec<(TcpDraw, super::WayDraw)>,
);

/// Returns streams of datagrams with two payloads in bytes, and connections, from all hosts to the last one.
fn sent(payloads: [u64; 2]) -> impl Strategy<Value = Sent> {
    let payload = || select(payloads.to_vec());
    // The second end is relative to the host after the first.
    let way =
        || (0..HOSTS - 1, 0u8..=7).prop_map(|(from, priority)| ((from, HOSTS - 2 - from), priority, 64));
    let rate = || prop_oneof![Just(10_000_000u64), 500_000u64..=10_000_000];
    let udp = (payload(), weighted(0.7, rate()), super::super::count(), super::super::times());
    let udp = udp.prop_map(|(message, rate, count, times)| UdpDraw {
        circuit: (0, true),
        named: false,
        message,
        rate,
        count,
        times,
    });
    let how = select(vec![
        Uneven::Poisson(Sizes::Fixed),
        Uneven::Poisson(Sizes::Exponential),
        Uneven::Bursts(Lengths::Fixed),
        Uneven::Bursts(Lengths::Exponential),
        Uneven::Video(1),
        Uneven::Video(4),
    ]);
    let uneven = (payload(), rate(), how, super::super::times());
    let tcp = super::tcp::stream();
    (vec((udp, way()), 1..=4), vec((uneven, way()), 0..=2), vec((tcp, way()), 0..=2))
}
