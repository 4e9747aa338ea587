"""Prints for how many milliseconds of any second a CPU of this machine was unavailable at most.

A real-time thread on every CPU sleeps repeatedly, until the input ends.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time
from collections import deque

NAP_S = 0.002


def main() -> None:
    cpus = sorted(os.sched_getaffinity(0))
    most_s = [0.0] * len(cpus)
    over = threading.Event()

    def look(place: int, cpu: int) -> None:
        os.sched_setaffinity(0, {cpu})
        with contextlib.suppress(OSError):
            os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
        recent: deque[tuple[float, float]] = deque()
        while not over.is_set():
            begin = time.monotonic()
            time.sleep(NAP_S)
            woken = time.monotonic()
            if (late := woken - begin - NAP_S) > NAP_S:
                recent.append((woken, late))
                while woken - recent[0][0] > 1.0:
                    recent.popleft()
                most_s[place] = max(most_s[place], sum(one for _, one in recent))

    threads = [threading.Thread(target=look, args=one) for one in enumerate(cpus)]
    for thread in threads:
        thread.start()
    print("watching", flush=True)
    sys.stdin.read()
    over.set()
    for thread in threads:
        thread.join()
    print(max(most_s) * 1e3)


main()
