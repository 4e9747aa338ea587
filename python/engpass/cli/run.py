"""`engpass run`: runs every variant, swept value and repeat."""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Annotated

import typer
from msgspec.structs import replace

from engpass.cli import console, emulation, files, options

if TYPE_CHECKING:
    from engpass.campaign import Point
    from engpass.campaign_runner import Ended, Progress
    from engpass.capture import Captures
    from engpass.emulation import Options
    from engpass.store import RunRecord, Store
    from engpass.testbed import Started

Engines = Annotated[
    list[str] | None,
    typer.Option(
        "--engine",
        metavar="NAME,...",
        help="Engines: limit, simulate, emulate, measure (default: limit,simulate).",
    ),
]
Repeats = Annotated[
    int | None,
    typer.Option("--repeats", min=1, help="Repeats of every point (default: `repeats` of the file)."),
]
Jobs = Annotated[
    int | None,
    typer.Option("--jobs", "-j", min=1, max=1024, help="Parallel jobs (default: number of cores)."),
]
Fresh = Annotated[
    bool, typer.Option("--fresh", help="Start a new run, even if the store has some of the points.")
]

Log = Annotated[
    str | None,
    typer.Option(
        "--log", metavar="DIR", help="Log the inputs and outputs of emulated points, one file per point."
    ),
]


def command(
    file: options.File,
    engine: Engines = None,
    variant: options.Variants = None,
    set_: options.Set = None,
    repeats: Repeats = None,
    jobs: Jobs = None,
    store: options.StoreAt = options.STORE,
    as_json: options.Json = False,
    yes: options.Yes = False,
    fresh: Fresh = False,
    capture: options.Capture = None,
    capture_as: options.CaptureAs = None,
    capture_limit: options.CaptureLimit = None,
    clock: emulation.Clock = None,
    slow: emulation.Slow = None,
    wire_true: emulation.WireTrue = False,
    tap: emulation.Tap = False,
    lateness: emulation.Limit = None,
    log: Log = None,
) -> None:
    """Run every variant, swept value and repeat of a testbed, and store the outcomes.

    The command continues an interrupted run; with `--capture` or `--log` it starts a new one. Exit code 0 if
    all points have an outcome, 1 if some failed or a capture or log is incomplete, 5 if more memory is needed
    than allowed, 130 after Ctrl-C.
    `--clock`, `--slow`, `--wire-true`, `--tap`, `--limit` and `--log` apply only to `emulate`.
    """
    from engpass import capture as capturing
    from engpass.store import Store
    from engpass.testbed import load

    captures = options.captures(capture, capture_as, capture_limit)
    limit = options.max_points(yes)
    how = emulation.options(clock, slow, lateness, log, wire_true=wire_true, tap=tap, captures=captures)
    testbed = load(file, options.overrides(set_), max_points=limit)
    console.tell_warnings(testbed, variant, as_json=as_json)
    engines = None if engine is None else [name.strip() for part in engine for name in part.split(",")]
    plan = testbed.plan(engines, variant, repeats)
    if captures is not None:
        capturing.check(captures, testbed.campaign, plan)
    written = [("the testbed", file)] if file != "-" else []
    written += [("the store", store)] if "://" not in store else []
    emulates = capturing.EMULATED in plan.engines
    files.apart([*written, *options.named(captures)], how.log if emulates else None)
    if how.log is not None and emulates:
        from engpass.measure.emulated import log_directory

        log_directory(how.log)
    options.tell_left_out(testbed, plan.engines, plan.variants, plan.sweep(0))
    # A point in the store has no capture or log, so all points must run again.
    anew = captures is not None or (how.log is not None and emulates)
    with _alone(file, how, emulates=emulates), Store.open(store) as opened:
        started = console.agreed(
            yes,
            lambda most: testbed.start(
                plan,
                opened,
                jobs=jobs,
                fresh=fresh or anew,
                max_points=limit,
                emulation=how,
                captures=0 if captures is None else len(captures.files),
                max_memory=most,
            ),
        )
        record = opened.run(started.run_id)
        _announce(record, opened)
        ended = _go(started, opened, record, captures, as_json=as_json)
        whole = captures is None or console.tell_captured(captures.captured)
        whole &= console.tell_broken(how.broken_logs)
        code = _close(opened, ended, started.run_id, as_json=as_json, anew=anew)
        raise typer.Exit(code if whole or code != console.OK else console.FAILED)


