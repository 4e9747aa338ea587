"""The measurement of joining and leaving a multicast group, with fake agents."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TypeVar

import msgspec
import pytest

from engpass.jsondata import Json
from engpass.measure import multicast_delays
from engpass.measure.agent import MeasureError
from engpass.measure.core import GroupTrial
from engpass.measure.requests import About
from engpass.types.agent import FlowRequests, Prepare

END = Prepare(kind="udp-stream", message_bytes=100)
FLOW = FlowRequests(
    name="g",
    kind="multicast",
    sender="a",
    receivers=["b", "c"],
    start_ns=0,
    warmup_ns=0,
    duration_ns=10**9,
    send=END,
    receive=END,
    group="239.0.0.1",
)
T = TypeVar("T")


class Asked:
    gone = False

    def __init__(self, host: str) -> None:
        self.host, self.asked = host, list[str]()

    def ask(self, do: str, _fields: Prepare | About) -> int:
        self.asked.append(do)
        return len(self.asked)


class MadeUp:
    """A crew whose agents return given memberships of the group, or fail at a request."""

    def __init__(self, seen: Mapping[str, Json], fails: str | None = None) -> None:
        self.agents = {host: Asked(host) for host in ("a", "b", "c")}
        self._seen, self._fails = seen, fails

    def wait(self, _seconds: float) -> Iterator[None]:
        yield

    def done(self, agent: Asked, number: int, _seconds: float = 0.0) -> bytes:
        if agent.asked[number - 1] == self._fails:
            raise MeasureError("out of luck")
        end = {"flow": "g", "role": "receive", "membership": self._seen[agent.host]} if self._seen else {}
        return msgspec.json.encode({"flows": [end]})

    def answer(self, agent: Asked, number: int, read: Callable[[bytes], T]) -> T:
        self.done(agent, number)
        return read(b'{"port": 5000}')


class Here:
    def of(self, host: str, seen_from: str) -> str:
        return "192.0.2.1"

    def interface(self, host: str, seen_from: str) -> None:
        return None

    def all_of(self, host: str) -> list[str]:
        return ["192.0.2.1"]


def told(crew: MadeUp) -> GroupTrial:
    return multicast_delays.trial(crew, Here(), FLOW, lambda: False)  # type: ignore[arg-type]


def test_receivers_join_and_leave_once() -> None:
    left: Json = {"leave_ns": 10**9, "last_ns": None, "seen_by": "packet-socket", "quiet": True}
    joined: Json = {"join_ns": 0, "first_ns": 10**6}
    found = told(crew := MadeUp({"a": [], "b": [joined, left], "c": [joined]}))
    assert found.error is None
    assert [len(changes) for changes in found.receivers.values()] == [2, 1]
    assert all(agent.asked[-1] == "drop" for agent in crew.agents.values())
    assert crew.agents["b"].asked == ["prepare", "start", "join", "leave", "collect", "drop"]


@pytest.mark.parametrize("request_", ["prepare", "start", "join", "leave", "collect"])
def test_failed_join_trial_does_not_fail_the_point(request_: str) -> None:
    found = told(MadeUp({"a": [], "b": [], "c": []}, fails=request_))
    assert found.error == "out of luck"
    assert list(found.receivers) == ["b", "c"]
