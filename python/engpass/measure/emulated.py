"""The engine `emulate`: agents in namespaces make a testbed's traffic, and the model carries it.

Namespaces and agents stay for a campaign. Each point has its own driver, because other values or another seed
make another network.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

import msgspec

from engpass import _engpass
from engpass.campaign import Point
from engpass.emulation import Files, Options
from engpass.environment import now
from engpass.measure import Session, core
from engpass.measure.agent import MeasureError
from engpass.measure.agent_access import Addresses
from engpass.measure.point import SETTLING_SECONDS, Collected, Measurement
from engpass.measure.window import Closed, Settled, Window
from engpass.netlab import Lab, LabError, emulated, registry
from engpass.netlab import kernel as kernels
from engpass.netlab.control import Control
from engpass.netlab.emulated import Network
from engpass.types.agent import Asked, Congestion, Engine, FlowRequests
from engpass.types.plan import PointPlan

_ALLOWED = "tcp_allowed_congestion_control"


class EmulatedSession(Session):
    """Emulates the points of one campaign, one after the other."""

    engine: Engine = "emulate"

    def __init__(
        self,
        campaign: _engpass.Campaign,
        source: str,
        stopped: Callable[[], bool],
        *,
        overrides: tuple[tuple[str, str], ...],
        options: Options,
        residue: float | None = None,
    ) -> None:
        """`residue` is the longest wait for packets in flight after a point, in seconds of the network."""
        super().__init__(campaign, source, stopped)
        self._overrides, self._options = overrides, options
        self._residue = SETTLING_SECONDS if residue is None else residue * options.slow

    def _asked(self, seed: int) -> Asked:
        own = (_congestion("tcp_congestion_control") or ["?"])[0]
        known = _congestion("tcp_available_congestion_control" if kernels.privileged() else _ALLOWED)
        congestion = Congestion(own=own, known=known)
        return Asked(engine=self.engine, seed=seed, slow=self._options.slow, congestion=congestion)

    def _found(self, point: Point, asked: Asked, numbers: PointPlan) -> str:
        planned = core.requests(self._campaign, point.variant, point.sweep, asked).flows
        network = self._network_of(point, asked.seed)
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
        return self._outcome(point, asked, collected, closed)

    def turn_to(self, campaign: _engpass.Campaign, overrides: tuple[tuple[str, str], ...]) -> None:
        """Emulate another campaign from now on, with these overrides."""
        super().turn_to(campaign, overrides)
        self._overrides = overrides

    def _made(self, variant: str, numbers: PointPlan, planned: list[FlowRequests]) -> Collected:
        seed = numbers.run.seed
        network = self._network_of(Point(0, self.engine, variant, (), 0), seed)
        self._lab = emulated.start(self._put_up(numbers), numbers, network)
        try:
            registry.write(self._lab)
            with Control(self._lab.socket) as control:
                control.ask("events")
                control.ask("window")
                collected = super()._made(variant, numbers, planned)
                collected.valid = Closed.of(control.ask("end-window")).valid
            return collected
        finally:
            self._lab = emulated.stop(self._lab)
            registry.write(self._lab)

    def notes(self, _numbers: PointPlan) -> list[str]:
        """A sentence for each difference between the emulated network and its file."""
        return self._options.notes()

    def _network_of(self, point: Point, seed: int) -> Network:
        options = self._options
        if options.log is not None:
            directory = log_directory(options.log)
            options = msgspec.structs.replace(options, log=str(directory / f"point-{point.position:06}.log"))
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

    def _same_network(self, numbers: PointPlan) -> bytes:
        """A key for namespaces: only the hosts, because the model holds the network between them."""
        return msgspec.json.encode(list(numbers.hosts))

    def _run(self, lab: Lab, numbers: PointPlan, planned: list[FlowRequests]) -> tuple[Collected, Closed]:
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
            settling=self._residue,
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

    def _outcome(self, point: Point, asked: Asked, collected: Collected, closed: Closed) -> str:
        options = self._options
        answers = core.Answers(
            hellos=core.greetings(self._hellos()),
            results=collected.answers,
            at=now(),
            took_s=round(collected.seconds, 3),
            carrier="model",
            notes=options.notes(),
            emulation=core.Emulation(
                clock=options.clock,
                no_offload=options.wire_true,
                max_lateness=options.limit,
                tap=options.tap,
                closed=closed.told,
            ),
        )
        return core.measured(self._campaign, point, asked, answers)


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


def _congestion(setting: str) -> list[str]:
    """The congestion controls in a setting of this kernel; none if the setting cannot be read."""
    try:
        return Path("/proc/sys/net/ipv4", setting).read_text(encoding="ascii").split()
    except OSError:
        return []
