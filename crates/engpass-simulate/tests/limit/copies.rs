//! Memories, I/O buses and data paths as candidates: the copy study's tables, shares, and goodput by `simulate`.

use engpass_limit::{BottleneckKind, FlowLimit};
use engpass_model::host::{DataPath, Side};
use engpass_simulate::simulate;
use engpass_testbed::{Source, load};
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;

use crate::laws::check;
use crate::{candidate, limits, stage};

const ALPHA: &str = r#"
    memory = { bandwidth = "1600 MB/s", copy = "125 MB/s" }
    io_bus = { bandwidth = "133 MB/s", to_device = "67 MB/s", from_device = "120 MB/s" }
"#;
const PENTIUM: &str = r#"
    memory = { bandwidth = "528 MB/s", copy = "42 MB/s" }
    io_bus = { bandwidth = "133 MB/s", to_device = "40 MB/s", from_device = "40 MB/s" }
"#;
const PENTIUM_II: &str = r#"
    memory = { bandwidth = "800 MB/s", copy = "125 MB/s" }
    io_bus = { bandwidth = "133 MB/s", to_device = "124 MB/s", from_device = "124 MB/s" }
"#;

/// Returns hosts `a` and `b` with these keys on a line that never limits, and a stream between them.
fn pair(a: &str, b: &str, stream: &str) -> String {
    format!(
        r#"
        [host.a]
        {a}
        [host.b]
        {b}
        [link.line]
        ends = ["a", "b"]
        medium = "ethernet-100g"
        mtu = "9000 B"
        [traffic.t]
        from = "a"
        to = "b"
        {stream}
        "#
    )
}

fn udp(keys: &str) -> String {
    format!("kind = \"udp-stream\"\nmessage = \"8 kB\"\n{keys}")
}

fn flow(text: &str) -> FlowLimit {
    let outcome = limits(text);
    check(&outcome);
    outcome.flows["t"].clone()
}

fn mb_s(flow: &FlowLimit) -> f64 {
    flow.goodput_bit_per_s / 8e6
}

/// Table 2 as it follows from table 1 for sending, and the unpublished figures for receiving.
#[test]
fn data_path_limits_match_the_copy_study_tables() {
    for (host, path, send, receive) in [
        (ALPHA, "one-copy-as-printed", 43.62, 61.22),
        (ALPHA, "one-copy-pipelined", 67.0, 120.0),
        (ALPHA, "zero-copy", 67.0, 120.0),
        (PENTIUM, "one-copy-as-printed", 20.49, 20.49),
        (PENTIUM, "one-copy-pipelined", 40.0, 40.0),
        (PENTIUM, "zero-copy", 40.0, 40.0),
        (PENTIUM_II, "one-copy-as-printed", 62.25, 62.25),
        (PENTIUM_II, "one-copy-pipelined", 124.0, 124.0),
        (PENTIUM_II, "zero-copy", 124.0, 124.0),
    ] {
        let sent = flow(&pair(host, "", &udp(&format!("send_path = \"{path}\""))));
        assert!((mb_s(&sent) - send).abs() < 0.005, "{path}: {} instead of {send}", mb_s(&sent));
        let received = flow(&pair("", host, &udp(&format!("receive_path = \"{path}\""))));
        assert!(
            (mb_s(&received) - receive).abs() < 0.005,
            "{path}: {} instead of {receive}",
            mb_s(&received)
        );
    }
}

#[test]
fn memory_bus_and_copy_limits_name_their_cause() {
    let slow_bus = flow(&pair(ALPHA, "", &udp("")));
    assert_eq!(
        slow_bus.summary,
        "I/O bus of host `a` limits `t` to 536.00 Mbit/s: DMA reaches 67.00 MB/s; \
         next is host `a` at 1.00 Gbit/s"
    );
    assert_eq!(stage(&slow_bus, "I/O bus of the sender"), 536e6);
    assert_eq!(candidate(&slow_bus, "memory of host `a`").round(), (1600e6_f64 / 3.0 * 8.0).round());

    let narrow = "memory = { bandwidth = \"90 MB/s\" }\nio_bus = { bandwidth = \"133 MB/s\" }";
    let memory = flow(&pair("", narrow, &udp("")));
    assert_eq!(
        memory.summary,
        "memory of host `b` limits `t` to 240.00 Mbit/s: `one-copy-pipelined` moves every byte 3 times through memory of \
         90.00 MB/s; next is host `b` at 360.00 Mbit/s"
    );

    // 8000 bytes: 64 us of copy and 10 us for the call, then 60.15 us of DMA.
    let turns = "memory = { bandwidth = \"1 GB/s\", copy = \"125 MB/s\" }\nio_bus = { bandwidth = \"133 MB/s\" }\n\
                 send_path = \"one-copy\"\ncost = { per_datagram = \"10 us\" }";
    let turns = flow(&pair(turns, "", &udp("")));
    assert_eq!(turns.bottleneck.title, "copies and DMA of host `a`");
    assert!(turns.summary.starts_with("copies and DMA of host `a` limit `t` to"), "{}", turns.summary);
    assert!(
        turns
            .summary
            .contains("on `one-copy` every message of 8000 B takes 74 us of CPU, then 60.2 us of DMA"),
        "{}",
        turns.summary
    );
}

