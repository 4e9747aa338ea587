use super::*;

#[test]
fn probe_is_steady_if_all_model_inputs_are_confirmed() {
    let probe = |twice_as_fast: usize| {
        let mut probe = Probe::new(true, Path::new("/tmp"));
        assert!(!probe.report().steady, "an unmeasured probe is not steady");
        for visit in 0..6 {
            for place in 0..probe.survey.places() {
                let fast = if visit == twice_as_fast { 1.5 } else { 1.0 };
                let rate = |kernel: &Kernel| if *kernel == Kernel::Checksum { fast * 1e9 } else { 1e9 };
                probe.survey.visit(place, SECOND * visit as u64, |kernels, _, _, _| {
                    let rates = kernels.iter().map(rate);
                    let taken = |rate| memory::Taken { undisturbed: vec![rate], stand_in: Vec::new() };
                    Ok(rates.map(taken).collect())
                });
            }
        }
        probe.report()
    };
    assert!(probe(6).steady);
    let report = probe(1);
    let doubted: Vec<_> = report.basis.iter().filter(|one| !one.confirmed).map(|one| one.figure).collect();
    assert_eq!((report.steady, doubted), (false, vec!["checksum", "checksum_cached"]));
    assert!(report.table("x").contains("NOT STEADY"));
}

#[test]
fn memory_steps_take_most_of_the_probe_time() {
    for quick in [true, false] {
        let probe = Probe::new(quick, Path::new("/tmp"));
        let others: u64 = probe.steps.iter().map(|step| step.takes(quick)).sum();
        assert!(others < time(quick) / 2, "memory steps take most of the probe time");
        let left: Vec<u64> = probe
            .steps
            .iter()
            .filter_map(|step| if let Step::More { left } = step { Some(*left) } else { None })
            .collect();
        assert_eq!(left, (1..=MORE).rev().collect::<Vec<_>>());
    }
}

#[test]
fn report_marks_sections_that_were_not_measured() {
    let report = Probe::new(true, Path::new("/tmp")).report();
    let json = serde_json::to_value(&report).unwrap();
    assert_eq!(json["gpus"]["not_measured"], "its step of the probe did not run");
    assert!(report.table("x").starts_with("# Measured by `engpass probe`"));
    assert!(!report.table("x").contains("memory ="));
}

#[test]
fn error_for_a_loopback_that_is_down_shows_the_fix() {
    let said = |error: io::Error| match loopback::<()>(Err(error)) {
        Section::Measured(()) => panic!("expected an error"),
        Section::NotMeasured(why) => why,
    };
    assert!(said(io::Error::from_raw_os_error(libc::ENETUNREACH)).ends_with("help: `ip link set lo up`"));
    assert!(
        said(io::Error::from_raw_os_error(libc::EMFILE)).starts_with("the loopback interface cannot be used")
    );
    assert_eq!(loopback(Ok(1)), Section::Measured(1));
}
