//! Costs that the check reports as having no effect: nothing changes without them, in `limit` and in `simulate`. It reports no others, unless their counterpart
//! of the other protocol is also given.

use engpass_limit::limit;
use engpass_simulate::simulate;
use engpass_testbed::{Campaign, Source, load};

const KEYS: [&str; 6] = ["per_datagram", "per_fragment", "per_byte", "per_write", "per_segment", "per_ack"];

fn campaign(text: &str) -> Campaign {
    let source = Source { name: "test.toml".to_owned(), text: text.to_owned() };
    load(&source, &[], None).unwrap_or_else(|found| panic!("{}", found.render(false)))
}

/// Returns a pair of hosts with all costs except those in `without`: `a.cost.per_byte`, say.
fn pair(stream: &str, memory: &str, without: &[String]) -> Campaign {
    let table = |host: &str, table: &str, time: u32| {
        let given: Vec<String> = KEYS
            .iter()
            .filter(|key| !without.contains(&format!("{host}.{table}.{key}")))
            .map(|key| format!("{key} = \"{} ns\"", if *key == "per_byte" { 1 } else { time }))
            .collect();
        format!("{table} = {{ {} }}", given.join(", "))
    };
    campaign(&format!(
        r#"
        [host.a]
        {}
        {}
        {memory}
        [host.b]
        {}
        {}
        [link.line]
        ends = ["a", "b"]
        medium = "ethernet-1g"
        [traffic.t]
        from = "a"
        to = "b"
        {stream}
        [run]
        duration = "20 ms"
        "#,
        table("a", "cost", 9_000),
        table("a", "receive_cost", 9_000),
        table("b", "cost", 12_000),
        table("b", "receive_cost", 12_000),
    ))
}

/// Returns the flows by `limit` and by `simulate`, as exact text.
fn rates(campaign: &Campaign) -> [String; 2] {
    let point = campaign.point("base", &[]).unwrap_or_else(|found| panic!("{}", found.render(false)));
    let most = limit(&point.testbed, &point.topology);
    let got = simulate(&point.testbed, &point.topology, 1, &|| false).expect("the simulation succeeds");
    [format!("{:?}", most.flows), format!("{:?}", got.flows)]
}

/// Returns the costs that the check reports as having no effect: `a.cost.per_byte`.
fn warned(campaign: &Campaign) -> Vec<String> {
    let found = campaign.warnings().to_json();
    let path = |one: &serde_json::Value| {
        assert_eq!(one["code"], "no-effect", "{one}");
        one["path"].as_str().expect("the warning has a path").replacen("host.", "", 1)
    };
    found.as_array().expect("the warnings are a list").iter().map(path).collect()
}

/// Returns the counterpart of a cost for the other protocol.
fn like(key: &str) -> &'static str {
    match key {
        "per_datagram" => "per_write",
        "per_write" => "per_datagram",
        "per_fragment" => "per_segment",
        "per_segment" | "per_ack" => "per_fragment",
        _ => panic!("`{key}` has no counterpart"),
    }
}

#[test]
fn only_costs_warned_of_have_no_effect() {
    let small = "memory = { bandwidth = \"500 MB/s\" }";
    for (stream, memory) in [
        ("kind = \"udp-stream\"\nmessage = \"4 kB\"", ""),
        ("kind = \"tcp-stream\"\nmessage = \"4 kB\"", ""),
        ("kind = \"udp-stream\"\nmessage = \"4 kB\"", small),
    ] {
        let full = pair(stream, memory, &[]);
        let idle = warned(&full);
        assert_eq!(rates(&pair(stream, memory, &idle)), rates(&full), "{stream}: {idle:?}");
        for (host, table) in [("a", "cost"), ("a", "receive_cost"), ("b", "cost"), ("b", "receive_cost")] {
            for key in KEYS {
                let one = format!("{host}.{table}.{key}");
                if !idle.contains(&one) {
                    // Costs hidden behind the memory in `simulate` count for the CPU in `limit`.
                    let without = rates(&pair(stream, memory, std::slice::from_ref(&one)));
                    if without == rates(&full) {
                        let alone = pair(stream, memory, &[format!("{host}.{table}.{}", like(key))]);
                        assert_ne!(
                            rates(&alone),
                            without,
                            "{stream}: the counterpart of `{one}` has an effect"
                        );
                        assert!(warned(&alone).contains(&one), "{stream}: no warning for `{one}`");
                    }
                }
            }
        }
    }
}

/// The only cost is one per byte, and the memory transfers of a byte take longer.
#[test]
fn per_byte_cost_hidden_by_memory_has_no_effect() {
    let others: Vec<String> = ["a.cost", "a.receive_cost", "b.cost", "b.receive_cost"]
        .iter()
        .flat_map(|table| KEYS.map(|key| format!("{table}.{key}")))
        .filter(|one| one != "a.cost.per_byte")
        .collect();
    for stream in ["kind = \"udp-stream\"\nmessage = \"4 kB\"", "kind = \"tcp-stream\"\nmessage = \"4 kB\""] {
        // 3 transfers at 300 MB/s take 10 ns, the copy alone 6.7: the 1 ns in its place is never seen.
        let memory = "memory = { bandwidth = \"300 MB/s\" }";
        let hidden = pair(stream, memory, &others);
        assert_eq!(warned(&hidden), ["a.cost.per_byte"]);
        let without: Vec<String> = others.iter().cloned().chain(["a.cost.per_byte".to_owned()]).collect();
        let goodputs = |campaign: &Campaign| {
            let point = campaign.point("base", &[]).expect("a checked file has a base point");
            let got =
                simulate(&point.testbed, &point.topology, 1, &|| false).expect("the simulation succeeds");
            (limit(&point.testbed, &point.topology).flows["t"].goodput_bit_per_s, format!("{:?}", got.flows))
        };
        assert_eq!(goodputs(&pair(stream, memory, &without)), goodputs(&hidden));
        // If the copy is the bottleneck, it is not hidden.
        let slow = "memory = { bandwidth = \"300 MB/s\", copy = \"50 MB/s\" }";
        assert_eq!(warned(&pair(stream, slow, &others)), Vec::<String>::new());
    }
}
