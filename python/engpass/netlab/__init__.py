"""Testbeds on this machine, with network namespaces as hosts.

`up` makes a testbed, `down` removes it, and `clean` removes the remains of crashes. Packets cross veth pairs
(`veth`) with `--engine measure`, and the model (`emulated`) with `--engine emulate`.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from pathlib import Path
from shlex import quote

import msgspec
from msgspec.structs import replace

from engpass.emulation import Files
from engpass.environment import now
from engpass.error import ChoiceError, nearest
from engpass.interruption import ended_as_by_ctrl_c
from engpass.netlab import emulated, output_claims, registry, veth
from engpass.netlab import kernel as kernels
from engpass.netlab.emulated import Network, Written
from engpass.netlab.kernel import Kernel, LabError
from engpass.netlab.layout import Layout, layout
from engpass.netlab.output_claims import claimed
from engpass.netlab.registry import Lab, Member
from engpass.types.plan import PointPlan

__all__ = [
    "Lab",
    "LabError",
    "Network",
    "choose_engine",
    "claimed",
    "clean",
    "down",
    "find",
    "labs",
    "member",
    "up",
]

ENGINES = ("measure", "emulate")
"""The engines that can carry a testbed on this machine, in the order in which they are tried."""

_GRACE_SECONDS = 2.0


def choose_engine(numbers: PointPlan, wanted: str | None = None) -> str:
    """The engine that carries a testbed: the wanted one, else the first that can.

    Raises `ChoiceError` for an unknown engine, `LabError` if none can carry it.
    """
    if wanted is not None and wanted not in ENGINES:
        raise ChoiceError(f"`{wanted}` is not an engine for `engpass up`", nearest(wanted, ENGINES))
    reached = [name for name, host in numbers.hosts.items() if host.reach is not None]
    if reached:
        raise LabError(
            f"host `{reached[0]}` exists already, because it has `reach`: `engpass up` only creates hosts",
            "send the traffic between existing hosts with `engpass run FILE --engine measure`,"
            " or remove `reach` from all hosts",
        )
    cannot = {"measure": veth.cannot, "emulate": emulated.cannot}
    reasons: dict[str, list[str]] = {}
    for engine in ENGINES if wanted is None else (wanted,):
        reasons[engine] = cannot[engine](numbers)
        if not reasons[engine]:
            return engine
    if not numbers.links:
        raise LabError(
            "there is nothing to emulate: this testbed has no links",
            "connect its hosts by a link, or use `--engine measure`, for which hosts need no links",
        )
    said = "; ".join(f"`{engine}`: {_some(found)}" for engine, found in reasons.items())
    raise LabError(
        f"Engpass cannot create the hosts of this testbed: {said}",
        "`--engine measure` creates Ethernet and point-to-point links without delays, with rates, MTUs and"
        " drop-tail queues; `--engine emulate` creates all that `simulate` supports, and needs the kernel's"
        " `tun`",
    )


def _some(reasons: list[str]) -> str:
    return reasons[0] + (f", and {len(reasons) - 1} more" if len(reasons) > 1 else "")


def up(
    name: str,
    file: str,
    numbers: PointPlan,
    engine: str | None = None,
    *,
    temporary: bool = False,
    network: Network | None = None,
    files: Files | None = None,
) -> Lab:
    """Make a testbed. It is removed again if that fails, or by `clean` if this process is killed.

    A `temporary` testbed lives as long as this process. An emulated one needs the `network` that its driver
    carries. Without it only the namespaces are made; `emulated.start` comes later, and `files` are those that
    its drivers will write. Raises `LabError`, also if another process writes one of the files.
    """
    chosen = choose_engine(numbers, engine)
    kernels.check_tools()
    if files is None:
        files = Files() if network is None else network.options.files()
    with ended_as_by_ctrl_c():
        lab = _enter(name, file, chosen, files.absolute(), temporary=temporary)
        try:
            lab = _keep(lab)
            lab = _emulated(lab, numbers, network) if chosen == "emulate" else _wired(lab, numbers)
            owner = lab.owner if temporary else None
            lab = replace(lab, state="up", owner=owner, owner_since=lab.owner_since if temporary else None)
            registry.write(lab)
        except BaseException:
            # The registry may know of a driver that `lab` does not have yet.
            down(registry.latest(lab))
            raise
    return lab


def _wired(lab: Lab, numbers: PointPlan) -> Lab:
    plan = layout(numbers)
    lab = _planned(lab, plan)
    veth.build(lab.kernel, plan, {node: member.namespace for node, member in lab.members.items()})
    return lab


def _emulated(lab: Lab, numbers: PointPlan, network: Network | None) -> Lab:
    lab = emulated.members(lab, numbers)
    registry.write(lab)
    emulated.build(lab)
    return lab if network is None else emulated.start(lab, numbers, network)


def _enter(name: str, file: str, engine: str, files: Files, *, temporary: bool) -> Lab:
    with registry.locked():
        known = registry.all_labs()
        same = [lab for lab in known if lab.file == file and not lab.is_lost() and lab.owner is None]
        if same and not temporary:
            raise LabError(
                f"`{file}` is already up, since {same[0].created[:19].replace('T', ' ')} UTC",
                f"`engpass exec {quote(file)} HOST -- COMMAND` uses it,"
                f" `engpass down {quote(file)}` removes it",
            )
        output_claims.check(files)
        lab = Lab(
            id=registry.fresh_id({lab.id for lab in known}),
            name=name,
            file=file,
            engine=engine,
            created=now(),
            state="starting",
            owner=os.getpid(),
            owner_since=kernels.start_time(os.getpid()),
            captures=files.captures,
            log=files.log,
            logs=files.logs,
        )
        registry.write(lab)
    return lab


def _keep(lab: Lab) -> Lab:
    """Add a process that holds a user namespace, if this one may not make namespaces itself."""
    if kernels.privileged():
        return lab
    keeper = kernels.keeper()
    lab = replace(lab, keeper=keeper, keeper_since=kernels.start_time(keeper))
    registry.write(lab)
    return lab


def _planned(lab: Lab, plan: Layout) -> Lab:
    members = {
        name: Member(
            lab.prefix + node.label,
            node.kind,
            tuple(str(port.address.ip) for port in node.ports if port.address is not None),
        )
        for name, node in plan.nodes.items()
    }
    ways: dict[str, dict[str, str]] = {}
    for (one, other), address in plan.ways.items():
        ways.setdefault(one, {})[other] = str(address)
    lab = replace(lab, members=members, ways=ways)
    registry.write(lab)
    return lab


def down(lab: Lab) -> Written:
    """Remove a testbed and end its processes; returns what its driver reports on the files that it wrote."""
    had_driver = lab.driver is not None
    lab = emulated.stop(lab)
    # The report of a driver is read only if one was started: else none of the files was written.
    written = emulated.written(lab) if had_driver else Written()
    if lab.keeper is None:
        _remove(Kernel(), [name for name in _namespaces() if name.startswith(lab.prefix)])
    elif kernels.start_time(lab.keeper) == lab.keeper_since:
        with contextlib.suppress(LabError):
            _remove(lab.kernel, [name for name in lab.kernel.namespaces() if name.startswith(lab.prefix)])
        kernels.end(lab.keeper, signal.SIGKILL)
    registry.forget(lab)
    return written


def _namespaces() -> list[str]:
    try:
        return [path.name for path in Path("/run/netns").iterdir()]
    except OSError:
        return []


def _remove(kernel: Kernel, namespaces: list[str]) -> None:
    """End the processes in namespaces (SIGTERM, later SIGKILL); remove the namespaces with their devices."""
    last = time.monotonic() + _GRACE_SECONDS
    number = signal.SIGTERM
    while left := [process for name in namespaces for process in kernel.processes(name)]:
        for process in left:
            kernels.end(process, number)
        if number is signal.SIGTERM and time.monotonic() > last:
            number, last = signal.SIGKILL, time.monotonic() + _GRACE_SECONDS
        elif number is signal.SIGKILL and time.monotonic() > last:
            break
        time.sleep(0.02)
    kernel.batch("ip", None, [f"netns delete {name}" for name in namespaces])


def labs() -> list[Lab]:
    """All testbeds in the registry, also those left behind by a crash, the oldest first."""
    return registry.all_labs()


def find(file: str, *, lost: bool = False) -> Lab:
    """The testbed that is up for a file, or that has this id. Raises `ChoiceError` if there is none.

    If none is up and `lost` is set, it may be one that a crash left behind.
    """
    if file == "-":
        raise ChoiceError(
            "standard input cannot name a testbed that is up",
            "give the file of the testbed, or the id that `engpass ps` shows",
        )
    known = labs()
    path = str(Path(file).resolve())
    there = [lab for lab in known if lab.state == "up" and not lab.is_lost()]
    for lab in there:
        if path == lab.file and lab.owner is None:
            return lab
    for lab in there:
        if file == lab.id:
            return lab
    left = [lab for lab in known if lab.is_lost() and (file == lab.id or path == lab.file)]
    if left and lost:
        return left[0]
    if any(lab.driver is not None and lab.owner is None for lab in left):
        raise ChoiceError(
            f"the driver of `{file}` has ended, and so has its network",
            f"`engpass down {quote(file)}` removes its remains, then `engpass up` creates it again",
        )
    raise ChoiceError(
        f"`{file}` is not up", f"`engpass up {quote(file)}` creates it; `engpass ps` lists all that are up"
    )


def member(lab: Lab, host: str) -> Member:
    """A node of a testbed. Raises `ChoiceError` if there is none, `LabError` if its namespace is gone."""
    found = lab.members.get(host)
    if found is None:
        raise ChoiceError(f"`{lab.name}` has no host `{host}`", nearest(host, list(lab.hosts())))
    there = _namespaces() if lab.keeper is None else lab.kernel.namespaces()
    if found.namespace not in there:
        raise LabError(
            f"the namespace of `{host}` is gone: another program removed `{found.namespace}`",
            f"`engpass down {lab.id}` removes the rest, `engpass up {quote(lab.file)}` creates it again",
        )
    return found


class Removed(msgspec.Struct, frozen=True):
    """Something that a crash left behind and `clean` has removed."""

    what: str
    """A name for the removed thing, for the user."""
    written: Written = msgspec.field(default_factory=Written)


def clean() -> list[Removed]:
    """Remove what crashes left behind, and nothing that is in use."""
    removed = []
    with registry.locked() as directory:
        known = labs()
        for lab in known:
            if lab.is_lost():
                written = down(lab)
                removed.append(Removed(f"testbed {lab.id} of `{lab.file}`", written))
        kept, claims = {lab.id for lab in labs()}, output_claims.claims()
        for path in directory.iterdir():
            if path.name in claims:
                continue
            if path.suffix == ".new" or (registry.is_ours(path) and path.stem not in kept):
                path.unlink(missing_ok=True)
                removed.append(Removed(f"`{path}`, which is not a testbed"))
        stray = [
            name for name in _namespaces() if (ours := registry.OURS.fullmatch(name)) and ours[1] not in kept
        ]
        if stray and kernels.privileged():
            _remove(Kernel(), stray)
            removed += [Removed(f"namespace `{name}`") for name in stray]
    return removed
