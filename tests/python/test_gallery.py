"""The studies of the gallery: valid files, found wherever the package is, with complete pages."""

from __future__ import annotations

import dataclasses
import json
import re
import subprocess
import tomllib
from pathlib import Path

import jsonschema
import pytest
from break_rule import REMOVES, check_break

import engpass
from conftest import Cli
from engpass import gallery
from engpass.claims import KINDS
from engpass.claims.checks import CHECKS
from engpass.error import ChoiceError, EngpassError
from engpass.gallery import Study
from engpass.reproduce import prepare
from engpass.results import outcomes

ROOT = Path(__file__).parents[2]
NAMES = [
    "adsl",
    "arp",
    "backbone",
    "bond",
    "bufferbloat",
    "copies",
    "ecmp",
    "failing-link",
    "gre",
    "karlsruhe-1998",
    "kyoto-1997",
    "kyoto-outlook",
    "nren-1998",
    "path-mtu",
    "satellite",
    "ten-flows",
]
# Testbeds for real hosts and stacks, without claims.
TESTBEDS = ["kyoto-live", "kyoto-probed", "multicast"]

each = pytest.mark.parametrize("study", [gallery.study(name) for name in NAMES], ids=NAMES)


def test_all_studies_are_found() -> None:
    assert [study.name for study in gallery.studies()] == NAMES
    assert sorted(path.name for path in (ROOT / "gallery").iterdir() if path.is_dir()) == sorted(
        [*NAMES, *TESTBEDS]
    )


def test_wheel_contains_every_file_of_the_gallery() -> None:
    # In the package the gallery is a symbolic link; only the glob below follows it into the wheel.
    assert (ROOT / "python/engpass/studies").resolve() == ROOT / "gallery"
    included = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["maturin"]["include"]
    assert {"path": "python/engpass/studies/*/*", "format": ["sdist", "wheel"]} in included
    listed = subprocess.run(
        ["git", "ls-files", "gallery"], cwd=ROOT, capture_output=True, text=True, check=False
    ).stdout.split()
    assert all(len(Path(name).parts) == 3 for name in listed)


@each
def test_study_testbed_passes_the_check_and_the_schema(study: Study) -> None:
    engpass.load(study.testbed)
    schema = json.loads((ROOT / "schema/testbed.schema.json").read_text())
    jsonschema.validate(tomllib.loads(study.testbed.read_text()), schema)


@each
def test_study_claims_fit_the_testbed(study: Study) -> None:
    made = prepare(study)
    assert len(made.claims.claims) >= 5
    assert made.parts[-1].spec.name == "main"
    used = {claim.measure.campaign for claim in made.claims.claims if claim.measure is not None}
    assert used | {"main"} == {part.spec.name for part in made.parts}


@each
def test_study_page_states_every_claim(study: Study) -> None:
    page = study.page.read_text()
    assert f"engpass reproduce {study.name}" in page
    for claim in study.claims().claims:
        assert claim.statement in page, claim.id
        for text in (claim.published, claim.printed, claim.value, claim.reason, claim.decided_by):
            assert text is None or text in page, claim.id
    assert all(note in page for note in study.claims().notes)


@each
def test_breaks_of_study_claims_obey_the_rule(study: Study) -> None:
    claims = study.claims()
    for claim in claims.claims:
        if claim.breaks is not None:
            assert claim.measure is not None
            pairs = claims.campaign(claim.measure.campaign).set
            campaign = engpass.load(study.testbed, pairs).campaign
            assert check_break(campaign, claim.measure, *claim.breaks) is None, claim.id


def comment_above(text: str, start: str) -> str:
    """The nearest block of comments above the first line that begins with `start`."""
    lines = text.splitlines()
    at = next(i for i, line in enumerate(lines) if line.startswith(start))
    above = lines[:at]
    while above and above[-1].strip() and not above[-1].startswith("#"):
        above.pop()
    block: list[str] = []
    while above and above[-1].startswith("#"):
        block.insert(0, above.pop())
    return "\n".join(block)


@pytest.mark.parametrize(
    "key",
    [
        "per_fragment",
        "per_byte",
        "per_write",
        "per_segment",
        "per_ack",
        "profile",
        "delay",
        "share",
        "mean",
        "output_buffer",
        "discard",
        "schedule",
    ],
)
def test_kyoto_estimates_are_marked_as_estimates(key: str) -> None:
    text = gallery.study("kyoto-1997").testbed.read_text()
    assert "ESTIMATE" in comment_above(text, f"{key} = ")


