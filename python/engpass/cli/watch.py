"""`engpass watch`: live rates, queues and losses of an emulated testbed that is up."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

from engpass.cli import console, options
from engpass.cli.down import File

if TYPE_CHECKING:
    from rich.console import RenderableType

    from engpass.netlab import Lab
    from engpass.netlab.control import Control

Once = Annotated[bool, typer.Option("--once", help="Show one interval, then exit.")]
Interval = Annotated[
    float, typer.Option("--interval", min=0.05, max=60.0, metavar="SECONDS", help="Update interval.")
]


class WatchedLink(msgspec.Struct, frozen=True, kw_only=True):
    """One direction of a link; its counters run since the start of the network."""

    link: str
    from_: str = msgspec.field(name="from")
    to: str
    rate_bit_per_s: int | None = None
    bits: int
    lost: int = 0
    down: bool = False
    """Whether an event of the testbed has taken the link down."""
    queue: int | None = None
    queue_unit: str = ""

    @property
    def key(self) -> tuple[str, str, str]:
        """Link, transmitter and receiver."""
        return self.link, self.from_, self.to


class LostWay(msgspec.Struct, frozen=True, kw_only=True):
    """Packets lost on the paths from one host to another since the start."""

    way: str
    packets: int


class WatchedHost(msgspec.Struct, frozen=True, kw_only=True):
    """Packets of a host that the network did not carry since the start."""

    name: str
    discarded: dict[str, int] = {}
    """Packets by reason."""
    dropped_by_kernel: int | None = None
    failures: int = 0
    """Reads and writes of the host's device that the kernel refused."""
    last_failure: str | None = None


class Lateness(msgspec.Struct, frozen=True, kw_only=True):
    """How late packets were since the start, as percentiles."""

    packets: int | None = None
    p50_ns: int | None = None
    p99_ns: int | None = None
    p999_ns: int | None = None
    max_ns: int | None = None


class LogState(msgspec.Struct, frozen=True):
    """Whether the log is still written: `error` says why it ended early."""

    error: str | None = None


class Status(msgspec.Struct, frozen=True, kw_only=True):
    """The shown part of a driver's status (docs/driver.md, *Requests*)."""

    at_ps: int
    links: list[WatchedLink] = []
    lost: list[LostWay] = []
    hosts: list[WatchedHost] = []
    lateness: Lateness | None = None
    log: LogState | None = None


class Rates(msgspec.Struct, frozen=True):
    """Rate and losses of one direction of a link between two statuses, in virtual time."""

    bit_per_s: float
    utilisation: float | None
    """Share of the line rate; `None` if the line has no rate."""
    lost_now: int


def command(file: File, once: Once = False, interval: Interval = 0.5, as_json: options.Json = False) -> None:
    """Watch the links of an emulated testbed that is up: rates, queues, losses, lateness of packets.

    Ctrl-C ends the command; the testbed stays up. With `--json`, prints one line per interval.
    """
    from engpass import netlab
    from engpass.netlab.control import Control

    lab = netlab.find(file)
    if lab.driver is None:
        console.fail(
            f"`{file}` is up with `--engine {lab.engine}`: `watch` needs `emulate`",
            "`engpass exec FILE HOST -- ip -s link` shows its counters",
        )
    with Control(lab.socket) as control:
        if as_json:
            _lines(lab, control, interval, once=once)
        elif once:
            console.tables().print(_view(lab, *_look(control, interval)))
        else:
            _live(lab, control, interval)


def _lines(lab: Lab, control: Control, interval: float, *, once: bool) -> None:
    import sys

    while True:
        before = _status(control)
        time.sleep(interval)
        after = control.ask("status")
        grown = rates(before, msgspec.convert(after, Status))
        links = [
            {**link, **msgspec.structs.asdict(now)}
            for link, now in zip(after.get("links", ()), grown, strict=True)
        ]
        console.line({"id": lab.id, "slow": lab.slow, **after, "links": links})
        if sys.stdout is not None:
            sys.stdout.flush()
        if once:
            return


