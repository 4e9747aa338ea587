//! Address resolution at routers.
//!
//! A byte takes 80 ns at 100 Mbit/s, and all delays are 1 us. An ARP packet takes 84 bytes of an Ethernet line, 72 of them before the gap: it crosses a line in
//! 6.76 us. A datagram of 1000 B takes 1066 bytes, 1054 before the gap, and crosses in 85.32 us; on a point-to-point line it takes 1028 bytes and 83.24 us.

use super::{fates, losses, run_for};
use crate::outcome::{Booked, Booking, FramesSeen, Observed, Place};

/// Time in which an ARP packet, and a datagram, crosses an Ethernet line, in ps.
const ARP: u64 = 6_760_000;
const DATA: u64 = 85_320_000;
/// Time of a datagram on a point-to-point line, in ps.
const POINT: u64 = 83_240_000;
const US: u64 = 1_000_000;

fn run(text: &str, at: u64) -> Observed {
    run_for("arp.toml", text, at)
}

/// Returns a traffic with a single datagram of 1000 B in the run.
fn one(name: &str, [from, to]: [&str; 2], start: u64) -> String {
    format!(
        "[traffic.{name}]\nkind = \"udp-stream\"\nfrom = \"{from}\"\nto = \"{to}\"\nmessage = \"1000 B\"\nrate = \"1 bit/s\"\nstart = \"{start} ps\"\n"
    )
}

fn event(name: &str, target: &str, at: u64, change: &str) -> String {
    format!("[event.{name}]\ntarget = \"{target}\"\nat = \"{at} ps\"\nchange = \"{change}\"\n")
}

fn link(name: &str, ends: [&str; 2]) -> String {
    format!("[link.{name}]\nends = {ends:?}\nmedium = \"ethernet-100\"\ndelay = \"1 us\"\n")
}

/// Returns a link without address resolution.
fn plain(name: &str, ends: [&str; 2]) -> String {
    format!(
        "[link.{name}]\nends = {ends:?}\nmedium = \"point-to-point\"\nrate = \"100 Mbit/s\"\noverhead = \"0 B\"\ndelay = \"1 us\"\n"
    )
}

fn switch(name: &str) -> String {
    format!("[switch.{name}]\nkind = \"ethernet\"\n")
}

/// Returns the number of frames that left on a link from this end.
fn frames(seen: &Observed, link: usize, end: usize) -> u64 {
    seen.frames.get(&(link, end)).map_or(0, |seen| seen.frames)
}

fn last(seen: &Observed, flow: usize) -> Option<u64> {
    seen.flows[flow].receptions.last
}

/// A host, a router, a switch, and another host.
fn house(router: &str) -> String {
    "name = \"house\"\n[host.h0]\n[host.h1]\n".to_owned()
        + &switch("s")
        + &format!("[router.r]\n{router}\n")
        + &link("in", ["h0", "r"])
        + &link("mid", ["r", "s"])
        + &link("out", ["s", "h1"])
}
const MID: usize = 1;
const OUT: usize = 2;
/// Node of the router.
const R: usize = 3;
const TO: [&str; 2] = ["h0", "h1"];
/// Instants at which the first datagram, and the reply for it, reach the router; and the time that the datagram takes from there.
const ASKED: u64 = DATA;
const ANSWERED: u64 = DATA + 4 * ARP;
const ON: u64 = 2 * DATA;

#[test]
fn packet_waits_for_the_arp_reply() {
    let text = house("arp = {}") + &one("u", TO, 0);
    let seen = run(&text, 1000 * US);
    assert_eq!(last(&seen, 0), Some(ANSWERED + ON));
    assert_eq!([0, 1].map(|end| seen.frames[&(MID, end)].bytes), [84 + 1066, 84]);
    assert_eq!([0, 1].map(|end| frames(&seen, OUT, end)), [2, 1]);
    // The request leaves at once, and the reply when it has come.
    let leaves = ASKED + ARP - US;
    assert_eq!([leaves - 1, leaves].map(|at| frames(&run(&text, at), MID, 0)), [0, 1]);
    let back = ASKED + 3 * ARP - US;
    assert_eq!([back - 1, back].map(|at| frames(&run(&text, at), OUT, 1)), [0, 1]);
    // Without `arp` there is no request.
    assert_eq!(last(&run(&(house("") + &one("u", TO, 0)), 1000 * US), 0), Some(ASKED + ON));
}

