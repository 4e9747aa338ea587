"""Measures the speed of this host's memory, buses and sockets."""

from __future__ import annotations

import datetime as dt
import platform
import tempfile
from collections.abc import Callable

import msgspec

from engpass import _engpass
from engpass.error import EngpassError
from engpass.formatting import byte_rate, duration, percent, size
from engpass.types.probe import Basis, Report, Stream, Verdict


class Probed(msgspec.Struct, frozen=True):
    """The result of probing this host."""

    name: str
    """Name of the host in the testbed."""
    when: str
    """Time of the measurement, UTC."""
    data: Report
    """The report of the core. Rates are bytes per second."""
    table: str
    """The TOML table of this host for a testbed."""
    text: str = ""
    """The report as JSON, with all its keys: what `engpass probe --json` prints."""

    @property
    def steady(self) -> bool:
        """True if the model's figures were confirmed and other work took less than 5 % of the CPUs."""
        return self.data.steady

    @property
    def doubts(self) -> list[str]:
        """Reasons not to trust the figures; empty if there are none."""
        found = []
        timer = self.data.timer
        if timer is not None and timer.stolen >= 0.05:
            found.append(f"a thread waited for its CPU for {percent(timer.stolen)} of the time")
        others = self.data.others
        if others is not None and others >= 0.05:
            found.append(f"other programs used {percent(others)} of the CPUs during the memory measurement")
        alone = [basis(one) for one in self.data.basis if not one.confirmed]
        if alone:
            found.append(f"no second measurement was within 3 % of the best: {'; '.join(alone)}")
        if not self.data.basis:
            found.append("too little of the memory was measured")
        return found

    @property
    def sentence(self) -> str:
        """The main figures of the host in a sentence."""
        found = self.data.bandwidths
        if found is None:
            return "The memory was not measured."
        pipelined = next(
            ceiling.from_memory
            for ceiling in self.data.rooflines[0].ceilings
            if ceiling.path == "one-copy-pipelined" and ceiling.from_memory is not None
        )
        text = (
            f"One thread copies {byte_rate(found.copy)} in memory and {byte_rate(found.copy_cached)} "
            f"in the cache; the memory moves {byte_rate(found.memory_all)} in all. "
        )
        if not self.doubts:
            most = byte_rate(pipelined)
            return f"{text}Therefore, at most {most} of payload leaves this host with one copy."
        return (
            f"{text}These are the best measured rates; the real ones may be higher. By these figures, "
            f"{byte_rate(pipelined)} of payload could leave this host with one copy, but this is not an "
            "upper bound. The figures are not steady: "
            f"{'; '.join(self.doubts)}."
        )


def probe(
    *,
    quick: bool = False,
    name: str | None = None,
    directory: str | None = None,
    watch: Callable[[int, int, str], None] | None = None,
) -> Probed:
    """Measure this host, in less than a minute, or in some seconds if `quick`.

    `name` is the name of the host's table in a testbed. Transfers past the page cache use a file in
    `directory`, by default in the directory of temporary files. `watch` is called with the number of finished
    steps, the number of all steps, and the topic of the next one. Raises `EngpassError` if no thread can be
    started.
    """
    called = name or platform.node().split(".")[0] or "probed"
    now = dt.datetime.now(dt.UTC)
    one = _engpass.Probe(quick, directory or tempfile.gettempdir())
    steps = one.steps()
    for step, about in enumerate(steps):
        if watch is not None:
            watch(step, len(steps), about)
        try:
            one.run(step)
        except OSError as error:
            raise EngpassError(
                f"measurement threads cannot be started: {error.strerror or error}",
                "raise `ulimit -u`, or the process limit of the container",
            ) from None
    if watch is not None:
        watch(len(steps), len(steps), "")
    text = one.report()
    data = msgspec.json.decode(text, type=Report)
    return Probed(called, f"{now:%Y-%m-%d %H:%M} UTC", data, one.table(called), text)


