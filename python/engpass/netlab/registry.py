"""The registry of testbeds on this machine: a file for each, written before anything else is made.

The name of every namespace contains the id of its testbed, so that what a crash leaves behind is recognized
even without the file.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import secrets
import stat
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec
from msgspec.structs import replace

from engpass.jsondata import Json
from engpass.netlab.kernel import Kernel, LabError, into, privileged, start_time

MARK = "engpass-"
"""Prefix of the names of Engpass's namespaces; the id of the testbed follows."""

ENDED = ".ended"
"""Suffix of the file, beside the driver's socket, in which a driver leaves the reports on files it wrote."""

OURS = re.compile(MARK + r"([0-9a-f]{6})-.+")
"""Matches the names of Engpass's namespaces; the group is the id of the testbed."""


class Member(msgspec.Struct, frozen=True):
    """A node of a testbed that is up: its namespace and addresses."""

    namespace: str
    kind: str
    addresses: tuple[str, ...] = ()


class Lab(msgspec.Struct, frozen=True):
    """A testbed that is up or is being made, as the registry records it."""

    id: str
    name: str
    file: str
    engine: str
    created: str
    state: str
    """The state: `starting` or `up`."""
    owner: int | None
    """Id of the process that makes the testbed or for which it lives; `None` for one that stays up."""
    owner_since: int | None
    keeper: int | None = None
    """Id of the process that holds the user namespace, if the testbed was made without root."""
    keeper_since: int | None = None
    members: dict[str, Member] = msgspec.field(default_factory=dict)
    ways: dict[str, dict[str, str]] = msgspec.field(default_factory=dict)
    """By sender and receiver: the address at which the sender reaches the receiver."""
    driver: int | None = None
    """Id of the process that carries the packets, if the network is emulated."""
    driver_since: int | None = None
    slow: int = 1
    """Factor by which the emulated network runs slower than wall-clock time."""
    captures: tuple[str, ...] = ()
    """Files to which the driver captures."""
    log: str | None = None
    """The file in which the driver logs."""
    logs: str | None = None
    """The directory in which every point of the run has a log."""

    @property
    def kernel(self) -> Kernel:
        """Runs commands where the namespaces of the testbed are."""
        return Kernel() if self.keeper is None else into(self.keeper)

    @property
    def prefix(self) -> str:
        """Prefix of the names of the testbed's namespaces."""
        return f"{MARK}{self.id}-"

    @property
    def socket(self) -> Path:
        """Path of the socket for requests to the driver."""
        return directory() / f"{self.id}.sock"

    @property
    def said(self) -> Path:
        """Path of the file with the driver's standard error."""
        return directory() / f"{self.id}.said"

    @property
    def ended(self) -> Path:
        """Path of the file in which the driver reports on captures and log when it ends."""
        return directory() / f"{self.id}{ENDED}"

    def has_driver(self) -> bool:
        """True if the driver runs."""
        return self.driver is not None and start_time(self.driver) == self.driver_since

    def may_write(self) -> bool:
        """True if the testbed's files may still be written: its owner lives, or its driver runs."""
        lives = self.owner is not None and start_time(self.owner) == self.owner_since
        return lives or self.has_driver()

    def is_lost(self) -> bool:
        """True if a crash left the testbed behind: owner or keeper, or without owner its driver, is gone."""
        if self.keeper is not None and start_time(self.keeper) != self.keeper_since:
            return True
        if self.driver is not None and not self.has_driver() and self.owner is None:
            return True
        return self.owner is not None and start_time(self.owner) != self.owner_since

    def hosts(self) -> dict[str, Member]:
        """The testbed's hosts by name."""
        return {name: member for name, member in self.members.items() if member.kind == "host"}


def directory() -> Path:
    """The directory of the registry, created if needed. Raises `LabError`.

    Root has one directory, because root's namespaces are the machine's. Every other user has a private one.
    """
    if privileged() and os.geteuid() == 0:
        path = Path("/run/engpass")
    else:
        runtime = os.environ.get("XDG_RUNTIME_DIR")
        if runtime and Path(runtime).is_dir() and os.access(runtime, os.W_OK):
            path = Path(runtime) / "engpass"
        else:
            path = Path(tempfile.gettempdir()) / f"engpass-{os.geteuid()}"
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = path.lstat()
    except OSError as error:
        raise LabError(f"`{path}` cannot be created: {error.strerror}", "set XDG_RUNTIME_DIR") from None
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid():
        raise LabError(f"`{path}` belongs to another user", "remove it, or set XDG_RUNTIME_DIR")
    return path


@contextlib.contextmanager
def locked() -> Iterator[Path]:
    """Lock the directory against additions and removals, and yield its path."""
    path = directory()
    with (path / "lock").open("a", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield path


def fresh_id(taken: set[str]) -> str:
    """An id that no testbed in `taken` has."""
    while (found := secrets.token_hex(3)) in taken:
        pass
    return found


def write(lab: Lab) -> None:
    """Write the testbed's file in the registry."""
    put(directory() / f"{lab.id}.json", msgspec.to_builtins(lab))


def put(path: Path, data: Mapping[str, Json]) -> None:
    """Write a file of the directory atomically. Raises `LabError`."""
    partial = path.with_suffix(".new")
    try:
        partial.write_text(json.dumps(data), encoding="utf-8")
        partial.replace(path)
    except OSError as error:
        partial.unlink(missing_ok=True)
        raise LabError(
            f"`{path}` cannot be written: {error.strerror}", "check whether the disk is full"
        ) from None


def latest(lab: Lab) -> Lab:
    """The testbed as last written to the registry, or `lab` if it was never written."""
    return next((found for found in all_labs() if found.id == lab.id), lab)


def forget(lab: Lab) -> None:
    """Remove the files of a testbed and of its driver from the registry."""
    lab.socket.unlink(missing_ok=True)
    lab.said.unlink(missing_ok=True)
    lab.ended.unlink(missing_ok=True)
    (directory() / f"{lab.id}.json").unlink(missing_ok=True)


def is_ours(path: Path) -> bool:
    """True if a file in the directory belongs to a testbed or a run, by its name."""
    return re.fullmatch(r"[0-9a-f]{6}\.(json|new|sock|said|ended|writes)", path.name) is not None


def all_labs() -> list[Lab]:
    """All testbeds of the registry, oldest first."""
    labs = []
    for path in directory().glob("*.json"):
        try:
            found = json.loads(path.read_text(encoding="utf-8"))
            members = {name: Member(**member) for name, member in found.pop("members").items()}
            captures = tuple(found.pop("captures", ()))
            labs.append(replace(Lab(**found), members=members, captures=captures))
        except (OSError, ValueError, TypeError, KeyError):
            # The file is from another version, damaged, or was just removed; `clean` removes such files.
            continue
    return sorted(labs, key=lambda lab: (lab.created, lab.id))
