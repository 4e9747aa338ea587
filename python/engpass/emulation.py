"""How a network is emulated, and the files that this writes."""

from __future__ import annotations

from decimal import Decimal
from itertools import product
from pathlib import Path

import msgspec

from engpass import same_file
from engpass.capture import Captures
from engpass.error import EngpassError
from engpass.settings import Amount

CLOCKS = ("auto", "sleep", "hybrid", "spin")
"""Ways for a driver to wait for the next instant."""

LIMIT = "1 ms"
"""Default for the lateness limit: a point is invalid if 0.1 % of its packets are later."""

SLOWEST = 1_000_000_000
"""The greatest factor for `--slow`."""

_LEAST_LIMIT_SECONDS = Decimal("1e-9")
_MOST_LIMIT_SECONDS = 600_000


class Files(msgspec.Struct, frozen=True):
    """Files that a testbed or a run writes."""

    captures: tuple[str, ...] = ()
    log: str | None = None
    logs: str | None = None
    """A directory in which every point of a run has a log."""

    def named(self) -> list[str]:
        """The files with known names: captures and the log."""
        return [*self.captures, *([self.log] if self.log is not None else [])]

    def absolute(self) -> Files:
        """The same files with absolute paths, because other processes have other working directories."""
        captures = tuple(str(Path(path).absolute()) for path in self.captures)
        log, logs = (None if path is None else str(Path(path).absolute()) for path in (self.log, self.logs))
        return Files(captures, log, logs)

    def shared(self, others: Files) -> str | None:
        """A path that both would write; `None` if there is none."""
        for one, other in product(self.named(), others.named()):
            if same_file.keeps(one) and same_file.are_same(one, other):
                return one
        for mine, theirs in ((self, others), (others, self)):
            if mine.logs is None:
                continue
            for path in theirs.named():
                if same_file.is_log_of_point(path, mine.logs):
                    return path
        if self.logs is not None and others.logs is not None and same_file.are_same(self.logs, others.logs):
            return self.logs
        return None


class Options(msgspec.Struct, frozen=True):
    """How a network is emulated, apart from what its testbed file says."""

    clock: str = "auto"
    slow: int = 1
    """Factor of time dilation: all rates are divided by it, and all delays multiplied."""
    wire_true: bool = False
    """True to disable GSO packets: each packet crosses the network by itself, as on a wire."""
    limit: str = LIMIT
    log: str | None = None
    """File, or directory with a file per point, that logs inputs and outputs for `engpass replay`."""
    capture: Captures | None = None
    """Captures at points on links; `None` without any."""
    tap: bool = False
    """True to give hosts Ethernet devices with hardware addresses, instead of devices that carry only IP."""
    broken_logs: list[dict[str, str]] = msgspec.field(default_factory=list)
    """Logs that broke off during the run, one for each such point, as in `Written.broken_log`."""

    def check(self) -> None:
        """Raise `EngpassError` for a value that no driver accepts."""
        if self.clock not in CLOCKS:
            known = ", ".join(f"`{clock}`" for clock in CLOCKS)
            raise EngpassError(f"unknown clock `{self.clock}`", f"use one of {known}")
        if not 1 <= self.slow <= SLOWEST:
            raise EngpassError(f"`slow` is {self.slow}", f"give a whole number from 1 to {SLOWEST}")
        amount = Amount.read(self.limit.replace("\u03bc", "\u00b5"))
        seconds, base = (Decimal(0), "") if amount is None else amount.in_base()
        if base != "s":
            raise EngpassError(
                f"`--limit` is `{self.limit}`",
                'write how late packets may be, as a time with its unit, like "1 ms": ns, us, ms, s or min',
            )
        if not _LEAST_LIMIT_SECONDS <= seconds <= _MOST_LIMIT_SECONDS:
            raise EngpassError(
                f"`--limit` is `{self.limit}`",
                "give 1 ns to 10000 min: a real packet is never exactly on time",
            )

    def files(self, *, each_point: bool = False) -> Files:
        """The files that drivers write; with `each_point`, `log` is a directory with a log for each point."""
        captures = () if self.capture is None else tuple(self.capture.paths())
        return Files(captures, logs=self.log) if each_point else Files(captures, self.log)

    def to_json(self) -> dict[str, str | int | bool]:
        """The options that may change an outcome, under the names that outcomes use."""
        return {
            "clock": self.clock,
            "slow": self.slow,
            "no_offload": self.wire_true,
            "max_lateness": self.limit,
            "tap": self.tap,
        }

    def notes(self) -> list[str]:
        """A sentence for each difference between the emulated testbed and its file."""
        found = []
        if self.slow > 1:
            found.append(
                f"time dilation: rates are divided by {self.slow} and delays multiplied, but the timers of"
                " the hosts' network stacks are unchanged"
            )
        return found
