"""Notes of measured and emulated points on differences between real hosts and the testbed file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engpass.formatting import count

if TYPE_CHECKING:
    from engpass.types.outcome import Outcome

_MOST = 8

_ANOTHER_HASH = "flows may take other paths than in `limit` and `simulate`: the kernel's own hash chooses at"

NAMED = 3
"""Maximum number of routers, or of other parts of a testbed, that a sentence names."""


def another_hash(routers: list[str]) -> str:
    """The note of a point where Linux, by its own hash, chose among equally short paths."""
    more = f" and {len(routers) - NAMED} more" if len(routers) > NAMED else ""
    return f"{_ANOTHER_HASH} router{'s' if routers[1:] else ''} {', '.join(routers[:NAMED])}{more}"


def chose_otherwise(outcome: Outcome) -> bool:
    """True if flows of a point may have taken other paths than in the model."""
    notes = outcome.measured.notes if outcome.measured else ()
    return any(note.startswith(_ANOTHER_HASH) for note in notes)


class Remarks:
    """Collects notes, each once, with the engine and the number of points that have it."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, str], int] = {}
        self._points: dict[str, int] = {}

    def add(self, outcome: Outcome) -> None:
        """Add the notes of a point's outcome."""
        engine = outcome.engine
        self._points[engine] = self._points.get(engine, 0) + 1
        for note in dict.fromkeys(outcome.measured.notes if outcome.measured else ()):
            self._found[engine, note] = self._found.get((engine, note), 0) + 1

    def lines(self) -> list[str]:
        """The notes as sentences, in the order in which they came."""
        lines = []
        for (engine, note), times in list(self._found.items())[:_MOST]:
            points = self._points[engine]
            where = f" at {times:,} of {count(points, 'point')}" if times < points else ""
            lines.append(f"{engine}{where}: {note}")
        if len(self._found) > _MOST:
            lines.append(f"{len(self._found) - _MOST:,} more notes are in `measured.notes` of the outcomes")
        return lines
