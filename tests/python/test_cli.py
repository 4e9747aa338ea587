"""The command line: exit codes, output streams, and all kinds of files that a user can give."""

from __future__ import annotations

import csv
import io
import json
import os
import pty
import re
import shlex
import subprocess
import sys
import time
from pathlib import Path

import msgspec
import pyarrow.ipc
import pyarrow.parquet
import pytest

from conftest import POINTS, TESTBED, Cli, Program
from engpass import campaign_runner
from engpass.campaign import Point
from engpass.campaign_runner import Job
from engpass.types.outcome import VERSION, Outcome

ID = re.compile(r"\b[0-9a-f]{10}\b")


def lines(text: str) -> list[dict[str, object]]:
    return [json.loads(line) for line in text.splitlines()]


# Output of commands


def test_help_lists_all_commands(cli: Cli) -> None:
    from engpass.cli import COMMANDS

    for args in (["--help"], ["-h"]):
        shown = cli(*args).stdout
        for command in COMMANDS:
            assert re.search(rf"^  {command.name} +{re.escape(command.help)}", shown, re.MULTILINE)
    assert "Usage: engpass" in cli(code=2).stderr + cli(code=2).stdout


def test_every_command_has_help(cli: Cli) -> None:
    from engpass.cli import COMMANDS

    for command in COMMANDS:
        assert f"Usage: engpass {command.name}" in cli(command.name, "--help").stdout


def test_version_option_prints_the_version(cli: Cli) -> None:
    assert re.fullmatch(r"engpass \d+\.\d+\.\d+\n", cli("--version").stdout)


def test_unknown_command_suggests_the_nearest(cli: Cli) -> None:
    assert "unknown command `chek`\nhelp: did you mean `check`?" in cli("chek", code=2).stderr


def test_check_counts_the_points_of_a_sound_file(cli: Cli, testbed_file: Path) -> None:
    assert cli("check", testbed_file.name).stdout == (
        "lan.toml is valid: 2 nodes, 1 flow, 2 variants, 4 values of `traffic.stream.message`, 2 repeats;"
        f" {POINTS} points to run\n"
    )
    (shown,) = lines(cli("check", testbed_file.name, "--json").stdout)
    assert (shown["ok"], shown["points"], shown["diagnostics"]) == (True, POINTS, [])


def test_check_reads_standard_input(cli: Cli) -> None:
    assert cli("check", "-", stdin=TESTBED.encode()).stdout.startswith("<stdin> is valid")


def test_check_names_engines_that_cannot_run_a_variant(cli: Cli, testbed_file: Path) -> None:
    testbed_file.write_text(
        """
        [host.server]
        [host.client]
        [switch.sw]
        kind = "ethernet"
        [link.one]
        ends = ["server", "sw"]
        medium = "ethernet-100"
        [link.two]
        ends = ["server", "sw"]
        medium = "ethernet-100"
        [link.last]
        ends = ["sw", "client"]
        medium = "ethernet-100"
        [bond.up]
        node = "server"
        links = ["one", "two"]
        [traffic.film]
        kind = "multicast"
        from = "server"
        to = ["client"]
        message = "1 kB"
        rate = "1 Mbit/s"
        [run]
        duration = "1 s"
        [variant.bond]
        [variant.link]
        "bond.up.up" = false
        """
    )
    said = cli("check", testbed_file.name)
    assert "is valid" in said.stdout
    cause = "multicast traffic `film` crosses bond `up`, which the model does not support"
    note = f"note: limit and simulate cannot run for `bond`: {cause}\nhelp: set `up = false`"
    assert note in said.stderr
    refused = json.loads(cli("check", testbed_file.name, "--json").stdout)["refused"]
    found = [(one["engine"], one["variant"], one["cause"]) for one in refused]
    assert found == [("limit", "bond", cause), ("simulate", "bond", cause)]
    assert refused[0]["help"].startswith("set `up = false`")


def test_warnings_concern_only_the_chosen_variants(cli: Cli, testbed_file: Path) -> None:
    text = testbed_file.read_text()
    base, variants = text.split("[variant.", 1)
    testbed_file.write_text(
        base + "[variant." + variants + '\n[variant.dull]\n"host.a.send_path" = "zero-copy"\n'
    )
    warned = "`send_path` has no effect"
    first, *_ = json.loads(cli("check", testbed_file.name, "--json").stdout)["variants"]
    assert warned in cli("check", testbed_file.name).stderr
    assert warned in cli("limit", testbed_file.name, "--variant", "dull").stderr
    assert warned in cli("limit", testbed_file.name).stderr
    assert warned not in cli("limit", testbed_file.name, "--variant", first).stderr


