"""Output and exit codes: results on standard output, everything else on standard error."""

from __future__ import annotations

import errno
import functools
import io
import json
import os
import signal
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NoReturn, ParamSpec, TextIO, TypeVar

import typer

from engpass.error import EngpassError, NeedsMemoryError

if TYPE_CHECKING:
    from rich.console import Console

    from engpass import _engpass
    from engpass.testbed import Testbed

OK, FAILED, BAD_INPUT, NEEDS_MEMORY, INTERRUPTED, CLOSED = 0, 1, 2, 5, 130, 141
"""Exit codes: done; a claim, check or point failed; bad input; more memory needed than was agreed to; Ctrl-C;
standard output was closed early. An agent has 3 and 4 (docs/agent.md)."""

# A file has no width; wide enough that no cell of our tables is cut.
_FILE_WIDTH = 160

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")


def guarded(command: Callable[P, R]) -> Callable[P, R]:
    """A command whose errors are told to the user, never as a traceback, and become its exit code."""

    @functools.wraps(command)
    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:
            # As `engpass.__main__` left it.
            signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            return command(*args, **kwargs)
        except NeedsMemoryError as error:
            tell(f"error: {error}")
            raise typer.Exit(NEEDS_MEMORY) from None
        except EngpassError as error:
            tell(f"error: {error}")
            raise typer.Exit(BAD_INPUT) from None
        except ValueError as error:
            # Only this one: any other is a bug, and its traceback belongs into a bug report.
            from engpass import _engpass

            if not isinstance(error, _engpass.InvalidTestbed):
                raise
            tell_invalid(error, as_json=bool(kwargs.get("as_json")))
            raise typer.Exit(BAD_INPUT) from None
        except KeyboardInterrupt:
            tell("interrupted")
            raise typer.Exit(INTERRUPTED) from None
        except OSError as error:
            # Files are read and written under their names; what is left comes from standard output.
            raise typer.Exit(unwritable(error)) from None

    return run


def prepare() -> None:
    """Let no letter fail: not every terminal or pipe is UTF-8; a figure beside a `?` is better than none."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


def unwritable(error: OSError) -> int:
    """Tell why standard output takes no more, unless its reader has just had enough; the exit code."""
    if error.errno == errno.EPIPE:
        return CLOSED
    tell(f"error: standard output fails: {error.strerror}\nhelp: look for a full disk")
    return BAD_INPUT


def finished(code: object) -> int:
    """Flush what was printed; the exit code, which says so if standard output did not take it."""
    status = code if isinstance(code, int) else OK if code is None else FAILED
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream is not None:
                stream.flush()
        except OSError as error:
            # Else the interpreter tries again at its end, and complains.
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
            if stream is sys.stdout and status == OK:
                status = unwritable(error)
    return status


def tell(message: str) -> None:
    """Say something on standard error; never fails."""
    _write(sys.stderr, message + "\n")


def agreed(yes: bool, work: Callable[[int | None], T]) -> T:
    """The result of `work`, which takes the bytes of memory that are agreed to: any amount with `--yes`.

    Where it needs more, asks at a terminal and works on if the answer is yes.
    """
    from engpass.memory import MOST

    if yes:
        return work(None)
    try:
        return work(MOST)
    except NeedsMemoryError as error:
        if not _is_terminal(sys.stdin) or not _is_terminal(sys.stderr):
            raise
        tell(f"warning: {error}")
    try:
        wanted = typer.confirm("run it all the same?", err=True)
    except typer.Abort:
        # The end of the input is no answer.
        tell("")
        wanted = False
    if not wanted:
        raise typer.Exit(NEEDS_MEMORY)
    return work(None)


def _is_terminal(stream: TextIO | None) -> bool:
    return stream is not None and stream.isatty()


def tell_invalid(error: _engpass.InvalidTestbed, *, as_json: bool) -> None:
    """Print an `InvalidTestbed`: findings and their number as text for people, JSON Lines for programs."""
    if as_json:
        for diagnostic in error.diagnostics:
            tell(json.dumps(diagnostic, ensure_ascii=False))
    else:
        tell((error.rendered_color if _colour() else error.rendered).rstrip("\n"))
        tell(f"\n{error}")


def tell_warnings(testbed: Testbed, variants: Sequence[str] | None = None, *, as_json: bool = False) -> None:
    """Print what a sound testbed has that is probably not meant, as errors are printed.

    Warnings about values of other variants than these, if any are given, are left out.
    """
    if as_json:
        for diagnostic in json.loads(testbed.campaign.warnings(variants)):
            tell(json.dumps(diagnostic, ensure_ascii=False))
    elif told := testbed.campaign.rendered_warnings(_colour(), variants):
        tell(told)


def tell_unmade(testbed: Testbed) -> None:
    """Print what of a testbed the agents of real hosts cannot be asked for, as warnings are printed."""
    if told := testbed.campaign.rendered_unmade(_colour()):
        tell(told)


def tell_captured(captured: Sequence[Mapping[str, Any]]) -> bool:
    """Say what is in the files of captures; whether each has all that was asked for."""
    for file in captured:
        if "error" in file:
            tell(
                f"error: the capture `{file['path']}` broke off: {file['error']}\n"
                "help: what was written until then can be read; `--capture-limit` bounds a capture"
            )
            continue
        told = f"captured {file['packets']:,} to `{file['path']}`"
        if file["limited"]:
            told += ", and no more: the limit was reached"
        if file["bad_pdus"]:
            told += f"; {file['bad_pdus']:,} PDUs lacked cells and were left out"
        tell(told)
    return not any("error" in file for file in captured)


def tell_broken(logs: Sequence[Mapping[str, str]]) -> bool:
    """Say which logs broke off, and why; whether none did."""
    for log in logs:
        # Its driver says that a log ends early, and so do we.
        why = log["error"].removeprefix("the log ends early: ")
        tell(
            f"error: the log `{log['path']}` broke off: {why}\n"
            f"help: what was written until then can be replayed; make room on its disk, or name another"
        )
    return not logs


def _colour() -> bool:
    return sys.stderr is not None and sys.stderr.isatty() and "NO_COLOR" not in os.environ


def _write(stream: TextIO | None, text: str) -> None:
    if stream is None:
        return
    try:
        stream.write(text)
        stream.flush()
    except OSError:
        # Nobody reads what we have to say about the work; the work goes on.
        pass


def line(data: object) -> None:
    """Print one JSON line on standard output."""
    out(json.dumps(data, ensure_ascii=False, allow_nan=False))


def out(text: str) -> None:
    """Print a line on standard output; raises `OSError` when nobody takes it."""
    if sys.stdout is not None:
        sys.stdout.write(text + "\n")


def tables() -> Console:
    """A Rich console on standard output, as wide as its tables when that is no terminal."""
    from rich.console import Console

    terminal = sys.stdout is not None and sys.stdout.isatty()
    # Rich itself obeys NO_COLOR and TERM=dumb.
    return Console(file=sys.stdout, width=None if terminal else _FILE_WIDTH, highlight=False, emoji=False)


@contextmanager
def waiting(what: str) -> Iterator[Callable[[str], None]]:
    """A spinner on standard error, if that is a terminal; what it yields changes its words."""
    from rich.console import Console

    screen = Console(stderr=True)
    if not screen.is_terminal:
        yield lambda _words: None
        return
    with screen.status(what) as status:
        yield status.update


def fail(message: str, help: str | None = None) -> NoReturn:  # noqa: A002 (the field's name)
    """End the command because of bad input."""
    raise EngpassError(message, help)
