"""What agents answer, as far as it is read here (docs/agent.md). All of an end is kept beside it.

A field that was not seen is missing or `null`. Readers ignore fields that they do not know.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import msgspec

from engpass.jsondata import Json


def without_nulls(told: Json) -> Json:
    """Data without the keys whose value is `null`: for a reader such a key is missing (docs/agent.md)."""
    if isinstance(told, Mapping):
        return {key: without_nulls(value) for key, value in told.items() if value is not None}
    if isinstance(told, Sequence) and not isinstance(told, str):
        return [without_nulls(value) for value in told]
    return told


class Problem(msgspec.Struct, frozen=True, kw_only=True):
    """Why something failed."""

    cause: str | None = None
    help: str | None = None


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """A line of an agent: an answer, or an event."""

    event: str | None = None
    """`hello`, `interval` or `done`."""
    id: int | None = None
    ok: msgspec.Raw = msgspec.Raw(b"{}")
    error: Problem | None = None
    protocol: int | None = None
    version: str = ""
    flow: str = ""
    role: str | None = None
    ended: str | None = None
    from_ns: int = 0
    to_ns: int = 0
    bytes: int = 0
    messages: int = 0


class Address(msgspec.Struct, frozen=True, kw_only=True):
    """An address of a host."""

    interface: str = ""
    address: str = ""
    mtu: int | None = None

    @property
    def bare(self) -> str:
        """The address without the length of its prefix."""
        return self.address.partition("/")[0]


class Own(msgspec.Struct, frozen=True, kw_only=True):
    """What an agent says of its host."""

    addresses: list[Address] = []


class _Hello(msgspec.Struct, frozen=True, kw_only=True):
    protocol: int | None = None
    version: str = ""
    host: Own = Own()


@dataclass(frozen=True)
class Hello:
    """What an agent said when it was started."""

    protocol: int | None
    version: str
    addresses: list[Address]
    """All addresses of the host."""
    told: Mapping[str, Json]
    """All of it, as it came."""

    @classmethod
    def read(cls, text: bytes) -> Hello:
        """Of a line of an agent. Raises `msgspec.DecodeError`."""
        return cls.of(msgspec.json.decode(text))

    @classmethod
    def of(cls, told: Mapping[str, Json]) -> Hello:
        """Raises `msgspec.ValidationError`."""
        line = msgspec.convert(without_nulls(told), _Hello)
        return cls(line.protocol, line.version, line.host.addresses, told)


class Door(msgspec.Struct, frozen=True, kw_only=True):
    """Where an end listens."""

    port: int
    group: str | None = None


class Cpu(msgspec.Struct, frozen=True, kw_only=True):
    """Time of an end's threads."""

    user_ns: int = 0
    system_ns: int = 0
    waited_ns: int = 0

    @property
    def used_ns(self) -> int:
        """How long they ran."""
        return self.user_ns + self.system_ns


class Core(msgspec.Struct, frozen=True, kw_only=True):
    """A core of the whole host."""

    core: int | None = None
    busy_ppm: int = 0
    steal_ppm: int = 0


class Numbers(msgspec.Struct, frozen=True, kw_only=True):
    """Sequence numbers that came in."""

    received: int
    duplicate: int | None = None
    reordered: int | None = None


class Distribution(msgspec.Struct, frozen=True, kw_only=True):
    """Gaps, lateness or latency."""

    count: int | None = None
    mean_ns: int | None = None
    sd_ns: int | None = None
    mad_ns: int | None = None
    min_ns: int | None = None
    max_ns: int | None = None
    p50_ns: int | None = None
    p90_ns: int | None = None
    p99_ns: int | None = None
    p999_ns: int | None = None
    worst_ms: int | None = None


class Cause(msgspec.Struct, frozen=True, kw_only=True):
    """The part of a cause in the stalls of a sender."""

    ns: int = 0
    squares_ppm: int


