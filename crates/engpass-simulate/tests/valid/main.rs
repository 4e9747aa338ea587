//! Everything that `check` accepts can be simulated, without panic and with a ledger that balances. Each file here once failed.

#[path = "../common/mod.rs"]
mod common;
mod edges;

use std::cell::RefCell;

use common::{point, run};
use engpass_limit::limit;
use engpass_simulate::{RunControl, simulate};

const PAIR: &str = "[host.a]\n[host.b]\n";

/// Returns a testbed of two hosts on one link, with this traffic, for a run of one second.
fn pair(link: &str, rest: &str) -> String {
    format!("{PAIR}[link.line]\nends = [\"a\", \"b\"]\n{link}\n{rest}\n[run]\nduration = \"1 s\"\n")
}

const STREAM: &str = "[traffic.t]\nkind = \"udp-stream\"\nfrom = \"a\"\nto = \"b\"\nmessage = \"1000 B\"\n";

#[test]
fn cell_line_without_circuit_is_idle() {
    let more = "[router.r]\n[link.more]\nends = [\"r\", \"a\"]\nmedium = \"oc-3c\"\n";
    let outcome = run(&pair("medium = \"ethernet-10\"", &format!("{more}{STREAM}")), "base", &[]);
    let (_, line) = &outcome.links[1];
    let idle: u128 =
        line.ledger.iter().filter(|(account, _)| account.starts_with("idle")).map(|(_, parts)| parts).sum();
    assert!(idle > line.capacity / 2 && line.capacity > 0, "{:?}", line.ledger);
    assert_eq!(line.directions[0].utilisation, 0.0);
}

/// A queue, a NIC or a shaper may need more time than the clock has: its packets leave after all runs.
#[test]
fn far_future_departure_is_neither_received_nor_lost() {
    let slow = "medium = \"point-to-point\"\nrate = \"1 bit/s\"";
    let circuit = "[circuit.c]\nfrom = \"a\"\nto = \"b\"\nshaping = \"1 bit/s line\"\n";
    for (link, rest) in [(slow, STREAM.to_owned()), ("medium = \"oc-3c\"", format!("{circuit}{STREAM}"))] {
        let outcome = run(&pair(link, &rest), "base", &[("host.a.nic_buffer", "4 MB")]);
        let flow = &outcome.flows[0];
        let counts = flow.datagrams.unwrap();
        assert_eq!((counts.received, counts.lost), (0, 0));
        assert!(counts.sent > 3000, "{flow:?}");
    }
}

#[test]
fn copy_longer_than_the_clock_range_sends_nothing() {
    let write = "[traffic.t]\nkind = \"tcp-stream\"\nfrom = \"a\"\nto = \"b\"\nmessage = \"1 GiB\"\n";
    let rules = [("traffic.t.tcp.send_buffer_rule", "whole-writes"), ("host.a.cost.per_write", "1 us")];
    let cost = [rules[0], rules[1], ("host.a.cost.per_byte", "1 min")];
    let outcome = run(&pair("medium = \"ethernet-10\"", write), "base", &cost);
    assert_eq!(outcome.flows[0].datagrams.unwrap().sent, 0);
}

/// The callback reports progress even in a network without cells.
#[test]
fn frame_run_reports_its_progress() {
    struct Heard(RefCell<Vec<u64>>);
    impl RunControl for Heard {
        fn interrupted(&self) -> bool {
            false
        }
        fn reached(&self, ps: u64) {
            self.0.borrow_mut().push(ps);
        }
    }
    let point = point(&pair("medium = \"ethernet-100\"", STREAM), "base", &[]);
    let heard = Heard(RefCell::default());
    simulate(&point.testbed, &point.topology, 1, &heard).expect("the simulation succeeds");
    let heard = heard.0.into_inner();
    assert!(heard.is_sorted() && heard[0] < heard[heard.len() - 1], "{heard:?}");
    assert!(heard.iter().all(|at| *at <= point.testbed.run.duration.0), "{heard:?}");
}

/// The rest of an on-time after its last full gap has a message, too: two per 11 ms, not 1.1.
#[test]
fn burst_offers_every_message_that_begins_in_it() {
    let bursts =
        "kind = \"udp-on-off\"\nrate = \"1 Mbit/s\"\non = \"11 ms\"\noff = \"9 ms\"\nmessage = \"1250 B\"";
    let rest = STREAM.replace("kind = \"udp-stream\"", bursts).replace("message = \"1000 B\"\n", "");
    let text = pair("medium = \"ethernet-100\"", &rest);
    let (sent, point) = (run(&text, "base", &[]), point(&text, "base", &[]));
    let most = limit(&point.testbed, &point.topology);
    assert_eq!(most.flows["t"].goodput_bit_per_s, 1e6);
    assert_eq!(sent.flows[0].goodput_bit_per_s, 1e6);
}

/// A frame that crosses the start of the window counts only for the part inside.
#[test]
fn line_utilisation_never_exceeds_one() {
    for warmup in ["0 s", "999.5 ms"] {
        let outcome = run(&pair("medium = \"ethernet-10\"", STREAM), "base", &[("run.warmup", warmup)]);
        let line = &outcome.links[0].1.directions[0];
        assert!((0.99..=1.0).contains(&line.utilisation), "{line:?}");
    }
}
