"""Sends requests to the driver of an emulated testbed: lines of JSON over the driver's socket."""

from __future__ import annotations

import contextlib
import json
import socket
from pathlib import Path
from typing import Any

from engpass.netlab.kernel import LabError

ANSWER_SECONDS = 10.0
_PIECE_BYTES = 1 << 16


class Control:
    """A connection to a driver, for one request at a time."""

    def __init__(self, path: Path, seconds: float = ANSWER_SECONDS) -> None:
        self._path = path
        self._rest = b""
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.settimeout(seconds)
        try:
            self._socket.connect(str(path))
        except OSError as error:
            self._socket.close()
            raise self._lost(error) from None

    def __enter__(self) -> Control:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection; the driver continues."""
        self._socket.close()

    def ask(self, do: str) -> dict[str, Any]:
        """Send a request and return the answer. Raises `LabError` for an error, and if the driver is gone."""
        try:
            self._socket.sendall(json.dumps({"do": do}).encode() + b"\n")
            line = self._line()
        except OSError as error:
            raise self._lost(error) from None
        try:
            answer = json.loads(line)
        except ValueError:
            answer = None
        if not isinstance(answer, dict):
            raise LabError(
                f"the driver at `{self._path}` sent an unknown answer", "install only one version of engpass"
            )
        wrong = answer.get("error")
        if wrong is not None:
            told = wrong if isinstance(wrong, dict) else {"cause": wrong}
            raise LabError(
                f"the driver of the emulated network refuses `{do}`: {told.get('cause')}", told.get("help")
            )
        found = answer.get("ok", answer)
        return found if isinstance(found, dict) else {}

    def _line(self) -> bytes:
        while b"\n" not in self._rest:
            piece = self._socket.recv(_PIECE_BYTES)
            if not piece:
                raise ConnectionResetError("it has ended")
            self._rest += piece
        line, _, self._rest = self._rest.partition(b"\n")
        return line

    def _lost(self, error: OSError) -> LabError:
        why = error.strerror or str(error)
        if isinstance(error, TimeoutError):
            return LabError(
                f"the driver at `{self._path}` does not answer", "check whether the machine is overloaded"
            )
        return LabError(
            f"the driver at `{self._path}` cannot be reached: {why}",
            "`engpass clean` removes its remains, `engpass up` creates the testbed again",
        )


def told(path: Path, do: str) -> bool:
    """Send a request to a driver that may be gone; returns True if the driver has carried it out."""
    with contextlib.suppress(LabError), Control(path, 2.0) as control:
        control.ask(do)
        return True
    return False
