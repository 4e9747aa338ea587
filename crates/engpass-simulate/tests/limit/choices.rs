//! Equal-cost paths and outages, against arithmetic.

use engpass_limit::FlowLimit;
use engpass_outcome::FlowOutcome;
use engpass_simulate::simulate;
use engpass_testbed::{Point, Source, load};

use crate::{candidate, limits, stage};

/// Two routers with two lines between them; `lines` are the rates of the upper and the lower one.
pub(crate) fn pair(ecmp: &str, inward: &str, lines: [&str; 2], traffic: &str) -> String {
    format!(
        r#"
        [host.a]
        [host.b]
        [router.near]
        ecmp = {ecmp}
        [router.far]
        ecmp = "first"
        [link.in]
        ends = ["a", "near"]
        medium = "point-to-point"
        rate = "{inward}"
        [link.upper]
        ends = ["near", "far"]
        medium = "point-to-point"
        rate = "{}"
        [link.lower]
        ends = ["near", "far"]
        medium = "point-to-point"
        rate = "{}"
        [link.out]
        ends = ["far", "b"]
        medium = "point-to-point"
        rate = "1 Gbit/s"
        {traffic}
        "#,
        lines[0], lines[1]
    )
}

/// Datagrams in packets of 1500 bytes, at full speed.
pub(crate) const UDP: &str =
    "[traffic.t]\nkind = \"udp-stream\"\nfrom = \"a\"\nto = \"b\"\nmessage = \"1472 B\"\n";
/// Share of the payload in such a packet, and in one of a full segment with timestamps.
const OF_UDP: f64 = 1472.0 / 1500.0;
const OF_TCP: f64 = 1448.0 / 1500.0;

/// Sixteen connections. With seed 25 nine take the upper line and seven the lower one.
const TCP: &str =
    "[traffic.t]\nkind = \"tcp-stream\"\nfrom = \"a\"\nto = \"b\"\nmessage = \"64 KiB\"\nstreams = 16\n";
const NINE_TO_SEVEN: &str = "{ hash = { seed = 25 } }";
/// With this seed datagrams take the lower line.
const LOWER: &str = "{ hash = { seed = 4 } }";
const TURNS: &str = "\"round-robin\"";

#[track_caller]
fn close(one: f64, other: f64) {
    assert!((one - other).abs() <= 1e-9 * other.abs(), "{one} differs from {other}");
}

pub(crate) fn flow(text: &str) -> FlowLimit {
    limits(text).flows["t"].clone()
}

/// Returns the first flow by `simulate`, over one second after a warm-up of 0.2 s.
pub(crate) fn simulated(text: &str) -> FlowOutcome {
    let text = format!("{text}[run]\nduration = \"1200 ms\"\nwarmup = \"200 ms\"\n");
    let source = Source { name: "test.toml".to_owned(), text };
    let campaign = load(&source, &[], None).unwrap_or_else(|found| panic!("{found}"));
    let Point { testbed, topology, .. } =
        campaign.point("base", &[]).unwrap_or_else(|found| panic!("{found}"));
    simulate(&testbed, &topology, 1, &|| false).expect("the simulation succeeds").flows[0].clone()
}

