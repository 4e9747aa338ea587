"""Which testbeds are up on this machine: a file for each, written before anything is made.

A testbed's id stands in the name of each of its namespaces, so that what a crash left behind is known as ours
even without its file.
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
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from engpass.netlab.kernel import Kernel, LabError, into, privileged, start_time

MARK = "engpass-"
"""How the names of our namespaces begin; the id of their testbed follows."""

ENDED = ".ended"
"""What the name of the file ends with, beside the socket, in which a driver leaves what it has written."""

OURS = re.compile(MARK + r"([0-9a-f]{6})-.+")
"""The name of a namespace of ours."""


@dataclass(frozen=True)
class Member:
    """A node of a testbed that is up."""

    namespace: str
    kind: str
    addresses: tuple[str, ...] = ()


@dataclass(frozen=True)
class Lab:
    """A testbed that is up, or was being made."""

    id: str
    name: str
    file: str
    engine: str
    created: str
    state: str
    """`starting` or `up`."""
    owner: int | None
    """The process it is being made by, or lives for; `None` for one that stays up."""
    owner_since: int | None
    keeper: int | None = None
    """The process that holds the user namespace, without root."""
    keeper_since: int | None = None
    members: dict[str, Member] = field(default_factory=dict)
    ways: dict[str, dict[str, str]] = field(default_factory=dict)
    """By host and other host: the address at which the first one reaches the other."""
    driver: int | None = None
    """The process that carries the packets, where the network is emulated."""
    driver_since: int | None = None
    slow: int = 1
    """How many times slower than the clock on the wall the emulated network runs."""
    captures: tuple[str, ...] = ()
    """Files that its driver captures to."""
    log: str | None = None
    """The file to which its driver logs."""
    logs: str | None = None
    """The directory in which every point of its run has a log."""

    @property
    def kernel(self) -> Kernel:
        """Where its namespaces are."""
        return Kernel() if self.keeper is None else into(self.keeper)

    @property
    def prefix(self) -> str:
        """How the names of its namespaces begin."""
        return f"{MARK}{self.id}-"

    @property
    def socket(self) -> Path:
        """Where its driver is asked."""
        return directory() / f"{self.id}.sock"

    @property
    def said(self) -> Path:
        """What its driver said on standard error."""
        return directory() / f"{self.id}.said"

    @property
    def ended(self) -> Path:
        """What its driver has captured and logged, once it has ended."""
        return directory() / f"{self.id}{ENDED}"

    def has_driver(self) -> bool:
        """Whether its driver runs."""
        return self.driver is not None and start_time(self.driver) == self.driver_since

    def may_write(self) -> bool:
        """Whether its driver writes its files, or one that is yet to come will."""
        lives = self.owner is not None and start_time(self.owner) == self.owner_since
        return lives or self.has_driver()

    def is_lost(self) -> bool:
        """Whether a crash left it behind: who made it or it lived for, its keeper or driver is gone."""
        if self.keeper is not None and start_time(self.keeper) != self.keeper_since:
            return True
        if self.driver is not None and not self.has_driver() and self.owner is None:
            return True
        return self.owner is not None and start_time(self.owner) != self.owner_since

    def hosts(self) -> dict[str, Member]:
        """Its hosts."""
        return {name: member for name, member in self.members.items() if member.kind == "host"}


def directory() -> Path:
    """Where the files are: one place for root, whose namespaces are the machine's; else the user's own."""
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
        raise LabError(f"`{path}` cannot be made: {error.strerror}", "set XDG_RUNTIME_DIR") from None
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid():
        raise LabError(f"`{path}` belongs to somebody else", "remove it, or set XDG_RUNTIME_DIR")
    return path


@contextlib.contextmanager
def locked() -> Iterator[Path]:
    """The directory, while nobody else adds to it or takes from it."""
    path = directory()
    with (path / "lock").open("a", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield path


def fresh_id(taken: set[str]) -> str:
    """An id that no testbed here has."""
    while (found := secrets.token_hex(3)) in taken:
        pass
    return found


def write(lab: Lab) -> None:
    """Keep a testbed."""
    put(directory() / f"{lab.id}.json", asdict(lab))


def put(path: Path, data: Mapping[str, object]) -> None:
    """Write a file of the directory: it is whole or not there. Raises `LabError`."""
    partial = path.with_suffix(".new")
    try:
        partial.write_text(json.dumps(data), encoding="utf-8")
        partial.replace(path)
    except OSError as error:
        partial.unlink(missing_ok=True)
        raise LabError(f"`{path}` cannot be written: {error.strerror}", "look for a full disk") from None


def latest(lab: Lab) -> Lab:
    """A testbed as it was written last; as given where nothing was."""
    return next((found for found in all_labs() if found.id == lab.id), lab)


def forget(lab: Lab) -> None:
    """Take a testbed out, with the files of its driver."""
    lab.socket.unlink(missing_ok=True)
    lab.said.unlink(missing_ok=True)
    lab.ended.unlink(missing_ok=True)
    (directory() / f"{lab.id}.json").unlink(missing_ok=True)


def is_ours(path: Path) -> bool:
    """Whether a file in the directory is one that a testbed or a run has."""
    return re.fullmatch(r"[0-9a-f]{6}\.(json|new|sock|said|ended|writes)", path.name) is not None


def all_labs() -> list[Lab]:
    """All testbeds that are kept, the oldest first."""
    labs = []
    for path in directory().glob("*.json"):
        try:
            found = json.loads(path.read_text(encoding="utf-8"))
            members = {name: Member(**member) for name, member in found.pop("members").items()}
            captures = tuple(found.pop("captures", ()))
            labs.append(replace(Lab(**found), members=members, captures=captures))
        except (OSError, ValueError, TypeError, KeyError):
            # Of another version, damaged, or just removed; `clean` looks at what it may have meant.
            continue
    return sorted(labs, key=lambda lab: (lab.created, lab.id))
