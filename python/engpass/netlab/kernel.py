"""Runs `ip` and `tc` with the rights that they need: as root, or in a user namespace."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec

from engpass import child
from engpass.error import EngpassError

_CAP_NET_ADMIN, _CAP_SYS_ADMIN = 12, 21
_SECONDS = 20

INDEPENDENT = {
    # By default Linux keeps fragments of incomplete datagrams for 30 s, and reassembles no more once they
    # fill 4 MiB: losses in one point would cause losses in later points.
    "net/ipv4/ipfrag_time": "1",
    "net/ipv4/ipfrag_high_thresh": str(64 << 20),
    # By default Linux uses path metrics of a connection as start values for later connections.
    "net/ipv4/tcp_no_metrics_save": "1",
}
"""Settings of a host's namespace that keep one point from changing the next."""


class LabError(EngpassError):
    """A testbed cannot be made on this machine, or does not exist."""


class Kernel(msgspec.Struct, frozen=True):
    """Runs commands where the namespaces of a testbed are."""

    prefix: tuple[str, ...] = ()
    """Words before every command: none for root, else `nsenter` into the namespaces of the keeper process."""

    def inside(self, namespace: str, command: Sequence[str]) -> list[str]:
        """The full command that runs `command` in a namespace."""
        return [*self.prefix, "ip", "netns", "exec", namespace, *command]

    def batch(self, tool: str, namespace: str | None, lines: Iterable[str]) -> None:
        """Run lines of `ip` or `tc` in one process. Raises `LabError` with the line that failed."""
        given = list(lines)
        if not given:
            return
        at = ["-n", namespace] if namespace is not None else []
        done = self._run([tool, *at, "-batch", "-"], "\n".join(given) + "\n")
        if done.returncode == 0:
            return
        said = " ".join(done.stderr.split())
        number = _failed_line(done.stderr)
        line = given[number - 1] if number is not None and number <= len(given) else given[0]
        where = f" in `{namespace}`" if namespace is not None else ""
        raise LabError(f"`{tool} {line}` failed{where}: {said}", _cure(said))

    def sets(self, namespace: str, values: dict[str, str], where_there: dict[str, str] | None = None) -> None:
        """Write values under `/proc/sys` in a namespace; those of `where_there` only if the kernel has them.

        Raises `LabError`.
        """
        script = "".join(f"echo {value} > /proc/sys/{path}\n" for path, value in values.items())
        for path, value in (where_there or {}).items():
            script += f"if [ -w /proc/sys/{path} ]; then echo {value} > /proc/sys/{path}; fi\n"
        done = self._run(self.inside(namespace, ["sh", "-e", "-c", script])[len(self.prefix) :], "")
        if done.returncode != 0:
            raise LabError(f"`{namespace}` cannot be configured: {' '.join(done.stderr.split())}")

    def namespaces(self) -> list[str]:
        """Names of all network namespaces."""
        done = self._run(["ip", "netns", "list"], "")
        return [line.split()[0] for line in done.stdout.splitlines() if line.strip()]

    def processes(self, namespace: str) -> list[int]:
        """The ids of the processes in a namespace."""
        done = self._run(["ip", "netns", "pids", namespace], "")
        return [int(word) for word in done.stdout.split()] if done.returncode == 0 else []

    def _run(self, command: Sequence[str], given: str) -> subprocess.CompletedProcess[str]:
        try:
            return subprocess.run(  # noqa: S603 (our own words, no shell)
                [*self.prefix, *command],
                input=given,
                capture_output=True,
                text=True,
                timeout=_SECONDS,
                check=False,
                # In its own session the command gets no Ctrl-C. It runs to its end, and what it created is
                # removed after that.
                start_new_session=True,
                env=child.environment(),
            )
        except FileNotFoundError:
            raise missing_tool(command[0] if not self.prefix else "nsenter") from None
        except subprocess.TimeoutExpired:
            raise LabError(
                f"`{command[0]}` did not end within {_SECONDS} s", "check whether the machine is overloaded"
            ) from None


def _failed_line(said: str) -> int | None:
    """The number in `Command failed -:7`, which is that of the line that failed; `None` without one."""
    _, found, rest = said.rpartition("Command failed -:")
    digits = rest.strip().split()[0] if found and rest.strip() else ""
    return int(digits) if digits.isdigit() else None


def _cure(said: str) -> str | None:
    if "qdisc kind is unknown" in said:
        return "this kernel does not support the queue discipline: load `sch_tbf`, or use `--engine emulate`"
    if "Operation not permitted" in said:
        return "it needs CAP_NET_ADMIN and CAP_SYS_ADMIN: run as root"
    if "Unknown device type" in said or "Operation not supported" in said:
        return "this kernel does not support `veth` or `bridge`: load or build them"
    return None


