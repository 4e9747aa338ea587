"""Loss against offered load (RFC 2544 section 26.3)."""

from __future__ import annotations

from engpass.search.trial import Budget, Measurer, Trial


def frame_loss(
    measure: Measurer,
    most: int,
    *,
    duration: float = 60.0,
    step: float = 0.1,
    whole: bool = False,
    budget: Budget | None = None,
) -> list[Trial]:
    """Try loads from the largest down, in steps of `step` times that, until two in a row have no loss.

    The RFC requires steps of at most a tenth. With `whole`, trials go on to the last step.
    """
    budget = budget or Budget(float("inf"))
    found: list[Trial] = []
    position = 0
    while (load := round(most * (1.0 - step * position))) >= max(1.0, most * step * 0.5) and not budget.over:
        found.append(budget.spend(measure(load, duration)))
        if not whole and len(found) > 1 and found[-1].loss == found[-2].loss == 0.0:
            break
        position += 1
    return found
