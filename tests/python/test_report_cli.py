"""`engpass report`: from the store to the files."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest

from conftest import POINTS, Cli
from engpass import campaign_runner
from engpass.campaign import Point
from engpass.error import EngpassError
from test_report_page import Reader, points


def test_report_writes_a_page_and_figures(cli: Cli, testbed_file: Path) -> None:
    cli("run", testbed_file.name)
    told = cli("report", "last", "-o", "page.html", "--figures", "pictures/here")
    page = (cli.directory / "page.html").read_text(encoding="utf-8")
    assert page.startswith("<!DOCTYPE html>")
    assert "<title>Two hosts · Engpass</title>" in page
    assert f"all {POINTS} outcomes" in page
    assert "report of run" in told.stderr
    assert told.stdout == ""
    names = {file.name for file in (cli.directory / "pictures" / "here").iterdir()}
    assert {"goodput.svg", "goodput.png", "testbed.svg", "testbed.png"} <= names


def test_report_has_a_default_file_name(cli: Cli, testbed_file: Path) -> None:
    cli("run", testbed_file.name)
    cli("report")
    assert (cli.directory / "report.html").stat().st_size > 500_000


def test_report_shows_claims_from_a_file(cli: Cli, testbed_file: Path) -> None:
    cli("run", testbed_file.name, "--engine", "limit")
    claims = [{"id": "1", "statement": "It is fast", "holds": True, "kind": "derived"}]
    (cli.directory / "claims.json").write_text(json.dumps({"study": "two hosts", "claims": claims}))
    cli("report", "--claims", "claims.json")
    assert "It is fast" in (cli.directory / "report.html").read_text(encoding="utf-8")


def test_report_rejects_unreadable_and_unwritable_files(cli: Cli, testbed_file: Path) -> None:
    assert "help:" in cli("report", code=2).stderr
    cli("run", testbed_file.name, "--engine", "limit")
    assert "there is no run `zzz`" in cli("report", "zzz", code=2).stderr
    assert "`no/such.html` cannot be written" in cli("report", "-o", "no/such.html", code=2).stderr
    (cli.directory / "taken").write_text("")
    assert "`taken` cannot be written" in cli("report", "--figures", "taken", code=2).stderr
    assert "`none.json` cannot be read" in cli("report", "--claims", "none.json", code=2).stderr
    for text, said in (("{", "is not JSON"), ("[1]", "has no list of claims"), ("[" * 10**5, "is not JSON")):
        (cli.directory / "claims.json").write_text(text)
        assert f"`claims.json` {said}" in cli("report", "--claims", "claims.json", code=2).stderr
    (cli.directory / "claims.json").write_bytes(b"\xff\xfe\x00")
    assert "is not JSON" in cli("report", "--claims", "claims.json", code=2).stderr


@pytest.mark.parametrize(
    "command",
    [
        ["report", "-o"],
        ["explain", "lan.toml", "--report"],
        ["probe", "--report"],
        ["reproduce", "kyoto-1997", "--report"],
    ],
)
def test_page_is_not_written_under_an_ending_of_another_format(
    command: list[str], cli: Cli, testbed_file: Path
) -> None:
    said = cli(*command, "r.PDF", code=2).stderr
    assert said.splitlines() == [
        "error: `r.PDF` ends in `.pdf`, but the page is HTML",
        "help: use the ending `.html`; a browser prints the page as PDF",
    ]
    assert not (cli.directory / "r.PDF").exists()


def test_report_notes_an_incomplete_run(cli: Cli, testbed_file: Path) -> None:
    from engpass.store import Store

    cli("run", testbed_file.name)
    with Store.open(cli.directory / "engpass.db") as store:
        run = store.run("last")
    import sqlite3

    with sqlite3.connect(cli.directory / "engpass.db") as connection:
        connection.execute("delete from point where position > 3")
    told = cli("report", run.id[:6]).stderr
    assert f"note: only 4 of {POINTS} points of the run are done" in told
    assert f"Only 4 of {POINTS} points are done." in (cli.directory / "report.html").read_text(
        encoding="utf-8"
    )


@pytest.mark.parametrize("failed", [None, 9], ids=["complete", "with a failed point"])
def test_page_csv_equals_export(
    failed: int | None, cli: Cli, testbed_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    work = campaign_runner.work

    def work_but_one(job: campaign_runner.Job, point: Point) -> str:
        if point.position == failed:
            raise EngpassError("this point fails")
        return work(job, point)

    monkeypatch.setattr(campaign_runner, "work", work_but_one)
    cli("run", testbed_file.name, "--engine", "limit,simulate", code=0 if failed is None else 1)
    cli("report", "last", "-o", "page.html")
    page = points(Reader((cli.directory / "page.html").read_text(encoding="utf-8")))
    exported = list(csv.DictReader(io.StringIO(cli("export", "last").stdout)))
    assert list(page[0]) == list(exported[0])
    assert len(page[0]) >= 24
    assert [[_value(cell) for cell in row.values()] for row in page] == [
        [_value(cell) for cell in row.values()] for row in exported
    ]


def _value(cell: str) -> float | str:
    try:
        return float(cell)
    except ValueError:
        return cell
