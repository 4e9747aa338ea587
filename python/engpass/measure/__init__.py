"""The engine `measure`: agents on real hosts make a testbed's traffic, controlled from here.

A `Session` lasts for a campaign. Its agents stay from one point to the next and end with the session. So do
the namespaces that serve as hosts if no host of the testbed has a `reach`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from engpass import _engpass, netlab
from engpass.campaign import Point
from engpass.emulation import Files
from engpass.environment import now
from engpass.measure import core
from engpass.measure.agent import Crew, MeasureError
from engpass.measure.agent_access import Addresses, way
from engpass.measure.answers import Hello
from engpass.measure.multicast_delays import trial
from engpass.measure.multipath import prepare as prepare_multipath
from engpass.measure.point import Collected, Measurement
from engpass.measure.precision import Rule
from engpass.netlab import Lab, veth
from engpass.plan import point_plan
from engpass.types.agent import Asked, Engine, FlowRequests
from engpass.types.plan import PointPlan

__all__ = ["MeasureError", "Session"]

TRY_AGAIN_SECONDS = 60.0
"""Seconds after a failed attempt to reach a host in which points that need the host fail at once."""


class Session:
    """Measures the points of one campaign, one after the other."""

    engine: Engine = "measure"

    def __init__(
        self,
        campaign: _engpass.Campaign,
        source: str,
        stopped: Callable[[], bool],
        *,
        precise: bool = True,
    ) -> None:
        self._campaign, self._source, self._stopped = campaign, source, stopped
        # Whether the file's `precision` counts. It does not for trials: the search sets their duration.
        self._precise = precise
        self._crew = Crew()
        self._lab: Lab | None = None
        self._network = b""
        # Hosts that could not be reached: the error, and the time until which points fail with it at once.
        self._unreached: dict[tuple[str, str | None], tuple[MeasureError, float]] = {}

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def turn_to(self, campaign: _engpass.Campaign, _overrides: tuple[tuple[str, str], ...]) -> None:
        """Measure another campaign from now on; agents stay, and namespaces if the network is the same."""
        self._campaign = campaign

    def close(self) -> None:
        """End the agents and remove the namespaces of the session."""
        self._crew.end()
        if self._lab is not None:
            lab, self._lab = self._lab, None
            netlab.down(lab)

    def run(self, point: Point) -> str:
        """Measure a point and return its outcome as JSON.

        Raises `MeasureError`, `LabError`, `InvalidTestbed`, and `Interrupted` if a stop was requested.
        """
        self._campaign.check_agents(point.variant, list(point.sweep))
        numbers = point_plan(self._campaign, point.variant, point.sweep)
        try:
            return self._found(point, self._asked(numbers.run.seed + point.repeat), numbers)
        except KeyboardInterrupt:
            raise _engpass.Interrupted("interrupted") from None
        except MeasureError as error:
            self._dismiss()
            raise error from None

    def _asked(self, seed: int) -> Asked:
        """What the core's requests are for."""
        return Asked(engine=self.engine, seed=seed, slow=1, fixed=not self._precise)

    def _found(self, point: Point, asked: Asked, numbers: PointPlan) -> str:
        """Measure a point; the core builds the outcome from the agents' answers."""
        planned = core.requests(self._campaign, point.variant, point.sweep, asked)
        self._gather(numbers, planned.flows)
        addresses = Addresses(numbers.hosts, self._lab, self._hellos())
        rule = Rule.of(planned.stop)
        collected = Measurement(self._crew, addresses, planned.flows, self._stopped, rule).run()
        answers = core.Answers(
            hellos=core.greetings(self._hellos()),
            results=collected.answers,
            at=now(),
            took_s=round(collected.seconds, 3),
            carrier="hosts" if self._lab is None else "veth",
            notes=self.notes(numbers),
            memberships=self._groups(point, addresses, planned.flows),
            precision=None if rule is None else rule.flows,
        )
        return core.measured(self._campaign, point, asked, answers)

    def _groups(
        self, point: Point, addresses: Addresses, planned: Sequence[FlowRequests]
    ) -> dict[str, core.GroupTrial]:
        """Let multicast receivers join and leave; only in the first repeat, as it takes seconds."""
        if point.repeat:
            return {}
        groups = [flow for flow in planned if flow.group is not None and flow.send.schedule is not None]
        return {flow.name: trial(self._crew, addresses, flow, self._stopped) for flow in groups}

    def collect(self, variant: str, numbers: PointPlan, planned: list[FlowRequests]) -> Collected:
        """Make flows that the caller has planned, and return the agents' results. Raises as `run` does."""
        try:
            return self._made(variant, numbers, planned)
        except KeyboardInterrupt:
            raise _engpass.Interrupted("interrupted") from None
        except MeasureError as error:
            self._dismiss()
            raise error from None

    def _made(self, _variant: str, numbers: PointPlan, planned: list[FlowRequests]) -> Collected:
        self._gather(numbers, planned)
        addresses = Addresses(numbers.hosts, self._lab, self._hellos())
        return Measurement(self._crew, addresses, planned, self._stopped).run()

    def notes(self, numbers: PointPlan) -> list[str]:
        """A sentence for each difference between the network that carries the flows and its file."""
        return [] if self._lab is None else veth.notes(numbers)

    def hello(self, host: str) -> Hello:
        """The greeting of a host's agent; an empty one if the host has no agent."""
        return self._hellos().get(host) or Hello.of({})

    def _gather(self, numbers: PointPlan, planned: list[FlowRequests]) -> None:
        """Start agents on the hosts that send or receive, where none runs yet."""
        hosts = dict.fromkeys(host for flow in planned for host in (flow.sender, *flow.receivers))
        reached = {host: numbers.hosts[host].reach for host in hosts}
        if any(reach is not None for reach in reached.values()):
            self._take_down()
        else:
            prepare_multipath(self._put_up(numbers), planned)
        fresh = []
        for host, reach in reached.items():
            if (known := self._unreached.get((host, reach))) is not None and time.monotonic() < known[1]:
                raise known[0]
            how, argv = way(host, reach, self._lab)
            agent = self._crew.agents.get(host)
            if agent is not None and (agent.how != how or agent.gone):
                self._crew.drop(host)
                agent = None
            if agent is None:
                fresh.append(self._crew.add(host, how, argv))
        try:
            self._crew.greeted(fresh)
        except MeasureError as error:
            # Close the channels of all agents first, so that the agents end in parallel.
            for agent in fresh:
                agent.hang_up()
            for agent in fresh:
                self._crew.drop(agent.host)
            said = next((agent for agent in fresh if f"`{agent.host}`" in error.message), None)
            if said is not None:
                again = time.monotonic() + TRY_AGAIN_SECONDS
                self._unreached[said.host, reached[said.host]] = error, again
            raise

    def _put_up(self, numbers: PointPlan) -> Lab:
        network = self._same_network(numbers)
        if self._lab is not None and network == self._network:
            return self._lab
        self._take_down()
        # The name of a testbed that is no file (such as standard input) is used as it is.
        path = Path(self._source)
        file = str(path.resolve()) if path.is_file() else self._source
        self._lab = netlab.up(
            self._campaign.name, file, numbers, self.engine, temporary=True, files=self._files()
        )
        self._network = network
        return self._lab

    def _files(self) -> Files:
        """The files that the session writes in addition to outcomes."""
        return Files()

    def _same_network(self, numbers: PointPlan) -> bytes:
        """A key for the network of a point; points with equal keys use the same namespaces."""
        return msgspec.json.encode((numbers.hosts, numbers.between, numbers.links))

    def _take_down(self) -> None:
        if self._lab is None:
            return
        self._crew.end()
        lab, self._lab, self._network = self._lab, None, b""
        netlab.down(lab)

    def _dismiss(self) -> None:
        """Forget agents that are gone; the others are used for the next point."""
        for host, agent in list(self._crew.agents.items()):
            if agent.gone:
                self._crew.drop(host)

    def _hellos(self) -> dict[str, Hello]:
        return {host: agent.hello for host, agent in self._crew.agents.items() if agent.hello is not None}
