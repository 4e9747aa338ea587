//! Published formulas and numbers.

use engpass_limit::BottleneckKind;

use crate::{INTERFERENCE, candidate, circuit, kyoto, limits, mbit_s, pair, stage, stream};

/// The study's two formulas (Kyoto 1997): the bandwidth that 130 Mbit/s of an OC-3c leave to UDP and to TCP.
#[test]
fn available_bandwidth_matches_kyoto_1997() {
    for (kind, message, published, exact) in [
        // (155.52 - 130) * 260/270 * 48/53 * 9180/9216 * (9180 - 20 - 8)/9180
        ("udp-stream", "9152 B", "22.10", 25.52e6 * 260.0 / 270.0 * 48.0 / 53.0 * 9152.0 / 9216.0),
        // the same with - 20 - 20
        ("tcp-stream", "9140 B", "22.07", 25.52e6 * 260.0 / 270.0 * 48.0 / 53.0 * 9140.0 / 9216.0),
        // A stream of bytes fills its segments whatever the size of the writes.
        ("tcp-stream", "64 kB", "22.07", 25.52e6 * 260.0 / 270.0 * 48.0 / 53.0 * 9140.0 / 9216.0),
    ] {
        let outcome = limits(&kyoto("", &(stream(kind, message) + INTERFERENCE)));
        let flow = &outcome.flows["stream"];
        assert_eq!(mbit_s(flow.goodput_bit_per_s, 2), published, "{kind} {message}");
        assert!((flow.goodput_bit_per_s / exact - 1.0).abs() < 1e-12, "{kind} {message}");
        assert_eq!(flow.bottleneck.title, "link `receiver`");
    }
}

