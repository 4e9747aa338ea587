use super::*;

fn memory(bandwidth: u64) -> Memory {
    Memory {
        bandwidth: ByteRate(bandwidth),
        copy: None,
        write_allocate: false,
        checksum: None,
        encryption: None,
        cache: None,
        working_set: None,
    }
}

fn bus(bandwidth: u64) -> IoBus {
    IoBus { bandwidth: ByteRate(bandwidth), to_device: None, from_device: None, half_duplex: false }
}

/// Throughput on a data path in MB/s (10^6 bytes per second), as in the study.
fn mb_s(path: DataPath, memory: &Memory, bus: &IoBus) -> f64 {
    Transfer::new(path, Side::Send, Some(memory), Some(bus), None).ceiling() / 1e6
}

/// Figures 2 and 3 of the study at selected points: zero-copy, pipelined and one-copy, for given memory and bus rates in MB/s.
#[test]
fn data_path_rates_match_figures_2_and_3_of_the_study() {
    for (m, p, zero, pipelined, one) in [
        (50, 133, 50.0, 50.0 / 3.0, 21.05),
        (133, 133, 133.0, 44.33, 44.33),
        (266, 133, 133.0, 88.67, 66.5),
        (400, 133, 133.0, 133.0, 79.88),
        (1000, 133, 133.0, 133.0, 105.06),
        (1600, 266, 266.0, 266.0, 199.62),
        (800, 532, 532.0, 266.67, 228.33),
        (1600, 532, 532.0, 532.0, 319.52),
    ] {
        let (memory, bus) = (memory(m * 1_000_000), bus(p * 1_000_000));
        for (path, expected) in [
            (DataPath::ZeroCopy, zero),
            (DataPath::OneCopyPipelined, pipelined),
            (DataPath::OneCopyAsPrinted, one),
        ] {
            let found = mb_s(path, &memory, &bus);
            assert!(
                (found / expected - 1.0).abs() < 1e-3,
                "{path:?} at {m}, {p}: {found} instead of {expected}"
            );
        }
    }
}

/// In the printed formula of the study, DMA may be faster than the memory, so a copy without a pipeline can be the faster one. In the model
/// the memory limits DMA, too. For `B_MEM` below `B_PCI`, both data paths then reach a third of the memory bandwidth; above, model and
/// printed formula give the same rate for a copy without a pipeline.
#[test]
fn one_copy_is_never_faster_than_pipelined_one_copy() {
    let bus = bus(133_000_000);
    for m in (10..=2000).step_by(7) {
        let memory = memory(m * 1_000_000);
        let [strict, pipelined, printed] =
            [DataPath::OneCopy, DataPath::OneCopyPipelined, DataPath::OneCopyAsPrinted]
                .map(|path| mb_s(path, &memory, &bus));
        assert!(strict <= pipelined * (1.0 + 1e-9), "{m}: strict {strict}, pipelined {pipelined}");
        match m {
            ..=133 => assert!((strict / (m as f64 / 3.0) - 1.0).abs() < 1e-9 && printed >= strict),
            _ => assert!((strict / printed - 1.0).abs() < 1e-9),
        }
    }
}

#[test]
fn data_path_rates_match_hand_calculation() {
    let plenty = bus(100_000_000_000);
    let host = Memory { encryption: Some(ByteRate(2_000_000)), ..memory(60_000_000) };
    // 60 MB/s of memory: 5 transfers per byte that is copied twice; two copies at 30 MB/s.
    assert_eq!(mb_s(DataPath::ReadWrite, &host, &plenty).round(), 12.0);
    // A copy at 30 MB/s, and a checksum pass at the memory bandwidth.
    assert_eq!(mb_s(DataPath::CopyAndChecksum, &host, &plenty).round(), 15.0);
    assert!((mb_s(DataPath::Ktls, &host, &plenty) - 1.0 / (1.0 / 30.0 + 0.5)).abs() < 1e-6);
    assert_eq!(mb_s(DataPath::PeerToPeer, &host, &plenty).round(), 100_000.0);
}

