"""Explains a point: how busy its lines are, the bottleneck of a flow, and changes that help.

All named gains were simulated (`engpass.advice`). `docs/explain.md` describes the command.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from engpass import formatting
from engpass.advice import Advice, advise
from engpass.environment import cores
from engpass.explain.bottleneck import Finding, find
from engpass.explain.phase import shaken
from engpass.explain.point_facts import Hop, Situation
from engpass.explain.resimulate import Bench, interruptibly
from engpass.explain.select_point import Chosen
from engpass.jsondata import Json
from engpass.memory import MOST, need
from engpass.results import ledger
from engpass.results.ledger import Step
from engpass.results.samples import DELAY_P50, DELAY_P99
from engpass.settings import Settings
from engpass.timeline import SAMPLES, timeline
from engpass.types.outcome import Timeline

if TYPE_CHECKING:
    from engpass.types.outcome import Outcome

REPEATS = 5
"""Maximum number of repeats used for an explanation and for simulated changes: the first ones of the run."""


class Explanation(msgspec.Struct, frozen=True):
    """The explanation of one flow at one point: facts, bottleneck, and advice if asked for."""

    chosen: Chosen
    at: Situation
    finding: Finding
    advice: Advice | None
    timeline: Timeline | None = None

    @property
    def waterfall(self) -> list[Step]:
        """Steps from the rate of the tightest line down to the flow's payload; empty without a ledger."""
        tight = self.at.tight
        return [] if tight is None or tight.books is None else ledger.waterfall(tight.books, self.at.own)

    @property
    def sentence(self) -> str:
        """The bottleneck, the evidence for it, and the best change, in one sentence."""
        at, found = self.at, self.finding
        has = f"{found.bottleneck} {found.predicate} `{at.title}`"
        if found.state != "at limit":
            of = f" ({at.limit_name} {formatting.rate(at.limit)})" if at.limit else ""
            has += f"{' to' if found.state == 'below' else ', which gets'} {formatting.rate(at.goodput)}{of}"
        return f"{has}: {found.evidence}{self._counsel()}"

    def _counsel(self) -> str:
        """A text about the best simulated change, with its effects on other flows."""
        if self.advice is None:
            return ""
        # The figures before a change may be means over more seeds than the flow's own.
        seeds = self.advice.seeds
        mean = f" (mean of {seeds} seeds)" if seeds > len(self.at.outcomes) else ""
        if self.advice.changes:
            return f"; {self.advice.changes[0].text}{mean}"
        if self.advice.trades:
            return f"; every simulated change that helps has a price: {self.advice.trades[0].text}{mean}"
        if not self.advice.tried:
            return "; no change was simulated: no finding suggests one"
        if len(self.advice.tried) == 1:
            return "; the one simulated change does not help"
        return f"; none of the {len(self.advice.tried)} simulated changes helps"

    def to_json(self) -> dict[str, Json]:
        """The explanation as JSON data; ledgers are in integer units of the engine, summed over repeats."""
        at, advice = self.at, self.advice
        tight = at.tight
        return {
            **self.chosen.to_json(),
            "kind": at.kind,
            "repeats": len(at.outcomes),
            "goodput_bit_per_s": at.goodput,
            "offered_bit_per_s": at.offered,
            "limit_bit_per_s": at.limit,
            "bound_bit_per_s": at.bound,
            "loss": at.served.loss,
            "delay_p50_s": at.folded(DELAY_P50),
            "delay_p99_s": at.folded(DELAY_P99),
            "idle_delay_s": at.idle_delay,
            **({"longest_gap_s": at.gap, "lost_to_line_down": at.lost_down} if at.gap is not None else {}),
            "bottleneck": {
                "key": self.finding.key,
                "name": self.finding.bottleneck,
                "evidence": self.finding.evidence,
                "link": tight.link if tight else None,
                "from": tight.start if tight else None,
            },
            "waterfall": [
                {"name": s.name, "family": s.family, "share": s.taken, "remaining_share": s.left}
                for s in self.waterfall
            ],
            "directions": [_hop_json(hop) for hop in (*at.hops, *(at.back if at.tcp else ()))],
            "drops": [drop.to_json(at.parallel) for drop in at.drops],
            "tcp": at.counts or None,
            **({} if at.shaken is None else {"phase": at.shaken.to_json()}),
            "summary": self.sentence,
            "advice": None if advice is None else [change.to_json() for change in advice.changes],
            "trades": None if advice is None else [change.to_json() for change in advice.trades],
            "tried": None if advice is None else list(advice.tried),
            "seeds": None if advice is None else advice.seeds,
            **({"timeline": msgspec.to_builtins(self.timeline)} if self.timeline is not None else {}),
        }


