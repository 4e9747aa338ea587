"""The types of what a probe reports: generated from `crates/engpass-live` by `make gen`."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

import msgspec

Width: TypeAlias = Literal[
    "avx512",
    "avx2",
    "plain",
]
"""Vector registers that are used."""

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
"""A way to read, write or copy."""

Sending: TypeAlias = Literal[
    "copy",
    "sendfile",
    "zerocopy",
]
"""How the sender hands its data over."""

Receiving: TypeAlias = Literal[
    "copy",
    "discard",
]
"""How the receiver takes them."""

Calls: TypeAlias = Literal[
    "send",
    "batch",
    "segmented",
]
"""How datagrams are handed to the kernel."""

DeviceKind: TypeAlias = Literal[
    "network",
    "nvme",
    "gpu",
]
"""What a device is for."""

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
"""The way of data between an application's buffer and a device."""

Outcome: TypeAlias = Literal[
    "holds",
    "fails",
    "not_told_apart",
]
"""What became of a rule."""


class Host(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The host, as far as it tells."""

    cpu: str
    """Name of the processor."""
    cpus: int
    """CPUs that the probe may use."""
    caches: list[CacheLevel]
    """Caches of the first CPU, from the first level on."""
    memory_bytes: int
    """Memory in bytes: all, and what is free for the asking."""
    available_bytes: int
    """See `memory_bytes`."""
    kernel: str
    """Version of the kernel."""
    clock_source: str
    """Source of the kernel's clock: `tsc`, `kvm-clock` and others."""
    virtual_machine: bool
    """Whether a hypervisor is below."""
    load: str
    """Load of the last minute when the probe began: above some tenths, others were at work."""


class CacheLevel(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A cache of the first CPU."""

    level: int
    """1 to 3 or 4."""
    kind: str
    """`Data`, `Instruction` or `Unified`."""
    bytes: int
    """What it holds, in bytes."""
    shared_by: str
    """CPUs that share it, as the kernel lists them: `0-3,8`."""


class Timer(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How good the clock and the timers of this host are. Times in nanoseconds."""

    resolution: int
    """Resolution that the kernel states."""
    reading: float
    """Reading the clock."""
    system_call: float
    """The shortest system call."""
    late_half: int
    """How late a sleep to an instant ends, 100 us after the one before: half of them, 99 % and all are
    not later."""
    late_99: int
    """See `late_half`."""
    late_most: int
    """See `late_half`."""
    longest_gap: int
    """The longest time that was taken away from a thread that only reads the clock."""
    stolen: float
    """Share of the time that was taken away in pieces of more than 10 us."""


class PointSection(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What was measured, or why it was not."""

    measured: list[Point] | None = None
    """What was measured."""
    not_measured: str | None = None
    """Why it was not."""


class Point(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What was measured at one size, with so many threads, each with arrays of its own."""

    kernel: Kernel
    """What was done."""
    bytes: int
    """Bytes of one array; a copy works on two."""
    threads: int
    """Threads, each on a CPU of its own."""
    rate: Spread
    """Bytes per second of all threads together, every byte counted once, whatever a copy does with it."""
    visits: int
    """How often it was visited, each time with some samples."""
    confirmed: bool
    """Whether a visit of another time came within 3 % of the best."""


class Spread(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Samples in three numbers."""

    least: float
    """The least."""
    median: float
    """The middle one; of an even number the greater of the two."""
    best: float
    """The greatest, which is what nothing disturbed if more is better."""


class Bandwidths(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What the memory gives in the terms of the model. Bytes per second."""

    memory_one: float
    """All transfers together, of one thread: the most that any kernel moves over the bus, copies counted
    twice."""
    memory_all: float
    """The same of all threads."""
    copy: float
    """A copy in memory, by one thread: the C library's or `rep movsb`, which kernels use."""
    copy_cached: float
    """A copy of what stays in the last cache."""
    checksum: float
    """Summing for the Internet checksum, in memory."""
    checksum_cached: float
    """The same of what stays in the last cache."""
    cached_bytes: int
    """Bytes of an array at which `copy_cached` and `checksum_cached` were taken."""
    cache_bytes: int
    """What the last cache holds, as far as copies show: of the working sets whose copies are nearer to
    `copy_cached` than to `copy` the largest, both arrays counted. Another guest of the processor may hold
    the rest of it."""
    memory_bytes: int
    """Bytes of an array at which the others were taken."""


class KernelCopySection(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What was measured, or why it was not."""

    measured: list[KernelCopy] | None = None
    """What was measured."""
    not_measured: str | None = None
    """Why it was not."""


class KernelCopy(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A kernel's copy in the CPU time of the thread, over a file of so many bytes, [`CALL`] bytes a call."""

    bytes: int
    """Size of the file that the calls go round in."""
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
    """One way of sending and receiving."""

    sending: Sending
    """How data are sent."""
    receiving: Receiving
    """How they are received."""
    message: int
    """Bytes of one call of the sender."""
    rate: Spread
    """Bytes per second."""
    send_cpu: float
    """Seconds of the sender's thread for 10^9 bytes, the work of both protocol ends included."""
    receive_cpu: float
    """Seconds of the receiver's thread for 10^9 bytes."""
    cpus: list[list[float]]
    """Both in each round, the sender's first, to compare ways round by round."""
    copied: float | None = None
    """Of zero-copy sends, the share that the kernel copied all the same; `None` for other ways."""
    congestion: str
    """Congestion control that was in force."""


class PacketsSection(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What was measured, or why it was not."""

    measured: list[Packets] | None = None
    """What was measured."""
    not_measured: str | None = None
    """Why it was not."""


class Packets(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Datagrams of one size, in one way."""

    calls: Calls
    """How they are handed over."""
    payload: int
    """Payload of each, in bytes."""
    sent: float
    """Datagrams sent per second, the median of some rounds."""
    received: float
    """Of those, received per second."""
    cpu_us: float
    """Microseconds of the sender's thread for each, the receiver's protocol work included: the least of
    the rounds, as the best of the memory."""


class Device(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A device, with its link or the reason why none is known."""

    kind: DeviceKind
    """What it is for."""
    name: str
    """Name of the interface or controller, or the address on the bus."""
    driver: str
    """Its driver, if it has one."""
    link: Link | None = None
    """Its link."""
    why: str | None = None
    """Why there is none."""


class Link(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A link as it is now."""

    gigatransfers: float
    """GT/s of a lane."""
    generation: int
    """Generation of PCI Express that this is."""
    lanes: int
    """Lanes."""
    bytes_per_s: float
    """Bytes per second in each direction after the encoding of the line."""
    payload_per_s: float
    """The same less the headers of packets with 256 bytes, which are 24 to 28 bytes: what a bulk transfer
    can reach."""
    below_its_best: bool
    """Whether card and slot could do more, lanes or speed."""


class BlockSection(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What was measured, or why it was not."""

    measured: Block | None = None
    """What was measured."""
    not_measured: str | None = None
    """Why it was not."""


class Block(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A file without a name, written and read past the page cache, one request at a time."""

    directory: str
    """Directory of the file."""
    device: str
    """Device of the file system, as the kernel calls it."""
    request: int
    """Bytes of a request."""
    write: Spread
    """Bytes per second, memory to device."""
    read: Spread
    """Bytes per second, device to memory."""


class GpuSection(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What was measured, or why it was not."""

    measured: list[Gpu] | None = None
    """What was measured."""
    not_measured: str | None = None
    """Why it was not."""


class Gpu(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Copies of one GPU. Bytes per second."""

    name: str
    """Name that the driver gives it."""
    address: str
    """Its address on the bus, as in `devices`."""
    bytes: int
    """Bytes of a copy."""
    pinned_to: Spread
    """From pinned memory to the GPU: DMA fetches the program's own pages."""
    pinned_from: Spread
    """From the GPU to pinned memory."""
    pageable_to: Spread
    """From memory as it is to the GPU: the driver copies to a pinned buffer of its own first, in a
    pipeline."""
    pageable_from: Spread
    """From the GPU to memory as it is."""


class Basis(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A figure of the model and the point that it was taken from."""

    figure: str
    """The figure: its name in [`Bandwidths`]."""
    kernel: Kernel
    """What was done."""
    bytes: int
    """Bytes of an array."""
    threads: int
    """Threads."""
    confirmed: bool
    """Whether the point was confirmed."""


class Roofline(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A device of the network and the paths over it; `None` for what has no bound that is known."""

    device: str | None = None
    """The device, or nothing where only the memory bounds."""
    bus: float | None = None
    """Payload that its bus carries, bytes per second."""
    ceilings: list[Ceiling]
    """The paths."""


class Ceiling(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A data path and the most it can carry."""

    path: DataPath
    """The path, as in a testbed."""
    from_memory: float | None = None
    """From memory. Bytes per second; `None` where the host lacks what bounds it."""
    from_cache: float | None = None
    """From the last cache, DMA from memory."""


class Verdict(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A prediction and what became of it."""

    what: str
    """What is compared."""
    predicted: float
    """What the model says."""
    measured: float
    """What was measured."""
    unit: str
    """Unit of both: `B/s` or `s/GB`."""
    between: list[float] | None = None
    """Where the median lies with 95 % confidence, where it is one of many differences."""
    rule: str
    """What holds: "at most", or "within a factor of 2"."""
    outcome: Outcome
    """Whether it does."""


class Report(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """All that was found out."""

    version: str
    """Version of Engpass."""
    quick: bool
    """Whether it was a quick look."""
    host: Host
    """The host."""
    timer: Timer | None = None
    """Clock and timers."""
    width: Width
    """Vector registers that were used."""
    memory: PointSection
    """Bandwidth of memory."""
    bandwidths: Bandwidths | None = None
    """The same in the terms of the model."""
    kernel: KernelCopySection
    """The kernel's own copies, over small and large files in memory."""
    sockets: StreamSection
    """TCP over loopback."""
    packets: PacketsSection
    """Datagrams over loopback."""
    devices: list[Device]
    """Devices on PCI Express."""
    block: BlockSection
    """Transfers past the page cache."""
    gpus: GpuSection
    """Copies to and from GPUs."""
    basis: list[Basis]
    """What the bandwidths of the model were taken from."""
    others: float | None = None
    """Share of the CPUs' time that others took, other programs or a hypervisor, while memory was
    measured; nothing where the kernel does not tell."""
    steady: bool
    """Whether all of `basis` was confirmed, and others took less than 5 % of the CPUs."""
    rooflines: list[Roofline]
    """The most that each data path can carry."""
    over_buses: list[Roofline]
    """The same of the paths that differ, over buses from slow to fast."""
    verdicts: list[Verdict]
    """The model against the sockets."""
    leaves_out: str
    """What the model leaves out."""
