//! The timeline of a run shows the run and does not change it.

mod common;

use common::point;
use engpass_outcome::Timeline;
use engpass_simulate::{QueueUse, SimOutcome, simulate, watched};
use engpass_testbed::Point;

const KYOTO: &str = include_str!("../../../gallery/kyoto-1997/testbed.toml");

const WAN: &str = r#"
    name = "two senders, a router, a thin line"
    [host.a]
    [host.b]
    [router.r]
    queue = { drop-tail = { limit = "60 kB" } }
    [link.fast]
    ends = ["a", "r"]
    medium = "ethernet-1g"
    [link.thin]
    ends = ["r", "b"]
    medium = "point-to-point"
    rate = "20 Mbit/s"
    delay = "5 ms"
    [traffic.stream]
    kind = "tcp-stream"
    from = "a"
    to = "b"
    message = "64 KiB"
    streams = 2
    [run]
    duration = "5 s"
    warmup = "1 s"
"#;

/// Runs with a timeline. Only the number of events may differ from a run without one.
fn watch(point: &Point, samples: usize) -> (Timeline, SimOutcome) {
    let (testbed, topology) = (&point.testbed, &point.topology);
    let alone = simulate(testbed, topology, 5, &|| false).expect("the simulation succeeds");
    let (timeline, mut outcome) =
        watched(testbed, topology, 5, samples, &|| false).expect("the simulation succeeds");
    outcome.events = alone.events;
    assert_eq!(outcome, alone);
    (timeline, outcome)
}

#[test]
fn timeline_sampling_does_not_change_the_outcome() {
    let short = ("run.duration", "1 s");
    let message = ("traffic.stream.message", "9 kB");
    for variant in ["free", "congested", "shaped-16"] {
        for more in [("run.warmup", "250 ms"), ("switch.atomis5.schedule", "fifo")] {
            for samples in [2, 37, 1000] {
                watch(&point(KYOTO, variant, &[short, message, more]), samples);
            }
        }
    }
    watch(&point(WAN, "base", &[]), 333);
}

#[test]
fn timeline_shows_a_congested_port_full_with_drops() {
    let overrides = [
        ("run.duration", "1 s"),
        ("traffic.stream.message", "9 kB"),
        ("switch.atomis5.output_buffer", "384 cells"),
    ];
    let (timeline, outcome) = watch(&point(KYOTO, "congested", &overrides), 101);
    assert_eq!(timeline.duration_s, 1.0);
    let (name, stream) = timeline.flows.first().expect("a stream has a timeline");
    assert_eq!((name.as_str(), timeline.flows.len()), ("stream", 1), "generators have no timeline");
    assert!(stream.tcp.is_none());
    assert_eq!((stream.time_s.len(), stream.time_s[0], stream.time_s[50]), (101, 0.0, 0.5));
    assert!(stream.delivered_bytes.is_sorted());
    let received = outcome.flows[0].datagrams.unwrap().received * 9000;
    assert_eq!(stream.delivered_bytes[100], received);
    let queue = timeline.queues.get("atomis5 -> ss20").expect("the timeline has the contended port");
    assert_eq!((queue.time_s.len(), queue.length.len()), (101, 101));
    assert_eq!((queue.unit.as_str(), queue.capacity), ("cells", Some(384)));
    // One cell of the first class beside 384 of the second.
    let longest = *queue.length.iter().max().expect("the timeline has samples");
    assert!((380..=385).contains(&longest), "{longest}");
    let lost: u64 = outcome.drops.iter().map(|drop| drop.cells).sum();
    assert!(!queue.drops.is_empty() && queue.drops.len() as u64 <= lost && queue.drops.is_sorted());
}

