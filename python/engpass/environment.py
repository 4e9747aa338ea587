"""Facts about the machine and the program that ran a campaign."""

from __future__ import annotations

import os
import platform
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeAlias

Environment: TypeAlias = dict[str, str | int | dict[str, str | int | bool]]
"""Type of such facts, by name; `emulation` has the options of emulated points."""

DEFAULT_STORE = "engpass.db"
"""The store that commands use by default: a file in the working directory."""


def now() -> str:
    """The present time in UTC as ISO 8601 text, which sorts by time."""
    return datetime.now(UTC).isoformat(timespec="microseconds")


def cores() -> int:
    """Number of CPU cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def environment(jobs: int, executor: str) -> Environment:
    """The facts about this machine and program that help to understand old results."""
    from engpass import _engpass
    from engpass.campaign import build

    return {
        "version": _engpass.version(),
        "build": build(),
        "python": platform.python_version(),
        "system": _system(),
        "kernel": f"{platform.system()} {platform.release()}",
        "machine": platform.machine(),
        "cpu": _cpu(),
        "cores": cores(),
        "memory_bytes": _memory(),
        "hostname": platform.node(),
        "executor": executor,
        "jobs": jobs,
        "started": now(),
    }


def _system() -> str:
    try:
        return platform.freedesktop_os_release().get("PRETTY_NAME", platform.system())
    except OSError:
        return platform.system()


def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def _memory() -> int:
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (ValueError, OSError):
        return 0
