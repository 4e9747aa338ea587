"""Words for the value that a claim is held against, the same on terminals, in reports and in pages.

A source states a value, or it does not: nothing that Engpass computes, estimates or predicts stands under
"Stated" without a word that says so.
"""

_ORIGINS = {"derived": "computed", "estimate": "estimated", "prediction": "predicted"}


def expectation(kind: str, published: str | None, value: str | None) -> str:
    """A published value as it is, another one with its origin (`computed: 21.55 Mbit/s`), else nothing."""
    if published is not None:
        return published
    return f"{_ORIGINS.get(kind, 'expected')}: {value}" if value is not None else ""


def heading(*, stated: bool, expected: bool) -> str:
    """The head of a column with published values, with other ones, or with both."""
    if stated and expected:
        return "Stated or expected"
    return "Stated" if stated else "Expected"
