"""Estimates the memory that a run needs, and checks it against a limit.

The core estimates the bytes of the network and its outcome (`Campaign.memory`). This module adds the Python
objects and multiplies by the parallel jobs.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass  # not msgspec: `check` starts without it
from typing import TYPE_CHECKING, NamedTuple

from engpass import _engpass
from engpass.campaign import MODEL, Axis
from engpass.error import NeedsMemoryError

if TYPE_CHECKING:
    from concurrent.futures import Executor

MOST = 1 << 30
"""Maximum number of bytes that a run may need, unless the user sets another limit."""

_PROGRAM = 57_000_000
"""Bytes that this program with its libraries takes in each process."""
_DRIVER = 20_000_000
"""Bytes that the driver of an emulated network takes besides the network."""
_KEPT_POINTS = 4
"""Number of prepared points that the core keeps (`points.rs`)."""
_PARSED = 7
"""Bytes of a parsed outcome for each byte of its text, while a table is made of it.

Measured with tracemalloc on outcomes of `limit` and `simulate` with 2 to 300 flows: an outcome alone takes
2.5 to 3.7 bytes; with its text and the summary or table of its run the peak is 4.1 to 8.4 bytes.
"""
_TEXTS = 2
"""Copies of an outcome's text that exist while it goes to the store."""
_SWEPT = 700
"""Bytes for each swept value."""


class Need(NamedTuple):
    """An estimate of the memory that a run needs, in bytes."""

    jobs: int
    """Number of points that run at the same time."""
    each: int
    """Bytes for each of the points that run at the same time."""
    rest: int
    """Bytes for the program, the testbed and the results."""

    @property
    def total(self) -> int:
        """The most bytes in use at any time."""
        return self.rest + self.jobs * self.each

    def check(self, most: int | None) -> None:
        """Raise `NeedsMemoryError` if more than `most` bytes are needed; `None` sets no limit."""
        if most is None or self.total <= most:
            return
        jobs = "one job" if self.jobs == 1 else f"each of {self.jobs:,} jobs at a time"
        raise NeedsMemoryError(
            f"this run needs about {size(self.total)} of memory, more than {size(most)}:"
            f" {size(self.each)} for {jobs}, and {size(self.rest)} for the testbed and the results",
            self._cures(),
            self.total,
        )

    def _cures(self) -> str:
        fewer = "fewer flows or connections, smaller queues and buffers, and shorter delays reduce it"
        one = f"`--jobs 1` needs about {size(self.rest + self.each)}; " if self.jobs > 1 else ""
        return f"{one}{fewer}; `--yes` (in Python `max_memory=None`) runs it anyway"


def size(bytes_: int) -> str:
    """Text for a number of bytes, in GiB or MiB."""
    return f"{bytes_ / 2**30:.1f} GiB" if bytes_ >= 2**30 else f"{max(bytes_, 2**20) / 2**20:.0f} MiB"


@dataclass(frozen=True)
class _Run:
    """Bytes that one run of an engine needs, by purpose; `payload` and `agents` concern real hosts."""

    run: int
    outcome: int
    payload: int
    agents: int
    capture: int
    timeline: int


@dataclass(frozen=True)
class _Estimate:
    """The core's estimate in bytes: for the campaign, for one point, and for a run of each model engine."""

    campaign: int
    point: int
    limit: _Run
    simulate: _Run


def need(
    campaign: _engpass.Campaign,
    engines: Iterable[str],
    variants: Sequence[str],
    axes: Sequence[Axis] = (),
    *,
    sweep: Sequence[tuple[str, str]] | None = None,
    jobs: int = 1,
    points: int = 1,
    kept: int = 0,
    captures: int = 0,
    timeline: bool = False,
    executor: Executor | None = None,
) -> Need:
    """Estimate the memory for the points of a campaign, `jobs` at a time: all, or the one at `sweep`.

    `kept` is the number of outcomes that stay in memory, `captures` that of captured links. With `timeline`,
    a timeline is recorded after the points have run. An executor of threads or processes uses the memory of
    this machine. With any other executor, only this process counts.
    """
    import msgspec

    found = msgspec.json.decode(campaign.memory(list(variants), sweep), type=_Estimate)
    engines = list(engines)
    of = {engine: found.limit if engine == "limit" else found.simulate for engine in engines}
    outcome = max(one.outcome for one in of.values())
    each = max((of[name].run for name in engines if name in MODEL), default=0) + _TEXTS * outcome
    points_kept = min(_KEPT_POINTS, points) * found.point
    if executor is not None:
        from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor

        if isinstance(executor, ProcessPoolExecutor):
            each += _PROGRAM + found.campaign + points_kept
            points_kept = 0
        elif not isinstance(executor, ThreadPoolExecutor):
            each = 0
    swept = _SWEPT * sum(len(axis.values) for axis in axes)
    rest = _PROGRAM + found.campaign + points_kept + swept + (_PARSED + kept) * outcome
    rest += captures * found.simulate.capture
    rest += found.simulate.timeline if timeline else 0
    modelled = Need(max(1, min(jobs, points)), each, rest)
    live = max((_live(name, one, found.campaign) for name, one in of.items()), default=0)
    # Points with real hosts run after those of the model, one at a time.
    return modelled if live <= modelled.jobs * each else Need(1, live, rest)


def _live(engine: str, found: _Run, campaign: int) -> int:
    """Bytes that the agents and the driver of a point take in other processes of this machine."""
    if engine == "emulate":
        return _DRIVER + campaign + found.run + found.payload + found.agents
    return found.agents if engine == "measure" else 0
