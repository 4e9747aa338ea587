"""The measured time of an emulated point: when the driver opens the model's books, and closes them."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

from engpass.error import EngpassError
from engpass.netlab import Lab
from engpass.netlab.control import Control


class Window:
    """Opens and closes the books in a thread of its own: the controller of the agents may be busy."""

    def __init__(self, lab: Lab, opens: float, closes: float) -> None:
        """Both in seconds after the senders begin."""
        self._lab, self._opens, self._closes = lab, opens, closes
        self._given_up = threading.Event()
        self._thread: threading.Thread | None = None
        self._closed: dict[str, Any] | None = None
        self._error: EngpassError | None = None

    def start(self, at: float) -> None:
        """The senders begin at this monotonic time."""
        self._thread = threading.Thread(target=self._work, args=(at,), name="engpass-window", daemon=True)
        self._thread.start()

    def _work(self, at: float) -> None:
        try:
            with Control(self._lab.socket) as control:
                if self._waited(at + self._opens):
                    control.ask("window")
                    if self._waited(at + self._closes):
                        self._closed = control.ask("end-window")
        except EngpassError as error:
            self._error = error

    def _waited(self, until: float) -> bool:
        return not self._given_up.wait(max(0.0, until - time.monotonic()))

    def check(self) -> None:
        """Raise what went wrong with the driver so far, if anything did."""
        if self._error is not None:
            raise self._error

    def close(self) -> dict[str, Any]:
        """What the driver gave at the end: outcome and lateness; raises `LabError`."""
        if self._thread is not None:
            self._thread.join()
        self.check()
        assert self._closed is not None, "a window without an error was closed"  # noqa: S101 (our own thread)
        return self._closed

    def end(self) -> None:
        """Give it up, if it is still open."""
        self._given_up.set()
        if self._thread is not None:
            self._thread.join()


class Settled:
    """Whether packets are still on their way: in the network, or in front of it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._sent = -1

    def look(self) -> bool:
        """Whether nothing is inside, and nothing has come since the last look; raises `LabError`."""
        with Control(self._path) as control:
            status = control.ask("status")
        before, self._sent = self._sent, sum(host["sent_packets"] for host in status["hosts"])
        waits = status["inside"] + sum(host["backlog"] for host in status["hosts"])
        return not waits and before == self._sent
