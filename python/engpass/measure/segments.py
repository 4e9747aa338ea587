"""What TCP counted at one end of a flow: `TCP_INFO` at the edges of the window, all streams. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from engpass.measure.answers import Counter, End, Subflow, TcpInfo
from engpass.measure.wire import TIMESTAMPS_BYTES

_OPTION_TIMESTAMPS = 1  # TCPI_OPT_TIMESTAMPS of linux/tcp.h


def subflows(end: End) -> list[Subflow]:
    """The subflows of MPTCP at an end, all streams; none of plain TCP."""
    return [one for stream in end.streams for one in stream.subflows]


@dataclass(frozen=True)
class Tcp:
    """Sums over the streams of an end; what it does not tell is 0; `known` says if there is any."""

    edges: tuple[tuple[TcpInfo, TcpInfo, TcpInfo], ...]
    """When the window opened, when it closed, and in the end."""

    @classmethod
    def of(cls, end: End) -> Tcp:
        """Of an end as its agent told it."""
        known = [(stream.tcp, stream.tcp.open, stream.tcp.close) for stream in end.streams if stream.tcp]
        return cls(tuple((first, last, tcp.end or last) for tcp, first, last in known if first and last))

    @classmethod
    def over(cls, subflows: Iterable[Subflow]) -> Tcp:
        """Of some subflows of MPTCP.

        One that came during the window counts from nothing, one that went has what it had last.
        """
        known = [(one.tcp, one.tcp.close or one.tcp.open) for one in subflows]
        return cls(tuple((tcp.open or TcpInfo(), last, tcp.end or last) for tcp, last in known if last))

    @property
    def known(self) -> bool:
        """Whether there is any stream that the kernel told about."""
        return bool(self.edges)

    @property
    def streams(self) -> int:
        """Streams that it told about."""
        return len(self.edges)

    def grew(self, counter: Counter) -> int:
        """By how much a counter grew in the window."""
        each = ((first.counted(counter), last.counted(counter)) for first, last, _ in self.edges)
        return sum((last or 0) - (first or 0) for first, last in each)

    def whole(self, counter: Counter) -> int:
        """A counter over the whole life of the connections."""
        return sum(end.counted(counter) or 0 for _, _, end in self.edges)

    @property
    def options(self) -> int:
        """Bytes of options that every segment has."""
        return TIMESTAMPS_BYTES if (self._first.options or 0) & _OPTION_TIMESTAMPS else 0

    @property
    def mss(self) -> int:
        """Payload of a full segment."""
        return self._first.snd_mss or self._first.rcv_mss or 1

    @property
    def again(self) -> int:
        """Bytes of payload that were sent again."""
        return self.grew("bytes_retrans")

    @property
    def twice(self) -> int:
        """Bytes of payload that the peer says it got twice (duplicate SACK, RFC 2883)."""
        return self.grew("dsack_dups") * self.mss

    @property
    def _first(self) -> TcpInfo:
        return self.edges[0][1] if self.edges else TcpInfo()
