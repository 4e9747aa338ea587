"""Changes of host counters during a point, and results short enough to store. Pure functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from engpass.jsondata import Json

_MOST_BINS = 48


def changes(before: Json, after: Json) -> Json:
    """The differences between two readings with the same keys, without zeros; `None` if nothing changed."""
    if isinstance(after, Mapping):
        if "core" in after and not isinstance(before, Mapping):
            return None
        grown = {
            key: change
            for key, value in after.items()
            if key not in ("core", "dev", "kind", "handle")
            and (change := changes(before.get(key) if isinstance(before, Mapping) else None, value))
            is not None
        }
        names: dict[str, Json] = {key: after[key] for key in ("core", "dev", "kind") if key in after}
        return {**names, **grown} if grown else None
    if isinstance(after, list):
        pairs = zip(before if isinstance(before, list) else [], after, strict=False)
        found = [change for old, new in pairs if (change := changes(old, new)) is not None]
        return found or None
    if isinstance(after, bool) or not isinstance(after, int) or not isinstance(before, int):
        return None
    return after - before if after != before else None


def thinned(end: Mapping[str, Json]) -> dict[str, Json]:
    """An agent's result with histograms and time series of at most `_MOST_BINS` entries, for figures."""
    found = dict(end)
    for key, value in end.items():
        if isinstance(value, Mapping) and isinstance(bins := value.get("histogram"), list):
            found[key] = {**value, "histogram": _merged(msgspec.convert(bins, list[list[int]]))}
    if isinstance(series := end.get("series"), list):
        found["series"] = _shortened([one for one in series if isinstance(one, Mapping)])
    if isinstance(streams := end.get("streams"), list):
        found["streams"] = [thinned(one) for one in streams if isinstance(one, Mapping)]
    return found


def _merged(bins: list[list[int]]) -> list[list[int]]:
    """Join groups of neighbouring bins of a histogram under their highest value; counts are added."""
    if len(bins) <= _MOST_BINS:
        return bins
    step = -(-len(bins) // _MOST_BINS)
    parts = [bins[i : i + step] for i in range(0, len(bins), step)]
    return [[part[-1][0], sum(count for _, count in part)] for part in parts]


_SUMS = ("bytes", "messages", "lost")


def _shortened(series: Sequence[Mapping[str, Json]]) -> Sequence[Mapping[str, Json]]:
    """Join groups of neighbouring records of a time series; bytes, messages and losses are added."""
    if len(series) <= _MOST_BINS:
        return series
    step = -(-len(series) // _MOST_BINS)
    joined = []
    for begin in range(0, len(series), step):
        part = series[begin : begin + step]
        sums = {key: sum(_count(one, key) for one in part) for key in _SUMS if key in part[-1]}
        joined.append({**part[-1], "from_ns": part[0]["from_ns"], **sums})
    return joined


def _count(record: Mapping[str, Json], key: str) -> int:
    value = record.get(key)
    return value if isinstance(value, int) else 0
