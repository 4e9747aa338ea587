"""The measurement of joining and leaving a multicast group, with fake agents."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TypeVar

import msgspec
import pytest

from engpass.jsondata import Json
from engpass.measure import multicast_delays
from engpass.measure.agent import MeasureError
from engpass.measure.flows import Flow
from engpass.measure.multicast_delays import Waited
from engpass.measure.requests import About, Prepare

END = Prepare(kind="udp-stream", message_bytes=100)
FLOW = Flow("g", "multicast", "a", ("b", "c"), 0, 0, 10**9, END, END, "239.0.0.1")
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

    def done(self, agent: Asked, number: int, _seconds: float = 0.0) -> None:
        if agent.asked[number - 1] == self._fails:
            raise MeasureError("out of luck")

    def answer(self, agent: Asked, number: int, read: Callable[[bytes], T]) -> T:
        self.done(agent, number)
        if agent.asked[number - 1] == "prepare":
            return read(b'{"port": 5000}')
        end = {"flow": "g", "role": "receive", "membership": self._seen[agent.host]}
        return read(msgspec.json.encode({"flows": [end]}))


class Here:
    def of(self, host: str, seen_from: str) -> str:
        return "192.0.2.1"

    def interface(self, host: str, seen_from: str) -> None:
        return None

    def all_of(self, host: str) -> list[str]:
        return ["192.0.2.1"]


def told(crew: MadeUp) -> dict[str, Waited]:
    return multicast_delays.delays(crew, Here(), FLOW, lambda: False)  # type: ignore[arg-type]


def test_silent_receiver_has_an_unknown_join_delay() -> None:
    left: Json = {
        "leave_ns": 10**9,
        "last_ns": 12 * 10**8,
        "seen_by": "packet-socket",
        "quiet": True,
    }
    silent: Json = {"leave_ns": 10**9, "last_ns": None, "seen_by": "packet-socket", "quiet": True}
    seen: dict[str, Json] = {
        "b": [{"join_ns": 0, "first_ns": 10**6}, left],
        "c": [{"join_ns": 0, "first_ns": None}, silent],
    }
    found = told(crew := MadeUp(seen))
    assert found["b"] == Waited(join_delay_s=1e-3, leave_delay_s=0.2)
    nothing = "nothing arrived within 0.8 s"
    assert found["c"] == Waited(join_unknown=nothing, leave_unknown="nothing had arrived")
    assert all(agent.asked[-1] == "drop" for agent in crew.agents.values())
    (note,) = multicast_delays.unknown({"g": found})
    assert note == (
        "the join delay of the group of `g` is unknown at `c`: nothing arrived within 0.8 s; check whether"
        " the routers and switches on the path forward multicast"
    )


@pytest.mark.parametrize("request_", ["prepare", "start", "join", "leave", "collect"])
def test_failed_join_trial_does_not_fail_the_point(request_: str) -> None:
    found = told(MadeUp({"b": [], "c": []}, fails=request_))
    failed = Waited(join_unknown="out of luck", leave_unknown="out of luck")
    assert found == {"b": failed, "c": failed}
    (note,) = multicast_delays.unknown({"g": found})
    assert "at `b` and `c`: out of luck" in note