/// A group of pictures has frames of 13, 2, 3 and 2 messages. Of 13 messages, which come within 0.2 ms, a port with room for 10 packets loses three, because one
/// leaves in 0.8 ms.
#[test]
fn timeline_shows_the_loss_of_a_video_over_time() {
    let text = r#"
        [host.a]
        [host.b]
        [router.r]
        [link.in]
        ends = ["a", "r"]
        medium = "ethernet-1g"
        [link.out]
        ends = ["r", "b"]
        medium = "point-to-point"
        rate = "10 Mbit/s"
        queue = { drop-tail = { limit = "10 packets" } }
        [traffic.video]
        kind = "video"
        from = "a"
        to = "b"
        message = "1 kB"
        rate = "1 Mbit/s"
        frame_rate = "25 fps"
        group_of_pictures = 4
        intra_size = "500 %"
        [run]
        duration = "400 ms"
    "#;
    let (timeline, outcome) = watch(&point(text, "base", &[]), 11);
    // Each interval between samples begins with a frame. The receiver misses messages when the next frame arrives.
    let video = timeline.flows["video"].datagrams.as_ref().expect("a flow of datagrams has counts");
    let gains = |counts: &[u64]| counts.windows(2).map(|pair| pair[1] - pair[0]).collect::<Vec<_>>();
    assert_eq!(video.received[0], 0);
    let lost = outcome.flows[0].datagrams.unwrap().lost;
    assert_eq!(gains(&video.received), [10, 2, 3, 2, 10, 2, 3, 2, 10, 2]);
    assert_eq!(gains(&video.missing), [0, 3, 0, 0, 0, 3, 0, 0, 0, 3]);
    assert_eq!(lost, 9);
}

#[test]
fn timeline_shows_tcp_windows_and_their_events() {
    let (timeline, outcome) = watch(&point(WAN, "base", &[("run.warmup", "0 s")]), 501);
    let stream = &timeline.flows[0];
    let tcp = stream.tcp.as_ref().expect("a TCP flow has windows");
    let counts = outcome.flows[0].tcp.expect("a TCP flow has counters");
    assert_eq!(Some(tcp.retransmissions.len() as u64), counts.retransmitted_segments);
    assert_eq!(Some(tcp.timeouts.len() as u64), counts.timeouts);
    assert!(tcp.retransmissions.len() > 3 && !stream.truncated);
    let goodput = outcome.flows[0].goodput_bit_per_s;
    assert_eq!(stream.delivered_bytes[500] as f64 * 8.0 / 5.0, goodput);
    // Data in flight never exceeds the windows.
    for (flight, window) in tcp.flight_bytes.iter().zip(&tcp.receive_window_bytes).skip(10) {
        assert!(flight <= window, "{flight} B in flight, window of {window} B");
    }
    let (name, queue) = timeline.queues.get_index(0).expect("the line to `a` has a queue");
    assert_eq!((name.as_str(), queue.unit.as_str(), queue.capacity), ("r -> a", "bytes", Some(60_000)));
    let (name, queue) = timeline.queues.get_index(1).expect("the line to `b` has a queue");
    assert_eq!(name, "r -> b");
    let longest = *queue.length.iter().max().expect("the timeline has samples");
    assert!((50_000..=60_000).contains(&longest), "{longest}");
    assert!(!queue.drops.is_empty());
}

#[test]
fn timeline_has_the_load_of_each_interval() {
    let busy = r#"
        [router.r2]
        per_packet = "40 us"
        [link.far]
        ends = ["b", "r2"]
        medium = "ethernet-1g"
        [host.c]
        cost = { per_segment = "10 us", per_byte = "1 ns" }
        receive_cost = { per_segment = "20 us" }
        [link.last]
        ends = ["r2", "c"]
        medium = "ethernet-1g"
        [host.d]
        receive_cost = { per_datagram = "30 us" }
        [link.other]
        ends = ["r2", "d"]
        medium = "ethernet-100"
        [traffic.back]
        kind = "tcp-stream"
        from = "c"
        to = "b"
        message = "9 kB"
        stop = "3 s"
        [traffic.datagrams]
        kind = "udp-stream"
        from = "c"
        to = "d"
        message = "1 kB"
        rate = "10 Mbit/s"
    "#;
    let overrides = [("run.warmup", "1 s"), ("router.r.per_packet", "0 s")];
    let (timeline, outcome) = watch(&point(&format!("{WAN}{busy}"), "base", &overrides), 101);
    let names: Vec<_> = timeline.nodes.keys().map(String::as_str).collect();
    assert_eq!(names, ["c", "d", "r2"], "`a`, `b` and `r` take no time");
    for used in &outcome.nodes {
        let [engine] = used.engines.as_slice() else { panic!("`{}` has one engine", used.node) };
        let line = &timeline.nodes[&used.node].engines[&engine.name];
        assert_eq!(
            (line.time_s.len(), line.load.len(), line.time_s[0], line.time_s[99]),
            (100, 100, 0.05, 5.0)
        );
        assert!(line.load.iter().all(|load| (0.0..=1.0).contains(load)));
        // The window begins after 20 of the intervals of 50 ms.
        let load = line.load[20..].iter().sum::<f64>() / 80.0;
        assert!((load - engine.load).abs() < 1e-12, "`{}`: {load}, {}", used.node, engine.load);
        assert!((engine.load * 4e12 - engine.busy as f64).abs() < 1.0);
    }
    // 1250 datagrams in a second, 30 us each, once the sender has no other work.
    let d = &timeline.nodes["d"].engines["cpu"].load;
    assert!(d[70..].iter().all(|load| (load - 0.0375).abs() < 1e-3), "{d:?}");
    let r2 = &timeline.nodes["r2"].engines["forwarding"].load;
    assert!(r2[10] > 2.0 * r2[90], "the connection of `c` has ended: {} and {}", r2[10], r2[90]);
}