def _live(lab: Lab, control: Control, interval: float) -> None:
    from rich.live import Live

    screen = console.tables()
    while not screen.is_terminal:
        # A file or pipe cannot be redrawn: print one table after the other.
        screen.print(_view(lab, *_look(control, interval)))
        screen.file.flush()
    with Live(console=screen, auto_refresh=False) as live:
        while True:
            live.update(_view(lab, *_look(control, interval)), refresh=True)


def _look(control: Control, interval: float) -> tuple[Status, list[Rates]]:
    """Wait for an interval; return the status at its end and the rates over it."""
    before = _status(control)
    time.sleep(interval)
    after = _status(control)
    return after, rates(before, after)


def _status(control: Control) -> Status:
    return msgspec.convert(control.ask("status"), Status)


def rates(before: Status, after: Status) -> list[Rates]:
    """The rates of each link direction between two statuses, per second of virtual time."""
    earlier = {link.key: link for link in before.links}
    seconds = (after.at_ps - before.at_ps) / 1e12
    found = []
    for link in after.links:
        was = earlier.get(link.key)
        carried = (link.bits - (was.bits if was else 0)) / seconds if seconds > 0 else 0.0
        used = carried / link.rate_bit_per_s if link.rate_bit_per_s else None
        found.append(Rates(carried, used, link.lost - (was.lost if was else 0)))
    return found


_BAR = 20


def _view(lab: Lab, status: Status, found: list[Rates]) -> RenderableType:
    from rich.console import Group
    from rich.text import Text

    from engpass.formatting import lateness, percent, rate
    from engpass.show.blocks import Cell, Table, columns
    from engpass.show.terminal import grid

    rows: list[list[Cell]] = []
    for link, now in zip(status.links, found, strict=True):
        used = now.utilisation
        full = round(min(used or 0.0, 1.0) * _BAR)
        rows.append(
            [
                link.link,
                f"{link.from_} -> {link.to}",
                rate(now.bit_per_s),
                percent(used),
                "down" if link.down else "█" * full + "·" * (_BAR - full),
                f"{link.queue:,} {link.queue_unit}".strip() if link.queue is not None else "",
                link.lost,
                now.lost_now or "",
            ]
        )
    heads = ("Link", "Direction", "Rate", "% of line", "", "Queue", "Lost", "now")
    table = grid(Table("", columns(*heads, left=2), rows))
    head = f"{lab.name} ({lab.id}), {status.at_ps / 1e12:,.1f} s of virtual time"
    if lab.slow > 1:
        head += f", {lab.slow} times slower than real time; rates are in virtual time"
    told = [lateness(msgspec.to_builtins(status.lateness) or {}), *_ways(status), *_hosts(status)]
    if status.log is not None and status.log.error:
        told.append(status.log.error)
    return Group(Text(head, style="bold"), table, Text("\n".join(told)))


_MOST_WAYS = 8


def _ways(status: Status) -> list[str]:
    """A line for each pair of hosts with losses, which include drops by routers: no link counts those."""
    lost = sorted(status.lost, key=lambda way: -way.packets)
    found = [f"lost on the path {way.way}: {way.packets:,} packets" for way in lost[:_MOST_WAYS]]
    if rest := lost[_MOST_WAYS:]:
        found.append(f"and {sum(way.packets for way in rest):,} packets on {len(rest):,} other paths")
    return found


def _hosts(status: Status) -> list[str]:
    """A line for each host with packets that were not carried, or with reads and writes that failed."""
    found = []
    for host in status.hosts:
        reasons = {word: count for word, count in host.discarded.items() if count}
        if host.dropped_by_kernel:
            reasons["device queue full"] = host.dropped_by_kernel
        if reasons:
            told = ", ".join(f"{count:,} ({word})" for word, count in reasons.items())
            found.append(f"packets of host `{host.name}` not carried: {told}")
        if host.failures:
            last = f", last error: {host.last_failure}" if host.last_failure else ""
            found.append(
                f"{host.failures:,} reads and writes of the device of host `{host.name}` failed{last}"
            )
    return found
