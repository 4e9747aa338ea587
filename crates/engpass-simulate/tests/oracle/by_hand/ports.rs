//! Output ports, policing and reassembly.

use engpass_model::circuit::Category;
use engpass_model::discard::Discard;
use engpass_model::schedule::Schedule;
use engpass_model::shape::{Policing, PolicingAction};
use engpass_model::switch::Switch;
use engpass_model::wire::Medium;
use engpass_testbed::Testbed;

use super::{departed, fates, left, losses, seen};
use crate::bench::{bench, circuit, hosts, link, q, switch, udp};
use crate::outcome::{Cause, Place};

pub(super) const END: u64 = 2_500_000_000;
/// The port from the switch to `c`: link 2, end 0.
pub(super) const PORT: Place = Place::Port { link: 2, end: 0, cause: Cause::Full };

/// `a` and `b` send one message of 3 cells each to `c` through one switch, at the same time.
///
/// Their cells arrive at the switch in pairs, at 1 us + 1, 2 and 3 slots: 3 831 197, 6 662 394 and 9 493 590. The port's busy period
/// begins with the first pair; its cells have left at 6 662 394, 9 493 591, 12 324 787, 15 155 984, 17 987 180 and 20 818 377.
pub(super) fn funnel(buffer: u64, schedule: Schedule) -> Testbed {
    let mut testbed = bench("2.5 ms");
    hosts(&mut testbed, &["a", "b", "c"]);
    switch(&mut testbed, "x", buffer, schedule);
    link(&mut testbed, ["a", "x"], Medium::Oc3c);
    link(&mut testbed, ["b", "x"], Medium::Oc3c);
    link(&mut testbed, ["x", "c"], Medium::Oc3c);
    for host in ["a", "b"] {
        circuit(&mut testbed, host, "c");
        udp(&mut testbed, host, "c", 100).rate = Some(q("1 bit/s"));
    }
    testbed
}

pub(super) fn fifo() -> Schedule {
    Schedule::Fifo(Default::default())
}

fn priority() -> Schedule {
    Schedule::Priority(Default::default())
}

#[test]
fn a_switch_adds_one_slot_and_a_delay() {
    let mut testbed = funnel(10, fifo());
    testbed.traffic.shift_remove("b>c");
    // Every cell but the first arrives before the one before has left: 3 831 197 + 3 slots + 1 us.
    let seen = seen(&testbed, END);
    assert_eq!(departed(&seen, 2, 0), [left(3, 12_324_787)]);
    assert_eq!(seen.flows[0].receptions.last, Some(13_324_787));
}

#[test]
fn fifo_port_serves_ties_in_link_order() {
    // a b a b a b
    let seen = seen(&funnel(10, fifo()), END);
    assert_eq!(departed(&seen, 2, 0), [left(3, 17_987_180), left(3, 20_818_377)]);
    assert_eq!(seen.flows[0].receptions.last, Some(18_987_180));
    assert_eq!(seen.flows[1].receptions.last, Some(21_818_377));
}

#[test]
fn priority_port_serves_cbr_first() {
    let mut testbed = funnel(10, priority());
    testbed.circuits["b-c"].category = Category::Cbr;
    // The second pair arrives as the first cell has left, the third before the second has: b b b a a a.
    let seen = seen(&testbed, END);
    assert_eq!(departed(&seen, 2, 0), [left(3, 20_818_377), left(3, 12_324_787)]);
    assert_eq!(seen.flows[1].receptions.last, Some(13_324_787));
}

#[test]
fn priority_does_not_preempt_the_cell_being_sent() {
    let mut testbed = funnel(10, priority());
    testbed.circuits["b-c"].category = Category::Cbr;
    testbed.links["b-x"].delay = q("1.000001 us");
    // b's cells are 1 ps later than a's: a's first is being sent when b's first arrives, and has left at 6 662 394. Then
    // b's first goes, its second at 9 493 591, its third at 12 324 787, until 15 155 984; a's other two follow.
    let seen = seen(&testbed, END);
    assert_eq!(departed(&seen, 2, 0), [left(3, 20_818_377), left(3, 15_155_984)]);
}

