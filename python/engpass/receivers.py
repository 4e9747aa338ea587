"""Receivers of a multicast group, as figures beside those of their flow."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from msgspec.structs import replace

if TYPE_CHECKING:
    from engpass.types.outcome import FlowOutcome, Outcome, Receiver


def rows(outcome: Outcome) -> Iterator[tuple[str, FlowOutcome]]:
    """All flows of an outcome by name, each with its receivers behind it where it has several.

    A receiver is named `FLOW to HOST`, and has the figures of its flow but for those of its own.
    """
    for name, flow in outcome.flows.items():
        yield name, flow
        if len(flow.receivers) > 1:
            for host, receiver in flow.receivers.items():
                yield f"{name} to {host}", _as_flow(flow, receiver)


def _as_flow(flow: FlowOutcome, receiver: Receiver) -> FlowOutcome:
    return replace(
        flow,
        goodput_bit_per_s=receiver.goodput_bit_per_s,
        offered_bit_per_s=receiver.offered_bit_per_s,
        datagrams=receiver.datagrams,
        delay_s=receiver.delay_s,
        outage=receiver.outage,
        receivers={},
        limit=None,
    )
