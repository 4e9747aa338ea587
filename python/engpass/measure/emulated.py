"""The engine `emulate`: agents in namespaces make a testbed's traffic, and the model carries it.

Namespaces and agents stay for a campaign. Each point has its own driver, because other values or another seed
make another network.
"""

from __future__ import annotations

import dataclasses
import tempfile
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from msgspec.structs import replace

from engpass import _engpass
from engpass.campaign import Axis, Point, swept_values
from engpass.environment import now
from engpass.formatting import duration
from engpass.measure import Session
from engpass.measure.agent import MeasureError
from engpass.measure.agent_access import Addresses
from engpass.measure.answers import seen
from engpass.measure.counters import thinned
from engpass.measure.flows import DATAGRAMS, Flow, flows, untold
from engpass.measure.line_usage import Kept
from engpass.measure.outcome import outcome_flows, outcome_hosts
from engpass.measure.point import Collected, Measurement
from engpass.measure.time_dilation import scaled_back, slowed
from engpass.measure.window import Closed, Lateness, Settled, Window
from engpass.netlab import Lab, LabError, emulated, registry
from engpass.netlab import kernel as kernels
from engpass.netlab.control import Control
from engpass.netlab.emulated import Network, Options
from engpass.netlab.output_claims import Files
from engpass.plan import point_plan
from engpass.types.outcome import (
    VERSION,
    Datagrams,
    Drop,
    Emulated,
    Engine,
    FlowOutcome,
    MeasuredPoint,
    Outage,
    Outcome,
)
from engpass.types.plan import PointPlan

_ALLOWED = "tcp_allowed_congestion_control"


