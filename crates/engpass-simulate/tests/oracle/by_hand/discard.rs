//! Discard policies, cell loss priority and congestion marks.
//!
//! `a` and `b` send to `c` through one switch as in [`super::ports`]: pair `k` of their cells arrives at `t(k)`, 1 us + `k` slots, and the
//! `j`-th cell of the port's busy period has left at `d(j)`, 3 831 197 + `j` slots. So `d(k - 1)` is `t(k)` for k = 2, 4 and 6, but
//! 1 ps later for k = 3 and 5: then one more cell is still there.

use engpass_model::discard::{Discard, Epd, EpdPpd, Fba, RandomEpd, SelectiveDrop};
use engpass_model::shape::{Policing, PolicingAction};
use engpass_model::switch::{AtmSwitch, Switch};
use engpass_model::unit::{FillLevel, Share};
use engpass_testbed::Testbed;

use super::ports::{END, PORT, fifo, funnel};
use super::{departed, fates, left, losses, seen};
use crate::bench::{q, udp};
use crate::outcome::{Cause, Departed, Place};

const REFUSED: Place = Place::Port { link: 2, end: 0, cause: Cause::Policy };
const LOW: Place = Place::Port { link: 2, end: 0, cause: Cause::LowPriority };

fn switch(testbed: &mut Testbed) -> &mut AtmSwitch {
    let Switch::Atm(config) = &mut testbed.switches["x"] else { panic!("`x` is an ATM switch") };
    config
}

/// Five cells each.
fn five(buffer: u64, discard: Discard) -> Testbed {
    let mut testbed = funnel(buffer, fifo());
    for host in ["a", "b"] {
        udp(&mut testbed, host, "c", 200).rate = Some(q("1 bit/s"));
    }
    switch(&mut testbed).discard = discard;
    testbed
}

/// Five cells of one PDU from `a`, and five PDUs of one cell each from `b`, whose NIC holds only one. Each of these is handed over when the one before leaves,
/// at a rounded instant, so b4 and b5 arrive 1 and 2 ps late: b5 after `d(4)`.
fn many(buffer: u64, discard: Discard) -> Testbed {
    let mut testbed = five(buffer, discard);
    testbed.hosts["b"].nic_buffer = q("40 B");
    let stream = udp(&mut testbed, "b", "c", 12);
    stream.stop = Some(q("9 us"));
    testbed
}

#[test]
fn epd_discards_a_pdu_that_starts_above_the_threshold() {
    let testbed = five(10, Discard::Epd(Epd { threshold: FillLevel::Cells(0) }));
    // a1 finds an empty queue, and b1 finds a1: more than the threshold. The other cells of b's PDU are lost with b1,
    // whatever they find.
    let seen = seen(&testbed, END);
    assert_eq!(departed(&seen, 2, 0), [left(5, 17_987_180)]);
    assert_eq!(losses(&seen), [(REFUSED, 1, 5, 1)]);
    assert_eq!((fates(&seen.flows[0]), fates(&seen.flows[1])), ([1, 1, 0, 0], [1, 0, 1, 0]));
}

#[test]
fn epd_without_ppd_accepts_cells_after_an_overflow() {
    // Two places, threshold 1: b's first finds one cell and its PDU is accepted. As with tail drop, b2, a3 and b3 are lost; the port is empty at t(4), so a4
    // and b4 join; at t(5) both are there: a5 and b5 are lost.
    let testbed = five(2, Discard::Epd(Epd { threshold: FillLevel::Cells(1) }));
    let seen = seen(&testbed, END);
    assert_eq!(departed(&seen, 2, 0), [left(3, 15_155_984), left(2, 17_987_180)]);
    assert_eq!(losses(&seen), [(PORT, 0, 2, 1), (PORT, 1, 3, 1)]);
}

#[test]
fn epd_ppd_discards_rest_of_pdu_after_overflow() {
    // The same, but a4 and b4 belong to PDUs with a loss and are discarded; their ends a5 and b5 join.
    let testbed = five(2, Discard::EpdPpd(EpdPpd { threshold: FillLevel::Cells(1) }));
    let seen = seen(&testbed, END);
    assert_eq!(departed(&seen, 2, 0), [left(3, 17_987_180), left(2, 20_818_377)]);
    let lost = [(PORT, 0, 1, 1), (PORT, 1, 2, 1), (REFUSED, 0, 1, 0), (REFUSED, 1, 1, 0)];
    assert_eq!(losses(&seen), lost);
}

