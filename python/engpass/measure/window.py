"""The measurement window of an emulated point: when the driver opens and closes the model's ledger."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from pathlib import Path

import msgspec

from engpass.error import EngpassError
from engpass.jsondata import Json
from engpass.netlab import Lab, LabError
from engpass.netlab.control import Control


class _Lateness(msgspec.Struct, frozen=True, kw_only=True):
    valid: bool


_STRANGER = "the driver sent an unknown answer"


class _Answer(msgspec.Struct, frozen=True, kw_only=True):
    lateness: _Lateness


class Closed(msgspec.Struct, frozen=True):
    """The driver's answer at the end of a window: the model's results, and how late packets were."""

    valid: bool
    """False if packets were too late."""
    told: Mapping[str, Json]
    """The answer as received; the core reads it."""

    @classmethod
    def of(cls, answer: Mapping[str, Json]) -> Closed:
        """Parse the answer. Raises `LabError` if it does not have the expected form."""
        try:
            return cls(msgspec.convert(answer, _Answer).lateness.valid, answer)
        except msgspec.ValidationError as error:
            raise LabError(f"{_STRANGER}: {error}", "install only one version of engpass") from None


class _Host(msgspec.Struct, frozen=True, kw_only=True):
    sent_packets: int
    backlog: int


class _Status(msgspec.Struct, frozen=True, kw_only=True):
    inside: int
    hosts: list[_Host]


class Window:
    """Opens and closes the window in a separate thread, because the controller of the agents may be busy."""

    def __init__(self, lab: Lab, opens: float, closes: float) -> None:
        """`opens` and `closes` are in seconds after the senders begin, as do the testbed's `events`."""
        self._lab, self._opens, self._closes = lab, opens, closes
        self._given_up = threading.Event()
        self._thread: threading.Thread | None = None
        self._closed: Closed | None = None
        self._error: EngpassError | None = None

    def start(self, at: float) -> None:
        """Start the thread; `at` is the monotonic time at which the senders begin."""
        self._thread = threading.Thread(target=self._work, args=(at,), name="engpass-window", daemon=True)
        self._thread.start()

    def _work(self, at: float) -> None:
        try:
            with Control(self._lab.socket) as control:
                if self._waited(at):
                    control.ask("events")
                if self._waited(at + self._opens):
                    control.ask("window")
                    if self._waited(at + self._closes):
                        self._closed = Closed.of(control.ask("end-window"))
        except EngpassError as error:
            self._error = error

    def _waited(self, until: float) -> bool:
        return not self._given_up.wait(max(0.0, until - time.monotonic()))

    def check(self) -> None:
        """Raise the error of the driver, if there was one."""
        if self._error is not None:
            raise self._error

    def close(self) -> Closed:
        """Wait for the end of the window, and return the driver's answer; raises `LabError`."""
        if self._thread is not None:
            self._thread.join()
        self.check()
        assert self._closed is not None, "a window without an error was closed"  # noqa: S101 (our own thread)
        return self._closed

    def end(self) -> None:
        """Give up the window if it is still open."""
        self._given_up.set()
        if self._thread is not None:
            self._thread.join()


class Settled:
    """Tests whether packets are in flight: in the emulated network, or queued before it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._sent = -1

    def look(self) -> bool:
        """True if no packet is in flight and hosts sent none since the last call; raises `LabError`."""
        with Control(self._path) as control:
            answer = control.ask("status")
        try:
            status = msgspec.convert(answer, _Status)
        except msgspec.ValidationError as error:
            raise LabError(f"{_STRANGER}: {error}", "install only one version of engpass") from None
        before, self._sent = self._sent, sum(host.sent_packets for host in status.hosts)
        waits = status.inside + sum(host.backlog for host in status.hosts)
        return not waits and before == self._sent
