"""The service of a flow by its values, for tests."""

from __future__ import annotations

from engpass.explain.service import Served
from engpass.results.samples import DELAY_P99, FLOW_SIGNALS, GOODPUT, LOSS


def served(goodput: float, loss: float = 0.0, delay: float | None = None, **others: float) -> Served:
    """The service with these values; `delay` is the 99 % quantile, `others` are signals by name."""
    values = {GOODPUT: goodput, LOSS: loss, **({DELAY_P99: delay} if delay is not None else {})}
    return Served(values | {FLOW_SIGNALS[name]: value for name, value in others.items()})
