//! Idle time by reason: worked out by hand, and cases in which the fast engine once gave another reason.

use crate::fast::difference;
use crate::outcome::Observed;
use crate::replay::testbed;

/// Runs a testbed; both engines must agree.
fn agreed(name: &str, text: &str) -> Observed {
    let testbed = testbed(name, text.into());
    assert_eq!(difference(&testbed, 1), Ok(()), "{name}");
    let mut oracle = crate::engine::Engine::new(&testbed, 1);
    oracle.run_until(testbed.run.duration.0);
    oracle.snapshot(testbed.run.duration.0)
}

/// Returns the idle accounts of a line.
fn idle(seen: &Observed, link: usize, end: usize) -> Vec<(&str, u128)> {
    let accounts = seen.accounts[&(link, end)].iter();
    accounts.filter_map(|(name, parts)| Some((name.strip_prefix("idle: ")?, *parts))).collect()
}

/// A frame of 1066 bytes takes 852.8 us of every line, of which 9.6 us follow its last bit. `h0` finishes its fragment after 100 us, so its frame is at the
/// switch after 944.2 us; that of `h1` after 5144.2 us.
const TWO_SENDERS: &str = r#"
name = "two senders"
[host.h0]
cost = { per_fragment = "100 us" }
[host.h1]
cost = { per_fragment = "300 us" }
[host.h2]
[switch.s0]
kind = "ethernet"
[link.l0]
ends = ["h0", "s0"]
medium = "ethernet-10"
delay = "1 us"
[link.l1]
ends = ["h1", "s0"]
medium = "ethernet-10"
delay = "1 us"
[link.l2]
ends = ["s0", "h2"]
medium = "ethernet-10"
delay = "1 us"
[traffic.u0]
kind = "udp-stream"
from = "h0"
to = "h2"
message = "1 kB"
rate = "1 kbit/s"
[traffic.u1]
kind = "udp-stream"
from = "h1"
to = "h2"
message = "1 kB"
rate = "1 kbit/s"
start = "4 ms"
[run]
duration = "10 ms"
"#;

#[test]
fn idle_time_goes_to_the_sender_that_uses_the_line_next() {
    let seen = agreed("two-senders.toml", TWO_SENDERS);
    // A line with one sender is idle for 100 us (1000 bits) while the CPU works on the fragment, and otherwise because the application has nothing to send.
    assert_eq!(idle(&seen, 0, 0), [("CPU", 1_000), ("application", 90_472)]);
    assert_eq!(idle(&seen, 1, 0), [("CPU", 3_000), ("application", 88_472)]);
    assert_eq!(idle(&seen, 2, 1), [("no sender", 100_000)]);
    // The shared line was idle for 944.2 us before the first frame: its sender used the CPU. The line was idle for 3347.2 us before the second frame. Its
    // sender had nothing to send for 4 ms and then used the CPU for 300 us; in this proportion they get 3113.674 419 and 233.525 581 us. In the last 4003 us
    // the second sender had nothing to send.
    // In bits that is 11 777.3 and 71 166.7 of 82 944.
    assert_eq!(idle(&seen, 2, 0), [("CPU", 11_777), ("application", 71_167)]);
}

/// Regression: a frame clipped by a window edge attributes no idle time. The fast engine took its sender for the last user of the line.
#[test]
fn clipped_frame_attributes_no_idle_time() {
    agreed("leaves-after-the-end.toml", include_str!("parted/leaves-after-the-end.toml"));
    let cells = include_str!("parted/leaves-after-the-end-in-cells.toml");
    agreed("leaves-after-the-end-in-cells.toml", cells);
}

/// Regression: the fast engine took the state of the connection between two acknowledgments for the reason, although the CPU had not processed the second one.
#[test]
fn sender_waits_for_cpu_until_the_last_input_is_processed() {
    let seen = agreed("input-behind-an-input.toml", include_str!("parted/input-behind-an-input.toml"));
    assert!(idle(&seen, 0, 0).iter().any(|(reason, _)| *reason == "congestion window"), "{seen:?}");
}

/// Regression: the fast engine ignored PDUs that wait in the NIC behind the one whose turn is next.
#[test]
fn sender_counts_as_sending_while_its_pdu_waits_in_the_nic() {
    agreed("turns-at-a-shaper.toml", include_str!("parted/turns-at-a-shaper.toml"));
}

/// Regression: the fast engine posted time in which a shaper emitted as a wait for the timer.
#[test]
fn shaper_emission_time_is_no_retransmission_timer_wait() {
    let text = include_str!("parted/timer-while-a-shaper-emits.toml");
    let seen = agreed("timer-while-a-shaper-emits.toml", text);
    assert!(idle(&seen, 0, 0).iter().any(|(reason, _)| *reason == "retransmission timer"), "{seen:?}");
}

/// Regression: the fast engine subtracted the cells of all senders from the time in which one of them was sending.
#[test]
fn a_sender_is_charged_for_its_own_cells_only() {
    agreed("cells-of-others.toml", include_str!("parted/cells-of-others.toml"));
}

/// Regression: two circuits of one line carry the packets of one sender. The fast engine charged it for the cells on one of them only.
#[test]
fn sender_is_charged_for_its_cells_on_all_circuits() {
    agreed("cells-on-two-circuits.toml", include_str!("parted/cells-on-two-circuits.toml"));
}

/// Regression: the fast engine did not ask the connection again when the send buffer took data that it had refused before.
#[test]
fn last_segment_waits_for_nagle_while_data_is_copied() {
    let seen = agreed("tail-behind-a-copy.toml", include_str!("parted/tail-behind-a-copy.toml"));
    assert!(idle(&seen, 0, 0).iter().any(|(reason, _)| *reason == "Nagle"), "{seen:?}");
}

/// A connection with pacing, through a token bucket that holds some segments back.
#[test]
fn pacing_and_token_bucket_are_idle_reasons() {
    let text = r#"
name = "paced"
[host.h0]
tcp = { congestion = { bbr = {} } }
[host.h1]
[switch.s0]
kind = "ethernet"
queue = { token-bucket = { rate = "5 Mbit/s", burst = "3 kB", limit = "100 packets" } }
[link.l0]
ends = ["h0", "s0"]
medium = "ethernet-100"
delay = "1 ms"
[link.l1]
ends = ["s0", "h1"]
medium = "ethernet-10"
delay = "5 ms"
[traffic.t0]
kind = "tcp-stream"
from = "h0"
to = "h1"
message = "100 kB"
[run]
duration = "300 ms"
warmup = "101 ms"
"#;
    let seen = agreed("paced.toml", text);
    assert!(idle(&seen, 0, 0).iter().any(|(reason, _)| *reason == "pacing"), "{seen:?}");
    assert!(idle(&seen, 1, 0).iter().any(|(reason, _)| *reason == "shaper"), "{seen:?}");
}
