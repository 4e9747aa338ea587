"""The types of what a probe reports: generated from `crates/engpass-live` by `make gen`."""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

Width: TypeAlias = Literal[
    "avx512",
    "avx2",
    "plain",
]
"""Vector registers used by the loops."""

Kernel: TypeAlias = Literal[
    "read",
    "write",
    "write-non-temporal",
    "copy-library",
    "copy-vector",
    "copy-non-temporal",
    "copy-string",
    "copy-words",
    "checksum",
]
"""A memory operation: a way to read, write or copy."""

Sending: TypeAlias = Literal[
    "copy",
    "sendfile",
    "zerocopy",
]
"""How the sender passes its data to the kernel."""

Receiving: TypeAlias = Literal[
    "copy",
    "discard",
]
"""How the receiver takes the data."""

Calls: TypeAlias = Literal[
    "send",
    "batch",
    "segmented",
]
"""How datagrams are passed to the kernel."""

DeviceKind: TypeAlias = Literal[
    "network",
    "nvme",
    "gpu",
]
"""Kind of device."""

DataPath: TypeAlias = Literal[
    "one-copy",
    "one-copy-as-printed",
    "one-copy-pipelined",
    "zero-copy",
    "copy-and-checksum",
    "read-write",
    "sendfile",
    "msg-zerocopy",
    "tcp-zerocopy-receive",
    "msg-trunc",
    "io-uring-zero-copy",
    "ktls",
    "ktls-sendfile",
    "rdma",
    "gpu-pageable",
    "gpu-pinned",
    "peer-to-peer",
]
"""The path of data between an application's buffer and a device."""

Outcome: TypeAlias = Literal[
    "holds",
    "fails",
    "not_told_apart",
]
"""Result of checking a rule."""


