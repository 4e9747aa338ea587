//! Tests of what a valid file becomes.

use engpass_model::circuit::Category;
use engpass_model::source::Traffic;
use engpass_model::unit::Size;
use engpass_testbed::{Campaign, Diagnostics, Source, load};

const KYOTO: &str = include_str!("files/kyoto.toml");

fn source(text: &str) -> Source {
    Source { name: "kyoto.toml".into(), text: text.into() }
}

fn kyoto(set: &[(&str, &str)]) -> Result<Campaign, Diagnostics> {
    let set: Vec<(String, String)> =
        set.iter().map(|(path, value)| (path.to_string(), value.to_string())).collect();
    load(&source(KYOTO), &set, None)
}

fn codes(result: Result<Campaign, Diagnostics>) -> Vec<&'static str> {
    result.unwrap_err().list().iter().map(|found| found.code).collect()
}

#[test]
fn kyoto_testbed_loads() {
    let campaign = kyoto(&[]).unwrap_or_else(|found| panic!("{found}"));
    assert_eq!(campaign.name(), "IP over ATM on a congested OC-3c link");
    assert_eq!(campaign.variants(), ["free", "loaded", "shaped-16"]);
    assert_eq!((campaign.repeats(), campaign.seed()), (5, 1));
    let [axis] = campaign.axes() else { panic!("expected one sweep axis") };
    assert_eq!(axis.path, "traffic.stream.message");
    assert_eq!(axis.values.len(), 64);
    assert_eq!((axis.values[8].text.as_str(), axis.values[8].number), ("9 kB", Some(9000.0)));
    assert_eq!(axis.values[8].unit.as_deref(), Some("B"));
    assert!(campaign.warnings().is_empty());
}

#[test]
fn point_applies_its_variant_and_sweep_value() {
    let campaign = kyoto(&[]).unwrap();
    let at = [("traffic.stream.message".to_string(), "17 kB".to_string())];
    let point = campaign.point("shaped-16", &at).unwrap();
    let Traffic::UdpStream(stream) = &point.testbed.traffic["stream"] else {
        panic!("expected a udp-stream")
    };
    assert_eq!(stream.message, Size(17_000));
    let circuits = &point.topology.circuits;
    assert_eq!(
        circuits.iter().map(|circuit| circuit.name.as_str()).collect::<Vec<_>>(),
        ["data", "interference"]
    );
    assert_eq!(circuits[0].shaping.unwrap().per_second() as u64, 56_513);
    assert_eq!((circuits[1].category, circuits[1].shaping), (Category::Cbr, None));
    assert_eq!(point.topology.flows[1].cells.unwrap().per_second() as u64, 295_248);
    let hops = |circuit: usize| circuits[circuit].route.iter().map(|hop| hop.link).collect::<Vec<_>>();
    assert_eq!((hops(0), hops(1)), (vec![0, 2], vec![1, 2]));
    // Hosts come first, then switches.
    assert_eq!(point.topology.nodes, ["ss2", "ss20", "generator", "atomis5"]);
    assert_eq!(point.topology.hosts, 3);

    let free = campaign.point("free", &at).unwrap();
    assert_eq!(free.topology.flows[1].cells, None);
    assert_eq!(free.topology.circuits[0].shaping, None);
}

#[test]
fn set_overrides_the_variant_and_ends_a_sweep() {
    let campaign =
        kyoto(&[("traffic.stream.message", "9 kB"), ("circuit.data.shaping", "20 %"), ("run.repeats", "2")])
            .unwrap();
    assert!(campaign.axes().is_empty());
    assert_eq!(campaign.repeats(), 2);
    let point = campaign.point("shaped-16", &[]).unwrap();
    assert_eq!(point.topology.circuits[0].shaping.unwrap().per_second() as u64, 70_641);
}

#[test]
fn point_without_axis_value_uses_the_file_or_first_value() {
    let message = |campaign: &Campaign| match campaign.point("free", &[]).unwrap().testbed.traffic["stream"] {
        Traffic::UdpStream(ref stream) => stream.message,
        ref other => panic!("{}", other.kind()),
    };
    assert_eq!(message(&kyoto(&[]).unwrap()), Size(9000));
    let without = KYOTO.replace("message = \"9 kB\"", "");
    assert_eq!(message(&load(&source(&without), &[], None).unwrap()), Size(1000));
}

