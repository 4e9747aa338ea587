//! Keepalives of GRE tunnels.
//!
//! A byte takes 80 ns at 100 Mbit/s, and all delays are 1 us. A keepalive has 24 B, in the tunnel 48 B: it takes the least Ethernet frame, 84 bytes of a line,
//! 72 of them before the gap, or 48 + 38 bytes, 74 before the gap. Datagrams are sent every millisecond.

use super::{fates, losses, run_for};
use crate::outcome::{Observed, Place};

const MS: u64 = 1_000_000_000;

/// A sender behind `r1`, two routers `m1` and `m2` in the middle, tunnels from `r1` to `e1` over `m1` and to `e2` over `m2`, and a receiver behind `r3`, to
/// which both lead. Nodes: hosts 0 and 1, routers from 2 on, in the order of the names.
fn two_tunnels(tunnel: &str) -> String {
    let mut text = String::from("name = \"tunnels\"\n[host.h0]\n[host.h1]\n");
    for router in ["r1", "m1", "m2", "e1", "e2", "r3"] {
        let ecmp = if router == "r1" { "ecmp = \"round-robin\"\n" } else { "" };
        text += &format!("[router.{router}]\n{ecmp}");
    }
    for (name, ends) in [
        ("in", ["h0", "r1"]),
        ("a1", ["r1", "m1"]),
        ("a2", ["r1", "m2"]),
        ("b1", ["m1", "e1"]),
        ("b2", ["m2", "e2"]),
        ("c1", ["e1", "r3"]),
        ("c2", ["e2", "r3"]),
        ("out", ["r3", "h1"]),
    ] {
        text += &format!("[link.{name}]\nends = {ends:?}\nmedium = \"ethernet-100\"\ndelay = \"1 us\"\n");
    }
    for number in [1, 2] {
        text += &format!("[tunnel.t{number}]\nends = [\"r1\", \"e{number}\"]\n{tunnel}\n");
    }
    text + "[traffic.t]\nkind = \"udp-stream\"\nfrom = \"h0\"\nto = \"h1\"\nmessage = \"1000 B\"\nrate = \"8 Mbit/s\"\n"
}
const R1: usize = 2;
const B1: usize = 3;

/// The link between `m1` and `e1` is down from 15 ms to 55 ms.
const OUTAGE: &str = "[event.off]\ntarget = \"b1\"\nat = \"15 ms\"\nchange = \"down\"\n[event.on]\ntarget = \"b1\"\nat = \"55 ms\"\nchange = \"up\"\n";
const KEEPALIVE: &str = "keepalive = { period = \"10 ms\", retries = 2 }";

fn run(text: &str, at: u64) -> Observed {
    run_for("keepalives.toml", text, at)
}

#[test]
fn router_sends_packets_into_the_other_tunnel_when_keepalives_do_not_come_back() {
    // Datagrams 0, 2, 4, … take the first tunnel. Those that are sent from 15 ms on are lost at the link that is down: 16, 18, …, 38. The keepalives of 20 ms and
    // 30 ms are lost, so at 40 ms the router takes the tunnel for down: from datagram 40 on all take the second tunnel. The keepalive of 60 ms comes back.
    let seen = run(&(two_tunnels(KEEPALIVE) + OUTAGE), 100 * MS - MS / 2);
    assert_eq!(losses(&seen), [(Place::Down { link: B1, end: 0 }, 0, 12, 12)]);
    assert_eq!(fates(&seen.flows[0]), [100, 88, 12, 0]);
    // On the first link of the second tunnel: 20 data packets before 40 ms, 20 up to 60 ms, 20 behind that, and the keepalives of both ends, 10 each.
    let second = seen.frames[&(2, 0)].frames;
    assert_eq!(second, 20 + 20 + 20 + 20);
}

#[test]
fn packets_are_lost_in_front_of_the_only_tunnel_when_it_is_down() {
    let only = two_tunnels(KEEPALIVE)
        .replace("[link.c2]", "[link.unused]")
        .replace("[tunnel.t2]\nends = [\"r1\", \"e2\"]", "[tunnel.t2]\nup = false\nends = [\"r1\", \"e2\"]");
    let seen = run(&(only + OUTAGE), 100 * MS - MS / 2);
    // One path is without a tunnel, the other one begins with it and is preferred. Datagrams 15 to 39 are lost at the link, 40 to 59 at the tunnel; that of 60 ms
    // comes to the router when the keepalive is back.
    let lost = [(Place::Down { link: B1, end: 0 }, 0, 25, 25), (Place::TunnelDown { node: R1 }, 0, 20, 20)];
    assert_eq!(losses(&seen), lost);
}

#[test]
fn keepalive_crosses_every_line_of_its_path_once_in_each_direction() {
    let quiet = two_tunnels(KEEPALIVE).replace("rate = \"8 Mbit/s\"", "rate = \"8 Mbit/s\"\nstart = \"1 s\"");
    let seen = run(&quiet, 5 * MS);
    // That of `r1` goes out with 48 B and comes back with 24 B; that of `e1` comes with 48 B and goes back with 24 B. Frames have 18 bytes more, at least 64.
    for link in [1, 3] {
        for end in [0, 1] {
            let line = &seen.frames[&(link, end)];
            assert_eq!(line.frames, 2);
            let accounts = &seen.accounts[&(link, end)];
            assert_eq!(accounts["ACK and control"], (48 + 18 + 64) * 8);
            assert!(!accounts.contains_key("tunnel headers"));
        }
    }
    assert_eq!(fates(&seen.flows[0]), [0; 4]);
}
