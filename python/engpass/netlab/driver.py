"""The process that carries the packets of an emulated testbed: `python -m engpass.netlab.driver`.

The process reads its configuration as one JSON object from standard input. When all is up it prints one line
to standard output, and from then on it listens on its socket. It ends with `stop`, SIGTERM or SIGINT.
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
    """Reports on the capture files that the driver wrote."""
    log: msgspec.Raw = msgspec.Raw(b"null")
    """Report on the log that the driver wrote."""


def main() -> int:
    """Run the configured network until the driver is stopped; returns the exit code."""
    # The core ends on SIGINT, but a child of a shell's background job inherits that the signal is ignored.
    # Ctrl-C in a terminal does not reach the driver, because the driver has its own session.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    given = sys.stdin.read()
    if not given.strip():
        # The process that started the driver has ended already.
        return 1
    from engpass import _engpass

    try:
        last = _engpass.emulate(given)
    except (ValueError, RuntimeError, OSError) as error:
        sys.stderr.write(f"{getattr(error, 'rendered', None) or error}\n")
        return 1
    # Block a second signal, so that it cannot interrupt the report on the written files.
    signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGINT, signal.SIGTERM))
    given_to_us = msgspec.json.decode(given, type=_Given)
    _leave(Path(given_to_us.socket), msgspec.json.decode(last, type=_Last))
    return 0


def _leave(socket: Path, last: _Last) -> None:
    """Save the reports on written files in a file, because a driver ended by a signal answers no request."""
    # If this fails, `emulated.written` says that the driver ended without a report.
    with contextlib.suppress(OSError):
        partial = socket.with_suffix(".new")
        partial.write_bytes(msgspec.json.encode(last))
        partial.replace(socket.with_suffix(ENDED))


if __name__ == "__main__":
    sys.exit(main())