def missing_tool(tool: str) -> LabError:
    """The error if a program is not installed."""
    package = {"ip": "iproute2", "tc": "iproute2", "unshare": "util-linux", "nsenter": "util-linux"}.get(
        tool, tool
    )
    if tool == "sh":
        return LabError("`sh` is not in PATH", "add its directory to PATH, `/bin` on most machines")
    return LabError(f"`{tool}` is not installed, or not in PATH", f"install it: `apt install {package}`")


def privileged() -> bool:
    """True if this process has the capabilities to make namespaces and devices."""
    try:
        status = Path("/proc/self/status").read_text(encoding="ascii", errors="replace")
    except OSError:
        return False
    effective = next((line.split()[1] for line in status.splitlines() if line.startswith("CapEff:")), "0")
    have = int(effective, 16)
    return bool(have >> _CAP_NET_ADMIN & 1 and have >> _CAP_SYS_ADMIN & 1)


def check_tools() -> None:
    """Extend PATH by `/usr/sbin` and `/sbin`. Raises `LabError` if `ip`, `tc` or `sh` is missing."""
    # `ip` and `tc` are in /usr/sbin, which is not in every user's PATH.
    for directory in ("/usr/sbin", "/sbin"):
        if directory not in os.environ.get("PATH", "").split(os.pathsep):
            os.environ["PATH"] = os.environ.get("PATH", os.defpath) + os.pathsep + directory
    for tool in ("ip", "tc", "sh"):
        if child.find(tool) is None:
            raise missing_tool(tool)


# The tmpfs hides root's `/run/netns`, so that `ip netns` keeps its names in a private directory.
_KEEPER = "mount -t tmpfs engpass /run && mkdir /run/netns && echo ready && exec sleep infinity"


def keeper() -> int:
    """Start a process that holds a user namespace with the rights of root; returns its process id.

    Its namespaces, with all in them, vanish when the process ends. Raises `LabError` if it cannot be started.
    """
    for tool in ("unshare", "nsenter"):
        if child.find(tool) is None:
            raise missing_tool(tool)
    process = subprocess.Popen(  # noqa: S603 (our own words, no shell)
        ["unshare", "--user", "--map-root-user", "--net", "--mount", "sh", "-c", _KEEPER],  # noqa: S607 (checked)
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        cwd="/",
        env=child.environment(),
    )
    assert process.stdout is not None  # noqa: S101 (asked for above)
    assert process.stderr is not None  # noqa: S101
    if process.stdout.readline().strip() == "ready":
        process.stdout.close()
        process.stderr.close()
        # The keeper outlives this process on purpose: avoid Python's warning that it still runs.
        process.returncode = 0
        return process.pid
    said = " ".join(process.stderr.read().split())
    process.kill()
    process.wait()
    raise LabError(
        "namespaces need root (CAP_NET_ADMIN and CAP_SYS_ADMIN) or a user namespace, and user namespaces are"
        f" refused here: {said or 'no reason given'}",
        _without_user_namespaces(),
    )


def _without_user_namespaces() -> str:
    for path, off, name in (
        ("/proc/sys/kernel/unprivileged_userns_clone", "0", "kernel.unprivileged_userns_clone=1"),
        (
            "/proc/sys/kernel/apparmor_restrict_unprivileged_userns",
            "1",
            "kernel.apparmor_restrict_unprivileged_userns=0",
        ),
        ("/proc/sys/user/max_user_namespaces", "0", "user.max_user_namespaces=1000"),
    ):
        try:
            value = Path(path).read_text(encoding="ascii").strip()
        except OSError:
            continue
        if value == off:
            return f"run as root (`sudo`), or ask the owner of the machine to allow it: `sysctl {name}`"
    return "run as root (`sudo`)"


def into(keeper_id: int) -> Kernel:
    """A `Kernel` that runs commands in the namespaces of a keeper process."""
    target = str(keeper_id)
    return Kernel(("nsenter", "--target", target, "--user", "--mount", "--net", "--preserve-credentials"))


def start_time(process: int) -> int | None:
    """Start time of a process in ticks since boot, which tells it from a later one with the same id.

    `None` if the process has ended.
    """
    try:
        text = Path(f"/proc/{process}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    rest = text.rpartition(")")[2].split()
    # A zombie counts as ended, since it holds no resources.
    return None if rest[0] == "Z" else int(rest[19])


def end(process: int, number: signal.Signals) -> None:
    """Send a signal to a process; nothing happens if it has ended."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(process, number)
