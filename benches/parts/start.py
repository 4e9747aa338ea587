"""Response time of the `engpass` command."""

from __future__ import annotations

from collections.abc import Iterator

from figures import Figure, Row, Target
from machine import ENGPASS, KYOTO, Tools, run


def measure(_: Tools, quick: bool) -> Iterator[Row]:
    """Measure help, version and check, in turns."""
    group = "Start of the command"
    commands = {
        "engpass --help": ["--help"],
        "engpass --version": ["--version"],
        "engpass check": ["check", KYOTO],
    }
    for words in commands.values():
        run([ENGPASS, *words])
    times = 3 if quick else 15
    ended = [{name: run([ENGPASS, *words]) for name, words in commands.items()} for _ in range(times)]
    for name in commands:
        note = f"processor time at least {min(each[name].cpu_s for each in ended) * 1e3:.0f} ms"
        yield Figure(group, f"`{name}`", "s", [each[name].wall_s for each in ended], Target(0.2), note=note)
