"""Reproducing a study: its campaigns, the verdicts, the exit codes, the report."""

from __future__ import annotations

import contextlib
import json
import shutil
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from conftest import Cli
from engpass import campaign_runner, gallery
from engpass.campaign import Point
from engpass.error import EngpassError
from engpass.reproduce import prepare
from engpass.store import Store

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
value = "rise"
check = "rises"
breaks = { "run.seed" = "2" }
engine = "limit"
with = { variant = "plain", to = "1 kB" }

[[claim]]
id = "wire"
statement = "A message of 1000 bytes takes 22 cells"
source = "ITU-T I.363.5"
kind = "derived"
value = "85.76 Mbit/s"
breaks = { "link.wire.rate" = "9 Mbit/s" }
tolerance = "0.01 Mbit/s"
campaign = "fast"
engine = "limit"
check = "value"
with = { variant = "fast" }

[[claim]]
id = "loss"
statement = "Nothing is lost on a wire"
source = "none"
kind = "prediction"
value = "no loss"
check = "none"
with = { variant = "plain", count = "lost" }
breaks = { "run.seed" = "2" }
"""

# 2 variants x 4 sizes, with limit once and simulate twice; and one limit point of the other campaign.
POINTS = 2 * 4 * 3 + 1


@pytest.fixture
def study(tmp_path: Path) -> Path:
    """A tiny study in a new directory."""
    directory = tmp_path / "wire"
    directory.mkdir()
    # The sweep begins at small sizes, so that the limit rises up to 1 kB.
    text = TESTBED.replace(
        'from = "1 kB", to = "4 kB", step = "1 kB"', 'from = "500 B", to = "2 kB", step = "500 B"'
    )
    (directory / "testbed.toml").write_text(text)
    (directory / "claims.toml").write_text(CLAIMS)
    return directory


@pytest.fixture(scope="module")
def kyoto(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, dict[str, Any]], str]:
    """The judged claims of the Kyoto study by their ids, and the report."""
    made = prepare(gallery.study("kyoto-1997"), repeats=1)
    with Store.open(tmp_path_factory.mktemp("kyoto") / "engpass.db") as store:
        ran = made.run(store)
        assert not ran.interrupted
        assert not ran.failed
        judged = made.judge(store, ran)
        return {one.claim.id: dict(one.to_json()) for one in judged}, made.report(store, ran, judged)


def test_claims_of_the_kyoto_study_are_as_expected(kyoto: tuple[dict[str, dict[str, Any]], str]) -> None:
    claims, _ = kyoto
    statuses = {claim["id"]: claim["status"] for claim in claims.values()}
    assert [name for name, status in statuses.items() if status in ("fails", "holds after all")] == []
    assert [name for name, status in statuses.items() if status == "known difference"] == [
        "udp-dip-16",
        "sender-34",
        "congested-residue-everywhere",
        "tcp-congested-4-kb",
        "tcp-congested-dips",
    ]
    assert claims["udp-available"]["obtained"] == "22.10 Mbit/s"
    assert claims["tcp-available"]["obtained"] == "22.07 Mbit/s"
    assert claims["udp-no-loss"]["obtained"].startswith("0 of ")
    assert claims["packet-cells"]["obtained"] == "192 cells"


def test_reproduce_report_shows_the_claims(kyoto: tuple[dict[str, dict[str, Any]], str]) -> None:
    claims, page = kyoto
    assert f"of {len(claims)} claims hold, 5 known differences, 3 open" in page
    assert "IP over ATM on a congested OC-3c link" in page


def test_run_record_hides_the_package_directory(study: Path) -> None:
    assert prepare(gallery.study("adsl")).parts[0].testbed.source == "adsl/testbed.toml"
    assert prepare(gallery.study(str(study))).parts[0].testbed.source == str(study / "testbed.toml")


def test_wrong_buffer_size_breaks_kyoto_claims(tmp_path: Path, cli: Cli) -> None:
    # With a buffer of millions of cells nothing is lost, so the collapse of the paper does not occur.
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
    assert "do not hold" in shown.stderr


def test_reproduce_of_a_valid_study_succeeds(cli: Cli, study: Path) -> None:
    shown = cli("reproduce", study.name)
    assert "85.76 Mbit/s" in shown.stdout
    assert "3 of 3 claims hold" in shown.stderr
    assert f"wire: {POINTS} points, stored in `engpass.db`" in shown.stderr
    with Store.open(study.parent / "engpass.db") as store:
        assert [record.points_total for record in store.runs()] == [1, POINTS - 1]


def test_reproduce_json_is_a_single_line(cli: Cli, study: Path) -> None:
    shown = cli("reproduce", study.name, "--json", "--store", "other.db")
    (line,) = shown.stdout.splitlines()
    told = json.loads(line)
    assert set(told) == {"study", "claims", "counts", "notes"}
    assert (told["study"], told["notes"]) == ("wire", [])
    assert [claim["holds"] for claim in told["claims"]] == [True] * 3
    assert {kind: counts["holds"] for kind, counts in told["counts"].items()} == {
        "derived": 2,
        "prediction": 1,
    }
    assert "NaN" not in line
    assert (study.parent / "other.db").is_file()


def test_reproduce_fails_if_a_claim_does_not_hold(cli: Cli, study: Path) -> None:
    claims = study / "claims.toml"
    claims.write_text(CLAIMS.replace("85.76", "87.76"))
    shown = cli("reproduce", study.name, code=1)
    assert "2 of 3 claims hold, 1 fails\n`wire` does not hold" in shown.stderr
    assert "✗ does not hold" in shown.stdout


KNOWN = """
[[claim]]
id = "known"
statement = "A message of 1000 bytes takes 21 cells"
source = "a wrong guess"
kind = "derived"
value = "89.84 Mbit/s"
tolerance = "0.01 Mbit/s"
campaign = "fast"
engine = "limit"
check = "value"
with = { variant = "fast" }
expected = false
reason = "the trailer of AAL5 was forgotten"

