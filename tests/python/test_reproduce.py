"""Reproducing a study: the campaigns it runs, the verdicts, the exit codes, the report."""

from __future__ import annotations

import contextlib
import json
import re
import shutil
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from conftest import Cli
from engpass import gallery, lab
from engpass.campaign import Point
from engpass.error import EngpassError
from engpass.reproduce import prepare
from engpass.store import Store

# The sizes at which the claims of the study are decided, less time, and no pauses: they only add chance.
THIN = [
    (
        'sweep."traffic.stream.message"',
        """[
        "1 kB", "4 kB", "5 kB", "8 kB", "9 kB", "10 kB", "18 kB", "19 kB", "27 kB", "28 kB", "36 kB", "37 kB",
        "45 kB", "46 kB", "54 kB", "55 kB", "63 kB", "64 kB",
    ]""",
    ),
    ("run.duration", "4 s"),
    ("host.ss2.pauses.share", "0 %"),
]

TESTBED = """\
name = "Two hosts on a wire"

[host.a]
nic_buffer = "16 KiB"

[host.b]

[link.wire]
ends = ["a", "b"]
medium = "atm"
rate = "10 Mbit/s"

[circuit.data]
from = "a"
to = "b"

[traffic.stream]
kind = "udp-stream"
from = "a"
to = "b"
message = "1 kB"

[run]
duration = "20 ms"
repeats = 2

[sweep]
"traffic.stream.message" = { from = "500 B", to = "2 kB", step = "500 B" }

[variant.plain]
[variant.fast]
"link.wire.rate" = "100 Mbit/s"
"""

CLAIMS = """\
title = "Two hosts on a wire"
reference = "none"

[campaign.fast]
variants = ["fast"]
engines = ["limit"]
set = { "traffic.stream.message" = "1 kB" }

[[claim]]
id = "rise"
statement = "More bytes, less overhead"
source = "arithmetic"
kind = "derived"
published = "rise"
check = "rises"
engine = "limit"
with = { variant = "plain", to = "1 kB" }

[[claim]]
id = "wire"
statement = "A message of 1000 bytes takes 22 cells"
source = "ITU-T I.363.5"
kind = "derived"
published = "85.76 Mbit/s"
tolerance = "0.01 Mbit/s"
campaign = "fast"
engine = "limit"
check = "value"
with = { variant = "fast" }

[[claim]]
id = "loss"
statement = "Nothing is lost on a wire"
source = "none"
kind = "estimate"
published = "no loss"
check = "lossless"
with = { variant = "plain" }
"""

# 2 variants, 4 sizes, limit once and simulate twice; and the one limit of the other campaign.
POINTS = 2 * 4 * 3 + 1


@pytest.fixture
def study(tmp_path: Path) -> Path:
    """A study of a millisecond's work in a directory of its own."""
    directory = tmp_path / "wire"
    directory.mkdir()
    # The sweep begins small enough that the limit rises to 1 kB.
    text = TESTBED.replace(
        'from = "1 kB", to = "4 kB", step = "1 kB"', 'from = "500 B", to = "2 kB", step = "500 B"'
    )
    (directory / "testbed.toml").write_text(text)
    (directory / "claims.toml").write_text(CLAIMS)
    return directory


@pytest.fixture(scope="module")
def kyoto(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, dict[str, Any]], str]:
    """The claims of the Kyoto study by their ids, and the report; thinned to what decides them."""
    made = prepare(gallery.study("kyoto-1997"), THIN, repeats=1)
    with Store.open(tmp_path_factory.mktemp("kyoto") / "engpass.db") as store:
        ran = made.run(store)
        assert not ran.interrupted
        assert not ran.failed
        judged = made.judge(store, ran)
        return {one.claim.id: dict(one.to_json()) for one in judged}, made.report(store, ran, judged)


def test_all_claims_of_the_kyoto_study_hold(kyoto: tuple[dict[str, dict[str, Any]], str]) -> None:
    claims, _ = kyoto
    assert [claim["id"] for claim in claims.values() if not claim["holds"]] == []
    assert claims["udp-available"]["obtained"] == "22.10 Mbit/s"
    assert claims["tcp-available"]["obtained"] == "22.07 Mbit/s"
    assert claims["udp-no-loss"]["obtained"].startswith("0 of ")
    assert claims["shaped-16-height"]["kind"] == "estimate"


def test_the_report_shows_the_claims(kyoto: tuple[dict[str, dict[str, Any]], str]) -> None:
    claims, page = kyoto
    assert f"{len(claims)} of {len(claims)} claims hold" in page
    assert "IP over ATM on a congested OC-3c link" in page


def test_the_record_does_not_tell_where_the_package_is(study: Path) -> None:
    assert prepare(gallery.study("adsl")).parts[0].testbed.source == "adsl/testbed.toml"
    assert prepare(gallery.study(str(study))).parts[0].testbed.source == str(study / "testbed.toml")


def test_a_wrong_buffer_breaks_the_study(tmp_path: Path, cli: Cli) -> None:
    # With a buffer of millions of cells nothing is ever lost, and the collapse of the paper is not there.
    copy = tmp_path / "broken"
    shutil.copytree(gallery.study("kyoto-1997").directory, copy)
    sizes = '["4 kB", "5 kB", "9 kB", "10 kB"]'
    shown = cli(
        "reproduce",
        str(copy),
        "--repeats=1",
        "--json",
        "--set=switch.atomis5.output_buffer=9000000 cells",
        "--set=run.duration=2 s",
        f'--set=sweep."traffic.stream.message"={sizes}',
        code=1,
    )
    (told,) = [json.loads(line) for line in shown.stdout.splitlines()]
    holds = {claim["id"]: claim["holds"] for claim in told["claims"]}
    assert not holds["congested-collapse"]
    assert not holds["shaped-18-collapse"]
    assert not holds["cliff"]
    assert holds["udp-available"]
    assert "claims do not hold" in shown.stderr


