use super::*;

#[test]
fn what_changes_by_more_than_a_twentieth_is_not_steady() {
    let mut probe = Probe::new(true, Path::new("/tmp"));
    let again = |last| Again { kernel: Kernel::Read, bytes: 1, first: 1.0, last };
    assert!(!probe.report().steady, "what was not measured twice is not known to be");
    probe.report.again = vec![again(1.04), again(0.96)];
    assert!(probe.report().steady);
    probe.report.again.push(again(0.94));
    assert!(!probe.report().steady);
}

#[test]
fn what_was_not_measured_says_so() {
    let report = Probe::new(true, Path::new("/tmp")).report();
    let json = serde_json::to_value(&report).unwrap();
    assert_eq!(json["gpus"]["not_measured"], "its step did not run");
    assert!(report.table("x").starts_with("# Measured by `engpass probe`"));
    assert!(!report.table("x").contains("memory ="));
}
