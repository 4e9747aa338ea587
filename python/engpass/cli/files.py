"""Files that commands write: known to be possible before the work, and told as an error if not."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path

from engpass import paths
from engpass.error import EngpassError


def target(file: str, *, make: bool = True) -> Path:
    """The file to write: known to be possible before minutes of work.

    Its directory is made, or else must be there. `EngpassError` if it cannot be written.
    """
    path = Path(file)
    if not make and not path.parent.exists():
        raise EngpassError(
            f"`{path}` cannot be written: there is no directory `{path.parent}`", "make it, or check the path"
        )
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.is_fifo():
            # To open one waits for its reader, and to close it tells the reader that all has come.
            return path
        new = not path.exists()
        with path.open("a", encoding="utf-8"):
            pass
        if new:
            # An empty file would look like a result if the work is interrupted.
            path.unlink()
    except OSError as error:
        raise unwritable(path, error) from None
    return path


def folder(name: str) -> Path:
    """The directory to write files into, made if it is not there; `EngpassError` if it cannot be written."""
    path = Path(name)
    try:
        path.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=path):
            pass
    except OSError as error:
        raise unwritable(path, error) from None
    return path


def apart(files: Sequence[tuple[str, str]], logs: str | None = None) -> None:
    """Raise `EngpassError` where a file of a command would be written over by another.

    `files` are pairs of what it is, in words, and its path, the testbed among them; `logs` is the directory
    in which emulated points have theirs.
    """
    real = [(what, path) for what, path in files if paths.keeps(path)]
    for (one, path), (other, same) in combinations(real, 2):
        if paths.are_same(path, same):
            raise EngpassError(f"`{path}` cannot be {one} and {other} at once", "give each a file of its own")
    for what, path in real:
        if logs is not None and paths.is_log_of_point(path, logs):
            raise EngpassError(
                f"`{path}` cannot be {what} and the log of a point at once", "give each a file of its own"
            )


def write(path: Path, text: str) -> None:
    """Write a file; `EngpassError` if it cannot be written."""
    try:
        path.write_text(text, encoding="utf-8", errors="xmlcharrefreplace")
    except OSError as error:
        raise unwritable(path, error) from None


def unwritable(path: Path, error: OSError) -> EngpassError:
    """What to tell the user of a file that cannot be written."""
    return EngpassError(f"`{path}` cannot be written: {error.strerror}", "check the path and the disk")
