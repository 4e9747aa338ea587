"""Signals that end a command."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType
from typing import Any


@contextlib.contextmanager
def ended_as_by_ctrl_c() -> Iterator[None]:
    """SIGTERM and SIGHUP end us as Ctrl-C does: with what was made removed, and what was found kept."""
    if threading.current_thread() is not threading.main_thread():
        # Signals do not arrive here.
        yield
        return

    before: dict[signal.Signals, Any] = {}

    def hung_up(number: int, frame: FrameType | None) -> None:
        # Who closes a terminal sends it twice, the shell and the kernel: the second ends no removal.
        before[signal.SIGHUP] = signal.SIG_IGN
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        signal.default_int_handler(number, frame)

    before[signal.SIGTERM] = signal.signal(signal.SIGTERM, signal.default_int_handler)
    # Not where somebody decided otherwise, as `nohup` does.
    if signal.getsignal(signal.SIGHUP) == signal.SIG_DFL:
        before[signal.SIGHUP] = signal.signal(signal.SIGHUP, hung_up)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