/// ARP packets are control traffic without a flow on all lines that they cross: 64 bytes of each frame.
#[test]
fn arp_packets_are_posted_as_control_without_a_flow() {
    let seen = run(&(house("arp = {}") + &one("u", TO, 0)), 1000 * US);
    for (link, end) in [(MID, 0), (OUT, 0), (OUT, 1), (MID, 1)] {
        let booked = seen.books[&Booking { link, end, flow: 1, back: true }];
        assert_eq!(booked, Booked { control: 64, ..Booked::default() });
        assert_eq!(seen.accounts[&(link, end)]["ACK and control"], 64 * 8);
        assert_eq!(seen.accounts[&(link, end)]["physical framing"], if end == 0 { 320 } else { 160 });
    }
    assert_eq!((seen.flows.len(), losses(&seen)), (1, vec![]));
    assert_eq!(seen.books.keys().filter(|booking| booking.flow == 1).count(), 4);
    // The lines in the reverse direction have no users.
    assert!(seen.accounts[&(OUT, 1)].contains_key("idle: no sender"));
}

/// The router's processing takes 10 us for the datagram, and another 10 us for the ARP request.
#[test]
fn arp_request_takes_router_processing_time() {
    let seen = run(&(house("per_packet = \"10 us\"\narp = {}") + &one("u", TO, 0)), 1000 * US);
    assert_eq!(last(&seen, 0), Some(ANSWERED + 20 * US + ON));
}

/// Two datagrams from two hosts arrive 1 us apart. The engine takes the second one before the request, which is behind it.
#[test]
fn arp_request_queues_behind_earlier_packets() {
    let text = house("per_packet = \"10 us\"\narp = {}").replace("[host.h1]", "[host.h1]\n[host.h2]")
        + &link("other", ["h2", "r"])
        + &one("u", TO, 0)
        + &one("v", ["h2", "h1"], US);
    let seen = run(&text, 1000 * US);
    let answered = ANSWERED + 30 * US;
    assert_eq!(
        [0, 1].map(|flow| last(&seen, flow)),
        [answered + ON, answered + ON + 1066 * 80_000].map(Some)
    );
}

#[test]
fn arp_requests_are_retried_until_given_up() {
    let lost = house("arp = { retry = \"1 ms\", attempts = 3 }")
        + &event("d", "s/out", 0, "down")
        + &one("u", TO, 0);
    for again in [1, 2] {
        let leaves = ASKED + again * 1000 * US + ARP - US;
        assert_eq!([leaves - 1, leaves].map(|at| frames(&run(&lost, at), MID, 0)), [again, again + 1]);
    }
    let given_up = ASKED + 3000 * US;
    assert_eq!(losses(&run(&lost, given_up - 1)), []);
    let seen = run(&lost, given_up + 10_000 * US);
    assert_eq!(losses(&seen), [(Place::NoReply { node: R }, 0, 1, 1)]);
    // The copies of the switch are lost there and appear nowhere.
    assert_eq!([frames(&seen, MID, 0), frames(&seen, OUT, 0)], [3, 0]);
    // The link is up again for the second request.
    let seen = run(&(lost + &event("u", "s/out", 500 * US, "up")), 2000 * US);
    assert_eq!((last(&seen, 0), losses(&seen)), (Some(ANSWERED + 1000 * US + ON), vec![]));
}

