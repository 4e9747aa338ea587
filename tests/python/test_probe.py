"""The probe: output of the command, page, saved table, and missing measurements."""

from __future__ import annotations

import io
import json
import os
import re
import signal
import time
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace
from rich.console import Console

import engpass
from conftest import Cli, Program
from engpass import _engpass
from engpass.cli import files
from engpass.error import EngpassError
from engpass.formatting import byte_rate, size
from engpass.probe import FIGURES, facts, probe
from engpass.report.page import render_probe
from engpass.report.probe import figures
from engpass.show.terminal import print_blocks
from engpass.types.probe import CacheLevel, GpuSection, PointSection, Report
from engpass.views.probe import view
from report_probe import full, probed


@pytest.fixture(scope="module")
def some() -> Report:
    """A report with the clock and the smallest array; everything else is not measured."""
    one = _engpass.Probe(True, "/nowhere")
    for step, about in enumerate(one.steps()):
        if about in ("clock and timers", "disk", "devices") or step == 1:
            one.run(step)
    return msgspec.json.decode(one.report(), type=Report)


def test_unmeasured_sections_name_the_reason(some: Report) -> None:
    assert some.gpus == GpuSection(not_measured="its step of the probe did not run")
    said = dict(facts(some))
    assert said["GPUs"] == "not measured: its step of the probe did not run"
    assert said["disk"].startswith("not measured: `/nowhere`")
    assert "ns to read" in said["clock"]


def test_probe_summary_names_its_doubts(some: Report) -> None:
    made = probed(full(some))
    assert "copies 4.00 GB/s in memory" in made.sentence
    # Unconfirmed values are not called bounds.
    assert "no more than" not in made.sentence
    assert "4.00 GB/s of payload could leave this host" in made.sentence
    assert any(doubt.endswith("the best: copy in memory (copy-string of 8 KiB)") for doubt in made.doubts)
    assert any("other programs used 25.0 % of the CPUs" in doubt for doubt in made.doubts)
    assert "not steady" in made.sentence
    sure = [replace(one, confirmed=True) for one in made.data.basis]
    timer = made.data.timer
    assert timer is not None
    calm = probed(replace(made.data, basis=sure, others=0.0, timer=replace(timer, stolen=0.0)))
    assert calm.doubts == []
    assert "at most 4.00 GB/s of payload leaves this host" in calm.sentence
    # A probe without the points that the model needs has a doubt, too.
    assert "too little of the memory was measured" in probed(replace(some, basis=[])).doubts


def test_probe_tables_show_every_section(some: Report) -> None:
    written = io.StringIO()
    print_blocks(view(probed(full(some))), Console(file=written, width=200))
    text = written.getvalue()
    for part in (
        "one-copy-pipelined",
        "100 %",
        "PCI Express 3, 8 lanes",
        "below its maximum",
        "Some GPU",
    ):
        assert part in text, part
    assert "not measured" in text
    assert "the copy of `send`" in text
    assert "0.200 (0.150 to 0.300) s/GB" in text
    assert "does not hold" in text
    assert "undecided" in text
    # A single visit does not confirm a value.
    assert re.search(r" KiB .* \d+\.\d\? ", text)


def test_probe_page_is_complete_and_escaped(some: Report) -> None:
    for report in (some, full(some)):
        page = render_probe(probed(report))
        assert "a &lt;host&gt;" in page
        assert "<host>" not in page.replace("<pre tabindex=0><code>[host.a]", "")
        assert "no <link>" not in page
    assert 'id="figure-paths"' in page
    assert 'id="figure-roofline"' in page
    assert "send to recv" in page
    assert "? undecided" in page
    assert "✗ not confirmed" in page
    assert "What the machine" not in page
    assert re.search(r"not measured: no &lt;link&gt;", page)


def test_probe_figures_show_only_what_was_measured(some: Report) -> None:
    assert list(figures(probed(some)))[:1] == ["memory"]
    drawn = {name: chart.to_dict() for name, chart in figures(probed(full(some))).items()}
    assert list(drawn) == ["memory", "paths", "roofline"]
    # Two sizes with all threads make a second figure.
    sweep = full(some)
    points = sweep.memory.measured
    assert points is not None
    more = [replace(points[0], threads=2, bytes=count) for count in (8192, 16384)]
    sweep = replace(sweep, memory=PointSection(measured=[*points, *more]))
    together = figures(probed(sweep))["memory-together"].to_dict()
    assert "2 threads together" in json.dumps(together)
    assert 'id="figure-memory-together"' in render_probe(probed(sweep))
    bars = json.dumps(drawn["paths"])
    assert "one-copy-pipelined" in bars
    assert "ktls" not in bars  # paths that were not measured are not drawn
    # The axis is logarithmic. A cache that two CPUs share is drawn at half of its size for two threads.
    assert drawn["memory"]["layer"][2]["encoding"]["y"]["scale"]["type"] == "log"
    shared = CacheLevel(level=3, kind="Unified", bytes=24 << 10, shared_by="0-1")
    own = CacheLevel(level=1, kind="Data", bytes=10 << 10, shared_by="0")
    caches = replace(sweep, host=replace(sweep.host, caches=[shared, own]))
    lines = json.dumps(figures(probed(caches))["memory-together"].to_dict())
    assert '[{"kib": 12.0, "name": "L3"}, {"kib": 10.0, "name": "L1"}]' in lines
    # The bus of the adapter is a line in the roofline figure.
    assert "eth0" in json.dumps(drawn["roofline"])


def test_byte_rates_and_sizes_have_readable_units() -> None:
    assert [byte_rate(value) for value in (15e9, 2.5e6, 900)] == ["15.00 GB/s", "2.50 MB/s", "900.00 B/s"]
    assert [size(count) for count in (8192, 3 << 20, 1 << 31, 5)] == ["8 KiB", "3 MiB", "2 GiB", "5 B"]


