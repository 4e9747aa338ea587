//! Tests that a ledger with an injected fault is rejected.

use engpass_ledger::Fault;
use engpass_testbed::{Point, Source, load};

use super::{Network, SimError};

const KYOTO: &str = include_str!("../../../gallery/kyoto-1997/testbed.toml");

fn point() -> Point {
    let source = Source { name: "kyoto.toml".into(), text: KYOTO.into() };
    let overrides = [("run.duration", "100 ms"), ("run.warmup", "10 ms"), ("traffic.stream.message", "9 kB")];
    let overrides = overrides.map(|(path, value)| (path.to_owned(), value.to_owned()));
    let campaign = load(&source, &overrides, None).unwrap_or_else(|found| panic!("{}", found.render(false)));
    campaign.point("congested", &[]).expect("the study has this variant")
}

/// Runs the study, injects the fault if there is one, and closes the ledger.
fn with(fault: Option<Fault>) -> Result<(), SimError> {
    let point = point();
    let mut network = Network::new(&point.testbed, &point.topology, 1)?;
    network.run(&|| false)?;
    fault.into_iter().for_each(|fault| network.shared.ledger.inject_fault(fault));
    network.outcome(&point.testbed, &point.topology).map(|_| ())
}

fn refused(fault: Fault) -> String {
    match with(Some(fault)) {
        Err(SimError::Ledger(what)) => what,
        other => panic!("the faulty ledger was accepted: {other:?}"),
    }
}

#[test]
fn ledger_without_fault_balances() {
    assert_eq!(with(None), Ok(()));
}

#[test]
fn extra_cell_in_the_ledger_is_rejected() {
    let what = refused(Fault::Dead);
    assert!(
        what.starts_with(
            "the ledger of link `sender` (ss2 -> atomis5) does not balance: parts posted exceed parts sent by "
        ),
        "{what}"
    );
    refused(Fault::Whole);
    refused(Fault::Plain);
}

#[test]
fn extra_picosecond_in_the_ledger_is_rejected() {
    refused(Fault::Idle { at_end: true });
    refused(Fault::Idle { at_end: false });
    let what = refused(Fault::Rounding);
    assert!(what.ends_with("time sent and time idle exceed the time, in ticks, by 1"), "{what}");
}

#[test]
fn idle_reasons_above_the_idle_time_are_rejected() {
    let what = refused(Fault::Reason);
    assert!(what.contains("idle time by reason exceeds idle time, in ps, by 1"), "{what}");
}

#[test]
fn unclipped_cell_at_the_window_edge_is_rejected() {
    refused(Fault::Cut);
}