def sockets(stream: Stream) -> str:
    """The system calls with which a stream was sent and received, as text."""
    sending = {"copy": "send", "sendfile": "sendfile", "zerocopy": "MSG_ZEROCOPY"}
    receiving = {"copy": "recv", "discard": "MSG_TRUNC"}
    return f"{sending[stream.sending]} to {receiving[stream.receiving]}"


FIGURES = {
    "memory_all": "memory, all threads",
    "memory_one": "memory, one thread",
    "copy": "copy in memory",
    "copy_cached": "copy in the cache",
    "checksum": "checksum",
    "checksum_cached": "checksum in the cache",
}
"""Names of the figures that the model takes from measured points, by their keys in `basis`."""


def basis(one: Basis) -> str:
    """Text: a figure of the model, and the measured point from which it comes."""
    return f"{FIGURES[one.figure]} ({one.kernel} of {size(one.bytes)})"


OUTCOMES = {"holds": "holds", "fails": "does not hold", "not_told_apart": "undecided"}
"""Verdicts on a prediction, as words."""


def predicted(verdict: Verdict) -> str:
    """The predicted value of a verdict, as text."""
    return _said(verdict, verdict.predicted) + ("" if verdict.unit == "B/s" else f" {verdict.unit}")


def measured(verdict: Verdict) -> str:
    """The measured value of a verdict as text, with its range if that is known."""
    text = _said(verdict, verdict.measured)
    if verdict.between is not None:
        least, most = verdict.between
        text += f" ({_said(verdict, least)} to {_said(verdict, most)})"
    return f"{text} at best" if verdict.unit == "B/s" else f"{text} {verdict.unit}"


def _said(verdict: Verdict, value: float) -> str:
    return byte_rate(value) if verdict.unit == "B/s" else f"{value:.3f}"


def facts(data: Report) -> list[tuple[str, str]]:
    """Text lines on timers, kernel copies, devices, disk and GPUs; or the reason why one was not measured."""
    found: list[tuple[str, str]] = []
    timer = data.timer
    if timer is not None:
        half, most, all_ = (
            duration(late / 1e9) for late in (timer.late_half, timer.late_99, timer.late_most)
        )
        found += [
            (
                "clock",
                f"{duration(timer.reading / 1e9)} to read; resolution {duration(timer.resolution / 1e9)}",
            ),
            ("system call", duration(timer.system_call / 1e9)),
            (
                "timers",
                f"lateness: p50 {half}, p99 {most}, max {all_}",
            ),
            ("longest gap", f"{duration(timer.longest_gap / 1e9)} without the CPU"),
        ]
    for copy in data.kernel.measured or []:
        said = f"{byte_rate(copy.out.best)} out, {byte_rate(copy.into.best)} in"
        found.append((f"kernel copies, {size(copy.bytes)}", said))
    for device in data.devices:
        link = device.link
        if link is None:
            said = f"not measured: {device.why}"
        else:
            below = ", below its maximum" if link.below_its_best else ""
            said = (
                f"PCI Express {link.generation}, {link.lanes} lanes: {byte_rate(link.bytes_per_s)}, "
                f"{byte_rate(link.payload_per_s)} of payload{below}"
            )
        found.append((f"{device.kind} {device.name}", said))
    block = data.block.measured
    if block is not None:
        said = f"{byte_rate(block.write.best)} to it, {byte_rate(block.read.best)} from it"
        found.append((f"disk {block.device}, past the page cache", said))
    else:
        found.append(("disk", f"not measured: {data.block.not_measured}"))
    for gpu in data.gpus.measured or []:
        to = f"{byte_rate(gpu.pinned_to.best)} pinned, {byte_rate(gpu.pageable_to.best)} pageable to it"
        out = f"{byte_rate(gpu.pinned_from.best)} and {byte_rate(gpu.pageable_from.best)} from it"
        found.append((f"GPU {gpu.name}", f"{to}; {out}"))
    if data.gpus.not_measured is not None:
        found.append(("GPUs", f"not measured: {data.gpus.not_measured}"))
    return found
