"""How well a flow is served: goodput, loss and delay, which are of equal rank.

The three become one figure in the manner of Giessler and others (1978) and Kleinrock (1979): *power*, the
throughput by the delay, each here relative to an idle network. In Kleinrock's generalised power
the throughput has an exponent: it counts twice for a transfer without a rate of its own, which only has to
end soon. The factor for losses is our own.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from engpass.results import above_limit
from engpass.results.losses import NO_LOSSES, Losses
from engpass.types.outcome import FlowOutcome

GOODPUT = 0.97
"""From this share of its limit on, a flow has reached it."""

LOSS = 1e-3
"""A flow of datagrams that loses more suffers: ITU-T Y.1541 table 1, IPLR of classes 0 to 4."""

WAIT = 5e-3
"""Queueing delay in seconds that is always tolerable: CoDel's standing queue, RFC 8289 section 4."""

ROUND_TRIPS = 1
"""Queueing delay in idle round trips that is tolerable.

A buffer of one bandwidth-delay product delays by one round trip, and TCP needs no more (Villamizar and Song
1994).
"""

LEAST = 0.01
"""A goodput that changes by this share or less is about the same: our choice, no source gives one."""

MUCH = 0.1
"""A change that costs this share of the goodput, or increases the loss by this share, is no help.

Our choice: no source gives one.
"""


@dataclass(frozen=True)
class Served:
    """Goodput, loss and delay of a flow."""

    goodput: float
    """In bit/s."""
    losses: Losses = NO_LOSSES
    """Datagrams sent and lost."""
    half: float | None = None
    """The median delay in seconds; `None` for generators, and if no packet arrived."""
    delay: float | None = None
    """The 99 % quantile of the delay in seconds."""

    @property
    def loss(self) -> float:
        """The share of the datagrams sent that were lost."""
        return self.losses.share or 0.0

    @staticmethod
    def of(flow: FlowOutcome) -> Served:
        """The figures of a flow in an outcome."""
        delay = flow.delay_s.network if flow.delay_s is not None else None
        delays = (None, None) if delay is None else (delay.p50, delay.p99)
        return Served(flow.goodput_bit_per_s, Losses.of(flow), *delays)

    @staticmethod
    def mean(repeats: Sequence[Served]) -> Served:
        """The mean of at least one repeat, with the loss of all together."""
        return Served(
            math.fsum(one.goodput for one in repeats) / len(repeats),
            Losses.sum(one.losses for one in repeats),
            mean([one.half for one in repeats]),
            mean([one.delay for one in repeats]),
        )


def mean(values: Sequence[float | None]) -> float | None:
    """The mean of the values that are known; `None` if none is."""
    known = [value for value in values if value is not None]
    return math.fsum(known) / len(known) if known else None


@dataclass(frozen=True)
class Needs:
    """The figures by which the service of a flow is judged."""

    limit: float
    """Its fair share in bit/s, or its bound if that is lower."""
    idle: float | None
    """Its idle delay in seconds; `None` if its delay does not count."""
    resends: bool
    """Whether a loss costs it only time, as TCP."""
    paced: bool
    """Whether its application has a rate of its own."""

    @staticmethod
    def of(limited: FlowOutcome | None) -> Needs:
        """The figures from an outcome of the limit engine; without one, a limit of 0.

        Without a rate of its own a sender of datagrams waits in its own NIC: its delay does not count.
        """
        if limited is None:
            return Needs(0.0, None, resends=False, paced=False)
        tcp, limit = limited.kind == "tcp-stream", limited.limit
        paced = limit is not None and any(one.bottleneck.kind == "application" for one in limit.candidates)
        idle = limit.idle_delay_s if limit is not None and (tcp or paced) else None
        # A flow that starts late has only the rest of the run: its bound is below its fair share.
        return Needs(min(limited.goodput_bit_per_s, above_limit.bound(limited)), idle, tcp, paced)

    @property
    def tolerable(self) -> float:
        """The greatest tolerable 99 % quantile of the delay, in seconds."""
        return math.inf if self.idle is None else self.idle + max(WAIT, ROUND_TRIPS * 2 * self.idle)

    def loses(self, served: Served) -> bool:
        """Whether losses harm it."""
        return not self.resends and served.loss > LOSS

    def waits(self, served: Served) -> bool:
        """Whether queues harm it."""
        return served.delay is not None and served.delay > self.tolerable

    def score(self, served: Served) -> float:
        """Its power as a share: 1 at its limit, without losses that harm it, and with a tolerable delay."""
        kept = 1.0 if self.resends else 1.0 - served.loss
        prompt = self.tolerable / served.delay if served.delay and self.waits(served) else 1.0
        return served.goodput / (self.limit or 1.0) * kept * (prompt if self.paced else math.sqrt(prompt))

    def declines(self, before: Served, after: Served) -> bool:
        """Whether goodput, loss or delay is notably worse after a change."""
        return any(worse for worse, _ in self._changes(before, after))

    def gains(self, before: Served, after: Served) -> bool:
        """Whether goodput, loss or delay is notably better after a change."""
        return any(worse for worse, _ in self._changes(after, before))

    def harmed(self, before: Served, after: Served) -> bool:
        """Whether goodput, loss or delay is notably worse, and then below the needs of the flow."""
        return any(worse and unmet for worse, unmet in self._changes(before, after))

    def spoils(self, before: Served, after: Served) -> bool:
        """Whether goodput or loss is so much worse that no shorter delay makes up for it."""
        return after.goodput < (1 - MUCH) * before.goodput or (
            not self.resends and after.loss > before.loss + MUCH
        )

    def _changes(self, before: Served, after: Served) -> Iterator[tuple[bool, bool]]:
        """For goodput, loss and delay: whether it is notably worse, and whether it then misses the needs."""
        lost = before.goodput - after.goodput
        yield lost > LEAST * before.goodput, not self.limit or after.goodput < GOODPUT * self.limit
        yield not self.resends and after.loss > before.loss + LOSS, True
        yield longer(before.delay, after.delay), self.waits(after) and longer(before.delay, after.delay, WAIT)


def longer(before: float | None, after: float | None, seconds: float = 1e-3) -> bool:
    """Whether the delay `after` exceeds `before` by 10 % and by `seconds`."""
    return before is not None and after is not None and after - before > max(0.1 * before, seconds)
