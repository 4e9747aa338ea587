//! For any input the reader does not panic, and it accepts the file or reports an error.

use std::fmt::Write as _;

use engpass_testbed::{MAX_TEXT, Source, load};
use proptest::prelude::*;

const KYOTO: &str = include_str!("files/kyoto.toml");

/// Checks that loading succeeds or reports at least one finding that can be printed.
fn survives(text: &str, set: &[(String, String)]) {
    let source = Source { name: "x.toml".into(), text: text.into() };
    match load(&source, set, Some(10_000)) {
        Ok(campaign) => {
            let all_first: Vec<_> =
                campaign.axes().iter().map(|axis| (axis.path.clone(), axis.values[0].text.clone())).collect();
            for variant in campaign.variants() {
                let warned = campaign.warnings().render(false);
                if let Err(found) = campaign.point(variant, &all_first) {
                    // Allowed only for a `--set` value that other variants accept.
                    assert!(warned.contains("cannot run with this value"), "a checked point fails: {found}");
                }
            }
            campaign.warnings().render(true);
        }
        Err(found) => {
            assert!(found.has_errors());
            assert!(!found.render(false).is_empty() && !found.render(true).is_empty());
            let json = found.to_json();
            assert_eq!(json.as_array().map(Vec::len), Some(found.list().len()));
        }
    }
}

#[test]
fn malformed_files_load_or_give_diagnostics() {
    let long_line = format!("name = \"{}\"\nbad = {}", "x".repeat(1 << 20), "y".repeat(1 << 20));
    let dotted = format!("{} = 1", vec!["a"; 100_000].join("."));
    let header = format!("[{}]", vec!["a"; 100_000].join("."));
    let nested = format!("x = {}", "[".repeat(500_000));
    let inline = format!("x = {}", "{ a = ".repeat(100_000));
    for text in [
        "",
        "\n",
        "\u{feff}",
        "\u{feff}[host.a]",
        "\0\0\0",
        "[host]",
        "host = 1",
        "[[host]]",
        "host = []",
        "[run]\nduration = {}",
        "[variant]",
        "[sweep]",
        "sweep = 5",
        "variant = 5",
        "[host.\"\"]",
        "[host.\"\\u0007\"]",
        "run = []",
        "[traffic.x]\nkind = []",
        "[sweep]\n\"\" = [1]",
        "[sweep]\na = []",
        "[variant.a]\n\"\" = 5",
        "[link.x]\nends = []",
        &long_line,
        &dotted,
        &header,
        &nested,
        &inline,
    ] {
        survives(text, &[]);
    }
}

#[test]
fn load_rejects_text_over_four_mebibytes() {
    let source = Source { name: "big.toml".into(), text: "x".repeat(MAX_TEXT + 1) };
    let found = load(&source, &[], None).unwrap_err();
    assert_eq!(found.list()[0].code, "too-large");
    assert_eq!(Source::from_bytes("big", &vec![0xff; MAX_TEXT + 1]).unwrap_err().list()[0].code, "too-large");
}

#[test]
fn binary_file_error_names_the_line() {
    let found = Source::from_bytes("x.toml", b"name = \"a\"\n\x89PNG\r\n\xff").unwrap_err();
    assert!(found.render(false).contains("0x89 in line 2"), "{found}");
    assert!(Source::from_bytes("x.toml", KYOTO.as_bytes()).is_ok());
}

#[test]
fn large_file_full_of_errors_gives_diagnostics() {
    let mut text = String::new();
    for i in 0..40_000 {
        writeln!(text, "[host.h{i}]\n[link.l{i}]\nends = [\"h{i}\", \"g{i}\"]\nmedum = \"oc-3c\"").unwrap();
    }
    survives(&text, &[]);
    let mut text = String::new();
    for i in 0..40_000 {
        writeln!(text, "[host.h{i}]\n[link.l{i}]\nends = [\"h{i}\", \"g{i}\"]\nmedium = \"oc-3c\"").unwrap();
    }
    survives(&text, &[]);
}

