"""Outcomes as JSON text and as typed values, whose types come from the core (`engpass.types.outcome`)."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from engpass.error import EngpassError
from engpass.types.outcome import VERSION, DirectionOutcome, EngineOutcome, Outcome
from engpass.types.plan import Drawing

_DECODER = msgspec.json.Decoder(Outcome)
_ENCODER = msgspec.json.Encoder()

_CURRENT = f'{{"version":{VERSION},'
"""The beginning of the text of an outcome of this version."""


def read(text: str, topology: Drawing | None = None) -> Outcome:
    """Read an outcome of this version or of an earlier one; `topology` is that of its run.

    Raises `EngpassError` for text that no version wrote.
    """
    try:
        if text.startswith(_CURRENT):
            return _DECODER.decode(text)
        from engpass.results.upgrade import upgrade

        return msgspec.convert(upgrade(msgspec.json.decode(text), topology or Drawing()), Outcome)
    except (msgspec.MsgspecError, KeyError, TypeError, ValueError, AttributeError) as error:
        raise EngpassError(
            f"a stored outcome cannot be read: {error}",
            "it is damaged, or a later version wrote it: `engpass run FILE --fresh` computes it again",
        ) from None


def write(outcome: Outcome) -> str:
    """An outcome as the JSON text that a store keeps."""
    return _ENCODER.encode(outcome).decode()


def current(text: str, topology: Drawing) -> str:
    """The text of a stored outcome in the form of this version; raises as `read` does."""
    return text if text.startswith(_CURRENT) else write(read(text, topology))


def lines(outcome: Outcome) -> Iterator[tuple[str, DirectionOutcome]]:
    """All directions of all links, each with the name of its link."""
    for link, found in outcome.links.items():
        for side in found.directions:
            yield link, side


def engines(outcome: Outcome) -> Iterator[tuple[str, str, EngineOutcome]]:
    """The engines of all nodes (CPUs, forwarding engines), each with the names of node and engine."""
    for node, found in outcome.nodes.items():
        for name, engine in found.engines.items():
            yield node, name, engine


def swept(outcome: Outcome, path: str) -> float | str | None:
    """The value of a swept key: a number in base units, or text; `None` if the key is not swept."""
    value = outcome.sweep.get(path)
    if value is None:
        return None
    return value.text if value.number is None else value.number


def sweep(outcome: Outcome) -> dict[str, float | str]:
    """All swept values by path: numbers in base units, or text."""
    found = {path: swept(outcome, path) for path in outcome.sweep}
    return {path: value for path, value in found.items() if value is not None}