#[test]
fn tail_drop_with_two_places_matches_hand_calculation() {
    // First pair: both accepted. At 6 662 394 a's first has left: a's second is accepted, b's second finds two. At
    // 9 493 590 b's first is still there for 1 ps: both third cells are lost.
    let seen = seen(&funnel(2, fifo()), END);
    assert_eq!(departed(&seen, 2, 0), [left(2, 12_324_787), left(1, 9_493_591)]);
    assert_eq!(losses(&seen), [(PORT, 0, 1, 1), (PORT, 1, 2, 1)]);
    assert_eq!((fates(&seen.flows[0]), fates(&seen.flows[1])), ([1, 0, 1, 0], [1, 0, 1, 0]));
}

#[test]
fn ppd_keeps_the_last_cell_of_a_pdu() {
    // Five cells each, in pairs up to 12 324 787 and 15 155 983. As with tail drop, b's second, a's third and b's third are lost. The port is empty when the
    // fourth pair arrives, but both belong to PDUs with a loss; their ends, in the fifth pair, are accepted.
    let mut testbed = funnel(2, fifo());
    for host in ["a", "b"] {
        udp(&mut testbed, host, "c", 200).rate = Some(q("1 bit/s"));
    }
    let Switch::Atm(config) = &mut testbed.switches["x"] else { panic!("the funnel has an ATM switch") };
    config.discard = Discard::Ppd(Default::default());
    let seen = seen(&testbed, END);
    assert_eq!(departed(&seen, 2, 0), [left(3, 17_987_180), left(2, 20_818_377)]);
    let policy = Place::Port { link: 2, end: 0, cause: Cause::Policy };
    let lost = [(PORT, 0, 1, 1), (PORT, 1, 2, 1), (policy, 0, 1, 0), (policy, 1, 1, 0)];
    assert_eq!(losses(&seen), lost);
}

#[test]
fn service_categories_do_not_share_buffer_space() {
    let mut testbed = funnel(2, priority());
    testbed.circuits["b-c"].category = Category::Cbr;
    // b is served at once and never holds more than two: at 9 493 590 its second is being sent and its third waits. a's first two wait all the
    // time, its third is lost.
    let seen = seen(&testbed, END);
    assert_eq!(losses(&seen), [(PORT, 0, 1, 1)]);
    assert_eq!(fates(&seen.flows[1]), [1, 1, 0, 0]);
}

#[test]
fn lost_last_cell_also_loses_the_next_datagram() {
    let mut testbed = funnel(2, fifo());
    udp(&mut testbed, "a", "c", 100).rate = Some(q("800 kbit/s"));
    // a's messages come every millisecond. The first loses its last cell at the port; its first two cells and the whole second
    // message are one PDU; the third is whole.
    let seen = seen(&testbed, END);
    assert_eq!(fates(&seen.flows[0]), [3, 1, 2, 0]);
    assert_eq!(losses(&seen)[0], (PORT, 0, 1, 1));
    assert_eq!(losses(&seen)[2], (Place::Reassembly { router: None }, 0, 0, 1));
    assert_eq!(seen.flows[0].receptions.weighted, 3 * seen.flows[0].receptions.times);
}

#[test]
fn a_policer_counts_in_fractions_of_a_picosecond() {
    let mut testbed = funnel(10, fifo());
    testbed.traffic.shift_remove("b>c");
    let policing = |rate, tolerance| Policing {
        rate: q(rate),
        counts: None,
        tolerance: q(tolerance),
        action: PolicingAction::Discard,
    };
    // Two slots are 5 662 393.16 ps, but the third cell arrives 8 493 590 - 2 831 197 = 5 662 393 ps after the first: less than a picosecond early. At the
    // second rate T is 5 662 394.29 ps.
    let place = Place::Policer { link: 2, end: 0 };
    for (rate, tolerance, lost) in [("50 %", "0 ps", 1), ("49.99999 %", "0 ps", 2), ("49.99999 %", "1 ps", 1)]
    {
        testbed.circuits["a-c"].policing = Some(policing(rate, tolerance));
        assert_eq!(losses(&seen(&testbed, END)), [(place, 0, lost, 1)], "{rate}, {tolerance}");
    }
    // Against the circuit's direction nothing is policed.
    testbed.circuits["a-c"].from = "c".into();
    testbed.circuits["a-c"].to = "a".into();
    assert_eq!(losses(&seen(&testbed, END)), []);
}
