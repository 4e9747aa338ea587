"""A document as JSON."""

from __future__ import annotations

from typing import cast

import msgspec

from engpass.jsondata import Json
from engpass.show.blocks import Document


def to_json(document: Document) -> dict[str, Json]:
    """The data of a document: title, sentence, blocks; amounts as `value` and `unit`."""
    return cast("dict[str, Json]", msgspec.to_builtins(document))
