"""A testbed in Python: load it, ask for its limit, run it."""

from __future__ import annotations

import functools
import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from engpass import _engpass
from engpass.campaign import (
    ENGINES,
    MODEL,
    Axis,
    Plan,
    axes_from_json,
    build,
    check_size,
    choose,
    digest,
)
from engpass.error import Diagnostic, EngpassError
from engpass.memory import MOST
from engpass.source import Source, from_tables, override_text, read

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from engpass.campaign_runner import Ended, Progress
    from engpass.capture import Captures
    from engpass.memory import Need
    from engpass.netlab.emulated import Options
    from engpass.result import RunResult
    from engpass.source import Given
    from engpass.store import RunRecord, Store
    from engpass.types.outcome import Outcome
    from engpass.types.plan import Drawing

__all__ = ["Testbed", "build", "load", "loads"]


def load(
    testbed: str | os.PathLike[str] | Mapping[str, Given],
    set: Mapping[str, Given] | Sequence[tuple[str, str]] | None = None,  # noqa: A002 (it is `--set`)
    *,
    max_points: int | None = None,
) -> Testbed:
    """Load and check a testbed: a file (`-` is standard input), or a dict with the same tables.

    `set` overrides values by path: `load("lan.toml", set={"traffic.stream.message": "9 kB"})`.
    Raises `InvalidTestbed` with everything that is wrong, `SourceError` for a file that cannot be read.
    """
    if isinstance(testbed, Mapping):
        source = from_tables(testbed)
        return Testbed(source, _overrides(set), max_points=max_points)
    return Testbed(read(testbed), _overrides(set), path=testbed, max_points=max_points)


def loads(
    text: str,
    set: Mapping[str, Given] | Sequence[tuple[str, str]] | None = None,  # noqa: A002 (it is `--set`)
    *,
    name: str = "<text>",
) -> Testbed:
    """Load and check a testbed given as TOML text; errors as for `load`."""
    return Testbed(Source(name, text.encode()), _overrides(set))


def _overrides(given: Mapping[str, Given] | Sequence[tuple[str, str]] | None) -> tuple[tuple[str, str], ...]:
    pairs = given.items() if isinstance(given, Mapping) else given or ()
    return tuple((path, override_text(value)) for path, value in pairs)


