//! Random memories, I/O buses and data paths of hosts, with byte times of fractional picoseconds.

use engpass_model::host::{Cache, DataPath, IoBus, Memory, Side};
use engpass_model::unit::{ByteRate, Size};
use proptest::prelude::*;
use proptest::sample::select;

/// Memory, bus and data paths of a host; most hosts have neither memory nor bus.
#[derive(Clone, Debug)]
pub(super) struct DataDraw {
    pub(super) memory: Option<Memory>,
    pub(super) io_bus: Option<IoBus>,
    pub(super) send_path: DataPath,
    pub(super) receive_path: DataPath,
}

pub(super) fn data() -> impl Strategy<Value = DataDraw> {
    let path = |side| select(DataPath::ALL.into_iter().filter(|path| path.serves(side)).collect::<Vec<_>>());
    // Slow hosts make coinciding frames rarer.
    let (memory, bus) = (super::weighted(0.1, memory()), super::weighted(0.1, bus()));
    (memory, bus, path(Side::Send), path(Side::Receive)).prop_map(
        |(memory, io_bus, send_path, receive_path)| DataDraw { memory, io_bus, send_path, receive_path },
    )
}

/// Working set of the buffers, in bytes.
#[derive(Clone, Copy, Debug)]
enum Set {
    None,
    Of(u64),
    AsCache,
}

/// Returns 10 MB/s to 10 GB/s, with a uniform order of magnitude.
fn rate() -> impl Strategy<Value = ByteRate> {
    (1_000u64..=9_999, 4u32..=6).prop_map(|(digits, zeros)| ByteRate(digits * 10u64.pow(zeros)))
}

fn memory() -> impl Strategy<Value = Memory> {
    let some = || proptest::option::of(rate());
    let cache = (1u64..=100_000, rate(), some(), any::<bool>())
        .prop_map(|(size, copy, checksum, dma)| Cache { size: Size(size), copy, checksum, dma });
    // The working set may equal the cache.
    let set =
        prop_oneof![1 => Just(Set::None), 2 => (1u64..=100_000).prop_map(Set::Of), 1 => Just(Set::AsCache)];
    let cached = proptest::option::of((cache, set));
    (rate(), some(), any::<bool>(), some(), rate(), cached).prop_map(
        |(bandwidth, copy, write_allocate, checksum, encryption, cached)| {
            let set = cached.as_ref().and_then(|(cache, set)| match set {
                Set::None => None,
                Set::Of(bytes) => Some(*bytes),
                Set::AsCache => Some(cache.size.bytes()),
            });
            let cache = cached.map(|(cache, _)| cache);
            Memory {
                bandwidth,
                copy,
                write_allocate,
                checksum,
                encryption: Some(encryption),
                cache,
                working_set: set.map(Size),
            }
        },
    )
}

fn bus() -> impl Strategy<Value = IoBus> {
    let some = || proptest::option::of(rate());
    (rate(), some(), some(), any::<bool>()).prop_map(|(bandwidth, to_device, from_device, half_duplex)| {
        IoBus { bandwidth, to_device, from_device, half_duplex }
    })
}
