"""Text for the expected value of a claim, the same on terminals, in reports and in pages.

Only a value that a source prints counts as stated. A value that Engpass computes, estimates or predicts
always has this origin beside it.
"""

_ORIGINS = {"derived": "computed", "estimate": "estimated", "prediction": "predicted"}


def expectation(kind: str, published: str | None, value: str | None) -> str:
    """A published value unchanged, another value with its origin (`computed: 21.55 Mbit/s`), else nothing."""
    if published is not None:
        return published
    return f"{_ORIGINS.get(kind, 'expected')}: {value}" if value is not None else ""


def heading(*, stated: bool, expected: bool) -> str:
    """The heading of a column with published values, with other values, or with both."""
    if stated and expected:
        return "Stated or expected"
    return "Stated" if stated else "Expected"