/// Routers finish packets before retries are due: a packet finished at the instant of giving up is first held, then lost. One finished a picosecond later
/// starts a new resolution.
#[test]
fn packets_precede_arp_give_up_at_the_same_instant() {
    for engine in ["", "per_packet = \"10 us\"\n"] {
        let text = house(&(engine.to_owned() + "arp = { retry = \"1 ms\", attempts = 3 }"))
            + &event("d", "s/out", 0, "down")
            + &one("u", TO, 0);
        for (late, requests) in [(0, 3), (1, 6)] {
            let seen = run(&(text.clone() + &one("v", TO, 3000 * US + late)), 10_000 * US);
            let lost = Place::NoReply { node: R };
            assert_eq!(
                (losses(&seen), frames(&seen, MID, 0)),
                (vec![(lost, 0, 1, 1), (lost, 1, 1, 1)], requests)
            );
        }
    }
}

/// Datagrams for `h2` and `h1` arrive at one instant, and the first requests are lost. The next ones are due at one instant, that for `h1` first.
#[test]
fn simultaneous_arp_retries_follow_station_order() {
    let text = house("arp = { retry = \"1 ms\" }").replace("[host.h1]", "[host.h1]\n[host.h2]\n[host.h3]")
        + &link("beside", ["h3", "r"])
        + &link("other", ["s", "h2"])
        + &event("d", "s/mid", 0, "down")
        + &event("u", "s/mid", 500 * US, "up")
        + &one("u", ["h0", "h2"], 0)
        + &one("v", ["h3", "h1"], 0);
    let seen = run(&text, 3000 * US);
    let first = ANSWERED + 1000 * US + ON;
    assert_eq!([0, 1].map(|flow| last(&seen, flow)), [Some(first + 1066 * 80_000), Some(first)]);
}

/// A reply that arrives when the next request is due is in time.
#[test]
fn arp_reply_at_the_retry_instant_is_in_time() {
    let requests = |retry: u64| {
        let text = house(&format!("arp = {{ retry = \"{retry} ps\" }}")) + &one("u", TO, 0);
        frames(&run(&text, 1000 * US), OUT, 1)
    };
    assert_eq!([4 * ARP, 4 * ARP - 1].map(requests), [1, 2]);
}

/// Four datagrams arrive 100 us apart, and the first request is lost.
#[test]
fn arp_hold_queue_keeps_the_newest_packets() {
    let stream = one("u", TO, 0).replace("1 bit/s", "80 Mbit/s") + "stop = \"350 us\"\n";
    let text = |hold: u64| {
        house(&format!("arp = {{ hold = {hold}, retry = \"400 us\" }}"))
            + &event("d", "s/out", 0, "down")
            + &event("u", "s/out", 350 * US, "up")
            + &stream
    };
    let full = Place::HoldFull { node: R };
    let third = ASKED + 200 * US;
    assert_eq!(losses(&run(&text(2), third - 1)), []);
    assert_eq!(losses(&run(&text(2), third)), [(full, 0, 1, 1)]);
    let seen = run(&text(2), 2000 * US);
    assert_eq!((losses(&seen), fates(&seen.flows[0])), (vec![(full, 0, 2, 2)], [4, 2, 2, 0]));
    let first = ANSWERED + 400 * US + ON;
    let second = first + 1066 * 80_000;
    assert_eq!((last(&seen, 0), seen.flows[0].receptions.times), (Some(second), first + second));
    // The third and the fourth one have indices 2 and 3.
    assert_eq!(seen.flows[0].receptions.weighted, 3 * first + 4 * second);
    // All four are lost, although the neighbour becomes known.
    let seen = run(&text(0), 2000 * US);
    assert_eq!((losses(&seen), fates(&seen.flows[0])), (vec![(full, 0, 4, 4)], [4, 0, 4, 0]));
    assert_eq!(frames(&seen, OUT, 1), 1);
}