def _alone(file: str, how: Options, *, emulates: bool) -> AbstractContextManager[None]:
    """Claim the capture and log files of this run; raises `EngpassError` if another process writes one."""
    files = how.files(each_point=True) if emulates else replace(how, log=None).files()
    if not files.captures and files.logs is None:
        return nullcontext()
    from engpass.netlab import claimed

    return claimed(file, files)


def _announce(record: RunRecord, store: Store) -> None:
    total, done = record.points_total, record.points_done
    if done == total:
        console.tell(f"run {record.id}: all {total:,} points are already stored; `--fresh` runs them again")
    elif done or record.points_failed:
        again = f"; {record.points_failed:,} failed points are retried" if record.points_failed else ""
        console.tell(f"resuming {record.id}: {done:,} of {total:,} points are already stored{again}")
    else:
        console.tell(f"run {record.id}: {total:,} points, stored in `{store.where}`")


def _go(
    started: Started, store: Store, record: RunRecord, captures: Captures | None, *, as_json: bool
) -> Ended:
    from engpass.progress import bar

    with bar(sys.stderr) as shown:
        lines = _Lines(store, record) if as_json else None

        def watch(progress: Progress) -> None:
            if shown is not None:
                shown(progress)
            if lines is not None:
                lines(progress)

        ended = started.go(watch, captures)
        if lines is not None:
            lines.rest()
    return ended


class _Lines:
    """Prints stored points in order: each when it and all points before it are stored."""

    def __init__(self, store: Store, record: RunRecord) -> None:
        self._store, self._record = store, record
        self._next = 0

    def __call__(self, progress: Progress) -> None:
        self._print(progress.ready)

    def rest(self) -> None:
        """Print the stored points behind gaps, which stay after an interruption."""
        self._print(self._record.points_total)

    def _print(self, stop: int) -> None:
        # Printed from the store, so that the output equals what is stored.
        for text in self._store.lines(self._record, range(self._next, stop)):
            console.out(text)
        self._next = stop
        if sys.stdout is not None:
            sys.stdout.flush()


def _close(store: Store, ended: Ended, run_id: str, *, as_json: bool, anew: bool) -> int:
    record = store.run(run_id)
    if not as_json and record.points_done:
        from engpass.cli.summary import summary

        summary(store, record, console.tables())
    if ended.interrupted:
        without = " without `--capture` and `--log`" if anew else ""
        console.tell(
            f"interrupted: {record.points_done:,} of {record.points_total:,} points are stored"
            f" in `{store.where}`\n"
            f"help: repeat the command{without} to continue where it stopped"
        )
        return console.INTERRUPTED
    if record.points_failed:
        tell_failures(store, record)
        return console.FAILED
    _tell_imprecise(store, record)
    at = "" if store.where == options.STORE else f" --store {store.where}"
    report = f"`engpass report {record.id}{at} -o report.html` creates a report"
    console.tell(f"run {record.id} is stored in `{store.where}`; {report}")
    return console.OK


def _tell_imprecise(store: Store, record: RunRecord) -> None:
    """Warn about points that ended before their means had the requested precision."""
    if "measure" not in record.engines or "precision" not in record.text:
        return
    plan = record.plan
    first = plan.positions("measure", plan.variants[0], 0).start
    last = plan.positions("measure", plan.variants[-1], plan.sweep_points - 1).stop
    told = [outcome.measured for _, outcome in store.read_outcomes(record, [range(first, last)])]
    asked = [one.precision for one in told if one is not None and one.precision is not None]
    missed = sum(not one.reached for one in asked)
    if missed:
        console.tell(
            f"warning: {missed:,} of {len(asked):,} points did not reach their precision within"
            " `run.longest`\nhelp: increase `run.longest`, or allow a lower precision"
        )


def tell_failures(store: Store, record: RunRecord, most: int = 5) -> None:
    """Print which points failed, grouped by reason."""
    reasons: dict[str, list[Point]] = {}
    for failure in store.failures(record):
        reasons.setdefault(failure.error, []).append(failure.point)
    count = sum(map(len, reasons.values()))
    console.tell(f"error: {count:,} of {record.points_total:,} points failed")
    for reason, points in list(reasons.items())[:most]:
        more = f" and {len(points) - 1:,} more" if len(points) > 1 else ""
        console.tell(f"{points[0]}{more}:\n" + "\n".join(f"  {part}" for part in reason.splitlines()))
    if len(reasons) > most:
        more = f"`engpass show {record.id} --json` lists them all"
        console.tell(f"and {len(reasons) - most:,} more reasons; {more}")
