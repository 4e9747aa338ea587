"""Snapshots of the outputs of a run: `show`, `explain`, `reproduce` and the text of the page.

Runs are studies of the gallery, short where a study is slow, and points with recorded agents. After a change
of an output run `UPDATE=1 pytest tests/python/test_snapshots.py`, read the diff, and give the reason in the
commit message.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import msgspec
import pytest

import engpass
import recorded
from conftest import Cli
from engpass import environment, gallery
from engpass.campaign import build
from engpass.reproduce import prepare
from engpass.results.ledger import slim
from engpass.store import Store, store
from snapshots import check_snapshots, page_text, stray_snapshots

ROOT = Path(__file__).parents[2]

MACHINE: dict[str, str | int] = {"version": "0.1.0", "python": "3", "system": "Linux", "kernel": "Linux"}
MACHINE |= {"machine": "x86_64", "cpu": "CPU", "cores": 1, "memory_bytes": 2**30, "hostname": "host"}
MACHINE |= {"executor": "threads", "jobs": 1, "started": "2026-01-01T00:00:00.000000+00:00"}

# Settings for short points. Claims that need the full length fail there; the snapshots show that.
STUDIES: dict[str, dict[str, str]] = {
    "adsl": {"run.duration": "400 ms", "run.warmup": "200 ms"},
    "arp": {},
    "bond": {},
    "bufferbloat": {},
    "copies": {},
    "ecmp": {},
    "failing-link": {},
    "gre": {},
    "karlsruhe-1998": {},
    "kyoto-1997": {"run.duration": "500 ms"},
    "kyoto-outlook": {"run.duration": "500 ms"},
    "nren-1998": {"run.duration": "400 ms", "run.warmup": "200 ms"},
    "path-mtu": {},
    "satellite": {},
    "ten-flows": {"run.duration": "1200 ms", "run.warmup": "1 s"},
}
# Testbeds of the gallery without claims, with the engines that need no real hosts.
TESTBEDS = {"kyoto-live": "limit,simulate", "kyoto-probed": "limit,simulate", "multicast": "limit,simulate"}

RUNS = [*STUDIES, *TESTBEDS, "recorded"]
VIEWS = {
    "show.txt": ("show",),
    "show-delays.txt": ("show", "--delays"),
    "show-ledger.txt": ("show", "--ledger"),
    "explain.json": ("explain", "--json", "--jobs=1"),
}
CLAIMS = {"reproduce.txt": (), "reproduce.json": ("--json",)}
PAGE = "report.txt"

NAMES = {f"{run}/{view}" for run in RUNS for view in (*VIEWS, PAGE)}
NAMES |= {f"{study}/{view}" for study in STUDIES for view in CLAIMS}
NAMES |= {"recorded/outcomes.json"}


@dataclass(frozen=True)
class Run:
    """A run in a store."""

    id: str
    store: Path
    arguments: tuple[str, ...] = ()
    """The arguments of `reproduce` that find the stored run of a study with claims."""

    def normalise(self, text: str) -> str:
        """Replace ids of runs and the digest of the build: the only parts that change from run to run."""
        with Store.open(self.store, create=False) as opened:
            ids = [record.id for record in opened.runs()]
        for name in ids:
            text = text.replace(name, "0123456789")
        return text.replace(build(), "0123456789abcdef")


Runs = Callable[[str], Run]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Runs]:
    """Make each run once, with a fixed machine and a fixed time."""
    with pytest.MonkeyPatch.context() as patch:
        machine = MACHINE | {"build": build()}
        patch.setattr(environment, "environment", lambda *_: machine)
        patch.setattr(store, "now", lambda: MACHINE["started"])

        @functools.cache
        def run_of(name: str) -> Run:
            path = tmp_path_factory.mktemp(name) / "engpass.db"
            with Store.open(path) as opened:
                return _made(name, path, opened)

        yield run_of


def _made(name: str, path: Path, opened: Store) -> Run:
    if name in STUDIES:
        sets = STUDIES[name]
        made = prepare(gallery.study(name), list(sets.items()), repeats=1)
        ran = made.run(opened, jobs=2)
        arguments = ("--repeats=1", *(f"--set={key}={value}" for key, value in sets.items()))
        records = [ran.records["main"], *ran.records.values()]
        shown = next(record for record in records if "simulate" in record.engines)
        return Run(shown.id, path, (name, *arguments))
    if name in TESTBEDS:
        text = (ROOT / "gallery" / name / "testbed.toml").read_text()
        testbed = engpass.loads(text, name=f"{name}/testbed.toml")
        return Run(testbed.run(TESTBEDS[name].split(","), store=opened).id, path)
    testbed = engpass.loads(recorded.TESTBED.read_text(), name="recorded/testbed.toml")
    with recorded.replayed():
        return Run(testbed.run(["limit", "simulate", *recorded.ENGINES], store=opened).id, path)


@pytest.mark.parametrize("name", RUNS)
def test_outputs_of_a_run_are_as_their_snapshots(name: str, runs: Runs, cli: Cli) -> None:
    """All outputs in one test: otherwise each process of the tests would make the run."""
    run = runs(name)
    stored = ("--store", str(run.store))
    outputs = {
        view: cli(verb, run.id, *options, *stored, code=None) for view, (verb, *options) in VIEWS.items()
    }
    page = cli.directory / "page.html"
    if run.arguments:
        claims = ("reproduce", *run.arguments, *stored, "--yes")
        outputs |= {view: cli(*claims, *options, code=None) for view, options in CLAIMS.items()}
        cli("reproduce", *run.arguments, f"--report={page}", *stored, code=None)
    else:
        cli("report", run.id, "-o", str(page), *stored, code=None)
    texts = {view: said.stdout or said.stderr for view, said in outputs.items()}
    for view, said in outputs.items():
        if view.endswith(".json") and said.stdout:
            texts[view] = json.dumps(json.loads(said.stdout), indent=1, ensure_ascii=False)
    # Values before and after a change stand on one line.
    texts["explain.json"] = re.sub(
        r"\[\s+([^\s\[\]{}]+),\s+([^\s\[\]{}]+)\s+\]", r"[\1, \2]", texts["explain.json"]
    )
    texts[PAGE] = page_text(page.read_text(encoding="utf-8"))
    check_snapshots({f"{name}/{view}": run.normalise(text) for view, text in texts.items()})


def test_outcomes_of_recorded_agents_are_as_their_snapshot(runs: Runs) -> None:
    run = runs("recorded")
    with Store.open(run.store, create=False) as opened:
        # Leave out the responses of the agents, which are inputs.
        outcomes = [slim(one) for one in opened.outcomes(run.id) if one.engine in recorded.ENGINES]
    plain = [msgspec.to_builtins(outcome) for outcome in outcomes]
    for outcome in plain:
        # The time of the test.
        del outcome["measured"]["at"]
    text = json.dumps(plain, indent=1, ensure_ascii=False)
    # Put each list of numbers on one line: histograms have a hundred.
    text = re.sub(r"\[\s+([-\d.,\s]+?)\s+\]", lambda found: f"[{' '.join(found[1].split())}]", text)
    check_snapshots({"recorded/outcomes.json": run.normalise(text)})


def test_every_snapshot_file_has_a_test() -> None:
    assert stray_snapshots(NAMES) == []
