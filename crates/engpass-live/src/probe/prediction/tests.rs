use super::super::devices::Link;
use super::super::sample_stats::Spread;
use super::Outcome::{Fails, Holds, NotToldApart};
use super::*;

fn at(rate: f64) -> Spread {
    Spread { least: rate, median: rate, best: rate }
}

fn points() -> Vec<Point> {
    let point = |kernel, bytes, threads, rate| Point {
        kernel,
        bytes,
        threads,
        rate: at(rate),
        visits: 1,
        confirmed: kernel != Kernel::Checksum,
    };
    vec![
        point(Kernel::Read, 128 << 20, 1, 30e9),
        point(Kernel::CopyLibrary, 128 << 20, 1, 12e9),
        point(Kernel::CopyString, 128 << 20, 1, 16e9),
        point(Kernel::Checksum, 128 << 20, 1, 25e9),
        point(Kernel::CopyLibrary, 2 << 20, 1, 50e9),
        point(Kernel::CopyString, 2 << 20, 1, 40e9),
        point(Kernel::Checksum, 2 << 20, 1, 45e9),
        // sqrt(16 * 50) is 28.3, so a copy of 4 MiB runs from the cache and one of 8 MiB does not.
        point(Kernel::CopyString, 4 << 20, 1, 29e9),
        point(Kernel::CopyString, 8 << 20, 1, 28e9),
        point(Kernel::Read, 32 << 20, 2, 90e9),
        point(Kernel::CopyString, 64 << 20, 2, 20e9),
    ]
}

fn stream(sending: Sending, receiving: Receiving, rate: f64, cpu: f64) -> Stream {
    Stream {
        sending,
        receiving,
        message: 1 << 17,
        rate: at(rate),
        send_cpu: cpu,
        receive_cpu: 0.05,
        cpus: vec![[cpu, 0.05]; 8],
        copied: None,
        congestion: String::new(),
    }
}

#[test]
fn memory_bandwidths_match_hand_calculation() {
    let found = bandwidths(&points(), 32 << 20).unwrap();
    // A copy at 16 GB/s moves 32 GB/s over the bus; two threads at 20 GB/s in all move 40 GB/s.
    assert_eq!((found.memory_one, found.memory_all), (32e9, 40e9));
    assert_eq!((found.copy, found.copy_cached), (16e9, 50e9));
    assert_eq!((found.checksum, found.checksum_cached), (25e9, 45e9));
    assert_eq!((found.cached_bytes, found.cache_bytes), (2 << 20, 8 << 20));
    assert_eq!(bandwidths(&[], 32 << 20), None);
    let basis = basis(&points(), 32 << 20);
    let of: Vec<_> = basis
        .iter()
        .map(|one| (one.figure, one.kernel, one.bytes >> 20, one.threads, one.confirmed))
        .collect();
    let expected = [
        ("memory_all", Kernel::CopyString, 64, 2, true),
        ("memory_one", Kernel::CopyString, 128, 1, true),
        ("copy", Kernel::CopyString, 128, 1, true),
        ("copy_cached", Kernel::CopyLibrary, 2, 1, true),
        ("checksum", Kernel::Checksum, 128, 1, false),
        ("checksum_cached", Kernel::Checksum, 2, 1, false),
    ];
    assert_eq!(of, expected);
}

#[test]
fn roofline_ceilings_match_hand_calculation() {
    let found = bandwidths(&points(), 32 << 20).unwrap();
    let all = rooflines(&found, &[]);
    assert_eq!((all.len(), all[0].bus), (1, None));
    let of = |path| all[0].ceilings.iter().find(|ceiling| ceiling.path == path).unwrap();
    let near = |found: Option<f64>, expected: f64| {
        assert!((found.unwrap() / expected - 1.0).abs() < 1e-3, "{found:?} instead of {expected}");
    };
    near(of(DataPath::OneCopyPipelined).from_memory, 40e9 / 3.0);
    near(of(DataPath::ZeroCopy).from_memory, 40e9);
    near(of(DataPath::OneCopyPipelined).from_cache, 40e9);
    // Both passes run from the cache: 1 / (1/50 + 1/45).
    near(of(DataPath::CopyAndChecksum).from_cache, 450e9 / 19.0);
    assert_eq!(of(DataPath::Ktls).from_memory, None);
    let not_there = [DataPath::MsgTrunc, DataPath::PeerToPeer];
    assert!(all[0].ceilings.iter().all(|ceiling| !not_there.contains(&ceiling.path)));
}

#[test]
fn ceilings_over_bus_rates_match_hand_calculation() {
    let found = bandwidths(&points(), 32 << 20).unwrap();
    let all = over_buses(&found);
    let at = |bus: f64, path| {
        let roofline = all.iter().find(|roofline| (roofline.bus.unwrap() / bus - 1.0).abs() < 1e-6).unwrap();
        let ceiling = roofline.ceilings.iter().find(|ceiling| ceiling.path == path).unwrap();
        ceiling.from_memory.unwrap() / 1e9
    };
    let near = |found: f64, expected: f64| {
        assert!((found / expected - 1.0).abs() < 1e-3, "{found} instead of {expected}");
    };
    // 40 GB/s of memory bandwidth: a third for the pipeline, all of it without a copy, and 1 / (1/16 + 1/4) one after the other.
    near(at(8e9, DataPath::OneCopyPipelined), 8.0);
    near(at(40e9 / 3.0, DataPath::OneCopyPipelined), 40.0 / 3.0);
    near(at(64e9, DataPath::OneCopyPipelined), 40.0 / 3.0);
    near(at(32e9, DataPath::ZeroCopy), 32.0);
    near(at(128e9, DataPath::ZeroCopy), 40.0);
    near(at(4e9, DataPath::OneCopy), 3.2);
    assert!(all.windows(2).all(|two| two[0].bus < two[1].bus));
}