#[test]
fn set_changes_the_traffic_kind() {
    let campaign = kyoto(&[("traffic.stream.kind", "tcp-stream")]).unwrap();
    let point = campaign.point("free", &[]).unwrap();
    assert_eq!(point.testbed.traffic["stream"].kind(), "tcp-stream");
}

#[test]
fn load_rejects_more_points_than_allowed() {
    assert!(load(&source(KYOTO), &[], Some(960)).is_ok());
    assert_eq!(codes(load(&source(KYOTO), &[], Some(959))), ["too-many-points"]);
}

#[test]
fn example_in_the_message_for_an_empty_file_loads() {
    let found = load(&source(""), &[], None).unwrap_err();
    let (_, example) = found.list()[0].help.as_deref().unwrap().split_once("\n\n").unwrap();
    let campaign = load(&source(example), &[], None).unwrap_or_else(|found| panic!("{found}"));
    assert_eq!((campaign.name(), campaign.variants()), ("kyoto", &["base".to_string()][..]));
    let point = campaign.point("base", &[]).unwrap();
    let flow = &point.topology.flows[0];
    assert_eq!((flow.circuit, flow.forward, flow.route.len(), flow.cells), (None, true, 1, None));
    assert_eq!(point.topology.links[0].mtu, 1500);
}

/// Two paths of equal length, and a circuit that is used against its direction.
const DIAMOND: &str = r#"
[host.a]
[host.b]
[switch.left]
kind = "atm"
[switch.right]
kind = "atm"
[link.b-right]
ends = ["b", "right"]
medium = "oc-3c"
[link.a-left]
ends = ["a", "left"]
medium = "ds3"
[link.a-right]
ends = ["right", "a"]
medium = "oc-3c"
[link.left-b]
ends = ["left", "b"]
medium = "oc-3c"
[circuit.back]
from = "b"
to = "a"
shaping = "50 %"
policing = { rate = "10 Mbit/s payload", tolerance = "100 us" }
[traffic.t]
kind = "udp-stream"
from = "a"
to = "b"
message = "1 kB"
[traffic.bursts]
kind = "on-off"
from = "a"
to = "b"
rate = "100 %"
on = "1 ms"
off = "1 ms"
"#;

#[test]
fn route_is_shortest_and_ties_go_to_the_first_links() {
    let campaign = load(&source(DIAMOND), &[], None).unwrap_or_else(|found| panic!("{found}"));
    let topology = campaign.point("base", &[]).unwrap().topology;
    let way = |route: &[engpass_testbed::topology::Hop]| {
        let name = |hop: &engpass_testbed::topology::Hop| {
            format!("{}>{}", topology.nodes[hop.from], topology.nodes[hop.to])
        };
        route.iter().map(name).collect::<Vec<_>>()
    };
    // From `b` both paths have two links; `b-right` comes first in the file.
    assert_eq!(way(&topology.circuits[0].route), ["b>right", "right>a"]);
    assert_eq!(way(&topology.flows[0].route), ["a>right", "right>b"]);
    assert_eq!((topology.flows[0].circuit, topology.flows[0].forward), (Some(0), false));
    // From `a` the first link in the file is `a-left`, and its line rate is that of DS3.
    assert_eq!(way(&topology.circuits[1].route), ["a>left", "left>b"]);
    assert_eq!(
        (topology.circuits[1].name.as_str(), topology.circuits[1].category),
        ("bursts", Category::Ubr)
    );
    assert_eq!(topology.flows[1].cells.unwrap().per_second() as u64, 96_000);
    let (pace, tolerance, action) = topology.circuits[0].policing.unwrap();
    assert_eq!(action, engpass_model::shape::PolicingAction::Discard);
    assert_eq!((pace.per_second() as u64, tolerance.ps()), (26_041, 100_000_000));
}