#[test]
fn no_sample_of_a_queue_exceeds_its_longest_length() {
    let (timeline, outcome) = watch(&point(WAN, "base", &[("run.warmup", "0 s")]), 2001);
    let queue = outcome.links[1].1.directions[0].queue.expect("a router has a queue");
    let QueueUse::Packets { longest, marked } = queue else { panic!("a router has a queue of packets") };
    assert_eq!(marked, 0);
    let sampled = *timeline.queues["r -> b"].length.iter().max().expect("the timeline has samples");
    assert!(sampled <= longest.bytes && longest.bytes <= 60_000, "{sampled}, {longest:?}");
    // Packets of this connection are full, apart from a few.
    assert!(longest.bytes > 58_000 && (39..=41).contains(&longest.packets), "{longest:?}");
    let overrides = [("run.duration", "1 s"), ("switch.atomis5.schedule", "fifo")];
    for variant in ["free", "congested"] {
        let (timeline, outcome) = watch(&point(KYOTO, variant, &overrides), 1001);
        for (name, line) in &timeline.queues {
            let ports = outcome.links.iter().flat_map(|(_, used)| &used.directions);
            let port = ports.clone().find(|one| *name == format!("{} -> {}", one.from, one.to));
            let queue = port.and_then(|port| port.queue).expect("a switch has a queue");
            let QueueUse::Cells { longest } = queue else { panic!("an ATM switch has a queue of cells") };
            let sampled = *line.length.iter().max().expect("the timeline has samples");
            assert!(sampled <= longest && longest <= line.capacity.expect("a buffer is bounded"));
        }
    }
}

/// A host sends 300 Mbit/s, in packets of 1000 B, through a router at which a circuit on an OC-3c begins.
const ONTO_A_CIRCUIT: &str = r#"
    name = "a circuit behind a router"
    [host.a]
    [host.b]
    [router.r]
    queue = { drop-tail = { limit = "40 packets" } }
    [router.far]
    [link.in]
    ends = ["a", "r"]
    medium = "ethernet-1g"
    [link.cells]
    ends = ["r", "far"]
    medium = "oc-3c"
    [link.out]
    ends = ["far", "b"]
    medium = "ethernet-1g"
    [circuit.vc]
    from = "r"
    to = "far"
    [traffic.stream]
    kind = "udp-stream"
    from = "a"
    to = "b"
    message = "972 B"
    rate = "300 Mbit/s"
    [run]
    duration = "200 ms"
"#;

#[test]
fn timeline_shows_the_packets_that_wait_in_front_of_a_circuit() {
    let (timeline, outcome) = watch(&point(ONTO_A_CIRCUIT, "base", &[]), 1001);
    let queue = outcome.links[1].1.directions[0].queue.expect("a router has a queue");
    let QueueUse::Packets { longest, .. } = queue else { panic!("a router has a queue of packets") };
    assert_eq!(longest.packets, 40);
    let line = &timeline.queues["r -> far"];
    assert_eq!((line.unit.as_str(), line.length.len()), ("bytes", 1001));
    let sampled = *line.length.iter().max().expect("the timeline has samples");
    // The queue is full from a quarter of the run on; one packet of 40 may be on the line.
    assert!(
        sampled <= longest.bytes && line.length[250..].iter().all(|bytes| bytes * 40 >= longest.bytes * 39)
    );
}

