//! A bound is tight: a single flow without losses reaches it.

use engpass_limit::{BottleneckKind, Candidate, FlowLimit, limit};
use engpass_model::wire::aal5::{self, CELL_PAYLOAD_BYTES};
use engpass_simulate::simulate;
use engpass_testbed::{Point, Source, load};
use proptest::option::weighted;
use proptest::prelude::*;
use proptest::sample::select;

/// Longest delay of a link, in milliseconds.
const LONGEST_MS: u32 = 50;

/// Returns the delay of a link: from a short cable to half of the earth.
fn delay() -> impl Strategy<Value = String> {
    prop_oneof![
        3 => (1u32..1_000).prop_map(|ns| format!("delay = \"{ns} ns\"\n")),
        3 => (1u32..1_000).prop_map(|us| format!("delay = \"{us} us\"\n")),
        3 => (1u32..=LONGEST_MS).prop_map(|ms| format!("delay = \"{ms} ms\"\n")),
    ]
}

fn rate() -> impl Strategy<Value = String> {
    prop_oneof![64u32..1_000, 1_000u32..200_000].prop_map(|kbit_s| format!("{kbit_s} kbit/s"))
}

/// Returns a line rate, or one for each direction.
fn rates() -> impl Strategy<Value = String> {
    (rate(), weighted(0.3, rate())).prop_map(|(rate, back)| match back {
        None => format!("rate = \"{rate}\"\n"),
        Some(back) => format!("rate = {{ forward = \"{rate}\", backward = \"{back}\" }}\n"),
    })
}

/// Returns a path between two hosts: links and nodes, with or without a circuit.
fn way() -> impl Strategy<Value = String> {
    let mtu = || prop_oneof![3 => Just(1500u32), 1 => 576u32..1500, 1 => 1500u32..9000];
    let ethernet = (select(vec!["ethernet-10", "ethernet-100", "ethernet-1g"]), any::<bool>())
        .prop_map(|(medium, vlan)| format!("medium = \"{medium}\"\nvlan = {vlan}\n"));
    let serial = (rates(), 0u32..12).prop_map(|(rates, overhead)| {
        format!("medium = \"point-to-point\"\n{rates}overhead = \"{overhead} B\"\n")
    });
    let frames = prop_oneof![ethernet, serial];
    let direct = (frames, mtu(), delay()).prop_map(|(line, mtu, delay)| {
        format!("[link.l]\nends = [\"a\", \"b\"]\n{line}mtu = \"{mtu} B\"\n{delay}")
    });
    let node = (any::<bool>(), 0u32..20).prop_map(|(switch, us)| match switch {
        true => format!("[switch.n]\nkind = \"ethernet\"\nlatency = \"{us} us\"\n"),
        false => format!("[router.n]\nper_packet = \"{us} us\"\n"),
    });
    let media = || select(vec!["ethernet-10", "ethernet-100", "ethernet-1g"]);
    let two = (node, [media(), media()], mtu(), [delay(), delay()]).prop_map(
        |(node, [one, other], mtu, [near, far])| {
            format!(
                "{node}[link.near]\nends = [\"a\", \"n\"]\nmedium = \"{one}\"\nmtu = \"{mtu} B\"\n{near}\
                 [link.far]\nends = [\"n\", \"b\"]\nmedium = \"{other}\"\nmtu = \"{mtu} B\"\n{far}"
            )
        },
    );
    let atm = || {
        prop_oneof![
            3 => select(vec!["oc-3c", "ds3", "e3", "25.6", "sts-1"]).prop_map(|medium| format!("medium = \"{medium}\"\n")),
            1 => rates().prop_map(|rates| format!("medium = \"atm\"\n{rates}")),
        ]
    };
    let circuit = (
        select(vec!["llc-snap", "vc-mux", "pppoa-llc", "bridged-llc"]),
        prop_oneof![Just(9180u32), Just(1500), 576u32..9180],
        weighted(0.3, 5u32..100),
    )
        .prop_map(|(encapsulation, mtu, shaping)| {
            let shaping = shaping.map_or(String::new(), |share| format!("shaping = \"{share} %\"\n"));
            format!("[circuit.c]\nfrom = \"a\"\nto = \"b\"\nencapsulation = \"{encapsulation}\"\nmtu = \"{mtu} B\"\n{shaping}")
        });
    let cells = (any::<bool>(), [atm(), atm()], [delay(), delay()], circuit).prop_map(
        |(direct, [one, other], [near, far], circuit)| match direct {
            true => format!("[link.l]\nends = [\"a\", \"b\"]\n{one}{near}{circuit}"),
            false => format!(
                "[switch.n]\nkind = \"atm\"\noutput_buffer = \"100000 cells\"\n\
                 [link.near]\nends = [\"a\", \"n\"]\n{one}{near}[link.far]\nends = [\"n\", \"b\"]\n{other}{far}{circuit}"
            ),
        },
    );
    prop_oneof![2 => direct, 2 => two, 3 => cells]
}