#[test]
fn waterfall_matches_kyoto_1997() {
    let outcome = limits(&kyoto("", &(stream("udp-stream", "9152 B") + INTERFERENCE)));
    let flow = &outcome.flows["stream"];
    let lines: Vec<_> =
        flow.stages.iter().map(|s| format!("{:>10}  {}", mbit_s(s.rate_bit_per_s, 3), s.name)).collect();
    insta::assert_snapshot!(lines.join("\n"), @r"
       155.520  line rate
        25.520  other traffic
        24.575  physical framing
        22.256  cell headers
        22.189  AAL5 padding and trailer
        22.169  encapsulation
        22.121  IP headers
        22.102  UDP headers
        22.102  goodput
    ");
    insta::assert_snapshot!(flow.summary, @"link `receiver` limits `stream` to 22.10 Mbit/s: `interference` takes 83.6 % of the line; next is host `ss2` at 33.81 Mbit/s");
    let cbr = &outcome.flows["interference"];
    insta::assert_snapshot!(cbr.summary, @"application `interference` limits `interference` to 113.38 Mbit/s: it offers no more; next is link `interferer` at 135.63 Mbit/s");
    let receiver = &outcome.links["receiver"].directions[0];
    assert_eq!((receiver.from.as_str(), receiver.to.as_str()), ("atomis5", "ss20"));
    assert!((receiver.utilisation.unwrap() - 1.0).abs() < 1e-12);
    assert!((receiver.shares[1].share - 130.0 / 155.52).abs() < 1e-12);
}

#[test]
fn a_cbr_of_rate_zero_takes_nothing() {
    let off = INTERFERENCE.replace("130 Mbit/s", "0 bit/s");
    let outcome = limits(&kyoto("", &(stream("udp-stream", "9 kB") + &off)));
    let free = limits(&kyoto("", &stream("udp-stream", "9 kB")));
    assert_eq!(outcome.flows["stream"], free.flows["stream"]);
    let cbr = &outcome.flows["interference"];
    assert_eq!(cbr.goodput_bit_per_s, 0.0);
    assert!(cbr.summary.contains("it is switched off"), "{}", cbr.summary);
}

/// The sending host: t = 0.93 ms + 135 ns a byte, and 33.6 Mbit/s as the study's maximum. The figures to compare with come from
/// the law before its two numbers were rounded: 8 kB are 31.84 Mbit/s here and 31.9 there.
#[test]
fn sending_host_rates_match_kyoto_1997() {
    let published = [7.5, 13.3, 18.0, 21.8, 24.9, 27.6, 29.9, 31.9, 33.6];
    for (kilobytes, published) in (1..=9).zip(published) {
        let outcome = limits(&kyoto("", &stream("udp-stream", &format!("{kilobytes} kB"))));
        let flow = &outcome.flows["stream"];
        assert!((flow.goodput_bit_per_s / 1e6 - published).abs() < 0.065, "{kilobytes} kB: {}", flow.summary);
        assert_eq!(flow.bottleneck.title, "host `ss2`");
    }
    // The first size with a second fragment is slower.
    let ten = limits(&kyoto("", &stream("udp-stream", "10 kB")));
    let ten = &ten.flows["stream"];
    assert_eq!(mbit_s(ten.goodput_bit_per_s, 1), "24.9");
    insta::assert_snapshot!(ten.summary, @"host `ss2` limits `stream` to 24.92 Mbit/s: sending a message of 10000 B takes 3.21 ms; next is link `sender` at 133.92 Mbit/s");
}

/// Host and line cross just above 4 kB.
#[test]
fn host_and_line_limits_cross_as_in_kyoto_1997() {
    let bottleneck = |message: &str| {
        let outcome = limits(&kyoto("", &(stream("udp-stream", message) + INTERFERENCE)));
        outcome.flows["stream"].bottleneck.title.clone()
    };
    assert_eq!(bottleneck("4 kB"), "host `ss2`");
    assert_eq!(bottleneck("4.3 kB"), "link `receiver`");
}

/// Shaping is relative to the line: 16 % are below the free 16.41 %, 18 % are above.
#[test]
fn shaping_limits_match_kyoto_1997() {
    for (shaping, shaper, bottleneck) in
        [("16 %", "21.55", "shaper of circuit `data`"), ("18 %", "24.24", "link `receiver`")]
    {
        let circuit = format!("shaping = \"{shaping}\"");
        let outcome = limits(&kyoto(&circuit, &(stream("udp-stream", "9152 B") + INTERFERENCE)));
        let flow = &outcome.flows["stream"];
        assert_eq!(mbit_s(candidate(flow, "shaper of circuit `data`"), 2), shaper);
        assert_eq!(flow.bottleneck.title, bottleneck);
    }
    let outcome = limits(&kyoto("shaping = \"16 %\"", &(stream("udp-stream", "9152 B") + INTERFERENCE)));
    let flow = &outcome.flows["stream"];
    insta::assert_snapshot!(flow.summary, @"shaper of circuit `data` limits `stream` to 21.55 Mbit/s: it passes 56513 cells/s, 16.0 % of link `sender`; next is link `receiver` at 22.10 Mbit/s");
    assert_eq!(mbit_s(stage(flow, "shaper"), 2), "21.55");
}

/// Cell rates of the media (ITU-T I.432, G.804, ATM Forum af-phy-0040, -0054), seen through a generator that fills the line.
#[test]
fn cell_rates_of_media_match_itu_t_and_atm_forum() {
    for (medium, cells) in [
        ("oc-3c", 353_207),
        ("oc-12c", 1_412_830),
        ("oc-48c", 5_651_320),
        ("sts-1", 114_113),
        ("ds3", 96_000),
        ("ds3-direct", 104_268),
        ("e3", 80_000),
        ("e3-g751", 72_000),
        ("e1", 4528),
        ("ds1", 3622),
        ("taxi-100", 231_481),
        ("25.6", 59_259),
    ] {
        let text = format!(
            "[host.a]\n[host.b]\n[link.line]\nends = [\"a\", \"b\"]\nmedium = \"{medium}\"\n\
             [traffic.cells]\nkind = \"cbr\"\nfrom = \"a\"\nto = \"b\"\nrate = \"100 %\"\n"
        );
        let outcome = limits(&text);
        let flow = &outcome.flows["cells"];
        // Rounded down, with a tolerance for whole numbers.
        assert_eq!((flow.goodput_bit_per_s / 384.0 + 1e-6) as u64, cells, "{medium}");
        assert_eq!(flow.candidates[0].bottleneck.kind, BottleneckKind::Link);
        assert!((outcome.links["line"].directions[0].utilisation.unwrap() - 1.0).abs() < 1e-12);
        assert_eq!(outcome.links["line"].directions[1].utilisation.unwrap(), 0.0);
    }
}

/// A DSL line of 24 Mbit/s of cells: 32 cells of 53 bytes carry 1500 bytes of IP in PPPoA, and 1492 in PPPoE.
#[test]
fn dsl() {
    for (encapsulation, ip, share, tcp) in
        [("pppoa-vc-mux", "21.23", "88.4", 1460.0), ("pppoe-llc", "21.11", "88.0", 1452.0)]
    {
        let link = "medium = \"atm\"\nrate = \"24 Mbit/s\"";
        let outcome = limits(&pair(link, &circuit(encapsulation), "tcp-stream", "64 kB"));
        let flow = &outcome.flows["stream"];
        assert_eq!(mbit_s(stage(flow, "cell headers"), 3), "21.736", "{encapsulation}");
        assert_eq!(mbit_s(stage(flow, "encapsulation"), 2), ip, "{encapsulation}");
        assert_eq!(format!("{:.1}", stage(flow, "encapsulation") / 24e4), share, "{encapsulation}");
        assert!((flow.goodput_bit_per_s / (24e6 * tcp / 1696.0) - 1.0).abs() < 1e-12, "{encapsulation}");
    }
}

/// RFC 6349: 8127 frames of 1538 bytes a second on Fast Ethernet, 94.9 Mbit/s of TCP payload; the same for other
/// rates and for jumbo frames (payload over frame: 1460/1538, 8960/9038; UDP 1472/1538, 8972/9038).
#[test]
fn ethernet() {
    for (medium, mtu, kind, message, published) in [
        ("ethernet-10", 1500, "tcp-stream", 65_536, 9.493e6),
        ("ethernet-100", 1500, "tcp-stream", 65_536, 94.93e6),
        // 118.7 and 123.9 MB/s
        ("ethernet-1g", 1500, "tcp-stream", 65_536, 949.3e6),
        ("ethernet-1g", 9000, "tcp-stream", 65_536, 991.4e6),
        ("ethernet-1g", 1500, "udp-stream", 1472, 957.1e6),
        ("ethernet-1g", 9000, "udp-stream", 8972, 992.7e6),
        ("ethernet-2.5g", 1500, "tcp-stream", 65_536, 2373.2e6),
        ("ethernet-10g", 1500, "tcp-stream", 65_536, 9492.8e6),
        ("ethernet-100g", 9000, "udp-stream", 8972, 99.27e9),
    ] {
        let link = format!("medium = \"{medium}\"\nmtu = \"{mtu} B\"");
        let outcome = limits(&pair(&link, "", kind, &format!("{message} B")));
        let flow = &outcome.flows["stream"];
        assert!((flow.goodput_bit_per_s / published - 1.0).abs() < 1e-4, "{medium} {mtu} {kind}: {flow:?}");
    }
    let outcome = limits(&pair("medium = \"ethernet-100\"", "", "tcp-stream", "64 kB"));
    let flow = &outcome.flows["stream"];
    assert_eq!((flow.goodput_bit_per_s / (1460.0 * 8.0)) as u64, 8127);
    let names: Vec<_> = flow.stages.iter().map(|stage| stage.name.as_str()).collect();
    insta::assert_snapshot!(names.join(", "), @"line rate, other traffic, preamble and gap, Ethernet header and FCS, Ethernet padding, IP headers, TCP headers, goodput");
    insta::assert_snapshot!(flow.summary, @"link `line` limits `stream` to 94.93 Mbit/s: framing and headers take 5.1 % of the line; next are acknowledgements on link `line` at 3.48 Gbit/s");
}

/// The shortest frame: 1 byte of UDP is padded to 46 bytes, 84 bytes on the line, 148 809 frames per second at 100 Mbit/s.
#[test]
fn shortest_ethernet_frame_rate_is_148809_per_second() {
    let outcome = limits(&pair("medium = \"ethernet-100\"", "", "udp-stream", "1 B"));
    let flow = &outcome.flows["stream"];
    assert_eq!((flow.goodput_bit_per_s / 8.0) as u64, 148_809);
    assert!((stage(flow, "Ethernet padding") / (100e6 * 29.0 / 84.0) - 1.0).abs() < 1e-12);
}

/// HDLC framing of 7 bytes around a packet of 1500.
#[test]
fn point_to_point() {
    let link = "medium = \"point-to-point\"\nrate = \"2 Mbit/s\"\noverhead = \"7 B\"";
    let outcome = limits(&pair(link, "", "udp-stream", "1472 B"));
    let flow = &outcome.flows["stream"];
    assert!((flow.goodput_bit_per_s / (2e6 * 1472.0 / 1507.0) - 1.0).abs() < 1e-12);
    assert!((stage(flow, "link overhead") / (2e6 * 1500.0 / 1507.0) - 1.0).abs() < 1e-12);
    assert_eq!(flow.next, None);
}