/// A datagram that reaches the router at the end of the lifetime causes a new request; one that arrives a picosecond earlier does not.
#[test]
fn arp_entry_expires_at_the_end_of_its_lifetime() {
    let late = ANSWERED + 1000 * US - DATA;
    for (start, requests) in [(late - 1, 1), (late, 2)] {
        let seen = run(
            &(house("arp = { lifetime = \"1 ms\" }") + &one("u", TO, 0) + &one("v", TO, start)),
            3000 * US,
        );
        assert_eq!(frames(&seen, OUT, 1), requests);
        let asks = if requests == 2 { 4 * ARP } else { 0 };
        assert_eq!(last(&seen, 1), Some(start + DATA + asks + ON));
    }
}

/// Held packets are lost when the router notices that the link is down. During the outage none is held, and afterwards resolution starts anew.
#[test]
fn link_outage_clears_arp_entries_and_held_packets() {
    let down = Place::Down { link: MID, end: 0 };
    let text = |target: &str, at: u64| {
        house("arp = {}")
            + &event("d", target, at, "down")
            + &event("e", target, 400 * US, "up")
            + &one("u", TO, 0)
            + &one("v", TO, 200 * US)
            + &one("w", TO, 400 * US)
    };
    let at = 100 * US;
    assert_eq!(losses(&run(&text("mid", at), at)), [(down, 0, 1, 1)]);
    // The second one is not held: the queue drops it on arrival.
    let second = 200 * US + DATA;
    assert_eq!(losses(&run(&text("mid", at), second - 1)), [(down, 0, 1, 1)]);
    assert_eq!(losses(&run(&text("mid", at), second)), [(down, 0, 1, 1), (down, 1, 1, 1)]);
    let seen = run(&text("r/mid", at), 2000 * US);
    assert_eq!(losses(&seen), [(down, 0, 1, 1), (down, 1, 1, 1)]);
    assert_eq!(last(&seen, 2), Some(400 * US + ANSWERED + ON));
    // The first request had arrived, and the reply to it was destroyed.
    assert_eq!([0, 1].map(|end| frames(&seen, MID, end)), [3, 1]);
    // The neighbour is known when the link fails, and is requested again.
    let seen = run(&text("mid", 390 * US), 2000 * US);
    assert_eq!((frames(&seen, MID, 1), losses(&seen)), (2, vec![]));
    // The router does not notice this: the first datagram waits for the second request, a second later.
    let seen = run(&text("s/mid", at), 2_000_000 * US);
    assert_eq!((frames(&seen, MID, 1), losses(&seen)), (1, vec![]));
    assert_eq!(last(&seen, 0), Some(ANSWERED + 1_000_000 * US + ON));
}

/// A host without room in its NIC: the reply does not wait for room, but joins the line. The next packet waits for both.
#[test]
fn arp_reply_does_not_wait_for_nic_buffer_space() {
    let text = house("arp = {}").replace("[host.h1]", "[host.h1]\nnic_buffer = \"1 B\"")
        + &one("u", TO, 0)
        + &one("v", ["h1", "h0"], 0).replace("rate = \"1 bit/s\"\n", "");
    // The request arrives during the second packet of `h1`, and the reply follows that.
    let ends = 2 * 1066 * 80_000 + 72 * 80_000;
    let sent = |at: u64| run(&text, at).flows[1].sent;
    assert_eq!([ends - 12 * 80_000, ends - 1, ends].map(sent), [2, 2, 3]);
    assert_eq!([ends - 1, ends].map(|at| frames(&run(&text, at), OUT, 1)), [2, 3]);
    // It waits behind that packet at the switch, too.
    let behind = (1066 + 1054) * 80_000 + US + 1066 * 80_000;
    assert_eq!(last(&run(&text, 1000 * US), 0), Some(behind + ARP + ON));
}

/// Hosts behind routers at one switch: only routers resolve addresses.
fn street(routers: [&str; 3]) -> String {
    let hosts = [0, 1, 2].map(|i| format!("[host.h{i}]\n"));
    let names = ["0", "1", "2"];
    let tables = [0, 1, 2].map(|i| format!("[router.r{i}]\n{}\n", routers[i]));
    let own = names.map(|i| plain(&format!("p{i}"), [&format!("h{i}"), &format!("r{i}")]));
    let shared = names.map(|i| link(&format!("e{i}"), [&format!("r{i}"), "s"]));
    "name = \"street\"\n".to_owned()
        + &hosts.concat()
        + &switch("s")
        + &tables.concat()
        + &own.concat()
        + &shared.concat()
}
/// Links of the routers at the switch.
const E: [usize; 3] = [3, 4, 5];

