"""Shows the progress of a campaign: a bar on a terminal, elsewhere a line now and then."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Iterator
from typing import TextIO

from engpass.campaign_runner import Progress, Watch

# Seconds between two lines about the progress in a log file; a shorter run has none.
_EVERY_SECONDS = 10.0


@contextlib.contextmanager
def watching(progress: bool | Callable[[Progress], None]) -> Iterator[Watch | None]:
    """The display of progress that the caller chose: none, a bar, or a callback."""
    if progress is False:
        yield None
    elif progress is True:
        with bar(sys.stderr) as watch:
            yield watch
    else:
        yield progress


@contextlib.contextmanager
def bar(stream: TextIO | None) -> Iterator[Watch | None]:
    """Shows progress on a stream: as a bar on a terminal, else as lines; without a stream nothing."""
    if stream is None:
        yield None
    elif stream.isatty():
        with _rich_bar(stream) as watch:
            yield watch
    else:
        yield _lines(stream)


@contextlib.contextmanager
def _rich_bar(stream: TextIO) -> Iterator[Watch]:
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=None),
        TextColumn("{task.fields[ended]:,}/{task.fields[whole]} points"),
        TextColumn("{task.fields[rate]}"),
        TimeRemainingColumn(compact=True),
        TextColumn("left"),
    )
    with Bar(*columns, console=Console(file=stream), transient=True) as shown:
        task = shown.add_task("running", total=None, ended=0, whole="?", rate="")
        begin = time.monotonic()

        def watch(p: Progress) -> None:
            # Points that an earlier session stored count as done, but not for the speed.
            fresh = p.done + p.failed - p.found
            seconds = time.monotonic() - begin
            rate = f"{fresh / seconds:,.1f}/s" if fresh and seconds > 0 else ""
            failed = f"running ({p.failed} failed)" if p.failed else "running"
            ended = p.done + p.failed
            # With a single point left there is no rate: show the share of its virtual time instead.
            inside = f"{p.under_way:.1%} of the last" if p.total - ended == 1 and p.under_way else ""
            shown.update(
                task,
                total=p.total,
                completed=ended + p.under_way,
                ended=ended,
                whole=f"{p.total:,}",
                rate=inside or rate,
                description=failed,
            )

        yield watch


def _lines(stream: TextIO) -> Watch:
    begin = last = time.monotonic()

    def watch(p: Progress) -> None:
        nonlocal last
        now = time.monotonic()
        ended = p.done + p.failed
        fresh = ended - p.found
        if now - last < _EVERY_SECONDS or not fresh + p.under_way or ended == p.total:
            return
        last = now
        rate = (fresh + p.under_way) / (now - begin)
        left = (p.total - ended - p.under_way) / rate
        failed = f", {p.failed} failed" if p.failed else ""
        # Until the first point has ended there is no rate: show the progress of the running points.
        speed = f"{rate:,.1f} points/s" if fresh else f"{p.under_way:.1%} of a point"
        print(
            f"{ended:,} of {p.total:,} points{failed}, {speed}, {left:,.0f} s left",
            file=stream,
            flush=True,
        )

    return watch
