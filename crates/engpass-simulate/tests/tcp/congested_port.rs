//! Ten TCP connections through a congested ATM port: goodput with each discard policy.
//!
//! The order is that of Romanow and Floyd, "Dynamics of TCP Traffic over ATM Networks", IEEE JSAC 13(4), 1995, section 4: plain ATM wastes the line on cells of
//! packets that cannot be reassembled, partial packet discard wastes less, early packet discard almost nothing, like a queue of packets.

use std::fmt::Write;

use super::common;

const FLOWS: usize = 10;

/// Returns the payload received by all flows, relative to the maximum of the line.
fn share(port: &str, atm: bool, cells: u64) -> f64 {
    let mut text = String::from("name = \"ten\"\n[run]\nduration = \"15 s\"\nwarmup = \"3 s\"\n");
    let delay = "delay = \"1 ms\"\n";
    if atm {
        write!(text, "[switch.s]\nkind = \"atm\"\noutput_buffer = \"{cells} cells\"\n{port}\n")
            .expect("writing to a string cannot fail");
    } else {
        // The same amount of memory, for packets.
        write!(text, "[router.s]\nqueue = {{ drop-tail = {{ limit = \"{} B\" }} }}\n", cells * 48)
            .expect("writing to a string cannot fail");
    }
    let medium = if atm {
        "medium = \"oc-3c\"\n"
    } else {
        "medium = \"point-to-point\"\nrate = \"135 Mbit/s\"\nmtu = \"9180 B\"\n"
    };
    write!(text, "[host.sink]\n[link.out]\nends = [\"s\", \"sink\"]\n{medium}{delay}")
        .expect("writing to a string cannot fail");
    for flow in 0..FLOWS {
        write!(
            text,
            "[host.h{flow}]\ntcp = {{ profile = \"bsd-reno\", send_buffer = \"64 KiB\", rto_tick = \"100 ms\", rto_minimum = \"200 ms\" }}\n\
             [link.h{flow}]\nends = [\"h{flow}\", \"s\"]\n{medium}delay = \"{} us\"\n\
             [traffic.f{flow}]\nkind = \"tcp-stream\"\nfrom = \"h{flow}\"\nto = \"sink\"\nmessage = \"64 KiB\"\nstart = \"{} ms\"\n",
            1000 + flow * 130,
            flow * 13
        )
        .expect("writing to a string cannot fail");
        if atm {
            write!(text, "[circuit.c{flow}]\nfrom = \"h{flow}\"\nto = \"sink\"\n")
                .expect("writing to a string cannot fail");
        }
    }
    let sink = [
        ("host.sink.tcp.profile", "\"bsd-reno\""),
        ("host.sink.tcp.receive_buffer", "\"64 KiB\""),
        // With delayed acknowledgments, the heartbeat of the single receiver would trigger all senders at once.
        ("host.sink.tcp.ack_every", "1"),
    ];
    let outcome = common::run(&text, "base", &sink);
    let sum: f64 = outcome.flows.iter().map(|(_, flow)| flow.goodput_bit_per_s).sum();
    sum / if atm { 353_207.547 / 192.0 * 9140.0 * 8.0 } else { 135e6 * 9140.0 / 9180.0 }
}

#[test]
fn ppd_and_epd_raise_tcp_goodput_at_a_congested_port() {
    let tail = share("discard = \"tail\"", true, 2000);
    let partial = share("discard = \"ppd\"", true, 2000);
    let early = share("discard = { epd-ppd = { threshold = \"1600 cells\" } }", true, 2000);
    let packets = share("", false, 2000);
    assert!(tail + 0.01 < partial, "plain {tail:.3}, PPD {partial:.3}");
    assert!(partial + 0.01 < early, "PPD {partial:.3}, EPD {early:.3}");
    assert!((early - packets).abs() < 0.03, "EPD {early:.3}, packets {packets:.3}");
}
