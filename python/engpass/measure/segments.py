"""What TCP counted at one end of a flow: `TCP_INFO` at the edges of the window, all streams. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from engpass.measure.wire import TIMESTAMPS_BYTES

_OPTION_TIMESTAMPS = 1  # TCPI_OPT_TIMESTAMPS of linux/tcp.h


def subflows(end: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The subflows of MPTCP at an end, all streams; none of plain TCP."""
    return [one for stream in end.get("streams") or [] for one in stream.get("subflows") or []]


@dataclass(frozen=True)
class Tcp:
    """Sums over the streams of an end; what it does not tell is 0; `known` says if there is any."""

    edges: tuple[Mapping[str, Any], ...]

    @classmethod
    def of(cls, end: Mapping[str, Any]) -> Tcp:
        """Of an end as its agent told it."""
        streams = [stream.get("tcp") or {} for stream in end.get("streams") or []]
        return cls(tuple(edge for edge in streams if edge.get("open") and edge.get("close")))

    @classmethod
    def over(cls, subflows: Iterable[Mapping[str, Any]]) -> Tcp:
        """Of some subflows of MPTCP.

        One that came during the window counts from nothing, one that went has what it had last.
        """
        edges = [subflow["tcp"] for subflow in subflows]
        known = [(edge, edge.get("close") or edge.get("open")) for edge in edges]
        return cls(
            tuple({**edge, "open": edge.get("open") or {}, "close": last} for edge, last in known if last)
        )

    @property
    def known(self) -> bool:
        """Whether there is any stream that the kernel told about."""
        return bool(self.edges)

    @property
    def streams(self) -> int:
        """Streams that it told about."""
        return len(self.edges)

    def grew(self, name: str) -> int:
        """By how much a counter grew in the window."""
        return sum((edge["close"].get(name) or 0) - (edge["open"].get(name) or 0) for edge in self.edges)

    def whole(self, name: str) -> int:
        """A counter over the whole life of the connections."""
        return sum((edge.get("end") or edge["close"]).get(name) or 0 for edge in self.edges)

    @property
    def options(self) -> int:
        """Bytes of options that every segment has."""
        return TIMESTAMPS_BYTES if self._first.get("options", 0) & _OPTION_TIMESTAMPS else 0

    @property
    def mss(self) -> int:
        """Payload of a full segment."""
        return int(self._first.get("snd_mss") or self._first.get("rcv_mss") or 1)

    @property
    def again(self) -> int:
        """Bytes of payload that were sent again."""
        return self.grew("bytes_retrans")

    @property
    def twice(self) -> int:
        """Bytes of payload that the peer says it got twice (duplicate SACK, RFC 2883)."""
        return self.grew("dsack_dups") * self.mss

    @property
    def _first(self) -> Mapping[str, Any]:
        found: Mapping[str, Any] = self.edges[0]["close"] if self.edges else {}
        return found