class EmulatedSession(Session):
    """Emulates the points of one campaign, one after the other."""

    engine: Engine = "emulate"
    stops_by_rule = False

    def __init__(
        self,
        campaign: _engpass.Campaign,
        source: str,
        axes: tuple[Axis, ...],
        stopped: Callable[[], bool],
        *,
        overrides: tuple[tuple[str, str], ...],
        options: Options,
    ) -> None:
        super().__init__(campaign, source, axes, stopped)
        self._overrides, self._options = overrides, options

    def _found(self, point: Point, seed: int, numbers: PointPlan) -> Outcome:
        alike, others = as_the_model(carried(numbers))
        planned = flows(slowed(alike, self._options.slow), seed)
        network = self._network_of(point, seed)
        self._lab = emulated.start(self._put_up(numbers), numbers, network)
        try:
            registry.write(self._lab)
            self._gather(numbers, planned)
            collected, closed = self._run(self._lab, numbers, planned)
        finally:
            self._lab = emulated.stop(self._lab)
            registry.write(self._lab)
            written = emulated.written(self._lab)
            if self._options.capture is not None:
                self._options.capture.tell(written.captured)
            if written.broken_log is not None:
                self._options.broken_logs.append(written.broken_log)
        return self._outcome(point, seed, numbers, planned, collected, closed, others)

    def turn_to(self, campaign: _engpass.Campaign, overrides: tuple[tuple[str, str], ...]) -> None:
        """Emulate another campaign from now on, with these overrides."""
        super().turn_to(campaign, overrides)
        self._overrides = overrides

    def _made(self, variant: str, numbers: PointPlan, planned: list[Flow]) -> Collected:
        seed = numbers.run.seed
        network = self._network_of(Point(0, self.engine, variant, (), 0), seed)
        self._lab = emulated.start(self._put_up(numbers), numbers, network)
        try:
            registry.write(self._lab)
            with Control(self._lab.socket) as control:
                control.ask("events")
                control.ask("window")
                collected = super()._made(variant, numbers, planned)
                collected.valid = Closed.of(control.ask("end-window")).lateness.valid
            return collected
        finally:
            self._lab = emulated.stop(self._lab)
            registry.write(self._lab)

    def _network_of(self, point: Point, seed: int) -> Network:
        options = self._options
        if options.log is not None:
            directory = log_directory(options.log)
            options = dataclasses.replace(options, log=str(directory / f"point-{point.position:06}.log"))
        return Network(
            self._campaign.text,
            self._source,
            self._overrides,
            point.variant,
            seed,
            point.sweep,
            options,
            # The driver counts the times of the file's events from the start of the senders.
            asked_for_events=True,
        )

    def _files(self) -> Files:
        return self._options.files(each_point=True)

    def _unruled(self, point: Point) -> list[str]:
        run = point_plan(self._campaign, point.variant, point.sweep).run
        return ["`run.precision` is ignored: the model runs for exactly `duration`"] if run.precision else []

    def _same_network(self, numbers: PointPlan) -> object:
        """A key for namespaces: only the hosts, because the model holds the network between them."""
        return list(numbers.hosts)

    def _run(self, lab: Lab, numbers: PointPlan, planned: Sequence[Flow]) -> tuple[Collected, Closed]:
        run = numbers.run
        window = Window(
            lab,
            run.warmup_ns * self._options.slow / 1e9,
            run.duration_ns * self._options.slow / 1e9,
        )

        def stopped() -> bool:
            window.check()
            return self._stopped()

        addresses = Addresses(numbers.hosts, lab, self._hellos())
        measurement = Measurement(
            self._crew,
            addresses,
            planned,
            stopped,
            started=window.start,
            settled=Settled(lab.socket).look,
        )
        try:
            collected = measurement.run()
            return collected, window.close()
        except MeasureError:
            # If the driver has failed, raise its error, since errors of the hosts follow from that.
            window.check()
            raise
        finally:
            window.end()

    def _outcome(
        self,
        point: Point,
        seed: int,
        numbers: PointPlan,
        planned: Sequence[Flow],
        collected: Collected,
        closed: Closed,
        others: list[str],
    ) -> Outcome:
        options = self._options
        slow = options.slow
        hosts = outcome_hosts(self._hellos(), collected.results)
        limits = {
            name: replace(limit, goodput_bit_per_s=limit.goodput_bit_per_s / slow)
            for name, limit in self._limits(point).items()
        }
        alone = alone_on(planned)
        model = closed.outcome
        drops = renamed(model.drops, alone)
        found = outcome_flows(planned, collected.results, seen(hosts), limits, Kept({}, {}, [], drops=drops))
        generators = {flow.name for flow in numbers.flows if flow.cells}
        host_pairs = {name: flow for name, flow in model.flows.items() if name not in generators}
        flows = {name: scaled_back(flow, slow) for name, flow in found.items()}
        for name, outage in outages(host_pairs, alone).items():
            flows[name] = replace(flows[name], outage=outage)
        for name, flow in flows.items():
            if flow.kind == "tcp-stream" and (counts := carried_of(name, host_pairs, alone)) is not None:
                flows[name] = replace(flow, datagrams=counts)
        valid = closed.lateness.valid
        return Outcome(
            version=VERSION,
            variant=point.variant,
            engine=self.engine,
            repeat=point.repeat,
            seed=seed,
            sweep=swept_values(point, self._axes),
            flows=flows | {name: flow for name, flow in model.flows.items() if name in generators},
            links=model.links,
            # The model does not know the CPUs of real hosts.
            nodes={name: node for name, node in model.nodes.items() if name in numbers.between},
            drops=drops,
            events=model.events,
            hosts=hosts,
            measured=MeasuredPoint(
                at=now(),
                took_s=round(collected.seconds, 3),
                carrier="model",
                notes=untold(numbers, self.engine) + others + emulated.notes(options) + self._unruled(point),
            ),
            emulated=Emulated(
                clock=options.clock,
                slow=slow,
                no_offload=options.wire_true,
                max_lateness=options.limit,
                tap=options.tap,
                lateness=thinned(closed.told),
                host_pairs=host_pairs,
            ),
            valid=valid,
            invalid=None if valid else too_late(closed.lateness),
        )


def log_directory(name: str) -> Path:
    """Create the directory of the logs if needed. Raises `LabError` if it is not writable."""
    path = Path(name)
    try:
        path.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=path):
            pass
    except FileExistsError:
        raise LabError(
            f"`{path}` is a file, but every point needs a separate log", "give a directory to `--log`"
        ) from None
    except OSError as error:
        raise LabError(
            f"logs cannot be written into `{path}`: {error.strerror}",
            "check the permissions there, or use another directory",
        ) from None
    return path


def carried(numbers: PointPlan) -> PointPlan:
    """The point without the traffic of cell generators, which the model makes itself.

    Raises `MeasureError` if no host sends anything.
    """
    own = [flow for flow in numbers.flows if not flow.cells]
    if not own:
        raise MeasureError(
            "the only traffic of this testbed is from cell generators: no host sends anything",
            "add a `udp-stream` or a `tcp-stream`, or use `--engine simulate`",
        )
    return replace(numbers, flows=own)


