"""The engine `measure`: agents on real hosts make a testbed's traffic, controlled from here.

A `Session` lasts for a campaign. Its agents stay from one point to the next and end with the session. So do
the namespaces that serve as hosts if no host of the testbed has a `reach`.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

from msgspec.structs import replace

from engpass import _engpass, netlab
from engpass.campaign import Axis, Point, swept_values
from engpass.environment import now
from engpass.measure.agent import Crew, MeasureError
from engpass.measure.agent_access import Addresses, way
from engpass.measure.answers import Hello, seen
from engpass.measure.flows import Flow, flows, rule, untold
from engpass.measure.measured_ledger import books
from engpass.measure.multicast_delays import Waited, delays, unknown
from engpass.measure.multipath import prepare as prepare_multipath
from engpass.measure.outcome import lasted, outcome_flows, outcome_hosts, own_congestion, with_precision
from engpass.measure.point import Collected, Measurement
from engpass.netlab import Lab, veth
from engpass.plan import point_plan
from engpass.results import outcomes
from engpass.types.outcome import (
    VERSION,
    Engine,
    FlowOutcome,
    MeasuredPoint,
    Outcome,
    PointPrecision,
)
from engpass.types.plan import PointPlan

__all__ = ["MeasureError", "Session"]

TRY_AGAIN_SECONDS = 60.0
"""Seconds after a failed attempt to reach a host in which points that need the host fail at once."""


class Session:
    """Measures the points of one campaign, one after the other."""

    engine: Engine = "measure"
    stops_by_rule = True
    """True if a run may end early because its `precision` is reached."""

    def __init__(
        self,
        campaign: _engpass.Campaign,
        source: str,
        axes: tuple[Axis, ...],
        stopped: Callable[[], bool],
        *,
        precise: bool = True,
    ) -> None:
        self._campaign, self._source, self._axes, self._stopped = campaign, source, axes, stopped
        # Whether the file's `precision` counts. It does not for trials: the search sets their duration.
        self._precise = precise
        self._crew = Crew()
        self._lab: Lab | None = None
        self._network: object = None
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
        if not (self._precise and self.stops_by_rule):
            run = replace(numbers.run, precision=None, most_ns=numbers.run.duration_ns)
            numbers = replace(numbers, run=run)
        seed = numbers.run.seed + point.repeat
        try:
            found = self._found(point, seed, numbers)
        except KeyboardInterrupt:
            raise _engpass.Interrupted("interrupted") from None
        except MeasureError as error:
            self._dismiss()
            raise error from None
        return outcomes.write(found)

    def _found(self, point: Point, seed: int, numbers: PointPlan) -> Outcome:
        """Measure a point and build the outcome from the agents' results."""
        planned = flows(numbers, seed)
        self._gather(numbers, planned)
        addresses = Addresses(numbers.hosts, self._lab, self._hellos())
        stop = rule(numbers, planned)
        collected = Measurement(self._crew, addresses, planned, self._stopped, stop).run()
        if stop is not None:
            planned = lasted(planned, collected.results)
            run = replace(numbers.run, duration_ns=max(flow.end_ns for flow in planned))
            numbers = replace(numbers, run=run)
        groups = self._groups(point, addresses, planned)
        hosts = outcome_hosts(self._hellos(), collected.results)
        counted = seen(hosts)
        limits = self._limits(point)
        kept = books(numbers, planned, collected.results, counted, limits)
        notes = untold(numbers, self.engine)
        notes += own_congestion(numbers, planned, collected.results) + kept.notes
        if self._lab is not None:
            notes += veth.notes(numbers)
        notes += unknown(groups)
        found = outcome_flows(planned, collected.results, counted, limits, kept)
        found |= {name: _with_delays(found[name], receivers) for name, receivers in groups.items()}
        precision: PointPrecision | None = None
        if stop is not None:
            found, precision = with_precision(found, planned, stop)
        return Outcome(
            version=VERSION,
            variant=point.variant,
            engine=self.engine,
            repeat=point.repeat,
            seed=seed,
            sweep=swept_values(point, self._axes),
            flows=found,
            links=dict(kept.links),
            hosts=hosts,
            measured=MeasuredPoint(
                at=now(),
                took_s=round(collected.seconds, 3),
                carrier="hosts" if self._lab is None else "veth",
                notes=notes,
                precision=precision,
            ),
        )

    def _groups(
        self, point: Point, addresses: Addresses, planned: list[Flow]
    ) -> dict[str, dict[str, Waited]]:
        """Measure multicast join and leave delays by flow; only in the first repeat, as it takes seconds."""
        if point.repeat:
            return {}
        groups = [flow for flow in planned if flow.group is not None and flow.send.schedule is not None]
        return {flow.name: delays(self._crew, addresses, flow, self._stopped) for flow in groups}

    def collect(self, variant: str, numbers: PointPlan, planned: list[Flow]) -> Collected:
        """Make flows that the caller has planned, and return the agents' results. Raises as `run` does."""
        try:
            return self._made(variant, numbers, planned)
        except KeyboardInterrupt:
            raise _engpass.Interrupted("interrupted") from None
        except MeasureError as error:
            self._dismiss()
            raise error from None

    def _made(self, _variant: str, numbers: PointPlan, planned: list[Flow]) -> Collected:
        self._gather(numbers, planned)
        addresses = Addresses(numbers.hosts, self._lab, self._hellos())
        return Measurement(self._crew, addresses, planned, self._stopped).run()

    def hello(self, host: str) -> Hello:
        """The greeting of a host's agent; an empty one if the host has no agent."""
        return self._hellos().get(host) or Hello.of({})

    def _gather(self, numbers: PointPlan, planned: list[Flow]) -> None:
        """Start agents on the hosts that send or receive, where none runs yet."""
        hosts = dict.fromkeys(host for flow in planned for host in (flow.sender, *flow.receivers))
        reached = {host: numbers.hosts[host].reach for host in hosts}
        if any(reach is not None for reach in reached.values()):
            self._take_down()
        else:
            prepare_multipath(self._put_up(numbers), numbers)
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

    def _files(self) -> netlab.Files:
        """The files that the session writes in addition to outcomes."""
        return netlab.Files()

    def _same_network(self, numbers: PointPlan) -> object:
        """A key for the network of a point; points with equal keys use the same namespaces."""
        return numbers.hosts, numbers.between, numbers.links

    def _take_down(self) -> None:
        if self._lab is None:
            return
        self._crew.end()
        lab, self._lab, self._network = self._lab, None, None
        netlab.down(lab)

    def _dismiss(self) -> None:
        """Forget agents that are gone; the others are used for the next point."""
        for host, agent in list(self._crew.agents.items()):
            if agent.gone:
                self._crew.drop(host)

    def _hellos(self) -> dict[str, Hello]:
        return {host: agent.hello for host, agent in self._crew.agents.items() if agent.hello is not None}

    def _limits(self, point: Point) -> dict[str, FlowOutcome]:
        """The flows' outcomes in the limit engine; empty if that engine does not support the testbed."""
        with contextlib.suppress(_engpass.Unsupported):
            answer = self._campaign.run("limit", point.variant, point.sweep, 0, _engpass.Interrupt())
            return outcomes.read(answer).flows
        return {}


def _with_delays(flow: FlowOutcome, receivers: Mapping[str, Waited]) -> FlowOutcome:
    """A multicast flow with the join and leave delays of its receivers added."""
    each = {host: replace(one, **asdict(receivers[host])) for host, one in flow.receivers.items()}
    return replace(flow, receivers=each)


def left_out(
    campaign: _engpass.Campaign, variant: str, sweep: Sequence[tuple[str, str]], engine: str
) -> list[str]:
    """A sentence for each key of a point that `measure` or `emulate` ignores. Raises `InvalidTestbed`."""
    return untold(point_plan(campaign, variant, sweep), engine)