def test_check_reports_the_errors_of_a_broken_file(cli: Cli) -> None:
    shown = cli("check", "-", stdin=b"name = [", code=2)
    assert shown.stdout == ""
    assert shown.stderr.startswith("error")
    shown = cli("check", "-", stdin=TESTBED.replace("message =", "mesage =").encode(), code=2)
    assert shown.stderr.endswith("\n\n1 error in <stdin>\n")
    shown = cli("check", "-", "--json", stdin=b"name = [", code=2)
    (report,) = lines(shown.stdout)
    assert report["ok"] is False
    assert isinstance(report["diagnostics"], list)
    assert shown.stderr == ""


@pytest.mark.parametrize("command", ["limit", "run"])
def test_diagnostics_are_json_lines_on_standard_error(command: str, cli: Cli) -> None:
    shown = cli(command, "-", "--json", stdin=b"name = [", code=2)
    assert shown.stdout == ""
    for diagnostic in lines(shown.stderr):
        assert set(diagnostic) >= {"code", "severity", "path", "file", "line", "column", "message", "help"}


@pytest.mark.parametrize("command", ["run", "limit", "explain"])
def test_testbed_without_traffic_is_sound_but_not_runnable(
    command: str, cli: Cli, testbed_file: Path
) -> None:
    testbed_file.write_text('[host.a]\n[host.b]\n[link.l]\nends = ["a", "b"]\nmedium = "ethernet-100"\n')
    checked = cli("check", testbed_file.name)
    assert checked.stdout.endswith("0 flows, 1 variant, 1 repeat; 0 points to run\n")
    assert checked.stderr.startswith("warning[no-traffic]: the testbed has no traffic")
    said = cli(command, testbed_file.name, code=2).stderr
    assert "error: there is nothing to run: the testbed has no traffic\nhelp: add a `[traffic.NAME]`" in said


def test_schema_and_catalogue_are_json(cli: Cli) -> None:
    assert isinstance(json.loads(cli("schema").stdout), dict)
    assert isinstance(json.loads(cli("catalogue").stdout), dict | list)


def test_limit_shows_the_stages_and_the_bottleneck(cli: Cli, testbed_file: Path) -> None:
    shown = cli("limit", testbed_file.name, "--variant", "plain").stdout
    assert "stream, variant plain" in shown
    assert "variant fast" not in shown
    assert re.search(r"│ goodput +│ +\d+\.\d\d Mbit/s │", shown)
    testbed_file.write_text(TESTBED.partition("[variant")[0])
    assert "variant" not in cli("limit", testbed_file.name).stdout


def test_limit_json_names_variants_only_if_the_file_does(cli: Cli, testbed_file: Path) -> None:
    (shown,) = lines(cli("limit", testbed_file.name, "--json").stdout)
    assert list(shown) == ["variants"]
    testbed_file.write_text(TESTBED.partition("[variant")[0])
    (shown,) = lines(cli("limit", testbed_file.name, "--json").stdout)
    assert "variants" not in shown
    flow = shown["flows"]["stream"]  # type: ignore[index]
    assert {"goodput_bit_per_s", "bottleneck", "limit"} <= set(flow)
    assert {"bound", "stages", "candidates"} <= set(flow["limit"])
    testbed_file.write_text(TESTBED.partition("[variant")[0] + "[variant.base]\n")
    (shown,) = lines(cli("limit", testbed_file.name, "--json").stdout)
    assert list(shown["variants"]) == ["base"]  # type: ignore[call-overload]