class Stalls(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Datagrams that fell behind their schedule."""

    least_ns: int | None = None
    count: int
    total_ns: int
    longest_ns: int
    squares_ns2: int
    waited: Cause
    stolen: Cause
    kernel: Cause


class Pacing(msgspec.Struct, frozen=True, kw_only=True):
    """How a sender was paced."""

    method: str | None = None
    class_: str | None = msgspec.field(name="class", default=None)
    awake: bool | None = None
    stalls: Stalls | None = None


class Granted(msgspec.Struct, frozen=True, kw_only=True):
    """What the kernel granted a socket."""

    local: str = ""
    congestion: str | None = None
    path_mtu_bytes: int | None = None


Counter: TypeAlias = Literal[
    "busy_us", "bytes_received", "bytes_retrans", "bytes_sent", "data_segs_in", "data_segs_out", "dsack_dups",
    "rwnd_limited_us", "segs_in", "segs_out", "sndbuf_limited_us", "total_retrans", "total_rto",
    "total_rto_time_ms",
]  # fmt: skip


class TcpInfo(msgspec.Struct, frozen=True, kw_only=True):
    """`TCP_INFO` of the kernel."""

    options: int | None = None
    snd_mss: int | None = None
    rcv_mss: int | None = None
    snd_wnd: int | None = None
    rtt_us: int | None = None
    min_rtt_us: int | None = None
    busy_us: int | None = None
    bytes_received: int | None = None
    bytes_retrans: int | None = None
    bytes_sent: int | None = None
    data_segs_in: int | None = None
    data_segs_out: int | None = None
    dsack_dups: int | None = None
    rwnd_limited_us: int | None = None
    segs_in: int | None = None
    segs_out: int | None = None
    sndbuf_limited_us: int | None = None
    total_retrans: int | None = None
    total_rto: int | None = None
    total_rto_time_ms: int | None = None

    def counted(self, counter: Counter) -> int | None:
        """A counter, if the kernel has it."""
        found: int | None = getattr(self, counter)
        return found


class TcpEdges(msgspec.Struct, frozen=True, kw_only=True):
    """`TCP_INFO` at the edges of the window, and when all was over."""

    open: TcpInfo | None = None
    close: TcpInfo | None = None
    end: TcpInfo | None = None


class Subflow(msgspec.Struct, frozen=True, kw_only=True):
    """A subflow of MPTCP."""

    local: str
    remote: str
    tcp: TcpEdges = TcpEdges()


class Stream(msgspec.Struct, frozen=True, kw_only=True):
    """A connection of an end, or its socket of datagrams."""

    granted: Granted = Granted()
    tcp: TcpEdges | None = None
    core: int | None = None
    dropped: int | None = None
    sequence: Numbers | None = None
    subflows: list[Subflow] = []


class RecordTcp(msgspec.Struct, frozen=True, kw_only=True):
    """TCP in a record of a time series."""

    rtt_ns: int


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """A record of a time series."""

    tcp: RecordTcp | None = None


class Membership(msgspec.Struct, frozen=True, kw_only=True):
    """A receiver that joined its group, or left it."""

    join_ns: int | None = None
    first_ns: int | None = None
    leave_ns: int = 0
    last_ns: int | None = None
    seen_by: str | None = None
    quiet: bool = False


class End(msgspec.Struct, frozen=True, kw_only=True):
    """The end of a flow at a host."""

    flow: str = ""
    role: str = ""
    ended: str | None = None
    error: Problem | None = None
    bytes: int = 0
    messages: int = 0
    elapsed_ns: int = 0
    total_bytes: int | None = None
    total_messages: int | None = None
    cpu: Cpu | None = None
    cores: list[Core] = []
    sequence: Numbers | None = None
    gaps: Distribution = Distribution()
    late: Distribution = Distribution()
    latency: Distribution = Distribution()
    unanswered: int | None = None
    pacing: Pacing = Pacing()
    membership: list[Membership] = []
    streams: list[Stream] = []
    series: list[Record] = []

    def spent_ns(self) -> tuple[Cpu, int]:
        """The time of its threads, and how long all of them lived."""
        return self.cpu or Cpu(), self.elapsed_ns * (len(self.streams) or 1)


class Reading(msgspec.Struct, frozen=True, kw_only=True):
    """Counters of a host at a time."""

    at_ns: int = 0
    snmp: dict[str, dict[str, int]] = {}


class _Collect(msgspec.Struct, frozen=True, kw_only=True):
    flows: list[End] = []
    before: Reading = Reading()
    after: Reading = Reading()


@dataclass(frozen=True)
class HostResult:
    """What the agent of a host gave back after a run."""

    ends: Mapping[tuple[str, str], End]
    """By flow and role."""
    before: Reading
    after: Reading
    told: Mapping[str, Json]
    """All of it, as it came."""

    @classmethod
    def of(cls, told: Mapping[str, Json]) -> HostResult:
        """Raises `msgspec.ValidationError`."""
        found = msgspec.convert(without_nulls(told), _Collect)
        return cls({(end.flow, end.role): end for end in found.flows}, found.before, found.after, told)

    @classmethod
    def read(cls, text: bytes) -> HostResult:
        """Of an agent's answer. Raises `msgspec.DecodeError`."""
        return cls.of(msgspec.json.decode(text))

    def kept(self, flow: str, role: str) -> Mapping[str, Json]:
        """All of an end, as it came."""
        flows = self.told.get("flows")
        for end in flows if isinstance(flows, Sequence) else ():
            if isinstance(end, Mapping) and (end.get("flow"), end.get("role")) == (flow, role):
                return end
        return {}


class Softnet(msgspec.Struct, frozen=True, kw_only=True):
    """The backlog of packets of a core."""

    dropped: int = 0


class Qdisc(msgspec.Struct, frozen=True, kw_only=True):
    """A queue discipline."""

    drops: int = 0


class Interface(msgspec.Struct, frozen=True, kw_only=True):
    """An interface."""

    tx_bytes: int = 0
    rx_bytes: int = 0
    qdiscs: list[Qdisc] = []


class Changes(msgspec.Struct, frozen=True, kw_only=True):
    """By what the counters of a host grew during a run."""

    snmp: dict[str, dict[str, int]] = {}
    softnet: list[Softnet] = []
    interfaces: dict[str, Interface] = {}

    def interface(self, name: str | None) -> Interface:
        """The counters of an interface."""
        return self.interfaces.get(name or "", Interface())

    def protocol(self, name: str) -> Mapping[str, int]:
        """The counters of a protocol."""
        return self.snmp.get(name, {})


class HostSeen(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a host, as `outcome_hosts` gives it."""

    host: Own | None = None
    changes: Changes | None = None

    @property
    def grown(self) -> Changes:
        """Its counters; nothing where nothing grew."""
        return self.changes or Changes()


def seen(hosts: Mapping[str, Json]) -> dict[str, HostSeen]:
    """The hosts of an outcome, as far as books and findings read them."""
    return msgspec.convert(without_nulls(hosts), dict[str, HostSeen])


DOOR = msgspec.json.Decoder(Door).decode
READING = msgspec.json.Decoder(Reading).decode