/// LogGP (Alexandrov and others 1995): a message of `n` bytes takes `o + n G`, so half of `1 / G` is reached where `n` is `o / G`.
#[test]
fn small_message_throughput_matches_loggp() {
    // G = 1/100 + 1/100 us a byte; o = 40 us: half at 2000 bytes.
    let host = "memory = { bandwidth = \"1 GB/s\", copy = \"100 MB/s\" }\nio_bus = { bandwidth = \"100 MB/s\" }\n\
                send_path = \"one-copy\"\ncost = { per_datagram = \"40 us\" }";
    let at = |bytes: u64| {
        let stream = format!("kind = \"udp-stream\"\nmessage = \"{bytes} B\"");
        mb_s(&flow(&pair(host, "", &stream)))
    };
    for (bytes, expected) in [(2000, 25.0), (500, 10.0), (8000, 40.0)] {
        assert!((at(bytes) - expected).abs() < 1e-6, "{bytes}: {}", at(bytes));
    }
}

/// Two flows of one host share its memory, in either direction, and a bus that is not full duplex.
#[test]
fn flows_share_host_memory_and_half_duplex_bus() {
    let both = |bus: &str| {
        let host =
            format!("memory = {{ bandwidth = \"600 MB/s\" }}\nio_bus = {{ bandwidth = \"100 MB/s\"{bus} }}");
        let back = "[traffic.back]\nkind = \"udp-stream\"\nmessage = \"8 kB\"\nfrom = \"b\"\nto = \"a\"";
        let outcome = limits(&(pair(&host, "", &udp("")) + back));
        check(&outcome);
        ["t", "back"].map(|flow| outcome.flows[flow].goodput_bit_per_s / 8e6)
    };
    let near = |[one, other]: [f64; 2], expected: f64| {
        assert!((one - expected).abs() < 1e-6 && (other - expected).abs() < 1e-6, "{one}, {other}");
    };
    near(both(""), 100.0);
    near(both(", half_duplex = true"), 50.0);
    let outcome = limits(
        &(pair("memory = { bandwidth = \"600 MB/s\" }", "", &udp(""))
            + "[traffic.other]\nkind = \"tcp-stream\"\nmessage = \"64 KiB\"\nfrom = \"a\"\nto = \"b\"\nsend_path = \"zero-copy\""),
    );
    check(&outcome);
    let memory = candidate(&outcome.flows["t"], "memory of host `a`") * 3.0
        + candidate(&outcome.flows["other"], "memory of host `a`");
    assert!((memory / 8.0 - 600e6).abs() < 1.0, "{memory}");
}

#[test]
fn limit_uses_the_measured_cost_in_place_of_the_copy() {
    let host = "memory = { bandwidth = \"600 MB/s\" }\ncost = { per_byte = \"10 ns\" }";
    let flow = flow(&pair(host, "", &udp("")));
    assert_eq!((mb_s(&flow).round(), flow.bottleneck.title.as_str()), (100.0, "host `a`"));
}

#[test]
fn data_path_candidates_name_sending_and_receiving_side() {
    let host = "memory = { bandwidth = \"600 MB/s\" }\nio_bus = { bandwidth = \"100 MB/s\" }";
    let flow = flow(&pair(host, host, &udp("send_path = \"one-copy\"\nreceive_path = \"one-copy\"")));
    let kinds: Vec<_> = flow.candidates.iter().map(|candidate| candidate.bottleneck.kind).collect();
    use BottleneckKind::*;
    let ends = [
        SendingPath,
        SendingMemory,
        SendingBus,
        SendingHost,
        ReceivingPath,
        ReceivingMemory,
        ReceivingBus,
        ReceivingHost,
    ];
    assert_eq!(kinds[1..], ends);
}

