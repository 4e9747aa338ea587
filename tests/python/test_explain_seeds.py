"""Changes are judged with several seeds where there is chance in a testbed, and must gain notably."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from conftest import Cli
from engpass import Testbed
from engpass.explain import resimulate
from engpass.explain.select_point import choose_in
from engpass.explain.service import Needs, Served
from engpass.explanation import Explanation, explain
from engpass.testbed import load
from served import served

# A download over a satellite, whose radio link loses packets at random.
SKY: dict[str, Any] = {
    "name": "A download over a satellite",
    "host": {name: {"tcp": {"profile": "linux-6"}} for name in ("a", "b")},
    "router": {"r": {}},
    "link": {
        "l": {"ends": ["a", "r"], "medium": "ethernet-100"},
        "m": {
            "ends": ["r", "b"],
            "medium": "point-to-point",
            "rate": "10 Mbit/s",
            "delay": "250 ms",
            "loss": "0.1 %",
        },
    },
    "traffic": {"t": {"kind": "tcp-stream", "from": "a", "to": "b", "message": "8 kB"}},
    "run": {"duration": "60 s", "warmup": "20 s"},
}


def explained(testbed: Testbed) -> Explanation:
    return explain(choose_in(testbed, None, [], None))


def goodputs(sets: Sequence[tuple[str, str]]) -> list[float]:
    ran = load(SKY, set=sets).run(["simulate"], repeats=5)
    return [one.flows["t"].goodput_bit_per_s for one in ran.outcomes]


def test_changes_at_a_lossy_line_are_judged_with_five_seeds(monkeypatch: pytest.MonkeyPatch) -> None:
    testbed = load(SKY)
    made = explained(testbed).advice
    assert made is not None
    found = [*made.changes, *made.trades]
    assert (made.seeds, made.compared) == (5, True)
    assert "use `bbr` as congestion control of `t`" in [one.say for one in found]
    before = goodputs(())
    for one in found:
        assert one.before == pytest.approx(sum(before) / 5)
        after = goodputs(one.set)
        assert one.after == pytest.approx(sum(after) / 5)
        assert all(old < new for old, new in zip(before, after, strict=True))
    # One seed alone recommends changes that lose with others.
    monkeypatch.setattr(resimulate.Bench, "draw", lambda *_: None)
    alone = explained(testbed).advice
    assert alone is not None
    luck = {one.say for one in (*alone.changes, *alone.trades)} - {one.say for one in found}
    assert "use loss recovery `plain`" in luck
    assert alone.seeds == 1


def test_seeds_of_changes_are_shown(cli: Cli) -> None:
    (cli.directory / "sky.toml").write_text(load(SKY).text)
    shown = cli("explain", "sky.toml").stdout
    assert "Changes that help (simulated, mean of 5 seeds)" in shown
    assert " runs with 5 seeds" in shown
    assert "(mean of 5 seeds)" in shown.splitlines()[-2]


def test_repeats_that_differ_are_complemented_to_five_seeds() -> None:
    made = explained(load({**SKY, "run": {**SKY["run"], "repeats": 2}}))
    assert made.advice is not None
    assert (len(made.at.outcomes), made.advice.seeds) == (2, 5)


@pytest.mark.parametrize("repeats", [1, 3])
def test_testbed_without_chance_is_judged_with_one_seed(repeats: int) -> None:
    links = {**SKY["link"], "m": {**SKY["link"]["m"], "loss": "0 %"}}
    made = explained(load({**SKY, "link": links, "run": {**SKY["run"], "repeats": repeats}})).advice
    assert made is not None
    assert (made.seeds, made.compared, made.basis) == (1, True, "")
    # Only RED, which draws random numbers itself, has more than one run.
    assert made.runs == len(made.tried) + 4


def test_long_run_with_one_seed_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resimulate, "EVENTS", 1000)
    made = explained(load(SKY)).advice
    assert made is not None
    assert made.seeds == 1
    assert made.basis.startswith(" with one seed, because a run takes long")


def test_change_that_brings_chance_is_judged_with_five_seeds() -> None:
    links = {**SKY["link"], "m": {**SKY["link"]["m"], "loss": "0 %"}}
    chosen = choose_in(load({**SKY, "link": links}), None, [], None)
    made = resimulate.Bench(chosen.text, chosen.source, (), chosen.variant, (), range(1))
    made.draw(chosen.outcomes)
    assert len(made.baseline()) == 1
    assert len(made.served([("router.r.queue", "red")]) or ()) == 5
    assert len(made.served([("router.r.queue", "codel")]) or ()) == 1


@pytest.mark.parametrize(
    ("after", "gains"),
    [
        (served(94.15e6, delay=0.128), False),
        (served(94.9e6, delay=0.119), False),
        (served(95.2e6, delay=0.128), True),
        (served(94.15e6, delay=0.1), True),
    ],
)
def test_gain_below_one_per_cent_is_none(after: Served, gains: bool) -> None:
    needs = Needs(94.15e6, 0.005, resends=True, paced=False)
    assert bool(needs.worse(after, served(94.15e6, delay=0.128))) is gains
