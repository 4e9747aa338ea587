//! TCP across the simulated network, against closed forms and conservation.

#[path = "../common/mod.rs"]
mod common;
mod congested_port;

use common::{TWO, close};
use engpass_outcome::FlowOutcome;
use engpass_simulate::SimOutcome;

fn run(overrides: &[(&str, &str)]) -> SimOutcome {
    common::run(TWO, "base", overrides)
}

fn stream(outcome: &SimOutcome) -> &FlowOutcome {
    &outcome.flows[0]
}

/// A window smaller than the path holds is sent once a round trip (RFC 6349 section 3.3.1).
#[test]
fn small_window_over_atm_matches_hand_calculation() {
    // Four segments of 9140 B in a round trip of 4 ms, the first segment's time on both lines, and the cells of its acknowledgment on both. The second segment
    // follows the first, and every second one is acknowledged.
    let window = 4 * 9140;
    let buffer = format!("\"{window} B\"");
    let outcome = run(&[
        ("host.a.tcp.profile", "\"bsd-reno\""),
        ("host.b.tcp.profile", "\"bsd-reno\""),
        ("host.a.tcp.send_buffer", "\"256 KiB\""),
        ("host.b.tcp.receive_buffer", &buffer),
        ("host.b.tcp.ack_every", "1"),
    ]);
    let slot = 1e-6 / 0.353_207_547;
    // Store and forward: 192 cells on the first line, one more on the second, and two cells of an acknowledgment.
    let round_trip = 4e-3 + (192.0 + 1.0) * slot + 3.0 * slot;
    close(stream(&outcome).goodput_bit_per_s, window as f64 * 8.0 / round_trip, 0.01);
    assert_eq!(stream(&outcome).datagrams.unwrap().lost, 0);
}

/// With a large window and large buffers the line is full: the closed form of `limit`.
#[test]
fn a_large_window_fills_the_line() {
    for profile in ["\"linux-6\"", "\"bsd-reno\"", "\"solaris-2.5\"", "\"windows-95\""] {
        let outcome = run(&[
            ("host.a.tcp.profile", profile),
            ("host.b.tcp.profile", profile),
            ("host.a.tcp.send_buffer", "\"256 KiB\""),
            ("host.b.tcp.receive_buffer", "\"256 KiB\""),
            ("host.b.tcp.window_scaling", "true"),
            ("host.a.tcp.window_scaling", "true"),
            ("host.a.tcp.timestamps", "false"),
        ]);
        // 192 cells of the circuit carry 9140 bytes.
        close(stream(&outcome).goodput_bit_per_s, 353_207.547 / 192.0 * 9140.0 * 8.0, 0.002);
    }
}

/// A configured segment size that exceeds the path is reduced (RFC 9293 section 3.7.1).
#[test]
fn configured_mss_is_reduced_to_the_path_mtu() {
    let few = ("switch.s.output_buffer", "\"600 cells\"");
    let slow = ("link.second.medium", "\"ds3\"");
    let own = run(&[few, slow]);
    assert!(stream(&own).datagrams.unwrap().lost > 0);
    let larger = ["host.a.tcp.mss", "host.b.tcp.mss"].map(|key| (key, "\"60 kB\""));
    let larger = run(&[few, slow, larger[0], larger[1]]);
    assert_eq!(format!("{:?}", stream(&larger)), format!("{:?}", stream(&own)));
}

/// An overflowing port: all that is sent is received, lost or in flight, and a seed determines the run.
#[test]
fn tcp_recovers_from_congestion_losses() {
    let overrides = [("switch.s.output_buffer", "\"600 cells\""), ("link.second.medium", "\"ds3\"")];
    let outcome = run(&overrides);
    let flow = stream(&outcome);
    let tcp = flow.tcp.expect("a TCP flow has counters");
    let counts = flow.datagrams.unwrap();
    assert!(counts.lost > 0 && tcp.retransmitted_segments > Some(0));
    // The edges of the measurement window split data in flight, at most a window of segments.
    let known = counts.received + counts.lost + counts.in_flight.unwrap();
    assert!(counts.sent.abs_diff(known) <= 400, "{flow:?}");
    close(flow.goodput_bit_per_s, 96_000.0 / 192.0 * 9140.0 * 8.0, 0.25);
    assert_eq!(outcome, run(&overrides));
}

