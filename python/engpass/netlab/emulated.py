"""Carries packets between namespaces through the model of `simulate` in real time, for `--engine emulate`.

Only hosts are namespaces. Each has one TUN device (TAP with `--tap`) and one address of IPv4 and of IPv6. The
driver, a separate process, reads the packets of a host, carries them through the model and delivers each when
its time has come.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import shlex
import signal
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path

import msgspec
from msgspec.structs import replace

from engpass import child
from engpass.emulation import Options
from engpass.jsondata import Json
from engpass.netlab import kernel as kernels
from engpass.netlab import registry
from engpass.netlab.control import told
from engpass.netlab.egress_shaping import held
from engpass.netlab.kernel import LabError
from engpass.netlab.layout import DEVICE, LEAST_IPV6_BYTES, TAP, Station, routers, stations
from engpass.netlab.registry import Lab, Member
from engpass.types.plan import PointPlan, WayPlan

DRIVER = "ENGPASS_DRIVER"
"""Environment variable with another command that starts drivers."""

READY_SECONDS = 10.0
"""Seconds in which a driver must be ready; later it counts as failed."""

_TUN = Path("/dev/net/tun")
_END_SECONDS = 3.0
_MOST_MTU_BYTES = 65_535
_LEAST_MTU_BYTES = 68  # RFC 791
_USUAL_MTU_BYTES = 1500
# Length of the IP and TCP headers without options (RFC 791, RFC 8200, RFC 9293).
_IPV4_TCP_BYTES, _IPV6_TCP_BYTES = 40, 60
_QUEUE_PACKETS = 4096  # packets that a device holds for the driver
_TAIL_BYTES = 4000


class Network(msgspec.Struct, frozen=True):
    """The network that a driver carries: a point of a campaign, with options."""

    text: str
    source: str
    overrides: tuple[tuple[str, str], ...]
    variant: str
    seed: int
    sweep: tuple[tuple[str, str], ...] = ()
    options: Options = Options()
    asked_for_events: bool = False
    """True if the file's events begin when the driver gets the request `events`, and not at once."""


def cannot(numbers: PointPlan) -> list[str]:
    """Reasons why a testbed cannot be emulated on this machine; empty if it can."""
    reasons = []
    if not numbers.links:
        reasons.append("it has no links")
    if not _TUN.exists():
        reasons.append(f"this machine has no `{_TUN}`: load or build the kernel's `tun`")
    elif not os.access(_TUN, os.R_OK | os.W_OK):
        reasons.append(f"`{_TUN}` cannot be opened: ask its owner for `chmod 666 {_TUN}`, or run as root")
    return reasons


def check_tap(numbers: PointPlan) -> None:
    """Raise `LabError` if a link of a host carries no Ethernet frames."""
    for link in numbers.links:
        host = next((end for end in link.ends if end in numbers.hosts), None)
        if host is not None and link.framing != "ethernet":
            raise LabError(
                f"host `{host}` has no Ethernet device: its link `{link.name}` carries no Ethernet frames",
                "remove `--tap`, or give all links of hosts an Ethernet medium",
            )


def members(lab: Lab, numbers: PointPlan) -> Lab:
    """The testbed with its hosts, and the addresses at which they reach each other."""
    plan = stations(numbers)
    there = {
        one.name: Member(lab.prefix + one.label, "host", _addresses(one, numbers)) for one in plan.values()
    }
    ways: dict[str, dict[str, str]] = {}
    for way in numbers.ways:
        ways.setdefault(way.from_, {})[way.to] = str(plan[way.to].address)
    return replace(lab, members=there, ways=ways)


def _addresses(station: Station, numbers: PointPlan) -> tuple[str, ...]:
    """The addresses of a host; without IPv6 if the MTU of every path is below the least that IPv6 needs."""
    mtus = [_mtu(way) for way in numbers.ways if station.name in (way.from_, way.to)]
    if mtus and max(mtus) < LEAST_IPV6_BYTES:
        return (str(station.address),)
    return str(station.address), str(station.address6)


