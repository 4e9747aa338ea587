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
from typing import TYPE_CHECKING, NoReturn, ParamSpec, TextIO, TypeVar

import typer

from engpass.error import EngpassError, NeedsMemoryError
from engpass.jsondata import Json

if TYPE_CHECKING:
    from rich.console import Console

    from engpass import _engpass
    from engpass.testbed import Testbed

OK, FAILED, BAD_INPUT, NEEDS_MEMORY, INTERRUPTED, CLOSED = 0, 1, 2, 5, 130, 141
"""Exit codes: success; a claim, check or point failed; bad input; more memory needed than agreed to; Ctrl-C;
standard output was closed early. Agents also use 3 and 4 (docs/agent.md)."""

# Columns of a table that goes to a file or a pipe: enough that no cell is cut off.
_FILE_WIDTH = 160

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")


def guarded(command: Callable[P, R]) -> Callable[P, R]:
    """Wrap a command so that errors that a user can cause are printed briefly and set the exit code."""

    @functools.wraps(command)
    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:
            # `engpass.__main__` set this while modules were loading; now Ctrl-C raises `KeyboardInterrupt`.
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
            # Any other `ValueError` is a bug in Engpass, and its traceback is needed in the bug report.
            from engpass import _engpass

            if not isinstance(error, _engpass.InvalidTestbed):
                raise
            tell_invalid(error, as_json=bool(kwargs.get("as_json")))
            raise typer.Exit(BAD_INPUT) from None
        except KeyboardInterrupt:
            tell("interrupted")
            raise typer.Exit(INTERRUPTED) from None
        except OSError as error:
            # Errors with named files are `EngpassError`s already, so this one comes from standard output.
            raise typer.Exit(unwritable(error)) from None

    return run


def prepare() -> None:
    """Print a `?` for characters that the terminal or pipe cannot encode, instead of failing."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


def unwritable(error: OSError) -> int:
    """The exit code for an error on standard output; prints the reason unless its reader has closed it."""
    if error.errno == errno.EPIPE:
        return CLOSED
    tell(f"error: writing to standard output failed: {error.strerror}\nhelp: check whether the disk is full")
    return BAD_INPUT


def finished(code: object) -> int:
    """Flush both output streams; returns the exit code, which shows a failure to write standard output."""
    status = code if isinstance(code, int) else OK if code is None else FAILED
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream is not None:
                stream.flush()
        except OSError as error:
            # Without this the interpreter would flush again at exit, and print the error.
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
            if stream is sys.stdout and status == OK:
                status = unwritable(error)
    return status


def tell(message: str) -> None:
    """Print a message on standard error; a failure to do so is ignored."""
    _write(sys.stderr, message + "\n")


def agreed(yes: bool, work: Callable[[int | None], T]) -> T:
    """Call `work` with the memory that it may use, in bytes, and return its result.

    `None` means any amount, as with `--yes`. If `work` needs more than the default, the user is asked at a
    terminal; without a terminal the `NeedsMemoryError` is raised.
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
        wanted = typer.confirm("run it anyway?", err=True)
    except typer.Abort:
        # If the input ends, the answer is no.
        tell("")
        wanted = False
    if not wanted:
        raise typer.Exit(NEEDS_MEMORY)
    return work(None)


def _is_terminal(stream: TextIO | None) -> bool:
    return stream is not None and stream.isatty()


def tell_invalid(error: _engpass.InvalidTestbed, *, as_json: bool) -> None:
    """Print an `InvalidTestbed`: the diagnostics and a summary as text, or the diagnostics as JSON Lines."""
    if as_json:
        for diagnostic in error.diagnostics:
            tell(json.dumps(diagnostic, ensure_ascii=False))
    else:
        tell((error.rendered_color if _colour() else error.rendered).rstrip("\n"))
        tell(f"\n{error}")


def tell_warnings(testbed: Testbed, variants: Sequence[str] | None = None, *, as_json: bool = False) -> None:
    """Print the warnings of a valid testbed, in the format of errors.

    With `variants`, warnings about values of other variants are omitted.
    """
    if as_json:
        for diagnostic in json.loads(testbed.campaign.warnings(variants)):
            tell(json.dumps(diagnostic, ensure_ascii=False))
    elif told := testbed.campaign.rendered_warnings(_colour(), variants):
        tell(told)


def tell_unmade(testbed: Testbed) -> None:
    """Print, in the format of warnings, the parts of a testbed that agents of real hosts do not support."""
    if told := testbed.campaign.rendered_unmade(_colour()):
        tell(told)


def tell_captured(captured: Sequence[Mapping[str, Json]]) -> bool:
    """Print what each capture file contains; returns True if all captures are complete."""
    for file in captured:
        if "error" in file:
            tell(
                f"error: the capture `{file['path']}` ended early: {file['error']}\n"
                "help: the file is readable up to this point; `--capture-limit` limits its size"
            )
            continue
        told = f"captured {file['packets']:,} to `{file['path']}`"
        if file["limited"]:
            told += " (limit reached)"
        if file["bad_pdus"]:
            told += f"; {file['bad_pdus']:,} PDUs with missing cells were omitted"
        tell(told)
    return not any("error" in file for file in captured)


def tell_broken(logs: Sequence[Mapping[str, str]]) -> bool:
    """Print which logs are incomplete and why; returns True if none is."""
    for log in logs:
        # The driver's text begins by saying that the log ends early.
        why = log["error"].removeprefix("the log ends early: ")
        tell(
            f"error: the log `{log['path']}` ended early: {why}\n"
            f"help: the log can be replayed up to this point; free some space on the disk, or use another one"
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
        # Standard error is closed; the command goes on without its messages.
        pass


def line(data: object) -> None:
    """Print one JSON line on standard output."""
    out(json.dumps(data, ensure_ascii=False, allow_nan=False))


def out(text: str) -> None:
    """Print a line on standard output; raises `OSError` if that fails."""
    if sys.stdout is not None:
        sys.stdout.write(text + "\n")


def tables() -> Console:
    """A Rich console on standard output; off a terminal it is wide enough for all tables."""
    from rich.console import Console

    terminal = sys.stdout is not None and sys.stdout.isatty()
    # Rich itself respects NO_COLOR and TERM=dumb.
    return Console(file=sys.stdout, width=None if terminal else _FILE_WIDTH, highlight=False, emoji=False)


@contextmanager
def waiting(what: str) -> Iterator[Callable[[str], None]]:
    """Show a spinner if standard error is a terminal; yields a function that sets the text beside it."""
    from rich.console import Console

    screen = Console(stderr=True)
    if not screen.is_terminal:
        yield lambda _words: None
        return
    with screen.status(what) as status:
        yield status.update


def fail(message: str, help: str | None = None) -> NoReturn:  # noqa: A002 (the field's name)
    """End the command with the exit code for bad input, after the message."""
    raise EngpassError(message, help)
