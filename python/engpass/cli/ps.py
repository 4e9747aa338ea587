"""`engpass ps`: which testbeds are up on this machine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engpass.cli import console, options

if TYPE_CHECKING:
    from engpass.netlab import Lab


def command(as_json: options.Json = False) -> None:
    """List the testbeds that are up on this machine: engine, hosts, since when."""
    from engpass import netlab

    labs = netlab.labs()
    if as_json:
        for lab in labs:
            console.line(as_data(lab))
        return
    if not labs:
        console.tell("no testbed is up; `engpass up FILE` makes one")
        return
    from rich.table import Table

    table = Table("id", "testbed", "engine", "state", "since (UTC)", "hosts", "file")
    for lab in labs:
        hosts = "\n".join(f"{name} {' '.join(member.addresses)}" for name, member in lab.hosts().items())
        since = lab.created[:19].replace("T", " ")
        engine = lab.engine if lab.slow == 1 else f"{lab.engine}, {lab.slow} times slower"
        table.add_row(lab.id, lab.name, engine, state(lab), since, hosts, lab.file)
    console.tables().print(table)
    if any(lab.is_lost() for lab in labs):
        console.tell("`engpass clean` removes what was left behind")


def state(lab: Lab) -> str:
    """How a testbed is, in a word or two."""
    if lab.is_lost():
        return "left behind"
    return "in a run" if lab.state == "up" and lab.owner is not None else lab.state


def as_data(lab: Lab) -> dict[str, Any]:
    """A testbed as JSON data."""
    return {
        "id": lab.id,
        "name": lab.name,
        "file": lab.file,
        "engine": lab.engine,
        "state": state(lab),
        "since": lab.created,
        "rootless": lab.keeper is not None,
        "driver": lab.driver,
        "slow": lab.slow,
        "nodes": {
            name: {"kind": member.kind, "namespace": member.namespace, "addresses": list(member.addresses)}
            for name, member in lab.members.items()
        },
    }
