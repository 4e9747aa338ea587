"""`engpass up`: the hosts of a testbed as namespaces of this machine."""

from __future__ import annotations

from typing import Annotated

import typer

from engpass.cli import console, options

Engine = Annotated[
    str | None,
    typer.Option(
        "--engine", metavar="NAME", help="What carries the links; the engine that can, if not given."
    ),
]
Variant = Annotated[
    str | None, typer.Option("--variant", metavar="NAME", help="The variant; the first if not given.")
]


def command(
    file: options.File,
    engine: Engine = None,
    variant: Variant = None,
    set_: options.Set = None,
    as_json: options.Json = False,
) -> None:
    """Make the hosts of a testbed as network namespaces, joined as the file says.

    Ethernet switches become bridges, routers namespaces that forward; links are shaped to their rates.
    `engpass exec` and `engpass shell` run programs in the hosts, `engpass down` removes all of it.
    """
    import json
    from pathlib import Path

    from engpass import netlab
    from engpass.campaign import choose
    from engpass.netlab import veth
    from engpass.testbed import load

    if file == "-":
        console.fail("a testbed that stays up needs a file", "write it to a file, and name that")
    testbed = load(file, options.overrides(set_))
    console.tell_warnings(testbed, as_json=as_json)
    wanted = choose("variant", [variant] if variant else testbed.variants[:1], testbed.variants)[0]
    numbers = json.loads(testbed.campaign.numbers(wanted, []))
    lab = netlab.up(testbed.name, str(Path(file).resolve()), numbers, engine)
    for note in veth.notes(numbers):
        console.tell(f"note: {note}")
    if as_json:
        from engpass.cli.ps import as_data

        console.line(as_data(lab))
        return
    for name, member in lab.hosts().items():
        console.out(f"{name}: {', '.join(member.addresses) or 'no link'}")
    first = next(iter(lab.hosts()), "HOST")
    console.tell(f"up as {lab.id}; `engpass exec {file} {first} -- COMMAND` runs a program in `{first}`")
