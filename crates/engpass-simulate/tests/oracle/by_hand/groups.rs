//! Multicast copies.
//!
//! A frame with a datagram of 1000 B takes 1066 bytes of a line, 852.8 us at 10 Mbit/s, and arrives 844.2 us after it was handed over. On `out` its packet of
//! 1028 B takes 8224 us at 1 Mbit/s. Datagrams are sent every millisecond.

use super::{fates, losses};
use crate::engine::Engine;
use crate::fast::difference;
use crate::outcome::{Observed, Place};
use crate::queue::Cause;
use crate::replay::testbed;

/// A host, a router, and two hosts behind it, one on a slow line.
const HALL: &str = r#"
name = "hall"
[host.h0]
[host.h1]
[host.h2]
[link.in]
ends = ["h0", "r"]
medium = "ethernet-10"
delay = "1 us"
[link.a]
ends = ["r", "h1"]
medium = "ethernet-10"
delay = "1 us"
[link.out]
ends = ["r", "h2"]
medium = "point-to-point"
rate = "1 Mbit/s"
overhead = "0 B"
delay = "1 us"
[router.r]
queue = { drop-tail = { limit = "2 packets" } }
"#;
const ROUTER: usize = 3;

/// Runs 20 ms with this number of datagrams to `h1` and `h2`; both engines must agree.
fn run(datagrams: u32, router: &str, traffic: &str) -> Observed {
    let stop = datagrams * 1000 - 500;
    let group = format!(
        "[traffic.g]\nkind = \"multicast\"\nfrom = \"h0\"\nto = [\"h1\", \"h2\"]\nmessage = \"1000 B\"\nrate = \"8 Mbit/s\"\nstop = \"{stop} us\"\n"
    );
    let testbed =
        testbed("hall.toml", format!("{HALL}{router}\n{group}{traffic}\n[run]\nduration = \"20 ms\"\n"));
    assert_eq!(difference(&testbed, 1), Ok(()));
    let mut engine = Engine::new(&testbed, 1);
    engine.run_until(testbed.run.duration.0);
    engine.snapshot(testbed.run.duration.0)
}

/// Receivers of groups are counted after the flows.
const RECEIVERS: [usize; 2] = [1, 2];

fn last(seen: &Observed) -> [Option<u64>; 2] {
    RECEIVERS.map(|receiver| seen.flows[receiver].receptions.last)
}

fn delivered(seen: &Observed, link: usize) -> u128 {
    seen.accounts[&(link, 0)].get("delivered").copied().unwrap_or(0) / 8
}

#[test]
fn multicast_copies_leave_after_one_router_processing_time() {
    let (at_router, to_h1, to_h2) = (844_200_000, 844_200_000, 8_225_000_000);
    assert_eq!(last(&run(1, "", "")), [Some(at_router + to_h1), Some(at_router + to_h2)]);
    // Once for both.
    let seen = run(1, "per_packet = \"100 us\"", "");
    let done = at_router + 100_000_000;
    assert_eq!(last(&seen), [Some(done + to_h1), Some(done + to_h2)]);
}

#[test]
fn slow_line_drops_only_its_own_multicast_copies() {
    let seen = run(5, "", "");
    // The first is being sent and the second waits when the others arrive.
    assert_eq!(RECEIVERS.map(|receiver| fates(&seen.flows[receiver])), [[5, 5, 0, 0], [5, 2, 3, 0]]);
    assert_eq!(losses(&seen), [(Place::Queue { link: 2, end: 0, cause: Cause::Full }, 0, 3, 3)]);
    // The shared line has delivered what at least one of them received.
    assert_eq!([0, 1, 2].map(|link| delivered(&seen, link)), [5000, 5000, 2000]);
}

#[test]
fn multicast_loss_before_the_branch_counts_for_all_receivers() {
    let seen = run(3, "", "ttl = 1");
    assert_eq!(RECEIVERS.map(|receiver| fates(&seen.flows[receiver])), [[3, 0, 3, 0], [3, 0, 3, 0]]);
    // Three packets, and three datagrams of each receiver.
    assert_eq!(losses(&seen), [(Place::TimeToLive { node: ROUTER }, 0, 3, 6)]);
    assert_eq!(delivered(&seen, 0), 0);
}

#[test]
fn each_multicast_copy_is_fragmented_separately() {
    let narrow = |text: &str| text.replace("overhead = \"0 B\"", "overhead = \"0 B\"\nmtu = \"600 B\"");
    let text = narrow(HALL)
        + "[traffic.g]\nkind = \"multicast\"\nfrom = \"h0\"\nto = [\"h1\", \"h2\"]\nmessage = \"1000 B\"\nrate = \"8 Mbit/s\"\nstop = \"500 us\"\n[run]\nduration = \"20 ms\"\n";
    let testbed = testbed("narrow.toml", text);
    assert_eq!(difference(&testbed, 1), Ok(()));
    let mut engine = Engine::new(&testbed, 1);
    engine.run_until(testbed.run.duration.0);
    let seen = engine.snapshot(testbed.run.duration.0);
    // 1008 bytes behind the IP header: 576 and 432, with a header each 1048 bytes at 1 Mbit/s.
    assert_eq!(last(&seen), [Some(2 * 844_200_000), Some(844_200_000 + 8_384_000_000 + 1_000_000)]);
    assert_eq!([1, 2].map(|link| seen.frames[&(link, 0)].frames), [1, 2]);
}

#[test]
fn branch_outage_affects_only_the_receiver_behind_it() {
    let down = "[event.d]\ntarget = \"a\"\nat = \"2 ms\"\nchange = \"down\"";
    let seen = run(4, "", down);
    // Datagrams come to the router at 0.8442, 1.8442 ms and so on: the second copy is on the line when that fails.
    assert_eq!(RECEIVERS.map(|receiver| fates(&seen.flows[receiver])), [[4, 1, 3, 0], [4, 2, 2, 0]]);
    let outages = RECEIVERS.map(|receiver| seen.flows[receiver].outage.as_ref().map(|outage| outage.lost));
    assert_eq!(outages, [Some(3), Some(0)]);
}