def test_a_study_that_holds(cli: Cli, study: Path) -> None:
    shown = cli("reproduce", study.name)
    assert "85.76 Mbit/s" in shown.stdout
    assert re.search(r"all 3 claims hold", shown.stderr)
    assert f"wire: {POINTS} points, kept in `engpass.db`" in shown.stderr
    with Store.open(study.parent / "engpass.db") as store:
        assert [record.points_total for record in store.runs()] == [1, POINTS - 1]


def test_json_is_one_line_and_nothing_else(cli: Cli, study: Path) -> None:
    shown = cli("reproduce", study.name, "--json", "--store", "other.db")
    (line,) = shown.stdout.splitlines()
    told = json.loads(line)
    assert set(told) == {"study", "claims"}
    assert told["study"] == "wire"
    keys = {"id", "statement", "source", "published", "obtained", "tolerance", "holds", "kind"}
    assert [set(claim) for claim in told["claims"]] == [keys] * 3
    assert [claim["holds"] for claim in told["claims"]] == [True] * 3
    assert "NaN" not in line
    assert (study.parent / "other.db").is_file()


def test_a_broken_study_fails(cli: Cli, study: Path) -> None:
    claims = study / "claims.toml"
    claims.write_text(CLAIMS.replace("85.76", "87.76"))
    shown = cli("reproduce", study.name, code=1)
    assert "1 of 3 claims does not hold: `wire`" in shown.stderr
    assert "NO" in shown.stdout


def test_what_is_there_is_not_run_again(cli: Cli, study: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = cli("reproduce", study.name, "--json").stdout

    def never(*_: object) -> None:
        raise AssertionError("a point ran again")

    monkeypatch.setattr(lab, "work", never)
    assert cli("reproduce", study.name, "--json").stdout == first


def test_the_report_is_written_where_it_is_wanted(cli: Cli, study: Path) -> None:
    shown = cli("reproduce", study.name, "--report", "out/deep/wire.html")
    page = (study.parent / "out/deep/wire.html").read_text()
    assert "3 of 3 claims hold" in page
    assert "the report is in `out/deep/wire.html`" in shown.stderr


def test_a_report_that_cannot_be_written_is_told_before_the_work(cli: Cli, study: Path) -> None:
    shown = cli("reproduce", study.name, "--report", "wire/testbed.toml/x.html", code=2)
    assert "cannot be written" in shown.stderr
    assert not (study.parent / "engpass.db").exists()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            ('variant = "plain", to', 'variant = "plian", to'),
            "has no variant `plian`\nhelp: did you mean `plain`?",
        ),
        (('engine = "limit"\nwith', 'engine = "limits"\nwith'), "has no engine `limits`"),
        (('variants = ["fast"]', 'variants = ["fats"]'), "there is no variant `fats`"),
        (('message" = "1 kB"', 'message" = "1000"'), "has no unit"),
        (("[campaign.fast]", "[campaign.fast"), "is not TOML"),
    ],
)
def test_a_claims_file_that_does_not_fit(
    cli: Cli, study: Path, change: tuple[str, str], message: str
) -> None:
    (study / "claims.toml").write_text(CLAIMS.replace(*change))
    assert message in cli("reproduce", study.name, code=2).stderr


def test_an_unknown_study(cli: Cli) -> None:
    assert "help: did you mean `kyoto-1997`?" in cli("reproduce", "kyoto", code=2).stderr


def test_points_that_fail_are_told(cli: Cli, study: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(job: lab.Job, point: Point) -> tuple[str, float]:
        raise EngpassError("the engine has given up")

    monkeypatch.setattr(lab, "work", fail)
    shown = cli("reproduce", study.name, code=1)
    assert "points failed" in shown.stderr
    assert shown.stdout == ""


def test_an_interrupted_reproduction_goes_on(cli: Cli, study: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []

    def stop(progress: lab.Progress) -> None:
        if progress.done >= 3 and not asked:
            asked.append(progress.done)
            signal.raise_signal(signal.SIGINT)

    def slowly(job: lab.Job, point: Point) -> tuple[str, float]:
        time.sleep(0.02)
        return work(job, point)

    work = lab.work

    @contextlib.contextmanager
    def bar(_: object) -> Iterator[lab.Watch]:
        yield stop

    # Also where the tests themselves run in the background, with SIGINT ignored.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with monkeypatch.context() as patch:
            patch.setattr("engpass.progress.bar", bar)
            patch.setattr(lab, "work", slowly)
            shown = cli("reproduce", study.name, "--jobs=1", code=130)
    finally:
        signal.signal(signal.SIGINT, before)
    assert shown.stdout == ""
    assert "help: the same command goes on where this one stopped" in shown.stderr
    with Store.open(study.parent / "engpass.db") as store:
        kept = sum(record.points_done for record in store.runs())
        assert 3 <= kept < POINTS
    assert "all 3 claims hold" in cli("reproduce", study.name).stderr


def test_the_progress_covers_all_campaigns(study: Path, tmp_path: Path) -> None:
    made = prepare(gallery.study(str(study)))
    seen: list[lab.Progress] = []
    with Store.open(tmp_path / "s.db") as store:
        made.run(store, watch=seen.append)
    assert {progress.total for progress in seen} == {made.total} == {POINTS}
    assert [p.done for p in seen] == sorted(p.done for p in seen)
    assert (seen[0].done, seen[-1].done) == (0, POINTS)