/// One flow on every data path, with UDP and TCP: `simulate` reaches `limit` and does not exceed it.
#[test]
fn simulated() {
    let host = "memory = { bandwidth = \"90 MB/s\", copy = \"40 MB/s\", encryption = \"50 MB/s\" }\n\
                io_bus = { bandwidth = \"60 MB/s\" }";
    let tcp = "kind = \"tcp-stream\"\nmessage = \"64 KiB\"\n".to_owned();
    for (stream, least) in [(udp(""), 0.998), (tcp, 0.96)] {
        for (key, path) in [
            ("send_path", "one-copy"),
            ("send_path", "one-copy-as-printed"),
            ("send_path", "one-copy-pipelined"),
            ("send_path", "zero-copy"),
            ("send_path", "read-write"),
            ("receive_path", "one-copy"),
            ("receive_path", "ktls"),
            ("receive_path", "msg-trunc"),
        ] {
            let sends = key == "send_path";
            let rate = if sends || stream.contains("tcp") { "" } else { "rate = \"100 Mbit/s\"" };
            let (a, b) = if sends { (host, "") } else { ("", host) };
            let text = pair(a, b, &format!("{stream}\n{key} = \"{path}\"\n{rate}"))
                + "[run]\nduration = \"1 s\"\nwarmup = \"200 ms\"";
            let (got, most) = (simulated_rate(&text), limits(&text).flows["t"].goodput_bit_per_s);
            assert!(got >= least * most && got <= 1.0005 * most, "{stream} {key} {path}: {got} of {most}");
        }
    }
}

/// A host's `memory` and `io_bus`, in kB/s: the inputs of the formula of docs/copies.md.
#[derive(Clone, Copy, Debug)]
struct Data {
    memory: u64,
    copy: Option<u64>,
    checksum: Option<u64>,
    encryption: u64,
    write_allocate: bool,
    /// Rates of copy and checksum in a cache that holds the buffers, and whether DMA finds them there.
    cache: Option<(u64, Option<u64>, bool)>,
    bus: u64,
}

impl Data {
    fn keys(self) -> String {
        let rate = |key: &str, rate: Option<u64>| {
            rate.map_or(String::new(), |rate| format!(", {key} = \"{rate} kB/s\""))
        };
        let cache = self.cache.map_or(String::new(), |(copy, checksum, dma)| {
            let checksum = rate("checksum", checksum);
            format!(
                ", working_set = \"1 MiB\", cache = {{ size = \"1 MiB\", copy = \"{copy} kB/s\", dma = {dma}{checksum} }}"
            )
        });
        format!(
            "memory = {{ bandwidth = \"{} kB/s\"{}{}{}, write_allocate = {}{cache} }}\nio_bus = {{ bandwidth = \"{} kB/s\" }}",
            self.memory,
            rate("copy", self.copy),
            rate("checksum", self.checksum),
            rate("encryption", Some(self.encryption)),
            self.write_allocate,
            self.bus
        )
    }

    /// Returns bit/s on a data path: docs/copies.md, "What a byte needs", in floats.
    fn formula(self, path: DataPath) -> f64 {
        let uses = path.uses();
        let [copies, checksums, encryptions, dma] =
            [uses.copies, uses.checksums, uses.encryptions, uses.dma].map(|times| times as f64);
        let (memory, of_copy) = (self.memory as f64, if self.write_allocate { 3.0 } else { 2.0 });
        let most = |rate: Option<u64>, most: f64| rate.map_or(most, |rate| (rate as f64).min(most));
        let summing = most(self.checksum, memory);
        let (copy, checksum, encryption, m, d) = match self.cache {
            None => (
                most(self.copy, memory / of_copy),
                summing,
                most(Some(self.encryption), memory / 2.0),
                copies * of_copy + checksums + encryptions * 2.0,
                dma,
            ),
            Some((copy, checksum, held)) => (
                copy as f64,
                checksum.map_or(summing, |rate| rate as f64),
                self.encryption as f64,
                0.0,
                if held { 0.0 } else { dma },
            ),
        };
        let c = copies / copy + checksums / checksum + encryptions / encryption;
        let bus = 1.0 / self.bus as f64;
        let byte = if uses.serial {
            c.max(m / memory) + bus.max(d / memory)
        } else {
            c.max((m + d) / memory).max(bus)
        };
        8e3 / byte
    }
}

