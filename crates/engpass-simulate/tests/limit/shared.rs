//! Flows that share lines, shapers and hosts.

use crate::{INTERFERENCE, candidate, circuit, kyoto, limits, mbit_s, pair, stage, stream};

fn close(one: f64, other: f64) -> bool {
    (one - other).abs() <= 1e-9 * other.abs()
}

/// Returns a chain of switches, with streams over the first link, the second, or both.
fn two_links(first: &str, second: &str) -> String {
    let mut text =
        String::from("[switch.x]\nkind = \"atm\"\n[switch.y]\nkind = \"atm\"\n[switch.z]\nkind = \"atm\"\n");
    for (name, ends, medium) in [
        ("xy", "\"x\", \"y\"", first),
        ("yz", "\"y\", \"z\"", second),
        ("a-x", "\"a\", \"x\"", "oc-48c"),
        ("b-x", "\"b\", \"x\"", "oc-48c"),
        ("c-y", "\"c\", \"y\"", "oc-48c"),
        ("d-z", "\"d\", \"z\"", "oc-48c"),
    ] {
        text += &format!("[link.{name}]\nends = [{ends}]\nmedium = \"{medium}\"\n");
    }
    for host in ["a", "b", "c", "d"] {
        text += &format!("[host.{host}]\n");
    }
    for (name, from, to) in [("long", "a", "d"), ("first", "b", "c"), ("second", "c", "d")] {
        text += &format!("[circuit.{name}]\nfrom = \"{from}\"\nto = \"{to}\"\n");
        text += &format!(
            "[traffic.{name}]\nkind = \"udp-stream\"\nfrom = \"{from}\"\nto = \"{to}\"\nmessage = \"9152 B\"\n"
        );
    }
    text
}

/// Max-min fairness: the long flow gets half of the narrow link, and the other flow on the wide link gets the rest there.
#[test]
fn greedy_streams_share_max_min_fairly() {
    let outcome = limits(&two_links("ds3", "oc-3c"));
    let cell = 9152.0 / 192.0 * 8.0;
    let [long, first, second] = ["long", "first", "second"].map(|name| &outcome.flows[name]);
    assert!(close(long.goodput_bit_per_s, 48_000.0 * cell));
    assert!(close(first.goodput_bit_per_s, 48_000.0 * cell));
    assert!(close(second.goodput_bit_per_s, (149.76e6 / 424.0 - 48_000.0) * cell));
    assert_eq!(
        (long.bottleneck.title.as_str(), second.bottleneck.title.as_str()),
        ("link `xy`", "link `yz`")
    );
    // Without the narrow link, the long one would get half of the wide one.
    assert_eq!(long.next.as_ref().map(|next| next.title.as_str()), Some("link `yz`"));
    assert!(close(candidate(long, "link `yz`"), 149.76e6 / 424.0 / 2.0 * cell));
    insta::assert_snapshot!(long.summary, @"link `xy` limits `long` to 18.30 Mbit/s: `first` takes 50.0 % of the line; next is link `yz` at 67.34 Mbit/s");
    let xy = &outcome.links["xy"].directions[0];
    assert!(close(xy.utilisation.unwrap(), 1.0) && xy.shares.len() == 2 && close(xy.shares[0].share, 0.5));
}

/// Random datagrams offer their mean: no less if there is room, and no more of a line than their share if there is not.
#[test]
fn poisson_datagrams_count_at_their_mean_rate() {
    let with = |kind: &str, rate: &str| {
        let long = "[traffic.long]\nkind = \"udp-stream\"\n";
        let text = two_links("ds3", "oc-3c");
        assert!(text.contains(long));
        text.replace(long, &format!("[traffic.long]\nkind = \"{kind}\"\nrate = \"{rate}\"\n"))
    };
    let outcome = limits(&with("poisson", "5 Mbit/s"));
    assert!(close(outcome.flows["long"].goodput_bit_per_s, 5e6));
    assert_eq!(outcome.flows["long"].bottleneck.title, "application `long`");
    for rate in ["5 Mbit/s", "50 Mbit/s"] {
        let (random, even) = (limits(&with("poisson", rate)), limits(&with("udp-stream", rate)));
        for (name, flow) in &random.flows {
            assert_eq!(flow.goodput_bit_per_s, even.flows[name].goodput_bit_per_s, "{name} at {rate}");
        }
    }
}

