"""Whether two paths lead to one file, whatever they are called."""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path


def keeps(path: str) -> bool:
    """Whether what is written there stays there: devices and the like keep nothing that could be lost."""
    try:
        return stat.S_ISREG(Path(path).stat().st_mode)
    except OSError:
        # It is to be made.
        return True


def are_same(one: str, other: str) -> bool:
    """Whether both paths lead to one file: by its name, by links, or by hard links to one that is there."""
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
