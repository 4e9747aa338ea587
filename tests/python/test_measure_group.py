"""The trial of joining and leaving a group, with agents made up by hand."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from engpass.measure import group
from engpass.measure.agent import MeasureError
from engpass.measure.flows import Flow
from engpass.measure.group import Waited

COMMON = {"kind": "udp-stream", "message_bytes": 100}
FLOW = Flow("g", "multicast", "a", ("b", "c"), 0, 0, 10**9, COMMON, COMMON, COMMON, "239.0.0.1")


class Asked:
    gone = False

    def __init__(self, host: str) -> None:
        self.host, self.asked = host, list[str]()

    def ask(self, do: str, **_: Any) -> int:
        self.asked.append(do)
        return len(self.asked)


class MadeUp:
    """A crew whose agents answer with what they saw of the group, or fail at a request."""

    def __init__(self, seen: dict[str, list[dict[str, Any]]], fails: str | None = None) -> None:
        self.agents = {host: Asked(host) for host in ("a", "b", "c")}
        self._seen, self._fails = seen, fails

    def wait(self, _seconds: float) -> Iterator[None]:
        yield

    def answer(self, agent: Asked, number: int, _seconds: float = 0.0) -> dict[str, Any]:
        do = agent.asked[number - 1]
        if do == self._fails:
            raise MeasureError("out of luck")
        if do == "prepare":
            return {"port": 5000}
        return {"flows": [{"membership": self._seen[agent.host]}]} if do == "collect" else {}


class Here:
    def of(self, host: str, seen_from: str) -> str:
        return "192.0.2.1"

    def interface(self, host: str, seen_from: str) -> None:
        return None

    def all_of(self, host: str) -> list[str]:
        return ["192.0.2.1"]


def told(crew: MadeUp) -> dict[str, Waited]:
    return group.delays(crew, Here(), FLOW, lambda: False)  # type: ignore[arg-type]


def test_a_receiver_to_which_nothing_came_says_so_and_the_others_are_known() -> None:
    left: dict[str, Any] = {
        "leave_ns": 10**9,
        "last_ns": 12 * 10**8,
        "seen_by": "packet-socket",
        "quiet": True,
    }
    silent: dict[str, Any] = {"leave_ns": 10**9, "last_ns": None, "seen_by": "packet-socket", "quiet": True}
    seen: dict[str, list[dict[str, Any]]] = {
        "b": [{"join_ns": 0, "first_ns": 10**6}, left],
        "c": [{"join_ns": 0, "first_ns": None}, silent],
    }
    found = told(crew := MadeUp(seen))
    assert found["b"] == Waited(join_delay_s=1e-3, leave_delay_s=0.2)
    nothing = "nothing came within 0.8 s"
    assert found["c"] == Waited(join_unknown=nothing, leave_unknown="nothing had come")
    assert all(agent.asked[-1] == "drop" for agent in crew.agents.values())
    (note,) = group.unknown({"g": found})
    assert note == (
        "how long joining the group of `g` takes is not known at `c`: nothing came within 0.8 s; look whether"
        " the routers and switches on the way forward multicast"
    )


@pytest.mark.parametrize("request_", ["prepare", "start", "join", "leave", "collect"])
def test_a_trial_that_fails_takes_nothing_from_the_point(request_: str) -> None:
    found = told(MadeUp({"b": [], "c": []}, fails=request_))
    failed = Waited(join_unknown="out of luck", leave_unknown="out of luck")
    assert found == {"b": failed, "c": failed}
    (note,) = group.unknown({"g": found})
    assert "at `b` and `c`: out of luck" in note
