"""Checks output files of commands before the work starts; an error has a cure."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING

from engpass import same_file
from engpass.error import EngpassError

if TYPE_CHECKING:
    from engpass.report.figures.base import Drawing


def target(file: str, *, make: bool = True) -> Path:
    """Check that a file can be written, and return its path; raises `EngpassError` if not.

    Its directory is created, or with `make=False` must exist.
    """
    path = Path(file)
    if not make and not path.parent.exists():
        raise EngpassError(
            f"`{path}` cannot be written: there is no directory `{path.parent}`",
            "create it, or check the path",
        )
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.is_fifo():
            # Opening a FIFO would wait for a reader, and closing it would end the reader's data.
            return path
        new = not path.exists()
        with path.open("a", encoding="utf-8"):
            pass
        if new:
            # If the command is interrupted, an empty file would look like a result.
            path.unlink()
    except OSError as error:
        raise unwritable(path, error) from None
    return path


_FORMATS = {
    *(".7z", ".bz2", ".gz", ".tar", ".xz", ".zip", ".zst"),
    *(".csv", ".json", ".jsonl", ".toml", ".tsv", ".xml", ".yaml", ".yml"),
    *(".arrow", ".db", ".feather", ".ipc", ".parquet", ".pcap", ".pcapng", ".sqlite"),
    *(".doc", ".docx", ".htm", ".html", ".md", ".ods", ".odt", ".pdf", ".ps", ".tex", ".xls", ".xlsx"),
    *(".gif", ".jpeg", ".jpg", ".png", ".svg", ".webp"),
}
"""Endings of file names by which programs recognise a format."""


def matching(file: str, own: Sequence[str], written: str, cure: str) -> None:
    """Raise `EngpassError` if the ending of a file name promises another format than the one `written`.

    `own` are the endings of that format. Endings that stand for no format are accepted.
    """
    ending = Path(file).suffix.lower()
    if ending in _FORMATS and ending not in own:
        raise EngpassError(f"`{file}` ends in `{ending}`, but {written}", cure)


def html(file: str) -> str:
    """Return the name of an HTML file; raises `EngpassError` if its ending promises another format."""
    cure = "use the ending `.html`; a browser prints the page as PDF"
    matching(file, (".html", ".htm"), "the page is HTML", cure)
    return file


def folder(name: str) -> Path:
    """Create a directory if it is missing and return its path; raises `EngpassError` if not writable."""
    path = Path(name)
    try:
        path.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=path):
            pass
    except OSError as error:
        raise unwritable(path, error) from None
    return path


def apart(files: Sequence[tuple[str, str]], logs: str | None = None) -> None:
    """Raise `EngpassError` if one file of a command would overwrite another.

    `files` are pairs of a description and a path, the testbed included; `logs` is the directory for the logs
    of emulated points.
    """
    real = [(what, path) for what, path in files if same_file.keeps(path)]
    for (one, path), (other, same) in combinations(real, 2):
        if same_file.are_same(path, same):
            raise EngpassError(
                f"`{path}` cannot be {one} and {other} at once", "use a separate file for each"
            )
    for what, path in real:
        if logs is not None and same_file.is_log_of_point(path, logs):
            raise EngpassError(
                f"`{path}` cannot be {what} and the log of a point at once", "use a separate file for each"
            )


def write(path: Path, text: str) -> None:
    """Write text to a file; raises `EngpassError` if that fails."""
    try:
        path.write_text(text, encoding="utf-8", errors="xmlcharrefreplace")
    except OSError as error:
        raise unwritable(path, error) from None


def pictures(drawings: Mapping[str, Drawing], directory: str) -> None:
    """Write figures as SVG and PNG and print their number; raises `EngpassError` if that fails."""
    from engpass.cli import console
    from engpass.report.charts import export

    try:
        written = export(drawings, Path(directory))
    except OSError as error:
        raise unwritable(Path(directory), error) from None
    console.tell(f"{len(written)} figures written to `{directory}`")


def unwritable(path: Path, error: OSError) -> EngpassError:
    """The error for a file that cannot be written."""
    return EngpassError(f"`{path}` cannot be written: {error.strerror}", "check the path and the disk")