/// A router replies, whether it resolves addresses itself or not, and its engine takes 10 us for the reply. The first datagram passes it, too.
#[test]
fn router_replies_to_arp_with_and_without_its_own_arp() {
    for router in ["", "\narp = {}"] {
        let text = street(["arp = {}", &format!("per_packet = \"10 us\"{router}"), ""]) + &one("u", TO, 0);
        let seen = run(&text, 1000 * US);
        let answered = POINT + 4 * ARP + 10 * US;
        assert_eq!(last(&seen, 0), Some(answered + 2 * DATA + 10 * US + POINT));
        assert_eq!(E.map(|link| [frames(&seen, link, 0), frames(&seen, link, 1)]), [[2, 1], [1, 2], [0, 1]]);
    }
}

/// A station that gets a request learns the address of its sender.
#[test]
fn arp_request_teaches_the_sender_address() {
    let both = one("u", TO, 0) + &one("v", ["h1", "h0"], 1000 * US);
    let seen = run(&(street(["arp = {}", "arp = {}", ""]) + &both), 3000 * US);
    assert_eq!(last(&seen, 1), Some(1000 * US + 2 * POINT + 2 * DATA));
    assert_eq!(E.map(|link| frames(&seen, link, 0)), [2, 2, 0]);
}

/// `r2` asks for `r0` at 83.24 us, and learns its address 27.04 us later, for a millisecond. At 583.24 us `r0` asks for `r1`, and `r2` hears that 13.52 us
/// later. Therefore `r2` still knows `r0` at 1583.24 us. `r1`, which has heard `r2` ask for another station, has to ask for it.
#[test]
fn arp_request_for_others_refreshes_a_known_entry() {
    let brief = "arp = { lifetime = \"1 ms\" }";
    let text = |at: u64| {
        street([brief; 3])
            + &one("u", ["h2", "h0"], 0)
            + &one("v", TO, at)
            + &one("w", ["h2", "h0"], 1500 * US)
    };
    let from_r2 = |at: u64| frames(&run(&text(at), 3000 * US), E[2], 0);
    // A request and two datagrams; and another request if the second datagram is later than a millisecond after `r2` last heard of `r0`.
    assert_eq!(from_r2(500 * US), 3);
    let heard = 500 * US - 2 * ARP;
    assert_eq!([heard, heard + 1].map(from_r2), [4, 3]);
    let text = street(["arp = {}"; 3]) + &one("u", ["h2", "h0"], 0) + &one("v", ["h1", "h2"], 500 * US);
    assert_eq!(frames(&run(&text, 3000 * US), E[1], 0), 2);
}

/// Both routers ask when the datagrams arrive, and their requests cross. Each request releases the held datagram, and then the reply follows.
#[test]
fn held_packet_leaves_before_the_arp_reply() {
    let text = "name = \"crossing\"\n[host.h0]\n[host.h1]\n[router.r0]\narp = {}\n[router.r1]\narp = {}\n"
        .to_owned()
        + &plain("p0", ["h0", "r0"])
        + &plain("p1", ["h1", "r1"])
        + &link("mid", ["r0", "r1"])
        + &one("u", TO, 0)
        + &one("v", ["h1", "h0"], 0);
    let seen = run(&text, 1000 * US);
    assert_eq!([0, 1].map(|flow| last(&seen, flow)), [Some(POINT + ARP + DATA + POINT); 2]);
    assert_eq!([0, 1].map(|end| frames(&seen, 2, end)), [3, 3]);
}

