"""The parts of agents' answers that the controller reads itself (docs/agent.md); the core reads the others.

A value that the agent could not read is missing or `null`. Unknown fields are ignored.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

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


class Hello(msgspec.Struct, frozen=True):
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


class Reading(msgspec.Struct, frozen=True, kw_only=True):
    """Counters of a host at one instant."""

    snmp: dict[str, dict[str, int]] = {}


class Membership(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One join or leave of a multicast receiver; times in ns."""

    join_ns: int | None = None
    first_ns: int | None = None
    leave_ns: int = 0
    last_ns: int | None = None
    seen_by: str | None = None
    quiet: bool = False


class Numbers(msgspec.Struct, frozen=True, kw_only=True):
    """Counts from the sequence numbers of received datagrams."""

    received: int


class Distribution(msgspec.Struct, frozen=True, kw_only=True):
    """A distribution of latency."""

    count: int | None = None
    min_ns: int | None = None
    max_ns: int | None = None
    p50_ns: int | None = None
    p99_ns: int | None = None


class Granted(msgspec.Struct, frozen=True, kw_only=True):
    """Socket options that the kernel granted."""

    path_mtu_bytes: int | None = None


class TcpInfo(msgspec.Struct, frozen=True, kw_only=True):
    """The kernel's `TCP_INFO` for a connection."""

    snd_wnd: int | None = None
    bytes_retrans: int | None = None
    bytes_sent: int | None = None


class TcpEdges(msgspec.Struct, frozen=True, kw_only=True):
    """`TCP_INFO` when the window closed, and after the last data."""

    close: TcpInfo | None = None
    end: TcpInfo | None = None


class Stream(msgspec.Struct, frozen=True, kw_only=True):
    """One TCP connection or UDP socket of an end."""

    granted: Granted = Granted()
    tcp: TcpEdges | None = None


class RecordTcp(msgspec.Struct, frozen=True, kw_only=True):
    """TCP values in a record of a time series."""

    rtt_ns: int


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """A record of a time series."""

    tcp: RecordTcp | None = None


class End(msgspec.Struct, frozen=True, kw_only=True):
    """One end of a flow, with the counts of its agent."""

    flow: str = ""
    role: str = ""
    ended: str | None = None
    bytes: int = 0
    messages: int = 0
    elapsed_ns: int = 0
    sequence: Numbers | None = None
    latency: Distribution = Distribution()
    membership: list[Membership] = []
    streams: list[Stream] = []
    series: list[Record] = []


class _Collect(msgspec.Struct, frozen=True, kw_only=True):
    flows: list[End] = []


def end_of(result: bytes, flow: str, role: str) -> End:
    """One end of a flow in an agent's answer to `collect`. Raises `msgspec.DecodeError`."""
    found = msgspec.convert(without_nulls(msgspec.json.decode(result)), _Collect)
    return next(end for end in found.flows if (end.flow, end.role) == (flow, role))


DOOR = msgspec.json.Decoder(Door).decode
READING = msgspec.json.Decoder(Reading).decode
