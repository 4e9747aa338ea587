"""A testbed in Python: load it, ask for its limit, run it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from engpass.campaign import (
    Plan,
    build,
    check_size,
)
from engpass.memory import MOST
from engpass.source import Source, from_tables, override_text, read
from engpass.testbed_file import TestbedFile

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from engpass.campaign_runner import Ended, Progress
    from engpass.capture import Captures
    from engpass.emulation import Options
    from engpass.result import RunResult
    from engpass.source import Given
    from engpass.store import RunRecord, Store

__all__ = ["Testbed", "build", "load", "loads"]


class Testbed(TestbedFile):
    """A checked testbed whose campaign can be run."""

    __test__ = False  # pytest would take the name for a test class

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
        standard error, or calls a function with a `Progress`. `emulation` are the options for points of
        `emulate`. A point that fails is in `.failures`; the others go on. Ctrl-C raises `KeyboardInterrupt`
        once all finished points are stored. A run that needs more than `max_memory` bytes raises
        `NeedsMemoryError` before it begins; `None` allows any amount.
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
        """Enter a campaign into a store, or find it there; no point runs yet.

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
        from engpass.store import new_record

        kind = "threads" if executor is None else type(executor).__name__
        here = environment(jobs or cores(), kind)
        how = emulation.to_json() if emulation is not None and "emulate" in plan.engines else None
        if how is not None:
            here["emulation"] = how
        return new_record(self, plan, here, emulation=how)


class Started:
    """A campaign that was entered into a store and can run."""

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
        """Run the missing points: see `campaign_runner.run_points`."""
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