/// A ring of three switches with a host each, and a second link between the first two: a request reaches each node once, and no switch on two paths. A fourth
/// switch has links to the last two: it gets the request from the first of these, although that link is the later one in the file.
#[test]
fn arp_request_reaches_every_node_once() {
    let links = [
        ("in", ["h0", "r"]),
        ("up", ["r", "s0"]),
        ("a", ["s0", "s1"]),
        ("b", ["s1", "s0"]),
        ("c", ["s1", "s2"]),
        ("d", ["s2", "s0"]),
        ("x1", ["h1", "s1"]),
        ("x2", ["s2", "h2"]),
        ("x3", ["s0", "h3"]),
        ("e", ["s2", "s3"]),
        ("f", ["s1", "s3"]),
    ];
    let text = "name = \"ring\"\n[host.h0]\n[host.h1]\n[host.h2]\n[host.h3]\n".to_owned()
        + &["s0", "s1", "s2", "s3"].map(switch).concat()
        + "[router.r]\narp = {}\n"
        + &links.map(|(name, ends)| link(name, ends)).concat()
        + &one("u", ["h0", "h2"], 0);
    // Until the copies have reached all nodes, and before the datagram leaves.
    let seen = run(&text, DATA + 6 * ARP);
    let all: Vec<[u64; 2]> = (1..11).map(|link| [0, 1].map(|end| frames(&seen, link, end))).collect();
    let once = [[1, 1], [1, 0], [0, 0], [0, 0], [1, 1], [0, 1], [1, 1], [1, 0], [0, 0], [1, 0]];
    assert_eq!(all, once);
    // Three lines each way.
    assert_eq!(last(&run(&text, 1000 * US), 0), Some(DATA + 6 * ARP + 3 * DATA));
}

/// Two links to one station are two neighbours, and only the first one carries requests to it.
#[test]
fn parallel_links_to_a_station_resolve_separately() {
    let text = "name = \"two\"\n[host.h0]\n[host.h1]\n".to_owned()
        + &switch("s")
        + "[router.r0]\narp = {}\necmp = \"round-robin\"\n[router.r1]\n"
        + &plain("p0", ["h0", "r0"])
        + &plain("p1", ["h1", "r1"])
        + &link("a", ["r0", "s"])
        + &link("b", ["r0", "s"])
        + &link("c", ["s", "r1"])
        + &one("u", TO, 0).replace("1 bit/s", "8 Mbit/s")
        + "stop = \"3500 us\"\n";
    let seen = run(&text, 10_000 * US);
    assert_eq!([2, 3].map(|link| [0, 1].map(|end| frames(&seen, link, end))), [[3, 1], [3, 1]]);
    // Two requests and four datagrams; no copy returns to the router that asks.
    assert_eq!([0, 1].map(|end| frames(&seen, 4, end)), [6, 2]);
    // The reverse path uses `a`, and `r1` asks for the station once.
    let back = text
        .replace("[router.r1]", "[router.r1]\narp = {}")
        .replace("from = \"h0\"\nto = \"h1\"", "from = \"h1\"\nto = \"h0\"");
    assert_eq!(
        [2, 3].map(|link| [0, 1].map(|end| frames(&run(&back, 10_000 * US), link, end))),
        [[1, 5], [0, 0]]
    );
}

/// Copies made by a switch join queues like other frames, with the same order and losses: the queue towards `h1` has one place, which a frame of `h2` occupies.
#[test]
fn arp_request_copy_is_dropped_by_a_full_queue() {
    let text = house("arp = { retry = \"1 ms\" }").replace("[host.h1]", "[host.h1]\n[host.h2]").replace(
        "kind = \"ethernet\"",
        "kind = \"ethernet\"\nqueue = { drop-tail = { limit = \"1 packets\" } }",
    ) + &link("other", ["h2", "s"])
        + &one("u", TO, 0)
        + &one("v", ["h2", "h1"], 0);
    let seen = run(&text, 3000 * US);
    // The frame of `h2` is on `out` from 85.32 us on, and the request comes to the switch 6.76 us later.
    assert_eq!(losses(&seen), []);
    assert_eq!([0, 1].map(|end| frames(&seen, OUT, end)), [3, 1]);
    assert_eq!(last(&seen, 0), Some(ANSWERED + 1000 * US + ON));
}