def test_run_reports_its_progress_and_prints_a_table(cli: Cli, testbed_file: Path) -> None:
    shown = cli("run", testbed_file.name)
    (run_id,) = set(ID.findall(shown.stderr))
    assert shown.stderr == (
        f"run {run_id}: {POINTS} points, stored in `engpass.db`\n"
        f"run {run_id} is stored in `engpass.db`; `engpass report {run_id} -o report.html` creates a report\n"
    )
    head = next(line for line in shown.stdout.splitlines() if line.startswith("┃"))
    header = [cell.strip() for cell in head.strip("┃").split("┃")]
    assert shown.stdout.startswith("Two hosts")
    assert header[:3] == ["Variant", "traffic.stream.message", "Goodput"]
    rows = [
        [c.strip() for c in row.strip("│").split("│")]
        for row in shown.stdout.splitlines()
        if "kB" in row and "│" in row
    ]
    assert [row[:2] for row in rows] == [[v, f"{k} kB"] for v in ("plain", "fast") for k in (1, 2, 3, 4)]
    assert all(re.fullmatch(r"\d+\.\d\d [kM]bit/s", row[2]) for row in rows)
    again = cli("run", testbed_file.name)
    assert again.stdout == shown.stdout
    assert again.stderr.startswith(
        f"run {run_id}: all {POINTS} points are already stored; `--fresh` runs them again\n"
    )


def test_table_of_a_long_sweep_is_thinned_with_a_note(cli: Cli, testbed_file: Path) -> None:
    testbed_file.write_text(TESTBED.replace('to = "4 kB", step = "1 kB"', 'to = "40 kB", step = "1 kB"'))
    shown = cli("run", testbed_file.name, "--engine", "limit").stdout
    assert re.search(
        r"^11 of 40 swept values are shown; `engpass export [0-9a-f]{10}` has all$", shown, re.MULTILINE
    )
    assert shown.count("│ plain") == 11


def test_run_json_is_one_line_per_point_in_order(cli: Cli, testbed_file: Path) -> None:
    shown = cli("run", testbed_file.name, "--json", "--jobs", "4")
    points = lines(shown.stdout)
    assert len(points) == POINTS
    assert [p["engine"] for p in points] == ["limit"] * 8 + ["simulate"] * 16
    assert points[0]["sweep"] == {"traffic.stream.message": {"number": 1000}}
    for point in points:
        assert {"version", "variant", "engine", "repeat", "seed", "sweep", "flows", "links"} <= set(point)
    # A complete campaign prints the same lines again.
    assert cli("run", testbed_file.name, "--json", "--jobs", "1").stdout == shown.stdout


def test_value_replaced_by_the_sweep_is_not_checked(cli: Cli, testbed_file: Path) -> None:
    # The message exceeds a datagram. TCP allows that, and no point uses it: the sweep replaces the value.
    text = TESTBED.replace('kind = "udp-stream"', 'kind = "tcp-stream"')
    text = text.replace('message = "1 kB"', 'message = "64 KiB"')
    testbed_file.write_text(f'{text}[variant.datagrams]\n"traffic.stream.kind" = "udp-stream"\n')
    shown = lines(cli("run", testbed_file.name, "--json", "--variant", "datagrams").stdout)
    assert len(shown) == 4 + 8


def test_run_takes_engines_variants_overrides_and_repeats(cli: Cli, testbed_file: Path) -> None:
    shown = cli(
        "run", testbed_file.name, "--json", "--engine", "simulate", "--variant", "fast", "--repeats", "3",
        "--set", "traffic.stream.message=2 kB", "--store", "other.db",
    )  # fmt: skip
    points = lines(shown.stdout)
    assert [(p["variant"], p["engine"], p["repeat"], p["sweep"]) for p in points] == [
        ("fast", "simulate", repeat, {}) for repeat in range(3)
    ]
    assert (cli.directory / "other.db").exists()
    assert not (cli.directory / "engpass.db").exists()
    both = lines(cli("run", testbed_file.name, "--json", "--engine", "simulate,limit").stdout)
    assert len(both) == POINTS


FORMULAS = """\
host = { a = {}, b = {} }
link.l = { ends = ["a", "b"], medium = "ethernet-100" }
run = { duration = "1 ms", repeats = 1 }
[traffic."=1+2,\\"x"]
kind = "udp-stream"
from = "a"
to = "b"
message = "1 kB"
[traffic."\uff1dHYPERLINK(A1)"]
kind = "udp-stream"
from = "a"
to = "b"
message = "1 kB"
[variant."+1"]
[variant."-1"]
[variant."@SUM(A1)"]
[variant."a=b"]
"""