@pytest.mark.parametrize(("kind", "goodput"), [("udp-stream", 22.10), ("tcp-stream", 22.07)])
def test_kyoto_testbed_limits_match_the_study_formulas(kind: str, goodput: float) -> None:
    testbed = engpass.load(gallery.study("kyoto-1997").testbed, {"traffic.stream.kind": kind})
    flow = testbed.limit(["congested"])["congested"].flows["stream"]
    assert round(flow.goodput_bit_per_s / 1e6, 2) == goodput
    assert flow.bottleneck is not None
    assert (flow.bottleneck.kind, flow.bottleneck.name) == ("link", "receiver")


def test_a_probed_host_is_no_bottleneck_of_a_line_of_1997() -> None:
    testbed = engpass.load(ROOT / "gallery/kyoto-probed/testbed.toml", {"run.duration": "200 ms"})
    found = testbed.limit()
    flow = found["free"].flows["stream"]
    assert flow.goodput_bit_per_s == pytest.approx(134.69e6, rel=1e-4)
    assert flow.limit is not None
    rates = {
        (one.bottleneck.kind, one.bottleneck.name): one.goodput_bit_per_s for one in flow.limit.candidates
    }
    # The memory limits to a third of 39,803 MB/s, the CPU to 9152 B in 4355 ns plus the time of a copy.
    assert rates["sending-memory", "server"] == pytest.approx(39.803e9 / 3 * 8, rel=1e-3)
    assert 10e9 < rates["sending-host", "server"] < 9152 * 8 / 4355e-9
    assert found["congested"].flows["stream"].goodput_bit_per_s == pytest.approx(22.10e6, rel=1e-3)
    stop = engpass._engpass.Interrupt()
    simulated = outcomes.read(testbed.campaign.run("simulate", "congested", [], 0, stop))
    assert simulated.flows["stream"].goodput_bit_per_s < 1e6


@pytest.mark.parametrize("page", ["docs/probe.md", "gallery/kyoto-probed/testbed.toml"])
def test_probe_tables_in_pages_have_all_saved_keys(page: str) -> None:
    text = (ROOT / page).read_text()
    (table,) = re.findall(r"^\[host\.server\]\n(?:#.*\n)*(memory = .*)$", text, re.MULTILINE)
    memory = tomllib.loads(table)["memory"]
    assert list(memory) == ["bandwidth", "copy", "checksum", "cache"]
    assert list(memory["cache"]) == ["size", "copy", "checksum"]


def test_gallery_lists_each_study_on_a_line(cli: Cli) -> None:
    shown = cli("gallery")
    for name in NAMES:
        assert f"\n{name}" in f"\n{shown.stdout}"
        assert str(gallery.study(name).directory) in shown.stdout
    told = [json.loads(line) for line in cli("gallery", "--json").stdout.splitlines()]
    assert [one["study"] for one in told] == NAMES
    assert all(Path(one["directory"], "testbed.toml").is_file() for one in told)


def test_a_study_is_a_name_or_a_directory(tmp_path: Path) -> None:
    with pytest.raises(ChoiceError) as error:
        gallery.study("kyoto-1979")
    assert error.value.help == "did you mean `kyoto-1997`?"
    with pytest.raises(ChoiceError, match="is not a study"):
        gallery.study(str(tmp_path))
    kyoto = gallery.study("kyoto-1997").directory
    assert gallery.study(str(kyoto)).name == "kyoto-1997"


def test_missing_gallery_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gallery, "HOME", tmp_path / "studies")
    with pytest.raises(EngpassError, match="the gallery is missing"):
        gallery.studies()


def test_documentation_lists_every_check_with_its_arguments() -> None:
    text = (ROOT / "docs/gallery.md").read_text().split("| check |")[1]
    for name, check in CHECKS.items():
        (row,) = [line for line in text.splitlines() if line.startswith(f"| `{name}` ")]
        for field in dataclasses.fields(check):
            if field.name != "variant":
                assert f"`{field.name.rstrip('_')}`" in row.split("|")[3], (name, field.name)
        assert ("±" in row.split("|")[1]) is check.numeric


def test_documentation_lists_every_kind_and_removal() -> None:
    text = (ROOT / "docs/gallery.md").read_text()
    for kind in KINDS:
        assert f"\n| `{kind}` | " in text
    removals = text.split("a mechanism that is removed")[1]
    for key, (value, _) in REMOVES.items():
        assert f"`{key}`" in removals
        assert f"`{value}`" in removals


def test_example_of_the_guide_is_a_claim_of_the_gallery() -> None:
    text = (ROOT / "docs/gallery.md").read_text()
    example = text.split("```toml\n")[1].split("```")[0]
    assert example in (ROOT / "gallery/kyoto-1997/claims.toml").read_text()
