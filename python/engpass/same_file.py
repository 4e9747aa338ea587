"""Tests of file paths: whether two of them lead to one file, and whether a file keeps its data."""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path


def keeps(path: str) -> bool:
    """Whether data written to a path stays there: devices and pipes keep nothing that could be lost."""
    try:
        return stat.S_ISREG(Path(path).stat().st_mode)
    except OSError:
        # The file does not exist yet.
        return True


def are_same(one: str, other: str) -> bool:
    """Whether both paths lead to one file: by name, by symbolic link, or by hard link to an existing file."""
    if os.path.realpath(one) == os.path.realpath(other):
        return True
    try:
        return Path(one).samefile(other)
    except OSError:
        return False


def is_log_of_point(path: str, directory: str) -> bool:
    """Whether a path is one of the logs that emulated points have in a directory."""
    folder, name = os.path.split(os.path.realpath(path))
    return folder == os.path.realpath(directory) and re.fullmatch(r"point-\d+\.log", name) is not None