def test_spreadsheet_export_escapes_formulas(cli: Cli) -> None:
    (cli.directory / "formulas.toml").write_text(FORMULAS)
    cli("run", "formulas.toml", "--engine", "simulate")

    def exported(*options: str) -> list[dict[str, str]]:
        return list(csv.DictReader(io.StringIO(cli("export", *options).stdout)))

    plain, safe = exported(), exported("--spreadsheet")
    names = ['=1+2,"x', "\uff1dHYPERLINK(A1)"]
    assert [row["flow"] for row in plain[:2]] == names
    assert [row["flow"] for row in safe[:2]] == [f"'{name}" for name in names]
    assert [row["variant"] for row in plain[::2]] == ["+1", "-1", "@SUM(A1)", "a=b"]
    assert [row["variant"] for row in safe[::2]] == ["'+1", "'-1", "'@SUM(A1)", "a=b"]
    # Everything else is equal, numbers included.
    for one, other in zip(plain, safe, strict=True):
        assert {**one, "flow": "", "variant": ""} == {**other, "flow": "", "variant": ""}
    for name in ("p.parquet", "p.arrow"):
        said = cli("export", "--spreadsheet", "-o", name, code=2).stderr
        assert f"`--spreadsheet` is for csv, but the format is {name[2:]}" in said


def test_negative_numbers_stay_numbers_in_a_spreadsheet() -> None:
    import pyarrow as pa

    from engpass.cli.export import _without_formulas

    table = pa.table({"=a": [-1, None], "b": [-0.5, 2.0], "c": ["-1", None], "d": ["\t=1", "1-2"]})
    found = _without_formulas(table)
    assert found.to_pydict() == {
        "'=a": [-1, None],
        "b": [-0.5, 2.0],
        "c": ["'-1", None],
        "d": ["'\t=1", "1-2"],
    }
    assert found.schema.types == table.schema.types


def test_runs_show_and_export_list_a_stored_run(cli: Cli, testbed_file: Path) -> None:
    cli("run", testbed_file.name, "--engine", "limit")
    run_id = str(lines(cli("runs", "--json").stdout)[0]["id"])
    assert re.search(rf"│ {run_id} │ Two hosts │ lan.toml │ done +│ +8 of 8 │", cli("runs").stdout)
    shown = cli("show").stdout
    assert re.search(rf"^run +{run_id} *$", shown, re.MULTILINE)
    assert re.search(r"^sweep +traffic.stream.message \(4 values\)", shown, re.MULTILINE)
    assert "│ fast" in shown
    (record,) = lines(cli("show", run_id[:4], "--json").stdout)
    assert record["text"] == TESTBED
    assert len(record["sessions"]) == 1  # type: ignore[arg-type]

    rows = list(csv.DictReader(io.StringIO(cli("export").stdout)))
    assert len(rows) == 8
    assert rows[0]["traffic.stream.message"] == "1000"
    for suffix in ("csv", "parquet", "arrow"):
        said = cli("export", run_id, "-o", f"points.{suffix}")
        assert said.stdout == ""
        assert said.stderr == f"8 rows of run {run_id} written to `points.{suffix}`\n"
    assert pyarrow.parquet.read_table(cli.directory / "points.parquet").num_rows == 8
    with pyarrow.ipc.open_file(cli.directory / "points.arrow") as file:
        assert file.read_all().num_rows == 8
    assert sorted(p.name for p in cli.directory.iterdir()) == [
        "engpass.db", "lan.toml", "points.arrow", "points.csv", "points.parquet"
    ]  # fmt: skip
    cli("export", run_id, "--format", "arrow", "-o", "points.csv")
    assert (cli.directory / "points.csv").read_bytes().startswith(b"ARROW1")
    refused = cli("export", "-o", "points.xlsx", code=2).stderr
    assert "`points.xlsx` ends in `.xlsx`, but there is no such export" in refused
    assert (
        "use `.csv` or `.parquet` or `.arrow` or `.feather`, or choose the format with `--format`" in refused
    )
    assert not (cli.directory / "points.xlsx").exists()
    cli("export", "-o", "points.of-today")
    assert (cli.directory / "points.of-today").read_text().startswith('"')
    assert "cannot be written: No such file" in cli("export", "-o", "none/points.csv", code=2).stderr
    assert "cannot be written: Is a directory" in cli("export", "-o", ".", code=2).stderr