def as_the_model(numbers: PointPlan) -> tuple[PointPlan, list[str]]:
    """Set socket options that the testbed leaves open to the model's defaults; returns the point, and notes.

    Sockets get the model's congestion control, and routers may fragment their datagrams. The kernel's own
    defaults are its owner's choice, and other engines do not assume them. A congestion control that the
    kernel refuses stays the kernel's own, and a note says so.
    """
    discovered = {(way.from_, way.to) for way in numbers.ways if way.discovers_mtu}
    own = (_congestion("tcp_congestion_control") or ["?"])[0]
    known = _congestion("tcp_available_congestion_control" if kernels.privileged() else _ALLOWED)
    refused: dict[str, None] = {}
    found = []
    for flow in numbers.flows:
        sides = []
        for side in flow.tcp or ():
            wanted: str | None = side.congestion or side.model_congestion
            if side.congestion is None and wanted not in known:
                refused[
                    f"TCP of `{flow.name}` uses this host's default congestion control,"
                    f" `{own}`, but the model uses `{wanted}`: root can add it to `net.ipv4.{_ALLOWED}`"
                ] = None
                wanted = None
            sides.append(replace(side, congestion=wanted))
        live = flow.live
        learns = flow.kind in DATAGRAMS and not discovered.isdisjoint((flow.from_, to) for to in flow.to)
        if live is not None and live.dont_fragment is None and learns:
            # Linux sets "don't fragment" on packets, unless the MTU of the route is locked.
            live = replace(live, dont_fragment=False)
        found.append(replace(flow, tcp=sides or flow.tcp, live=live))
    return replace(numbers, flows=found), list(refused)


def _congestion(setting: str) -> list[str]:
    """The congestion controls in a setting of this kernel; none if the setting cannot be read."""
    try:
        return Path("/proc/sys/net/ipv4", setting).read_text(encoding="ascii").split()
    except OSError:
        return []


def alone_on(planned: Sequence[Flow]) -> dict[str, str]:
    """The flow on each path that only one flow takes, by the name of the path."""
    users: dict[str, list[str]] = {}
    for flow in planned:
        for receiver in flow.receivers:
            users.setdefault(way_name(flow.sender, receiver), []).append(flow.name)
    return {way: flows[0] for way, flows in users.items() if len(flows) == 1}


def renamed(drops: Sequence[Drop], alone: Mapping[str, str]) -> list[Drop]:
    """The model's drops, with the flow in place of the path if only this flow takes the path."""
    return [replace(drop, flow=alone.get(drop.flow, drop.flow)) for drop in drops]


def carried_of(
    flow: str, host_pairs: Mapping[str, FlowOutcome], alone: Mapping[str, str]
) -> Datagrams | None:
    """Packets of a TCP flow, as the network counted them; `None` if other flows take the same path.

    Only TCP needs this: receivers count datagrams themselves, but a socket does not report lost segments.
    """
    counts = next((seen.datagrams for way, seen in host_pairs.items() if alone.get(way) == flow), None)
    return None if counts is None else Datagrams(sent=counts.sent, received=counts.received, lost=counts.lost)


def outages(host_pairs: Mapping[str, FlowOutcome], alone: Mapping[str, str]) -> dict[str, Outage]:
    """The effect of the network's outages on each flow that takes its path alone and has one receiver.

    Only the network knows it: agents do not see which lines are down.
    """
    paths = Counter(alone.values())
    return {
        flow: outage
        for way, flow in alone.items()
        if paths[flow] == 1 and way in host_pairs and (outage := host_pairs[way].outage) is not None
    }


def way_name(sender: str, receiver: str) -> str:
    """The model's name for the path from a sending to a receiving host."""
    return f"{sender} to {receiver}"


def too_late(lateness: Lateness) -> str:
    """A sentence that says why a point is invalid: packets left the emulated network too late."""
    told = (("0.1 %", lateness.p999_ns), ("1 %", lateness.p99_ns), ("the last", lateness.max_ns))
    share, late = next(((share, late) for share, late in told if late is not None), ("some", 0))
    return (
        f"{share} of the packets were {duration(late / 1e9)} late or more, but the limit is"
        f" {duration(lateness.limit_ns / 1e9)}: this machine was too slow or too busy"
    )
