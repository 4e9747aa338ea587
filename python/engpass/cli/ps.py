"""`engpass ps`: lists the testbeds that are up on this machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from engpass.cli import console, options

if TYPE_CHECKING:
    from engpass.netlab import Lab


def command(as_json: options.Json = False) -> None:
    """List the testbeds that are up on this machine: engine, hosts, start time."""
    from engpass import netlab

    labs = netlab.labs()
    if as_json:
        for lab in labs:
            console.line(msgspec.to_builtins(listed(lab)))
        return
    if not labs:
        console.tell("no testbed is up; `engpass up FILE` creates one")
        return
    from engpass.show.blocks import Cell, Lines, Table, columns
    from engpass.show.terminal import print_blocks

    rows: list[list[Cell]] = [
        [
            lab.id,
            lab.name,
            lab.engine if lab.slow == 1 else f"{lab.engine}, {lab.slow} times slower",
            state(lab),
            lab.created[:19].replace("T", " "),
            Lines([f"{name} {' '.join(member.addresses)}" for name, member in lab.hosts().items()]),
            lab.file,
        ]
        for lab in labs
    ]
    heads = ("id", "testbed", "engine", "state", "since (UTC)", "hosts", "file")
    print_blocks([Table("", columns(*heads, left=len(heads)), rows)], console.tables())
    if any(lab.is_lost() for lab in labs):
        console.tell("`engpass clean` removes what a crash left behind")


def state(lab: Lab) -> str:
    """The state of a testbed in one or two words."""
    if lab.is_lost():
        return "left behind"
    return "in a run" if lab.state == "up" and lab.owner is not None else lab.state


class ListedNode(msgspec.Struct, frozen=True):
    """A node as `--json` prints it."""

    kind: str
    namespace: str
    addresses: tuple[str, ...]


class Listed(msgspec.Struct, frozen=True, kw_only=True):
    """A testbed as `--json` prints it."""

    id: str
    name: str
    file: str
    engine: str
    state: str
    since: str
    rootless: bool
    driver: int | None
    """Process id of the driver, which carries the packets; `None` if the kernel carries them."""
    slow: int
    nodes: dict[str, ListedNode]


def listed(lab: Lab) -> Listed:
    """The data of a testbed that `--json` prints."""
    return Listed(
        id=lab.id,
        name=lab.name,
        file=lab.file,
        engine=lab.engine,
        state=state(lab),
        since=lab.created,
        rootless=lab.keeper is not None,
        driver=lab.driver,
        slow=lab.slow,
        nodes={
            name: ListedNode(member.kind, member.namespace, member.addresses)
            for name, member in lab.members.items()
        },
    )
