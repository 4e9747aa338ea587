"""Handling of the signals that end a command."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator
from types import FrameType


@contextlib.contextmanager
def ended_as_by_ctrl_c() -> Iterator[None]:
    """Let SIGTERM and SIGHUP act like Ctrl-C, so that testbeds are removed and results are kept."""
    if threading.current_thread() is not threading.main_thread():
        # Python handles signals only in the main thread.
        yield
        return

    before: dict[signal.Signals, Callable[[int, FrameType | None], object] | int | None] = {}

    def hung_up(number: int, frame: FrameType | None) -> None:
        # A closing terminal causes two SIGHUPs, from shell and kernel; the second must not stop the cleanup.
        before[signal.SIGHUP] = signal.SIG_IGN
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        signal.default_int_handler(number, frame)

    before[signal.SIGTERM] = signal.signal(signal.SIGTERM, signal.default_int_handler)
    # `nohup` has set SIGHUP to be ignored, and that must stay.
    if signal.getsignal(signal.SIGHUP) == signal.SIG_DFL:
        before[signal.SIGHUP] = signal.signal(signal.SIGHUP, hung_up)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