def build(lab: Lab) -> None:
    """Make the namespaces of the hosts; the driver makes their devices later. Raises `LabError`."""
    kernel = lab.kernel
    kernel.batch("ip", None, [f"netns add {member.namespace}" for member in lab.members.values()])
    for member in lab.members.values():
        kernel.batch("ip", member.namespace, ["link set lo up"])
        kernel.sets(
            member.namespace,
            {
                "net/ipv4/conf/all/rp_filter": "0",
                "net/ipv4/conf/default/rp_filter": "0",
                **kernels.INDEPENDENT,
            },
            # In older kernels this setting is common to all namespaces, and missing in new ones.
            where_there={"net/ipv4/route/min_pmtu": str(_LEAST_MTU_BYTES)},
        )


def start(lab: Lab, numbers: PointPlan, network: Network) -> Lab:
    """Start the driver and configure the hosts; returns the testbed with its driver.

    Raises `LabError`. A driver that was started then ends by `stop`, or with the testbed.
    """
    plan = stations(numbers)
    if network.options.tap:
        check_tap(numbers)
    lab.socket.unlink(missing_ok=True)
    lab.ended.unlink(missing_ok=True)
    process = _spawn(lab)
    lab = replace(
        # The values of a point change the MTUs of paths, and thus the addresses.
        members(lab, numbers),
        driver=process.pid,
        driver_since=kernels.start_time(process.pid),
        slow=network.options.slow,
        captures=() if network.options.capture is None else tuple(network.options.capture.paths()),
        log=network.options.log,
    )
    # Registered before the driver does anything, so that `clean` finds it in any case.
    registry.write(lab)
    try:
        _ready(process, lab, _config(lab, numbers, plan, network))
    except BaseException:
        stop(lab)
        raise
    _join(lab, numbers, plan, network.options)
    return lab


def stop(lab: Lab) -> Lab:
    """End the driver by request, then by SIGTERM and SIGKILL; its devices vanish with it."""
    if lab.driver is None:
        return lab
    told(lab.socket, "stop")
    for number in (signal.SIGTERM, signal.SIGKILL):
        if _ended(lab, 0.0):
            break
        kernels.end(lab.driver, number)
        _ended(lab, _END_SECONDS)
    lab.socket.unlink(missing_ok=True)
    return replace(lab, driver=None, driver_since=None)


class Written(msgspec.Struct, frozen=True):
    """Report of a driver that has ended on its files."""

    captured: tuple[dict[str, Json], ...] = ()
    """A report for every capture file, as in `docs/driver.md`."""
    broken_log: dict[str, str] | None = None
    """The `path` of a log that is incomplete, and the `error`; `None` if the log is complete."""


