"""Runs the trials of a search with a stream of datagrams of a testbed, on any engine."""

from __future__ import annotations

import math
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING

from msgspec.structs import replace

from engpass import _engpass
from engpass.campaign import MODEL, Point
from engpass.error import EngpassError, nearest
from engpass.plan import point_plan
from engpass.results import outcomes
from engpass.search.rfc2544 import LEARNING_SECONDS, RESIDUE_SECONDS
from engpass.search.trial import KEPT, KEPT_BY_MODEL, SearchError, Trial
from engpass.settings import Settings
from engpass.testbed_file import TestbedFile

if TYPE_CHECKING:
    from engpass.measure import Session
    from engpass.types.outcome import FlowOutcome
    from engpass.types.plan import PointPlan

STREAMS = frozenset({"multicast", "udp-stream", "poisson", "udp-on-off", "video"})
"""Kinds of traffic whose load a search can set."""

_SIMULATE = "`--engine simulate` needs neither hosts nor privileges"


class TrialRunner:
    """One variant of a testbed, at its own values, with one stream whose load is searched."""

    def __init__(
        self,
        testbed: TestbedFile,
        traffic: str,
        engine: str,
        variant: str,
        stopped: Callable[[], bool],
        slow: int = 1,
    ) -> None:
        self._testbed, self.traffic, self.engine, self.variant = testbed, traffic, engine, variant
        self._stopped, self._slow = stopped, slow
        numbers = self._numbers = point_plan(testbed.campaign, variant, [])
        flows = {flow.name: flow for flow in numbers.flows}
        if traffic not in flows:
            raise SearchError(f"unknown traffic `{traffic}`", nearest(traffic, flows))
        self._flow = flows[traffic]
        if self._flow.kind not in STREAMS:
            raise SearchError(
                f"traffic `{traffic}` is `{self._flow.kind}`, which has no adjustable load",
                "use a stream of datagrams: " + ", ".join(f"`{kind}`" for kind in sorted(STREAMS)),
            )
        self.message = self._flow.message_bytes or 0
        self.learning = self._asking(numbers) if self._flow.stop_ns is None else ()
        """Routers that learn hardware addresses before each trial."""
        self.interrupt = _engpass.Interrupt()
        self._session: Session | None = None
        self._ran = False
        self._tried: dict[tuple[int, float], int] = {}
        longest = Settings.at(testbed.campaign, variant, [], ["run"]).find("run", "longest")
        self._precise = longest is not None and longest.given

    def __enter__(self) -> TrialRunner:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._session is not None:
            self._session.close()

    def _asking(self, numbers: PointPlan) -> tuple[str, ...]:
        """The routers of the model that ask by ARP; the stream's first packets wait there for the reply."""
        if self.engine not in (*MODEL, "emulate"):
            return ()
        return tuple(name for name, node in numbers.between.items() if node.arp)

    def _peak(self, load: int) -> int:
        """The rate within bursts whose overall mean is `load`, both in bit/s.

        The first datagram of a burst leaves at once. A burst therefore has, on average, half a datagram more
        than its rate alone would give, and at least one.
        """
        flow = self._flow
        if flow.on_ns is None or flow.off_ns is None:
            return load
        bits, on = self.message * 8, flow.on_ns / 1e9
        wanted = load * (on + flow.off_ns / 1e9) / bits
        if flow.lengths == "exponential":
            return max(1, round(bits / (-on * math.log1p(-1 / wanted)))) if wanted > 1 else 1
        return max(1, round(bits * (wanted - 0.5) / on))

    def most(self) -> int:
        """The load that fills the sender's own line, in bit/s of payload, according to the limit engine."""
        outcome = outcomes.read(self._testbed.campaign.run("limit", self.variant, [], 0, self.interrupt))
        flow = outcome.flows.get(self.traffic)
        if flow is None or flow.limit is None:
            raise SearchError(f"traffic `{self.traffic}` has no limit", "set the largest load with `--max`")
        first = next(one for one in flow.limit.candidates if one.bottleneck.kind == "link")
        return int(first.goodput_bit_per_s)

    def bound(self, load: int, duration: float) -> tuple[float, str] | None:
        """The bound of the limit engine on the stream in a trial, in bit/s of payload, and what sets it.

        For a group it is the receiver with the lowest bound. `None` if the limit engine gives none, if the
        stream's own application sets it, or if the stream sends in a part of the trial only: the bound is a
        mean over the whole trial.
        """
        if self._flow.start_ns or self._flow.stop_ns is not None:
            return None
        try:
            campaign = self._loaded(self._changes(load, duration))
            text = campaign.run("limit", self.variant, [], 0, self.interrupt)
        except _engpass.Interrupted:
            raise KeyboardInterrupt from None
        except _engpass.Unsupported:
            return None
        flow = outcomes.read(text).flows.get(self.traffic)
        if flow is None:
            return None
        ends = [one.limit for one in flow.receivers.values()] or [flow.limit]
        bounds = [end.bound for end in ends if end is not None and end.bound is not None]
        least = min(bounds, key=lambda one: one.bit_per_s, default=None)
        if least is None or least.bottleneck.kind == "application":
            return None
        return least.bit_per_s, least.bottleneck.title

    @property
    def notes(self) -> list[str]:
        """The parts of the file that the network of the trials leaves out; empty before the first trial."""
        return [] if self._session is None else self._session.notes(self._numbers)

    def least(self) -> int:
        """The smallest load of a search: 24 datagrams per second, in bit/s of payload."""
        return max(1, self.message * 8 * 24)

    def trial(self, load: int, duration: float) -> tuple[Trial, str]:
        """Make a trial; returns it with the engine's outcome as JSON.

        Raises what the engine raises, and `SearchError`.
        """
        start = self._flow.start_ns / 1e9
        if not self.learning and start >= duration:
            raise SearchError(
                f"`{self.traffic}` starts after {start:g} s, when a trial of {duration:g} s is over",
                "remove its `start`, or make longer trials: `--trial`, and `--initial` with mlrsearch",
            )
        seen = self._tried.setdefault((load, duration), 0)
        self._tried[load, duration] += 1
        residue = RESIDUE_SECONDS if self.engine in MODEL else 0.0
        overrides = self._changes(load, duration, residue)
        campaign = self._loaded(overrides)
        # Each further trial at a load is another repeat, so that it draws other random numbers.
        point = Point(0, self.engine, self.variant, (), seen)
        try:
            if self.engine in MODEL:
                text = campaign.run(self.engine, self.variant, [], seen, self.interrupt)
            else:
                text = self._live(campaign, overrides).run(point)
                self._ran = True
        except EngpassError as error:
            if not self._ran and self._can_be_simulated():
                error.help = f"{error.help}; {_SIMULATE}" if error.help else _SIMULATE
            raise
        except _engpass.Interrupted:
            raise KeyboardInterrupt from None
        except _engpass.Unsupported as error:
            cause, _, cure = str(error).partition("\nhelp: ")
            raise SearchError(cause, cure or None) from None
        outcome = outcomes.read(text)
        trial = self._read(load, duration, outcome.flows[self.traffic])
        return replace(trial, valid=outcome.valid is not False), text

    def skip(self, load: int, duration: float) -> None:
        """Count a trial that the store has, so that the next one at this load draws other random numbers."""
        self._tried[load, duration] = self._tried.get((load, duration), 0) + 1

    def _changes(self, load: int, duration: float, residue: float = 0.0) -> tuple[tuple[str, str], ...]:
        """The overrides of a trial, which come after those of the user.

        `residue` is the time in seconds for which the run goes on after the stream has stopped. Real hosts
        need none: they wait for datagrams in flight when their traffic has ended.
        """
        # The warm-up begins when the stream begins, and the trial follows the warm-up.
        warmup = self._flow.start_ns + round(LEARNING_SECONDS * 1e9) if self.learning else 0
        whole = round(duration * 1e9) + warmup
        changes = [
            (f"traffic.{self.traffic}.rate", f"{self._peak(load)} bit/s"),
            ("run.duration", f"{whole + round(residue * 1e9)} ns"),
            ("run.warmup", f"{warmup} ns"),
        ]
        if residue and (self._flow.stop_ns is None or self._flow.stop_ns > whole):
            changes.append((f"traffic.{self.traffic}.stop", f"{whole} ns"))
        if self._precise:
            changes.append(("run.longest", f"{whole + round(residue * 1e9)} ns"))
        return (*self._testbed.overrides, *changes)

    def _loaded(self, overrides: tuple[tuple[str, str], ...]) -> _engpass.Campaign:
        return _engpass.load(self._testbed.text.encode(), self._testbed.source, list(overrides), None)

    def _live(self, campaign: _engpass.Campaign, overrides: tuple[tuple[str, str], ...]) -> Session:
        if self._session is None:
            self._session = self._opened(campaign, overrides)
        self._session.turn_to(campaign, overrides)
        return self._session

    def _can_be_simulated(self) -> bool:
        """True if `simulate` supports the testbed and no host is an existing machine."""
        campaign = self._testbed.campaign
        named = any(host.reach is not None for host in point_plan(campaign, self.variant, []).hosts.values())
        return not named and all(engine != "simulate" for engine, _ in campaign.refusals(self.variant, []))

    def _opened(self, campaign: _engpass.Campaign, overrides: tuple[tuple[str, str], ...]) -> Session:
        return session_of(self.engine, campaign, self._testbed.source, overrides, self._stopped, self._slow)

    def _read(self, load: int, duration: float, flow: FlowOutcome) -> Trial:
        counts = flow.datagrams
        if counts is None:
            raise EngpassError(
                f"engine `{self.engine}` reports no number of datagrams for flow `{self.traffic}`",
                "use another engine",
            )
        seconds = self._sending(duration)
        asked = int(load * seconds / (8 * self.message))
        scheduled = None if flow.real is None else flow.real.schedule_kept
        if scheduled is not None:
            kept = scheduled >= KEPT
        else:
            # Random times and bursts may send less than their mean, which is no failure of the sender.
            drawn = self._drawn(load, seconds)
            share = KEPT_BY_MODEL if self.engine in MODEL and not drawn else KEPT
            kept = counts.sent >= share * asked - drawn
        kept = kept or counts.sent >= asked
        # The run of the model ends with the wait; real hosts have counted their late datagrams as lost.
        late = (counts.in_flight or 0) if self.engine in MODEL else 0
        return Trial(load, duration, counts.sent, counts.lost + late, asked, kept=kept, late=late)

    def _sending(self, duration: float) -> float:
        """The part of a trial between the `start` and the `stop` of the stream, in seconds."""
        if self.learning:
            return duration
        stop = self._flow.stop_ns
        end = duration if stop is None else min(duration, stop / 1e9)
        found = end - self._flow.start_ns / 1e9
        return found if found > 0 else duration

    def _drawn(self, load: int, duration: float) -> float:
        """Datagrams by which a schedule may fall below its mean: a burst, a frame, 3 standard deviations."""
        mean: float = load * duration / (8 * self.message)
        if self._flow.kind == "poisson":
            return 3.0 * math.sqrt(mean)
        if self._flow.kind == "udp-on-off":
            on, off = (self._flow.on_ns or 0) / 1e9, (self._flow.off_ns or 0) / 1e9
            if self._flow.lengths == "fixed":
                return mean / duration * off
            # From the standard deviation of the time that a two-state Markov process spends in one state.
            return 3.0 * mean * math.sqrt(2.0 * off * off / ((on + off) * duration))
        if self._flow.micro_frames_per_s is not None:
            group, intra = self._flow.group_of_pictures or 1, (self._flow.intra_size_ppb or 0) / 1e9
            frames = self._flow.micro_frames_per_s / 1e6 * duration
            return mean / frames * group * intra / (intra + group - 1) + 1
        return 0.0