#[test]
fn hashed_connections_fill_both_lines() {
    let equal = flow(&pair(NINE_TO_SEVEN, "1 Gbit/s", ["100 Mbit/s", "100 Mbit/s"], TCP));
    close(equal.goodput_bit_per_s, 200e6 * OF_TCP);
    close(equal.bound_bit_per_s, 200e6 * OF_TCP);
    insta::assert_snapshot!(equal.summary, @"link `upper` limits `t` to 193.07 Mbit/s: 9 of its 16 connections take it, and framing and headers take 3.5 % of the line; next is link `lower` at 193.07 Mbit/s");
    insta::assert_snapshot!(equal.bound_summary, @"links `upper` and `lower` together bound `t` to 193.07 Mbit/s");
    close(stage(&equal, "line rate"), 200e6);
    close(stage(&equal, "uneven spread"), 200e6);
    close(stage(&equal, "TCP headers"), 200e6 * OF_TCP);
    close(candidate(&equal, "link `in`"), 1e9 * OF_TCP);
    let text = pair(NINE_TO_SEVEN, "1 Gbit/s", ["100 Mbit/s", "100 Mbit/s"], TCP);
    let got = simulated(&text).goodput_bit_per_s / equal.goodput_bit_per_s;
    assert!((0.97..=1.0001).contains(&got), "{got} of the fair share");
    // Nine connections at 100 and seven at 10: the slow line does not slow down the others.
    let unequal = pair(NINE_TO_SEVEN, "1 Gbit/s", ["100 Mbit/s", "10 Mbit/s"], TCP);
    let (outcome, unequal) = (limits(&unequal), flow(&unequal));
    close(unequal.goodput_bit_per_s, 110e6 * OF_TCP);
    close(unequal.bound_bit_per_s, 110e6 * OF_TCP);
    for line in ["upper", "lower"] {
        close(outcome.links[line].directions[0].utilisation.unwrap(), 1.0);
    }
    // 5 of 80 for each: more than the seven get of 10, and less than the nine get of 100. The nine share the rest.
    let narrow = flow(&pair(NINE_TO_SEVEN, "80 Mbit/s", ["100 Mbit/s", "10 Mbit/s"], TCP));
    close(narrow.goodput_bit_per_s, 80e6 * OF_TCP);
    assert_eq!(narrow.bottleneck.title, "link `in`");
    close(candidate(&narrow, "link `lower`"), 80e6 * OF_TCP);
    close(candidate(&narrow, "link `upper`"), (100e6 + 10e6) * OF_TCP);
}

/// Two stages of two lines each. Routers with the same seed make the same choice, so nine connections have a slow first line and seven a slow second one: no
/// stage as a whole is slow.
#[test]
fn each_connection_is_limited_by_its_own_slowest_line() {
    let text = pair(NINE_TO_SEVEN, "1 Gbit/s", ["10 Mbit/s", "100 Mbit/s"], TCP);
    let (ends, policy) = ("ends = [\"far\", \"b\"]", "[router.far]\n        ecmp = \"first\"");
    assert!(text.contains(ends) && text.contains(policy));
    let text = text
        .replace(ends, "ends = [\"end\", \"b\"]")
        .replace(policy, &format!("[router.end]\necmp = \"first\"\n[router.far]\necmp = {NINE_TO_SEVEN}"));
    let line = |name: &str, rate: &str| {
        format!("[link.{name}]\nends = [\"far\", \"end\"]\nmedium = \"point-to-point\"\nrate = \"{rate}\"\n")
    };
    let outcome = flow(&format!("{text}{}{}", line("upper-2", "100 Mbit/s"), line("lower-2", "10 Mbit/s")));
    close(outcome.goodput_bit_per_s, 20e6 * OF_TCP);
    close(outcome.bound_bit_per_s, 20e6 * OF_TCP);
    assert_eq!(outcome.bottleneck.title, "link `upper`");
    // Nine at a hundred beside seven at ten, and the other way round.
    close(candidate(&outcome, "link `upper-2`"), 110e6 * OF_TCP);
    close(candidate(&outcome, "link `lower`"), 110e6 * OF_TCP);
    close(candidate(&outcome, "link `lower-2`"), 20e6 * OF_TCP);
}

#[test]
fn one_connection_is_limited_by_its_hashed_line() {
    let one = flow(&pair(LOWER, "1 Gbit/s", ["100 Mbit/s", "10 Mbit/s"], UDP));
    close(one.goodput_bit_per_s, 10e6 * OF_UDP);
    close(one.bound_bit_per_s, 10e6 * OF_UDP);
    assert!(one.candidates.iter().all(|one| one.bottleneck.title != "link `upper`"));
}

