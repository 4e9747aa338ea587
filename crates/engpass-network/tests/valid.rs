//! What `check` accepts is simulated: no panic, books that balance, figures that can be. Each file here once went wrong.

mod common;

use common::run;

const PAIR: &str = "[host.a]\n[host.b]\n";

/// A line of its own between two hosts, and what goes over it; a run of a second.
fn pair(link: &str, rest: &str) -> String {
    format!("{PAIR}[link.line]\nends = [\"a\", \"b\"]\n{link}\n{rest}\n[run]\nduration = \"1 s\"\n")
}

const STREAM: &str = "[traffic.t]\nkind = \"udp-stream\"\nfrom = \"a\"\nto = \"b\"\nmessage = \"1000 B\"\n";

#[test]
fn a_line_of_cells_that_no_circuit_crosses_is_idle() {
    let more = "[router.r]\n[link.more]\nends = [\"r\", \"a\"]\nmedium = \"oc-3c\"\n";
    let outcome = run(&pair("medium = \"ethernet-10\"", &format!("{more}{STREAM}")), "base", &[]);
    let (_, line) = &outcome.links[1];
    let idle: u128 =
        line.ledger.iter().filter(|(account, _)| account.starts_with("idle")).map(|(_, parts)| parts).sum();
    assert!(idle > line.capacity / 2 && line.capacity > 0, "{:?}", line.ledger);
    assert_eq!(line.directions[0].utilisation, 0.0);
}
