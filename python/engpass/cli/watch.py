"""`engpass watch`: what goes on in an emulated testbed that is up."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from engpass.cli import console, options
from engpass.cli.down import File

if TYPE_CHECKING:
    from rich.console import RenderableType

    from engpass.netlab import Lab
    from engpass.netlab.control import Control

Once = Annotated[bool, typer.Option("--once", help="Look once, over one interval, and end.")]
Interval = Annotated[
    float, typer.Option("--interval", min=0.05, max=60.0, metavar="SECONDS", help="Time between two looks.")
]


def command(file: File, once: Once = False, interval: Interval = 0.5, as_json: options.Json = False) -> None:
    """Watch the links of an emulated testbed that is up: rates, queues, losses, and how late packets are.

    Ctrl-C ends it; the testbed goes on. With `--json` one line for each look.
    """
    from engpass import netlab
    from engpass.netlab.control import Control

    lab = netlab.find(file)
    if lab.driver is None:
        console.fail(
            f"`{file}` is up with `--engine {lab.engine}`: the kernel carries it, and nothing here counts",
            "`engpass exec FILE HOST -- ip -s link` shows its counters",
        )
    with Control(lab.socket) as control:
        if as_json:
            _lines(lab, control, interval, once=once)
        elif once:
            console.tables().print(_view(lab, _look(control, interval)))
        else:
            _live(lab, control, interval)


def _lines(lab: Lab, control: Control, interval: float, *, once: bool) -> None:
    import sys

    while True:
        console.line({"id": lab.id, "slow": lab.slow, **_look(control, interval)})
        if sys.stdout is not None:
            sys.stdout.flush()
        if once:
            return


def _live(lab: Lab, control: Control, interval: float) -> None:
    from rich.live import Live

    screen = console.tables()
    while not screen.is_terminal:
        # Nothing can be drawn over: one look after the other.
        screen.print(_view(lab, _look(control, interval)))
        screen.file.flush()
    with Live(console=screen, auto_refresh=False) as live:
        while True:
            live.update(_view(lab, _look(control, interval)), refresh=True)


def _look(control: Control, interval: float) -> dict[str, Any]:
    """The state at the end of an interval, with the rates over it."""
    before = control.ask("status")
    time.sleep(interval)
    return rates(before, control.ask("status"))


def rates(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    """A status with what grew since an earlier one, per second of the network's own time."""
    earlier = {_key(link): link for link in before.get("links", ())}
    seconds = (after["at_ps"] - before["at_ps"]) / 1e12
    links = []
    for link in after.get("links", ()):
        was = earlier.get(_key(link), {})
        carried = (link["bits"] - was.get("bits", 0)) / seconds if seconds > 0 else 0.0
        links.append(
            {
                **link,
                "bit_per_s": carried,
                "utilisation": carried / link["rate_bit_per_s"] if link.get("rate_bit_per_s") else None,
                "lost_now": link.get("lost", 0) - was.get("lost", 0),
            }
        )
    return {**after, "links": links}


def _key(link: Mapping[str, Any]) -> tuple[str, str, str]:
    return str(link["link"]), str(link["from"]), str(link["to"])


_BAR = 20


def _view(lab: Lab, status: Mapping[str, Any]) -> RenderableType:
    from rich.console import Group
    from rich.text import Text

    from engpass.cli.tables import grid, plain
    from engpass.say import lateness, percent, rate

    table = grid("Link", "Direction", "Rate", "of the line", "", "Queue", "Lost", "now", left=2)
    for link in status.get("links", ()):
        used = link["utilisation"]
        full = round(min(used or 0.0, 1.0) * _BAR)
        queue = (
            f"{link['queue']:,} {link.get('queue_unit', '')}".strip() if link.get("queue") is not None else ""
        )
        table.add_row(
            *plain(
                str(link["link"]),
                f"{link['from']} -> {link['to']}",
                rate(link["bit_per_s"]),
                percent(used) if used is not None else "",
                "█" * full + "·" * (_BAR - full),
                queue,
                f"{link.get('lost', 0):,}",
                f"{link['lost_now']:,}" if link["lost_now"] else "",
            )
        )
    head = f"{lab.name} ({lab.id}), {status['at_ps'] / 1e12:,.1f} s of its own time"
    if lab.slow > 1:
        head += f", {lab.slow} times slower than the clock on the wall; rates are its own"
    told = [lateness(status.get("lateness") or {}), *_ways(status), *_hosts(status)]
    if error := (status.get("log") or {}).get("error"):
        told.append(str(error))
    return Group(Text(head, style="bold"), table, Text("\n".join(told)))


_MOST_WAYS = 8


def _ways(status: Mapping[str, Any]) -> list[str]:
    """What was lost from host to host, a line for each: routers lose packets, too, and they are no link's."""
    lost = sorted(
        ((int(way["packets"]), str(way["way"])) for way in status.get("lost", ())), key=lambda way: -way[0]
    )
    found = [f"lost from {way}, anywhere on the way: {count:,} packets" for count, way in lost[:_MOST_WAYS]]
    if rest := lost[_MOST_WAYS:]:
        found.append(f"and {sum(count for count, _ in rest):,} packets on {len(rest):,} other ways")
    return found


def _hosts(status: Mapping[str, Any]) -> list[str]:
    """What hosts sent that was never carried, and what the kernel refused, a line for each."""
    found = []
    for host in status.get("hosts", ()):
        reasons = {word: count for word, count in (host.get("discarded") or {}).items() if count}
        if host.get("dropped_by_kernel"):
            reasons["no room in its device"] = host["dropped_by_kernel"]
        if reasons:
            told = ", ".join(f"{count:,} ({word})" for word, count in reasons.items())
            found.append(f"not carried of host `{host['name']}`: {told}")
        if failures := host.get("failures"):
            last = f", the last one: {host['last_failure']}" if host.get("last_failure") else ""
            found.append(f"the kernel refused {failures:,} reads and writes of host `{host['name']}`{last}")
    return found
