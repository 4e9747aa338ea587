//! Receivers that join and leave a multicast group.
//!
//! A byte takes 80 ns at 100 Mbit/s, and all delays are 1 us. An IGMP packet of 32 bytes takes 84 bytes of an Ethernet line, 72 of them before the gap: it
//! crosses a line in 6.76 us. A datagram of 1000 B takes 1054 bytes before the gap, and crosses in 85.32 us. Datagrams are sent every millisecond.

use super::{fates, losses, run_for};
use crate::outcome::{Booked, Booking, MemberSeen, Observed, Place};

/// Time in which an IGMP packet, and a datagram, crosses a line, in ps.
const IGMP: u64 = 6_760_000;
const DATA: u64 = 85_320_000;
const US: u64 = 1_000_000;
const MS: u64 = 1000 * US;

/// A sender, a router, a switch with two receivers, and a receiver at the router. Nodes: hosts 0 to 3, the switch 4, the router 5.
fn house(router: &str, igmp: &str) -> String {
    let mut text = String::from("name = \"house\"\n[host.h0]\n[host.h1]\n[host.h2]\n[host.h3]\n");
    text += "[switch.s]\nkind = \"ethernet\"\n";
    for (name, ends) in
        [("in", ["h0", "r"]), ("mid", ["r", "s"]), ("a", ["s", "h1"]), ("b", ["s", "h2"]), ("c", ["r", "h3"])]
    {
        text += &format!("[link.{name}]\nends = {ends:?}\nmedium = \"ethernet-100\"\ndelay = \"1 us\"\n");
    }
    text += &format!("[router.r]\n{router}\n");
    text + &format!(
        "[traffic.g]\nkind = \"multicast\"\nfrom = \"h0\"\nto = [\"h1\", \"h2\", \"h3\"]\nmessage = \"1000 B\"\nrate = \"8 Mbit/s\"\n{igmp}\n"
    )
}
const SWITCH: usize = 4;
const ROUTER: usize = 5;
const IN: usize = 0;
const MID: usize = 1;
const A: usize = 2;
const B: usize = 3;
const C: usize = 4;
/// Indices in `Observed::flows`: the flow has index 0, and its receivers follow.
const H1: usize = 1;
const H2: usize = 2;
const H3: usize = 3;

fn event(name: &str, host: &str, at: u64, change: &str) -> String {
    format!("[event.{name}]\ntarget = \"{host}\"\ntraffic = \"g\"\nat = \"{at} ps\"\nchange = \"{change}\"\n")
}

fn run(text: &str, at: u64) -> Observed {
    run_for("members.toml", text, at)
}

fn frames(seen: &Observed, link: usize, end: usize) -> u64 {
    seen.frames.get(&(link, end)).map_or(0, |seen| seen.frames)
}

#[test]
fn branch_gets_copies_from_the_arrival_of_the_report_on() {
    // Datagram `k` comes to the router `k` ms and 85.32 us after the beginning, and to the switch 85.32 us later. The
    // other receiver behind the switch never joins.
    let only =
        |at: u64| house("", "") + &event("on", "h1", at, "join") + &event("never", "h2", 60 * MS, "join");
    // If the report and datagram 3 arrive at one instant, the datagram is first: its link comes first in the file.
    let with = 3 * MS + DATA - 2 * IGMP;
    for (at, first) in [(with - 1, 3), (with, 4)] {
        let seen = run(&only(at), 5 * MS + 500 * US);
        // Of six datagrams numbers 4 and 5 count. Number 3 was begun before the join, although it may be the first that comes.
        assert_eq!(fates(&seen.flows[H1])[0], 2);
        assert_eq!(
            [frames(&seen, MID, 0), frames(&seen, A, 0), frames(&seen, B, 0)],
            [6 - first, 6 - first, 0]
        );
        assert_eq!(frames(&seen, C, 0), 6);
        let join = first * MS + 3 * DATA - at;
        assert_eq!(seen.flows[H1].member.and_then(|member| member.join), Some(join));
    }
}

#[test]
fn report_takes_effect_when_the_route_processor_has_worked_on_it() {
    // The card of `mid` takes 100 us for a report, and the route processor 200 us. Datagrams take no time.
    let router = "processor = { control = \"200 us\" }\n[router.r.cards.lan]\nlinks = [\"mid\"]\nengine = { punt = \"100 us\" }";
    let only =
        |at: u64| house(router, "") + &event("on", "h1", at, "join") + &event("never", "h2", 60 * MS, "join");
    let with = 3 * MS + DATA - 2 * IGMP - 300 * US;
    for (at, first) in [(with - 1, 3), (with + 1, 4)] {
        let seen = run(&only(at), 5 * MS + 500 * US);
        assert_eq!([frames(&seen, MID, 0), frames(&seen, A, 0)], [6 - first, 6 - first]);
        assert_eq!(seen.busy[&(ROUTER, 0)], 200 * US);
        assert_eq!(seen.busy[&(ROUTER, 1)], 100 * US);
    }
}

