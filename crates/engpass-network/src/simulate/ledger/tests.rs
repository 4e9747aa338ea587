//! Books that are tampered with are refused.

use engpass_testbed::{Point, Source, load};

use super::{Freight, Ledger};
use crate::simulate::{Network, SimError};

const KYOTO: &str = include_str!("../../../../../gallery/kyoto-1997/testbed.toml");

fn point() -> Point {
    let source = Source { name: "kyoto.toml".into(), text: KYOTO.into() };
    let overrides = [("run.duration", "100 ms"), ("run.warmup", "10 ms"), ("traffic.stream.message", "9 kB")];
    let overrides = overrides.map(|(path, value)| (path.to_owned(), value.to_owned()));
    let campaign = load(&source, &overrides, None).unwrap_or_else(|found| panic!("{}", found.render(false)));
    campaign.point("congested", &[]).expect("it is a variant of the study")
}

/// What the books say after `tamper`.
fn after(tamper: impl FnOnce(&mut Ledger)) -> Result<(), SimError> {
    let point = point();
    let mut network = Network::new(&point.testbed, &point.topology, 1)?;
    network.run(&|| false)?;
    tamper(&mut network.fabric.ledger);
    network.outcome(&point.testbed, &point.topology).map(|_| ())
}

fn refused(tamper: impl FnOnce(&mut Ledger)) -> String {
    match after(tamper) {
        Err(SimError::Ledger(what)) => what,
        other => panic!("the books are wrong and were not refused: {other:?}"),
    }
}

#[test]
fn honest_books_balance() {
    assert_eq!(after(|_| {}), Ok(()));
}

fn freight(ledger: &mut Ledger) -> &mut Freight {
    ledger.books[0].freight.as_mut().expect("the stream is carried over it")
}

#[test]
fn a_cell_too_many_is_found() {
    let what = refused(|ledger| freight(ledger).dead += 1);
    assert!(
        what.starts_with(
            "the books of link `sender` (ss2 -> atomis5) do not balance: parts booked exceed parts sent by "
        ),
        "{what}"
    );
    refused(|ledger| freight(ledger).stream.as_mut().expect("it is a stream's").whole += 1);
    refused(|ledger| ledger.books.iter_mut().for_each(|book| book.plain += 1));
}

#[test]
fn a_picosecond_too_many_is_found() {
    refused(|ledger| ledger.lines[0].edges[1].idle += 1);
    refused(|ledger| ledger.lines[0].edges[0].idle += 1);
    let what = refused(|ledger| ledger.lines[0].edges[1].rounding += 1);
    assert!(what.ends_with("time sent and time idle exceed the time, in ticks, by 1"), "{what}");
}

#[test]
fn idle_time_without_a_reason_is_found() {
    let what = refused(|ledger| {
        let shared = ledger.lines.iter_mut().find(|line| line.user == super::User::Shared);
        shared.expect("the stream shares a line with the interference").reasons.get_or_insert_default()[0] +=
            1;
    });
    assert!(what.contains("idle time by reason exceeds idle time, in ps, by 1"), "{what}");
}

#[test]
fn a_cell_that_began_before_the_window_is_found() {
    let lines = |ledger: &Ledger| (0..ledger.lines.len()).find(|line| ledger.lines[*line].cut.is_some());
    refused(|ledger| {
        let cut = lines(ledger).expect("some line was busy when the window began");
        ledger.lines[cut].cut = None;
    });
}
