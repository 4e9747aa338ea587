"""Isolates a test session, so that it sees only its own testbeds and processes.

A session of root has a mount namespace of its own with an empty `/run/netns` and an empty `/run/engpass`. It
therefore does not see other testbeds on this machine, and others do not see its testbeds. An environment
variable marks the processes of the session.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from pathlib import Path

from engpass.netlab import kernel

OUTSIDE: list[int] = []
"""File descriptor of the mount namespace that the session has left; empty if it stayed there."""

_VARIABLE = "PYTEST_OF_ENGPASS"
_CLONE_NEWNS = 0x00020000
_MS_REC, _MS_PRIVATE = 0x4000, 1 << 18


def enter() -> None:
    """Mark this process and its children, and isolate their mounts."""
    os.environ[_VARIABLE] = f"{os.getpid()}-{kernel.start_time(os.getpid())}"
    if not kernel.privileged() or os.geteuid() != 0:
        return
    places = [Path("/run/netns"), Path("/run/engpass")]
    for place in places:
        place.mkdir(mode=0o700 if place.name == "engpass" else 0o755, parents=True, exist_ok=True)
    OUTSIDE.append(os.open("/proc/self/ns/mnt", os.O_RDONLY))
    libc = ctypes.CDLL(None, use_errno=True)
    _check(libc.unshare(_CLONE_NEWNS))
    # Shared mounts would also appear outside.
    _check(libc.mount(None, b"/", None, _MS_REC | _MS_PRIVATE, None))
    for place in places:
        _check(libc.mount(b"tests", bytes(place), b"tmpfs", 0, b"mode=700"))


def _check(result: int) -> None:
    if result != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def own_processes() -> Iterator[Path]:
    """Directories in `/proc` of the processes that this session has started."""
    mark = f"{_VARIABLE}={os.environ[_VARIABLE]}".encode()
    for process in Path("/proc").iterdir():
        try:
            if process.name.isdigit() and mark in (process / "environ").read_bytes().split(b"\0"):
                yield process
        except OSError:
            # The process has ended, or belongs to another user.
            continue