[[claim]]
id = "unknown"
statement = "How fast light is in the wire"
source = "nobody says"
kind = "open"
decided_by = "a long wire and a clock"
"""


def test_known_differences_and_open_claims_do_not_fail(cli: Cli, study: Path) -> None:
    (study / "claims.toml").write_text(CLAIMS.replace("reference", 'notes = ["N"]\nreference', 1) + KNOWN)
    shown = cli("reproduce", study.name)
    assert "3 of 5 claims hold, 1 known difference, 1 open" in shown.stderr
    for text in ("≠ known difference", "why not: the trailer", "decided by: a long wire", "note: N"):
        assert text in shown.stdout
    # The study's source states no values: all values are marked with their origin.
    assert "Stated" not in shown.stdout
    assert "computed:" in shown.stdout
    assert "predicted:" in shown.stdout
    # Rows are in the order of the kinds, with the counts below them.
    lines = [line.split(":")[0] for line in shown.stdout.splitlines()]
    assert [line for line in lines if line in ("derived", "prediction", "open")] == [
        "derived",
        "prediction",
        "open",
    ]
    rows = [line.replace("│", " ").split() for line in shown.stdout.splitlines()]
    assert ["derived", "3", "2", "-", "1", "-"] in rows
    assert ["open", "1", "-", "-", "-", "1"] in rows
    told = json.loads(cli("reproduce", study.name, "--json").stdout)
    assert [claim["status"] for claim in told["claims"]] == [
        "holds",
        "holds",
        "known difference",
        "holds",
        "open",
    ]
    assert told["counts"]["derived"]["known_difference"] == 1
    assert told["notes"] == ["N"]


def test_known_difference_that_holds_is_reported(cli: Cli, study: Path) -> None:
    (study / "claims.toml").write_text(CLAIMS + KNOWN.replace("89.84", "85.76"))
    shown = cli("reproduce", study.name)
    assert "✓ holds after all" in shown.stdout
    assert "`known` holds, but the claims file does not expect it\nhelp: remove `expected" in shown.stderr
    told = json.loads(cli("reproduce", study.name, "--json").stdout)
    assert told["claims"][2]["status"] == "holds after all"


def test_reproduce_does_not_rerun_stored_points(
    cli: Cli, study: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = cli("reproduce", study.name, "--json").stdout

    def never(*_: object) -> None:
        raise AssertionError("a point ran again")

    monkeypatch.setattr(campaign_runner, "work", never)
    assert cli("reproduce", study.name, "--json").stdout == first


def test_reproduce_writes_the_report_to_the_given_path(cli: Cli, study: Path) -> None:
    shown = cli("reproduce", study.name, "--report", "out/deep/wire.html")
    page = (study.parent / "out/deep/wire.html").read_text()
    assert "3 of 3 claims hold" in page
    assert "report written to `out/deep/wire.html`" in shown.stderr


def test_unwritable_report_is_rejected_before_the_work(cli: Cli, study: Path) -> None:
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
        (('engine = "limit"\nwith', 'link = "wier"\nwith'), "has no link `wier`\nhelp: did you mean `wire`?"),
        (('variants = ["fast"]', 'variants = ["fats"]'), "unknown variant `fats`"),
        (('message" = "1 kB"', 'message" = "1000"'), "has no unit"),
        (("[campaign.fast]", "[campaign.fast"), "is not TOML"),
    ],
)
def test_claims_file_that_does_not_fit_is_rejected(
    cli: Cli, study: Path, change: tuple[str, str], message: str
) -> None:
    (study / "claims.toml").write_text(CLAIMS.replace(*change))
    assert message in cli("reproduce", study.name, code=2).stderr


def test_study_above_max_points_is_rejected(study: Path) -> None:
    # The points of its campaigns count, not those of the testbed's own sweep.
    assert prepare(gallery.study(str(study)), max_points=POINTS).total == POINTS
    with pytest.raises(EngpassError, match=f"has {POINTS} points, more than {POINTS - 1}"):
        prepare(gallery.study(str(study)), max_points=POINTS - 1)


def test_unknown_study_suggests_the_nearest(cli: Cli) -> None:
    assert "help: did you mean `kyoto-1997`?" in cli("reproduce", "kyoto", code=2).stderr


def test_reproduce_reports_failed_points(cli: Cli, study: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(job: campaign_runner.Job, point: Point) -> str:
        raise EngpassError("the engine has given up")

    monkeypatch.setattr(campaign_runner, "work", fail)
    shown = cli("reproduce", study.name, code=1)
    assert "points failed" in shown.stderr
    assert shown.stdout == ""


def test_interrupted_reproduction_resumes(cli: Cli, study: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []

    def stop(progress: campaign_runner.Progress) -> None:
        if progress.done >= 3 and not asked:
            asked.append(progress.done)
            signal.raise_signal(signal.SIGINT)

    def slowly(job: campaign_runner.Job, point: Point) -> str:
        time.sleep(0.02)
        return work(job, point)

    work = campaign_runner.work

    @contextlib.contextmanager
    def bar(_: object) -> Iterator[campaign_runner.Watch]:
        yield stop

    # The tests may run in the background, with SIGINT ignored.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with monkeypatch.context() as patch:
            patch.setattr("engpass.progress.bar", bar)
            patch.setattr(campaign_runner, "work", slowly)
            shown = cli("reproduce", study.name, "--jobs=1", code=130)
    finally:
        signal.signal(signal.SIGINT, before)
    assert shown.stdout == ""
    assert "help: repeat the command to continue where it stopped" in shown.stderr
    with Store.open(study.parent / "engpass.db") as store:
        kept = sum(record.points_done for record in store.runs())
        assert 3 <= kept < POINTS
    assert "3 of 3 claims hold" in cli("reproduce", study.name).stderr


def test_progress_covers_all_campaigns_of_a_study(study: Path, tmp_path: Path) -> None:
    made = prepare(gallery.study(str(study)))
    seen: list[campaign_runner.Progress] = []
    with Store.open(tmp_path / "s.db") as store:
        made.run(store, watch=seen.append)
    assert {progress.total for progress in seen} == {made.total} == {POINTS}
    assert [p.done for p in seen] == sorted(p.done for p in seen)
    assert (seen[0].done, seen[-1].done) == (0, POINTS)
