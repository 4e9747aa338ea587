"""The parts of agents' answers that the controller reads (docs/agent.md); the full JSON is kept beside them.

A value that the agent could not read is missing or `null`. Unknown fields are ignored.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import msgspec

from engpass.jsondata import Json


def without_nulls(told: Json) -> Json:
    """Remove keys whose value is `null`, at every depth: they count as missing (docs/agent.md)."""
    if isinstance(told, Mapping):
        return {key: without_nulls(value) for key, value in told.items() if value is not None}
    if isinstance(told, Sequence) and not isinstance(told, str):
        return [without_nulls(value) for value in told]
    return told


class Problem(msgspec.Struct, frozen=True, kw_only=True):
    """An error of an agent: its cause and a remedy."""

    cause: str | None = None
    help: str | None = None


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """One line from an agent: an answer to a request, or an event."""

    event: str | None = None
    """The kind of event: `hello`, `interval` or `done`."""
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
        """The address without its prefix length."""
        return self.address.partition("/")[0]


class Own(msgspec.Struct, frozen=True, kw_only=True):
    """Addresses of an agent's own host."""

    addresses: list[Address] = []


class _Hello(msgspec.Struct, frozen=True, kw_only=True):
    protocol: int | None = None
    version: str = ""
    host: Own = Own()


@dataclass(frozen=True)
class Hello:
    """The greeting of an agent, which is its first line."""

    protocol: int | None
    version: str
    addresses: list[Address]
    """All addresses of the host."""
    told: Mapping[str, Json]
    """The whole greeting as received."""

    @classmethod
    def read(cls, text: bytes) -> Hello:
        """Parse a line of an agent. Raises `msgspec.DecodeError`."""
        return cls.of(msgspec.json.decode(text))

    @classmethod
    def of(cls, told: Mapping[str, Json]) -> Hello:
        """Convert a decoded greeting. Raises `msgspec.ValidationError`."""
        line = msgspec.convert(without_nulls(told), _Hello)
        return cls(line.protocol, line.version, line.host.addresses, told)


class Door(msgspec.Struct, frozen=True, kw_only=True):
    """The answer of an end that listens: its data port, and for multicast the group address."""

    port: int
    group: str | None = None


class Cpu(msgspec.Struct, frozen=True, kw_only=True):
    """CPU time in ns of an end's threads in the window; in `waited_ns` they were ready but had no core."""

    user_ns: int = 0
    system_ns: int = 0
    waited_ns: int = 0

    @property
    def used_ns(self) -> int:
        """Time in ns for which the threads ran."""
        return self.user_ns + self.system_ns


class Core(msgspec.Struct, frozen=True, kw_only=True):
    """The load of one core in the window, by all programs of the host."""

    core: int | None = None
    busy_ppm: int = 0
    steal_ppm: int = 0


class Numbers(msgspec.Struct, frozen=True, kw_only=True):
    """Counts from the sequence numbers of received datagrams."""

    received: int
    duplicate: int | None = None
    reordered: int | None = None


class Distribution(msgspec.Struct, frozen=True, kw_only=True):
    """A distribution of gaps, lateness or latency; `worst_ms` is the most datagrams in any millisecond."""

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
    """One cause's part in the stalls of a sender: its time, and its ppm of the sum of squares."""

    ns: int = 0
    squares_ppm: int