def test_failing_point_is_reported_with_exit_code_1(
    cli: Cli, testbed_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = campaign_runner.work

    def work(job: Job, point: Point) -> str:
        if point.engine == "simulate" and point.variant == "fast":
            raise MemoryError
        return original(job, point)

    monkeypatch.setattr(campaign_runner, "work", work)
    shown = cli("run", testbed_file.name, code=1)
    assert f"error: 8 of {POINTS} points failed\n" in shown.stderr
    first = "simulate of `fast`, traffic.stream.message = 1 kB, repeat 0 and 7 more:\n  out of memory\n"
    assert first in shown.stderr
    shown = cli("run", testbed_file.name, "--json", code=1)
    assert f"{POINTS - 8} of {POINTS} points are already stored; 8 failed points are retried" in shown.stderr
    failed = [point for point in lines(shown.stdout) if "error" in point]
    assert len(failed) == 8
    assert failed[0]["sweep"] == {"traffic.stream.message": {"number": 1000}}
    # A failed point has the required fields of an outcome, and its error.
    required = {field.encode_name for field in msgspec.structs.fields(Outcome) if field.required}
    assert set(failed[0]) == {*required, "error"}
    assert failed[0]["version"] == VERSION
    shown = cli("show", "--json")
    assert len(json.loads(shown.stdout)["failures"]) == 8
    assert "8 of 24 points failed" in cli("show").stderr


# Errors of users


@pytest.mark.parametrize("command", ["check", "limit", "run"])
@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "error: there is no file `x.toml`\nhelp: check the path; `-` reads standard input\n"),
        (b"", "error"),
        (
            b"\xff\xfe\x00\x01" * 100,
            "error: `x.toml` is UTF-16 text\nhelp: a testbed is a TOML file: save it as UTF-8\n",
        ),
        (os.urandom(1000).replace(b"\0", b"\xff") + b"\xff", "error"),
        (b"\xff" * 1000, "error"),
        (
            b"a" * 40_000_000,
            "error: `x.toml` is larger than 16 MiB: this is not a testbed file\nhelp: testbed files have",
        ),
        (b"a" * 5_000_000, "error"),
        (b"[" * 100_000, "error"),
        (b"x = 1\r\ny = 2\r", "error"),
        (b"\x1b[31mred", "error"),
    ],
)
def test_bad_file_is_reported_with_exit_code_2(
    command: str, content: bytes | None, message: str, cli: Cli
) -> None:
    if content is not None:
        (cli.directory / "x.toml").write_bytes(content)
    shown = cli(command, "x.toml", code=2)
    assert shown.stderr.startswith(message)
    assert shown.stdout == ""
    assert "\x1b" not in shown.stderr, "nothing of the file reaches the terminal as a command"
    assert not (cli.directory / "engpass.db").exists()


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (
            ["run", "lan.toml", "--variant", "fasst"],
            "unknown variant `fasst`\nhelp: did you mean `fast`?",
        ),
        (
            ["limit", "lan.toml", "--variant", "x"],
            "unknown variant `x`\nhelp: use one of `plain`, `fast`",
        ),
        (["run", "lan.toml", "--engine", "limit,sim"], "unknown engine `sim`\nhelp: use one of `limit`"),
        (["run", "lan.toml", "--engine", ""], "unknown engine ``"),
        (["run", "lan.toml", "--set", "a.b"], "`--set a.b` has no value\nhelp: write `--set PATH=VALUE`"),
        (["run", "lan.toml", "--set", "=3"], "`--set =3` has no value"),
        (["run", "lan.toml", "--repeats", "0"], "--repeats"),
        (["run", "lan.toml", "--jobs", "none"], "--jobs"),
        (
            ["run", "lan.toml", "--repeats", "10000"],
            "this campaign has 80,008 points, more than 10,000\nhelp: `--yes`",
        ),
        (
            ["run", "lan.toml", "--yes", "--repeats", "99999999999"],
            "more than 100,000,000\nhelp: use larger steps",
        ),
        (["run", "lan.toml", "--store", "none/x.db"], "there is no directory `none` for the store"),
        (["runs"], "there is no store `engpass.db`\nhelp: `engpass run FILE` creates one"),
        (["show"], "there is no store `engpass.db`"),
        (["export", "--store", "lan.toml"], "`lan.toml` is not a database"),
        (["export", "--format", "xls"], "--format"),
        (["check"], "Missing argument"),
        (["check", "."], "`.` is a directory\nhelp: give a testbed file in it"),
    ],
)
def test_bad_argument_is_reported_with_exit_code_2(
    args: list[str], message: str, cli: Cli, testbed_file: Path
) -> None:
    shown = cli(*args, code=2)
    assert message in shown.stderr
    assert shown.stdout == ""
    assert testbed_file.read_text() == TESTBED


