"""`engpass path`: measures the path between two hosts in the steps of RFC 6349."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from engpass.cli import console, emulation, options, quantities
from engpass.error import EngpassError
from engpass.jsondata import Json

if TYPE_CHECKING:
    from engpass.store import RunRecord

Traffic = Annotated[
    str | None,
    typer.Option(
        "--traffic", metavar="NAME", help="Traffic whose path is measured (default: first TCP stream)."
    ),
]
Engine = Annotated[
    str,
    typer.Option(
        "--engine", metavar="NAME", help="measure (real network), or emulate (network of the model)."
    ),
]
Variant = Annotated[str | None, typer.Option("--variant", metavar="NAME", help="Variant (default: first).")]
Seconds = Annotated[
    str | None,
    typer.Option("--transfer", metavar="TIME", help="Duration of the transfer for each TCP window."),
]
Bandwidth = Annotated[
    str | None,
    typer.Option(
        "--bandwidth", metavar="RATE", help="Bottleneck bandwidth at the IP layer (default: measured)."
    ),
]
Connections = Annotated[
    int,
    typer.Option(
        "--connections", metavar="N", help="Number of connections among which each window is divided."
    ),
]


def command(
    file: options.File,
    traffic: Traffic = None,
    engine: Engine = "measure",
    variant: Variant = None,
    set_: options.Set = None,
    transfer: Seconds = None,
    bandwidth: Bandwidth = None,
    connections: Connections = 1,
    slow: emulation.Slow = None,
    store: options.StoreAt = options.STORE,
    as_json: options.Json = False,
    yes: options.Memory = False,
) -> None:
    """Measure a path (RFC 6349): path MTU, round-trip time, bandwidth, then TCP with several windows.

    Shows transfer time ratio, TCP efficiency and buffer delay. Floods the path for some seconds to measure
    the bandwidth, unless `--bandwidth` is given. Exit code 1 if packets of an emulated network were too late.
    """
    from msgspec.structs import replace

    from engpass.interruption import ended_as_by_ctrl_c
    from engpass.path import CONNECTIONS_AT_MOST, Asked, run_path
    from engpass.store import Store
    from engpass.testbed import load

    if not 1 <= connections <= CONNECTIONS_AT_MOST:
        raise EngpassError(
            f"`--connections` is {connections}",
            f"give 1 to {CONNECTIONS_AT_MOST}: each connection uses a thread",
        )
    asked = Asked(
        bandwidth=quantities.rate("--bandwidth", bandwidth),
        connections=connections,
        slow=emulation.factor(slow),
    )
    seconds = quantities.seconds("--transfer", transfer)
    if seconds is not None:
        if seconds <= 0:
            raise EngpassError("`--transfer` must be longer than zero", 'write it as "5 s"')
        asked = replace(asked, seconds=seconds)
    testbed = load(file, options.overrides(set_))
    with ended_as_by_ctrl_c(), Store.open(store) as opened:

        def work(most: int | None) -> RunRecord:
            with console.waiting("path MTU") as waiting:

                def watch(step: str, found: dict[str, Json]) -> None:
                    if as_json:
                        console.line({"step": step, **found})
                        sys.stdout.flush()
                    waiting(f"after {step} of `{traffic or 'the path'}`")

                return run_path(
                    testbed,
                    opened,
                    asked,
                    traffic=traffic,
                    engine=engine,
                    variant=variant,
                    watch=watch,
                    max_memory=most,
                )

        record = console.agreed(yes, work)
    invalid = bool((record.result or {}).get("invalid_runs"))
    if as_json:
        console.line({"id": record.id, "traffic": record.traffic, "result": record.result})
        raise typer.Exit(console.FAILED if invalid else console.OK)
    from engpass.show.terminal import print_blocks
    from engpass.views.search import view

    print_blocks(view(record), console.tables())
    at = "" if store == options.STORE else f" --store {store}"
    console.tell(f"path {record.id} is stored in `{store}`; `engpass show {record.id}{at}` shows it")
    raise typer.Exit(console.FAILED if invalid else console.OK)