#[test]
fn selective_drop_discards_circuits_above_their_share() {
    // Threshold 2, Z 0.8. b1 finds a1, b2 finds b1 a2: not above the threshold. b3 finds b1 a2 b2 a3: 2 * 2 / 4 > 0.8, lost. b4 finds b2 a3 a4:
    // 1 * 2 / 3 < 0.8. b5 finds a3 a4 b4 a5: 1 * 2 / 4 < 0.8. Sent: a b a b a a b a b.
    let discard = SelectiveDrop { threshold: FillLevel::Cells(2), z: q("80 %") };
    let seen = seen(&many(10, Discard::SelectiveDrop(discard)), END);
    assert_eq!(departed(&seen, 2, 0), [left(5, 26_480_770), left(4, 29_311_967)]);
    assert_eq!(losses(&seen), [(REFUSED, 1, 1, 1)]);
    assert_eq!(fates(&seen.flows[1]), [5, 4, 1, 0]);
}

#[test]
fn fba_allows_a_larger_share_in_a_short_queue() {
    // K = 7, R = 2, Z = 0.45: allowed is 2.25 / (X - 2). b3 finds 4 cells, 2 of them its own: 1 < 1.125, and so does b4 (b2 a3 b3 a4). b5 finds
    // a3 b3 a4 b4 a5: 2 * 2 / 5 = 0.8 > 0.75, lost. Sent: a b a b a b a b a.
    let discard = Fba { threshold: FillLevel::Cells(2), z: q("45 %") };
    let seen = seen(&many(7, Discard::Fba(discard)), END);
    assert_eq!(departed(&seen, 2, 0), [left(5, 29_311_967), left(4, 26_480_770)]);
    assert_eq!(losses(&seen), [(REFUSED, 1, 1, 1)]);
}

#[test]
fn random_epd_discards_below_its_probability() {
    // b1 finds one cell, a1. That is `max`, so the probability is `max_probability`. The first number of the stream
    // "discard.x-c.x.0" is 201559027.
    for (parts, refused) in [(201_559_027, false), (201_559_028, true)] {
        let [min, max] = [0, 1].map(FillLevel::Cells);
        let testbed = five(10, Discard::RandomEpd(RandomEpd { min, max, max_probability: Share(parts) }));
        let seen = seen(&testbed, END);
        assert_eq!(fates(&seen.flows[1]), if refused { [1, 0, 1, 0] } else { [1, 1, 0, 0] }, "{parts}");
        assert_eq!(losses(&seen), if refused { vec![(REFUSED, 1, 5, 1)] } else { vec![] });
    }
}

#[test]
fn clp_cells_above_the_threshold_are_dropped_first() {
    let mut testbed = funnel(10, fifo());
    testbed.circuits["b-c"].clp = 1;
    switch(&mut testbed).clp_threshold = Some(FillLevel::Cells(1));
    // b1 finds a1 and joins; b2 finds b1 a2, b3 finds b1 a2 a3: lost. Sent: a b a a.
    let seen = seen(&testbed, END);
    let low = Departed { clp: 1, ..left(1, 9_493_591) };
    assert_eq!(departed(&seen, 2, 0), [left(3, 15_155_984), low]);
    assert_eq!(losses(&seen), [(LOW, 1, 2, 1)]);
}

#[test]
fn tagging_policer_marks_clp_and_drops_nothing() {
    let mut testbed = funnel(10, fifo());
    testbed.traffic.shift_remove("b>c");
    let (rate, counts, tolerance, action) = (q("50 %"), None, q("1 ps"), PolicingAction::Tag);
    testbed.circuits["a-c"].policing = Some(Policing { rate, counts, tolerance, action });
    // The second cell does not conform, the third does.
    let seen = seen(&testbed, END);
    assert_eq!(departed(&seen, 2, 0), [Departed { clp: 1, ..left(3, 12_324_787) }]);
    assert_eq!((losses(&seen), fates(&seen.flows[0])), (vec![], [1, 1, 0, 0]));
}

#[test]
fn efci_of_the_last_cell_marks_the_pdu() {
    let mut testbed = funnel(10, fifo());
    // a1 b1 a2 b2 a3 b3 find 0 1 1 2 3 4 cells.
    switch(&mut testbed).efci_threshold = Some(FillLevel::Cells(1));
    let marked = |cells, last| Departed { efci: cells, ..left(3, last) };
    let low = seen(&testbed, END);
    assert_eq!(departed(&low, 2, 0), [marked(1, 17_987_180), marked(2, 20_818_377)]);
    assert_eq!((low.flows[0].marked, low.flows[1].marked), (1, 1));
    switch(&mut testbed).efci_threshold = Some(FillLevel::Cells(3));
    let high = seen(&testbed, END);
    assert_eq!(departed(&high, 2, 0), [marked(0, 17_987_180), marked(1, 20_818_377)]);
    assert_eq!((high.flows[0].marked, high.flows[1].marked), (0, 1));
}