/// The fair share is the most without loss; a full line drops its packets and does not stop those of the other line.
#[test]
fn round_robin_is_limited_by_the_slowest_line_per_share() {
    let turns = |ecmp: &str, inward: &str| pair(ecmp, inward, ["10 Mbit/s", "100 Mbit/s"], UDP);
    let equal = flow(&turns(TURNS, "1 Gbit/s"));
    close(equal.goodput_bit_per_s, 20e6 * OF_UDP);
    close(equal.bound_bit_per_s, 110e6 * OF_UDP);
    insta::assert_snapshot!(equal.summary, @"link `upper` limits `t` to 19.63 Mbit/s: 50.0 % of its packets take it, and framing and headers take 1.9 % of the line; next is link `lower` at 196.27 Mbit/s");
    insta::assert_snapshot!(equal.bound_summary, @"links `upper` and `lower` together bound `t` to 107.95 Mbit/s");
    close(stage(&equal, "line rate"), 110e6);
    close(stage(&equal, "uneven spread"), 20e6);
    close(candidate(&equal, "link `lower`"), 200e6 * OF_UDP);
    assert!(
        (0.999..=1.0)
            .contains(&(simulated(&turns(TURNS, "1 Gbit/s")).goodput_bit_per_s / equal.bound_bit_per_s))
    );
    // The turns give each line half of the incoming 100 Mbit/s: the upper one passes 10 Mbit/s of it, the lower one all 50. The bound is higher by a part of a
    // packet.
    let fed = flow(&turns(TURNS, "100 Mbit/s"));
    assert!((fed.bound_bit_per_s / (60e6 * OF_UDP) - 1.0).abs() < 1e-4, "{}", fed.bound_summary);
    assert!(
        (0.999..=1.0)
            .contains(&(simulated(&turns(TURNS, "100 Mbit/s")).goodput_bit_per_s / fed.bound_bit_per_s))
    );
    // Weights that match the rates, and those that nearly do.
    let matched = flow(&turns("{ round-robin = { weights = { lower = 10 } } }", "1 Gbit/s"));
    close(matched.goodput_bit_per_s, 110e6 * OF_UDP);
    let near = flow(&turns("{ round-robin = { weights = { lower = 9 } } }", "1 Gbit/s"));
    close(near.goodput_bit_per_s, 100e6 * OF_UDP);
}

/// Another flow's packets may take all turns of the slower line, so turns are no bound.
#[test]
fn shared_round_robin_gives_no_bound() {
    let other = UDP.replace("traffic.t", "traffic.other");
    let text = pair(TURNS, "100 Mbit/s", ["10 Mbit/s", "100 Mbit/s"], &format!("{UDP}{other}"));
    let outcome = limits(&text);
    let flow = &outcome.flows["t"];
    close(flow.goodput_bit_per_s, 10e6 * OF_UDP);
    close(flow.bound_bit_per_s, 100e6 * OF_UDP);
    assert_eq!(flow.bound_bottleneck.title, "link `in`");
}

#[test]
fn flows_share_a_line_by_number_of_connections() {
    // The datagrams of `u` take the upper line: their source port follows sixteen others.
    let text = pair(
        NINE_TO_SEVEN,
        "10 Gbit/s",
        ["100 Mbit/s", "100 Mbit/s"],
        &format!("{TCP}{}", UDP.replace("traffic.t", "traffic.u")),
    );
    let outcome = limits(&text);
    let line = outcome.flows["u"].paths[0].steps[1].link.clone();
    let beside = if line == "upper" { 9.0 } else { 7.0 };
    close(outcome.flows["u"].goodput_bit_per_s, 100e6 / (beside + 1.0) * OF_UDP);
    let flow = &outcome.flows["t"];
    close(flow.goodput_bit_per_s, (100e6 + 100e6 * beside / (beside + 1.0)) * OF_TCP);
    let shares: Vec<_> =
        outcome.links[&line].directions[0].shares.iter().map(|one| (one.flow.as_str(), one.share)).collect();
    assert_eq!(shares.len(), 2);
    close(shares[0].1, beside / (beside + 1.0));
    close(shares[1].1, 1.0 / (beside + 1.0));
    close(stage(flow, "other traffic"), 200e6 - 100e6 / (beside + 1.0));
}