#[test]
fn adsl_line_with_pppoe_has_an_mtu_of_1492_bytes() {
    let text = r#"
[host.server]
[host.home]
[switch.dslam]
kind = "atm"
schedule = "fifo"
[link.uplink]
ends = ["server", "dslam"]
medium = "oc-3c"
[link.line]
ends = ["dslam", "home"]
medium = "atm"
rate = "8 Mbit/s"
delay = "5 ms"
[circuit.pvc]
from = "server"
to = "home"
encapsulation = "pppoe-llc"
[traffic.download]
kind = "tcp-stream"
from = "server"
to = "home"
message = "64 KiB"
"#;
    let campaign = load(&source(text), &[], None).unwrap_or_else(|found| panic!("{found}"));
    let point = campaign.point("base", &[]).unwrap();
    assert_eq!(point.topology.circuits[0].mtu, 1492);
    assert_eq!(point.topology.links[1].lines.map(|line| line.rate), [8_000_000; 2]);
}

#[test]
fn sweep_values_keep_their_units_and_numbers() {
    let set = |sweep: &str| kyoto(&[("sweep", sweep), ("run.repeats", "1")]);
    let texts = |sweep: &str| -> Vec<String> {
        let campaign = set(sweep).unwrap_or_else(|found| panic!("{found}"));
        campaign.axes()[0].values.iter().map(|value| value.text.clone()).collect()
    };
    let range = |path: &str, range: &str| format!("{{ \"{path}\" = {range} }}");
    assert_eq!(
        texts(&range("circuit.data.shaping", r#"{ from = "16 %", to = "16.5 %", step = "0.25 %" }"#)),
        ["16 %", "16.25 %", "16.5 %"]
    );
    assert_eq!(
        texts(&range("traffic.stream.message", r#"{ from = "1 KiB", to = "3 kB", step = "1 kB" }"#)),
        ["1 KiB", "1.9765625 KiB"]
    );
    assert_eq!(
        texts(&range("traffic.stream.message", r#"{ from = "1 kB", to = "10 kB", factor = 1.5 }"#)),
        ["1 kB", "1.5 kB", "2.25 kB", "3.375 kB", "5.063 kB", "7.595 kB"]
    );
    assert_eq!(
        texts(&range(
            "traffic.interference.rate",
            r#"{ from = "1 Mbit/s line", to = "2 Mbit/s line", step = "500 kbit/s line" }"#
        )),
        ["1 Mbit/s line", "1.5 Mbit/s line", "2 Mbit/s line"]
    );
    let shares = set(&range("circuit.data.shaping", r#"["16 %", "16.41 %"]"#)).unwrap();
    let values = &shares.axes()[0].values;
    assert_eq!((values[1].number, values[1].unit.as_deref()), (Some(0.1641), Some("")));
    let words = set(&range("circuit.data.encapsulation", r#"["llc-snap", "vc-mux"]"#)).unwrap();
    assert_eq!((words.axes()[0].values[0].number, words.axes()[0].values[0].unit.as_deref()), (None, None));
}

#[test]
fn sweep_may_vary_hosts_and_traffic_kinds() {
    let sweep = r#"{ traffic.stream.kind = ["udp-stream", "tcp-stream"], "traffic.interference.from" = ["generator", "ss2"] }"#;
    let campaign = kyoto(&[("sweep", sweep)]).unwrap_or_else(|found| panic!("{found}"));
    assert_eq!(campaign.axes().len(), 2);
    let at = [
        ("traffic.stream.kind".to_string(), "tcp-stream".to_string()),
        ("traffic.interference.from".to_string(), "ss2".to_string()),
    ];
    let point = campaign.point("loaded", &at).unwrap();
    assert_eq!(point.testbed.traffic["stream"].kind(), "tcp-stream");
    assert_eq!(point.topology.flows[1].from, 0);
}

#[test]
fn error_at_only_some_points_is_found() {
    // An IP packet of 65 520 bytes fits an AAL5 SDU by itself, but not with a PPPoE header.
    let sweep = r#"{ "circuit.data.encapsulation" = ["vc-mux", "pppoe-llc"] }"#;
    let found = kyoto(&[("sweep", sweep), ("circuit.data.mtu", "65520 B")]).unwrap_err();
    assert_eq!(found.list().len(), 1, "{found}");
    assert_eq!(found.list()[0].code, "out-of-range");
    assert_eq!(found.list()[0].source.as_deref(), Some("--set circuit.data.mtu"));
}

#[test]
fn diagnostics_as_json_have_the_documented_fields() {
    let found = kyoto(&[("host.ss2.cost.per_byte", "9")]).unwrap_err().to_json();
    assert_eq!(found[0]["code"], "missing-unit");
    assert_eq!(found[0]["source"], "--set host.ss2.cost.per_byte");
    assert!(found[0]["line"].is_null());
    let found = load(&source(&KYOTO.replace("medium = \"oc-3c\"", "medum = \"oc-3c\"")), &[], None)
        .unwrap_err()
        .to_json();
    let unknown = found.as_array().unwrap().iter().find(|found| found["code"] == "unknown-key").unwrap();
    assert_eq!(
        (&unknown["line"], &unknown["column"], &unknown["file"]),
        (&15.into(), &1.into(), &"kyoto.toml".into())
    );
    assert_eq!((&unknown["path"], &unknown["severity"]), (&"link.sender.medum".into(), &"error".into()));
}

#[test]
fn generated_schema_files_are_up_to_date() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../schema");
    for (name, value) in
        [("testbed.schema.json", engpass_testbed::schema()), ("catalogue.json", engpass_testbed::catalogue())]
    {
        let text = std::fs::read_to_string(folder.join(name)).unwrap();
        assert!(
            text == format!("{value:#}\n"),
            "schema/{name} is stale: run the example `generate` with `write`"
        );
    }
}

#[test]
fn crlf_file_has_the_same_lines_and_columns() {
    let text = KYOTO.replace("per_byte", "per_bite").replace('\n', "\r\n");
    let found = load(&source(&text), &[], None).unwrap_err();
    assert_eq!((found.list()[0].line, found.list()[0].column), (Some(4), Some(36)));
    assert!(!found.render(false).contains('\r'));
    assert!(load(&source(&KYOTO.replace('\n', "\r\n")), &[], None).is_ok());
}

#[test]
fn campaign_and_diagnostics_are_send_and_sync() {
    fn shared<T: Send + Sync>() {}
    shared::<Campaign>();
    shared::<Diagnostics>();
}

#[test]
fn summary_counts_errors_and_warnings() {
    let said = |changes: &[(&str, &str)]| {
        let text = changes.iter().fold(KYOTO.to_string(), |text, (old, new)| text.replace(old, new));
        let source = Source { name: "lab.toml".into(), text };
        load(&source, &[], None).unwrap_err().summary()
    };
    let overruled = ("[variant.free]", "[variant.free]\n\"traffic.stream.message\" = \"5 kB\"");
    assert_eq!(said(&[("repeats = 5", "repeats = 0")]), "1 error in lab.toml");
    assert_eq!(
        said(&[("repeats = 5", "repeats = 0"), ("oc-3c", "oc-3"), overruled]),
        "4 errors and 1 warning in lab.toml"
    );
    let many: String = (0..300).map(|number| format!("[host.h{number}]\nx = 1\n")).collect();
    assert_eq!(said(&[("[switch.atomis5]", &format!("{many}[switch.atomis5]"))]), "300 errors in lab.toml");
}

/// Characters that change the direction of text, in the order of their code points.
const BIDI: &str =
    "\u{61C}\u{200E}\u{200F}\u{202A}\u{202B}\u{202C}\u{202D}\u{202E}\u{2066}\u{2067}\u{2068}\u{2069}";

#[test]
fn names_with_hidden_characters_are_rejected_and_not_printed() {
    let small = "[host.a]\n[host.b]\n[link.l]\nends = [\"a\", \"b\"]\nmedium = \"ethernet-1g\"\n\
                 [traffic.t]\nkind = \"udp-stream\"\nfrom = \"a\"\nto = \"b\"\nmessage = \"1 kB\"\n";
    let is_hidden = |c: char| BIDI.contains(c) || (c.is_control() && c != '\n');
    let mut written: Vec<(char, String)> = BIDI.chars().map(|c| (c, c.to_string())).collect();
    // TOML allows control characters in a text only as escapes.
    let escaped = BIDI.chars().chain("\u{1B}\n\u{9B}".chars());
    written.extend(escaped.map(|c| (c, format!("\\u{:04X}", u32::from(c)))));
    for (c, name) in written {
        for what in ["host", "switch", "router", "link", "circuit", "traffic", "variant", "name"] {
            let text = match what {
                "name" => format!("name = \"a{name}b\"\n{small}"),
                what => format!("{small}[{what}.\"a{name}b\"]\n"),
            };
            let found = load(&source(&text), &[], None).expect_err("the name is rejected");
            let code = format!("contains U+{:04X}", u32::from(c));
            let told = found.list().iter().any(|one| one.message.contains(&code) && one.line.is_some());
            assert!(told, "{what}: {found}");
            let printed = [found.render(false), found.to_json().to_string(), found.summary()].concat();
            assert!(!printed.contains(is_hidden), "{what}: {printed:?}");
        }
    }
}

/// Returns the number of listed findings, the number of the others, and the last line of the text.
fn kept_and_counted(text: &str) -> (usize, usize, String) {
    let found = load(&source(text), &[], None).expect_err("the file has errors");
    let shown = found.render(false);
    (found.list().len(), found.more(), shown.trim_end().lines().last().unwrap_or_default().to_owned())
}

#[test]
fn diagnostics_beyond_a_thousand_are_only_counted() {
    let keys: String = (0..5000).map(|number| format!("k{number} = 1\n")).collect();
    for table in ["", "[host.a]\n", "[run]\n"] {
        let found = kept_and_counted(&format!("{table}{keys}"));
        assert_eq!(found, (1000, 4000, "and 4,000 more".into()), "{table}");
    }
    let hosts: String = (0..2000).map(|number| format!("[host.h{number}]\nx = 1\n")).collect();
    assert_eq!(kept_and_counted(&hosts).1, 1000);
    let twice = "[host.a]\n".to_owned() + &"x = 1\n".repeat(3001);
    assert_eq!(kept_and_counted(&twice).1, 2001, "3000 keys are duplicates, and the first is unknown");
    // Too many invalid paths in sweeps or variants end the check early.
    let swept = keys.replace("= 1", "= [1]");
    for table in [format!("[sweep]\n{swept}"), format!("[variant.v]\n{keys}")] {
        let (kept, _, last) = kept_and_counted(&format!("[host.a]\n{table}"));
        assert_eq!((kept, last.as_str()), (1000, "and maybe more: the check stops at 1,000 errors"));
    }
}

#[test]
fn key_missing_at_every_point_is_counted_once() {
    // Each of the two variants could supply the missing key.
    let flows: String = (0..1500)
        .map(|number| format!("[traffic.f{number}]\nkind = \"udp-stream\"\nfrom = \"a\"\nto = \"b\"\n"))
        .collect();
    let small = "[host.a]\n[host.b]\n[link.l]\nends = [\"a\", \"b\"]\nmedium = \"ethernet-1g\"\n";
    let found = kept_and_counted(&format!("{small}{flows}[variant.one]\n[variant.two]\n"));
    assert_eq!(found, (1000, 500, "and 500 more".into()));
}

#[test]
fn sweep_values_with_the_same_error_give_one_diagnostic() {
    let text = KYOTO.replace(
        "\"traffic.stream.message\" = {",
        "\"circuit.data.mtu\" = { from = \"1 B\", to = \"60 B\", step = \"1 B\" }\n\"traffic.stream.message\" = {",
    );
    let (kept, more, _) = kept_and_counted(&text);
    assert_eq!((kept, more), (1, 0));
}

#[test]
fn load_rejects_text_with_millions_of_values() {
    for text in ["x = [".to_owned() + &"1,".repeat(3 << 20) + "]", "a\n".repeat(3 << 20), "[".repeat(3 << 20)]
    {
        let found = load(&source(&text), &[], None).expect_err("the text is not a testbed");
        assert_eq!(found.list()[0].code, "too-large");
        assert!(
            found.list()[0].message.contains("lines or values, but a testbed may have at most 1,048,576")
        );
    }
}