#[test]
fn large_valid_file_loads() {
    let mut text = String::from("[switch.s]\nkind = \"atm\"\n");
    for i in 0..2_000 {
        writeln!(text, "[host.h{i}]\n[link.l{i}]\nends = [\"h{i}\", \"s\"]\nmedium = \"oc-3c\"").unwrap();
    }
    for i in 1..2_000 {
        writeln!(text, "[circuit.c{i}]\nfrom = \"h0\"\nto = \"h{i}\"").unwrap();
    }
    text += "[traffic.t]\nkind = \"udp-stream\"\nfrom = \"h0\"\nto = \"h7\"\nmessage = \"1 kB\"\n";
    let source = Source { name: "x.toml".into(), text };
    let campaign = load(&source, &[], None).unwrap_or_else(|found| panic!("{found}"));
    let point = campaign.point("base", &[]).unwrap();
    assert_eq!(point.topology.flows[0].circuit, Some(6));
}

#[derive(Clone, Debug)]
enum Change {
    Delete { at: usize, length: usize },
    Duplicate { at: usize, length: usize },
    Replace { at: usize, with: char },
    Value { line: usize, with: String },
    SwapLines { one: usize, other: usize },
}

fn change() -> impl Strategy<Value = Change> {
    let at = 0usize..2000;
    let value = prop_oneof![
        Just("5".to_string()),
        Just("-1".into()),
        Just("\"\"".into()),
        Just("[]".into()),
        Just("{}".into()),
        Just("1e400".into()),
        Just("nan".into()),
        Just("18446744073709551615".into()),
        Just("\"18446744073709551615 B\"".into()),
        Just("\"18446744073709551615 bit/s line\"".into()),
        Just("\"0.0000001 %\"".into()),
        Just("\"18446744073709551615 cells/s\"".into()),
        Just("\"200 min\"".into()),
        Just("\"ss2\"".into()),
        Just("\"atm\"".into()),
        Just("\"on-off\"".into()),
        Just("{ from = \"1 B\", to = \"9 B\", step = \"3 B\" }".into()),
        "\"[0-9]{1,12} (B|kB|s|ps|%|Mbit/s|Mbit/s line|cells|cells/s)\"",
    ];
    prop_oneof![
        (at.clone(), 1usize..40).prop_map(|(at, length)| Change::Delete { at, length }),
        (at.clone(), 1usize..80).prop_map(|(at, length)| Change::Duplicate { at, length }),
        (at, any::<char>()).prop_map(|(at, with)| Change::Replace { at, with }),
        (0usize..60, value).prop_map(|(line, with)| Change::Value { line, with }),
        (0usize..60, 0usize..60).prop_map(|(one, other)| Change::SwapLines { one, other }),
    ]
}

fn changed(text: &str, change: &Change) -> String {
    let chars: Vec<char> = text.chars().collect();
    let cut = |at: usize| at % chars.len().max(1);
    match change {
        Change::Delete { at, length } => {
            let at = cut(*at);
            chars.iter().enumerate().filter(|(i, _)| *i < at || *i >= at + length).map(|(_, c)| c).collect()
        }
        Change::Duplicate { at, length } => {
            let at = cut(*at);
            let end = (at + length).min(chars.len());
            chars[..end].iter().chain(&chars[at..end]).chain(&chars[end..]).collect()
        }
        Change::Replace { at, with } => {
            let at = cut(*at);
            chars.iter().enumerate().map(|(i, c)| if i == at { *with } else { *c }).collect()
        }
        Change::Value { line, with } => {
            let lines = text.lines().enumerate().map(|(i, text)| match text.split_once('=') {
                Some((key, _)) if i == *line => format!("{key}= {with}\n"),
                _ => format!("{text}\n"),
            });
            lines.collect()
        }
        Change::SwapLines { one, other } => {
            let mut lines: Vec<&str> = text.lines().collect();
            if *one < lines.len() && *other < lines.len() {
                lines.swap(*one, *other);
            }
            lines.join("\n")
        }
    }
}

proptest! {
    #![proptest_config(engpass_cases::cases(400))]

    #[test]
    fn randomly_changed_file_loads_or_gives_diagnostics(changes in proptest::collection::vec(change(), 1..5)) {
        let text = changes.iter().fold(KYOTO.to_string(), |text, change| changed(&text, change));
        survives(&text, &[]);
    }

    #[test]
    fn random_text_loads_or_gives_diagnostics(text in "\\PC{0,200}") {
        survives(&text, &[]);
    }

}

proptest! {
    #![proptest_config(engpass_cases::cases(60))]

    #[test]
    fn random_set_option_loads_or_gives_diagnostics(path in "((traffic|host|run|sweep|variant|switch)\\.(stream|ss2|free|seed|atomis5)(\\.[a-z_]{1,8})?|\\PC{0,20})", value in "\\PC{0,20}") {
        survives(KYOTO, &[(path, value)]);
    }
}