class Testbed:
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
        return (
            f"<Testbed {self.name!r} from {self.source}: {len(self.variants)} variants, {plan.total} points>"
        )

    @property
    def name(self) -> str:
        """Name in the file."""
        return self.campaign.name

    @property
    def description(self) -> str | None:
        """Description in the file."""
        return self.campaign.description

    @property
    def text(self) -> str:
        """The file's text, or the TOML that was written from Python's tables."""
        return self.campaign.text

    @property
    def variants(self) -> list[str]:
        """Names of the variants; only `base` for a file without variants."""
        return self.campaign.variants

    @property
    def repeats(self) -> int:
        """Repeats of every point, each with its own seed."""
        return self.campaign.repeats

    @property
    def seed(self) -> int:
        """Seed of the first repeat."""
        return self.campaign.seed

    @property
    def duration(self) -> float:
        """Simulated time of one run in seconds."""
        return self.campaign.duration_s

    @functools.cached_property
    def axes(self) -> tuple[Axis, ...]:
        """Swept paths with their values."""
        return axes_from_json(self.campaign.axes())

    @functools.cached_property
    def topology(self) -> Drawing:
        """Nodes, links, circuits and flows, for drawing."""
        import msgspec

        from engpass.types.plan import Drawing

        return msgspec.json.decode(self.campaign.topology(), type=Drawing)

    @functools.cached_property
    def warnings(self) -> list[Diagnostic]:
        """Warnings about valid but doubtful settings: keys without effect, values that another overrules."""
        found: list[Diagnostic] = json.loads(self.campaign.warnings())
        return found

    @functools.cached_property
    def has_variants(self) -> bool:
        """Whether the file declares variants, even if only one called `base`."""
        import tomllib

        return self.variants != ["base"] or bool(tomllib.loads(self.text).get("variant"))

    def check(self) -> list[Diagnostic]:
        """Check the testbed again, from the file as it is now; returns all errors."""
        try:
            data = read(self._path).data if self._path not in (None, "-") else self._data
            _engpass.load(data, self.source, list(self.overrides), None)
        except _engpass.InvalidTestbed as error:
            return error.diagnostics
        return []

    def needs_traffic(self) -> None:
        """Raise `EngpassError` if no traffic is declared: hosts alone are for the user's own programs."""
        if any(found["code"] == "no-traffic" for found in self.warnings):
            raise EngpassError(
                "there is nothing to run: the testbed has no traffic",
                "add a `[traffic.NAME]` with `kind`, `from`, `to` and a load; `engpass up` needs none",
            )

    def limit(self, variants: Iterable[str] | None = None) -> dict[str, Outcome]:
        """Outcomes of the limit engine by variant, at the file's own values (no sweep).

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
        """The points that `run` with the same arguments would have; raises `ChoiceError`."""
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

        Without a plan, the file's own one is taken with all its points. `kept` is the number of outcomes that
        stay in memory, `captures` that of captured links.
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

    def run(
        self,
        engines: Iterable[str] | None = None,
        variants: Iterable[str] | None = None,
        repeats: int | None = None,
        jobs: int | None = None,
        store: Store | str | os.PathLike[str] | None = None,
        progress: bool | Callable[[Progress], None] = False,
        *,
        executor: Executor | None = None,
        fresh: bool = False,
        emulation: Options | None = None,
        max_memory: int | None = MOST,
    ) -> RunResult:
        """Run all points, or those that an earlier run left, and return the result.

        `store` keeps it: a path, a URL or an open `Store`; `None` keeps it in memory. If the store already
        has some points of the same campaign, only the missing ones run; `fresh` begins anew. `executor` runs
        the points elsewhere, e.g. `dask.distributed.Client(...).get_executor()`. `progress` draws a bar on
        standard error, or calls back with a `Progress`. `emulation` are the options for points of `emulate`.
        A point that fails is in `.failures`; the others go on. Ctrl-C raises `KeyboardInterrupt` once all
        finished points are stored. A run that needs more than `max_memory` bytes raises `NeedsMemoryError`
        before it begins; `None` allows any amount.
        """
        from engpass.progress import watching
        from engpass.result import RunResult
        from engpass.store import Store

        opened = store if isinstance(store, Store) else Store.open(":memory:" if store is None else store)
        plan = self.plan(engines, variants, repeats)
        with watching(progress) as watch:
            started = self.start(
                plan,
                opened,
                jobs=jobs,
                executor=executor,
                fresh=fresh,
                emulation=emulation,
                max_memory=max_memory,
            )
            ended = started.go(watch)
        if ended.interrupted:
            raise KeyboardInterrupt
        return RunResult(opened, opened.run(started.run_id))

    def start(
        self,
        plan: Plan,
        store: Store,
        *,
        jobs: int | None = None,
        executor: Executor | None = None,
        fresh: bool = False,
        max_points: int | None = None,
        emulation: Options | None = None,
        captures: int = 0,
        max_memory: int | None = MOST,
    ) -> Started:
        """Enter a campaign into a store, or find it there; nothing runs yet.

        Raises `NeedsMemoryError` if the missing points, with `captures` captured links, need more than
        `max_memory` bytes.
        """
        self.needs_traffic()
        check_size(plan.total, max_points)
        record = self._record(plan, jobs, executor, emulation)
        if max_memory is not None:
            found = None if fresh else store.found(record.digest)
            missing = plan.total - (0 if found is None else found.points_done)
            if missing:
                kept = plan.total if store.in_memory else 0
                need = self.memory(
                    plan, jobs, points=missing, kept=kept, captures=captures, executor=executor
                )
                need.check(max_memory)
        run_id, session = store.begin(record, fresh=fresh)
        return Started(self, plan, store, run_id, session, jobs, executor, emulation)

    def _record(
        self, plan: Plan, jobs: int | None, executor: Executor | None, emulation: Options | None
    ) -> RunRecord:
        from engpass.environment import cores, environment
        from engpass.store import RunRecord

        kind = "threads" if executor is None else type(executor).__name__
        here = environment(jobs or cores(), kind)
        how = None if emulation is None else emulation.to_json()
        if how is not None and "emulate" in plan.engines:
            here["emulation"] = how
        return RunRecord(
            id="",
            name=self.name,
            description=self.description,
            source=self.source,
            text=self.text,
            overrides=list(self.overrides),
            engines=list(plan.engines),
            variants=list(plan.variants),
            axes=plan.axes,
            repeats=plan.repeats,
            topology=self.topology,
            environment=here,
            created=str(here["started"]),
            points_total=plan.total,
            points_done=0,
            status="partial",
            digest=digest(plan, self.text, self.overrides, how),
        )


class Started:
    """A campaign in a store, ready to go on."""

    def __init__(
        self,
        testbed: Testbed,
        plan: Plan,
        store: Store,
        run_id: str,
        session: int,
        jobs: int | None,
        executor: Executor | None,
        emulation: Options | None = None,
    ) -> None:
        self.testbed, self.plan, self.store, self.run_id = testbed, plan, store, run_id
        self._session, self._jobs, self._executor = session, jobs, executor
        self._emulation = emulation

    def go(self, watch: Callable[[Progress], None] | None = None, captures: Captures | None = None) -> Ended:
        """Run the missing points; see `lab.run_points`."""
        from engpass.campaign_runner import run_points

        return run_points(
            self.testbed.campaign,
            self.plan,
            self.store,
            self.run_id,
            self._session,
            source=self.testbed.source,
            overrides=self.testbed.overrides,
            jobs=self._jobs,
            executor=self._executor,
            watch=watch,
            emulation=self._emulation,
            captures=captures,
        )