/// Returns CPU times of a host for sending or receiving.
fn costs(key: &'static str) -> impl Strategy<Value = String> {
    let time = |most: u32| weighted(0.6, 1u32..most);
    let some = (time(400), time(200), time(40), time(300), time(300)).prop_map(
        move |(datagram, fragment, byte, write, segment)| {
            let keys = [
                ("per_datagram", datagram, "us"),
                ("per_fragment", fragment, "us"),
                ("per_byte", byte, "ns"),
                ("per_write", write, "us"),
                ("per_segment", segment, "us"),
            ];
            let given = keys
                .into_iter()
                .filter_map(|(key, time, unit)| Some(format!("{key} = \"{} {unit}\"", time?)));
            format!("{key} = {{ {} }}\n", given.collect::<Vec<_>>().join(", "))
        },
    );
    prop_oneof![1 => Just(String::new()), 1 => some]
}

/// Returns CPU times of both hosts. Every acknowledgement certainly arrives only if the receiver takes no time.
fn both_pay() -> impl Strategy<Value = [String; 2]> {
    let acks = (1u32..200, 1u32..200).prop_map(|(segment, ack)| {
        [format!("cost = {{ per_segment = \"{segment} us\", per_ack = \"{ack} us\" }}\n"), String::new()]
    });
    let data = ((costs("cost"), memory()), (costs("receive_cost"), memory()))
        .prop_map(|((cost, memory), (receive_cost, other))| [cost + &memory, receive_cost + &other]);
    prop_oneof![1 => acks, 3 => data]
}

fn memory() -> impl Strategy<Value = String> {
    let some = (10u32..5_000, weighted(0.5, 10u32..5_000), select(vec!["one-copy", "one-copy-pipelined", "zero-copy"]))
        .prop_map(|(memory, bus, path)| {
            let bus = bus.map_or(String::new(), |bus| format!("io_bus = {{ bandwidth = \"{bus} MB/s\" }}\n"));
            format!("memory = {{ bandwidth = \"{memory} MB/s\" }}\n{bus}send_path = \"{path}\"\nreceive_path = \"{path}\"\n")
        });
    prop_oneof![3 => Just(String::new()), 1 => some]
}

fn point(text: &str) -> Point {
    let source = Source { name: "test.toml".to_owned(), text: text.to_owned() };
    let campaign = load(&source, &[], None).unwrap_or_else(|found| panic!("{text}\n{}", found.render(false)));
    campaign.point("base", &[]).unwrap_or_else(|found| panic!("{text}\n{}", found.render(false)))
}

fn limit_of(text: &str) -> FlowLimit {
    let point = point(text);
    limit(&point.testbed, &point.topology).flows["t"].clone()
}

/// Returns the testbed with a warm-up and a measurement window of these lengths, in seconds.
fn run(text: &str, warmup: f64, counted: f64) -> String {
    let ms = |seconds: f64| (seconds * 1e3).ceil() as u64 + 1;
    format!("{text}[run]\nwarmup = \"{} ms\"\nduration = \"{} ms\"\n", ms(warmup), ms(warmup) + ms(counted))
}

/// Returns the goodput and the limits of a single flow; `None` if the run lost something.
fn alone(text: &str) -> Option<(f64, FlowLimit)> {
    let point = point(text);
    let outcome = simulate(&point.testbed, &point.topology, 1, &|| false).expect("the simulation succeeds");
    let flow = &outcome.flows[0];
    let whole = outcome.drops.is_empty() && flow.tcp.is_none_or(|tcp| tcp.retransmitted_segments == Some(0));
    whole.then(|| (flow.goodput_bit_per_s, limit(&point.testbed, &point.topology).flows["t"].clone()))
}

