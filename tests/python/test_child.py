"""Child processes run no code from the working directory or from paths in `PYTHON…` variables."""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
import venv
from pathlib import Path

import pytest

from conftest import Cli, Program
from engpass import child
from engpass.netlab import kernel
from test_emulated import FAR

ROOT = Path(__file__).parents[2]
AGENT = child.interpreter("engpass", "agent")
DRIVER = child.interpreter("engpass.netlab.driver")

LOCAL = """\
name = "two agents of this host"
[host.a]
reach = "local"
[host.b]
reach = "local"
[link.wire]
ends = ["a", "b"]
medium = "ethernet-1g"
[traffic.paced]
kind = "udp-stream"
from = "a"
to = "b"
message = "500 B"
rate = "1 Mbit/s"
[run]
duration = "100 ms"
"""

emulates = pytest.mark.skipif(
    not kernel.privileged() or shutil.which("tc") is None or not os.access("/dev/net/tun", os.W_OK),
    reason="needs CAP_NET_ADMIN and CAP_SYS_ADMIN, `ip` and `tc`, and `/dev/net/tun`",
)


def modules_loaded_by(command: list[str], given: str) -> set[str]:
    """Names of the modules, without their packages, that a started program has imported when it ends."""
    python, *words = command
    done = subprocess.run(
        [python, "-X", "importtime", *words], input=given, capture_output=True, text=True, check=False
    )
    found = re.findall(r"^import time: .*\| +([\w.]+)$", done.stderr, re.MULTILINE)
    return {name.partition(".")[0] for name in found}


def plant(directory: Path, names: set[str]) -> Path:
    """Put a module of each name into a directory; returns the file in which each logs its import."""
    mark = directory / "imported.txt"
    for name in names:
        (directory / f"{name}.py").write_text(f"open({str(mark)!r}, 'a').write({name!r} + '\\n')\n")
    return mark


@pytest.fixture(scope="module")
def loaded() -> set[str]:
    """The modules of a started agent and a started driver."""
    # An agent ends with its input; a driver rejects an empty configuration after it has loaded everything.
    found = modules_loaded_by(AGENT, "") | modules_loaded_by(DRIVER, "{}")
    assert {"engpass", "typing", "typer", "encodings", "json", "signal"} <= found
    return found


def test_local_agents_import_nothing_from_the_current_directory(program: Program, loaded: set[str]) -> None:
    mark = plant(program.directory, loaded)
    (program.directory / "local.toml").write_text(LOCAL)
    program("run", "local.toml", "--engine", "measure", "--json")
    assert not mark.exists(), mark.read_text()


def test_local_agents_ignore_the_python_variables(
    cli: Cli, loaded: set[str], tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    planted = tmp_path_factory.mktemp("planted")
    mark = plant(planted, loaded)
    for name in ("PYTHONPATH", "PYTHONHOME", "PYTHONUSERBASE", "PYTHONPLATLIBDIR"):
        monkeypatch.setenv(name, str(planted))
    (cli.directory / "local.toml").write_text(LOCAL)
    cli("run", "local.toml", "--engine", "measure", "--json")
    assert not mark.exists(), mark.read_text()


@emulates
def test_driver_imports_nothing_from_the_current_directory(program: Program, loaded: set[str]) -> None:
    mark = plant(program.directory, loaded)
    (program.directory / "far.toml").write_text(FAR)
    program("run", "far.toml", "--engine", "emulate", "--limit", "1 s", "--json")
    assert not mark.exists(), mark.read_text()


def test_tools_are_not_looked_up_in_the_current_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for tool in ("ip", "nsenter"):
        (tmp_path / tool).write_text("#!/bin/sh\necho planted\n")
        (tmp_path / tool).chmod(0o755)
    monkeypatch.chdir(tmp_path)
    for path in (f":{os.environ['PATH']}", f".:{os.environ['PATH']}", f"{os.environ['PATH']}:"):
        monkeypatch.setenv("PATH", path)
        assert "planted" not in kernel.Kernel().namespaces()
        assert child.find("ip") != "ip"
        assert Path(child.find("nsenter") or "/").is_absolute()


def test_only_the_child_module_starts_interpreters() -> None:
    naming = {
        str(path.relative_to(ROOT))
        for folder in ("python/engpass", "benches")
        for path in (ROOT / folder).rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Attribute) and node.attr == "executable"
    }
    assert naming == {"python/engpass/child.py"}


@pytest.fixture
def bare(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make `sys.executable` an interpreter that finds the package only by `PYTHONPATH`."""
    home = tmp_path_factory.mktemp("venv")
    venv.create(home, with_pip=False, symlinks=True)
    monkeypatch.setenv("PYTHONPATH", str(ROOT / "python"))
    monkeypatch.setattr(sys, "executable", str(home / "bin" / "python"))


@pytest.mark.usefixtures("bare")
def test_agent_without_the_package_names_the_remedy(cli: Cli) -> None:
    (cli.directory / "local.toml").write_text(LOCAL)
    said = cli("run", "local.toml", "--engine", "measure", code=1).stderr
    # Both agents end; the message names the first one that is noticed.
    assert re.search(r"host `[ab]` \(local\) has no agent: ", said)
    assert "No module named engpass" in said
    assert "help: agents and drivers do not use `PYTHONPATH`" in said
    assert "or set ENGPASS_AGENT to the command that starts its agent" in said


@emulates
@pytest.mark.usefixtures("bare")
def test_driver_without_the_package_names_the_remedy(cli: Cli) -> None:
    (cli.directory / "far.toml").write_text(FAR)
    said = cli("up", "far.toml", code=2).stderr
    assert "the network cannot be emulated: " in said
    assert "No module named" in said
    assert "help: agents and drivers do not use `PYTHONPATH`" in said


def test_missing_interpreter_error_names_the_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "")
    with pytest.raises(Exception, match="no Python interpreter for its child processes") as caught:
        child.interpreter("engpass", "agent")
    assert "ENGPASS_AGENT" in str(caught.value)