/// A generator that loses cells at a narrow link still takes its whole rate on the links before.
#[test]
fn generator_takes_its_full_rate_before_a_narrow_link() {
    let text = two_links("oc-3c", "ds3").replace(
        "[traffic.long]\nkind = \"udp-stream\"\nfrom = \"a\"\nto = \"d\"\nmessage = \"9152 B\"\n",
        "[traffic.long]\nkind = \"cbr\"\nfrom = \"a\"\nto = \"d\"\nrate = \"200000 cells/s\"\n",
    );
    let outcome = limits(&text);
    assert!(close(outcome.flows["long"].goodput_bit_per_s, 96_000.0 * 384.0));
    assert_eq!(outcome.flows["long"].bottleneck.title, "link `yz`");
    let left = 149.76e6 / 424.0 - 200_000.0;
    assert!(close(outcome.flows["first"].goodput_bit_per_s, left * 9152.0 / 192.0 * 8.0));
    // Nothing is left for a stream behind it.
    let second = &outcome.flows["second"];
    assert_eq!(second.goodput_bit_per_s, 0.0);
    assert!(second.stages.iter().skip(1).all(|stage| stage.rate_bit_per_s == 0.0));
    insta::assert_snapshot!(second.summary, @"link `yz` limits `second` to 0 bit/s: `long` takes 100.0 % of the line; next is link `d-z` at 2.12 Gbit/s");
}

/// Generators that together exceed two links in series fill both, and no more.
#[test]
fn excess_generators_share_each_link_equally() {
    let cbr = |name: &str| INTERFERENCE.replace("interference", name).replace("130 Mbit/s", "80 Mbit/s");
    let outcome = limits(&kyoto("", &(cbr("one") + &cbr("two") + &cbr("three"))));
    for (link, name) in [("interferer", "link `interferer`"), ("receiver", "link `receiver`")] {
        let shares: Vec<_> =
            outcome.links[link].directions[0].shares.iter().map(|taken| taken.share).collect();
        assert!(
            shares.len() == 3 && shares.iter().all(|share| close(*share, 1.0 / 3.0)),
            "{link}: {shares:?}"
        );
        assert!(close(candidate(&outcome.flows["two"], name), 353_207.547_169_811_3 * 384.0 / 3.0));
    }
}

/// With priorities a circuit of category `cbr` goes first, in a single queue it does not.
#[test]
fn cbr_category_has_priority_except_in_a_single_queue() {
    let privileged =
        two_links("ds3", "oc-3c").replace("[circuit.first]", "[circuit.first]\ncategory = \"cbr\"");
    let outcome = limits(&privileged);
    assert!(close(outcome.flows["first"].goodput_bit_per_s, 96_000.0 * 9152.0 / 192.0 * 8.0));
    assert_eq!(outcome.flows["long"].goodput_bit_per_s, 0.0);
    let one_queue = privileged.replace("kind = \"atm\"\n", "kind = \"atm\"\nschedule = \"fifo\"\n");
    let outcome = limits(&one_queue);
    assert!(close(outcome.flows["first"].goodput_bit_per_s, outcome.flows["long"].goodput_bit_per_s));
}

/// Only the shared line matters, not the path of the generator's cells before it.
#[test]
fn interference_path_before_the_shared_line_is_irrelevant() {
    let direct = limits(&kyoto("", &(stream("udp-stream", "9152 B") + INTERFERENCE)));
    let longer = kyoto("", &(stream("udp-stream", "9152 B") + INTERFERENCE)).replace(
        "ends = [\"generator\", \"atomis5\"]",
        "ends = [\"generator\", \"extra\"]\nmedium = \"oc-12c\"\n[switch.extra]\nkind = \"atm\"\n[link.more]\nends = [\"extra\", \"atomis5\"]",
    );
    // 130 Mbit/s of an OC-12c are as many cells.
    let longer = limits(&longer);
    let (one, other) = (&direct.flows["stream"], &longer.flows["stream"]);
    assert!(close(one.goodput_bit_per_s, other.goodput_bit_per_s));
    assert_eq!(one.summary, other.summary);
}

#[test]
fn on_off_generator_takes_its_mean_rate() {
    let source = r#"
        [traffic.interference]
        kind = "on-off"
        from = "generator"
        to = "ss20"
        rate = "100 %"
        on = "3 ms"
        off = "1 ms"
    "#;
    let outcome = limits(&kyoto("", &(stream("udp-stream", "9152 B") + source)));
    let flow = &outcome.flows["stream"];
    // In 4 ms the line has 1412.8 cells, and the 1060th of the source begins before 3 ms are over.
    assert!(close(stage(flow, "other traffic"), 155.52e6 * (1.0 - 1060.0 / (149.76e6 / 424.0 * 4e-3))));
}

/// Two streams of one host share its CPU; random pauses are no limit.
#[test]
fn streams_of_one_host_share_its_cpu() {
    let second = stream("udp-stream", "9 kB").replace("traffic.stream", "traffic.other");
    let outcome = limits(&kyoto("", &(stream("udp-stream", "9 kB") + &second)));
    let alone = 9000.0 * 8.0 / 2.145e-3;
    let flow = &outcome.flows["stream"];
    assert!(close(flow.goodput_bit_per_s, alone / 2.0));
    assert!(
        flow.summary.contains("sending a message of 9000 B takes 2.14 ms, shared with `other`"),
        "{}",
        flow.summary
    );

    let pausing = kyoto("", &stream("udp-stream", "9 kB"))
        .replace("[host.ss20]", "[host.ss20]\nreceive_cost = { per_datagram = \"1 ms\" }")
        .replace("[host.ss2]", "[host.ss2]\npauses = { share = \"0.4 %\", mean = \"20 ms\" }");
    let outcome = limits(&pausing);
    let flow = &outcome.flows["stream"];
    assert!(close(flow.goodput_bit_per_s, alone));
    assert!(close(candidate(flow, "host `ss20`"), 72e6));
    assert_eq!(flow.next.as_ref().map(|next| next.title.as_str()), Some("host `ss20`"));
}