#[test]
fn timeline_lists_interface_failures_as_link_outages() {
    let events = r#"
        [event.cut]
        at = "2 s"
        target = "thin"
        change = "down"
        every = "2 s"
        [event.mended]
        at = "2500 ms"
        target = "thin"
        change = "up"
        [event.interface]
        at = "1 s"
        target = "r/fast"
        change = "down"
    "#;
    let (timeline, _) = watch(&point(&format!("{WAN}{events}"), "base", &[]), 11);
    let outages: Vec<_> =
        timeline.outages.iter().map(|(link, times)| (link.as_str(), times.as_slice())).collect();
    assert_eq!(outages, [("fast", &[[1.0, 5.0]][..]), ("thin", &[[2.0, 2.5], [4.0, 5.0]])]);
    assert!(watch(&point(WAN, "base", &[]), 11).0.outages.is_empty());
}

/// The receivers of a group have lines of their own, and the group has that of the receiver that got least.
#[test]
fn timeline_shows_receivers_that_join_and_leave() {
    let text = r#"
        name = "a late receiver"
        [host]
        a = {}
        b = {}
        c = {}
        [router.r]
        [link.a]
        ends = ["a", "r"]
        medium = "ethernet-100"
        [link.b]
        ends = ["r", "b"]
        medium = "ethernet-100"
        [link.c]
        ends = ["r", "c"]
        medium = "ethernet-100"
        [traffic.video]
        kind = "multicast"
        from = "a"
        to = ["b", "c"]
        message = "1 kB"
        rate = "8 Mbit/s"
        igmp = { last_member_query_interval = "100 ms" }
        [event.on]
        target = "b"
        traffic = "video"
        change = "join"
        at = "1 s"
        every = "4 s"
        [event.off]
        target = "b"
        traffic = "video"
        change = "leave"
        at = "3 s"
        every = "4 s"
        [run]
        duration = "10 s"
    "#;
    let (timeline, outcome) = watch(&point(text, "base", &[]), 11);
    assert_eq!(timeline.memberships["video to b"], [[1.0, 3.0], [5.0, 7.0], [9.0, 10.0]]);
    assert_eq!(timeline.memberships.len(), 1);
    let late = &timeline.flows["video to b"].delivered_bytes;
    let gains: Vec<u64> = late.windows(2).map(|pair| (pair[1] - pair[0]) / 900_000).collect();
    assert_eq!(gains, [0, 1, 1, 0, 0, 1, 1, 0, 0, 1]);
    assert_eq!(timeline.flows["video"].delivered_bytes, *late);
    assert!(timeline.flows["video to c"].delivered_bytes[10] >= 9_990_000);
    let received = &outcome.flows[0].receivers[0];
    assert_eq!((received.member_share, received.datagrams.unwrap().lost), (Some(0.5), 0));
    // The report and the datagram cross a line each. Datagrams come for 200 ms after the leave message.
    let [join, leave] = [received.join_delay_s, received.leave_delay_s].map(|delay| delay.unwrap_or(0.0));
    assert!(join > 0.0 && join < 0.0011 && (0.199..0.201).contains(&leave), "{join} s, {leave} s");
}

#[test]
fn timeline_lists_when_an_end_takes_its_tunnel_for_down() {
    let text = r#"
        [host.a]
        [host.b]
        [router.r1]
        [router.r2]
        [link.a]
        ends = ["a", "r1"]
        medium = "ethernet-100"
        [link.m]
        ends = ["r1", "r2"]
        medium = "ethernet-100"
        [link.b]
        ends = ["r2", "b"]
        medium = "ethernet-100"
        [tunnel.gre]
        ends = ["r1", "r2"]
        keepalive = { period = "100 ms", retries = 2 }
        [event.cut]
        at = "250 ms"
        target = "m"
        change = "down"
        [event.mended]
        at = "850 ms"
        target = "m"
        change = "up"
        [traffic.t]
        kind = "udp-stream"
        from = "a"
        to = "b"
        message = "1 kB"
        rate = "1 Mbit/s"
        [run]
        duration = "2 s"
    "#;
    let down = watch(&point(text, "base", &[]), 11).0.tunnels_down;
    assert_eq!(down.keys().collect::<Vec<_>>(), ["gre at r1", "gre at r2"]);
    for times in down.values() {
        // The keepalives of 0.3 and 0.4 s do not come back, and that of 0.9 s does, after less than 0.1 ms on the line.
        let [[begin, end]] = times[..] else { panic!("one outage, not {times:?}") };
        assert_eq!(begin, 0.5);
        assert!((0.9..0.9001).contains(&end), "{end}");
    }
    assert!(watch(&point(WAN, "base", &[]), 11).0.tunnels_down.is_empty());
}
