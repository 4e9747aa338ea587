"""Keeps testbeds and runs from writing the same file at the same time.

The registry lists the files that the driver of a testbed writes. A run that captures or logs lists its files
itself, while it lasts, in a claim file `ID.writes` in the directory of the registry.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator
from pathlib import Path

import msgspec

from engpass.emulation import Files
from engpass.netlab import registry
from engpass.netlab.kernel import LabError, start_time

CLAIM = ".writes"
"""Suffix of claim files."""


class _Claim(msgspec.Struct, frozen=True):
    """The claim of a run: its testbed file, its process, and the files that it writes."""

    file: str
    owner: int
    owner_since: int | None
    files: Files


def check(files: Files) -> None:
    """Raise `LabError` if a testbed or another run writes one of the files; the error names the writer."""
    for who, cure, theirs in (*_runs(), *_testbeds()):
        if path := files.shared(theirs):
            raise LabError(f"`{path}` is being written by {who}", f"use another file, or {cure}")


@contextlib.contextmanager
def claimed(file: str, files: Files) -> Iterator[None]:
    """Claim files for a run of `file` while the context lasts; raises `LabError` as `check` does."""
    path = _claim(file, files)
    try:
        yield
    finally:
        if path is not None:
            path.unlink(missing_ok=True)


def _claim(file: str, files: Files) -> Path | None:
    """Write a claim file and return its path.

    Returns `None` if the registry cannot be used: a run without namespaces continues without a claim.
    """
    try:
        registry.directory()
    except LabError:
        return None
    try:
        with registry.locked() as directory:
            check(files)
            taken = {path.stem for path in directory.iterdir()}
            path = directory / f"{registry.fresh_id(taken)}{CLAIM}"
            mine = _Claim(file, os.getpid(), start_time(os.getpid()), files.absolute())
            registry.put(path, msgspec.to_builtins(mine))
            return path
    except OSError:
        return None


def claims() -> set[str]:
    """Names of the claim files whose runs still go on."""
    return {path.name for path, _ in _claims()}


def _testbeds() -> Iterator[tuple[str, str, Files]]:
    for lab in registry.all_labs():
        if not lab.may_write():
            continue
        cure = f"run `engpass down {lab.id}` first"
        if lab.is_lost():
            cure = "run `engpass clean` first, which ends what a crash left behind"
        elif lab.owner is not None:
            cure = "wait until that run has ended (see `engpass ps`)"
        yield f"testbed {lab.id} of `{lab.file}`", cure, Files(lab.captures, lab.log, lab.logs)


def _runs() -> Iterator[tuple[str, str, Files]]:
    for _, claim in _claims():
        # A claim of this process is for the files of its own testbeds, so it does not conflict.
        if claim.owner != os.getpid():
            who = f"a run of `{claim.file}` (process {claim.owner})"
            yield who, "wait until that run has ended", claim.files


def _claims() -> list[tuple[Path, _Claim]]:
    found = []
    for path in sorted(registry.directory().glob(f"*{CLAIM}")):
        try:
            said = json.loads(path.read_text(encoding="utf-8"))
            files = said.pop("files")
            captures = tuple(files.pop("captures"))
            claim = _Claim(**said, files=Files(captures, **files))
        except (OSError, ValueError, TypeError, KeyError):
            # The claim file was just removed, is damaged, or is from another version.
            continue
        if start_time(claim.owner) == claim.owner_since:
            found.append((path, claim))
    return found