#[test]
fn report_is_lost_in_front_of_a_full_route_processor() {
    // Both receivers behind the switch report at one instant; the second report finds the first one in work, and the queue holds one packet.
    let router = "processor = { control = \"200 us\", input_queue = \"1 packet\" }";
    let igmp = "igmp = { robustness = 1 }";
    let text = house(router, igmp) + &event("one", "h1", MS, "join") + &event("two", "h2", MS, "join");
    let seen = run(&text, 5 * MS + 500 * US);
    let received = [H1, H2].map(|receiver| fates(&seen.flows[receiver])[1]);
    assert!(received[0] > 0, "{received:?}");
    assert_eq!(received[1], 0);
    assert_eq!([frames(&seen, A, 0), frames(&seen, B, 0)], [received[0], 0]);
}

#[test]
fn receiver_that_never_joined_costs_only_the_first_line() {
    let mut text = house("", "");
    for host in ["h1", "h2", "h3"] {
        text += &event(host, host, 60 * MS, "join");
    }
    let seen = run(&text, 5 * MS + 500 * US);
    assert_eq!([IN, MID, A, B, C].map(|link| frames(&seen, link, 0)), [6, 0, 0, 0, 0]);
    assert_eq!([H1, H2, H3].map(|receiver| fates(&seen.flows[receiver])), [[0; 4]; 3]);
    assert_eq!(losses(&seen), []);
    // No receiver gets the datagrams that the first line has carried.
    assert_eq!(seen.accounts[&(IN, 0)]["lost datagrams"], 6 * 1046 * 8);
}

#[test]
fn branch_is_pruned_after_the_last_member_query_time() {
    let igmp = "igmp = { last_member_query_count = 2, last_member_query_interval = \"1 ms\" }";
    let leaves = 2 * MS;
    // The leave message crosses two lines, and the queries take 2 ms. Datagram 4 comes to the router after 4.08532 ms, later than that.
    let seen = run(&(house("", igmp) + &event("off", "h1", leaves, "leave")), 6 * MS + 500 * US);
    let until = leaves + 2 * IGMP + 2 * MS;
    assert!(until < 4 * MS + DATA);
    assert_eq!([frames(&seen, A, 0), frames(&seen, B, 0), frames(&seen, MID, 0)], [4, 7, 7]);
    // Datagrams 0 and 1 count. The last one that came is number 3.
    assert_eq!(fates(&seen.flows[H1]), [2, 2, 0, 0]);
    let member = MemberSeen { within: leaves, join: None, leave: Some(3 * MS + 3 * DATA - leaves) };
    assert_eq!(seen.flows[H1].member, Some(member));
    assert_eq!(losses(&seen), []);
}

#[test]
fn report_before_the_end_of_the_queries_keeps_the_branch() {
    let igmp = "igmp = { last_member_query_interval = \"1 ms\" }";
    let text = house("", igmp)
        + &event("on", "h1", 0, "join")
        + &event("off", "h1", 2 * MS, "leave")
        + &event("again", "h1", 3 * MS, "join");
    let seen = run(&text, 6 * MS + 500 * US);
    assert_eq!(frames(&seen, A, 0), 7);
    // Datagram 2, begun when the host leaves, does not count.
    assert_eq!(fates(&seen.flows[H1]), [6, 6, 0, 0]);
}

#[test]
fn lost_report_is_repeated() {
    let igmp = "igmp = { unsolicited_report_interval = \"2 ms\" }";
    let down = format!(
        "[event.cut]\ntarget = \"a\"\nat = \"1 ms\"\nchange = \"down\"\n[event.back]\ntarget = \"a\"\nat = \"{} us\"\nchange = \"up\"\n",
        1500
    );
    let text = house("", igmp) + &event("on", "h1", MS, "join") + &down;
    let seen = run(&text, 5 * MS + 500 * US);
    // Datagrams 1 and 2, begun after the join, found no known member at the switch. The one that is begun with the repeated report follows it.
    assert_eq!(fates(&seen.flows[H1]), [5, 3, 2, 0]);
    assert_eq!(losses(&seen), [(Place::NoMember { node: SWITCH }, 0, 0, 2)]);
    assert_eq!(frames(&seen, A, 1), 2);
    assert_eq!(seen.flows[H1].member.and_then(|member| member.join), Some(3 * MS + 3 * DATA - MS));
}

