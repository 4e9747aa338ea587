//! Circuits that end at routers, against arithmetic.

use engpass_simulate::{Carried, SimOutcome};

use super::common::close;
use super::{flow, goodput, run};

/// Hosts on Ethernets whose routers are joined by a circuit over an ATM switch.
const BACKBONE: &str = r#"
    name = "two Ethernets and a backbone of cells"
    [host.a]
    [host.b]
    [router.near]
    [router.far]
    [switch.x]
    kind = "atm"
    output_buffer = "1000 cells"
    [link.in]
    ends = ["a", "near"]
    medium = "ethernet-1g"
    [link.first]
    ends = ["near", "x"]
    medium = "oc-3c"
    delay = "1 ms"
    [link.second]
    ends = ["x", "far"]
    medium = "oc-3c"
    delay = "1 ms"
    [link.out]
    ends = ["far", "b"]
    medium = "ethernet-1g"
    [circuit.backbone]
    from = "near"
    to = "far"
    mtu = "9180 B"
    [traffic.stream]
    kind = "udp-stream"
    from = "a"
    to = "b"
    message = "1472 B"
    [run]
    duration = "500 ms"
    warmup = "100 ms"
"#;

fn cells(outcome: &SimOutcome, link: &str) -> u64 {
    let (_, link) = outcome.links.iter().find(|(name, _)| name == link).expect("the outcome has this link");
    match link.directions[0].carried {
        Carried::Cells { cells, .. } => cells,
        Carried::Frames { .. } => panic!("an ATM link carries cells"),
    }
}

/// A packet of 1500 bytes is an SDU of 1508 with LLC/SNAP, 32 cells with the trailer; an OC-3c has 353 207.5 cells a second.
#[test]
fn packet_of_1500_bytes_takes_32_cells_of_a_circuit() {
    let outcome = run(BACKBONE, &[]);
    let cells_per_second = 149.76e6 / 424.0;
    close(goodput(&outcome, "stream"), cells_per_second / 32.0 * 1472.0 * 8.0, 1e-3);
    close(cells(&outcome, "second") as f64, 0.4 * cells_per_second, 1e-3);
    // The router's queue drops what the circuit cannot carry.
    let stream = flow(&outcome, "stream");
    let lost: u64 = outcome.drops.iter().map(|drop| drop.datagrams).sum();
    assert_eq!(stream.datagrams.unwrap().lost, lost);
    assert!(outcome.drops.iter().all(|drop| drop.cause == "buffer full" && drop.place.node == "near"));
}

/// A shaper at the router: 16 % of the cells of the line.
#[test]
fn router_shaper_limits_the_cell_rate() {
    let outcome = run(BACKBONE, &[("circuit.backbone.shaping", "\"16 %\"")]);
    close(cells(&outcome, "second") as f64, 0.4 * 0.16 * 149.76e6 / 424.0, 1e-3);
}

/// A shaped circuit beside one without shaping, whose packets of 9000 bytes are bursts of 188 cells at the pace of the line. The shaper alone sets the pace of
/// the first, and the second gets what is left.
#[test]
fn shaped_circuit_keeps_its_rate_beside_an_unshaped_one() {
    let other = r#"
    [host.c]
    [host.d]
    [link.third]
    ends = ["c", "near"]
    medium = "ethernet-1g"
    mtu = "9180 B"
    [link.fourth]
    ends = ["x", "d"]
    medium = "oc-3c"
    [circuit.free]
    from = "near"
    to = "d"
    mtu = "9180 B"
    [traffic.bulk]
    kind = "udp-stream"
    from = "c"
    to = "d"
    message = "8972 B"
    [run]
    "#;
    let text = BACKBONE.replace("    [run]\n", other);
    let shaping = ("circuit.backbone.shaping", "\"50 Mbit/s cells\"");
    let shaped = 50e6 / 424.0 / 32.0 * 1472.0 * 8.0;
    // At its rate without a loss, and at all that its shaper passes. The second circuit does not need the line, or fills it.
    for (rate, expected) in [("\"43 Mbit/s\"", 43e6), ("\"60 Mbit/s\"", shaped)] {
        for bulk in ["\"80 Mbit/s\"", "\"200 Mbit/s\""] {
            let outcome = run(&text, &[shaping, ("traffic.stream.rate", rate), ("traffic.bulk.rate", bulk)]);
            close(goodput(&outcome, "stream"), expected, 1e-3);
            let lost = flow(&outcome, "stream").datagrams.unwrap().lost;
            assert!(lost == 0 || rate.contains("60"), "{rate}, {bulk}: {lost} lost");
        }
    }
    // Shapers that can fill the line wait for it, so that packets wait in queues where a discipline sees them.
    let whole = [("circuit.backbone.shaping", "\"100 %\""), ("traffic.bulk.rate", "\"200 Mbit/s\"")];
    let outcome = run(&text, &whole);
    let line = 149.76e6 / 424.0;
    let taken = goodput(&outcome, "stream") / (8.0 * 1472.0) * 32.0
        + goodput(&outcome, "bulk") / (8.0 * 8972.0) * 188.0;
    close(taken, line, 5e-3);
}

/// From Ethernet to the circuit's MTU of 576 bytes, each packet becomes three fragments.
#[test]
fn router_fragments_for_the_circuit_mtu() {
    let outcome =
        run(BACKBONE, &[("circuit.backbone.mtu", "\"576 B\""), ("traffic.stream.rate", "\"20 Mbit/s\"")]);
    close(goodput(&outcome, "stream"), 20e6, 1e-3);
    // 1480 bytes of IP payload as 552, 552 and 376: SDUs of 580, 580 and 404 bytes, 13 + 13 + 9 cells.
    close(cells(&outcome, "second") as f64, 0.4 * 20e6 / (1472.0 * 8.0) * 35.0, 1e-3);
}

