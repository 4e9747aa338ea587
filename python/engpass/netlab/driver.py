"""The process that carries the packets of an emulated testbed: `python -m engpass.netlab.driver`.

What it is to carry comes as one JSON object on standard input; when all is up it says so with one line on
standard output, and from then on it listens on its socket. It ends with `stop`, SIGTERM or SIGINT.
"""

from __future__ import annotations

import contextlib
import signal
import sys
from pathlib import Path

import msgspec

from engpass.netlab.registry import ENDED


class _Given(msgspec.Struct, frozen=True):
    """What of the work concerns this process."""

    socket: str


class _Last(msgspec.Struct, frozen=True):
    """What a driver leaves of its last status."""

    captured: msgspec.Raw = msgspec.Raw(b"[]")
    """What was captured."""
    log: msgspec.Raw = msgspec.Raw(b"null")
    """What became of the log."""


def main() -> int:
    """Carry what standard input says until somebody ends it; the exit code."""
    # The core catches SIGINT unless it is ignored, and children of a shell's background job inherit that.
    # A terminal's Ctrl-C does not come here: the driver has a session of its own.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    given = sys.stdin.read()
    if not given.strip():
        # Who started us is gone already.
        return 1
    from engpass import _engpass

    try:
        last = _engpass.emulate(given)
    except (ValueError, RuntimeError, OSError) as error:
        sys.stderr.write(f"{getattr(error, 'rendered', None) or error}\n")
        return 1
    # A second signal does not interrupt the report of written files.
    signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGINT, signal.SIGTERM))
    given_to_us = msgspec.json.decode(given, type=_Given)
    _leave(Path(given_to_us.socket), msgspec.json.decode(last, type=_Last))
    return 0


def _leave(socket: Path, last: _Last) -> None:
    """Leave word of what was written: whoever ended us may have done so with a signal, and has no answer."""
    # Without the file it is told that nobody knows.
    with contextlib.suppress(OSError):
        partial = socket.with_suffix(".new")
        partial.write_bytes(msgspec.json.encode(last))
        partial.replace(socket.with_suffix(ENDED))


if __name__ == "__main__":
    sys.exit(main())