/// Paths over two routers, one of them slow: it limits packets in turns, while the bound counts both.
#[test]
fn parallel_routers_bound_a_flow_together() {
    let link = |name: &str, ends: [&str; 2]| {
        format!("[link.{name}]\nends = {ends:?}\nmedium = \"point-to-point\"\nrate = \"1 Gbit/s\"\n")
    };
    let text = [
        link("in", ["a", "near"]),
        link("nu", ["near", "u"]),
        link("nl", ["near", "l"]),
        link("uf", ["u", "far"]),
        link("lf", ["l", "far"]),
        link("out", ["far", "b"]),
    ];
    let nodes = "[host.a]\n[host.b]\n[router.near]\necmp = \"round-robin\"\n[router.far]\n\
                 [router.u]\nper_packet = \"100 us\"\n[router.l]\nper_packet = \"300 us\"\n";
    let flow = flow(&format!("{nodes}{}{UDP}", text.concat()));
    // Half of the packets take 300 us each.
    close(flow.goodput_bit_per_s, 2.0 * 1472.0 * 8.0 / 300e-6);
    assert_eq!(flow.bottleneck.title, "router `l`");
    close(flow.bound_bit_per_s, 1472.0 * 8.0 * (1.0 / 100e-6 + 1.0 / 300e-6));
    insta::assert_snapshot!(flow.bound_summary, @"routers `u` and `l` together bound `t` to 157.01 Mbit/s");
}

/// Two circuits over the same links share the line, whichever a packet takes: 32 cells for a packet, on 96 000 cells a second.
#[test]
fn parallel_circuits_share_their_line() {
    let link = |name: &str, ends: [&str; 2], medium: &str| {
        format!("[link.{name}]\nends = {ends:?}\nmedium = \"{medium}\"\n")
    };
    let links = [
        link("in", ["a", "near"], "ethernet-100"),
        link("atm", ["near", "far"], "ds3"),
        link("out", ["far", "b"], "ethernet-100"),
    ];
    let nodes = "[host.a]\n[host.b]\n[router.near]\necmp = \"round-robin\"\n[router.far]\n";
    let circuit = |name: &str| format!("[circuit.{name}]\nfrom = \"near\"\nto = \"far\"\nmtu = \"1500 B\"\n");
    let text = format!("{nodes}{}{}{}{UDP}", links.concat(), circuit("one"), circuit("two"));
    let both = flow(&text);
    let rate = 96_000.0 / 32.0 * 1472.0 * 8.0;
    close(both.goodput_bit_per_s, rate);
    close(both.bound_bit_per_s, rate);
    assert_eq!((both.paths.len(), both.bound_bottleneck.title.as_str()), (1, "link `atm`"));
    let got = simulated(&text).goodput_bit_per_s;
    assert!((0.99..=1.001).contains(&(got / rate)), "{got} of {rate}");
}