#[test]
fn lost_leave_message_ends_forwarding_after_the_membership_interval() {
    let igmp = "igmp = { group_membership_interval = \"2 ms\" }";
    let cut = "[event.cut]\ntarget = \"mid\"\nat = \"2 ms\"\nchange = \"down\"\n[event.back]\ntarget = \"mid\"\nat = \"2500 us\"\nchange = \"up\"\n";
    let text = house("", igmp) + &event("off", "h1", 2 * MS, "leave") + cut;
    let seen = run(&text, 6 * MS + 500 * US);
    // Datagrams 0, 1 and 3 reach `h1`; number 2 is lost on the line that is down, and number 4 comes after 4 ms.
    assert_eq!([frames(&seen, A, 0), frames(&seen, B, 0)], [3, 6]);
    assert_eq!(fates(&seen.flows[H1]), [2, 2, 0, 0]);
    assert_eq!(fates(&seen.flows[H2]), [7, 6, 1, 0]);
}

#[test]
fn igmp_packets_are_posted_as_control_without_a_flow() {
    let text = house("", "") + &event("on", "h1", MS, "join") + &event("off", "h1", 2 * MS, "leave");
    let seen = run(&text, 3 * MS);
    for link in [A, MID] {
        let booked = seen.books[&Booking { link, end: 1, flow: 4, back: true }];
        assert_eq!(booked, Booked { control: 2 * 64, ..Booked::default() });
        assert_eq!(seen.accounts[&(link, 1)]["ACK and control"], 2 * 64 * 8);
    }
    assert_eq!(frames(&seen, C, 1) + frames(&seen, IN, 1), 0);
}

#[test]
fn router_takes_its_time_for_each_copy_beyond_the_first() {
    let (packet, copy) = (20 * US, 30 * US);
    let router = "per_packet = \"20 us\"\nper_copy = \"30 us\"";
    let last = |text: &str, receiver: usize| run(text, MS - US).flows[receiver].receptions.last;
    // Two copies: for the switch and for `h3`.
    let both = house(router, "");
    assert_eq!(last(&both, H3), Some(2 * DATA + packet + copy));
    assert_eq!(last(&both, H1), Some(3 * DATA + packet + copy));
    // A branch without members costs nothing.
    let one = both + &event("off", "h3", 60 * MS, "join");
    assert_eq!(last(&one, H1), Some(3 * DATA + packet));
    assert_eq!(last(&one, H3), None);
}

/// Copies keep the engine busy, so its input queue overflows earlier.
#[test]
fn copies_fill_the_input_queue() {
    let slow = |per_copy: &str| {
        let router = format!("{per_copy}input_queue = \"1 packets\"");
        run(&house(&router, ""), 5 * MS + 500 * US)
    };
    assert_eq!(losses(&slow("")), []);
    // Of six datagrams every other one finds the engine with the one before it.
    let seen = slow("per_copy = \"1500 us\"\n");
    assert_eq!(losses(&seen), [(Place::InputFull { node: ROUTER, engine: 0 }, 0, 3, 9)]);
}

#[test]
fn slow_receiver_loses_in_its_own_queue_and_delays_nobody() {
    let with = |medium: &str| {
        let text = house("queue = { drop-tail = { limit = \"2 packets\" } }", "");
        let narrow = "[link.c]\nends = [\"r\", \"h3\"]\nmedium = \"ethernet-100\"";
        let text = text.replace(narrow, &format!("[link.c]\nends = [\"r\", \"h3\"]\n{medium}"));
        run(&(text + &event("on", "h1", MS, "join")), 20 * MS)
    };
    let fast = with("medium = \"ethernet-100\"");
    let slow = with("medium = \"point-to-point\"\nrate = \"1 Mbit/s\"\noverhead = \"0 B\"");
    let queue = |place: &Place| matches!(place, Place::Queue { link: C, end: 0, .. });
    assert!(losses(&slow).iter().all(|(place, ..)| queue(place)));
    let [sent, received, lost, _] = fates(&slow.flows[H3]);
    assert!(received <= 3 && lost >= sent - 6, "{received} of {sent} received, {lost} lost");
    // The others get the same datagrams at the same instants.
    for receiver in [H1, H2] {
        assert_eq!(slow.flows[receiver], fast.flows[receiver]);
        assert_eq!(slow.flows[receiver].lost, 0);
    }
}
