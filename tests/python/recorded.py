"""Points with real stacks, replayed from what agents and the driver answered when they were recorded.

`sudo python tests/python/recorded.py` records the answers anew: it makes the testbed in namespaces.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

from engpass import _engpass, lab
from engpass.campaign import Plan, Point
from engpass.measure import Session, emulated
from engpass.measure.emulated import EmulatedSession
from engpass.measure.flows import flows
from engpass.measure.point import Collected, Measurement
from engpass.measure.slow import slowed
from engpass.measure.window import Window
from engpass.netlab.emulated import Options
from engpass.types.outcome import Outcome

DIRECTORY = Path(__file__).parents[1] / "data/recorded"
TESTBED = DIRECTORY / "testbed.toml"
ENGINES = ("measure", "emulate")


def _load(engine: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((DIRECTORY / f"{engine}.json").read_text())
    return found


def _collected(recorded: Mapping[str, Any], point: Point) -> Collected:
    return Collected(recorded["points"][point.repeat]["results"], 1.0)


class _Measured(Session):
    """Measures without agents: their answers are recorded."""

    recorded: Mapping[str, Any]

    def run(self, point: Point) -> str:
        self.recorded = _load("measure")
        with mock.patch.object(Measurement, "run", return_value=_collected(self.recorded, point)):
            return super().run(point)

    def _gather(self, *_: object) -> None:
        self._crew.agents = {host: mock.Mock(hello=hello) for host, hello in self.recorded["hellos"].items()}

    def close(self) -> None:
        """There are no agents and no namespaces."""


class _Emulated(EmulatedSession):
    """Emulates without agents and driver: their answers are recorded."""

    def _found(self, point: Point, seed: int, numbers: Mapping[str, Any]) -> Outcome:
        recorded = _load("emulate")
        self._crew.agents = {host: mock.Mock(hello=hello) for host, hello in recorded["hellos"].items()}
        alike, others = emulated.as_the_model(emulated.carried(numbers))
        planned = flows(slowed(alike, self._options.slow), seed)
        closed = recorded["points"][point.repeat]["closed"]
        return self._outcome(point, seed, numbers, planned, _collected(recorded, point), closed, others)

    def close(self) -> None:
        """There are no agents and no namespaces."""


@contextmanager
def replayed() -> Iterator[None]:
    """Let the engines `measure` and `emulate` answer from the recordings."""

    def session(
        engine: str,
        job: lab.Job,
        plan: Plan,
        interrupt: _engpass.Interrupt,
        emulation: Options | None,
    ) -> Session:
        campaign, _ = lab._LOCAL[job.token]
        if engine == "measure":
            return _Measured(campaign, job.source, plan.axes, interrupt.is_set)
        options = emulation or Options()
        return _Emulated(
            campaign, job.source, plan.axes, interrupt.is_set, overrides=job.overrides, options=options
        )

    known = mock.patch.object(emulated, "_congestion", return_value=["cubic", "reno"])
    with mock.patch.object(lab, "_session", session), known:
        yield


def record(engine: str, store: Path) -> None:
    """Run the testbed and write down what its agents and its driver answer."""
    import engpass
    from engpass.store import Store

    told: dict[str, Any] = {"hellos": {}, "points": []}
    run, end = Measurement.run, Window.close

    def kept(self: Measurement) -> Collected:
        collected = run(self)
        told["hellos"] |= {host: agent.hello for host, agent in self._crew.agents.items()}
        told["points"].append({"results": collected.results})
        return collected

    def closed(self: Window) -> dict[str, Any]:
        answer = end(self)
        told["points"][-1]["closed"] = answer
        return answer

    testbed = engpass.load(TESTBED)
    with (
        mock.patch.object(Measurement, "run", kept),
        mock.patch.object(Window, "close", closed),
        Store.open(store) as opened,
    ):
        plan = testbed.plan([engine], None, None)
        testbed.start(plan, opened, jobs=1).go(None)
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