class Stalls(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Datagrams that fell behind their schedule by more than `least_ns` since the one before."""

    least_ns: int | None = None
    count: int
    total_ns: int
    longest_ns: int
    squares_ns2: int
    waited: Cause
    stolen: Cause
    kernel: Cause


class Pacing(msgspec.Struct, frozen=True, kw_only=True):
    """How a sender kept to its schedule."""

    method: str | None = None
    class_: str | None = msgspec.field(name="class", default=None)
    awake: bool | None = None
    stalls: Stalls | None = None


class Granted(msgspec.Struct, frozen=True, kw_only=True):
    """The addresses and socket options that the kernel granted."""

    local: str = ""
    congestion: str | None = None
    path_mtu_bytes: int | None = None


Counter: TypeAlias = Literal[
    "busy_us", "bytes_received", "bytes_retrans", "bytes_sent", "data_segs_in", "data_segs_out", "dsack_dups",
    "rwnd_limited_us", "segs_in", "segs_out", "sndbuf_limited_us", "total_retrans", "total_rto",
    "total_rto_time_ms",
]  # fmt: skip


class TcpInfo(msgspec.Struct, frozen=True, kw_only=True):
    """The kernel's `TCP_INFO` for a connection."""

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
        """The value of a counter; `None` if this kernel does not have the counter."""
        found: int | None = getattr(self, counter)
        return found


class TcpEdges(msgspec.Struct, frozen=True, kw_only=True):
    """`TCP_INFO` when the window opened, when it closed, and after the last data."""

    open: TcpInfo | None = None
    close: TcpInfo | None = None
    end: TcpInfo | None = None


class Subflow(msgspec.Struct, frozen=True, kw_only=True):
    """A subflow of MPTCP."""

    local: str
    remote: str
    tcp: TcpEdges = TcpEdges()


class Stream(msgspec.Struct, frozen=True, kw_only=True):
    """One TCP connection or UDP socket of an end."""

    granted: Granted = Granted()
    tcp: TcpEdges | None = None
    core: int | None = None
    dropped: int | None = None
    sequence: Numbers | None = None
    subflows: list[Subflow] = []


class RecordTcp(msgspec.Struct, frozen=True, kw_only=True):
    """TCP values in a record of a time series."""

    rtt_ns: int


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """A record of a time series."""

    tcp: RecordTcp | None = None


class Membership(msgspec.Struct, frozen=True, kw_only=True):
    """One join or leave of a multicast receiver; times in ns."""

    join_ns: int | None = None
    first_ns: int | None = None
    leave_ns: int = 0
    last_ns: int | None = None
    seen_by: str | None = None
    quiet: bool = False


class End(msgspec.Struct, frozen=True, kw_only=True):
    """One end of a flow, with the counts of its agent."""

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
        """CPU time of the end's threads in the window, and the sum of their lifetimes in it, in ns."""
        return self.cpu or Cpu(), self.elapsed_ns * (len(self.streams) or 1)


class Reading(msgspec.Struct, frozen=True, kw_only=True):
    """Counters of a host at one instant."""

    at_ns: int = 0
    snmp: dict[str, dict[str, int]] = {}


class _Collect(msgspec.Struct, frozen=True, kw_only=True):
    flows: list[End] = []
    before: Reading = Reading()
    after: Reading = Reading()


@dataclass(frozen=True)
class HostResult:
    """The answer of a host's agent to `collect`."""

    ends: Mapping[tuple[str, str], End]
    """Ends by flow and role."""
    before: Reading
    after: Reading
    told: Mapping[str, Json]
    """The whole answer as received."""

    @classmethod
    def of(cls, told: Mapping[str, Json]) -> HostResult:
        """Convert a decoded answer. Raises `msgspec.ValidationError`."""
        found = msgspec.convert(without_nulls(told), _Collect)
        return cls({(end.flow, end.role): end for end in found.flows}, found.before, found.after, told)

    @classmethod
    def read(cls, text: bytes) -> HostResult:
        """Parse an agent's answer. Raises `msgspec.DecodeError`."""
        return cls.of(msgspec.json.decode(text))

    def kept(self, flow: str, role: str) -> Mapping[str, Json]:
        """The answer about one end as received; empty if there is none."""
        flows = self.told.get("flows")
        for end in flows if isinstance(flows, Sequence) else ():
            if isinstance(end, Mapping) and (end.get("flow"), end.get("role")) == (flow, role):
                return end
        return {}


class Softnet(msgspec.Struct, frozen=True, kw_only=True):
    """Counters of a core's packet backlog."""

    dropped: int = 0


class Qdisc(msgspec.Struct, frozen=True, kw_only=True):
    """Counters of a queue discipline."""

    drops: int = 0


class Interface(msgspec.Struct, frozen=True, kw_only=True):
    """Counters of an interface."""

    tx_bytes: int = 0
    rx_bytes: int = 0
    qdiscs: list[Qdisc] = []


class Changes(msgspec.Struct, frozen=True, kw_only=True):
    """Growth of a host's counters during a run."""

    snmp: dict[str, dict[str, int]] = {}
    softnet: list[Softnet] = []
    interfaces: dict[str, Interface] = {}

    def interface(self, name: str | None) -> Interface:
        """The changes of an interface's counters."""
        return self.interfaces.get(name or "", Interface())

    def protocol(self, name: str) -> Mapping[str, int]:
        """The changes of a protocol's counters, by counter."""
        return self.snmp.get(name, {})


class HostSeen(msgspec.Struct, frozen=True, kw_only=True):
    """A host of an outcome, as `outcome_hosts` writes it."""

    host: Own | None = None
    changes: Changes | None = None

    @property
    def grown(self) -> Changes:
        """Growth of the host's counters during the run; empty if none grew."""
        return self.changes or Changes()


def seen(hosts: Mapping[str, Json]) -> dict[str, HostSeen]:
    """Parse the parts of an outcome's hosts that ledgers and findings use."""
    return msgspec.convert(without_nulls(hosts), dict[str, HostSeen])


DOOR = msgspec.json.Decoder(Door).decode
READING = msgspec.json.Decoder(Reading).decode