#[test]
fn gpu_copies_are_judged_against_their_own_bus() {
    let found = bandwidths(&points(), 32 << 20).unwrap();
    let link = Link {
        gigatransfers: 16.0,
        generation: 4,
        lanes: 16,
        bytes_per_s: 31.5e9,
        payload_per_s: 28e9,
        below_its_best: false,
    };
    let device = |name: &str, link| Device {
        kind: DeviceKind::Gpu,
        name: name.to_owned(),
        driver: String::new(),
        link,
        why: None,
    };
    let gpu = |address: &str| Gpu {
        name: "Some GPU".to_owned(),
        address: address.to_owned(),
        bytes: 1 << 28,
        pinned_to: at(25e9),
        pinned_from: at(31e9),
        pageable_to: at(9e9),
        pageable_from: at(15e9),
    };
    let devices = [device("0000:01:00.0", Some(link)), device("0000:02:00.0", None)];
    let all = copies_to_gpus(&found, &[gpu("0000:01:00.0"), gpu("0000:02:00.0")], &devices);
    // 28 GB/s of bus; a third of 40 GB/s with a copy. The bus of the second GPU is unknown.
    let held: Vec<_> =
        all.iter().map(|verdict| ((verdict.predicted / 1e9).round(), verdict.outcome)).collect();
    assert_eq!(held, [(28.0, Holds), (28.0, Fails), (13.0, Holds), (13.0, Fails)]);
}

#[test]
fn stream_verdicts_follow_bounds_and_copy_costs() {
    let found = bandwidths(&points(), 32 << 20).unwrap();
    // A copy at 50 GB/s takes 0.02 s/GB.
    let streams = [
        stream(Sending::Copy, Receiving::Copy, 8e9, 0.10),
        stream(Sending::Sendfile, Receiving::Copy, 8e9, 0.075),
        stream(Sending::Copy, Receiving::Discard, 60e9, 0.05),
    ];
    let held: Vec<_> = verdicts(&found, &streams).iter().map(|verdict| verdict.outcome).collect();
    assert_eq!(held, [Holds, Holds, Fails, Holds, Fails]);
    let slower = [streams[0].clone(), stream(Sending::Sendfile, Receiving::Copy, 8e9, 0.2)];
    assert_eq!(verdicts(&found, &slower)[2].outcome, Fails);
}

/// Each copy's cost is checked against streams whose other end copies and does not. A stream without any copy has no bound.
#[test]
fn stream_without_any_copy_has_no_bound_but_a_difference() {
    let found = bandwidths(&points(), 32 << 20).unwrap();
    let bare = stream(Sending::Sendfile, Receiving::Discard, 900e9, 0.030);
    assert_eq!(verdicts(&found, std::slice::from_ref(&bare)), []);
    let streams = [
        stream(Sending::Copy, Receiving::Discard, 8e9, 0.050),
        stream(Sending::Sendfile, Receiving::Copy, 8e9, 0.080),
        bare,
    ];
    let all = verdicts(&found, &streams);
    let told: Vec<_> = all.iter().map(|verdict| (verdict.unit, verdict.outcome)).collect();
    // The sender takes 0.020 s/GB more, and the receiver 0.050, where a copy at 50 GB/s takes 0.02.
    assert_eq!(told, [("B/s", Holds), ("B/s", Holds), ("s/GB", Holds), ("s/GB", Fails)]);
    let copied =
        |share| Stream { copied: Some(share), ..stream(Sending::Zerocopy, Receiving::Discard, 8e9, 0.1) };
    assert_eq!(verdicts(&found, &[copied(1.0)]).len(), 1);
    assert_eq!(verdicts(&found, &[copied(0.0)]), []);
}

#[test]
fn cost_differences_withstand_drift_and_outliers_not_noise() {
    let found = bandwidths(&points(), 32 << 20).unwrap();
    let usual = |cpu: fn(f64) -> f64| Stream {
        cpus: (0..24).map(|round| [0.3 * f64::from(round), cpu(f64::from(round))]).collect(),
        ..stream(Sending::Copy, Receiving::Copy, 8e9, 0.1)
    };
    let other = |cpu: fn(f64) -> f64| Stream {
        cpus: (0..24).map(|round| [0.3 * f64::from(round), cpu(f64::from(round))]).collect(),
        ..stream(Sending::Copy, Receiving::Discard, 8e9, 0.1)
    };
    let of = |usual, other| verdicts(&found, &[usual, other]).pop().unwrap();
    // The machine slows down from round to round, by more than the copy's 0.02 s/GB. Both streams of a round are affected alike.
    let drift = of(usual(|round| 0.12 + 0.01 * round), other(|round| 0.10 + 0.01 * round));
    assert_eq!(drift.outcome, Holds);
    assert!((drift.measured - 0.02).abs() < 1e-9, "{drift:?}");
    // Every second round costs 0.1 s/GB more: 0.02 s/GB on average, which is too noisy for a verdict.
    let noise = of(usual(|round| 0.1 + 0.1 * (round % 2.0)), other(|_| 0.13));
    assert_eq!((noise.outcome, noise.between.is_some()), (NotToldApart, true));
    // As long as most rounds agree, outliers do not change the verdict.
    let outliers = of(usual(|round| 0.12 + if round % 5.0 == 0.0 { 1.0 } else { 0.0 }), other(|_| 0.1));
    assert_eq!(outliers.outcome, Holds);
    let dearer = of(usual(|_| 0.1), other(|round| 0.15 + 0.001 * round));
    assert_eq!(dearer.outcome, Fails);
    assert!(dearer.measured < 0.0 && dearer.between.unwrap()[1] < 0.0, "{dearer:?}");
}
