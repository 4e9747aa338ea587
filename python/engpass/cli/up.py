"""`engpass up`: creates the hosts of a testbed as namespaces of this machine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

from engpass.cli import console, emulation, files, options
from engpass.cli.exec import typed
from engpass.plan import point_plan

if TYPE_CHECKING:
    from engpass.netlab import Lab

Engine = Annotated[
    str | None,
    typer.Option(
        "--engine",
        metavar="NAME",
        help="measure (the kernel carries the links) or emulate (the model); default: the first that can.",
    ),
]
Variant = Annotated[str | None, typer.Option("--variant", metavar="NAME", help="Variant (default: first).")]
Log = Annotated[
    str | None,
    typer.Option("--log", metavar="FILE", help="Log the inputs and outputs of an emulated network."),
]


def command(
    file: options.File,
    engine: Engine = None,
    variant: Variant = None,
    set_: options.Set = None,
    clock: emulation.Clock = None,
    slow: emulation.Slow = None,
    wire_true: emulation.WireTrue = False,
    tap: emulation.Tap = False,
    limit: emulation.Limit = None,
    log: Log = None,
    capture: options.Capture = None,
    capture_as: options.CaptureAs = None,
    capture_limit: options.CaptureLimit = None,
    as_json: options.Json = False,
) -> None:
    """Create the hosts of a testbed as network namespaces, connected as in the file.

    With `measure` the kernel carries the links: Ethernet switches become bridges, and routers become
    forwarding namespaces. With `emulate` the model carries them in real time, with all features of
    `simulate`. `engpass exec` and `engpass shell` run programs in the hosts, `engpass watch` shows the
    traffic between them, and `engpass down` removes everything.
    """
    from pathlib import Path

    from engpass import netlab
    from engpass.campaign import choose
    from engpass.capture import check_points
    from engpass.netlab import veth
    from engpass.testbed import load

    if file == "-":
        console.fail("`engpass up` cannot read standard input", "write the testbed to a file")
    captures = options.captures(capture, capture_as, capture_limit)
    logs = [("the log", log)] if log is not None else []
    files.apart([("the testbed", file), *logs, *options.named(captures)])
    how = emulation.options(clock, slow, limit, log, wire_true=wire_true, tap=tap, captures=captures)
    testbed = load(file, options.overrides(set_))
    wanted = choose("variant", [variant] if variant else testbed.variants[:1], testbed.variants)[0]
    if [found["code"] for found in testbed.warnings] != ["no-traffic"]:
        console.tell_warnings(testbed, [wanted], as_json=as_json)
    if captures is not None:
        check_points(captures, testbed.campaign, wanted, [])
    numbers = point_plan(testbed.campaign, wanted, [])
    given = any(value is not None for value in (clock, slow, limit, log, captures)) or wire_true or tap
    # Only `emulate` has these options, so that giving one selects it.
    chosen = netlab.choose_engine(numbers, engine or ("emulate" if given else None))
    if given and chosen != "emulate":
        console.fail(
            f"`--engine {chosen}` has no emulated network",
            "remove `--clock`, `--slow`, `--limit`, `--log`, `--wire-true`, `--tap` and `--capture`,"
            " or use `--engine emulate`",
        )
    network = netlab.Network(
        testbed.text, testbed.source, testbed.overrides, wanted, testbed.seed, options=how
    )
    lab = netlab.up(testbed.name, str(Path(file).resolve()), numbers, chosen, network=network)
    for note in veth.notes(numbers) if chosen == "measure" else how.notes():
        console.tell(f"note: {note}")
    _tell_clashes(lab)
    if as_json:
        from engpass.cli.ps import listed

        console.line(msgspec.to_builtins(listed(lab)))
        return
    for name, member in lab.hosts().items():
        console.out(f"{name}: {', '.join(member.addresses) or 'no link'}")
    first = next(iter(lab.hosts()), "HOST")
    console.tell(f"up as {lab.id}; `{typed(file, first)}` runs a program in `{first}`")


def _tell_clashes(lab: Lab) -> None:
    """Warn about hosts that get no address variable because several would share its name."""
    from engpass.netlab import host_variables

    for name, hosts in host_variables.clashes(lab.hosts()).items():
        told = ", ".join(f"`{host}`" for host in hosts)
        console.tell(
            f"warning: {told} would share the variable `{name}`: it is not set\n"
            "help: rename all but one of them; `engpass ps` has the addresses, and `exec` accepts the names"
        )