def test_unknown_probe_step_is_rejected() -> None:
    with pytest.raises(ValueError, match="no step 999"):
        _engpass.Probe(True, "/tmp").run(999)


def test_probe_saves_a_table_that_a_testbed_accepts(cli: Cli, tmp_path: Path) -> None:
    saved, page = tmp_path / "new" / "host.toml", tmp_path / "new" / "host.html"
    page.parent.mkdir()
    given = ("--quick", "--json", "--name", "here", "--save", str(saved), "--report", str(page))
    ran = cli("probe", *given, "--disk", str(tmp_path))
    told = json.loads(ran.stdout)
    assert told["name"] == "here"
    assert told["memory"]["measured"]
    assert len(told["verdicts"]) >= len(told["sockets"]["measured"]) + 2
    assert 0 <= told["others"] <= 1
    assert [one["figure"] for one in told["basis"]] == list(FIGURES)
    assert all(one["visits"] >= 1 for one in told["memory"]["measured"])
    zero = next(one for one in told["sockets"]["measured"] if one["sending"] == "zerocopy")
    assert zero["copied"] == 1.0  # loopback has no device that could fetch the pages
    if not told["steady"]:
        assert "warning: " in ran.stderr
    assert "<script" in page.read_text()
    # Only the requested files exist.
    assert [path.name for path in tmp_path.iterdir()] == ["new"]
    assert sorted(path.name for path in page.parent.iterdir()) == ["host.html", "host.toml"]
    rest = """
[host.other]
[link.l]
ends = ["here", "other"]
medium = "ethernet-100g"
[traffic.stream]
kind = "tcp-stream"
from = "here"
to = "other"
message = "64 KiB"
"""
    testbed = engpass.loads(saved.read_text() + rest)
    limit = testbed.limit()["base"].flows["stream"].limit
    assert limit is not None
    found = [one.bottleneck for one in limit.candidates]
    assert any((one.kind, one.name) == ("sending-memory", "here") for one in found)


@pytest.mark.parametrize("name", ["", " ", "a\nb"])
def test_probe_rejects_an_invalid_name_before_the_work(cli: Cli, name: str) -> None:
    ran = cli("probe", "--quick", "--name", name, code=2)
    assert "is not a valid host name" in ran.stderr
    assert "help: use printable characters" in ran.stderr


def test_figure_directory_is_made_or_rejected_before_the_work(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    ran = cli("probe", "--quick", "--figures", str(tmp_path / "file" / "figures"), code=2)
    assert "cannot be written" in ran.stderr
    assert files.folder(str(tmp_path / "a" / "b")).is_dir()
    assert list((tmp_path / "a" / "b").iterdir()) == []


def test_pipe_is_not_opened_before_the_output(tmp_path: Path) -> None:
    # Without a reader, opening would wait for ever; with one, closing would signal the end of the data.
    os.mkfifo(tmp_path / "pipe")
    assert files.target(str(tmp_path / "pipe")) == tmp_path / "pipe"


def test_probe_rejects_unwritable_files_before_the_work(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    ran = cli("probe", "--quick", "--save", str(tmp_path / "file" / "host.toml"), code=2)
    assert ran.stdout == ""
    assert "cannot be written" in ran.stderr
    ran = cli("probe", "--quick", "--save", str(tmp_path / "none" / "host.toml"), code=2)
    assert f"there is no directory `{tmp_path / 'none'}`" in ran.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGKILL])
def test_interrupted_probe_leaves_no_files(program: Program, tmp_path: Path, sent: signal.Signals) -> None:
    room = tmp_path / "disk"
    room.mkdir()
    process = program.start("probe", "--disk", str(room), "--save", str(tmp_path / "host.toml"))
    # The probe has begun when it has several threads.
    deadline = time.monotonic() + 60
    while len(list(Path(f"/proc/{process.pid}/task").iterdir())) < 3:
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.01)
    process.send_signal(sent)
    out, err = process.communicate(timeout=60)
    assert process.returncode == (130 if sent == signal.SIGINT else -signal.SIGKILL), err
    assert (out, b"Traceback" in err) == (b"", False)
    assert list(room.iterdir()) == []
    assert not (tmp_path / "host.toml").exists()


def test_probe_reports_its_progress_per_step(monkeypatch: pytest.MonkeyPatch) -> None:
    empty = _engpass.Probe(True, "/nowhere").report()

    class Fake:
        def __init__(self, quick: bool, directory: str) -> None:
            self.ran: list[int] = []

        def steps(self) -> list[str]:
            return ["one", "two"]

        def run(self, step: int) -> None:
            self.ran.append(step)

        def report(self) -> str:
            return empty

        def table(self, name: str) -> str:
            return name

    monkeypatch.setattr(_engpass, "Probe", Fake)
    seen: list[tuple[int, int, str]] = []
    made = probe(name="x", watch=lambda *told: seen.append(told))
    assert seen == [(0, 2, "one"), (1, 2, "two"), (2, 2, "")]
    assert (made.table, made.text) == ("x", empty)


def test_thread_limit_is_reported_with_a_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    class Full:
        def __init__(self, *_: object) -> None: ...

        def steps(self) -> list[str]:
            return ["clock and timers"]

        def run(self, _step: int) -> None:
            raise OSError(11, "Resource temporarily unavailable")

    monkeypatch.setattr(_engpass, "Probe", Full)
    with pytest.raises(EngpassError, match="measurement threads cannot be started") as caught:
        probe(quick=True)
    assert "ulimit -u" in str(caught.value.help)
