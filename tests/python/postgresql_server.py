"""A PostgreSQL server for tests: in a temporary folder, on a Unix socket, without a network.

This file is also the program that keeps the server. It ends the server and removes the folder when its
standard input closes, which happens however the tests end, and after `LONGEST_SECONDS` in any case.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import pwd
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

LONGEST_SECONDS = 600
_START_SECONDS = 60


def programs() -> Path | None:
    """The folder with `initdb` and `postgres`; `None` where the distribution's package is not installed."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    named = shutil.which("initdb")
    return found[-1].parent if found else Path(named).parent if named else None


def missing() -> str | None:
    """Why no server can be started; `None` if one can."""
    if programs() is None:
        return "the distribution's package `postgresql` is not installed"
    if importlib.util.find_spec("psycopg") is None:
        return "the driver `psycopg` is not installed"
    return None


@contextlib.contextmanager
def server() -> Iterator[str]:
    """Start a server; its URL has a database of its own."""
    keeper = subprocess.Popen(
        [sys.executable, __file__, str(programs())],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={"PATH": os.environ["PATH"], "LC_ALL": "C"},
    )
    with keeper:
        assert keeper.stdout is not None
        folder = keeper.stdout.readline().strip()
        if not folder:
            raise AssertionError("the server did not start; its messages are above")
        yield f"postgresql:///postgres?user=tests&host={folder}"
        # Leaving the block closes its input and waits for it.


def keep(binaries: Path) -> int:
    """Run a server until standard input closes; print its folder once it answers."""
    who = "nobody" if os.geteuid() == 0 else None  # the server refuses to run as root
    folder = Path(tempfile.mkdtemp(prefix="engpass-postgresql-", dir="/tmp"))
    process = None
    try:
        if who is not None:
            os.chown(folder, pwd.getpwnam(who).pw_uid, -1)
        data = str(folder / "data")
        access = ["-U", "tests", "-A", "trust", "-E", "UTF8", "--locale=C", "-N"]
        subprocess.run(
            [str(binaries / "initdb"), "-D", data, *access],
            check=True,
            user=who,
            cwd=folder,
            stdout=subprocess.DEVNULL,
            timeout=_START_SECONDS,
        )
        # Without durability: the folder does not outlive the server.
        options = ["-k", str(folder)]
        for option in ("listen_addresses=", "fsync=off", "log_min_messages=fatal"):
            options += ["-c", option]
        command = [str(binaries / "postgres"), "-D", data, *options]
        process = subprocess.Popen(command, user=who, cwd=folder)
        deadline = time.monotonic() + _START_SECONDS
        while not _answers(binaries, folder):
            if process.poll() is not None or time.monotonic() > deadline:
                return 1
            time.sleep(0.05)
        print(folder, flush=True)
        select.select([sys.stdin], [], [], LONGEST_SECONDS)
        return 0
    finally:
        if process is not None:
            process.send_signal(signal.SIGINT)  # fast shutdown: open connections are closed
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        shutil.rmtree(folder)


def _answers(binaries: Path, folder: Path) -> bool:
    asked = [str(binaries / "pg_isready"), "-q", "-h", str(folder), "-U", "tests", "-d", "postgres"]
    return subprocess.run(asked, check=False).returncode == 0


if __name__ == "__main__":
    # Ctrl-C reaches all programs of a terminal; this one ends when the tests have ended.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    sys.exit(keep(Path(sys.argv[1])))
