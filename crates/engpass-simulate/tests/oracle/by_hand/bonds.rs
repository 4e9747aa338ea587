//! Bonds, members that fail, and the checks of their monitors.
//!
//! A frame with a datagram of 1000 B takes 1066 bytes of a line, 852.8 us at 10 Mbit/s. Datagrams are sent every millisecond, and all delays are 1 us: a frame
//! that leaves before a link goes down has arrived 844.2 us after it was handed over.

use crate::engine::Engine;
use crate::fast::difference;
use crate::outcome::{Observed, Place};
use crate::replay::testbed;

/// A host with two links to a switch, and another host behind that.
const SERVER: &str = r#"
name = "server"
[host.h0]
[host.h1]
[switch.s]
kind = "ethernet"
[link.a]
ends = ["h0", "s"]
medium = "ethernet-10"
delay = "1 us"
[link.b]
ends = ["h0", "s"]
medium = "ethernet-10"
delay = "1 us"
[link.out]
ends = ["s", "h1"]
medium = "ethernet-10"
delay = "1 us"
"#;
const A: usize = 0;
const B: usize = 1;

/// Runs 20 ms with this bond of `h0`; both engines must agree.
fn run(bond: &str, tables: &str) -> Observed {
    let bond = format!("[bond.x]\nnode = \"h0\"\nlinks = [\"a\", \"b\"]\n{bond}\n");
    let testbed = testbed("server.toml", format!("{SERVER}{bond}{tables}[run]\nduration = \"20 ms\"\n"));
    assert_eq!(difference(&testbed, 1), Ok(()));
    let mut engine = Engine::new(&testbed, 1);
    engine.run_until(testbed.run.duration.0);
    engine.snapshot(testbed.run.duration.0)
}

/// Returns a stream with a datagram every millisecond, up to `stop`.
fn stream([from, to]: [&str; 2], stop: &str) -> String {
    format!(
        "[traffic.u]\nkind = \"udp-stream\"\nfrom = \"{from}\"\nto = \"{to}\"\nmessage = \"1000 B\"\nrate = \"8 Mbit/s\"\nstop = \"{stop}\"\n"
    )
}

fn event(name: &str, target: &str, at: &str, change: &str) -> String {
    format!("[event.{name}]\ntarget = \"{target}\"\nat = \"{at}\"\nchange = \"{change}\"\n")
}

/// Returns the frames that left on `a` and `b`, from `h0` or from the switch.
fn spread(seen: &Observed, end: usize) -> [u64; 2] {
    [A, B].map(|link| seen.frames.get(&(link, end)).map_or(0, |seen| seen.frames))
}

/// Returns the datagrams from `h0` lost to outages of `a` and of `b`.
fn lost(seen: &Observed) -> [u64; 2] {
    [A, B].map(|link| {
        let here = seen.losses.iter().filter(|(key, _)| key.place == Place::Down { link, end: 0 });
        here.map(|(_, lost)| lost.datagrams).sum()
    })
}

const TO: [&str; 2] = ["h0", "h1"];

#[test]
fn bond_round_robin_starts_with_the_second_member() {
    let seen = run("mode = \"round-robin\"", &stream(TO, "6500 us"));
    assert_eq!(spread(&seen, 0), [3, 4]);
    // Of a datagram of 4000 B each of three fragments takes a turn of its own: 1, 0, 1, then 0, 1, 0.
    let large = stream(TO, "4500 us").replace("1000 B", "4000 B");
    assert_eq!(spread(&run("mode = \"round-robin\"", &large), 0), [3, 3]);
}

#[test]
fn round_robin_skips_member_without_carrier_before_monitor() {
    let down = event("d", "a", "2900 us", "down") + &event("u", "a", "12 ms", "up");
    let bond = "mode = \"round-robin\"\nmonitor = { interval = \"5 ms\" }";
    // Turns 1 to 10, the even ones for `a`: datagrams sent at 3, 5, 7 and 9 ms use `b`; the one sent at 1 ms has left.
    let seen = run(bond, &(down.clone() + &stream(TO, "9500 us")));
    assert_eq!((spread(&seen, 0), lost(&seen)), ([1, 9], [0, 0]));
    // The carrier is back at 12 ms, and the member is up from the check at 15 ms: of the turns at 13, 15, 17 and 19 ms it gets the last three.
    let seen = run(bond, &(down + &stream(TO, "20 ms")));
    assert_eq!((spread(&seen, 0), lost(&seen)), ([4, 16], [0, 0]));
}