/// In-order data needs the longest path, but may arrive by the shortest.
#[test]
fn window_limit_uses_the_longest_path_and_bound_the_shortest() {
    let tcp = TCP.replace(
        "streams = 16\n",
        "tcp = { receive_buffer = \"64 KiB\", timestamps = false, window_scaling = false }\n",
    );
    let text = pair(TURNS, "1 Gbit/s", ["1 Gbit/s", "1 Gbit/s"], &tcp);
    let text = text
        .replace("[link.lower]", "[link.lower]\ndelay = \"13 ms\"")
        .replace("[link.upper]", "[link.upper]\ndelay = \"5 ms\"");
    let flow = flow(&text);
    let window = flow.window.expect("a TCP flow has a window");
    let trip = |delay: f64| delay + 5e-3 + 3.0 * 8.0 * (1500.0 + 40.0) / 1e9 + 4.0 * 1e-6;
    assert!((window.round_trip_s - trip(13e-3)).abs() < 1e-5, "{}", window.round_trip_s);
    close(flow.goodput_bit_per_s, 65_535.0 * 8.0 / window.round_trip_s);
    let bound = 65_535.0 * 8.0 / trip(5e-3);
    assert!((flow.bound_bit_per_s / bound - 1.0).abs() < 1e-2, "{} of {bound}", flow.bound_bit_per_s);
    // With a hash each connection has its own round-trip time.
    let hashed = text.replace(TURNS, NINE_TO_SEVEN).replace("tcp = {", "streams = 16\ntcp = {");
    let hashed = limits(&hashed).flows["t"].clone();
    let [upper, lower] = [5e-3, 13e-3].map(|delay| 65_535.0 * 8.0 / (trip(delay) - 5e-3 + delay));
    let sum = 9.0 * upper + 7.0 * lower;
    // The reverse direction has another hash, so the goodput is between these.
    assert!((0.5 * sum..1.7 * sum).contains(&hashed.goodput_bit_per_s));
}

/// The idle delay is that of the shortest path, and fragments on different paths do not wait for each other.
#[test]
fn idle_delay_is_that_of_the_shortest_path() {
    let text = |message: u64| {
        let text =
            pair(TURNS, "1 Gbit/s", ["10 Mbit/s", "10 Mbit/s"], &UDP.replace("1472", &message.to_string()));
        text.replace("[link.lower]", "[link.lower]\ndelay = \"13 ms\"")
            .replace("[link.upper]", "[link.upper]\ndelay = \"5 ms\"")
    };
    let idle = |message| flow(&text(message)).idle_delay_s.expect("the flow sends datagrams");
    let fast = |bytes: f64| 8.0 * bytes / 1e9;
    let one = idle(1472);
    let expected = 2.0 * fast(1500.0) + 8.0 * 1500.0 / 10e6 + 5e-3;
    assert!((one - expected).abs() < 1e-5, "{one} differs from {expected}");
    // Two full packets: the second one follows the first and may have its path to itself.
    let two = idle(1472 + 1480);
    assert!((two - one - fast(1500.0)).abs() < 1e-9, "{two}");
}

#[test]
fn events_count_for_the_bound_but_not_the_fair_share() {
    let event = "[event.cut]\nat = \"1 s\"\ntarget = \"lower\"\nchange = \"down\"\n[event.back]\nat = \"2 s\"\ntarget = \"lower\"\nchange = \"up\"\n";
    let lines = ["100 Mbit/s", "10 Mbit/s"];
    let with = |ecmp: &str| flow(&format!("{}{event}", pair(ecmp, "1 Gbit/s", lines, UDP)));
    // The datagrams take the upper line while the lower one is down.
    let hashed = with(LOWER);
    assert_eq!(hashed.ignored_events, ["cut", "back"]);
    close(hashed.goodput_bit_per_s, 10e6 * OF_UDP);
    close(hashed.bound_bit_per_s, 110e6 * OF_UDP);
    insta::assert_snapshot!(hashed.summary, @"link `lower` limits `t` to 9.81 Mbit/s: framing and headers take 1.9 % of the line; next is link `in` at 981.33 Mbit/s; not counted: events `cut` and `back`");
    // In turns, both lines get half of the packets, so the slower one sets the fair share. The bound counts both lines.
    let turns = with(TURNS);
    close(turns.goodput_bit_per_s, 20e6 * OF_UDP);
    close(turns.bound_bit_per_s, 110e6 * OF_UDP);
    // Without a policy nothing fails over.
    let first = with("\"first\"");
    close(first.bound_bit_per_s, 100e6 * OF_UDP);
    assert!(flow(&pair(LOWER, "1 Gbit/s", lines, UDP)).ignored_events.is_empty());
}