def test_non_utf8_arguments_are_handled(program: Program, testbed_file: Path) -> None:
    def run(*args: str | bytes) -> subprocess.CompletedProcess[bytes]:
        command = [*program.command(), *args]
        return subprocess.run(command, cwd=program.directory, env=program.environment(), capture_output=True)

    done = run("check", b"\xff.toml")
    assert (done.returncode, done.stderr.splitlines()[0]) == (
        2,
        "error: there is no file `\ufffd.toml`".encode(),
    )
    done = run("check", "lan.toml", "--set", b"a.b=\xff")
    assert (done.returncode, b"is not UTF-8" in done.stderr) == (2, True)
    testbed_file.rename(os.fsdecode(os.fsencode(program.directory) + b"/\xff.toml"))
    assert run("run", b"\xff.toml", "--engine", "limit").returncode == 0
    assert run("runs").returncode == 0


# Streams


def test_stdout_closed_early_ends_without_traceback(program: Program, testbed_file: Path) -> None:
    process = program.start("run", testbed_file.name, "--json", "--set", "run.repeats=400", "--yes")
    assert process.stdout is not None
    assert process.stderr is not None
    assert json.loads(process.stdout.readline())["engine"] == "limit"
    process.stdout.close()
    said = process.stderr.read().decode()
    process.stderr.close()
    assert process.wait(30) == 141
    assert "Traceback" not in said
    assert "Exception ignored" not in said


@pytest.mark.parametrize("command", ["check lan.toml", "limit lan.toml", "run lan.toml", "schema", "--help"])
@pytest.mark.parametrize(
    ("redirect", "code"),
    [(">&-", 0), ("2>&-", 0), ("> /dev/full", 2), ("2> /dev/full", 0), ("| true", 0)],
)
def test_closed_or_full_streams_give_the_right_exit_code(
    command: str, redirect: str, code: int, program: Program, testbed_file: Path
) -> None:
    said = program.shell(f"{shlex.join(program.command())} {command} {redirect}", code=code).stderr
    if redirect == "> /dev/full":
        assert "No space left on device" in said


def terminal(program: Program, *args: str, **env: str) -> str:
    """Both output streams of a command on a terminal with 100 columns."""
    leader, follower = pty.openpty()
    process = subprocess.Popen(
        program.command(*args),
        cwd=program.directory,
        env=program.environment({"TERM": "xterm-256color", "COLUMNS": "100", **env}),
        stdin=follower,
        stdout=follower,
        stderr=follower,
    )
    os.close(follower)
    shown = b""
    while True:
        try:
            data = os.read(leader, 65536)
        except OSError:
            break
        if not data:
            break
        shown += data
    os.close(leader)
    assert process.wait(30) == 0
    return shown.decode()


def test_show_delays_prints_one_way_quantiles(program: Program, testbed_file: Path) -> None:
    paced = ["--set", "traffic.stream.rate=10 Mbit/s"]
    program("run", testbed_file.name, "--engine", "simulate", "--variant", "plain", *paced)
    shown = program("show", "--delays").stdout
    assert "Two hosts: delay" in shown
    assert re.search(r"min ┃ +mean ┃ +p50 ┃ +p90 ┃ +p99 ┃ +p99.9 ┃ +max ┃", shown)
    assert "round trip" not in shown, "only TCP measures them"
    # The delay is 20 us and 10 ns per byte at the sender, then 22 cells of 2.83 us on the line, and 1 us of
    # propagation.
    row = next(line for line in shown.splitlines() if "1 kB" in line)
    times = [float(text) for text in re.findall(r"([\d.]+) us", row)]
    assert len(times) == 7
    assert all(abs(time / 93.3 - 1) < 0.005 for time in times)
    program("run", testbed_file.name, "--engine", "limit", "--fresh")
    assert "no point has delays" in program("show", "--delays").stdout


def test_colour_and_a_bar_only_on_a_terminal(program: Program, testbed_file: Path) -> None:
    shown = terminal(program, "run", testbed_file.name, "--set", "run.duration=200 ms")
    assert "\x1b[1m" in shown
    assert "/24" in shown, "the bar counts points"
    plain = terminal(program, "show", NO_COLOR="1")
    assert not re.search(r"\x1b\[[0-9;]*3[0-9]", plain)
    piped = program("show").stdout
    assert "\x1b" not in piped