#[test]
fn caches_and_write_allocate_change_the_memory_transfers() {
    let plenty = bus(100_000_000_000);
    let allocating = Memory { write_allocate: true, copy: Some(ByteRate(40_000_000)), ..memory(60_000_000) };
    assert_eq!(mb_s(DataPath::OneCopyPipelined, &allocating, &plenty).round(), 15.0);
    let cache = Cache { size: Size(1 << 20), copy: ByteRate(500_000_000), checksum: None, dma: false };
    let cached = |set, dma| Memory {
        cache: Some(Cache { dma, ..cache.clone() }),
        working_set: Some(Size(set)),
        ..memory(60_000_000)
    };
    // Only DMA remains on the memory bus, or nothing.
    assert_eq!(mb_s(DataPath::OneCopyPipelined, &cached(1 << 20, false), &plenty).round(), 60.0);
    assert_eq!(mb_s(DataPath::OneCopyPipelined, &cached(1 << 20, true), &plenty).round(), 500.0);
    assert_eq!(mb_s(DataPath::OneCopyPipelined, &cached((1 << 20) + 1, true), &plenty).round(), 20.0);
    // The checksum runs at the memory's rate unless the cache has its own.
    let mut summing = cached(1 << 20, true);
    let found = mb_s(DataPath::CopyAndChecksum, &summing, &plenty);
    assert!((found - 1.0 / (1.0 / 500.0 + 1.0 / 60.0)).abs() < 1e-6, "{found}");
    summing.cache.as_mut().expect("the memory has a cache").checksum = Some(ByteRate(500_000_000));
    assert_eq!(mb_s(DataPath::CopyAndChecksum, &summing, &plenty).round(), 250.0);
}

#[test]
fn measured_cost_per_byte_replaces_the_copy() {
    let (memory, bus) = (memory(600_000_000), bus(100_000_000));
    let explicit = ByteTime::of_ps(40_000);
    let one = Transfer::new(DataPath::OneCopy, Side::Send, Some(&memory), Some(&bus), Some(explicit));
    // 40 ns of CPU and 10 ns of DMA per byte.
    assert_eq!((one.cpu.bytes(1000), one.whole.bytes(1000)), (40_000_000, 50_000_000));
    let zero = Transfer::new(DataPath::ZeroCopy, Side::Send, Some(&memory), Some(&bus), Some(explicit));
    assert_eq!(zero.whole.bytes(1), 40_000);
}

#[test]
fn io_bus_directions_have_their_own_rates() {
    let alpha = IoBus {
        to_device: Some(ByteRate(67_000_000)),
        from_device: Some(ByteRate(120_000_000)),
        ..bus(133_000_000)
    };
    let (send, receive) = (alpha.rate(Side::Send), alpha.rate(Side::Receive));
    assert_eq!((send, receive), (67_000_000, 120_000_000));
    // DMA is never faster than the bus.
    assert_eq!(IoBus { from_device: Some(ByteRate(u64::MAX)), ..alpha }.rate(Side::Receive), 133_000_000);
}

#[test]
fn byte_times_are_rounded_up_once() {
    let byte = ByteTime::at(1, 3_000_000);
    assert_eq!((byte.bytes(3), byte.bytes(3_000_000)), (1_000_001, 1_000_000_000_002));
    assert_eq!(ByteTime::at(0, 1).bytes(9), 0);
    assert_eq!(ByteTime::of_ps(u64::MAX).bytes(u64::MAX), u64::MAX);
}

/// A rate above the memory's limit has no effect: the memory limits the pass.
#[test]
fn memory_bandwidth_limits_every_pass() {
    let plenty = bus(100_000_000_000);
    let all = |rate: u64, write_allocate| Memory {
        copy: Some(ByteRate(rate)),
        checksum: Some(ByteRate(rate)),
        encryption: Some(ByteRate(rate)),
        write_allocate,
        ..memory(300_000_000)
    };
    let cpu = |path, memory: &Memory| {
        Transfer::new(path, Side::Send, Some(memory), Some(&plenty), None).cpu.bytes(3_000_000)
    };
    let ms = 1_000_000_000;
    for (path, ms_of_cpu, with_write_allocate) in [
        (DataPath::OneCopy, 20, 30),
        (DataPath::CopyAndChecksum, 30, 40),
        (DataPath::ReadWrite, 40, 60),
        (DataPath::Ktls, 40, 50),
        (DataPath::KtlsSendfile, 20, 20),
    ] {
        assert_eq!(cpu(path, &all(443_000_000, false)) / ms, ms_of_cpu, "{path:?}");
        assert_eq!(cpu(path, &all(443_000_000, true)) / ms, with_write_allocate, "{path:?}");
        assert!(cpu(path, &all(50_000_000, true)) >= 60 * ms, "{path:?}");
    }
}