/// The CPU time of TCP per write, segment and byte, and per acknowledgement of two segments.
#[test]
fn tcp_host_cost_matches_hand_calculation() {
    let text = kyoto("", &stream("tcp-stream", "18280 B")).replace(
        "cost = { per_fragment = \"0.93 ms\", per_byte = \"135 ns\" }",
        "cost = { per_write = \"0.6 ms\", per_byte = \"135 ns\", per_segment = \"0.33 ms\", per_ack = \"0.2 ms\" }",
    );
    let flow = &limits(&text).flows["stream"];
    // A write is two segments: half a write, a segment and half an acknowledgement for each.
    let segment = 0.3e-3 + 9140.0 * 135e-9 + 0.33e-3 + 0.1e-3;
    assert!(close(candidate(flow, "host `ss2`"), 9140.0 * 8.0 / segment));
    assert_eq!(flow.bottleneck.title, "host `ss2`");
}

#[test]
fn offered_rate_below_the_host_limit_is_the_limit() {
    let rate = stream("udp-stream", "1 kB") + "rate = \"5 Mbit/s\"\n";
    let flow = &limits(&kyoto("", &rate)).flows["stream"];
    assert!(close(flow.goodput_bit_per_s, 5e6) && close(stage(flow, "application"), 5e6));
    insta::assert_snapshot!(flow.summary, @"application `stream` limits `stream` to 5.00 Mbit/s: it offers no more; next is host `ss2` at 7.51 Mbit/s");
}

/// Tagged cells continue; an adaptive shaper may reach its maximum rate.
#[test]
fn tagging_policer_is_no_limit_and_adaptive_shaper_max_is() {
    let policing = "policing = { rate = \"16 %\", tolerance = \"1 ms\", action = \"tag\" }";
    let flow = &limits(&kyoto(policing, &stream("udp-stream", "9152 B"))).flows["stream"];
    assert_eq!(flow.bottleneck.title, "host `ss2`");
    let adaptive = "adaptive = { min = \"1 %\", max = \"16 %\" }";
    let flow = &limits(&kyoto(adaptive, &stream("udp-stream", "9152 B"))).flows["stream"];
    assert_eq!(flow.bottleneck.title, "shaper of circuit `data`");
    assert_eq!(mbit_s(candidate(flow, "shaper of circuit `data`"), 2), "21.55");
}

/// A policer passes its rate, but only behind the first switch and in the direction of the circuit.
#[test]
fn policing() {
    let policing = "policing = { rate = \"50000 cells/s\", tolerance = \"1 ms\" }";
    let flow = &limits(&kyoto(policing, &stream("udp-stream", "9152 B"))).flows["stream"];
    assert!(close(candidate(flow, "policer of circuit `data`"), 50_000.0 * 9152.0 / 192.0 * 8.0));
    assert_eq!(flow.bottleneck.title, "policer of circuit `data`");
    let back = kyoto(policing, &stream("udp-stream", "9152 B")).replace(
        "from = \"ss2\"\n        to = \"ss20\"\n        message",
        "from = \"ss20\"\n        to = \"ss2\"\n        message",
    );
    let flow = &limits(&back).flows["stream"];
    assert!(
        flow.candidates.iter().all(|candidate| candidate.bottleneck.title.starts_with("link")),
        "{flow:?}"
    );
}

/// Acknowledgements use the reverse direction: two cells for every second segment of 192.
#[test]
fn acknowledgements_use_the_reverse_direction() {
    let outcome = limits(&pair("medium = \"oc-3c\"", &circuit("llc-snap"), "tcp-stream", "9140 B"));
    let back = &outcome.links["line"].directions[1];
    assert!(close(back.utilisation.unwrap(), 1.0 / 192.0));
    assert_eq!(back.shares[0].kind, "acknowledgements");

    // A generator that fills the reverse direction stops the connection.
    let jammed = pair("medium = \"oc-3c\"", &circuit("llc-snap"), "tcp-stream", "9140 B")
        + "[traffic.jam]\nkind = \"cbr\"\nfrom = \"ss20\"\nto = \"ss2\"\nrate = \"100 %\"\n";
    let flow = &limits(&jammed).flows["stream"];
    assert_eq!(
        (mbit_s(flow.goodput_bit_per_s, 2).as_str(), flow.bottleneck.title.as_str()),
        ("0.00", "acknowledgements on link `line`")
    );
    assert_eq!(flow.next.as_ref().map(|next| next.title.as_str()), Some("link `line`"));
    insta::assert_snapshot!(flow.summary, @"acknowledgements on link `line` limit `stream` to 0 bit/s: `jam` takes 100.0 % of the line; next is link `line` at 134.51 Mbit/s");
}
