"""Changes that break claims: the rule for `breaks`, and their application to a small study."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from break_rule import check_break
from breaking import Attempt, break_claims

from engpass import gallery
from engpass.claims import Measure
from engpass.claims.checks.value import Value
from engpass.claims.quantity import Quantity
from engpass.error import EngpassError
from engpass.testbed import loads

ROOT = Path(__file__).parents[2]

TESTBED = """\
name = "Two hosts on a wire"

[host.a]
nic_buffer = "16 KiB"

[host.b]
tcp = { profile = "linux-6", ack_every = 2 }

[switch.s]
kind = "atm"
output_buffer = "384 cells"
discard = "ppd"

[link.wire]
ends = ["a", "s"]
medium = "atm"
rate = "10 Mbit/s"

[link.on]
ends = ["s", "b"]
medium = "atm"
rate = "20 Mbit/s"

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

[sweep]
"traffic.stream.message" = { from = "500 B", to = "2 kB", step = "500 B" }

[variant.plain]
[variant.fast]
"link.wire.rate" = "16 Mbit/s"
"""


def claim(name: str, variant: str, check: str, breaks: str) -> str:
    return f"""
[[claim]]
id = "{name}"
statement = "S"
source = "s"
kind = "derived"
value = "v"
engine = "limit"
{check}
with = {{ variant = "{variant}", at = "1 kB" }}
breaks = {{ {breaks} }}
"""


PLAIN = 'check = "value"\nleast = "8 Mbit/s"\nmost = "9 Mbit/s"'
FAST = 'check = "value"\nleast = "13 Mbit/s"\nmost = "14 Mbit/s"'
ANY = 'check = "value"\nleast = "1 Mbit/s"'
SLOWER = '\'variant.plain."link.wire.rate"\' = "9 Mbit/s"'
ALL_SLOWER = '"link.wire.rate" = "9 Mbit/s"'
FAST_SLOWER = '\'variant.fast."link.wire.rate"\' = "15 Mbit/s"'

GOOD = [claim("plain", "plain", PLAIN, SLOWER), claim("fast", "fast", FAST, FAST_SLOWER)]


def attempts(tmp_path: Path, *claims: str, wanted: tuple[str, ...] = ()) -> dict[str, Attempt]:
    """Try the breaking changes of some claims; returns the attempts by the ids of the claims."""
    study = tmp_path / "wire"
    study.mkdir()
    (study / "testbed.toml").write_text(TESTBED)
    (study / "claims.toml").write_text('title = "T"\nreference = "R"\n' + "".join(claims))
    told: list[Attempt] = []
    found = break_claims(gallery.study(str(study)), told.append, wanted=wanted, jobs=2)
    assert told == found
    return {attempt.claim.id: attempt for attempt in found}


def test_a_claim_fails_with_its_change_and_others_hold(tmp_path: Path) -> None:
    found = attempts(tmp_path, *GOOD)
    assert {name: attempt.problem for name, attempt in found.items()} == {"plain": None, "fast": None}
    assert found["plain"].obtained == "7.72 Mbit/s"
    assert (found["plain"].held, found["plain"].others) == (1, 1)


def test_claim_that_holds_despite_its_break_is_reported(tmp_path: Path) -> None:
    found = attempts(tmp_path, *GOOD, claim("lax", "plain", ANY, '"link.on.rate" = "10 Mbit/s"'))
    assert found["lax"].problem == "the claim holds even with this change"
    assert found["lax"].obtained == "8.58 Mbit/s"


def test_break_that_fails_most_other_claims_is_reported(tmp_path: Path) -> None:
    others = [claim(f"other-{i}", "fast", FAST, FAST_SLOWER) for i in range(3)]
    # As with `--set`, a change of the file's value overrides the variant's.
    found = attempts(tmp_path, claim("plain", "plain", PLAIN, ALL_SLOWER), *others)
    assert found["plain"].problem == "fewer than half of the 3 other claims still hold"
    assert found["other-0"].problem == "fewer than half of the 3 other claims still hold"
    assert (found["other-0"].held, found["other-0"].others) == (1, 3)


def test_break_that_makes_a_claim_uncheckable_is_reported(tmp_path: Path) -> None:
    # Setting the swept path removes the sweep, and with it the point that the claim is about.
    found = attempts(
        tmp_path,
        *GOOD,
        claim("gone", "plain", PLAIN, '"traffic.stream.message" = "2 kB"'),
        claim("refused", "plain", PLAIN, '"run.duration" = "0 s"'),
    )
    assert found["gone"].problem == "with this change the claim cannot be checked: no point at this value"
    assert found["refused"].problem is not None
    assert found["refused"].problem.startswith("with this change the claim cannot be run: error[")


def test_break_larger_than_a_factor_of_two_is_reported(tmp_path: Path) -> None:
    found = attempts(tmp_path, *GOOD, claim("far", "plain", PLAIN, '"link.wire.rate" = "4 Mbit/s"'))
    assert found["far"].problem is not None
    assert found["far"].problem.endswith("by more than a factor of 2")


def test_claim_is_checked_unchanged_before_its_break(tmp_path: Path) -> None:
    wrong = claim("wrong", "plain", FAST, SLOWER)
    known = claim("known", "plain", PLAIN, SLOWER).split("breaks")[0] + 'expected = false\nreason = "r"\n'
    found = attempts(tmp_path, *GOOD, wrong, known)
    assert found["wrong"].problem == "it does not hold without its change, with one repeat"
    assert found["known"].problem is not None
    assert found["known"].problem.startswith("it holds: remove `expected = false`")


def test_only_selected_claims_are_broken(tmp_path: Path) -> None:
    assert set(attempts(tmp_path, *GOOD, wanted=("fast",))) == {"fast"}
    with pytest.raises(EngpassError) as error:
        break_claims(gallery.study(str(tmp_path / "wire")), print, wanted=("fats",))
    assert error.value.help == "did you mean `fast`?"
    with (tmp_path / "wire/claims.toml").open("a") as file:
        file.write(
            '[[claim]]\nid = "later"\nstatement = "S"\nkind = "open"\nsource = "s"\ndecided_by = "d"\n'
        )
    with pytest.raises(
        EngpassError, match="claim `later` of `wire` is open: it has no check that could fail"
    ):
        break_claims(gallery.study(str(tmp_path / "wire")), print, wanted=("later",))


def test_prove_breaks_fails_on_a_claim_that_cannot_fail(tmp_path: Path) -> None:
    attempts(tmp_path, *GOOD, claim("lax", "plain", ANY, '"link.on.rate" = "10 Mbit/s"'))
    tool = [sys.executable, str(ROOT / "tools/prove_breaks.py"), str(tmp_path / "wire")]
    ended = subprocess.run(tool, capture_output=True, text=True, check=False)
    assert ended.returncode == 1
    assert (
        'fails plain: 7.72 Mbit/s (variant.plain."link.wire.rate" = 9 Mbit/s); 1 of 2 others hold'
        in ended.stdout
    )
    assert ended.stderr == "error: wire: claim `lax`: the claim holds even with this change\n"
    ended = subprocess.run([*tool, "fast"], capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (0, "")


@pytest.mark.parametrize(
    ("key", "value", "problem"),
    [
        ("link.wire.rate", "20 Mbit/s", None),
        ("link.wire.rate", "5000 kbit/s", None),
        ("link.wire.rate", "4.9 Mbit/s", "by more than a factor of 2"),
        ("link.wire.rate", "20.1 Mbit/s", "by more than a factor of 2"),
        ("link.wire.rate", "10 Mbit/s", "is already 10 Mbit/s"),
        ("link.wire.rate", "10000 kbit/s", "is already 10 Mbit/s"),
        ("link.wire.rate", "10 Mbit/s cells", "neither changes a quantity nor removes a mechanism"),
        # A mechanism is removed: a quantity of zero, the plain policy, a variant's value undone.
        ("link.wire.rate", "0 bit/s", None),
        ("switch.s.discard", "tail", None),
        ("switch.s.discard", "epd", "neither changes a quantity nor removes a mechanism"),
        ("host.b.tcp.recovery", "plain", None),
        ('variant.fast."link.wire.rate"', "10 Mbit/s", None),
        ('variant.fast."link.wire.rate"', "32 Mbit/s", None),
        ('variant.fast."link.wire.rate"', "33 Mbit/s", "by more than a factor of 2"),
        # Bare numbers, and swept values.
        ("host.b.tcp.ack_every", "1", None),
        ("host.b.tcp.ack_every", "5", "by more than a factor of 2"),
        ("traffic.stream.message", "2 kB", None),
        ("traffic.stream.message", "400 B", "by more than a factor of 2"),
        ("link.wire.delay", "1 ms", "by more than a factor of 2"),
        ("host.b.tcp.mss", "9180 B", "no value to compare with `9180 B`"),
        # Mistakes in the change itself.
        ('variant.nope."link.wire.rate"', "20 Mbit/s", "there is no variant `nope`"),
        ('variant.fast."a..b"', "20 Mbit/s", "is no key of a testbed"),
    ],
)
def test_break_changes_at_most_by_two_or_removes_a_mechanism(
    key: str, value: str, problem: str | None
) -> None:
    variant = "fast" if key.startswith("variant") else "plain"
    check = Value(variant=variant, at=Quantity.parse("1 kB"))
    measure = Measure(check, None, "main", "limit", "stream")
    found = check_break(loads(TESTBED).campaign, measure, key, value)
    assert (found is None) if problem is None else (found is not None and problem in found)


def test_break_is_compared_with_the_campaign_value() -> None:
    pairs = (("link.wire.rate", "4 Mbit/s"), ('sweep."link.on.rate"', '["30 Mbit/s"]'))
    campaign = loads(TESTBED, pairs).campaign
    measure = Measure(
        Value(variant="plain"), None, "slow", "limit", "stream", where=(("link.on.rate", "30 Mbit/s"),)
    )
    assert check_break(campaign, measure, "link.wire.rate", "2 Mbit/s") is None
    assert check_break(campaign, measure, "link.wire.rate", "9 Mbit/s") is not None
    assert check_break(campaign, measure, "link.on.rate", "60 Mbit/s") is None
    assert check_break(campaign, measure, "link.on.rate", "61 Mbit/s") is not None


def test_first_swept_value_is_no_value_of_the_file() -> None:
    # The file has no buffer for b; its sweep begins with 16 KiB, a 64th of the claim's.
    swept = ('sweep."host.b.nic_buffer"', '["16 KiB", "1 MiB"]')
    where = (("traffic.stream.message", "1 kB"), ("host.b.nic_buffer", "1 MiB"))
    measure = Measure(Value(variant="plain"), None, "main", "limit", "stream", where=where)
    found = check_break(loads(TESTBED, [swept]).campaign, measure, "host.b.nic_buffer", "16 KiB")
    assert found is not None
    assert "by more than a factor of 2" in found


def test_swept_key_of_a_claim_about_several_values_cannot_be_changed() -> None:
    measure = Measure(Value(variant="plain"), None, "main", "limit", "stream")
    swept = ('sweep."host.b.nic_buffer"', '["16 KiB", "1 MiB"]')
    found = check_break(loads(TESTBED, [swept]).campaign, measure, "host.b.nic_buffer", "32 KiB")
    assert found == "the claim is about several values of `host.b.nic_buffer`: change another key"


def test_component_of_variants_alone_is_no_value_of_the_file() -> None:
    more = '"traffic.more" = { kind = "udp-stream", from = "b", to = "a", message = "1 kB" }\n'
    text = TESTBED.replace("[sweep]\n", '[sweep]\n"traffic.more.rate" = ["1 Mbit/s", "2 Mbit/s"]\n')
    for variant in ("[variant.plain]\n", "[variant.fast]\n"):
        text = text.replace(variant, variant + more)
    where = (("traffic.stream.message", "1 kB"), ("traffic.more.rate", "2 Mbit/s"))
    measure = Measure(Value(variant="plain"), None, "main", "limit", "stream", where=where)
    campaign = loads(text).campaign
    assert check_break(campaign, measure, "traffic.more.rate", "1 Mbit/s") is None
    found = check_break(campaign, measure, "traffic.more.rate", "100 kbit/s")
    assert found is not None
    assert "by more than a factor of 2" in found