def _hop_json(hop: Hop) -> dict[str, Json]:
    books = hop.books
    return {
        "link": hop.link,
        "from": hop.start,
        "to": hop.end,
        "line_rate_bit_per_s": hop.rate,
        "ledger": {name: books.accounts[name] for name in books.names} if books else None,
        "capacity": books.capacity if books else None,
        "unit": (f"1/{books.parts} bit" if books.parts > 1 else "bit") if books else None,
    }


def explain(
    chosen: Chosen,
    *,
    advice: bool = True,
    with_timeline: bool = False,
    jobs: int | None = None,
    watch: Callable[[int], None] | None = None,
    max_memory: int | None = MOST,
) -> Explanation:
    """Explain a point; it is simulated unless the store has the outcomes of all repeats from this build.

    Raises `InvalidTestbed`; `EngpassError` if the engine does not support the testbed or a ledger does not
    balance; `NeedsMemoryError` if a simulation needs more than `max_memory` bytes; and `KeyboardInterrupt` on
    Ctrl-C.
    """
    bench = Bench(
        chosen.text,
        chosen.source,
        chosen.overrides,
        chosen.variant,
        chosen.sweep,
        range(min(REPEATS, chosen.repeats)),
        chosen.flow,
        chosen.receiver,
    )
    # Each change is simulated by one of several threads in parallel.
    workers = (jobs or cores()) if advice else 1
    needed = need(
        bench.campaign,
        ["simulate"],
        [chosen.variant],
        sweep=chosen.sweep,
        jobs=workers,
        points=workers,
        timeline=with_timeline,
    )
    needed.check(max_memory)
    kept = [bench.seen(one) for one in chosen.outcomes if one.repeat in bench.repeats]
    outcomes: Sequence[Outcome] = kept if chosen.current else ()
    if len(outcomes) < len(bench.repeats):
        outcomes = interruptibly(bench.interrupt, bench.outcomes)
    bench.remember(outcomes)
    if advice:
        interruptibly(bench.interrupt, lambda: bench.draw(outcomes))
    at = situation(chosen, bench, outcomes)
    if advice:
        at = replace(at, shaken=interruptibly(bench.interrupt, lambda: shaken(at, bench)))
    recorded = None
    if with_timeline:
        point = (bench.campaign, chosen.variant, chosen.sweep, 0, SAMPLES, bench.interrupt)
        recorded = interruptibly(bench.interrupt, lambda: timeline(*point))
    finding = find(at)
    made = advise(at, bench, jobs=jobs, watch=watch) if advice else None
    return Explanation(chosen, at, finding, made, recorded)


def situation(chosen: Chosen, bench: Bench, outcomes: Sequence[Outcome]) -> Situation:
    """The facts about the chosen flow; `outcomes` are seen from its receiver (`Bench.seen`)."""
    settings = Settings.at(bench.campaign, chosen.variant, chosen.sweep)
    limits = bench.limit()
    queues = {
        (link.name, node): queue
        for link in bench.numbers.links
        for node, queue in zip(link.ends, link.queues, strict=True)
        if queue is not None
    }
    return Situation(
        settings,
        chosen.topology,
        chosen.flow,
        tuple(outcomes),
        limits,
        chosen.receiver,
        queues,
        bench.shares_down(),
    )
