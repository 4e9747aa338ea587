"""A checked testbed file: its variants, its sweep, its limit and its points. `engpass.testbed` runs them."""

from __future__ import annotations

import functools
import json
import os
from collections.abc import Iterable
from typing import TYPE_CHECKING

from engpass import _engpass
from engpass.campaign import (
    ENGINES,
    MODEL,
    Axis,
    Plan,
    axes_from_json,
    choose,
)
from engpass.error import Diagnostic, EngpassError
from engpass.source import Source, read

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from engpass.memory import Need
    from engpass.types.outcome import Outcome
    from engpass.types.plan import Drawing


class TestbedFile:
    """A checked testbed with its variants and its sweep."""

    __test__ = False  # pytest would take the name for a test class

    def __init__(
        self,
        source: Source,
        overrides: tuple[tuple[str, str], ...],
        *,
        path: str | os.PathLike[str] | None = None,
        max_points: int | None = None,
    ) -> None:
        self.source = source.name
        self.overrides = overrides
        self._data = source.data
        self._path = path
        self.campaign = _engpass.load(source.data, source.name, list(overrides), max_points)

    def __repr__(self) -> str:
        plan = self.plan()
        kind, variants = type(self).__name__, len(self.variants)
        return f"<{kind} {self.name!r} from {self.source}: {variants} variants, {plan.total} points>"

    @property
    def name(self) -> str:
        """Name of the testbed, from the file."""
        return self.campaign.name

    @property
    def description(self) -> str | None:
        """Description of the testbed, from the file."""
        return self.campaign.description

    @property
    def text(self) -> str:
        """The text of the file, or TOML written from Python tables."""
        return self.campaign.text

    @property
    def variants(self) -> list[str]:
        """Names of the variants; only `base` for a file without variants."""
        return self.campaign.variants

    @property
    def repeats(self) -> int:
        """Number of repeats of every point, each with another seed."""
        return self.campaign.repeats

    @property
    def seed(self) -> int:
        """Seed of the first repeat, from the file."""
        return self.campaign.seed

    @property
    def duration(self) -> float:
        """Simulated time of one run in seconds."""
        return self.campaign.duration_s

    @functools.cached_property
    def axes(self) -> tuple[Axis, ...]:
        """The swept paths with their values."""
        return axes_from_json(self.campaign.axes())

    @functools.cached_property
    def topology(self) -> Drawing:
        """Nodes, links, circuits and flows, as data for a drawing."""
        import msgspec

        from engpass.types.plan import Drawing

        return msgspec.json.decode(self.campaign.topology(), type=Drawing)

    @functools.cached_property
    def warnings(self) -> list[Diagnostic]:
        """Warnings about settings that are valid but doubtful: without effect, or overruled by another."""
        found: list[Diagnostic] = json.loads(self.campaign.warnings())
        return found

    @functools.cached_property
    def has_variants(self) -> bool:
        """True if the file declares variants, even if it is only one called `base`."""
        import tomllib

        return self.variants != ["base"] or bool(tomllib.loads(self.text).get("variant"))

    def check(self) -> list[Diagnostic]:
        """Check the file again as it is now on disk; returns all errors."""
        try:
            data = read(self._path).data if self._path not in (None, "-") else self._data
            _engpass.load(data, self.source, list(self.overrides), None)
        except _engpass.InvalidTestbed as error:
            return error.diagnostics
        return []

    def needs_traffic(self) -> None:
        """Raise `EngpassError` if no traffic is declared: such a testbed serves only programs of the user."""
        if any(found["code"] == "no-traffic" for found in self.warnings):
            raise EngpassError(
                "there is nothing to run: the testbed has no traffic",
                "add a `[traffic.NAME]` with `kind`, `from`, `to` and a load; `engpass up` needs none",
            )

    def limit(self, variants: Iterable[str] | None = None) -> dict[str, Outcome]:
        """The outcomes of the limit engine by variant, for the values in the file without its sweep.

        Raises `InvalidTestbed`, `ChoiceError` for an unknown variant.
        """
        from engpass.results import outcomes

        self.needs_traffic()
        names = choose("variant", variants, self.variants)
        stop = _engpass.Interrupt()
        try:
            return {name: outcomes.read(self.campaign.run("limit", name, [], 0, stop)) for name in names}
        except _engpass.Unsupported as error:
            cause, _, cure = str(error).partition("\nhelp: ")
            raise EngpassError(cause, cure or None) from None

    def plan(
        self,
        engines: Iterable[str] | None = None,
        variants: Iterable[str] | None = None,
        repeats: int | None = None,
    ) -> Plan:
        """The points that `run` would have with the same arguments; raises `ChoiceError`."""
        if repeats is not None and repeats < 1:
            raise EngpassError(f"{repeats} repeats are not possible", "use 1 or more")
        return Plan(
            choose("engine", MODEL if engines is None else engines, ENGINES),
            choose("variant", variants, self.variants),
            self.axes,
            repeats or self.repeats,
        )

    def memory(
        self,
        plan: Plan | None = None,
        jobs: int | None = None,
        *,
        points: int | None = None,
        kept: int = 0,
        captures: int = 0,
        executor: Executor | None = None,
    ) -> Need:
        """An estimate of the memory that `run` needs for points of a plan, within a factor of two.

        Without a plan all points of the file count. `kept` is the number of outcomes that stay in memory,
        `captures` that of captured links.
        """
        from engpass.environment import cores
        from engpass.memory import need

        plan = plan or self.plan()
        workers = (
            jobs or (cores() if executor is None else getattr(executor, "_max_workers", None)) or cores()
        )
        return need(
            self.campaign,
            plan.engines,
            plan.variants,
            plan.axes,
            jobs=int(workers),
            points=plan.total if points is None else points,
            kept=kept,
            captures=captures,
            executor=executor,
        )
