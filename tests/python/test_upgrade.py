"""Outcomes of earlier versions get what this version writes, or nothing where that would be a guess."""

from __future__ import annotations

from typing import Any

import pytest

import engpass
from engpass import ledger
from engpass.upgrade import upgrade

TWO_LINKS = """
host = { a = {}, b = {} }
router.r = {}
link.near = { ends = ["a", "r"], medium = "ethernet-1g" }
link.far = { ends = ["r", "b"], medium = "ethernet-100" }
traffic.stream = { kind = "udp-stream", from = "a", to = "b", message = "1 kB", rate = "1 Mbit/s" }
run = { duration = "10 ms" }
"""
PARALLEL = TWO_LINKS + 'link.spare = { ends = ["r", "b"], medium = "ethernet-100" }\n'


def outcomes(text: str) -> list[dict[str, Any]]:
    """What `limit` and `simulate` write, as an earlier version would have."""
    found = engpass.loads(text).run(["limit", "simulate"]).outcomes
    for outcome in found:
        assert ledger.route(outcome, "stream") == [("near", "a", "r"), ("far", "r", "b")]
        del outcome["flows"]["stream"]["paths"]
    return found


def test_outcome_without_paths_gets_those_of_its_topology() -> None:
    topology = engpass.loads(TWO_LINKS).topology
    for outcome in outcomes(TWO_LINKS):
        assert ledger.route(outcome, "stream") == []
        assert ledger.route(upgrade(outcome, topology), "stream") == [("near", "a", "r"), ("far", "r", "b")]


@pytest.mark.parametrize("route", [None, ["a", "b"]], ids=["two-links-to-choose-from", "no-such-link"])
def test_path_that_the_topology_does_not_decide_is_not_guessed(route: list[str] | None) -> None:
    topology = engpass.loads(PARALLEL).topology
    if route is not None:
        topology["flows"][0]["route"] = route
    for outcome in outcomes(PARALLEL):
        assert ledger.route(upgrade(outcome, topology), "stream") == []


def test_outcome_with_paths_stays_as_it_is() -> None:
    found = engpass.loads(PARALLEL).run(["simulate"]).outcomes
    before = [ledger.route(outcome, "stream") for outcome in found]
    topology = engpass.loads(TWO_LINKS).topology
    assert [ledger.route(upgrade(outcome, topology), "stream") for outcome in found] == before