/// A token bucket is full again after an outage of its line.
#[test]
fn token_bucket_is_full_after_an_outage() {
    let bucket = "[link.out]\nqueue = { token-bucket = { rate = \"10 Mbit/s\", burst = \"100 kB\" } }";
    let event = "[event.cut]\nat = \"1 s\"\ntarget = \"out\"\nchange = \"down\"\nevery = \"2 s\"\n\
                 [event.back]\nat = \"1001 ms\"\ntarget = \"out\"\nchange = \"up\"\nevery = \"2 s\"\n\
                 [run]\nduration = \"10 s\"\n";
    let text = pair("\"first\"", "1 Gbit/s", ["1 Gbit/s", "1 Gbit/s"], UDP).replace("[link.out]", bucket);
    let bound = flow(&format!("{text}{event}")).bound_bit_per_s;
    // At the beginning and after 1, 3, 5, 7 and 9 seconds.
    close(bound, (10e6 * 10.0 + 6.0 * 800e3) / 10.0 * OF_UDP);
}

/// The lower line has an MTU of 600 bytes. A sender that knows it sends nothing longer; one that discovers the path MTU fills the upper line with packets of
/// 1500 bytes until it gets a message.
#[test]
fn path_mtu_discovery_raises_the_bound_to_the_wider_path() {
    let bound = |path_mtu: &str| {
        let traffic =
            TCP.replace("streams = 16", "streams = 1") + &format!("tcp = {{ path_mtu = \"{path_mtu}\" }}\n");
        let text = pair(TURNS, "10 Mbit/s", ["1 Gbit/s"; 2], &traffic);
        let lower = "[link.lower]\n        ends = [\"near\", \"far\"]\n";
        flow(&text.replace(lower, &(lower.to_owned() + "        mtu = \"600 B\"\n"))).bound_bit_per_s
    };
    close(bound("known"), 10e6 * 548.0 / 600.0);
    close(bound("discovered"), 10e6 * OF_TCP);
}

/// Two tunnels over one line in turn: one fragments, the other drops packets that are too long. Half of the datagrams arrive, in either order of the tunnels.
#[test]
fn tunnel_dropping_its_turns_leaves_the_other_path_open() {
    const TUNNELS: [&str; 2] = [
        "[tunnel.cuts]\nends = [\"near\", \"far\"]\n",
        "[tunnel.drops]\nends = [\"near\", \"far\"]\nfragment = \"none\"\n",
    ];
    let traffic = UDP.to_owned() + "rate = \"20 Mbit/s\"\n";
    let two_lines = pair(TURNS, "1 Gbit/s", ["100 Mbit/s"; 2], &traffic);
    // Without the lower line.
    let text = |tunnels: &str| {
        two_lines.split_once("[link.lower]").map(|(before, after)| {
            let (_, after) = after.split_once("[link.out]").expect("the text has link `out`");
            format!("{before}[link.out]{after}{tunnels}")
        })
    };
    for order in [[0, 1], [1, 0]] {
        let text = text(&order.map(|which| TUNNELS[which]).concat()).expect("the text has link `lower`");
        let found = flow(&text);
        assert!(found.bound_bit_per_s >= 10e6, "{found:?}");
        let said = &found.summary;
        assert!(said.ends_with("; not counted: packets that are too long for tunnel `drops`"), "{said}");
    }
}

/// A tunnel that drops all packets closes both lines on which its outer packets alternate.
#[test]
fn tunnel_dropping_all_packets_gives_limit_zero() {
    let tunnel = "[tunnel.drops]\nends = [\"near\", \"far\"]\nfragment = \"none\"\n";
    let found = flow(&pair(TURNS, "1 Gbit/s", ["100 Mbit/s"; 2], &(UDP.to_owned() + tunnel)));
    assert_eq!((found.goodput_bit_per_s, found.bound_bit_per_s), (0.0, 0.0), "{found:?}");
}