def written(lab: Lab) -> Written:
    """Read the reports of a driver that has ended on its captures and its log."""
    unknown = "its driver ended without an error message"
    try:
        told = json.loads(lab.ended.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        # The driver was killed and has left no report.
        told = {"captured": [], "log": {"error": unknown}}
    known = {file["path"]: file for file in told["captured"]}
    captured = (known.get(path, {"path": path, "error": unknown}) for path in lab.captures)
    error = (told["log"] or {}).get("error")
    broken = None if lab.log is None or error is None else {"path": lab.log, "error": str(error)}
    return Written(tuple(captured), broken)


def why_ended(lab: Lab) -> str | None:
    """How the driver of a lab ended, as a sentence; `None` if there is none or it still runs."""
    if lab.driver is None or lab.has_driver():
        return None
    if lab.ended.exists():
        return "a signal stopped it"
    if said := _tail(lab.said):
        return f"its message: {said}"
    return "it was probably killed: there is no error message"


def _ended(lab: Lab, seconds: float) -> bool:
    """Wait at most `seconds` for the end of the driver; returns True if it has ended."""
    assert lab.driver is not None  # noqa: S101 (its caller has looked)
    last = time.monotonic() + seconds
    while True:
        with contextlib.suppress(ChildProcessError):
            os.waitpid(lab.driver, os.WNOHANG)
        if not lab.has_driver():
            return True
        if time.monotonic() >= last:
            return False
        time.sleep(0.005)


def _spawn(lab: Lab) -> subprocess.Popen[bytes]:
    given = os.environ.get(DRIVER)
    command = shlex.split(given) if given else child.interpreter("engpass.netlab.driver")
    inside: list[str] = []
    if lab.keeper is not None:
        # The mount namespace is not entered, because the driver's socket and log are outside of it.
        inside = ["nsenter", "--target", str(lab.keeper), "--user", "--net", "--preserve-credentials"]
    with lab.said.open("wb") as said:
        try:
            return subprocess.Popen(  # noqa: S603 (our own words, no shell)
                [*inside, *command],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=said,
                # The driver outlives the command that started it, and must keep no directory in use.
                start_new_session=True,
                cwd="/",
                env=child.environment(),
            )
        except OSError as error:
            raise LabError(
                f"`{(inside or command)[0]}` cannot be run: {error.strerror}", "install it"
            ) from None


def _config(lab: Lab, numbers: PointPlan, plan: Mapping[str, Station], network: Network) -> dict[str, Json]:
    options = network.options
    capture = {} if options.capture is None else {"capture": options.capture.to_config()}
    root = "" if lab.keeper is None else f"/proc/{lab.keeper}/root"
    return {
        "testbed": {
            "text": network.text,
            "source": network.source,
            "overrides": [list(pair) for pair in network.overrides],
            "variant": network.variant,
            "sweep": [list(pair) for pair in network.sweep],
        },
        "seed": network.seed,
        "hosts": [
            {
                "name": one.name,
                "netns": f"{root}/run/netns/{lab.members[one.name].namespace}",
                "device": TAP if options.tap else DEVICE,
                "kind": "tap" if options.tap else "tun",
                "addresses": [str(one.address), str(one.address6)],
            }
            for one in plan.values()
        ],
        "routers": routers(numbers),
        "clock": options.clock,
        "limit": options.limit,
        "slow": options.slow,
        "wire_true": options.wire_true,
        "socket": str(lab.socket),
        "log": options.log,
        **({"events": "when-asked"} if network.asked_for_events else {}),
        **capture,
    }


def _ready(process: subprocess.Popen[bytes], lab: Lab, config: Mapping[str, Json]) -> None:
    """Send a driver its configuration and wait until it is up. Raises `LabError` with its error output."""
    assert process.stdin is not None  # noqa: S101 (asked for)
    assert process.stdout is not None  # noqa: S101
    line = b""
    # If the driver has ended already the pipe is broken; the end is reported below.
    with contextlib.suppress(BrokenPipeError):
        process.stdin.write(json.dumps(config).encode())
    with contextlib.suppress(BrokenPipeError):
        process.stdin.close()
    last = time.monotonic() + READY_SECONDS
    with process.stdout as stream:
        while not line.endswith(b"\n") and (left := last - time.monotonic()) > 0:
            if select.select([stream], [], [], left)[0]:
                piece = os.read(stream.fileno(), 1 << 20)
                if not piece:
                    break
                line += piece
    # The driver outlives this process on purpose: avoid Python's warning that it still runs.
    ended = process.poll()
    process.returncode = 0
    if line.endswith(b"\n"):
        return
    said = _tail(lab.said)
    if not line and ended is None and time.monotonic() >= last:
        cause = f"the driver is not ready after {READY_SECONDS:.0f} s"
        raise LabError(cause + (f": {said}" if said else ""), "check whether the machine is overloaded")
    cause, _, cure = said.partition("\nhelp: ")
    if child.NOT_FOUND in cause:
        cure = child.NOT_FOUND_CURE
    raise LabError(
        f"the network cannot be emulated: {cause or 'its driver ended without an error message'}",
        cure or None,
    )


def _tail(path: Path) -> str:
    """The last message in a driver's error output: a whole message, or the last line of a traceback."""
    try:
        text = path.read_bytes()[-_TAIL_BYTES:].decode("utf-8", "replace").strip()
    except OSError:
        return ""
    return text.splitlines()[-1] if text.startswith("Traceback") else text


def _join(lab: Lab, numbers: PointPlan, plan: Mapping[str, Station], options: Options) -> None:
    """Configure the devices of hosts: addresses, routes with the MTU of each path, and queue disciplines."""
    device = TAP if options.tap else DEVICE
    groups = _groups(numbers)
    for name, station in plan.items():
        there = {way.to: way for way in numbers.ways if way.from_ == name}
        back = {way.from_: way for way in numbers.ways if way.to == name}
        mtus = {other: _mtu(way) for other, way in there.items()}
        # Routes set the MTU of each path; a device with an MTU below 1280 B could have no IPv6 at all.
        largest = max([*map(_route_mtu, (*there.values(), *back.values())), _USUAL_MTU_BYTES])
        lines = [
            # No automatic addresses and no multicast, since their traffic would be undeclared.
            f"link set {device} addrgenmode none multicast off mtu {largest} txqueuelen {_QUEUE_PACKETS}",
            f"address add {station.address}/32 dev {device}",
            *(f"address add {own}/128 dev {device} nodad" for own in _addresses(station, numbers)[1:]),
            f"link set {device} up",
        ]
        for other, mtu in mtus.items():
            both = there[other], back.get(other)
            lines.append(
                f"route add {plan[other].address}/32 dev {device} {_lengths(*both, _IPV4_TCP_BYTES)}"
            )
            if mtu >= LEAST_IPV6_BYTES:
                how = _lengths(*both, _IPV6_TCP_BYTES)
                lines.append(f"route add {plan[other].address6}/128 dev {device} {how}")
        for group, receivers in groups.items():
            mtu = min((mtus[one] for one in receivers if one in mtus), default=largest)
            if ":" not in group:
                # The type keeps the route apart from those to hosts: Linux shares a cache among routes that
                # differ in their address alone, and packets to a host then get a group's time to live.
                lines.append(f"route add multicast {group}/32 dev {device} mtu lock {mtu}")
            elif mtu >= LEAST_IPV6_BYTES:
                lines.append(f"route add multicast {group}/128 dev {device} table local mtu lock {mtu}")
        namespace = lab.members[name].namespace
        lab.kernel.batch("ip", namespace, lines)
        lab.kernel.batch(
            "tc",
            namespace,
            held(numbers, station, plan, largest, options.slow, whole=options.wire_true, tap=options.tap),
        )


def _groups(numbers: PointPlan) -> dict[str, list[str]]:
    """The multicast groups of the testbed's flows, each with its receivers."""
    found: dict[str, list[str]] = {}
    for flow in numbers.flows:
        if flow.group is not None:
            found.setdefault(flow.group, []).extend(flow.to)
    return found


def _mtu(way: WayPlan) -> int:
    return _possible(way.mtu_bytes)


def _route_mtu(way: WayPlan) -> int:
    """MTU of a host's route in bytes: the first link's if the host discovers path MTUs, else the path's."""
    return _possible(way.first_mtu_bytes if way.discovers_mtu else way.mtu_bytes)


def _possible(mtu_bytes: int) -> int:
    return max(_LEAST_MTU_BYTES, min(mtu_bytes, _MOST_MTU_BYTES))


def _lengths(there: WayPlan, back: WayPlan | None, headers: int) -> str:
    """The MTU and the offered MSS of a route, as `ip route` takes them.

    Messages from routers never change a locked MTU. The MSS lets a sender that discovers the path MTU begin
    with segments that fill the receiver's link. `headers` are the bytes of the IP and TCP headers.
    """
    lock = "" if there.discovers_mtu else "lock "
    offered = f" advmss {_route_mtu(back) - headers}" if back is not None and back.discovers_mtu else ""
    return f"mtu {lock}{_route_mtu(there)}{offered}"
