"""`engpass search`: finds the load that a path carries without loss, or with little."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer

from engpass.cli import console, emulation, files, options, quantities
from engpass.error import EngpassError

if TYPE_CHECKING:
    from engpass.search.run import Settings
    from engpass.search.trial import Trial
    from engpass.store import RunRecord, Store
    from engpass.testbed import Testbed

Traffic = Annotated[
    str | None, typer.Option("--traffic", metavar="NAME", help="Stream of datagrams whose load is varied.")
]
Method = Annotated[
    str, typer.Option("--method", metavar="NAME", help="mlrsearch, rfc2544 or frame-loss (RFC 2544 26.3).")
]
Engine = Annotated[str, typer.Option("--engine", metavar="NAME", help="Engine that runs the trials.")]
Variant = Annotated[str | None, typer.Option("--variant", metavar="NAME", help="Variant (default: first).")]
Least = Annotated[str | None, typer.Option("--min", metavar="RATE", help="Smallest load (payload rate).")]
Most = Annotated[
    str | None,
    typer.Option("--max", metavar="RATE", help="Largest load (default: capacity of the first link)."),
]
Loss = Annotated[
    list[str] | None,
    typer.Option("--loss", metavar="SHARE", help="mlrsearch: loss ratio of a goal; can be repeated."),
]
Length = Annotated[str | None, typer.Option("--trial", metavar="TIME", help="Duration of a (final) trial.")]
Total = Annotated[
    str | None,
    typer.Option("--sum", metavar="TIME", help="mlrsearch: total duration of trials that decides a load."),
]
Exceed = Annotated[
    str | None,
    typer.Option(
        "--exceed", metavar="SHARE", help="mlrsearch: share of trials that may exceed the loss ratio."
    ),
]
Initial = Annotated[
    str | None, typer.Option("--initial", metavar="TIME", help="mlrsearch: duration of the first trials.")
]
Width = Annotated[
    str | None,
    typer.Option(
        "--width", metavar="SHARE", help="Relative width between the bounds at which the search ends."
    ),
]
Settle = Annotated[
    str | None, typer.Option("--settle", metavar="TIME", help="Pause between trials on a real network.")
]
Step = Annotated[str | None, typer.Option("--step", metavar="SHARE", help="frame-loss: step between loads.")]
Whole = Annotated[
    bool, typer.Option("--whole", help="frame-loss: try all loads, do not stop after two without loss.")
]
Longest = Annotated[
    str | None, typer.Option("--longest", metavar="TIME", help="Maximum total duration of the trials.")
]
Frames = Annotated[
    str | None,
    typer.Option(
        "--frames",
        metavar="SIZES",
        help="Ethernet frame sizes such as 64,1518, or rfc2544 for its seven sizes.",
    ),
]
Figures = Annotated[
    str | None,
    typer.Option(
        "--figures", metavar="DIR", help="Also write the figures to this directory, as PNG and SVG."
    ),
]
Fresh = Annotated[
    bool, typer.Option("--fresh", help="Start a new search, even if an unfinished one can be continued.")
]


def command(
    file: options.File,
    traffic: Traffic = None,
    method: Method = "mlrsearch",
    engine: Engine = "measure",
    variant: Variant = None,
    set_: options.Set = None,
    least: Least = None,
    most: Most = None,
    loss: Loss = None,
    trial: Length = None,
    total: Total = None,
    exceed: Exceed = None,
    initial: Initial = None,
    width: Width = None,
    settle: Settle = None,
    step: Step = None,
    whole: Whole = False,
    longest: Longest = None,
    frames: Frames = None,
    figures: Figures = None,
    slow: emulation.Slow = None,
    store: options.StoreAt = options.STORE,
    as_json: options.Json = False,
    fresh: Fresh = False,
    yes: options.Memory = False,
) -> None:
    """Find the highest load of a stream of datagrams without loss, or within the loss ratio of a goal.

    Every trial is stored, and the same command continues an interrupted search. Swept values are not used.
    Datagrams that arrive more than 2 s after the end of a trial count as lost.
    Exit code 0 if the search found a result, 1 if not.
    """
    from engpass.interruption import ended_as_by_ctrl_c
    from engpass.search.trial_runner import stream_of
    from engpass.store import Store
    from engpass.testbed import load

    given = _Given(
        method=method,
        least=quantities.rate("--min", least),
        most=quantities.rate("--max", most),
        loss=[quantities.share("--loss", one) or 0.0 for one in loss] if loss else None,
        trial=quantities.seconds("--trial", trial),
        total=quantities.seconds("--sum", total),
        initial=quantities.seconds("--initial", initial),
        exceed=quantities.share("--exceed", exceed),
        width=quantities.share("--width", width),
        step=quantities.share("--step", step),
        settle=quantities.seconds("--settle", settle),
        longest=quantities.seconds("--longest", longest),
        whole=whole,
        slow=emulation.factor(slow),
    )
    settings = given.settings()
    pairs = options.overrides(set_)
    testbed = load(file, pairs)
    chosen = traffic or stream_of(testbed, variant or testbed.variants[0])
    sizes = _sizes(frames)
    records = []
    with ended_as_by_ctrl_c(), Store.open(store) as opened:
        for size in sizes if sizes is not None else (None,):
            one = testbed if size is None else load(file, [*pairs, _message(chosen, size)])
            where = (chosen, engine, variant)
            records.append(
                console.agreed(
                    yes,
                    lambda most, one=one, where=where: _one(  # type: ignore[misc]
                        one, opened, settings, where, fresh=fresh, as_json=as_json, max_memory=most
                    ),
                )
            )
        if figures is not None:
            from engpass.report.search import figures as drawings

            files.pictures(drawings(records), figures)
        if not as_json:
            _close(records, sizes, opened)
    found = all(_is_found(record) for record in records)
    raise typer.Exit(console.OK if found else console.FAILED)


class _Given(msgspec.Struct, frozen=True):
    """The options given on the command line; `None` selects the default of the method."""

    method: str
    least: int | None
    most: int | None
    loss: list[float] | None
    trial: float | None
    total: float | None
    initial: float | None
    exceed: float | None
    width: float | None
    step: float | None
    settle: float | None
    longest: float | None
    whole: bool
    slow: int

    def settings(self) -> Settings:
        from msgspec.structs import replace

        from engpass.campaign import choose
        from engpass.search.goal import Goal
        from engpass.search.run import METHODS, Settings

        choose("method", [self.method], METHODS)
        self._check()
        base = Settings(method=self.method)
        own = {"final": self.trial, "total": self.total, "initial": self.initial}
        own |= {"exceed": self.exceed, "width": self.width}
        changed = {key: value for key, value in own.items() if value is not None}
        if self.method == "mlrsearch":
            losses = self.loss if self.loss is not None else [goal.loss for goal in base.goals]
            goals = [Goal(loss=one, **changed) for one in dict.fromkeys(losses)]
            base = replace(base, goals=tuple(goals))
        names = ("trial", "width", "step", "settle", "least", "most", "longest")
        rest: dict[str, Any] = {name: value for name in names if (value := getattr(self, name)) is not None}
        return replace(base, whole=self.whole, slow=self.slow, **rest)

    def _check(self) -> None:
        """Raise `EngpassError` for an option that the method does not have, or a value out of range."""
        for name, methods in _METHODS_OF.items():
            if getattr(self, name) not in (None, False) and self.method not in methods:
                cure = " or ".join(f"`--method {method}`" for method in methods)
                raise EngpassError(f"`{self.method}` has no `{_option(name)}`", f"remove it, or use {cure}")
        for name in ("trial", "total", "initial", "longest"):
            value = getattr(self, name)
            if value is not None and value <= 0:
                raise EngpassError(f"`{_option(name)}` is {value:g} s", 'give more than zero, such as "60 s"')
        for name, example in (("width", "1 %"), ("step", "10 %")):
            value = getattr(self, name)
            if value is not None and not 0 < value < 1:
                raise EngpassError(
                    f"`{_option(name)}` is {100 * value:g} %",
                    f'give more than 0 % and less than 100 %, such as "{example}"',
                )
        for name, values in (("loss", self.loss or ()), ("exceed", (self.exceed,))):
            for value in values:
                if value is not None and value >= 1:
                    raise EngpassError(f"`{_option(name)}` is {100 * value:g} %", "give less than 100 %")


_METHODS_OF = {
    "loss": ("mlrsearch",),
    "total": ("mlrsearch",),
    "exceed": ("mlrsearch",),
    "initial": ("mlrsearch",),
    "width": ("mlrsearch", "rfc2544"),
    "step": ("frame-loss",),
    "whole": ("frame-loss",),
}
"""Options that some methods lack, by the name in `_Given`."""


def _option(name: str) -> str:
    return "--sum" if name == "total" else f"--{name}"


def _sizes(text: str | None) -> list[int] | None:
    from engpass.search.rfc2544 import FRAMES, payload_of

    if text is None:
        return None
    if text.strip() == "rfc2544":
        return list(FRAMES)
    try:
        sizes = [int(part) for part in text.split(",")]
    except ValueError:
        sizes = []
    if not sizes or any(payload_of(size) < 12 for size in sizes):
        raise EngpassError(
            f"`--frames {text}` is no list of frame sizes",
            "give sizes in bytes such as `64,512,1518`, or `rfc2544`",
        )
    return sizes


def _message(traffic: str, frame: int) -> tuple[str, str]:
    from engpass.search.rfc2544 import payload_of

    return f"traffic.{traffic}.message", f"{payload_of(frame)} B"


def _one(
    testbed: Testbed,
    store: Store,
    settings: Settings,
    where: tuple[str, str, str | None],
    *,
    fresh: bool,
    as_json: bool,
    max_memory: int | None,
) -> RunRecord:
    from engpass.search.run import run_search

    traffic, engine, variant = where

    def began(record: RunRecord) -> None:
        there = f", {len(record.trials)} trials are already stored" if record.trials else ""
        from engpass.formatting import rate
        from engpass.search.found import loads

        told = loads(record)
        between = f"{rate(told.least_bit_per_s)} to {rate(told.most_bit_per_s)}"
        console.tell(f"search {record.id}: {settings.method} over {between} of `{traffic}`{there}")

    with _bar() as shown:

        def watch(record: RunRecord, trial: Trial, number: int) -> None:
            if as_json:
                console.line({"search": record.id, "trial": number, **trial.to_json()})
                sys.stdout.flush()
            if shown is not None:
                shown(trial, number)

        record = run_search(
            testbed,
            store,
            settings,
            traffic=traffic,
            engine=engine,
            variant=variant,
            fresh=fresh,
            watch=watch,
            began=began,
            max_memory=max_memory,
        )
    if as_json:
        told = record.to_json()
        console.line({key: told[key] for key in ("id", "engine", "traffic", "method", "settings", "result")})
    return record


@contextmanager
def _bar() -> Iterator[Callable[[Trial, int], None] | None]:
    """Show the last trial if standard error is a terminal; the number of trials is not known in advance."""
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    from engpass.formatting import percent, rate

    screen = Console(stderr=True)
    if not screen.is_terminal:
        yield None
        return
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=screen, transient=True) as shown:
        task = shown.add_task("first trial", total=None)

        def told(trial: Trial, number: int) -> None:
            text = f"trial {number}: {rate(trial.load)} for {trial.duration:g} s, loss {percent(trial.loss)}"
            shown.update(task, description=text)

        yield told


def _is_found(record: RunRecord) -> bool:
    from engpass.search.found import Found, found

    result = found(record) or Found()
    if result.invalid_trials:
        return False
    if result.goals is not None:
        return all(goal.regular for goal in result.goals)
    return result.finished is None or (result.finished and result.throughput_bit_per_s is not None)


def _close(records: list[RunRecord], sizes: list[int] | None, store: Store) -> None:
    from engpass.show.terminal import print_blocks
    from engpass.views.search import by_size, view

    out = console.tables()
    for record in records:
        print_blocks(view(record), out)
    if sizes:
        print_blocks([by_size(records, sizes)], out)
    for record in records:
        at = "" if store.where == options.STORE else f" --store {store.where}"
        console.tell(
            f"search {record.id} is stored in `{store.where}`; `engpass show {record.id}{at}` shows it"
        )