#[test]
fn active_member_is_replaced_at_the_monitor_check() {
    let down = event("d", "a", "2900 us", "down") + &event("u", "a", "12 ms", "up");
    let all = |bond: &str| {
        let seen = run(&format!("mode = {bond}"), &(down.clone() + &stream(TO, "16500 us")));
        (spread(&seen, 0), lost(&seen))
    };
    // 17 datagrams, from 0 to 16 ms. The two sent at 3 and 4 ms are lost; the monitor checks at 5 ms, before the host hands over the datagram that is due then.
    let monitor = "\nmonitor = { interval = \"5 ms\" }";
    assert_eq!(all(&format!("\"active-backup\"{monitor}")), ([5, 12], [2, 0]));
    // `a` is the primary: it is up from the check at 15 ms, for two datagrams.
    let primary = "{ active-backup = { primary = \"a\" } }";
    assert_eq!(all(&format!("{primary}{monitor}")), ([7, 10], [2, 0]));
    // Down only from the check at 10 ms: seven are lost. Up from the check at 20 ms.
    let delays = "\nmonitor = { interval = \"5 ms\", down_delay = \"9999 us\", up_delay = \"5 ms\" }";
    assert_eq!(all(&format!("{primary}{delays}")), ([10, 7], [7, 0]));
    // Noticed at once: none is lost, because the frame of 2 ms had left at 2843.2 us.
    assert_eq!(all(&format!("{primary}\nmonitor = {{ interval = \"0 s\" }}")), ([8, 9], [0, 0]));
}

#[test]
fn bond_hash_skips_member_without_carrier_before_monitor() {
    let bond = "mode = \"hash\"\nmonitor = { interval = \"5 ms\", down_delay = \"10 ms\" }";
    let blink = |link: &str| {
        let events = event("d", link, "2900 us", "down") + &event("u", link, "6500 us", "up");
        let seen = run(bond, &(events + &stream(TO, "13500 us")));
        (spread(&seen, 0), lost(&seen))
    };
    // The hash takes `b`: addresses that end in 1 and 6. Its carrier goes after three datagrams have left, and returns after the check at 5 ms has suspected
    // it: the member counts as up from the check at 10 ms, for the last four.
    assert_eq!(blink("a"), ([0, 14], [0, 0]));
    assert_eq!(blink("b"), ([7, 7], [0, 0]));
}

#[test]
fn active_member_is_chosen_anew_after_a_total_failure() {
    // `b` replaces `a` at 5 ms, and fails, too: at 10 ms no member is active. At 15 ms both are up, and the first one is taken.
    let events = event("d", "a", "2900 us", "down")
        + &event("e", "b", "6900 us", "down")
        + &event("u", "a", "12 ms", "up")
        + &event("v", "b", "12 ms", "up");
    let bond = "mode = \"active-backup\"\nmonitor = { interval = \"5 ms\" }";
    let seen = run(bond, &(events + &stream(TO, "18500 us")));
    // `a` carries the datagrams of 0, 1, 2, and 15 to 18 ms, `b` those of 5 and 6, and of 12 to 14 ms, when its line is up again. Lost on `a`: 3 and 4; on `b`:
    // 7 to 11.
    assert_eq!((spread(&seen, 0), lost(&seen)), ([9, 10], [2, 5]));
}

#[test]
fn up_delay_applies_only_to_round_robin_if_no_member_is_up() {
    let events = event("d", "a", "1900 us", "down")
        + &event("e", "b", "1900 us", "down")
        + &event("u", "a", "6 ms", "up");
    let lost = |mode: &str| {
        let bond = format!("mode = \"{mode}\"\nmonitor = {{ interval = \"5 ms\", up_delay = \"10 ms\" }}");
        lost(&run(&bond, &(events.clone() + &stream(TO, "14500 us")))).iter().sum::<u64>()
    };
    // Two datagrams leave. The hash takes `b` until `a` is up from the check at 10 ms: the datagrams of 2 to 9 ms are lost.
    assert_eq!(lost("hash"), 8);
    // Turns continue as if both were up: `b` loses the datagrams of 2, 4, and so on to 14 ms, `a` those of 3 and 5 ms.
    assert_eq!(lost("round-robin"), 9);
    // `a` was active, and its line loses the datagrams of 2 to 5 ms.
    assert_eq!(lost("active-backup"), 4);
}

