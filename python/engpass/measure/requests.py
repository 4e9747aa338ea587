"""The requests to agents that are not about traffic (docs/agent.md); `engpass.types.agent` has the others."""

from __future__ import annotations

import msgspec


class About(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A request about a run, or about one of its flows."""

    run: str
    flow: str | None = None
    after_ns: int | None = None
    """Of `start`: delay in ns until the senders begin."""