fn data() -> impl Strategy<Value = Data> {
    let rate = || 50_000_u64..=1_000_000;
    let cache = option::of((rate(), option::of(rate()), any::<bool>()));
    (rate(), option::of(rate()), option::of(rate()), rate(), any::<bool>(), cache, rate()).prop_map(
        |(memory, copy, checksum, encryption, write_allocate, cache, bus)| Data {
            memory,
            copy,
            checksum,
            encryption,
            write_allocate,
            cache,
            bus,
        },
    )
}

/// Returns the testbed of one flow over this host, on this data path, on this side.
fn over(data: Data, path: DataPath, side: Side, stream: &str) -> String {
    let (keys, word) = (data.keys(), path.word());
    match side {
        Side::Send => pair(&keys, "", &format!("{stream}\nsend_path = \"{word}\"")),
        Side::Receive => pair("", &keys, &format!("{stream}\nreceive_path = \"{word}\"")),
    }
}

fn simulated_rate(text: &str) -> f64 {
    let source = Source { name: "test.toml".to_owned(), text: text.to_owned() };
    let campaign = load(&source, &[], None).unwrap_or_else(|found| panic!("{}", found.render(false)));
    let point = campaign.point("base", &[]).unwrap_or_else(|found| panic!("{}", found.render(false)));
    let outcome = simulate(&point.testbed, &point.topology, 1, &|| false).expect("the simulation succeeds");
    outcome.flows[0].goodput_bit_per_s
}

/// Rates of copies, checksums and write-allocation that exceed the memory are clamped, in both engines.
#[test]
fn copy_rates_above_memory_bandwidth_are_clamped() {
    let plain = Data {
        memory: 300_000,
        copy: None,
        checksum: None,
        encryption: 1_000_000,
        write_allocate: false,
        cache: None,
        bus: 300_000,
    };
    let allocating = Data { memory: 390_000, bus: 452_000, write_allocate: true, ..plain };
    let summing = Data { bus: 1_000_000, ..plain };
    for (data, path, mbit_per_s) in [
        (allocating, DataPath::OneCopyAsPrinted, 807.7),
        (Data { copy: Some(900_000), ..plain }, DataPath::OneCopyAsPrinted, 800.0),
        (Data { checksum: Some(443_000), ..summing }, DataPath::CopyAndChecksum, 600.0),
    ] {
        let text = over(data, path, Side::Send, &udp("")) + "[run]\nduration = \"1 s\"\nwarmup = \"200 ms\"";
        for found in [flow(&text).goodput_bit_per_s, simulated_rate(&text)] {
            assert!((found / 1e6 / mbit_per_s - 1.0).abs() < 1e-3, "{path:?}: {found}");
        }
    }
}

proptest! {
    #[test]
    fn data_path_limit_equals_formula(data in data(), path in select(DataPath::ALL.to_vec()), tcp in any::<bool>()) {
        for side in [Side::Send, Side::Receive].into_iter().filter(|side| path.serves(*side)) {
            let stream = if tcp { "kind = \"tcp-stream\"\nmessage = \"64 KiB\"".to_owned() } else { udp("") };
            let (found, expected) = (flow(&over(data, path, side, &stream)).goodput_bit_per_s, data.formula(path));
            prop_assert!((found / expected - 1.0).abs() < 1e-6, "{path:?} {side:?}: {found} instead of {expected}");
        }
    }

    #[test]
    fn udp_flow_reaches_its_data_path_limit(data in data(), path in select(DataPath::ALL.to_vec()), sends in any::<bool>()) {
        let side = if sends { Side::Send } else { Side::Receive };
        prop_assume!(path.serves(side));
        let offered = if sends { String::new() } else { format!("rate = \"{} bit/s\"", 2 * data.formula(path) as u64) };
        let stream = format!("kind = \"udp-stream\"\nmessage = \"1 kB\"\n{offered}");
        let text = over(data, path, side, &stream) + "[run]\nduration = \"100 ms\"\nwarmup = \"20 ms\"";
        let (found, most) = (simulated_rate(&text), flow(&text).goodput_bit_per_s);
        // One message more or less in the window is 0.1 %.
        prop_assert!((found / most - 1.0).abs() < 2e-3, "{path:?} {side:?}: {found} of {most}");
    }
}