/// CPU costs of hosts limit TCP like UDP.
#[test]
fn cpu_cost_limits_tcp_goodput() {
    let outcome = run(&[
        ("host.a.cost.per_write", "\"1 ms\""),
        ("host.a.cost.per_byte", "\"100 ns\""),
        ("host.a.cost.per_segment", "\"0.5 ms\""),
        ("traffic.stream.message", "\"9128 B\""),
    ]);
    // A message is one segment with timestamps. Every other one is acknowledged, at no cost.
    let message = 1e-3 + 9128.0 * 100e-9 + 0.5e-3;
    close(stream(&outcome).goodput_bit_per_s, 9128.0 * 8.0 / message, 0.01);
}

/// Solaris blocks a write while 8192 bytes are unsent, and sending makes room. The application then continues without waiting for an acknowledgment, whose
/// timer would otherwise set the pace.
#[test]
fn sending_makes_room_for_the_next_write() {
    let run = |message: &str| {
        run(&[
            ("host.a.tcp.profile", "\"solaris-2.5\""),
            ("host.b.tcp.profile", "\"solaris-2.5\""),
            ("host.a.cost.per_write", "\"0.1 ms\""),
            ("host.a.cost.per_segment", "\"1 ms\""),
            ("host.b.tcp.receive_buffer", "\"64 KiB\""),
            ("traffic.stream.message", message),
        ])
    };
    // A write of 12 kB is two segments, and both are sent before the next write.
    close(stream(&run("\"12 kB\"")).goodput_bit_per_s, 12_000.0 * 8.0 / 2.1e-3, 0.01);
    // 64 kB are seven segments and a tail.
    close(stream(&run("\"64 kB\"")).goodput_bit_per_s, 64_000.0 * 8.0 / 8.1e-3, 0.01);
}

/// An acknowledgment interrupts a write, and the segments that it permits are sent at once: one window per round trip, although writes take a third of the CPU
/// time.
#[test]
fn acknowledgments_interrupt_a_write() {
    let run = |per_write: &str| {
        run(&[
            ("host.a.tcp.profile", "\"bsd-reno\""),
            ("host.b.tcp.profile", "\"bsd-reno\""),
            ("host.a.tcp.send_buffer", "\"256 KiB\""),
            ("host.b.tcp.receive_buffer", "\"36560 B\""),
            ("host.b.tcp.ack_every", "1"),
            ("host.a.cost.per_write", per_write),
        ])
    };
    let (idle, writing) = (run("\"0 s\""), run("\"3 ms\""));
    close(stream(&writing).goodput_bit_per_s, stream(&idle).goodput_bit_per_s, 0.001);
}

/// An interruption does not shorten a copy: the times add up.
#[test]
fn interrupted_copy_keeps_its_total_time() {
    for (ack, cost) in [("\"0 s\"", 0.0), ("\"1 ms\"", 0.5e-3)] {
        let outcome = run(&[
            ("host.a.tcp.profile", "\"bsd-reno\""),
            ("host.b.tcp.profile", "\"bsd-reno\""),
            ("host.a.tcp.send_buffer", "\"128 KiB\""),
            ("host.b.tcp.receive_buffer", "\"60 kB\""),
            ("host.a.cost.per_byte", "\"400 ns\""),
            ("host.a.cost.per_ack", ack),
        ]);
        // Every second segment is acknowledged.
        let segment = 9140.0 * 400e-9 + cost;
        close(stream(&outcome).goodput_bit_per_s, 9140.0 * 8.0 / segment, 0.01);
    }
}
