//! ATM switches whose ports wait for each other, in a ring or along many paths. The cost of a run must not depend on the delays.
//!
//! These tests find a defect by a crash, or by a run that never ends.

use engpass_simulate::simulate;
use engpass_testbed::{Point, Source, load};

use crate::fast::difference;

fn point(text: &str, overrides: &[(&str, &str)]) -> Point {
    let source = Source { name: "ring.toml".into(), text: text.into() };
    let overrides: Vec<_> = overrides.iter().map(|(path, value)| ((*path).into(), (*value).into())).collect();
    let campaign = load(&source, &overrides, None).unwrap_or_else(|found| panic!("{}", found.render(false)));
    campaign.point("base", &[]).expect("the file has a base point")
}

/// Five switches in a ring of OC-3c links with a delay of 10 ns, a host at each, and a stream of 20 Mbit/s from each host to the host two
/// switches further on.
const RING: &str = include_str!("ring-of-five.toml");

#[test]
fn ring_of_links_of_10_ns_equals_the_oracle() {
    assert_eq!(difference(&point(RING, &[]).testbed, 1), Ok(()));
}

#[test]
fn ring_of_links_of_1_ps_equals_the_oracle() {
    let text = RING.replace("10 ns", "1 ps");
    assert_eq!(difference(&point(&text, &[]).testbed, 1), Ok(()));
}

/// A cell time of 424 ps, and one datagram per second: nearly all cell times are idle.
#[test]
fn idle_ring_of_fast_links_takes_no_step_per_cell_time() {
    let text = RING.replace("10 ns", "1 ps").replace("\"oc-3c\"", "\"atm\"\nrate = \"1000 Gbit/s\"");
    let text = text.replace("20 Mbit/s", "72 kbit/s");
    let Point { testbed, topology, .. } = point(&text, &[("run.duration", "5 s")]);
    let outcome = simulate(&testbed, &topology, 1, &|| false).expect("the simulation succeeds");
    let received: Vec<u64> = outcome.flows.iter().map(|(_, flow)| flow.datagrams.unwrap().received).collect();
    assert_eq!(received, [5; 5]);
}

/// A chain of diamonds: from switch `s0` to `s1` by `a0` or `b0`, from there to `s2` by `a1` or `b1`, and so on. Circuits use `a` in one direction and `b` in
/// the other, so that a port of the last diamond waits for the first diamond along 2^`count` paths of different lengths.
fn diamonds(count: usize) -> String {
    let mut text = String::from("name = \"diamonds\"\n[run]\nduration = \"20 ms\"\n");
    let mut add = |part: String| text += &part;
    let mut names: Vec<String> = (0..=count).map(|index| format!("s{index}")).collect();
    names.extend((0..count).flat_map(|index| [format!("a{index}"), format!("b{index}")]));
    for name in &names {
        add(format!("[host.h{name}]\n[switch.{name}]\nkind = \"atm\"\noutput_buffer = \"256 cells\"\n"));
    }
    let mut link = |from: String, to: String, longer: u64| {
        let delay = 1_000_000 + longer;
        add(format!(
            "[link.{from}-{to}]\nends = [\"{from}\", \"{to}\"]\nmedium = \"oc-3c\"\ndelay = \"{delay} ps\"\n"
        ));
    };
    // Among routes of equal length, the one with the first links of the file is taken: over `a` from `s0`, over `b` from `s1`.
    for index in 0..count {
        link(format!("s{index}"), format!("a{index}"), 0);
        link(format!("b{index}"), format!("s{}", index + 1), 0);
    }
    for index in 0..count {
        link(format!("a{index}"), format!("s{}", index + 1), 0);
        link(format!("s{index}"), format!("b{index}"), 1 << index);
    }
    for name in &names {
        link(format!("h{name}"), name.clone(), 0);
    }
    let last = count - 1;
    let mut stream = |from: String, to: String, turned: bool| {
        let (first, second) = if turned { (&to, &from) } else { (&from, &to) };
        // While the last diamond is busy, the others have not begun.
        let start = if from == format!("s{last}") { 5 } else { 15 };
        add(format!(
            "[circuit.{from}-{to}-{turned}]\nfrom = \"h{first}\"\nto = \"h{second}\"\n[traffic.{from}-{to}-{turned}]\nkind = \
             \"udp-stream\"\nfrom = \"h{from}\"\nto = \"h{to}\"\ncircuit = \"{from}-{to}-{turned}\"\nmessage = \"100 B\"\nrate = \
             \"100 kbit/s\"\nstart = \"{start} ms\"\n"
        ));
    };
    for index in 0..count {
        stream(format!("s{index}"), format!("s{}", index + 1), false);
        stream(format!("s{index}"), format!("s{}", index + 1), true);
        for [from, to] in ["aa", "ab", "ba", "bb"].map(|sides| [&sides[..1], &sides[1..]]) {
            if index < last {
                stream(format!("{from}{index}"), format!("{to}{}", index + 1), false);
            }
        }
    }
    text
}

#[test]
fn port_behind_many_paths_waits_for_each_port_once() {
    let Point { testbed, .. } = point(&diamonds(36), &[]);
    assert_eq!(difference(&testbed, 1), Ok(()));
}