def test_ascii_terminal_gets_ascii_output(program: Program, testbed_file: Path) -> None:
    testbed_file.write_text(TESTBED.replace("Two hosts", "Zwei Bürorechner"))
    shown = program(
        "run", testbed_file.name, "--engine", "limit", PYTHONIOENCODING="ascii", PYTHONUTF8="0"
    ).stdout
    assert shown.isascii()
    assert shown.startswith("Zwei B?rorechner")


def test_help_and_check_import_no_costly_modules(program: Program, testbed_file: Path) -> None:
    """Checks imports instead of times, since imports take the time; Typer takes more than half of it."""
    light = {"engpass", "engpass_command", "typer", "annotated_doc", "shellingham", "_distutils_hack"}
    costly = {
        "concurrent.futures",
        "sqlite3",
        "multiprocessing",
        "asyncio",
        "http",
        "email",
        "xml",
        "logging",
    }
    code = (
        "import sys, atexit; before = set(sys.modules); atexit.register(lambda: print("
        "sorted({module.split('.')[0] for module in set(sys.modules) - before}"
        f" - sys.stdlib_module_names - {light!r}), "
        f"sorted(set(sys.modules) & {costly!r}), file=sys.stderr));"
    )
    script = Path(__file__).with_name("engpass_command.py").read_text()
    for args in (["--help"], ["--version"], ["check", testbed_file.name], ["check", "--help"]):
        done = subprocess.run(
            [sys.executable, "-c", code + "\n" + script, *args],
            cwd=program.directory,
            env=program.environment(),
            capture_output=True,
            text=True,
        )
        assert (done.returncode, done.stderr) == (0, "[] []\n"), args


def test_progress_log_prints_a_line_every_ten_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    from engpass.campaign_runner import Progress
    from engpass.progress import bar

    now = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    log = io.StringIO()
    with bar(log) as watch:
        assert watch is not None
        for second in range(1, 41):
            now[0] = float(second)
            watch(Progress(1000, 200 + 10 * second, second // 20, 200, 0))
        now[0] = 80.0
        watch(Progress(1000, 998, 2, 200, 1000))
    assert log.getvalue() == (
        "300 of 1,000 points, 10.0 points/s, 70 s left\n"
        "401 of 1,000 points, 1 failed, 10.1 points/s, 60 s left\n"
        "501 of 1,000 points, 1 failed, 10.0 points/s, 50 s left\n"
        "602 of 1,000 points, 2 failed, 10.1 points/s, 40 s left\n"
    )


def test_progress_log_shows_the_share_of_a_long_point(monkeypatch: pytest.MonkeyPatch) -> None:
    from engpass.campaign_runner import Progress
    from engpass.progress import bar

    now = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    log = io.StringIO()
    with bar(log) as watch:
        assert watch is not None
        for second in range(1, 25):
            now[0] = float(second)
            watch(Progress(1, 0, 0, 0, 0, second / 50))
    assert log.getvalue() == (
        "0 of 1 points, 20.0% of a point, 40 s left\n0 of 1 points, 40.0% of a point, 30 s left\n"
    )


def test_loss_is_shown_as_at_most_100_percent(cli: Cli, tmp_path: Path) -> None:
    """A packet sent before the window may wait in a queue and be dropped within the window."""
    (tmp_path / "full.toml").write_text("""
[host.a]
[host.b]
[router.r]
queue = { drop-tail = { limit = "1 packets" } }
[link.in]
ends = ["a", "r"]
medium = "point-to-point"
rate = "100 Mbit/s"
delay = "50 ms"
[link.out]
ends = ["r", "b"]
medium = "point-to-point"
rate = "1 bit/s"
[traffic.stream]
kind = "udp-stream"
from = "a"
to = "b"
message = "1000 B"
rate = "10 Mbit/s"
stop = "55 ms"
[run]
duration = "200 ms"
warmup = "50 ms"
""")
    point = json.loads(cli("run", "full.toml", "--engine", "simulate", "--json").stdout)
    counts = point["flows"]["stream"]["datagrams"]
    assert counts["lost"] > counts["sent"] > 0
    shown = cli("show").stdout
    assert "100.0 %" in shown
    cli("report", "-o", "full.html")
    page = (tmp_path / "full.html").read_text()
    assert "100.0 % lost" in page