def stream_of(testbed: TestbedFile, variant: str) -> str:
    """The stream to search by default: the only stream, or the only one without a rate.

    Raises `SearchError` if there is no such stream.
    """
    flows = point_plan(testbed.campaign, variant, []).flows
    streams = [flow for flow in flows if flow.kind in STREAMS]
    free = [flow for flow in streams if flow.rate_bit_per_s is None]
    for candidates in (streams, free):
        if len(candidates) == 1:
            return candidates[0].name
    names = [flow.name for flow in streams]
    if not names:
        raise SearchError("the testbed has no stream of datagrams", 'add traffic of kind "udp-stream" to it')
    raise SearchError(
        "the testbed has several streams of datagrams",
        "select one with `--traffic`: " + ", ".join(f"`{name}`" for name in names),
    )


def check_slow(engine: str, slow: int) -> None:
    """Raise `SearchError` if a factor of time dilation is given that the engine would ignore."""
    if slow != 1 and engine != "emulate":
        raise SearchError(
            f"`--slow` has no effect on `{engine}`: only an emulated network can be slower than real time",
            "remove `--slow`, or add `--engine emulate`",
        )


def session_of(
    engine: str,
    campaign: _engpass.Campaign,
    source: str,
    overrides: tuple[tuple[str, str], ...],
    stopped: Callable[[], bool],
    slow: int = 1,
) -> Session:
    """A session of an engine with real hosts, for trials whose duration `run.precision` does not change.

    `slow` is the factor of time dilation of an emulated network.
    """
    from engpass.measure import Session

    if engine != "emulate":
        return Session(campaign, source, stopped, precise=False)
    from engpass.emulation import Options
    from engpass.measure.emulated import EmulatedSession

    return EmulatedSession(
        campaign, source, stopped, overrides=overrides, options=Options(slow=slow), residue=RESIDUE_SECONDS
    )