#[test]
fn a_switch_follows_the_active_member_of_a_host() {
    let down = event("d", "a", "2900 us", "down");
    let bond = "mode = \"active-backup\"\nmonitor = { interval = \"5 ms\" }";
    let seen = run(bond, &(down + &stream(["h1", "h0"], "9500 us")));
    // A datagram of `h1` is at the switch 844.2 us after it was handed over: three leave by `a`, where the third one is destroyed, two more are lost in front
    // of it, and five use `b`.
    assert_eq!(spread(&seen, 1), [3, 5]);
    let at_switch = seen.losses.iter().filter(|(key, _)| key.place == Place::Down { link: A, end: 1 });
    assert_eq!(at_switch.map(|(_, lost)| lost.datagrams).sum::<u64>(), 3);
}

#[test]
fn bond_ignores_a_failure_that_its_host_does_not_see() {
    let down = event("d", "s/a", "2900 us", "down");
    let bond = "mode = \"active-backup\"\nmonitor = { interval = \"1 ms\" }";
    let seen = run(bond, &(down + &stream(TO, "9500 us")));
    assert_eq!((spread(&seen, 0), lost(&seen)), ([10, 0], [7, 0]));
}

/// Link `a` fails only at `h0`, which then sends on `b`. `h1` notices nothing: its active link is still `a`, so it drops the frames from `b`.
#[test]
fn host_drops_frames_that_arrive_on_an_inactive_member() {
    let hosts = SERVER.replace("[switch.s]\nkind = \"ethernet\"\n", "").replace("\"s\"]\n", "\"h1\"]\n");
    let (hosts, _) = hosts.split_once("[link.out]").expect("the text has link `out`");
    let bonds = ["h0", "h1"].map(|host| {
        format!(
            "[bond.{host}]\nnode = \"{host}\"\nlinks = [\"a\", \"b\"]\nmode = \"active-backup\"\nmonitor.interval = \"1 ms\"\n"
        )
    });
    let text = hosts.to_owned()
        + &bonds.concat()
        + &event("d", "h0/a", "2900 us", "down")
        + &stream(TO, "9500 us")
        + "[run]\nduration = \"20 ms\"\n";
    let testbed = testbed("hosts.toml", text);
    assert_eq!(difference(&testbed, 1), Ok(()));
    let mut engine = Engine::new(&testbed, 1);
    engine.run_until(testbed.run.duration.0);
    let seen = engine.snapshot(testbed.run.duration.0);
    assert_eq!((spread(&seen, 0), lost(&seen)), ([3, 7], [0, 0]));
    let unheard = seen.losses.iter().filter(|(key, _)| key.place == Place::Inactive { link: B, end: 0 });
    assert_eq!(unheard.map(|(_, lost)| lost.datagrams).sum::<u64>(), 7);
}

/// Both senders have room for one packet at a NIC: each waits for the member that was chosen for it.
#[test]
fn sender_waits_for_its_chosen_bond_member() {
    let slow = SERVER.replacen("medium = \"ethernet-10\"", "medium = \"ethernet-100\"", 1);
    let text = slow.replacen("[host.h0]", "[host.h0]\nnic_buffer = \"1 B\"", 1)
        + "[bond.x]\nnode = \"h0\"\nlinks = [\"a\", \"b\"]\nmode = \"round-robin\"\n"
        + &stream(TO, "20 ms").replace("rate = \"8 Mbit/s\"\n", "")
        + "[run]\nduration = \"20 ms\"\n";
    let testbed = testbed("waits.toml", text);
    assert_eq!(difference(&testbed, 1), Ok(()));
    let mut engine = Engine::new(&testbed, 1);
    engine.run_until(testbed.run.duration.0);
    let seen = engine.snapshot(testbed.run.duration.0);
    // `b` takes a packet every 852.8 us, and `a`, ten times as fast, one in between: 20 ms / 852.8 us = 23.5.
    assert_eq!(spread(&seen, 0), [24, 23]);
}
