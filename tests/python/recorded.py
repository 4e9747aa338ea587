"""Replays points of `measure` and `emulate` from recorded responses of agents and driver.

`sudo python tests/python/recorded.py` records the responses again, with the testbed in namespaces.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

from engpass import _engpass, campaign_runner
from engpass.campaign import Point
from engpass.emulation import Options
from engpass.jsondata import Json
from engpass.measure import Session, emulated
from engpass.measure.agent import Agent
from engpass.measure.answers import Hello
from engpass.measure.emulated import EmulatedSession
from engpass.measure.point import Collected, Measurement
from engpass.measure.window import Closed
from engpass.types.agent import Asked
from engpass.types.plan import PointPlan

DIRECTORY = Path(__file__).parents[1] / "data/recorded"
TESTBED = DIRECTORY / "testbed.toml"
ENGINES = ("measure", "emulate")


def _load(engine: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((DIRECTORY / f"{engine}.json").read_text())
    return found


def _collected(recorded: Mapping[str, Any], point: Point) -> Collected:
    results = recorded["points"][point.repeat]["results"]
    return Collected({host: json.dumps(told).encode() for host, told in results.items()}, 1.0)


def _agents(recorded: Mapping[str, Any]) -> dict[str, Agent]:
    return {host: mock.Mock(hello=Hello.of(hello)) for host, hello in recorded["hellos"].items()}


class _Measured(Session):
    """Measures without agents, with recorded responses."""

    recorded: Mapping[str, Any]

    def run(self, point: Point) -> str:
        self.recorded = _load("measure")
        with mock.patch.object(Measurement, "run", return_value=_collected(self.recorded, point)):
            return super().run(point)

    def _gather(self, *_: object) -> None:
        self._crew.agents = {
            host: mock.Mock(hello=Hello.of(hello)) for host, hello in self.recorded["hellos"].items()
        }

    def close(self) -> None:
        """There are no agents and no namespaces."""


class _Emulated(EmulatedSession):
    """Emulates without agents and driver, with recorded responses."""

    def _found(self, point: Point, asked: Asked, numbers: PointPlan) -> str:
        recorded = _load("emulate")
        self._crew.agents = {
            host: mock.Mock(hello=Hello.of(hello)) for host, hello in recorded["hellos"].items()
        }
        closed = Closed.of(recorded["points"][point.repeat]["closed"])
        return self._outcome(point, asked, _collected(recorded, point), closed)

    def close(self) -> None:
        """There are no agents and no namespaces."""


@contextmanager
def replayed() -> Iterator[None]:
    """Let the engines `measure` and `emulate` use the recordings."""

    def session(
        engine: str,
        job: campaign_runner.Job,
        interrupt: _engpass.Interrupt,
        emulation: Options | None,
    ) -> Session:
        campaign, _ = campaign_runner._LOCAL[job.token]
        if engine == "measure":
            return _Measured(campaign, job.source, interrupt.is_set)
        options = emulation or Options()
        return _Emulated(campaign, job.source, interrupt.is_set, overrides=job.overrides, options=options)

    known = mock.patch.object(emulated, "_congestion", return_value=["cubic", "reno"])
    with mock.patch.object(campaign_runner, "_session", session), known:
        yield


def record(engine: str, store: Path) -> None:
    """Run the testbed and record the responses of its agents and its driver."""
    import engpass
    from engpass.store import Store

    told: dict[str, Any] = {"hellos": {}, "points": []}
    answers: list[Mapping[str, Json]] = []
    run, end = Measurement.run, Closed.of

    def kept(self: Measurement) -> Collected:
        collected = run(self)
        agents = self._crew.agents.items()
        told["hellos"] |= {host: dict(agent.hello.told) for host, agent in agents if agent.hello}
        told["points"].append({"results": {host: json.loads(one) for host, one in collected.results.items()}})
        return collected

    def closed(answer: Mapping[str, Json]) -> Closed:
        answers.append(answer)
        return end(answer)

    testbed = engpass.load(TESTBED)
    with (
        mock.patch.object(Measurement, "run", kept),
        mock.patch.object(Closed, "of", closed),
        Store.open(store) as opened,
    ):
        plan = testbed.plan([engine], None, None)
        testbed.start(plan, opened, jobs=1).go(None)
    for point, answer in zip(told["points"], answers, strict=False):
        point["closed"] = answer
    for hello in told["hellos"].values():
        hello["host"] |= {"name": "recorded", "kernel": "recorded"}
    (DIRECTORY / f"{engine}.json").write_text(json.dumps(told, separators=(",", ":")) + "\n")


def _main() -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as directory:
        for engine in ENGINES:
            record(engine, Path(directory) / f"{engine}.db")


if __name__ == "__main__":
    _main()