/// A packet that enters a tunnel waits for the address of the tunnel's end; multicast packets need none.
#[test]
fn tunnel_packets_need_arp_and_multicast_does_not() {
    let row = "name = \"row\"\n[host.h0]\n[host.h1]\n[router.r0]\narp = {}\n[router.r1]\n".to_owned()
        + &plain("p0", ["h0", "r0"])
        + &plain("p1", ["h1", "r1"])
        + &link("mid", ["r0", "r1"]);
    let tunnel = "[tunnel.t]\nends = [\"r0\", \"r1\"]\n";
    // 24 bytes more.
    let inside = 24 * 80_000;
    let seen = run(&(row.clone() + tunnel + &one("u", TO, 0)), 1000 * US);
    assert_eq!(last(&seen, 0), Some(POINT + 2 * ARP + DATA + inside + POINT));
    let group = one("u", TO, 0).replace("udp-stream", "multicast").replace("to = \"h1\"", "to = [\"h1\"]");
    let seen = run(&(row.clone() + &group), 1000 * US);
    assert_eq!((last(&seen, 0), frames(&seen, 2, 0)), (Some(POINT + DATA + POINT), 1));
    // The outer packet goes to a router.
    let seen = run(&(row + tunnel + &group), 1000 * US);
    assert_eq!((last(&seen, 0), frames(&seen, 2, 0)), (Some(POINT + 2 * ARP + DATA + inside + POINT), 2));
}

/// A router's message is held, like the answer to the SYN, because addresses are known for only 1 us. A SYN of BSD is a packet of 44 B: it is at `r` after 6.76
/// us, at `h1` after 15.8 us, and its answer at `r` after 24.84 us. The ARP reply for it arrives 13.52 us later, and the answer is at `h0` after 45.12 us. Then
/// `h0` acknowledges, 84 B on the line until 51.84 us, and sends a segment of 1040 B, which is at `r` after 138.12 us. The message is a packet of 576 B.
#[test]
fn icmp_message_waits_for_arp() {
    let text = "name = \"narrow\"\n[host.h0.tcp]\nprofile = \"bsd-reno\"\npath_mtu = \"discovered\"\nnagle = \"off\"\ninitial_window = 4\n".to_owned()
        + "[host.h1.tcp]\nprofile = \"bsd-reno\"\n[router.r]\narp = { lifetime = \"1 us\" }\n[router.r1]\n"
        + &link("in", ["h0", "r"])
        + &plain("thin", ["r", "r1"])
        + "mtu = \"600 B\"\n"
        + &plain("out", ["r1", "h1"])
        + &one("t", TO, 0).replace("udp-stream", "tcp-stream");
    let lost = 138_120_000;
    assert_eq!(losses(&run(&text, lost - 1)), []);
    let leaves = lost + 2 * ARP + 602 * 80_000;
    let sent = |at: u64| run(&text, at).frames[&(0, 1)].clone();
    assert_eq!(sent(leaves - 1), FramesSeen { frames: 3, bytes: 3 * 84 });
    assert_eq!(sent(leaves), FramesSeen { frames: 4, bytes: 3 * 84 + 614 });
    assert_eq!(losses(&run(&text, leaves)), [(Place::TooBig { node: 2 }, 0, 1, 1)]);
}

/// The router considers its link down although the line is up: the other end has brought it up.
#[test]
fn arp_works_if_router_sees_link_down_but_line_is_up() {
    let text = house("arp = {}")
        + &event("d", "r/mid", 0, "down")
        + &event("u", "s/mid", 10 * US, "up")
        + &one("t", TO, 20 * US);
    let seen = run(&text, 10_000 * US);
    assert_eq!(fates(&seen.flows[0]), [1, 1, 0, 0]);
    // A request and the datagram there, and a reply back.
    assert_eq!([frames(&seen, MID, 0), frames(&seen, MID, 1)], [2, 1]);
}
