"""Selects the point of a run to explain: the one that is named, or the one that is served worst."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import msgspec

from engpass import _engpass, assignment
from engpass.campaign import Axis, Plan, build
from engpass.campaign import choose as choose_names
from engpass.error import ChoiceError, EngpassError, nearest
from engpass.explain.resimulate import interruptibly
from engpass.explain.service import SCORED, Needs, Served
from engpass.jsondata import Json
from engpass.memory import MOST, need
from engpass.results import outcomes, receivers
from engpass.results.above_limit import GENERATORS
from engpass.results.samples import Samples
from engpass.settings import Amount
from engpass.types.outcome import Engine, FlowOutcome, Outcome
from engpass.types.plan import Drawing

if TYPE_CHECKING:
    from engpass.store import RunRecord, Store
    from engpass.testbed_file import TestbedFile

Sweep = tuple[tuple[str, str], ...]

_Who = tuple[str, str]
"""A flow and one of its receivers; the receiver is empty if the flow has only one, or if any will do."""


class Chosen(msgspec.Struct, frozen=True):
    """The flow and the point to explain, with all data needed to run the point again."""

    run_id: str
    name: str
    text: str
    source: str
    overrides: tuple[tuple[str, str], ...]
    topology: Drawing
    variant: str
    sweep: Sweep
    flow: str
    receiver: str
    """The receiver from which to see the flow; empty unless it has several."""
    repeats: int
    has_variants: bool
    outcomes: tuple[Outcome, ...]
    """The simulated outcomes of the point in the store, one for each repeat."""
    current: bool
    """True if these outcomes are of this build of the core, so that changes can be compared with them."""
    selected_as_worst: bool
    """True if several were possible, and this one is served worst."""

    @property
    def title(self) -> str:
        """The name of the flow in tables, with the receiver if it has several."""
        return receivers.name(self.flow, self.receiver)

    @property
    def place(self) -> str:
        """The variant and the swept values of the point, as text."""
        parts = [f"variant {self.variant}"] if self.has_variants else []
        return ", ".join([*parts, *(f"{path} = {text}" for path, text in self.sweep)])

    def to_json(self) -> dict[str, Json]:
        """The chosen run, point and flow as JSON data."""
        return {
            "run": self.run_id or None,
            "variant": self.variant,
            "sweep": dict(self.sweep),
            "flow": self.flow,
            **({"receiver": self.receiver} if self.receiver else {}),
            "selected_as_worst": self.selected_as_worst,
        }


def choose(
    store: Store, record: RunRecord, variant: str | None, point: Iterable[str], flow: str | None
) -> Chosen:
    """Select the point and flow of a run that the arguments name; if they name several, the worst served.

    `point` has texts such as `traffic.stream.message=9 kB`. Raises `ChoiceError` and `EngpassError`.
    """
    plan = record.plan
    if "simulate" not in plan.engines:
        raise EngpassError(
            f"run {record.id} has no simulated points",
            "`engpass run FILE --engine simulate` makes a run with such points",
        )
    variants = choose_names("variant", None if variant is None else [variant], plan.variants)
    wanted = _wanted(plan.axes, point)
    flows = _flows(record.topology, flow)
    points = _Points(record, flows)
    for index in _indices(plan, wanted):
        for name in variants:
            for engine in plan.engines:
                positions = plan.positions(engine, name, index)
                for _, outcome in store.read_outcomes(record, [positions]):
                    points.add(name, index, outcome)
    name, index, (chosen_flow, receiver) = points.worst(variants, wanted)
    return Chosen(
        run_id=record.id,
        name=record.name,
        text=record.text,
        source=record.source,
        overrides=tuple(record.overrides),
        topology=record.topology,
        variant=name,
        sweep=plan.sweep(index),
        flow=chosen_flow,
        receiver=receiver,
        repeats=plan.repeats,
        has_variants=plan.variants != ("base",),
        outcomes=_simulated(store, record, plan, name, index),
        current=record.environment.get("build") == build(),
        selected_as_worst=len(points) > 1,
    )


def choose_in(
    testbed: TestbedFile,
    variant: str | None,
    point: Iterable[str],
    flow: str | None,
    *,
    max_memory: int | None = MOST,
) -> Chosen:
    """Select variant and flow of a testbed without a run, at the file's values except those in `point`.

    If no variant is named all are simulated. Raises what `choose` and `Campaign.run` raise, and
    `NeedsMemoryError` if the simulation needs more than `max_memory` bytes.
    """
    testbed.needs_traffic()
    variants = choose_names("variant", None if variant is None else [variant], testbed.variants)
    wanted = _pairs(point)
    flows = _flows(testbed.topology, flow)
    need(testbed.campaign, ["simulate"], variants, sweep=wanted).check(max_memory)
    stop = _engpass.Interrupt()

    def run(engine: Engine, name: str, repeat: int) -> Outcome:
        return outcomes.read(testbed.campaign.run(engine, name, wanted, repeat, stop))

    def run_all() -> list[tuple[float, str, _Who, tuple[Outcome, ...]]]:
        found = []
        for name in variants:
            limit = run("limit", name, 0)
            simulated = tuple(run("simulate", name, repeat) for repeat in range(testbed.repeats))
            # Traffic may be missing in a variant.
            needs = {who: Needs.of(flow) for who, flow in _of(limit, flows)}
            served: dict[_Who, list[FlowOutcome]] = {}
            for outcome in simulated:
                for who, flow in _of(outcome, flows):
                    served.setdefault(who, []).append(flow)
            for who, repeats in served.items():
                found.append((needs[who].score(Served.of(repeats, SCORED)), name, who, simulated))
        return found

    found = interruptibly(stop, run_all)
    if not found:
        titles = [receivers.name(*who) for who in flows]
        names, lacks = (" or ".join(f"`{one}`" for one in all_) for all_ in (variants, titles))
        raise ChoiceError(f"flow {lacks} does not exist in variant {names}", "use another flow or variant")
    _, name, (chosen_flow, receiver), simulated = min(found, key=lambda one: one[0])
    return Chosen(
        run_id="",
        name=testbed.name,
        text=testbed.text,
        source=testbed.source,
        overrides=testbed.overrides,
        topology=testbed.topology,
        variant=name,
        sweep=tuple(wanted),
        flow=chosen_flow,
        receiver=receiver,
        repeats=testbed.repeats,
        has_variants=testbed.has_variants,
        outcomes=simulated,
        current=True,
        selected_as_worst=len(found) > 1,
    )


def _simulated(store: Store, record: RunRecord, plan: Plan, variant: str, index: int) -> tuple[Outcome, ...]:
    positions = plan.positions("simulate", variant, index)
    return tuple(outcome for _, outcome in store.read_outcomes(record, [positions]))


def _of(outcome: Outcome, wanted: Iterable[_Who]) -> Iterator[tuple[_Who, FlowOutcome]]:
    """Yield the outcomes of the wanted flows; of several receivers each one, or the wanted one."""
    for name, host in wanted:
        flow = outcome.flows.get(name)
        for receiver, seen in receivers.each(flow) if flow is not None else ():
            if host in ("", receiver):
                yield (name, receiver), seen


def _flows(topology: Drawing, flow: str | None) -> list[_Who]:
    kinds = {one.name: one.kind for one in topology.flows}
    names = [name for name, kind in kinds.items() if kind not in GENERATORS]
    if flow is not None:
        hosts = [node.name for node in topology.nodes if node.kind == "host"]
        groups = [name for name, kind in kinds.items() if kind == "multicast"]
        for name, host in ((name, host) for name in groups for host in hosts):
            if flow not in kinds and flow == receivers.name(name, host):
                return [(name, host)]
        if flow not in kinds:
            raise ChoiceError(f"unknown flow `{flow}`", nearest(flow, kinds))
        if flow not in names:
            raise ChoiceError(
                f"`{flow}` is a generator of background traffic: there is nothing to explain",
                nearest(flow, names),
            )
        return [(flow, "")]
    if not names:
        raise EngpassError(
            "the only traffic of this testbed is from generators", "add a `udp-stream` or `tcp-stream`"
        )
    return [(name, "") for name in names]


def _wanted(axes: Sequence[Axis], point: Iterable[str]) -> dict[str, str]:
    """By swept path the wanted value, as the run writes it: `9000 B` is found as `9 kB`."""
    wanted = {}
    for path, value in _pairs(point):
        axis = next((axis for axis in axes if axis.path == path), None)
        if axis is None:
            raise ChoiceError(f"`{path}` is not swept in this run", nearest(path, [a.path for a in axes]))
        wanted[path] = _value(axis, value)
    return wanted


def _pairs(point: Iterable[str]) -> list[tuple[str, str]]:
    pairs = []
    for text in point:
        path, value = (part.strip() for part in assignment.split(text) or ("", ""))
        if not path or not value:
            raise EngpassError(f"`--point {text}` has no value", "write `--point PATH=VALUE`")
        pairs.append((path, value))
    return pairs


def _value(axis: Axis, value: str) -> str:
    texts = [one.text for one in axis.values]
    for text in texts:
        if _spelt(text) == _spelt(value):
            return text
    raise ChoiceError(f"`{axis.path}` has no value `{value}` in this run", nearest(value, texts))


def _spelt(text: str) -> str:
    """A text that is the same for all spellings of a value."""
    amount = Amount.read(text)
    if amount is None:
        return "".join(text.split())
    number, unit = amount.in_base()
    return f"{number.normalize():f} {unit}"


def _indices(plan: Plan, wanted: Mapping[str, str]) -> Iterable[int]:
    for index in range(plan.sweep_points):
        if not wanted or all(wanted.get(path, text) == text for path, text in plan.sweep(index)):
            yield index


class _Points:
    """The service of each flow at each point, from which the worst is chosen."""

    def __init__(self, record: RunRecord, flows: Sequence[_Who]) -> None:
        self._record, self._flows = record, flows
        self._served: dict[tuple[str, int, _Who], Samples] = {}
        self._needs: dict[tuple[str, int, _Who], Needs] = {}

    def add(self, variant: str, index: int, outcome: Outcome) -> None:
        """Take in an outcome of a point."""
        for who, flow in _of(outcome, self._flows):
            key = (variant, index, who)
            if outcome.engine == "simulate":
                self._served.setdefault(key, Samples(SCORED)).add(flow)
            elif outcome.engine == "limit" and flow.limit is not None and flow.limit.idle_delay_s is not None:
                # Outcomes of the limit engine from older builds lack the idle delay.
                self._needs[key] = Needs.of(flow)

    def __len__(self) -> int:
        return len(self._served)

    def worst(self, variants: Sequence[str], wanted: Mapping[str, str]) -> tuple[str, int, _Who]:
        """The point and flow with the least score; of several, the first in the order of the run."""
        if not self._served and all(host for _, host in self._flows):
            (flow, host), *_ = self._flows
            raise ChoiceError(
                f"unknown flow `{receivers.name(flow, host)}`",
                f"`--flow {flow}` selects the worst served receiver",
            )
        if not self._served:
            at = "".join(f" at {path} = {text}" for path, text in wanted.items())
            raise EngpassError(
                f"run {self._record.id} has no simulated outcome{at} yet",
                "repeat the `engpass run` command: it continues where it stopped",
            )
        needs = self._needs if self._served.keys() <= self._needs.keys() else self._limits()
        order = {name: place for place, name in enumerate(variants)}

        def rank(key: tuple[str, int, _Who]) -> tuple[float, int, int]:
            served = Served(self._served[key].values())
            return needs.get(key, Needs.of(None)).score(served), order[key[0]], key[1]

        return min(self._served, key=rank)

    def _limits(self) -> dict[tuple[str, int, _Who], Needs]:
        """Compute what the limit engine says, if the run does not have it or has it from an older build."""
        record, stop = self._record, _engpass.Interrupt()
        plan = record.plan
        campaign = _engpass.load(record.text.encode(), record.source, list(record.overrides), None)
        found = {}
        for variant, index in {key[:2] for key in self._served}:
            text = campaign.run("limit", variant, list(plan.sweep(index)), 0, stop)
            for who, flow in _of(outcomes.read(text), self._flows):
                found[variant, index, who] = Needs.of(flow)
        return found
