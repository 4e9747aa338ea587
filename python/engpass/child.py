"""Commands and environments of child processes, none of which runs code from the working directory.

Without this, Python looks for modules in the working directory first: an agent, which often runs as root,
would import a `typing.py` that lies beside a downloaded testbed.
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

from engpass.error import EngpassError

NOT_FOUND = "No module named"
"""Part of a Python interpreter's message if it does not find this package."""

NOT_FOUND_CURE = (
    "agents and drivers do not use `PYTHONPATH`, user packages or the working directory"
    " (`python -I`): install engpass into a virtual environment, or for the whole machine"
)
"""The cure to show with an error of kind `NOT_FOUND` in isolated mode."""


def interpreter(module: str, *words: str) -> list[str]:
    """The command line that runs a module with this Python interpreter in isolated mode.

    Isolated mode (`python -I`) ignores the working directory, `PYTHONPATH` and all other `PYTHON…` variables,
    and the user's own packages. The child has the warning filters of this process. Raises `EngpassError` if
    this process has no interpreter to start.
    """
    if not sys.executable:
        raise EngpassError(
            "engpass found no Python interpreter for its child processes",
            "start engpass with `python` or by its command, or set ENGPASS_AGENT and ENGPASS_DRIVER",
        )
    warnings = [f"-W{option}" for option in sys.warnoptions]
    return [sys.executable, "-I", *warnings, "-m", module, *words]


def environment() -> dict[str, str]:
    """The environment of child processes: that of this process, with only absolute directories in `PATH`.

    An empty entry of `PATH`, such as after a `:` at the end, means the working directory (POSIX.1-2017, 8.3).
    """
    directories = os.environ.get("PATH", os.defpath).split(os.pathsep)
    absolute = [directory for directory in directories if Path(directory).is_absolute()]
    return {**os.environ, "PATH": os.pathsep.join(absolute)}


def find(program: str) -> str | None:
    """The path of a program; `None` if no absolute directory of `PATH` contains it."""
    return shutil.which(program, path=environment()["PATH"])