/// A circuit from a host on ATM to the router of the other host's Ethernet.
#[test]
fn circuit_from_host_to_router_carries_both_directions() {
    let extra = [
        ("link.in.medium", "\"oc-3c\""),
        ("circuit.backbone.from", "\"a\""),
        ("circuit.backbone.to", "\"far\""),
    ];
    let text = BACKBONE
        .replace("[router.near]", "")
        .replace("\"near\"", "\"a\"")
        .replace("    [link.in]\n    ends = [\"a\", \"a\"]\n    medium = \"ethernet-1g\"\n", "");
    let outcome = run(&text, &extra[1..]);
    close(goodput(&outcome, "stream"), 149.76e6 / 424.0 / 32.0 * 1472.0 * 8.0, 1e-3);
    assert_eq!(flow(&outcome, "stream").datagrams.unwrap().lost, 0, "a full NIC buffer blocks the sender");
    let back = run(
        &text,
        &[
            &extra[1..],
            &[
                ("traffic.stream.from", "\"b\""),
                ("traffic.stream.to", "\"a\""),
                ("traffic.stream.rate", "\"50 Mbit/s\""),
            ],
        ]
        .concat(),
    );
    close(goodput(&back, "stream"), 50e6, 1e-3);
}

/// TCP over it: 1448 bytes of payload in 32 cells.
#[test]
fn tcp_crosses_a_circuit_between_routers() {
    for discipline in ["\"drop-tail\"", "\"red\"", "\"codel\"", "\"fq-codel\"", "\"drr\"", "\"priority\""] {
        let tcp = [
            ("traffic.stream.kind", "\"tcp-stream\""),
            ("traffic.stream.message", "\"64 kB\""),
            ("router.near.queue", discipline),
            ("run.duration", "\"3 s\""),
            ("run.warmup", "\"1 s\""),
        ];
        let outcome = run(BACKBONE, &tcp);
        let most = 149.76e6 / 424.0 / 32.0 * 1448.0 * 8.0;
        let got = goodput(&outcome, "stream");
        // Disciplines that drop early keep one connection a little below the maximum.
        assert!(got <= most && got > 0.75 * most, "{discipline}: {got} of {most}");
    }
}

/// Cells lost in the switch cause lost packets, and the ledger balances.
#[test]
fn cells_lost_in_a_switch_lose_datagrams() {
    let outcome = run(
        BACKBONE,
        &[
            ("traffic.stream.kind", "\"poisson\""),
            ("traffic.stream.rate", "\"30 Mbit/s\""),
            ("link.second.medium", "\"ds3\""),
            ("switch.x.output_buffer", "\"60 cells\""),
        ],
    );
    let stream = flow(&outcome, "stream");
    let counts = stream.datagrams.unwrap();
    assert!(counts.received > 0 && counts.lost > 0);
    let other =
        outcome.drops.iter().filter(|drop| drop.place.node == "x").map(|drop| drop.datagrams).sum::<u64>();
    assert!(other > 0, "the switch loses cells");
}

/// Two circuits share the line of a router: each gets half of the cells. Excess packets are dropped in front of the line, and none waits longer than 50 packets
/// of 32 cells of each circuit.
#[test]
fn circuits_share_a_router_line_equally() {
    let text = format!(
        "{BACKBONE}
        [host.c]
        [router.third]
        [link.to-third]
        ends = [\"x\", \"third\"]
        medium = \"oc-3c\"
        [link.to-c]
        ends = [\"third\", \"c\"]
        medium = \"ethernet-1g\"
        [circuit.other]
        from = \"near\"
        to = \"third\"
        mtu = \"9180 B\"
        [traffic.second]
        kind = \"udp-stream\"
        from = \"a\"
        to = \"c\"
        message = \"1472 B\"
        rate = \"120 Mbit/s\"
        "
    );
    let outcome = run(
        &text,
        &[
            ("traffic.stream.rate", "\"120 Mbit/s\""),
            ("router.near.queue", "{ drop-tail = { limit = \"50 packets\" } }"),
        ],
    );
    let half = 149.76e6 / 424.0 / 32.0 * 1472.0 * 8.0 / 2.0;
    for name in ["stream", "second"] {
        close(goodput(&outcome, name), half, 0.01);
        let delays = flow(&outcome, name).delay_s.expect("the flow sends datagrams").network;
        assert!(delays.max < 0.002 + 101.0 * 32.0 * 424.0 / 149.76e6 + 1e-3, "{}", delays.max);
    }
    assert!(outcome.drops.iter().all(|drop| drop.place.node == "near"));
}

/// Without a switch, the circuit is one line.
#[test]
fn circuit_without_switch_fills_its_line() {
    let text = BACKBONE.replace("[switch.x]\n    kind = \"atm\"\n    output_buffer = \"1000 cells\"\n", "");
    let first = text.find("    [link.second]").expect("the text has link `second`");
    let second = text.find("    [link.out]").expect("the text has link `out`");
    let text =
        format!("{}{}", &text[..first], &text[second..]).replace("\"near\", \"x\"", "\"near\", \"far\"");
    let outcome = run(&text, &[]);
    close(goodput(&outcome, "stream"), 149.76e6 / 424.0 / 32.0 * 1472.0 * 8.0, 1e-3);
}