/// Returns the rate in bit/s that full segments, acknowledged in pairs, certainly reach: the least of the candidates'
/// bounds, each reduced to the part that such segments can use.
fn of_full_segments(text: &str, limits: &FlowLimit, (streams, message): (f64, f64)) -> f64 {
    const EVERY: f64 = 2.0;
    let point = point(text);
    let path = &point.topology.flows[0];
    let window = limits.window.as_ref().expect("a TCP flow has a window");
    let segment = path.path_mtu - 52;
    let segments = window.bytes as f64 / segment as f64;
    let slowest = |is_one: &dyn Fn(&Candidate) -> bool, rate: &dyn Fn(&Candidate) -> f64| {
        limits.candidates.iter().filter(|one| is_one(one)).map(rate).fold(f64::INFINITY, f64::min)
    };
    let receiver = slowest(&|one| one.bottleneck.title.ends_with("host `b`"), &|one| one.goodput_bit_per_s);
    let line = slowest(&|one| one.bottleneck.kind == BottleneckKind::Link, &|one| one.goodput_bit_per_s);
    // `limit` counts an acknowledgement only if it certainly arrives: if the receiver's NIC buffer holds one for every
    // segment of the window, because a timer may acknowledge segments one by one. Acknowledgements of pairs need half
    // of that. With a buffer between these sizes, all of them arrive although `limit` does not count on it.
    let ack = path.circuit.map_or(0, |circuit| {
        let encapsulation = point.topology.circuits[circuit].encapsulation;
        aal5::cells(encapsulation.sdu(52)) * CELL_PAYLOAD_BYTES
    }) + 52;
    let nic_holds = |acks: u64| point.testbed.hosts[path.to].nic_buffer.bytes() >= acks * ack;
    // Three more than the window has segments: a short segment, the remainder of the division, and the acknowledgement
    // on the line.
    let pairs_only = nic_holds(window.bytes / (2 * segment)) && !nic_holds(window.bytes / segment + 3);
    let share = |one: &Candidate| match &one.bottleneck.title[..] {
        "socket buffers" => {
            // The first segment of a pair waits for the second, so its part of the window is not used.
            let pair = segment as f64 / (window.filling_bytes * streams);
            // The CPU sends only after it has processed all acknowledgements that have arrived. Therefore a window
            // stays one burst, whose CPU time adds to the round trip.
            let host = slowest(&|one| one.bottleneck.title.starts_with("host"), &|one| one.bound_bit_per_s);
            (1.0 - EVERY / segments) / (1.0 + (EVERY - 1.0) * pair + one.bound_bit_per_s / host)
        }
        // If the sender is slow, the end of every write is a segment of its own.
        name if name.contains("host") => message / segment as f64 / (message / segment as f64).ceil(),
        // A receiver that is slower than the line merges acknowledgements while it is busy. Over a thin return path it need not get busy.
        name if name.starts_with("acknowledgements") && receiver < line => {
            one.goodput_bit_per_s / one.bound_bit_per_s
        }
        name if name.starts_with("acknowledgements") && streams == 1.0 && pairs_only => {
            one.goodput_bit_per_s / one.bound_bit_per_s
        }
        // With several connections, an unknown number of short segments is acknowledged separately (2.3 % in one run).
        name if name.starts_with("acknowledgements") && streams > 1.0 => 0.0,
        name if name.starts_with("acknowledgements") => 1.0 - (EVERY + 1.0) / segments,
        _ => match path.circuit {
            // A shorter segment may fill its cells better.
            Some(circuit) => {
                let encapsulation = point.topology.circuits[circuit].encapsulation;
                let filled = |bytes: u64| bytes as f64 / aal5::cells(encapsulation.sdu(bytes + 52)) as f64;
                filled(segment) / (1..=segment).map(filled).fold(0.0, f64::max)
            }
            None => 1.0,
        },
    };
    let reached = limits.candidates.iter().map(|one| one.bound_bit_per_s * share(one));
    reached.fold(f64::INFINITY, f64::min)
}

