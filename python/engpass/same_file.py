"""Questions about file paths: whether two lead to the same file, and whether a file keeps its data."""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path


def keeps(path: str) -> bool:
    """True if data written to the path is kept: devices and pipes keep none, so that nothing can be lost."""
    try:
        return stat.S_ISREG(Path(path).stat().st_mode)
    except OSError:
        # The file does not exist yet and will be created.
        return True


def are_same(one: str, other: str) -> bool:
    """True if both paths lead to the same file: by name, by symbolic link, or by hard link if it exists."""
    if os.path.realpath(one) == os.path.realpath(other):
        return True
    try:
        return Path(one).samefile(other)
    except OSError:
        return False


def is_log_of_point(path: str, directory: str) -> bool:
    """True if the path is one of the logs that emulated points write in this directory."""
    folder, name = os.path.split(os.path.realpath(path))
    return folder == os.path.realpath(directory) and re.fullmatch(r"point-\d+\.log", name) is not None
