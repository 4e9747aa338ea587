"""The process that carries the packets of an emulated testbed: `python -m engpass.netlab.driver`.

It reads its configuration as one JSON object from standard input. When all is up it prints one line to
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
    """The part of the configuration that this process reads itself."""

    socket: str


class _Last(msgspec.Struct, frozen=True):
    """The part of a driver's last status that it leaves in a file."""

    captured: msgspec.Raw = msgspec.Raw(b"[]")
    """Reports on the capture files."""
    log: msgspec.Raw = msgspec.Raw(b"null")
    """Report on the log."""


def main() -> int:
    """Run the configured network until the driver is stopped; returns the exit code."""
    # The core catches SIGINT unless it is ignored, which children of a shell's background job inherit.
    # A terminal's Ctrl-C does not reach the driver, which has its own session.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    given = sys.stdin.read()
    if not given.strip():
        # The process that started the driver is gone already.
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
    """Leave the reports on written files in a file: a driver ended by a signal has sent no answer."""
    # Without this file, `emulated.written` reports that the driver ended without a word.
    with contextlib.suppress(OSError):
        partial = socket.with_suffix(".new")
        partial.write_bytes(msgspec.json.encode(last))
        partial.replace(socket.with_suffix(ENDED))


if __name__ == "__main__":
    sys.exit(main())