/// Checks that the single flow reaches what `reached` returns, to 2 %.
fn is_tight(text: &str, reached: impl Fn(&FlowLimit) -> f64) -> Result<(), TestCaseError> {
    let Some((got, limits)) = alone(text) else { return Ok(()) };
    let expected = reached(&limits);
    prop_assert!(
        expected <= 1.02 * got,
        "{} of {} (of which {} is expected): {}\n{:#?}\n{}",
        got,
        limits.bound_bit_per_s,
        expected,
        limits.bound_summary,
        limits,
        text
    );
    Ok(())
}

proptest! {
    #[test]
    fn lossless_udp_flow_reaches_its_bound(
        way in way(), [sends, receives] in both_pay(),
        message in prop_oneof![1u32..1_000, 1_000u32..9_000, 9_000u32..65_507], rate in weighted(0.3, rate()),
    ) {
        let rate = rate.map_or(String::new(), |rate| format!("rate = \"{rate}\"\n"));
        let text = format!(
            "[host.a]\nnic_buffer = \"200 kB\"\n{sends}[host.b]\n{receives}{way}\
             [traffic.t]\nkind = \"udp-stream\"\nfrom = \"a\"\nto = \"b\"\nmessage = \"{message} B\"\n{rate}"
        );
        // A few hundred datagrams, after the NIC buffer has filled.
        let bound = limit_of(&text).bound_bit_per_s;
        let counted = 8.0 * f64::from(message) * 300.0 / bound;
        let way = 2e-3 * f64::from(LONGEST_MS);
        is_tight(&run(&text, 2.0 * 1.6e6 / bound + way, counted), |limits| limits.bound_bit_per_s)?;
    }

    #[test]
    fn lossless_tcp_flow_reaches_its_bound(
        way in way(), [sends, receives] in both_pay(),
        message in prop_oneof![Just(65_536u32), 20_000u32..1_000_000], rate in weighted(0.2, rate()),
        buffers in [prop_oneof![64u32..1_000, 1_000u32..8_000], prop_oneof![64u32..1_000, 1_000u32..8_000]],
        streams in prop_oneof![4 => Just(1u32), 1 => 2u32..4], congestion in select(vec!["reno", "cubic"]),
    ) {
        let rate = rate.map_or(String::new(), |rate| format!("rate = \"{rate}\"\n"));
        // The bound counts the sender's time for acknowledgements only where a default queue of 1000 packets certainly holds all of them.
        let most = if sends.contains("per_ack") { 500 / streams } else { 8_000 };
        let [send, receive] = buffers.map(|kilobytes| kilobytes.min(most));
        let text = format!(
            "[host.a]\n{sends}[host.b]\n{receives}{way}\
             [traffic.t]\nkind = \"tcp-stream\"\nfrom = \"a\"\nto = \"b\"\nmessage = \"{message} B\"\nstreams = {streams}\n{rate}\
             tcp = {{ send_buffer = \"{send} kB\", receive_buffer = \"{receive} kB\", congestion = \"{congestion}\" }}\n"
        );
        let limits = limit_of(&text);
        let window = limits.window.as_ref().expect("a TCP flow has a window");
        // Slow start takes some round trips; then follow a hundred round trips and windows, and a hundred writes if these have a rate.
        let least = limits.bound_bit_per_s.min(limits.goodput_bit_per_s);
        let time = |bytes: f64| 8.0 * bytes * f64::from(streams) / least;
        // Windows matter if socket buffers or acknowledgements determine a rate: their bounds include the window from before the measurement.
        let by_line = [&limits.bound_bottleneck.title, &limits.bottleneck.title]
            .iter()
            .all(|decides| ["link", "application", "shaper"].iter().any(|name| decides.starts_with(name)));
        let windows = if by_line { 0.0 } else { time(100.0 * window.bytes as f64) };
        let writes = if rate.is_empty() { 0.0 } else { time(100.0 * f64::from(message)) };
        let counted = [100.0 * window.round_trip_s, time(400.0 * 1500.0), windows, writes];
        let counted = counted.into_iter().fold(0.0, f64::max);
        let warmup = 0.4 * counted + 2.0 * time(f64::from(message));
        // No run lasts longer than a day.
        prop_assume!(warmup + counted < 86_000.0);
        let text = run(&text, warmup, counted);
        is_tight(&text, |limits| of_full_segments(&text, limits, (f64::from(streams), f64::from(message))))?;
    }
}