class Host(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Properties of the host, as far as the kernel reports them."""

    cpu: str
    """Name of the processor."""
    cpus: int
    """Number of CPUs that the probe may use."""
    caches: list[CacheLevel]
    """Caches of the first CPU, from the first level on."""
    memory_bytes: int
    """Memory of the host in bytes."""
    available_bytes: int
    """Memory available to programs in bytes."""
    kernel: str
    """Kernel version."""
    clock_source: str
    """Clock source of the kernel, such as `tsc` or `kvm-clock`."""
    virtual_machine: bool
    """Whether the host is a virtual machine."""
    load: str
    """Load average of the last minute when the probe began. Above a few tenths, other programs were
    running."""


class CacheLevel(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A cache of the first CPU."""

    level: int
    """Cache level, 1 to 4."""
    kind: str
    """`Data`, `Instruction` or `Unified`."""
    bytes: int
    """Size in bytes."""
    shared_by: str
    """CPUs that share it, in the kernel's list format: `0-3,8`."""


class Timer(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Quality of this host's clock and timers. All times are in nanoseconds."""

    resolution: int
    """Resolution of the clock, as reported by the kernel."""
    reading: float
    """CPU time of one clock read."""
    system_call: float
    """CPU time of the shortest system call."""
    late_half: int
    """Median lateness of sleeps that end 100 us apart."""
    late_99: int
    """Lateness that 99 % of these sleeps do not exceed."""
    late_most: int
    """Greatest lateness of these sleeps."""
    longest_gap: int
    """Longest time during which a thread that only reads the clock did not run."""
    stolen: float
    """Fraction of the time that such a thread lost in gaps of more than 10 us."""


class PointSection(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What was measured, or why it was not."""

    measured: list[Point] | None = None
    """What was measured."""
    not_measured: str | None = None
    """Why it was not."""


class Point(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Result for one operation, array size and number of threads; each thread has its own arrays."""

    kernel: Kernel
    """Operation that was measured."""
    bytes: int
    """Size of one array in bytes; a copy uses two."""
    threads: int
    """Number of threads, each on its own CPU."""
    rate: Spread
    """Bytes per second of all threads together. Each byte counts once, also in a copy."""
    visits: int
    """Number of visits, each with some samples."""
    confirmed: bool
    """Whether another visit came within 3 % of the best one."""


class Spread(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Least, median and greatest of a set of samples."""

    least: float
    """The least sample."""
    median: float
    """The median; with an even number of samples the greater of the two in the middle."""
    best: float
    """The greatest sample. For throughput it is the undisturbed one."""


class Bandwidths(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Memory bandwidths in the terms of the model, in bytes per second unless a field says otherwise."""

    memory_one: float
    """Highest bus throughput of one thread with any kernel; a copy counts twice."""
    memory_all: float
    """Highest bus throughput of all threads together, counted as in `memory_one`."""
    copy: float
    """Copy in memory by one thread: the faster of the C library's `memcpy` and `rep movsb`, which
    operating system kernels use."""
    copy_cached: float
    """Copy of data that stays in the last-level cache."""
    checksum: float
    """Rate at which one thread sums up data in memory for the Internet checksum."""
    checksum_cached: float
    """Rate at which one thread sums up data in the last-level cache for the Internet checksum."""
    cached_bytes: int
    """Array size in bytes at which `copy_cached` and `checksum_cached` were measured."""
    cache_bytes: int
    """Usable size of the last-level cache in bytes: the largest working set (both arrays) whose copies
    are nearer to `copy_cached` than to `copy`. Other guests of the processor may occupy the rest of the
    cache."""
    memory_bytes: int
    """Array size in bytes at which the other figures were measured."""


class KernelCopySection(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What was measured, or why it was not."""

    measured: list[KernelCopy] | None = None
    """What was measured."""
    not_measured: str | None = None
    """Why it was not."""


class KernelCopy(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Throughput of the kernel's copy, per CPU time of the thread, with [`CALL`] bytes per call."""

    bytes: int
    """Size in bytes of the file that the calls cycle through."""
    out: Spread
    """Bytes per second from the kernel to the program (`pread`)."""
    into: Spread
    """Bytes per second from the program to the kernel (`pwrite`)."""


class StreamSection(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What was measured, or why it was not."""

    measured: list[Stream] | None = None
    """What was measured."""
    not_measured: str | None = None
    """Why it was not."""


class Stream(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Measurement of one combination of sending and receiving."""

    sending: Sending
    """How the data is sent."""
    receiving: Receiving
    """How the data is received."""
    message: int
    """Bytes per call of the sender."""
    rate: Spread
    """Throughput in bytes per second."""
    send_cpu: float
    """CPU seconds of the sending thread per 10^9 bytes, including the protocol work of both ends."""
    receive_cpu: float
    """CPU seconds of the receiving thread per 10^9 bytes."""
    cpus: list[list[float]]
    """`send_cpu` and `receive_cpu` of each round, to compare streams round by round."""
    copied: float | None = None
    """Fraction of zero-copy sends that the kernel copied after all; `None` for other methods."""
    congestion: str
    """Congestion control of the sender."""


class PacketsSection(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What was measured, or why it was not."""

    measured: list[Packets] | None = None
    """What was measured."""
    not_measured: str | None = None
    """Why it was not."""


class Packets(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Throughput of datagrams with one kind of call."""

    calls: Calls
    """How the datagrams are passed to the kernel."""
    payload: int
    """Payload of each datagram in bytes."""
    sent: float
    """Datagrams sent per second: the median of the rounds."""
    received: float
    """Datagrams received per second: the median of the rounds."""
    cpu_us: float
    """CPU time of the sending thread per datagram in microseconds, including the receiver's protocol
    work: the least of the rounds."""


class Device(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A device with its link, or the reason why the link is unknown."""

    kind: DeviceKind
    """Kind of the device."""
    name: str
    """Name of the interface or controller, or PCI address."""
    driver: str
    """Name of the driver; empty if there is none."""
    link: Link | None = None
    """The link, if known."""
    why: str | None = None
    """Reason why the link is unknown."""


class Link(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A PCI Express link in its current state."""

    gigatransfers: float
    """Transfer rate per lane in GT/s."""
    generation: int
    """PCI Express generation with this rate."""
    lanes: int
    """Number of lanes."""
    bytes_per_s: float
    """Bytes per second in each direction, after line coding."""
    payload_per_s: float
    """Payload bytes per second of a bulk transfer: after line coding, less 28 bytes of overhead per
    packet of 256 bytes."""
    below_its_best: bool
    """Whether device and slot support more lanes or a higher rate than the link uses now."""


class BlockSection(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What was measured, or why it was not."""

    measured: Block | None = None
    """What was measured."""
    not_measured: str | None = None
    """Why it was not."""


class Block(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Throughput of an unnamed file that is written and read past the page cache, one request at a time."""

    directory: str
    """Directory of the file."""
    device: str
    """Device of the file system, by its kernel name."""
    request: int
    """Size of a request in bytes."""
    write: Spread
    """Bytes per second from memory to the device."""
    read: Spread
    """Bytes per second from the device to memory."""


class GpuSection(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What was measured, or why it was not."""

    measured: list[Gpu] | None = None
    """What was measured."""
    not_measured: str | None = None
    """Why it was not."""


class Gpu(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Copy throughput of one GPU, in bytes per second."""

    name: str
    """Name of the GPU, from the driver."""
    address: str
    """PCI address, as in `devices`."""
    bytes: int
    """Bytes per copy."""
    pinned_to: Spread
    """From pinned memory to the GPU: DMA reads the program's pages directly."""
    pinned_from: Spread
    """From the GPU to pinned memory."""
    pageable_to: Spread
    """From pageable memory to the GPU: the driver first copies to a pinned buffer, in a pipeline."""
    pageable_from: Spread
    """From the GPU to pageable memory."""


class Basis(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The measurement point from which a figure of the model was taken."""

    figure: str
    """Name of the figure in [`Bandwidths`]."""
    kernel: Kernel
    """Operation that was measured."""
    bytes: int
    """Array size in bytes."""
    threads: int
    """Number of threads."""
    confirmed: bool
    """Whether the point was confirmed by a later visit."""


class Roofline(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The ceilings of all data paths over one network device, or of memory alone."""

    device: str | None = None
    """Name of the device; `None` if only memory bounds the paths."""
    bus: float | None = None
    """Payload throughput of the device's bus in bytes per second."""
    ceilings: list[Ceiling]
    """The data paths with their ceilings."""


class Ceiling(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A data path with its highest possible throughput."""

    path: DataPath
    """The data path, as in a testbed."""
    from_memory: float | None = None
    """Bytes per second with data in memory; `None` if the bound is unknown."""
    from_cache: float | None = None
    """Bytes per second with data in the last-level cache and DMA from memory; `None` if the bound is
    unknown."""


class Verdict(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A prediction of the model, compared with a measurement."""

    what: str
    """The compared quantity, in words."""
    predicted: float
    """Prediction of the model."""
    measured: float
    """Measured value."""
    unit: str
    """Unit of both values: `B/s` or `s/GB`."""
    between: list[float] | None = None
    """Confidence interval (95 %) of the median, if the measurement is a set of differences."""
    rule: str
    """The rule that the measurement must obey: "at most", or "within a factor of 2"."""
    outcome: Outcome
    """Whether the rule holds."""


class Report(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The results of a probe."""

    version: str
    """Version of Engpass."""
    quick: bool
    """Whether it was a quick probe."""
    host: Host
    """The host."""
    timer: Timer | None = None
    """Clock and timers."""
    width: Width
    """Vector registers that were used."""
    memory: PointSection
    """Memory bandwidth."""
    bandwidths: Bandwidths | None = None
    """Memory bandwidth in the terms of the model."""
    kernel: KernelCopySection
    """The kernel's copies, over a small and a large file in memory."""
    sockets: StreamSection
    """TCP over loopback."""
    packets: PacketsSection
    """UDP datagrams over loopback."""
    devices: list[Device]
    """Devices on PCI Express."""
    block: BlockSection
    """Disk transfers that bypass the page cache."""
    gpus: GpuSection
    """Copies to and from GPUs."""
    basis: list[Basis]
    """The points from which the model's bandwidths were taken."""
    others: float | None = None
    """Fraction of the CPUs' time that other programs or a hypervisor used while memory was measured;
    `None` if the kernel does not report it."""
    steady: bool
    """Whether all of `basis` was confirmed, and others used less than 5 % of the CPUs."""
    rooflines: list[Roofline]
    """Highest throughput of each data path, by network device."""
    over_buses: list[Roofline]
    """Highest throughput of the paths that differ, over buses from slow to fast."""
    verdicts: list[Verdict]
    """Comparison of the model with sockets and GPU copies."""
    leaves_out: str
    """What the model does not count."""
