//! The measurement window: with a warm-up `W` and a duration `D`, counts are those of `W < t <= D` (docs/model.md, "The end").

use engpass_model::random::Stream;

use super::common::run;
use super::from;

/// A warm-up in picoseconds after the first transmission, and the counts after it: sent, on the line, received.
type Case = (u64, [u64; 3]);

/// Compares the counts of a run that lasts 490 us from the first sending, which is `first` picoseconds after the start.
#[track_caller]
fn check_counts(text: &str, first: u64, cases: &[Case]) {
    for &(warmup, expected) in cases {
        let (duration, warmup) = (first + 490_000_000, first + warmup);
        let text = format!("{text}\n[run]\nduration = \"{duration} ps\"\nwarmup = \"{warmup} ps\"");
        let outcome = run(&text, "base", &[]);
        let flow = outcome.flows[0].datagrams.unwrap();
        let counts = [flow.sent, from(&outcome, "line", "a").carried.sent(), flow.received];
        assert_eq!(counts, expected, "sent, on the line and received after {warmup} ps");
    }
}

/// A frame of 1038 bytes with its gap: the last bit leaves after 1026 * 80 ns = 82.08 us.
#[test]
fn frames_at_the_end_of_the_warmup_are_not_counted() {
    let text = r#"
        name = "frames"
        host = { a = {}, b = {} }
        [link.line]
        ends = ["a", "b"]
        medium = "ethernet-100"
        delay = "1 us"
        [traffic.stream]
        kind = "udp-stream"
        from = "a"
        to = "b"
        message = "972 B"
        rate = "77.76 Mbit/s"
    "#;
    check_counts(
        text,
        0,
        &[
            (199_999_999, [3, 3, 3]),
            (200_000_000, [2, 3, 3]),
            (282_079_999, [2, 3, 3]),
            (282_080_000, [2, 2, 3]),
            (283_079_999, [2, 2, 3]),
            (283_080_000, [2, 2, 2]),
        ],
    );
}

/// A datagram of 100 bytes is three cells, which leave 2.831197, 5.662394 and 8.493590 us after it was sent.
#[test]
fn cells_at_the_end_of_the_warmup_are_not_counted() {
    let text = r#"
        name = "cells"
        host = { a = {}, b = {} }
        [link.line]
        ends = ["a", "b"]
        medium = "oc-3c"
        delay = "1 us"
        [circuit.data]
        from = "a"
        to = "b"
        [traffic.stream]
        kind = "udp-stream"
        from = "a"
        to = "b"
        message = "100 B"
        rate = "8 Mbit/s"
    "#;
    check_counts(
        text,
        0,
        &[
            (199_999_999, [3, 9, 3]),
            (200_000_000, [2, 9, 3]),
            (202_831_196, [2, 9, 3]),
            (202_831_197, [2, 8, 3]),
            (205_662_394, [2, 7, 3]),
            (208_493_590, [2, 6, 3]),
            (209_493_589, [2, 6, 3]),
            (209_493_590, [2, 6, 2]),
        ],
    );
}

/// The cell of a generator leaves 2.831197 us after it was sent.
#[test]
fn generator_cells_at_the_end_of_warmup_are_not_counted() {
    let text = r#"
        name = "generator"
        host = { a = {}, b = {} }
        [link.line]
        ends = ["a", "b"]
        medium = "oc-3c"
        delay = "1 us"
        [traffic.stream]
        kind = "cbr"
        from = "a"
        to = "b"
        rate = "10000 cells/s"
    "#;
    // docs/model.md, "Generators"; `common::run` has seed 7.
    let phase = Stream::new(7, "traffic.stream").below(100_000_000);
    check_counts(
        text,
        phase,
        &[
            (199_999_999, [3, 3, 3]),
            (200_000_000, [2, 3, 3]),
            (202_831_196, [2, 3, 3]),
            (202_831_197, [2, 2, 3]),
            (203_831_196, [2, 2, 3]),
            (203_831_197, [2, 2, 2]),
        ],
    );
}
