"""Debian's ns-3 package, unpacked locally, and the dumbbell built with it.

Nothing is installed. Packages that the system lacks are downloaded and unpacked into `.ns3/` in the
checkout.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from machine import ROOT

PLACE = ROOT / ".ns3"
SOURCE = ROOT / "benches/ns3/dumbbell.cc"
PACKAGE = "libns3-dev"
MODULES = ("applications", "internet", "traffic-control", "point-to-point", "network", "core")

REFERENCE_S = {2: 2.74, 10: 3.11, 100: 7.75}
"""Processor time in seconds of ns-3.37 for 10 s of this many flows on the reference machine of the targets:
medians of five runs."""


class NotThereError(Exception):
    """ns-3 is not available on this machine."""


def _said(*command: str | Path, where: Path = ROOT) -> str:
    try:
        done = subprocess.run(command, cwd=where, capture_output=True, text=True, check=False, timeout=300)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NotThereError(f"`{command[0]}`: {error}") from error
    if done.returncode != 0:
        told = (done.stderr.strip() or done.stdout.strip()).splitlines()
        raise NotThereError(f"`{' '.join(map(str, command))}`: {told[-1] if told else done.returncode}")
    return done.stdout


@dataclass(frozen=True)
class Ns3:
    """The built dumbbell program."""

    program: Path
    version: str

    @classmethod
    def ready(cls) -> Ns3:
        """Fetch and build what is missing; raise `NotThereError` with the reason if that fails."""
        for tool in ("g++", "apt-get", "dpkg"):
            if shutil.which(tool) is None:
                raise NotThereError(f"there is no `{tool}`")
        PLACE.mkdir(exist_ok=True)
        version_file = PLACE / "version"
        if not version_file.exists():
            version_file.write_text(_fetch(), encoding="utf-8")
        program = PLACE / "dumbbell"
        if not program.exists() or program.stat().st_mtime < SOURCE.stat().st_mtime:
            _build(program)
        return cls(program, version_file.read_text(encoding="utf-8"))

    def run(self, flows: int, seconds: float, *, count: bool = False) -> dict[str, Any]:
        """Run it once. Hops and drops are only counted with `count`, which takes time."""
        words = (self.program, f"--n={flows}", f"--sim={seconds:g}", f"--hops={int(count)}")
        result: dict[str, Any] = json.loads(_said(*words))
        return result


def pace() -> float | None:
    """Return how many times longer ns-3 takes now than on the reference machine; `None` without ns-3."""
    try:
        taken: float = Ns3.ready().run(10, 10)["cpu_s"]
    except NotThereError:
        return None
    return taken / REFERENCE_S[10]


def _fetch() -> str:
    """Download and unpack ns-3 and its missing dependencies; return the version of its package."""
    ask = ("apt-get", "install", "--print-uris", "-qq", "-y", "--no-install-recommends", PACKAGE)
    names = [line.split()[1].split("_")[0] for line in _said(*ask).splitlines() if line.startswith("'")]
    if names:
        _said("apt-get", "download", "-qq", *names, where=PLACE)
    for package in sorted(PLACE.glob("*.deb")):
        _said("dpkg", "-x", package, PLACE / "root")
        package.unlink()
    # Packages that the system has already are used from there.
    shown = _said("apt-cache", "policy", PACKAGE)
    version = next((line.split()[1] for line in shown.splitlines() if "Candidate:" in line), "")
    if not version:
        raise NotThereError(f"apt knows no version of `{PACKAGE}`")
    return version


def _build(program: Path) -> None:
    root = PLACE / "root/usr"
    triplet = _said("g++", "-print-multiarch").strip()
    libraries = root / "lib" / triplet
    _said(
        *("g++", "-std=c++17", "-O3", "-DNDEBUG", "-w", SOURCE, "-o", program),
        *(f"-I{root / 'include'}", f"-L{libraries}"),
        # Libraries that these libraries need are found there, too.
        f"-Wl,--disable-new-dtags,-rpath,{libraries},-rpath-link,{libraries}",
        *(f"-lns3-{module}" for module in MODULES),
    )
    os.utime(program)
