"""Engpass: a laboratory for network throughput.

import engpass

lan = engpass.load("lan.toml", set={"traffic.stream.message": "9 kB"})
lan.limit()                                   # fair share and bound of each flow, and what decides them
result = lan.run(store="engpass.db")          # every variant, swept value and repeat
result.points.to_pandas()                     # one row per point and flow
result.report("report.html")
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from engpass._engpass import InvalidTestbed
    from engpass.error import ChoiceError, EngpassError, NeedsMemoryError, SourceError, StoreError
    from engpass.result import RunResult
    from engpass.store import RunRecord, Store
    from engpass.testbed import Testbed, load, loads

__all__ = [
    "ChoiceError",
    "EngpassError",
    "InvalidTestbed",
    "NeedsMemoryError",
    "RunRecord",
    "RunResult",
    "SourceError",
    "Store",
    "StoreError",
    "Testbed",
    "load",
    "loads",
]

# The module that defines each public name. It is imported only at the first use of the name, so that
# `engpass --help` and `engpass check` answer at once.
_HOMES = {
    "ChoiceError": "engpass.error",
    "EngpassError": "engpass.error",
    "InvalidTestbed": "engpass._engpass",
    "NeedsMemoryError": "engpass.error",
    "RunRecord": "engpass.store",
    "RunResult": "engpass.result",
    "SourceError": "engpass.error",
    "Store": "engpass.store",
    "StoreError": "engpass.error",
    "Testbed": "engpass.testbed",
    "load": "engpass.testbed",
    "loads": "engpass.testbed",
}


def __getattr__(name: str) -> Any:  # noqa: ANN401 (any of the names above)
    if name == "__version__":
        return import_module("engpass._engpass").version()
    if name not in _HOMES:
        raise AttributeError(f"module `engpass` has no attribute `{name}`")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
